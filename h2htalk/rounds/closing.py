"""Closing a round: the last answers, decisions, agreement, and what its voters are paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.files import remove_file, write_json, write_jsonl, write_text
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.adjudication import require_over
from h2htalk.rounds.aggregation.decisions import Settled
from h2htalk.rounds.integrity import require_intact, require_names
from h2htalk.rounds.outcome import QUALIFIED, agreement_table, payment_table, qualified_table, voter_table
from h2htalk.rounds.platforms import Pulled, open_backend
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, bring_in, require_out, status_of
from h2htalk.rounds.words import decided, take_adjudications, told_of_unfit, with_adjudications


def close_round(
    path: Path, *, early: bool = False, adjudication: Path | None = None
) -> tuple[Status, list[Settled]]:
    """Close a round: bring in the last answers, decide, and write decisions, agreement and figures of the voters.

    Closing a closed round decides again from the answers that are there, the same bytes; with `adjudication` its
    ties get that round's word.

    Args:
        path: the round.
        early: close although items want answers, or answers have mistakes; recorded, and told in the notes.
        adjudication: a closed round over this one's ties.

    Raises:
        RoundError: items want answers or answers hold mistakes, and `early` is not set; or the adjudication is open,
            or over the ties of another round; or the round is closed, and its answers are not those that it was
            closed with.
        DataError: a file of the round is not what it was.
    """
    folder = RoundFolder(path)
    folder.require()
    other = _closed(adjudication) if adjudication is not None else None
    with folder.locked():
        require_intact(folder)
        require_out(folder)
        closed = folder.state == "closed"
        if closed:
            _require_as_closed(folder)
        else:
            require_names(folder)
        pulled, new = (Pulled(()), 0) if closed else bring_in(folder, whole=True)
        found = status_of(folder, pulled, new)
        if not closed:
            _require_done(found, early)
        settled = decided(folder)
        notes = _told_of_gaps(found) if not closed else []
        if other is not None:
            require_over(other, folder)
            notes.append(take_adjudications(folder, other, settled))
        notes += told_of_unfit(folder, settled)
        settled = with_adjudications(folder, settled)
        notes += write_outcome(folder, settled)
        if not closed:
            notes += [*_told_of_ties(path, found), *open_backend(folder.spec().backend).close(folder)]
            folder.note(
                "closed",
                early=bool(found.missing or found.mistakes),
                missing=sum(found.missing.values()),
                mistakes=len(found.mistakes),
                **folder.answers_print(),
            )
    return replace(found, state="closed", notes=(*found.notes, *notes)), settled


def write_outcome(folder: RoundFolder, settled: Sequence[Settled]) -> list[str]:
    """Decisions, agreement, the voters' figures, and what each is paid. Returns lines for the manager."""
    write_jsonl(folder.path / "decisions.jsonl", (one.to_dict() for one in settled))
    write_json(folder.path / "agreement.json", agreement_table(folder))
    write_text(folder.path / "voters.csv", voter_table(folder, settled))
    folder.write_private("payment.csv", payment_table(folder))
    return _hand_on(folder)


def _hand_on(folder: RoundFolder) -> list[str]:
    """Write who passed the gold items, as a list for `--voters`; none where nobody did, for nobody is no panel."""
    passed = qualified_table(folder)
    if passed is None:
        return []
    path = folder.private / QUALIFIED
    number, here = len(passed.splitlines()) - 1, sum(voter.here for voter in folder.voters())
    if not number:
        remove_file(path)
        return [
            f"nobody of {here} voters passed the gold items, so no list is written for --voters; voters.csv says how "
            "each did"
        ]
    folder.write_private(path.name, passed)
    return [
        f"{number} of {here} voters passed the gold items: {path}, for --voters; voters.csv says how each did"
    ]


def _require_done(found: Status, early: bool) -> None:
    if early:
        return
    if found.mistakes:
        raise RoundError(
            f"{found.name}: {counted(len(found.mistakes), 'answer')} cannot be counted, the first: "
            f"{found.mistakes[0]}; have them corrected (`h2htalk round status` lists all), or close without them with "
            "--early"
        )
    if found.missing:
        raise RoundError(
            f"{found.name}: {len(found.missing):,} of {counted(found.items, 'item')} without all answers, "
            f"{counted(sum(found.missing.values()), 'answer')} in all; wait, hand them to others with "
            "`h2htalk round reopen`, or close with --early"
        )


def _told_of_gaps(found: Status) -> list[str]:
    """What a round was closed without: every mistake, and how many answers are missing."""
    told = []
    if found.missing:
        answers = counted(sum(found.missing.values()), "answer")
        told.append(f"closed early, without {answers} to {counted(len(found.missing), 'item')}")
    if found.mistakes:
        told += [
            f"closed without {counted(len(found.mistakes), 'answer')} that cannot be counted:",
            *found.mistakes,
        ]
    return told


def _told_of_ties(path: Path, found: Status) -> list[str]:
    if not found.ties:
        return []
    tied = counted(found.ties, "item is tied and was", "items are tied and were")
    return [
        f"{tied} not asked about again: `h2htalk round reopen {path}` gets each one more answer; closed as they are, "
        "they wait for an adjudication"
    ]


def _closed(adjudication: Path) -> RoundFolder:
    other = RoundFolder(adjudication)
    other.require()
    require_intact(other)
    if other.state != "closed":
        raise RoundError(f"{adjudication}: this round is not closed yet; close it first")
    _require_as_closed(other)
    return other


def _require_as_closed(folder: RoundFolder) -> None:
    """Raise RoundError where a closed round's answers are not those that it was closed with."""
    was, now = folder.closed_with(), folder.answers_print()
    if was != now:
        raise RoundError(
            f"{folder.path / 'answers.jsonl'}: the round was closed with {was['answers']} answers to its questions, "
            f"and {now['answers']} are there now, not the same; its decisions are left as they are. Put that file "
            f"back, or bring in what voters answered once more: `h2htalk round reopen {folder.path}`"
        )
