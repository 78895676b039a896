"""The frozen sets, written before any rule: results must not fall below the asked or measured values."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from safety_made import GOLDEN, dialogues, rows, talk

from h2htalk.curation.anonymize.engine.analyzer import find_spans
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.safety.companion import REVIEW, find_companion
from h2htalk.curation.safety.stage import assess
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn

STRUCTURED = {  # a web address without an account, which these sets label, stays
    *("EMAIL_ADDRESS", "PHONE_NUMBER", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER"),
    *("QQ", "WECHAT", "LICENSE_PLATE", "IP_ADDRESS"),
}


@cache
def found(language: Language) -> tuple[tuple[dict[str, Any], list[Span]], ...]:
    gold = rows(GOLDEN / f"pii_{language}.jsonl")
    return tuple(zip(gold, [find_spans(row["text"], language) for row in gold], strict=True))


@pytest.mark.parametrize(
    ("language", "types", "form", "recall", "precision"),
    [
        ("en", STRUCTURED, "plain", 0.985, 0.98),  # English customer numbers, .3 %, are not looked for
        ("zh", STRUCTURED, "plain", 0.99, 0.98),
        *((language, STRUCTURED, "hostile", 0.90, 0.95) for language in LANGUAGES),
        ("en", {"PERSON"}, None, 0.82, 0.60),
        ("zh", {"PERSON"}, None, 0.80, 0.80),
        ("zh", {"ADDRESS"}, None, 0.85, 0.80),
        ("en", {"ADDRESS"}, None, 0.80, 0.80),
        ("en", {"ORGANIZATION"}, None, 0.72, 0.75),
    ],
)
def test_personal_data(language: Language, types: set[str], form: str | None, recall: float, precision: float) -> None:
    chosen = [(row["spans"], spans) for row, spans in found(language) if form in (None, row["form"])]
    alike = [(g, s) for gold, spans in chosen for g in gold for s in spans if s.type == g["type"] in types]
    pairs = [(g, s) for g, s in alike if s.start < g["end"] and g["start"] < s.end]
    gold = sum(one["type"] in types for own, _ in chosen for one in own)
    claimed = sum(one.type in types for _, own in chosen for one in own)
    assert gold >= 100
    assert len({id(one) for one, _ in pairs}) / gold >= recall
    assert len({id(one) for _, one in pairs}) / claimed >= precision


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
    assert organizations / len(found(language)) <= (0.08 if language == "zh" else 0.06)  # zh: not looked for
    harmless = [bool(find_spans(row["text"], language)) for row in rows(GOLDEN / f"negatives_{language}.jsonl")]
    assert sum(harmless) / len(harmless) <= 0.08


def crisis_shares(language: Language, name: str) -> tuple[float, float]:
    """The shares of messages, each a dialogue of its own, that are tagged as a crisis, and tagged or noted as such."""
    acts = [assess(talk(row["text"], language=language)) for row in rows(GOLDEN / f"{name}_{language}.jsonl")]
    tagged = [any(reason.startswith("crisis.") for reason in one.reasons) for one in acts]
    noted = [any(seen.category.startswith("crisis.") for seen in one.evidence) for one in acts]
    return sum(tagged) / len(acts), sum(noted) / len(acts)


@pytest.mark.parametrize("language", LANGUAGES)
def test_people_in_crisis_are_tagged_or_noted(language: Language) -> None:
    """`crisis2` is by another author, and no threshold was chosen with it in view."""
    for name in ("crisis", "crisis2"):
        tagged, noted = crisis_shares(language, name)
        assert tagged >= {"en": 0.38, "zh": 0.37}[language]  # oblique ones alone in a message are mostly missed
        assert noted >= {"en": 0.54, "zh": 0.64}[language]
    tagged, noted = crisis_shares(language, "everyday")
    assert tagged <= 0.01
    assert noted <= {"en": 0.03, "zh": 0.14}[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_hardly_anybody_in_crisis_is_removed_for_swearing(language: Language) -> None:
    """One oblique Chinese message of 200 is, with one of two insults: no sign of a crisis is seen in it."""
    insults = json.loads((GOLDEN / "insults.json").read_text(encoding="utf-8"))[language]
    joint = " " if language == "en" else "，"
    removed = []
    for at, row in enumerate(rows(GOLDEN / f"crisis_{language}.jsonl")):
        pair = [row["text"], insults[at % len(insults)]]
        removed += [said for said in (pair, pair[::-1]) if assess(talk(joint.join(said), language=language)).remove]
    assert len(removed) <= {"en": 0, "zh": 2}[language]


@pytest.mark.parametrize("language", LANGUAGES)
def test_harmless_mentions_of_politics_are_not_removed(language: Language) -> None:
    harmless = [row["text"] for row in rows(GOLDEN / f"political_{language}.jsonl") if row["label"] == "harmless"]
    acts = [assess(talk(text, language=language)).action for text in harmless]
    assert acts.count("remove") == 0
    assert acts.count("review") / len(acts) <= 0.12


@pytest.mark.parametrize(
    ("language", "least"),
    [
        ("en", {"harm": 0.6, "explicit": 0.9, "minors": 0.9, "harmless": -0.1}),
        ("zh", {"harm": 0.85, "explicit": 0.95, "minors": 0.95, "harmless": -0.14}),
    ],
)
def test_companions_are_caught_as_measured(language: Language, least: dict[str, float]) -> None:
    """docs/measurements.md has the figures; these are a little below them."""
    everyday = {
        "en": "The bakery on the corner has new opening hours, and the tram was late. The basil looks happier. ",
        "zh": "街角的面包店换了营业时间，早上的电车又晚点了。我终于给罗勒换了盆，看起来精神多了。",
    }[language]
    excerpts = dialogues(GOLDEN / f"companion_{language}.jsonl", language)
    for kind, share in least.items():
        own = [one for name, one in excerpts if name == kind]
        acts = [assess(one).action for one in own]
        caught = sum(act in ("remove", "review") for act in acts) / len(acts)
        assert caught >= share if share > 0 else caught <= -share
        if language == "en" and kind == "harmless":  # the classifier is not sure enough to remove by itself
            assert "remove" not in acts
        if kind == "explicit":  # everyday sentences around a sexual one hide less than half
            talks = [one.messages for one in own]
            diluted = [(*before, Turn("companion", everyday + last.content)) for *before, last in talks]
            seen = [any(one.score >= REVIEW for one in find_companion(turns, language)) for turns in diluted]
            assert sum(seen) >= 0.6 * len(seen)
