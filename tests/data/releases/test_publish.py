"""Publishing: what a repository holds afterwards, what is refused, and what an interrupted call leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from byte_search import files_with
from command_line import h2htalk_here
from hub_double import Answer, HubDouble
from hub_repos import Blob
from huggingface_hub import constants, logging
from kills import KILLED, killed_in
from releases_made import make_release, scenario

from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import write_text
from h2htalk.data.links import add_link, read_links
from h2htalk.data.releases.hub import TIMEOUTS, download, publish
from h2htalk.data.releases.release_folder import hash_files, read_manifest
from h2htalk.errors import ConfigError, H2HTalkError


def sent(hub: HubDouble) -> list[str]:
    """What changed the repository; the Hub only answers that it exists already when it is created again."""
    return [point for point in hub.points("POST", "PUT", "DELETE") if point not in ("create", "validate")]


def contents(folder: Path) -> dict[str, bytes]:
    """The files that a release publishes."""
    return {name: (folder / name).read_bytes() for name in ("release.json", *read_manifest(folder).files)}


def stored(hub: HubDouble, revision: str = "main") -> dict[str, bytes]:
    """The files of the repository, without the Hub's own."""
    files = hub.dataset("lab/made").files(revision)
    assert files.pop(".gitattributes")
    return files


# --- What is published ------------------------------------------------------------------------------------------


def test_one_commit_holds_the_files_of_the_release_and_has_the_tag(hub: HubDouble, release: Path) -> None:
    done = publish(release, "lab/made")
    repo = hub.dataset("lab/made")
    assert stored(hub) == contents(release)
    assert repo.private
    assert repo.tags == {"v1.0.0": done.commit} == {"v1.0.0": repo.head.sha}
    assert len(repo.commits) == 2
    assert repo.head.message == "made 1.0.0"
    assert sent(hub)[-2:] == ["commit", "tag"]
    assert hub.tokens == {"hf_lab"}


def test_files_that_release_json_does_not_list_stay_here(hub: HubDouble, release: Path) -> None:
    for name in ("notes.txt", ".env", ".git/config", "data/en/raw.jsonl", "made.private/sources.json"):
        write_text(release / name, "secret")
    (release / "README.link").symlink_to(release / "notes.txt")
    expected = contents(release)
    publish(release, "lab/made")
    assert stored(hub) == expected
    assert not any(b"secret" in content for content in hub.stored.values())


def test_a_second_version_removes_what_it_does_not_hold(hub: HubDouble, release: Path, tmp_path: Path) -> None:
    publish(release, "lab/made")
    second = make_release(tmp_path / "second", {"test": [scenario(1)]}, version="1.1.0")
    publish(second, "lab/made", tag="second", message="Fewer items")
    assert stored(hub) == contents(second)
    assert stored(hub, "v1.0.0") == contents(release)
    assert hub.dataset("lab/made").head.message == "Fewer items"
    assert len(hub.dataset("lab/made").commits) == 3


