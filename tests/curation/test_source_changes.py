"""A file whose owner took out what was erased: the others keep their ids, and are found where they stand now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.erase import erase
from h2htalk.curation.gather import run_gather
from h2htalk.curation.source_changes import place_of
from h2htalk.curation.spec import CurateSpec, GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError

NAMES = ["Ann", "Bo", "Cy", "Di", "Ed", "Flo"]


def talk(name: str) -> dict[str, Any]:
    said = [{"role": "user", "content": f"Hi, {name} here."}, {"role": "assistant", "content": "Hello."}]
    return {"messages": said, "person": name} if name != "Cy" else {"messages": [], "person": name}


def write(tmp_path: Path, names: Sequence[str], form: str = "lines") -> None:
    records = [json.dumps(talk(name)) if name else "" for name in names]
    text = f"[{','.join(records)}]" if form == "array" else "\r\n".join([*records, ""])
    (tmp_path / "raw.json").write_text(text, encoding="utf-8", newline="")


def gather(tmp_path: Path, limit: int | None = None) -> Workspace:
    place = Workspace(tmp_path / "work")
    source = Source("chat", "raw.json", "messages", "en", "CC0-1.0", limit=limit)
    run_gather(
        CurateSpec(str(place.path), GatherSettings((source,)), part=2), tmp_path, place, place.open_key()
    )
    return place


def files(place: Workspace, *kinds: str) -> dict[str, bytes]:
    folder = place.stage("gather").path
    return {str(p): p.read_bytes() for kind in kinds for p in sorted((folder / kind).glob("*"))}


@pytest.mark.parametrize("form", ["lines", "array"])
@pytest.mark.parametrize("limit", [None, 5])
def test_deleted_lines_of_who_was_erased_change_nothing(tmp_path: Path, form: str, limit: int | None) -> None:
    """The next run was refused for another setting of sources: the file was another one."""
    write(tmp_path, NAMES, form)
    place = gather(tmp_path, limit)
    for gone, left in (("Bo", ["Ann", "Cy", "Di", "Ed", "Flo"]), ("Ann", ["Cy", "Di", "Ed", "Flo"])):
        erase(place, gone)
        before = files(place, "kept", "parts")
        write(tmp_path, left, form)
        for _ in range(2):
            gather(tmp_path, limit)
            assert files(place, "kept", "parts") == before
    assert [record["id"] for record in place.stage("gather").records()][:2] == ["chat-000004", "chat-000005"]
    # Ids are those of before; the places are those of now.
    assert erase(place, "chat-000004").raw == (
        "raw.json:2, item 2" if form == "lines" else "raw.json:1, item 2",
    )


def test_some_may_be_deleted_later_and_lines_may_be_emptied(tmp_path: Path) -> None:
    write(tmp_path, NAMES)
    place = gather(tmp_path)
    for gone in ("Bo", "Di"):
        erase(place, gone)
    before = files(place, "kept", "parts")
    for left in (
        ["Ann", "Cy", "Di", "Ed", "Flo"],
        ["Ann", "", "Cy", "", "Ed", "Flo"],
        ["Ann", "Cy", "Ed", "Flo"],
    ):
        write(tmp_path, left)
        gather(tmp_path)
        assert files(place, "kept", "parts") == before


@pytest.mark.parametrize(
    "left",
    [
        ["Ann", "Cy", "Di", "Ed"],
        ["Ann", "Cy", "Di", "Ed", "Flo", "Gus"],
        ["Ann", "Cy", "Ed", "Di", "Flo"],
        ["Ann", "Di", "Ed", "Flo"],
    ],
)
def test_any_other_change_is_one(tmp_path: Path, left: list[str]) -> None:
    write(tmp_path, NAMES)
    erase(gather(tmp_path), "Bo")
    write(tmp_path, left)
    with pytest.raises(ConfigError, match="another setting of sources"):
        gather(tmp_path)


def test_without_an_erasure_a_changed_file_is_one(tmp_path: Path) -> None:
    write(tmp_path, NAMES)
    gather(tmp_path)
    write(tmp_path, NAMES[:-1])
    with pytest.raises(ConfigError, match="another setting of sources"):
        gather(tmp_path)


def test_one_of_many_in_a_line_is_told_by_its_number() -> None:
    """`bank.json:1` was the place of everybody in a file of one line."""
    assert place_of({"file": "bank.json", "line": 1, "row": 4}) == "bank.json:1, item 4"
    assert place_of({"file": "bank.json", "line": 1, "row": 1}) == "bank.json:1, item 1"
    assert place_of({"file": "raw.jsonl", "line": 4, "row": 4}) == "raw.jsonl:4"
    assert place_of({"file": "generated", "row": 4}) == "generated:4"
