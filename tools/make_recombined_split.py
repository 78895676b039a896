"""Write a split whose texts read naturally, for measuring `h2htalk analyze`: mini's own sentences, recombined.

python tools/make_recombined_split.py OUT [--language en] [--count 4650] [--words 80] [--seed 0]

Scenarios have Table 1's proportions and 80 words on average, inputs and reference together, by the package's own
tokens. Two sentences in three are mini's, from texts of the same kind; the third is a pattern with filled slots, so
that vocabulary grows with the split. A text has no meaning as a whole: scores on it say nothing.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from make_synthetic_split import Writer, scenario_counts

from h2htalk.analysis.measures.scenario_texts import instruction_text
from h2htalk.data.files import write_jsonl, write_text
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.scenario import Scenario, ScheduleEntry, Turn
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT, Subtask
from h2htalk.errors import DataError
from h2htalk.text.tokens import tokenize

WORDS = 80
REFERENCE_SHARE = 0.35  # mini's own is 0.36 to 0.41
PATTERN_SHARE = 1 / 3
# Their references have lines of a form of their own.
FORMED = ("recollection_synthesis", "itinerary_middle")
_SENTENCE_END = {"en": re.compile(r"(?<=[.!?])\s+|\n+"), "zh": re.compile(r"(?<=[。！？!?])\s*|\n+")}


@cache
def count_words(text: str, language: str) -> int:
    """The package's tokens that hold a letter or digit."""
    return sum(any(map(str.isalnum, token)) for token in tokenize(text, language))


def sentences(text: str, language: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END[language].split(text) if part.strip()]


@dataclass(frozen=True, slots=True)
class Made:
    """What was written: scenarios, their mean words, and the share of texts that are not another's double."""

    count: int
    words: float
    distinct: float


class Pools:
    """Mini's texts of one language by what they are: sentences of turns, whole memories, activities, references."""

    def __init__(self, language: str) -> None:
        self.scenarios = [s for s in load_split("mini@1").scenarios if s.language == language]
        self.pieces: dict[str, list[str]] = defaultdict(list)
        for scenario in self.scenarios:
            formed = scenario.subtask in FORMED
            key = f"reference {scenario.subtask}" if formed else "reference"
            self.pieces[key] += [scenario.reference] if formed else sentences(scenario.reference, language)
            for value in scenario.inputs.values():
                for part in [value] if isinstance(value, str) else value:
                    self._add(part, isinstance(value, str), language)

    def _add(self, part: str | ScheduleEntry | Turn, alone: bool, language: str) -> None:
        if isinstance(part, ScheduleEntry):
            self.pieces["schedule"].append(part.activity)
        elif isinstance(part, Turn):
            self.pieces[part.role] += sentences(part.content, language)
        else:
            self.pieces["text" if alone else "texts"] += sentences(part, language) if alone else [part]


