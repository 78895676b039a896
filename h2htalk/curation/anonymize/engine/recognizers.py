"""Our recognisers, as Presidio's registry holds them: six families, each with its types.

Each gives the spans of its types that `DialogueArtifacts` holds; take one out of the registry, and its types are lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult

from h2htalk.curation.anonymize.engine.artifacts import DialogueArtifacts
from h2htalk.curation.anonymize.spans import Span

WEB = ("EMAIL_ADDRESS", "URL", "IP_ADDRESS")
NUMBERS = ("PHONE_NUMBER", "NATIONAL_ID", "CREDIT_CARD", "ACCOUNT_NUMBER", "LICENSE_PLATE", "DATE_OF_BIRTH")
ACCOUNTS = ("WECHAT", "QQ", "HANDLE")
# What each family finds, by its name in Presidio's registry.
FAMILIES = {
    "ChatWebRecognizer": WEB,
    "ChatNumberRecognizer": NUMBERS,
    "ChatAccountRecognizer": ACCOUNTS,
    "ChatAddressRecognizer": ("ADDRESS",),
    "ChatOrganizationRecognizer": ("ORGANIZATION",),
    "ChatPersonRecognizer": ("PERSON",),
}
_STRUCTURED = frozenset({*WEB, *NUMBERS, *ACCOUNTS})


class ChatRecognizer(EntityRecognizer):
    """One family of our rules."""

    def load(self) -> None:
        """Word lists are loaded when they are first needed."""

    def analyze(self, text: str, entities: Sequence[str], nlp_artifacts: object = None) -> list[RecognizerResult]:
        """The spans of this family's types; places count characters of `text`."""
        artifacts = nlp_artifacts
        if not isinstance(artifacts, DialogueArtifacts):
            artifacts = DialogueArtifacts([text], self.supported_language)
        asked = {kind for kind in self.supported_entities if kind in entities}
        found = artifacts.structured if asked & _STRUCTURED else []
        names = artifacts.names if asked - _STRUCTURED else []
        return [to_result(span, self) for span in (*found, *names) if span.type in asked]


def to_result(span: Span, recognizer: EntityRecognizer | None = None) -> RecognizerResult:
    """A span as Presidio's result; without a recogniser, that of a value which the dialogue repeats."""
    name = recognizer.name if recognizer else span.found_by
    metadata = {RecognizerResult.RECOGNIZER_NAME_KEY: name}
    if recognizer is not None:
        metadata[RecognizerResult.RECOGNIZER_IDENTIFIER_KEY] = recognizer.id
    told = AnalysisExplanation(name, span.score)
    return RecognizerResult(span.type, span.start, span.end, span.score, told, metadata)


def to_span(result: RecognizerResult) -> Span:
    """A result as a span; `found_by` tells Presidio's decision process without the words of the text."""
    told = result.analysis_explanation
    found_by = str(result.recognition_metadata[RecognizerResult.RECOGNIZER_NAME_KEY])
    if told and told.pattern_name:
        found_by += f", pattern {told.pattern_name}"
    if told and told.supportive_context_word:
        found_by += f", context word {told.supportive_context_word}"
    return Span(result.start, result.end, result.entity_type, result.score, found_by)


def chat_recognizers(language: str) -> list[EntityRecognizer]:
    """Our recognisers of a language."""
    return [ChatRecognizer(list(types), name=name, supported_language=language) for name, types in FAMILIES.items()]
