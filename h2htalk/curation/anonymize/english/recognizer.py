"""Names, addresses and organisations in English chat, by rules."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.anonymize.english.organizations import find_organizations
from h2htalk.curation.anonymize.english.persons import find_persons
from h2htalk.curation.anonymize.english.tokens import hint, tokenize, words
from h2htalk.curation.anonymize.spans import Span
from h2htalk.text.language_data import compile_patterns, read_data

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


# --- Addresses: chains of pieces, such as "Flat 3", "27 Camden High Street" and "NW1 7JE" ---

_FOLDER = Path(__file__).parent / "words"
_SCORE = 0.85
_TAILS = ("tail_a", "tail_b", "tail_c", "tail_d", "tail_e")


class _Piece(NamedTuple):
    start: int
    end: int
    kind: str  # street, unit, building, lane, code, box


@cache
def _lists() -> dict[str, frozenset[str]]:
    raw = read_data(_FOLDER / "address_words.toml")
    states = {"state_names": frozenset(re.split(r"[|\n]", raw["state_names"].strip()))}
    return {key: frozenset(value.split()) for key, value in raw.items()} | states


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    lists = {key: "|".join(sorted(words, key=lambda word: (-len(word), word))) for key, words in _lists().items()}
    parts = {f"{key}_words": either for key, either in lists.items()}
    parts["state"] = f"{lists['states']}|{lists['state_names']}"
    return compile_patterns(read_data(_FOLDER / "address_patterns.toml"), parts)


def find_addresses(text: str) -> list[Span]:
    """Spans of ADDRESS in a text, in order; none overlap. A bare city, state or country is none.

    Linear in the text's length: every pattern is bounded.
    """
    patterns = _patterns()
    if not (patterns["digit"].search(text) or patterns["lane"].search(text)):
        return []
    spans: list[Span] = []
    for chain in _chains(text, _pieces(text)):
        # A town's post code may be another chain.
        if _counts(chain) and not (spans and chain[0].start < spans[-1].end):
            spans.append(Span(chain[0].start, _with_tail(text, chain[-1].end), "ADDRESS", _SCORE))
    return spans


def _pieces(text: str) -> list[_Piece]:
    patterns = _patterns()
    pieces = [_Piece(*m.span(), "street") for m in patterns["street"].finditer(text) if _is_street(text, m)]
    sentence_words = (_lists()["no_name"] & hint("not_names")) - {"the"}  # "My House"
    for m in patterns["building"].finditer(text):
        start = m.start()
        while (word := text[start : m.start("kind")].partition(" ")[0]).lower() in sentence_words:
            start += len(word) + 1
        pieces.append(_Piece(start, m.end("kind"), "lane" if m["kind"].lower() in hint("lanes") else "building"))
    for name, kind in (("typed", "street"), ("unit", "unit"), ("code", "code"), ("box", "box")):
        pieces += [_Piece(*m.span(), kind) for m in patterns[name].finditer(text)]
    return sorted(pieces)


def _is_street(text: str, match: re.Match[str]) -> bool:
    """In lower case, no word between number and street may be one that sentences are made of."""
    lists = _lists()
    kind, capital = match["kind"].lower(), match["kind"][0].isupper()
    name = match["name"].split()
    small = [word for word in name if word[0].islower()]
    if not name:
        # "5 Broadway" and "12 The Crescent", not "3 way" nor "2 Park".
        two = len(match[0].split()) > len(match["number"].split()) + 1
        return (two or kind in hint("streets_alone")) and capital
    if set(small) & lists["no_name"] or name[-1].lower().rstrip(".") in lists["no_name"] - {"the"}:
        return False
    if not small and (capital or kind not in ("dr", "way", "place", "run", "view")):
        return True
    before = text[max(0, match.start() - 24) : match.start()].lower().split()
    cued = any(word.strip(":,") in lists["cues"] for word in before) or before[-1:] in (["at"], ["on"])
    return cued or kind in lists["sure_street"]


def _chains(text: str, pieces: Sequence[_Piece]) -> Iterator[list[_Piece]]:
    """Pieces with no more than a comma, a space, "at" or "on" between them."""
    chain: list[_Piece] = []
    for piece in pieces:
        if chain and piece.start < chain[-1].end:
            if piece.end > chain[-1].end:
                chain.append(piece)
            elif piece.kind == "street" and chain[-1].kind in ("building", "lane"):
                chain[-1] = _Piece(chain[-1].start, chain[-1].end, "street")
            continue
        if chain and not _near(text[chain[-1].end : piece.start]):
            yield chain
            chain = []
        chain.append(piece)
    if chain:
        yield chain


def _near(gap: str) -> bool:
    return len(gap) < 8 and gap.strip(" ,.\n-–").lower() in ("", "at", "on", "in", "of") and gap.count("\n") < 2


def _counts(chain: Sequence[_Piece]) -> bool:
    kinds = [piece.kind for piece in chain]
    if {"street", "box", "code"} & set(kinds):
        return True
    if "unit" in kinds:
        return "building" in kinds or "lane" in kinds or kinds.count("unit") > 1
    return "building" in kinds and "lane" in kinds


def _begins_sentence(city: str) -> bool:
    """Whether an everyday word begins it, as in "45 Elm Street, Thanks"."""
    return city.split()[0].lower().rstrip(".,") in hint("stop") | _lists()["no_name"] - {"new", "old", "the"}


def _with_tail(text: str, end: int) -> int:
    """Where the address ends with its town, state and post code."""
    for _ in range(4):
        for tail in _TAILS:
            match = _patterns()[tail].match(text, end)
            if match and not (tail == "tail_e" and _begins_sentence(match["city"])):
                end = match.end()
                break
        else:
            break
    return end - 1 if text[end - 1] in ".-" and text[end - 2 : end - 1].islower() is False else end
