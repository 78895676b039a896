"""Check the authors' lines and write the package's places: `python tools/planted_records.py FOLDER [--write]`.

FOLDER holds what authors wrote by `tools/reading/planted.md`: `sap-en-1.jsonl` and so on, a line a place of
`tools/planted_places.py`. Prints every fault, with the place, and exits with 1 where there is one; with `--write`
writes the places to the package. A wording or a passage of filler with a fault is left out of its place; a place with
too few left is left out whole. Without FOLDER the package's own places are checked.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from h2htalk.benchmark.studies.points.phone_numbers import phone_numbers
from h2htalk.data.case import Case, Point, points_at, script
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.planted import (
    LEAST_FILLER,
    LEAST_WORDINGS,
    PLANTED_FOLDER,
    PlantedPlace,
    load_planted,
)
from h2htalk.data.records import as_json
from h2htalk.data.splits import load_split
from h2htalk.errors import DataError
from h2htalk.text.counting import count_length, count_sentences
from h2htalk.text.point_checks import decided
from h2htalk.text.tokens import tokenize

GROUPS = {
    "sap": "high_risk",
    "instructions": "instructions",
    "memory": "arcs",
}  # an author's file, the split
SHARED = 4  # a run of so many words is shared
MOST_SHARED = 2  # runs of words that the wordings of two places may share
MOST_SENTENCES = 3  # of a wording or a passage
LONGEST = {"en": 60, "zh": 100}  # words or characters of a wording or a passage
PROVENANCE = {"source": "model-assisted", "by": "other authors than the references'"}
# What no plain sentence holds: lists, brackets, marks of a page, addresses, pictures.
_ODD = re.compile(
    r"[\n\[\](){}<>*#|_（）【】]|https?:|www\.|^\s*(?:[-•]|\d+[.)])|[\u2600-\u27bf\U0001f000-\U0001faff]"
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_ENDS = re.compile(r"[.!?…。！？][\"'”’」』]?$")


@dataclass
class Checked:
    """What is left of a place, and the faults that were found."""

    place: PlantedPlace
    faults: list[str] = field(default_factory=list)

    def usable(self) -> bool:
        wordings = min(len(self.place.true_wordings), len(self.place.false_wordings))
        return wordings >= LEAST_WORDINGS and len(self.place.filler) >= LEAST_FILLER


def runs(text: str, language: str) -> frozenset[tuple[str, ...]]:
    """Every run of `SHARED` words of a text."""
    words = [token for token in tokenize(text, language) if any(map(str.isalnum, token))]
    return frozenset(
        tuple(words[start : start + SHARED]) for start in range(len(words) - SHARED + 1)
    )


def faults_of_text(text: str, language: str, statement: str) -> Iterator[str]:
    """What is wrong with one wording or passage, read alone."""
    if not _ENDS.search(text.strip()) or text != text.strip():
        yield "does not end as a sentence does"
    if _ODD.search(text):
        yield "holds a bracket, a list, an address or a picture"
    if any(not _YEAR.fullmatch(number) for number in phone_numbers(text)):
        yield "holds a number to dial"
    if count_sentences(text) > MOST_SENTENCES:
        yield f"has more than {MOST_SENTENCES} sentences"
    if count_length(text, language) > LONGEST[language]:
        yield "is too long"
    if runs(text, language) & runs(statement, language):
        yield "shares a run of words with the statement"


def check(place: PlantedPlace, case: Case, point: Point) -> Checked:
    """Leave out of a place what has a fault."""
    faults: list[str] = []

    def sound(kind: str, texts: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
        kept: list[str] = []
        for text in texts:
            problems = list(faults_of_text(text, place.language, point.text))
            if decided(text, point.check) is not None:
                problems.append("is decided by code")
            for other in (*others, *kept):
                if runs(text, place.language) & runs(other, place.language):
                    problems.append(f"shares a run of words with {other!r}")
            faults.extend(f"{place.id}: {kind} {problem}: {text}" for problem in problems)
            if not problems:
                kept.append(text)
        return tuple(kept)

    true = sound("true wording", place.true_wordings, ())
    false = sound("false wording", place.false_wordings, true)
    filler = sound("filler", place.filler, (*true, *false))
    left = replace(place, true_wordings=true, false_wordings=false, filler=filler)
    checked = Checked(left, faults)
    if not checked.usable():
        faults.append(f"{place.id}: too few sound texts are left; the place is left out")
    return checked


def cases_of(split: str) -> dict[str, Case]:
    return {case.id: case for case in load_split(split).cases}


def find_point(cases: dict[str, Case], name: str) -> tuple[Case, str, Point]:
    """The case, the turn's place and the point of `CASE/PLACE/POINT`. Raises DataError where there is none."""
    case_id, place, point_id = name.split("/")
    case = cases.get(case_id)
    if case is not None and place in {at for at, *_ in script(case)}:
        for point in points_at(case, place):
            if point.id == point_id:
                return case, place, point
    raise DataError(f"{name}: no such point")


