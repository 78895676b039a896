"""A round's folder: what was asked, of whom, what came back, and what was decided.

ROUND/
  round.json            the specification, questions, fingerprints
  items.jsonl           what annotators read
  guidelines/en.md      what they read first
  private/              names, the salt of their hashes, where things lay: never to be published
  spreadsheets/              what went out to annotators, by name: as private
  assignment_sets.jsonl           which items went out for how many answers, and who got them
  annotations.jsonl         answers as they came
  events.jsonl          opened, annotators, adjudicated, closed, reopened, and why
  decisions.jsonl ...   after closing
"""

from __future__ import annotations

import datetime
import hashlib
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from h2htalk.data.append_log import AppendLog, writer_lock
from h2htalk.data.files import (
    json_line,
    read_json_object,
    read_jsonl,
    write_json,
    write_jsonl,
    write_problem,
    write_text,
)
from h2htalk.data.languages import Language
from h2htalk.errors import DataError, RoundError
from h2htalk.rounds.annotations import Annotation, latest
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.settings import RoundSpec

Record = TypeVar("Record")

SALT_BYTES = 16
# Settings that are paths of the manager's machine.
PATHS = ("items", "annotators", "guidelines")
# What a closed round shows, and an open one must not.
OUTCOME = (
    "decisions.jsonl",
    "agreement.json",
    "annotator_statistics.csv",
    "private/payment.csv",
    "private/qualified.csv",
)


