"""Erase an annotator who withdraws consent: answers, comments, times and names go, decisions stay with their counts.

First the platform is erased from, while the round still knows who it is: killed there, the same call begins anew. Then
`private/erasing_annotator.json` says what is to be done to the files; until they are done nobody reads the round, and
the same call completes them. What lies elsewhere is named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import json_line, read_json_object
from h2htalk.data.links import follow_links, links_of
from h2htalk.data.records import read_record
from h2htalk.data.settings import as_path
from h2htalk.errors import H2HTalkError, RoundError, counted
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotator_traces import Trace, find_traces, participant_ids_in, remove_traces
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.erased_annotators import (
    ERASED_ANNOTATORS,
    ERASED_VOTES,
    ErasedAnnotator,
    ErasedVotes,
    erasure_mark,
    merge_votes,
    participant_mark,
    votes_of,
)
from h2htalk.rounds.lifecycle import collect_annotations
from h2htalk.rounds.payments.erasure_record import (
    PaymentRecord,
    add_record,
    left_to_pay,
    payment_record,
    sent_bonuses,
)
from h2htalk.rounds.payments.lists import Pay, pay_of
from h2htalk.rounds.platforms import Removal, open_platform
from h2htalk.rounds.readers.planted import readers_among
from h2htalk.rounds.round_folder import PENDING_ERASURE, RoundFolder, RoundState, read_state
from h2htalk.rounds.spreadsheets.codes import spreadsheet_codes

ERASED_EVENT = "annotator erased"


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """What is to be done to the files of a round.

    `votes` are all that decisions count then, `comments` the texts, `participant_ids` all ids that the annotator ever
    had here, `left_to_pay` the amount for the manager; empty for nothing.
    """

    annotator: Annotator
    erased: ErasedAnnotator
    votes: tuple[ErasedVotes, ...]
    comments: tuple[str, ...]
    participant_ids: tuple[str, ...] = ()
    left_to_pay: str = ""


def erase_annotator(
    path: str | Path,
    name: str,
    *,
    payments: str | Path | None = None,
    keep_payments: bool = True,
    sent: str = "",
    skip_server: bool = False,
) -> Removal:
    """Erase an annotator, by name, from a round and its platform; return what is gone, and what is left elsewhere.

    Their answers, comments, times, name and ids go. Decisions of a closed round stay as they are, with their counts; in
    an open round the items need other annotators. What was published is not made again. Calling it again, also after a
    kill, completes it.

    `payments` is a CSV file outside of the round that gets what they are to be paid for, with their name, because the
    law may want that kept; without `keep_payments` nothing is written. `sent` says which of the lists of bonuses that
    hold them were sent: `all`, `none`, or numbers (`1,2`). `skip_server` leaves a server out that does not exist any
    more.

    Raise RoundError if there is no such annotator, neither `payments` nor `keep_payments=False` was given for somebody
    who is to be paid, `sent` was not given for somebody in a list, or the platform cannot be reached: then nothing of
    the files has changed.
    """
    folder = RoundFolder(as_path(path, "path"))
    with folder.erasing_annotator():
        folder.require()
        with folder.locked():
            pending = _read_pending(folder)
            messages = list[str]()
            left = list[str]()
            if pending is None or pending.annotator.name != name:
                if pending is not None:
                    _finish(folder, pending)
                state = read_state(folder)
                annotator = _find(state, name)
                if annotator is None:
                    return Removal(
                        removed=(
                            f"{name} was erased from {folder.path} before: nothing is left to do",
                        )
                    )
                # Work that was done and not collected yet is paid, too.
                if state.phase == "open" and not skip_server:
                    state, _, _ = collect_annotations(state)
                pay = pay_of(state, annotator.id)
                bonuses = sent_bonuses(state, annotator, sent)
                record: PaymentRecord | None = None
                if (pay.completed or pay.skipped or bonuses) and keep_payments:
                    record = payment_record(state, pay, bonuses, payments)
                pending = _plan(state, pay, left_to_pay(pay, bonuses))
                removal = _erase_from_platform(state, annotator, skip_server)
                messages += removal.removed
                left += removal.left
                if removal.unfinished:
                    left.append(
                        "the files of the round have not changed: they are erased by the same command once this is "
                        "done, or with --skip-server"
                    )
                    return Removal(tuple(messages), tuple(left), unfinished=True)
                if record is not None:
                    add_record(record)
                    messages.append(
                        f"{record.path}: says what {name} is paid for; delete it when the law wants it kept no longer"
                    )
                folder.write_private(Path(PENDING_ERASURE).name, json_line(asdict(pending)))
            _finish(folder, pending)
            state = read_state(folder)
            messages.append(_describe(state, pending))
            left += find_copies(state, pending)
    return Removal(tuple(messages), tuple(left))


def _read_pending(folder: RoundFolder) -> PendingErasure | None:
    """Return what an interrupted erasure was going to do; None if none was. Raise DataError."""
    path = folder.path / PENDING_ERASURE
    if not path.exists():
        return None
    return read_record(PendingErasure, read_json_object(path), str(path))


def _find(state: RoundState, name: str) -> Annotator | None:
    """Return an annotator by name, also one who left; None if they were erased before. Raise RoundError."""
    found = [one for one in state.annotators if one.name == name]
    if found:
        return found[0]
    mark = erasure_mark(name, state.folder.salt())
    if mark in {one.mark for one in state.folder.erased_annotators()}:
        return None
    return state.require_annotators([name])[name]


def _erase_from_platform(state: RoundState, annotator: Annotator, skip_server: bool) -> Removal:
    """Erase an annotator from the platform, or say what to do on a server that is left out. Raise RoundError."""
    platform = open_platform(state.spec.where)
    if skip_server and not platform.assigns_items:
        account = f"{annotator.name} ({annotator.id})"
        left = f"the server was left out: if it exists, delete the answers and the account of {account} there"
        return Removal(left=(left,))
    try:
        return platform.erase_annotator(state, annotator)
    except RoundError as error:
        raise RoundError(
            f"{error}. The files of the round have not changed; if the server does not exist any more, add "
            "--skip-server"
        ) from error


def _plan(state: RoundState, pay: Pay, left: Decimal) -> PendingErasure:
    """Return what is to be done to the files: counted from what is stored, for good once it is written."""
    folder = state.folder
    annotator = pay.annotator
    earlier = folder.erased_annotators()
    participant_ids = participant_ids_in(folder, annotator)
    salt = folder.salt()
    erased = ErasedAnnotator(
        number=1 + max((one.number for one in earlier), default=0),
        mark=erasure_mark(annotator.name, salt),
        completed=pay.completed,
        skipped=pay.skipped,
        spreadsheets=spreadsheet_codes(state, annotator.id),
        reward=str(pay.amounts.reward),
        participant_marks=tuple(participant_mark(id, salt) for id in participant_ids),
    )
    votes = list(folder.erased_votes())
    # Nothing was decided yet in an open round: other annotators are asked instead.
    if state.phase == "closed":
        readers = readers_among(state.items, state.annotations.values())
        reads = [language for language, names in readers.items() if annotator.id in names]
        votes += votes_of(annotator.id, state.items, state.questions, state.annotations, reads)
    comments = set[str]()
    comments_of_others = set[str]()
    for text in _texts(state):
        written = comments if text.annotator == annotator.id else comments_of_others
        written.add(str(text.value))
    return PendingErasure(
        annotator=annotator,
        erased=erased,
        votes=tuple(merge_votes(votes)),
        # What somebody else wrote in the same words stays, and is no trace.
        comments=tuple(sorted(comments - comments_of_others)),
        participant_ids=participant_ids,
        left_to_pay=f"{left} {state.spec.currency}".rstrip() if left else "",
    )


def _texts(state: RoundState) -> Iterator[Annotation]:
    """Yield all comments that were ever stored, also those that were changed later."""
    names = {question.name for question in state.questions if question.form == "text"}
    return (
        one
        for _, one in state.folder.annotation_lines()
        if one.question in names and one.value is not None
    )


def _finish(folder: RoundFolder, pending: PendingErasure) -> None:
    """Do to the files what is pending; each step can be repeated."""
    erased = pending.erased
    others = [one for one in folder.erased_annotators() if one.number != erased.number]
    folder.write_records(ERASED_ANNOTATORS, [*others, erased])
    if pending.votes:
        folder.write_records(ERASED_VOTES, pending.votes)
    remove_traces(folder, Trace(pending.annotator, erased.code, pending.participant_ids))
    if not any(
        event["event"] == ERASED_EVENT and event["number"] == erased.number
        for event in folder.events()
    ):
        folder.add_event(ERASED_EVENT, number=erased.number)
    remove_for_good(folder.path / PENDING_ERASURE)


def _describe(state: RoundState, pending: PendingErasure) -> str:
    name = pending.annotator.name
    path = state.folder.path
    if state.phase == "closed":
        rest = "decisions stay with their counts"
    else:
        rest = f"`h2htalk round reopen {path}` asks others for their items"
    done = pending.erased.completed + pending.erased.skipped
    pay = f"{counted(done, 'item')}, {done * state.spec.minutes:g} minutes, stay in payment.csv under a code"
    if pending.left_to_pay:
        participant = pending.annotator.participant_id
        whom = f"{name} (participant {participant})" if participant else name
        pay += f"; {pending.left_to_pay} are left to pay to {whom}, and no list of bonuses holds it: pay it yourself"
        if pending.erased.reward and Decimal(pending.erased.reward):
            reward = f"{pending.erased.reward} {state.spec.currency}".rstrip()
            pay += f" (without the study's reward of {reward}: add it if the platform does not approve the submission)"
    return f"{name} was erased from {path}: answers, comments, times and names; {pay}; {rest}"


# --- What lies elsewhere ----------------------------------------------------------------------------------------------


def find_copies(state: RoundState, pending: PendingErasure) -> Iterator[str]:
    """Yield what still holds the annotator, in the round or elsewhere, and what cannot be known from here."""
    folder = state.folder
    name = pending.annotator.name
    for path in find_traces(
        folder.path, pending.annotator, pending.comments, pending.participant_ids
    ):
        yield f"{path}: still holds the name, an id or a comment of {name}; remove it there"
    if state.spec.annotators and os.path.isfile(state.spec.annotators):
        with suppress(OSError, UnicodeDecodeError):
            if name in Path(state.spec.annotators).read_text(encoding="utf-8"):
                yield f"{state.spec.annotators}: your list of annotators names {name}; remove the line"
    yield from _find_in_folders(_related_folders(folder), pending)
    yield (
        f"releases, sites and other files that were made from the round before stay as they are: votes of {name} in "
        "them have a code that leads back only for whom has the name and the round's folder `private`"
    )


def _related_folders(folder: RoundFolder) -> list[tuple[str, Path]]:
    """Return the folders that were made from a round, and the one that its items come from."""
    related = [("", Path(str(folder.source_paths().get("items"))))]
    with suppress(H2HTalkError):
        related += [(link.kind, path) for link, path in follow_links(links_of(folder.path))]
    return [(kind, path) for kind, path in related if path.is_dir()]


def _find_in_folders(folders: Iterable[tuple[str, Path]], pending: PendingErasure) -> Iterator[str]:
    annotator = pending.annotator
    for _, path in folders:
        other = RoundFolder(path)
        with suppress(H2HTalkError):
            if other.exists and annotator.name in {one.name for one in other.listed_annotators()}:
                command = f"`h2htalk round erase-annotator {path} {annotator.name}`"
                yield f"{path}: {annotator.name} is an annotator of this round, too; to erase them there: {command}"
        # An id under the salt of this round, and comments that another round shows.
        elsewhere = replace(annotator, name=annotator.id)
        with suppress(H2HTalkError):
            for file in find_traces(path, elsewhere, pending.comments, pending.participant_ids):
                yield f"{file}: holds an id or a comment of {annotator.name}; remove it there"
