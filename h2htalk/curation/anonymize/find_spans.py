"""Personal data in texts: what stays is marked first, then what has a form of its own, then names of all kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from h2htalk.curation.anonymize.allow_list import (
    AllowedSpan,
    find_allowed,
    namesakes_beside_data,
    private_namesakes,
)
from h2htalk.curation.anonymize.ner_models import BUNDLED, INSTALL_CURATION, NONE, NameFinder, name_finder
from h2htalk.curation.anonymize.normalization import NormalizedText, normalize_text, plain
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.errors import ConfigError, MissingExtraError, quoted

# A longer text is read in windows: nothing in it can cost more than in a short one, whatever a rule does.
WINDOW = 20_000
# Windows share so many characters twice over: what one cuts, the other reads whole.
MARGIN = 250
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class _Window:
    """A stretch of a text: `text` begins at `offset`; of what begins in it, `first` to `last` counts."""

    number: int
    text: str
    offset: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class _PreparedWindow:
    """A window as the recognisers see it."""

    window: _Window
    normalized: NormalizedText
    plain: str  # of what is seen, one character for one
    allowed: tuple[AllowedSpan, ...]
    taken: tuple[Span, ...]  # structured data, in places of `plain`

    def blocked(self) -> list[Span]:
        """What names are not looked for in."""
        return [*self.taken, *(a.span() for a in self.allowed)]


def find_spans(text: str, language: str, *, allow: Sequence[str] = (), ner: str = BUNDLED) -> list[Span]:
    """Personal data in a text, in its order, without overlaps.

    Args:
        text: any text: half surrogate pairs, NUL and millions of characters are read like all else.
        language: `en` or `zh`.
        allow: names that stay, beside the bundled personas and people whom everybody knows.
        ner: `bundled`; `none` for rules alone; or an extra recogniser: `spacy:MODEL`, `gliner:MODEL`.

    Returns:
        spans of the types in `spans.TYPES`; places count characters of `text` as given; scores in [0.5, 1].

    Raises:
        ConfigError: no such language or recogniser.
        MissingExtraError: a recogniser's package is not installed.
    """
    return find_spans_many([text], language, allow=allow, ner=ner)[0]


def find_spans_many(
    texts: Sequence[str], language: str, *, allow: Sequence[str] = (), ner: str = BUNDLED
) -> list[list[Span]]:
    """`find_spans` of each text, in order; recognisers that batch read them together. Arguments and errors as there."""
    if language not in LANGUAGES:
        raise ConfigError(
            f"no recognisers of personal data for language {quoted(language)}; choose from {', '.join(LANGUAGES)}"
        )
    extra = name_finder(ner, language)
    prepared_windows = [
        _prepare(window, language, allow) for n, text in enumerate(texts) for window in _windows(n, text)
    ]
    spans_of_texts: list[list[Span]] = [[] for _ in texts]
    cut = {prepared.window.number for prepared in prepared_windows if prepared.window.offset}
    for prepared, names in zip(prepared_windows, _names(prepared_windows, language, ner, extra), strict=True):
        window = prepared.window
        persons = [
            *namesakes_beside_data(prepared.plain, prepared.allowed, [*prepared.taken, *names]),
            *private_namesakes(prepared.plain, language, allow),
        ]
        spans = resolve_overlaps([*prepared.taken, *names, *persons])
        for span in spans:
            start, end = prepared.normalized.original_span(span.start, span.end)
            if window.first <= start + window.offset < window.last:
                spans_of_texts[window.number].append(
                    replace(span, start=start + window.offset, end=end + window.offset)
                )
    return [resolve_overlaps(spans) if n in cut else spans for n, spans in enumerate(spans_of_texts)]


def _windows(number: int, text: str) -> Iterator[_Window]:
    """The stretches that a text is read in; a usual one is one."""
    if len(text) <= WINDOW:
        yield _Window(number, text, 0, 0, len(text))
        return
    step = WINDOW - 2 * MARGIN
    for offset in range(0, len(text) - 2 * MARGIN, step):
        end = offset + WINDOW
        last = len(text) if end >= len(text) else end - MARGIN
        yield _Window(number, text[offset:end], offset, offset + MARGIN if offset else 0, last)


def _prepare(window: _Window, language: str, allow: Sequence[str]) -> _PreparedWindow:
    try:
        from h2htalk.curation.anonymize.structured.structured import find_structured
    except ImportError as error:
        raise MissingExtraError("anonymization", INSTALL_CURATION) from error
    normalized = normalize_text(window.text)
    plain_text = plain(normalized.visible)
    allowed = tuple(find_allowed(plain_text, language, allow))
    spans = find_structured(normalized.visible, language)
    if find_language(language).script == "Chinese" and not _HAN.search(plain_text):
        spans = resolve_overlaps([*spans, *find_structured(normalized.visible, "en")])
    stays = [a for a in allowed if a.kind != "title"]
    # A companion's name is no account, whatever stands before it.
    taken = tuple(s for s in spans if not any(a.start <= s.start and s.end <= a.end for a in stays))
    return _PreparedWindow(window, normalized, plain_text, allowed, taken)


def _names(
    prepared_windows: Sequence[_PreparedWindow], language: str, ner: str, extra: NameFinder | None
) -> list[list[Span]]:
    """People, addresses and organisations of each window, as offsets in its `plain`."""
    names: list[list[Span]] = [[] for _ in prepared_windows]
    blocked = [prepared.blocked() for prepared in prepared_windows]
    for code in LANGUAGES:
        recognizer = import_module(find_language(code).name_recognizer)
        chosen = [n for n, p in enumerate(prepared_windows) if code == language or recognizer.reads(p.plain)]
        texts = [prepared_windows[n].plain for n in chosen]
        found = recognizer.find_names(texts, [blocked[n] for n in chosen], use_model=ner != NONE)
        for n, spans in zip(chosen, found, strict=True):
            names[n] += spans
    if extra is not None:
        for n, spans in enumerate(extra([prepared.plain for prepared in prepared_windows])):
            names[n] += [s for s in spans if not any(s.overlaps(other) for other in blocked[n])]
    return names
