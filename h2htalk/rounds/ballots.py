"""The ballots backend: a spreadsheet a voter, sent and collected by whatever means people have."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from h2htalk.data.dialogue import LANGUAGES
from h2htalk.data.files import write_problem
from h2htalk.errors import DataError, RoundError, counted
from h2htalk.progress import Progress
from h2htalk.rounds.answers import Answer
from h2htalk.rounds.backends import Pulled
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.questions import Value
from h2htalk.rounds.spreadsheets.box import Box, folded
from h2htalk.rounds.spreadsheets.csv_ballots import write_csv, write_csv_guidelines
from h2htalk.rounds.spreadsheets.files import MAX_FILE, Ballot, BallotRound, read_ballot_round
from h2htalk.rounds.spreadsheets.sheets import require_openpyxl, write_workbook

# Of workbooks that are being written: hidden, and taken for nobody's ballot.
_TORN = ".ballot-"
# Of texts that are being written, after a dot and their name (`write_text`): random signs, or a process's number.
_TORN_TEXT = re.compile(r"\.(.+)\.(?:[a-z0-9_]{8}|[0-9]+)")
# Seconds of writing that need no line of progress.
_QUICK = 3.0


class Ballots:
    """Ballots in `ROUND/ballots`: `NAME.xlsx` and `NAME.csv`, of a later wave `NAME-2.xlsx`."""

    assigns = True

    def check(self, round: RoundFolder) -> None:
        """Raise MissingExtraError without openpyxl, RoundError where the ballots' folder is none."""
        require_openpyxl()
        folder = round.path / "ballots"
        if folder.exists() and not folder.is_dir():
            raise RoundError(f"{folder}: must be a folder: the ballots go there; move that file away")

    def publish(self, round: RoundFolder) -> list[str]:
        """Write every ballot that is not there yet; one that is there may hold answers, and is never touched."""
        known = read_ballot_round(round)
        _protect(known.folder)
        _clear_torn(known)
        there = {folded(path.name) for path in known.folder.glob("*")}
        asked = [ballot for ballot in known.ballots if ballot.voter.here]
        for language, ballot in {ballot.language: ballot for ballot in asked}.items():
            beside = known.folder / f"guidelines-{language}.txt"
            if folded(beside.name) not in there:
                write_csv_guidelines(known, ballot, round.guidelines(language), beside)
        due = [one for one in asked if folded(f"{one.stem}.xlsx") not in there]
        with Progress("ballots", len(due), silent=_QUICK) as progress:
            for ballot in due:
                if folded(f"{ballot.stem}.csv") not in there:
                    texts = known.folder / f"{ballot.stem}.texts.txt"
                    write_csv(known, ballot, known.folder / f"{ballot.stem}.csv", texts)
                # The workbook comes last: where it is, nothing of a ballot is missing.
                _write_whole(known, ballot, round.guidelines(ballot.language))
                progress.advance()
        told = _protect(known.folder)
        voters = len({ballot.voter.id for ballot in known.ballots})
        lines = [
            f"{counted(len(known.ballots), 'ballot')} of {counted(voters, 'voter')} in {known.folder}, "
            f"{len(due):,} of them new"
        ]
        if due:
            lines.append(
                "send each voter theirs (.xlsx; without a spreadsheet program .csv, its .texts.txt and guidelines), "
                "and put what comes back into that folder under the same name"
            )
        return lines + told

    def pull(self, round: RoundFolder, *, whole: bool = False) -> Pulled:
        """What the ballots hold now; they are always read whole. Raises RoundError, DataError."""
        known = read_ballot_round(round)
        box = Box(known)
        # Where opening was refused or broken off, nobody has missed a ballot yet.
        went_out = round.state != "half opened"
        if not known.folder.is_dir():
            gone = f"{known.folder}: no ballots there; put back what came in"
            return Pulled((), notes=(gone,) if went_out else ())
        box.notes += _protect(known.folder)
        try:
            found = sorted(known.folder.iterdir())
        except OSError as error:
            raise RoundError(f"{known.folder}: cannot be looked into: {error.strerror or error}") from error
        box.read_all(found)
        absent = [
            ballot.stem for ballot in known.ballots if ballot.voter.here and ballot.stem not in box.files
        ]
        if absent and went_out:
            box.notes.append(
                f"{known.folder}: no ballot there called {', '.join(absent)}; put it back to have it read"
            )
        stored = round.answers()
        answers: list[Answer] = []
        started: dict[str, int] = {}
        for ballot in known.ballots:
            half, rows = box.settle(ballot)
            if half:
                started[ballot.voter.name] = started.get(ballot.voter.name, 0) + half
            taken_back = 0
            for seat in ballot.seats:
                if seat.item in rows:
                    values, when = rows[seat.item]
                    new = _as_answers(known.name, seat.item, ballot, values, when, stored)
                    taken_back += not values and bool(new)
                    answers += new
            if taken_back:
                box.notes.append(
                    f"{ballot.stem}: {taken_back:,} of the items answered before are empty now; those answers count no "
                    "more"
                )
        return Pulled(tuple(answers), tuple(box.mistakes), tuple(box.notes), started)

    def close(self, round: RoundFolder) -> list[str]:
        """Nothing can be closed in a file; say so."""
        return [
            f"what is changed in {round.path / 'ballots'} from now on is not read unless the round is opened again; "
            "tell the voters"
        ]


