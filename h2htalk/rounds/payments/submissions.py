"""Submissions of participants of Prolific: what its export calls them, and whom the round has listed for approval.

A record is about one annotator under one participant id. Records are kept when the id of an annotator is replaced, so
that an erasure knows all ids, and when somebody who was listed for approval gets more items: Prolific has paid them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.payments.prolific_export import ExportedSubmission, comparable_participant_id
from h2htalk.rounds.round_folder import RoundFolder, read_record_lines

SUBMISSIONS = "private/submissions.jsonl"


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission: of an annotator, a salted hash, under a participant id, which is empty where it is not known.

    Attributes:
        status: what Prolific's last export calls it (`approved`, `returned`, ...); empty if no export named it.
        listed: whether a list for approval (`prolific_done.csv`) has named it.
        code: the completion code that the participant entered, by Prolific's last export; empty if none named it.
    """

    annotator: str
    participant_id: str
    status: str = ""
    listed: bool = False
    code: str = ""


def read_submissions(folder: RoundFolder) -> list[Submission]:
    """Return all records; none for a round of an earlier version. Raise DataError."""
    path = folder.path / SUBMISSIONS
    return [record for _, record in read_record_lines(path, Submission)] if path.exists() else []


def submission_of(submissions: Iterable[Submission], annotator: Annotator) -> Submission:
    """Return what is known of an annotator's submission under their current participant id."""
    participant = comparable_participant_id(annotator.participant_id)
    # Somebody was listed by completion code before the id was known.
    nameless = Submission(annotator=annotator.id, participant_id="")
    matching: Submission | None = None
    for submission in submissions:
        if submission.annotator != annotator.id:
            continue
        if not submission.participant_id:
            nameless = submission
        # What was stored last says how the same id was corrected.
        if comparable_participant_id(submission.participant_id) == participant:
            matching = submission
    return replace(matching or nameless, participant_id=annotator.participant_id)


def participant_ids(submissions: Iterable[Submission], annotator: str) -> list[str]:
    """Return the participant ids that an annotator (id) ever had here, by these records."""
    return [
        one.participant_id
        for one in submissions
        if one.annotator == annotator and one.participant_id
    ]


def store_replaced_ids(
    folder: RoundFolder, before: Iterable[Annotator], after: Iterable[Annotator]
) -> None:
    """Keep the participant ids of annotators who now have another one."""
    ids = {annotator.id: annotator.participant_id for annotator in after}
    replaced = [
        one for one in before if one.participant_id and ids.get(one.id, "") != one.participant_id
    ]
    submissions = read_submissions(folder)
    _store(folder, submissions, [submission_of(submissions, one) for one in replaced])


def store_exported(
    folder: RoundFolder, annotators: Iterable[Annotator], exported: Mapping[str, ExportedSubmission]
) -> list[tuple[Annotator, str]]:
    """Store what an export says of the submissions of annotators; return those with a new status, and the status.

    `exported`: comparable participant id -> what the export says.
    """
    annotators = list(annotators)
    changed = changed_statuses(folder, annotators, exported)
    submissions = read_submissions(folder)
    records = []
    for annotator in annotators:
        known = submission_of(submissions, annotator)
        new = _exported_of(exported, annotator)
        if new is not None:
            records.append(
                replace(known, status=new.status or known.status, code=new.code or known.code)
            )
    _store(folder, submissions, records)
    return changed


def changed_statuses(
    folder: RoundFolder, annotators: Iterable[Annotator], exported: Mapping[str, ExportedSubmission]
) -> list[tuple[Annotator, str]]:
    """Return the annotators of whose submissions an export says something new, with the new status."""
    submissions = read_submissions(folder)
    changed: list[tuple[Annotator, str]] = []
    for annotator in annotators:
        new = _exported_of(exported, annotator)
        if (
            new is not None
            and new.status
            and submission_of(submissions, annotator).status != new.status
        ):
            changed.append((annotator, new.status))
    return changed


def store_listed(folder: RoundFolder, annotators: Iterable[Annotator]) -> None:
    """Store that these annotators were listed for approval."""
    submissions = read_submissions(folder)
    records = [replace(submission_of(submissions, one), listed=True) for one in annotators]
    _store(folder, submissions, records)


def _exported_of(
    exported: Mapping[str, ExportedSubmission], annotator: Annotator
) -> ExportedSubmission | None:
    if not annotator.participant_id:
        return None
    return exported.get(comparable_participant_id(annotator.participant_id))


def _by_key(submissions: Iterable[Submission]) -> dict[tuple[str, str], Submission]:
    return {(one.annotator, one.participant_id): one for one in submissions}


def _store(
    folder: RoundFolder, submissions: Iterable[Submission], records: Iterable[Submission]
) -> None:
    """Write records of the same keys anew, and further ones; nothing is written where nothing changes."""
    before = _by_key(submissions)
    after = before | _by_key(records)
    if after != before:
        folder.write_records(SUBMISSIONS, after.values())
