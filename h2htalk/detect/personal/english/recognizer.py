"""Names, addresses and organisations in English chat, by rules."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from h2htalk.detect.hashed import load_classifier
from h2htalk.detect.personal.english import persons
from h2htalk.detect.personal.english.announced_names import announced_starts
from h2htalk.detect.personal.english.person_frames import Frame, frame_of
from h2htalk.detect.personal.english.persons import LOWER, UPPER, Tokens, folded, hint, words
from h2htalk.detect.personal.english.private_names import FOLDER, Candidate, log_odds
from h2htalk.detect.personal.spans import FIGURE, AddressPart, Span
from h2htalk.text.language_data import compile_patterns, read_data

_HAN = re.compile("[\u4e00-\u9fff]")
_SENTENCE = re.compile(r"[A-Za-z']{1,30}(?:[ ,]{1,3}[A-Za-z']{1,30}){2}")
_ANNOUNCED = 0.7  # how sure a name is that the form of a text or a strong frame gives
PUBLIC_TALK = "public"
# By how much the classifier may miss what it needs where a frame says that a name is private.
_LACKING = {Frame.NONE: 0.0, Frame.WEAK: -1.5, Frame.STRONG: -math.inf}
_LONGEST_ABBREVIATION = 4
_TELLING = ("mailed", "introduced", "credited")  # that a word is a name; the first needs an @


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


def find_names(
    texts: Sequence[str], taken: Sequence[Sequence[Span]], talk: str = "personal"
) -> list[list[Span]]:
    """Find people, addresses and organisations in each of n English texts, normalised one character to one, in a time
    proportional to their length. `taken`: spans of each that were found before. `talk`: where people talk of themselves
    (`personal`) a frame or the classifier makes a name private, in `public` talk both must. Returns n lists of spans in
    order; none overlap each other, and an address alone may overlap `taken`: a state and its post code look like a
    plate."""
    messages = [read_message(text, spans) for text, spans in zip(texts, taken, strict=True)]
    odds = log_odds(
        [message.tokens for message in messages], [message.candidates for message in messages]
    )
    scored_candidates = [
        ScoredCandidate(
            message=n, candidate=candidate, word=message.tokens.words[candidate.first], value=value
        )
        for n, (message, values) in enumerate(zip(messages, odds, strict=True))
        for candidate, value in zip(message.candidates, values, strict=True)
    ]
    hits = (
        hit
        for text in texts
        for key in _TELLING["@" not in text :]
        for hit in _patterns()[key].finditer(text)
    )
    count = VoteCount(messages, {folded(hit["name"]) for hit in hits}, talk)
    private = [count.is_private(scored) for scored in scored_candidates]
    # A name that the dialogue says elsewhere needs less.
    people = (
        scored.word
        for scored, is_private in zip(scored_candidates, private, strict=True)
        if is_private and not scored.candidate.kind
    )
    count.told.update(people)
    found = [(list(message.addresses), dict[int, float]()) for message in messages]
    for scored, is_private in zip(scored_candidates, private, strict=True):
        if not (count.is_private(scored) if scored.word in count.told else is_private):
            continue
        tokens = messages[scored.message].tokens
        candidate = scored.candidate
        spans, starts = found[scored.message]
        if candidate.kind:
            spans.append(
                Span(
                    tokens.starts[candidate.first],
                    candidate.stop,
                    candidate.kind,
                    count.score(scored),
                )
            )
        else:
            starts[candidate.first] = count.score(scored)
    return [
        sorted([*spans, *persons.person_spans(message.tokens, starts, message.ends)])
        for message, (spans, starts) in zip(messages, found, strict=True)
    ]


class ScoredCandidate(NamedTuple):
    """A candidate of a message, its first word, and what the classifier says of it (log-odds)."""

    message: int
    candidate: Candidate
    word: str
    value: float


class VoteCount:
    """Which candidates of a dialogue are private, by two votes: the classifier's and that of a frame."""

    def __init__(self, messages: Sequence[Message], called: set[str], talk: str) -> None:
        """`called`: words that the dialogue says to be a name. `talk` as in `find_names`."""
        self._messages, self._called, self._talk = messages, called, talk
        self._least = load_classifier(FOLDER, "en").manifest
        self._public = {word: kind for message in messages for word, kind in message.public.items()}
        self._announced = [announced_starts(message.tokens, message.ends) for message in messages]
        self._frames: dict[tuple[int, int], Frame] = {}
        # Words that were found private in some place of the dialogue.
        self.told: set[str] = set()

    def is_private(self, scored: ScoredCandidate) -> bool:
        """Whether enough votes say so."""
        margin = self._margin(scored)
        if scored.candidate.kind:
            framed = scored.candidate.framed and self._talk != PUBLIC_TALK
            return margin >= _LACKING[Frame.WEAK if framed else Frame.NONE]
        if self._is_announced(scored):
            return True
        if self._talk == PUBLIC_TALK:
            return margin >= 0 and self._frame(scored) > Frame.NONE
        # A strong frame is a vote of its own, a weak one lets the classifier be less sure.
        if margin >= 0:
            return not self._is_no_name(scored) or self._frame(scored) == Frame.STRONG
        frame = self._frame(scored)
        if frame == Frame.STRONG:
            return True
        known = scored.word in self._public  # a part of the name of somebody whom everybody knows
        least = 0.0 if known and frame == Frame.WEAK else _LACKING[frame]
        return margin >= least and not self._is_no_name(scored)

    def _is_no_name(self, scored: ScoredCandidate) -> bool:
        """Whether a word of no list is no name by how it is written: an abbreviation (HR), or a word that the dialogue
        writes in small letters behind an article ("the radiators", and "Radiators")."""
        tokens = self._messages[scored.message].tokens
        first = scored.candidate.first
        word = scored.word
        if tokens.kinds[first] or word in words().surnames or word in self.told | self._called:
            return False
        if tokens.shapes[first] == UPPER and len(word) <= _LONGEST_ABBREVIATION:
            return LOWER in tokens.shapes
        small = re.compile(rf"\b(?:the|an?) {word}\b")
        return any(small.search(message.tokens.text) for message in self._messages)

    def score(self, scored: ScoredCandidate) -> float:
        """How sure a private name is, in [0.5, 0.8]."""
        score = round(min(0.8, 1 / (1 + math.exp(min(-self._margin(scored), 0.0)))), 3)
        if scored.candidate.kind:
            return score
        framed = self._frames.get((scored.message, scored.candidate.first)) == Frame.STRONG
        return max(score, _ANNOUNCED) if framed or self._is_announced(scored) else score

    def _is_announced(self, scored: ScoredCandidate) -> bool:
        tokens = self._messages[scored.message].tokens
        return tokens.starts[scored.candidate.first] in self._announced[scored.message]

    def _frame(self, scored: ScoredCandidate) -> Frame:
        place = scored.message, scored.candidate.first
        if place not in self._frames:
            tokens = self._messages[scored.message].tokens
            candidate = scored.candidate
            self._frames[place] = frame_of(tokens, candidate.first, candidate.end)
        return self._frames[place]

    def _margin(self, scored: ScoredCandidate) -> float:
        """By how much the classifier is surer than it needs to be."""
        candidate = scored.candidate
        word = scored.word
        if candidate.kind:
            return scored.value - float(self._least[candidate.kind])
        tokens = self._messages[scored.message].tokens
        said = self._public.get(word, "PERSON")
        if word in self._called:
            said = "called"
        elif word in self.told:
            said = "again"
        listed = (
            tokens.shapes[candidate.first] != LOWER
            or tokens.kinds[candidate.first]
            or word in words().surnames
        )
        if said == "PERSON" and not listed:
            said = "unlisted"
        return scored.value - float(self._least[said])


