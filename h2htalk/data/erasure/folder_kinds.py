"""Erased ids, the table of kinds of folders that are made from a workspace, and the one way in which items leave them.

A new kind is one record here, and the class that it names. While an erasure works on a folder, and after a kill, the
folder holds the file `.erasing`: its readers call `require_erased`.
"""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from h2htalk.data.erasure.unfinished_erasure import (
    MARK,
    MARKERS,
    interrupted_message,
    reading_while_erasing,
)
from h2htalk.data.files import (
    read_jsonl,
    refuse_links,
    remove_half_written,
    replacing,
    write_jsonl,
    write_text,
)
from h2htalk.data.parquet import read_parquet
from h2htalk.data.responses import CALLS
from h2htalk.errors import DataError, H2HTalkError

Record = Mapping[str, Any]

# --- Whose words a record holds ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ErasedIds:
    """What was erased: `ids` of dialogues and persons; `items` on them, by id, whose records may not tell of them."""

    ids: frozenset[str]
    items: frozenset[str] = frozenset()

    def covers(self, record: Record) -> bool:
        """Whether a record holds words of an erased id: by its own ids, those of the record in it, or of replies."""
        return any(not self.ids.isdisjoint(_beginnings(name)) for name in ids_in(record))

    def covers_item(self, item_id: str, record: Record | None) -> bool:
        """Whether an item rests on an erased id: by its record, and where that does not tell of replies, by its id."""
        if record is not None and self.covers(record):
            return True
        if record is not None and ("messages" in record or len(list(_records_in(record))) > 1):
            return False  # the record tells of replies
        return not (self.ids | self.items).isdisjoint(_beginnings(item_id))


def own_ids(record: Record) -> frozenset[str]:
    """The ids of those whose words a record or reply holds: its own, its dialogue's, its person's."""
    provenance = record.get("provenance") or {}
    ids = {
        record.get("id"),
        record.get("dialogue"),
        provenance.get("dialogue"),
        provenance.get("person"),
    }
    return frozenset(name for name in ids if name is not None)


def ids_in(record: Record) -> frozenset[str]:
    """The ids of everybody whose words a record holds, replies of others included."""
    return frozenset().union(*map(own_ids, _records_in(record)))


def _records_in(record: Record) -> Iterator[Record]:
    """A record, the one in it, and the replies of others (references of scenarios are texts)."""
    for holder in (record, record.get("record"), record.get("scenario")):
        if not isinstance(holder, Mapping):
            continue
        yield holder
        metadata = holder.get("metadata") or {}
        for replies in (
            metadata.get("alternatives"),
            metadata.get("references"),
            holder.get("references"),
        ):
            for reply in replies or ():
                if isinstance(reply, Mapping):
                    yield reply


def _beginnings(name: str) -> set[str]:
    """An id with those that it begins with: `DIALOGUE:subtask/pair-1-2/ab`, `DIALOGUE:subtask#keep`."""
    item = name.split("/", 1)[0].split("#", 1)[0]
    return {name, name.rsplit("/", 2)[0], item, item.split(":", 1)[0]}


# --- Files of a folder ------------------------------------------------------------------------------------------------

BEGUN = "begun\n"  # in the mark of a folder whose files were changed
ERASED = "erased.jsonl"  # the items that were erased from a folder, a line each, with their `id`
_erasing_here: set[str] = set()  # the folders from which this process erases now
# What stays of a call whose item is erased: what was paid is not undone.
MONEY = frozenset(
    """
    reserved call stage asked samples bound worst batch prices cost reason usage usd
    """.split()  # noqa: SIM905
)


def read_erased(path: Path) -> dict[str, Record]:
    """Read a file of erased items, by id; none without it. Raises DataError."""
    lines: dict[str, Record] = {}
    for where, line in read_jsonl(path) if path.is_file() else ():
        if not isinstance(line.get("id"), str):
            raise DataError(f"{where}: needs the id of an erased item; restore it")
        lines[line["id"]] = line
    return lines


def require_erased(folder: Path) -> None:
    """Raise DataError where an erasure from a folder is not finished, unless it is this process that erases there."""
    if os.path.lexists(folder / MARK) and os.path.realpath(folder) not in _erasing_here:
        raise DataError(interrupted_message(folder))


def filter_file(path: Path, stays: Callable[[Record], bool]) -> None:
    """Remove the records of a JSONL or Parquet file for which `stays` is false."""
    is_parquet = path.suffix == ".parquet"
    rows = read_parquet(path) if is_parquet else read_jsonl(path, torn_tail=True)
    records = [record for _, record in rows]
    mask = [stays(record) for record in records]
    if all(mask):
        return
    if is_parquet:
        import pyarrow.parquet as pq

        # Opened here: pyarrow takes no path that is not UTF-8.
        with (
            replacing(path) as temporary,
            path.open("rb") as source,
            temporary.open("wb") as target,
        ):
            pq.write_table(pq.read_table(source).filter(mask), target)
    elif path.name == CALLS:
        lines = map(_without_text, records, mask)
        write_jsonl(path, filter(None, lines))
    else:
        write_jsonl(path, compress(records, mask))


