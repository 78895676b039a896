"""Erase a person from a workspace and from everything that was made from it: no byte of their words is left."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from byte_search import files_with
from chain_made import spec_of
from command_line import h2htalk_here
from curation_made import all_files
from huggingface_hub import constants
from kills import interrupted_at, killed_at
from releases_made import make_release
from rounds_made import NAMES, answer, crowd, expert
from spreadsheet_rounds import fill, places, workbook_path
from studies_made import REPLY, cases_of, spec, write_script
from tables import table
from test_erase import WORDS, project

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.results_export.export import export_results
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import ErasedIds, read_erased, require_erased
from h2htalk.data.erasure.folder_kinds import erase as erase_folder
from h2htalk.data.files import read_jsonl, writer_lock
from h2htalk.data.links import add_link
from h2htalk.data.releases.hub import cache_folder, publish
from h2htalk.data.releases.release_folder import TOMBSTONES, private_folder
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError, H2HTalkError
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder

EMILY = "Emily Carter"
# What was made from the workspace, in the order in which links lead to it.
MADE = ("crowd", "run-candidates", "logs", "release", "expert", "run-release")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A curation, a crowd round on CSV files, an expert round on workbooks, a release, runs on both."""
    folder = tmp_path_factory.mktemp("published") / "lab"
    curate(project(folder, 3))
    work = folder / "work"
    open_round(spec_of("crowd", work, care={"session_items": 20, "crisis_share": 1.0}), folder / "crowd")
    answer(folder / "crowd", lambda *_: crowd())
    close_round(folder / "crowd")
    open_round(spec_of("expert", folder / "crowd", 3), folder / "expert")
    for name in NAMES[:3]:
        round = RoundFolder(folder / "expert")
        typed = expert() | {"comment": f"My {WORDS} never burns."}
        fill(workbook_path(round, name), dict.fromkeys(places(round, name).values(), typed))
    close_round(folder / "expert")
    scenarios = [one for one in load_split(work).scenarios if one.language == "en"]
    release = make_release(folder / "release", {"test": scenarios[:-1], "dev": scenarios[-1:]})
    private_folder(release).mkdir()
    add_link(work, "release", release)
    for name, split in (("run-candidates", work), ("run-release", release)):
        model = "baseline:copy-last-turn"
        evaluate(EvaluateSpec(model=model, split=str(split), out=str(folder / name), embedder="none"))
    model = write_script(folder / "model.jsonl", [{"id": "*", "text": REPLY["en"]}])
    run_study(spec("sap", model, folder / "study", arms=("sap",), language="en", limit=4))
    run_study(spec("logs", "logs:chats", folder / "logs", split=work / "safety"))
    return folder


@pytest.fixture
def lab(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published, tmp_path / "lab")


def require_gone(lab: Path) -> None:
    """Only the owner's own file, which the command names, still has Emily's words; everything else verifies."""
    # A comment of an annotator on another item stays.
    assert files_with(lab, f"the {WORDS}") == ["raw.jsonl"]
    assert all(name == "raw.jsonl" for name in files_with(lab, EMILY))
    for name in ("crowd", "expert"):
        outcome = read_outcome(lab / name)
        assert outcome.decisions
        assert {item for item, _, _ in outcome.annotations} == outcome.sources.keys()
    for name in ("run-candidates", "run-release"):
        counts = load_run(lab / name).summary.counts
        assert (counts.erased > 0, counts.scored) == (True, counts.items)
    ids = {one.id for one in load_split(lab / "release").scenarios}
    assert ids
    assert ids.isdisjoint(read_erased(lab / "release" / TOMBSTONES))


def test_before_a_purge(lab: Path) -> None:
    untouched = {name: one for name, one in read_outcome(lab / "crowd").decisions.items() if "00000" in name[0]}
    done = h2htalk_here("curate", "erase", str(lab / "work"), EMILY)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    named = [line.split(":")[0].split()[-1].rpartition("/")[2] for line in lines if line.endswith(" erased")]
    assert set(named) == set(MADE)
    assert "annalena, bogumil: ask them to delete their copies" in done.stdout
    assert "the next version with this folder as `previous`" in done.stdout
    assert "raw.jsonl:2" in done.stderr
    require_gone(lab)
    gone = workspace_items(lab)
    after = read_outcome(lab / "crowd").decisions
    assert after == {key: one for key, one in untouched.items() if key[0] not in gone}
    curate(lab / "curate.toml")
    require_gone(lab)
    # Erasing her again, under any name, changes nothing.
    before = all_files(lab)
    assert erase(Workspace(lab / "work"), "chat-000002").folders
    assert all_files(lab) == before


def workspace_items(lab: Path) -> set[str]:
    lines = [line for _, line in read_jsonl(lab / "work" / "tombstones.jsonl")]
    return {item for line in lines for item in line.get("items", ())}