def read_message(text: str, taken: Sequence[Span]) -> Message:
    """The words of a text, and what in it may be private. Arguments as in `find_names`."""
    tokens = Tokens(text, [span for span in taken if span.type != FIGURE or span.score == 1])
    named = (
        (text[s.start : s.end].split(), "public" if s.score == 1 else "cast")
        for s in taken
        if s.type == FIGURE
    )
    public = {folded(word): kind for name, kind in named for word in name}
    addresses = find_addresses(text)
    hits = _patterns()["date"].finditer(text) if _patterns()["digit"].search(text) else ()
    dates = (hit for hit in hits if not hit["whose"])  # "April 3" is nobody
    tokens.block([*addresses, *(Span(*hit.span(), "DATE_OF_BIRTH", 1.0) for hit in dates)])
    persons.block_pets(tokens)
    persons.block_plants(tokens)
    persons.block_things(tokens)
    organizations = find_organizations(tokens)
    ends = persons.name_ends(tokens)
    people = [
        Candidate(at, ends[at]) for at in range(len(tokens)) if persons.is_candidate(tokens, at)
    ]
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
    expressions = {
        **read_data(_FOLDER / "address_patterns.toml"),
        **read_data(_FOLDER / "organization_cues.toml"),
    }
    return compile_patterns(expressions, parts)


