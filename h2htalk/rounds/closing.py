"""Close a round: collect the last annotations, decide, and write decisions, agreement, statistics and payment.

A tie stays a tie, with the label None, unless one more annotation, an adjudication or `[ties] dawid_skene` decides it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.data.files import remove_file, write_json, write_jsonl, write_text
from h2htalk.data.records import as_path
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.adjudication import read_adjudication, read_adjudications, store_adjudications
from h2htalk.rounds.aggregation.agreement import agreement_of
from h2htalk.rounds.aggregation.annotator_statistics import annotator_statistics, qualified, statistics_csv
from h2htalk.rounds.aggregation.decisions import (
    ADJUDICATION,
    Decision,
    apply_adjudications,
    completed_items,
    decide,
    votes_on,
)
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.annotator_changes import describe_removed
from h2htalk.rounds.annotators import COLUMNS
from h2htalk.rounds.assignment.remaining_annotations import below_overlap, describe_below_overlap
from h2htalk.rounds.integrity import (
    decision_signer,
    keyed_hash,
    require_annotator_list,
    require_unchanged,
    validate_round,
)
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, collect_annotations, compute_status, require_published
from h2htalk.text.escaping import csv_text

# Annotators who passed the gold items, in the format of `--annotators`; in the private folder.
QUALIFIED = "qualified.csv"


def close_round(
    path: str | Path, *, force: bool = False, adjudication: str | Path | None = None
) -> tuple[Status, list[Decision]]:
    """Close a round and write its decisions, agreement and statistics.

    Closing a closed round again writes the same files; with `adjudication`, that round's decisions are applied to ties.

    Examples:
        >>> import h2htalk
        >>> status, decisions = h2htalk.close_round("rounds/crowd", force=True)
        >>> status.state
        'closed'

    Args:
        path: the round.
        force: close although assignments are missing or annotations have mistakes; both are recorded.
        adjudication: a closed round about this round's ties.

    Raises:
        ConfigError: an argument is no path.
        RoundError: assignments are missing or annotations have mistakes, and `force` is not set; the adjudication is
            open or about another round; or the annotations of a closed round were changed.
        DataError: a file of the round is invalid.
    """
    path = as_path(path, "path")
    folder = RoundFolder(path).require()
    other = read_adjudication(as_path(adjudication, "adjudication"), folder) if adjudication is not None else None
    with folder.locked():
        validate_round(folder)
        require_published(folder)
        closed = folder.state == "closed"
        if closed:
            require_unchanged(folder)
        else:
            require_annotator_list(folder)
        collected, new = (Collected(), 0) if closed else collect_annotations(folder)
        status = compute_status(folder, collected, new)
        if not closed and not force:
            _require_complete(path, status)
        spec, items, valid = folder.spec(), folder.items(), list(folder.annotations().values())
        decisions = decide(items, folder.questions(), valid, spec.annotators_per_item, spec.ties.dawid_skene)
        fewer = below_overlap(spec, items, {name: status.by_item[name] for name in status.exhausted})
        gaps = [*_describe_gaps(status), *describe_below_overlap(spec, fewer, "annotations")]
        notes = [*describe_removed(folder), *(() if closed else gaps)]
        if other is not None:
            notes.append(store_adjudications(folder, other, decisions))
        stored = read_adjudications(folder)
        decisions = apply_adjudications(decisions, stored)
        if unapplied := len(stored) - sum(one.rule == ADJUDICATION for one in decisions):
            earlier = counted(unapplied, "earlier adjudication is", "earlier adjudications are")
            notes.append(f"{earlier} not applied: later annotations changed the tie")
        notes += _write_outcome(folder, decisions)
        if not closed:
            notes += [*_describe_ties(path, status), *open_platform(folder.spec().where).close(folder)]
            folder.add_event(
                "closed",
                incomplete=bool(status.missing or status.mistakes),
                missing=sum(status.missing.values()),
                mistakes=len(status.mistakes),
                below_overlap=fewer,
                **folder.annotations_fingerprint(),
            )
    return replace(status, state="closed", notes=(*status.notes, *notes)), decisions


def _require_complete(path: Path, status: Status) -> None:
    if status.mistakes:
        raise RoundError(
            f"{status.name}: {counted(len(status.mistakes), 'mistake')}, the first: {status.mistakes[0]}; have them "
            "corrected (`h2htalk round status` lists them), or close anyway with --force"
        )
    if status.missing:
        raise RoundError(
            f"{status.name}: {counted(sum(status.missing.values()), 'assignment is', 'assignments are')} missing for "
            f"{len(status.missing):,} of {counted(status.items, 'item')}; wait; hand out what annotators who left "
            f"have not answered with `h2htalk round reopen {path} --without NAME`; or close with --force"
        )


def _describe_gaps(status: Status) -> list[str]:
    """Return messages on what a round was closed without."""
    messages = []
    if status.missing:
        missing = counted(sum(status.missing.values()), "assignment")
        messages.append(f"closed without {missing} of {counted(len(status.missing), 'item')}")
    if status.mistakes:
        messages += [f"closed with {counted(len(status.mistakes), 'mistake')}:", *status.mistakes]
    return messages


def _describe_ties(path: Path, status: Status) -> list[str]:
    if not status.ties:
        return []
    ties = counted(status.ties, "item is tied and could", "items are tied and could")
    return [
        f"{ties} get one more annotator: `h2htalk round reopen {path}` requests one for each; otherwise an "
        f"adjudication decides them: `h2htalk round open adjudication {path} --out FOLDER`"
    ]


# --- What closing writes ----------------------------------------------------------------------------------------------


def _write_outcome(folder: RoundFolder, decisions: Sequence[Decision]) -> list[str]:
    """Write decisions, agreement, statistics and payment; return messages for the manager."""
    signed = decision_signer(folder, folder.items(), folder.annotations().values())
    write_jsonl(folder.path / "decisions.jsonl", (signed(one).to_dict() for one in decisions))
    return write_statistics(folder)


def write_statistics(folder: RoundFolder) -> list[str]:
    """Write agreement, statistics and payment of a closed round; return messages for the manager."""
    items, questions, annotations = folder.items(), folder.questions(), folder.annotations()
    agreement: dict[str, Any] = {
        question.name: agreement_of(votes_on(question, annotations.values()), question.level).to_dict()
        for question in questions
        if question.decided
    }
    write_json(folder.path / "agreement.json", agreement | {"mac": keyed_hash(folder, "agreement")(agreement)})
    removed = folder.removed_annotators()
    counted_ids = [annotator.id for annotator in folder.annotators() if annotator.id not in removed]
    rows = annotator_statistics(items, questions, annotations.values(), counted_ids)
    pass_gold = folder.spec().pass_gold
    write_text(folder.path / "annotator_statistics.csv", statistics_csv(rows, pass_gold))
    folder.write_private("payment.csv", _payment_csv(folder))
    if not any(item.gold for item in items):
        return []
    passed = qualified(rows, pass_gold)
    return _write_qualified(folder, {annotator for annotator, one in passed.items() if one})


def _payment_csv(folder: RoundFolder) -> str:
    """Return a CSV of annotators by name: completed and skipped items, and minutes.

    Skipped items are paid, too, and so are those of removed annotators.
    """
    annotations, minutes = folder.stored_annotations(), folder.spec().minutes
    completed = completed_items(folder.items(), folder.questions(), annotations)
    done = Counter(annotator for who in completed.values() for annotator in who)
    skipped = Counter(annotator for _, annotator in skips(annotations))
    for one in folder.erased_items():
        done.update(one.completed)
        skipped.update(one.skipped)
    rows = [(v.name, done[v.id], skipped[v.id], (done[v.id] + skipped[v.id]) * minutes) for v in folder.annotators()]
    return csv_text(("annotator", "items completed", "items skipped", "minutes"), rows)


def _write_qualified(folder: RoundFolder, passed: set[str]) -> list[str]:
    """Write the active annotators who passed the gold items as a list for `--annotators`; no list if nobody did."""
    active = [annotator for annotator in folder.annotators() if annotator.active]
    rows = [(v.name, " ".join(v.languages), v.crisis) for v in active if v.id in passed]
    path = folder.private / QUALIFIED
    result = "annotator_statistics.csv has each one's result"
    if not rows:
        remove_file(path)
        return [f"none of {len(active)} annotators passed the gold items, so {QUALIFIED} was not written; {result}"]
    folder.write_private(path.name, csv_text(COLUMNS, rows))
    return [f"{len(rows)} of {len(active)} annotators passed the gold items: use {path} as --annotators; {result}"]
