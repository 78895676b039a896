"""Names, addresses and organisations in English chat, by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from h2htalk.curation.anonymize.english.addresses import find_addresses
from h2htalk.curation.anonymize.english.organizations import find_organizations
from h2htalk.curation.anonymize.english.persons import find_persons
from h2htalk.curation.anonymize.english.token_features import tokenize
from h2htalk.curation.anonymize.english.word_lists import words
from h2htalk.curation.anonymize.spans import Span

_HAN = re.compile("[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[A-Za-z']{1,30}(?:[ ,]{1,3}[A-Za-z']{1,30}){2}")


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
        overlap `taken`: a state and its post code are sometimes taken for a plate. Scores: 0.9 announced ("my name
        is"), 0.8 listed, 0.6 likely.
    """
    return [_find_in_text(text, spans) for text, spans in zip(texts, taken, strict=True)]


def _find_in_text(text: str, taken: Sequence[Span]) -> list[Span]:
    tokens = tokenize(text, taken)
    addresses = find_addresses(text)
    tokens.block(addresses)
    organizations = find_organizations(tokens)
    tokens.block(organizations)
    return sorted([*addresses, *organizations, *find_persons(tokens)])
