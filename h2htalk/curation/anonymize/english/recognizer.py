"""Names, addresses and organisations in English chat, by rules."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.anonymize.english import persons
from h2htalk.curation.anonymize.english.persons import LOWER, Tokens, folded, hint, words
from h2htalk.curation.anonymize.english.private_names import FOLDER, Candidate, log_odds
from h2htalk.curation.anonymize.spans import FIGURE, AddressPart, Span
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.text.language_data import compile_patterns, read_data

_HAN = re.compile("[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[A-Za-z']{1,30}(?:[ ,]{1,3}[A-Za-z']{1,30}){2}")
_TELLING = ("mailed", "introduced", "credited")  # that a word is a name; the first needs an @
_LETTER, _END = 100, 120  # characters of a letter at least, and of its end that are read


class Message(NamedTuple):
    """A text in words, where a name beginning with each ends, the words of public people's full names, and the rest."""

    tokens: Tokens
    ends: list[int]
    public: dict[str, str]
    addresses: list[Span]
    candidates: list[Candidate]


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language is an English sentence, and not a word or two."""
    return not _HAN.search(text) and _SENTENCE.search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures, of one word where it belongs to nobody else."""
    known = [" ".join(name) for names in words().known.values() for name in names if len(name) > 1]
    return [*persons.public_names(), *known]


def find_names(texts: Sequence[str], taken: Sequence[Sequence[Span]]) -> list[list[Span]]:
    """Find people, addresses and organisations in each of n English texts, normalised one character to one, in a time
    proportional to their length. `taken`: spans of each that were found before. Returns n lists of spans in order; none
    overlap each other, and an address alone may overlap `taken`: a state and its post code look like a plate."""
    least = load_classifier(FOLDER, "en").manifest
    messages = [read_message(text, spans) for text, spans in zip(texts, taken, strict=True)]
    odds = log_odds([message.tokens for message in messages], [message.candidates for message in messages])
    public = {word: kind for message in messages for word, kind in message.public.items()}
    hits = (hit for text in texts for key in _TELLING["@" not in text :] for hit in _patterns()[key].finditer(text))
    called, told = {folded(hit["name"]) for hit in hits}, set[str]()
    scored = [
        (message.tokens, one, message.tokens.words[one.first], value)
        for message, values in zip(messages, odds, strict=True)
        for one, value in zip(message.candidates, values, strict=True)
    ]

    def needed(tokens: Tokens, one: Candidate, word: str) -> float:
        said = "called" if word in called else "again" if word in told else public.get(word, "PERSON")
        listed = tokens.shapes[one.first] != LOWER or tokens.kinds[one.first] or word in words().surnames
        return float(least[one.kind or (said if listed or said != "PERSON" else "unlisted")])

    # A name that the dialogue says elsewhere needs less.
    told |= {word for own, one, word, value in scored if not one.kind and value >= needed(own, one, word)}
    found = {id(message.tokens): (list(message.addresses), dict[int, float]()) for message in messages}
    signed = {id(message.tokens): _signature(message.tokens) for message in messages}
    for tokens, one, word, value in scored:
        enough = needed(tokens, one, word)
        if value >= enough or tokens.starts[one.first] == signed[id(tokens)]:
            spans, starts = found[id(tokens)]
            score = round(min(0.8, 1 / (1 + math.exp(min(enough - value, 0.0)))), 3)
            if one.kind:
                spans.append(Span(tokens.starts[one.first], one.stop, one.kind, score))
            else:
                starts[one.first] = score
    return [
        sorted([*spans, *persons.person_spans(message.tokens, starts, message.ends)])
        for message, (spans, starts) in zip(messages, found.values(), strict=True)
    ]


def _signature(tokens: Tokens) -> int:
    """Where the given name under a letter begins; -1 where nobody signs."""
    start = max(0, len(tokens.text) - _END)
    found = _patterns()["signed"].search(tokens.text, start) if len(tokens.text) >= _LETTER else None
    at = bisect_left(tokens.starts, found.start("name")) if found else len(tokens)
    if found is None or at == len(tokens) or not (found["alone"] or found["rest"]):
        return -1
    closed = found["alone"] and _patterns()["closing"].search(tokens.text, start, found.start())
    least = persons.RARE if found["alone"] == "\n" and not found["rest"] else persons.WORD_NAME
    named = tokens.kinds[at] >= least and ("~" in found["rest"] or (found["alone"] or "~")[0] != ",")
    return tokens.starts[at] if closed or named else -1


