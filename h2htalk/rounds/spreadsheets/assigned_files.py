"""Which voter fills in which ballot, and the codes by which its rows and their text are known again."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import Voter
from h2htalk.rounds.assignment.assignments import Seat
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundFolder

# Files over this size are no ballots, and ballots are never made larger (bytes).
MAX_FILE = 32 << 20
# What a seal leaves out: blanks and signs, and what looks like a workbook's escape, which programs write variously.
_NO_WORD = re.compile(r"(?:_x005[Ff])?_x[0-9A-Fa-f]{4}_|\W+")


@dataclass(frozen=True, slots=True)
class Ballot:
    """What one voter gets of one wave.

    Attributes:
        stem: of its file's name: NAME, of a later wave NAME-2.
        language: of its headings and choices: the voter's first in which an item of it is written.
        seats: its items, in the voter's own order.
    """

    voter: Voter
    wave: int
    stem: str
    language: Language
    seats: tuple[Seat, ...]


@dataclass(frozen=True, slots=True)
class BallotRound:
    """A round as its ballots see it, read once.

    Attributes:
        folder: where the ballots lie.
        format: of its files, `xlsx` or `csv`.
        salt: under which codes are made: nobody outside can make a ballot that is taken for one of ours.
    """

    name: str
    folder: Path
    format: str
    salt: bytes
    suggest: bool
    items: Mapping[str, Item]
    questions: tuple[Question, ...]
    voters: Mapping[str, Voter]
    ballots: tuple[Ballot, ...]

    def code(self, ballot: Ballot, item: str) -> str:
        """A row's code: whose row it is and of which item, in 13 letters and digits that tell nobody the item's id
        (which names a subtask, or gold).

        It begins with a letter: a spreadsheet would read 123e4567 as a number.
        """
        return "r" + self._keyed(12, "row", str(ballot.wave), ballot.voter.id, item)

    def seal(self, code: str, texts: Sequence[str]) -> str:
        """What a row's text seals its code with: 8 digits. Blanks, line ends and signs do not count."""
        return self._keyed(8, "seal", code, *(_NO_WORD.sub("", text) for text in texts))

    def _keyed(self, digits: int, *parts: str) -> str:
        message = "\0".join((self.name, *parts)).encode(errors="backslashreplace")
        return hmac.new(self.salt, message, hashlib.sha256).hexdigest()[:digits]


def require_size(path: Path) -> int:
    """A file's size in bytes; raises RoundError where no ballot has it."""
    size = path.stat().st_size
    if not size:
        raise RoundError("it is empty; have it sent again")
    if size > MAX_FILE:
        raise RoundError(f"it has {size >> 20:,} MiB; no ballot has more than {MAX_FILE >> 20}")
    return size


def read_ballot_round(round: RoundFolder) -> BallotRound:
    """A round's facts and the ballots that its waves want. Raises RoundError, DataError."""
    items = {item.id: item for item in round.items()}
    voters = {voter.id: voter for voter in round.voters()}
    spec = round.spec()
    return BallotRound(
        name=round.name,
        folder=round.path / "ballots",
        format=spec.format,
        salt=round.salt(),
        suggest=spec.suggest,
        items=items,
        questions=round.questions(),
        voters=voters,
        ballots=tuple(_ballots(round, items, voters)),
    )


def _ballots(round: RoundFolder, items: Mapping[str, Item], voters: Mapping[str, Voter]) -> Iterator[Ballot]:
    first: set[str] = set()
    for wave in round.waves():
        theirs: dict[str, list[Seat]] = {}
        for one in wave.seats:
            theirs.setdefault(one.voter, []).append(one)
        if wave.number == 1:
            first = {voters[voter].name.casefold() for voter in theirs}
        for voter_id, seats in theirs.items():
            voter = voters[voter_id]
            seats.sort(key=lambda one: one.place)
            written = {items[one.item].language for one in seats}
            language = next(one for one in (*voter.languages, *written) if one in written)
            yield Ballot(voter, wave.number, _stem(voter, wave.number, first), language, tuple(seats))


def _stem(voter: Voter, wave: int, first: set[str]) -> str:
    """NAME, then NAME-2; where a voter of the first wave is called that, a sign that no name has keeps them apart."""
    if wave == 1:
        return voter.name
    stem = f"{voter.name}-{wave}"
    return f"{voter.name}~{wave}" if stem.casefold() in first else stem
