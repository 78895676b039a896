"""Report the combinations of ages, places, jobs, schools and dates that few dialogues of a workspace share.

A combination holds one value each of two or more kinds. It is rare if at most `shared_by` people state all its values;
the dialogues of one person, where the source says so, count as one. A combination that contains a rare one is rare
too, so only the smallest are listed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from h2htalk.curation.outcomes import Rejected, dialogue_of, read_dialogue
from h2htalk.curation.stage_folder import AUDIT
from h2htalk.curation.stages import STAGES, find_stage
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_output
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError, DataError, counted, shorten
from h2htalk.text.escaping import csv_text
from h2htalk.text.language_data import language_data
from h2htalk.text.tables import Table

KINDS = ("age", "place", "job", "school", "date")
Value = tuple[str, str]  # kind and normal form: ("age", "34")
Spans = Sequence[tuple[int, int]]
_WORDS = "curation/quasi_identifiers/words"
_CONTEXT = 40  # characters before a statement that may rule it out
_DIGITS = {sign: number for number, sign in enumerate("一二三四五六七八九", 1)} | {"两": 2, "": 0}
_SHOWN = 20  # dialogues in the terminal
_COMBINED = 50  # values of a dialogue, the first ones stated: bounds the time of a very long one
# The stages whose records are dialogues; later ones keep candidates made of them.
_WITH_DIALOGUES = [stage for stage, after in pairwise(STAGES) if STAGES[after].reads == "dialogues"]
_Combination = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A dialogue that states something: its values with their messages, and its smallest rare combinations."""

    id: str
    values: Mapping[Value, list[int]]
    rare: list[_Combination]

    @property
    def kinds(self) -> int:
        """How many kinds of values are stated."""
        return len({kind for kind, _ in self.values})

    def cells(self) -> list[str]:
        """The values of each kind, as `34 (1, 3)` with their messages."""
        texts = {value: f"{value[1]} ({', '.join(map(str, messages))})" for value, messages in self.values.items()}
        return ["; ".join(text for (kind, _), text in texts.items() if kind == column) for column in KINDS]


@dataclass(frozen=True, slots=True)
class IdentifierReport:
    """The dialogues of a stage with a rare combination, the most identifying first.

    `stated`: how many dialogues state a number of kinds, from 0.
    """

    stage: str
    stated: Mapping[int, int]
    profiles: list[Profile]

    def counts(self) -> dict[str, int]:
        """The counts of dialogues, by their names in the table."""
        return {
            "were read": sum(self.stated.values()),
            **{f"state {counted(kinds, 'kind')}": self.stated.get(kinds, 0) for kinds in (1, 2, 3)},
            "state 4 or 5 kinds": self.stated.get(4, 0) + self.stated.get(5, 0),
            "hold a rare combination": len(self.profiles),
            "hold a rare combination of 3 or more kinds": sum(profile.kinds > 2 for profile in self.profiles),
        }

    def write_csv(self, path: Path) -> None:
        """Write a line for each of the dialogues. Raises DataError."""
        headings = ["dialogue", "kinds", *KINDS, "smallest_rare_combinations"]
        rare = ("; ".join(" + ".join(value for _, value in rare) for rare in p.rare) for p in self.profiles)
        rows = ([p.id, p.kinds, *p.cells(), text] for p, text in zip(self.profiles, rare, strict=True))
        write_output(path, csv_text(headings, rows), "dialogue,kinds,")


def report_identifiers(workspace: Workspace, stage: str = "", shared_by: int = 1) -> IdentifierReport:
    """Find rare combinations in the dialogues that a finished stage kept. Nothing is changed.

    Values of the anonymiser are left out. Of `compose` and `review`, the dialogues behind their candidates are read.

    Args:
        workspace: with at least a finished stage.
        stage: its name; empty for the last one that is finished.
        shared_by: the most people who share a rare combination.

    Raises:
        ConfigError: the stage is unknown, or `shared_by` is below 1.
        DataError: there is no curation, the stage is not finished, or a file is damaged.
    """
    workspace.require_begun()
    if shared_by < 1:
        raise ConfigError(f"--shared-by {shared_by}: must be 1 or more")
    names = [find_stage(stage).name] if stage else list(STAGES)
    finished = [name for name in names if (workspace.stage(name).path / "summary.json").exists()]
    if not finished:
        raise DataError(f"{workspace.path}: {stage or 'no stage'} is not finished; run: h2htalk curate run SPEC.toml")
    stated: list[tuple[Dialogue, dict[Value, list[int]]]] = []
    speakers: dict[Value, set[str]] = defaultdict(set)
    for dialogue, surrogates in _dialogues(workspace, finished[-1]):
        stated.append((dialogue, find_statements(dialogue, surrogates)))
        for value in stated[-1][1]:
            speakers[value].add(str(dialogue.provenance.get("person") or dialogue.id))
    profiles = [Profile(dialogue.id, values, _rare(values, speakers, shared_by)) for dialogue, values in stated]
    profiles.sort(key=lambda profile: (-profile.kinds, -len(profile.rare), profile.id))
    kinds = Counter(profile.kinds for profile in profiles)
    return IdentifierReport(finished[-1], kinds, [profile for profile in profiles if profile.rare])


