"""The file of a split's private references, which only its owner has: JSONL of `id` and `references`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.dialogue import read_id
from h2htalk.data.files import read_jsonl
from h2htalk.data.scenario import read_references
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, quoted


def with_references(split: Split, path: Path, selected: bool, erased: str = "") -> Split:
    """Add the references of a file to the scenarios that have none.

    Args:
        split: with private references.
        path: the file, whose SHA-256 the split names.
        selected: whether the split is a selection, or items were erased from it, so that the file may hold more ids.
        erased: where items were erased from the split: the SHA-256 of the file that was left without them.

    Raises:
        DataError: the split has no private references, it is not the file of this split, a line is broken, or an id is
            missing, repeated or not of the split.
    """
    private = {scenario.id for scenario in split.scenarios if not scenario.references}
    if not private:
        raise DataError(f"{path}: split {split.name} holds its references itself; leave out --references")
    if not split.references_sha256:
        raise DataError(f"{path}: split {split.name} names no references_sha256 that the file could be checked against")
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if found not in (split.references_sha256, erased):
        raise DataError(
            f"{path}: is not the file of references of split {split.name} {split.version}: its SHA-256 is {found}, "
            f"the split names {' or '.join(filter(None, (split.references_sha256, erased)))}"
        )
    references = read_private_references(path)
    if lacking := sorted(private - set(references)):
        raise DataError(f"{path}: holds no references of {_some(lacking)}")
    if not selected and (foreign := sorted(set(references) - private)):
        raise DataError(f"{path}: split {split.name} has no private references of {_some(foreign)}")
    scenarios = (s if s.references else replace(s, references=references[s.id]) for s in split.scenarios)
    return replace(split, scenarios=tuple(scenarios), references_sha256=found)


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
    return f"{quoted(ids[0])}{more}"


def read_private_references(path: Path) -> dict[str, tuple[str, ...]]:
    """Read the references by id. Raises DataError, naming file and line."""
    found: dict[str, tuple[str, ...]] = {}
    for where, record in read_jsonl(path, unique_keys=True):
        item_id = read_id(record, where)
        if set(record) != {"id", "references"}:
            raise DataError(f"{where}: {item_id}: a line must hold id and references, nothing else")
        if item_id in found:
            raise DataError(f"{where}: {item_id} has references already; keep one line an id")
        found[item_id] = read_references(record, f"{where}: {item_id}")
        if not found[item_id]:
            raise DataError(f"{where}: {item_id}: references is empty")
    return found
