"""What people write so that no filter reads it: dots and digits as words or look-alikes, fillers, letters spelt out.

`deobfuscate` rewrites a reading into what it means and remembers where each character came from; the same rules then
read it a second time. Only what holds a rewritten stretch counts there, so a plain text is never read differently.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from h2htalk.curation.anonymize.normalization import HAN, NormalizedText, normalize_text
from h2htalk.curation.anonymize.structured.patterns import patterns, rewrites
from h2htalk.curation.anonymize.structured.spoken_signs import (
    Edit,
    digits_of_homophones,
    digits_of_pinyin,
    digits_of_words,
    repeated_digit,
    spelt_letters,
)

_RE = patterns("deobfuscation")
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
        edits = [edit for match in pattern.finditer(self.text) for edit in function(match)]
        at = 0
        text, shown, starts, ends, edited = [], [], list[int](), list[int](), bytearray()
        for start, end, meant in edits:
            if self.text[start:end] == meant:
                continue
            text += [self.text[at:start], meant.lower()]
            shown += [self.visible[at:start], meant]
            starts += [*self.starts[at:start], *[self.starts[start]] * len(meant)]
            ends += [*self.ends[at:start], *[self.ends[end - 1]] * len(meant)]
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
        draft.rewrite(_RE["spelt_row"], spelt_letters)
    if language == "zh":
        draft.rewrite(_RE["sounds"], digits_of_pinyin)
    draft.replace(rewrites(language))
    if language == "zh":
        draft.rewrite(_RE["repeated"], repeated_digit)
        draft.rewrite(_RE["han_row"], digits_of_homophones)
    else:
        draft.rewrite(_RE["spoken_digits"], digits_of_words)
    draft.rewrite(_RE["colon"], lambda m: [(*m.span(), m.group().count(":") * ":")])
    draft.rewrite(_RE["odd_dot"], lambda m: [(*m.span(), ".")])
    draft.rewrite(_RE["odd"], _without_fillers)
    draft.rewrite(_RE["lookalike"], _digits_of_lookalikes)
    again = normalize_text(draft.visible) if draft.changed else normalized
    if not draft.changed or len(again.text) != len(draft.text):
        return None
    return Deobfuscated(again, tuple(draft.starts), tuple(draft.ends), bytes(draft.edited))


def _joined(match: re.Match[str]) -> list[Edit]:
    """p l a t e, F G Z 1 0 R: what stands between the signs goes, unless all are digits, which are read anyhow."""
    if not any("a" <= char <= "z" for char in match.group()):
        return []
    between = re.finditer(re.escape(match["s"]), match.group())
    return [(match.start() + m.start(), match.start() + m.end(), "") for m in between]


def _without_fillers(match: re.Match[str]) -> list[Edit]:
    """138哈2736哈4512, lin❤88: fillers between letters go, between digits they are spaces."""
    odd, whole = match["odd"], match.group()
    lettered = any("a" <= char <= "z" for char in whole)
    if _RE["units"].search(odd) and not (lettered and odd == "/" and whole.count("/") > 1):
        return []
    pieces = whole.split(odd)
    once = len(pieces) == 2
    if once and (not lettered or odd.strip() in {*",;!?、)-'\""} or "\u4e00" <= odd[0] <= "\u9fff" or odd[0] in HAN):
        return []
    if lettered and odd in {*",-'\"&、"} and max(map(len, pieces)) > 3:
        return []
    meant = "" if lettered else " "
    spots = re.finditer(re.escape(odd), whole)
    return [(match.start() + m.start(), match.start() + m.end(), meant) for m in spots]


def _digits_of_lookalikes(match: re.Match[str]) -> list[Edit]:
    """I3786O2O589: letters among more digits."""
    found = match.group()
    figures = sum(char.isdigit() or char == "o" for char in found)
    if 2 * figures < len(found):
        return []
    return [
        (at, at + 1, char.translate(_AS_DIGIT)) for at, char in enumerate(found, match.start()) if not char.isdigit()
    ]
