"""Measure what each rule of the anonymiser is worth: switch it off and read the sets again.

    H2HTALK_DATA=... python tools/rule_value.py [--only NAME ...] [--show]

A row a rule. `worth`: how many points of sentences more leak a labelled character without it, in the set where they are
most; `leaks`: how many sentences of sets by authors who knew no rules leak without it; `stay`: how many sentences that
must stay it changes; `chat`: how many dialogues of real chat it changes, of 400 a language by hash of the even halves
of `smilechat_zh_2` and `topical_chat_valid_en`, and of all others of them in which a rule of the tables fires. A rule
goes whose worth is below 0.3, or that changes more ordinary dialogues wrongly than it finds leaks; identity, bank and
passport numbers are exempt.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from h2htalk.curation.anonymize.engine import analyzer
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import numbers, rules

ROOT = Path(__file__).parents[1] / "tests/curation"
# Sets with labels, and whether their author knew no rules; sets of which every line must stay.
LABELLED = {
    "golden/pii": False,
    "golden/pii_chat": True,
    "anonymize/sets/dev_chat": True,
    "anonymize/sets/practice": True,
    "anonymize/sets/practice2": True,
}
STAY = ("golden/negatives", "golden/pii_chat_stay", "anonymize/sets/dev_chat_stay", "anonymize/sets/negatives3")
CHAT = {"zh": "raw/smilechat_zh_2.jsonl", "en": "raw/topical_chat_valid_en.jsonl"}
EXEMPT = (
    "card",
    "resident_id",
    "national_id",
    "iban",
    "national_insurance",
    "chinese_passport",
    "passport",
)
# Functions that are rules by themselves, and what one that finds nothing returns.
FUNCTIONS: dict[str, Any] = {
    "structured.rules:deobfuscate": None,
    "english.recognizer:find_addresses": [],
    "english.recognizer:find_organizations": [],
    "english.recognizer:person_spans": [],
    "chinese.recognizer:addresses": (),
    "chinese.persons:latin_names": (),
    "chinese.persons:_given_only": (),
    "chinese.persons:_listed_name": (),
}


@dataclass(slots=True)
class Text:
    """Messages that are read together, with the labels of a sentence; `marks` and `fired` by all rules."""

    set: str
    language: str
    messages: list[str]
    gold: list[tuple[int, int]]
    marks: list[list[Span]]
    fired: set[str]

    def leaks(self, marks: Sequence[Sequence[Span]]) -> bool:
        covered = {at for span in marks[0] for at in range(span.start, span.end)}
        return any(at not in covered for start, end in self.gold for at in range(start, end))


def rows(path: Path) -> Iterator[dict[str, Any]]:
    yield from (json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip())


def texts(data: Path) -> Iterator[Text]:
    for language in ("en", "zh"):
        for name in (*LABELLED, *STAY):
            for row in rows(ROOT / f"{name}_{language}.jsonl"):
                gold = [(span["start"], span["end"]) for span in row.get("spans", ())]
                yield Text(name, language, [row["text"]], gold, [], set())
        hashed = (
            (hashlib.sha256(row["id"].encode()).hexdigest(), row["messages"]) for row in rows(data / CHAT[language])
        )
        even = sorted((key, messages) for key, messages in hashed if int(key, 16) % 2 == 0)
        for number, (_, messages) in enumerate(even):
            name = "chat" if number < 400 else "more chat"
            yield Text(name, language, [turn["content"] for turn in messages], [], [], set())


def read(text: Text) -> list[list[Span]]:
    return [[*spans] for spans in analyzer.find_in_dialogue(text.messages, text.language).spans]


def read_with_all_rules(data: Path) -> list[Text]:
    """Every text with what all rules mark in it, and the names of the rules of the tables that fire."""
    fired: set[str] = set()
    find = analyzer.find_structured

    def noted(*arguments: Any) -> list[Span]:
        found = find(*arguments)
        fired.update(span.found_by for span in found)
        return found

    analyzer.find_structured = noted  # type: ignore[attr-defined]
    found = []
    for text in texts(data):
        fired.clear()
        text.marks, text.fired = read(text), {*fired}
        found.append(text)
    analyzer.find_structured = find  # type: ignore[attr-defined]
    return found


@contextmanager
def without(name: str) -> Iterator[None]:
    """All rules but one."""
    with ExitStack() as patches:
        if name in FUNCTIONS:
            module, _, function = name.partition(":")
            target = f"h2htalk.curation.anonymize.{module}.{function}"
            patches.enter_context(patch(target, lambda *_, **__: FUNCTIONS[name]))
        else:
            for home, table in ((rules, "RULES"), (rules, "LATE_RULES"), (numbers, "NUMBERS")):
                others = tuple(rule for rule in getattr(home, table) if rule.name != name)
                patches.enter_context(patch.object(home, table, others))
        yield


def value(name: str, every: Sequence[Text], *, show: bool) -> str:
    """The row of a rule."""
    language = {"english": "en", "chinese": "zh"}.get(name.partition(".")[0])
    module = name in FUNCTIONS
    affected = [text for text in every if (text.set != "more chat" if module else name in text.fired)]
    leaks: dict[tuple[str, str], int] = {}
    stay = chat = 0
    with without(name):
        for text in affected:
            if language not in (None, text.language):
                continue
            marks = read(text)
            if text.set in LABELLED and text.gold:
                key = (text.set, text.language)
                leaks[key] = leaks.get(key, 0) + text.leaks(marks) - text.leaks(text.marks)
            elif text.set in STAY:
                stay += any(text.marks) - any(marks)
            elif "chat" in text.set and marks != text.marks:
                chat += 1
                pairs = zip(text.messages, text.marks, marks, strict=True)
                gone = [(said, span) for said, old, new in pairs for span in set(old) - set(new)]
                for said, span in gone if show else ():
                    print(
                        f"    {span.type} [{said[span.start : span.end]}] in {said[max(0, span.start - 30) :][:80]!r}"
                    )
    sizes = {key: sum(bool(t.gold) for t in every if (t.set, t.language) == key) for key in leaks}
    worth, where = max(((100 * n / sizes[key], f"{key[0]}_{key[1]}") for key, n in leaks.items()), default=(0.0, ""))
    others = sum(n for (set_name, _), n in leaks.items() if LABELLED[set_name])
    fires = 0 if module else len(affected)
    return f"{name:40} {worth:6.2f} {others:5} {stay:5} {chat:5} {fires:6}  {where}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("H2HTALK_DATA"))
    parser.add_argument("--only", nargs="*", help="names of rules; all without it")
    parser.add_argument("--show", action="store_true", help="print what a rule marks in real chat")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the data's folder with --data or H2HTALK_DATA")
    every = read_with_all_rules(options.data)
    tables = [rule.name for rule in (*rules.RULES, *numbers.NUMBERS, *rules.LATE_RULES)]
    print(f"{'rule':40} {'worth':>6} {'leaks':>5} {'stay':>5} {'chat':>5} {'fires':>6}  most in")
    for name in options.only or [*tables, *FUNCTIONS]:
        print(value(name, every, show=options.show), "(exempt)" if name in EXEMPT else "", flush=True)


if __name__ == "__main__":
    main()
