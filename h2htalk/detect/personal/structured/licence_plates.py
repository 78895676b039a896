"""Rules of licence plates: behind a word for a plate, or by their shape near a car. Chinese ones are in `rules`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from h2htalk.detect.personal.structured.reading import Hit, Reading, internet_words, patterns

_PLATE = patterns("licence_plates")
_NO_PART = internet_words("no_plate_words")
_ABOUT = frozenset(["vehicle", "plate"])
_NO_CAR = frozenset(["other", "account", "id", "wechat"])
_AS_DIGIT = str.maketrans("ioszbl", "105281")
_SHORTEST_PLATE, _LONGEST_PLATE = 5, 8
_MOST_PIECES = 3


def plates_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Plates right behind a word for one, whatever their shape: letters and figures, five to eight."""
    text = reading.digits
    for cue in reading.cues:
        if cue.kind != "plate":
            continue
        lead = _PLATE["lead"].match(text, cue.end)
        start = lead.end() if lead else cue.end
        end = _longest_plate(text, start)
        if end and not _PLATE["digits_behind"].match(text, end):
            yield start, end, 0.9


def _longest_plate(text: str, start: int) -> int:
    """The end of the longest plate that begins at `start`, of as many pieces as belong together; 0 where there is
    none."""
    longest = 0
    end = start
    plate = ""
    for match in _PLATE["piece"].finditer(text, start, start + 3 * _LONGEST_PLATE):
        piece = match.group()
        if plate:
            apart = not _PLATE["separator"].fullmatch(text, end, match.start())
        else:
            apart = match.start() > start
        spelt = len(plate) == len(piece) == 1
        if apart or (piece in _NO_PART and not spelt):
            break
        plate += piece
        end = match.end()
        if _is_mixed_plate(plate):
            longest = end
    return longest


def _is_mixed_plate(plate: str) -> bool:
    """Whether letters and figures together may be a plate, or more than five figures."""
    if not _SHORTEST_PLATE <= len(plate) <= _LONGEST_PLATE:
        return False
    figures = sum(map(str.isdigit, plate))
    mixed = 2 <= figures < len(plate) or figures == len(plate) > 5
    return mixed and not _PLATE["no_direct"].fullmatch(plate)


def plates_by_shape(reading: Reading) -> Iterator[Hit]:
    """Plates in a message that speaks of a car or a plate; Britain's and California's in capitals anywhere."""
    about_cars = any(cue.kind in _ABOUT for cue in reading.cues)
    if not about_cars and not _PLATE["own_form"].search(reading.visible):
        return
    text = reading.digits if reading.text.isascii() else reading.text
    pieces = list(_PLATE["piece"].finditer(text))
    last_end = 0
    for first in range(len(pieces)):
        for count in range(_MOST_PIECES, 0, -1):
            start = pieces[first].start()
            if start < last_end:
                break
            row = pieces[first : first + count]
            score = _shape_score(text, row, reading)
            if score:
                last_end = row[-1].end()
                yield start, last_end, score


def _shape_score(text: str, pieces: Sequence[re.Match[str]], reading: Reading) -> float:
    """How sure we are that neighbouring pieces are a plate together, by their shape."""
    if not _is_known_shape([piece.group() for piece in pieces]):
        return 0.0
    for piece, following in pairwise(pieces):
        if not _PLATE["separator"].fullmatch(text, piece.end(), following.start()):
            return 0.0
    start = pieces[0].start()
    end = pieces[-1].end()
    if _is_part_of_more(text, start, end):
        return 0.0
    cues = reading.near(start, end)
    written = reading.visible[start:end]
    elsewhere = cues.nearest in _NO_CAR
    about = not _ABOUT.isdisjoint(cues.around)
    own_form = _PLATE["own_form"].fullmatch(written) is not None
    if own_form and written[-3:] not in internet_words("no_plate_letters") and not elsewhere:
        return 0.85 if about else 0.7
    if not about or elsewhere:
        return 0.0
    about_plate = "plate" in cues.around
    if written.upper() == written:
        return 0.85 if about_plate else 0.75
    return 0.65 if about_plate and (len(pieces) == 1 or "-" in written) else 0.0


def _is_known_shape(pieces: Sequence[str]) -> bool:
    """Whether letters and figures have the shape of a country's plates, also with figures mistyped: ABI2 CDE."""
    plate = "".join(pieces)
    if not _SHORTEST_PLATE <= len(plate) <= _LONGEST_PLATE or plate.isalpha():
        return False
    if not _NO_PART.isdisjoint(pieces):
        return False
    if len(plate) == 7 and not _PLATE["known"].fullmatch(plate):
        plate = plate[:2] + plate[2:4].translate(_AS_DIGIT) + plate[4:]
    is_known = _PLATE["known"].fullmatch(plate) is not None
    return is_known and not _PLATE["no_plate"].fullmatch(plate)


def _is_part_of_more(text: str, start: int, end: int) -> bool:
    """Whether what may be a plate is a part of an address, a path or a longer number."""
    if text[start - 1 : start] in ("@", "/", "_", ".") or text[end : end + 1] in ("@", "_"):
        return True
    if _PLATE["digits_behind"].match(text, end):
        return True
    return _PLATE["digits_before"].search(text, max(0, start - 4), start) is not None
