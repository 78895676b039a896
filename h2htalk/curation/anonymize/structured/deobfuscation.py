"""What people write so that no filter reads it: digits as words or look-alikes, fillers in between, letters spelt out.

`deobfuscate` rewrites a reading into what it means and remembers where each character came from; the same rules then
read it a second time. Only what holds a rewritten stretch counts there, so a plain text is never read differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from h2htalk.curation.anonymize.normalization import HAN, HAN_DIGITS, NormalizedText, normalize_text
from h2htalk.curation.anonymize.structured.deobfuscation_words import (
    CLUSTER,
    DIGIT_WORDS,
    FILLERS,
    GLUED,
    HAN_RUN,
    HOMOPHONES,
    PINYIN_DOT,
    PINYIN_RUN,
    REPEATED,
    SPELT_DIGITS,
    pinyin_digits,
    spelled_letters,
    split_glued_cue,
    spoken_digits,
)

# A rough look at a text: whether anything below can apply at all.
_TRIGGER_ZH = re.compile(
    rf"[0-9a-z{HAN}][\s\W]{{0,3}}(?:然后|后面|接着|再|空|不要|删|去掉|杠|横|减|点|句号|冒号|下划|底线|斜杠|中间|最后|加|跟)|[洞拐勾]"
    rf"|个[0-9{HAN}]|[0-9][{HOMOPHONES}]|[{HOMOPHONES}][0-9]"
    r"|(?<![a-z])(?:yao|yi|er|san|si|wu|liu|qi|ba|jiu|ling)(?:[\s,.-]|yao|er|san|si|wu|liu|qi|ba|jiu|ling)|[0-9]\s?dian"
)
_TRIGGER_EN = re.compile(
    rf"(?<![a-z])(?:{DIGIT_WORDS}|then|dash|point|dot|d0t|period|last four|hyphen|space"
    rf"|minus|slash|colon|underscore|as in|alpha|bravo|charlie|delta|echo"
    r"|foxtrot|golf|hotel|india|juliett?|kilo|lima|mike|november|oscar|papa|quebec|romeo|sierra|tango|uniform|victor"
    r"|whiskey|x-?ray|yankee|zulu)(?![a-z])|[a-z]{4}[0-9]{7}"
)
_TRIGGER_ANY = re.compile(
    r"[0-9][li|]|[li|][0-9]|[0-9][szb][0-9]|(?<![a-z0-9])[a-z0-9_] [a-z0-9_] [a-z0-9_](?![a-z0-9])"
    r"|[0-9a-f]\s?[\[(]\s?:|[0-9a-f]\s:\s?[0-9a-f]|[\[{(<]\s?[.:]\s?[\]})>]|[0-9](?:[^\w\s]|\s)[^\w\s]"
    r"|[a-z0-9][^\w\s,.'\"()@!?;:-]+[a-z0-9]|[a-z0-9][\u4e00-\u9fff]{1,3}[a-z0-9]"
    r"|[a-z0-9](?P<s>[、,.*/…+~|-])[a-z0-9_](?:(?P=s)[a-z0-9_])+"
)
_LOOKALIKE = re.compile(r"(?<![a-z0-9])(?=[liosz|b]*[0-9])[0-9liosz|b]{2,20}(?![a-z0-9])")
_AS_DIGIT = str.maketrans("lio|szb", "1101528")
_SINGLES = re.compile(r"(?<![a-z0-9_'])[a-z0-9_](?: {1,2}[a-z0-9_]){2,40}(?![a-z0-9_'])")
_JOINED = re.compile(r"(?<![a-z0-9_.])[a-z0-9_](?P<s>[.*·/,~+|…-])[a-z0-9_](?:(?P=s)[a-z0-9_]){2,40}(?![a-z0-9])")
_COLON = re.compile(r"(?<=[0-9a-f:])(?:\s?[\[({<]\s?:{1,2}\s?[\])}>]\s?|\s:{1,2}\s?|:{1,2}\s)(?=[0-9a-f:\[(])")
_ODD_DOT = re.compile(r"(?<=[0-9])\s?[\[({<]\s?[.·。]\s?[\])}>]\s?(?=[0-9])")
# The same odd thing again and again between pieces: 1982哈269哈0298, fangf❤anga❤853, "404 ... 555 ... 0100".
_ODD = re.compile(
    rf"(?<![a-z0-9_{HAN}])(?P<head>[a-z0-9_{HAN}]{{1,12}})(?P<odd>[\u4e00-\u9fff]{{1,3}}"
    rf"|[^\w\s]{{1,8}}|\s[^\w\s]{{1,8}}\s)"
    rf"(?P<rest>[a-z0-9_{HAN}]{{1,12}}(?:(?P=odd)[a-z0-9_{HAN}]{{1,12}}){{1,20}}|-?[a-z0-9_]{{1,12}})(?![a-z0-9_])"
)
# What stands between numbers that are numbers of something.
_UNITS = re.compile(
    r"[年月日号点时分秒个元块次楼栋岁米到至或和与及是的了在有xX×=:@%]|^[./]$|^\s[.:/=-]\s$|--?>|或者|还有"
)
_LETTER = re.compile(r"[a-z]")
_HAN = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Deobfuscated:
    """A text as it is meant. `starts`, `ends`: the places of the reading that each character stands for; `edited`:
    whether it was rewritten."""

    normalized: NormalizedText
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    edited: bytes

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """A stretch as places of the reading that was unveiled."""
        return self.starts[start], self.ends[end - 1]

    def rewritten(self, start: int, end: int) -> bool:
        return self.edited.find(1, start, end) >= 0


class _Draft:
    """A text while it is rewritten, character by character with its origin."""

    def __init__(self, normalized: NormalizedText) -> None:
        self.text, self.visible = normalized.text, normalized.visible
        self.starts = list(range(len(self.text)))
        self.ends = list(range(1, len(self.text) + 1))
        self.edited = bytearray(len(self.text))
        self.changed = False

    def rewrite(
        self, pattern: re.Pattern[str], function: Callable[[re.Match[str]], list[tuple[int, int, str]]]
    ) -> None:
        """Replace what a function says of each match: stretches of the text and what they mean."""
        edits = [edit for match in pattern.finditer(self.text) for edit in function(match)]
        edits = [edit for edit in edits if self.text[edit[0] : edit[1]] != edit[2]]
        if not edits:
            return
        text, shown, starts, ends, edited = [], [], list[int](), list[int](), bytearray()
        at = 0
        for start, end, meant in edits:
            if start < at:
                continue
            text += [self.text[at:start], meant.lower()]
            shown += [self.visible[at:start], meant]
            starts += [*self.starts[at:start], *[self.starts[start]] * len(meant)]
            ends += [*self.ends[at:start], *[self.ends[end - 1]] * len(meant)]
            edited += self.edited[at:start] + b"\x01" * len(meant)
            if not meant and edited:  # what was left out shows on its neighbours
                edited[-1] = 1
            at = end
        self.text = "".join([*text, self.text[at:]])
        self.visible = "".join([*shown, self.visible[at:]])
        self.starts, self.ends = starts + self.starts[at:], ends + self.ends[at:]
        self.edited = edited + self.edited[at:]
        self.changed = True


def deobfuscate(normalized: NormalizedText, language: str) -> Deobfuscated | None:
    """What a reading means, or None where nothing in it is disguised."""
    text = normalized.text
    trigger = _TRIGGER_ZH if language == "zh" else _TRIGGER_EN
    if trigger.search(text) is None and _TRIGGER_ANY.search(text) is None:
        return None
    draft = _Draft(normalized)
    if language == "en":
        draft.rewrite(CLUSTER, spelled_letters)
    draft.rewrite(_SINGLES, _singles)
    draft.rewrite(_JOINED, _singles)
    if language == "zh":
        draft.rewrite(PINYIN_DOT, lambda m: [(m.start(), m.end(), ".")])
        draft.rewrite(PINYIN_RUN, pinyin_digits)
    for pattern, meant in FILLERS[language]:
        draft.rewrite(pattern, lambda m, meant=meant: [(m.start(), m.end(), meant)])  # type: ignore[misc]
    if language == "zh":
        draft.rewrite(REPEATED, _repeated)
        draft.rewrite(HAN_RUN, _homophones)
    else:
        draft.rewrite(SPELT_DIGITS, spoken_digits)
        draft.rewrite(GLUED, split_glued_cue)
    draft.rewrite(_COLON, lambda m: [(m.start(), m.end(), m.group().count(":") * ":")])
    draft.rewrite(_ODD_DOT, lambda m: [(m.start(), m.end(), ".")])
    draft.rewrite(_ODD, _odd)
    draft.rewrite(_LOOKALIKE, _lookalike)
    if not draft.changed:
        return None
    again = normalize_text(draft.visible)
    if len(again.text) != len(draft.text):
        return None
    return Deobfuscated(again, tuple(draft.starts), tuple(draft.ends), bytes(draft.edited))


def _singles(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """ "p l a t e", "F G Z 1 0 R": the spaces go, unless all are digits, which are read anyhow."""
    if not _LETTER.search(match.group()):
        return []
    return [
        (m.start() + match.start(), m.end() + match.start(), "") for m in re.finditer(r"[^a-z0-9_]+", match.group())
    ]


def _repeated(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """四个6"""
    count = int(HAN_DIGITS.get(match[1]) or {"两": "2", "俩": "2"}.get(match[1]) or match[1])
    return [(match.start(), match.end(), HAN_DIGITS.get(match[2], match[2]) * count)]


def _homophones(match: re.Match[str]) -> list[tuple[int, int, str]]:
    found = match.group()
    figures = sum(char in "0123456789" for char in found)
    said = sum(char in HAN for char in found)
    strange = [(i, char) for i, char in enumerate(found) if char in HOMOPHONES]
    if strange and figures < 2 and said < 5:
        return []
    table = {
        **spoken_homophones(),
        **(HAN_DIGITS if any(char in "洞两拐勾俩" or char in HOMOPHONES for char in found) else {}),
    }
    return [(match.start() + i, match.start() + i + 1, table[char]) for i, char in enumerate(found) if char in table]


def spoken_homophones() -> dict[str, str]:
    """Han characters that are said for digits: over the radio, and those that sound alike."""
    radio = {"洞": "0", "两": "2", "拐": "7", "勾": "9", "俩": "2"}
    sounds = dict(
        zip(
            "林零玲铃灵凌衣依伊医尔伞叁寺舞吴武午溜刘柳妻齐琪漆爸巴芭酒玖久久",
            "000000111123345555666777788899999"[:33],
            strict=False,
        )
    )
    return {**sounds, **radio}


def _odd(match: re.Match[str]) -> list[tuple[int, int, str]]:
    odd, whole = match["odd"], match.group()
    lettered = _LETTER.search(whole) is not None
    if (_UNITS.search(odd) and not (lettered and odd == "/" and whole.count("/") > 1)) or any(
        char in HAN for char in odd
    ):
        return []
    if (lettered and "@" in odd) or "#" in odd:
        return []
    again = whole.count(odd) > 1
    if not again and (not lettered or odd.strip() in (",", ";", "!", "?", "、", ")", "-", "'", '"') or _HAN.match(odd)):
        return []
    if lettered and odd in (",", "-", "'", '"', "&", "、") and max(map(len, whole.split(odd))) > 3:
        return []
    meant = "" if lettered else " "
    spots = re.finditer(re.escape(odd), whole)
    return [(match.start() + m.start(), match.start() + m.end(), meant) for m in spots]


def _lookalike(match: re.Match[str]) -> list[tuple[int, int, str]]:
    """I3786O2O589: letters among more digits."""
    found = match.group()
    digits = sum(char.isdigit() for char in found)
    zeros = found.count("o")
    if digits == len(found) or digits < 1 or 2 * (digits + zeros) < len(found):
        return []
    return [
        (match.start() + i, match.start() + i + 1, char.translate(_AS_DIGIT))
        for i, char in enumerate(found)
        if not char.isdigit()
    ]
