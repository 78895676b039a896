"""The folder of a round, and its state: its files, read once and checked against each other.

ROUND/
  round.json              specification, questions, fingerprints
  items.jsonl             what annotators read
  sources.jsonl           the records that items were made from: provenance, licence, references, review
  guidelines/en.md        what annotators read first
  private/                names, the salt of their hashes, source paths; never publish it
  spreadsheets/           spreadsheets by annotator name; as private
  links.jsonl             rounds that were opened from this one: paths on the manager's machine
  assignment_sets.jsonl   which items were published for how many annotators, and who got them
  annotations.jsonl       annotations as they were collected
  erased_votes.jsonl      votes of erased annotators that decisions count, without annotator, time and comment
  private/payments.jsonl  what closings listed as payments; append-only
  adjudications.jsonl     decisions of adjudication rounds on this round's ties
  events.jsonl            opened, annotators, removed, restored, adjudicated, closed, reopened, erased, deleted,
                          annotator erased
  decisions.jsonl ...     written when the round is closed
"""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import with_config as configured

from h2htalk.data.erasure.folder_kinds import ERASED, FOLDER_KINDS, require_erased
from h2htalk.data.files import (
    AppendLog,
    json_line,
    read_json_object,
    read_jsonl,
    reading,
    remove_half_written,
    write_jsonl,
    write_text,
    writer_lock,
    writing,
)
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.links import FILE as LINKS
from h2htalk.data.records import STRICT, read_record
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import Annotation, Annotations, latest
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.assignment.remaining_annotations import remaining_requests
from h2htalk.rounds.erased_annotators import (
    ERASED_ANNOTATORS,
    ERASED_VOTES,
    ErasedAnnotator,
    ErasedVotes,
    require_none_erased,
    votes_as_annotations,
)
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import READING_QUESTIONS, SKIPPED, Question, questions_for
from h2htalk.rounds.settings import RoundSpec

Record = TypeVar("Record")
Event = dict[str, Any]

SALT_BYTES = 16
# Settings that are paths on the manager's machine.
PATHS = ("items", "annotators", "guidelines")
ANNOTATORS, SOURCES, ASSIGNMENT_SETS = (
    "private/annotators.jsonl",
    "sources.jsonl",
    "assignment_sets.jsonl",
)
# Files that closing writes; an open round has none of them.
OUTCOME = (
    *("decisions.jsonl", "agreement.json", "annotator_statistics.csv", "shared_answers.jsonl"),
    *("private/payment.csv", "private/qualified.csv"),
)
# The lists of payments that closings made, and the file of the last one.
PAYMENTS, BONUS = "private/payments.jsonl", "private/prolific_bonus.csv"
# Participants of Prolific who are done, as of the last `status`.
DONE = "private/prolific_done.csv"
# What every participant of Prolific has done, and whether they submitted, as of the last `status`.
CHECKS = "private/prolific_check.csv"
# The folder of the workbooks, each named after its annotator.
SPREADSHEETS = "spreadsheets"
RESTORE = "restore the original file"
# What an erasure of an annotator was going to remove, while it is not finished; it holds their name.
PENDING_ERASURE = "private/erasing_annotator.json"
_erasing_here: set[str] = set()  # the rounds from which this process erases an annotator now


