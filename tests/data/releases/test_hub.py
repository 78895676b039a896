"""Releases on the Hub as splits and as folders: names, hashes, use without a network, erased items, caches."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from byte_search import files_with
from hub_double import HubDouble, Refused
from hubs_made import MAIN, PATIENT, client_environment, h2htalk_there, python
from huggingface_hub import constants
from kills import KILLED, killed_in
from releases_made import make_release, scenario

from h2htalk.analysis.split_description import describe_split
from h2htalk.benchmark.run import RunWriter
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import write_jsonl, write_text, writer_lock
from h2htalk.data.releases.hub import _find_commit, _read_later_erasures, load_release, publish, pull
from h2htalk.data.releases.release_folder import TOMBSTONES, hash_files, read_manifest
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, HubError

NAME = "hub:lab/made@v1.0.0"


@pytest.fixture
def published(hub: HubDouble, tmp_path: Path) -> HubDouble:
    """The double with `lab/made` at the tag v1.0.0."""
    publish(make_release(tmp_path / "release"), "lab/made")
    hub.requests.clear()
    return hub


def refusal(name: str = NAME) -> str:
    with pytest.raises(H2HTalkError) as caught:
        load_split(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_split_of_the_hub_is_that_of_the_folder(published: HubDouble, tmp_path: Path) -> None:
    repo = published.dataset("lab/made")
    commit = repo.tags["v1.0.0"] = repo.write({"personas/nora.toml": b"id = 1"})  # which release.json does not list
    split, here = load_split(NAME), load_split(tmp_path / "release")
    assert replace(split, source=here.source, commit="") == here
    assert split.fingerprint == here.fingerprint
    assert f"from {NAME}, commit {commit}\n" in describe_split(split)
    assert load_split(f"{NAME}#dev").source == f"{NAME}#dev"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hub:lab/made", "no tag; choose from v1.0.0"),
        ("hub:lab/made@main", "main is a branch, which changes; choose from v1.0.0"),
        ("hub:lab/made@v1.0", "there is no tag v1.0; did you mean 'v1.0.0'? choose from v1.0.0"),
        ("hub:lab/other@v1", "it is not there, or is private and HF_TOKEN cannot see it"),
        ("hub:lab/empty@v1", "the repository has no tag, so nothing was released"),
        ("hub:lab/csv@v1", "release.json is missing there, so it is no release"),
        ("hub:lab/../made@v1", "not of the form hub:OWNER/NAME@TAG"),
    ],
)
def test_names_without_a_release(published: HubDouble, name: str, message: str) -> None:
    published.add("lab/empty")
    repo = published.add("lab/csv")
    repo.tags["v1"] = repo.write({"data.csv": b"a"})
    assert message in refusal(name)


@pytest.mark.parametrize("damaged", [0, 6])
def test_a_damaged_download_of_the_right_size_is_found_and_mended(published: HubDouble, damaged: int) -> None:
    """The client compares sizes only."""
    published.fault("get", "damage", times=1, skip=damaged)
    assert "removed from the cache" in refusal()
    assert len(load_split(NAME).scenarios) == 4


def test_a_card_that_was_changed_on_the_hub_and_a_tag_that_moves_while_it_is_loaded(published: HubDouble) -> None:
    repo = published.dataset("lab/made")
    published.fault("info", lambda: repo.tags.update({"v1.0.0": repo.write({"README.md": b"# Changed\n"})}), times=1)
    assert "the tag was moved while it was loaded" in refusal()
    assert "README.md: missing, or not the content that release.json records" in refusal()


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("", "Repository not found (401): it is not there, or is private and HF_TOKEN cannot see it"),
        ("hf_b", "Repository not found (404): it is not there, or is private and HF_TOKEN cannot see it"),
        ("hf_expired", "HF_TOKEN is refused: it is expired"),
    ],
)
def test_private_or_gated(published: HubDouble, monkeypatch: pytest.MonkeyPatch, token: str, message: str) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    assert message in refusal()
    repo = published.dataset("lab/made")
    repo.private, repo.gated = False, True
    monkeypatch.setenv("HF_TOKEN", "hf_b")
    assert f"accept the conditions at {published.url}/datasets/lab/made and set HF_TOKEN to a token" in refusal()
    repo.accepted = ("b",)
    assert len(load_split(NAME).scenarios) == 4


def test_a_token_that_the_client_stored_is_not_used(published: HubDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hf auth login` stores one."""
    published.dataset("lab/made").private = False
    stored = Path(constants.HF_HOME) / "token"
    write_text(stored, "hf_b")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(stored))
    monkeypatch.setenv("HF_TOKEN", "")
    published.tokens.clear()
    load_split(NAME)
    assert published.tokens == set()


