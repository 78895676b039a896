"""An erasure killed at every step: whoever comes next finishes it before anything else, to the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.explain import explain
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import write_jsonl
from h2htalk.data.shard import Shard
from h2htalk.errors import ConfigError, DataError

KILLED = 137
# What changes a folder, as Python's audit events call it: each is a step before which a kill may come.
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"}
WORDS = "cinnamon porridge"  # what Emily alone says
SPEC = """
workspace = "work"
part = 4
processes = 1

[[gather.sources]]
name = "chat"
path = "raw.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"

[review]
model = "scripted:reviewer.jsonl"
"""
CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
TOPICS = ("my garden", "the long train ride", "a chess game", "our choir", "the leaking roof", "new shoes")


def talk(at: int) -> dict[str, object]:
    """Dialogues 2 and 5 are Emily's."""
    mine = at in (2, 5)
    topic = f"the {WORDS} that burnt on day {at}" if mine else TOPICS[at % len(TOPICS)]
    said = [
        f"I was thinking about {topic} all of yesterday, and it made me rather sad in the end.",
        f"What was it about {topic} that stayed with you so long?",
        f"That nobody but me cared for {topic}, not even number {at} of my friends.",
        "Caring alone is tiring. Whom would you tell first?",
    ]
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return {"id": f"raw-{at}", "messages": messages} | ({"person": "Emily Carter"} if mine else {})


