"""A split is loaded whole or not at all, has a fingerprint, is exported as it was; its references may be private."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from h2htalk.data.files import sha256_of, write_jsonl, write_text
from h2htalk.data.sampling import stratified_sample
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import Split, load_split, with_references
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError
from support.splits import changed, leaves, scenario_records

ADA = 'id = "ada"\nrelation = "friend"\n[en]\nname = "Ada"\ndescription = "You mend clocks.\\n"\n'

Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def mini() -> Split:
    return load_split("mini@1")


@pytest.fixture
def records() -> Records:
    return scenario_records(12)


def write(folder: Path, records: Records, name: str = "scenarios.jsonl") -> Path:
    write_jsonl(folder / name, records)
    return folder


@pytest.mark.parametrize("name", ["maxi", "", "n" * 5000, "a\x00b", "x.csv"])
def test_no_such_split_lists_the_choices(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "x.csv").write_text("id\n")
    monkeypatch.chdir(tmp_path / "cwd")
    with pytest.raises((ConfigError, DataError), match=r"mini|holds no .jsonl or .parquet file"):
        load_split(name)


def test_a_folder_named_like_a_bundled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: Records
) -> None:
    """Whoever edited an export called `mini` was given the bundled one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "notes.txt").write_text("no scenario")
    assert len(load_split("mini").scenarios) > len(records)
    write(tmp_path / "mini", records)
    with pytest.raises(
        ConfigError, match=r"both a bundled split and a folder here: write \./mini for the folder"
    ):
        load_split("mini")
    assert len(load_split("./mini").scenarios) == len(records)


def test_a_duplicate_id_names_both_places(tmp_path: Path, records: Records) -> None:
    write(tmp_path, records[:5], "a.jsonl")
    write(tmp_path, [*records[5:], records[2]], "b.jsonl")
    with pytest.raises(DataError) as raised:
        load_split(str(tmp_path))
    where = tmp_path / "b.jsonl"
    first = tmp_path / "a.jsonl"
    assert str(raised.value) == f"{where}:8: duplicate id made-00002 (first in {first}:3)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "x"}, "answer: no such field"),
        ({"persona": "../\n../etc"}, r"persona '../\n../etc' has no"),
    ],
)
def test_a_wrong_record_has_its_place(
    tmp_path: Path, records: Records, change: dict[str, str], message: str
) -> None:
    records[6] |= change
    write(tmp_path, records)
    with pytest.raises(DataError) as raised:
        load_split(str(tmp_path))
    assert str(raised.value).startswith(f"{tmp_path / 'scenarios.jsonl'}:7: made-00006: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1e999", "provenance: z: holds the number inf, which JSON cannot"),
        (
            f"{'[' * 900}{']' * 900}",
            "provenance: z: is nested more than 64 levels deep; flatten it",
        ),
    ],
    ids=["infinity", "900 levels"],
)
def test_open_fields_hold_what_can_be_written(
    tmp_path: Path, records: Records, value: str, message: str
) -> None:
    """`1e999` was read as infinity, and the run broke when it stored the split."""
    line = json.dumps({**records[0], "provenance": {"z": 0}}).replace(
        '{"z": 0}', f'{{"z": {value}}}'
    )
    (tmp_path / "x.jsonl").write_text(line)
    with pytest.raises(DataError) as raised:
        load_split(str(tmp_path))
    assert str(raised.value).startswith(f"{tmp_path}/x.jsonl:1: made-00000: {message}")


@pytest.mark.parametrize("made", ["pipe", "folder", "link to nothing"])
@pytest.mark.parametrize("name", ["more.jsonl", "personas/more.toml", "split.toml"])
def test_what_is_no_file_is_named(tmp_path: Path, records: Records, made: str, name: str) -> None:
    """A pipe called more.jsonl held the loading up for ever."""
    path = write(tmp_path, records) / name
    path.parent.mkdir(exist_ok=True)
    {"pipe": os.mkfifo, "folder": Path.mkdir, "link to nothing": lambda p: p.symlink_to("x")}[made](
        path
    )
    with pytest.raises(DataError, match=f"^{path}: (not a file|not readable|cannot be read)"):
        load_split(str(tmp_path))


def test_a_persona_is_described_once_and_speaks_the_scenarios_language(
    tmp_path: Path, records: Records
) -> None:
    write_text(tmp_path / "personas" / "ada.toml", ADA)
    en = records[0] | {"persona": "ada"}
    zh = next(r for r in scenario_records(200) if r["language"] == "zh") | {"persona": "ada"}
    ada = load_split(str(write(tmp_path, [en]))).personas["ada"]
    assert (ada.names, ada.descriptions) == ({"en": "Ada"}, {"en": "You mend clocks."})
    with pytest.raises(
        DataError, match=r"persona 'ada' has no zh description; add it to .*personas"
    ):
        load_split(str(write(tmp_path, [en, zh])))
    write_text(tmp_path / "personas" / "ada-2.toml", ADA)
    with pytest.raises(DataError, match=r"ada\.toml: persona 'ada' is in ada-2\.toml already"):
        load_split(str(write(tmp_path, records)))


