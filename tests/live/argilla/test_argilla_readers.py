"""Planted items on a real server: people answer them like the others, and by them count as readers or do not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from h2htalk.rounds.annotators import annotator_id
from h2htalk.rounds.argilla.datasets import FIELD, displayed
from h2htalk.rounds.lifecycle import close_round, open_round, round_status
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.reads import item_hashes, reads_of_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from support.live.argilla_server import Stack, signed_in
from support.live.planted_rounds import CARELESS, ITEMS, NAMES, answers_to, written_items
from support.live.real_servers import write_annotators

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


def looks(record: Mapping[str, Any]) -> str:
    """What an annotator sees of a record but for the words of its item, and for ids and times."""
    data = json.loads(record["fields"][FIELD]["data"])
    own = {
        name: value
        for name, value in record.items()
        if name not in ("id", "fields", "inserted_at", "updated_at")
    }
    own["external_id"] = len(str(record["external_id"]))
    notes = {name: value for name, value in data.items() if name not in ("turns", "reference")}
    return json.dumps([own, sorted(data), notes], sort_keys=True)


def test_who_misses_planted_items_is_no_reader_and_nothing_tells_them_apart(
    stack: Stack, tmp_path: Path
) -> None:
    spec = RoundSpec(
        kind="crowd",
        items=str(written_items(tmp_path / "items.jsonl")),
        where="argilla",
        annotators=str(write_annotators(tmp_path / "people.csv", NAMES)),
        overlap=len(NAMES),
        care=Care(session_items=20),
    )
    open_round(spec, tmp_path / "readers")
    round = RoundFolder(tmp_path / "readers")
    items = {json.dumps(displayed(item)): item for item in round.items()}
    planted = {item.id for item in round.items() if item.planted}
    for annotator in signed_in(
        stack.url, round.private / "argilla_logins.csv", dict.fromkeys(NAMES, 1.0)
    ):
        (dataset,) = annotator.datasets("readers")
        given: list[tuple[str, Mapping[str, Any], str]] = []
        seen: dict[str, str] = {}
        for record in annotator.pending(dataset):
            item = items[json.dumps(record["fields"][FIELD])]
            seen[item.id] = looks(record)
            given.append((record["id"], answers_to(item, annotator.name), "submitted"))
        met = planted & seen.keys()
        assert (len(seen), len(met)) == (ITEMS + 2, 2)
        assert {seen[name] for name in met} == {
            look for name, look in seen.items() if name not in planted
        }
        assert "planted" not in "".join(seen.values())
        annotator.hand_in(given)

    status = round_status(round.path)
    assert (status.items, status.completed, status.missing, status.mistakes) == (
        ITEMS,
        ITEMS * len(NAMES),
        {},
        (),
    )
    careless = annotator_id(CARELESS, round.salt())
    missed = f"{careless} missed 2 of 2 harmful ones"
    assert (
        f"planted items: 2 of 3 annotators count as readers; {missed}; their votes count"
        in status.notes
    )
    close_round(round.path)
    reads = {read.item: read for read in reads_of_round(read_outcome(round.path))}
    plain = {item.id: item for item in round.items() if not item.planted}
    assert reads.keys() == plain.keys()
    assert {(read.people, read.gates) for read in reads.values()} == {
        (2, ("companion_harm", "personal_data"))
    }
    assert {name: read.passages for name, read in reads.items()} == {
        name: item_hashes(item) for name, item in plain.items()
    }
    # What somebody found is looked at, whether they count or not.
    assert {name for name, read in reads.items() if read.findings} == {"plain-0"}
