"""Our recognisers, as Presidio's registry holds them: six families, each with its types.

Take one out of the registry, and its types are lost. `structured/rules.py` is the table of the rules of the first
three, whose names `found_by` gives; the others ask the languages' recognisers of names (`Language.name_recognizer`).
"""

from __future__ import annotations

from collections.abc import Sequence

from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult

from h2htalk.curation.anonymize.engine.dialogue_text import DialogueText
from h2htalk.curation.anonymize.spans import Span

# What each family finds, by its name in Presidio's registry.
FAMILIES = {
    "ChatWebRecognizer": ("EMAIL_ADDRESS", "URL", "IP_ADDRESS"),
    "ChatNumberRecognizer": (
        "PHONE_NUMBER",
        "NATIONAL_ID",
        "CREDIT_CARD",
        "ACCOUNT_NUMBER",
        "LICENSE_PLATE",
        "DATE_OF_BIRTH",
    ),
    "ChatAccountRecognizer": ("WECHAT", "QQ", "HANDLE"),
    "ChatAddressRecognizer": ("ADDRESS",),
    "ChatOrganizationRecognizer": ("ORGANIZATION",),
    "ChatPersonRecognizer": ("PERSON",),
}
_NAMED = frozenset({"ADDRESS", "ORGANIZATION", "PERSON"})


class ChatRecognizer(EntityRecognizer):
    """One family of our rules."""

    def load(self) -> None:
        """Word lists are loaded when they are first needed."""

    def analyze(self, text: str, entities: Sequence[str], nlp_artifacts: object = None) -> list[RecognizerResult]:
        """The spans of this family's types; places count characters of `text`."""
        dialogue = nlp_artifacts
        if not isinstance(dialogue, DialogueText):
            dialogue = DialogueText([text], self.supported_language)
        asked = {kind for kind in self.supported_entities if kind in entities}
        found = dialogue.names if asked & _NAMED else dialogue.structured if asked else []
        return [to_result(span, self) for span in found if span.type in asked]


def chat_recognizers(language: str) -> list[EntityRecognizer]:
    """Our recognisers of a language."""
    return [ChatRecognizer(list(types), name=name, supported_language=language) for name, types in FAMILIES.items()]


def to_result(span: Span, recognizer: EntityRecognizer | None = None) -> RecognizerResult:
    """A span as Presidio's result; without a recogniser, one that was settled."""
    name = recognizer.name if recognizer else span.found_by
    metadata = {RecognizerResult.RECOGNIZER_NAME_KEY: name}
    if recognizer is not None:
        metadata[RecognizerResult.RECOGNIZER_IDENTIFIER_KEY] = recognizer.id
    explanation = AnalysisExplanation(name, span.score, pattern_name=span.found_by if recognizer else None)
    return RecognizerResult(span.type, span.start, span.end, span.score, explanation, metadata)


def to_span(result: RecognizerResult) -> Span:
    """A result as a span; `found_by` gives Presidio's decision process without the words of the text."""
    explanation = result.analysis_explanation
    found_by = str(result.recognition_metadata[RecognizerResult.RECOGNIZER_NAME_KEY])
    if explanation and explanation.pattern_name:
        found_by += f", pattern {explanation.pattern_name}"
    if explanation and explanation.supportive_context_word:
        found_by += f", context word {explanation.supportive_context_word}"
    return Span(result.start, result.end, result.entity_type, round(float(result.score), 6), found_by)