def test_an_empty_split_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"holds no \.jsonl or \.parquet file"):
        load_split(str(tmp_path))
    (tmp_path / "scenarios.jsonl").write_text("\n")
    with pytest.raises(DataError, match="holds no scenario"):
        load_split(str(tmp_path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = ", "not readable as TOML"),
        ('name = " "', "name: must be text that is not empty, not ' '"),
        ('titel = "Mine"', "titel: no such field"),
        (
            'references_sha256 = "0A"',
            "references_sha256: must match pattern '^[0-9a-f]{64}$', not '0A'",
        ),
    ],
)
def test_a_wrong_header_field_is_named(
    tmp_path: Path, records: Records, text: str, message: str
) -> None:
    """`version = [1, 2]` was a version called `[1, 2]`, and a misspelt key went unnoticed."""
    (write(tmp_path, records) / "split.toml").write_text(f'description = ""\n{text}\n')
    with pytest.raises(DataError) as raised:
        load_split(str(tmp_path))
    assert str(raised.value).startswith(f"{tmp_path / 'split.toml'}: {message}")


def test_a_selection_with_nothing_left_is_an_error(mini: Split) -> None:
    english = mini.select("en")
    with pytest.raises(ConfigError, match="no scenario left after --language"):
        english.select("zh")
    with pytest.raises(DataError, match="--subtask: unknown subtask 'dialog'"):
        mini.select(subtasks=["dialog"])
    with pytest.raises(ConfigError, match="--limit is 0; it must be 1 or more"):
        mini.select(limit=0)


def test_a_smaller_sample_is_part_of_a_larger_one_whatever_the_order_of_rows(mini: Split) -> None:
    before = set[str]()
    rows = list(mini.scenarios)
    for limit in range(1, len(rows) + 5):
        random.Random(limit).shuffle(rows)
        ids = {s.id for s in stratified_sample(rows, limit)}
        assert len(ids) == min(limit, len(rows))
        assert before <= ids
        before = ids


@pytest.mark.parametrize("limit", [1, 11, 100])
def test_a_sample_is_spread_over_subtasks_and_languages(mini: Split, limit: int) -> None:
    sizes = Counter((s.subtask, s.language) for s in stratified_sample(mini.scenarios, limit))
    strata = 2 * len(SUBTASKS)
    assert len(sizes) == min(limit, strata)
    assert max(sizes.values()) - min(sizes.values()) <= 1
    languages = sum(n if language == "en" else -n for (_, language), n in sizes.items())
    assert abs(languages) <= 1


@pytest.mark.parametrize("file_format", ["jsonl", "parquet"])
def test_an_exported_split_is_the_same_split_with_any_number_of_references(
    mini: Split, tmp_path: Path, file_format: Literal["jsonl", "parquet"]
) -> None:
    replies = [tuple(f"Reply {n}." for n in range(number)) for number in (1, 0, 2, 5)]
    rows = tuple(
        replace(s, references=own) for s, own in zip(mini.scenarios, replies, strict=False)
    )
    personas = {s.persona: mini.personas[s.persona] for s in rows}
    some = replace(
        mini, scenarios=rows, personas=personas, references_sha256="0123456789abcdef" * 4
    )
    for split, folder in ((mini, tmp_path / "all"), (some, tmp_path / "some")):
        written = export_split(split, folder, file_format)
        assert {p for p in folder.rglob("*") if p.is_file()} == set(written)
        again = load_split(str(folder))
        assert (again, again.fingerprint) == (split, split.fingerprint)


def test_row_order_names_and_unused_personas_do_not_change_the_fingerprint(mini: Split) -> None:
    rows = list(mini.scenarios)
    random.Random(0).shuffle(rows)
    assert (
        replace(mini, scenarios=tuple(rows), name="other", version="9").fingerprint
        == mini.fingerprint
    )
    only_nora = replace(mini, scenarios=tuple(s for s in mini.scenarios if s.persona == "nora"))
    assert (
        replace(only_nora, personas={"nora": mini.personas["nora"]}).fingerprint
        == only_nora.fingerprint
    )


OTHER = {
    "subtask": "recollection_refinement",
    "persona": "ren",
    "language": "zh",
    "emotion": "longing",
}
OTHER |= {"complexity": "advanced", "interaction": "casual", "risk": "elevated"}


