"""Erase items from a round: files, spreadsheets and server lose them, and what is left still verifies.

Decisions on other items stay as they are, with their keyed hashes. Agreement and statistics are computed again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.data.candidate_stages import is_workspace
from h2htalk.data.erasure.erased_ids import ErasedIds
from h2htalk.data.erasure.filter_files import filter_file, remove_partial_files
from h2htalk.data.erasure.folder_kinds import FolderErasure, kind_of, marked
from h2htalk.data.files import read_jsonl, sha256_of, write_json
from h2htalk.data.links import link_folder
from h2htalk.errors import MissingExtraError, RoundError
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.assignment.assignments import AssignmentSet, session_numbers
from h2htalk.rounds.closing import write_statistics
from h2htalk.rounds.erasure.erased_items import ErasedItems
from h2htalk.rounds.integrity import items_fingerprint, require_unchanged, validate_round
from h2htalk.rounds.platforms import open_platform
from h2htalk.rounds.round_folder import ASSIGNMENT_SETS, SOURCES, RoundFolder


@marked
def erase_from_round(path: Path, erased: ErasedIds) -> FolderErasure:
    """Erase the items that hold words of erased ids; complete an erasure that was interrupted.

    Raises RoundError for a copy without the private folder, or annotations changed after closing, and DataError.
    """
    folder = RoundFolder(path).require()
    if not folder.annotators():
        raise RoundError(
            f"{path}: this copy of the round has no folder `private`, so nothing can be erased from it; delete the copy"
        )
    with folder.locked():
        removed = _finish(folder)
        validate_round(folder)
        if folder.state == "closed":
            require_unchanged(folder)
        sources = folder.sources()
        gone = {item.id for item in folder.items() if erased.covers_item(item.id, sources.get(item.id))}
        if gone:
            _begin(folder, gone)
            removed += _finish(folder)
        return _erase_outside(folder, removed)


def _begin(folder: RoundFolder, gone: Collection[str]) -> None:
    """Record what is to be erased; from now on it is completed whatever happens."""
    before, annotations, sets = folder.erased_items(), folder.stored_annotations(), folder.assignment_sets()
    completed = completed_items(folder.items(), folder.questions(), annotations)
    done = Counter(annotator for item in gone for annotator in completed[item])
    skipped = Counter(annotator for item, annotator in skips(annotations) if item in gone)
    paid = dict(before.paid)
    for annotator in {*done, *skipped}:
        earlier = paid.get(annotator, (0, 0))
        paid[annotator] = earlier[0] + done[annotator], earlier[1] + skipped[annotator]
    given = {one.annotator for one_set in sets for one in one_set.assignments if one.item in gone}
    items, given_to, pending = (
        tuple(sorted(ids)) for ids in ({*before.items, *gone}, {*before.given_to, *given}, gone)
    )
    folder.write_erased_items(ErasedItems(items, pending, len(folder.events()), given_to, paid))


def _finish(folder: RoundFolder) -> int:
    """Remove the pending items from all files of the round; return their number. Can be repeated after a kill."""
    record = folder.erased_items()
    if not record.pending:
        return 0
    gone = frozenset(record.pending)
    remove_partial_files(folder.path)
    # First: the sessions of a server are numbered by the language of their items.
    languages = {item.id: item.language for item in folder.items()}
    folder.write_assignment_sets([_without(one, gone, languages) for one in folder.assignment_sets()])
    for path in sorted([*folder.path.glob("*.jsonl"), *folder.private.glob("*.jsonl")]):
        if path.name != ASSIGNMENT_SETS:
            filter_file(path, lambda line: gone.isdisjoint(_items_in(line)))
    # The hashes of the files without the items, and what other rounds know this one by.
    manifest = folder.manifest()
    manifest.setdefault("opened_items_sha256", manifest.get("items_sha256"))
    manifest["items_sha256"] = items_fingerprint(line for _, line in read_jsonl(folder.path / "items.jsonl"))
    if "sources_sha256" in manifest:
        manifest["sources_sha256"] = sha256_of(folder.path / SOURCES)
    write_json(folder.path / "round.json", manifest)
    closed = folder.state == "closed"
    if closed:
        write_statistics(folder)
    if len(folder.events()) == record.events:
        folder.add_event("erased", items=len(gone), **(folder.annotations_fingerprint() if closed else {}))
    folder.protect()
    folder.write_erased_items(replace(record, pending=()))
    return len(gone)


def _items_in(line: Mapping[str, Any]) -> set[object]:
    """The item of a line: of items and sources their `id`; of adjudications, whose tie is `ITEM#question`."""
    return {line.get("id"), line.get("item"), str(line.get("tie")).rpartition("#")[0]}


def _without(one: AssignmentSet, gone: Collection[str], languages: Mapping[str, str]) -> AssignmentSet:
    numbered = zip(session_numbers(one, languages), one.groups, strict=True) if one.groups else ()
    kept = [(number, tuple(item for item in group if item not in gone)) for number, group in numbered]
    return replace(
        one,
        requested={item: count for item, count in one.requested.items() if item not in gone},
        assignments=tuple(assignment for assignment in one.assignments if assignment.item not in gone),
        groups=tuple(group for _, group in kept if group),
        sessions=tuple(number for number, group in kept if group),
    )


def _erase_outside(folder: RoundFolder, removed: int) -> FolderErasure:
    """Erase from spreadsheets or server, also what an earlier erasure did not reach; list what nobody here can."""
    items, unfinished = folder.erased_items().items, False
    if not items:
        return FolderErasure()
    try:
        messages = list(open_platform(folder.spec().where).erase(folder, items))
    except (RoundError, MissingExtraError) as error:
        unfinished, messages = True, [f"not erased there: {error}; then start the same erasure again"]
    source = Path(str(folder.source_paths().get("items")))
    if os.path.exists(source) and not (is_workspace(source.parent) or kind_of(source) or link_folder(source)):
        messages.append(f"{source}: the round was opened from it, and it may still hold the items: remove them there")
    return FolderErasure(removed, frozenset(items), tuple(messages), unfinished)