def read_message(text: str, taken: Sequence[Span]) -> Message:
    """The words of a text, and what in it may be private. Arguments as in `find_names`."""
    tokens = Tokens(text, [span for span in taken if span.type != FIGURE or span.score == 1])
    named = ((text[s.start : s.end].split(), "public" if s.score == 1 else "cast") for s in taken if s.type == FIGURE)
    public = {folded(word): kind for name, kind in named for word in name}
    addresses = find_addresses(text)
    dates = (hit for hit in _patterns()["date"].finditer(text) if not hit["whose"])  # "April 3" is nobody
    tokens.block([*addresses, *(Span(*hit.span(), "DATE_OF_BIRTH", 1.0) for hit in dates)])
    persons.block_pets(tokens)
    organizations = find_organizations(tokens)
    ends = persons.name_ends(tokens)
    people = [Candidate(at, ends[at]) for at in range(len(tokens)) if persons.is_candidate(tokens, at)]
    return Message(tokens, ends, public, addresses, [*organizations, *people])


# --- Addresses: chains of streets, units, buildings, lanes, codes and boxes, such as "Flat 3" and "NW1 7JE" ---

_FOLDER = Path(__file__).parent / "words"
_BETWEEN = ("", "at", "on", "in", "of")


@cache
def _patterns() -> dict[str, re.Pattern[str]]:
    either = {
        key: "|".join(sorted(listed, key=lambda word: (-len(word), word))).replace("_", " ")
        for key, listed in words().hints.items()
    }
    parts = {f"{key}_words": pattern for key, pattern in either.items()}
    parts["state"] = f"{either['states']}|{either['state_names']}"
    expressions = {**read_data(_FOLDER / "address_patterns.toml"), **read_data(_FOLDER / "organization_cues.toml")}
    return compile_patterns(expressions, parts)


def find_addresses(text: str) -> list[Span]:
    """Spans of ADDRESS in a text, in order; none overlap. A bare city, state or country is none. Linear in the text's
    length: every pattern is bounded."""
    if not (_patterns()["digit"].search(text) or _patterns()["lane"].search(text)):
        return []
    chains: list[list[AddressPart]] = []  # pieces with no more than a comma, a space, "at" or "on" between them
    for piece in _pieces(text):
        last = chains[-1][-1] if chains else AddressPart(0, 0, "")
        gap = text[last.end : piece.start]
        if piece.start < last.end:
            if piece.end > last.end:
                chains[-1].append(piece)
            elif piece.kind == "street" and last.kind in ("building", "lane"):
                chains[-1][-1] = AddressPart(last.start, last.end, "street")
        elif chains and len(gap) < 8 and gap.strip(" ,.\n-–").lower() in _BETWEEN and gap.count("\n") < 2:
            chains[-1].append(piece)
        else:
            chains.append([piece])
    spans: list[Span] = []
    for chain in chains:
        kinds = [piece.kind for piece in chain]
        leads = not {"street", "box", "code"}.isdisjoint(kinds) or len({*kinds}) > 1 or kinds.count("unit") > 1
        end = _with_tail(text, chain[-1].end) if leads else _home_end(text, chain[0].start, chain[-1].end)
        famous = _patterns()["famous"].match(text, chain[0].start)
        # A town's post code may be another chain.
        if end and not famous and not (spans and chain[0].start < spans[-1].end):
            spans.append(Span(chain[0].start, end, "ADDRESS", 0.85))
    return spans


def _home_end(text: str, start: int, end: int) -> int:
    """Where a lane or a house without a number ends with its town, if it is said that somebody lives there, or 0."""
    patterns, before, town = _patterns(), text[max(0, start - 60) : start], _patterns()["town"].match(text, end)
    lives = patterns["lives_right_there"].search(before) or (town and patterns["lives_there"].search(before))
    return 0 if not lives or patterns["sight"].match(text, start) else town.end() if town else end


def _pieces(text: str) -> list[AddressPart]:
    patterns = _patterns()
    pieces = [AddressPart(*m.span(), "street") for m in patterns["street"].finditer(text) if _is_street(text, m)]
    for m in patterns["building"].finditer(text):
        kind = "lane" if m["kind"].lower() in hint("lanes") else "building"
        pieces.append(AddressPart(m.start(), m.end("kind"), kind))
    for name, kind in (("typed", "street"), ("unit", "unit"), ("code", "code"), ("box", "box")):
        pieces += [AddressPart(*m.span(), kind) for m in patterns[name].finditer(text)]
    return sorted(pieces)


