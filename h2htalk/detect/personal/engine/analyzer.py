"""Personal data in a dialogue: found by one analysis of all its messages by Presidio.

    from h2htalk.detect.personal.engine.analyzer import chat_analyzer, find_spans
    chat_analyzer("zh").analyze("我叫张伟，电话13812345678", language="zh")

Presidio hands the artifacts of a text to every recogniser and to the enhancer. Ours (`DialogueText`) hold a dialogue:
its messages joined by `SEPARATOR` are the text, and all places count its characters.
"""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import import_module
from itertools import accumulate
from typing import Literal

from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer.analysis_explanation import AnalysisExplanation
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import NlpArtifacts, NoOpNlpEngine

from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.detect.personal.chinese.private_names import private_values
from h2htalk.detect.personal.engine.answers import (
    find_names_in_answers,
    find_numbers_in_pieces,
)
from h2htalk.detect.personal.engine.user_recognizers import (
    MODELS,
    THRESHOLD,
    UserRegistry,
    load_recognizers,
)
from h2htalk.detect.personal.spans import (
    FIGURE,
    RECOGNIZERS,
    NormalizedText,
    Span,
    normalize_text,
    resolve_overlaps,
)
from h2htalk.detect.personal.structured.rules import find_structured
from h2htalk.detect.personal.values import dialogue_values
from h2htalk.detect.personal.values.dialogue_values import COMPANION, TITLE, DialogueData
from h2htalk.detect.personal.values.public_people import is_name_of_a_person

_NAMED = frozenset({"ADDRESS", "ORGANIZATION", "PERSON"})
# What is left of an address beside a user's own type, and says nothing: ", staff ".
_SCRAP = re.compile(r"\W*[^\d\u4e00-\u9fff]{0,7}\W*")
SEPARATOR = "\n\n"
_BORN = 24  # characters between a figure's name and the date of its birth
_BEHIND = 4  # characters behind a figure's name that say what is called by it
Talk = Literal["personal", "public"]
_GIVEN = 0.99  # how sure a name is that the metadata give
# A longer message is read in parts: nothing in it can cost more than in a short one, whatever a rule does.
WINDOW = 20_000
# Parts share so many characters twice over: what one cuts, the other reads whole.
MARGIN = 250
NO_REGISTRY = UserRegistry()
_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile("[\u4e00-\u9fff]+|[^\\W\u4e00-\u9fff]+")


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A stretch of the joined text as the recognisers see it: from `offset` on; of what begins in it, `first` to `last`
    counts. `structured` and `allowed` are places of `plain`, which has one character for each that is seen."""

    offset: int
    first: int
    last: int
    normalized: NormalizedText
    plain: str
    allowed: tuple[Span, ...]
    structured: tuple[Span, ...]
    public: tuple[Span, ...] = ()  # people whom everybody knows, where they are replaced

    def joined(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Those of the spans of `plain` that count, in places of the joined text."""
        for span in spans:
            start, end = self.normalized.original_span(span.start, span.end)
            if self.first <= start + self.offset < self.last:
                yield replace(span, start=start + self.offset, end=end + self.offset)


