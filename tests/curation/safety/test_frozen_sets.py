"""The frozen sets, written before any rule: results must not fall below the asked or measured values."""

from __future__ import annotations

import json

import pytest
from safety_made import GOLDEN, dialogues, rows, talk

from h2htalk.curation.safety.companion import REVIEW, find_companion
from h2htalk.curation.safety.stage import assess
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn


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
