"""Releases on the Hub: as splits and folders (hashes, use without a network, erased items, caches), and publishing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants, logging

from h2htalk.analysis.split_description import describe_split
from h2htalk.benchmark.run import RunWriter
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import write_jsonl, write_text, writer_lock
from h2htalk.data.links import read_links
from h2htalk.data.releases.hub import (
    _find_commit,
    _read_later_erasures,
    load_release,
    publish,
    pull,
)
from h2htalk.data.releases.release_folder import TOMBSTONES, hash_files, read_manifest
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, HubError
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.doubles.hub_double import Answer, HubDouble, Refused
from support.hubs import MAIN, PATIENT, client_environment, h2htalk_there, hub_here, python
from support.kills import KILLED, communicate, killed_in, run_to_end, wait_for
from support.releases import make_release, scenario


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubDouble]:
    with hub_here(tmp_path, monkeypatch) as hub:
        yield hub


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return make_release(tmp_path / "release")


NAME = "hub:lab/made@v1.0.0"


@pytest.fixture
def published(hub: HubDouble, release: Path) -> HubDouble:
    publish(release, "lab/made")
    hub.requests.clear()
    return hub


def refusal(call: Callable[..., object] = load_split, *given: object, **options: object) -> str:
    with pytest.raises(H2HTalkError) as caught:
        call(*(given or (NAME,)), **options)
    assert "\n" not in str(caught.value)
    assert not re.search("hf_[a-z]", str(caught.value))
    return str(caught.value)


def test_a_split_of_the_hub_is_that_of_the_folder(published: HubDouble, tmp_path: Path) -> None:
    repo = published.dataset("lab/made")
    commit = repo.tags["v1.0.0"] = repo.write(
        {"personas/nora.toml": b"id = 1"}
    )  # which release.json does not list
    split = load_split(NAME)
    here = load_split(tmp_path / "release")
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
    assert message in refusal(load_split, name)


@pytest.mark.parametrize("damaged", [0, 6])
def test_a_damaged_download_of_the_right_size_is_found_and_mended(
    published: HubDouble, damaged: int
) -> None:
    """The client compares sizes only."""
    published.fault("get", "damage", times=1, skip=damaged)
    assert "removed from the cache" in refusal()
    assert len(load_split(NAME).scenarios) == 4


def test_a_card_that_was_changed_on_the_hub_and_a_tag_that_moves_while_it_is_loaded(
    published: HubDouble,
) -> None:
    repo = published.dataset("lab/made")
    published.fault(
        "info",
        lambda: repo.tags.update({"v1.0.0": repo.write({"README.md": b"# Changed\n"})}),
        times=1,
    )
    assert "the tag was moved while it was loaded" in refusal()
    assert "README.md: missing, or not the content that release.json records" in refusal()


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (
            "",
            "Repository not found (401): it is not there, or is private and HF_TOKEN cannot see it",
        ),
        (
            "hf_b",
            "Repository not found (404): it is not there, or is private and HF_TOKEN cannot see it",
        ),
        ("hf_expired", "HF_TOKEN is refused: it is expired"),
    ],
)
def test_private_or_gated(
    published: HubDouble, monkeypatch: pytest.MonkeyPatch, token: str, message: str
) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    assert message in refusal()
    repo = published.dataset("lab/made")
    repo.private, repo.gated = False, True
    monkeypatch.setenv("HF_TOKEN", "hf_b")
    assert (
        f"accept the conditions at {published.url}/datasets/lab/made and set HF_TOKEN to a token"
        in refusal()
    )
    repo.accepted = ("b",)
    assert len(load_split(NAME).scenarios) == 4


def test_a_token_that_the_client_stored_is_not_used(
    published: HubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hf auth login` stores one."""
    published.dataset("lab/made").private = False
    stored = Path(constants.HF_HOME) / "token"
    write_text(stored, "hf_b")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(stored))
    monkeypatch.setenv("HF_TOKEN", "")
    published.tokens.clear()
    load_split(NAME)
    assert published.tokens == set()


