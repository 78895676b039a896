"""A text as the rules of structured data read it, with the words beside its numbers, and what it means in disguise.

A number alone is often ambiguous (an 11-digit mobile is a legal QQ number, one order number in ten passes Luhn), so the
nearest cue decides ("my number is", 身份证, 加我微信, "order no."). Which words are cues of what stands in
`words/cues_en.toml` and `words/cues_zh.toml`.

People also write so that no filter reads it: dots and digits as words or look-alikes, fillers.
`deobfuscate` rewrites a text into what it means and remembers where each character came from; the same rules then read
it a second time. Only what holds a rewritten stretch counts there, so a plain text is never read differently.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from h2htalk.detect.personal.spans import HAN, HAN_DIGITS, NormalizedText, normalize_text
from h2htalk.text.chinese_characters import simplified
from h2htalk.text.language_data import compile_patterns, read_data
from h2htalk.text.phrases import PhraseIndex


def read_table(name: str) -> Mapping[str, Any]:
    """A file of `words`."""
    return read_data(Path(__file__).parent / "words" / f"{name}.toml")


@cache
def internet_words(name: str) -> frozenset[str]:
    """A list of `words/internet.toml`: `strong`, `weak`, `files`, ..."""
    return frozenset(read_table("internet")[name])


@cache
def patterns(table: str) -> dict[str, re.Pattern[str]]:
    """The compiled expressions of a table, in which `{name}` stands for an earlier one, of the table or of `[shared]`,
    and `{han}` for all Han digits."""
    tables = read_table("patterns")
    return compile_patterns(tables[table], {"han": HAN, **tables["shared"]})


Hit = tuple[int, int, float]  # start, end, score


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name, the type of what it finds, and its function: in `rules` it gives each `Hit` of a reading, in
    `numbers` it says how sure it is of a window. `gate` names what a text must hold for the rule; `languages`: those
    whose rules of numbers it belongs to."""

    name: str
    type: str
    find: Callable[..., Any]
    gate: str = ""
    languages: tuple[str, ...] = ("en", "zh")


# --- Cues: the words beside a number ---

_CUE = patterns("number_cues")
_NEW_SENTENCE = 12
_NOT_LED_BACK = 18
# Kinds that 编号 and "number" may be the number of.
_NUMBERED = frozenset(["account", "id", "card", "plate", "qq", "wechat", "other"])
# Kinds that name a situation, not a value: they count only as what a message is about.
_SITUATIONS = frozenset(["vehicle", "adding", "profile", "counter"])


class Cue(NamedTuple):
    """A cue word at `start` to `end` of a reading, for a `kind` of number (`phone`, `qq`, ..., `other`)."""

    start: int
    end: int
    kind: str


_START = attrgetter("start")


@dataclass(frozen=True, slots=True)
class Near:
    """The cues of one value: kinds, nearest first, with the characters in between; `around`: all kinds of cues in the
    message about it, wherever they stand."""

    kinds: tuple[tuple[str, int], ...]
    around: frozenset[str] = frozenset()

    @property
    def nearest(self) -> str:
        """The kind of the nearest cue, or ''."""
        return self.kinds[0][0] if self.kinds else ""

    def nearest_is_impersonal(self, reach: int) -> bool:
        """Whether the nearest cue is one of nobody's numbers, at most `reach` characters away."""
        return self.nearest == "other" and self.kinds[0][1] <= reach

    def distance(self, *kinds: str) -> int | None:
        """Characters to the nearest cue of one of the kinds, if no cue of `other` stands nearer."""
        kind, distance = next((one for one in self.kinds if one[0] in (*kinds, "other")), ("", 0))
        return distance if kind in kinds else None


