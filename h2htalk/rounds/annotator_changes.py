"""Changes of a round's annotators: people who join, leave, return, or whose annotations do not count."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from h2htalk.data.files import json_line
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Annotator, merge_annotators, read_annotators
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec


def changed_annotators(folder: RoundFolder, without: Sequence[str], path: Path | None) -> tuple[Annotator, ...]:
    """Return a round's annotators after those in `without` left and those listed in `path` joined. Nothing is written.

    Raises:
        RoundError: a name in `without` is unknown, or the list cannot be read.
    """
    known, removed = require_annotators(folder, without), folder.removed_annotators()
    if path is not None:
        known = merge_annotators(folder.annotators(), read_annotators(path, folder.salt()), path)
    return tuple(replace(v, active=False) if v.name in without or v.id in removed else v for v in known.values())


def require_annotators(folder: RoundFolder, names: Sequence[str]) -> dict[str, Annotator]:
    """Return the annotators of a round by name; raise RoundError if one of `names` is unknown."""
    known = {annotator.name: annotator for annotator in folder.annotators()}
    unknown = sorted(set(names) - known.keys())
    if unknown:
        raise RoundError(f"{folder.path}: unknown annotator {', '.join(unknown)}; choose from {', '.join(known)}")
    return known


def describe_removed(folder: RoundFolder) -> list[str]:
    """Return a message for each removed annotator."""
    names = {annotator.id: annotator.name for annotator in folder.annotators()}
    return [
        f"{names.get(annotator, annotator)} was removed and does not count ({why})"
        for annotator, why in folder.removed_annotators().items()
    ]


def annotators_fingerprint(annotators: Sequence[Annotator]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over annotators, independent of their order."""
    digest = hashlib.sha256()
    for annotator in sorted(annotators, key=lambda annotator: annotator.id):
        digest.update(json_line(asdict(annotator)).encode())
    return digest.hexdigest()[:16]


def require_same_annotators(folder: RoundFolder, spec: RoundSpec) -> None:
    """Raise RoundError if the list of annotators was changed since the round was opened.

    A list that does not exist any more is no change, nor is one that `reopen --annotators` has read.
    """
    path = Path(spec.annotators)
    if not spec.annotators or not path.is_file():
        return
    listed = read_annotators(path, folder.salt())
    if folder.source_paths().get("annotators_sha256") == annotators_fingerprint(listed):
        return
    active = {annotator.id: annotator for annotator in folder.annotators() if annotator.active}
    gone = folder.removed_annotators()
    listed_ids = {annotator.id for annotator in listed}
    new = [one.name for one in listed if active.get(one.id) != one and one.id not in gone]
    removed = [annotator.name for annotator in active.values() if annotator.id not in listed_ids]
    if new or removed:
        options = " ".join([f"--annotators {path}"] * bool(new) + [f"--without {name}" for name in removed])
        raise RoundError(
            f"{path}: this list was changed after the round was opened ({', '.join(new + removed)}); apply the "
            f"change with `h2htalk round reopen {folder.path} {options}`"
        )
