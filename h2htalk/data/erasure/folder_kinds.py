"""The table of kinds of folders that are made from a workspace, and the one way in which items leave such a folder.

A new kind is one record here, and the class that it names. While an erasure works on a folder, and after a kill, the
folder holds the file `.erasing`: its readers call `require_erased`.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name

from h2htalk.data.erasure import erased_ids
from h2htalk.data.files import refuse_links, write_jsonl, write_text
from h2htalk.errors import DataError, H2HTalkError


@dataclass(frozen=True, slots=True)
class FolderErasure:
    """What an erasure did in one folder, or for a version on the Hub; `kind` is empty where nothing is there.

    `removed` counts the items that it removed now, `items` are the ids of all that were ever erased from it. `messages`
    say what it could not reach; where it is `unfinished`, the same erasure must be started again.
    """

    removed: int = 0
    items: frozenset[str] = frozenset()
    messages: tuple[str, ...] = ()
    unfinished: bool = False
    name: str = ""
    kind: str = ""


class ErasableFolder(ABC):
    """What the table cannot say of a folder: how to lock and verify it, and to make again what rests on all items."""

    erased_file = erased_ids.ERASED

    def __init__(self, path: Path) -> None:
        self.path = path

    def locked(self) -> AbstractContextManager[object]:
        """Hold the folder's lock; raises DataError where another process holds it."""
        return nullcontext()

    def erased(self) -> frozenset[str]:
        """The names by which rows know the items that were ever recorded as erased."""
        return frozenset(erased_ids.read_erased(self.path / self.erased_file))

    @abstractmethod
    def items(self) -> Iterable[tuple[str, erased_ids.Record | None]]:
        """The ids of the folder's items with their records. Raises H2HTalkError where it was altered."""

    def record(self, gone: frozenset[str]) -> None:
        """Write down the ids of items before any file changes. Raises H2HTalkError where they cannot be erased."""
        write_jsonl(self.path / self.erased_file, ({"id": name} for name in sorted(self.erased() | gone)))

    def remake(self) -> Iterable[str]:
        """Make again what rests on all items, in a folder without the erased ones; messages of what could not be."""
        return ()

    def outside(self) -> Iterable[str]:
        """Erase from what lies elsewhere; messages of what is out of reach. Raises H2HTalkError for no answer."""
        return ()


