"""`split diff`: what changed between two versions of a split, and which cells of runs it moves."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import h2htalk
from h2htalk.benchmark.split_changes import diff_splits
from h2htalk.curation.release.build import check_release
from h2htalk.data.scenario import bundled_personas
from h2htalk.data.split_output import export_split, write_new_split
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import DataError
from h2htalk.text.contracts.split_check import check_split


@pytest.fixture
def old(tmp_path: Path) -> Split:
    split = load_split("mini@1").select("en", ["dialogue_base", "itinerary_middle"])
    export_split(split, tmp_path / "old")
    return split


def test_the_cells_that_a_correction_moves_are_named(tmp_path: Path, old: Split) -> None:
    """A version has another reference, another history, and one item less."""
    names = ("dialogue_base", "itinerary_middle")
    base, middle = ([one for one in old.scenarios if one.subtask == name] for name in names)
    base[0] = replace(base[0], references=("Another reply.",))
    middle[0] = replace(middle[0], inputs={"day_overview": "Another day."})
    export_split(replace(old, version="2", scenarios=(*base, *middle[:-1])), tmp_path / "new")
    where = {
        "split": str(tmp_path / "old"),
        "out": str(tmp_path / "run"),
        "embedder": "none",
        "baselines": False,
    }
    h2htalk.evaluate(h2htalk.EvaluateSpec(model="baseline:constant", **where))
    diff, (moved,) = diff_splits(str(tmp_path / "old"), str(tmp_path / "new"), [tmp_path / "run"])
    first, other = "mini-en-dialogue-base-01", "mini-en-itinerary-middle-01"
    assert diff["changed"] == {first: "reference", other: "inputs"}
    assert list(diff["removed"]) == ["mini-en-itinerary-middle-07"]
    assert moved.title == f"{tmp_path / 'run'}: 3 of 14 items differ; cells that move:"
    assert moved.rows == [("DialogueBase", 1, 0, 0), ("ItineraryMiddle", 2, 1, 1)]
    # The counts of a cell in which a single item differs once stood as yes and no.
    assert "DialogueBase,1,0,0" in moved.to_csv()
    assert moved.notes == ("and the averages: dialogue, itinerary, overall",)
    _, (moved,) = diff_splits(str(tmp_path / "old"), str(tmp_path / "old"), [tmp_path / "run"])
    assert moved.to_terminal(width=200).strip() == f"{tmp_path / 'run'}: no cell moves"
    # A run of the corrected split has nothing to move, and one of another split cannot be compared.
    assert not diff_splits(str(tmp_path / "new"), str(tmp_path / "old"), [tmp_path / "run"])[1][
        0
    ].rows
    with pytest.raises(DataError, match="is no run of arcs"):
        diff_splits("arcs", "arcs", [tmp_path / "run"])


def test_a_changed_persona_asks_its_items_again(tmp_path: Path, old: Split) -> None:
    personas = bundled_personas()
    other = {**old.personas, "ren": replace(personas["ren"], relation="brother")}
    export_split(replace(old, personas=other), tmp_path / "new")
    diff, _ = diff_splits(str(tmp_path / "old"), str(tmp_path / "new"))
    assert diff["changed"] == {"persona ren": "persona"}


@pytest.mark.parametrize("study", ["", "high_risk", "look_alike", "instructions", "arcs"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_new_split_begins_with_valid_examples(tmp_path: Path, study: str, language: str) -> None:
    write_new_split(tmp_path / "mine", language, study)
    number, errors = check_split(str(tmp_path / "mine"))
    assert (number, errors) == (1 if study else 11, [])
    assert check_release(tmp_path / "mine").findings == ()
    split = load_split(tmp_path / "mine")
    assert {one.language for one in split.items} == {language}
    assert split.canary == ""
    assert "h2htalk" in json.dumps([dict(one.provenance) for one in split.items])
