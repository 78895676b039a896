"""Our recognisers for Presidio's engines.

    from h2htalk.curation.anonymize.presidio_adapter import analyzer
    analyzer("zh").analyze("我叫张伟，电话13812345678", language="zh")

Presidio's `AnonymizerEngine` takes the results; `merge_entities_with_spaces=False` keeps neighbours of one type apart.

Nothing is downloaded: the engine runs without a spaCy model (ours bring their own evidence, and cues are part of their
rules, so that Presidio's context words change nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.curation.anonymize.find_spans import find_spans
from h2htalk.curation.anonymize.ner_models import INSTALL_CURATION
from h2htalk.curation.anonymize.spans import TYPES, Span
from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.errors import ConfigError, MissingExtraError, quoted

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult

NAMES = ("ADDRESS", "PERSON", "ORGANIZATION")
STRUCTURED = tuple(name for name in TYPES if name not in NAMES)
_ENGLISH_LACKS = ("QQ",)


def recognizers(language: str, *, allow: Sequence[str] = ()) -> list[EntityRecognizer]:
    """Our two recognisers of a language: of structured data, and of names, addresses and organisations.

    Args:
        language: `en` or `zh`.
        allow: names that stay.

    Raises:
        MissingExtraError: Presidio is not installed.
        ConfigError: no such language.
    """
    try:
        from presidio_analyzer import EntityRecognizer, RecognizerResult

        from h2htalk.curation.anonymize.structured.structured import find_structured
    except ImportError as error:
        raise MissingExtraError("Presidio's engine", INSTALL_CURATION) from error
    if language not in LANGUAGES:
        raise ConfigError(f"no recognisers for language {quoted(language)}; choose from {', '.join(LANGUAGES)}")

    class _Ours(EntityRecognizer):
        """What has a form of its own (numbers, addresses of the net); or people, addresses and organisations."""

        def load(self) -> None:
            """Words and models are loaded when they are first needed."""

        def __init__(self, entities: list[str], find: Callable[[str], list[Span]], name: str) -> None:
            super().__init__(entities, name=name, supported_language=language)
            self._find, self._name = find, name

        def analyze(self, text: str, entities: list[str], nlp_artifacts: object = None) -> list[RecognizerResult]:
            """The spans of the entities asked for."""
            asked = set(entities or self.supported_entities)
            told: dict[str, Any] = {
                RecognizerResult.RECOGNIZER_NAME_KEY: self._name,
                RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
            }
            return [
                RecognizerResult(span.type, span.start, span.end, span.score, recognition_metadata=dict(told))
                for span in self._find(text)
                if span.type in asked and span.type in self.supported_entities
            ]

    structured = [
        name for name in STRUCTURED if find_language(language).number_rules == "zh" or name not in _ENGLISH_LACKS
    ]
    return [
        _Ours(structured, lambda text: find_structured(text, language), "ChatStructuredRecognizer"),
        _Ours(list(NAMES), lambda text: find_spans(text, language, allow=allow), "ChatNamesRecognizer"),
    ]


def registry_with_ours(languages: Sequence[str] = LANGUAGES, *, allow: Sequence[str] = ()) -> RecognizerRegistry:
    """A registry that holds our recognisers of these languages and no other. Errors as `recognizers`."""
    ours = [recognizer for language in languages for recognizer in recognizers(language, allow=allow)]
    from presidio_analyzer import RecognizerRegistry

    return RecognizerRegistry(ours, supported_languages=list(languages))


def analyzer(language: str, *, allow: Sequence[str] = ()) -> AnalyzerEngine:
    """Presidio's engine with our recognisers of one language. Errors as `recognizers`."""
    registry = registry_with_ours([language], allow=allow)
    from presidio_analyzer import AnalyzerEngine
    from presidio_analyzer.nlp_engine import NoOpNlpEngine

    engine = NoOpNlpEngine(models=[{"lang_code": language, "model_name": "none"}])
    return AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=[language])
