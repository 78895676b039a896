"""A source: its files with their fingerprints, and its items in order, each with its ids."""

from __future__ import annotations

import hashlib
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

from h2htalk.curation.gather import mock_dialogues
from h2htalk.curation.gather.formats import MEMORY_BANK, QUESTION_ANSWERS, READERS, ROLE_NAMES, WITH_ROLES, read_days
from h2htalk.curation.gather.raw_items import OnRead, RawDialogue, RawItem, RefusedItem, read_user_names
from h2htalk.curation.gather.records import (
    PARQUET,
    HubDataset,
    Record,
    dataset_records,
    file_records,
    hub_dataset,
    is_saved_dataset,
    object_members,
)
from h2htalk.curation.gather.settings import Source
from h2htalk.curation.setting_types import resolve_path
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError

# The tag and the format of mock dialogues.
MOCK = "mock"
# Two strangers begin with the same words; where the file names no person, fewer characters are no conversation.
LEAST_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source, or the lines that were added to one: its bytes from `start` to `end`.

    `name` is its path in the source's folder; empty where the source is the file itself, or a saved data set. `update`
    is the number of the update that found it, 0 for the first run.
    """

    path: Path
    name: str
    start: int
    end: int
    sha256: str
    update: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("name", "start", "end", "sha256", "update")}


class ChangedSourceError(ConfigError):
    """A gathered file has changed, or there is something new."""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source and what it reads.

    Attributes:
        place: of the source, for messages.
        files: in the order in which they are read.
        limit: of dialogues.
        dataset: on the Hub.
        message: where mock dialogues replace files, says so.
        name_keys: of records, beside the usual ones, that hold the user's name.
    """

    source: Source
    place: str
    files: tuple[SourceFile, ...]
    limit: int | None
    dataset: HubDataset | None = None
    message: str = ""
    name_keys: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Of the files, in bytes."""
        return sum(file.end - file.start for file in self.files)

    @property
    def sha256(self) -> str:
        """Of the one file, or of the hashes of all files in their order; of a data set its name and commit."""
        if self.dataset is not None:
            return f"{self.dataset}#{self.dataset.split or ''}"
        hashes = [file.sha256 for file in self.files] or [f"{MOCK}-{mock_dialogues.VERSION}"]
        return combined_sha256(hashes)

    def to_settings(self) -> dict[str, Any]:
        """What changes its dialogues; the place of the files does not."""
        source = self.source
        return {
            "name": source.name,
            "format": source.format if self.files or self.dataset else MOCK,
            "language": source.language,
            "licence": source.licence,
            "limit": self.limit,
            "roles": dict(source.roles),
            "columns": dict(source.columns),
            "sha256": self.sha256,
        }

    def items(self, on_read: OnRead) -> Iterator[RawItem]:
        """Its items, numbered through all files."""
        if not self.files and self.dataset is None:
            seed = zlib.crc32(self.source.name.encode())  # different dialogues for each source
            made = mock_dialogues.mock_dialogues(self.limit or 0, seed, self.source.language)
            yield from (RawItem(row, row, _as_raw(dialogue)) for row, dialogue in enumerate(made, 1))
            return
        before, count = 0, 0
        for file in self.files or (None,):
            last, skipped = 0, None if file and file.start else 0
            for item in self._file_items(file, on_read):
                skipped = item.row - 1 if skipped is None else skipped
                last = item.row - skipped
                yield replace(item, row=before + last, file=file.name, update=file.update) if file else item
                count += 1
                if count == self.limit:
                    return
            before += last

    def _file_items(self, file: SourceFile | None, on_read: OnRead) -> Iterator[RawItem]:
        if self.source.format == MEMORY_BANK and file is not None:
            members = object_members(file.path, on_read)
            days = chain.from_iterable(read_days(key, user) for key, user in members)
            yield from (RawItem(row, None, content) for row, content in enumerate(days, 1))
            return
        for row, line, value in self._records(file, on_read):
            yield RawItem(row, line, self._read(value, line))

    def _records(self, file: SourceFile | None, on_read: OnRead) -> Iterator[Record]:
        split = self.source.path.partition("#")[2] or None
        if file is None or file.path.is_dir():
            return dataset_records(file.path if file else self.dataset or Path(), split)
        return file_records(file.path, on_read, (file.start, file.end), self.source.format == QUESTION_ANSWERS)

    def _read(self, value: Any, line: int | None) -> RawDialogue | RefusedItem:
        """The dialogue of a record, with the user's names in it."""
        form = self.source.format
        try:
            if isinstance(value, RefusedItem):
                raise value
            if isinstance(value, dict):
                mapped = {ours: value[theirs] for ours, theirs in self.source.columns.items() if theirs in value}
                value = {**value, **mapped}
            options = {"roles": {**ROLE_NAMES, **self.source.roles}} if form in WITH_ROLES else {}
            raw: RawDialogue = READERS[form](value, **options)
        except RefusedItem as refused:
            return refused if line is None else refused.at_line(line)
        return replace(raw, metadata={**raw.metadata, **read_user_names(value, self.name_keys)})


