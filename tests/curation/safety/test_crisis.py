"""Crisis messages are found in plain and oblique words, in both languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.safety import crisis
from h2htalk.curation.safety.crisis import CATEGORIES, crisis_cues
from h2htalk.data.languages import LANGUAGES, Language

HERE = Path(__file__).parent


def development(language: Language) -> list[dict[str, str]]:
    lines = (HERE / f"dev_crisis_{language}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("language", LANGUAGES)
def test_recall_on_our_own_development_set(language: Language) -> None:
    rows = [row for row in development(language) if row["label"] == "crisis"]
    found = [crisis.find_crisis(row["text"], language) is not None for row in rows]
    assert len(rows) >= 60
    assert sum(found) / len(found) >= 0.92


@pytest.mark.parametrize("language", LANGUAGES)
def test_few_ordinary_messages_are_tagged(language: Language) -> None:
    """The classifier was trained on these writers' texts; `tools/train_crisis.py --curve` measures unseen writers."""
    writers = {"en": "ef", "zh": "gh"}[language]
    folder = HERE.parents[2] / "tools/crisis"
    texts = [
        line
        for writer in writers
        for line in (folder / f"harmless_{language}_{writer}.txt").read_text(encoding="utf-8").splitlines()
    ][::2]
    assert len(texts) >= 700
    assert sum(crisis.find_crisis(text, language) is not None for text in texts) / len(texts) <= 0.13


@pytest.mark.parametrize(
    ("text", "language", "category"),
    [
        ("I want to die", "en", "crisis.ideation"),
        ("i don’t want to be alive anymore", "en", "crisis.ideation"),
        ("ＩＷＡＮＴ ｔｏ ｄｉｅ but also: kms", "en", "crisis.ideation"),
        ("My friend said she wants to die", "en", None),
        ("I've been cutting again", "en", "crisis.self_harm"),
        ("我不想活了", "zh", "crisis.ideation"),
        ("我不想活了" + "。" + "哈哈" * 300, "zh", "crisis.ideation"),
        ("我 不 想 活 了", "zh", "crisis.ideation"),
        ("我不*想*活了", "zh", "crisis.ideation"),
        ("我不\u200b想\u200b活了", "zh", "crisis.ideation"),
        ("我想自殺", "zh", "crisis.ideation"),
        ("我又自残了", "zh", "crisis.self_harm"),
        ("I want to die", "zh", "crisis.ideation"),
        ("我不想活了", "en", "crisis.ideation"),
    ],
)
def test_plain_words_in_any_spelling(text: str, language: Language, category: str | None) -> None:
    found = crisis.find_crisis(text, language)
    assert found is not None
    assert category is None or found.category == category


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I'm dying of laughter at this video", "en"),
        ("I could kill for a coffee", "en"),
        ("dying to see the new film", "en"),
        ("this homework is killing me", "en"),
        ("My phone died again", "en"),
        ("What should I cook tonight?", "en"),
        ("笑死我了，这视频", "zh"),
        ("饿死了，想吃火锅", "zh"),
        ("今晚吃什么好呢", "zh"),
        ("手机又死机了", "zh"),
        ("我想死你了，什么时候回来", "zh"),
    ],
)
def test_figures_of_speech_are_no_crisis(text: str, language: Language) -> None:
    assert crisis.find_crisis(text, language) is None


def test_the_span_is_in_the_original_text() -> None:
    text = "Hello!\u200b  It's  me. I don’t want to be alive anymore. Bye."
    found = crisis.find_crisis(text, "en")
    assert found is not None
    assert "want to be alive" in text[found.start : found.end]


def test_cues_have_known_categories_and_lower_case_needles() -> None:
    for language in LANGUAGES:
        for cue in crisis_cues(language).cues:
            assert cue.category in CATEGORIES
            assert all(needle == needle.lower() for needle in cue.needles)


@given(text=st.text(max_size=200), language=st.sampled_from(LANGUAGES))
def test_any_text_is_read_and_spans_are_inside_it(text: str, language: Language) -> None:
    found = crisis.find_crisis(text, language)
    assert found is None or (0 <= found.start <= found.end <= len(text) and 0 <= found.score <= 1)
