"""Annotators whose answers are removed: nothing that is decided rests on them, and nothing is lost."""

from __future__ import annotations

import csv
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from argilla_double import DATASET, SAYS, ArgillaDouble, named
from argilla_double import opened as opened_on_server
from command_line import h2htalk_here
from kills import interrupted_at
from rounds_made import NAMES, answer, begin, decisions, events, expert, files_of, people, progress_of

from h2htalk.errors import RoundError
from h2htalk.rounds.lifecycle import close_round, remove_annotator, reopen_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder

WHY = "the same answer to everything"
RESULTS = ("decisions.jsonl", "agreement.json", "annotator_statistics.csv")


def spammed(folder: Path, **given: Any) -> Path:
    """An open round of three annotators an item: two keep all but one, bogumil drops every item."""
    path = begin(folder, **{"overlap": 3, "people": 3, **given})

    def typed(name: str, who: str) -> dict[str, str]:
        return expert("drop", "1") if who == "bogumil" else expert("drop" if name == "en-item-0" else "keep", "4")

    answer(path, typed)
    return path


def id_of(path: Path, name: str = "bogumil") -> str:
    return next(one.id for one in RoundFolder(path).annotators() if one.name == name)


def means(path: Path) -> set[tuple[float, int]]:
    """Mean accuracy and number of ratings of the items."""
    return {(r["label"], r["votes"]) for (_, name), r in decisions(path).items() if name == "accuracy"}


def results(path: Path) -> dict[str, str]:
    return {name: (path / name).read_text() for name in RESULTS}


def test_removed_answers_do_not_decide(tmp_path: Path) -> None:
    """After `reopen --without bogumil` his answers still decided."""
    path = spammed(tmp_path)
    round_status(path)
    lines = (path / "annotations.jsonl").read_bytes()
    status, messages = remove_annotator(path, "bogumil", why=WHY)
    assert messages == ["the annotations of bogumil on 4 items do not count any more"]
    assert (status.completed, status.missing, len(status.exhausted)) == (8, {}, 4)
    assert "bogumil" not in " ".join(progress_of(status))
    (event,) = events(path, "removed")
    assert (event["annotator"], event["why"], event["closed"]) == (id_of(path), WHY, False)
    close_round(path)
    assert means(path) == {(4.0, 2)}
    assert json.loads((path / "agreement.json").read_text())["keep"]["alpha"] == 1.0
    assert id_of(path) not in (path / "annotator_statistics.csv").read_text()
    with (path / "private" / "payment.csv").open() as file:
        paid = {row["annotator"]: row["items completed"] for row in csv.DictReader(file)}
    assert paid == dict.fromkeys(NAMES[:3], "4")
    assert (path / "annotations.jsonl").read_bytes() == lines
    outcome = read_outcome(path)
    assert id_of(path) not in {annotator for _, annotator, _ in outcome.annotations}


def test_a_closed_round_is_decided_anew(tmp_path: Path) -> None:
    path = spammed(tmp_path, people=4)
    answer(path, lambda *_: expert())
    close_round(path)
    before, votes = results(path), means(path)
    status, messages = remove_annotator(path, "bogumil", why=WHY)
    assert (status.state, RoundFolder(path).state) == ("closed", "closed")
    assert messages[1].startswith("the decisions were made anew; earlier results were renamed to decisions.before-2")
    assert means(path) != votes
    assert all(label == 4.0 for label, _ in means(path))
    assert (path / "decisions.before-2.jsonl").read_text() == before["decisions.jsonl"]
    read_outcome(path)
    close_round(path)
    assert results(path)["decisions.jsonl"] != before["decisions.jsonl"]
    # Undone, the results are those of before; nothing is overwritten.
    status, messages = remove_annotator(path, "bogumil", undo=True)
    assert messages[0] == "the annotations of bogumil on 3 items count again"
    assert results(path) == before
    assert len(list(path.glob("decisions.before*"))) == 2
    assert events(path, "restored")[0]["annotator"] == id_of(path)
    read_outcome(path)


