"""Rounds with spreadsheets for tests, and rounds that follow each other, from candidates on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec, make_spec
from h2htalk.rounds.status import Status
from support.curations import finished
from support.spreadsheet_rounds import item, rows_of, spreadsheets, workbook_path, write_rows

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
    options = {"annotators": str(annotators), "planted": False, **given}
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


def expert(keep: str = "keep", score: str = "4", harmful: str = "no") -> dict[str, str]:
    ratings = dict.fromkeys(("accuracy", "consistency", "domain_compliance"), score)
    return {**ratings, "keep": keep, "harmful": harmful}


def crowd(
    keep: str = "keep", subtask: str = "dialogue_base", harmful: str = "no"
) -> dict[str, str]:
    return {"subtask": subtask, "keep": keep, "quality": "4", "harmful": harmful}


def split(
    *labels: str, only: str = "", as_typed: Callable[[str], Mapping[str, str]] = expert
) -> Typist:
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
    return {
        str(p.relative_to(path)): p.read_bytes()
        for p in path.rglob("*")
        if p.is_file() and p.suffix != ".lock"
    }


SCENARIO = next(
    s
    for s in load_split("mini@1").scenarios
    if s.subtask == "dialogue_schedule" and s.language == "en"
)


def write(path: Path, records: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def candidate(name: str, status: str) -> dict[str, Any]:
    scenario = SCENARIO.to_dict() | {"id": name}
    rubric = {
        "scores": {"accuracy": 4, "safety": 5},
        "fitting_subtask": "dialogue_base",
        "verdict": "accept",
    }
    references = [{"text": SCENARIO.reference, "origin": "original"}]
    review = {"status": status, "rubric": rubric}
    return {"id": name, "scenario": scenario, "references": references, "review": review}


def crisis_candidate(name: str) -> dict[str, Any]:
    record = candidate(name, "accept")
    record["scenario"]["metadata"] = {"safety": {"risk": "high", "tags": ["crisis.ideation"]}}
    return record


def spec_of(kind: str, source: Path, overlap: int = 2, **more: Any) -> RoundSpec:
    annotators = people(source.parent / f"{kind}.csv", *NAMES[:overlap])
    return make_spec(
        kind,
        str(source),
        {"annotators": str(annotators), "overlap": overlap, "planted": False, **more},
    )


def crowd_round(folder: Path, count: int = 4, source: Path | None = None) -> Path:
    """A closed crowd round: candidate 0 is dropped, 1 and the later ones are kept; of 3 or more the last is tied."""
    records = [
        crisis_candidate("c-1") if n == 1 else candidate(f"c-{n}", "accept") for n in range(count)
    ]
    workspace = finished(folder / "work", "review", records).path if source is None else source
    open_round(spec_of("crowd", workspace), folder / "crowd")
    tie = split("keep", "drop", as_typed=crowd)

    def typed(item: str, annotator: str) -> Mapping[str, str]:
        if item == f"c-{count - 1}":
            return tie(item, annotator)
        return crowd("drop" if item == "c-0" else "keep")

    answer(folder / "crowd", typed)
    close_round(folder / "crowd")
    return folder / "crowd"


def items_of(path: Path) -> dict[str, Item]:
    return {item.id: item for item in RoundFolder(path).items()}


def closed(path: Path, typed: Mapping[str, str]) -> Path:
    answer(path, lambda *_: typed)
    close_round(path)
    return path
