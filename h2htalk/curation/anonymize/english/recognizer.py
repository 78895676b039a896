"""Names, addresses and organisations in English chat: rules first, a small trained reader where they leave it open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from h2htalk.curation.anonymize.english.addresses import find_addresses
from h2htalk.curation.anonymize.english.organizations import find_organizations
from h2htalk.curation.anonymize.english.persons import find_persons, open_words
from h2htalk.curation.anonymize.english.token_features import Tokens, tokenize
from h2htalk.curation.anonymize.english.word_lists import words
from h2htalk.curation.anonymize.spans import Span

_HAN = re.compile("[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[A-Za-z']{1,30}(?:[ ,]{1,3}[A-Za-z']{1,30}){2}")


@dataclass(frozen=True, slots=True)
class _RuleResult:
    """What the rules make of a text: its words, spans, and the places of words that they leave open."""

    tokens: Tokens
    places: list[Span]  # addresses and organisations
    persons: list[Span]
    open: list[int]


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language is an English sentence, and not a word or two."""
    return not _HAN.search(text) and _SENTENCE.search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures that are long enough to belong to nobody else."""
    return [" ".join(name) for names in words().known.values() for name in names if len(name) > 1]


def find_names(texts: Sequence[str], taken: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Find people, addresses and organisations in English texts.

    Args:
        texts: n texts, normalised one character to one character, of any length; time is proportional to it.
        taken: for each of them spans found before, which are left alone.

    Returns:
        n lists of PERSON, ADDRESS and ORGANIZATION spans in order; none overlap each other, and an address alone may
        overlap `taken`: a state and its post code are sometimes taken for a plate. Each list is as if its text had
        been given alone. Scores: 0.9 announced ("my name is"), 0.8 listed, 0.6 likely, 0.5 found by
        the model alone.

    Raises:
        MissingExtraError: spaCy, which the model needs, is not installed.
    """
    results = [_by_rules(text, spans) for text, spans in zip(texts, taken, strict=True)]
    asked = [number for number, result in enumerate(results) if result.open]
    spans_of_model = dict(zip(asked, _run_model([texts[number] for number in asked]), strict=True))
    spans_of_texts = []
    for number, result in enumerate(results):
        confirmed = _confirmed(result, spans_of_model[number]) if number in spans_of_model else []
        persons = find_persons(result.tokens, confirmed) if confirmed else result.persons
        spans_of_texts.append(sorted([*result.places, *persons]))
    return spans_of_texts


def _by_rules(text: str, taken: Sequence[Span]) -> _RuleResult:
    tokens = tokenize(text, taken)
    addresses = find_addresses(text)
    tokens.block(addresses)
    organizations = find_organizations(tokens)
    tokens.block(organizations)
    persons = find_persons(tokens)
    return _RuleResult(tokens, [*addresses, *organizations], persons, open_words(tokens, persons))


def _run_model(texts: Sequence[str]) -> Iterable[list[tuple[int, int]]]:
    """Where the trained reader sees persons in each text."""
    if not texts:
        return []
    from h2htalk.text.parsing.parsing import names

    found = names(texts, "en")
    return [[(name.start, name.end) for name in each if name.label == "PERSON"] for each in found]


def _confirmed(result: _RuleResult, spans_of_model: Sequence[tuple[int, int]]) -> list[int]:
    """Places left open that lie in what the reader takes for a person."""
    starts = result.tokens.starts
    agreed = []
    at = 0
    for place in result.open:
        while at < len(spans_of_model) and spans_of_model[at][1] <= starts[place]:
            at += 1
        if at < len(spans_of_model) and spans_of_model[at][0] <= starts[place]:
            agreed.append(place)
    return agreed