@cache
def _cue_index(language: str) -> PhraseIndex[str]:
    """The kind of each cue word; the table that stands first wins. A Chinese text is also searched for English ones."""
    kinds: dict[str, str] = {}
    for tables in (read_table("cues_en"), read_table(f"cues_{language}")):
        for parts in reversed(tables.get("spellings", [])):
            kinds |= {a + b: parts["kind"] for a, b in product(parts["first"], parts["second"])}
        for kind, words in reversed([*tables.items()]):
            if isinstance(words, list) and kind != "spellings":
                kinds |= {word.lower(): kind for word in words}

    def stands_apart(text: str, start: int, end: int) -> bool:
        """Whether a cue that begins and ends in Latin letters is no part of a longer word."""
        if not ("a" <= text[start] <= "z" and text[end - 1].isascii()):
            return True
        return not ("a" <= text[start - 1 : start] <= "z" or "a" <= text[end : end + 1] <= "z")

    return PhraseIndex(kinds.items(), stands_apart)


class Reading:
    """One text. `text`, `digits` and `visible` as in `NormalizedText`; `language` is that of its rules of numbers."""

    def __init__(
        self, normalized: NormalizedText, language: str, countries: Sequence[str] = ()
    ) -> None:
        self.text, self.digits, self.visible = (
            normalized.text,
            normalized.digits,
            normalized.visible,
        )
        self.language, self.countries = language, countries
        self._taken = bytearray(len(self.text))

    def take(self, start: int, end: int) -> None:
        """Mark characters as found."""
        self._taken[start:end] = b"\x01" * (end - start)

    def is_free(self, start: int, end: int) -> bool:
        """Whether no character from `start` to `end` was found."""
        return self._taken.find(1, start, end) < 0

    @cached_property
    def cues(self) -> list[Cue]:
        """The words in it that say what a number is, in its order."""
        text = simplified(self.text) if self.language == "zh" else self.text
        return [Cue(*found) for found in _cue_index(self.language).find(text)]

    def near(self, start: int, end: int, barrier: int = 0, *, formed: bool = False) -> Near:
        """Cues of the value at `start` to `end`. None before `barrier` (the end of a value before) counts. `formed`: it
        has a phone's or a bank card's form, of which the words of an errand say nothing; else they are `other`."""
        reach = read_table(f"cues_{self.language}")["reach"]
        silent = {*_SITUATIONS, "errand"} if formed else _SITUATIONS
        kinds: list[tuple[str, int]] = []
        at = bisect_right(self.cues, start, key=_START)
        for cue in reversed(self.cues[max(0, at - 12) : at]):
            gap = start - cue.end
            if gap > reach["before"] or cue.start < barrier:
                break
            kind = self._kind_of(cue)
            between = (self.text, cue.end, start)
            impersonal = kind == "other" and (
                gap > reach["impersonal"] or _CUE["apart"].fullmatch(*between)
            )
            if gap >= 0 and cue.kind not in silent and not impersonal:
                kinds.append(
                    (kind, gap + (_NEW_SENTENCE if _CUE["sentence_end"].search(*between) else 0))
                )
        # Cues behind a value weigh less than those before it: the next value's cue stands there too.
        at = bisect_right(self.cues, end - 1, key=_START)
        for cue in self.cues[at : at + 4]:
            gap = cue.start - end
            text = self.text[end : cue.start]
            if gap > reach["behind"]:
                break
            if cue.kind in silent or _CUE["digits"].search(text):
                continue
            leads = _CUE["leads_back"].match(text)
            direct = leads is not None and leads.group().strip(" ，,。.!~)]'\"-\n") != ""
            ended = _CUE["sentence_end"].search(text) is not None
            if (direct or gap <= 1) and not ended:
                kinds.append((self._kind_of(cue), gap + (4 if direct else 10)))
            elif (kind := self._kind_of(cue)) != "other":
                kinds.append((kind, gap + _NOT_LED_BACK + (_NEW_SENTENCE if ended else 0)))
        first = bisect_left(self.cues, start - reach["around"], key=_START)
        last = bisect_right(self.cues, end + reach["around"], key=_START)
        around = frozenset(cue.kind for cue in self.cues[first : min(last, first + 40)])
        return Near(tuple(sorted(kinds, key=lambda kind: kind[1])), around)

    def _kind_of(self, cue: Cue) -> str:
        """What a cue is of. 编号 or "number": of what was named just before; else nobody's in Chinese, a phone's in
        English."""
        if cue.kind != "generic":
            return "other" if cue.kind == "errand" else cue.kind
        table = read_table(f"cues_{self.language}")
        at = bisect_left(self.cues, cue.start, key=_START)
        before = reversed(self.cues[max(0, at - 3) : at])
        reach = table["reach"]["antecedent"]
        named = (
            other.kind
            for other in before
            if other.kind in _NUMBERED and cue.start - other.end <= reach
        )
        return next(named, str(table["bare_number"]))


