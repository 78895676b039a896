"""The bundled classifiers. Their figures: tools/eval_safety.py, tools/train_kinds.py --check."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.safety import crisis, ngram_classifier
from h2htalk.curation.safety.lexicons import OFFENSIVE, POLITICAL_DATA, offence
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.data.languages import LANGUAGES

FOLDERS = (OFFENSIVE, crisis.DATA, POLITICAL_DATA)


def test_a_long_kind_message_does_not_hide_a_short_cruel_one() -> None:
    kind, cruel = "今天天气很好，我们去公园散步吧。", "你就是个没用的废物，长得又丑又蠢，谁看见你都恶心，滚远点，贱人。"
    assert offence(kind * 200, "zh") < load_classifier(OFFENSIVE, "zh").low()
    assert offence(kind * 200 + cruel * 4 + kind * 200, "zh") > 0.5


@given(st.lists(st.text(st.characters(codec=None), max_size=60), min_size=1, max_size=8))
def test_a_score_depends_on_its_text_alone(texts: list[str]) -> None:
    for language in LANGUAGES:
        model = load_classifier(POLITICAL_DATA, language)
        found = [model.score(text) for text in texts]
        ngram_classifier._READ.clear()
        ngram_classifier.read_together(texts[::-1], model.features)
        assert found[::-1] == [model.score(text) for text in texts[::-1]]
        for text, (score, start, end) in zip(texts, found, strict=True):
            assert 0 <= score <= 1
            assert 0 <= start <= end <= len(text)
            assert bool(score) == bool(text)


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
