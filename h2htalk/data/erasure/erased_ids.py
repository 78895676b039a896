"""Which records hold words of somebody who was erased, by the ids in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ErasedIds:
    """What was erased: `ids` of dialogues and persons; `items` on them, by id, whose records may not tell of them."""

    ids: frozenset[str]
    items: frozenset[str] = frozenset()

    def covers(self, record: Record) -> bool:
        """Whether a dialogue, candidate, scenario, case or rejected line holds words of an erased id.

        By its own ids, those of the record in it, or those of replies that others gave (alternatives, references).
        """
        return any(not self.ids.isdisjoint(_beginnings(name)) for name in ids_in(record))

    def covers_id(self, item_id: str) -> bool:
        """Whether an id is erased, or is that of an item, of a call (`ITEM/ab`), a tie (`ITEM#question`) or a judged
        answer (`ITEM/SAMPLE/HASH`) of one."""
        return not (self.ids | self.items).isdisjoint(_beginnings(item_id))

    def covers_item(self, item_id: str, record: Record | None) -> bool:
        """Whether an item rests on an erased id: by its record, and where that does not tell of replies, by its id."""
        tells = record is not None and ("messages" in record or any(part is not record for part in _parts(record)))
        return (record is not None and self.covers(record)) or (not tells and self.covers_id(item_id))


def own_ids(record: Record) -> frozenset[str]:
    """The ids of those whose words a record or reply holds: its own, its dialogue's, its person's."""
    provenance = record.get("provenance") or {}
    ids = (record.get("id"), record.get("dialogue"), provenance.get("dialogue"), provenance.get("person"))
    return frozenset(item for item in ids if item is not None)


def ids_in(record: Record) -> frozenset[str]:
    """The ids of everybody whose words a record holds, replies of others included."""
    return frozenset().union(*map(own_ids, _parts(record)))


def _parts(record: Record) -> Iterator[Record]:
    for one in (record, record.get("record"), record.get("scenario")):
        if isinstance(one, Mapping):
            metadata = one.get("metadata") or {}
            replies = (metadata.get("alternatives"), metadata.get("references"), one.get("references"))
            yield one
            # References of scenarios are texts.
            yield from (reply for group in replies for reply in group or () if isinstance(reply, Mapping))


def _beginnings(name: str) -> set[str]:
    """An id with those that it begins with: `DIALOGUE:subtask/pair-1-2/ab`, `DIALOGUE:subtask#keep`."""
    item = name.split("/", 1)[0].split("#", 1)[0]
    return {name, name.rsplit("/", 2)[0], item, item.split(":", 1)[0]}
