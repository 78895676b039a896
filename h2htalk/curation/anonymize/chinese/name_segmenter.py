"""How likely a stretch of Chinese text is a person's name, by its characters and by what stands around it.

Natural logarithms, on the scale of a unigram segmenter: a name is taken where it explains the characters better than
the dictionary's words do (`segment_text`). The priors were set on chat text by hand (docs/measurements.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from math import log
from typing import Any

from h2htalk.curation.anonymize.chinese.words import dictionary, sections, table, tags, usual, words
from h2htalk.text.chinese_characters import TRANSLITERATION, looks_foreign

# Of a thousand characters, a handful belong to names, in chat; each shape has its share.
_FULL, _GIVEN, _NICK, _TITLED, _DOUBLED, _FOREIGN = -6.0, -7.5, -8.0, -10.0, -9.5, -8.0
STRONG, KIN, BEFORE, _EDGE, _INSIDE = 7.0, 3.5, 2.0, 1.2, -1.2
_RIGHT_EDGE, _AFTER, _RIGHT_INSIDE = 0.6, 1.4, -1.5
_RARE = 0.4  # weight of a character that is not listed among those of given names
_LONGEST_CUE, _LONGEST_TITLE = 6, 4
_FAMILIAR = -8.5  # log probability of a usual given name after a surname
_KNOWN_GIVEN = -16.0  # log probability of a usual given name alone
_TITLE_WORD, _TITLE_LETTER = -5.5, -5.0  # log probability of a title after a name
_DIGITS, _TIE = 9, 1e-9  # of log probabilities; two readings whose scores differ by less are equally good


@dataclass(frozen=True, slots=True)
class NameCandidate:
    """A way to read `text[start:end]` as a person: `score` is a log probability, `cue` how firm the context is."""

    start: int
    end: int
    score: float
    cue: float
    shape: str


def _log_shares(weights: Mapping[str, float]) -> dict[str, float]:
    """The logarithm of each weight's share, rounded: sums of floats differ between versions of Python."""
    total = sum(weights.values())
    return {key: round(log(weight / total), _DIGITS) for key, weight in weights.items()}


@cache
def surnames() -> dict[str, float]:
    """Log probabilities of surnames."""
    weights = {
        letter: float(weight)
        for weight, letters in table("persons")["surnames"].items()
        if weight != "double"
        for letter in letters
    }
    weights |= dict.fromkeys(table("persons")["surnames"]["double"].split(), 0.8)
    return _log_shares(weights)


@cache
def _given() -> dict[str, float]:
    weights: dict[str, float] = {}
    for weight, letters in table("persons")["given"].items():
        for letter in letters:
            weights.setdefault(letter, float(weight))
    return _log_shares(weights)


@cache
def _rare() -> float:
    total = sum(float(w) * len(s) for w, s in table("persons")["given"].items())
    return round(log(_RARE / total), _DIGITS)


def given(letter: str, left: float = 0.0) -> float | None:
    """Log probability of a character of a given name; None where no name has it."""
    characters = table("persons")["characters"]
    refused = letter in characters["never"] or (left < STRONG and letter in characters["seldom"])
    known = _given().get(letter)
    if refused or known is not None:
        return None if refused else known
    return _rare() if "\u4e00" <= letter <= "\u9fff" else None


@cache
def _cues() -> tuple[dict[str, float], dict[str, float]]:
    before: dict[str, float] = {}
    for key, gain in (("before", BEFORE), ("kin", KIN), ("strong", STRONG)):
        before |= dict.fromkeys(words("persons", "context", key), gain)
    return before, dict.fromkeys(words("persons", "context", "after"), _AFTER)


def is_letter(text: str, at: int) -> bool:
    return 0 <= at < len(text) and "\u4e00" <= text[at] <= "\u9fff"


def left_cue(text: str, start: int) -> float:
    """What stands before says of a name here, from none (negative) to "my name is"."""
    known = _cues()[0]
    gap = start
    while gap > 0 and start - gap < 3 and text[gap - 1] in "\"“”'‘’「」:：( （【*":
        gap -= 1
    for length in range(min(_LONGEST_CUE, gap), 0, -1):
        gain = known.get(text[gap - length : gap])
        if gain is not None and (gap == start or gain >= KIN):
            return gain
    return _INSIDE if is_letter(text, start - 1) else _EDGE


def right_cue(text: str, end: int) -> float:
    known = _cues()[1]
    for length in (2, 1):
        if text[end : end + length] in known:
            return _AFTER
    return _RIGHT_INSIDE if is_letter(text, end) else _RIGHT_EDGE