def _without_text(record: Record, stays: bool) -> Record:
    """A line of a call store, or what stays of it: the call and its money, nothing where there was none."""
    if stays or "job" in record:
        return record
    money = {key: value for key, value in record.items() if key in MONEY}
    if "reserved" in money or "call" in money:
        return money | {"erased": True}
    return {}


def remove_for_good(path: Path) -> None:
    """Remove a file or folder if it exists; raises DataError where it stays, as it may hold texts."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        where = error.filename or path
        why = error.strerror or error
        raise DataError(
            f"{where}: cannot be removed: {why}; remove it and start the same command again"
        ) from error


# --- Kinds of folders -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FolderErasure:
    """What an erasure did in one folder, or for a version on the Hub."""

    removed: int = 0  # items that it removed now
    items: frozenset[str] = frozenset()  # ids of all that were ever erased from it
    messages: tuple[str, ...] = ()  # what it could not reach
    unfinished: bool = False  # the same erasure must be started again
    name: str = ""
    kind: str = ""  # empty where nothing is there


class ErasableFolder(ABC):
    """What the table cannot say of a folder: how to lock and verify it, and to make again what rests on all items."""

    erased_file = ERASED

    def __init__(self, path: Path) -> None:
        self.path = path

    def locked(self) -> AbstractContextManager[object]:
        """Hold the folder's lock; raises DataError where another process holds it."""
        return nullcontext()

    def erased(self) -> frozenset[str]:
        """The names by which rows know the items that were ever recorded as erased."""
        return frozenset(read_erased(self.path / self.erased_file))

    @abstractmethod
    def items(self) -> Iterable[tuple[str, Record | None]]:
        """The ids of the folder's items with their records. Raises H2HTalkError where it was altered."""

    def record(self, gone: frozenset[str]) -> None:
        """Write down the ids of items before any file changes. Raises H2HTalkError where they cannot be erased."""
        names = sorted(self.erased() | gone)
        write_jsonl(self.path / self.erased_file, ({"id": name} for name in names))

    def remake(self) -> Iterable[str]:
        """Make again what rests on all items, in a folder without the erased ones; messages of what could not be."""
        return ()

    def written(self) -> Iterable[str]:
        """Files besides those in the table that the package writes into the folder, as in `FolderKind.written`."""
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

    def items(self, row: Record) -> set[str]:
        """The items that a row is about."""
        inner = row.get("item")
        if isinstance(inner, Mapping):
            row = {**row, "item": None, "item.id": inner.get("id")}
        items = set()
        for field in self.fields.split():
            if row.get(field) is not None:
                name = str(row[field])
                match = re.fullmatch(self.item, name, re.DOTALL)
                items.add(match[1] if match else name)
        return items


@dataclass(frozen=True, slots=True)
class Start:
    """What the start of a command writes into a new folder before the marker of its kind (`data.erasure.begun`)."""

    first: str  # the file that it writes first
    texts: tuple[str, ...]  # files and folders that hold words of items
    without_texts: tuple[str, ...]  # files and folders that hold no words
    log: str  # without `.lock`: the lock that its writer holds
    first_is_empty: bool = False  # until the marker is there


@dataclass(frozen=True, slots=True)
class FolderKind:
    """A kind of folder."""

    name: str  # in links
    marker: str  # the file that identifies it
    shown_by: str  # a command
    folder: str  # its ErasableFolder
    rows: tuple[Rows, ...]  # files that lose the rows of erased items
    # The files that the package writes into the folder, as in `remove_half_written`: a kill may leave half of them.
    written: tuple[str, ...]
    derived: str = ""  # what is deleted because it rests on all items
    start: Start | None = None  # None: the marker is written before the items


