"""A small round on the real server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from argilla_annotators import SimulatedAnnotator, item_of, made_items, signed_in, write_annotators, write_items
from argilla_stack import Stack

from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec

SAYS: dict[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4}
NAMES = ("small-a", "small-b", "small-c")


class Opened:
    """A small round of six items in both languages, with three annotators."""

    logins: Path | None = None

    def __init__(self, base: Path, stack: Stack, name: str, **changes: Any) -> None:
        self.name, self.stack = name, stack
        self.spec = small_spec(base, name, **changes)
        open_round(self.spec, base / name)
        self.round = RoundFolder(base / name)
        # The first of these rounds creates the accounts; later ones find them.
        if Opened.logins is None:
            Opened.logins = self.round.private / "argilla_logins.csv"
        self.annotators = signed_in(stack.url, Opened.logins, dict.fromkeys(NAMES, 0.8))

    def records(self, annotator: SimulatedAnnotator, language: str = "en") -> dict[str, str]:
        """Item -> record id, as the annotator sees it."""
        (dataset,) = [one for one in annotator.datasets(self.name) if f"-{language}-" in one["name"]]
        return {item_of(one): one["id"] for one in annotator.pending(dataset)}

    def values(self) -> dict[tuple[str, str], Any]:
        return {(item, question): one.value for (item, _, question), one in self.round.annotations().items()}


def small_spec(base: Path, name: str, **changes: Any) -> RoundSpec:
    spec = RoundSpec(
        kind="crowd",
        items=str(write_items(base / f"{name}.jsonl", made_items(6, "crowd", crises=3))),
        where="argilla",
        annotators=str(write_annotators(base / f"{name}.csv", NAMES, NAMES[2:])),
        overlap=2,
        care=Care(session_items=20, crisis_share=0.5),
    )
    return replace(spec, **changes)


def found_dataset(client: ServerClient, workspace: str, name: str) -> dict[str, Any]:
    place = next(one["id"] for one in client.get("/api/v1/me/workspaces")["items"] if one["name"] == workspace)
    found = client.get("/api/v1/me/datasets", workspace_id=place)["items"]
    return next(one for one in found if one["name"] == name)