class DialogueText(NlpArtifacts):
    """The messages of a dialogue, and the spans of our rules, each found once, when a recogniser asks first."""

    def __init__(
        self,
        texts: Sequence[str],
        language: str,
        *,
        allow: Sequence[str] = (),
        countries: Sequence[str] = (),
        names: Sequence[int] = (),
        keep_public: bool = True,
        talk: Talk = "personal",
    ) -> None:
        """Arguments as in `analyzer.find_in_dialogue`."""
        self._talk = talk
        self.texts, self.language, self.allow = tuple(texts), language, tuple(allow)
        self.countries, self._given, self._keep_public = tuple(countries), tuple(names), keep_public
        self.text = SEPARATOR.join(self.texts)
        # Where each message begins.
        self.offsets = [0, *accumulate(len(text) + len(SEPARATOR) for text in self.texts)][
            : len(self.texts)
        ]
        # Set by the enhancer.
        self.data = dialogue_values.collect_values((), (), language, self.allow)
        # With these Presidio looks for the context words of a user's recogniser: a run of Han characters is one word,
        # which may hold one.
        words = list(_WORD.finditer(self.text))
        self.tokens, self.tokens_indices = (
            [word[0] for word in words],
            [word.start() for word in words],
        )
        self.lemmas = self.keywords = [token.lower() for token in self.tokens]

    @cached_property
    def parts(self) -> list[MessagePart]:
        """Each message; a very long one in parts."""
        parts = list[MessagePart]()
        for offset, text in zip(self.offsets, self.texts, strict=True):
            size = len(text)
            for start in (
                range(0, size - 2 * MARGIN, WINDOW - 2 * MARGIN) if size > WINDOW else (0,)
            ):
                end = min(start + WINDOW, size)
                normalized = normalize_text(text[start:end])
                allowed = tuple(
                    dialogue_values.find_allowed(normalized.plain, self.language, self.allow)
                )
                figures = tuple(a for a in allowed if a.type == FIGURE and a.score == 1)
                people = () if self._keep_public else tuple(self._people(allowed, normalized.plain))
                public = tuple(a for a in people if a.score == 1)
                allowed = tuple(a for a in allowed if a not in people)
                spans = find_structured(normalized, self.language, self.countries)
                if find_language(self.language).script == "Chinese" and not _HAN.search(
                    normalized.plain
                ):
                    spans = resolve_overlaps([*spans, *find_structured(normalized, "en")])
                stays = [a for a in allowed if a.type != TITLE]
                # A companion's name is no account, whatever stands before it.
                spans = [span for span in spans if not any(span.lies_in(name) for name in stays)]
                # A date of birth stays that stands closely behind the name of somebody whom everybody knows.
                behind = {at for a in figures for at in range(a.end, a.end + _BORN)}
                taken = tuple(
                    s for s in spans if s.type != "DATE_OF_BIRTH" or s.start not in behind
                )
                first = offset + (start + MARGIN if start else 0)
                last = offset + (size if end == size else end - MARGIN)
                places = (offset + start, first, last)
                parts.append(
                    MessagePart(*places, normalized, normalized.plain, allowed, taken, public)
                )
        if self.language != "zh":
            return parts
        private = private_values(
            [part.plain for part in parts], [part.structured for part in parts]
        )
        return [
            replace(part, structured=tuple(own)) for part, own in zip(parts, private, strict=True)
        ]

    def _people(self, allowed: Iterable[Span], text: str) -> Iterator[Span]:
        """What stays of a text and is the name of somebody whom everybody knows, or may be (a part of it)."""
        for span in allowed:
            name = text[span.start : span.end]
            behind = text[span.end : span.end + _BEHIND]
            # What may be public by what the text talks of is a word as often as a name in Chinese.
            listed = span.type == FIGURE and (span.score == 1 or self.language == "en")
            if listed and is_name_of_a_person(name, self.language, behind):
                yield span

    @cached_property
    def structured(self) -> list[Span]:
        """What has a form of its own: numbers, accounts, addresses of the net."""
        spans: list[Span] = []
        for part in self.parts:
            spans += part.joined(part.structured)
        for number, span in find_numbers_in_pieces(self.texts, self.language, self.countries):
            spans.append(self._placed(number, span))
        return spans

    def _placed(self, number: int, span: Span) -> Span:
        """A span of one text as one of the joined text."""
        offset = self.offsets[number]
        return replace(span, start=span.start + offset, end=span.end + offset)

    @cached_property
    def names(self) -> list[Span]:
        """People, addresses and organisations."""
        found = [
            Span(self.offsets[n], self.offsets[n] + len(self.texts[n]), "PERSON", _GIVEN)
            for n in self._given
        ]
        found += [
            replace(one, type="PERSON") for part in self.parts for one in part.joined(part.public)
        ]
        for code in LANGUAGES:
            recognizer = import_module(find_language(code).name_recognizer)
            chosen = [
                part for part in self.parts if code == self.language or recognizer.reads(part.plain)
            ]
            taken = [[*part.structured, *part.allowed, *part.public] for part in chosen]
            read = recognizer.find_names([part.plain for part in chosen], taken, self._talk)
            found += [
                span
                for part, spans in zip(chosen, read, strict=True)
                for span in part.joined(spans)
            ]
        stays: list[Span] = []
        for part in self.parts:
            stays += part.joined(part.allowed)
        for number, answer in find_names_in_answers(self.texts, self.language):
            name = self._placed(number, answer)
            if not any(name.overlaps(public) for public in stays):
                found.append(name)
        # An address may overlap what stays, such as a town's name, but may not lie within it.
        for part in self.parts:
            for name in part.joined(part.allowed):
                within = [span for span in found if span.type == "ADDRESS" and span.lies_in(name)]
                for span in within:
                    found.remove(span)
        longer = (
            (part, dialogue_values.longer_names(part.plain, self.allow)) for part in self.parts
        )
        return found + [span for part, spans in longer for span in part.joined(spans)]

    def pieces(self, span: Span, *, of_model: bool) -> Iterator[Span]:
        """A span of a user's recogniser without what it holds between two messages. None over names that the user lets
        stay; of a model none over structured data, titles and people whom everybody knows either."""
        blocked = [
            a
            for part in self.parts
            for a in part.joined(part.allowed)
            if of_model or a.type == COMPANION
        ]
        if of_model:
            blocked += self.structured
        for n in range(
            bisect_right(self.offsets, span.start) - 1, bisect_right(self.offsets, span.end - 1)
        ):
            start = max(span.start, self.offsets[n])
            end = min(span.end, self.offsets[n] + len(self.texts[n]))
            piece = replace(span, start=start, end=end)
            if start < end and not any(piece.overlaps(stays) for stays in blocked):
                yield piece