def _dialogues(workspace: Workspace, stage: str) -> Iterator[tuple[Dialogue, Mapping[int, Spans]]]:
    """The dialogues of a stage, each with the places of its surrogates by message."""
    holder = stage if stage in _WITH_DIALOGUES else _WITH_DIALOGUES[-1]
    chosen = None if stage == holder else {dialogue_of(record) for record in workspace.stage(stage).records()}
    surrogates: dict[str, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for audit in workspace.stage("anonymize").records(AUDIT) if holder != "gather" else ():
        for span in audit["spans"]:
            surrogates[audit["id"]][span.get("message", 0)].append((span["start"], span["end"]))
    for record in workspace.stage(holder).records():
        dialogue = read_dialogue(record)
        if not isinstance(dialogue, Rejected) and (chosen is None or dialogue.id in chosen):
            yield dialogue, surrogates.get(dialogue.id, {})


def _rare(values: Mapping[Value, object], speakers: Mapping[Value, set[str]], shared_by: int) -> list[_Combination]:
    """The smallest rare combinations. Only what is not rare yet is extended, by a value of a later kind."""
    rare: list[_Combination] = []
    first = sorted(list(values)[:_COMBINED], key=lambda value: KINDS.index(value[0]))
    common: list[tuple[_Combination, set[str]]] = [((value,), speakers[value]) for value in first]
    while common:
        longer = []
        for combination, people in common:
            for value in first:
                if KINDS.index(value[0]) > KINDS.index(combination[-1][0]):
                    extended, both = (*combination, value), people & speakers[value]
                    if len(both) > shared_by:
                        longer.append((extended, both))
                    elif not any(set(smaller) <= set(extended) for smaller in rare):
                        rare.append(extended)
        common = longer
    return rare


def identifier_tables(report: IdentifierReport) -> tuple[Table, Table]:
    """Tables for the terminal: the counts, and the values of the most identifying dialogues."""
    title = f"Quasi-identifiers in the dialogues of {report.stage}"
    counts = Table(title, ("dialogues that", "number"), list(report.counts().items()))
    rows = [
        (shorten(profile.id), kind, shorten(cell))
        for profile in report.profiles[:_SHOWN]
        for kind, cell in zip(KINDS, profile.cells(), strict=True)
        if cell
    ]
    return counts, Table("The most identifying", ("dialogue", "kind", "values (messages)"), rows)


# --- What users say about age, place, job, school and dates ---


def find_statements(dialogue: Dialogue, surrogates: Mapping[int, Spans]) -> dict[Value, list[int]]:
    """What the user states of himself or herself and of people near: values, and the messages (from 1) that state them.

    Args:
        dialogue: of any stage.
        surrogates: characters of each message that the anonymiser put there; what overlaps them is left out.
    """
    found: dict[Value, list[int]] = {}
    for number, turn in enumerate(dialogue.messages, 1):
        if turn.role == "user":
            for value in dict.fromkeys(_values(turn.content, dialogue.language, surrogates.get(number, ()))):
                found.setdefault(value, []).append(number)
    return found


def _values(text: str, language: Language, surrogates: Spans) -> Iterator[Value]:
    for kind in KINDS:
        taken = {at for first, last in surrogates for at in range(first, last)}
        (before,) = _patterns(language, "before", kind)
        for match in (match for pattern in _patterns(language, "patterns", kind) for match in pattern.finditer(text)):
            places = range(*match.span("month" if kind == "date" else "value"))
            if before.search(text, max(0, match.start() - _CONTEXT), match.start()):
                continue
            if taken.isdisjoint(places):
                taken.update(places)
                yield kind, _date(match, language) if kind == "date" else _normalized(kind, match["value"], language)


def _normalized(kind: str, value: str, language: Language) -> str:
    """A value in lower case: an age in digits, a job without words that say nothing."""
    if kind == "age":
        return str(_number(value) or value)
    ignored = language_data(_WORDS, language)["ignored"].split() if kind == "job" else ()
    return " ".join(word for word in value.casefold().split() if word not in ignored)


def _number(text: str) -> int:
    """The number that digits or Chinese numerals below 100 write; 0 for other text."""
    tens, ten, ones = text.rpartition("十")
    if tens in _DIGITS and ones in _DIGITS:
        return (_DIGITS[tens] or 1) * 10 * bool(ten) + _DIGITS[ones]
    return int(text) if text.isdecimal() else 0


def _date(match: re.Match[str], language: Language) -> str:
    """`2019-05-03`, `2019-05` or `05-03`."""
    parts = match.groupdict()
    month, day = parts["month"].casefold(), parts.get("day")
    names = enumerate(language_data(_WORDS, language)["months"].split(), 1)
    number = next((at for at, name in names if month.startswith(name)), _number(month))
    return "-".join(filter(None, (parts.get("year"), f"{number:02}", day and f"{_number(day):02}")))


@cache
def _patterns(language: Language, table: str, kind: str) -> list[re.Pattern[str]]:
    """The patterns of a kind, with the words of the language for the names between % signs."""
    data = language_data(_WORDS, language)
    words = {name: text.replace("\n", "") for name, text in data["words"].items()}
    places = {*words["places"].split("|"), *_PLACES[language]()}
    words["places"] = "|".join(sorted(places, key=lambda name: (-len(name), name)))
    compiled = []
    for text in data[table][kind]:
        while used := re.search("%([a-z]+)%", text):
            text = text.replace(used[0], f"(?:{words[used[1]]})")
        compiled.append(re.compile(text, re.IGNORECASE))
    return compiled


def _english_places() -> frozenset[str]:
    from h2htalk.curation.anonymize.english.word_lists import words

    return words().hints["places"]


def _chinese_places() -> set[str]:
    """Short names of provinces and cities; full names of districts, whose short ones are ordinary words too."""
    from h2htalk.curation.anonymize.chinese.words import sections

    listed = sections("divisions")
    entries = [entry.partition("/") for level in ("provinces", "cities") for entry in listed[level]]
    return {short or full for full, _, short in entries} | {entry.partition("/")[0] for entry in listed["districts"]}


_PLACES = {"en": _english_places, "zh": _chinese_places}
