"""The outcome of a closed round: what other rounds and a release believe."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from chain_made import candidate, write
from rounds_made import adjudicated, answer, begin, decisions, expert, split

from h2htalk.data.files import read_json_object, read_jsonl, write_json, write_jsonl
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.adjudication import tie_items
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.round_folder import RoundFolder, items_fingerprint
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
    assert {key: one.to_dict() for key, one in outcome.decisions.items()} == decisions(closed)
    assert [outcome.decisions[f"en-item-{n}", "keep"].label for n in range(3)] == ["keep", None, "drop"]
    assert outcome.annotations == RoundFolder(closed).annotations()
    assert outcome.agreement.keys() == {"accuracy", "consistency", "domain_compliance", "keep"}
    assert outcome.sources == {}


def edited(number: int, **changed: object) -> Callable[[list[Line]], list[Line]]:
    return lambda lines: [line | (changed if at == number else {}) for at, line in enumerate(lines)]


def swapped(lines: list[Line]) -> list[Line]:
    """The votes on two items in each other's place, hashes included."""
    item = {"item": lines[0]["item"]}, {"item": lines[4]["item"]}
    return [lines[4] | item[0], *lines[1:4], lines[0] | item[1], *lines[5:]]


@pytest.mark.parametrize(
    ("forged", "number"),
    [
        pytest.param(edited(3, label="drop"), 4, id="another label"),
        pytest.param(edited(7, label="keep", rule="majority", tied=[]), 8, id="a tie decided"),
        pytest.param(edited(0, support=20, votes=20), 1, id="more votes"),
        pytest.param(edited(0, label=5), 1, id="another mean"),
        pytest.param(edited(2, mac=""), 3, id="no hash"),
        pytest.param(edited(2, mac="é" * 32), 3, id="a hash that is none"),
        pytest.param(edited(2, question="keep"), 3, id="another question"),
        pytest.param(edited(2, question="violation"), 3, id="a question of other rounds"),
        pytest.param(edited(2, item="en-item-9"), 3, id="an unknown item"),
        pytest.param(edited(2, more=1), 3, id="another field"),
        pytest.param(edited(2, votes="2"), 3, id="text for a number"),
        pytest.param(swapped, 1, id="items exchanged"),
        pytest.param(lambda lines: [{"item": "x"}, *lines], 1, id="an inserted line"),
    ],
)
def test_a_forged_decision_is_refused_with_file_and_line(
    copy: Path, tmp_path: Path, forged: Callable[[list[Line]], list[Line]], number: int
) -> None:
    """A forged `decisions.jsonl` was believed by the next round."""
    write_jsonl(copy / "decisions.jsonl", forged(lines_of(copy)))
    for call in (read_outcome, lambda path: list(tie_items(path))):
        with pytest.raises(DataError, match=rf"decisions.jsonl:{number}: .*h2htalk round close {copy}`"):
            call(copy)
    with pytest.raises(DataError, match=rf"decisions.jsonl:{number}: "):
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


def test_the_order_of_lines_does_not_matter(copy: Path, closed: Path) -> None:
    write_jsonl(copy / "decisions.jsonl", reversed(lines_of(copy)))
    assert read_outcome(copy).decisions == read_outcome(closed).decisions


@pytest.mark.parametrize("kept", [slice(0, -1), slice(0, 3), slice(0, 0)])
def test_a_removed_decision_is_missing(copy: Path, kept: slice) -> None:
    write_jsonl(copy / "decisions.jsonl", lines_of(copy)[kept])
    with pytest.raises(DataError, match=r"decisions.jsonl: the decision on .* is missing; close the round"):
        read_outcome(copy)


