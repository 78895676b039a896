"""Kill commands at each step of their start, then erase: no byte of the erased words is left in what they began."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

import pytest
from test_erase import EMILY_CARTER, WORDS, project

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.score_run import import_responses
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.curation.curate import curate
from h2htalk.curation.erase import erase
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.begun import find_start
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS, ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import write_jsonl, writer_lock
from h2htalk.data.links import add_link
from h2htalk.data.releases.release_folder import private_folder
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError, H2HTalkError
from h2htalk.rounds.lifecycle import open_round
from h2htalk.scale.attempts import Shard
from h2htalk.scale.shards import evaluate_shard
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.kills import killed_at, states_of
from support.releases import make_release
from support.rounds import spec_of
from support.studies import REPLY, spec, write_script

Work = Callable[[Path], object]
HELD = f"the {WORDS}"
EMILY = ErasedIds(frozenset({"chat-000002", "chat-000005", "chat-p0001"}))


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A curation, and a release that holds its candidates."""
    folder = tmp_path_factory.mktemp("curated") / "lab"
    curate(project(folder, 20))
    split = load_split(folder / "work")
    release = make_release(
        folder / "release", {"test": split.scenarios[:-1], "dev": split.scenarios[-1:]}
    )
    private_folder(release).mkdir()
    add_link(folder / "work", "release", release)
    write_script(folder / "model.jsonl", [{"id": "*", "text": REPLY["en"]}])
    write_jsonl(
        folder / "replies.jsonl", [{"id": one.id, "response": "I see."} for one in split.scenarios]
    )
    return folder


def _asked(lab: Path, split: Path, model: str) -> EvaluateSpec:
    return EvaluateSpec(
        model=model, split=str(split), out=str(lab / "made"), embedder="none", attempts=1
    )


def evaluate_candidates(lab: Path) -> None:
    evaluate(_asked(lab, lab / "work", "baseline:copy-last-turn"))


def evaluate_release(lab: Path) -> None:
    evaluate(_asked(lab, lab / "release", f"scripted:{lab / 'model.jsonl'}"))


def shard(lab: Path) -> None:
    evaluate_shard(_asked(lab, lab / "work", f"scripted:{lab / 'model.jsonl'}"), Shard(1, 1))


def study(lab: Path) -> None:
    run_study(spec("logs", "logs:chats", lab / "made", split=lab / "work" / "safety"))


def crowd_round(lab: Path) -> None:
    open_round(
        spec_of("crowd", lab / "work", care={"session_items": 20, "crisis_share": 1.0}),
        lab / "made",
    )


def imported(lab: Path) -> None:
    import_responses(lab / "replies.jsonl", "imported", str(lab / "work"), lab / "made", "none")


STARTS: dict[str, Work] = {
    "evaluate": evaluate_candidates,
    "evaluate a release": evaluate_release,
    "shard": shard,
    "study": study,
    "round": crowd_round,
    "import": imported,
}


def _markers(folder: Path) -> list[Path]:
    return [path for kind in FOLDER_KINDS.values() for path in folder.rglob(kind.marker)]


@pytest.fixture
def lab(curated: Path, tmp_path: Path) -> Path:
    return shutil.copytree(curated, tmp_path / "lab")


@pytest.mark.parametrize("name", STARTS)
def test_an_erasure_finds_the_items_of_a_start_that_was_killed(
    lab: Path, tmp_path: Path, name: str
) -> None:
    """`curate erase` said "not there any more", exit 0, of folders that held the erased words."""
    states = states_of(lambda: STARTS[name](lab), lab / "made", tmp_path / "states")
    source = private_folder(lab / "release") if "release" in name else lab / "work"
    held = 0
    for state in states:
        shutil.rmtree(lab / "made", ignore_errors=True)
        shutil.move(state, lab / "made")
        before = files_with(lab / "made", HELD)
        if _markers(lab / "made"):
            break
        swept = list(sweep(source, EMILY))
        assert files_with(lab / "made", HELD) == [], state.name
        assert not any(one.unfinished for one in swept)
        if before:
            held += 1
            (made,) = (one for one in swept if one.name.partition("/made")[1])
            assert made.kind
            assert made.messages[0].startswith("deleted, left by a command that was killed: ")
    assert held >= 2


@pytest.mark.parametrize("name", ["shard", "study"])
def test_a_start_that_gets_kill_9(lab: Path, name: str) -> None:
    """As above, with a signal, and by the command that people type."""
    work = partial(STARTS[name], lab)
    step = next(
        step
        for step in count(4, step=2)
        if killed_at(step, work) and files_with(lab / "made", HELD)
    )
    assert step
    assert _markers(lab / "made") == []
    done = h2htalk_here("curate", "erase", lab / "work", EMILY_CARTER)
    assert done.returncode == 0, done.stderr
    assert "deleted, left by a command that was killed: " in done.stdout
    assert files_with(lab, HELD) == ["raw.jsonl"]


