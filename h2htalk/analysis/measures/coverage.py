"""Count the combinations of emotion, complexity and interaction that a set of scenarios covers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from h2htalk.data.scenario import COMPLEXITIES, INTERACTIONS, Scenario


@dataclass(frozen=True, slots=True)
class Coverage:
    """The grid of tag combinations.

    `cells`: (emotion, complexity, interaction) -> scenarios, empty ones too, in the order of the three lists.
    `emotions`: those present, with their scenarios, descending, then by name.
    """

    emotions: Mapping[str, int]
    cells: Mapping[tuple[str, str, str], int]

    @property
    def filled(self) -> int:
        """Cells that hold a scenario."""
        return sum(count > 0 for count in self.cells.values())

    @property
    def evenness(self) -> float | None:
        """How evenly the scenarios fill the grid, 0 (all in one cell) to 1 (equal cells).

        Shannon entropy of the cells by its largest possible value: J = -sum p log p / log(cells) (Pielou 1966). Empty
        cells count, so gaps lower it. It cannot reach 1 with fewer scenarios than cells. None without a scenario.
        """
        if not self.emotions:
            return None
        shares = [count / sum(self.emotions.values()) for count in self.cells.values() if count]
        # Rounding must not raise an even grid above 1, nor give -0.
        return min(1.0, abs(sum(p * math.log(p) for p in shares)) / math.log(len(self.cells)))


def coverage(scenarios: Sequence[Scenario]) -> Coverage:
    """Count scenarios over the grid emotion x complexity x interaction.

    Complexities and interactions are the closed lists of `data.scenario` (3 each). Emotions are open, so
    the grid has a row for each that occurs; an emotion that never occurs is no gap. Without scenarios the grid has
    no cells.
    """
    counts = Counter((s.tags.emotion, s.tags.complexity, s.tags.interaction) for s in scenarios)
    by_emotion = Counter(s.tags.emotion for s in scenarios)
    emotions = dict(sorted(by_emotion.items(), key=lambda item: (-item[1], item[0])))
    return Coverage(emotions, {tags: counts[tags] for tags in product(emotions, COMPLEXITIES, INTERACTIONS)})
