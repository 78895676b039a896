"""What a source may be: a file, compressed, several, Parquet, a saved data set; and names of roles."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gather_made import read_file

from h2htalk.curation.gather.raw_items import RawDialogue
from h2htalk.curation.gather.settings import Source
from h2htalk.curation.gather.source_files import plan_source
from h2htalk.errors import ConfigError, DataError

COMMIT = "0123456789" * 4


def record(number: int) -> dict[str, Any]:
    said = [("user", f"I cannot sleep, night {number}"), ("assistant", "That sounds hard.")]
    return {"id": f"r{number}", "messages": [{"role": role, "content": text} for role, text in said]}


def jsonl(numbers: range) -> bytes:
    return "".join(json.dumps(record(n)) + "\n" for n in numbers).encode()


def read(path: str | Path, form: str = "messages", **more: Any) -> list[tuple[str, str, str]]:
    """Id, file, and the first message or the reason of each item."""
    found = []
    for item in read_file(path, form, **more):
        content = item.content
        said = content.messages[0][1] if isinstance(content, RawDialogue) else content.reason
        found.append((f"s-{item.row:06}", item.file, said))
    return found


def _gz(path: Path, content: bytes) -> None:
    with gzip.open(path, "wb") as file:
        file.write(content)


def _zst(path: Path, content: bytes) -> None:
    with pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(content)


@pytest.mark.parametrize(("name", "write"), [("a.jsonl.gz", _gz), ("a.jsonl.zst", _zst), ("a.json.gz", _gz)])
def test_compressed_files_are_read_as_they_are(tmp_path: Path, name: str, write: Callable[[Path, bytes], None]) -> None:
    content = jsonl(range(1, 4))
    write(tmp_path / name, json.dumps([record(n) for n in (1, 2, 3)]).encode() if ".json." in name else content)
    (tmp_path / "plain.jsonl").write_bytes(content)
    assert read(tmp_path / name) == read(tmp_path / "plain.jsonl")
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[:-6])
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / name)


def test_a_folder_and_a_pattern_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.jsonl").write_bytes(jsonl(range(1, 3)))
    (tmp_path / "b" / "c.jsonl").write_bytes(jsonl(range(3, 5)))
    (tmp_path / ".hidden").write_bytes(b"no")
    items = read(tmp_path)
    assert [(item, file) for item, file, _ in items] == [
        ("s-000001", "a.jsonl"),
        ("s-000002", "a.jsonl"),
        ("s-000003", "b/c.jsonl"),
        ("s-000004", "b/c.jsonl"),
    ]
    assert [said[-1] for _, _, said in items] == ["1", "2", "3", "4"]
    assert read(tmp_path / "*.jsonl") == items[:2]
    assert read(tmp_path, limit=3) == items[:3]
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "*.csv")


def test_parquet_rows_are_records_and_question_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([record(1), record(2)]), path)
    assert [said for _, _, said in read(path)] == ["I cannot sleep, night 1", "I cannot sleep, night 2"]
    pq.write_table(pa.table({"question": ["Why?", None], "answer": ["So.", "No."]}), path)
    assert [said for _, _, said in read(path, "question_answers")] == ["Why?", ""]
    pq.write_table(pa.table({"a": ["b"]}), path)
    assert [said for _, _, said in read(path, "question_answers")] == ["broken"]
    with pytest.raises(ConfigError, match="not from a table"):
        read(path, "memory_bank")
    path.write_bytes(b"no parquet at all")
    with pytest.raises(DataError, match="cannot be read"):
        read(path)


def test_a_saved_data_set_is_read_by_its_split(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the release extra is not installed")
    rows = datasets.Dataset.from_list([record(n) for n in (1, 2)])
    rows.save_to_disk(tmp_path / "one")
    assert len(read(tmp_path / "one")) == 2
    datasets.DatasetDict({"train": rows, "test": rows.select([1])}).save_to_disk(tmp_path / "two")
    assert [said for _, _, said in read(f"{tmp_path}/two#test")] == ["I cannot sleep, night 2"]
    with pytest.raises(ConfigError, match="#SPLIT: test, train"):
        read(tmp_path / "two")


def test_a_data_set_of_the_hub_needs_its_commit() -> None:
    with pytest.raises(ConfigError, match="40 digits"):
        read("hub:owner/name@main")
    plan = plan_source(Source("s", f"hub:owner/name@{COMMIT}:en#train", "messages", "en", "MIT"), Path("/"), 0)
    assert plan.sha256 == f"hub:owner/name@{COMMIT}:en#train"


def test_names_of_roles_can_be_given(tmp_path: Path) -> None:
    messages = [{"role": "Ratsuchender", "content": "Hallo"}, {"role": "tool", "content": "Hi"}]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"messages": messages}) + "\n")
    assert read(path)[0][2] == "role"
    assert read(path, roles={"ratsuchender": "user", "tool": "companion"})[0][2] == "Hallo"
    with pytest.raises(ConfigError, match="names no roles"):
        read(path, "question_answers", roles={"a": "user"})


def test_columns_map_keys_of_records(tmp_path: Path) -> None:
    """A file with other keys had to be rewritten."""
    path = tmp_path / "a.csv"
    path.write_text("Frage,Antwort,Klientin\nWarum?,Darum.,Ann\n")
    assert read(path, "question_answers")[0][2] == "broken"
    columns = {"question": "Frage", "answer": "Antwort", "person": "Klientin"}
    (item,) = read_file(path, "question_answers", columns=columns)
    assert isinstance(item.content, RawDialogue)
    assert (item.content.messages[0], item.content.person) == (("user", "Warum?"), "Ann")


def test_a_line_that_is_too_long_rejects_its_item_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.curation.gather.records.MAX_LINE", 200)
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(range(1, 2)) + b'"' + b"x" * 900 + b'"\n' + jsonl(range(2, 3)))
    assert [said for _, _, said in read(path)] == ["I cannot sleep, night 1", "too_long", "I cannot sleep, night 2"]
