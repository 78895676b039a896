"""What is said of a value later by a part of it: a card's last four digits, an address's postcode.

Its surrogate is the same part of the value's own surrogate, in the dress in which the part is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from h2htalk.curation.anonymize.surrogates.numbers import NUMBERS
from h2htalk.curation.anonymize.values.place_variants import postcodes
from h2htalk.curation.anonymize.values.value_shape import shape_of

TAIL = 4  # digits by which a number is told
LONG_NUMBER = 8  # a shorter one is not told by its end
Written = Sequence[tuple[str, str]]  # (type, as written) of one value, sorted


def owners(groups: Mapping[str, Written]) -> dict[str, str]:
    """Of each value that is a part of another one, that other; of several the last.

    Args:
        groups: by what a value's spellings have in common (`surrogates.norm`), the types and spellings.
    """
    tails: dict[tuple[str, str], str] = {}
    codes: dict[str, str] = {}
    for value, written in sorted(groups.items()):
        for kind, raw in written:
            if kind in NUMBERS and len(value) >= LONG_NUMBER:
                tails[kind, value[-TAIL:]] = value
            elif kind == "ADDRESS":
                codes |= {code: value for code in postcodes(raw) if code != value}
    found = {}
    for value, written in groups.items():
        kind = written[0][0]
        owner = tails.get((kind, value)) if len(value) == TAIL else codes.get(value)
        if owner is not None and (kind in NUMBERS or kind == "ADDRESS"):
            found[value] = owner
    return found


def part(kind: str, raw: str, whole: str, made: str) -> str | None:
    """The surrogate of a part, written as `raw`, of a value written as `whole` whose surrogate is `made`.

    None where the surrogate has no such part (a name of the type stands there).
    """
    if kind != "ADDRESS":
        end = shape_of(made, numeric=True).compact[-TAIL:]
        shape = shape_of(raw, numeric=True)
        return shape.dressed(end) if len(shape.compact) == len(end) else None
    told = shape_of(raw, numeric=False)
    codes, others = postcodes(whole), postcodes(made)
    at = codes.index(told.compact) if told.compact in codes else len(others)
    same = at < len(others) and len(others[at]) == len(told.compact)
    return told.dressed(others[at]) if same else None


def ends(kind: str, surrogates: Iterable[str]) -> set[str]:
    """What the surrogates would be told by: the last digits of numbers, postcodes of addresses."""
    if kind in NUMBERS:
        return {shape_of(made, numeric=True).compact[-TAIL:] for made in surrogates}
    return {code for made in surrogates for code in postcodes(made)}