def test_publishing_links_the_release_to_its_place(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (release.parent / "release.private").mkdir()
    publish(release, "lab/made")
    monkeypatch.chdir(release)
    publish(Path(), "lab/made")
    assert [(link.kind, link.target) for link in read_links(release.parent / "release.private")] == [
        ("hub", "hub:lab/made@v1.0.0")
    ]


@pytest.mark.parametrize("step", ["list_repo_files", "create_commit", "download"])
def test_a_killed_publication_leaves_no_text_elsewhere_and_is_known(
    hub: HubDouble, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A kill left what was read back in TMPDIR, and one after the commit a version that no erasure knew of."""
    private, part = release.parent / "release.private", tmp_path / ".release.part"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    real = download

    def kill(*given: Any, **named: Any) -> None:
        if step == "download":
            real(*given)
        os._exit(KILLED)

    place = "h2htalk.data.releases.hub.download" if step == "download" else f"huggingface_hub.HfApi.{step}"
    with monkeypatch.context() as patch:
        patch.setattr(place, kill)
        assert killed_in(lambda: publish(release, "lab/made"))
    known = [link.target for link in read_links(private)]
    assert known == ([] if step == "list_repo_files" else ["hub:lab/made@v1.0.0"])
    assert bool(files_with(part, "plants")) == (step == "download")
    (tmp_path / ".release.private.part").mkdir()  # a killed build's
    if step == "download":
        add_link(tmp_path / "work", "release", release)
        list(sweep(tmp_path / "work", ErasedIds(frozenset({"nobody"}))))
    else:
        publish(release, "lab/made")
    assert not list(tmp_path.glob(".release*.part"))


# --- What is refused --------------------------------------------------------------------------------------------


def refusal(release: Path, repo: str = "lab/made", **options: object) -> str:
    """The one line with which publishing is refused."""
    with pytest.raises(H2HTalkError) as caught:
        publish(release, repo, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert "hf_" not in str(caught.value)
    return str(caught.value)


def test_publishing_again_says_that_it_is_published(hub: HubDouble, release: Path) -> None:
    first = publish(release, "lab/made")
    hub.requests.clear()
    second = publish(release, "lab/made")
    assert second.commit == first.commit
    assert second.notes == ("already published as v1.0.0",)
    assert sent(hub) == []


def test_a_tag_of_another_release_is_refused_before_anything_is_sent(
    hub: HubDouble, release: Path, tmp_path: Path
) -> None:
    publish(release, "lab/made")
    other = make_release(tmp_path / "other", {"test": [scenario(1)]})
    hub.requests.clear()
    assert "the tag v1.0.0 exists on another release" in refusal(other)
    assert sent(hub) == []


@pytest.mark.parametrize(
    "files",
    [
        {"train.csv": b"a,b\n"},
        {"README.md": b"---\nlicense: mit\n---\n# Our other data set\n"},
        {"README.md": b"", "data/x.parquet": b"PAR1"},
        {"release.json": b'{"version": "2.1", "assets": []}'},
    ],
)
def test_a_repository_that_holds_something_else_is_refused(
    hub: HubDouble, release: Path, files: dict[str, bytes]
) -> None:
    hub.add("lab/made", private=True).write(files)
    hub.requests.clear()
    assert "that are no release" in refusal(release)
    assert sent(hub) == []


@pytest.mark.parametrize("card", [b"", b"---\nlicense: mit\n---\n", b"---\r\nlicense: mit\r\n---\r\n\r\n"])
def test_an_empty_card_may_be_replaced(hub: HubDouble, release: Path, card: bytes) -> None:
    hub.add("lab/made", private=True).write({"README.md": card})
    publish(release, "lab/made")
    assert stored(hub) == contents(release)


def test_a_public_repository_takes_agreement(hub: HubDouble, release: Path) -> None:
    hub.add("lab/made")
    assert "is public" in refusal(release)
    assert sent(hub) == []
    assert publish(release, "lab/made", private=False).notes == (f"everybody can read {hub.url}/datasets/lab/made",)


def test_public_creates_a_public_repository_and_opens_no_private_one(hub: HubDouble, release: Path) -> None:
    publish(release, "lab/made", private=False)
    assert not hub.dataset("lab/made").private
    hub.add("lab/closed", private=True)
    (note,) = publish(release, "lab/closed", private=False).notes
    assert "stays private" in note
    assert hub.dataset("lab/closed").private


def test_a_changed_file_is_found_before_anything_is_sent(hub: HubDouble, release: Path) -> None:
    write_text(release / "README.md", "# Something else\n")
    assert "README.md" in refusal(release)
    assert hub.requests == []


@pytest.mark.parametrize("name", ["release.json", "README.md", "data"])
def test_symbolic_links_are_not_followed(hub: HubDouble, release: Path, tmp_path: Path, name: str) -> None:
    shutil.move(release / name, tmp_path / "elsewhere")
    (release / name).symlink_to(tmp_path / "elsewhere")
    refusal(release)
    assert hub.requests == []


def test_a_private_file_is_never_sent_even_where_release_json_lists_it(hub: HubDouble, release: Path) -> None:
    write_text(release / "made.private" / "sources.json", "{}")
    replace(read_manifest(release), files=hash_files(release)).write(release)
    assert "is private" in refusal(release)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("repo", "tag"),
    [
        ("made", None),
        ("lab/made/x", None),
        ("../made", None),
        ("lab/made", "main"),
        ("lab/made", "a" * 40),
        ("lab/made", "v 1"),
    ],
)
def test_names_that_the_hub_would_refuse(hub: HubDouble, release: Path, repo: str, tag: str | None) -> None:
    with pytest.raises(ConfigError):
        publish(release, repo, tag=tag)
    assert hub.requests == []


def test_somebody_elses_commit_in_between_is_not_overwritten(hub: HubDouble, release: Path) -> None:
    repo = hub.add("lab/made", private=True)
    hub.before["commit"] = lambda: repo.write({"README.md": b"# Ours\n"})
    assert "somebody else changed it meanwhile" in refusal(release)
    assert stored(hub) == {"README.md": b"# Ours\n"}
    assert repo.tags == {}


def test_damage_in_the_store_is_found_before_the_tag(hub: HubDouble, release: Path) -> None:
    """The tree still names the hash that was sent; only the content tells."""
    hub.fault("get", "damage", times=1)
    assert "removed from the cache: run the same command again" in refusal(release)
    assert hub.dataset("lab/made").tags == {}
    publish(release, "lab/made")
    assert len(hub.dataset("lab/made").commits) == 2


@pytest.mark.parametrize("lost", ["README.md", "release.json"])
def test_a_commit_that_differs_from_what_was_sent_is_not_tagged(hub: HubDouble, release: Path, lost: str) -> None:
    """A hook of the server lost a file; the tag would name no release."""
    publish(make_release(release.parent / "older", version="0.9.0"), "lab/made")
    repo = hub.dataset("lab/made")
    tree, store = repo.head.tree, repo.store

    def without(message: str, new: Mapping[str, Blob], parent: str | None) -> str:
        return store(message, {**new, lost: tree[lost]} if lost == "release.json" else {**new, lost: Blob(b"")}, parent)

    repo.store = without  # type: ignore[method-assign]
    assert "publish it again" in refusal(release) or "is not what was sent" in refusal(release)
    assert list(repo.tags) == ["v0.9.0"]


# --- Errors of the Hub ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["hf_l\nab", "hf_läb", "hf l", "hf_\x00"])
def test_a_token_that_no_header_can_hold_is_not_shown(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    """The HTTP library's own message shows the whole header."""
    if "\x00" in token:
        with contextlib.suppress(ValueError):  # the system holds no such variable
            monkeypatch.setenv("HF_TOKEN", token)
        return
    monkeypatch.setenv("HF_TOKEN", token)
    assert "HF_TOKEN holds a character that no token has" in refusal(release)
    assert hub.requests == []


def test_a_stored_token_is_not_used(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text(Path(constants.HF_HOME) / "token", "hf_stored")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(Path(constants.HF_HOME) / "token"))
    monkeypatch.delenv("HF_TOKEN")
    assert "HF_TOKEN is not set" in refusal(release)


@pytest.mark.parametrize(
    ("token", "repo", "advice"),
    [
        ("hf_expired", "lab/made", "HF_TOKEN is refused: it is expired, revoked or mistyped"),
        ("hf_reader", "reader/made", "check that HF_TOKEN may write there"),
        ("hf_lab", "b/made", "check that HF_TOKEN may write there"),
        ("hf_lab", "b/public", "check that HF_TOKEN may write there"),
        ("hf_lab", "b/closed", "check that HF_TOKEN may write there"),
    ],
)
def test_tokens_that_may_not_write(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, token: str, repo: str, advice: str
) -> None:
    hub.add("b/public")
    hub.add("b/closed", private=True)
    monkeypatch.setenv("HF_TOKEN", token)
    before = {name: dict(one.branches) for (_, name), one in hub.repos.items()}
    assert advice in refusal(release, repo, private=False)
    assert {name: dict(one.branches) for (_, name), one in hub.repos.items()} == before


@pytest.mark.parametrize(
    ("point", "status", "advice"),
    [
        ("create", 403, "made up (403): check that HF_TOKEN may write there, and the storage"),
        ("preupload", 429, "wait some minutes and run the same command again"),
        ("batch", 413, "the storage that its owner has left"),
        ("put", 507, "made up (507): run the same command again later"),
        ("commit", 503, "run the same command again later"),
        ("tag", 409, "choose another name"),
        ("get", 503, "run the same command again later"),
    ],
)
def test_errors_say_what_to_do_and_leave_no_tag(
    hub: HubDouble, release: Path, point: str, status: int, advice: str
) -> None:
    hub.refuse(point, status, "made up")
    assert advice in refusal(release)
    repo = hub.repos.get(("dataset", "lab/made"))
    assert repo is None or repo.tags == {}
    hub.mend()
    publish(release, "lab/made")
    assert stored(hub) == stored(hub, "v1.0.0") == contents(release)
    assert len(hub.dataset("lab/made").commits) == 2


TOKEN = "hf_MadeUpMadeUpMadeUpMadeUpMadeUp1234"
ESCAPED = "".join(f"\\u{ord(sign):04x}" for sign in TOKEN)
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("point", ["refs", "commit"])
@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (f"Bearer {TOKEN} is wrong", {}),
        (f'{{"error": "{ESCAPED} is wrong"}}', JSON),
        (f"<html>Authorization: Bearer {TOKEN}</html>", {}),
        ("{}", {"X-Error-Message": f"{'x ' * 35}{TOKEN}{' x' * 90}"}),  # was cut in its middle
        ("{}", {"X-Error-Code": "Wrong", "X-Error-Message": TOKEN, "X-HF-Warning": f"token; {TOKEN}"}),
    ],
)
def test_an_error_that_repeats_the_token_printed_it(
    hub: HubDouble,
    release: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    status: int,
    point: str,
    body: str,
    headers: dict[str, str],
) -> None:
    logging.set_verbosity_warning()
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.accounts[TOKEN] = hub.accounts["hf_lab"]
    hub.add("lab/made", private=True)
    hub.fault(point, "answer", answer=Answer(status, body.encode(), headers))
    done = h2htalk_here("release", "publish", release, "lab/made")
    shown = done.stdout + done.stderr + "".join(capfd.readouterr())
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: lab/made: ")
    assert not [start for start in range(len(TOKEN) - 9) if TOKEN[start : start + 10] in shown]
    assert ESCAPED[:12] not in shown


