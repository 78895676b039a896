"""A fingerprint says what a split holds, however it is written down; an exported split is the same split."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import DataError


@pytest.fixture(scope="module")
def mini() -> Split:
    return load_split("mini@1")


# --- Fingerprint and export -------------------------------------------------------------------------------------


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_an_exported_split_is_the_same_split_with_any_number_of_references(
    mini: Split, tmp_path: Path, file_format: Literal["jsonl", "parquet"]
) -> None:
    replies = [tuple(f"Reply {n}." for n in range(number)) for number in (1, 0, 2, 5)]
    rows = tuple(replace(s, references=own) for s, own in zip(mini.scenarios, replies, strict=False))
    personas = {s.persona: mini.personas[s.persona] for s in rows}
    some = replace(mini, scenarios=rows, personas=personas, references_sha256="0123456789abcdef" * 4)
    for split, folder in ((mini, tmp_path / "all"), (some, tmp_path / "some")):
        written = export_split(split, folder, file_format)
        assert {p for p in folder.rglob("*") if p.is_file()} == set(written)
        again = load_split(str(folder))
        assert (again, again.fingerprint) == (split, split.fingerprint)


def test_row_order_names_and_unused_personas_do_not_change_the_fingerprint(mini: Split) -> None:
    rows = list(mini.scenarios)
    random.Random(0).shuffle(rows)
    assert replace(mini, scenarios=tuple(rows), name="other", version="9").fingerprint == mini.fingerprint
    only_nora = replace(mini, scenarios=tuple(s for s in mini.scenarios if s.persona == "nora"))
    assert replace(only_nora, personas={"nora": mini.personas["nora"]}).fingerprint == only_nora.fingerprint


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, inner in value.items() for leaf in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [leaf for i, inner in enumerate(value) for leaf in leaves(inner, (*path, i))]
    return [path]


OTHER = {"subtask": "recollection_refinement", "persona": "ren", "language": "zh", "emotion": "longing"}
OTHER |= {"complexity": "advanced", "interaction": "casual", "risk": "elevated"}


def test_any_change_of_content_changes_the_fingerprint(mini: Split) -> None:
    """Each single field of a scenario, its metadata and its persona."""
    scenario = next(s for s in mini.scenarios if s.subtask == "recollection_initialization" and s.persona == "nora")
    record = scenario.to_dict() | {"metadata": {"note": "x"}}

    def fingerprint(raw: dict[str, Any], persona: Persona | None = None) -> str:
        read = Scenario.from_dict(raw)
        people = {**mini.personas, read.persona: persona or mini.personas[read.persona]}
        return replace(mini, scenarios=(read,), personas=people).fingerprint

    seen = {fingerprint(record)}
    for path in (paths := leaves(record)):
        changed = copy.deepcopy(record)
        place = changed
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = OTHER.get(str(path[-1]), f"{place[path[-1]]}x")
        seen.add(fingerprint(changed))
    assert len(seen) == 1 + len(paths)
    nora = mini.personas["nora"]
    for changed_persona in (
        replace(nora, relation="cousin"),
        replace(nora, names={**nora.names, "zh": "苏早"}),
        replace(nora, descriptions={**nora.descriptions, "en": "You are Nora."}),
    ):
        seen.add(fingerprint(record, changed_persona))
    assert len(seen) == 1 + len(paths) + 3
    assert fingerprint(record | {"metadata": {}}) not in seen


def test_an_export_that_fails_leaves_no_folder_behind(mini: Split, tmp_path: Path) -> None:
    """Half a character, which Parquet cannot hold, left an empty folder; a wrong persona left half a split."""
    out = tmp_path / "deep" / "out"
    half = replace(mini, scenarios=(replace(mini.scenarios[0], references=("\ud83d",)),))
    with pytest.raises(DataError, match="write JSONL"):
        export_split(half, out, "parquet")
    nameless = replace(mini.personas["nora"], descriptions={})
    with pytest.raises(KeyError):
        export_split(replace(mini, personas={"nora": nameless}), out)
    assert [*(tmp_path / "deep").iterdir()] == []
    (tmp_path / "deep" / "notes.txt").write_text("mine")
    for taken in (tmp_path / "deep", tmp_path / "deep" / "notes.txt"):
        with pytest.raises(DataError, match="not an empty folder; name a new one"):
            export_split(mini, taken)
    with pytest.raises(DataError, match="cannot be written: Not a directory"):
        export_split(mini, tmp_path / "deep" / "notes.txt" / "out")


def test_a_hostile_persona_id_never_becomes_a_path(mini: Split, tmp_path: Path) -> None:
    short = ["../../escape", "/etc/passwd", "..", "a\\b", "a/b", "a_b", "名字", "nul\0byte", "\x7f"]
    ids = [*short, "x" * 400, "x" * 401]
    rows = tuple(replace(s, persona=one) for s, one in zip(mini.scenarios, ids, strict=False))
    split = replace(mini, scenarios=rows, personas={one: replace(mini.personas["nora"], id=one) for one in ids})
    export_split(split, tmp_path / "deep" / "out")
    files = [p.relative_to(tmp_path / "deep" / "out") for p in tmp_path.rglob("*") if p.is_file()]
    assert {p.parent for p in files} == {Path(), Path("personas")}
    assert all(p.name.isascii() and p.name.isprintable() for p in files)
    assert load_split(str(tmp_path / "deep" / "out")).fingerprint == split.fingerprint


def test_texts_of_every_kind_survive_export(mini: Split, tmp_path: Path) -> None:
    odd = 'quote " backslash \\ tab\t line\nbreak \x7f \x00 emoji 👩‍👩‍👧 \u2028'
    nora = replace(mini.personas["nora"], names={"en": odd.strip(), "zh": "苏晚"})
    row = replace(mini.scenarios[0], references=(odd + "\ud83d",), persona="nora", metadata={"deep": [{"x": odd}]})
    split = replace(mini, description=odd, scenarios=(row,), personas={"nora": nora})
    export_split(split, tmp_path / "out")
    again = load_split(str(tmp_path / "out"))
    assert (again.description, again.scenarios, again.personas) == (odd, (row,), {"nora": nora})
