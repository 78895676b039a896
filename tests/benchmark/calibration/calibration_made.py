"""Judged items without a run behind them."""

from __future__ import annotations

from collections.abc import Sequence

from h2htalk.benchmark.calibration.judged_items import JudgedItem


def judged_item(
    at: int,
    score: float,
    people: float | None = None,
    *,
    length: float = 0.0,
    subtask: str = "itinerary_basic",
    language: str = "en",
    panel: Sequence[float] = (),
    raters: dict[str, float] | None = None,
) -> JudgedItem:
    """An item with one answer; `raters`: annotator -> rating, whose mean replaces `people`."""
    if raters:
        people = sum(raters.values()) / len(raters)
    return JudgedItem(
        id=f"{subtask}-{at:04}",
        subtask=subtask,
        language=language,
        cluster=f"{subtask}-{at:04}",
        score=score,
        s=0.4,
        length=length,
        points={},
        people=people,
        panel=tuple(panel) or (score,),
        raters={name: rating - score for name, rating in (raters or {"": people or 0.0}).items()},
    )
