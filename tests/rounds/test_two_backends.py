"""The same people saying the same things give the same decisions, whether on ballots or on a server."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argilla_double import ArgillaDouble
from argilla_made import named, running, spec_in
from ballot_rounds import csv_rows, write_csv_rows

from h2htalk.data.files import read_jsonl
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.round import open_round
from h2htalk.rounds.spreadsheets.files import read_ballot_round

ITEMS = [
    {"id": f"i-{n:02}", "language": "en", "prompt": f"Good morning, day {n}.", "crisis": n % 9 == 0}
    for n in range(40)
]
# Who reads English in `spec_in`; ben wants no crises.
VOTERS = {"ann": 0.95, "ben": 0.6, "cem": 0.75}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ArgillaDouble]:
    with running(monkeypatch) as double:
        yield double


def said(item: str, voter: str) -> dict[str, Any]:
    """What a voter of known skill says of an item; some skip."""
    draw = random.Random(f"{item}/{voter}")
    if draw.random() < 0.05:
        return {}
    right = draw.random() < VOTERS[voter]
    truth = ("keep", "drop")[int(item[2:]) % 2]
    other = {"keep": "drop", "drop": "keep"}[truth]
    subtask = "dialogue_base" if right else draw.choice(["dialogue_emotion", "none"])
    return {"subtask": subtask, "keep": truth if right else other, "quality": draw.randint(1, 5)}


def on_ballots(folder: Path) -> RoundFolder:
    open_round(spec_in(folder, ITEMS, backend="ballots", overlap=2), folder / "round")
    round = RoundFolder(folder / "round")
    known = read_ballot_round(round)
    for ballot in known.ballots:
        path = known.folder / f"{ballot.stem}.csv"
        rows = csv_rows(path)
        for row, seat in zip(rows, ballot.seats, strict=True):
            row.update(
                {key: str(value) for key, value in said(seat.item, ballot.voter.name).items()}
                or {"skip": "yes"}
            )
        write_csv_rows(path, rows)
    return round


def on_argilla(folder: Path, server: ArgillaDouble, seated: dict[str, set[str]]) -> RoundFolder:
    open_round(spec_in(folder, ITEMS, overlap=2), folder / "round")
    round = RoundFolder(folder / "round")
    for dataset in server.datasets.values():
        for item, voters in seated.items():
            if named(round, item) in dataset["records"]:
                for voter in voters:
                    values = said(item, voter)
                    state = "submitted" if values else "discarded"
                    server.respond(dataset["name"], named(round, item), voter, status=state, **values)
    return round


def test_ballots_and_a_server_come_to_the_same_decisions(server: ArgillaDouble, tmp_path: Path) -> None:
    paper = on_ballots(tmp_path / "paper")
    names = {voter.id: voter.name for voter in paper.voters()}
    seated: dict[str, set[str]] = {}
    for seat in paper.waves()[0].seats:
        seated.setdefault(seat.item, set()).add(names[seat.voter])
    online = on_argilla(tmp_path / "online", server, seated)
    for round in (paper, online):
        close_round(round.path, early=True)
    one, other = ([record for _, record in read_jsonl(r.path / "decisions.jsonl")] for r in (paper, online))
    assert one == other
    assert {record["how"] for record in one} >= {"majority", "mean", "tie"}
    agreement = [(r.path / "agreement.json").read_bytes() for r in (paper, online)]
    assert agreement[0] == agreement[1]
