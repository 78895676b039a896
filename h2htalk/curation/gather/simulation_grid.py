"""Which dialogues are simulated: a grid of kinds of conversation, each with its equal share."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from h2htalk.curation.settings import SimulateSettings
from h2htalk.data.dialogue import Language
from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS

SOURCE = "simulated"


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of conversation."""

    interaction: str
    emotion: str
    complexity: str
    persona: str


@dataclass(frozen=True, slots=True)
class Plan:
    """A dialogue to be held: its id and row, its language, its cell."""

    id: str
    row: int
    language: Language
    cell: Cell


def grid(settings: SimulateSettings, personas: Sequence[str], seed: int) -> tuple[Plan, ...]:
    """The dialogues to hold: `settings.dialogues` of each language.

    Every cell of interaction x emotion x complexity comes as often as any other, give or take one; the seed says which
    come once more. Each cell meets every persona equally often, give or take one.
    """
    kinds = list(product(INTERACTIONS, settings.emotions, COMPLEXITIES))
    plans: list[Plan] = []
    cells: dict[tuple[int, str], Cell] = {}  # one object for each, however many dialogues
    for language in settings.languages:
        for at in range(settings.dialogues):
            turn, place = divmod(at, len(kinds))
            kind = _shuffled(len(kinds), f"{seed} {language} {turn} kinds")[place]
            # Within as many rounds as there are personas, a kind has each of them once.
            first = _shuffled(len(kinds), f"{seed} {language} {turn // len(personas)} personas")[kind]
            persona = personas[(first + turn) % len(personas)]
            cell = cells.setdefault((kind, persona), Cell(*kinds[kind], persona))
            row = len(plans) + 1
            plans.append(Plan(f"{SOURCE}-{row:06}", row, language, cell))
    return tuple(plans)


@lru_cache(maxsize=8)
def _shuffled(count: int, seed: str) -> tuple[int, ...]:
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return tuple(order)
