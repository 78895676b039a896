"""Evidence of the layers of the safety stage, which the policy weighs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    Attributes:
        layer: what made it: `crisis`, `lexicon`, `classifier`, `rules`, `political`, `companion`, ...
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

    def to_dict(self) -> dict[str, Any]:
        """The record, without text."""
        return {**asdict(self), "score": round(self.score, 4)}
