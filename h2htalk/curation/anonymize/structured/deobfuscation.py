"""What people write so that no filter reads it: dots and digits as words or look-alikes, fillers, letters spelt out.

`deobfuscate` rewrites a reading into what it means and remembers where each character came from; the same rules then
read it a second time. Only what holds a rewritten stretch counts there, so a plain text is never read differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from h2htalk.curation.anonymize.normalization import HAN, HAN_DIGITS, NormalizedText, normalize_text
from h2htalk.curation.anonymize.structured.reading import patterns, read_table, rewrites

# A stretch of a text, and what it means.
Edit = tuple[int, int, str]
_RE = patterns("deobfuscation")
_TABLES = read_table("deobfuscation")
_ONES, _TEENS, _TENS, _TIMES = (_TABLES[name] for name in ("ones", "teens", "tens", "times"))
_NATO, _SOUNDS, _RADIO = _TABLES["nato"], _TABLES["sounds"], _TABLES["radio"]
_ROUNDS = 3
_AS_DIGIT = str.maketrans("lio|szb", "1101528")


@dataclass(frozen=True, slots=True)
class Deobfuscated:
    """A text as it is meant. `starts`, `ends`: the places of the reading that each character stands for; `edited`:
    whether it was rewritten."""

    normalized: NormalizedText
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    edited: bytes

    def rewritten(self, start: int, end: int) -> bool:
        """Whether anything from `start` to `end` was rewritten."""
        return self.edited.find(1, start, end) >= 0


class _Draft:
    """A text while it is rewritten, character by character with its origin."""

    def __init__(self, normalized: NormalizedText) -> None:
        self.text, self.visible = normalized.text, normalized.visible
        self.starts = list(range(len(self.text)))
        self.ends = list(range(1, len(self.text) + 1))
        self.edited = bytearray(len(self.text))
        self.changed = False

    def replace(self, rules: list[tuple[re.Pattern[str], str]]) -> None:
        """Replace what each expression finds, or its group `cut`; again, as what is replaced may complete a match."""
        for pattern, meant in rules:
            group = "cut" if "cut" in pattern.groupindex else 0
            for _ in range(_ROUNDS):
                if not self.rewrite(pattern, lambda m, group=group, meant=meant: [(*m.span(group), meant)]):  # type: ignore[misc]
                    break

    def rewrite(self, pattern: re.Pattern[str], function: Callable[[re.Match[str]], list[Edit]]) -> bool:
        """Replace what a function says of each match: stretches of the text and what they mean. Whether any was."""
        at = 0
        text, shown, starts, ends, edited = [], [], list[int](), list[int](), bytearray()
        for start, end, meant in (edit for match in pattern.finditer(self.text) for edit in function(match)):
            if self.text[start:end] == meant:
                continue
            text += [self.text[at:start], meant.lower()]
            shown += [self.visible[at:start], meant]
            starts += [*self.starts[at:start], *[self.starts[start]] * len(meant)]
            # What is put in between two characters stands for the second.
            ends += [*self.ends[at:start], *[self.ends[max(start, end - 1)]] * len(meant)]
            edited += self.edited[at:start] + b"\x01" * len(meant)
            if not meant and edited:  # what was left out shows on its neighbours
                edited[-1] = 1
            at = end
        if at:
            self.text = "".join([*text, self.text[at:]])
            self.visible = "".join([*shown, self.visible[at:]])
            self.starts, self.ends = starts + self.starts[at:], ends + self.ends[at:]
            self.edited = edited + self.edited[at:]
            self.changed = True
        return at > 0


def deobfuscate(normalized: NormalizedText, language: str) -> Deobfuscated | None:
    """What a reading means, or None where nothing in it is disguised."""
    text = normalized.text
    web = _RE["letter"].search(text) is not None and _RE["web_gate"].search(text) is not None
    if not web and not _RE[f"gate_{language}"].search(text) and not _RE["gate"].search(text):
        return None
    draft = _Draft(normalized)
    draft.rewrite(_RE["apart"], _joined)
    if web:
        draft.replace(rewrites("web"))
    if language == "en":
        draft.rewrite(_RE["spelt_row"], _spelt_letters)
    draft.replace(rewrites(language))
    if language == "zh":
        draft.rewrite(_RE["han_row"], _digits_of_homophones)
    else:
        draft.rewrite(_RE["spoken_digits"], _digits_of_words)
    draft.rewrite(_RE["colon"], lambda m: [(*m.span(), m.group().count(":") * ":")])
    draft.rewrite(_RE["odd"], _without_fillers)
    draft.rewrite(_RE["lookalike"], _digits_of_lookalikes)
    again = normalize_text(draft.visible) if draft.changed else normalized
    if not draft.changed or len(again.text) != len(draft.text):
        return None
    return Deobfuscated(again, tuple(draft.starts), tuple(draft.ends), bytes(draft.edited))


def _joined(match: re.Match[str]) -> list[Edit]:
    """p l a t e, F G Z 1 0 R: what stands between the signs goes, unless all are digits, which are read anyhow."""
    return _each(match, match["s"], "") if _RE["letter"].search(match.group()) else []


def _each(match: re.Match[str], filler: str, meant: str) -> list[Edit]:
    """Every place of a filler in a match."""
    return [
        (m.start(), m.end(), meant)
        for m in re.compile(re.escape(filler)).finditer(match.string, match.start(), match.end())
    ]


def _without_fillers(match: re.Match[str]) -> list[Edit]:
    """138哈2736哈4512, lin❤88: fillers between letters go, between digits they are spaces."""
    odd, whole = match["odd"], match.group()
    lettered = _RE["letter"].search(whole) is not None
    if _RE["units"].search(odd) and not (lettered and odd == "/" and whole.count("/") > 1):
        return []
    pieces = whole.split(odd)
    weak = not lettered or odd.strip() in {*",;!?、)-'\""} or "\u4e00" <= odd[0] <= "\u9fff" or odd[0] in HAN
    if len(pieces) == 2 and weak:
        return []
    return _each(match, odd, "" if lettered else " ")


def _digits_of_lookalikes(match: re.Match[str]) -> list[Edit]:
    """I3786O2O589: letters among more digits."""
    found = match.group()
    figures = sum(char.isdigit() or char == "o" for char in found)
    if 2 * figures < len(found):
        return []
    return [
        (at, at + 1, char.translate(_AS_DIGIT)) for at, char in enumerate(found, match.start()) if not char.isdigit()
    ]


def _digits_of_words(match: re.Match[str]) -> list[Edit]:
    """ "double seven", "forty two", "oh": as digits, where two or more stand in a row."""
    at = match.start()
    found = [(at + m.start(), at + m.end(), _figures(m.group())) for m in _RE["spoken"].finditer(match.group())]
    total = sum(char.isdigit() for char in match.group()) + sum(len(meant) for _, _, meant in found)
    if total < 2 or "12345" in "".join(meant for _, _, meant in found):  # somebody counts
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


def _spelt_letters(match: re.Match[str]) -> list[Edit]:
    """Letters by their names, joined: only where two names or "as in" show that somebody spells."""
    edits: list[Edit] = []
    names = others = 0
    last = match.start()
    for sign in _RE["spelt"].finditer(match.string, match.start(), match.end()):
        said = sign.group()
        spoken = len(said) > 1 and _RE["spoken"].fullmatch(said) is not None
        names += len(said) > 2 and not spoken and not said[0].isdigit()
        others += spoken or said.isdigit()
        letter = _NATO.get(said, said[0]).upper()
        edits += [(last, sign.start(), "")] if sign.start() > last else []
        edits.append((*sign.span(), _figures(said) if spoken else said if said.isdigit() else letter))
        last = sign.end()
    return edits if names > 1 or (names and others) else []


def _digits_of_homophones(match: re.Match[str]) -> list[Edit]:
    """幺三八洞两拐, 1三8林: Han characters that are said for digits, among digits."""
    found = match.group()
    table = HAN_DIGITS | _SOUNDS | _RADIO
    strange = any(char in _SOUNDS for char in found)
    certain = sum(map(str.isdecimal, found)) > 1 or sum(char in HAN_DIGITS for char in found) > 4
    if (strange and not certain) or not (strange or any(char in _RADIO for char in found)):
        return []
    return [(at, at + 1, table[char]) for at, char in enumerate(found, match.start()) if char in table]