# Patterns of the files that the package writes, by kind of folder, separated by white space.
_SPLIT_FILES = """
    scenarios.jsonl scenarios.parquet cases.jsonl cases.parquet README.md split.toml
    invented.txt personas/*.toml
"""
_RUN_FILES = f"""
    {MARK} {MARKERS["run"]} {MARKERS["attempt"]} {MARKERS["study"]} shard.json {CALLS}
    summary.json report.html {ERASED} links.jsonl observations.parquet baselines/*.jsonl
    scores/*.parquet adjudication/*.jsonl tables/*.csv tables/*.md tables/*.tex tables/*.json
    figures/*.svg figures/*.pdf inputs/prompts/*/*.j2 inputs/prompts/*/sap/*.j2
    inputs/prompts/help_lines.json judgements/*.json judgements/*.jsonl judgements/*.parquet
    judgements/secret.key
"""
_RELEASE_FILES = f"""
    {MARK} {MARKERS["release"]} README.md history.json tombstones.jsonl croissant.json
    eval.yaml links.jsonl data/*/*.jsonl data/*/*.parquet guidelines/*.md personas/*.toml
    figures/*.svg figures/*.png reads.jsonl
"""
_SITE_FILES = f"""
    {MARK} {MARKERS["site"]} index.html items.html models/*.html studies/*.html studies/*.svg
    data.parquet data/*.json data/*.js data/*.csv tables/*.csv tables/*.md tables/*.tex
    figures/*.svg figures/*.pdf
"""
# Without the workbooks, which are named after its annotators.
_ROUND_FILES = f"""
    {MARK} {MARKERS["round"]} items.jsonl sources.jsonl assignment_sets.jsonl
    annotations.jsonl erased_votes.jsonl adjudications.jsonl events.jsonl links.jsonl
    .gitignore guidelines/*.md decisions.jsonl agreement.json annotator_statistics.csv
    shared_answers.jsonl decisions.before-*.jsonl agreement.before-*.json
    annotator_statistics.before-*.csv shared_answers.before-*.jsonl private/salt
    private/annotators.jsonl private/source_paths.json private/submissions.jsonl
    private/payments.jsonl private/{ERASED} private/erased_annotators.jsonl
    private/erasing_annotator.json private/read_spreadsheets.jsonl private/payment.csv
    private/payment.before-*.csv private/qualified.csv private/qualified.before-*.csv
    private/prolific_bonus.csv private/prolific_bonus.before-*.csv private/prolific_done.csv
    private/prolific_check.csv private/argilla_logins.csv private/argilla_accounts.json
    private/argilla_created.json private/argilla_discards.jsonl
    private/label_studio_logins.csv private/label_studio_accounts.json
"""

# An answer is `ITEM/SAMPLE/HASH`, a reply of a study `CASE/PLACE/HASH:QUESTION`.
_JUDGED = Rows("judgements/* adjudication/*", "answer item.id id", "(.*)/[^/]*/[^/]*")
_RUN_START = Start(
    first=CALLS, texts=("inputs",), without_texts=(), log="calls", first_is_empty=True
)
_ROUND_START = Start(
    first="private/salt",
    texts=("items.jsonl", "sources.jsonl"),
    without_texts=("private", "guidelines", ".gitignore"),
    log="round",
)

_RUN_ROWS = (Rows("calls.jsonl baselines/* inputs/split/*"),)
_WRITTEN_BY_RUN = (
    *_RUN_FILES.split(),
    *(f"inputs/split/{name}" for name in _SPLIT_FILES.split()),
)
_KINDS = (
    FolderKind(
        name="round",
        marker=MARKERS["round"],
        shown_by="round status",
        folder="h2htalk.rounds.erasure:ErasableRound",
        rows=(
            Rows("*.jsonl", "id item"),
            Rows("adjudications.jsonl", "tie", "(.*)#[^#]*"),
            Rows("private/*", "item"),
        ),
        written=tuple(_ROUND_FILES.split()),
        start=_ROUND_START,
    ),
    FolderKind(
        name="run",
        marker=MARKERS["run"],
        shown_by="report",
        folder="h2htalk.benchmark.score_run:ErasableRun",
        rows=(*_RUN_ROWS, _JUDGED),
        written=_WRITTEN_BY_RUN,
        derived="scores tables report.html judgements/calibration.json judgements/label_plan.json",
        start=_RUN_START,
    ),
    FolderKind(
        name="attempt",
        marker=MARKERS["attempt"],
        shown_by="merge --out RUN",
        folder="h2htalk.scale.attempt_erasure:ErasableAttempt",
        rows=_RUN_ROWS,
        written=_WRITTEN_BY_RUN,
        start=_RUN_START,
    ),
    FolderKind(
        name="study",
        marker=MARKERS["study"],
        shown_by="study score",
        folder="h2htalk.benchmark.studies.run_study:ErasableStudy",
        rows=(Rows("calls.jsonl inputs/split/*", "item id"), _JUDGED),
        written=_WRITTEN_BY_RUN,
        derived="observations.parquet report.html tables figures",
        start=_RUN_START,
    ),
    FolderKind(
        name="release",
        marker=MARKERS["release"],
        shown_by="release check",
        folder="h2htalk.data.releases.release_folder:ErasableRelease",
        rows=(Rows("data/*/*", "id item"), Rows("reads.jsonl", "item")),  # votes are on an `item`
        written=tuple(_RELEASE_FILES.split()),
        derived="figures",
    ),
    FolderKind(
        name="site",
        marker=MARKERS["site"],
        shown_by="site RUN... --out",
        folder="h2htalk.site.build:ErasableSite",
        rows=(),
        written=tuple(_SITE_FILES.split()),
        derived="index.html items.html models studies data data.parquet figures tables",
    ),
)
FOLDER_KINDS: Mapping[str, FolderKind] = {kind.name: kind for kind in _KINDS}