def plan_source(
    source: Source, folder: Path, mock: int, gathered: Sequence[Mapping[str, Any]] | None = None, update: int = 0
) -> SourcePlan:
    """Find the files of a source; where a variable in its path is not set, use `mock` generated dialogues instead.

    Args:
        source: its settings.
        folder: relative paths are relative to it.
        mock: number of dialogues.
        gathered: the files that the stage has read (`SourceFile.to_dict`); None: nothing was.
        update: number of an update, which reads new files and new lines too; 0: there is none.

    Raises:
        ConfigError: there is no such file, the format cannot be read from it, or a variable is not set and `mock` is 0.
        ChangedSourceError: a gathered file has changed, or there is something new and no `update`; names it.
    """
    where = f"source {source.name!r}"
    if source.roles and source.format not in WITH_ROLES:
        raise ConfigError(f"{where}: the format {source.format} names no roles; remove `roles`")
    if source.path.startswith("hub:"):
        _require_records(where, source)
        return SourcePlan(source, source.path, (), source.limit, hub_dataset(source.path))
    try:
        path = resolve_path(source.path, folder)
    except KeyError as unset:
        variable = f"${unset.args[0]}"
        if not mock:
            raise ConfigError(
                f"{where}: {variable} is not set; set it to the folder of the data, or set "
                "gather.mock_dialogues to a number of dialogues to generate instead"
            ) from None
        count = min(mock, source.limit or mock)
        message = f"gather: {variable} is not set; {where} gets {count} mock dialogues instead"
        return SourcePlan(source, "", (), count, message=message)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    paths = _files(path)
    if not paths:
        raise ConfigError(f"{where}: {path}: no such file")
    if any(file.is_dir() or file.suffix == PARQUET for file in paths):
        _require_records(where, source)
    named = {_name(file, path): file for file in paths}
    if gathered is None:
        files = tuple(_whole(file, name) for name, file in named.items())
    else:
        files = _gathered_and_new(named, gathered, where, update)
    return SourcePlan(source, str(path), files, source.limit)


def _require_records(where: str, source: Source) -> None:
    if source.format == MEMORY_BANK:
        raise ConfigError(f"{where}: the format {source.format} is read from a JSON file, not from a table")


def _files(path: Path) -> tuple[Path, ...]:
    """The file itself, the files of a folder or of a pattern in the order of their names, or a saved data set."""
    if path.is_file():
        return (path,)
    saved = path.with_name(path.name.partition("#")[0])
    if is_saved_dataset(saved):
        return (saved,)
    if path.is_dir():
        return _visible_files(path.rglob("*"))
    return _visible_files(path.parent.glob(path.name)) if is_pattern(path.name) else ()


def is_pattern(name: str) -> bool:
    """Whether the last part of a path is a pattern of file names."""
    return not set("*?[").isdisjoint(name)


def _visible_files(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(path for path in paths if path.is_file() and not path.name.startswith(".")))


def _name(file: Path, place: Path) -> str:
    """The file's name in the folder of the source; empty where that is the file itself."""
    if file == place or file.is_dir():
        return ""
    return str(file.relative_to(place.parent if is_pattern(place.name) else place))


def _whole(path: Path, name: str) -> SourceFile:
    digest = combined_sha256([_sha256(part, 0, _size(part)) for part in _parts(path)])
    return SourceFile(path, name, 0, _size(path), digest)


