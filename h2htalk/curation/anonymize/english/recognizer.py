"""Names, addresses and organisations in English chat, by rules."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.curation.anonymize.english.persons import (
    CAPITAL,
    COMMON,
    LOWER,
    RARE,
    Tokens,
    block_pets,
    folded,
    hint,
    is_candidate,
    is_word,
    name_ends,
    person_spans,
    public_names,
    words,
)
from h2htalk.curation.anonymize.english.private_names import FOLDER, Candidate, log_odds
from h2htalk.curation.anonymize.spans import FIGURE, Span
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.text.language_data import compile_patterns, read_data

_HAN = re.compile("[\u4e00-\u9fff]")
_MOST = 0.8  # the highest score of a name
_SENTENCE = re.compile(r"[A-Za-z']{1,30}(?:[ ,]{1,3}[A-Za-z']{1,30}){2}")


class Message(NamedTuple):
    """A text in words, where a name beginning with each ends, the words of public people's full names, and the rest."""

    tokens: Tokens
    ends: list[int]
    public: set[str]
    addresses: list[Span]
    candidates: list[Candidate]


def reads(text: str) -> bool:
    """Whether a message of a dialogue in another language is an English sentence, and not a word or two."""
    return not _HAN.search(text) and _SENTENCE.search(text) is not None


def known_figures() -> list[str]:
    """Names of public and fictional figures, of one word where it belongs to nobody else."""
    known = [" ".join(name) for names in words().known.values() for name in names if len(name) > 1]
    return [*public_names(), *known]


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
    least = load_classifier(FOLDER, "en").manifest
    messages = [read_message(text, spans) for text, spans in zip(texts, taken, strict=True)]
    odds = log_odds([message.tokens for message in messages], [message.candidates for message in messages])
    public = set().union(*(message.public for message in messages))
    # A given name that stands several times is said to be somebody's by all of these together.
    doubts: dict[str, float] = {}
    for message, values in zip(messages, odds, strict=True):
        for one, value in zip(message.candidates, values, strict=True):
            if one.kind:
                continue
            word = message.tokens.words[one.first]
            doubt = 1 / (1 + math.exp(value - least[_kind_of(message.tokens, one, public)]))
            known = doubts.get(word, 1.0)
            doubts[word] = known * doubt if message.tokens.kinds[one.first] >= RARE else min(known, doubt)
    told = {word for word, doubt in doubts.items() if doubt <= 0.5}
    found = []
    for message, values in zip(messages, odds, strict=True):
        tokens, starts, spans = message.tokens, dict[int, float](), list(message.addresses)
        for one, value in zip(message.candidates, values, strict=True):
            word = tokens.words[one.first]
            needed = least["again" if not one.kind and word in told else _kind_of(tokens, one, public)]
            if value < needed:
                continue
            score = round(min(_MOST, 1 / (1 + math.exp(needed - value))), 3)
            if one.kind:
                spans.append(Span(tokens.starts[one.first], one.stop, one.kind, score))
            else:
                starts[one.first] = score
        found.append(sorted([*spans, *person_spans(tokens, starts, message.ends)]))
    return found


def _kind_of(tokens: Tokens, one: Candidate, public: set[str]) -> str:
    """How much evidence a candidate needs, as a key of the thresholds: more where no list of names holds it."""
    word, at = tokens.words[one.first], one.first
    listed = tokens.kinds[at] > 0 or word in words().surnames
    plain = tokens.shapes[at] != CAPITAL or tokens.opens[at]
    return one.kind or ("public" if word in public or (plain and not listed) else "PERSON")


def read_message(text: str, taken: Sequence[Span]) -> Message:
    """The words of a text, and what in it may be private. Arguments as in `find_names`."""
    tokens = Tokens(text, taken)
    figures = (text[span.start : span.end].split() for span in taken if span.type == FIGURE)
    public = {folded(word) for name in figures if len(name) > 1 for word in name}
    addresses = find_addresses(text)
    tokens.block(addresses)
    block_pets(tokens)
    organizations = find_organizations(tokens)
    candidates = []
    for span in organizations:
        first, end = bisect_right(tokens.ends, span.start), bisect_left(tokens.starts, span.end)
        candidates.append(Candidate(first, end, "ORGANIZATION", span.end))
    tokens.block(organizations)
    ends = name_ends(tokens)
    people = [index for index in range(len(tokens)) if is_candidate(tokens, index)]
    return Message(tokens, ends, public, addresses, [*candidates, *(Candidate(at, ends[at]) for at in people)])


# --- Addresses: chains of pieces, such as "Flat 3", "27 Camden High Street" and "NW1 7JE" ---