@cache
def _lists() -> dict[str, frozenset[str]]:
    entries = table("persons")
    found = {key: frozenset(entries["nicknames"][key].split()) for key in entries["nicknames"] if key != "doubled"}
    found["doubled"] = frozenset(entries["nicknames"]["doubled"])
    found |= {key: frozenset(entries["titles"][key].split()) for key in ("after_surname", "not_title")}
    found["transliterated"] = sections("foreign_names")["transliterated"]
    return found


@cache
def ordinary() -> frozenset[str]:
    """Words that look like full names and are none."""
    return words("persons", "ordinary", "words")


def listed_characters(name: str) -> bool:
    """Whether what follows a surname is written with characters common in given names."""
    rest = name[2:] if name[:2] in surnames() else name[1:] if name[:1] in surnames() else name
    return all(letter in _given() for letter in rest)


def _title_end(text: str, at: int) -> int:
    """Where a title that starts here ends, `at` where there is none."""
    titles = _lists()["after_surname"]
    for length in range(_LONGEST_TITLE, 0, -1):
        word = text[at : at + length]
        if word in titles:
            return at + len(word)
    return at


def name_candidates(text: str, start: int) -> Iterator[NameCandidate]:
    """The ways in which a name may begin here."""
    first = text[start]
    family = surnames()
    left: float | None = None
    if first in family or text[start : start + 2] in family or first in _given() or first in "阿老大":
        left = left_cue(text, start)
        for size in (1, 2):
            surname = text[start : start + size]
            if surname in family:
                yield from _after_surname(text, start, start + size, family[surname], left)
        if first in "小老阿大":
            yield from _nick(text, start, left)
        if first in _given():
            yield from _given_only(text, start, left)
        if (
            first in family
            and text[start - 1 : start] == "姓"
            and (not is_letter(text, start + 1) or text[start + 1] == "的")
        ):
            yield NameCandidate(start, start + 1, 0.0, STRONG, "surname")
    yield from _listed(text, start, left)


def _after_surname(text: str, start: int, at: int, family: float, left: float) -> Iterator[NameCandidate]:
    # 对于|妈妈, 或许|姐姐, 男方|家长, 这段|妈妈, 连|老板: the surname is a word, or belongs to the word before.
    function = text[start] in table("persons")["characters"]["weak"]
    small = left < KIN and function
    counted = start > 0 and text[start - 1] in "这那几两每" and text[start] in "段位张项方支"
    weak = (left < STRONG and function) or counted or (left < KIN and start > 0 and usual(text[start - 1 : at]))
    end = _title_end(text, at)
    if end > at and not weak and ((left >= KIN and text[at] == "总") or text[start:end] not in _lists()["not_title"]):
        around = max(left, 0.0) + max(right_cue(text, end), -0.5)
        yield NameCandidate(start, end, _TITLED + family + around, left, "title")
    score = _FULL + family + left
    one = given(text[at : at + 1] or " ", left)
    if one is None or small:
        return
    yield from _closed(text, start, at + 1, score + one - 1.0, left, "full")
    two = given(text[at + 1 : at + 2] or " ", left)
    known = text[at] in _given() or text[at + 1 : at + 2] in _given()
    pair = _FAMILIAR if text[at : at + 2] in _lists()["given"] else -99.0
    if two is not None and (known or left >= BEFORE) and (left >= STRONG or text[start : at + 1] not in ordinary()):
        yield from _closed(text, start, at + 2, score + max(one + two, pair), left, "full")


def _closed(text: str, start: int, end: int, score: float, left: float, shape: str) -> Iterator[NameCandidate]:
    """The name as it is, and with a title that follows it."""
    if left >= STRONG or text[start:end] not in ordinary():
        yield NameCandidate(start, end, score + right_cue(text, end), left, shape)
    titled = _title_end(text, end)
    if titled > end and (left >= STRONG or not _said_of(text[start:end])):
        yield NameCandidate(
            start,
            titled,
            score + _AFTER + (_TITLE_WORD if titled - end > 1 else _TITLE_LETTER),
            left,
            shape + "+title",
        )


def _said_of(word: str) -> bool:
    """Whether a word before a title is none of its name: 照顾|妈妈, 心理|咨询师."""
    return word in ordinary() or (usual(word) and tags().get(word) in ("v", "vn", "a", "d", "c", "r", "m"))


def _nick(text: str, start: int, left: float) -> Iterator[NameCandidate]:
    prefix, name = text[start], text[start + 1 : start + 2]
    word = prefix + name
    lists = _lists()
    refused = {"小": "not_small", "老": "not_old", "阿": "not_a"}.get(prefix)
    if not name or (refused and word in lists[refused]):
        return
    family = surnames().get(name, -99.0)
    chosen = given(name)
    if prefix in "老大":
        score = family if family > log(0.004) or (prefix == "老" and family > log(0.002)) else -99.0
        score -= 3.0 if prefix == "大" else 0.0
    else:
        least = _rare() if left >= KIN else -99.0
        score = max(family, (_given().get(name, least) if chosen is not None else -99.0) + 0.5)
    if score > -20.0:
        yield from _closed(text, start, start + 2, _NICK + score + left + 1.0, left, "nick")


