"""Floors on the development sets, which the rules were mended on, and on public conversations."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.anonymize.chinese import recognizer as chinese
from h2htalk.curation.anonymize.engine.analyzer import find_spans
from h2htalk.curation.anonymize.english import recognizer as english
from h2htalk.curation.anonymize.spans import TYPES, Span
from h2htalk.data.languages import LANGUAGES

HERE = Path(__file__).parent


def find_names(texts: Sequence[str], language: str) -> list[list[Span]]:
    recognizer = {"en": english, "zh": chinese}[language]
    return recognizer.find_names(texts, [()] * len(texts))


# Recall and precision by overlap with a span of the same type.
FLOORS = {
    ("en", "PERSON"): (0.95, 0.92),
    ("en", "ADDRESS"): (0.95, 0.95),
    ("en", "ORGANIZATION"): (0.88, 0.93),
    # Lowered where rules were taken away that ruin real chat (docs/measurements.md).
    ("zh", "PERSON"): (0.90, 0.96),
    ("zh", "ADDRESS"): (0.94, 0.97),
}


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / "sets" / f"{name}.jsonl").read_text("utf-8").splitlines()]


@cache
def named(language: str) -> list[tuple[dict[str, Any], list[Span]]]:
    said = rows(f"dev_names_{language}")
    return [(row, find_names([row["text"]], language)[0]) for row in said]


def touches(kind: str, start: int, end: int, others: list[tuple[int, int, str]]) -> bool:
    return any(kind == k and start < e and s < end for s, e, k in others)


@pytest.mark.parametrize(("language", "kind"), FLOORS)
def test_names_keep_their_floor(language: str, kind: str) -> None:
    hit, right = [], []
    for row, spans in named(language):
        gold = [(s["start"], s["end"], s["type"]) for s in row["spans"]]
        found = [(s.start, s.end, s.type) for s in spans]
        hit += [touches(k, a, b, found) for a, b, k in gold if k == kind]
        right += [touches(k, a, b, gold) for a, b, k in found if k == kind]
    recall, precision = FLOORS[language, kind]
    assert sum(hit) / len(hit) >= recall
    assert sum(right) / len(right) >= precision


@pytest.mark.parametrize(("language", "most"), [("en", 0.04), ("zh", 0.02)])
def test_hardly_a_harmless_sentence_is_marked(language: str, most: float) -> None:
    harmless = [spans for row, spans in named(language) if not row["spans"]]
    assert len(harmless) >= 100
    assert sum(map(bool, harmless)) <= most * len(harmless)


@pytest.mark.parametrize("language", LANGUAGES)
def test_structured_data_keep_their_floor(language: str) -> None:
    """Recall by exact span, and what touches nothing that is labelled."""
    gold: Counter[str] = Counter()
    hit: Counter[str] = Counter()
    wrong = []
    for row in rows(f"dev_structured_{language}"):
        wanted = [(span["start"], span["end"], span["type"]) for span in row["spans"]]
        spans = find_spans(row["text"], language)
        got = [(span.start, span.end, span.type) for span in spans if span.type in TYPES[:-3]]
        gold[row["form"]] += len(wanted)
        hit[row["form"]] += len(set(wanted) & set(got))
        wrong += [row["text"] for a, b, kind in got if not touches(kind, a, b, wanted)]
    # Seven Chinese sentences hold toll-free numbers, which are nobody's own.
    assert hit["plain"] >= 0.97 * gold["plain"]
    assert hit["hostile"] >= 0.97 * gold["hostile"]
    assert len(wrong) <= 0.01 * gold.total()
    texts = [row["text"] for row in rows(f"negatives_structured_{language}")]
    # Written before accounts of networks counted as personal data.
    kinds = {*TYPES[:-3]} - {"HANDLE"}
    marked = [text for text in texts if any(s.type in kinds for s in find_spans(text, language))]
    assert len(marked) <= 0.02 * len(texts), marked


@pytest.mark.parametrize("language", LANGUAGES)
def test_users_of_the_memory_bank_are_found_by_their_own_names(shared_data: Path, language: str) -> None:
    users = json.loads((shared_data / f"raw/memorybank_{language}.json").read_text(encoding="utf-8"))
    mentions = []
    for name, user in users.items():
        turns = [turn for day in user["history"].values() for turn in day]
        texts = [turn[side] for turn in turns for side in ("query", "response")]
        own = re.compile(re.escape(name) if language == "zh" else rf"\b{re.escape(name.strip())}\b")
        for text, spans in zip(texts, find_names(texts, language), strict=True):
            people = [(s.start, s.end, s.type) for s in spans]
            mentions += [touches("PERSON", *mention.span(), people) for mention in own.finditer(text)]
    assert len(mentions) > 30
    assert sum(mentions) >= 0.95 * len(mentions)


@pytest.mark.slow
def test_real_chat_holds_few_names(shared_data: Path) -> None:
    """Beside the persona's own name (艾薇), Chinese chats hold a private name in 2 of 1,000 turns at most; of those
    found in counsellors' answers, read by eye, about one in six is none."""
    lines = (shared_data / "raw/smilechat_zh.jsonl").read_text(encoding="utf-8").splitlines()
    smile = [turn["content"] for line in lines[:300] for turn in json.loads(line)["messages"]]
    dialogues = json.loads((shared_data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))
    turns = [turn for dialogue in dialogues[:200] for turn in dialogue["conversation"]]
    aiwei = [turn[side] for turn in turns for side in ("input", "output") if turn.get(side)]
    with (shared_data / "raw/counselchat_en.csv").open(encoding="utf-8") as file:
        answers = sorted({row[key] for row in csv.DictReader(file) for key in ("questionText", "answerText")})
    for language, texts, most in (("zh", smile, 0.01), ("zh", aiwei, 0.01), ("en", answers, 0.07)):
        found = zip(texts, find_names(texts, language), strict=True)
        names = [text[s.start : s.end] for text, spans in found for s in spans if s.type == "PERSON"]
        assert len([name for name in names if "艾薇" not in name]) < most * len(texts)
