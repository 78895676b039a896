"""Extra recognisers: spaCy's interface on a real pipeline, GLiNER's on a stand-in that takes its calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from h2htalk.curation.anonymize.find_spans import find_spans
from h2htalk.curation.anonymize.ner_models import _gliner, name_finder
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.text.parsing.parsing import MODELS


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    _gliner.cache_clear()


def test_bundled_and_none_add_nothing() -> None:
    assert name_finder("bundled", "en") is None
    assert name_finder("none", "zh") is None


def test_a_spacy_pipeline_is_read_through_its_folder() -> None:
    finder = name_finder(f"spacy:{MODELS / 'en_names'}", "en")
    assert finder is not None
    text = "Yesterday Jonathan Whitmore went to Berlin with Sarah Connelly."
    spans = finder([text, ""])
    assert "Sarah Connelly" in [text[s.start : s.end] for s in spans[0] if s.type == "PERSON"]
    assert "Berlin" not in [text[s.start : s.end] for s in spans[0]]
    assert spans[1] == []


def test_a_spacy_model_that_is_not_there_is_an_error_that_says_what_to_type() -> None:
    with pytest.raises(ConfigError, match="python -m spacy download"):
        name_finder("spacy:no_such_model", "en")


def test_what_is_not_installed_is_an_error_that_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gliner", None)
    with pytest.raises(MissingExtraError, match="pip install gliner"):
        name_finder("gliner:some/model", "zh")


class _Model:
    """Takes GLiNER's call and finds one name."""

    asked: list[tuple[int, list[str], float]]

    @classmethod
    def from_pretrained(cls, name: str) -> _Model:
        if name == "missing":
            raise OSError("No such file or directory: 'missing'")
        model = cls()
        model.asked = []
        return model

    def batch_predict_entities(
        self,
        texts: list[str],
        labels: list[str],
        flat_ner: bool = True,
        threshold: float = 0.5,
        multi_label: bool = False,
    ) -> list[list[dict[str, Any]]]:
        self.asked.append((len(texts), labels, threshold))
        assert all(len(text) <= 1000 for text in texts)
        return [
            [{"start": at, "end": at + 6, "text": "Zorblo", "label": "person", "score": 0.93}]
            if (at := text.find("Zorblo")) >= 0
            else []
            for text in texts
        ]


def test_gliner_reads_pieces_and_its_spans_join_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("gliner")
    module.GLiNER = _Model
    monkeypatch.setitem(sys.modules, "gliner", module)
    text = "well. " * 400 + "so zorblo and Zorblo met, mail a.b@gmail.com"
    spans = find_spans(text, "en", ner="gliner:some/model")
    assert ("Zorblo", "PERSON", 0.93) in [(text[s.start : s.end], s.type, s.score) for s in spans]
    assert "EMAIL_ADDRESS" in {s.type for s in spans}
    with pytest.raises(ConfigError, match=r"gliner:urchade/gliner_multi"):
        name_finder("gliner:missing", "en")