def _given_only(text: str, start: int, left: float) -> Iterator[NameCandidate]:
    first, second = text[start], text[start + 1 : start + 2]
    if not second or left < 0:
        return
    lists = _lists()
    word = first + second
    if word in lists["given"] and (word not in lists["not_doubled"] or left >= KIN):
        yield from _closed(text, start, start + 2, _KNOWN_GIVEN + left, left, "given")
    if first == second:
        likely = left >= STRONG or first in lists["doubled"] or surnames().get(first, -99.0) > log(0.004)
        if likely and (left >= KIN or text[start : start + 2] not in lists["not_doubled"]):
            yield from _closed(text, start, start + 2, _DOUBLED + _given()[first] + left, left, "doubled")
        return
    one, two = given(first), given(second)
    if one is not None and two is not None and second in _given():
        yield from _closed(text, start, start + 2, _GIVEN + one + two + left, left, "given")


@cache
def _listed_starts() -> frozenset[str]:
    lists = _lists()
    return frozenset(name[:2] for key in ("transliterated", "zi") for name in lists[key])


_FOREIGN_LETTERS = TRANSLITERATION | frozenset("·・")


def _listed(text: str, start: int, left: float | None) -> Iterator[NameCandidate]:
    if text[start : start + 2] not in _listed_starts() and not _FOREIGN_LETTERS.issuperset(text[start : start + 3]):
        return
    lists = _lists()
    for length in range(5, 1, -1):
        word = text[start : start + length]
        if len(word) < length:
            continue
        known = word in lists["transliterated"] or word in lists["zi"]
        if known or (length > 2 and looks_foreign(word)):
            left = left_cue(text, start) if left is None else left
            if not known and left < KIN:
                continue
            score = _FOREIGN - 3.0 if known else _FOREIGN - 4.5 * length
            yield from _closed(text, start, start + length, score + left, left, "foreign")


_RARE_WORD = 200  # occurrences in the dictionary's corpus of 60 million words
_RARE_NAME = 3000  # the same of a word of three characters: nearly all that it calls names are
_JUNK = 20  # what it calls a name and has seen less often is often a wrong cut
_NAME_TAGS = frozenset({"nr", "nrfg", "nrt"})


@dataclass(frozen=True, slots=True)
class Segment:
    """`text[start:end]`: a word of the dictionary, or a name (`shape` says of which kind, `cue` how firm)."""

    start: int
    end: int
    shape: str = ""
    cue: float = 0.0


def segment_text(text: str) -> list[Segment]:
    """The best reading of a text, from its start to its end without a gap."""
    frequencies, total = dictionary()
    size = len(text)
    best = [0.0] * (size + 1)
    choice: list[Any] = [None] * size
    for at in range(size - 1, -1, -1):
        letter = text[at]
        if not "\u4e00" <= letter <= "\u9fff":
            best[at] = best[at + 1]
            choice[at] = at + 1
            continue
        top = log(frequencies.get(letter) or 1) - total + best[at + 1]
        chosen: Any = at + 1
        end = at + 2
        while end <= size:
            count = frequencies.get(text[at:end])
            if count is None:
                break
            if count and not (count < _JUNK and tags().get(text[at:end]) in _NAME_TAGS):
                score = log(count) - total + best[end]
                if score > top + _TIE:
                    top, chosen = score, end
            end += 1
        for naming in name_candidates(text, at):
            score = naming.score + best[naming.end]
            word = text[at : naming.end]
            count = frequencies.get(word)
            least = _RARE_NAME if naming.end - at > 2 or naming.cue >= KIN else _RARE_WORD
            if count and count < least and _known_name(word, naming):
                score = max(score, log(count) - total + best[naming.end] + 0.5)
            if score > top + _TIE:
                top, chosen = score, naming
        best[at], choice[at] = top, chosen
    segments = []
    at = 0
    while at < size:
        step = choice[at]
        segments.append(Segment(at, step) if isinstance(step, int) else Segment(at, step.end, step.shape, step.cue))
        at = segments[-1].end
    return segments


def _known_name(word: str, naming: NameCandidate) -> bool:
    """Whether a rare word of the dictionary is rather a name: it lists some names, and some common words as names."""
    return naming.cue > 0 and tags().get(word) in _NAME_TAGS and listed_characters(word)