def test_a_removal_can_be_undone_in_an_open_round(tmp_path: Path) -> None:
    """Also if the list of annotators was written in between, and somebody had left before."""
    path = spammed(tmp_path, people=4, overlap=4)
    reopen_round(path, without=["chen_wei"])
    listed = RoundFolder(path).annotators()
    for name in ("bogumil", "chen_wei"):
        remove_annotator(path, name, why=WHY)
    reopen_round(path, annotators=people(tmp_path / "more.csv", "emeka_o", "bogumil"))
    assert {one.name for one in RoundFolder(path).annotators() if one.active} == {"annalena", "daraigh", "emeka_o"}
    for name in ("bogumil", "chen_wei"):
        remove_annotator(path, name, undo=True)
    assert RoundFolder(path).annotators()[:4] == listed
    assert round_status(path).completed == 16


# Writes: four renamed files, the event, and the results.
@pytest.mark.parametrize("write", [0, 4, 5])
@pytest.mark.parametrize("undo", [False, True])
def test_an_interrupted_removal_can_be_repeated(tmp_path: Path, write: int, undo: bool) -> None:
    path = spammed(tmp_path)
    close_round(path)
    kept = (path / "decisions.jsonl").read_bytes()
    if undo:
        remove_annotator(path, "bogumil", why=WHY)
    interrupted_at(write, partial(remove_annotator, path, "bogumil", why=WHY, undo=undo))
    remove_annotator(path, "bogumil", why=WHY, undo=undo)
    assert means(path) == ({(3.0, 3)} if undo else {(4.0, 2)})
    assert (path / "decisions.before-2.jsonl").read_bytes() == kept
    read_outcome(path)
    again = files_of(path)
    remove_annotator(path, "bogumil", why=WHY, undo=undo)
    assert files_of(path) == again


def test_refusals(tmp_path: Path) -> None:
    path = spammed(tmp_path)
    before = files_of(path)
    with pytest.raises(RoundError, match="unknown annotator nobody; choose from annalena"):
        remove_annotator(path, "nobody", why=WHY)
    with pytest.raises(RoundError, match="give the reason with --why"):
        remove_annotator(path, "bogumil", why=" ")
    assert files_of(path) == before
    done = h2htalk_here("round", "remove-annotator", path, "bogumil", "--why", WHY)
    assert (done.returncode, "annotations of bogumil on 0 items" in done.stdout) == (0, True)
    assert "bogumil" not in (path / "events.jsonl").read_text()


def test_quality_warnings_before_closing(tmp_path: Path) -> None:
    """They were written when a round was closed, when it is too late to ask others."""
    path = begin(tmp_path, overlap=3, people=3, count=30)
    answer(path, lambda name, who: expert("drop" if who == "bogumil" or name == "en-item-0" else "keep"))
    warnings = [note for note in round_status(path).notes if note.startswith("look at the answers of bogumil: ")]
    assert any("slight agreement: on 30 items, keep agrees" in warning for warning in warnings)
    close_round(path)
    assert "slight agreement: on 30 items, keep agrees" in (path / "annotator_statistics.csv").read_text()
    assert set(warnings) <= set(round_status(path).notes)
    remove_annotator(path, "bogumil", why=WHY)
    assert not [note for note in round_status(path).notes if "look at the answers of bogumil" in note]


def test_on_a_server(server: ArgillaDouble, tmp_path: Path) -> None:
    """The server counts a removed annotator's responses, so it offers their items to nobody else."""
    round = opened_on_server(tmp_path)
    for name in ("ann", "cem"):
        server.respond(DATASET, named(round, "a"), name, **SAYS)
    server.respond("round-set1-zh-01", named(round, "d"), "cem", **SAYS)
    assert round_status(round.path).completed == 3
    remove_annotator(round.path, "cem", why=WHY)
    # Neither a changed nor a new response, nor an invalid one counts.
    server.respond(DATASET, named(round, "a"), "cem", **{**SAYS, "keep": "drop"})
    server.respond(DATASET, named(round, "b"), "cem", **SAYS)
    server.respond(DATASET, named(round, "c </script>"), "cem", **{**SAYS, "quality": 9})
    status = round_status(round.path)
    assert (status.new, status.completed, status.by_item["a"], status.mistakes) == (0, 1, 1, ())
    assert not [note for note in status.notes if "annotators who left" in note]
    reopen_round(round.path)
    second = server.dataset("round-set2-en-01")["records"]
    assert named(round, "a") in second
    server.respond("round-set2-en-01", named(round, "a"), "ben", **SAYS)
    assert round_status(round.path).by_item["a"] == 2
    remove_annotator(round.path, "cem", undo=True)
    status = round_status(round.path)
    assert (status.by_item["a"], status.by_item["b"], status.by_item["d"]) == (3, 1, 1)
