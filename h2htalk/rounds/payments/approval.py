"""Who is done, for the approval of submissions on Prolific, and what Prolific's export says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from h2htalk.errors import RoundError, counted
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.annotators import Annotator, read_export
from h2htalk.rounds.assignment.assignments import is_eligible
from h2htalk.rounds.payments.amounts import PAID, UNPAID
from h2htalk.rounds.payments.prolific_export import comparable_participant_id
from h2htalk.rounds.payments.submissions import (
    Submission,
    read_submissions,
    store_exported,
    store_listed,
    submission_of,
)
from h2htalk.rounds.round_folder import CHECKS, DONE, RoundState
from h2htalk.rounds.settings import is_link
from h2htalk.text.escaping import csv_text

# What Prolific calls submissions of participants who say that they are done.
_SUBMITTED = ("awaiting review", *PAID)
# Participants whom a message names.
_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class ParticipantProgress:
    """What a participant of Prolific has done, and what is known of the submission.

    `left` are items that they have not answered or skipped: of those assigned to them, or, on a server, of those that
    still need annotators and that they may get. `round_code` is the code of the settings; empty where there is none.
    """

    annotator: Annotator
    submission: Submission
    completed: int
    skipped: int
    left: int
    round_code: str = ""

    @property
    def items(self) -> int:
        """All items that were theirs to do."""
        return self.completed + self.skipped + self.left

    @property
    def is_done(self) -> bool:
        """Whether they have completed or skipped all their items, and at least one."""
        return not self.left and self.items > 0

    @property
    def code(self) -> str:
        """The completion code that they entered, as far as it is known."""
        return self.submission.code or self.annotator.completion_code

    @property
    def has_submitted(self) -> bool:
        """Whether they entered a code, or Prolific calls the submission finished."""
        return bool(self.code) or self.submission.status in _SUBMITTED

    @property
    def has_round_code(self) -> bool:
        """Whether they entered the code of the round."""
        return bool(self.code) and self.code.casefold() == self.round_code.casefold()

    @property
    def has_other_code(self) -> bool:
        """Whether they entered a code that is not the one of the round; False where the round's is not known."""
        return bool(self.code and self.round_code) and not self.has_round_code

    def describe(self) -> str:
        """Return `NAME (5 of 11 items answered, 2 skipped)`."""
        skipped = f", {self.skipped:,} skipped" if self.skipped else ""
        return f"{self.annotator.name} ({self.completed:,} of {counted(self.items, 'item')} answered{skipped})"


def write_done(state: RoundState, missing: Collection[str]) -> list[str]:
    """Write which participants of Prolific are to be approved, and what all of them have done; return messages.

    To be approved are all who are done, and those who were listed before and got more items since. Submissions that
    Prolific does not pay, because they ended, are left out, and so are removed annotators. The reward of the study is
    taken off for whom a list for approval has named.

    Done is who has completed or skipped all that was assigned to them; on a server, all items that still need
    annotators (`missing`) and that they may get, and at least one item.
    """
    participants = _progress(state, missing)
    if not participants:
        return []
    listed: list[ParticipantProgress] = []
    for one in participants:
        is_wanted = one.is_done or (one.submission.listed and one.annotator.id not in state.removed)
        if is_wanted and one.submission.status not in UNPAID:
            listed.append(one)
    store_listed(state.folder, [one.annotator for one in listed])
    rows = [(one.annotator.name, one.annotator.participant_id, one.code) for one in listed]
    state.folder.write_private(
        Path(DONE).name, csv_text(("name", "participant id", "completion code"), rows)
    )
    _write_checks(state, participants, listed)
    done = sum(one.is_done for one in participants)
    people = counted(len(participants), "participant")
    notes = [
        f"{done:,} of {people} of Prolific are done: {state.folder.path / DONE} lists them for approval"
    ]
    before = sum(not one.is_done for one in listed)
    if before:
        notes.append(f"{counted(before, 'participant')} listed before, who got more items since")
    ended = sum(one.submission.status in UNPAID for one in participants)
    if ended:
        notes.append(f"{counted(ended, 'submission')} that Prolific does not pay left out")
    return ["; ".join(notes), *_describe_submitted(state, participants)]


