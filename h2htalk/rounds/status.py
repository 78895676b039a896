"""Status of a round: collect annotations from its platform and count them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.errors import H2HTalkError, RoundError, counted
from h2htalk.rounds.aggregation.annotator_warnings import annotator_warnings, answers_by_annotator
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import changes, skips
from h2htalk.rounds.annotator_changes import describe_removed
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    pending_annotations,
    remaining_requests,
)
from h2htalk.rounds.integrity import require_annotator_list, validate_round
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.round_folder import RoundFolder

# (item, annotator)
Pairs = Collection[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """Progress on the items of one language, by one annotator or by all.

    Attributes:
        annotator: name; `NAME (left)` of one who left the round; empty for all annotators.
        language: of the items.
        items: items assigned to the annotator, or all items. None if a server hands out the items.
        done: items that the annotator has completed, or that need no more annotators.
        open: items that are not done, and that the annotator has not skipped. None where `items` is.
        started: assignments with a draft or a partly filled row.
        skipped: skipped assignments.
    """

    annotator: str
    language: Language
    items: int | None
    done: int
    open: int | None
    started: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Status:
    """Status of a round. An assignment is one item given to one annotator, completed when they have answered it.

    Attributes:
        name, kind, where, state: which round; `open`, `closed`, `partly opened`, or in a list `cannot be read`.
        items: number of items, gold items included.
        items_done: items that need no more annotators.
        assignments: number of assignments: completed and missing ones.
        completed: completed assignments.
        skipped: skipped assignments.
        new: annotations that this call has collected.
        progress: progress on each language, then of each annotator.
        idle: active annotators without items.
        by_item: item -> completed assignments.
        missing: item -> missing assignments, as far as eligible annotators are left; of a tie, those that were
            published and are not completed.
        exhausted: item -> further annotations that it needs and nobody is left to give: skipped, left, not eligible.
        unassigned: items that need more annotators than have them: skipped, or not clear in an adaptive round.
        ties: tied items that could get one more annotator, which was not requested yet.
        mistakes: what cannot be counted.
        notes: messages for the manager.
    """

    name: str
    kind: str = ""
    where: str = ""
    state: str = "cannot be read"
    items: int = 0
    items_done: int = 0
    assignments: int = 0
    completed: int = 0
    skipped: int = 0
    new: int = 0
    progress: tuple[ProgressRow, ...] = ()
    idle: int = 0
    by_item: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    exhausted: Mapping[str, int] = field(default_factory=dict)
    unassigned: int = 0
    ties: int = 0
    mistakes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def round_status(path: Path) -> Status:
    """Collect new annotations of an open round, and return its status. A closed one loses what was erased from it.

    Raises:
        RoundError, DataError: the folder holds no round, or annotations cannot be read.
    """
    folder = RoundFolder(path).require()
    if not _can_collect(folder):
        validate_round(folder)
        return _with_notes(folder, compute_status(folder, Collected(notes=_erase_returned(folder))))
    with folder.locked():
        validate_round(folder)
        # Another process may have closed the round before this one locked it.
        if not _can_collect(folder):
            return _with_notes(folder, compute_status(folder, Collected()))
        require_annotator_list(folder)
        collected, new = collect_annotations(folder)
        return _with_notes(folder, compute_status(folder, collected, new))


def _erase_returned(folder: RoundFolder) -> tuple[str, ...]:
    """Remove erased items from spreadsheets that came back after closing; return what may still hold them."""
    items = [one.id for one in folder.erased_items()]
    if not items or not (platform := open_platform(folder.spec().where)).assigns_items:
        return ()
    with folder.locked():
        return tuple(platform.erase(folder, items))


def _with_notes(folder: RoundFolder, status: Status) -> Status:
    """Add what the manager should know of single annotators."""
    return replace(status, notes=(*status.notes, *describe_removed(folder), *_quality_warnings(folder)))


def _quality_warnings(folder: RoundFolder) -> list[str]:
    """Return the warnings about each annotator's answers, which closing writes to annotator_statistics.csv."""
    items, questions = {item.id: item for item in folder.items()}, folder.questions()
    answers = answers_by_annotator(folder.annotations().values())
    return [
        f"look at the answers of {annotator.name}: {warning}"
        for annotator in folder.annotators()
        if annotator.id in answers
        for warning in annotator_warnings(answers[annotator.id], answers, items, questions)
    ]


def _can_collect(folder: RoundFolder) -> bool:
    """Return whether something was published and the round is not closed."""
    return folder.state != "closed" and bool(folder.assignment_sets())


def collect_annotations(folder: RoundFolder) -> tuple[Collected, int]:
    """Collect annotations from the platform and store the new ones of active annotators.

    What annotators send after they left the round is not stored; a note counts it. `reopen_round` stores it when they
    return.

    Returns:
        What the platform holds, and the number of stored annotations.
    """
    collected = open_platform(folder.spec().where).collect(folder)
    annotators = folder.annotators()
    active = {annotator.id for annotator in annotators if annotator.active}
    changed, removed = changes(folder.stored_annotations(), collected.annotations), folder.removed_annotators()
    new = [annotation for annotation in changed if annotation.annotator in active]
    folder.add_annotations(new)
    ignored = {one.key[:2] for one in changed if one.annotator not in active and one.annotator not in removed}
    if ignored:
        names = {annotator.id: annotator.name for annotator in annotators}
        who = ", ".join(sorted({names.get(annotator, annotator) for _, annotator in ignored}))
        note = (
            f"new annotations of {counted(len(ignored), 'item')} by annotators who left ({who}) are not counted; to "
            f"count them, run `h2htalk round reopen {folder.path} --annotators` with a list that names them"
        )
        collected = replace(collected, notes=(*collected.notes, note))
    return collected, len(new)