def find_addresses(text: str) -> list[Span]:
    """Spans of ADDRESS in a text, in order; none overlap. A bare city, state or country is none. Linear in the text's
    length: every pattern is bounded."""
    patterns = _patterns()
    numbered = patterns["digit"].search(text) or patterns["lane"].search(text)
    spoken = patterns["spoken_digit"].search(text.lower()) is not None
    if not numbered and not (spoken and patterns["spoken_street"].search(text)):
        return []
    chains: list[
        list[AddressPart]
    ] = []  # pieces with no more than a comma, a space, "at" or "on" between them
    for piece in _pieces(text, spoken=spoken):
        last = chains[-1][-1] if chains else AddressPart(0, 0, "")
        gap = text[last.end : piece.start]
        if piece.start < last.end:
            if piece.end > last.end:
                chains[-1].append(piece)
            elif piece.kind == "street" and last.kind in ("building", "lane"):
                chains[-1][-1] = AddressPart(last.start, last.end, "street")
        elif (
            chains
            and len(gap) < 8
            and gap.strip(" ,.\n-–").lower() in _BETWEEN
            and gap.count("\n") < 2
        ):
            chains[-1].append(piece)
        else:
            chains.append([piece])
    spans: list[Span] = []
    for chain in chains:
        kinds = [piece.kind for piece in chain]
        leads = (
            not {"street", "box", "code"}.isdisjoint(kinds)
            or len({*kinds}) > 1
            or kinds.count("unit") > 1
        )
        end = (
            _with_tail(text, chain[-1].end)
            if leads
            else _home_end(text, chain[0].start, chain[-1].end)
        )
        famous = _patterns()["famous"].match(text, chain[0].start)
        # A town's post code may be another chain.
        if end and not famous and not (spans and chain[0].start < spans[-1].end):
            spans.append(Span(chain[0].start, end, "ADDRESS", 0.85))
    return spans


def _home_end(text: str, start: int, end: int) -> int:
    """Where a lane or a house without a number ends with its town, if it is said that somebody lives there, or 0."""
    patterns = _patterns()
    before = text[max(0, start - 60) : start]
    town = _patterns()["town"].match(text, end)
    lives = patterns["lives_right_there"].search(before) or (
        town and patterns["lives_there"].search(before)
    )
    if not lives or patterns["sight"].match(text, start):
        return 0
    if town:
        return town.end()
    return end


def _pieces(text: str, *, spoken: bool) -> list[AddressPart]:
    patterns = _patterns()
    pieces = [
        AddressPart(*m.span(), "street")
        for m in patterns["street"].finditer(text)
        if _is_street(text, m)
    ]
    for m in patterns["spoken_street"].finditer(text) if spoken else ():
        lives = patterns["lives_at_number"].search(text, max(0, m.start() - 40), m.start())
        if lives and _is_street(text, m):
            pieces.append(AddressPart(*m.span(), "street"))
    for m in patterns["building"].finditer(text):
        kind = "lane" if m["kind"].lower() in hint("lanes") else "building"
        pieces.append(AddressPart(m.start(), m.end("kind"), kind))
    for name, kind in (("typed", "street"), ("unit", "unit"), ("code", "code"), ("box", "box")):
        pieces += [AddressPart(*m.span(), kind) for m in patterns[name].finditer(text)]
    return sorted(pieces)


def _is_street(text: str, match: re.Match[str]) -> bool:
    """In lower case, no word between number and street may be one that sentences are made of."""
    kind = match["kind"].lower()
    capital = match["kind"][0].isupper()
    name = match["name"].split()
    small = [word for word in name if word[0].islower()]
    if not name:
        two = len(match[0].split()) > len(match["number"].split()) + 1
        return capital and (
            two or kind in hint("streets_alone")
        )  # "5 Broadway", not "3 way" nor "2 Park"
    if not hint("no_name").isdisjoint(small):
        return False
    before = text[max(0, match.start() - 24) : match.start()].lower().split()
    if small and kind not in hint("sure_street") and text.startswith(",", match.end("number")):
        # "the tent at 3, coast path in the evening light": behind the comma stands what is next.
        lives = _patterns()["lives_at_number"]
        return lives.search(text, max(0, match.start() - 40), match.start()) is not None
    cued = any(word.strip(":,") in hint("cues") for word in before) or before[-1:] in (
        ["at"],
        ["on"],
    )
    return not small or cued or kind in hint("sure_street")