@pytest.fixture(scope="module", params=["review", "compose"])
def curated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a curation that went as far as a stage; books and open tables among its files."""
    folder = tmp_path_factory.mktemp("curated")
    (folder / "curate.toml").write_text(SPEC)
    write_jsonl(folder / "raw.jsonl", [talk(at) for at in range(1, 7)])
    criteria = {name: {"evidence": "Seen.", "score": 5} for name in CRITERIA}
    verdict = {**criteria, "fitting_subtask": "dialogue_base", "revision": "", "verdict": "accept"}
    write_jsonl(folder / "reviewer.jsonl", [{"id": "*", "text": json.dumps(verdict)}])
    names = list(STAGES)
    curate(folder / "curate.toml", names[: names.index(request.param) + 1])
    stage = folder / "work" / STAGES[request.param]
    calls = [["chat-000002:dialogue_base", 0], ["chat-000003:dialogue_base", 0]]
    sent = [{"event": "sent", "call": n, "items": [call]} for n, call in enumerate(calls, 1)]
    write_jsonl(stage / "costs" / "old.jsonl", sent)
    write_jsonl(stage / "batches" / "jobs.jsonl", [{"event": "submitting", "calls": [calls]}])
    write_jsonl(stage / "calls" / "part-00007.jsonl", [{"id": f"{name}/rubric"} for name, _ in calls])
    return folder


def all_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do something in a process that is killed before its so-many-th change of a file; False where it came through."""
    child = os.fork()
    if not child:
        left = [step]

        def tick() -> None:
            left[0] -= 1
            if left[0] < 0:
                os._exit(KILLED)

        def watch(event: str, args: tuple[object, ...]) -> None:
            if event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT):
                tick()

        write = Shard._write

        def torn(shard: Shard, lines: bytes, size: int) -> None:
            if not left[0]:
                write(shard, lines[: len(lines) // 2], size)
            tick()
            write(shard, lines, size)

        Shard._write = torn  # type: ignore[method-assign]
        sys.addaudithook(watch)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED


@pytest.mark.parametrize(
    ("then", "stride"),
    [pytest.param("run", 1, marks=pytest.mark.live), ("run", 5), ("erase", 13), ("another", 13)],
)
@pytest.mark.timeout(300)
def test_killed_before_every_change_it_is_finished_by_who_comes_next(
    curated: Path, tmp_path: Path, then: str, stride: int
) -> None:
    """Only the next `erase` finished it: a run in between worked on with a person half taken out."""
    if not (curated / "work" / STAGES["review"] / "summary.json").exists():
        stride = max(stride, 7)  # the same steps, before what the run still has to make

    def next_one(folder: Path) -> None:
        if then == "erase":
            assert "chat-000002" in erase(Workspace(folder / "work"), "Emily Carter").ids
        if then == "another":
            erase(Workspace(folder / "work"), "chat-000003", others_too=True)
        curate(folder / "curate.toml")

    whole = tmp_path / "whole"
    shutil.copytree(curated, whole)
    assert len(erase(Workspace(whole / "work"), "Emily Carter").ids) == 3
    if then == "another":
        erase(Workspace(whole / "work"), "chat-000003", others_too=True)
    curate(whole / "curate.toml")
    expected, counts = all_files(whole / "work"), summaries(Workspace(whole / "work"))
    assert not any(WORDS.encode() in data for data in expected.values())

    untouched = all_files(curated / "work")
    begun = 0
    for step in count(step=stride):
        folder = tmp_path / str(step)
        shutil.copytree(curated, folder)
        place = Workspace(folder / "work")
        if not killed_at(step, lambda place=place: erase(place, "Emily Carter")):  # type: ignore[misc]
            break
        if place.pending() is None and not (place.path / "erased.jsonl").exists():
            # Nothing of it was begun, and nothing but what it was writing down is there.
            there = all_files(place.path)
            assert {name: data for name, data in there.items() if not name.startswith(".")} == untouched
        else:
            begun += 1
            next_one(folder)
            assert all_files(place.path) == expected, step
            assert summaries(place) == counts
            assert not place.pending_path.exists()
        shutil.rmtree(folder)
    assert begun > 60 // stride


def test_killed_while_it_finishes_it_is_finished_by_the_next(curated: Path, tmp_path: Path) -> None:
    shutil.copytree(curated, tmp_path / "whole")
    erase(Workspace(tmp_path / "whole" / "work"), "Emily Carter")
    curate(tmp_path / "whole" / "curate.toml")
    folder = tmp_path / "killed"
    shutil.copytree(curated, folder)
    assert killed_at(9, lambda: erase(Workspace(folder / "work"), "Emily Carter"))
    steps = count(1, 6)
    while Workspace(folder / "work").pending() is not None:
        killed_at(next(steps), lambda: curate(folder / "curate.toml"))
    curate(folder / "curate.toml")
    assert all_files(folder / "work") == all_files(tmp_path / "whole" / "work")


# --- What a half done one looks like ----------------------------------------------------------------------------


@pytest.fixture
def halfway(curated: Path, tmp_path: Path) -> Path:
    """Killed in the middle of the stages' files."""
    shutil.copytree(curated, tmp_path / "halfway")
    assert killed_at(14, lambda: erase(Workspace(tmp_path / "halfway" / "work"), "Emily Carter"))
    assert Workspace(tmp_path / "halfway" / "work").pending() is not None
    return tmp_path / "halfway"


def test_it_is_finished_even_where_the_run_itself_is_refused(
    halfway: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (halfway / "curate.toml").write_text(SPEC.replace("part = 4", "part = 5"))
    with pytest.raises(ConfigError, match="another setting of part"):
        curate(halfway / "curate.toml")
    assert "erase: one that was interrupted is finished: 3 ids" in capsys.readouterr().err
    assert not any(WORDS.encode() in data for data in all_files(halfway / "work").values())


def test_who_is_half_taken_out_is_not_explained(halfway: Path) -> None:
    with pytest.raises(DataError, match="was taken out"):
        explain(Workspace(halfway / "work"), "chat-000002")


def test_purge_finishes_it_first(halfway: Path) -> None:
    """Without the index and the key nobody would have known any more who was meant."""
    place = Workspace(halfway / "work")
    finished = (place.stage("review").path / "summary.json").exists()
    if finished:
        purge(place)
    else:
        with pytest.raises(ConfigError, match="is not finished"):
            purge(place)
    assert place.pending() is None
    assert not any(WORDS.encode() in data for data in all_files(place.path).values())
    assert place.key_path.exists() != finished


def test_purge_killed_anywhere_is_finished_by_the_next(curated: Path, tmp_path: Path) -> None:
    if not (curated / "work" / STAGES["review"] / "summary.json").exists():
        before = all_files(curated / "work")
        with pytest.raises(ConfigError, match="is not finished"):
            purge(Workspace(curated / "work"))
        assert all_files(curated / "work") == before
        return
    shutil.copytree(curated, tmp_path / "whole")
    purge(Workspace(tmp_path / "whole" / "work"))
    expected = all_files(tmp_path / "whole" / "work")
    for step in count(step=2):
        folder = tmp_path / str(step)
        shutil.copytree(curated, folder)
        place = Workspace(folder / "work")
        if not killed_at(step, lambda place=place: purge(place)):  # type: ignore[misc]
            break
        purge(place)
        assert all_files(place.path) == expected, step
    assert step > 4


def test_a_damaged_note_of_it_stops_everything(halfway: Path) -> None:
    (halfway / "work" / "erasing.json").write_text('{"ids": "chat-000002"}')
    with pytest.raises(DataError, match=r"erasing\.json: not an erasure"):
        curate(halfway / "curate.toml")


# --- Links ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linked", ["05-composed", "01-gathered/kept", "02-anonymized/kept/part-00000.jsonl"])
def test_nothing_is_taken_out_behind_a_link(curated: Path, tmp_path: Path, linked: str) -> None:
    """A linked file was replaced by another one, a linked table passed over: the words stayed where it led."""
    shutil.copytree(curated, tmp_path / "linked")
    path = tmp_path / "linked" / "work" / linked
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    before = all_files(tmp_path)
    with pytest.raises(DataError, match="is a symbolic link, and what it leads to would outlive this"):
        erase(Workspace(tmp_path / "linked" / "work"), "Emily Carter")
    assert all_files(tmp_path) == before


def test_a_workspace_may_lie_behind_a_link(curated: Path, tmp_path: Path) -> None:
    shutil.copytree(curated / "work", tmp_path / "big-disk")
    (tmp_path / "work").symlink_to(tmp_path / "big-disk")
    assert len(erase(Workspace(tmp_path / "work"), "Emily Carter").ids) == 3
    assert not any(WORDS.encode() in data for data in all_files(tmp_path / "big-disk").values())