def combined_sha256(hashes: Sequence[str]) -> str:
    """The hash of the one file, or of the hashes of several."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _parts(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _size(path: Path) -> int:
    return sum(part.stat().st_size for part in _parts(path))


def _sha256(path: Path, start: int, end: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while start < end and (chunk := file.read(min(1 << 20, end - start))):
            digest.update(chunk)
            start += len(chunk)
    return digest.hexdigest()


def _gathered_and_new(
    named: Mapping[str, Path], gathered: Sequence[Mapping[str, Any]], where: str, update: int
) -> tuple[SourceFile, ...]:
    """The gathered files as they were, and in an update new lines and files after them."""
    files = [SourceFile(named.get(one["name"], Path()), **one) for one in gathered]
    again = "to read all files again, with other ids: --from-stage gather"
    for known in files:
        path = named.get(known.name)
        if path is None:
            raise ChangedSourceError(f"gather: {where}: the gathered file {known.name} is missing; {again}")
        digest = _whole(path, "").sha256 if path.is_dir() else _sha256(path, known.start, known.end)
        if digest != known.sha256:
            raise ChangedSourceError(f"gather: {where}: the file {path} has changed since it was gathered; {again}")
    ends = {known.name: known.end for known in files}
    for name, path in named.items():
        start, end = ends.get(name, 0), _size(path)
        if name in ends and start == end:
            continue
        if not update:
            what = f"has {end - start:,} new bytes" if start else "is new"
            raise ChangedSourceError(f"gather: {where}: the file {path} {what}; to read what is new: --update; {again}")
        if start and not _is_appended(path, start):
            raise ChangedSourceError(f"gather: {where}: the file {path} has grown, but not by lines of JSON; {again}")
        new = _whole(path, name) if not start else SourceFile(path, name, start, end, _sha256(path, start, end))
        files.append(replace(new, update=update))
    return tuple(files)


def _is_appended(path: Path, size: int) -> bool:
    """Whether the bytes from `size` on are lines of their own in a file of JSON lines."""
    with path.open("rb") as file:
        first = file.read(1)
        file.seek(size - 1)
        return first == b"{" and file.read(1) == b"\n"


def _as_raw(dialogue: Dialogue) -> RawDialogue:
    turns = tuple((turn.role, turn.content) for turn in dialogue.messages)
    metadata = {key: str(value) for key, value in dialogue.metadata.items()}
    return RawDialogue(turns, metadata=metadata, licence=mock_dialogues.LICENCE, tags=(MOCK,))


# --- Ids ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Numbers:
    """Numbers names in the order of their first use; a name is kept as eight bytes of its hash."""

    prefix: str
    _known: dict[bytes, int] = field(default_factory=dict)

    def number(self, name: str | None) -> str | None:
        if name is None:
            return None
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return f"{self.prefix}{self._known.setdefault(digest, len(self._known) + 1):04}"


@dataclass(frozen=True, slots=True)
class NamedItem:
    """An item with its ids."""

    item: RawItem
    id: str
    person: str | None = None
    question: str | None = None


def named_items(plan: SourcePlan, on_read: Callable[[int], object]) -> Iterator[NamedItem]:
    """The items in order with their ids, which do not depend on the size of parts."""
    name = plan.source.name
    persons, questions = _Numbers(f"{name}-p"), _Numbers(f"{name}-q")
    for item in plan.items(on_read):
        item_id, raw = f"{name}-{item.row:06}", item.content
        if isinstance(raw, RawDialogue):
            yield NamedItem(item, item_id, persons.number(raw.person), questions.number(raw.question))
        else:
            yield NamedItem(item, item_id)


# --- Earlier states -----------------------------------------------------------------------------------------------


def find_earlier_states(items: Iterable[NamedItem]) -> dict[str, str]:
    """The id of each item whose messages begin another item, and the id of the longest such item.

    A log that stores a conversation again after each reply holds it several times.

    Keeps eight bytes a message in memory.

    Args:
        items: of one source.
    """
    import numpy as np

    whole, starts, beginnings = array("Q"), array("Q", [0]), array("Q")
    names: list[str] = []
    for item in items:
        raw = item.item.content
        if not isinstance(raw, RawDialogue) or not raw.messages:
            continue
        states = _states(raw)
        whole.append(states[-1])
        beginnings.extend(states[:-1])
        starts.append(len(beginnings))
        names.append(item.id)
    lengths = np.diff(np.asarray(starts))
    longest: dict[int, tuple[int, int]] = {}  # state -> messages of the longest item that it begins, and which it is
    found = np.flatnonzero(np.isin(beginnings, whole, kind="sort")) if names else ()
    owners = np.searchsorted(starts, found, side="right") - 1
    for place, owner in zip(found, owners, strict=True):
        candidate = (int(lengths[owner]), -int(owner))
        longest[beginnings[place]] = max(candidate, longest.get(beginnings[place], candidate))
    later = ((name, longest.get(state)) for name, state in zip(names, whole, strict=True) if state)
    return {name: names[-best[1]] for name, best in later if best is not None}


def _states(raw: RawDialogue) -> list[int]:
    """A hash of the conversation after each message; 0 for a beginning that may be anybody's."""
    digest = hashlib.blake2b(repr(raw.person).encode("utf-8", "surrogatepass"), digest_size=8)
    states, characters = [], 0
    for role, text in raw.messages:
        digest.update(f"{role}\0{text.strip()}\0".encode("utf-8", "surrogatepass"))
        characters += len(text)
        known = raw.person is not None or characters >= LEAST_CHARACTERS
        states.append(int.from_bytes(digest.digest(), "big") if known else 0)
    return states
