"""The bundled classifiers. Their figures: tools/train_safety.py --check, tools/train_crisis.py --check."""

from __future__ import annotations

import subprocess
import sys
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
from h2htalk.data.languages import LANGUAGES

SMALL = Features("splitmix", 10, characters=(1, 2), words=(1,), gaps=True, window=20, sentences=False)
FOLDERS = (OFFENSIVE, crisis.DATA, political.DATA)


def test_a_long_kind_message_does_not_hide_a_short_cruel_one() -> None:
    kind, cruel = (
        "今天天气很好，我们去公园散步吧。",
        "你就是个没用的废物，长得又丑又蠢，谁看见你都恶心，滚远点，贱人。",
    )
    assert offence(kind * 200, "zh") < load_classifier(OFFENSIVE, "zh").low()
    assert offence(kind * 200 + cruel * 4 + kind * 200, "zh") > 0.5


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


@pytest.mark.parametrize("hashing", ["splitmix", "fibonacci"])
def test_features_are_distinct_and_of_one_reading(
    hashing: Literal["splitmix", "fibonacci"],
) -> None:
    small = replace(SMALL, hashing=hashing)
    keys = small.keys(["abab 是", "", "ba c d"])
    assert (np.diff(keys) > 0).all()
    alone = small.keys(["ba c d"])
    assert [key - (2 << small.bits) for key in keys.tolist() if key >> small.bits == 2] == alone.tolist()


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
