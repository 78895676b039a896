"""Measure what each rule of the anonymiser is worth: switch it off and read the sets again.

    H2HTALK_DATA=... python tools/rule_value.py [--only NAME ...]

A row a rule. `worth`: how many points of sentences more leak a labelled character without it, in the set where they are
most; `stay`: how many sentences that must stay it changes; `chat`: how many dialogues of real chat it changes, of 400 a
language by hash of the even halves of `smilechat_zh_2` and `topical_chat_valid_en`; `fires`: in how many texts a rule
of the tables finds something. A rule goes whose worth is below 0.3, or that changes more ordinary dialogues wrongly
than it finds leaks; rules of identity, bank and passport numbers are exempt.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import numbers, rules

SETS = Path(__file__).parents[1] / "tests/curation"
OWN = ("dev_private", "dev_chat", "practice", "practice2")
LABELLED = ("golden/pii", "golden/pii_chat", *(f"anonymize/sets/{name}" for name in OWN))
STAY = ("golden/negatives", "golden/pii_chat_stay", "anonymize/sets/dev_chat_stay", "anonymize/sets/negatives3")
CHAT = {"zh": "raw/smilechat_zh_2.jsonl", "en": "raw/topical_chat_valid_en.jsonl"}
TABLES = ((rules, "RULES"), (numbers, "NUMBERS"), (rules, "LATE_RULES"))
# Functions that are rules by themselves, and what one that finds nothing returns.
FUNCTIONS: dict[str, Any] = {
    "structured.rules.deobfuscate": None,
    "english.recognizer.find_addresses": [],
    "english.recognizer.find_organizations": [],
    "chinese.recognizer.addresses": (),
    "chinese.recognizer._organizations": (),
    "chinese.recognizer.find_candidates": (),
    "chinese.persons.latin_names": (),
    "chinese.persons._nick": (),
    "chinese.persons._given_only": (),
    "chinese.persons._listed_name": (),
}


@dataclass(slots=True)
class Text:
    """Messages that are read together, with the labels of a sentence, and what all rules mark in them."""

    set: str
    language: str
    messages: list[str]
    gold: list[tuple[int, int]]

    def read(self) -> list[list[Span]]:
        return [[*spans] for spans in find_in_dialogue(self.messages, self.language).spans]

    def leaks(self, marks: Sequence[Sequence[Span]]) -> bool:
        covered = {at for span in marks[0] for at in range(span.start, span.end)}
        return any(at not in covered for start, end in self.gold for at in range(start, end))


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def texts(data: Path) -> Iterator[Text]:
    for language in ("en", "zh"):
        for name in (*LABELLED, *STAY):
            for row in rows(SETS / f"{name}_{language}.jsonl"):
                gold = [(span["start"], span["end"]) for span in row.get("spans", ())]
                yield Text(name if gold or name in STAY else "", language, [row["text"]], gold)
        hashed = sorted((hashlib.sha256(row["id"].encode()).hexdigest(), row) for row in rows(data / CHAT[language]))
        even = [row["messages"] for key, row in hashed if int(key, 16) % 2 == 0]
        for messages in even[:400]:
            yield Text("chat", language, [turn["content"] for turn in messages], [])


def value(name: str, every: Sequence[tuple[Text, list[list[Span]]]], sizes: Counter[tuple[str, str]]) -> str:
    """The row of a rule."""
    language = {"english": "en", "chinese": "zh"}.get(name.partition(".")[0])
    pattern, leaks, changed = f", pattern {name}", Counter[tuple[str, str]](), Counter[str]()
    fires = 0
    with ExitStack() as patches:
        if name in FUNCTIONS:
            target = f"h2htalk.curation.anonymize.{name}"
            patches.enter_context(patch(target, lambda *_, **__: FUNCTIONS[name]))
        for home, table in TABLES:
            others = tuple(rule for rule in getattr(home, table) if rule.name != name)
            patches.enter_context(patch.object(home, table, others))
        for text, marks in every:
            fired = any(pattern in span.found_by for spans in marks for span in spans)
            fires += fired
            if not (fired or name in FUNCTIONS) or language not in (None, text.language):
                continue
            without = text.read()
            if text.set in LABELLED:
                leaks[text.set, text.language] += text.leaks(without) - text.leaks(marks)
            else:
                changed[text.set] += without != marks
    worth, where = max(((100 * n / sizes[key], "_".join(key)) for key, n in leaks.items()), default=(0.0, ""))
    return f"{name:40} {worth:6.2f} {sum(changed[s] for s in STAY):5} {changed['chat']:5} {fires:6}  {where}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"), help="else H2HTALK_DATA")
    parser.add_argument("--only", nargs="*", help="names of rules; all without it")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the data's folder with --data or H2HTALK_DATA")
    every = [(text, text.read()) for text in texts(options.data)]
    sizes = Counter((text.set, text.language) for text, _ in every)
    print(f"{'rule':40} {'worth':>6} {'stay':>5} {'chat':>5} {'fires':>6}  most in")
    for name in options.only or [*(rule.name for home, table in TABLES for rule in getattr(home, table)), *FUNCTIONS]:
        print(value(name, every, sizes), flush=True)


if __name__ == "__main__":
    main()
