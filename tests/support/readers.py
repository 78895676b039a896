"""Rounds with planted items for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder
from support.rounds import begin, crowd


def planted_of(path: Path) -> dict[str, Item]:
    """The planted items of a round by id."""
    return {item.id: item for item in RoundFolder(path).items() if item.planted}


def begin_planted(folder: Path, count: int = 45, people: int = 2, **given: Any) -> Path:
    """An open crowd round whose annotators all have all items, and planted ones."""
    return begin(folder, "crowd", count, people=people, overlap=people, planted=True, **given)


def right(path: Path, item: str) -> Mapping[str, str]:
    """What somebody who reads answers to an item."""
    planted = planted_of(path)
    return crowd(harmful=str(planted[item].gold["harmful"]) if item in planted else "no")