def test_a_loaded_release_needs_no_network(
    published: HubDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    second = make_release(
        folder / "second", {"test": [scenario(2), scenario(12, "zh")]}, version="1.1.0"
    )
    write_jsonl(second / TOMBSTONES, ({"id": one, "date": "2026-02-03"} for one in ids))
    replace(read_manifest(second), files=hash_files(second)).write(second)
    publish(second, "lab/made")


def test_items_erased_later_are_left_out_of_an_older_version(
    published: HubDouble,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = load_split(NAME)
    erase_later(tmp_path, scenario(1).id, scenario(3).id, "made-999999:dialogue_base")
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        assert load_split(NAME) == whole
        assert "it is not known whether items were erased later" in capsys.readouterr().err
    left = load_split(NAME)
    assert [one.id for one in left.scenarios] == [
        scenario(2).id,
        scenario(11, "zh").id,
        scenario(12, "zh").id,
    ]
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
    published.fault(
        "info", Refused(503, "Service unavailable"), times=1
    )  # the client falls back to its cache
    with pytest.raises(HubError, match="the list of erased items changed while it was loaded"):
        _read_later_erasures(NAME, "lab/made", main)


@pytest.mark.parametrize("by", ["pull", "erase"])
def test_a_killed_pull_goes(
    published: HubDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    out = tmp_path / "new" / "copy"
    part = tmp_path / "new" / ".copy.part"
    copied = shutil.copyfile
    with monkeypatch.context() as patch:
        patch.setattr(
            shutil,
            "copyfile",
            lambda *given: os._exit(KILLED) if "zh" in str(given) else copied(*given),
        )
        assert killed_in(lambda: pull(NAME, out))
    assert files_with(part, "plants")
    if by == "pull":
        pull(NAME, out)
        names = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        assert names == {"release.json", *read_manifest(tmp_path / "release").files}
        assert all(
            (out / name).read_bytes() == (tmp_path / "release" / name).read_bytes()
            for name in names
        )
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


def test_a_run_records_the_commit_and_a_moved_tag_is_named(
    published: HubDouble, tmp_path: Path
) -> None:
    def open_run() -> None:
        split = load_split(NAME)
        signature = Signature({"items": split.fingerprint}, {"engine": "e", "model": "m"})
        RunWriter(RunFolder(tmp_path / "run"), {}, signature, split, {}).close()

    open_run()
    open_run()  # the same items continue
    first = load_release(NAME).commit
    assert json.loads((tmp_path / "run" / "run.json").read_text())["split"] == {
        "source": NAME,
        "commit": first,
    }
    other = make_release(tmp_path / "other", {"test": [scenario(2)]}, version="2.0.0")
    published.dataset("lab/made").tags["v1.0.0"] = publish(other, "lab/made").commit
    with pytest.raises(
        ConfigError, match=f"holds a run of {NAME} at commit {first}.*differs in items"
    ):
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
        environment = client_environment(hub, tmp_path)
        name = "hub:lab/made@v1.0.0"
        plan = h2htalk_there(
            "release", "publish", release, "lab/made", "--dry-run", environment=environment
        )
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
        pulled = h2htalk_there(
            "release", "pull", name, "--out", tmp_path / "copy", environment=environment
        )
        assert pulled.stdout == f"{name} (commit {commit}): {tmp_path / 'copy'}\n"
        assert load_split(tmp_path / "copy") == load_split(release)
        wrong = h2htalk_there("split", "info", "hub:lab/made@v2", environment=environment)
        assert (wrong.returncode, wrong.stderr[:54]) == (
            2,
            "error: hub:lab/made@v2: there is no tag v2; choose fro",
        )
        ours = [one for one in load_split(release).scenarios if one.language == "en"]
        for place in (["lab/made", "en", "v1.0.0"], [str(tmp_path / "copy"), "en"]):
            done = python(ROWS, *place, environment=environment)
            assert done.returncode == 0, done.stderr
            rows = json.loads(done.stdout)
            assert list(rows) == ["test", "dev"]
            assert [(r["id"], r["references"]) for r in rows["test"]] == [
                (s.id, list(s.references)) for s in ours
            ]
            assert [json.loads(row["inputs"]) for row in rows["test"]] == [
                one.to_dict()["inputs"] for one in ours
            ]
        code = "from h2htalk.data.releases.hub import delete_cached\nprint(len(delete_cached('lab/made')))"
        assert python(code, environment=environment).stdout == "2\n"
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert not any(
        word in path.read_bytes() for path in kept if "copy" not in str(path) for word in SECRET
    )


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
        bad = python(
            code, f"hub:lab/talks@{commit}", environment={**environment, "HF_TOKEN": "hf läb"}
        )
        assert "HF_TOKEN holds a character that no token has" in bad.stderr


def test_an_upload_that_hangs_ends_when_told_and_resumes_to_one_complete_commit(
    release: Path, tmp_path: Path
) -> None:
    """After Ctrl-C, it waited two minutes for the client's threads."""
    with HubDouble() as hub:
        environment = client_environment(hub, tmp_path)
        hub.fault("put", "hang", times=1)
        soon = "import h2htalk.interrupts as interrupts\ninterrupts.LONGEST_STOP = 0.5\n"
        words = [
            sys.executable,
            "-c",
            f"{PATIENT}{soon}{MAIN}",
            "release",
            "publish",
            str(release),
            "lab/made",
        ]
        running = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
        wait_for(running, lambda: hub.points().count("put"))
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        communicate(running)
        assert running.returncode == 130
        done = h2htalk_there("release", "publish", release, "lab/made", environment=environment)
        assert done.returncode == 0, done.stderr
        repo = hub.dataset("lab/made")
        assert repo.tags == {"v1.0.0": repo.head.sha}
        assert len(repo.commits) == 2
        assert repo.files().keys() == {
            ".gitattributes",
            "release.json",
            *read_manifest(release).files,
        }


def test_a_thread_that_hangs_when_the_process_ends_is_ended_after_ctrl_c() -> None:
    """The interrupt may leave the client before it waits for its threads: Python waits for them at its end."""
    code = """
import os, signal, threading
import h2htalk.data.releases.hub as hub
import h2htalk.interrupts as interrupts
interrupts.LONGEST_STOP = 0.5
with hub.hub_errors("lab/made"):
    threading.Thread(target=threading.Event().wait).start()
    os.kill(os.getpid(), signal.SIGINT)
"""
    ended = run_to_end([sys.executable, "-c", code])
    assert ended.returncode == 130
    assert "stopping; run the same command again to continue" in ended.stderr


def test_a_program_that_catches_ctrl_c_goes_on() -> None:
    code = """
import os, signal, time
import h2htalk.data.releases.hub as hub
import h2htalk.interrupts as interrupts
interrupts.LONGEST_STOP = 0.2
try:
    with hub.hub_errors("lab/made"):
        os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    time.sleep(1)
print("went on")
"""
    ended = run_to_end([sys.executable, "-c", code])
    assert (ended.returncode, ended.stdout) == (0, "went on\n")


POOL_THAT_HANGS = """
import os, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
import h2htalk.data.releases.hub as hub
import h2htalk.interrupts as interrupts
interrupts.LONGEST_STOP = 0.2
answered = threading.Event()
def upload():
    with hub.hub_errors("lab/made"), ThreadPoolExecutor(1) as pool:
        sent = pool.submit(answered.wait)
        os.kill(os.getpid(), signal.SIGINT)
        sent.result()
"""


def test_a_program_that_catches_ctrl_c_goes_on_though_the_client_waits_for_its_threads() -> None:
    """It was ended with exit code 130 where the threads hung for longer."""
    code = f"""{POOL_THAT_HANGS}
try:
    upload()
except KeyboardInterrupt:
    answered.set()
time.sleep(1)
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("went on")
"""
    ended = run_to_end([sys.executable, "-c", code])
    assert (ended.returncode, ended.stdout) == (0, "went on\n"), ended.stderr


def test_threads_of_a_program_that_caught_ctrl_c_end_their_work() -> None:
    """Only the client's threads, which hang, do not keep a program from its end."""
    code = f"""{POOL_THAT_HANGS}
def work():
    threading.main_thread().join()
    time.sleep(1)
    print("worked")
threading.Thread(target=work).start()
try:
    with hub.hub_errors("lab/made"):
        threading.Thread(target=answered.wait).start()
        os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    print("went on")
"""
    ended = run_to_end([sys.executable, "-c", code])
    assert (ended.returncode, ended.stdout) == (130, "went on\nworked\n"), ended.stderr


def test_a_notebook_shows_the_interrupt_and_runs_its_next_cell() -> None:
    code = f"""{POOL_THAT_HANGS}
from code import InteractiveInterpreter
notebook = InteractiveInterpreter({{"upload": upload}})
def run_cell(cell):
    try:
        notebook.runcode(compile(cell, "cell", "exec"))
    except KeyboardInterrupt:
        print("KeyboardInterrupt")
sys.ps1 = "In: "
run_cell("upload()")
time.sleep(1)
run_cell("print('next cell')")
answered.set()
"""
    ended = run_to_end([sys.executable, "-c", code])
    assert ended.returncode == 0, ended.stderr
    assert "KeyboardInterrupt" in ended.stdout + ended.stderr
    assert ended.stdout.endswith("next cell\n")


def sent(hub: HubDouble) -> list[str]:
    """What changed the repository, which may be created again."""
    return [
        point
        for point in hub.points("POST", "PUT", "DELETE")
        if point not in ("create", "validate")
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes()
        for name in ("release.json", *read_manifest(folder).files)
    }


def stored(hub: HubDouble, revision: str = "main") -> dict[str, bytes]:
    """The files of the repository, without the Hub's own."""
    files = hub.dataset("lab/made").files(revision)
    assert files.pop(".gitattributes")
    return files


def publish_refusal(release: Path, repo: str = "lab/made", **options: object) -> str:
    return refusal(publish, release, repo, **options)


def test_one_commit_holds_the_files_that_release_json_lists_and_has_the_tag(
    hub: HubDouble, release: Path
) -> None:
    for name in (
        "notes.txt",
        ".env",
        ".git/config",
        "data/en/raw.jsonl",
        "made.private/sources.json",
    ):
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
    assert (again.commit, again.notes, sent(hub)) == (
        done.commit,
        ("already published as v1.0.0",),
        [],
    )
    links = [(link.kind, link.target) for link in read_links(release.parent / "release.private")]
    assert links == [("hub", "hub:lab/made@v1.0.0")]


def test_a_second_version_removes_what_it_does_not_hold(
    hub: HubDouble, release: Path, tmp_path: Path
) -> None:
    publish(release, "lab/made")
    second = make_release(tmp_path / "second", {"test": [scenario(1)]}, version="1.1.0")
    publish(second, "lab/made", tag="second", message="Fewer items")
    assert stored(hub) == contents(second)
    assert stored(hub, "v1.0.0") == contents(release)
    assert hub.dataset("lab/made").head.message == "Fewer items"
    hub.requests.clear()
    assert "the tag v1.0.0 exists on another release" in publish_refusal(second, tag="v1.0.0")
    assert sent(hub) == []


def test_an_erasure_knows_a_commit_beforehand(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert "is public" in publish_refusal(release, "lab/open")
    assert sent(hub) == []
    for repo in ("lab/open", "lab/new"):
        assert publish(release, repo, private=False).notes == (
            f"everybody can read {hub.url}/datasets/{repo}",
        )
    hub.add("lab/closed", private=True)
    assert "stays private" in publish(release, "lab/closed", private=False).notes[0]
    assert hub.dataset("lab/closed").private


@pytest.mark.parametrize(
    "files",
    [
        {"README.md": b"---\nlicense: mit\n---\n", "train.csv": b"a,b\n"},
        {"README.md": b"---\nlicense: mit\n---\n# Our other data set\n"},
        {
            "release.json": b'{"version": "2.1", "assets": []}',
            "train.csv": b"a,b\n",
        },  # of another tool
    ],
)
def test_a_repository_of_something_else_is_refused(
    hub: HubDouble, release: Path, files: dict[str, bytes]
) -> None:
    hub.add("lab/made", private=True).write(files)
    assert "that are no release" in publish_refusal(release)
    assert sent(hub) == []
    hub.add("lab/made", private=True).write(
        {"README.md": b"---\r\nlicense: mit\r\n---\r\n"}
    )  # a card alone
    publish(release, "lab/made")
    assert stored(hub) == contents(release)


@pytest.mark.parametrize("name", ["release.json", "README.md", "data"])
def test_changed_files_and_links_are_found_beforehand(
    hub: HubDouble, release: Path, tmp_path: Path, name: str
) -> None:
    shutil.move(release / name, tmp_path / "elsewhere")
    (release / name).symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in publish_refusal(release)
    (release / name).unlink()
    assert name in publish_refusal(release)
    assert hub.requests == []


@pytest.mark.parametrize(
    "name",
    [
        "made",
        "lab/made/x",
        "../made",
        "lab/made@main",
        f"lab/made@{'a' * 40}",
        "lab/made@v 1",
        "lab/made@v1#x",
    ],
)
def test_names_that_the_hub_would_refuse(hub: HubDouble, release: Path, name: str) -> None:
    repo, _, tag = name.partition("@")
    with pytest.raises(ConfigError):
        publish(release, repo, tag=tag)
    assert hub.requests == []


def test_somebody_elses_commit_or_tag_in_between_is_not_overwritten(
    hub: HubDouble, release: Path
) -> None:
    repo = hub.add("lab/made", private=True)
    first = repo.head.sha
    hub.fault("tag", lambda: repo.tags.update({"v1.0.0": first}), times=1)
    assert "Tag reference exists already" in publish_refusal(release)
    del repo.tags["v1.0.0"]
    repo.branches["main"] = first
    hub.fault("commit", lambda: repo.write({"README.md": b"# Ours\n"}), times=1)
    assert "somebody else changed it meanwhile" in publish_refusal(release)
    assert stored(hub) == {"README.md": b"# Ours\n"}
    assert repo.tags == {}


@pytest.mark.parametrize("token", ["hf_l\nab", "hf_läb", "hf l", None])
def test_a_token_that_no_header_can_hold_is_not_shown(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    """The HTTP library's own message shows the whole header."""
    monkeypatch.setenv("HF_TOKEN", token or "")
    message = "HF_TOKEN holds a character that no token has" if token else "HF_TOKEN is not set"
    assert message in publish_refusal(release)
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
def test_errors_say_what_to_do(
    hub: HubDouble, release: Path, point: str, status: int, advice: str
) -> None:
    hub.fault(point, Refused(status, "made up"))
    assert advice in publish_refusal(release)
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
        Answer(
            b"{}", 500, {"X-Error-Message": f"{'x ' * 35}{TOKEN}{' x' * 90}"}
        ),  # was cut in its middle
        Answer(b"{}", 401, {"X-Error-Message": TOKEN, "X-HF-Warning": f"token; {TOKEN}"}),
    ],
)
def test_an_error_that_repeats_the_token_printed_it(
    hub: HubDouble,
    release: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    answer: Answer,
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


def test_a_server_that_hangs_or_is_not_the_hub(
    hub: HubDouble, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network's login page, say."""
    monkeypatch.setattr("h2htalk.data.releases.hub.TIMEOUT", 0.5)
    for point in ("info", "commit"):
        hub.fault(point, "hang", times=1)
        assert (
            f"{hub.url} failed: timed out; check HF_ENDPOINT and the network, and"
            in publish_refusal(release)
        )
    for point in ("info", "preupload"):
        hub.fault(point, Answer("<html>Please log in</html>"), times=1)
        assert "check HF_ENDPOINT" in publish_refusal(release)


@pytest.mark.parametrize("kind", ["drop", "lost"])
@pytest.mark.parametrize("point", ["create", "preupload", "put", "verify", "commit", "tag"])
def test_a_cut_upload_resumes_to_one_complete_commit(
    hub: HubDouble, release: Path, point: str, kind: str
) -> None:
    hub.fault(point, kind)
    assert "run the same command again" in publish_refusal(release)
    assert all(not repo.tags or (point, kind) == ("tag", "lost") for repo in hub.repos.values())
    hub.faults.clear()
    hub.requests.clear()
    publish(release, "lab/made")
    assert "put" not in hub.points() or point not in ("commit", "tag")  # nothing is sent twice
    require_one_commit(hub, release)
