"""Closing a round: the last answers, decisions, agreement, and what its annotators are paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.data.files import remove_file, write_json, write_jsonl, write_text
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.adjudication import (
    decided,
    describe_unfit,
    require_over,
    take_adjudications,
    with_adjudications,
)
from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.annotator_statistics import (
    AnnotatorStatistics,
    figures_csv,
    figures_of,
    qualified,
)
from h2htalk.rounds.aggregation.decisions import Decision, answered_items, votes_on
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.annotators import COLUMNS
from h2htalk.rounds.integrity import require_names, validate_round
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, collect_annotations, require_published, status_of
from h2htalk.text.escaping import csv_text


def close_round(
    path: Path, *, force: bool = False, adjudication: Path | None = None
) -> tuple[Status, list[Decision]]:
    """Close a round: bring in the last answers, decide, and write decisions, agreement and figures of the annotators.

    Closing a closed round decides again from the answers that are there, the same bytes; with `adjudication` its
    ties get that round's word.

    Examples:
        >>> import h2htalk
        >>> status, decisions = h2htalk.close_round(Path("rounds/crowd"), force=True)
        >>> status.state
        'closed'

    Args:
        path: the round.
        force: close although items want answers, or answers have mistakes; recorded, and told in the notes.
        adjudication: a closed round over this one's ties.

    Raises:
        RoundError: items want answers or answers hold mistakes, and `force` is not set; or the adjudication is open,
            or over the ties of another round; or the round is closed, and its answers are not those that it was
            closed with.
        DataError: a file of the round is not what it was.
    """
    folder = RoundFolder(path)
    folder.require()
    other = _closed(adjudication) if adjudication is not None else None
    with folder.locked():
        validate_round(folder)
        require_published(folder)
        closed = folder.state == "closed"
        if closed:
            _require_as_closed(folder)
        else:
            require_names(folder)
        pulled, new = (Collected(()), 0) if closed else collect_annotations(folder, whole=True)
        found = status_of(folder, pulled, new)
        if not closed:
            _require_done(found, force)
        settled = decided(folder)
        notes = _describe_gaps(found) if not closed else []
        if other is not None:
            require_over(other, folder)
            notes.append(take_adjudications(folder, other, settled))
        notes += describe_unfit(folder, settled)
        settled = with_adjudications(folder, settled)
        notes += write_outcome(folder, settled)
        if not closed:
            notes += [*_describe_ties(path, found), *open_platform(folder.spec().where).close(folder)]
            folder.note(
                "closed",
                early=bool(found.missing or found.mistakes),
                missing=sum(found.missing.values()),
                mistakes=len(found.mistakes),
                **folder.annotations_fingerprint(),
            )
    return replace(found, state="closed", notes=(*found.notes, *notes)), settled


def write_outcome(folder: RoundFolder, settled: Sequence[Decision]) -> list[str]:
    """Decisions, agreement, the annotators' figures, and what each is paid. Returns lines for the manager."""
    write_jsonl(folder.path / "decisions.jsonl", (one.to_dict() for one in settled))
    write_json(folder.path / "agreement.json", agreement_table(folder))
    write_text(folder.path / "annotator_statistics.csv", annotator_table(folder, settled))
    folder.write_private("payment.csv", payment_table(folder))
    return _hand_on(folder)


def _hand_on(folder: RoundFolder) -> list[str]:
    """Write who passed the gold items, as a list for `--annotators`; none where nobody did, for nobody is no panel."""
    passed = qualified_table(folder)
    if passed is None:
        return []
    path = folder.private / QUALIFIED
    number, here = len(passed.splitlines()) - 1, sum(annotator.here for annotator in folder.annotators())
    if not number:
        remove_file(path)
        return [
            f"nobody of {here} annotators passed the gold items, so no list is written for "
            "--annotators; annotator_statistics.csv says how "
            "each did"
        ]
    folder.write_private(path.name, passed)
    return [
        f"{number} of {here} annotators passed the gold items: {path}, for --annotators; "
        "annotator_statistics.csv says how each did"
    ]


