"""Publishing: what a repository holds afterwards, what is refused, and what an interrupted call leaves."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from command_line import h2htalk_here
from hub_double import Answer, HubDouble, Refused
from huggingface_hub import HfApi, logging
from kills import KILLED, killed_in
from releases_made import make_release, scenario

from h2htalk.data.files import write_text
from h2htalk.data.links import read_links
from h2htalk.data.releases.hub import publish
from h2htalk.data.releases.release_folder import read_manifest
from h2htalk.errors import ConfigError, H2HTalkError


def sent(hub: HubDouble) -> list[str]:
    """What changed the repository, which may be created again."""
    return [point for point in hub.points("POST", "PUT", "DELETE") if point not in ("create", "validate")]


def contents(folder: Path) -> dict[str, bytes]:
    """The files that a release publishes."""
    return {name: (folder / name).read_bytes() for name in ("release.json", *read_manifest(folder).files)}


def stored(hub: HubDouble, revision: str = "main") -> dict[str, bytes]:
    """The files of the repository, without the Hub's own."""
    files = hub.dataset("lab/made").files(revision)
    assert files.pop(".gitattributes")
    return files


def refusal(release: Path, repo: str = "lab/made", **options: object) -> str:
    """The one line with which publishing is refused."""
    with pytest.raises(H2HTalkError) as caught:
        publish(release, repo, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert "hf_" not in str(caught.value)
    return str(caught.value)


def test_one_commit_holds_the_files_that_release_json_lists_and_has_the_tag(hub: HubDouble, release: Path) -> None:
    for name in ("notes.txt", ".env", ".git/config", "data/en/raw.jsonl", "made.private/sources.json"):
        write_text(release / name, "secret")
    (release.parent / "release.private").mkdir()
    done = publish(release, "lab/made")
    repo = hub.dataset("lab/made")
    assert stored(hub) == contents(release)
    assert not any(b"secret" in content for content in hub.stored.values())
    assert repo.private
    assert repo.tags == {"v1.0.0": done.commit} == {"v1.0.0": repo.head.sha}
    assert (len(repo.commits), repo.head.message) == (2, "made 1.0.0")
    assert sent(hub)[-2:] == ["commit", "tag"]
    assert hub.tokens == {"hf_lab"}
    hub.requests.clear()
    again = publish(release, "lab/made")
    assert (again.commit, again.notes, sent(hub)) == (done.commit, ("already published as v1.0.0",), [])
    links = [(link.kind, link.target) for link in read_links(release.parent / "release.private")]
    assert links == [("hub", "hub:lab/made@v1.0.0")]


def test_a_second_version_removes_what_it_does_not_hold(hub: HubDouble, release: Path, tmp_path: Path) -> None:
    publish(release, "lab/made")
    second = make_release(tmp_path / "second", {"test": [scenario(1)]}, version="1.1.0")
    publish(second, "lab/made", tag="second", message="Fewer items")
    assert stored(hub) == contents(second)
    assert stored(hub, "v1.0.0") == contents(release)
    assert hub.dataset("lab/made").head.message == "Fewer items"
    hub.requests.clear()
    assert "the tag v1.0.0 exists on another release" in refusal(second, tag="v1.0.0")
    assert sent(hub) == []


def test_an_erasure_knows_a_commit_beforehand(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill after the commit left a version that no erasure knew of."""
    (private := release.parent / "release.private").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(HfApi, "create_commit", lambda *given, **named: os._exit(KILLED))
        assert killed_in(lambda: publish(release, "lab/made"))
    assert [link.target for link in read_links(private)] == ["hub:lab/made@v1.0.0"]
    assert len(hub.dataset("lab/made").commits) == 1


def test_public_and_private_repositories(hub: HubDouble, release: Path) -> None:
    """A public one takes agreement; `--public` makes one, and opens no private one."""
    hub.add("lab/open")
    assert "is public" in refusal(release, "lab/open")
    assert sent(hub) == []
    for repo in ("lab/open", "lab/new"):
        assert publish(release, repo, private=False).notes == (f"everybody can read {hub.url}/datasets/{repo}",)
    hub.add("lab/closed", private=True)
    assert "stays private" in publish(release, "lab/closed", private=False).notes[0]
    assert hub.dataset("lab/closed").private


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": b"---\nlicense: mit\n---\n", "train.csv": b"a,b\n"},
        {"README.md": b"---\nlicense: mit\n---\n# Our other data set\n"},
        {"release.json": b'{"version": "2.1", "assets": []}', "train.csv": b"a,b\n"},  # of another tool
    ],
)
def test_a_repository_of_something_else_is_refused(hub: HubDouble, release: Path, files: dict[str, bytes]) -> None:
    hub.add("lab/made", private=True).write(files)
    assert "that are no release" in refusal(release)
    assert sent(hub) == []
    hub.add("lab/made", private=True).write({"README.md": b"---\r\nlicense: mit\r\n---\r\n"})  # a card alone
    publish(release, "lab/made")
    assert stored(hub) == contents(release)


@pytest.mark.parametrize("name", ["release.json", "README.md", "data"])
def test_changed_files_and_links_are_found_beforehand(hub: HubDouble, release: Path, tmp_path: Path, name: str) -> None:
    shutil.move(release / name, tmp_path / "elsewhere")
    (release / name).symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in refusal(release)
    (release / name).unlink()
    assert name in refusal(release)
    assert hub.requests == []


@pytest.mark.parametrize(
    "name", ["made", "lab/made/x", "../made", "lab/made@main", f"lab/made@{'a' * 40}", "lab/made@v 1", "lab/made@v1#x"]
)
def test_names_that_the_hub_would_refuse(hub: HubDouble, release: Path, name: str) -> None:
    repo, _, tag = name.partition("@")
    with pytest.raises(ConfigError):
        publish(release, repo, tag=tag)
    assert hub.requests == []


def test_somebody_elses_commit_or_tag_in_between_is_not_overwritten(hub: HubDouble, release: Path) -> None:
    repo = hub.add("lab/made", private=True)
    first = repo.head.sha
    hub.fault("tag", lambda: repo.tags.update({"v1.0.0": first}), times=1)
    assert "Tag reference exists already" in refusal(release)
    del repo.tags["v1.0.0"]
    repo.branches["main"] = first
    hub.fault("commit", lambda: repo.write({"README.md": b"# Ours\n"}), times=1)
    assert "somebody else changed it meanwhile" in refusal(release)
    assert stored(hub) == {"README.md": b"# Ours\n"}
    assert repo.tags == {}


@pytest.mark.parametrize("token", ["hf_l\nab", "hf_läb", "hf l", None])
def test_a_token_that_no_header_can_hold_is_not_shown(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    """The HTTP library's own message shows the whole header."""
    monkeypatch.setenv("HF_TOKEN", token or "")
    message = "HF_TOKEN holds a character that no token has" if token else "HF_TOKEN is not set"
    assert message in refusal(release)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("point", "status", "advice"),
    [
        ("create", 401, "made up (401): HF_TOKEN is refused: it is expired, revoked or mistyped"),
        ("commit", 403, "made up (403): check that HF_TOKEN may write there, and the storage"),
        ("preupload", 429, "wait some minutes and run the same command again"),
        ("put", 507, "made up (507): run the same command again later"),
    ],
)
def test_errors_say_what_to_do(hub: HubDouble, release: Path, point: str, status: int, advice: str) -> None:
    hub.fault(point, Refused(status, "made up"))
    assert advice in refusal(release)
    repo = hub.repos.get(("dataset", "lab/made"))
    assert repo is None or repo.tags == {}
    hub.faults.clear()
    publish(release, "lab/made")
    require_one_commit(hub, release)


def require_one_commit(hub: HubDouble, release: Path) -> None:
    repo = hub.dataset("lab/made")
    assert stored(hub) == stored(hub, "v1.0.0") == contents(release)
    assert (repo.tags, len(repo.commits)) == ({"v1.0.0": repo.head.sha}, 2)


TOKEN = "hf_MadeUpMadeUpMadeUpMadeUpMadeUp1234"
ESCAPED = "".join(f"\\u{ord(sign):04x}" for sign in TOKEN)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(f"Bearer {TOKEN} is wrong", 401),
        Answer(f'{{"error": "{ESCAPED} is wrong"}}', 500, {"Content-Type": "application/json"}),
        Answer(b"{}", 500, {"X-Error-Message": f"{'x ' * 35}{TOKEN}{' x' * 90}"}),  # was cut in its middle
        Answer(b"{}", 401, {"X-Error-Message": TOKEN, "X-HF-Warning": f"token; {TOKEN}"}),
    ],
)
def test_an_error_that_repeats_the_token_printed_it(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], answer: Answer
) -> None:
    logging.set_verbosity_warning()
    for handler in logging.get_logger("huggingface_hub").handlers:
        monkeypatch.setattr(handler, "stream", sys.stderr)  # of this test
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.accounts[TOKEN] = hub.accounts["hf_lab"]
    hub.add("lab/made", private=True)
    hub.fault("refs", answer)
    done = h2htalk_here("release", "publish", release, "lab/made")
    shown = done.stdout + done.stderr + "".join(capfd.readouterr())
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: lab/made: ")
    assert not [start for start in range(len(TOKEN) - 9) if TOKEN[start : start + 10] in shown]
    assert ESCAPED[:12] not in shown


def test_a_server_that_hangs_or_is_not_the_hub(hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network's login page, say."""
    monkeypatch.setattr("h2htalk.data.releases.hub.TIMEOUT", 0.5)
    for point in ("info", "commit"):
        hub.fault(point, "hang", times=1)
        assert f"{hub.url} failed: timed out; check HF_ENDPOINT and the network, and" in refusal(release)
    for point in ("info", "preupload"):
        hub.fault(point, Answer("<html>Please log in</html>"), times=1)
        assert "check HF_ENDPOINT" in refusal(release)


@pytest.mark.parametrize("kind", ["drop", "lost"])
@pytest.mark.parametrize("point", ["create", "preupload", "put", "verify", "commit", "tag"])
def test_a_cut_upload_resumes_to_one_complete_commit(hub: HubDouble, release: Path, point: str, kind: str) -> None:
    hub.fault(point, kind)
    assert "run the same command again" in refusal(release)
    assert all(not repo.tags or (point, kind) == ("tag", "lost") for repo in hub.repos.values())
    hub.faults.clear()
    hub.requests.clear()
    publish(release, "lab/made")
    assert "put" not in hub.points() or point not in ("commit", "tag")  # nothing is sent twice
    require_one_commit(hub, release)
