"""A source of a specification, found and fingerprinted: its items in order, each with the ids that go on."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.curation.gather import mock_dialogues
from h2htalk.curation.gather.formats import READERS
from h2htalk.curation.gather.raw_items import Item, RawDialogue, RefusedItem
from h2htalk.curation.settings import Source, resolve
from h2htalk.data.dialogue import Dialogue
from h2htalk.data.files import sha256_of
from h2htalk.errors import ConfigError, quoted
from h2htalk.text.escaping import printable

# The tag and the form of generated dialogues, which the summary counts.
STAND_IN = "stand_in"
_NAME = re.compile(r"\w[\w.-]{0,59}")


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """A source and its file; `path` None: dialogues stand in for it, `limit` of them."""

    source: Source
    path: Path | None
    sha256: str
    size: int
    limit: int | None

    def to_settings(self) -> dict[str, Any]:
        """What changes its dialogues; where the file lies does not."""
        source = self.source
        return {
            "name": source.name,
            "format": source.format if self.path is not None else STAND_IN,
            "language": source.language,
            "licence": source.licence,
            "limit": self.limit,
            "sha256": self.sha256,
        }

    def items(self, on_read: Callable[[int], object]) -> Iterator[Item]:
        """Its items; `limit` counts dialogues, so lines that only repeat another one's beginning do not count."""
        if self.path is None:
            seed = zlib.crc32(self.source.name.encode())  # two sources do not get the same dialogues
            made = mock_dialogues.generated(self.limit or 0, seed, self.source.language)
            yield from (Item(row, row, _as_raw(dialogue)) for row, dialogue in enumerate(made, 1))
            return
        count = 0
        for item in READERS[self.source.format](self.path, on_read):
            yield item
            count += not (isinstance(item.found, RefusedItem) and item.found.reason == "prefix")
            if count == self.limit:
                return


def plan_source(source: Source, base: Path, standing_in: int) -> SourcePlan:
    """Find a source's file. Where a variable in its path is not set, `standing_in` generated dialogues take its place,
    which is said on standard error.

    Raises:
        ConfigError: no such file, a name or limit that cannot be, a variable that is not set with `standing_in` 0.
    """
    path = find_source(source, base, standing_in)
    if path is None:
        name = next(
            part for part in source.path.split("/") if part.startswith("$") and part[1:] not in os.environ
        )
        count = min(standing_in, source.limit or standing_in)
        told = f"gather: {name} is not set; {count} generated dialogues stand in for source {source.name!r}"
        print(printable(told), file=sys.stderr, flush=True)
        return SourcePlan(source, None, f"generated-{mock_dialogues.VERSION}", 0, count)
    return SourcePlan(source, path, sha256_of(path), path.stat().st_size, source.limit)


def find_source(source: Source, base: Path, standing_in: int) -> Path | None:
    """Where a source's file lies; None where `standing_in` generated dialogues take its place. Nothing is read.

    Raises:
        ConfigError: as `plan_source`.
    """
    if not _NAME.fullmatch(source.name) or not unicodedata.is_normalized("NFC", source.name):
        raise ConfigError(
            f"source {quoted(source.name)}: ids begin with its name; make it of letters, digits, . - and _, at most 60"
        )
    if source.limit is not None and source.limit < 1:
        raise ConfigError(f"source {source.name!r}: limit is {source.limit}; it must be 1 or more")
    try:
        path = resolve(source.path, base)
    except KeyError as unset:
        name = unset.args[0]
        if not standing_in:
            raise ConfigError(
                f"source {source.name!r}: ${name} is not set; set it to the folder of the data, or set "
                "gather.stand_in to a number of dialogues to generate instead"
            ) from None
        return None
    except ConfigError as error:
        raise ConfigError(f"source {source.name!r}: {error}") from error
    if not path.is_file():
        raise ConfigError(f"source {source.name!r}: {path}: no such file")
    return path


def _as_raw(dialogue: Dialogue) -> RawDialogue:
    turns = tuple((turn.role, turn.content) for turn in dialogue.messages)
    metadata = {key: str(value) for key, value in dialogue.metadata.items()}
    return RawDialogue(turns, metadata=metadata, licence=mock_dialogues.LICENCE, tags=(STAND_IN,))


@dataclass(slots=True)
class _Numbers:
    """Numbers of names in the order in which they first come; a name is kept as eight bytes of its hash."""

    prefix: str
    _known: dict[bytes, int] = field(default_factory=dict)

    def of(self, name: str | None) -> str | None:
        if name is None:
            return None
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return f"{self.prefix}{self._known.setdefault(digest, len(self._known) + 1):04}"


@dataclass(frozen=True, slots=True)
class NamedItem:
    """An item with its ids."""

    item: Item
    id: str
    person: str | None = None
    question: str | None = None


def named_items(plan: SourcePlan, on_read: Callable[[int], object]) -> Iterator[NamedItem]:
    """The items in order with their ids, which do not depend on where a part begins."""
    name = plan.source.name
    persons, questions = _Numbers(f"{name}-p"), _Numbers(f"{name}-q")
    for item in plan.items(on_read):
        item_id = f"{name}-{item.row:06}"
        if isinstance(item.found, RawDialogue):
            yield NamedItem(item, item_id, persons.of(item.found.person), questions.of(item.found.question))
        else:
            yield NamedItem(item, item_id)
