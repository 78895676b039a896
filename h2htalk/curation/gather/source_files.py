"""A source: its file with a fingerprint, and its items in order, each with its ids."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.curation.gather import mock_dialogues
from h2htalk.curation.gather.formats import READERS
from h2htalk.curation.gather.raw_items import RawDialogue, RawItem, RefusedItem
from h2htalk.curation.gather.settings import Source
from h2htalk.curation.setting_types import resolve_path
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError

# The tag and the format of mock dialogues.
MOCK = "mock"


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source and its file; `path` None: `limit` mock dialogues replace it, as `message` says."""

    source: Source
    path: Path | None
    sha256: str
    size: int
    limit: int | None
    message: str = ""

    def to_settings(self) -> dict[str, Any]:
        """What changes its dialogues; the place of the file does not."""
        source = self.source
        return {
            "name": source.name,
            "format": source.format if self.path is not None else MOCK,
            "language": source.language,
            "licence": source.licence,
            "limit": self.limit,
            "sha256": self.sha256,
        }

    def items(self, on_read: Callable[[int], object]) -> Iterator[RawItem]:
        """Its items; `limit` does not count lines that only repeat the beginning of another one."""
        if self.path is None:
            seed = zlib.crc32(self.source.name.encode())  # different dialogues for each source
            made = mock_dialogues.mock_dialogues(self.limit or 0, seed, self.source.language)
            yield from (RawItem(row, row, _as_raw(dialogue)) for row, dialogue in enumerate(made, 1))
            return
        count = 0
        for item in READERS[self.source.format](self.path, on_read):
            yield item
            count += not (isinstance(item.content, RefusedItem) and item.content.reason == "prefix")
            if count == self.limit:
                return


def plan_source(source: Source, folder: Path, mock: int) -> SourcePlan:
    """Find the file of a source; where a variable in its path is not set, use `mock` generated dialogues instead.

    Raises:
        ConfigError: there is no such file, or a variable is not set and `mock` is 0.
    """
    try:
        path = resolve_path(source.path, folder)
    except KeyError as unset:
        variable = f"${unset.args[0]}"
        if not mock:
            raise ConfigError(
                f"source {source.name!r}: {variable} is not set; set it to the folder of the data, or set "
                "gather.mock_dialogues to a number of dialogues to generate instead"
            ) from None
        count = min(mock, source.limit or mock)
        message = f"gather: {variable} is not set; source {source.name!r} gets {count} mock dialogues instead"
        return SourcePlan(source, None, f"{MOCK}-{mock_dialogues.VERSION}", 0, count, message)
    except ValueError as error:
        raise ConfigError(f"source {source.name!r}: {error}") from error
    if not path.is_file():
        raise ConfigError(f"source {source.name!r}: {path}: no such file")
    return SourcePlan(source, path, sha256_of(path), path.stat().st_size, source.limit)


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
