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

from h2htalk.curation.dedup.compared_texts import text_hash
from h2htalk.curation.gather import formats, records
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.gather.records import OnRead, Record
from h2htalk.curation.stages import Source, resolve_path
from h2htalk.data.files import is_whole
from h2htalk.errors import ConfigError, listed, quoted, suggest

# Two strangers begin with the same words; where the file names no person, fewer characters are no conversation.
LEAST_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a source, or the lines that were added to one: its bytes from `start` to `end`."""

    path: Path
    name: str  # its path in the source's folder; empty where the source is the file itself, or a data set
    start: int
    end: int
    sha256: str
    update: int = 0  # the number of the update that found it


class ChangedSourceError(ConfigError):
    """A gathered file has changed, or there is something new."""


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
        """Of all its files."""
        return _combined([file.sha256 for file in self.files])

    def to_settings(self) -> dict[str, Any]:
        """What changes its dialogues; the place of the files does not."""
        values = {name: getattr(self.source, name) for name in ("name", "format", "language", "licence", "limit")}
        tables = {name: dict(getattr(self.source, name)) for name in ("roles", "columns")}
        return values | tables | {"sha256": self.sha256}

    def items(self, on_read: OnRead) -> Iterator[Item]:
        """Its items, with ids that do not depend on the size of parts. Raises ConfigError where no record has a key of
        `columns`, and DataError."""
        name, before, count = self.source.name, 0, 0
        person, question = _numbers(f"{name}-p"), _numbers(f"{name}-q")
        unseen, keys = set(self.source.columns.values()), dict[str, None]()
        for file in self.files:
            last, skipped = 0, None if file.start else 0
            for row, line, value in self._records(file, on_read):
                if unseen and isinstance(value, dict):
                    unseen.difference_update(value)
                    keys.update(dict.fromkeys(() if keys else value))
                content = self._read(value)
                skipped = row - 1 if skipped is None else skipped
                last = row - skipped
                named = (person(content.person), question(content.question)) if isinstance(content, RawDialogue) else ()
                yield Item(f"{name}-{before + last:06}", before + last, line, content, file.name, file.update, *named)
                count += 1
                if count == self.source.limit:
                    return
            before += last
        if unseen and keys:
            found = f"{suggest(min(unseen), keys)}the first record has {listed(list(keys))}"
            raise ConfigError(f"source {name!r}: columns: no record has {listed(sorted(unseen))}; {found}")

    def _records(self, file: SourceFile, on_read: OnRead) -> Iterator[Record]:
        form, (place, _, split) = self.source.format, self.source.path.partition("#")
        if form == formats.MEMORY_BANK:
            users = records.json_members(file.path, on_read)
            days = (day for key, user in users for day in formats.read_days(key, user))
            return ((row, None, day) for row, day in enumerate(days, 1))
        if records.HUB_DATASET.fullmatch(place) or file.path.is_dir():
            return records.dataset_records(str(file.path), split or None)
        return records.file_records(file.path, on_read, (file.start, file.end), form == formats.QUESTION_ANSWERS)

    def _read(self, value: Any) -> RawDialogue | RefusedItem:
        """The dialogue of a record, with the user's names in it."""
        if isinstance(value, RawDialogue | RefusedItem):
            return value
        form = self.source.format
        if isinstance(value, dict):
            mapped = {ours: value[theirs] for ours, theirs in self.source.columns.items() if theirs in value}
            value = {**value, **mapped}
        options = {"roles": {**formats.ROLE_NAMES, **self.source.roles}} if form in formats.WITH_ROLES else {}
        try:
            raw: RawDialogue = formats.READERS[form](value, **options)
        except RefusedItem as refused:
            return refused
        return replace(raw, metadata={**raw.metadata, **formats.read_user_names(value, self.name_keys)})


def _numbers(prefix: str) -> Callable[[str | None], str | None]:
    """A function that numbers names in the order of their first use; a name is kept as eight bytes of its hash."""
    known: dict[int, int] = {}
    return lambda name: name and f"{prefix}{known.setdefault(text_hash(name), len(known) + 1):04}"


