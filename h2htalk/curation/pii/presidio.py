"""Our recognisers for Presidio's engines, and Presidio's operators over our spans.

    from h2htalk.curation.pii.presidio import analyzer, operated
    analyzer("zh").analyze("我叫张伟，电话13812345678", language="zh")

Nothing is downloaded: the engine runs without a spaCy model (ours bring their own evidence, and cues are part of their
rules, so that Presidio's context words change nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from h2htalk.curation.pii.find import find_spans
from h2htalk.curation.pii.spans import TYPES, Span
from h2htalk.curation.pii.structured import find_structured
from h2htalk.data.dialogue import LANGUAGES
from h2htalk.errors import ConfigError, MissingExtraError, quoted

if TYPE_CHECKING:
    from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
    from presidio_anonymizer.entities import OperatorConfig

INSTALL = 'pip install "h2htalk[curation]"'
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
    except ImportError as error:
        raise MissingExtraError("Presidio's engine", INSTALL) from error
    if language not in LANGUAGES:
        raise ConfigError(
            f"no recognisers for language {quoted(language)}; choose from {', '.join(LANGUAGES)}"
        )

    class _Ours(EntityRecognizer):
        """What has a form of its own (numbers, addresses of the net); or people, addresses and organisations."""

        def load(self) -> None:
            """Words and models are loaded when they are first needed."""

        def __init__(self, entities: list[str], find: Callable[[str], list[Span]], name: str) -> None:
            super().__init__(entities, name=name, supported_language=language)
            self._find, self._name = find, name

        def analyze(
            self, text: str, entities: list[str], nlp_artifacts: object = None
        ) -> list[RecognizerResult]:
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

    structured = [name for name in STRUCTURED if language == "zh" or name not in _ENGLISH_LACKS]
    return [
        _Ours(structured, lambda text: find_structured(text, language), "ChatStructuredRecognizer"),
        _Ours(list(NAMES), lambda text: find_spans(text, language, allow=allow), "ChatNamesRecognizer"),
    ]


def registry_with_ours(
    languages: Sequence[str] = LANGUAGES, *, allow: Sequence[str] = ()
) -> RecognizerRegistry:
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


def operated(text: str, spans: Sequence[Span], operators: Mapping[str, OperatorConfig] | None = None) -> str:
    """A text with Presidio's operators over our spans (`replace`, `mask`, `redact`, `hash`, `encrypt`, `custom`).

    Args:
        text: as it was given to `find_spans`.
        spans: in order, without overlaps.
        operators: by type; `DEFAULT` for the others; `replace` where none is named.

    Unlike Presidio's engine this keeps two persons side by side apart ("Tom Ann" is not one).

    Raises:
        MissingExtraError: Presidio is not installed.
    """
    try:
        from presidio_anonymizer.entities import OperatorConfig
        from presidio_anonymizer.operators import OperatorsFactory, OperatorType
    except ImportError as error:
        raise MissingExtraError("Presidio's operators", INSTALL) from error
    factory: Any = OperatorsFactory()  # type: ignore[no-untyped-call]
    chosen = dict(operators or {})
    fallback = chosen.get("DEFAULT", OperatorConfig("replace"))
    parts: list[str] = []
    at = 0
    for span in spans:
        config = chosen.get(span.type, fallback)
        operator = factory.create_operator_class(config.operator_name, OperatorType.Anonymize)
        params = {**config.params, "entity_type": span.type}
        operator.validate(params=params)
        parts += [text[at : span.start], operator.operate(text=text[span.start : span.end], params=params)]
        at = span.end
    return "".join([*parts, text[at:]])
