"""What a layer of the safety stage saw in a text: evidence for a policy to weigh, never a decision."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    Attributes:
        layer: who saw it: `crisis`, `lexicon`, `classifier`, `rules`, `political`, `guard`.
        category: a code of the taxonomy (`offensive.hate`, `spam.advert`), or the layer's own finer one.
        score: how sure the layer is, in [0, 1].
        start, end: the characters of the span (`end` exclusive) in the text as it was given; both 0: the whole text.
        turn: the message that it stands in, counted from 0; -1: about the dialogue as a whole.
    """

    layer: str
    category: str
    score: float
    start: int = 0
    end: int = 0
    turn: int = -1

    def of_turn(self, turn: int) -> Evidence:
        """The same, of a message of a dialogue."""
        return replace(self, turn=turn)

    def to_dict(self) -> dict[str, Any]:
        """JSON for a record's evidence: no text, only where it stands."""
        return {
            "turn": self.turn,
            "layer": self.layer,
            "category": self.category,
            "score": round(self.score, 4),
            "start": self.start,
            "end": self.end,
        }
