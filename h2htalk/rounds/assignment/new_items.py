"""Items that no round of a kind holds yet, of a workspace that has grown or of a round that left some to a later one.

A workspace, a round and a release link the rounds that were made from them; of other sources the rounds beside the new
one are searched that were opened from the same source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.data.links import follow_links, link_folder, links_of
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.item_sources import ItemSource
from h2htalk.rounds.questions import Kind
from h2htalk.rounds.readers.read_before import rounds_before, workspace_of
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec


@dataclass(frozen=True, slots=True)
class HeldItems:
    """Which of some items rounds of a kind hold.

    `ids`: of those items; `counts`: round -> how many no round before it held; `missing`: rounds that are not there.
    """

    ids: frozenset[str]
    counts: tuple[tuple[Path, int], ...]
    missing: tuple[Path, ...]


def items_in_rounds(kind: Kind, names: Collection[str], rounds: Iterable[Path]) -> HeldItems:
    """Return which items, by id, these rounds hold; those of another kind do not count. Raise DataError."""
    asked = frozenset(names)
    held: set[str] = set()
    counts: list[tuple[Path, int]] = []
    missing: list[Path] = []
    for path in rounds:
        folder = RoundFolder(path)
        if not folder.exists:
            missing.append(path)
            continue
        if folder.spec().kind != kind:
            continue
        theirs = asked & {item.id for item in folder.items()}
        if theirs - held:
            counts.append((path, len(theirs - held)))
        held |= theirs
    return HeldItems(ids=frozenset(held), counts=tuple(counts), missing=tuple(missing))


def only_new(spec: RoundSpec, out: Path, source: ItemSource) -> ItemSource:
    """Return the items that no other round of the kind holds, with a message on how many these are.

    Raise RoundError where no item is new, DataError where a round cannot be read.
    """
    names = {item.id for item in source.items}
    others = [path for path in _rounds_over(spec, out) if path.resolve() != out.resolve()]
    held = items_in_rounds(spec.kind, names, others)
    places = [f"{path} ({count:,})" for path, count in held.counts]
    unknown = "a round was opened there, and is not there; whether it holds items is not known"
    notes = [f"{path}: {unknown}" for path in held.missing]
    total = counted(len(names), "item")
    in_rounds = ", ".join(places)
    items = tuple(item for item in source.items if item.id not in held.ids)
    if not items:
        raise RoundError(
            f"{spec.items}: none of {total} is new: {spec.kind} rounds hold all, {in_rounds}; to read what is new in "
            "the sources, `h2htalk curate run SPEC --update`; to ask about all items again, leave --new out"
        )
    message = f"{len(items):,} of {total} {'is' if len(items) == 1 else 'are'} new"
    if held.ids:
        message += f"; others are in {in_rounds}"
    else:
        message += f": no other {spec.kind} round holds any"
    records = {item.id: source.records[item.id] for item in items if item.id in source.records}
    return replace(source, items=items, records=records, notes=(*source.notes, message, *notes))


def _rounds_over(spec: RoundSpec, out: Path) -> Iterator[Path]:
    """Yield the rounds that may hold items of the same source, each once."""
    earlier = [folder.path for folder in rounds_before(spec)]
    origin = workspace_of(spec) or link_folder(spec.items)
    roots = earlier if origin is None else [*earlier, origin]
    linked = [
        path
        for root in roots
        for link, path in follow_links(links_of(root))
        if link.kind == "round"
    ]
    beside = [
        folder.path for folder in _rounds_beside(out) if str(folder.spec().items) == str(spec.items)
    ]
    known: set[Path] = set()
    for path in (*earlier, *linked, *beside):
        if path.resolve() not in known:
            known.add(path.resolve())
            yield path


def _rounds_beside(out: Path) -> Iterator[RoundFolder]:
    parent = out.resolve().parent
    for path in sorted(parent.iterdir()) if parent.is_dir() else ():
        folder = RoundFolder(path)
        if folder.exists:
            yield folder
