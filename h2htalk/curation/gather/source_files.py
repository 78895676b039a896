"""A source: its files with their fingerprints, and its items in order, each with its ids."""

from __future__ import annotations

import hashlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from h2htalk.curation.gather import formats, records
from h2htalk.curation.gather.encodings import UTF8
from h2htalk.curation.gather.exports.logs.chat_log import compile_pattern
from h2htalk.curation.gather.exports.logs.joined_lines import LINES
from h2htalk.curation.gather.exports.programs import PROGRAMS, export_records
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.gather.records import OnRead, Record
from h2htalk.curation.role_names import ROLE_NAMES
from h2htalk.curation.stage_records import combined_hash
from h2htalk.curation.stages import Source, resolve_path
from h2htalk.data.files import is_whole
from h2htalk.detect.duplicates.compared_texts import text_hash
from h2htalk.errors import ConfigError, listed, quoted, suggest

# Two strangers begin with the same words; where the file names no person, fewer characters are no conversation.
LEAST_CHARACTERS = 40
# Settings of a source that later versions added, and their defaults.
LATER_SETTINGS: Mapping[str, Any] = {
    "encoding": "",
    "companion": "",
    "date_order": "",
    "silence": 12.0,
    "pattern": "",
    "leave_out": {},
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source, or the lines that were added to one: its bytes from `start` to `end`."""

    path: Path
    name: str  # its path in the source's folder; empty where the source is the file itself, or a data set
    start: int
    end: int
    sha256: str
    update: int = 0  # the number of the update that found it
    by_content: bool = (
        False  # the whole file, of which an update reads the items that were not gathered before
    )
    nothing_new: bool = False  # an update compared it, and found nothing in it


def file_fields(file: SourceFile) -> dict[str, Any]:
    """A file as the stage stores it."""
    fields: dict[str, Any] = {
        "name": file.name,
        "start": file.start,
        "end": file.end,
        "sha256": file.sha256,
        "update": file.update,
    }
    # As earlier versions stored them, where no update compared contents.
    if file.by_content:
        fields["by_content"] = True
    if file.nothing_new:
        fields["nothing_new"] = True
    return fields


class ChangedSourceError(ConfigError):
    """A gathered file has changed, or there is something new.

    Attributes:
        gathered: the gathered files, where they are as they were and there is only something new.
    """

    def __init__(self, message: str, gathered: Sequence[SourceFile] = ()) -> None:
        super().__init__(message)
        self.gathered = tuple(gathered)


@dataclass(frozen=True, slots=True)
class GatheredBefore:
    """What the stage has gathered of a source, and whether somebody was erased from it."""

    files: Sequence[Mapping[str, Any]]  # as it stores them
    has_erasures: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a source."""

    id: str  # the source's name and `row`
    row: int  # from 1 in the way of the format, through all files
    line: int | None  # where it begins in `file`; None where the format has no lines
    content: RawDialogue | RefusedItem
    file: str  # name and update of its `SourceFile`
    update: int
    person: str | None = None  # our ids of the user and the question that the file names
    question: str | None = None


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source and what it reads."""

    source: Source
    place: str  # for messages
    files: tuple[SourceFile, ...]  # in the order in which they are read
    name_keys: tuple[str, ...] = ()  # of records, beside the usual ones, that hold the user's name

    @property
    def sha256(self) -> str:
        """Of all files that gave items."""
        return combined_hash([file.sha256 for file in self.files if not file.nothing_new])

    def files_of(self, update: int) -> list[SourceFile]:
        """The files that an update found."""
        return [file for file in self.files if file.update == update and not file.nothing_new]

    def to_settings(self) -> dict[str, Any]:
        """What changes its dialogues; the place of the files does not."""
        values = {
            name: getattr(self.source, name)
            for name in ("name", "format", "language", "licence", "limit")
        }
        tables = {name: dict(getattr(self.source, name)) for name in ("roles", "columns")}
        # Settings of later versions, where they are set: what was gathered without them stays as it is.
        later = {
            name: value
            for name in LATER_SETTINGS
            if (value := getattr(self.source, name)) != LATER_SETTINGS[name]
        }
        if "leave_out" in later:
            later["leave_out"] = {
                name: list(values) for name, values in self.source.leave_out.items()
            }
        return values | tables | later | {"sha256": self.sha256}

    def encodings(self) -> dict[str, str]:
        """The files that are read in another encoding than UTF-8, by name."""
        if self.source.encoding or records.HUB_DATASET.fullmatch(
            self.source.path.partition("#")[0]
        ):
            return {}
        found = {file.name: records.encoding_of(file.path) for file in self.files}
        return {name: encoding for name, encoding in found.items() if encoding != UTF8}

    def items(self, on_read: OnRead) -> Iterator[Item]:
        """Its items, with ids that do not depend on the size of parts. Raises ConfigError where no record has a key of
        `columns`, and DataError."""
        name = self.source.name
        before = 0
        count = 0
        person = _numbers(f"{name}-p")
        question = _numbers(f"{name}-q")
        columns = (
            key for name, key in self.source.columns.items() if name not in formats.MESSAGE_COLUMNS
        )
        unseen = set(columns)
        keys = dict[str, None]()
        for file in self.files:
            last = 0
            skipped = None if file.start else 0
            for row, line, value in self._records(file, on_read):
                if unseen and isinstance(value, dict):
                    unseen.difference_update(value)
                    keys.update(dict.fromkeys(() if keys else value))
                content = self._content(value)
                skipped = row - 1 if skipped is None else skipped
                last = row - skipped
                named = (
                    (person(content.person), question(content.question))
                    if isinstance(content, RawDialogue)
                    else ()
                )
                yield Item(
                    f"{name}-{before + last:06}",
                    before + last,
                    line,
                    content,
                    file.name,
                    file.update,
                    *named,
                )
                count += 1
                if count == self.source.limit:
                    return
            before += last
        if unseen and keys:
            found = f"{suggest(min(unseen), keys)}the first record has {listed(list(keys))}"
            raise ConfigError(
                f"source {name!r}: columns: no record has {listed(sorted(unseen))}; {found}"
            )

    def contents(
        self, file: SourceFile, on_read: OnRead
    ) -> Iterator[tuple[int | None, RawDialogue | RefusedItem]]:
        """Line and content of each item of a file. Raises ConfigError, DataError."""
        for _, line, value in self._records(file, on_read):
            yield line, self._content(value)

    def _records(self, file: SourceFile, on_read: OnRead) -> Iterator[Record]:
        form, (place, _, split) = self.source.format, self.source.path.partition("#")
        if form in PROGRAMS:
            return export_records(file.path, file.name, self.source, on_read)
        if form == formats.MEMORY_BANK:
            users = records.json_members(file.path, on_read, self.source.encoding)
            days = (day for key, user in users for day in formats.read_days(key, user))
            return ((row, None, day) for row, day in enumerate(days, 1))
        if records.HUB_DATASET.fullmatch(place) or file.path.is_dir():
            return records.dataset_records(str(file.path), split or None)
        is_table = form == formats.QUESTION_ANSWERS
        return records.file_records(
            file.path, on_read, (file.start, file.end), is_table, self.source.encoding
        )

    def _content(self, value: Any) -> RawDialogue | RefusedItem:
        """The dialogue of a record, with the user's names in it, and without a model's reasoning."""
        content = (
            value if isinstance(value, RawDialogue | RefusedItem) else self._read_record(value)
        )
        return content if isinstance(content, RefusedItem) else formats.without_reasoning(content)

    def _read_record(self, value: Any) -> RawDialogue | RefusedItem:
        form = self.source.format
        if isinstance(value, dict):
            columns = self.source.columns.items()
            of_record = (
                (ours, theirs) for ours, theirs in columns if ours not in formats.MESSAGE_COLUMNS
            )
            value = {
                **value,
                **{ours: value[theirs] for ours, theirs in of_record if theirs in value},
            }
        options: dict[str, Any] = {}
        if form in formats.WITH_ROLES:
            options["roles"] = {**ROLE_NAMES, **self.source.roles}
            options["keys"] = formats.MessageKeys.of_columns(self.source.columns)
        try:
            raw: RawDialogue = formats.READERS[form](value, **options)
        except RefusedItem as refused:
            return refused
        return replace(
            raw, metadata={**raw.metadata, **formats.read_user_names(value, self.name_keys)}
        )


def _numbers(prefix: str) -> Callable[[str | None], str | None]:
    """A function that numbers names in the order of their first use; a name is kept as eight bytes of its hash."""
    known: dict[int, int] = {}
    return lambda name: name and f"{prefix}{known.setdefault(text_hash(name), len(known) + 1):04}"


def plan_source(
    source: Source, folder: Path, gathered: GatheredBefore | None = None, update: int = 0
) -> SourcePlan:
    """Find the files of a source, whose relative path is relative to `folder`. `gathered`: what the stage has read of
    it; `update`: the number of an update, which reads what is new too, or 0.

    Raises ConfigError for a missing file and another format, and ChangedSourceError, which names it, where a gathered
    file is missing, has changed, or something is new and there is no `update`.
    """
    where = f"source {source.name!r}"
    form = source.format
    _check_settings(source, where)
    on_hub = source.path.startswith("hub:")
    try:
        path = Path(source.path) if on_hub else resolve_path(source.path, folder)
    except KeyError as unset:
        raise ConfigError(
            f"{where}: ${unset.args[0]} is not set; set it to the folder of the data"
        ) from None
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    named = {"": path} if on_hub else _files(path)
    if form in PROGRAMS and "" not in named:
        named = {name: file for name, file in named.items() if PROGRAMS[form].is_file(file.name)}
    if not named and not (gathered is not None and gathered.has_erasures):
        raise ConfigError(
            f"{where}: {path}: {'the folder holds no file to read' if path.is_dir() else 'no such file'}"
        )
    tables = [
        file for file in named.values() if not file.is_file() or file.suffix == records.PARQUET
    ]
    if form == formats.MEMORY_BANK and tables:
        raise ConfigError(f"{where}: the format {form} is read from a JSON file, not from a table")
    if on_hub:
        place, _, split = source.path.partition("#")
        if records.HUB_DATASET.fullmatch(place) is None:
            wanted = "hub:OWNER/NAME@COMMIT[:CONFIG][#SPLIT]; write all 40 digits of the commit, as a branch may change"
            raise ConfigError(f"{quoted(source.path)} is not of the form {wanted}")
        files = [SourceFile(Path(place), "", 0, 0, f"{place}#{split}")]
    elif gathered is None:
        files = [_hashed(file, name) for name, file in named.items()]
    else:
        files = _gathered_and_new(named, gathered, f"gather: {where}: the", form, update)
    return SourcePlan(source, str(path), tuple(files))


def _check_settings(source: Source, where: str) -> None:
    """Raise ConfigError for a setting that the format does not read, and for one that it needs."""
    form = source.format
    if source.roles and form not in formats.WITH_ROLES and form not in PROGRAMS:
        raise ConfigError(f"{where}: the format {form} names no roles; remove `roles`")
    columns = PROGRAMS[form].columns if form in PROGRAMS else tuple(formats.COLUMNS[form].split())
    if unread := [name for name in source.columns if name not in columns]:
        known = " ".join(columns) or "none"
        raise ConfigError(f"{where}: columns: the format {form} reads no {unread[0]}, but {known}")
    if source.companion and form not in PROGRAMS:
        advice = f'roles = {{ {quoted(source.companion.lower())} = "companion" }}'
        raise ConfigError(
            f"{where}: the format {form} names no companion; say who the roles are: {advice}"
        )
    if form in PROGRAMS and source.path.startswith("hub:"):
        raise ConfigError(f"{where}: the format {form} is read from files, not from a data set")
    if form == "chat_log" and not source.pattern:
        example = r"pattern = '\[(?P<time>[^\]]+)\] (?P<speaker>[^:]+): (?P<text>.*)'"
        raise ConfigError(
            f"{where}: the format {form} needs a pattern of its lines, such as {example}"
        )
    if source.pattern:
        compile_pattern(source.pattern, where)
    if source.leave_out and form not in ("turns", "chat_log"):
        raise ConfigError(f"{where}: leave_out: the formats turns and chat_log read it, not {form}")
    if form == "chat_log" and set(source.leave_out) - {LINES}:
        raise ConfigError(f"{where}: leave_out: a chat_log has {LINES}, and no columns")


def _files(place: Path) -> dict[str, Path]:
    """The files of a source by name: the file or the saved data set itself, or a folder's in the order of paths."""
    if place.is_file():
        return {"": place}
    saved = place.with_name(place.name.partition("#")[0])
    # What `save_to_disk` of a `Dataset` or a `DatasetDict` writes.
    if any((saved / name).is_file() for name in ("state.json", "dataset_dict.json")):
        return {"": saved}
    if not place.is_dir() and not is_pattern(place.name):
        return {}
    folder, found = (
        (place, place.rglob("*"))
        if place.is_dir()
        else (place.parent, place.parent.glob(place.name))
    )
    visible = sorted(path for path in found if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path for path in visible}


def is_pattern(name: str) -> bool:
    """Whether the last part of a path is a pattern of file names."""
    return not set("*?[").isdisjoint(name)


def _parts(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _size(path: Path) -> int:
    return sum(part.stat().st_size for part in _parts(path))


def _hashed(
    path: Path, name: str, start: int = 0, end: int | None = None, update: int = 0
) -> SourceFile:
    """Some bytes of a file, all of them, or a saved data set."""
    end = _size(path) if end is None else end
    hashes = []
    for part in _parts(path):
        digest = hashlib.sha256()
        with part.open("rb") as file:
            file.seek(start)
            while chunk := file.read(min(1 << 20, max(end - file.tell(), 0))):
                digest.update(chunk)
        hashes.append(digest.hexdigest())
    return SourceFile(path, name, start, end, combined_hash(hashes), update)


_AGAIN = "to read all files again, with other ids: --from-stage gather"
_UPDATE = "to read what is new: --update"


def _gathered_and_new(
    named: Mapping[str, Path], gathered: GatheredBefore, where: str, form: str, update: int
) -> list[SourceFile]:
    """The gathered files, and in an update new lines and files after them, or the files that are read by content.

    An update reads a file by content where it has changed otherwise than by new lines: it is read whole, and what was
    gathered before is recognised by its words. It reads all files of a source so that it once read so, as ids do not
    count their items any more, and new files of exports, which hold again what an earlier export held.
    """
    files = [SourceFile(named.get(file["name"], Path()), **file) for file in gathered.files]
    current = _current_files(files)
    by_content = any(file.by_content for file in files)
    changed: list[SourceFile] = []
    for known in current:
        if known.name not in named:
            # What was gathered of it stays; an export may have another name each time.
            if not (gathered.has_erasures or by_content or (update and form in PROGRAMS)):
                advice = (
                    f"to read a later export: --update; {_AGAIN}" if form in PROGRAMS else _AGAIN
                )
                raise ChangedSourceError(f"{where} gathered file {known.name} is missing; {advice}")
        elif known.sha256 != _hashed(known.path, "", known.start, known.end).sha256:
            changed.append(known)
    if changed and not update:
        problem = f"{where} file {changed[0].path} has changed since it was gathered"
        raise ChangedSourceError(f"{problem}; {_UPDATE}; {_AGAIN}")
    ends = {known.name: known.end for known in current}
    changed_names = {known.name for known in changed}
    new: list[
        tuple[str, Path, int, int]
    ] = []  # name, file, and what is new in it: first and last byte
    for name, path in named.items():
        known_end = 0 if name in changed_names else ends.get(name, 0)
        start, end, goes_on = _new_bytes(path, known_end, form)
        if name in changed_names or name not in ends:
            new.append((name, path, 0, end))
        elif start != end:
            new.append((name, path, start, end))
            by_content |= bool(start and not goes_on)
            if not update:
                message = f"{where} file {path} has {end - start:,} new bytes; {_UPDATE}; {_AGAIN}"
                raise ChangedSourceError(message, files)
        if name not in ends and not update:
            raise ChangedSourceError(f"{where} file {path} is new; {_UPDATE}; {_AGAIN}", files)
    if new and (by_content or changed or form in PROGRAMS):
        if form not in PROGRAMS:
            # All of its files, so that what is in none of them any more is known.
            new = [(name, path, 0, _new_bytes(path, 0, form)[1]) for name, path in named.items()]
        return [
            *files,
            *(
                replace(_hashed(path, name, 0, end, update), by_content=True)
                for name, path, _, end in new
            ),
        ]
    return [*files, *(_hashed(path, name, start, end, update) for name, path, start, end in new)]


def _current_files(files: Sequence[SourceFile]) -> list[SourceFile]:
    """The files that must be as they were: not those that were read again since, by content."""
    latest = {file.name: number for number, file in enumerate(files) if file.by_content}
    return [file for number, file in enumerate(files) if number >= latest.get(file.name, 0)]


def _new_bytes(path: Path, start: int, form: str) -> tuple[int, int, bool]:
    """First and last byte of what is new in a file, and whether it is whole lines after whole lines."""
    end = _size(path)
    if form == formats.MEMORY_BANK or form in PROGRAMS or not records.has_lines(path):
        return start, end, False
    with path.open("rb") as file:
        file.seek(max(start - 1, 0))
        # The line before is whole where its end is before or at `start`.
        goes_on = file.read(1) == b"\n" or file.read(2).startswith((b"\n", b"\r\n"))
        file.seek(start)
        tail = b"".join(deque(file, 1))
        # A last line without an end is being written, unless it parses.
        end = file.tell() - (0 if tail.endswith(b"\n") or is_whole(tail) else len(tail))
    return start, end, goes_on


def find_earlier_states(items: Iterable[Item]) -> dict[str, str]:
    """The id of each item of a source whose messages begin another item, as in a log that stores a conversation again
    after each reply, and the id of the longest such item. Keeps eight bytes a message."""
    whole = array("Q")
    starts = array("Q", [0])
    beginnings = array("Q")
    names: list[str] = []
    for item in items:
        if not isinstance(raw := item.content, RawDialogue) or not raw.messages:
            continue
        # A hash of the conversation after each message; 0 for a beginning that may be anybody's.
        digest = hashlib.blake2b(repr(raw.person).encode("utf-8", "surrogatepass"), digest_size=8)
        characters = 0
        for role, text in raw.messages:
            digest.update(f"{role}\0{text.strip()}\0".encode("utf-8", "surrogatepass"))
            characters += len(text)
            known = raw.person is not None or characters >= LEAST_CHARACTERS
            beginnings.append(int.from_bytes(digest.digest(), "big") if known else 0)
        whole.append(beginnings.pop())
        starts.append(len(beginnings))
        names.append(item.id)
    lengths = np.diff(np.asarray(starts))
    longest: dict[
        int, tuple[int, int]
    ] = {}  # state -> messages of the longest item that it begins, and which it is
    found = np.flatnonzero(np.isin(beginnings, whole, kind="sort")) if names else ()
    owners = np.searchsorted(starts, found, side="right") - 1
    for place, owner in zip(found, owners, strict=True):
        candidate = (int(lengths[owner]), -int(owner))
        longest[beginnings[place]] = max(candidate, longest.get(beginnings[place], candidate))
    later = ((name, longest.get(state)) for name, state in zip(names, whole, strict=True) if state)
    return {name: names[-best[1]] for name, best in later if best is not None}
