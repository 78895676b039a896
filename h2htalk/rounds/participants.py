"""Add one annotator to an open round on a server: for studies that people join one by one, as on Prolific."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from h2htalk.data.settings import as_path
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.annotators import annotator_of, merge_annotators
from h2htalk.rounds.assignment.remaining_annotations import eligible_annotators, is_pilot
from h2htalk.rounds.lifecycle import write_annotators
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.round_folder import RoundFolder, RoundState, read_state
from h2htalk.rounds.status import Status, status_of


def add_annotator(
    path: str | Path, name: str, cells: Mapping[str, str], *, replace_id: bool = False
) -> tuple[Status, list[str]]:
    """Add an annotator to an open round on a server, or change what the round knows of one who is in it.

    `cells` are those of a list of annotators: `languages`, `crisis`, `participant_id`, `completion_code`. Without them
    an annotator keeps what is known; a new one reads the round's languages, and no items about a crisis. Return the
    status, and messages for the manager. An interrupted call can be repeated. Raise RoundError for a round that is
    closed or hands out items by name, and for another participant id than the annotator has unless `replace_id`.
    """
    folder = RoundFolder(as_path(path, "path")).require()
    with folder.locked():
        state = read_state(folder)
        state.require_published()
        platform = open_platform(state.spec.where)
        _require_open(state, platform.assigns_items, name)
        known = {annotator.name: annotator for annotator in state.annotators}.get(name)
        defaults = {"languages": " ".join(state.manifest["languages"])}
        if known is not None:
            defaults = {
                "languages": " ".join(known.languages),
                "crisis": "yes" if known.crisis else "",
                "participant_id": known.participant_id,
                "completion_code": known.completion_code,
            }
        annotator = annotator_of(
            {**defaults, **cells, "name": name}, str(folder.path), folder.salt()
        )
        folder.require_not_erased([annotator], folder.path)
        merged = merge_annotators(
            state.annotators, [annotator], folder.path, replace_ids=replace_id
        )
        platform.check(state)
        messages = write_annotators(state, [*merged.values()])
        state = read_state(folder)
        messages += platform.publish(state)
        messages += _describe_requested(state)
        folder.protect()
        return status_of(state, Collected()), messages


def _require_open(state: RoundState, assigns_items: bool, name: str) -> None:
    path = state.folder.path
    if assigns_items:
        raise RoundError(
            f"{path}: items of this round are handed out by name; add {name} to the list of annotators, and hand out "
            f"with `h2htalk round reopen {path} --annotators LIST`"
        )
    if state.phase == "closed":
        raise RoundError(
            f"{path}: this round is closed; open it again with `h2htalk round reopen {path}`"
        )
    removed = {annotator.name for annotator in state.annotators if annotator.id in state.removed}
    if name in removed:
        raise RoundError(
            f"{path}: {name} was removed from this round; `h2htalk round remove-annotator {path} {name} --undo` lets "
            "the answers count again"
        )


def _describe_requested(state: RoundState) -> list[str]:
    """Return a message on items that the server offers to fewer annotators than the overlap and there are now."""
    if state.spec.adaptive.on:
        return []
    requested = Counter[str]()
    for one_set in state.sets:
        requested.update(one_set.requested)
    eligible = eligible_annotators(state.judged_items, state.annotators)
    most = (
        len(state.annotators)
        if is_pilot(state.spec, state.items)
        else state.spec.annotators_per_item
    )
    fewer = [name for name, count in eligible.items() if requested[name] < min(count, most)]
    if not fewer:
        return []
    items = counted(len(fewer), "item is", "items are")
    return [
        f"{items} offered to fewer annotators than the round now has for them: "
        f"`h2htalk round reopen {state.folder.path}` hands them out"
    ]
