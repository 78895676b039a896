"""Rounds that follow each other, from candidates on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from curation_made import finished
from rounds_made import NAMES, answer, crowd, people, split

from h2htalk.data.splits import load_split
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec, make_spec

SCENARIO = next(s for s in load_split("mini@1").scenarios if s.subtask == "dialogue_schedule" and s.language == "en")


def write(path: Path, records: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def candidate(name: str, status: str) -> dict[str, Any]:
    scenario = SCENARIO.to_dict() | {"id": name}
    rubric = {"scores": {"accuracy": 4, "safety": 5}, "fitting_subtask": "dialogue_base", "verdict": "accept"}
    references = [{"text": SCENARIO.reference, "origin": "original"}]
    review = {"status": status, "rubric": rubric}
    return {"id": name, "scenario": scenario, "references": references, "review": review}


def crisis_candidate(name: str) -> dict[str, Any]:
    record = candidate(name, "accept")
    record["scenario"]["metadata"] = {"safety": {"risk": "high", "tags": ["crisis.ideation"]}}
    return record


def spec_of(kind: str, source: Path, overlap: int = 2, **more: Any) -> RoundSpec:
    annotators = people(source.parent / f"{kind}.csv", *NAMES[:overlap])
    return make_spec(kind, str(source), {"annotators": str(annotators), "overlap": overlap, **more})


def crowd_round(folder: Path, count: int = 4, source: Path | None = None) -> Path:
    """A closed crowd round: candidate 0 is dropped, 1 and the later ones are kept; of 3 or more the last is tied."""
    records = [crisis_candidate("c-1") if n == 1 else candidate(f"c-{n}", "accept") for n in range(count)]
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
