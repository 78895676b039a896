"""A source: its files with a fingerprint, and its items in order, each with its ids."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from h2htalk.curation.gather import mock_dialogues
from h2htalk.curation.gather.formats import names_roles, open_reader, read_rows, reads_tables
from h2htalk.curation.gather.raw_items import RawDialogue, RawItem, RefusedItem
from h2htalk.curation.gather.settings import Source
from h2htalk.curation.gather.tables import HubDataset, dataset_rows, hub_dataset, is_saved_dataset, parquet_rows
from h2htalk.curation.outcomes import EARLIER_STATE
from h2htalk.curation.setting_types import resolve_path
from h2htalk.data.files import sha256_of
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import ConfigError

# The tag and the format of mock dialogues.
MOCK = "mock"
PARQUET = ".parquet"


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source and what it reads.

    Attributes:
        place: of the source, for messages.
        files: in the order in which they are read; one folder, where it is a saved data set.
        dataset: on the Hub.
        sha256: of the files, or the data set's name and commit.
        size: of the files, in bytes.
        limit: of dialogues.
        message: where mock dialogues replace files, says so.
        name_keys: of records, beside the usual ones, that hold the user's name.
    """

    source: Source
    place: str
    files: tuple[Path, ...]
    sha256: str
    size: int
    limit: int | None
    dataset: HubDataset | None = None
    message: str = ""
    name_keys: tuple[str, ...] = ()

    @property
    def is_mock(self) -> bool:
        return not self.files and self.dataset is None

    def to_settings(self) -> dict[str, Any]:
        """What changes its dialogues; the place of the files does not."""
        source = self.source
        return {
            "name": source.name,
            "format": MOCK if self.is_mock else source.format,
            "language": source.language,
            "licence": source.licence,
            "limit": self.limit,
            "roles": dict(source.roles),
            "sha256": self.sha256,
        }

    def items(self, on_read: Callable[[int], object]) -> Iterator[RawItem]:
        """Its items; `limit` does not count lines that only repeat the beginning of another one."""
        if self.is_mock:
            seed = zlib.crc32(self.source.name.encode())  # different dialogues for each source
            made = mock_dialogues.mock_dialogues(self.limit or 0, seed, self.source.language)
            yield from (RawItem(row, row, _as_raw(dialogue)) for row, dialogue in enumerate(made, 1))
            return
        count = 0
        for item in self._items_of_files(on_read):
            yield item
            count += not (isinstance(item.content, RefusedItem) and item.content.reason == EARLIER_STATE)
            if count == self.limit:
                return

    def _items_of_files(self, on_read: Callable[[int], object]) -> Iterator[RawItem]:
        """The items of all files, numbered through them."""
        form, roles = self.source.format, self.source.roles
        split = self.source.path.partition("#")[2] or None
        if self.dataset is not None:
            yield from read_rows(form, dataset_rows(self.dataset, split), roles, self.name_keys, str(self.dataset))
            return
        before = 0
        for path in self.files:
            if path.is_dir():
                items = read_rows(form, dataset_rows(path, split), roles, self.name_keys, str(path))
            elif path.suffix == PARQUET:
                items = read_rows(form, parquet_rows(path, on_read), roles, self.name_keys, str(path))
            else:
                items = open_reader(form, roles, self.name_keys)(path, on_read)
            last = 0
            for item in items:
                last = max(last, item.row)
                yield replace(item, row=before + item.row, file=self._name(path))
            before += last

    def _name(self, path: Path) -> str:
        """The file's name in the folder of the source; empty where that is the file itself."""
        place = Path(self.place)
        if path == place or path.is_dir():
            return ""
        return str(path.relative_to(place.parent if is_pattern(place.name) else place))


def plan_source(source: Source, folder: Path, mock: int) -> SourcePlan:
    """Find the files of a source; where a variable in its path is not set, use `mock` generated dialogues instead.

    Raises:
        ConfigError: there is no such file, the format cannot be read from it, or a variable is not set and `mock` is 0.
    """
    where = f"source {source.name!r}"
    if source.roles and not names_roles(source.format):
        raise ConfigError(f"{where}: the format {source.format} names no roles; remove `roles`")
    if source.path.startswith("hub:"):
        dataset = hub_dataset(source.path)
        _require_table_format(where, source)
        return SourcePlan(source, source.path, (), f"{dataset}#{dataset.split or ''}", 0, source.limit, dataset)
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
        return SourcePlan(source, "", (), f"{MOCK}-{mock_dialogues.VERSION}", 0, count, message=message)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    files = _files(path)
    if not files:
        raise ConfigError(f"{where}: {path}: no such file")
    if any(file.is_dir() or file.suffix == PARQUET for file in files):
        _require_table_format(where, source)
    return SourcePlan(source, str(path), files, _sha256(files), sum(map(_size, files)), source.limit)


def _require_table_format(where: str, source: Source) -> None:
    if not reads_tables(source.format):
        raise ConfigError(f"{where}: the format {source.format} is read from text files, not from a table")


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


def _parts(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]


def _sha256(files: Sequence[Path]) -> str:
    """Of the one file, or of the hashes of all files in their order."""
    hashes = [sha256_of(part) for file in files for part in _parts(file)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _size(path: Path) -> int:
    return sum(part.stat().st_size for part in _parts(path))


def _as_raw(dialogue: Dialogue) -> RawDialogue:
    turns = tuple((turn.role, turn.content) for turn in dialogue.messages)
    metadata = {key: str(value) for key, value in dialogue.metadata.items()}
    return RawDialogue(turns, metadata=metadata, licence=mock_dialogues.LICENCE, tags=(MOCK,))


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