class Composer:
    """Draws scenarios of one language; the words that one lacks or has too many, the next makes up for."""

    def __init__(self, language: str, words: int, seed: int) -> None:
        self.language, self.words = language, words
        self.draw = random.Random(f"{seed}:{language}")
        self.pools, self.patterns = Pools(language), Writer(language, self.draw)
        self.owed = 0
        self.mirrored = 0

    def scenario(self, subtask: Subtask, number: int) -> dict[str, Any]:
        wanted = self.length() + self.owed
        reference = self.reference(subtask.name, round(wanted * REFERENCE_SHARE))
        inputs = self.inputs(subtask, wanted - count_words(reference, self.language))
        tags = self.draw.choice(self.pools.scenarios).tags
        record = {
            "id": f"recombined-{self.language}-{subtask.name.replace('_', '-')}-{number:04}",
            "subtask": subtask.name,
            "language": self.language,
            "persona": self.draw.choice(("nora", "ren")),
            "inputs": inputs,
            "reference": reference,
            "tags": asdict(tags),
            "provenance": {"source": "recombined from mini by tools/make_recombined_split.py"},
            "licence": "CC-BY-4.0",
        }
        instruction = instruction_text(Scenario.from_dict(record))
        made = sum(count_words(text, self.language) for text in (instruction, reference))
        self.owed = wanted - made
        return record

    def length(self) -> int:
        """Words to write: half to one and a half times the mean; every second one mirrors the one before it."""
        if self.mirrored:
            wanted, self.mirrored = 2 * self.words - self.mirrored, 0
        else:
            wanted = self.mirrored = round(self.draw.uniform(0.5, 1.5) * self.words)
        return wanted

    def piece(self, kind: str) -> str:
        """One sentence (or activity) of a kind."""
        if self.draw.random() < PATTERN_SHARE:
            return self.patterns.activity() if kind == "schedule" else self.patterns.sentence()
        return self.draw.choice(self.pools.pieces[kind])

    def reference(self, subtask: str, wanted: int) -> str:
        if subtask in FORMED:
            return self.formed(subtask)
        return self.joined(self.grow([["reference"]], wanted)[0])

    def formed(self, subtask: str) -> str:
        """A memory block or timetable: each line from another of mini's, or put together from the patterns."""
        if self.draw.random() < PATTERN_SHARE:
            return self.patterns.reference(subtask)
        blocks = [block.split("\n") for block in self.pools.pieces[f"reference {subtask}"]]
        length = len(self.draw.choice(blocks))
        peers = [block for block in blocks if len(block) == length]
        return "\n".join(self.draw.choice(peers)[line] for line in range(length))

    def inputs(self, subtask: Subtask, wanted: int) -> dict[str, Any]:
        """The fields: each starts with as many pieces as its kind has, then pieces are added up to `wanted` words."""
        slots = [(name, kind, role) for name, kind in subtask.inputs for role in self.roles(kind)]
        grown = self.grow([[role] for _, _, role in slots], wanted)
        fields: dict[str, Any] = {}
        for (name, kind, role), pieces in zip(slots, grown, strict=True):
            text = self.joined(pieces)
            if kind == "text":
                fields[name] = text
            else:
                fields.setdefault(name, []).append({"role": role, "content": text} if kind == "turns" else text)
        for name, kind in subtask.inputs:
            if kind == "schedule":
                times = self.patterns.times(len(fields[name]))
                fields[name] = [
                    {"time": time, "activity": activity} for time, activity in zip(times, fields[name], strict=True)
                ]
        return fields

    def roles(self, kind: str) -> tuple[str, ...]:
        """What stands in a field to begin with: turns end with the user's, lists have one to four entries."""
        if kind == "turns":
            return ("user", "companion") * self.draw.choice((0, 0, 1)) + ("user",)
        return (kind,) * (self.draw.randint(1, 4) if kind in ("texts", "schedule") else 1)

    def grow(self, slots: list[list[str]], wanted: int) -> list[list[str]]:
        """For each slot of one kind its pieces: one each, then more at random until the words come to `wanted`."""
        kinds = [slot[0] for slot in slots]
        grown = [[self.piece(kind)] for kind in kinds]
        total = sum(count_words(pieces[0], self.language) for pieces in grown)
        growable = [place for place, kind in enumerate(kinds) if kind != "schedule"] or list(range(len(kinds)))
        while total < wanted:
            place = self.draw.choice(growable)
            grown[place].append(self.piece(kinds[place]))
            total += count_words(grown[place][-1], self.language)
        return grown

    def joined(self, pieces: list[str]) -> str:
        return (" " if self.language == "en" else "").join(pieces)


def make_records(language: str, count: int, words: int = WORDS, seed: int = 0) -> Iterator[dict[str, Any]]:
    """`count` scenario records, the same for the same arguments."""
    composer = Composer(language, words, seed)
    for name, amount in scenario_counts(count).items():
        for number in range(amount):
            yield composer.scenario(SUBTASKS[name], number)


def write_split(out: Path, language: str, count: int, words: int = WORDS, seed: int = 0) -> Made:
    """Write the split as a folder that `load_split` reads.

    Raises:
        DataError: the folder holds other files, or cannot be written.
    """
    if out.exists() and any(p.name not in ("scenarios.jsonl", "split.toml") for p in out.iterdir()):
        raise DataError(f"{out}: holds other files; name a new folder")
    scenarios = [Scenario.from_dict(record) for record in make_records(language, count, words, seed)]
    write_jsonl(out / "scenarios.jsonl", (scenario.to_dict() for scenario in scenarios))
    write_text(
        out / "split.toml",
        f'name = "recombined-{language}-{count}"\nversion = "recombined-1-seed-{seed}"\n'
        'description = "Sentences of mini, recombined, for measuring speed."\nlicence = "CC-BY-4.0"\n',
    )
    texts = [text for s in scenarios for text in (instruction_text(s), s.reference)]
    words = sum(count_words(text, language) for text in texts)
    return Made(count, words / max(1, count), len(set(texts)) / max(1, len(texts)))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a split of mini's sentences, recombined.")
    parser.add_argument("out", type=Path, help="the folder to write")
    parser.add_argument("--language", choices=LANGUAGES, default="en")
    parser.add_argument("--count", type=int, default=TOTAL_COUNT)
    parser.add_argument("--words", type=int, default=WORDS, help="of a scenario, on average")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    made = write_split(options.out, options.language, options.count, options.words, options.seed)
    print(f"{made.count:,} scenarios of {made.words:.1f} words, {made.distinct:.0%} of texts distinct, {options.out}")


if __name__ == "__main__":
    main()
