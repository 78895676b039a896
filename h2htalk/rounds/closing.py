"""Closing a round: the last answers, decisions, agreement, and what its voters are paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_json, write_jsonl, write_text
from h2htalk.errors import RoundError
from h2htalk.rounds.backends import Pulled, open_backend
from h2htalk.rounds.decide import ADJUDICATION, TIE, Settled, adjudicated, decide, tie_id
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.outcome import agreement_table, payment_table, qualified_table, voter_table
from h2htalk.rounds.status import Status, bring_in, status_of
from h2htalk.rounds.ties import require_over


def close_round(
    path: Path, *, early: bool = False, adjudication: Path | None = None
) -> tuple[Status, list[Settled]]:
    """Close a round: bring in the last answers, decide, and write decisions, agreement and figures of the voters.

    Closing a closed round decides again from the answers that are there, the same bytes; with `adjudication` its
    ties get that round's word.

    Args:
        path: the round.
        early: close although items want answers, or answers have mistakes; recorded.
        adjudication: a closed round over this one's ties.

    Raises:
        RoundError: items want answers or answers hold mistakes, and `early` is not set; or the adjudication is open,
            or over the ties of another round.
    """
    folder = RoundFolder(path)
    folder.require()
    other = _closed(adjudication) if adjudication is not None else None
    with folder.locked():
        pulled, new = (Pulled(()), 0) if folder.state == "closed" else bring_in(folder, whole=True)
        found = status_of(folder, pulled, new)
        if folder.state != "closed":
            _require_done(found, early)
        settled = decided(folder)
        notes = []
        if other is not None:
            require_over(other, folder, settled)
            notes.append(_take_words(folder, other, settled))
        settled = adjudicated(settled, _stored_words(folder))
        notes += write_outcome(folder, settled)
        if folder.state != "closed":
            notes += [*_told_of_ties(path, found), *open_backend(folder.spec().backend).close(folder)]
            folder.note(
                "closed", early=bool(found.missing or found.mistakes), missing=sum(found.missing.values())
            )
    return replace(found, state="closed", notes=(*found.notes, *notes)), settled


def decided(folder: RoundFolder) -> list[Settled]:
    """A round's decisions from the answers that are stored, ties not yet adjudicated."""
    return decide(
        folder.items(), folder.questions(), list(folder.answers().values()), folder.spec().ties.margin
    )


def write_outcome(folder: RoundFolder, settled: Sequence[Settled]) -> list[str]:
    """Decisions, agreement, the voters' figures, and what each is paid. Returns lines for the manager."""
    write_jsonl(folder.path / "decisions.jsonl", (one.to_dict() for one in settled))
    write_json(folder.path / "agreement.json", agreement_table(folder))
    write_text(folder.path / "voters.csv", voter_table(folder, settled))
    if (passed := qualified_table(folder)) is not None:
        folder.write_private("qualified.csv", passed)
    folder.write_private("payment.csv", payment_table(folder))
    if passed is None:
        return []
    here = sum(voter.here for voter in folder.voters())
    return [
        f"{len(passed.splitlines()) - 1} of {here} voters passed the gold items: {folder.private / 'qualified.csv'}, "
        "for --voters; voters.csv says how each did"
    ]


def _require_done(found: Status, early: bool) -> None:
    if early:
        return
    if found.mistakes:
        raise RoundError(
            f"{found.name}: {len(found.mistakes)} answers cannot be counted, the first: {found.mistakes[0]}; have them "
            "corrected (`h2htalk round status` lists all), or close without them with --early"
        )
    if found.missing:
        raise RoundError(
            f"{found.name}: {len(found.missing)} of {found.items} items still want "
            f"{sum(found.missing.values())} answers; wait, hand them to others with `h2htalk round reopen`, "
            "or close with --early"
        )


def _told_of_ties(path: Path, found: Status) -> list[str]:
    if not found.ties:
        return []
    return [
        f"{found.ties} items are tied and were not asked about again: `h2htalk round reopen {path}` gets each one more "
        "answer first; closed as they are, the voters' measured reliability or an adjudication has to settle them"
    ]


def _closed(adjudication: Path) -> RoundFolder:
    other = RoundFolder(adjudication)
    other.require()
    if other.state != "closed":
        raise RoundError(f"{adjudication}: this round is not closed yet; close it first")
    return other


def _take_words(folder: RoundFolder, other: RoundFolder, settled: Sequence[Settled]) -> str:
    """Store an adjudication's words beside those of earlier ones; record it, and say how many were taken."""
    asked = [one for one in decided(other) if one.question == "label"]
    words = {one.item: one for one in asked if one.label is not None}
    stored = _stored_words(folder)
    both = stored | words
    after = adjudicated(settled, both)
    taken = sum(one.how == ADJUDICATION and tie_id(one.item, one.question) in words for one in after)
    if both != stored:
        write_jsonl(folder.path / "adjudicated.jsonl", (word.to_dict() for word in both.values()))
        folder.note("adjudicated", by=other.name, words=taken)
    left = sum(one.how == TIE for one in after)
    return f"{taken} of {len(asked)} words of {other.name} taken; {left} ties are left"


def _stored_words(folder: RoundFolder) -> dict[str, Settled]:
    path = folder.path / "adjudicated.jsonl"
    if not path.exists():
        return {}
    read = (record for _, record in read_jsonl(path))
    return {
        record["item"]: Settled(
            record["item"], record["question"], record["label"], record["support"], record["posterior"],
            record["how"], record["votes"],
        )
        for record in read
    }  # fmt: skip
