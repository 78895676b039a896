"""Publishing: what a repository holds afterwards, what is refused, and what an interrupted call leaves."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
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
from h2htalk.data.releases.hub import download
from h2htalk.data.releases.publish import publish
from h2htalk.data.releases.release_folder import hash_files, read_manifest
from h2htalk.errors import ConfigError, H2HTalkError

WRITES = ("POST", "PUT", "DELETE")


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
    assert hub.points(*WRITES)[0] == "create"
    assert hub.points(*WRITES)[-1] == "tag"
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


def test_only_changed_files_are_uploaded(hub: HubDouble, release: Path) -> None:
    publish(release, "lab/made")
    hub.requests.clear()
    again = make_release(release, version="1.0.1")
    publish(again, "lab/made")
    assert "put" not in hub.points()
    assert stored(hub) == contents(again)


def test_large_files_go_in_parts(hub: HubDouble, tmp_path: Path) -> None:
    large = make_release(tmp_path / "large", {"test": [scenario(n) for n in range(12_000)]})
    hub.parts = True
    publish(large, "lab/made")
    assert hub.points().count("put") > 4
    assert stored(hub) == contents(large)


@pytest.mark.parametrize("xet", [True, False])
def test_hf_xet_changes_no_request(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, xet: bool) -> None:
    pytest.importorskip("hf_xet")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", not xet)
    publish(release, "lab/made")
    assert {"batch", "put", "verify"} <= set(hub.points())
    assert not {"xet-token", "xorb", "shard", "other"} & set(hub.points())


def test_a_dry_run_lists_files_and_asks_nobody(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    plan = publish(release, "lab/made", dry_run=True)
    assert plan.files == contents(release)
    assert (plan.tag, plan.commit) == ("v1.0.0", "")
    assert hub.requests == []


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


@pytest.mark.parametrize("step", ["_commit", "_require_release", "download"])
def test_a_killed_publication_leaves_no_text_elsewhere_and_is_known(
    hub: HubDouble, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A kill left what was read back in TMPDIR, and one after the commit a version that no erasure knew of."""
    private, parts = (
        release.parent / "release.private",
        (tmp_path / ".release.part", tmp_path / ".release.private.part"),
    )
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    module = "h2htalk.data.releases.publish"
    real = download

    def kill(*given: Any) -> None:
        if step == "download":
            real(*given)
        os._exit(KILLED)

    with monkeypatch.context() as patch:
        patch.setattr(f"{module}.download" if step == "download" else f"{module}._Publisher.{step}", kill)
        assert killed_in(lambda: publish(release, "lab/made"))
    known = [link.target for link in read_links(private)]
    assert known == ([] if step == "_require_release" else ["hub:lab/made@v1.0.0"])
    assert bool(files_with(tmp_path / ".release.part", "plants")) == (step == "download")
    parts[1].mkdir()  # a killed build's
    if step == "download":
        add_link(tmp_path / "work", "release", release)
        list(sweep(tmp_path / "work", ErasedIds(frozenset({"nobody"}))))
    else:
        publish(release, "lab/made")
    assert not any(path.exists() for path in parts)


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
    assert hub.points(*WRITES) == []


def test_a_tag_of_another_release_is_refused_before_anything_is_sent(
    hub: HubDouble, release: Path, tmp_path: Path
) -> None:
    publish(release, "lab/made")
    other = make_release(tmp_path / "other", {"test": [scenario(1)]})
    hub.requests.clear()
    assert "the tag v1.0.0 exists on another release" in refusal(other)
    assert hub.points(*WRITES) == []


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
    assert hub.points(*WRITES) == []


@pytest.mark.parametrize("card", [b"", b"---\nlicense: mit\n---\n", b"---\r\nlicense: mit\r\n---\r\n\r\n"])
def test_an_empty_card_may_be_replaced(hub: HubDouble, release: Path, card: bytes) -> None:
    hub.add("lab/made", private=True).write({"README.md": card})
    publish(release, "lab/made")
    assert stored(hub) == contents(release)


