"""The file of a split's private references, which only its owner has: JSONL of `id` and `references`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, with_config

from h2htalk.data.files import read_jsonl, sha256_of
from h2htalk.data.records import STRICT, Id, read_record
from h2htalk.data.scenario import References
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, quoted


@with_config(STRICT)
@dataclass(frozen=True, slots=True)
class _Line:
    id: Id
    references: Annotated[References, Field(min_length=1)]


def with_references(split: Split, path: Path, erased: str = "") -> Split:
    """Add the references of a file to the scenarios that have none; it may hold those of other scenarios, too.

    The split names its SHA-256, or where items were erased from the split, `erased` does. Raises DataError.
    """
    private = {scenario.id for scenario in split.scenarios if not scenario.references}
    if not private or not split.references_sha256:
        why = "names no references_sha256 that the file could be checked against" if private else "holds them itself"
        raise DataError(f"{path}: leave out --references: split {split.name} {why}")
    references = read_private_references(path, split.references_sha256, erased)
    if lacking := sorted(private - set(references)):
        raise DataError(f"{path}: holds no references of {quoted(lacking[0])} ({len(lacking):,} such)")
    scenarios = (s if s.references else replace(s, references=references[s.id]) for s in split.scenarios)
    return replace(split, scenarios=tuple(scenarios), references_sha256=sha256_of(path))


def read_private_references(path: Path, *hashes: str) -> dict[str, tuple[str, ...]]:
    """Read the references by id, from a file with one of these SHA-256. Raises ConfigError, DataError."""
    if (found := sha256_of(path)) not in hashes:
        named = " or ".join(filter(None, hashes))
        raise DataError(f"{path}: is not the file of references: its SHA-256 is {found}, the split names {named}")
    lines = [read_record(_Line, record, where) for where, record in read_jsonl(path, unique_keys=True)]
    return {line.id: line.references for line in lines}