# A stretch of a text, and what it means.
Edit = tuple[int, int, str]
Edits = Callable[[re.Match[str]], list[Edit]]
_RE = patterns("deobfuscation")
_TABLES = read_table("deobfuscation")
_ONES, _TEENS, _TENS, _TIMES, _SOUNDS, _RADIO = itemgetter(
    "ones", "teens", "tens", "times", "sounds", "radio"
)(_TABLES)
_ROUNDS = 3
_AS_DIGIT = str.maketrans("lio|szb", "1101528")


class Sign(NamedTuple):
    """A character of what a text means: in lower case and as shown, the places of the text that it stands for, and
    whether it was rewritten."""

    text: str
    shown: str
    start: int
    end: int
    edited: bool = False


def deobfuscate(
    normalized: NormalizedText, language: str
) -> tuple[NormalizedText, list[Sign]] | None:
    """What a text means, and whence each of its characters is; None where nothing in it is disguised."""
    text = normalized.text
    web = _RE["letter"].search(text) is not None and _RE["web_gate"].search(text) is not None
    if not web and not _RE[f"gate_{language}"].search(text) and not _RE["gate"].search(text):
        return None
    pairs = zip(text, normalized.visible, strict=True)
    signs = [Sign(char, shown, at, at + 1) for at, (char, shown) in enumerate(pairs)]
    unchanged: re.Pattern[str] | None = None
    for pattern, edits in [
        (_RE["apart"], _joined),
        *(_replacements("web") if web else ()),
        *_replacements(language),
        (_RE["han_row"], _digits_of_homophones)
        if language == "zh"
        else (_RE["spoken_digits"], _digits_of_words),
        (_RE["colon"], lambda m: [(*m.span(), m.group().count(":") * ":")]),
        (_RE["odd"], _without_fillers),
        (_RE["lookalike"], _digits_of_lookalikes),
    ]:
        if pattern is unchanged:
            continue
        found = [
            (a, b, meant)
            for m in pattern.finditer(text)
            for a, b, meant in edits(m)
            if text[a:b] != meant
        ]
        unchanged = None if found else pattern
        if found:
            signs = _rewrite(signs, found)
            text = "".join(sign.text for sign in signs)
    if not any(sign.edited for sign in signs):
        return None
    meant = normalize_text("".join(sign.shown for sign in signs))
    return (meant, signs) if len(meant.text) == len(signs) else None


@cache
def _replacements(name: str) -> list[tuple[re.Pattern[str], Edits]]:
    """A list of `words/deobfuscation.toml`: expressions, which may name those of `[deobfuscation]`, and what they, or
    their group `cut`, mean."""
    parts = {"han": HAN, **read_table("patterns")["shared"]} | {
        key: found.pattern for key, found in _RE.items()
    }

    def replacement(entry: Mapping[str, str]) -> tuple[re.Pattern[str], Edits]:
        pattern = compile_patterns({"": entry["pattern"]}, parts)[""]
        group = "cut" if "cut" in pattern.groupindex else 0
        return pattern, lambda match: [(*match.span(group), entry["meant"])]

    # What is replaced may complete a match.
    return [found for entry in _TABLES[name] for found in [replacement(entry)] * _ROUNDS]