def test_a_public_repository_takes_agreement(hub: HubDouble, release: Path) -> None:
    hub.add("lab/made")
    assert "is public" in refusal(release)
    assert hub.points(*WRITES) == []
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


def test_somebody_elses_tag_in_between_is_no_success(hub: HubDouble, release: Path) -> None:
    repo = hub.add("lab/made", private=True)
    first = repo.head.sha
    hub.before["tag"] = lambda: repo.tags.update({"v1.0.0": first})
    assert "somebody else set the tag v1.0.0 meanwhile" in refusal(release)


def test_damage_in_the_store_is_found_before_the_tag(hub: HubDouble, release: Path) -> None:
    """The tree still names the hash that was sent; only the content tells."""
    hub.fault("get", "damage", times=1)
    assert "removed from the cache; run the same command again" in refusal(release)
    assert hub.dataset("lab/made").tags == {}
    publish(release, "lab/made")
    assert len(hub.dataset("lab/made").commits) == 2


def test_a_commit_that_lacks_a_file_is_not_tagged(hub: HubDouble, release: Path) -> None:
    def lose_the_card() -> None:
        repo = hub.dataset("lab/made")
        tree = {name: blob for name, blob in repo.head.tree.items() if name != "README.md"}
        repo.branches["main"] = repo.store("a hook of the server", tree | {"x.txt": Blob(b"x")}, repo.head.sha)

    hub.add("lab/made", private=True)
    hub.before["commit"] = lambda: hub.before.update(info=lose_the_card)
    said = refusal(release)
    assert "README.md" in said
    assert "differs from what was sent" in said
    assert hub.dataset("lab/made").tags == {}


# --- Errors of the Hub ------------------------------------------------------------------------------------------


def test_no_token(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")
    assert "HF_TOKEN is not set" in refusal(release)
    assert hub.requests == []


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
        ("hf_never", "lab/made", "HF_TOKEN is refused: it is expired, revoked or mistyped"),
        ("hf_reader", "reader/made", "check that HF_TOKEN may write to reader"),
        ("hf_lab", "b/made", "check that HF_TOKEN may write to b"),
        ("hf_lab", "b/public", "check that HF_TOKEN may write to b"),
        ("hf_lab", "b/closed", "check that HF_TOKEN may write to b"),
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
    ("point", "status", "message", "advice"),
    [
        ("create", 409, "You already created this dataset repo", "it exists already"),
        ("create", 403, "Private repository storage limit reached", "storage limit reached"),
        ("preupload", 429, "Too many requests", "wait some minutes and run the same command again"),
        ("batch", 403, "Your private storage quota is used up", "the storage that lab has left"),
        ("batch", 413, "Payload too large", "the Hub finds it too large"),
        ("put", 507, "Insufficient storage", "the Hub has a problem (507"),
        ("verify", 404, "Not uploaded", "the Hub refuses (404"),
        ("commit", 413, "Your storage is full", "Your storage is full"),
        ("commit", 403, "Quota exceeded", "Quota exceeded"),
        ("commit", 503, "Service unavailable", "run the same command again later"),
        ("tag", 403, "Forbidden", "check that HF_TOKEN may write to lab"),
        ("get", 503, "Service unavailable", "run the same command again later"),
    ],
)
def test_errors_say_what_to_do_and_leave_no_tag(
    hub: HubDouble, release: Path, point: str, status: int, message: str, advice: str
) -> None:
    hub.refuse(point, status, message)
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


