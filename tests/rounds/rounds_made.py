"""Rounds with spreadsheets for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spreadsheet_rounds import item, rows_of, spreadsheets, workbook_path, write_rows

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import Status

# item, annotator name -> cells to fill in
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
    annotators = people(folder / "people.csv", *NAMES[: given.pop("people", 4)])
    options = {"annotators": str(annotators), **given}
    open_round(make_spec(kind, str(folder / "items.jsonl"), options), folder / "round")
    return folder / "round"


def answer(path: Path, typed: Typist, only: tuple[str, ...] = NAMES) -> None:
    """Fill in every empty row of the spreadsheets."""
    for spreadsheet in spreadsheets(RoundFolder(path)):
        if spreadsheet.annotator.name in only:
            file = workbook_path(RoundFolder(path), spreadsheet.stem)
            rows = rows_of(file)
            for row, assignment in zip(rows, spreadsheet.assignments, strict=True):
                new = typed(assignment.item, spreadsheet.annotator.name)
                if not any(row.get(column) for column in ("skip", *new)):
                    row.update(new)
            write_rows(file, rows)


def expert(keep: str = "keep", score: str = "4") -> dict[str, str]:
    return {"accuracy": score, "consistency": score, "domain_compliance": score, "keep": keep}


def crowd(keep: str = "keep", subtask: str = "dialogue_base") -> dict[str, str]:
    return {"subtask": subtask, "keep": keep, "quality": "4"}


def split(*labels: str, only: str = "", as_typed: Callable[[str], Mapping[str, str]] = expert) -> Typist:
    """The first annotator of an item gives the first label, the second the second; later ones give the last.

    With `only`, all annotators of other items give the last label.
    """
    seen: dict[str, list[str]] = {}

    def typed(name: str, annotator: str) -> Mapping[str, str]:
        theirs = seen.setdefault(name, [])
        if annotator not in theirs:
            theirs.append(annotator)
        at = len(labels) - 1 if only and name != only else theirs.index(annotator)
        return as_typed(labels[min(at, len(labels) - 1)])

    return typed


def adjudicated(path: Path, out: Path, typed: Typist, judges: int = 1) -> Path:
    """A closed adjudication of a round's ties."""
    annotators = people(out.with_suffix(".csv"), *NAMES[:judges])
    options = {"annotators": str(annotators), "overlap": judges}
    open_round(make_spec("adjudication", str(path), options), out)
    answer(out, typed)
    close_round(out, force=True)
    return out


def events(path: Path, name: str) -> list[dict[str, Any]]:
    return [event for event in RoundFolder(path).events() if event["event"] == name]


def progress_of(status: Status) -> dict[str, tuple[int, int]]:
    """Annotator name -> completed and skipped items."""
    rows: dict[str, tuple[int, int]] = {}
    for row in status.progress:
        if row.annotator:
            done, skipped = rows.get(row.annotator, (0, 0))
            rows[row.annotator] = (done + row.done, skipped + row.skipped)
    return rows


def decisions(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["item"], r["question"]): r for _, r in read_jsonl(path / "decisions.jsonl")}


def files_of(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file() and p.suffix != ".lock"}