_FOLDER = Path(__file__).parent / "words"
_SCORE = 0.85
_BETWEEN = ("", "at", "on", "in", "of")
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
    if not (_patterns()["digit"].search(text) or _patterns()["lane"].search(text)):
        return []
    chains: list[list[_Piece]] = []  # pieces with no more than a comma, a space, "at" or "on" between them
    for piece in _pieces(text):
        last = chains[-1][-1] if chains else _Piece(0, 0, "")
        gap = text[last.end : piece.start]
        if piece.start < last.end:
            if piece.end > last.end:
                chains[-1].append(piece)
            elif piece.kind == "street" and last.kind in ("building", "lane"):
                chains[-1][-1] = _Piece(last.start, last.end, "street")
        elif chains and len(gap) < 8 and gap.strip(" ,.\n-–").lower() in _BETWEEN and gap.count("\n") < 2:
            chains[-1].append(piece)
        else:
            chains.append([piece])
    spans: list[Span] = []
    for chain in chains:
        kinds = [piece.kind for piece in chain]
        leads = not {"street", "box", "code"}.isdisjoint(kinds) or len({*kinds}) > 1 or kinds.count("unit") > 1
        end = _with_tail(text, chain[-1].end) if leads else _home_end(text, chain[0].start, chain[-1].end)
        # A town's post code may be another chain.
        if end and not (spans and chain[0].start < spans[-1].end):
            spans.append(Span(chain[0].start, end, "ADDRESS", _SCORE))
    return spans


def _home_end(text: str, start: int, end: int) -> int:
    """Where a lane or a house without a number ends with its town, if it is said that somebody lives there, or 0."""
    patterns, before, town = _patterns(), text[max(0, start - 60) : start], _patterns()["town"].match(text, end)
    lives = patterns["lives_right_there"].search(before) or (town and patterns["lives_there"].search(before))
    return 0 if not lives or patterns["sight"].match(text, start) else town.end() if town else end


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


def _with_tail(text: str, end: int) -> int:
    """Where the address ends with its town, state and post code."""
    for _ in range(4):
        for tail in _TAILS:
            match = _patterns()[tail].match(text, end)
            if match and tail == "tail_e":  # an everyday word may begin it, as in "45 Elm Street, Thanks"
                city = match["city"].split()[0].lower().rstrip(".,")
                match = None if city in hint("stop") | _lists()["no_name"] - {"new", "old", "the"} else match
            if match:
                end = match.end()
                break
        else:
            break
    return end - 1 if text[end - 1] in ".-" and text[end - 2 : end - 1].islower() is False else end


# --- Organisations: by how a name ends or begins ("Calder Steel Works"), or by words before it ("our bakery, X") ---

_SCORES = {"called": 0.65, "at_work": 0.6, "got_into": 0.6, "alone": 0.55}
_SMALL = frozenset(("of", "the", "and", "&", "for", "n", "on"))


_KIND_SCORE = 0.8
_LONGEST = 6  # words of a name on either side of its kind
_INSIDE = frozenset(("of", "and", "the", "for", "at", "in", "de", "del", "la", "le", "des", "du", "y"))
_SHORTENED = frozenset(("co", "assoc", "univ", "dept", "bros"))
_NUMBERED = re.compile(
    r"\b(?:(?:Scout |Boy |Girl |Cub )?Troop|Local|Lodge|Chapter|VFW Post|Legion Post|Precinct|PS|P\.S\.)[ ]#?\d{1,5}\b"
)


@cache
def _org_words() -> dict[str, frozenset[str]]:
    """The sets of words of organization_words.toml."""
    raw = read_data(_FOLDER / "organization_words.toml")
    return {key: frozenset(folded(w) for w in value.split()) for key, value in raw.items()}


@cache
def _cues() -> tuple[tuple[re.Pattern[str], float], ...]:
    """What announces a name (`name`), each with the score of what it finds."""
    parts = {key: "|".join(sorted(_org_words()[key])).replace("_", " ") for key in ("kinds", "work")}
    patterns = compile_patterns(read_data(_FOLDER / "organization_cues.toml"), parts)
    return tuple((patterns[name], score) for name, score in _SCORES.items())


