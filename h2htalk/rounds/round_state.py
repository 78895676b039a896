"""The state of a round: its files, read once and checked against each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    RESTORE,
    Event,
    RoundFolder,
    phase_of,
    removed_annotators,
)
from h2htalk.rounds.settings import RoundSpec


@dataclass(frozen=True, slots=True)
class RoundState:
    """A round as its files tell it.

    Attributes:
        manifest: content of `round.json`.
        items: items sorted by id.
        annotators: all that the round ever had; those who left or were removed are inactive.
        sets: assignment sets in the order in which they were made.
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
        return str(self.manifest["name"])

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
        """Raise RoundError if nothing was published, DataError if the list of annotators is missing."""
        if not self.sets:
            raise RoundError(f"{self.folder.path}: {self.describe_opening()}")
        path = self.folder.path / ANNOTATORS
        if not path.is_file():
            raise DataError(
                f"{path}: the file is missing, and annotations cannot be attributed without it; restore the round's "
                "folder `private`"
            )

    def describe_opening(self) -> str:
        """Return what to do about a partly opened round."""
        command = f"`h2htalk round open {self.spec.kind} {self.spec.items} --out {self.folder.path}`"
        return f"opening was interrupted; complete it with {command} and the same options"

    def require_annotators(self, names: Iterable[str]) -> dict[str, Annotator]:
        """Return the annotators by name; raise RoundError if one of `names` is unknown."""
        known = {annotator.name: annotator for annotator in self.annotators}
        if unknown := sorted(set(names) - known.keys()):
            choices = f"choose from {', '.join(known)}"
            raise RoundError(f"{self.folder.path}: unknown annotator {', '.join(unknown)}; {choices}")
        return known


def read_state(folder: RoundFolder) -> RoundState:
    """Read a round; raise DataError for a file that is invalid or names what the round does not have.

    Annotators are not compared in a copy without `private`.
    """
    # Writers add annotators first, then assignment sets, then annotations. Reading in the opposite order finds
    # consistent files although another process adds to them.
    spec, events, lines = folder.spec(), folder.events(), list(folder.annotation_lines())
    sets, annotators, items = folder.assignment_sets(), folder.annotators(), folder.items()
    questions = questions_for(spec.kind, [item.labels for item in items])
    published = {name for one in sets for name in (*one.requested, *(a.item for a in one.assignments))}
    assigned = {assignment.annotator for one in sets for assignment in one.assignments}
    known = {annotator.id for annotator in annotators}
    if missing := sorted(published - {item.id for item in items}):
        raise DataError(f"{folder.path / 'items.jsonl'}: the item {quoted(missing[0])} is missing; {RESTORE}")
    if known and (unknown := assigned - known):
        raise DataError(f"{folder.path / ANNOTATORS}: {len(unknown)} annotators with items are missing; {RESTORE}")
    by_id, asked = {item.id: item for item in items}, {question.name: question for question in questions}
    for where, one in lines:
        if known and one.annotator not in known:
            raise DataError(f"{where}: {quoted(one.annotator)} is not an annotator of this round; {RESTORE}")
        if not _is_valid(one, by_id, asked):
            raise DataError(f"{where}: not a valid annotation of this round; {RESTORE}")
    empty = RoundState(folder, folder.manifest(), spec, items, questions, annotators, sets, events, {}, {}, {})
    return empty._counted(latest(one for _, one in lines))


def _is_valid(annotation: Annotation, items: Mapping[str, Item], questions: Mapping[str, Question]) -> bool:
    """Return whether an annotation is of a known item and question, with the stored form of a possible answer."""
    value, question = annotation.value, questions.get(annotation.question)
    if annotation.item not in items or (question is None and annotation.question != SKIPPED):
        return False
    if value is None or question is None:
        return value in ("yes", None)
    try:
        return question.read(value) == value
    except RoundError:
        return False
