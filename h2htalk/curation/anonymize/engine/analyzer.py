"""Personal data in a dialogue: one analysis by Presidio of all its messages.

    from h2htalk.curation.anonymize.engine.analyzer import chat_analyzer, find_spans
    chat_analyzer("zh").analyze("我叫张伟，电话13812345678", language="zh")

Nothing is downloaded, and no language model is loaded unless a user's recogniser names one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from presidio_analyzer import AnalyzerEngine, RecognizerRegistry

from h2htalk.curation.anonymize.engine.artifacts import ChatNlpEngine, DialogueArtifacts
from h2htalk.curation.anonymize.engine.enhancer import DialogueEnhancer
from h2htalk.curation.anonymize.engine.recognizers import chat_recognizers, to_span
from h2htalk.curation.anonymize.engine.user_recognizers import UserRegistry, load_recognizers
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.values.dialogue_values import DialogueData
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, quoted

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
    return AnalyzerEngine(
        registry=registry,
        nlp_engine=ChatNlpEngine(),
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
    artifacts = DialogueArtifacts(texts, language, allow=(*allow, *users.allow_list), countries=countries, names=names)
    analyzer = chat_analyzer(language, users)
    entities = sorted(set(analyzer.get_supported_entities(language)) - set(keep)) if keep else None
    results = analyzer.analyze(
        artifacts.text, language, entities, nlp_artifacts=artifacts, return_decision_process=True
    )
    spans = artifacts.of_messages(sorted(map(to_span, results)))
    return replace(artifacts.data, spans=tuple(map(tuple, spans)))


def find_spans(text: str, language: str, *, allow: Sequence[str] = (), users: UserRegistry = NO_REGISTRY) -> list[Span]:
    """Personal data in one text. Arguments and errors as `find_in_dialogue`."""
    return list(find_in_dialogue([text], language, allow=allow, users=users).spans[0])
