"""Small reviewed word lists as weak evidence: words have classes, rules say which classes together mean what.

A list alone knows too little to remove anything but the plainest (an advert with its contact, a minor in an erotic
text): measured as removers, public lists delete 80-98 % of counselling answers. So a rule asks for words of two classes
close together wherever one word is also an everyday word. Identity slurs stand as hashes, so that the file shows none.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.lexicon_matching import Lexicon, Place, Rule, compiled
from h2htalk.curation.safety.text_folding import fold, original_places
from h2htalk.data.languages import Language

DATA = Path(__file__).parent / "safety_data"
LAYER = "lexicon"
# Of one category, the surest and then first so many; a message of 2 MB would otherwise give a hundred thousand.
MOST_A_CATEGORY = 8


def without_everyday(text: str, language: Language) -> str:
    """The text with spaces for its everyday phrases, of the same length: what is left of a word may offend."""
    return load(language).everyday.sub(lambda match: " " * len(match[0]), text)


def evidence(text: str, language: Language) -> list[Evidence]:
    """What the lists see in a text.

    Args:
        text: a message as it was written.
        language: whose lists are asked.

    Returns:
        Evidence of layer `lexicon` with its span in `text`, in its order; of one category at most `MOST_A_CATEGORY`.
        Scores are the rules' own, in [0, 1]: from 0.8 on a rule may stand alone, below it needs other evidence.
    """
    folded = fold(without_everyday(text, language))
    lexicon = load(language)
    hits = lexicon.hits(folded)
    best: dict[tuple[str, Place], float] = {}
    for rule in lexicon.rules:
        if not any(name in hits for name in rule.unless):
            for place in _together(rule, hits):
                key = (rule.category, place)
                best[key] = max(best.get(key, 0.0), rule.score)
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    kept: list[tuple[str, Place, float]] = []
    count: dict[str, int] = {}
    for (category, place), score in ranked:
        count[category] = count.get(category, 0) + 1
        if count[category] <= MOST_A_CATEGORY:
            kept.append((category, place, score))
    kept.sort(key=lambda item: (item[1], item[0]))
    places = original_places(text, [place for _, place, _ in kept])
    return [
        Evidence(LAYER, category, score, start, end)
        for (category, _, score), (start, end) in zip(kept, places, strict=True)
    ]


def _together(rule: Rule, hits: Mapping[str, Sequence[Place]]) -> Iterator[Place]:
    """Where words of all the rule's classes stand close together: from the first of them to the last."""
    if not all(name in hits for name in rule.all):
        return
    for anchor in hits[rule.all[0]]:
        chosen = [anchor]
        for name in rule.all[1:]:
            near = _nearest(hits[name], anchor, rule.within)
            if near is None:
                break
            chosen.append(near)
        else:
            yield min(start for start, _ in chosen), max(end for _, end in chosen)


def _nearest(places: Sequence[Place], anchor: Place, within: int) -> Place | None:
    """The place closest to another, the earlier of two as close; None where all are further than `within`."""
    at = bisect_left(places, anchor)
    around = [place for place in places[max(0, at - 2) : at + 3] if not _overlap(place, anchor)]
    closest = min(around, key=lambda place: (abs(place[0] - anchor[0]), place), default=None)
    return closest if closest is not None and abs(closest[0] - anchor[0]) <= within else None


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@cache
def load(language: Language) -> Lexicon:
    """The lists of a language, read once a process."""
    return compiled(tomllib.loads((DATA / f"lexicon_{language}.toml").read_text(encoding="utf-8")))