def _as_answers(
    round: str,
    item: str,
    ballot: Ballot,
    values: Mapping[str, Value],
    when: str,
    stored: Mapping[tuple[str, str, str], Answer],
) -> Iterable[Answer]:
    """Answers of one row; one that is stored with the same value keeps its time, one that is gone is taken back."""
    voter = ballot.voter.id
    made = []
    for question, value in values.items():
        old = stored.get((item, voter, question))
        made.append(
            Answer(round, item, voter, question, value, old.when if old and old.value == value else when)
        )
    gone = [key for key in stored if key[:2] == (item, voter) and key[2] not in values]
    return made + [Answer(round, item, voter, question, None, when) for _, _, question in gone]


def _protect(folder: Path) -> list[str]:
    """Close the ballots, and the folder they lie in, to everybody but their owner, as `private` is.

    Returns:
        A line for the manager where that is somebody else's to do; raises DataError where there can be no folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder, *(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())]
    except OSError as error:
        raise DataError(f"{folder}: {write_problem(error)}") from error
    left = []
    for path in paths:
        try:
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                path.chmod(0o700 if path == folder else 0o600)
        except OSError:
            left.append(path.name)
    if not left:
        return []
    return [
        f"{folder}: {left[0]}{f' and {len(left) - 1} more' if len(left) > 1 else ''} can be read by others on this "
        "machine, and belongs to somebody else; have it closed, it holds a voter's answers under their name"
    ]


def _clear_torn(known: BallotRound) -> None:
    """Take away what writes that were killed left behind: the round is locked, so nobody is writing them."""
    ours = {f"{ballot.stem}{ending}" for ballot in known.ballots for ending in (".csv", ".texts.txt")}
    ours |= {f"guidelines-{language}.txt" for language in LANGUAGES}
    torn = [
        path for path in known.folder.glob(".*") if (of := _TORN_TEXT.fullmatch(path.name)) and of[1] in ours
    ]
    for path in (*known.folder.glob(f"{_TORN}*.part"), *torn):
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise DataError(f"{path}: {write_problem(error)}") from error


def _write_whole(known: BallotRound, ballot: Ballot, guidelines: str) -> None:
    """Write a workbook so that it is there whole or not at all."""
    path = known.folder / f"{ballot.stem}.xlsx"
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=known.folder, prefix=_TORN, suffix=".part")
        os.close(descriptor)
        temporary = Path(name)
        write_workbook(known, ballot, guidelines, temporary)
        size = temporary.stat().st_size
        if size > MAX_FILE:
            raise RoundError(
                f"{path}: would have {size >> 20} MiB, more than is read back ({MAX_FILE >> 20}); open rounds "
                "of fewer items"
            )
        if not path.exists():
            os.replace(temporary, path)
    except OSError as error:
        raise DataError(f"{path}: {write_problem(error)}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