def plan_source(
    source: Source, folder: Path, gathered: Sequence[Mapping[str, Any]] | None = None, update: int = 0
) -> SourcePlan:
    """Find the files of a source, whose relative path is relative to `folder`. `gathered`: the files that the stage has
    read, as it stores them; `update`: the number of an update, which reads new files and new lines too, or 0.

    Raises ConfigError for a missing file and another format, and ChangedSourceError, which names it, where a gathered
    file has changed, or something is new and there is no `update`.
    """
    where, form = f"source {source.name!r}", source.format
    if source.roles and form not in formats.WITH_ROLES:
        raise ConfigError(f"{where}: the format {form} names no roles; remove `roles`")
    if unread := [name for name in source.columns if name not in formats.COLUMNS[form].split()]:
        raise ConfigError(f"{where}: columns: the format {form} reads no {unread[0]}, but {formats.COLUMNS[form]}")
    on_hub = source.path.startswith("hub:")
    try:
        path = Path(source.path) if on_hub else resolve_path(source.path, folder)
    except KeyError as unset:
        raise ConfigError(f"{where}: ${unset.args[0]} is not set; set it to the folder of the data") from None
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    named = {"": path} if on_hub else _files(path)
    if not named:
        raise ConfigError(f"{where}: {path}: {'the folder holds no file to read' if path.is_dir() else 'no such file'}")
    tables = [file for file in named.values() if not file.is_file() or file.suffix == records.PARQUET]
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
    folder, found = (place, place.rglob("*")) if place.is_dir() else (place.parent, place.parent.glob(place.name))
    visible = sorted(path for path in found if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path for path in visible}


def is_pattern(name: str) -> bool:
    """Whether the last part of a path is a pattern of file names."""
    return not set("*?[").isdisjoint(name)


def _combined(hashes: Sequence[str]) -> str:
    """The hash of the one file, or of the hashes of several."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _parts(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _size(path: Path) -> int:
    return sum(part.stat().st_size for part in _parts(path))


def _hashed(path: Path, name: str, start: int = 0, end: int | None = None, update: int = 0) -> SourceFile:
    """Some bytes of a file, all of them, or a saved data set."""
    end, hashes = _size(path) if end is None else end, []
    for part in _parts(path):
        digest = hashlib.sha256()
        with part.open("rb") as file:
            file.seek(start)
            while chunk := file.read(min(1 << 20, max(end - file.tell(), 0))):
                digest.update(chunk)
        hashes.append(digest.hexdigest())
    return SourceFile(path, name, start, end, _combined(hashes), update)


def _gathered_and_new(
    named: Mapping[str, Path], gathered: Sequence[Mapping[str, Any]], where: str, form: str, update: int
) -> list[SourceFile]:
    """The gathered files as they were, and in an update new lines and files after them."""
    files = [SourceFile(named.get(one["name"], Path()), **one) for one in gathered]
    again = "to read all files again, with other ids: --from-stage gather"
    for known in files:
        if known.name not in named:
            raise ChangedSourceError(f"{where} gathered file {known.name} is missing; {again}")
        if known.sha256 != _hashed(known.path, "", known.start, known.end).sha256:
            raise ChangedSourceError(f"{where} file {known.path} has changed since it was gathered; {again}")
    ends = {known.name: known.end for known in files}
    for name, path in named.items():
        start, end, grown = ends.get(name, 0), _size(path), False
        if form != formats.MEMORY_BANK and records.has_lines(path):
            with path.open("rb") as file:
                file.seek(max(start - 1, 0))
                # The line before is whole where its end is before or at `start`.
                grown = file.read(1) == b"\n" or file.read(2).startswith((b"\n", b"\r\n"))
                file.seek(start)
                tail = b"".join(deque(file, 1))
                # A last line without an end is being written, unless it parses.
                end = file.tell() - (0 if tail.endswith(b"\n") or is_whole(tail) else len(tail))
        if name in ends and start == end:
            continue
        if not update:
            what = f"has {end - start:,} new bytes" if start else "is new"
            raise ChangedSourceError(f"{where} file {path} {what}; to read what is new: --update; {again}")
        if start and not grown:
            raise ChangedSourceError(f"{where} file {path} has grown, but not by lines of JSON; {again}")
        files.append(_hashed(path, name, start, end, update))
    return files


def find_earlier_states(items: Iterable[Item]) -> dict[str, str]:
    """The id of each item of a source whose messages begin another item, as in a log that stores a conversation again
    after each reply, and the id of the longest such item. Keeps eight bytes a message."""
    whole, starts, beginnings = array("Q"), array("Q", [0]), array("Q")
    names: list[str] = []
    for item in items:
        if not isinstance(raw := item.content, RawDialogue) or not raw.messages:
            continue
        # A hash of the conversation after each message; 0 for a beginning that may be anybody's.
        digest, characters = hashlib.blake2b(repr(raw.person).encode("utf-8", "surrogatepass"), digest_size=8), 0
        for role, text in raw.messages:
            digest.update(f"{role}\0{text.strip()}\0".encode("utf-8", "surrogatepass"))
            characters += len(text)
            known = raw.person is not None or characters >= LEAST_CHARACTERS
            beginnings.append(int.from_bytes(digest.digest(), "big") if known else 0)
        whole.append(beginnings.pop())
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