def _with_tail(text: str, end: int) -> int:
    """Where the address ends with its town, state and post code."""
    for _ in range(4):
        matches = (_patterns()[f"tail_{tail}"].match(text, end) for tail in "abde")
        end = next((match.end() for match in matches if match), end)
    return end


# --- Organisations: by how a name ends or begins ("Calder Steel Works"), or by words before it ("our bakery, X") ---

_LONGEST = 6  # words of a name on either side of its kind
_LONGEST_CUE = 8  # words before a name that say whose place it is
_CUES_WITHOUT_AT = ("called", "at_work", "got_into")


def find_organizations(tokens: Tokens) -> list[Candidate]:
    """What may be organisations' names in a text's words, but for those that `tokens` blocks; blocks them too."""
    places = [match.span() for match in _patterns()["numbered"].finditer(tokens.text)]
    reached = 0
    kinds = hint("suffix") | hint("fronted")
    for index, word in enumerate(tokens.words):
        if index < reached or word not in kinds:
            continue
        if (
            tokens.shapes[index] != LOWER
            and not tokens.blocked[index]
            and (bounds := _by_kind(tokens, index, reached))
        ):
            first, reached = bounds
            start = tokens.starts[first]
            end = tokens.ends[reached - 1]
            start -= 4 * (
                tokens.text[max(0, start - 5) : start] == " The "
            )  # "at The Lighthouse Centre"
            end += tokens.words[reached - 1] in hint("firm") and tokens.text.startswith(
                ".", end
            )  # Inc.
            places.append((start, end))
    # What only the words before tell; an article is none of the name unless written so.
    kinds_of_cue = (
        ("called", "at_work", "got_into", "alone") if " at " in tokens.text else _CUES_WITHOUT_AT
    )
    cues = [_patterns()[name] for name in kinds_of_cue]
    cued = {
        (hit.start("name") + 4 * hit["name"].startswith("the "), hit.end("name"))
        for cue in cues
        for hit in cue.finditer(tokens.text)
        if hit.groupdict().get("before", "").lower() not in hint("aimed")
    }
    found = []
    for start, end in [*places, *sorted(cued, key=lambda place: (place[0], -place[1]))]:
        first = bisect_right(tokens.ends, start)
        last = bisect_left(tokens.starts, end)
        by_kind = (start, end) in places
        # "at Sara's", and not "at Harlow & Finch".
        is_firm = by_kind or "&" in tokens.text[start:end]
        somebody = last - first < 3 and tokens.kinds[first] > persons.WORD_NAME and not is_firm
        if first < last and not any(tokens.blocked[first:last]) and not somebody:
            # "got the job interview!!! Thursday 10:30 at Bristol Royal Infirmary"
            before = tokens.words[max(0, first - _LONGEST_CUE) : first]
            framed = by_kind and before[-1:] == ["at"] and not hint("work").isdisjoint(before)
            found.append(Candidate(first, last, "ORGANIZATION", stop=end, framed=framed))
            tokens.blocked[first:last] = [True] * (last - first)
    return sorted(found)


def _by_kind(tokens: Tokens, index: int, reached: int) -> tuple[int, int] | None:
    """A name by the kind of thing that it ends in or begins with, as its first word and its end."""
    first = index
    end = index + 1
    while first > reached and index - first < _LONGEST and _joined(tokens, first, first - 1):
        first -= 1
    while end - index <= _LONGEST:
        last = end + (tokens.word(end) == "of" and tokens.gap(end) == " ")
        if not _joined(tokens, last, last):
            break
        end = last + 1
    known = hint("suffix") | hint("generic") | hint("inside")
    fronted = end > index + 1 and tokens.words[index] in hint("fronted")
    return (
        None
        if known.issuperset(tokens.words[first:end]) or (first == index and not fronted)
        else (first, end)
    )


def _joined(tokens: Tokens, index: int, added: int) -> bool:
    """Whether a word and the one before it can stand in one name; `added`: which of them is asked about."""
    if not 0 < index < len(tokens) or tokens.blocked[added] or tokens.shapes[added] == LOWER:
        return False
    gap = tokens.gap(index).removeprefix("'s").removeprefix("’s")
    joins = gap in (" ", " & ", "&", "-") or (gap == ". " and tokens.words[index - 1] == "st")
    return joins and tokens.words[added] not in hint("not_names")