def _is_street(text: str, match: re.Match[str]) -> bool:
    """In lower case, no word between number and street may be one that sentences are made of."""
    kind, capital = match["kind"].lower(), match["kind"][0].isupper()
    name = match["name"].split()
    small = [word for word in name if word[0].islower()]
    if not name:
        two = len(match[0].split()) > len(match["number"].split()) + 1
        return capital and (two or kind in hint("streets_alone"))  # "5 Broadway", not "3 way" nor "2 Park"
    if not hint("no_name").isdisjoint(small):
        return False
    before = text[max(0, match.start() - 24) : match.start()].lower().split()
    cued = any(word.strip(":,") in hint("cues") for word in before) or before[-1:] in (["at"], ["on"])
    return not small or cued or kind in hint("sure_street")


def _with_tail(text: str, end: int) -> int:
    """Where the address ends with its town, state and post code."""
    for _ in range(4):
        matches = (_patterns()[f"tail_{tail}"].match(text, end) for tail in "abde")
        end = next((match.end() for match in matches if match), end)
    return end


# --- Organisations: by how a name ends or begins ("Calder Steel Works"), or by words before it ("our bakery, X") ---

_LONGEST = 6  # words of a name on either side of its kind


def find_organizations(tokens: Tokens) -> list[Candidate]:
    """What may be organisations' names in a text's words, but for those that `tokens` blocks; blocks them too."""
    places = [match.span() for match in _patterns()["numbered"].finditer(tokens.text)]
    reached, kinds = 0, hint("suffix") | hint("fronted")
    for index, word in enumerate(tokens.words):
        if index < reached or word not in kinds:
            continue
        if tokens.shapes[index] != LOWER and not tokens.blocked[index] and (bounds := _by_kind(tokens, index, reached)):
            first, reached = bounds
            start, end = tokens.starts[first], tokens.ends[reached - 1]
            start -= 4 * (tokens.text[max(0, start - 5) : start] == " The ")  # "at The Lighthouse Centre"
            end += tokens.words[reached - 1] in hint("firm") and tokens.text.startswith(".", end)  # Inc.
            places.append((start, end))
    # What only the words before tell; an article is none of the name unless written so.
    cues = [_patterns()[name] for name in ("called", "at_work", "got_into", "alone")]
    cued = {
        (hit.start("name") + 4 * hit["name"].startswith("the "), hit.end("name"))
        for cue in cues
        for hit in cue.finditer(tokens.text)
        if hit.groupdict().get("before", "").lower() not in hint("aimed")
    }
    found = []
    for start, end in [*places, *sorted(cued, key=lambda place: (place[0], -place[1]))]:
        first, last = bisect_right(tokens.ends, start), bisect_left(tokens.starts, end)
        somebody = last - first < 3 and tokens.kinds[first] > persons.WORD_NAME and (start, end) not in places
        if first < last and not any(tokens.blocked[first:last]) and not somebody:
            found.append(Candidate(first, last, "ORGANIZATION", end))
            tokens.blocked[first:last] = [True] * (last - first)
    return sorted(found)


def _by_kind(tokens: Tokens, index: int, reached: int) -> tuple[int, int] | None:
    """A name by the kind of thing that it ends in or begins with, as its first word and its end."""
    first, end = index, index + 1
    while first > reached and index - first < _LONGEST and _joined(tokens, first, first - 1):
        first -= 1
    while end - index <= _LONGEST:
        last = end + (tokens.word(end) == "of" and tokens.gap(end) == " ")
        if not _joined(tokens, last, last):
            break
        end = last + 1
    known = hint("suffix") | hint("generic") | hint("inside")
    fronted = end > index + 1 and tokens.words[index] in hint("fronted")
    return None if known.issuperset(tokens.words[first:end]) or (first == index and not fronted) else (first, end)


def _joined(tokens: Tokens, index: int, added: int) -> bool:
    """Whether a word and the one before it can stand in one name; `added`: which of them is asked about."""
    if not 0 < index < len(tokens) or tokens.blocked[added] or tokens.shapes[added] == LOWER:
        return False
    gap = tokens.gap(index).removeprefix("'s").removeprefix("’s")
    joins = gap in (" ", " & ", "&", "-") or (gap == ". " and tokens.words[index - 1] == "st")
    return joins and tokens.words[added] not in hint("not_names")