def find_organizations(tokens: Tokens) -> list[Span]:
    """Spans of ORGANIZATION in a text's words, those that `tokens` blocks left out; in order, none overlap."""
    spans = [Span(*match.span(), "ORGANIZATION", _KIND_SCORE) for match in _NUMBERED.finditer(tokens.text)]
    tokens.block(spans)
    kinds = _org_words()["suffix"] | hint("fronted")
    reached = 0
    for index, word in enumerate(tokens.words):
        if index < reached or word not in kinds or tokens.blocked[index] or tokens.shapes[index] == LOWER:
            continue
        if bounds := _by_kind(tokens, index, reached):
            first, reached = bounds
            start, end = tokens.starts[first], tokens.ends[reached - 1]
            start -= 4 * (tokens.text[max(0, start - 5) : start] == " The ")  # "at The Lighthouse Centre"
            end += tokens.words[reached - 1] in hint("firm") | _SHORTENED and tokens.text.startswith(".", end)  # Inc.
            spans.append(Span(start, end, "ORGANIZATION", _KIND_SCORE))
    tokens.block(spans)
    return sorted(spans + _cued(tokens))


def _cued(tokens: Tokens) -> list[Span]:
    """What only the words before tell, where nothing was found yet."""
    hits = [
        (hit.start("name"), -hit.end("name"), score)
        for pattern, score in _cues()
        for hit in pattern.finditer(tokens.text)
        if hit.groupdict().get("before", "").lower() not in _org_words()["aimed"] and _is_named(hit["name"])
    ]
    more: list[Span] = []
    for start, minus_end, score in sorted(hits, key=lambda hit: hit[:2]):
        start += 4 * tokens.text.startswith("the ", start)  # an article is none of the name unless written so
        first, last = bisect_left(tokens.starts, start), bisect_left(tokens.starts, -minus_end)
        if first < last and not any(tokens.blocked[first:last]) and not (more and start < more[-1].end):
            more.append(Span(start, -minus_end, "ORGANIZATION", score))
    return more


def _by_kind(tokens: Tokens, index: int, reached: int) -> tuple[int, int] | None:
    """A name by the kind of thing that it ends in or begins with, as its first word and its end."""
    lists, word = _org_words(), tokens.words[index]
    first = index
    while first > reached and index - first < _LONGEST and _joined(tokens, first) and not tokens.blocked[first - 1]:
        small = tokens.words[first - 1] in ("of", "and", "st")  # a small word between capitalised ones
        if not (_is_part(tokens, first - 1) or (small and _is_part(tokens, first - 2) and _joined(tokens, first - 1))):
            break
        first -= 1
    end = index + 1
    while end - index <= _LONGEST:
        last = end + (tokens.word(end) == "of" and tokens.spaced[end])
        if not (_joined(tokens, last) and _is_part(tokens, last)):
            break
        end = last + 1
    whole = tokens.words[first:end]
    named = [w for w in whole if w not in lists["suffix"] | lists["generic"] | _INSIDE]
    if not named or (first == index and not (end > index + 1 and word in hint("fronted"))):
        return None
    before = tokens.word(first - 2) if tokens.word(first - 1) == "the" else tokens.word(first - 1)
    if whole[-1] in lists["doing"] and before not in ("at", "from") and all(map(is_word, named)):
        return None
    single = end - first == 2 and tokens.opens[first] and is_word(whole[0])
    return None if single else (first, end)


def _joined(tokens: Tokens, index: int) -> bool:
    """Whether a word and the one before it can stand in one name."""
    if not 0 < index < len(tokens) or tokens.blocked[index]:
        return False
    gap = tokens.text[tokens.ends[index - 1] : tokens.starts[index]]
    if tokens.possessive[index - 1]:
        gap = gap[2:]
    return gap in (" ", " & ", "&", "-") or (gap == ". " and tokens.words[index - 1] == "st")


def _is_part(tokens: Tokens, index: int) -> bool:
    """Whether a word is capitalised and can be inside a name."""
    return tokens.word(index) not in hint("not_names") | {"", "i"} and tokens.shapes[index] != LOWER


def _is_named(name: str) -> bool:
    """Whether words in capitals can be an organisation's: no person's, no town's, no day's, no site's."""
    lists, own = words(), _org_words()
    parts = [part.lower().replace("'s", "").replace("’s", "").strip(".") for part in name.split()]
    inner = [part for part in parts if part not in _SMALL]
    if not inner or inner[0] in hint("not_names") | own["sites"] | lists.hints["kin"]:
        return False
    if len(inner) > 1 and inner[-1] in own["suffix"]:
        return True
    if all(part in lists.hints["places"] or part in ("new", "north", "south", "east", "west") for part in inner):
        return False
    given = lists.given.get(inner[0], 0)
    owned = "'" in name or "’" in name
    if not owned and ((given and len(inner) == 1) or (given >= COMMON and len(inner) == 2 and not is_word(inner[1]))):
        return False
    if len(inner) > 1:
        return True
    return not (is_word(inner[0]) or inner[0] in hint("stop") or (name.isupper() and len(name) < 5))