@dataclass(frozen=True, slots=True)
class RoundFolder:
    """The files of one round. Making the object touches nothing."""

    path: Path

    @property
    def name(self) -> str:
        """The round's name: what `round.json` says, the folder's name before there is one."""
        return str(self.facts().get("name", self.path.resolve().name))

    @property
    def exists(self) -> bool:
        return (self.path / "round.json").is_file()

    @property
    def private(self) -> Path:
        return self.path / "private"

    def facts(self) -> dict[str, Any]:
        """What `round.json` holds; empty before the round is there. Raises DataError."""
        try:
            return read_json_object(self.path / "round.json")
        except FileNotFoundError:
            return {}

    def require(self) -> None:
        """Raise RoundError unless a round is here."""
        if not self.exists:
            raise RoundError(
                f"{self.path}: no round here; `h2htalk round open` makes one, `h2htalk round list` finds them"
            )

    def spec(self) -> RoundSpec:
        """What the round was opened with; paths whole where the private folder is. Raises RoundError, DataError,
        ConfigError."""
        self.require()
        raw = self.facts().get("spec", {})
        if isinstance(raw, dict):
            raw |= {key: value for key, value in self.places().items() if key in PATHS}
        return RoundSpec.from_dict(raw, str(self.path / "round.json"))

    def places(self) -> dict[str, Any]:
        """Where items, annotators and guidelines lay when the round was opened; empty in a copy without `private`."""
        path = self.private / "source_paths.json"
        return read_json_object(path) if _is_there(path) else {}

    def write_places(self, places: Mapping[str, str]) -> None:
        write_json(self.private / "source_paths.json", places)
        self.protect()

    def items(self) -> tuple[Item, ...]:
        """What annotators read, by id. Raises DataError."""
        return tuple(Item.from_dict(record, where) for where, record in read_jsonl(self.path / "items.jsonl"))

    def questions(self) -> tuple[Question, ...]:
        """What is asked. Raises DataError, RoundError."""
        return questions_for(self.spec().kind, [item.labels for item in self.items()])

    def annotators(self) -> tuple[Annotator, ...]:
        """Everybody who was ever asked, in the order of the list. Raises DataError."""
        path = self.private / "annotators.jsonl"
        return tuple(annotator for _, annotator in read_records(path, Annotator)) if _is_there(path) else ()

    def write_annotators(self, annotators: Sequence[Annotator]) -> None:
        write_jsonl(self.private / "annotators.jsonl", map(asdict, annotators))
        self.protect()

    def write_private(self, name: str, text: str) -> None:
        """A file that holds names."""
        write_text(self.private / name, text)
        self.protect()

    def protect(self) -> None:
        """Close the private folder, and every file in it, to everybody but its owner. Raises DataError."""
        try:
            self.private.mkdir(parents=True, exist_ok=True)
            self.private.chmod(0o700)
            for path in self.private.iterdir():
                if path.is_file():
                    path.chmod(0o600)
        except OSError as error:
            raise DataError(f"{self.private}: {write_problem(error)}") from error

    def assignment_sets(self) -> tuple[AssignmentSet, ...]:
        """What went out, in order. Raises DataError."""
        path = self.path / "assignment_sets.jsonl"
        return (
            tuple(assignment_set for _, assignment_set in read_records(path, AssignmentSet))
            if path.exists()
            else ()
        )

    def write_assignment_sets(self, assignment_sets: Sequence[AssignmentSet]) -> None:
        write_jsonl(self.path / "assignment_sets.jsonl", map(asdict, assignment_sets))

    def guidelines(self, language: Language) -> str:
        """Markdown, as annotators of a language read it. Raises DataError."""
        path = self.path / "guidelines" / f"{language}.md"
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the guidelines cannot be read: {error}") from error

    # --- Answers and events -----------------------------------------------------------------------------------------

    def answers(self) -> dict[tuple[str, str, str], Annotation]:
        """By (item, annotator, question), the answers that count. Raises DataError."""
        return latest(answer for _, answer in self.answer_lines())

    def answer_lines(self) -> Iterator[tuple[str, Annotation]]:
        """Every answer that was ever stored, with `file:line`. Raises DataError."""
        path = self.path / "annotations.jsonl"
        if path.exists():
            for where, record in read_jsonl(path, torn_tail=True):
                yield where, Annotation.from_dict(record, where)

    def annotations_fingerprint(self, more: Sequence[Annotation] = ()) -> dict[str, Any]:
        """Number and fingerprint of the answers that count, whatever the order of their lines, as a closing notes them;
        with `more`, of those that count once these are added. SHA-256, 16 hexadecimal digits. Raises DataError."""
        counted = sorted(latest((*self.answers().values(), *more)).items())
        digest = hashlib.sha256()
        for _, answer in counted:
            digest.update(json_line(answer.to_dict()).encode())
        return {"answers": len(counted), "answers_sha256": digest.hexdigest()[:16]}

    def closed_with(self) -> dict[str, Any]:
        """`annotations_fingerprint` of the last closing; empty where there was none."""
        closed = [event for event in self.events() if event["event"] == "closed"]
        return {key: closed[-1].get(key) for key in ("answers", "answers_sha256")} if closed else {}

    def add_answers(self, answers: Sequence[Annotation]) -> None:
        """Append answers: all in one write. Raises DataError where they cannot be stored."""
        if answers:
            with AppendLog(self.path / "annotations.jsonl") as log:
                log.append_all(answer.to_dict() for answer in answers)

    def events(self) -> list[dict[str, Any]]:
        """What happened to the round, in order. Raises DataError."""
        path = self.path / "events.jsonl"
        found = []
        for where, record in read_jsonl(path, torn_tail=True) if path.exists() else ():
            if not isinstance(record.get("event"), str):
                raise DataError(
                    f"{where}: an event must say which under `event`; put the file back as it was"
                )
            found.append(record)
        return found

    def note(self, event: str, **facts: Any) -> None:
        """Add an event with the time of now."""
        with AppendLog(self.path / "events.jsonl") as log:
            log.append({"event": event, "when": now(), **facts})

    def discards(self) -> list[str]:
        """Rename what closing wrote, so that nothing in an open round looks final: `decisions.before-2.jsonl` is from
        before its second opening. Returns the new names; raises DataError."""
        opening = 2 + sum(event["event"] == "reopened" for event in self.events())
        moved = []
        for name in OUTCOME:
            path = self.path / name
            aside = path.with_name(f"{path.stem}.before-{opening}{path.suffix}")
            try:
                if path.exists():
                    os.replace(path, aside)
                    moved.append(aside.name)
            except OSError as error:
                raise DataError(f"{path}: {write_problem(error)}") from error
        return moved

    @property
    def state(self) -> str:
        """`open`, `closed`, or `half opened` where opening was interrupted."""
        last = [
            event["event"] for event in self.events() if event["event"] in ("opened", "closed", "reopened")
        ]
        if not last:
            return "half opened"
        return "closed" if last[-1] == "closed" else "open"

    def salt(self) -> bytes:
        """The secret under which names are hashed; made at the first call, before anything goes out. Raises
        DataError."""
        path = self.private / "salt"
        try:
            if not path.exists():
                if self.assignment_sets():
                    raise DataError(
                        f"{path}: is gone, and under another nobody is known; put it back as it was"
                    )
                self.protect()
                temporary = self.private / f".salt.{os.getpid()}"
                with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                    file.write(secrets.token_hex(SALT_BYTES) + "\n")
                os.replace(temporary, path)
            salt = bytes.fromhex(path.read_text(encoding="ascii"))
            if len(salt) != SALT_BYTES:
                raise ValueError(f"{len(salt)} bytes")
        except OSError as error:
            raise DataError(f"{path}: {write_problem(error)}") from error
        except ValueError as error:
            raise DataError(
                f"{path}: must hold {SALT_BYTES} bytes as hexadecimal digits; put it back as it was"
            ) from error
        return salt

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Be the one who changes the round; raises DataError where another process is."""
        with writer_lock(self.path / "round", "wait for it, or name another round"):
            yield


def now() -> str:
    """The time, ISO 8601 in UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def read_records(path: Path, record: type[Record]) -> Iterator[tuple[str, Record]]:
    """`(file:line, record)` of a JSONL file of ours; raises DataError where a line is none or has other fields."""
    from pydantic import ConfigDict, TypeAdapter, ValidationError
    from pydantic import with_config as configured

    adapter = TypeAdapter(configured(ConfigDict(extra="forbid"))(record))
    for where, raw in read_jsonl(path):
        try:
            yield where, adapter.validate_json(json_line(raw), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"]))
            raise DataError(f"{where}: {field}: {first['msg']}; put the file back as it was") from error


def _is_there(path: Path) -> bool:
    """Whether a private file is there; raises DataError where its folder is somebody else's."""
    try:
        return path.exists()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read: {error.strerror or error}; a round is its manager's alone"
        ) from error