def _rewrite(signs: list[Sign], edits: Iterable[Edit]) -> list[Sign]:
    """Replace stretches of the text by what they mean."""
    made: list[Sign] = []
    at = 0
    for start, end, meant in edits:
        made += signs[at:start]
        if not meant and made:  # what was left out shows on its neighbours
            made[-1] = made[-1]._replace(edited=True)
        for char in meant:  # what is put in between two characters stands for the second
            made.append(
                Sign(
                    char.lower(),
                    char,
                    signs[start].start,
                    signs[max(start, end - 1)].end,
                    edited=True,
                )
            )
        at = end
    return made + signs[at:] if at else signs


def _joined(match: re.Match[str]) -> list[Edit]:
    """p l a t e, F G Z 1 0 R: what stands between the signs goes, unless all are digits, which are read anyhow."""
    return _each(match, match["s"], "") if _RE["letter"].search(match.group()) else []


def _each(match: re.Match[str], filler: str, meant: str) -> list[Edit]:
    """Every place of a filler in a match."""
    found = re.compile(re.escape(filler)).finditer(match.string, *match.span())
    return [(*place.span(), meant) for place in found]


def _without_fillers(match: re.Match[str]) -> list[Edit]:
    """138哈2736哈4512, lin❤88: fillers between letters go, between digits they are spaces."""
    odd = match["odd"]
    whole = match.group()
    lettered = _RE["letter"].search(whole) is not None
    path = match.string[: match.start()].endswith(".")
    if path or (
        _RE["units"].search(odd) and not (lettered and odd == "/" and whole.count("/") > 1)
    ):
        return []
    weak = (
        not lettered
        or odd.strip() in {*",;!?、)-'\""}
        or "\u4e00" <= odd[0] <= "\u9fff"
        or odd[0] in HAN
    )
    return [] if weak and whole.count(odd) == 1 else _each(match, odd, "" if lettered else " ")


def _digits_of_lookalikes(match: re.Match[str]) -> list[Edit]:
    """I3786O2O589: letters among more digits."""
    signs = list(enumerate(match.group(), match.start()))
    if 2 * sum(char.isdigit() or char == "o" for _, char in signs) < len(signs):
        return []
    return [(at, at + 1, char.translate(_AS_DIGIT)) for at, char in signs if not char.isdigit()]


def _digits_of_words(match: re.Match[str]) -> list[Edit]:
    """ "double seven", "forty two", "oh": as digits, where two or more stand in a row."""
    spoken = _RE["spoken"].finditer(match.string, *match.span())
    found = [(*words.span(), _figures(words.group())) for words in spoken]
    said = "".join(meant for _, _, meant in found)
    if sum(map(str.isdigit, match.group())) + len(said) < 2 or said.startswith(
        ("12345", "012345")
    ):  # somebody counts
        return []
    edits: list[Edit] = []
    for edit in found:  # "one forty two": what a space alone parts is one number
        if edits and match.string[edits[-1][1] : edit[0]] == " ":
            edits.append((edits[-1][1], edit[0], ""))
        edits.append(edit)
    return edits


def _figures(said: str) -> str:
    first, *more = re.split(r"[ -]", said)
    if first in _TIMES:
        return str(_ONES.get(more[0], more[0])) * int(_TIMES[first])
    if first in _TENS:
        return str(_TENS[first]) + (_ONES[more[0]] if more else "0")
    return str(_TEENS.get(first) or _ONES[first]) + ("00" if more else "")


def _digits_of_homophones(match: re.Match[str]) -> list[Edit]:
    """幺三八洞两拐, 1三8林: Han characters that are said for digits, among digits."""
    found = match.group()
    strange = any(char in _SOUNDS for char in found)
    certain = sum(map(str.isdecimal, found)) > 1 or sum(char in HAN_DIGITS for char in found) > 4
    if (strange and not certain) or not (strange or any(char in _RADIO for char in found)):
        return []
    table = HAN_DIGITS | _SOUNDS | _RADIO
    return [
        (at, at + 1, table[char]) for at, char in enumerate(found, match.start()) if char in table
    ]