class ChatNlpEngine(NoOpNlpEngine):
    """Presidio's engine of language processing: none is needed, a text alone is a dialogue of one message."""

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        return DialogueText([text], language)


class ChatRecognizer(EntityRecognizer):
    """One family of our rules."""

    def load(self) -> None:
        """Word lists are loaded when they are first needed."""

    def analyze(
        self, text: str, entities: Sequence[str], nlp_artifacts: DialogueText
    ) -> list[RecognizerResult]:
        """The spans of this family's types; places count characters of `text`."""
        found = nlp_artifacts.structured + (
            nlp_artifacts.names if _NAMED.issuperset(self.supported_entities) else []
        )
        return [
            _to_result(s, self)
            for s in found
            if s.type in self.supported_entities and s.type in entities
        ]


def _to_result(span: Span, recognizer: EntityRecognizer | None = None) -> RecognizerResult:
    """A span as Presidio's result; without a recogniser, one that was settled."""
    name = recognizer.name if recognizer else span.found_by
    metadata = {RecognizerResult.RECOGNIZER_NAME_KEY: name}
    if recognizer:
        metadata |= {RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: recognizer.id}
    explanation = AnalysisExplanation(
        name, span.score, pattern_name=span.found_by if recognizer else None
    )
    return RecognizerResult(span.type, span.start, span.end, span.score, explanation, metadata)


class DialogueEnhancer(LemmaContextAwareEnhancer):
    """Settles the results of a dialogue; `DialogueText.data` holds its values afterwards."""

    def enhance_using_context(
        self,
        text: str,
        raw_results: list[RecognizerResult],
        nlp_artifacts: DialogueText,
        recognizers: Sequence[EntityRecognizer],
        context: Sequence[str] | None = None,
    ) -> list[RecognizerResult]:
        """Presidio's context words first, for a user's recognisers that name some; then the spans that stay."""
        dialogue = nlp_artifacts
        if any(recognizer.context for recognizer in recognizers):
            raw_results = super().enhance_using_context(
                text, raw_results, dialogue, recognizers, context
            )
        by_id = {recognizer.id: recognizer for recognizer in recognizers}
        ours = list[Span]()
        users = list[Span]()
        for result in raw_results:
            score = round(float(result.score), 6)
            if score < THRESHOLD:
                continue
            # Presidio's decision process without the words of the text.
            explanation = result.analysis_explanation
            found_by = str(result.recognition_metadata[RecognizerResult.RECOGNIZER_NAME_KEY])
            if explanation and explanation.pattern_name:
                found_by += f", pattern {explanation.pattern_name}"
            if explanation and explanation.supportive_context_word:
                found_by += f", context word {explanation.supportive_context_word}"
            span = Span(result.start, result.end, result.entity_type, score, found_by)
            recognizer = by_id[
                result.recognition_metadata[RecognizerResult.RECOGNIZER_IDENTIFIER_KEY]
            ]
            if isinstance(recognizer, ChatRecognizer):
                ours.append(span)
            elif isinstance(recognizer, MODELS):
                ours += dialogue.pieces(span, of_model=True)
            else:
                users += dialogue.pieces(span, of_model=False)
        of_messages: list[list[Span]] = [[] for _ in dialogue.texts]
        # What a user's own recogniser found stays whole, of ours what it leaves.
        whole = {*ours}
        for span in resolve_overlaps(
            [*ours, *(replace(span, score=span.score + 1) for span in users)]
        ):
            is_left = span.score <= 1 and span not in whole
            if is_left and _says_nothing(dialogue.text, span, ours):
                continue
            score = round(span.score - 1, 6) if span.score > 1 else span.score
            n = bisect_right(dialogue.offsets, span.start) - 1
            offset = dialogue.offsets[n]
            of_messages[n].append(
                replace(span, start=span.start - offset, end=span.end - offset, score=score)
            )
        dialogue.data = dialogue_values.collect_values(
            dialogue.texts, of_messages, dialogue.language, dialogue.allow
        )
        return [
            _to_result(replace(span, start=span.start + offset, end=span.end + offset))
            for offset, spans in zip(dialogue.offsets, dialogue.data.spans, strict=True)
            for span in spans
        ]


