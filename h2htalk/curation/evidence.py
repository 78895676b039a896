"""What a layer of the safety stage saw in a text: evidence for a policy to weigh, never a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation about one text.

    Attributes:
        layer: who saw it: `crisis`, `lexicon`, `classifier`, `rules`, `political`, `guard`.
        category: a code of the taxonomy (`offensive.hate`, `spam.advert`), or the layer's own finer one.
        score: how sure the layer is, in [0, 1].
        start: the first character of the span, in the text as it was given.
        end: one past the last; `start == end == 0` says that the evidence is about the whole text.
    """

    layer: str
    category: str
    score: float
    start: int = 0
    end: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON for a record's evidence: no text, only where it stands."""
        return {
            "layer": self.layer,
            "category": self.category,
            "score": round(self.score, 4),
            "start": self.start,
            "end": self.end,
        }