def _progress(state: RoundState, missing: Collection[str]) -> list[ParticipantProgress]:
    """Return what each participant has done."""
    assigned = {(one.item, one.annotator) for one_set in state.sets for one in one_set.assignments}
    completed = {
        (item, annotator)
        for item, annotators in state.completed.items()
        for annotator in annotators
    }
    skipped = skips(state.annotations) - completed
    submissions = read_submissions(state.folder)
    progress: list[ParticipantProgress] = []
    for annotator in state.annotators:
        if not annotator.is_participant:
            continue
        if assigned:
            theirs = {item for item, who in assigned if who == annotator.id}
        else:
            theirs = {
                item.id
                for item in state.items
                if item.id in missing and is_eligible(annotator, item)
            }
        answered = {item for item, who in completed if who == annotator.id}
        passed = {item for item, who in skipped if who == annotator.id}
        one = ParticipantProgress(
            annotator=annotator,
            submission=submission_of(submissions, annotator),
            completed=len(answered),
            skipped=len(passed),
            left=len(theirs - answered - passed),
            round_code=completion_code(state.spec.completion),
        )
        progress.append(one)
    return progress


def completion_code(completion: str) -> str:
    """Return the code of the setting `completion`: itself, or a link's parameter `cc`; empty for another link."""
    if not is_link(completion):
        return completion
    try:
        codes = parse_qs(urlsplit(completion).query).get("cc", [""])
    except ValueError:
        return ""
    return codes[0]


def _write_checks(
    state: RoundState,
    participants: Iterable[ParticipantProgress],
    listed: Collection[ParticipantProgress],
) -> None:
    """Write a row for each participant: items, code, submission, and whether to approve it."""
    headings = (
        *("name", "participant id", "items", "answered", "skipped", "open"),
        *("completion code", "submission", "approve"),
    )
    rows = []
    for one in participants:
        approve = "yes" if one in listed else "no"
        if one.annotator.id in state.removed:
            approve = "no (removed from the round)"
        code = f"{one.code} (not that of the round)" if one.has_other_code else one.code
        row = (
            one.annotator.name,
            one.annotator.participant_id,
            one.items,
            one.completed,
            one.skipped,
            one.left,
            code,
            one.submission.status,
            approve,
        )
        rows.append(row)
    state.folder.write_private(Path(CHECKS).name, csv_text(headings, rows))


def _describe_submitted(
    state: RoundState, participants: Iterable[ParticipantProgress]
) -> list[str]:
    """Return messages on participants who submitted before they were done, or with another code."""
    submitted = [
        one for one in participants if one.has_submitted and one.submission.status not in UNPAID
    ]
    active = [one for one in submitted if one.annotator.id not in state.removed]
    messages: list[str] = []
    path = state.folder.path / CHECKS
    with_code = [one for one in active if one.has_round_code and not one.is_done]
    if with_code:
        messages.append(
            f"{counted(len(with_code), 'participant')} submitted with the code, and not all their items are answered "
            f"or skipped: {_listed(with_code)}; look at {path} before you approve or pay anything"
        )
    # No code is known, or it is another one, or the round has none to compare it with.
    without = [one for one in active if not one.has_round_code and not one.is_done]
    if without:
        messages.append(
            f"{counted(len(without), 'participant')} submitted, and not all their items are answered or skipped: "
            f"{_listed(without)}; look at {path} before you approve or pay anything"
        )
    other = [one for one in active if one.has_other_code]
    if other:
        messages.append(
            f"{counted(len(other), 'participant')} entered another code than that of `completion`: {_listed(other)}; "
            f"{path} has the codes"
        )
    return messages


def _listed(participants: Sequence[ParticipantProgress]) -> str:
    shown = [one.describe() for one in participants[:_MOST_NAMED]]
    more = len(participants) - len(shown)
    if more:
        shown.append(f"and {more:,} more")
    return ", ".join(shown)


def take_export(state: RoundState, export: Path) -> list[str]:
    """Store what Prolific's export says of the submissions of the round's annotators; return a message of changes.

    Raise RoundError for a file that is no export.
    """
    exported = read_export(export)
    if not exported:
        raise RoundError(
            f"{export}: no export of Prolific's participants; it has the columns Participant id and Status"
        )
    ids = {comparable_participant_id(one.participant_id) for one in state.annotators}
    unknown = len(exported.keys() - ids)
    notes = describe_statuses(store_exported(state.folder, state.annotators, exported))
    if unknown:
        notes.append(
            f"{export}: {counted(unknown, 'participant')} of the export not in this round, and ignored"
        )
    return notes


def describe_statuses(changed: Collection[tuple[Annotator, str]]) -> list[str]:
    """Return a message that counts submissions by their new status; none where none changed."""
    if not changed:
        return []
    counts = Counter(status for _, status in changed)
    kinds = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    return [f"what Prolific says of {counted(len(changed), 'submission')} was stored: {kinds}"]
