"""Names, addresses and organisations in English chat: rules first, a small trained reader where they leave it open."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from h2htalk.curation.anonymize.english.addresses import find_addresses
from h2htalk.curation.anonymize.english.false_positives import block_false_positives
from h2htalk.curation.anonymize.english.organizations import find_organizations
from h2htalk.curation.anonymize.english.persons import find_persons, open_words
from h2htalk.curation.anonymize.english.token_features import Tokens, tokenize
from h2htalk.curation.anonymize.spans import Span

_SHORTEST = 8  # characters of an address beside something else's


@dataclass(frozen=True, slots=True)
class _RuleResult:
    """What the rules make of a text: its words, spans, and the places of words that they leave open."""

    words: Tokens
    places: list[Span]  # addresses and organisations
    persons: list[Span]
    open: list[int]


def find_english(text: str, taken: Sequence[Span] = ()) -> list[Span]:
    """Spans of PERSON, ADDRESS and ORGANIZATION in an English text, in order; none overlap each other or `taken`.

    Args:
        text: any text, normalised one character to one character (offsets are those of the text given). It is read in
            time proportional to its length.
        taken: spans found before, which are left alone.

    Scores: 0.9 for what is announced ("my name is"), 0.8 listed, 0.6 likely, 0.5 by the trained reader alone.

    Raises:
        MissingExtraError: spaCy, which the trained reader needs, is not installed.
    """
    return find_english_many([text], [taken])[0]


def find_english_many(
    texts: Sequence[str], taken: Sequence[Sequence[Span]] | None = None
) -> list[list[Span]]:
    """As `find_english`, for many texts at once: the trained reader reads those together whose words are left open.

    Args:
        texts: n texts.
        taken: for each of them the spans found before; None for none.

    Returns:
        n lists, each as if its text had been given alone.

    Raises:
        ValueError: texts and `taken` differ in number.
        MissingExtraError: as `find_english`.
    """
    before = taken if taken is not None else [()] * len(texts)
    result = [_by_rules(text, spans) for text, spans in zip(texts, before, strict=True)]
    asked = [number for number, each in enumerate(result) if each.open]
    spans_of_model = dict(zip(asked, _run_model([texts[number] for number in asked]), strict=True))
    spans_of_texts = []
    for number, each in enumerate(result):
        more = _confirmed(each, spans_of_model[number]) if number in spans_of_model else []
        persons = find_persons(each.words, more) if more else each.persons
        # None overlap: each search leaves alone what the one before it found.
        spans_of_texts.append(sorted([*each.places, *persons]))
    return spans_of_texts


def _by_rules(text: str, taken: Sequence[Span]) -> _RuleResult:
    words = tokenize(text, taken)
    addresses = _uncovered(
        find_addresses(text), sorted(span for span in taken if span.type != "allowed:figure")
    )
    words.block(addresses)
    organizations = find_organizations(words)
    words.block(organizations)
    block_false_positives(words)
    persons = find_persons(words)
    return _RuleResult(words, [*addresses, *organizations], persons, open_words(words, persons))


def _uncovered(spans: Sequence[Span], taken: Sequence[Span]) -> list[Span]:
    """What no taken one covers: a state and its post code are sometimes taken for a plate, the street stays.

    Both in order. One walk over both: a long text has many.
    """
    free = []
    at = 0
    for span in spans:
        while at < len(taken) and taken[at].end <= span.start:
            at += 1
        start, overlapping = span.start, at
        while overlapping < len(taken) and taken[overlapping].start < span.end:
            if taken[overlapping].start - start >= _SHORTEST:
                free.append(Span(start, taken[overlapping].start, span.type, span.score))
            start = max(start, taken[overlapping].end)
            overlapping += 1
        if span.end - start >= _SHORTEST or start == span.start:
            free.append(Span(start, span.end, span.type, span.score))
    return free


def _run_model(texts: Sequence[str]) -> Iterable[list[tuple[int, int]]]:
    """Where the trained reader sees persons in each text."""
    if not texts:
        return []
    from h2htalk.text.parsing.parsing import names

    found = names(texts, "en")
    return [[(name.start, name.end) for name in each if name.label == "PERSON"] for each in found]


def _confirmed(result: _RuleResult, spans_of_model: Sequence[tuple[int, int]]) -> list[int]:
    """Places left open that lie in what the reader takes for a person."""
    starts = result.words.starts
    agreed = []
    at = 0
    for place in result.open:
        while at < len(spans_of_model) and spans_of_model[at][1] <= starts[place]:
            at += 1
        if at < len(spans_of_model) and spans_of_model[at][0] <= starts[place]:
            agreed.append(place)
    return agreed
