"""The last step of an analysis: one span for each piece of personal data, in every message that holds it.

Presidio gives its enhancer all results of all recognisers. Here overlaps are settled, spans are kept inside messages,
and a value that was found once is found wherever the dialogue repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from presidio_analyzer import EntityRecognizer, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer

from h2htalk.curation.anonymize.engine.artifacts import DialogueArtifacts
from h2htalk.curation.anonymize.engine.model_recognizers import ModelRecognizer
from h2htalk.curation.anonymize.engine.recognizers import ChatRecognizer, to_result
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.curation.anonymize.values.dialogue_values import collect_values

THRESHOLD = 0.5
# What is left of an address beside a user's own type, and says nothing: ", staff ".
_SCRAP = re.compile(r"\W*[^\d\u4e00-\u9fff]{0,7}\W*")


class DialogueEnhancer(LemmaContextAwareEnhancer):
    """Settles the results of a dialogue; `DialogueArtifacts.data` holds its values afterwards."""

    def enhance_using_context(
        self,
        text: str,
        raw_results: list[RecognizerResult],
        nlp_artifacts: object,
        recognizers: Sequence[EntityRecognizer],
        context: Sequence[str] | None = None,
    ) -> list[RecognizerResult]:
        """Presidio's context words first, for a user's recognisers that name some; then the spans that stay."""
        artifacts = nlp_artifacts
        if not isinstance(artifacts, DialogueArtifacts):
            raise TypeError(f"the enhancer needs DialogueArtifacts, not {type(artifacts).__name__}")
        if any(recognizer.context for recognizer in recognizers):
            raw_results = super().enhance_using_context(text, raw_results, artifacts, recognizers, context)
        by_id = {recognizer.id: recognizer for recognizer in recognizers}
        found: dict[tuple[int, int, str], RecognizerResult] = {}
        ours: list[Span] = []
        users: list[Span] = []
        for result in (result for result in raw_results if round(result.score, 6) >= THRESHOLD):
            recognizer = by_id[result.recognition_metadata[RecognizerResult.RECOGNIZER_IDENTIFIER_KEY]]
            span = Span(result.start, result.end, result.entity_type, result.score, recognizer.name)
            place = (span.start, span.end, span.type)
            found[place] = max(found.get(place, result), result, key=lambda each: each.score)
            if isinstance(recognizer, ChatRecognizer):
                ours.append(span)
            elif isinstance(recognizer, ModelRecognizer):
                ours += _outside(artifacts.blocked, artifacts.in_messages(span))
            else:
                users += _outside(artifacts.allowed, artifacts.in_messages(span))
        settled = _settle(artifacts.text, ours, users)
        in_messages = artifacts.of_messages(settled)
        artifacts.data = collect_values(artifacts.texts, in_messages, artifacts.language, artifacts.allow)
        return [
            found.get((span.start, span.end, span.type)) or to_result(span)
            for span in artifacts.joined(artifacts.data.spans)
        ]


def _settle(text: str, ours: list[Span], users: list[Span]) -> list[Span]:
    """Spans that do not overlap: what a user's own recogniser found stays whole, of ours what it leaves."""
    if not users:
        return resolve_overlaps(ours)
    whole = set(ours)
    settled = []
    for span in resolve_overlaps([*ours, *(replace(span, score=span.score + 1) for span in users)]):
        if span.score > 1:
            settled.append(replace(span, score=round(span.score - 1, 6)))
        elif span in whole or span.type != "ADDRESS" or not _SCRAP.fullmatch(text[span.start : span.end]):
            settled.append(span)
    return settled


def _outside(taken: Sequence[Span], spans: Iterable[Span]) -> Iterator[Span]:
    return (span for span in spans if not any(span.overlaps(other) for other in taken))
