"""Report the combinations of ages, places, jobs, schools and dates that few dialogues of a workspace share.

A combination holds one value each of two or more kinds. It is rare if at most `shared_by` people state all its values;
the dialogues of one person, where the source says so, count as one. A combination that contains a rare one is rare
too, so only the smallest are listed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from h2htalk.curation.outcomes import Rejected, dialogue_of, read_dialogue
from h2htalk.curation.quasi_identifiers.statements import KINDS, Spans, Value, find_statements
from h2htalk.curation.stage_folder import AUDIT
from h2htalk.curation.stage_table import STAGES, find_stage
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_output
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError, DataError, counted, shorten
from h2htalk.text.escaping import csv_text
from h2htalk.text.tables import Table

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
