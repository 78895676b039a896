"""Evidence of the layers of the safety stage, which the policy weighs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    Attributes:
        layer: that made it: `crisis`, `lexicon`, `classifier`, `rules`, `political`, `guard`.
        category: a code of the taxonomy (`offensive.hate`, `spam.advert`), or a finer one of the layer.
        score: how sure the layer is, in [0, 1].
        start, end: the characters of the span (`end` exclusive) in the original text; both 0: the whole text.
        turn: the message, counted from 0; -1: the dialogue as a whole.
    """

    layer: str
    category: str
    score: float
    start: int = 0
    end: int = 0
    turn: int = -1

    def of_turn(self, turn: int) -> Evidence:
        """The same evidence for a message of a dialogue."""
        return replace(self, turn=turn)

    def to_dict(self) -> dict[str, Any]:
        """The record, without text."""
        return {
            "turn": self.turn,
            "layer": self.layer,
            "category": self.category,
            "score": round(self.score, 4),
            "start": self.start,
            "end": self.end,
        }
