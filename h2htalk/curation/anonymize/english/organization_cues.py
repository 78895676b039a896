"""Organisations in English by the words before: "at Crumb Theory", "our bakery, X", "accepted into X"."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from h2htalk.curation.anonymize.english.word_lists import COMMON, folded, hint, is_word, words

_FILE = Path(__file__).parent / "words" / "organization_words.toml"
_WORD = r"[A-Z][\w'’.&-]{0,24}(?<![.,'’-])"
_NAME = (
    rf"(?:(?:The|the) )?{_WORD}(?:(?: (?:of|for|on|de|la|by) (?:the )?| (?:and|n|&|the) | )(?:{_WORD}"
    r"|\d{1,3}(?!\d))){0,5}(?: (?:Assoc|Inc|Co|Ltd|Corp|Bros|Univ|Dept)\b\.?)?"
)
_SMALL = frozenset(("of", "the", "and", "&", "for", "n", "on"))


@cache
def org_words() -> dict[str, frozenset[str]]:
    """The sets of words of organization_words.toml."""
    with _FILE.open("rb") as file:
        return {key: frozenset(folded(w) for w in value.split()) for key, value in tomllib.load(file).items()}


@cache
def _cues() -> tuple[tuple[re.Pattern[str], float], ...]:
    """What announces a name (`name`), each with the score of what it finds."""
    kinds = "|".join(sorted(org_words()["kinds"])).replace("_", " ")
    work = "|".join(sorted(org_words()["work"]))
    called = (
        rf"\b(?:[Mm]y|[Oo]ur|[Tt]he|[Aa]n?|[Tt]his|[Hh]er|[Hh]is|[Tt]heir)(?: [a-z][\w'’-]{{0,14}}){{0,3}}? "
        rf"(?:{kinds})s?(?:, | \(| - | – | — |: | (?:(?:is|was) )?(?:called|named) )"
        rf"(?P<name>{_NAME}(?:['’]s\b)?)(?=[\s,.)!?;:\"]|$)"
    )
    at_work = (
        rf"\b(?:{work})\b(?: [a-z0-9][\w'’-]{{0,14}}){{0,6}}? (?:at|for|with|from|by|w/?|into|under) (?P<name>{_NAME})"
    )
    got_into = (
        r"\b(?:got|get|gets|getting|accepted|admitted|signed) (?:back )?(?:into|in to|on w|on with|w|with|to) "
        rf"(?P<name>{_NAME})"
    )
    alone = rf"(?P<before>[A-Za-z'’]+)[,]? at (?P<name>{_NAME})"
    scored = ((called, 0.65), (at_work, 0.6), (got_into, 0.6), (alone, 0.55))
    return tuple((re.compile(pattern), score) for pattern, score in scored)


def cued_organizations(text: str) -> Iterator[tuple[int, int, float]]:
    """(start, end, score in [0, 1]) of each, in no order; they may overlap."""
    for pattern, score in _cues():
        for hit in pattern.finditer(text):
            aimed = "before" in pattern.groupindex and hit["before"].lower() in org_words()["aimed"]
            if not aimed and _is_named(hit["name"]):
                yield *hit.span("name"), score


def _is_named(name: str) -> bool:
    """Whether words in capitals can be an organisation's: no person's, no town's, no day's, no site's."""
    lists, own = words(), org_words()
    parts = [part.lower().replace("'s", "").replace("’s", "").strip(".") for part in name.split()]
    inner = [part for part in parts if part not in _SMALL]
    if not inner or inner[0] in hint("not_names") | own["sites"] | lists.hints["kin"]:
        return False
    if len(inner) > 1 and inner[-1] in own["suffix"]:
        return True
    if inner[0] in lists.hints["titles"] | hint("months"):
        return False
    if all(part in lists.hints["places"] or part in ("new", "north", "south", "east", "west") for part in inner):
        return False
    given = lists.given.get(inner[0], 0)
    owned = "'" in name or "’" in name
    if not owned and ((given and len(inner) == 1) or (given >= COMMON and len(inner) == 2 and not is_word(inner[1]))):
        return False
    if inner[0] in own["letters"] and name.isupper():
        return True
    if len(inner) > 1:
        return True
    return not (is_word(inner[0]) or inner[0] in hint("stop") or (name.isupper() and len(name) < 5))
