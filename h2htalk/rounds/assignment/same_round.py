"""A round that is opened again: with the items and annotators that it has, or not at all."""

from __future__ import annotations

from pathlib import Path

from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import annotators_fingerprint, read_annotators
from h2htalk.rounds.items import Item, as_given
from h2htalk.rounds.round_folder import RoundState, items_fingerprint


def require_same_round(state: RoundState, items: tuple[Item, ...]) -> None:
    """Raise RoundError if a round was opened with other items or annotators.

    A list of annotators that does not exist any more is no change, nor is one that `reopen --annotators` has read.
    """
    state.require_published()
    folder = state.folder
    path = Path(state.spec.annotators)
    # Planted items, and what is known of who has read an item, are no input.
    stored = as_given(state.items)
    if stored != as_given(items) and state.manifest.get("items_sha256") != items_fingerprint(
        as_given(items)
    ):
        raise RoundError(
            f"{folder.path}: this round was opened with other items than {state.spec.items} contains now; use another "
            "--out for them"
        )
    listed = (
        read_annotators(path, folder.salt()) if state.spec.annotators and path.is_file() else ()
    )
    if not listed or folder.source_paths().get("annotators_sha256") == annotators_fingerprint(
        listed
    ):
        return
    active = {one.id: one for one in state.annotators if one.active}
    ids = {one.id for one in listed}
    changed = [
        one.name for one in listed if active.get(one.id) != one and one.id not in state.removed
    ]
    if changed := changed + [one.name for one in active.values() if one.id not in ids]:
        raise RoundError(
            f"{path}: this list was changed after the round was opened ({', '.join(changed)}); apply the change with "
            f"`h2htalk round reopen {folder.path} --annotators {path}`, and `--without NAME` for those who left"
        )
