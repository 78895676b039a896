"""Delete what a round made on its platform. The round's folder stays: annotations, decisions and payments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from h2htalk.data.settings import as_path
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.lifecycle import collect_annotations
from h2htalk.rounds.platforms import Removal, open_platform
from h2htalk.rounds.round_folder import RoundFolder, read_state

# Platform -> what a round makes there.
MADE = {
    "spreadsheets": "the spreadsheets in its folder",
    "argilla": "its datasets on Argilla, and the workspaces and accounts that it created",
    "label-studio": "its projects and accounts on Label Studio",
}


def describe_deletion(path: Path) -> str:
    """Return what deleting a round removes and keeps, for a question before it. Raise RoundError, DataError."""
    folder = RoundFolder(path).require()
    made = MADE.get(folder.spec().where, "what it made on its platform")
    return f"{path}: deletes {made}, with all answers there; annotations, decisions and payments in the folder stay"


def delete_round(path: str | Path, *, force: bool = False) -> Removal:
    """Delete what a round made on its platform: datasets or projects, workspaces, accounts, spreadsheets.

    What the round did not make, or another round uses, stays and is named in the result. Calling it again, also after a
    kill, deletes what is left.

    `force` deletes also while the round is open: answers are collected first. Raise RoundError if the round is open and
    not `force`, or the platform cannot be reached.
    """
    folder = RoundFolder(as_path(path, "path")).require()
    with folder.locked():
        state = read_state(folder)
        if state.phase != "closed" and not force:
            raise RoundError(
                f"{folder.path}: this round is {state.phase}, and its annotators would lose what they work on; close "
                f"it first (`h2htalk round close {folder.path}`), or delete anyway with --force"
            )
        messages = []
        if state.phase == "open":
            state, _, new = collect_annotations(state)
            if new:
                messages.append(f"{counted(new, 'new annotation')} collected before")
        removal = open_platform(state.spec.where).delete(state)
        events = [event["event"] for event in state.events]
        if events[-1:] != ["deleted"]:
            folder.add_event("deleted", left=len(removal.left))
        folder.protect()
    return replace(removal, removed=(*messages, *removal.removed))