def _says_nothing(text: str, scrap: Span, ours: Iterable[Span]) -> bool:
    """Whether what a user's recogniser leaves of a span of ours tells nobody: "sister" of "sister Megan", a scrap of an
    address."""
    if scrap.type == "ADDRESS":
        return _SCRAP.fullmatch(text[scrap.start : scrap.end]) is not None
    if scrap.type != "PERSON":
        return False
    name = next(span for span in ours if span.type == scrap.type and scrap.lies_in(span))
    value = text[name.start : name.end]
    start = name.start
    for part in dialogue_values.name_parts((value,))[value].parts:
        end = start + len(part.text)
        if part.role != "kept" and start < scrap.end and scrap.start < end:
            return False
        start = end
    return True


@lru_cache(maxsize=16)
def chat_analyzer(language: str, users: UserRegistry = NO_REGISTRY) -> AnalyzerEngine:
    """Presidio's engine with our recognisers of a language (`en` or `zh`), and a user's (`read_registry`) beside them.
    Raises ConfigError where a recogniser cannot be loaded, MissingExtraError where its package is not installed."""
    find_language(language)  # raises ConfigError for an unknown one
    own = [
        ChatRecognizer(
            [kind for kind in RECOGNIZERS if RECOGNIZERS[kind] == name],
            name,
            supported_language=language,
        )
        for name in dict.fromkeys(RECOGNIZERS.values())
    ]
    registry = RecognizerRegistry(
        [*own, *load_recognizers(users, language)], supported_languages=[language]
    )
    # Presidio warns that context words need tokens, which an engine without a model has not; ours has.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
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
    keep_public: bool = True,
    talk: Talk = "personal",
) -> DialogueData:
    """Personal data in the texts of one dialogue: the spans of each in order without overlaps, and the values in them.

    `texts` may be any: half surrogate pairs, NUL and millions of characters are read like all else. `allow`: names that
    stay, beside the bundled personas and people whom everybody knows. `keep`: types that are not looked for.
    `countries`: of whose telephone numbers the texts may hold some (ISO 3166). `names`: which of the texts are a
    person's name and nothing else. `keep_public`: whether people stay whom everybody knows. `talk`: whether
    people talk of themselves (`personal`) or of public matters (`public`), where a name needs more evidence.

    Types are those of `spans.TYPES` and a user's; places count characters of the text as given; scores are in [0.5, 1].
    Errors as `chat_analyzer`.
    """
    allow = (*allow, *users.allow_list)
    dialogue = DialogueText(
        texts,
        language,
        allow=allow,
        countries=countries,
        names=names,
        keep_public=keep_public,
        talk=talk,
    )
    analyzer = chat_analyzer(language, users)
    entities = sorted(set(analyzer.get_supported_entities(language)) - set(keep)) if keep else None
    analyzer.analyze(dialogue.text, language, entities, nlp_artifacts=dialogue)
    return dialogue.data


def find_spans(
    text: str, language: str, *, allow: Sequence[str] = (), users: UserRegistry = NO_REGISTRY
) -> list[Span]:
    """Personal data in one text. Arguments and errors as `find_in_dialogue`."""
    return list(find_in_dialogue([text], language, allow=allow, users=users).spans[0])
