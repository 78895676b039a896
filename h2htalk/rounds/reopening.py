"""Reopen a round: request more annotators for items that need them, and count annotations that came late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from h2htalk.errors import RoundError, counted
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import Annotation, changes, latest
from h2htalk.rounds.annotator_changes import changed_annotators, describe_removed
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    pending_annotations,
    remaining_requests,
)
from h2htalk.rounds.integrity import require_annotator_list, validate_round
from h2htalk.rounds.opening import make_assignment_set
from h2htalk.rounds.platforms import Collected, Platform, open_platform
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status, compute_status, require_published


def reopen_round(
    path: Path, *, without: Sequence[str] = (), annotators: Path | None = None
) -> tuple[Status, list[str]]:
    """Give items that need more annotators to others than those who annotated them or left.

    Such items are below the overlap (skips, annotators who left), not clear in an adaptive round, or tied. A closed
    round is open again if there are any, if annotations came after it was closed, or if annotations.jsonl was changed
    since; then everything that the platform holds counts. Annotations by annotators who return count, too.

    An item gets as many annotators as are left for it. If nobody is, only changed annotators of an open round are
    stored. If the call is interrupted, the same call completes it.

    Args:
        path: the round, open or closed.
        without: names of annotators who left; their annotations stay.
        annotators: CSV file of annotators who join or return, or whose languages or consent changed.

    Raises:
        RoundError: a name is unknown, no item needs annotators, nobody is available, or nothing was published yet.
        DataError: a file of the round is invalid.
    """
    folder = RoundFolder(path).require()
    platform = open_platform(folder.spec().where)
    with folder.locked():
        validate_round(folder)
        require_published(folder)
        require_annotator_list(folder)
        platform.check(folder)
        closed = folder.state == "closed"
        altered = closed and folder.closed_fingerprint() != folder.annotations_fingerprint()
        collected = platform.collect(folder)
        changed = changed_annotators(folder, without, annotators)
        removed = folder.removed_annotators()
        new = changes(folder.stored_annotations(), collected.annotations)
        new = [annotation for annotation in new if annotation.annotator not in removed]
        now, late = _split_new(folder, new, changed, closed, altered)
        folder.add_annotations(now)
        requests = _compute_requests(folder, platform, changed, late, collected.offered)
        reopens = closed and bool(late or requests.items or altered)
        if not requests.items and not reopens and not (now or late) and changed == folder.annotators():
            raise RoundError(f"{path}: every item already has enough annotators; nothing to hand out")
        unchanged = closed or changed == folder.annotators()
        if requests.exhausted and unchanged and not requests.requested and not late and not altered:
            raise RoundError(
                f"{path}: {counted(requests.exhausted, 'item needs', 'items need')} more annotators, but no eligible "
                "annotator is left; add some with --annotators, or close the round and open an adjudication of its "
                "ties; nothing was changed"
            )
        messages = [requests.describe(), *(describe_removed(folder) if annotators else ())]
        sets = folder.assignment_sets()
        if requests.requested:
            number = len(sets) + 1
            requested = requests.requested
            sets += (make_assignment_set(folder, platform, number, folder.items(), requested, changed),)
        reopened: list[str] = []
        if requests.requested or reopens:
            # The event comes first: interrupted after any later write, the round is open, so that closing it again
            # misses nothing that was published or collected. An altered annotations.jsonl is repaired before it.
            folder.add_annotations(late if altered else ())
            if renamed := folder.archive_outcome():
                reopened = [f"the round is open again; earlier results were renamed to {', '.join(renamed)}"]
            assignments = sum(requests.requested.values())
            folder.add_event("reopened", items=len(requests.requested), assignments=assignments, left=len(without))
        folder.add_annotations(() if altered else late)
        messages += _write_annotators(folder, changed)
        folder.write_assignment_sets(sets)
        messages += [*platform.publish(folder), *reopened, *_describe_late(late, closed, altered)]
        folder.protect()
        return compute_status(folder, Collected()), messages


def _split_new(
    folder: RoundFolder, new: Sequence[Annotation], changed: Sequence[Annotator], closed: bool, altered: bool
) -> tuple[list[Annotation], list[Annotation]]:
    """Divide new annotations into those that count now, and those that count once the round is open.

    Until a closed round is open again, its decisions stand. Annotations by annotators who left count only if they
    return; but if annotations.jsonl was altered, nobody knows which annotations were there before, so all count.
    """
    active = {annotator.id for annotator in folder.annotators() if annotator.active}
    returning = {annotator.id for annotator in changed if annotator.active} - active
    now = [] if closed else [one for one in new if one.annotator in active]
    late = [one for one in new if altered or one.annotator in returning or (closed and one.annotator in active)]
    return now, late


class _Requests(NamedTuple):
    """What a round needs."""

    items: int  # that need more annotators
    requested: Mapping[str, int]  # item -> number of annotators to request now
    exhausted: int  # items for which too few annotators are available
    pending: int  # assignments of the items that need more

    def describe(self) -> str:
        nobody = f"no eligible annotator is left for {counted(self.exhausted, 'item')}"
        if self.requested:
            assignments = counted(sum(self.requested.values()), "assignment")
            rest = f"; {nobody}" if self.exhausted else ""
            return f"handed out {assignments} of {counted(len(self.requested), 'item')}{rest}"
        if self.pending:
            return (
                f"nothing new to hand out: {counted(self.pending, 'assignment is', 'assignments are')} still pending; "
                "wait, or name annotators who left with --without"
            )
        return f"nothing to hand out: {nobody if self.exhausted else 'every item already has enough annotators'}"


def _compute_requests(
    folder: RoundFolder,
    platform: Platform,
    annotators: Sequence[Annotator],
    late: Sequence[Annotation],
    offered: Mapping[str, int] | None,
) -> _Requests:
    items, questions = folder.items(), folder.questions()
    annotations = latest((*folder.annotations().values(), *late))
    needed = remaining_requests(folder.spec(), items, questions, annotations, annotators, ties=True)
    completed = completed_items(items, questions, annotations)
    open_items = [item for item in items if item.id in needed]
    sets = folder.assignment_sets()
    pending = pending_annotations(open_items, sets, annotators, annotations, completed, offered)
    requested, exhausted = annotations_to_request(needed, pending, replace=not platform.assigns_items)
    return _Requests(len(needed), requested, exhausted, sum(pending[name].pending for name in needed))


def _describe_late(late: Sequence[Annotation], closed: bool, altered: bool) -> list[str]:
    if not late:
        return []
    items = counted(len({one.key[:2] for one in late}), "item")
    if altered:
        return [f"annotations.jsonl was changed after closing; annotations of {items} were collected again"]
    if closed:
        return [f"annotations of {items} that came after closing count now; close the round again"]
    return [f"annotations of {items} by returning annotators count now"]


def _write_annotators(folder: RoundFolder, annotators: Sequence[Annotator]) -> list[str]:
    """Store the round's annotators; record who joined, left or changed, by salted hash."""
    before = {annotator.id: annotator for annotator in folder.annotators()}
    other = [annotator for annotator in annotators if before.get(annotator.id) != annotator]
    if not other:
        return []
    folder.add_event(
        "annotators",
        joined=[annotator.id for annotator in other if annotator.id not in before],
        left=[annotator.id for annotator in other if not annotator.active],
        changed=[annotator.id for annotator in other if annotator.active and annotator.id in before],
    )
    folder.write_annotators(annotators)
    return ["the list of annotators was updated"]