@pytest.mark.parametrize("name", ["decisions.jsonl", "agreement.json"])
def test_a_removed_file_is_missing(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(DataError, match=rf"{name}: .*is missing.*; close the round again"):
        read_outcome(copy)


def test_forged_agreement(copy: Path) -> None:
    agreement = read_json_object(copy / "agreement.json")
    agreement["keep"]["alpha"] = 0.99
    write_json(copy / "agreement.json", agreement)
    with pytest.raises(DataError, match=r"agreement.json: is missing, or was not written by closing"):
        read_outcome(copy)
    close_round(copy)
    read_outcome(copy)


def test_hashes_of_another_round_do_not_fit(copy: Path, tmp_path: Path) -> None:
    """The same answers, under the salt of somebody who has none of this round."""
    other = begin(tmp_path / "other", count=3, people=2, overlap=2)
    answer(other, split("keep"))
    close_round(other)
    shutil.copy(other / "decisions.jsonl", copy)
    with pytest.raises(DataError, match=r"decisions.jsonl:1: "):
        read_outcome(copy)


def test_edited_annotations_are_named(copy: Path) -> None:
    stored = (copy / "annotations.jsonl").read_text()
    (copy / "annotations.jsonl").write_text(stored.replace('"drop"', '"keep"'))
    with pytest.raises(RoundError, match=r"annotations.jsonl: the file was changed after the round was closed"):
        read_outcome(copy)


def test_another_text_under_the_same_decision(copy: Path) -> None:
    """Who edits an item, and the fingerprint beside it, cannot make people's decision one about another text."""
    text = (copy / "items.jsonl").read_text().replace("My tomatoes", "My secret")
    (copy / "items.jsonl").write_text(text)
    facts = read_json_object(copy / "round.json")
    facts["items_sha256"] = items_fingerprint(one.to_dict() for one in RoundFolder(copy).items())
    write_json(copy / "round.json", facts)
    with pytest.raises(DataError, match=r"decisions.jsonl:1: "):
        read_outcome(copy)


def test_another_source_under_the_same_decision(tmp_path: Path) -> None:
    spec = make_spec("expert", str(write(tmp_path / "c.jsonl", [candidate("c-1", "accept")])), {})
    path = tmp_path / "round"
    open_round(spec, path)
    answer_placeholders(path)
    assert read_outcome(path).sources == {"c-1": candidate("c-1", "accept")}
    folder, facts = RoundFolder(path), read_json_object(path / "round.json")
    sha256 = folder.write_sources({"c-1": candidate("c-1", "accept") | {"licence": "CC0-1.0"}})
    write_json(path / "round.json", facts | {"sources_sha256": sha256})
    with pytest.raises(DataError, match=r"decisions.jsonl:1: "):
        read_outcome(path)


def answer_placeholders(path: Path) -> None:
    names = tuple(annotator.name for annotator in RoundFolder(path).annotators())
    answer(path, lambda *_: expert(), only=names)
    close_round(path)


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


def test_several_labels_are_missing_only_where_somebody_chose(tmp_path: Path) -> None:
    path = begin(tmp_path, "safety", count=2, people=2, overlap=2)
    clean = {"perception": "4", "violation": "no"}
    broken = {"perception": "1", "violation": "yes", "violations": "privacy"}
    answer(path, lambda item, _: broken if item == "en-item-1" else clean)
    close_round(path)
    outcome: RoundOutcome = read_outcome(path)
    assert outcome.decisions["en-item-1", "violations"].label == ("privacy",)
    assert ("en-item-0", "violations") not in outcome.decisions
    write_jsonl(path / "decisions.jsonl", [line for line in lines_of(path) if line["question"] != "violations"])
    with pytest.raises(DataError, match="decision on 'violations' of 'en-item-1' is missing"):
        read_outcome(path)


def test_a_forged_adjudication_is_refused(copy: Path, tmp_path: Path) -> None:
    """Whoever wrote a line into `adjudications.jsonl` decided the tie at the next closing."""
    close_round(copy, adjudication=adjudicated(copy, tmp_path / "ties", lambda *_: {"label": "drop"}))
    assert read_outcome(copy).decisions["en-item-1", "keep"].label == "drop"
    (line,) = (json.loads(line) for line in (copy / "adjudications.jsonl").read_text().splitlines())
    for forged in (line | {"label": "keep"}, line | {"tie": "en-item-0#keep"}, line | {"mac": ""}):
        write_jsonl(copy / "adjudications.jsonl", [forged])
        with pytest.raises(DataError, match=r"adjudications.jsonl:1: .*round close .* --adjudication FOLDER"):
            close_round(copy)


def test_forged_decisions_of_an_adjudication_are_not_applied(copy: Path, tmp_path: Path) -> None:
    ties = adjudicated(copy, tmp_path / "ties", lambda *_: {"label": "drop"})
    write_jsonl(ties / "decisions.jsonl", [line | {"label": "keep"} for line in lines_of(ties)])
    with pytest.raises(DataError, match=r"ties/decisions.jsonl:1: "):
        close_round(copy, adjudication=ties)
    assert not (copy / "adjudications.jsonl").exists()