@pytest.mark.parametrize("asked", [f"chat:{EMILY}", "raw-5"])
def test_after_a_purge(lab: Path, asked: str) -> None:
    """Raw names were unknown after a purge."""
    place = Workspace(lab / "work")
    purge(place)
    assert files_with(lab / "work", EMILY) == files_with(lab / "work", "raw-5") == []
    assert (place.path / "erasure.key").stat().st_mode & 0o077 == 0
    counts = {one.stage: one.counts for one in summaries(place)}
    # What she wrote nearly alike goes with each of her dialogues.
    assert {"chat-000002", "chat-000005"} <= set(erase(place, asked).ids)
    require_gone(lab)
    index = [line["id"] for _, line in read_jsonl(place.path / "erasure_index.jsonl")]
    assert not {"chat-000002", "chat-000005"}.intersection(index)
    after = {one.stage: one.counts for one in summaries(place)}
    assert after["review"].written == counts["review"].written - len(workspace_items(lab))
    # Her name is still known, and nobody else's is hers.
    assert set(erase(place, EMILY).ids) <= {"chat-000002", "chat-000005", "chat-p0001"}
    with pytest.raises(DataError, match="no id 'Nobody'"):
        erase(place, "Nobody")


def test_versions_on_the_hub(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached copies go; what is on the Hub is its owner's to delete."""
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    cached = cache_folder("lab/made") / "snapshots" / "rows.jsonl"
    cached.parent.mkdir(parents=True)
    cached.write_text(f"the {WORDS}")
    add_link(private_folder(lab / "release"), "hub", "hub:lab/made@v1.0")
    other = make_release(tmp_path / "other")
    private_folder(other).mkdir()
    add_link(lab / "work", "release", other)
    add_link(private_folder(other), "hub", "hub:lab/other@v1.0")
    folders = {one.name: one for one in erase(Workspace(lab / "work"), EMILY).folders}
    assert not cached.exists()
    first, second = folders["hub:lab/made@v1.0"].messages
    assert first == f"deleted from the cache: {cache_folder('lab/made')}"
    assert "`hf repos tag delete lab/made v1.0 --repo-type dataset`" in second
    # Nothing of hers was in the other release.
    assert "hub:lab/other@v1.0" not in folders
    require_gone(lab)


def test_folders_that_were_moved_or_are_busy(lab: Path, tmp_path: Path) -> None:
    (lab / "crowd").rename(tmp_path / "elsewhere")
    work = str(lab / "work")
    with writer_lock(RunFolder(lab / "run-release").calls_file):
        done = h2htalk_here("curate", "erase", work, EMILY)
    assert done.returncode == 3
    assert "crowd: missing" in done.stdout
    assert "another process is writing it; wait for it, then start the same erasure again" in done.stdout
    assert "not finished" in done.stderr
    assert files_with(lab, f"the {WORDS}") != ["raw.jsonl"]
    wrong = h2htalk_here("curate", "erase", work, EMILY, "--also", str(tmp_path / "nowhere"))
    assert (wrong.returncode, "is no folder" in wrong.stderr) == (2, True)
    done = h2htalk_here("curate", "erase", work, EMILY, "--also", str(tmp_path / "elsewhere"))
    assert done.returncode == 0
    # The expert round is known to the crowd round alone.
    assert files_with(tmp_path / "elsewhere", f"the {WORDS}") == []
    assert files_with(lab, f"the {WORDS}")
    done = h2htalk_here("curate", "erase", work, EMILY, "--also", str(lab))
    assert done.returncode == 0
    (tmp_path / "elsewhere").rename(lab / "crowd")
    require_gone(lab)


@pytest.mark.parametrize("name", ["crowd", "expert", "release", "run-release", "study"])
def test_an_erasure_killed_at_any_write_is_completed_by_the_next(published: Path, tmp_path: Path, name: str) -> None:
    """The one `erase` over all kinds of folders: refused until it is completed, then as if it was never cut."""
    cases = "".join(path.read_text() for path in (published / "study" / "inputs" / "split").glob("*.jsonl"))
    case = min(one.id for one in cases_of("high_risk", "en") if f'"{one.id}"' in cases)
    erased = ErasedIds(frozenset({"chat-000002", "chat-000005", "chat-p0001", case}))
    control = shutil.copytree(published / name, tmp_path / "control" / name)
    items, expected = erase_folder(control, erased).items, words_in(control)
    assert items
    assert not files_with(control, f"the {WORDS}")
    for write in range(100):
        folder = shutil.copytree(published / name, tmp_path / str(write) / name)
        if not interrupted_at(write, partial(erase_folder, folder, erased)):
            break
        if write:  # the first one writes the mark
            with pytest.raises(DataError, match="an erasure was interrupted here"):
                require_erased(folder)
        again = erase_folder(folder, erased)
        assert (again.items, again.unfinished, words_in(folder)) == (items, False, expected), write
        assert not files_with(folder, f"the {WORDS}")
        require_erased(folder)
    assert write > 3


def words_in(folder: Path) -> dict[str, bytes]:
    """Files by name, but for those with times: pages, workbooks, events."""
    return {
        name: data
        for name, data in all_files(folder).items()
        if not name.endswith((".html", ".xlsx")) and "events" not in name
    }


def test_an_interrupted_erasure_goes_out_by_no_command_and_the_next_run_completes_it(lab: Path, tmp_path: Path) -> None:
    """Half erased folders were published, exported, shown on pages and opened as rounds of annotators."""
    for step in (60, 230):
        folder, out = shutil.copytree(lab, tmp_path / str(step) / "lab"), tmp_path / str(step) / "out"
        assert killed_at(step, lambda folder=folder: erase(Workspace(folder / "work"), EMILY))  # type: ignore[misc]
        assert (folder / "work" / "tombstones.jsonl").exists()
        compared = h2htalk_here("compare", folder / "run-candidates", folder / "run-candidates", "--out", out / "page")
        refused = "error: " in compared.stderr
        for send in (
            lambda folder=folder: publish(folder / "release", "lab/made", dry_run=True),
            lambda folder=folder, out=out: export_results(folder / "run-release", "bundle", out / "bundle"),
            lambda folder=folder, out=out: open_round(spec_of("crowd", folder / "work"), out / "one"),
            lambda folder=folder, out=out: open_round(spec_of("crowd", folder / "work" / "compose"), out / "two"),
            lambda folder=folder, out=out: open_round(spec_of("expert", folder / "crowd", 3), out / "three"),
            lambda folder=folder: load_split(folder / "release"),
        ):
            try:
                send()  # type: ignore[no-untyped-call]
            except H2HTalkError:
                refused = True
        assert refused, step
        assert files_with(out, f"the {WORDS}") == [], step
        curate(folder / "curate.toml")
        require_gone(folder)


def test_pages_and_exports_of_a_run_are_named(lab: Path) -> None:
    run, log = lab / "run-release", lab / "log.json"
    for words in (
        ("compare", run, lab / "run-candidates", "--metric", "lexical", "--out", lab / "page"),
        ("gate", run, "--reference-run", run, "--markdown", lab / "gate.md", "--junit", log),
        ("results", "export", run, "--to", "bundle", "--out", lab / "bundle.zip"),
    ):
        assert "error" not in h2htalk_here(*words).stderr
    log.unlink()
    done = h2htalk_here("curate", "erase", str(lab / "work"), EMILY)
    named = [line.partition(":")[0] for line in done.stdout.splitlines() if line.endswith(": not changed")]
    assert {name.rpartition("/")[2] for name in named} == {"page", "gate.md", "bundle.zip"}
    assert "a folder that lost some: if it was made before, make it again, or delete it" in done.stdout
    closing = done.stdout.splitlines()[-1]
    assert all(what in closing for what in ("caches of `datasets`", "spreadsheets that come back"))


def test_the_cache_of_a_raw_set_on_the_hub_goes(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It held what nobody had anonymised yet."""
    home = tmp_path / "home"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(home / "datasets"))
    kept, *gone = (home / "hub" / "datasets--lab--other", cache_folder("lab/raw"), home / "datasets" / "lab___raw")
    for folder in (kept, *gone):
        (folder / "snapshots").mkdir(parents=True)
    stage = lab / "work" / "gather" / "stage.json"
    made = json.loads(stage.read_text())
    made["settings"]["sources"][0]["sha256"] = f"hub:lab/raw@{'a' * 40}:en#train"
    stage.write_text(json.dumps(made))
    (last,) = [one for one in erase(Workspace(lab / "work"), EMILY).folders if one.kind == "hub"]
    assert last.name.startswith("hub:lab/raw@aaaa")
    assert [str(folder) in message for folder, message in zip(gone, last.messages, strict=False)] == [True, True]
    assert "still holds the raw text" in last.messages[-1]
    assert [folder.exists() for folder in (kept, *gone)] == [True, False, False]


def test_items_made_again_without_a_reference_stay_in_later_rounds() -> None:
    """The id of an item says nothing where its record tells what it rests on."""
    erased = ErasedIds(frozenset({"d-2"}), frozenset({"d-1:dialogue_base"}))
    record: dict[str, Any] = {
        "id": "d-1:dialogue_base",
        "references": [{"text": "Yes.", "provenance": {"dialogue": "d-3"}}],
    }
    assert not erased.covers_item(record["id"], record)
    silents: list[dict[str, Any] | None] = [{**record, "references": ["Yes."]}, None]
    for silent in silents:
        assert erased.covers_item(record["id"], silent)
    assert erased.covers_item("d-1:dialogue_base#keep", None)
    assert erased.covers({**record, "references": [{"text": "No.", "provenance": {"dialogue": "d-2"}}]})


@pytest.mark.parametrize(("name", "covered"), table("curation", "ids_of_an_erased_dialogue"))
def test_ids_of_items_calls_and_ties(name: str, covered: bool) -> None:
    assert ErasedIds(frozenset({"d-2"})).covers_item(name, None) == covered
    assert ErasedIds(frozenset({"d-2"})).covers({"id": name}) == covered


@pytest.mark.parametrize("record", table("curation", "records_of_an_erased_id"))
def test_records_that_hold_words_of_an_erased_id(record: dict[str, object]) -> None:
    assert ErasedIds(frozenset({"d-2", "p-2"})).covers(record)
    assert not ErasedIds(frozenset({"d-3"})).covers(record)
