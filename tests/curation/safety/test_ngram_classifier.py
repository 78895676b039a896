"""The bundled classifiers. Their figures: tools/train_safety.py --check, tools/train_crisis.py --check."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.safety import crisis, political
from h2htalk.curation.safety.lexicons import OFFENSIVE, offence
from h2htalk.curation.safety.ngram_classifier import Features, load_classifier, read_features
from h2htalk.data.languages import LANGUAGES, Language

SMALL = Features("splitmix", 10, characters=(1, 2), words=(1,), gaps=True, window=20, sentences=False)
FOLDERS = (OFFENSIVE, crisis.DATA, political.DATA)

CRUEL: dict[Language, list[str]] = {
    "en": [
        "You are a worthless idiot, get lost.",
        "shut up you moron",
        "You stupid bitch, nobody wants you here.",
    ],
    "zh": ["你真是个废物，滚远点。", "你这个贱人，怎么不去死。", "河南人都是骗子，没一个好东西。"],
}
HARMLESS: dict[Language, list[str]] = {
    "en": [
        "I feel so fucking tired of everything.",
        "My mother called me a worthless idiot and I cried all night.",
        "It is wrong to say that immigrants are criminals.",
        "I'm such an idiot, I forgot her birthday.",
        "My best friend is a Muslim and we cook together on Fridays.",
        "Thank you for listening.",
    ],
    "zh": [
        "操，我真的好累，撑不下去了。",
        "我妈骂我是废物，我哭了一晚上。",
        "不该因为一个人的籍贯就看不起他。",
        "我怎么这么笨，又忘了她的生日。",
        "我的室友是新疆人，教我跳舞。",
        "谢谢你听我说这些。",
    ],
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_cruelty_scores_above_one_half_and_distress_below_high(language: Language) -> None:
    """Known weakness, not tested: text that repeats a prejudice in order to argue against it is often flagged."""
    assert min(offence(text, language) for text in CRUEL[language]) > 0.5
    assert max(offence(text, language) for text in HARMLESS[language]) < load_classifier(OFFENSIVE, language).high()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_less_is_enough_with_a_second_sign(folder: str, language: Language) -> None:
    model = load_classifier(folder, language)
    assert 0 < model.low() < model.high() < 1


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("folder", FOLDERS)
def test_scores_are_rounded_so_that_the_last_digit_of_a_sum_meets_no_threshold(folder: str, language: Language) -> None:
    scores = [load_classifier(folder, language).score(text).score for text in (*CRUEL[language], *HARMLESS[language])]
    assert scores == [round(score, 9) for score in scores]


def test_a_long_kind_message_does_not_hide_a_short_cruel_one() -> None:
    kind, cruel = (
        "今天天气很好，我们去公园散步吧。",
        "你就是个没用的废物，长得又丑又蠢，谁看见你都恶心，滚远点，贱人。",
    )
    assert offence(kind * 200, "zh") < load_classifier(OFFENSIVE, "zh").low()
    assert offence(kind * 200 + cruel * 4 + kind * 200, "zh") > 0.5


@pytest.mark.parametrize(
    "disguise",
    ["你 真 是 个 废 物，滚", "你真是个廢物，滾", "你真是个\u200b废\u200b物，滚"],
)
def test_spelling_changes_nothing(disguise: str) -> None:
    assert offence(disguise, "zh") == offence("你真是个废物，滚", "zh")


@given(st.lists(st.text(st.characters(codec=None), max_size=60), min_size=1, max_size=8))
def test_a_score_depends_on_its_text_alone(texts: list[str]) -> None:
    for language in LANGUAGES:
        model = load_classifier(crisis.DATA, language)
        found = [model.score(text) for text in texts]
        read_features.cache_clear()
        assert found[::-1] == [model.score(text) for text in texts[::-1]]
        for text, (score, start, end) in zip(texts, found, strict=True):
            assert 0 <= score <= 1
            assert 0 <= start <= end <= len(text)
            assert bool(score) == bool(text)


@given(st.text("ab 。.\n", max_size=200), st.integers(2, 30), st.booleans())
def test_readings_contain_every_character(text: str, limit: int, sentences: bool) -> None:
    spans = replace(SMALL, window=limit, sentences=sentences).readings(text)
    assert all(0 < end - start <= limit for start, end in spans)
    if not sentences:
        assert "".join(text[start:end] for start, end in spans) == text
    elif text:
        assert spans[0] == (0, min(len(text), limit))


def test_windows_end_with_a_sentence_where_they_can() -> None:
    text = "one two. three four. five"
    assert [text[a:b] for a, b in replace(SMALL, window=12).readings(text)] == [
        "one two.",
        " three four.",
        " five",
    ]


@pytest.mark.parametrize("hashing", ["splitmix", "fibonacci"])
def test_features_are_distinct_and_of_one_reading(
    hashing: Literal["splitmix", "fibonacci"],
) -> None:
    small = replace(SMALL, hashing=hashing)
    keys = small.keys(["abab 是", "", "ba c d"])
    assert (np.diff(keys) > 0).all()
    alone = small.keys(["ba c d"])
    assert [key - (2 << small.bits) for key in keys.tolist() if key >> small.bits == 2] == alone.tolist()


def test_long_messages_take_linear_time() -> None:
    started = time.process_time()
    offence("you idiot " * 20_000, "en")
    offence("废" * 70_000, "zh")
    assert time.process_time() - started < 3


def test_weights_are_small_and_nothing_is_pickled() -> None:
    package = Path(crisis.__file__).parent
    found = [path for folder in FOLDERS for path in (package / folder).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in found if path.suffix == ".weights") <= 1_800_000
    assert {path.suffix for path in found} <= {".weights", ".json", ".toml", ".md", ".txt"}


def test_scoring_needs_neither_scikit_learn_nor_scipy() -> None:
    code = (
        "import sys; from h2htalk.curation.safety.lexicons import offence; offence('a', 'zh'); "
        "print([name for name in ('sklearn', 'scipy', 'spacy', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_manifests_list_training_texts() -> None:
    for language in LANGUAGES:
        training = load_classifier(OFFENSIVE, language).manifest["training"]
        assert f"texts_{language}.jsonl" in training["sha256"]
        assert not any("esconv" in name for name in training["sha256"])
        assert load_classifier(OFFENSIVE, language).manifest["figures"]
