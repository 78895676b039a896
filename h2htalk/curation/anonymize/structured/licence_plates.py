"""Licence plates: Chinese ones by their form, others right behind a word for a plate or by their shape near a car."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from re import Match

from h2htalk.curation.anonymize.structured.patterns import internet_words, patterns
from h2htalk.curation.anonymize.structured.reading import Hit, Reading

_RE = patterns("licence_plates")
_NO_PART = internet_words("no_plate_words")
_ABOUT = frozenset(["vehicle", "plate"])
_ELSEWHERE = frozenset(["other", "account", "id", "wechat"])
_AS_DIGIT = str.maketrans("ioszbl", "105281")
_LONGEST = 8


def behind_cue(reading: Reading) -> Iterator[Hit]:
    """Plates right behind a word for one, whatever their shape."""
    for cue in (cue for cue in reading.cues.found if cue.kind == "plate"):
        lead = _RE["lead"].match(reading.digits, cue.end)
        start = lead.end() if lead else cue.end
        if end := _end_behind(reading.digits, start):
            yield start, end, 0.9


def _end_behind(text: str, start: int) -> int:
    """Where the plate at a place ends, whatever its shape: letters and figures, five to eight; 0 for none."""
    whole, best, end = "", 0, start
    for piece in _RE["piece"].finditer(text, start, start + 3 * _LONGEST):
        spelt = len(whole) == len(piece.group()) == 1
        apart = whole and not _RE["separator"].fullmatch(text, end, piece.start())
        if apart or (not whole and piece.start() > start) or (piece.group() in _NO_PART and not spelt):
            break
        whole, end = whole + piece.group(), piece.end()
        figures = sum(map(str.isdigit, whole))
        mixed = 2 <= figures < len(whole) or (figures == len(whole) > 5)
        if 5 <= len(whole) <= _LONGEST and mixed and not _RE["no_direct"].fullmatch(whole):
            best = end
    return 0 if best and _RE["digits_behind"].match(text, best) else best


def by_shape(reading: Reading) -> Iterator[Hit]:
    """Plates in a message that speaks of a car or a plate; Britain's and California's in capitals anywhere."""
    about = any(cue.kind in _ABOUT for cue in reading.cues.found)
    if not about and not _RE["own_form"].search(reading.visible):
        return
    text = reading.digits if reading.text.isascii() else reading.text
    pieces = list(_RE["piece"].finditer(text))
    last = 0
    for first in range(len(pieces)):
        for row in (pieces[first : first + 3], pieces[first : first + 2], pieces[first : first + 1]):
            if row[0].start() >= last and _has_shape(text, row):
                score = _score(text, row[0].start(), row[-1].end(), reading)
                if score:
                    last = row[-1].end()
                    yield row[0].start(), last, score


def _has_shape(text: str, row: list[Match[str]]) -> bool:
    """Whether neighbouring pieces have together a shape that plates have."""
    start, end = row[0].start(), row[-1].end()
    parts = [piece.group() for piece in row]
    whole = "".join(parts)
    if not 5 <= len(whole) <= _LONGEST or whole.isalpha() or not _NO_PART.isdisjoint(parts):
        return False
    if len(whole) == 7 and not _RE["known"].fullmatch(whole):
        whole = whole[:2] + whole[2:4].translate(_AS_DIGIT) + whole[4:]  # ABI2 CDE
    return (
        _RE["known"].fullmatch(whole) is not None
        and not _RE["no_plate"].fullmatch(whole)
        and all(_RE["separator"].fullmatch(text, a.end(), b.start()) for a, b in pairwise(row))
        and not (start and text[start - 1] in "@/_.")
        and text[end : end + 1] not in ("@", "_")
        and not _RE["digits_behind"].match(text, end)
        and not _RE["digits_before"].search(text, max(0, start - 4), start)
    )


def _score(text: str, start: int, end: int, reading: Reading) -> float:
    """How sure we are of a plate's shape."""
    near = reading.near(start, end)
    shown = reading.visible[start:end]
    elsewhere = near.nearest in _ELSEWHERE
    if _RE["own_form"].fullmatch(shown) and shown[-3:] not in internet_words("no_plate_letters") and not elsewhere:
        return 0.85 if near.around & _ABOUT else 0.7
    if not near.around & _ABOUT or elsewhere:
        return 0.0
    if shown.upper() == shown:
        return 0.85 if "plate" in near.around else 0.75
    letters = "".join(filter(str.isalnum, text[start:end]))
    joined = len(letters) == end - start or "-" in shown
    return 0.65 if "plate" in near.around and joined and any(map(str.isalpha, letters)) else 0.0
