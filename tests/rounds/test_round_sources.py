"""The records that a round's items were made from are stored with the round."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from chain_made import candidate, write
from kills import interrupted_at

from h2htalk.data.files import read_json_object, read_jsonl, write_json
from h2htalk.errors import DataError
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec, make_spec
from h2htalk.rounds.status import round_status


def full_candidate(name: str) -> dict[str, Any]:
    """A candidate with everything that annotators do not read, half a character in it included."""
    record = candidate(name, "accept")
    record["scenario"] |= {
        "provenance": {"source": "made", "dialogue": "made-000001", "person": "made-p0001", "merged": ["made-000009"]},
        "licence": "CC0-1.0",
        "metadata": {"safety": {"tags": ["crisis.ideation"], "risk": "high"}, "alternatives": [{"text": "\ud83d"}]},
    }
    record["references"].append({"text": "Another.", "origin": "model:x", "provenance": {"licence": "MIT"}})
    return record | {"provenance": record["scenario"]["provenance"]}


def stage_spec(folder: Path, *names: str) -> RoundSpec:
    stage = folder / "review"
    write(stage / "kept" / "part-00000.jsonl", [full_candidate(name) for name in names])
    write_json(stage / "summary.json", {})
    return make_spec("crowd", str(stage), {"format": "csv", "overlap": 2})


def test_everything_about_a_candidate_arrives_unchanged(tmp_path: Path) -> None:
    """Provenance, licence, other references and the review were lost when a round was opened."""
    open_round(stage_spec(tmp_path, "c-2", "c-1"), tmp_path / "round")
    lines = [line for _, line in read_jsonl(tmp_path / "round" / "sources.jsonl")]
    assert lines == [{"id": name, "record": full_candidate(name)} for name in ("c-1", "c-2")]
    assert RoundFolder(tmp_path / "round").sources() == {name: full_candidate(name) for name in ("c-1", "c-2")}


def test_a_round_from_before_sources_were_stored(tmp_path: Path) -> None:
    open_round(stage_spec(tmp_path, "c-1"), tmp_path / "round")
    manifest = read_json_object(tmp_path / "round" / "round.json")
    del manifest["sources_sha256"]
    write_json(tmp_path / "round" / "round.json", manifest)
    # A file that the round does not name is not part of it.
    assert RoundFolder(tmp_path / "round").sources() == {}
    (tmp_path / "round" / "sources.jsonl").unlink()
    assert RoundFolder(tmp_path / "round").sources() == {}
    assert round_status(tmp_path / "round").state == "open"


@pytest.mark.parametrize("line", [{"id": "c-1"}, {"id": 1, "record": {}}, {"id": "c-1", "record": []}])
def test_a_line_that_is_no_source_is_named(tmp_path: Path, line: object) -> None:
    open_round(stage_spec(tmp_path, "c-1"), tmp_path / "round")
    (tmp_path / "round" / "sources.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(DataError, match=r"sources.jsonl:1: must hold the id of an item and its record"):
        RoundFolder(tmp_path / "round").sources()


def test_an_opening_that_is_killed_at_any_write_is_completed(tmp_path: Path) -> None:
    spec, number, killed = stage_spec(tmp_path, "c-1"), 0, True
    while killed:
        path = tmp_path / f"round-{number}"
        killed = interrupted_at(number, partial(open_round, spec, path))
        assert open_round(spec, path)[0].state == "open"
        assert set(RoundFolder(path).sources()) == {"c-1"}
        number += 1
    assert number > 10