def test_a_tag_that_repeats_the_token_is_masked_too(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(release, "lab/made")
    hub.dataset("lab/made").tags["hf_lab"] = hub.dataset("lab/made").tags["v1.0.0"]
    done = h2htalk_here("release", "pull", "hub:lab/made@gone", "--out", release.parent / "out")
    assert (done.returncode, "hf_lab" in done.stderr) == (2, False)
    assert "[API key masked]" in done.stderr


def test_a_card_that_the_hub_refuses(hub: HubDouble, tmp_path: Path) -> None:
    broken = make_release(tmp_path / "broken")
    write_text(broken / "README.md", "---\nlicense: [\n---\n")
    replace(read_manifest(broken), files=hash_files(broken)).write(broken)
    assert "Invalid metadata in README.md" in refusal(broken)
    assert "put" not in hub.points()


def test_no_network(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    said = refusal(release)
    assert "the connection to http://127.0.0.1:9 failed" in said
    assert "check the network" in said


def test_a_server_that_never_answers(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from h2htalk.data.releases import hub_client

    monkeypatch.setattr(hub_client, "TIMEOUTS", dict.fromkeys(hub_client.TIMEOUTS, 0.5))
    for point in ("info", "refs", "commit", "tag"):
        hub.fault(point, "hang", times=1)
        assert "did not answer in time" in refusal(release)
    publish(release, "lab/made")
    assert len(hub.dataset("lab/made").commits) == 2


@pytest.mark.parametrize("point", ["info", "refs", "preupload", "commit"])
@pytest.mark.parametrize("page", [b"<html>Please log in</html>", b"{}"])
def test_an_answer_that_is_not_the_hubs(hub: HubDouble, release: Path, point: str, page: bytes) -> None:
    """The login page of a network, say."""
    hub.add("lab/made", private=True)
    hub.fault(point, "answer", answer=Answer(200, page))
    assert "check HF_ENDPOINT" in refusal(release) or "improperly formatted" in refusal(release)


# --- Interruptions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("xet", [True, False])
@pytest.mark.parametrize("kind", ["cut", "lost"])
@pytest.mark.parametrize("point", ["create", "validate", "preupload", "batch", "put", "verify", "commit", "tag"])
def test_a_cut_upload_resumes_to_one_complete_commit(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, point: str, kind: str, xet: bool
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", not xet)
    hub.fault(point, kind)
    # What was done before its answer was lost is found, by the same call or by the next one.
    done_at_once = {"create": 1, "verify": 1, "commit": 0, "tag": 0} if kind == "lost" else {}
    failures = done_at_once.get(point, 2)
    for _ in range(failures):
        assert "run the same command again" in refusal(release)
        assert not any(repo.tags for repo in hub.repos.values())
    if failures == 2 or point == "verify":  # of several files, one may not have been sent before the error
        hub.mend()
    publish(release, "lab/made")
    repo = hub.dataset("lab/made")
    assert stored(hub) == contents(release)
    assert repo.tags == {"v1.0.0": repo.head.sha}
    assert len(repo.commits) == 2


def test_files_that_were_stored_are_not_sent_again(hub: HubDouble, release: Path) -> None:
    hub.fault("commit", "cut")
    refusal(release)
    hub.mend()
    hub.requests.clear()
    publish(release, "lab/made")
    assert "put" not in hub.points()


def test_a_lost_answer_is_settled_in_the_same_call(hub: HubDouble, release: Path) -> None:
    for point in ("commit", "tag"):
        hub.fault(point, "lost")
    done = publish(release, "lab/made")
    assert hub.points().count("commit") == hub.points().count("tag") == 1
    assert hub.dataset("lab/made").tags == {"v1.0.0": done.commit}


def test_a_lost_answer_while_the_network_stays_away(hub: HubDouble, release: Path) -> None:
    """The commit was made: the next call finds it and sets the tag."""
    hub.add("lab/made", private=True)
    hub.fault("commit", "lost", times=1)
    hub.before["commit"] = lambda: hub.fault("info", "cut", times=1)
    refusal(release)
    assert hub.dataset("lab/made").tags == {}
    hub.requests.clear()
    publish(release, "lab/made")
    assert hub.points(*WRITES) == ["tag"]


def test_a_refused_put_is_repeated_by_the_client(hub: HubDouble, release: Path) -> None:
    hub.refuse("put", 503, "Slow down", times=2)
    publish(release, "lab/made")
    assert stored(hub) == contents(release)
