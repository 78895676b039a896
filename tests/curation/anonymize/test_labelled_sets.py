"""Personal data in labelled sets and public conversations: results must not fall below the asked or measured values.

The sets in `golden` were written before any rule, those in `sets` are the ones that the rules were mended on.
"""

from __future__ import annotations

import csv
import json
import re
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
FOLDERS = {"pii": HERE.parent / "golden", "negatives": HERE.parent / "golden"}
STRUCTURED = {  # a web address without an account, which the golden sets label, stays
    *("EMAIL_ADDRESS", "PHONE_NUMBER", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER"),
    *("QQ", "WECHAT", "LICENSE_PLATE", "IP_ADDRESS"),
}
NUMBERS = {*TYPES[:-3]}


@cache
def found(name: str, language: str) -> list[tuple[dict[str, Any], list[Span]]]:
    """The rows of a set, each with what is found in it."""
    path = FOLDERS.get(name, HERE / "sets") / f"{name}_{language}.jsonl"
    rows = map(json.loads, path.read_text("utf-8").splitlines())
    return [(row, find_spans(row["text"], language)) for row in rows]


# Recall and precision by overlap with a span of the same type; structured data of development by exact span.
@pytest.mark.parametrize(
    ("name", "language", "types", "form", "recall", "precision"),
    [
        ("pii", "en", STRUCTURED, "plain", 0.985, 0.98),  # English customer numbers, .3 %, are not looked for
        ("pii", "zh", STRUCTURED, "plain", 0.99, 0.98),
        *(("pii", language, STRUCTURED, "hostile", 0.90, 0.95) for language in LANGUAGES),
        ("pii", "en", {"PERSON"}, None, 0.82, 0.60),
        ("pii", "zh", {"PERSON"}, None, 0.80, 0.80),
        ("pii", "zh", {"ADDRESS"}, None, 0.85, 0.80),
        ("pii", "en", {"ADDRESS"}, None, 0.80, 0.80),
        ("pii", "en", {"ORGANIZATION"}, None, 0.72, 0.75),
        ("dev_names", "en", {"PERSON"}, None, 0.95, 0.92),
        ("dev_names", "en", {"ADDRESS"}, None, 0.95, 0.95),
        ("dev_names", "en", {"ORGANIZATION"}, None, 0.88, 0.93),
        # Lowered where rules were taken away that ruin real chat (docs/measurements.md).
        ("dev_names", "zh", {"PERSON"}, None, 0.90, 0.96),
        ("dev_names", "zh", {"ADDRESS"}, None, 0.94, 0.97),
        # Seven Chinese sentences hold toll-free numbers, which are nobody's own.
        *(("dev_structured", lang, NUMBERS, form, 0.97, 0.99) for lang in LANGUAGES for form in ("plain", "hostile")),
    ],
)
def test_personal_data(
    name: str, language: str, types: set[str], form: str | None, recall: float, precision: float
) -> None:
    chosen = [(row["spans"], spans) for row, spans in found(name, language) if form in (None, row.get("form"))]
    alike = [(g, s) for gold, spans in chosen for g in gold for s in spans if s.type == g["type"] in types]
    pairs = [(g, s) for g, s in alike if s.start < g["end"] and g["start"] < s.end]
    hits = [g for g, s in pairs if name != "dev_structured" or (s.start, s.end) == (g["start"], g["end"])]
    gold = sum(one["type"] in types for own, _ in chosen for one in own)
    claimed = sum(one.type in types for _, own in chosen for one in own)
    assert gold >= 100
    assert len({id(one) for one in hits}) / gold >= recall
    assert len({id(one) for _, one in pairs}) / claimed >= precision


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_without_a_leaked_character(language: str) -> None:
    """Those whose only leak is an organisation are apart: one without strong evidence stays on purpose."""
    leaking = organizations = 0
    for row, spans in found("pii", language):
        covered = {at for span in spans for at in range(span.start, span.end)}
        leaks = {
            gold["type"]
            for gold in row["spans"]
            for at in range(gold["start"], gold["end"])
            if at not in covered and not row["text"][at].isspace()
        }
        leaking += bool(leaks - {"ORGANIZATION"})
        organizations += leaks == {"ORGANIZATION"}
    assert leaking / len(found("pii", language)) <= 0.10
    assert organizations / len(found("pii", language)) <= (0.08 if language == "zh" else 0.06)  # zh: not looked for


@pytest.mark.parametrize("language", LANGUAGES)
def test_hardly_a_harmless_sentence_is_marked(language: str) -> None:
    for name, most in (("negatives", 0.08), ("dev_names", 0.02), ("negatives_structured", 0.02)):
        # The last set was written before accounts of networks counted as personal data.
        types = NUMBERS - {"HANDLE"} if name == "negatives_structured" else {*TYPES}
        harmless = [spans for row, spans in found(name, language) if not row.get("spans")]
        marked = [spans for spans in harmless if any(span.type in types for span in spans)]
        assert (len(harmless) > 90, len(marked) <= most * len(harmless)) == (True, True), marked


def find_people(texts: Sequence[str], language: str) -> list[list[Span]]:
    spans = {"en": english, "zh": chinese}[language].find_names(texts, [()] * len(texts))
    return [[span for span in own if span.type == "PERSON"] for own in spans]


@pytest.mark.parametrize("language", LANGUAGES)
def test_users_of_the_memory_bank_are_found_by_their_own_names(shared_data: Path, language: str) -> None:
    users = json.loads((shared_data / f"raw/memorybank_{language}.json").read_text(encoding="utf-8"))
    mentions = []
    for name, user in users.items():
        turns = [turn for day in user["history"].values() for turn in day]
        texts = [turn[side] for turn in turns for side in ("query", "response")]
        own = re.compile(re.escape(name) if language == "zh" else rf"\b{re.escape(name.strip())}\b")
        for text, people in zip(texts, find_people(texts, language), strict=True):
            mentions += [any(m.start() < s.end and s.start < m.end() for s in people) for m in own.finditer(text)]
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
        spans = zip(texts, find_people(texts, language), strict=True)
        names = [text[s.start : s.end] for text, people in spans for s in people]
        assert len([name for name in names if "艾薇" not in name]) < most * len(texts)
