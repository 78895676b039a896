"""Evidence of the layers of the safety stage, which the policy weighs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation, at characters `start` to `end` (exclusive) of the original text; both 0: the whole text."""

    layer: str  # what made it: `crisis`, `lexicon`, `classifier`, `rules`, `political`, `companion`, ...
    category: (
        str  # a code of the taxonomy (`offensive.hate`, `spam.advert`), or a finer one of the layer
    )
    score: float  # how sure the layer is, in [0, 1]
    start: int = 0
    end: int = 0
    turn: int = -1  # the message, counted from 0; -1: the dialogue as a whole

    def to_dict(self) -> dict[str, Any]:
        """The record, without text."""
        return {**asdict(self), "score": round(self.score, 4)}
