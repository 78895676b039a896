"""A Chinese text cut into words and names: a unigram segmenter over jieba's dictionary that knows names as well."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any

from h2htalk.curation.anonymize.chinese.jieba_dictionary import dictionary, tags
from h2htalk.curation.anonymize.chinese.name_segmenter import KIN, STRONG, Naming, listed_characters, namings

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


def segments(text: str) -> list[Segment]:
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
                if score > top:
                    top, chosen = score, end
            end += 1
        for naming in namings(text, at):
            score = naming.score + best[naming.end]
            word = text[at : naming.end]
            count = frequencies.get(word)
            least = _RARE_NAME if naming.end - at > 2 or naming.cue >= KIN else _RARE_WORD
            if count and count < least and _known_name(word, naming):
                score = max(score, log(count) - total + best[naming.end] + 0.5)
            if score > top:
                top, chosen = score, naming
        best[at], choice[at] = top, chosen
    return _path(choice)


def _known_name(word: str, naming: Naming) -> bool:
    """Whether a rare word of the dictionary is rather a name: it lists some names, and some common words as names."""
    full = naming.shape == "full"
    if full and (naming.cue >= STRONG or (naming.cue >= KIN and listed_characters(word))):
        return True
    return naming.cue > 0 and tags().get(word) in _NAME_TAGS and listed_characters(word)


def _path(choice: list[Any]) -> list[Segment]:
    found = []
    at = 0
    while at < len(choice):
        step = choice[at]
        if isinstance(step, int):
            found.append(Segment(at, step))
            at = step
        else:
            found.append(Segment(at, step.end, step.shape, step.cue))
            at = step.end
    return found