def require_published(folder: RoundFolder) -> None:
    """Raise RoundError if opening the round was refused or interrupted before anything was published."""
    if not folder.assignment_sets():
        raise RoundError(f"{folder.path}: {_finish_opening(folder)}")


def _finish_opening(folder: RoundFolder) -> str:
    """Return what to do about a partly opened round."""
    spec = folder.spec()
    command = f"`h2htalk round open {spec.kind} {spec.items} --out {folder.path}` and the same options"
    if folder.assignment_sets():
        return f"opening was interrupted; complete it with {command}"
    return f"opening failed and nothing was published; correct what was refused, then run {command}"


def compute_status(folder: RoundFolder, collected: Collected, new: int = 0) -> Status:
    """Return the status of a round from its files and what was collected last."""
    spec, items, questions = folder.spec(), folder.items(), folder.questions()
    # In this order, so that `list_rounds`, which does not lock, reads no annotation of an annotator it does not know.
    state, annotations, sets = folder.state, folder.annotations(), folder.assignment_sets()
    annotators = folder.annotators()
    completed = completed_items(items, questions, annotations)
    skipped = skips(annotations)
    needed = remaining_requests(spec, items, questions, annotations, annotators)
    with_ties = remaining_requests(spec, items, questions, annotations, annotators, ties=True)
    open_items = [item for item in items if item.id in with_ties]
    pending = pending_annotations(open_items, sets, annotators, annotations, completed)
    left = {name: one.pending + one.available for name, one in pending.items()}
    exhausted = {name: count - left[name] for name, count in needed.items() if count > left[name]}
    needed = {name: min(count, left[name]) for name, count in needed.items()}
    # A tie needs the annotators that have it; the manager has not yet requested others.
    missing = {
        name: count
        for name, most in with_ties.items()
        if (count := max(needed.get(name, 0), min(most, pending[name].pending)))
    }
    other_ties = {name: count for name, count in with_ties.items() if name not in missing}
    requests, _ = annotations_to_request(other_ties, pending)
    partly = state == "partly opened"
    progress, idle = ((), 0) if partly else _progress(
        items, annotators, missing,
        assigned={(one.item, one.annotator) for one_set in sets for one in one_set.assignments},
        done={(item, annotator) for item, who in completed.items() for annotator in who},
        skipped=skipped, started=collected.started,
    )  # fmt: skip
    total = sum(map(len, completed.values()))
    return Status(
        name=folder.name,
        kind=spec.kind,
        where=spec.where,
        state=state,
        items=len(items),
        items_done=len(items) - len(missing),
        assignments=total + sum(missing.values()),
        completed=total,
        skipped=len(skipped),
        new=new,
        progress=progress,
        idle=idle,
        by_item={item: len(who) for item, who in sorted(completed.items())},
        missing=missing,
        exhausted=exhausted,
        unassigned=sum(count > pending[name].pending for name, count in missing.items()),
        ties=sum(len(completed[name]) <= spec.annotators_per_item for name in requests),
        mistakes=collected.mistakes,
        notes=(*collected.notes, *([_finish_opening(folder)] if partly else [])),
    )


def _progress(
    items: Sequence[Item],
    annotators: Sequence[Annotator],
    missing: Collection[str],
    *,
    assigned: Pairs,
    done: Pairs,
    skipped: Pairs,
    started: Pairs,
) -> tuple[tuple[ProgressRow, ...], int]:
    """Return the progress on each language and of each annotator, and the number of active annotators without items."""
    language = {item.id: item.language for item in items}
    remaining = set(assigned) - set(done) - set(skipped)
    given, completed, left, begun, passed = (
        Counter((annotator, language[item]) for item, annotator in pairs)
        for pairs in (assigned, done, remaining, started, skipped)
    )
    total, short = Counter(language.values()), Counter(language[item] for item in missing)
    languages = sorted(total)
    rows = []
    for one in languages:
        starts, skips_ = (sum(n for (_, of), n in counts.items() if of == one) for counts in (begun, passed))
        rows.append(ProgressRow("", one, total[one], total[one] - short[one], short[one], starts, skips_))
    idle = 0
    for annotator in annotators:
        before = len(rows)
        has_counts = annotator.active and bool(assigned)
        # No name contains a space, so nobody else is called `NAME (left)`.
        name = annotator.name if annotator.active else f"{annotator.name} (left)"
        for one in languages:
            key = annotator.id, one
            expected = given[key] if assigned else one in annotator.languages
            if completed[key] or passed[key] or (annotator.active and expected):
                numbers = (given[key], left[key]) if has_counts else (None, None)
                rows.append(ProgressRow(name, one, numbers[0], completed[key], numbers[1], begun[key], passed[key]))
        idle += annotator.active and len(rows) == before
    return tuple(rows), idle


def list_rounds(path: Path) -> Iterator[Status]:
    """Yield the status of every round in a folder and its subfolders, as of the last collection.

    Their names are the paths of their folders. A round that cannot be read is yielded with the error among its notes.

    Raises:
        RoundError: the folder does not exist.
    """
    if not path.is_dir():
        raise RoundError(f"{path}: folder not found")
    for manifest in sorted(path.rglob("round.json")):
        folder = RoundFolder(manifest.parent)
        try:
            if "spec" in folder.manifest():
                validate_round(folder)
                yield replace(compute_status(folder, Collected()), name=str(manifest.parent))
        except H2HTalkError as error:
            yield Status(str(manifest.parent), notes=(str(error),))
