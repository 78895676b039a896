"""The file of private references is the one that the split names, with references of each of its items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.files import json_line
from h2htalk.data.splits import Split, load_split, with_references
from h2htalk.errors import DataError

MINI = load_split("mini@1").select("en", ["dialogue_base"])
IDS = [s.id for s in MINI.scenarios]


def private_split(path: Path, lines: list[Mapping[str, Any]]) -> Split:
    """The split without references, which names the file that is written here."""
    path.write_text("".join(map(json_line, lines)))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    scenarios = tuple(replace(s, references=()) for s in MINI.scenarios)
    return replace(MINI, scenarios=scenarios, references_sha256=digest)


def lines_of() -> list[Mapping[str, Any]]:
    return [{"id": s.id, "references": list(s.references)} for s in MINI.scenarios]


def test_references_come_back_to_their_scenarios(tmp_path: Path) -> None:
    """The file may hold those of other scenarios, too; scenarios that have references keep them."""
    path = tmp_path / "references.jsonl"
    split = private_split(path, lines_of()[::-1])
    assert with_references(split, path).scenarios == MINI.scenarios
    mixed = replace(split, scenarios=(MINI.scenarios[0], *split.scenarios[1:3]))
    assert with_references(mixed, path).scenarios == MINI.scenarios[:3]


def test_a_wrong_file_is_named_with_its_line_or_id(tmp_path: Path) -> None:
    path, others = tmp_path / "references.jsonl", lines_of()[1:]
    with pytest.raises(DataError, match=rf"holds no references of '{IDS[0]}' \(1 such\)"):
        with_references(private_split(path, others), path)
    with pytest.raises(DataError, match=rf"jsonl:1: {IDS[0]}: references: must be a list of at least 1"):
        with_references(private_split(path, [{"id": IDS[0], "references": []}, *others]), path)
    split = private_split(path, lines_of())
    path.write_text(path.read_text().replace("?", "!"))
    with pytest.raises(DataError, match=f"is not the file of references: .*{split.references_sha256}"):
        with_references(split, path)
    with pytest.raises(DataError, match="names no references_sha256"):
        with_references(replace(split, references_sha256=""), path)
    with pytest.raises(DataError, match="split mini holds them itself"):
        with_references(MINI, path)
