"""Judged items without a run behind them."""

from __future__ import annotations

from h2htalk.benchmark.calibration.corrected_mean import JudgedItem


def judged_item(
    at: int,
    score: float,
    people: float | None = None,
    *,
    length: float = 0.0,
    subtask: str = "itinerary_basic",
) -> JudgedItem:
    """An item with one answer."""
    name = f"{subtask}-{at:04}"
    return JudgedItem(name, subtask, name, score, 0.4, length, people, (score,))
