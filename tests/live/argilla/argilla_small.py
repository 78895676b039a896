"""A small round on the real server, for the tests of what goes wrong there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from argilla_stack import Stack
from argilla_voters import SimulatedVoter, item_of, made_items, signed_in, write_items, write_voters

from h2htalk.rounds.argilla.client import Wire
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec

SAYS: dict[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4}
NAMES = ("small-a", "small-b", "small-c")


class Opened:
    """A small round of six items in both languages with three voters, and the voters."""

    logins: Path | None = None

    def __init__(self, base: Path, stack: Stack, name: str, **changes: Any) -> None:
        self.name, self.stack = name, stack
        self.spec = small_spec(base, name, **changes)
        open_round(self.spec, base / name)
        self.round = RoundFolder(base / name)
        # The accounts are made with the first of these rounds; later ones on the same server find them.
        if Opened.logins is None:
            Opened.logins = self.round.private / "argilla_logins.csv"
        self.voters = signed_in(stack.url, Opened.logins, dict.fromkeys(NAMES, 0.8))

    def records(self, voter: SimulatedVoter, language: str = "en") -> dict[str, str]:
        """Item -> record id, as the voter sees it."""
        (dataset,) = [one for one in voter.datasets(self.name) if f"-{language}-" in one["name"]]
        return {item_of(one): one["id"] for one in voter.pending(dataset)}

    def values(self) -> dict[tuple[str, str], Any]:
        return {(item, question): one.value for (item, _, question), one in self.round.answers().items()}


def small_spec(base: Path, name: str, **changes: Any) -> RoundSpec:
    spec = RoundSpec(
        kind="crowd",
        items=str(write_items(base / f"{name}.jsonl", made_items(6, "crowd", crises=3))),
        backend="argilla",
        voters=str(write_voters(base / f"{name}.csv", NAMES, NAMES[2:])),
        overlap=2,
        care=Care(sitting=20, crisis_share=0.5),
    )
    return replace(spec, **changes)


def found_dataset(wire: Wire, workspace: str, name: str) -> dict[str, Any]:
    place = next(one["id"] for one in wire.get("/api/v1/me/workspaces")["items"] if one["name"] == workspace)
    found = wire.get("/api/v1/me/datasets", workspace_id=place)["items"]
    return next(one for one in found if one["name"] == name)
