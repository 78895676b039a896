"""A raw file out of which its owner took what was erased: the same source, whose other items keep their ids.

Its hash is another one, but each item of the private index is known by a keyed hash of its own (`mark_of`): where the
file holds these and no others, in the same order, nothing is gathered again, and the index is led to where they stand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from h2htalk.curation.erasures import source_of
from h2htalk.curation.outcomes import Record
from h2htalk.curation.parts import AUDIT, REJECTED, StageFolder
from h2htalk.curation.source_plans import NamedItem, SourcePlan, named_items
from h2htalk.curation.sources.items import Item, RawDialogue, RefusedItem
from h2htalk.data.files import read_json_object, write_jsonl

MARK = "mark"
_DIGEST = 12  # bytes: no two of 10^9 items share one by chance


def mark_of(item: Item, key: bytes) -> str:
    """What an item of a raw file is known by, whatever line it stands in; `key` is the workspace's secret."""
    raw = item.found
    held = asdict(raw) if isinstance(raw, RawDialogue) else raw.reason
    text = json.dumps(held, sort_keys=True, ensure_ascii=True)
    return hashlib.blake2b(text.encode(), key=key, digest_size=_DIGEST, person=b"h2htalk item").hexdigest()


def followed(
    plan: SourcePlan, folder: StageFolder, key: bytes, is_erased: Callable[[NamedItem], bool]
) -> SourcePlan:
    """The plan of a source as it was gathered, where its file lacks nothing but what was erased; else as it is.

    Where it is so, the index and the rejected records of the finished stage are led to the new lines.

    Args:
        plan: of the file as it is now.
        folder: gather's.
        key: the workspace's secret.
        is_erased: whether an item is of somebody who was taken out, by the words and not by the row.

    Raises:
        DataError: a file is damaged or cannot be written.
    """
    before = _before(plan, folder)
    if before is None:
        return plan
    # Of a conversation that is put together, the lines that its end repeats.
    repeated = mark_of(Item(0, 0, RefusedItem("prefix")), key)
    waiting = (
        record
        for record in folder.records(AUDIT)
        if source_of(str(record["id"])) == plan.source.name and record.get(MARK) != repeated
    )
    places: dict[str, Item] = {}
    wanted = next(waiting, None)
    for named in named_items(replace(plan, limit=None), lambda read: None):
        mark = mark_of(named.item, key)
        if mark == repeated:
            continue
        if wanted is not None and wanted.get(MARK) == mark:
            places[str(wanted["id"])] = named.item
            wanted = next(waiting, None)
        elif wanted is None and plan.limit is not None:
            break  # what comes behind the limit was never looked at
        elif not is_erased(named):
            return plan
    if wanted is not None or not places:
        return plan
    _lead(folder, places)
    return replace(plan, sha256=before)


def _before(plan: SourcePlan, folder: StageFolder) -> str | None:
    """The hash of the file that a finished stage was made of, where that alone differs."""
    if plan.path is None or not (folder.path / "summary.json").exists():
        return None
    try:
        settings = read_json_object(folder.path / "stage.json").get("settings")
    except FileNotFoundError:
        return None
    sources = settings.get("sources") if isinstance(settings, Mapping) else None
    for made in sources if isinstance(sources, list) else ():
        sha256 = str(made.get("sha256")) if isinstance(made, Mapping) else plan.sha256
        if sha256 != plan.sha256 and made == replace(plan, sha256=sha256).to_settings():
            return sha256
    return None


def _lead(folder: StageFolder, places: Mapping[str, Item]) -> None:
    """Write where items stand now. Doing it twice, or again after a kill, ends in the same bytes."""

    def led(record: Record, field: str) -> dict[str, Any]:
        item, held = places.get(str(record["id"])), record.get(field)
        if item is None or not isinstance(held, Mapping):
            return dict(record)
        now = {name: value for name, value in (("row", item.row), ("line", item.line)) if name in held}
        return {**record, field: {**held, **now}}

    for part in folder.parts():
        for kind, field in ((AUDIT, "raw"), (REJECTED, "evidence")):
            records = list(folder.part_records(part, kind))
            new = [led(record, field) for record in records]
            if new != records:
                write_jsonl(folder.file(kind, part), new)


def place_of(index: Mapping[str, Any]) -> str:
    """Where raw text stands, for people: `file:line`, and which item where a line may hold several or a part of one."""
    file, line, row = (index.get(name) for name in ("file", "line", "row"))
    if line is None:
        return f"{file}:{'' if row is None else row}"
    by_line = row in (None, line) and not str(file).endswith(".json")
    return f"{file}:{line}" if by_line else f"{file}:{line}, item {row}"