def _require_done(found: Status, force: bool) -> None:
    if force:
        return
    if found.mistakes:
        raise RoundError(
            f"{found.name}: {counted(len(found.mistakes), 'answer')} cannot be counted, the first: "
            f"{found.mistakes[0]}; have them corrected (`h2htalk round status` lists all), or close without them with "
            "--force"
        )
    if found.missing:
        raise RoundError(
            f"{found.name}: {len(found.missing):,} of {counted(found.items, 'item')} without all answers, "
            f"{counted(sum(found.missing.values()), 'answer')} in all; wait, hand them to others with "
            "`h2htalk round reopen`, or close with --force"
        )


def _describe_gaps(found: Status) -> list[str]:
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


def _describe_ties(path: Path, found: Status) -> list[str]:
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
    validate_round(other)
    if other.state != "closed":
        raise RoundError(f"{adjudication}: this round is not closed yet; close it first")
    _require_as_closed(other)
    return other


def _require_as_closed(folder: RoundFolder) -> None:
    """Raise RoundError where a closed round's answers are not those that it was closed with."""
    was, now = folder.closed_with(), folder.annotations_fingerprint()
    if was != now:
        raise RoundError(
            f"{folder.path / 'annotations.jsonl'}: the round was closed with {was['answers']} answers "
            "to its questions, "
            f"and {now['answers']} are there now, not the same; its decisions are left as they are. Put that file "
            f"back, or bring in what annotators answered once more: `h2htalk round reopen {folder.path}`"
        )


# Of the private folder: who passed the gold items, as `--annotators` takes it.
QUALIFIED = "qualified.csv"


def agreement_table(folder: RoundFolder) -> dict[str, Any]:
    """By question: Krippendorff's alpha at the question's level with its interval, votes and items."""
    items = {item.id: item for item in folder.items()}
    answers = list(folder.answers().values())
    return {
        question.name: agreement_of(votes_on(question, answers, items), question.level).to_dict()
        for question in folder.questions()
        if question.decided
    }


def annotator_table(folder: RoundFolder, settled: Sequence[Decision]) -> str:
    """CSV, a row an annotator, by salted hash: accuracy, speed, warnings."""
    return figures_csv(_figures(folder), folder.spec().pass_gold)


def qualified_table(folder: RoundFolder) -> str | None:
    """CSV of those who passed the gold items and are still there, in the form that `--annotators` takes.

    It holds names, so it belongs into the private folder. None where the round has no gold items; a first line alone
    where nobody passed.
    """
    if not any(item.gold for item in folder.items()):
        return None
    passed = qualified(_figures(folder), folder.spec().pass_gold)
    return csv_text(
        COLUMNS,
        [
            (annotator.name, " ".join(annotator.languages), annotator.crisis)
            for annotator in folder.annotators()
            if annotator.here and passed[annotator.id]
        ],
    )


def _figures(folder: RoundFolder) -> list[AnnotatorStatistics]:
    return figures_of(
        folder.items(),
        folder.questions(),
        list(folder.answers().values()),
        [v.id for v in folder.annotators()],
    )


def payment_table(folder: RoundFolder) -> str:
    """CSV, a row an annotator by name (so it lies in the private folder): items answered and skipped, minutes paid.

    What was skipped is paid as what was answered: skipping costs an annotator nothing.
    """
    spec = folder.spec()
    answers = folder.answers()
    done = answered_items(folder.items(), folder.questions(), answers)
    skipped = skips(answers)
    rows = []
    for annotator in folder.annotators():
        answered = sum(annotator.id in who for who in done.values())
        passed = sum(who == annotator.id for _, who in skipped)
        rows.append((annotator.name, answered, passed, (answered + passed) * spec.minutes))
    return csv_text(("annotator", "items answered", "items skipped", "minutes"), rows)
