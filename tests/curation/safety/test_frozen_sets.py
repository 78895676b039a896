"""The frozen sets, written before any rule: results must not fall below the asked or measured values."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.anonymize.engine.analyzer import find_spans
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.safety.stage import assess
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn

GOLDEN = Path(__file__).parents[1] / "golden"
STRUCTURED = {
    "EMAIL_ADDRESS",
    "PHONE_NUMBER",
    "NATIONAL_ID",
    "CREDIT_CARD",
    "ACCOUNT_NUMBER",
    "QQ",
    "WECHAT",
    "LICENSE_PLATE",
    "URL",
    "IP_ADDRESS",
}
LANGUAGES: tuple[Language, ...] = ("en", "zh")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


@cache
def found(language: Language) -> tuple[tuple[dict[str, Any], list[Span]], ...]:
    gold = rows(f"pii_{language}.jsonl")
    return tuple(zip(gold, [find_spans(row["text"], language) for row in gold], strict=True))


def overlaps(span: Span, gold: dict[str, Any]) -> bool:
    return span.start < gold["end"] and gold["start"] < span.end


def recall(language: Language, types: set[str], form: str | None = None) -> float:
    hits = [
        any(span.type == gold["type"] and overlaps(span, gold) for span in spans)
        for row, spans in found(language)
        if form in (None, row["form"])
        for gold in row["spans"]
        if gold["type"] in types
    ]
    assert len(hits) >= 100
    return sum(hits) / len(hits)


def precision(language: Language, types: set[str], form: str | None = None) -> float:
    right = [
        any(span.type == gold["type"] and overlaps(span, gold) for gold in row["spans"])
        for row, spans in found(language)
        if form in (None, row["form"])
        for span in spans
        if span.type in types
    ]
    return sum(right) / len(right)


@pytest.mark.parametrize("language", LANGUAGES)
def test_structured_data_in_plain_forms(language: Language) -> None:
    assert recall(language, STRUCTURED, "plain") >= 0.99
    assert precision(language, STRUCTURED, "plain") >= 0.98


@pytest.mark.parametrize("language", LANGUAGES)
def test_structured_data_in_disguise(language: Language) -> None:
    assert recall(language, STRUCTURED, "hostile") >= 0.90
    assert precision(language, STRUCTURED, "hostile") >= 0.95


@pytest.mark.parametrize(
    ("language", "kind", "least_recall", "least_precision"),
    [
        ("en", "PERSON", 0.82, 0.60),
        ("zh", "PERSON", 0.80, 0.80),
        ("zh", "ADDRESS", 0.85, 0.80),
        ("en", "ADDRESS", 0.80, 0.80),
        ("en", "ORGANIZATION", 0.75, 0.75),
        ("zh", "ORGANIZATION", 0.22, 0.95),
    ],
)
def test_names_and_places(language: Language, kind: str, least_recall: float, least_precision: float) -> None:
    assert recall(language, {kind}) >= least_recall
    assert precision(language, {kind}) >= least_precision


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_without_a_leaked_character(language: Language) -> None:
    """Those whose only leak is an organisation are apart: one without strong evidence stays on purpose."""
    leaking = organizations = 0
    for row, spans in found(language):
        covered = {at for span in spans for at in range(span.start, span.end)}
        leaks = {
            gold["type"]
            for gold in row["spans"]
            for at in range(gold["start"], gold["end"])
            if at not in covered and not row["text"][at].isspace()
        }
        leaking += bool(leaks - {"ORGANIZATION"})
        organizations += leaks == {"ORGANIZATION"}
    assert leaking / len(found(language)) <= 0.10
    assert organizations / len(found(language)) <= 0.06


@pytest.mark.parametrize("language", LANGUAGES)
def test_messages_without_personal_data(language: Language) -> None:
    texts = [row["text"] for row in rows(f"negatives_{language}.jsonl")]
    hit = sum(bool(find_spans(text, language)) for text in texts)
    assert hit / len(texts) <= 0.08


# --- Safety -----------------------------------------------------------------------------------------------------


def one_message(language: Language, text: str) -> Dialogue:
    return Dialogue("frozen", language, (Turn("user", text),))


def crisis_shares(language: Language, name: str) -> tuple[float, float]:
    """The shares of messages, each a dialogue of its own, that are tagged as a crisis, and tagged or noted as such."""
    texts = [row["text"] for row in rows(f"{name}_{language}.jsonl")]
    found = [assess(one_message(language, text)) for text in texts]
    tagged = [any(reason.startswith("crisis.") for reason in one.reasons) for one in found]
    noted = [any(seen.category.startswith("crisis.") for seen in one.evidence) for one in found]
    return sum(tagged) / len(texts), sum(noted) / len(texts)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["crisis", "crisis2"])
def test_people_in_crisis_are_tagged_or_noted(language: Language, name: str) -> None:
    """`crisis2` is by another author, and no threshold was chosen with it in view."""
    tagged, noted = crisis_shares(language, name)
    assert tagged >= 0.58
    assert noted >= 0.86


@pytest.mark.parametrize(("language", "ceiling"), [("en", 0.15), ("zh", 0.23)])
def test_few_ordinary_messages_are_tagged(language: Language, ceiling: float) -> None:
    tagged, noted = crisis_shares(language, "everyday")
    assert tagged <= 0.02
    assert noted <= ceiling


@pytest.mark.parametrize("language", LANGUAGES)
def test_nobody_in_crisis_is_removed_for_swearing(language: Language) -> None:
    insults = json.loads((GOLDEN / "insults.json").read_text(encoding="utf-8"))[language]
    joint = " " if language == "en" else "，"
    removed = []
    for at, row in enumerate(rows(f"crisis_{language}.jsonl")):
        pair = (row["text"], insults[at % len(insults)])
        for said in (pair, pair[::-1]):
            if assess(one_message(language, joint.join(said))).remove:
                removed.append(row["id"])
    assert removed == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_harmless_mentions_of_politics_are_not_removed(language: Language) -> None:
    political = rows(f"political_{language}.jsonl")
    acts = [assess(one_message(language, row["text"])).action for row in political if row["label"] == "harmless"]
    assert acts.count("remove") == 0
    assert acts.count("review") / len(acts) <= 0.12
