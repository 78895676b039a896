"""Erase items from a round: files, spreadsheets and server lose them.

Decisions on other items stay as they are. Agreement and statistics are computed again.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import ERASED, ErasableFolder, Record, kind_of
from h2htalk.data.languages import Language
from h2htalk.data.links import link_folder
from h2htalk.data.stage_folders import is_workspace
from h2htalk.errors import RoundError
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotations import skips
from h2htalk.rounds.assignment.assignments import AssignmentSet, session_numbers
from h2htalk.rounds.outcome import write_statistics
from h2htalk.rounds.platforms import open_platform
from h2htalk.rounds.round_folder import ASSIGNMENT_SETS, ErasedItem, RoundFolder, read_state


class ErasableRound(ErasableFolder):
    """A round: files, spreadsheets and server lose an item, and annotators stay paid for it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.folder = RoundFolder(path).require()
        if not self.folder.has_annotators:
            copy = "this copy of the round has no folder `private`, so nothing can be erased from it; delete the copy"
            raise RoundError(f"{path}: {copy}")

    def locked(self) -> AbstractContextManager[None]:
        return self.folder.locked()

    def written(self) -> list[str]:
        return self.folder.workbooks()

    def erased(self) -> frozenset[str]:
        return frozenset(one.id for one in self.folder.erased_items())

    def items(self) -> Iterator[tuple[str, Record | None]]:
        state = read_state(self.folder)
        sources = self.folder.sources()
        return ((item.id, sources.get(item.id)) for item in state.items)

    def record(self, gone: frozenset[str]) -> None:
        folder = self.folder
        state = read_state(self.folder)
        known = self.erased()
        completed = completed_items(state.items, state.questions, state.stored)
        skipped = skips(state.stored)
        given = {(one.item, one.annotator) for one_set in state.sets for one in one_set.assignments}
        new = [
            ErasedItem(
                item.id,
                item.language,
                given_to=tuple(sorted(annotator for name, annotator in given if name == item.id)),
                completed=tuple(sorted(completed[item.id])),
                skipped=tuple(sorted(annotator for name, annotator in skipped if name == item.id)),
            )
            for item in state.items
            if item.id in gone - known
        ]
        folder.write_records(f"private/{ERASED}", [*folder.erased_items(), *new])

    def remake(self) -> tuple[str, ...]:
        """Write assignment sets and statistics of the items that are left."""
        folder = self.folder
        erased = self.folder.erased_items()
        gone = {one.id: one.language for one in erased}
        # The sessions of a server are numbered by the language of their items.
        languages = {item.id: item.language for item in folder.items()} | gone
        sets = [_without(one, gone, languages) for one in folder.assignment_sets()]
        folder.write_records(ASSIGNMENT_SETS, sets)
        state = read_state(folder)
        if state.phase == "closed":
            write_statistics(state)
        if new := len(erased) - sum(
            event["items"] for event in state.events if event["event"] == "erased"
        ):
            folder.add_event("erased", items=new)
        folder.protect()
        return ()

    def outside(self) -> Iterator[str]:
        """Erase from spreadsheets or server, also what an earlier erasure did not reach; list what nobody here can."""
        folder = self.folder
        source = Path(str(folder.source_paths().get("items")))
        if os.path.exists(source) and not (
            is_workspace(source.parent) or kind_of(source) or link_folder(source)
        ):
            yield f"{source}: the round was opened from it, and it may still hold the items: remove them there"
        state = read_state(folder)
        yield from open_platform(state.spec.where).erase(state, self.erased())


def _without(
    one: AssignmentSet, gone: Collection[str], languages: Mapping[str, Language]
) -> AssignmentSet:
    numbered = zip(session_numbers(one, languages), one.groups, strict=True) if one.groups else ()
    kept = [
        (number, tuple(item for item in group if item not in gone)) for number, group in numbered
    ]
    return replace(
        one,
        requested={item: count for item, count in one.requested.items() if item not in gone},
        assignments=tuple(
            assignment for assignment in one.assignments if assignment.item not in gone
        ),
        groups=tuple(group for _, group in kept if group),
        sessions=tuple(number for number, group in kept if group),
    )
