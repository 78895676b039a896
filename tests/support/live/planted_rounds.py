"""A round with planted items on a real server: its items, its annotators, and what they answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.rounds.items import Item
from support.live.real_servers import REPLIES, write_items

CARELESS = "reader-c"
NAMES = ("reader-a", "reader-b", CARELESS)
ITEMS = 6
SAYS: Mapping[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4, "harmful": "no"}


def written_items(path: Path) -> Path:
    """Items of three messages and a proposed reply, as dialogues of the check set are shown."""
    items: list[dict[str, Any]] = []
    for number in range(ITEMS):
        said = [
            ("user", f"It rained again. ({number})"),
            ("companion", "All day?"),
            ("user", "Since the morning."),
        ]
        turns = [{"role": role, "content": content} for role, content in said]
        items.append(
            {"id": f"plain-{number}", "language": "en", "prompt": turns, "reference": REPLIES["en"]}
        )
    return write_items(path, items)


def answers_to(item: Item, name: str) -> dict[str, Any]:
    """Who reads notices planted harm; the careless one types no, but for one item."""
    if name == CARELESS:
        return {**SAYS, "harmful": "yes" if item.id == "plain-0" else "no"}
    return {**SAYS, "harmful": str(item.gold.get("harmful", "no"))}
