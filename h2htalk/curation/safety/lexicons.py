"""Small reviewed word lists as weak evidence: words have classes, and rules combine classes.

A list alone removes only plain cases (an advert with its contact, a minor in an erotic text): public lists used for
removal delete 80-98 % of counselling answers. Where a word is also an everyday word, a rule requires words of two
classes close together. Slurs are stored as hashes, so that the file shows none: `slur` for words that are nothing
else, `slur_doubtful` for everyday words, words that people use for themselves, and old names, which prove nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from h2htalk.curation.language_data import language_data
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.lexicon_matching import Place, Rule, SafetyLexicon, compile_lexicon
from h2htalk.curation.safety.text_folding import fold, original_places
from h2htalk.data.languages import Language

LAYER = "lexicon"
# Evidence of one category, by score and place; a message of 2 MB would otherwise give a hundred thousand.
MOST_A_CATEGORY = 8


def without_everyday(text: str, language: Language) -> str:
    """The text with spaces in place of everyday phrases, of the same length."""
    return load_lexicon(language).everyday.sub(lambda match: " " * len(match[0]), text)


def find_listed(text: str, language: Language) -> list[Evidence]:
    """The evidence of the lists in a text.

    Args:
        text: an original message.
        language: of the lists.

    Returns:
        Evidence of layer `lexicon` with its span in `text`, in order; at most `MOST_A_CATEGORY` of one category.
        Scores are those of the rules: from 0.8 on a rule is enough by itself, below it needs other evidence.
    """
    folded = fold(without_everyday(text, language))
    lexicon = load_lexicon(language)
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
    """The places from the first to the last word where words of all the rule's classes are close together."""
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
    """The place closest to another, the earlier of two equally close; None where none is within `within`."""
    at = bisect_left(places, anchor)
    around = [place for place in places[max(0, at - 2) : at + 3] if not _overlap(place, anchor)]
    closest = min(around, key=lambda place: (abs(place[0] - anchor[0]), place), default=None)
    return closest if closest is not None and abs(closest[0] - anchor[0]) <= within else None


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@cache
def load_lexicon(language: Language) -> SafetyLexicon:
    """Compile the lists of a language, once a process."""
    return compile_lexicon(language_data("safety/safety_data/lexicon", language))