def kind_of(folder: Path) -> FolderKind | None:
    """The kind of a folder by its marker; None for others."""
    for kind in FOLDER_KINDS.values():
        if os.path.isfile(folder / kind.marker):
            return kind
    return None


def require_folder_kind(folder: Path, name: str) -> None:
    """Raise DataError, naming the command that shows it, for a folder of another kind."""
    kind = kind_of(folder)
    if kind is not None and kind.name != name:
        article = "an" if kind.name[0] == "a" else "a"
        raise DataError(
            f"{folder}: is {article} {kind.name}, and this command needs a {name}; "
            f"`h2htalk {kind.shown_by} {folder}` shows it"
        )


def require_published_erased(release: Path) -> None:
    """Raise DataError where the workspace of a release is erasing, or has erased, somebody whose words it holds."""
    resolve_name("h2htalk.curation.released:require_erased_release")(release)


def require_published_tested(release: Path) -> None:
    """Raise PublishError where items of a release are unread for a gate, and its owner does not allow that."""
    resolve_name("h2htalk.curation.release.build:require_tested_release")(release)


def erased_from_workspace(workspace: Path) -> ErasedIds:
    """The dialogues and persons that were erased from a workspace."""
    return ErasedIds(resolve_name("h2htalk.curation.workspace:Workspace")(workspace).erased())


def erase_stored(url: str, erased: ErasedIds) -> FolderErasure:
    """Remove the items of erased ids from an attempt on object storage."""
    return resolve_name("h2htalk.scale.attempt_erasure:erase_stored")(url, erased)  # type: ignore[no-any-return]


# --- Erasure from a folder --------------------------------------------------------------------------------------------


def erase(path: Path, erased: ErasedIds) -> FolderErasure:
    """Remove the items of erased ids from a folder of any kind, and complete an erasure that was interrupted."""
    kind = kind_of(path)
    if kind is None:
        return FolderErasure()
    refuse_links(path)  # a round of others may name any folder by one
    with _marked(path) as begun:
        folder: ErasableFolder = resolve_name(kind.folder)(path)
        with folder.locked():
            messages = _remove(kind, folder) if begun else []
            before = folder.erased()
            gone = set()
            for name, record in folder.items():
                if name in before or erased.covers_item(name, record):
                    gone.add(name)
            if gone:
                write_text(path / MARK, BEGUN)
                folder.record(frozenset(gone))
                messages = _remove(kind, folder)
            unfinished = False
            items = folder.erased()
            try:
                if items:
                    messages += folder.outside()
            except H2HTalkError as error:
                unfinished = True
                messages.append(f"not erased there: {error}; then start the same erasure again")
    return FolderErasure(
        removed=len(gone),
        items=items,
        messages=tuple(messages),
        unfinished=unfinished,
        kind=kind.name,
    )


def _remove(kind: FolderKind, folder: ErasableFolder) -> list[str]:
    """Remove what is recorded as erased. Can be repeated after a kill."""
    names = folder.erased()
    if not names:
        return []
    # Half of a file may hold words of an item, and only whole files are searched for them.
    remove_half_written(folder.path, (*kind.written, *folder.written()))
    for rows in kind.rows:
        for pattern in rows.files.split():
            for path in list(folder.path.glob(pattern)):
                if path.suffix in (".jsonl", ".parquet"):
                    filter_file(path, lambda row, rows=rows: names.isdisjoint(rows.items(row)))  # type: ignore[misc]
    for name in kind.derived.split():
        remove_for_good(folder.path / name)
    return list(folder.remake())


def mark_folder(folder: Path) -> None:
    """Mark a folder from which somebody is to be erased; one that cannot be written cannot be half erased either."""
    if not os.path.lexists(folder / MARK):
        with suppress(DataError):
            write_text(folder / MARK, "")


@contextmanager
def _marked(folder: Path) -> Iterator[bool]:
    """Mark a folder while items leave it; the mark stays where that fails. Yields whether an earlier one had begun."""
    real_path = os.path.realpath(folder)
    mark = folder / MARK
    begun = mark.is_file() and mark.read_text(encoding="utf-8") == BEGUN
    mark_folder(folder)
    _erasing_here.add(real_path)
    try:
        with reading_while_erasing():
            yield begun
        remove_for_good(mark)
    finally:
        _erasing_here.discard(real_path)