@dataclass(frozen=True, slots=True)
class ErasedItem:
    """An item that was erased, without its content: to which annotators it was assigned by name.

    Those who completed or skipped it stay paid for it.
    """

    id: str
    language: Language
    given_to: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundFolder:
    """The files of one round. Creating the object reads and writes nothing; all readers raise DataError."""

    path: Path

    @property
    def name(self) -> str:
        """Name of the round: from `round.json`, or the folder's name before that exists."""
        return str(self.manifest().get("name", self.path.resolve().name))

    @property
    def exists(self) -> bool:
        return os.path.isfile(self.path / "round.json")  # pathlib raises on a name that is too long

    @property
    def private(self) -> Path:
        return self.path / "private"

    def require(self) -> Self:
        """Return the folder; raise RoundError unless it holds a round."""
        if not self.exists:
            raise RoundError(
                f"{self.path}: not a round; create one with `h2htalk round open`, or find one with `h2htalk round list`"
            )
        return self

    def manifest(self) -> dict[str, Any]:
        """Return the content of `round.json`; empty if it does not exist. Raise while an erasure is not finished."""
        require_erased(self.path)
        self._require_annotator_erased()
        return read_json_object(self.path / "round.json", missing_ok=True)

    def _require_annotator_erased(self) -> None:
        """Raise DataError where the erasure of an annotator is not finished, unless this process erases them now."""
        if (
            self._has(self.path / PENDING_ERASURE)
            and os.path.realpath(self.path) not in _erasing_here
        ):
            raise DataError(
                f"{self.path}: the erasure of an annotator was interrupted here; start the same `h2htalk round "
                "erase-annotator` again"
            )

    @contextmanager
    def erasing_annotator(self) -> Iterator[None]:
        """Let this process read the round while an annotator is erased from it."""
        place = os.path.realpath(self.path)
        _erasing_here.add(place)
        try:
            yield
        finally:
            _erasing_here.discard(place)

    def spec(self) -> RoundSpec:
        """Return the specification, with full paths if `private` exists. Raise also RoundError, ConfigError."""
        self.require()
        paths = {key: value for key, value in self.source_paths().items() if key in PATHS}
        raw = self.manifest().get("spec")
        return RoundSpec.from_dict(
            raw | paths if isinstance(raw, dict) else {}, str(self.path / "round.json")
        )

    def source_paths(self) -> dict[str, Any]:
        """Return the paths of items, annotators, guidelines and workspace; empty in a copy without `private`."""
        path = self.private / "source_paths.json"
        return read_json_object(path) if self._has(path) else {}

    def items(self) -> tuple[Item, ...]:
        """Return the items, sorted by id."""
        return tuple(
            Item.from_dict(record, where) for where, record in read_jsonl(self.path / "items.jsonl")
        )

    def sources(self) -> dict[str, Mapping[str, Any]]:
        """Return item -> the record that it was made from; empty for a round that was opened without sources."""
        path = self.path / SOURCES
        return {
            line["id"]: line["record"] for _, line in (read_jsonl(path) if path.exists() else ())
        }

    def questions(self) -> tuple[Question, ...]:
        """Return the questions that the round asked when it was opened: those of an earlier version asked fewer."""
        return questions_for(
            self.spec().kind, [item.labels for item in self.items()], self.reading_questions()
        )

    def reading_questions(self) -> tuple[str, ...]:
        """Return the names of the reading questions that the round asks, as its manifest has them."""
        stored = self.manifest().get("questions")
        names = stored if isinstance(stored, list) else []
        return tuple(name for name in READING_QUESTIONS if name in names)

    def listed_annotators(self) -> tuple[Annotator, ...]:
        """Return the list of annotators as it is stored, in which removed ones are as they were."""
        return self._records(ANNOTATORS, Annotator)

    def annotators(self) -> tuple[Annotator, ...]:
        """Return all annotators that the round ever had, in the order of the list; removed ones are inactive."""
        removed = removed_annotators(self.events())
        return tuple(
            replace(one, active=False) if one.id in removed else one
            for one in self.listed_annotators()
        )

    @property
    def has_annotators(self) -> bool:
        """Whether the list of annotators is there; a copy without `private` has none."""
        return self._has(self.path / ANNOTATORS)

    def assignment_sets(self) -> tuple[AssignmentSet, ...]:
        """Return the assignment sets in the order in which they were made."""
        return self._records(ASSIGNMENT_SETS, AssignmentSet)

    def erased_items(self) -> tuple[ErasedItem, ...]:
        """Return what was erased from the round."""
        return self._records(f"private/{ERASED}", ErasedItem)

    def erased_annotators(self) -> tuple[ErasedAnnotator, ...]:
        """Return what is left of the annotators who were erased from the round."""
        return self._records(ERASED_ANNOTATORS, ErasedAnnotator)

    def erased_votes(self) -> tuple[ErasedVotes, ...]:
        """Return the votes of erased annotators that decisions count."""
        return self._records(ERASED_VOTES, ErasedVotes)

    def require_not_erased(self, annotators: Iterable[Annotator], path: Path) -> None:
        """Raise RoundError, beginning with `path`, if one of the annotators was erased from the round."""
        if all_erased := self.erased_annotators():
            require_none_erased(annotators, all_erased, self.salt(), path)

    def guidelines(self, language: Language) -> str:
        """Return the guidelines in one language, as Markdown."""
        path = self.path / "guidelines" / f"{language}.md"
        with reading(path):
            return path.read_text(encoding="utf-8")

    def _records(self, name: str, kind: type[Record]) -> tuple[Record, ...]:
        """Return the records of a JSONL file; none if it does not exist."""
        path = self.path / name
        return tuple(one for _, one in read_record_lines(path, kind)) if self._has(path) else ()

    def _has(self, path: Path) -> bool:
        with reading(path):  # the private folder may belong to another user
            return path.exists()

    def write_records(self, name: str, records: Iterable[Any]) -> None:
        """Write a JSONL file of records."""
        write_jsonl(self.path / name, map(asdict, records))
        self.protect()

    def write_private(self, name: str, text: str) -> None:
        """Write a file that contains names."""
        self.protect()
        write_text(self.private / name, text)
        self.protect()

    def protect(self) -> None:
        """Let only the owner read the private folder and its files."""
        protect_folder(self.private)

    # --- Annotations and events -------------------------------------------------------------------------------------

    def annotation_lines(self) -> Iterator[tuple[str, Annotation]]:
        """Yield every annotation that was ever stored, with `file:line`."""
        path = self.path / "annotations.jsonl"
        return (
            read_record_lines(path, Annotation, "", torn_tail=True) if path.exists() else iter(())
        )

    def annotations(self) -> dict[tuple[str, str, str], Annotation]:
        """Return the valid annotations by (item, annotator, question), without those of removed annotators."""
        removed, stored = (
            removed_annotators(self.events()),
            latest(one for _, one in self.annotation_lines()),
        )
        return {key: one for key, one in stored.items() if one.annotator not in removed}

    def add_annotations(self, annotations: Sequence[Annotation]) -> None:
        """Append annotations in one write."""
        if annotations:
            with AppendLog(self.path / "annotations.jsonl") as log:
                log.append(*(asdict(annotation) for annotation in annotations))

    def events(self) -> list[Event]:
        """Return the events of the round in order."""
        path = self.path / "events.jsonl"
        lines = [*read_jsonl(path, torn_tail=True)] if path.exists() else []
        for where, record in lines:
            if not isinstance(record.get("event"), str):
                raise DataError(f"{where}: an event needs a name under `event`; {RESTORE}")
        return [record for _, record in lines]

    def add_event(self, event: str, **facts: Any) -> None:
        """Append an event with the current time."""
        with AppendLog(self.path / "events.jsonl") as log:
            log.append({"event": event, "when": now(), **facts})

    @property
    def state(self) -> str:
        """`open`, `closed`, or `partly opened` if opening was interrupted."""
        return phase_of(self.events())

    def archive_outcome(self) -> list[str]:
        """Rename what closing wrote (`decisions.before-2.jsonl`: before the second opening); return the new names.

        Decisions that are made anew without an annotator count as an opening.
        """
        opening = 2 + sum(
            event["event"] == "reopened" or event.get("closed") is True for event in self.events()
        )
        renamed = []
        for path in map(self.path.joinpath, OUTCOME):
            if path.exists():
                target = path.with_name(f"{path.stem}.before-{opening}{path.suffix}")
                with writing(path):
                    os.replace(path, target)
                renamed.append(target.name)
        return renamed

    def archive_bonus(self) -> list[str]:
        """Rename the file of the last list of payments after the number of the list; return its new name."""
        if not (self.path / BONUS).exists():
            return []
        path = self.path / PAYMENTS
        # An earlier version stored no lists.
        number = max(1, sum(1 for _ in read_jsonl(path, torn_tail=True)) if path.exists() else 1)
        while (self.path / archived_bonus(number)).exists():
            number += 1
        target = self.path / archived_bonus(number)
        with writing(target):
            os.replace(self.path / BONUS, target)
        return [target.name]

    def salt(self) -> bytes:
        """Return the secret of the hashes of names."""
        path = self.private / "salt"
        try:
            return bytes.fromhex(path.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise DataError(
                f"{path}: no annotator can be identified without it ({error}); {RESTORE}"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the round for changes; raise DataError if another process has locked it.

        Files that a killed command left half written go: they hold texts, names and answers.
        """
        with writer_lock(self.path / "round", "wait for it, or name another round"):
            self.remove_half_written()
            yield

    def remove_half_written(self) -> None:
        """Remove what a killed command left half written of the files that the package writes into a round."""
        # Opening another round from this one writes links without the round's lock.
        remove_half_written(
            self.path, (*FOLDER_KINDS["round"].written, *self.workbooks()), keep=(LINKS,)
        )

    def workbooks(self) -> list[str]:
        """Return the paths of the annotators' workbooks in the folder; none where their list cannot be read."""
        try:
            names = [escape(one.name) for one in self.listed_annotators()]
        except DataError:  # the command that needs the list says what is wrong with it
            return []
        # Of the first assignment set, and of later ones.
        return [
            f"{SPREADSHEETS}/{name}{later}.xlsx" for name in names for later in ("", " set [0-9]*")
        ]


def archived_bonus(number: int) -> str:
    """Return the name of the file of a list of payments (numbered from 1) before the next one."""
    return f"{BONUS.removesuffix('.csv')}.before-{number + 1}.csv"


def phase_of(events: Iterable[Event]) -> str:
    """Return `open`, `closed`, or `partly opened` if opening was interrupted."""
    phases = {"opened": "open", "reopened": "open", "closed": "closed"}
    return ["partly opened", *(phases[one["event"]] for one in events if one["event"] in phases)][
        -1
    ]


def removed_annotators(events: Iterable[Event]) -> dict[str, str]:
    """Return annotator id -> reason, of those whose annotations do not count."""
    removed: dict[str, str] = {}
    for event in events:
        if event["event"] == "removed":
            removed[str(event.get("annotator"))] = str(event.get("why"))
        elif event["event"] == "restored":
            removed.pop(str(event.get("annotator")), None)
    return removed


def items_fingerprint(items: Iterable[Item]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over items sorted by id."""
    lines = sorted((item.id, json_line(item.to_dict())) for item in items)
    return hashlib.sha256("".join(line for _, line in lines).encode()).hexdigest()[:16]


def protect_folder(folder: Path) -> None:
    """Create a folder, and let only the owner read it and its files. Raise DataError."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        for path in folder.iterdir():
            if path.is_file() and not path.is_symlink():
                # A file of another user is protected by the folder.
                with suppress(PermissionError):
                    path.chmod(0o600)


def guideline_files(path: Path) -> list[Path]:
    """Return the guidelines of a round, a file `LANGUAGE.md` each."""
    return [
        one for language in LANGUAGES if (one := path / "guidelines" / f"{language}.md").is_file()
    ]


def now() -> str:
    """Return the current time in UTC, ISO 8601 to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def read_record_lines(
    path: Path, record: type[Record], advice: str = RESTORE, torn_tail: bool = False
) -> Iterator[tuple[str, Record]]:
    """Yield `file:line` and record of a JSONL file; raise DataError, ending with `advice`, if one does not fit."""
    configured(STRICT)(record)
    for where, raw in read_jsonl(path, torn_tail=torn_tail):
        yield where, read_record(record, raw, where, advice=f"; {advice}" if advice else "")


# --- State ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoundState:
    """A round as its files tell it: items by id, and all annotators that it ever had.

    Those who left or were removed are inactive. `stored` are the valid annotations of all, `annotations` those that
    count, and `completed` is item -> annotators who completed it by these.
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
        return [
            f"{names.get(one, one)} was removed and does not count ({why})"
            for one, why in self.removed.items()
        ]

    @property
    def judged_items(self) -> tuple[Item, ...]:
        """The items without the planted ones."""
        return tuple(item for item in self.items if not item.planted)

    @property
    def judged(self) -> list[Annotation]:
        """The annotations that count, without those of planted items: what decisions and statistics are made of."""
        planted = {item.id for item in self.items if item.planted}
        return [one for one in self.annotations.values() if one.item not in planted]

    def requests(self, annotators: Sequence[Annotator], *, ties: bool = False) -> dict[str, int]:
        """Return item -> number of further annotators that it needs, as `remaining_requests`, without planted ones."""
        items = self.judged_items
        return remaining_requests(
            self.spec, items, self.questions, self.annotations, annotators, ties=ties
        )

    def offered(self) -> set[str]:
        """Return the items that a server offers: those that need annotators, and the planted ones of the sets."""
        planted = {item.id for item in self.items if item.planted}
        handed_out = {name for one_set in self.sets for name in one_set.requested}
        return {*self.requests(self.annotators, ties=True), *(planted & handed_out)}

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
        command = (
            f"`h2htalk round open {self.spec.kind} {self.spec.items} --out {self.folder.path}`"
        )
        return f"opening was interrupted; complete it with {command} and the same options"

    def require_annotators(self, names: Iterable[str]) -> dict[str, Annotator]:
        """Return the annotators by name; raise RoundError if one of `names` is unknown."""
        known = {annotator.name: annotator for annotator in self.annotators}
        if unknown := sorted(set(names) - known.keys()):
            choices = f"choose from {', '.join(known)}"
            raise RoundError(
                f"{self.folder.path}: unknown annotator {', '.join(unknown)}; {choices}"
            )
        return known


def read_state(folder: RoundFolder) -> RoundState:
    """Read a round; raise DataError for a file that is invalid or names what the round does not have.

    Annotators are not compared in a copy without `private`.
    """
    # Writers add annotators first, then assignment sets, then annotations. Reading in the opposite order finds
    # consistent files although another process adds to them.
    spec, events, lines = folder.spec(), folder.events(), list(folder.annotation_lines())
    sets, annotators, items = folder.assignment_sets(), folder.annotators(), folder.items()
    questions = questions_for(
        spec.kind, [item.labels for item in items], folder.reading_questions()
    )
    published = {
        name for one in sets for name in (*one.requested, *(a.item for a in one.assignments))
    }
    assigned = {assignment.annotator for one in sets for assignment in one.assignments}
    known = {annotator.id for annotator in annotators}
    if missing := sorted(published - {item.id for item in items}):
        raise DataError(
            f"{folder.path / 'items.jsonl'}: the item {quoted(missing[0])} is missing; {RESTORE}"
        )
    if known and (unknown := assigned - known):
        raise DataError(
            f"{folder.path / ANNOTATORS}: {len(unknown)} annotators with items are missing; {RESTORE}"
        )
    by_id, asked = (
        {item.id: item for item in items},
        {question.name: question for question in questions},
    )
    for where, one in lines:
        if known and one.annotator not in known:
            raise DataError(
                f"{where}: {quoted(one.annotator)} is not an annotator of this round; {RESTORE}"
            )
        if not _is_valid(one, by_id, asked):
            raise DataError(f"{where}: not a valid annotation of this round; {RESTORE}")
    manifest = folder.manifest()
    empty = RoundState(
        folder, manifest, spec, items, questions, annotators, sets, events, {}, {}, {}
    )
    # Votes of erased annotators count like those of others, under codes that are nobody's.
    erased = votes_as_annotations(folder.erased_votes(), str(manifest["name"]), by_id)
    return empty._counted(latest(one for _, one in lines) | erased)


def _is_valid(
    annotation: Annotation, items: Mapping[str, Item], questions: Mapping[str, Question]
) -> bool:
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
