"""The state of a round: its files, read once and held against each other.

Somebody may have edited a file, or restored an old copy: whatever does not fit is an error with file and line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.data.files import read_jsonl, sha256_of
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import Annotation, Annotations, latest
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.assignment.remaining_annotations import remaining_requests
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, questions_for
from h2htalk.rounds.round_folder import (
    ANNOTATORS,
    ASSIGNMENT_SETS,
    RESTORE,
    SOURCES,
    Event,
    RoundFolder,
    annotations_fingerprint,
    items_fingerprint,
    phase_of,
    removed_annotators,
)
from h2htalk.rounds.settings import RoundSpec


@dataclass(frozen=True, slots=True)
class RoundState:
    """A round as its files tell it.

    Attributes:
        folder: of the round.
        manifest: content of `round.json`.
        spec, items, questions: of the round; items sorted by id.
        annotators: all that the round ever had; those who left or were removed are inactive.
        sets: assignment sets in the order in which they were made.
        events: in order.
        stored: the valid annotations of all annotators, removed ones included.
        annotations: those that count.
        completed: item -> annotators who completed it, by the annotations that count.
    """

    folder: RoundFolder
    manifest: Mapping[str, Any]
    spec: RoundSpec
    items: tuple[Item, ...]
    questions: tuple[Question, ...]
    annotators: tuple[Annotator, ...]
    sets: tuple[AssignmentSet, ...]
    events: Sequence[Event]
    stored: Annotations
    annotations: Annotations
    completed: Mapping[str, set[str]]

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def phase(self) -> str:
        """`open`, `closed`, or `partly opened` if opening was interrupted."""
        return phase_of(self.events)

    @property
    def removed(self) -> dict[str, str]:
        """Annotator id -> reason, of those whose annotations do not count."""
        return removed_annotators(self.events)

    @property
    def active(self) -> set[str]:
        """Ids of the annotators who are still in the round."""
        return {annotator.id for annotator in self.annotators if annotator.active}

    @property
    def fingerprint(self) -> dict[str, Any]:
        """Number and hash of the stored annotations."""
        return annotations_fingerprint(self.stored)

    @property
    def closed_with(self) -> dict[str, Any]:
        """`fingerprint` at the last closing or erasure after it; empty for a round never closed."""
        closed = [event for event in self.events if "annotations_sha256" in event]
        return {key: closed[-1][key] for key in ("annotations", "annotations_sha256")} if closed else {}

    def describe_removed(self) -> list[str]:
        """Return a message for each removed annotator."""
        names = {annotator.id: annotator.name for annotator in self.annotators}
        return [f"{names.get(one, one)} was removed and does not count ({why})" for one, why in self.removed.items()]

    def requests(self, annotators: Sequence[Annotator], *, ties: bool = False) -> dict[str, int]:
        """Return item -> number of further annotators that it needs, as `remaining_requests`."""
        return remaining_requests(self.spec, self.items, self.questions, self.annotations, annotators, ties=ties)

    def add(self, new: Sequence[Annotation], *, store: bool = True) -> RoundState:
        """Return the state with further annotations, after they were appended to the file unless not `store`."""
        if store:
            self.folder.add_annotations(new)
        return self._counted(latest([*self.stored.values(), *new])) if new else self

    def _counted(self, stored: Annotations) -> RoundState:
        removed = self.removed
        annotations = {key: one for key, one in stored.items() if one.annotator not in removed}
        completed = completed_items(self.items, self.questions, annotations)
        return replace(self, stored=stored, annotations=annotations, completed=completed)

    def require_published(self) -> None:
        """Raise RoundError if opening the round was interrupted before anything was published."""
        if not self.sets:
            raise RoundError(f"{self.folder.path}: {self.describe_opening()}")

    def describe_opening(self) -> str:
        """Return what to do about a partly opened round."""
        command = f"`h2htalk round open {self.spec.kind} {self.spec.items} --out {self.folder.path}`"
        return f"opening was interrupted; complete it with {command} and the same options"

    def require_annotator_list(self) -> None:
        """Raise DataError if items were published but the list of annotators is missing: nobody can be identified."""
        path = self.folder.path / ANNOTATORS
        if self.sets and not path.is_file():
            raise DataError(
                f"{path}: the file is missing, and annotations cannot be attributed without it; restore the round's "
                "folder `private`"
            )

    def require_unchanged(self) -> None:
        """Raise RoundError if the annotations of a closed round were changed."""
        if self.closed_with != self.fingerprint:
            before = self.closed_with.get("annotations")
            raise RoundError(
                f"{self.folder.path / 'annotations.jsonl'}: the file was changed after the round was closed ({before} "
                f"annotations then, {len(self.stored)} now); the decisions stay as they are. Restore the file, or "
                f"collect the annotations again with `h2htalk round reopen {self.folder.path}`"
            )

    def require_annotators(self, names: Iterable[str]) -> dict[str, Annotator]:
        """Return the annotators by name; raise RoundError if one of `names` is unknown."""
        known = {annotator.name: annotator for annotator in self.annotators}
        if unknown := sorted(set(names) - known.keys()):
            choices = f"choose from {', '.join(known)}"
            raise RoundError(f"{self.folder.path}: unknown annotator {', '.join(unknown)}; {choices}")
        return known


def read_state(folder: RoundFolder) -> RoundState:
    """Read a round.

    Assignment sets may name only the round's items and annotators, the items must be those that were published, with
    the records that they were made from, and every line of annotations.jsonl must be a valid annotation by one of the
    annotators. Annotators are not compared in a copy without `private`.

    Raises:
        DataError: a file is invalid or does not fit the others.
        RoundError, ConfigError: the folder holds no round, or its settings are invalid.
    """
    # Writers add annotators first, then assignment sets, then annotations. Reading in the opposite order finds
    # consistent files although another process adds to them.
    spec, events, lines = folder.spec(), folder.events(), list(folder.annotation_lines())
    sets, annotators, items = folder.assignment_sets(), folder.annotators(), folder.items()
    manifest = folder.manifest()
    _check_sets(folder, sets, annotators, items, events)
    if sets:
        _check_hashes(folder, manifest)
    questions = questions_for(spec.kind, [item.labels for item in items])
    by_id, asked = {item.id: item for item in items}, {question.name: question for question in questions}
    known = {annotator.id for annotator in annotators}
    for where, one in lines:
        if one.round != manifest.get("name"):
            raise DataError(f"{where}: this annotation is of the round {quoted(one.round)}; {RESTORE}")
        if known and one.annotator not in known:
            raise DataError(f"{where}: {quoted(one.annotator)} is not an annotator of this round; {RESTORE}")
        if problem := _annotation_problem(one, by_id, asked):
            raise DataError(f"{where}: {problem}; {RESTORE}")
    empty = RoundState(folder, manifest, spec, items, questions, annotators, sets, events, {}, {}, {})
    return empty._counted(latest(one for _, one in lines))


def _check_sets(
    folder: RoundFolder,
    sets: Sequence[AssignmentSet],
    annotators: Sequence[Annotator],
    items: Sequence[Item],
    events: Sequence[Event],
) -> None:
    """Raise DataError unless assignment sets, items and annotators fit together."""
    items_path, sets_path, people = (folder.path / name for name in ("items.jsonl", ASSIGNMENT_SETS, ANNOTATORS))
    for what, names in (
        (f"{items_path}: the item", [item.id for item in items]),
        (f"{people}: the annotator", [annotator.name for annotator in annotators]),
    ):
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise DataError(f"{what} {quoted(repeated[0])} occurs twice; {RESTORE}")
    if not sets and phase_of(events) != "partly opened":
        raise DataError(f"{sets_path}: contains no assignment set of a round that was opened; {RESTORE}")
    known, ids = {annotator.id for annotator in annotators}, {item.id for item in items}
    for number, one in enumerate(sets, 1):
        if one.number != number:
            raise DataError(
                f"{sets_path}: found assignment set {one.number} in place of assignment set {number}; {RESTORE}"
            )
        published = {*one.requested, *(item for group in one.groups for item in group)}
        if missing := sorted((published | {assignment.item for assignment in one.assignments}) - ids):
            raise DataError(
                f"{items_path}: the published item {quoted(missing[0])} is missing ({len(missing)} in all); {RESTORE}"
            )
        if known and (unknown := {assignment.annotator for assignment in one.assignments} - known):
            raise DataError(f"{people}: {len(unknown)} annotators with items are missing; {RESTORE}")


def _check_hashes(folder: RoundFolder, manifest: Mapping[str, Any]) -> None:
    """Raise DataError unless the items and their sources are those that were published."""
    path, sources = folder.path / "items.jsonl", folder.path / SOURCES
    if manifest.get("items_sha256") != items_fingerprint(record for _, record in read_jsonl(path)):
        raise DataError(f"{path}: a text, label or gold answer differs from the items that were published; {RESTORE}")
    recorded = manifest.get("sources_sha256")
    if recorded is not None and not (sources.is_file() and sha256_of(sources) == recorded):
        raise DataError(f"{sources}: differs from what was written with the items, or is missing; {RESTORE}")


def _annotation_problem(annotation: Annotation, items: Mapping[str, Item], questions: Mapping[str, Question]) -> str:
    """Return what is wrong with an annotation; empty if it is valid."""
    value, question = annotation.value, questions.get(annotation.question)
    if annotation.item not in items:
        return f"{quoted(annotation.item)} is not an item of this round"
    if annotation.question == SKIPPED:
        return "" if value in ("yes", None) else f"{quoted(value)} is not valid for skipped: use yes or null"
    if question is None:
        return f"{quoted(annotation.question)} is not a question of this round"
    if value is None:
        return ""
    try:
        read = question.read(value)
    except RoundError as error:
        return str(error)
    # "4" can be read as the rating 4; stored as text, only some statistics would count it.
    if read != value:
        return f"{quoted(value)} is not the stored form of {question.name}: use {quoted(read)}"
    labels = items[annotation.item].labels
    if question.name == "label" and labels and value not in labels:
        return f"{quoted(value)} is not a choice of this item: {', '.join(labels)}"
    return ""
