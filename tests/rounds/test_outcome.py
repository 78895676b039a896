"""The outcome of a closed round: what other rounds and a release believe."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rounds_made import answer, begin, decisions, expert, split

from h2htalk.data.files import read_json_object, read_jsonl, write_json, write_jsonl
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.adjudication import tie_items
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec

Line = dict[str, Any]


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three items by two annotators: the first is kept, the second tied, the third dropped."""
    path = begin(tmp_path_factory.mktemp("closed"), count=3, people=2, overlap=2)
    typed = {"en-item-0": split("keep"), "en-item-1": split("keep", "drop"), "en-item-2": split("drop")}
    answer(path, lambda item, annotator: typed[item](item, annotator))
    close_round(path)
    return path


@pytest.fixture
def copy(closed: Path, tmp_path: Path) -> Path:
    return shutil.copytree(closed, tmp_path / "round")


def lines_of(path: Path) -> list[Line]:
    return [line for _, line in read_jsonl(path / "decisions.jsonl")]


def test_the_outcome_of_a_closed_round(closed: Path) -> None:
    outcome = read_outcome(closed)
    assert (outcome.name, outcome.path, outcome.spec.kind) == ("round", closed, "expert")
    assert {key: one.rule for key, one in outcome.decisions.items()} == {
        key: one["rule"] for key, one in decisions(closed).items()
    }
    assert [outcome.decisions[f"en-item-{n}", "keep"].label for n in range(3)] == ["keep", None, "drop"]
    assert outcome.annotations == RoundFolder(closed).annotations()
    assert outcome.agreement.keys() == {"accuracy", "consistency", "domain_compliance", "keep"}
    assert outcome.sources == {}


@pytest.mark.parametrize(
    "forged",
    [
        lambda lines: [*lines[:3], lines[3] | {"label": "drop"}, *lines[4:]],
        lambda lines: [{"item": "x"}, *lines],
        lambda lines: lines[::-1],
        lambda lines: lines[:-1],
        lambda lines: [],
    ],
    ids=["another label", "an inserted line", "another order", "a removed line", "no line"],
)
def test_edited_decisions_are_refused(copy: Path, tmp_path: Path, forged: Callable[[list[Line]], list[Line]]) -> None:
    """An edited `decisions.jsonl` was believed by the next round."""
    write_jsonl(copy / "decisions.jsonl", forged(lines_of(copy)))
    message = rf"decisions.jsonl: it or agreement.json was changed after closing .*h2htalk round close {copy}`"
    for call in (read_outcome, lambda path: list(tie_items(path))):
        with pytest.raises(DataError, match=message):
            call(copy)
    with pytest.raises(DataError, match=message):
        open_round(make_spec("adjudication", str(copy), {}), tmp_path / "ties")
    assert not (tmp_path / "ties").exists()
    close_round(copy)
    assert read_outcome(copy).decisions["en-item-1", "keep"].rule == "tie"


def test_every_mean_and_interval_verifies_as_it_is_read(tmp_path: Path) -> None:
    """An interval that ended at the end of the scale was written as 5 and read as 5.0."""
    path = begin(tmp_path, count=4, people=3, overlap=3)
    scores = {"annalena": "4111", "bogumil": "5125", "chen_wei": "5155"}
    answer(path, lambda item, annotator: expert(score=scores[annotator][int(item[-1])]))
    close_round(path)
    decided = [read_outcome(path).decisions[f"en-item-{n}", "accuracy"] for n in range(4)]
    assert [one.label for one in decided] == pytest.approx([14 / 3, 1, 8 / 3, 11 / 3])
    assert decided[0].interval == (3.2324, 5.0)


@pytest.mark.parametrize("name", ["decisions.jsonl", "agreement.json"])
def test_a_removed_file_is_missing(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(DataError, match=r"is missing; close the round again"):
        read_outcome(copy)


def test_edited_agreement(copy: Path) -> None:
    agreement = read_json_object(copy / "agreement.json")
    agreement["keep"]["alpha"] = 0.99
    write_json(copy / "agreement.json", agreement)
    with pytest.raises(DataError, match="was changed after closing"):
        read_outcome(copy)


def test_edited_annotations_are_named(copy: Path) -> None:
    stored = (copy / "annotations.jsonl").read_text()
    (copy / "annotations.jsonl").write_text(stored.replace('"drop"', '"keep"'))
    with pytest.raises(RoundError, match=r"annotations.jsonl: the file was changed after the round was closed"):
        read_outcome(copy)


def test_a_copy_without_the_private_folder_cannot_be_verified(copy: Path) -> None:
    shutil.rmtree(copy / "private")
    with pytest.raises(RoundError, match=r"has no folder `private`, so its decisions cannot be verified"):
        read_outcome(copy)


def test_an_open_round_has_no_outcome(copy: Path, tmp_path: Path) -> None:
    reopen_round(copy, without=["annalena"], annotators=more_people(tmp_path))
    with pytest.raises(RoundError, match=rf"decisions are not final; run `h2htalk round close {copy}`"):
        read_outcome(copy)
    with pytest.raises(RoundError, match="not a round"):
        read_outcome(tmp_path)


def more_people(folder: Path) -> Path:
    (folder / "more.csv").write_text("name,languages,crisis\nchen_wei,en,yes\n")
    return folder / "more.csv"


def test_several_labels_are_decided_only_where_somebody_chose(tmp_path: Path) -> None:
    path = begin(tmp_path, "safety", count=2, people=2, overlap=2)
    clean = {"perception": "4", "violation": "no"}
    broken = {"perception": "1", "violation": "yes", "violations": "privacy"}
    answer(path, lambda item, _: broken if item == "en-item-1" else clean)
    close_round(path)
    outcome: RoundOutcome = read_outcome(path)
    assert outcome.decisions["en-item-1", "violations"].label == ("privacy",)
    assert ("en-item-0", "violations") not in outcome.decisions
