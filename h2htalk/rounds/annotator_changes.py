"""Who a round asks, as the manager's list and commands change it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from h2htalk.data.files import json_line
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Voter, join, read_voters
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec


def changed_voters(folder: RoundFolder, without: Sequence[str], path: Path | None) -> tuple[Voter, ...]:
    """A round's voters after some left and the people of a list joined; nothing is written.

    Raises:
        RoundError: who left was never there, or the list cannot be read.
    """
    known = {voter.name: voter for voter in folder.voters()}
    strangers = sorted(set(without) - known.keys())
    if strangers:
        raise RoundError(
            f"{folder.path}: no voter is called {', '.join(strangers)}; they are {', '.join(known)}"
        )
    if path is not None:
        known = join(folder.voters(), read_voters(path, folder.salt()), path)
    return tuple(replace(v, here=False) if v.name in without else v for v in known.values())


def voters_print(voters: Sequence[Voter]) -> str:
    """SHA-256 over a list of voters, whatever its order, 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for voter in sorted(voters, key=lambda voter: voter.id):
        digest.update(json_line(asdict(voter)).encode())
    return digest.hexdigest()[:16]


def require_same_voters(folder: RoundFolder, spec: RoundSpec) -> None:
    """Raise RoundError if the list of voters says something else now than when the round was opened.

    A list that is gone says nothing: who was asked stands in the round. One that `reopen --voters` has read is as good
    as the first.
    """
    path = Path(spec.voters)
    if not spec.voters or not path.is_file():
        return
    listed = read_voters(path, folder.salt())
    if folder.places().get("voters_sha256") == voters_print(listed):
        return
    there = {voter.id: voter for voter in folder.voters() if voter.here}
    listed_ids = {voter.id for voter in listed}
    new = [voter.name for voter in listed if there.get(voter.id) != voter]
    gone = [voter.name for voter in there.values() if voter.id not in listed_ids]
    if new or gone:
        options = " ".join([f"--voters {path}"] * bool(new) + [f"--without {name}" for name in gone])
        raise RoundError(
            f"{path}: this list was changed since the round was opened ({', '.join(new + gone)}), and opening again "
            f"does not read it: `h2htalk round reopen {folder.path} {options}`"
        )