@dataclass(frozen=True, slots=True)
class Rows:
    """Files (patterns) whose rows name an item in `fields` (`A.B`: in an object), by the pattern `item` or as it is."""

    files: str
    fields: str = "id"
    item: str = "(.*)"

    def items(self, row: erased_ids.Record) -> set[str]:
        """The items that a row is about."""
        inner = row.get("item")
        given = {**row, "item": None, "item.id": inner.get("id")} if isinstance(inner, Mapping) else row
        names = [str(given[field]) for field in self.fields.split() if given.get(field) is not None]
        return {match[1] if (match := re.fullmatch(self.item, name, re.DOTALL)) else name for name in names}


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder: its name in links, the file that identifies it, the command that shows it, its ErasableFolder.

    `rows` are the files that lose the rows of erased items, `derived` what is deleted because it rests on all items.
    """

    name: str
    marker: str
    shown_by: str
    folder: str
    rows: tuple[Rows, ...]
    derived: str = ""


# An answer is `ITEM/SAMPLE/HASH`, a reply of a study `CASE/PLACE/HASH:QUESTION`.
_JUDGED = Rows("judgements/* adjudication/*", "answer item.id id", "(.*)/[^/]*/[^/]*")

_KINDS = (
    FolderKind(
        *("round", "round.json", "round status", "h2htalk.rounds.erasure:ErasableRound"),
        (Rows("*.jsonl", "id item"), Rows("adjudications.jsonl", "tie", "(.*)#[^#]*"), Rows("private/*", "item")),
    ),
    FolderKind(
        *("run", "run.json", "report", "h2htalk.benchmark.score_run:ErasableRun"),
        (Rows("calls.jsonl baselines/* inputs/split/*"), _JUDGED),
        "scores tables report.html judgements/calibration.json judgements/label_plan.json",
    ),
    FolderKind(
        *("study", "study.json", "study score", "h2htalk.benchmark.studies.run_study:ErasableStudy"),
        (Rows("calls.jsonl inputs/split/*", "item id"), _JUDGED),
        "observations.parquet report.html tables figures",
    ),
    FolderKind(
        *("release", "release.json", "release check", "h2htalk.data.releases.release_folder:ErasableRelease"),
        (Rows("data/*/*", "id item"),),  # votes are on an `item`
        "figures",
    ),
)
FOLDER_KINDS: Mapping[str, FolderKind] = {kind.name: kind for kind in _KINDS}


def erase(path: Path, erased: erased_ids.ErasedIds) -> FolderErasure:
    """Remove the items of erased ids from a folder of any kind, and complete an erasure that was interrupted."""
    if (kind := kind_of(path)) is None:
        return FolderErasure()
    refuse_links(path)  # a round of others may name any folder by one
    with _marked(path) as begun:
        folder: ErasableFolder = resolve_name(kind.folder)(path)
        with folder.locked():
            messages = _remove(kind, folder) if begun else []
            before, unfinished = folder.erased(), False
            gone = {name for name, row in folder.items() if name in before or erased.covers_item(name, row)}
            if gone:
                write_text(path / erased_ids.MARK, erased_ids.BEGUN)
                folder.record(frozenset(gone))
                messages = _remove(kind, folder)
            try:
                messages += folder.outside() if (items := folder.erased()) else ()
            except H2HTalkError as error:
                unfinished = True
                messages.append(f"not erased there: {error}; then start the same erasure again")
    return FolderErasure(len(gone), items, tuple(messages), unfinished, kind=kind.name)


def _remove(kind: FolderKind, folder: ErasableFolder) -> list[str]:
    """Remove what is recorded as erased. Can be repeated after a kill."""
    if not (names := folder.erased()):
        return []
    erased_ids.remove_partial_files(folder.path)
    for rows in kind.rows:
        for path in (path for pattern in rows.files.split() for path in [*folder.path.glob(pattern)]):
            if path.suffix in (".jsonl", ".parquet"):
                erased_ids.filter_file(path, lambda row, rows=rows: names.isdisjoint(rows.items(row)))  # type: ignore[misc]
    for name in kind.derived.split():
        erased_ids.remove_for_good(folder.path / name)
    return list(folder.remake())


def require_folder_kind(folder: Path, name: str) -> None:
    """Raise DataError, naming the command that shows it, for a folder of another kind."""
    if (kind := kind_of(folder)) is not None and kind.name != name:
        what = f"is a {kind.name}, and this command needs a {name}"
        raise DataError(f"{folder}: {what}; `h2htalk {kind.shown_by} {folder}` shows it")


def mark_folder(folder: Path) -> None:
    """Mark a folder from which somebody is to be erased; one that cannot be written cannot be half erased either."""
    if not os.path.lexists(folder / erased_ids.MARK):
        with suppress(DataError):
            write_text(folder / erased_ids.MARK, "")


@contextmanager
def _marked(folder: Path) -> Iterator[bool]:
    """Mark a folder while items leave it; the mark stays where that fails. Yields whether an earlier one had begun."""
    place, mark = os.path.realpath(folder), folder / erased_ids.MARK
    begun = mark.is_file() and mark.read_text(encoding="utf-8") == erased_ids.BEGUN
    mark_folder(folder)
    erased_ids.erasing_here.add(place)
    try:
        yield begun
        erased_ids.remove_for_good(mark)
    finally:
        erased_ids.erasing_here.discard(place)


def require_published_erased(release: Path) -> None:
    """Raise DataError where the workspace of a release is erasing, or has erased, somebody whose words it holds."""
    resolve_name("h2htalk.curation.release.check:require_erased_release")(release)


def kind_of(folder: Path) -> FolderKind | None:
    """The kind of a folder by its marker; None for others."""
    return next((kind for kind in FOLDER_KINDS.values() if os.path.isfile(folder / kind.marker)), None)