def _begun(lab: Path) -> Path:
    """A run whose start was killed after its items were written."""
    states = states_of(lambda: evaluate_candidates(lab), lab / "made", lab.parent / "states")
    chosen = [one for one in states if files_with(one, HELD) and not _markers(one)][-1]
    shutil.rmtree(lab / "made")
    shutil.move(chosen, lab / "made")
    return lab / "made"


def test_a_start_that_fails_and_is_killed_while_it_cleans_up(lab: Path, tmp_path: Path) -> None:
    """Half of the items stayed beside `run.json`: no erasure and no evaluation could read them again."""

    def failing() -> None:
        full = DataError("the disk is full")
        with patch("h2htalk.benchmark.run.write_json", side_effect=full), suppress(DataError):
            evaluate_candidates(lab)

    def failing_after_the_marker() -> None:
        def ask(*_: object) -> str:
            raise DataError("the model has gone")

        with patch("h2htalk.benchmark.evaluate._ask_baseline", ask), suppress(DataError):
            evaluate_candidates(lab)

    for number, work in enumerate((failing, failing_after_the_marker)):
        shutil.rmtree(lab / "made", ignore_errors=True)
        for state in states_of(work, lab / "made", tmp_path / f"states{number}"):
            shutil.rmtree(lab / "made", ignore_errors=True)
            shutil.move(state, lab / "made")
            swept = list(sweep(lab / "work", EMILY))
            assert files_with(lab / "made", HELD) == [], state
            assert not any(one.unfinished for one in swept), state


def test_a_start_at_work_is_no_killed_one(lab: Path) -> None:
    """Its items would have been written after the erasure had said that nothing was there."""
    made = _begun(lab)
    with writer_lock(made / "calls"):
        done = h2htalk_here("curate", "erase", lab / "work", EMILY_CARTER)
    assert done.returncode == 3
    assert (
        "another process is writing it; wait for it, then start the same erasure again"
        in done.stdout
    )
    assert h2htalk_here("curate", "erase", lab / "work", EMILY_CARTER).returncode == 0
    assert files_with(lab, HELD) == ["raw.jsonl"]


def test_the_same_command_goes_on_after_the_erasure(lab: Path) -> None:
    made = _begun(lab)
    erase(Workspace(lab / "work"), EMILY_CARTER)
    curate(lab / "curate.toml")
    evaluate_candidates(lab)
    assert len(load_split(made / "inputs" / "split").scenarios) == len(
        load_split(lab / "work").scenarios
    )
    assert files_with(made, HELD) == []


def test_who_was_erased_after_the_items_were_read_is_in_no_folder(lab: Path) -> None:
    """An erasure between reading a split and linking the new folder found no link."""
    for at, (name, work) in enumerate(STARTS.items()):
        place = shutil.copytree(lab, lab.parent / str(at))
        erased = False

        def erasing(source: Path, *others: object, place: Path = place) -> None:
            nonlocal erased
            erase(Workspace(place / "work"), EMILY_CARTER)
            erased = True
            add_link(source, *others)  # type: ignore[arg-type]

        with (
            patch("h2htalk.data.links.add_link", erasing),
            pytest.raises(H2HTalkError, match="erase"),
        ):
            work(place)
        assert erased, name
        assert files_with(place / "made", HELD) == [], name


def test_files_of_others_stay(lab: Path) -> None:
    """A folder of somebody else may be where a run was: nothing of it is deleted, and it is said."""
    made = _begun(lab)
    (made / "notes.txt").write_text("mine")
    assert find_start(made) is None
    (one,) = (one for one in sweep(lab / "work", EMILY) if one.name.endswith("made"))
    assert one.unfinished
    expected = "its run.json is missing, so nothing can be erased from it: put that back, or delete the folder"
    assert one.messages == (expected,)
    assert files_with(made, HELD)
    shutil.rmtree(made / "inputs")
    (one,) = (one for one in sweep(lab / "work", EMILY) if one.name.endswith("made"))
    assert not one.unfinished
    assert (made / "notes.txt").read_text() == "mine"


def test_a_killed_start_that_was_moved_is_found_by_also(lab: Path, tmp_path: Path) -> None:
    made = _begun(lab)
    (tmp_path / "elsewhere").mkdir()
    shutil.move(made, tmp_path / "elsewhere" / "made")
    done = h2htalk_here(
        "curate", "erase", lab / "work", EMILY_CARTER, "--also", tmp_path / "elsewhere"
    )
    assert done.returncode == 0
    assert files_with(tmp_path / "elsewhere", HELD) == []
    assert "deleted, left by a command that was killed: " in done.stdout