def read_authors(folder: Path, group: str) -> list[PlantedPlace]:
    """Read what authors wrote for the cases of one split."""
    cases = cases_of(GROUPS[group])
    places: list[PlantedPlace] = []
    for path in sorted(folder.glob(f"{group}-*.jsonl")):
        for where, line in read_jsonl(path):
            case, place, point = find_point(cases, str(line["place"]))
            if len(line["meets"]) != 3 or len(line["breaks"]) != 3 or len(line["filler"]) != 8:
                raise DataError(
                    f"{where}: wants three meets, three breaks and eight passages of filler"
                )
            written = PlantedPlace(
                id=line["place"],
                language=case.language,
                case=case.id,
                place=place,
                point=point.id,
                statement=point.text,
                true_wordings=tuple(line["meets"]),
                false_wordings=tuple(line["breaks"]),
                filler=tuple(line["filler"]),
                provenance=PROVENANCE,
            )
            places.append(written)
    return places


def check_places(split: str, places: Iterable[PlantedPlace]) -> list[Checked]:
    """Check the places of one split, alone and against each other."""
    cases = cases_of(split)
    found: list[Checked] = []
    for place in places:
        case, _, point = find_point(cases, place.id)
        checked = check(place, case, point)
        if point.text != place.statement:
            checked.faults.append(
                f"{place.id}: the case has another statement by now: {point.text}"
            )
        found.append(checked)
    twice = [name for name, count in Counter(one.place.id for one in found).items() if count > 1]
    for name in twice:
        found[0].faults.append(f"{name}: stands twice")
    # A wording that comes back at another place would be known by its words.
    by_language = defaultdict[str, list[PlantedPlace]](list)
    for one in found:
        by_language[one.place.language].append(one.place)
    for language, own in by_language.items():
        held = {one.id: _all_runs(one, language) for one in own}
        for first, second in combinations(own, 2):
            if len(held[first.id] & held[second.id]) > MOST_SHARED:
                shared = sorted(" ".join(run) for run in held[first.id] & held[second.id])
                found[0].faults.append(f"{first.id} and {second.id} share {shared}")
    return found


def _all_runs(place: PlantedPlace, language: str) -> frozenset[tuple[str, ...]]:
    wordings = (*place.true_wordings, *place.false_wordings)
    return frozenset().union(*(runs(text, language) for text in wordings))


def summary(split: str, places: Sequence[PlantedPlace]) -> str:
    """How many places there are, by language and kind of point, and how long the wordings are."""
    cases = cases_of(split)
    parts = []
    for language in LANGUAGES:
        own = [one for one in places if one.language == language]
        kinds = Counter(find_point(cases, one.id)[2].kind for one in own)
        true = [count_length(text, language) for one in own for text in one.true_wordings]
        false = [count_length(text, language) for one in own for text in one.false_wordings]
        if own:
            lengths = f"median length {sorted(true)[len(true) // 2]} true, {sorted(false)[len(false) // 2]} false"
            parts.append(
                f"{language} {len(own)} ({kinds['must']} must, {kinds['must_not']} must_not; {lengths})"
            )
    return f"{split}: {'; '.join(parts) or 'no places'}"


def main(words: Sequence[str]) -> int:
    """Check, and write with `--write`."""
    folders = [Path(word) for word in words if word != "--write"]
    broken = 0
    for group, split in GROUPS.items():
        places = read_authors(folders[0], group) if folders else list(load_planted(split))
        checked = check_places(split, places)
        faults = [fault for one in checked for fault in one.faults]
        usable = sorted((one.place for one in checked if one.usable()), key=lambda one: one.id)
        broken += len(faults)
        print(*faults, summary(split, usable), sep="\n")
        if "--write" in words and folders:
            for language in LANGUAGES:
                own = [as_json(one) for one in usable if one.language == language]
                if own:
                    PLANTED_FOLDER.mkdir(exist_ok=True)
                    write_jsonl(PLANTED_FOLDER / f"{split}-{language}.jsonl", own)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