def test_any_change_of_content_changes_the_fingerprint(mini: Split) -> None:
    """Each single field of a scenario, its metadata and its persona."""
    scenario = next(
        s
        for s in mini.scenarios
        if s.subtask == "recollection_initialization" and s.persona == "nora"
    )
    record = scenario.to_dict() | {"metadata": {"note": "x"}}

    def fingerprint(raw: dict[str, Any], persona: Persona | None = None) -> str:
        read = Scenario.from_dict(raw)
        people = {**mini.personas, read.persona: persona or mini.personas[read.persona]}
        return replace(mini, scenarios=(read,), personas=people).fingerprint

    seen = {fingerprint(record)}
    for path in (paths := leaves(record)):
        seen.add(
            fingerprint(changed(record, {path: OTHER.get(path.rpartition(".")[2], f"{path}x")}))
        )
    assert len(seen) == 1 + len(paths)
    nora = mini.personas["nora"]
    texts = {
        "names": {**nora.names, "zh": "苏早"},
        "descriptions": {**nora.descriptions, "en": "You are Nora."},
    }
    for name, value in ({"relation": "cousin"} | texts).items():
        seen.add(fingerprint(record, replace(nora, **{name: value})))
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
    split = replace(
        mini, scenarios=rows, personas={one: replace(mini.personas["nora"], id=one) for one in ids}
    )
    export_split(split, tmp_path / "deep" / "out")
    files = [p.relative_to(tmp_path / "deep" / "out") for p in tmp_path.rglob("*") if p.is_file()]
    assert {p.parent for p in files} == {Path(), Path("personas")}
    assert all(p.name.isascii() and p.name.isprintable() for p in files)
    assert load_split(str(tmp_path / "deep" / "out")).fingerprint == split.fingerprint


def test_texts_of_every_kind_survive_export(mini: Split, tmp_path: Path) -> None:
    odd = 'quote " backslash \\ tab\t line\nbreak \x7f \x00 emoji 👩‍👩‍👧 \u2028'
    nora = replace(mini.personas["nora"], names={"en": odd.strip(), "zh": "苏晚"})
    row = replace(
        mini.scenarios[0],
        references=(odd + "\ud83d",),
        persona="nora",
        metadata={"deep": [{"x": odd}]},
    )
    split = replace(mini, description=odd, scenarios=(row,), personas={"nora": nora})
    export_split(split, tmp_path / "out")
    again = load_split(str(tmp_path / "out"))
    assert (again.description, again.scenarios, again.personas) == (odd, (row,), {"nora": nora})


BASE = load_split("mini@1").select("en", ["dialogue_base"])
BASE_LINES: Records = [{"id": s.id, "references": list(s.references)} for s in BASE.scenarios]


def private_split(path: Path, lines: Records) -> Split:
    """The split without references, which names the file that is written here."""
    write_jsonl(path, lines)
    scenarios = tuple(replace(s, references=()) for s in BASE.scenarios)
    return replace(BASE, scenarios=scenarios, references_sha256=sha256_of(path))


def test_references_come_back_to_their_scenarios(tmp_path: Path) -> None:
    """The file may hold those of other scenarios, too; scenarios that have references keep them."""
    path = tmp_path / "references.jsonl"
    split = private_split(path, BASE_LINES[::-1])
    assert with_references(split, path).scenarios == BASE.scenarios
    mixed = replace(split, scenarios=(BASE.scenarios[0], *split.scenarios[1:3]))
    assert with_references(mixed, path).scenarios == BASE.scenarios[:3]


def test_a_wrong_file_is_named_with_its_line_or_id(tmp_path: Path) -> None:
    path = tmp_path / "references.jsonl"
    others = BASE_LINES[1:]
    with pytest.raises(
        DataError, match=rf"holds no references of '{BASE_LINES[0]['id']}' \(1 such\)"
    ):
        with_references(private_split(path, others), path)
    with pytest.raises(
        DataError,
        match=rf"jsonl:1: {BASE_LINES[0]['id']}: references: must be a list of at least 1",
    ):
        with_references(private_split(path, [{**BASE_LINES[0], "references": []}, *others]), path)
    split = private_split(path, BASE_LINES)
    path.write_text(path.read_text().replace("?", "!"))
    with pytest.raises(
        DataError, match=f"is not the file of references: .*{split.references_sha256}"
    ):
        with_references(split, path)
    with pytest.raises(DataError, match="names no references_sha256"):
        with_references(replace(split, references_sha256=""), path)
    with pytest.raises(DataError, match="split mini holds them itself"):
        with_references(BASE, path)