def test_a_loaded_release_needs_no_network(published: HubDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert "HF_HUB_OFFLINE forbids to load it; unset it" in refusal()
    split = load_split(NAME)
    for point in ("refs", "info"):  # a moved tag or an erasure would go unseen
        published.fault(point, "drop", times=1)
        assert "run the same command again" in refusal()
    published.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_split(NAME) == split
    assert load_split(f"hub:lab/made@{split.commit}").fingerprint == split.fingerprint
    assert published.requests == []


def erase_later(folder: Path, *ids: str) -> None:
    """Publish version 1.1.0, which lists items as erased."""
    second = make_release(folder / "second", {"test": [scenario(2), scenario(12, "zh")]}, version="1.1.0")
    write_jsonl(second / TOMBSTONES, ({"id": one, "date": "2026-02-03"} for one in ids))
    replace(read_manifest(second), files=hash_files(second)).write(second)
    publish(second, "lab/made")


def test_items_erased_later_are_left_out_of_an_older_version(
    published: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = load_split(NAME)
    erase_later(tmp_path, scenario(1).id, scenario(3).id, "made-999999:dialogue_base")
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert load_split(NAME) == whole
        assert "it is not known whether items were erased later" in capsys.readouterr().err
    left = load_split(NAME)
    assert [one.id for one in left.scenarios] == [scenario(2).id, scenario(11, "zh").id, scenario(12, "zh").id]
    assert left.fingerprint != whole.fingerprint
    assert f"{NAME}: 1 item left out, erased after it was published\n" in capsys.readouterr().err
    pull(NAME, tmp_path / "copy")
    assert "the newest version lists 3 items as erased" in capsys.readouterr().err
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert load_split(NAME) == left


def test_a_list_that_cannot_be_read_is_an_error(published: HubDouble, tmp_path: Path) -> None:
    """Without the list, an erased person would come back."""
    erase_later(tmp_path, scenario(1).id)
    load_split(NAME)
    published.dataset("lab/made").write({"notes.md": b"x"})  # main moves on
    _, main = _find_commit(NAME, "lab/made", "v1.0.0")
    published.fault("info", Refused(503, "Service unavailable"), times=1)  # the client falls back to its cache
    with pytest.raises(HubError, match="the list of erased items changed while it was loaded"):
        _read_later_erasures(NAME, "lab/made", main)


@pytest.mark.parametrize("by", ["pull", "erase"])
def test_what_a_killed_pull_left_goes(
    published: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    out, part, copied = tmp_path / "new" / "copy", tmp_path / "new" / ".copy.part", shutil.copyfile
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfile", lambda *given: os._exit(KILLED) if "zh" in str(given) else copied(*given))
        assert killed_in(lambda: pull(NAME, out))
    assert files_with(part, "plants")
    if by == "pull":
        pull(NAME, out)
        names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        assert names == {"release.json", *read_manifest(tmp_path / "release").files}
        assert all((out / name).read_bytes() == (tmp_path / "release" / name).read_bytes() for name in names)
        assert [path.name for path in out.parent.iterdir()] == ["copy"]
        with pytest.raises(DataError, match="not an empty folder"):
            pull(NAME, out)
        return
    with writer_lock(part / "made"):
        (busy,) = sweep(tmp_path / "work", ErasedIds(frozenset({"nobody"})), [tmp_path / "new"])
    assert (busy.unfinished, part.exists()) == (True, True)
    (swept,) = sweep(tmp_path / "work", ErasedIds(frozenset({"nobody"})), [tmp_path / "new"])
    assert swept.messages[0] == f"deleted, left by a command that was killed: {part}"
    assert (swept.unfinished, list(out.parent.iterdir())) == (False, [])


def test_a_run_records_the_commit_and_a_moved_tag_is_named(published: HubDouble, tmp_path: Path) -> None:
    def open_run() -> None:
        split = load_split(NAME)
        signature = Signature({"items": split.fingerprint}, {"engine": "e", "model": "m"})
        RunWriter(RunFolder(tmp_path / "run"), {}, signature, split, {}).close()

    open_run()
    open_run()  # the same items continue
    first = load_release(NAME).commit
    assert json.loads((tmp_path / "run" / "run.json").read_text())["split"] == {"source": NAME, "commit": first}
    other = make_release(tmp_path / "other", {"test": [scenario(2)]}, version="2.0.0")
    published.dataset("lab/made").tags["v1.0.0"] = publish(other, "lab/made").commit
    with pytest.raises(ConfigError, match=f"holds a run of {NAME} at commit {first}.*differs in items"):
        open_run()


SECRET = (b"plants", b"PAR1", b"hf_lab")
ROWS = """
import json, sys
import datasets
loaded = datasets.load_dataset(*sys.argv[1:3], **({"revision": sys.argv[3]} if sys.argv[3:] else {}))
print(json.dumps({split: rows.to_list() for split, rows in loaded.items()}))
"""


def test_a_release_goes_to_the_hub_and_back_by_commands(release: Path, tmp_path: Path) -> None:
    """`split info`, `evaluate` and plain `datasets` read it by its name; what the clients keep can be removed."""
    with HubDouble() as hub:
        environment, name = client_environment(hub, tmp_path), "hub:lab/made@v1.0.0"
        plan = h2htalk_there("release", "publish", release, "lab/made", "--dry-run", environment=environment)
        names = ["release.json", *sorted(read_manifest(release).files)]
        assert [line.split()[1] for line in plan.stdout.splitlines()[:-1]] == names, plan.stderr
        assert plan.stdout.splitlines()[-1].endswith("bytes, nothing was sent")
        assert hub.requests == []
        done = h2htalk_there("release", "publish", release, "lab/made", environment=environment)
        commit = hub.dataset("lab/made").tags["v1.0.0"]
        assert done.stdout.startswith(f"{name}: 7 files, "), done.stderr
        assert done.stdout.endswith(f" bytes, commit {commit}\n")
        options = ["--split", name, "--embedder", "none", "--out", tmp_path / "run"]
        run = h2htalk_there("evaluate", "baseline:constant", *options, environment=environment)
        assert run.returncode == 0, run.stderr
        summary = json.loads((tmp_path / "run" / "summary.json").read_text())
        assert summary["split"] == f"made 1.0.0 ({name}, commit {commit[:12]})"
        pulled = h2htalk_there("release", "pull", name, "--out", tmp_path / "copy", environment=environment)
        assert pulled.stdout == f"{name} (commit {commit}): {tmp_path / 'copy'}\n"
        assert load_split(tmp_path / "copy") == load_split(release)
        wrong = h2htalk_there("split", "info", "hub:lab/made@v2", environment=environment)
        assert (wrong.returncode, wrong.stderr[:54]) == (2, "error: hub:lab/made@v2: there is no tag v2; choose fro")
        ours = [one for one in load_split(release).scenarios if one.language == "en"]
        for place in (["lab/made", "en", "v1.0.0"], [str(tmp_path / "copy"), "en"]):
            done = python(ROWS, *place, environment=environment)
            assert done.returncode == 0, done.stderr
            rows = json.loads(done.stdout)
            assert list(rows) == ["test", "dev"]
            assert [(r["id"], r["references"]) for r in rows["test"]] == [(s.id, list(s.references)) for s in ours]
            assert [json.loads(row["inputs"]) for row in rows["test"]] == [one.to_dict()["inputs"] for one in ours]
        code = "from h2htalk.data.releases.hub import delete_cached\nprint(len(delete_cached('lab/made')))"
        assert python(code, environment=environment).stdout == "2\n"
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(word in path.read_bytes() for path in kept if "copy" not in str(path) for word in SECRET)


def test_a_source_of_a_curation_is_loaded_with_the_same_client(tmp_path: Path) -> None:
    code = """
import sys
from h2htalk.curation.gather.records import dataset_records
print([row["a"] for _, _, row in dataset_records(sys.argv[1], None)])
"""
    with HubDouble() as hub:
        commit = hub.add("lab/talks", private=True).write({"train.csv": b"a,b\n1,2\n3,4\n"})
        environment = client_environment(hub, tmp_path)
        done = python(code, f"hub:lab/talks@{commit}", environment=environment)
        assert done.stdout == "[1, 3]\n", done.stderr
        bad = python(code, f"hub:lab/talks@{commit}", environment={**environment, "HF_TOKEN": "hf läb"})
        assert "HF_TOKEN holds a character that no token has" in bad.stderr


def test_an_upload_that_hangs_ends_when_told_and_resumes_to_one_complete_commit(release: Path, tmp_path: Path) -> None:
    """After Ctrl-C, it waited two minutes for the client's threads."""
    with HubDouble() as hub:
        environment = client_environment(hub, tmp_path)
        hub.fault("put", "hang", times=1)
        soon = "import h2htalk.data.releases.hub as hub\nhub.LONGEST_STOP = 0.5\n"
        words = [sys.executable, "-c", f"{PATIENT}{soon}{MAIN}", "release", "publish", str(release), "lab/made"]
        running = subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL)
        while "put" not in hub.points():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
        done = h2htalk_there("release", "publish", release, "lab/made", environment=environment)
        assert done.returncode == 0, done.stderr
        repo = hub.dataset("lab/made")
        assert repo.tags == {"v1.0.0": repo.head.sha}
        assert len(repo.commits) == 2
        assert repo.files().keys() == {".gitattributes", "release.json", *read_manifest(release).files}
