"""Rounds with ballots, opened and answered in a few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ballot_rounds import csv_rows, item, write_csv_rows

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.round import open_round
from h2htalk.rounds.spec import make_spec
from h2htalk.rounds.spreadsheets.files import read_ballot_round

# item, voter name -> what is typed into the row
Typist = Callable[[str, str], Mapping[str, str]]
NAMES = ("annalena", "bogumil", "chen_wei", "daraigh", "emeka_o", "fangfang")


def people(path: Path, *names: str) -> Path:
    lines = ["name,languages,crisis", *(f"{name},en,yes" for name in names)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def begin(folder: Path, kind: str = "expert", count: int = 4, **given: Any) -> Path:
    """An open round on `count` items."""
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / "items.jsonl", [item(n) for n in range(count)])
    voters = people(folder / "people.csv", *NAMES[: given.pop("people", 4)])
    spec = make_spec(kind, str(folder / "items.jsonl"), {"voters": str(voters), **given})
    open_round(spec, folder / "round")
    return folder / "round"


def answer(path: Path, typed: Typist, only: tuple[str, ...] = NAMES) -> None:
    """Fill in every empty row of the CSV ballots, each voter their own."""
    known = read_ballot_round(RoundFolder(path))
    for ballot in known.ballots:
        if ballot.voter.name in only:
            file = known.folder / f"{ballot.stem}.csv"
            rows = csv_rows(file)
            for row, seat in zip(rows, ballot.seats, strict=True):
                new = typed(seat.item, ballot.voter.name)
                if not any(row[column] for column in ("skip", *new)):
                    row.update(new)
            write_csv_rows(file, rows)


def expert(keep: str = "keep", score: str = "4") -> dict[str, str]:
    return {"accuracy": score, "consistency": score, "domain_compliance": score, "keep": keep}


def decisions(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["item"], r["question"]): r for _, r in read_jsonl(path / "decisions.jsonl")}


def files_of(path: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(path)): p.read_bytes()
        for p in path.rglob("*")
        if p.is_file() and p.suffix != ".lock"
    }
