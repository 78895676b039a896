"""Personal data in a dialogue: one analysis by Presidio of all its messages.

    from h2htalk.curation.anonymize.engine.analyzer import chat_analyzer, find_spans
    chat_analyzer("zh").analyze("我叫张伟，电话13812345678", language="zh")

Nothing is downloaded, and no language model is loaded unless a user's recogniser names one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer

from h2htalk.curation.anonymize.engine.dialogue_text import ChatNlpEngine, DialogueText
from h2htalk.curation.anonymize.engine.recognizers import ChatRecognizer, chat_recognizers, to_result, to_span
from h2htalk.curation.anonymize.engine.user_recognizers import MODELS, UserRegistry, load_recognizers
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.curation.anonymize.values.dialogue_values import DialogueData, collect_values
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, quoted

THRESHOLD = 0.5
# What is left of an address beside a user's own type, and says nothing: ", staff ".
_SCRAP = re.compile(r"\W*[^\d\u4e00-\u9fff]{0,7}\W*")


class DialogueEnhancer(LemmaContextAwareEnhancer):
    """Settles the results of a dialogue; `DialogueText.data` holds its values afterwards."""

    def enhance_using_context(
        self,
        text: str,
        raw_results: list[RecognizerResult],
        nlp_artifacts: object,
        recognizers: Sequence[EntityRecognizer],
        context: Sequence[str] | None = None,
    ) -> list[RecognizerResult]:
        """Presidio's context words first, for a user's recognisers that name some; then the spans that stay."""
        dialogue = nlp_artifacts
        if not isinstance(dialogue, DialogueText):
            raise TypeError(f"the enhancer needs a DialogueText, not {type(dialogue).__name__}")
        if any(recognizer.context for recognizer in recognizers):
            raw_results = super().enhance_using_context(text, raw_results, dialogue, recognizers, context)
        by_id = {recognizer.id: recognizer for recognizer in recognizers}
        ours: list[Span] = []
        users: list[Span] = []
        for span, result in ((to_span(result), result) for result in raw_results):
            recognizer = by_id[result.recognition_metadata[RecognizerResult.RECOGNIZER_IDENTIFIER_KEY]]
            if span.score < THRESHOLD:
                continue
            if isinstance(recognizer, ChatRecognizer):
                ours.append(span)
            elif isinstance(recognizer, MODELS):
                ours += _outside(dialogue.blocked(by_models=True), dialogue.in_messages(span))
            else:
                users += _outside(dialogue.blocked(by_models=False), dialogue.in_messages(span))
        spans_of_messages = dialogue.of_messages(_settle(dialogue.text, ours, users))
        dialogue.data = collect_values(dialogue.texts, spans_of_messages, dialogue.language, dialogue.allow)
        return [
            to_result(replace(span, start=span.start + offset, end=span.end + offset))
            for offset, spans in zip(dialogue.offsets, dialogue.data.spans, strict=True)
            for span in spans
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


NO_REGISTRY = UserRegistry()


@lru_cache(maxsize=16)
def chat_analyzer(language: str, users: UserRegistry = NO_REGISTRY) -> AnalyzerEngine:
    """Presidio's engine with our recognisers of a language, and a user's beside them.

    Args:
        language: `en` or `zh`.
        users: a user's own recognisers (`read_registry`).

    Raises:
        ConfigError: no such language, or a recogniser cannot be loaded.
        MissingExtraError: a recogniser's package is not installed.
    """
    if language not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise ConfigError(f"no recognisers of personal data for language {quoted(language)}; choose from {known}")
    recognizers = [*chat_recognizers(language), *load_recognizers(users, language)]
    registry = RecognizerRegistry(recognizers, supported_languages=[language])
    with warnings.catch_warnings():
        # Presidio warns that context words need tokens, which an engine without a model has not; ours has.
        warnings.simplefilter("ignore", UserWarning)
        return AnalyzerEngine(
            registry=registry,
            nlp_engine=ChatNlpEngine([{"lang_code": language, "model_name": ""}]),
            supported_languages=[language],
            context_aware_enhancer=DialogueEnhancer(),
        )


def find_in_dialogue(
    texts: Sequence[str],
    language: str,
    *,
    allow: Sequence[str] = (),
    users: UserRegistry = NO_REGISTRY,
    keep: Sequence[str] = (),
    countries: Sequence[str] = (),
    names: Sequence[int] = (),
) -> DialogueData:
    """Personal data in the texts of one dialogue; the spans of a text are in order and do not overlap.

    Args:
        texts: any texts: half surrogate pairs, NUL and millions of characters are read like all else.
        language: `en` or `zh`.
        allow: names that stay, beside the bundled personas and people whom everybody knows.
        users: a user's own recognisers.
        keep: types that are not looked for.
        countries: of whose telephone numbers the texts may hold some (ISO 3166).
        names: which of the texts are a person's name and nothing else.

    Returns:
        spans with the types of `spans.TYPES` and a user's; places count characters of the text as given; scores in
        [0.5, 1]; and the values in them. Errors as `chat_analyzer`.
    """
    dialogue = DialogueText(texts, language, allow=(*allow, *users.allow_list), countries=countries, names=names)
    analyzer = chat_analyzer(language, users)
    entities = sorted(set(analyzer.get_supported_entities(language)) - set(keep)) if keep else None
    analyzer.analyze(dialogue.text, language, entities, nlp_artifacts=dialogue)
    return dialogue.data


def find_spans(text: str, language: str, *, allow: Sequence[str] = (), users: UserRegistry = NO_REGISTRY) -> list[Span]:
    """Personal data in one text. Arguments and errors as `find_in_dialogue`."""
    return list(find_in_dialogue([text], language, allow=allow, users=users).spans[0])
