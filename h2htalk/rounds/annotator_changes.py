"""Who a round asks, as the manager's list and commands change it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from h2htalk.data.files import json_line
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator, join, read_annotators
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec


def changed_annotators(
    folder: RoundFolder, without: Sequence[str], path: Path | None
) -> tuple[Annotator, ...]:
    """A round's annotators after some left and the people of a list joined; nothing is written.

    Raises:
        RoundError: who left was never there, or the list cannot be read.
    """
    known = {annotator.name: annotator for annotator in folder.annotators()}
    strangers = sorted(set(without) - known.keys())
    if strangers:
        raise RoundError(
            f"{folder.path}: no annotator is called {', '.join(strangers)}; they are {', '.join(known)}"
        )
    if path is not None:
        known = join(folder.annotators(), read_annotators(path, folder.salt()), path)
    return tuple(replace(v, here=False) if v.name in without else v for v in known.values())


def annotators_fingerprint(annotators: Sequence[Annotator]) -> str:
    """SHA-256 over a list of annotators, whatever its order, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for annotator in sorted(annotators, key=lambda annotator: annotator.id):
        digest.update(json_line(asdict(annotator)).encode())
    return digest.hexdigest()[:16]


def require_same_annotators(folder: RoundFolder, spec: RoundSpec) -> None:
    """Raise RoundError if the list of annotators says something else now than when the round was opened.

    A list that is gone says nothing: who was asked stands in the round. One that `reopen --annotators` has read is as
        good
    as the first.
    """
    path = Path(spec.annotators)
    if not spec.annotators or not path.is_file():
        return
    listed = read_annotators(path, folder.salt())
    if folder.places().get("annotators_sha256") == annotators_fingerprint(listed):
        return
    there = {annotator.id: annotator for annotator in folder.annotators() if annotator.here}
    listed_ids = {annotator.id for annotator in listed}
    new = [annotator.name for annotator in listed if there.get(annotator.id) != annotator]
    gone = [annotator.name for annotator in there.values() if annotator.id not in listed_ids]
    if new or gone:
        options = " ".join([f"--annotators {path}"] * bool(new) + [f"--without {name}" for name in gone])
        raise RoundError(
            f"{path}: this list was changed since the round was opened ({', '.join(new + gone)}), and opening again "
            f"does not read it: `h2htalk round reopen {folder.path} {options}`"
        )
