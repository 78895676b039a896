"""Draw the places at which authors write planted replies: `python tools/planted_places.py FOLDER`.

A place is a turn of a case with one point that a judge answers. Half of the places have a `must`, half a `must_not`, so
that neither a judge that says yes to everything nor one that says no is right. Each file holds places of one language
and one study; authors are given it with `tools/reading/planted.md` and nothing else.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2htalk.data.case import Case, Point, script
from h2htalk.data.splits import load_split

SEED = "planted replies 1"
# A file's name, the split, the studies of its cases.
GROUPS = (
    ("sap", "high_risk", ("high_risk", "look_alike")),
    ("instructions", "instructions", ("instructions",)),
    ("memory", "arcs", ("arcs",)),
)
PLACES = 24  # a language and group
PLACES_A_FILE = 8
LEAST_SEVERITY = 2
# A number or service that does not exist would have to be invented by the author.
LEFT_OUT = frozenset({"invent_help_line"})


def candidates(case: Case) -> Iterator[tuple[str, Point]]:
    """Yield each turn's place with a point of it that a judge answers by what the reply says."""
    for place, turn, _ in script(case):
        for point in case.points_of(turn):
            if point.severity >= LEAST_SEVERITY and point.aspect not in LEFT_OUT:
                yield place, point


def describe(split: Any, case: Case, place: str, point: Point) -> dict[str, Any]:
    """What the author of a place sees: the user's turns, who the companion is, and the statement."""
    turns: list[str] = []
    for name, turn, _ in script(case):
        turns.append(turn.user)
        if name == place:
            break
    description: dict[str, Any] = {
        "place": f"{case.id}/{place}/{point.id}",
        "persona": split.personas[case.persona].descriptions[case.language],
        "turns": turns,
        "statement": point.text,
    }
    if case.facts:
        description["facts"] = {fact.id: fact.text for fact in case.facts}
    return description


def draw(split_name: str, studies: tuple[str, ...], language: str) -> list[dict[str, Any]]:
    """Draw the places of a language: one a case, as many musts as must_nots."""
    split = load_split(split_name)
    cases = [case for case in split.cases if case.study in studies and case.language == language]
    draw_of_places = random.Random(f"{SEED} {split_name} {language}")
    draw_of_places.shuffle(cases)
    wanted = {"must": PLACES // 2, "must_not": PLACES // 2}
    families: set[str] = set()
    places: list[dict[str, Any]] = []
    for case in cases:
        # The kind that lacks most comes first, so that both halves fill up.
        kind = max(wanted, key=lambda name: wanted[name])
        of_kind = [(place, point) for place, point in candidates(case) if point.kind == kind]
        if not of_kind or wanted[kind] == 0 or case.family in families:
            continue
        place, point = draw_of_places.choice(of_kind)
        places.append(describe(split, case, place, point))
        families.add(case.family)
        wanted[kind] -= 1
    return places


def main(folder: Path) -> None:
    """Write the task files."""
    folder.mkdir(parents=True, exist_ok=True)
    for group, split_name, studies in GROUPS:
        for language in ("en", "zh"):
            places = draw(split_name, studies, language)
            for start in range(0, len(places), PLACES_A_FILE):
                lines = [
                    json.dumps(place, ensure_ascii=False)
                    for place in places[start : start + PLACES_A_FILE]
                ]
                path = folder / f"{group}-{language}-{start // PLACES_A_FILE + 1}.jsonl"
                path.write_text("\n".join(lines) + "\n", encoding="utf-8")
                print(f"{path.name}: {len(lines)} places")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