def test_a_server_that_never_answers(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.data.releases.hub.TIMEOUTS", dict.fromkeys(TIMEOUTS, 0.5))
    for point in ("info", "refs", "commit", "tag"):
        hub.fault(point, "hang", times=1)
        assert f"{hub.url} failed: timed out; check the network" in refusal(release)


@pytest.mark.parametrize("point", ["info", "refs", "preupload", "commit"])
@pytest.mark.parametrize("page", [b"<html>Please log in</html>", b"{}"])
def test_an_answer_that_is_not_the_hubs(hub: HubDouble, release: Path, point: str, page: bytes) -> None:
    """The login page of a network, say."""
    hub.add("lab/made", private=True)
    hub.fault(point, "answer", answer=Answer(200, page))
    assert "check HF_ENDPOINT" in refusal(release) or "improperly formatted" in refusal(release)


# --- Interruptions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cut", "lost"])
@pytest.mark.parametrize("point", ["create", "validate", "preupload", "batch", "put", "verify", "commit", "tag"])
def test_a_cut_upload_resumes_to_one_complete_commit(hub: HubDouble, release: Path, point: str, kind: str) -> None:
    hub.fault(point, kind)
    assert "run the same command again" in refusal(release)
    assert all(not repo.tags or (point, kind) == ("tag", "lost") for repo in hub.repos.values())
    hub.mend()
    hub.requests.clear()
    publish(release, "lab/made")
    assert "put" not in hub.points() or point not in ("commit", "tag")  # nothing is sent twice
    repo = hub.dataset("lab/made")
    assert stored(hub) == contents(release)
    assert repo.tags == {"v1.0.0": repo.head.sha}
    assert len(repo.commits) == 2


def test_a_tag_that_repeats_the_token_is_masked_too(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(release, "lab/made")
    hub.dataset("lab/made").tags["hf_lab"] = hub.dataset("lab/made").tags["v1.0.0"]
    done = h2htalk_here("release", "pull", "hub:lab/made@gone", "--out", release.parent / "out")
    assert (done.returncode, "hf_lab" in done.stderr) == (2, False)
    assert "[API key masked]" in done.stderr


def test_somebody_elses_tag_in_between_is_no_success(hub: HubDouble, release: Path) -> None:
    repo = hub.add("lab/made", private=True)
    first = repo.head.sha
    hub.before["tag"] = lambda: repo.tags.update({"v1.0.0": first})
    assert "Tag reference exists already" in refusal(release)
