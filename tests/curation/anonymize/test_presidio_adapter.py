"""Our recognisers in Presidio's engines; no network, no model."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from typing import Any

import pytest

from h2htalk.curation.anonymize.find_spans import find_spans
from h2htalk.curation.anonymize.presidio_adapter import analyzer, recognizers, registry_with_ours
from h2htalk.errors import ConfigError

# Looked up, not imported: Presidio imports transformers and torch.
pytestmark = pytest.mark.skipif(find_spec("presidio_analyzer") is None, reason="the curation extra is not installed")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a recogniser called out")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "my name is Tom Baker, mail tom@baker.com, phone 415-555-2671, I work at Mercy Hospital"),
        ("zh", "我叫张伟，邮箱是lin88@qq.com吧，电话13812345678，QQ 12345678，住在和平里小区6栋176"),
    ],
)
def test_the_engine_finds_what_we_find(language: str, text: str) -> None:
    results = analyzer(language).analyze(text, language=language)
    ours = [(s.start, s.end, s.type) for s in find_spans(text, language)]
    assert sorted((r.start, r.end, r.entity_type) for r in results) == ours
    assert {r.recognition_metadata["recognizer_name"] for r in results} == {
        "ChatStructuredRecognizer",
        "ChatNamesRecognizer",
    }


def test_entities_can_be_chosen_and_names_allowed() -> None:
    engine = analyzer("en", allow=["Tom Baker"])
    text = "my name is Tom Baker, mail tom@baker.com"
    assert [r.entity_type for r in engine.analyze(text, language="en")] == ["EMAIL_ADDRESS"]
    assert engine.analyze(text, language="en", entities=["PERSON"]) == []


def test_one_registry_holds_both_languages() -> None:
    registry = registry_with_ours()
    assert {r.supported_language for r in registry.recognizers} == {"en", "zh"}
    assert "QQ" in registry.get_supported_entities(["zh"])
    with pytest.raises(ConfigError, match="choose from en, zh"):
        recognizers("fr")


def test_presidios_anonymizer_takes_the_results_and_keeps_neighbours_apart() -> None:
    from presidio_anonymizer import AnonymizerEngine

    text = "my friends Tom Baker and Ann Miller, mail tom@baker.com"
    results: Any = analyzer("en").analyze(text, language="en")
    engine: Any = AnonymizerEngine()
    made = engine.anonymize(text, results, merge_entities_with_spaces=False)
    assert made.text == "my friends <PERSON> and <PERSON>, mail <EMAIL_ADDRESS>"
