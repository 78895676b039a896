"""Show the records of a split, a curation stage, a round or a run as transcripts for the terminal."""

from __future__ import annotations

import hashlib
import heapq
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import require_erased
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import CALLS, Response, read_answers
from h2htalk.data.scenario import is_workspace, last_candidates
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, counted, quoted
from h2htalk.rounds.item_sources import case_item, read_record_item, scenario_item
from h2htalk.rounds.items import Item
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.text.tables import value_text

# An id, its text as an item (None where a stage did not keep it), and what was answered or decided about it.
Entry = tuple[str, Item | None, tuple[str, ...]]
# Parts of a record that say something about it and are no text of the conversation.
_SAYS = ("tags", "metadata", "review", "provenance", "licence")


def show(name: str, ids: Collection[str] = (), sample: int = 20) -> Iterator[str]:
    """Yield lines that show records of `name`.

    Args:
        name: a split, a workspace or its stage (`WORKSPACE/safety`: kept and rejected records), a round, a run or a
            study.
        ids: the records to show; none: a sample.
        sample: how many; drawn by a hash of the id, so that the same ones are shown each time.

    Raises:
        ConfigError: an id is not there. DataError, RoundError: `name` is none of these, or a file is damaged.
    """
    path, count, missing = Path(name), 0, set(ids)

    def counting() -> Iterator[Entry]:
        nonlocal count
        for entry in _entries(path, name):
            count += 1
            missing.discard(entry[0])
            yield entry

    if ids:
        chosen = [entry for entry in counting() if entry[0] in ids]
    else:
        chosen = heapq.nsmallest(sample, counting(), key=lambda entry: hashlib.sha256(entry[0].encode()).digest())
    if missing:
        raise ConfigError(f"{name}: no record {quoted(min(missing))} among {counted(count, 'record')}")
    for entry in chosen:
        yield from (*_transcript(*entry), "")
    yield f"{len(chosen):,} of {counted(count, 'record')} of {name}"


def _entries(path: Path, name: str) -> Iterator[Entry]:
    """Every record of a folder or split, in the order of its files."""
    if (path / CALLS).is_file() and os.path.isdir(path / "inputs" / "split"):
        return _run_entries(path)
    if (folder := RoundFolder(path)).exists:
        return _round_entries(folder)
    stage = last_candidates(path) if is_workspace(path) else path
    if os.path.isdir(stage / "kept"):
        require_erased(stage.parent)
        return _stage_entries(stage)
    return _split_entries(name)


def _split_entries(name: str) -> Iterator[Entry]:
    split = load_split(name)
    for one in split.items:
        item = case_item(one, split.personas) if isinstance(one, Case) else scenario_item(one, split.personas)
        yield one.id, item, _said(one.to_dict())


def _stage_entries(stage: Path) -> Iterator[Entry]:
    for where, kept in _lines(stage / "kept"):
        item, _ = read_record_item(where, kept)
        yield item.id, item, ("kept", *_said(kept.get("scenario", {})), *_said(kept))
    for where, line in _lines(stage / "rejected"):
        reason = f"rejected by {line['stage']}: {line['reason']}  {_plain(line.get('evidence'))}"
        if record := line.get("record"):
            yield str(line["id"]), read_record_item(where, record)[0], (reason, *_said(record))
        else:
            yield str(line["id"]), None, (reason, "the text was not kept")


def _lines(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in sorted(folder.glob("part-*.jsonl")):
        yield from read_jsonl(part)


def _round_entries(folder: RoundFolder) -> Iterator[Entry]:
    decided: dict[str, list[str]] = {}
    if (path := folder.path / "decisions.jsonl").is_file():
        for _, one in read_jsonl(path):
            label = " or ".join(one.get("tied") or ()) or value_text(one.get("label"))
            decision = f"{one['question']}: {label} ({one['rule']}, {one.get('support', 0)} of {one.get('votes', 0)})"
            decided.setdefault(str(one["item"]), []).append(decision)
    for item in folder.items():
        yield item.id, item, tuple(decided.get(item.id, ("no decision yet",)))


def _run_entries(path: Path) -> Iterator[Entry]:
    replies: dict[str, list[str]] = {}
    for (key, number), one in read_answers(path / CALLS).items():
        text = one.text if isinstance(one, Response) else f"failed: {one.failure.reason}"
        replies.setdefault(key, []).append(f"reply {number}: {text}")
    by_case: dict[str, list[str]] = {}
    for key, texts in replies.items():  # of a study: ARM/PART/CASE/PLACE
        if len(parts := key.split("/")) == 4:
            by_case.setdefault(parts[2], []).extend(f"{key} {text}" for text in texts)
    for name, item, notes in _split_entries(str(path / "inputs" / "split")):
        yield name, item, (*(replies.get(name) or by_case.get(name, ["not answered"])), *notes)


def _said(record: Mapping[str, Any]) -> tuple[str, ...]:
    """What a record says of itself beside the conversation, one line a part."""
    return tuple(f"{name}: {_plain(record[name])}" for name in _SAYS if record.get(name))


def _plain(value: object) -> str:
    """A value as text: of a flat object without its punctuation."""
    if isinstance(value, Mapping) and all(isinstance(one, str | int | float) for one in value.values()):
        return ", ".join(f"{name} {one}" for name, one in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _transcript(name: str, item: Item | None, notes: Iterable[str]) -> Iterator[str]:
    yield f"── {name}" + (f"  {item.language}  {item.subtask}".rstrip() + "  crisis" * item.crisis if item else "")
    if item:
        parts = [*item.context, *((turn.role, turn.content) for turn in item.turns)]
        parts += [("reply", item.response), ("reference", item.reference)]
        yield from (f"{title}: {text}" if "\n" not in text else f"{title}:\n{text}" for title, text in parts if text)
    yield from (f"  · {note}" for note in notes)
