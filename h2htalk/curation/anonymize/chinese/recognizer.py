"""Names of people and addresses in Chinese text. Organisations are not looked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from h2htalk.curation.anonymize.chinese.addresses import addresses, widen_addresses
from h2htalk.curation.anonymize.chinese.name_segmenter import segment_text
from h2htalk.curation.anonymize.chinese.persons import persons
from h2htalk.curation.anonymize.chinese.words import patterns, sections
from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.spans import Span, resolve_overlaps
from h2htalk.text.chinese_characters import simplified

_RE = patterns("recognizer")

# Stands where something was found before or must not be read. No letter, so that nothing runs over it.
MASK = "\u25a1"
LONGEST_STRETCH = 1000  # characters read at once
_CUTS = (re.compile("[\n。！？!?；;]+"), re.compile("[，,、 ]+"))


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language holds Chinese words."""
    return _RE["han_name"].search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures that are long enough to belong to nobody else."""
    return [name for name in sections("public_figures")[""] | sections("cedict")["figures"] if len(name) > 2]


def find_names(texts: Sequence[str], taken: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Find people and addresses in Chinese texts: jieba's dictionary with priors for names, and rules.

    A person's span is the whole form of address (小王, 张老师), an address goes from its first word to its last.
    Public and fictional figures and what stands in 《》 are left out; so is a city or a country alone.

    Args:
        texts: n texts of any length; time is proportional to it.
        taken: for each of them spans found before; nothing is found inside them.

    Returns:
        n lists of PERSON and ADDRESS spans that do not overlap. Scores 0.5 to 0.95: a ranking, no
        probability.
    """
    return [_find_in_text(text, spans) for text, spans in zip(texts, taken, strict=True)]


def _find_in_text(text: str, taken: Sequence[Span]) -> list[Span]:
    masked = _masked(simplified(plain(text)), ((span.start, span.end) for span in taken))
    spans: list[Span] = []
    for start, end in _stretches(masked):
        if _RE["nameable"].search(masked, start, end):
            # Resolved stretch by stretch: the time that it takes grows with the square of their number.
            spans += resolve_overlaps(_find(masked[start:end], start))
    return spans


def _masked(text: str, places: Iterable[tuple[int, int]]) -> str:
    parts = []
    at = 0
    for start, end in sorted(places):
        if end > at:
            start = max(start, at)
            parts += [text[at:start], MASK * (end - start)]
            at = end
    return "".join([*parts, text[at:]]) if parts else text


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Pieces of bounded length, cut where sentences or clauses end, else anywhere."""
    start = 0
    while len(text) - start > LONGEST_STRETCH:
        end = start + LONGEST_STRETCH
        for mark in _CUTS:
            cuts = [found.end() for found in mark.finditer(text, start + LONGEST_STRETCH // 2, end)]
            if cuts:
                end = cuts[-1]
                break
        yield start, end
        start = end
    if start < len(text):
        yield start, len(text)


def _find(stretch: str, offset: int) -> Iterator[Span]:
    seen, at = _without(stretch, _RE["lettered"])
    close, joined = _without(seen, _RE["spaced"])
    segments = segment_text(seen)
    titles = [found.span() for found in _RE["titled"].finditer(seen)]
    near = segments if close == seen else segment_text(close)
    wide = widen_addresses(close, sorted(addresses(close, near)), near)
    placed = [Span(joined[start], joined[end - 1] + 1, "ADDRESS", score) for start, end, score in wide]
    blocked = [*titles, *((span.start, span.end) for span in placed)]
    people = [
        Span(start, end, "PERSON", score)
        for start, end, score in persons(seen, segments)
        if not any(start < last and first < end for first, last in blocked)
    ]
    for span in (*placed, *people):
        yield Span(offset + at[span.start], offset + at[span.end - 1] + 1, span.type, span.score)


def _without(text: str, dropped: re.Pattern[str]) -> tuple[str, Sequence[int]]:
    """The text without what a pattern finds, and where each of its characters stood."""
    gaps = [found.span() for found in dropped.finditer(text)]
    if not gaps:
        return text, range(len(text))
    left = list(range(len(text)))
    for start, end in reversed(gaps):
        del left[start:end]
    return "".join(text[at] for at in left), left
