"""The text of one dialogue, as Presidio's artifacts: its messages, normalised, and what rules find in them.

Presidio hands the artifacts of a text to every recogniser and to the enhancer. Ours hold a whole dialogue: its messages
joined by `SEPARATOR` are the text that Presidio analyses, and all places count its characters.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import accumulate

from presidio_analyzer.nlp_engine import NlpArtifacts, NoOpNlpEngine

from h2htalk.curation.anonymize.allow_list import TITLE, find_allowed, longer_names
from h2htalk.curation.anonymize.normalization import NormalizedText, normalize_text, plain
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.curation.anonymize.structured.rules import find_structured
from h2htalk.curation.anonymize.values.dialogue_values import DialogueData, KnownValues
from h2htalk.data.languages import LANGUAGES, find_language

SEPARATOR = "\n\n"
_GIVEN = 0.99  # how sure a name is that the metadata give
# A longer message is read in windows: nothing in it can cost more than in a short one, whatever a rule does.
WINDOW = 20_000
# Windows share so many characters twice over: what one cuts, the other reads whole.
MARGIN = 250
_HAN = re.compile("[\u4e00-\u9fff]")
_WORD = re.compile("[\u4e00-\u9fff]+|[^\\W\u4e00-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the joined text as the recognisers see it.

    It begins at `offset`; of what begins in it, `first` to `last` counts. `structured` and `allowed` are places of
    `plain`, which has one character for each that is seen.
    """

    offset: int
    first: int
    last: int
    normalized: NormalizedText
    plain: str
    allowed: tuple[Span, ...]
    structured: tuple[Span, ...]

    def blocked(self) -> list[Span]:
        """What names are not looked for in."""
        return [*self.structured, *self.allowed]

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
    ) -> None:
        """Arguments as in `analyzer.find_in_dialogue`."""
        self.countries, self._given = tuple(countries), tuple(names)
        self.texts, self.language, self.allow = tuple(texts), language, tuple(allow)
        self.text = SEPARATOR.join(self.texts)
        # Where each message begins.
        self.offsets = [0, *accumulate(len(text) + len(SEPARATOR) for text in self.texts)][: len(self.texts)]
        # Set by the enhancer.
        self.data = DialogueData((), KnownValues(()), language, self.allow)
        # With these Presidio looks for the context words of a user's recogniser: a run of Han characters is one word,
        # which may hold one.
        words = list(_WORD.finditer(self.text))
        self.tokens, self.tokens_indices = [word[0] for word in words], [word.start() for word in words]
        self.lemmas = self.keywords = [token.lower() for token in self.tokens]

    @cached_property
    def windows(self) -> list[Window]:
        """Each message; a very long one in parts."""
        return [
            self._window(offset + start, (offset + first, offset + last), text[start:end])
            for offset, text in zip(self.offsets, self.texts, strict=True)
            for start, end, first, last in _stretches(len(text))
        ]

    def _window(self, offset: int, counting: tuple[int, int], text: str) -> Window:
        normalized = normalize_text(text)
        plain_text = plain(normalized.visible)
        allowed = tuple(find_allowed(plain_text, self.language, self.allow))
        spans = find_structured(normalized, self.language, self.countries)
        if find_language(self.language).script == "Chinese" and not _HAN.search(plain_text):
            spans = resolve_overlaps([*spans, *find_structured(normalized, "en")])
        stays = [a for a in allowed if a.type != TITLE]
        # A companion's name is no account, whatever stands before it.
        taken = tuple(s for s in spans if not any(a.start <= s.start and s.end <= a.end for a in stays))
        return Window(offset, *counting, normalized, plain_text, allowed, taken)

    @cached_property
    def structured(self) -> list[Span]:
        """What has a form of its own: numbers, accounts, addresses of the net."""
        return [span for window in self.windows for span in window.joined(window.structured)]

    @cached_property
    def names(self) -> list[Span]:
        """People, addresses and organisations."""
        found = [Span(self.offsets[n], self.offsets[n] + len(self.texts[n]), "PERSON", _GIVEN) for n in self._given]
        names: list[list[Span]] = [[] for _ in self.windows]
        for code in LANGUAGES:
            recognizer = import_module(find_language(code).name_recognizer)
            rows = zip(self.windows, names, strict=True)
            chosen = [(w, row) for w, row in rows if code == self.language or recognizer.reads(w.plain)]
            read = recognizer.find_names([w.plain for w, _ in chosen], [w.blocked() for w, _ in chosen])
            for (_, row), spans in zip(chosen, read, strict=True):
                row += spans
        for window, own in zip(self.windows, names, strict=True):
            found += window.joined([*own, *longer_names(window.plain, self.allow)])
        return found

    def blocked(self, *, by_models: bool) -> list[Span]:
        """Names that stay, whoever finds them; where models find nothing also structured data and titles."""
        blocked = [(w, w.blocked() if by_models else [a for a in w.allowed if a.type != TITLE])
                   for w in self.windows]  # fmt: skip
        return sorted(span for window, spans in blocked for span in window.joined(spans))

    def in_messages(self, span: Span) -> Iterator[Span]:
        """A span without what it holds between two messages."""
        for n in range(bisect_right(self.offsets, span.start) - 1, bisect_right(self.offsets, span.end - 1)):
            start = max(span.start, self.offsets[n])
            end = min(span.end, self.offsets[n] + len(self.texts[n]))
            if start < end:
                yield replace(span, start=start, end=end)

    def of_messages(self, spans: Iterable[Span]) -> list[list[Span]]:
        """Spans of the joined text, each inside a message, as spans of each message."""
        split: list[list[Span]] = [[] for _ in self.texts]
        for span in spans:
            n = bisect_right(self.offsets, span.start) - 1
            split[n].append(replace(span, start=span.start - self.offsets[n], end=span.end - self.offsets[n]))
        return split


def _stretches(length: int) -> Iterator[tuple[int, int, int, int]]:
    """What a message is read in: start and end, and from where to where what begins in it counts."""
    if length <= WINDOW:
        yield 0, length, 0, length
        return
    for start in range(0, length - 2 * MARGIN, WINDOW - 2 * MARGIN):
        end = min(start + WINDOW, length)
        yield start, end, start + MARGIN if start else 0, end if end == length else end - MARGIN


class ChatNlpEngine(NoOpNlpEngine):
    """Presidio's engine of language processing: none is needed, a text alone is a dialogue of one message."""

    def process_text(self, text: str, language: str) -> NlpArtifacts:
        return DialogueText([text], language)
