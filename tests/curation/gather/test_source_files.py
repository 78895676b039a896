"""What a source may be: a file, compressed, several, Parquet, a saved data set; and names of roles."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gather_made import read_file
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, clean
from h2htalk.curation.gather.records import json_members
from h2htalk.curation.gather.source_files import Item, plan_source
from h2htalk.curation.stages import Source
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


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.json.gz"])
def test_compressed_files_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    path, content = tmp_path / name, jsonl(range(1, 4))
    with gzip.open(path, "wb") if name.endswith("gz") else pa.CompressedOutputStream(str(path), "zstd") as file:
        file.write(json.dumps([record(n) for n in (1, 2, 3)]).encode() if ".json." in name else content)
    (tmp_path / "plain.jsonl").write_bytes(content)
    assert read(path) == read(tmp_path / "plain.jsonl")
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match="cannot be read"):
        read(path)


def test_a_folder_and_a_pattern_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.jsonl").write_bytes(jsonl(range(1, 3)))
    (tmp_path / "b" / "c.jsonl").write_bytes(jsonl(range(3, 5)))
    (tmp_path / ".hidden").write_bytes(b"no")
    items = read(tmp_path)
    assert [(item[-1], file, said[-1]) for item, file, said in items] == [
        *((n, "a.jsonl", n) for n in "12"),
        *((n, "b/c.jsonl", n) for n in "34"),
    ]
    assert read(tmp_path / "*.jsonl") == items[:2]
    assert read(tmp_path, limit=3) == items[:3]
    with pytest.raises(ConfigError, match="no such file"):
        read(tmp_path / "*.csv")
    with pytest.raises(ConfigError, match=r"\$NO_SUCH is not set; set it to the folder"):
        read(Path("$NO_SUCH/a.jsonl"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="the folder holds no file to read"):
        read(tmp_path / "empty")


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
    plan = plan_source(Source("s", f"hub:owner/name@{COMMIT}:en#train", "messages", "en", "MIT"), Path("/"))
    assert plan.to_settings()["sha256"] == f"hub:owner/name@{COMMIT}:en#train"


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
    for typo, message in (("Klient", "no record has Klient; did you mean 'Klientin'"), ("", "first record has Frage")):
        with pytest.raises(ConfigError, match=message):
            read_file(path, "question_answers", columns={**columns, "person": typo})
    for form, name in (("memory_bank", "question"), ("messages", "question"), ("dialogues", "person")):
        with pytest.raises(ConfigError, match=f"columns: the format {form} reads no {name}"):
            read_file(path, form, columns={name: "Frage"})
    path.write_text("Frage,Antwort,Frage,,\nWarum?,Darum.,Ann,,\n")
    with pytest.raises(DataError, match="Frage is the name of several columns"):
        read_file(path, "question_answers")


def test_a_line_that_is_too_long_rejects_its_item_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("h2htalk.curation.gather.records.MAX_LINE", 200)
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(range(1, 2)) + b'"' + b"x" * 900 + b'"\n' + jsonl(range(2, 3)))
    assert [said for _, _, said in read(path)] == ["I cannot sleep, night 1", "too_long", "I cannot sleep, night 2"]


GOOD = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}


def reasons(items: list[Item]) -> list[str]:
    return [item.content.reason if isinstance(item.content, RefusedItem) else "read" for item in items]


def test_a_broken_line_is_refused_with_its_number(tmp_path: Path) -> None:
    good = json.dumps(GOOD).encode()
    deep = b"[" * 100_000
    lines = [good, b'{"messages": [', good + b" 1", b"", b"7", b"\xff" + good, deep, good]
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    items = read_file(path)
    assert reasons(items) == ["read", "broken", "broken", "broken", "encoding", "broken", "read"]
    assert [item.row for item in items] == [1, 2, 3, 5, 6, 7, 8]
    assert [item.line for item in items] == [item.row for item in items]


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        ({"metadata": {"patient": " Ann "}, "user": {"name": "Bob"}}, {"patient": "Ann", "name": "Bob"}),
        ({"name": "Ann", "user": {"name": ["Bob", "Ann", ""]}}, {"name": ["Ann", "Bob"]}),
        ({"patient": None, "user": "u1", "metadata": []}, {}),
    ],
)
def test_names_of_the_user_are_kept_for_anonymize(tmp_path: Path, names: dict[str, Any], kept: dict[str, Any]) -> None:
    (tmp_path / "raw.jsonl").write_text(json.dumps(GOOD | names))
    (item,) = read_file(tmp_path / "raw.jsonl", name_keys=("patient",))
    assert isinstance(item.content, RawDialogue)
    assert clean(item.content, "en").metadata == kept


@pytest.mark.parametrize("form", ["{}\n", "[{}]"])
def test_a_number_of_thousands_of_digits_and_nan_break_no_item(tmp_path: Path, form: str) -> None:
    """In an array it ended the process."""
    path = tmp_path / "raw.jsonl"
    text = json.dumps(GOOD)[:-1] + ', "n": ' + "9" * 5000 + ', "m": NaN}'
    path.write_text(form.replace("{}", text), encoding="utf-8")
    assert reasons(read_file(path)) == ["read"]


@pytest.mark.parametrize(("form", "start"), [("messages", "[" * 100_000), ("memory_bank", '{"a":' + "[" * 100_000)])
def test_a_file_that_is_nested_too_deeply_is_an_error(tmp_path: Path, form: str, start: str) -> None:
    """It took gigabytes."""
    (tmp_path / "raw.json").write_text(start)
    with pytest.raises(DataError, match="nested too deeply"):
        read_file(tmp_path / "raw.json", form)


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": }]', '[{"a": 1}, {"a": "x', '[{"a": 1}', "[{}, 1 2]", "[{}] 1", "[{},]"]
)
def test_a_broken_array_is_an_error_that_names_the_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "raw.json").write_text(text)
    with pytest.raises(DataError, match=r"raw\.json: broken JSON after item [012]: .*cannot be counted"):
        read_file(tmp_path / "raw.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcd", max_size=5), inner, max_size=4),
    max_leaves=12,
)


MEMBERS = st.lists(st.tuples(st.text("abcd", max_size=5), JSON), max_size=6)


@given(members=MEMBERS, indent=st.sampled_from([None, 1]), chunk=st.sampled_from([1, 7, 1 << 20]))
def test_objects_and_arrays_are_read_as_by_json(
    tmp_path_factory: pytest.TempPathFactory, members: list[tuple[str, Any]], indent: int | None, chunk: int
) -> None:
    """Wherever the text is cut; two users of one name are both read."""
    path = tmp_path_factory.mktemp("json") / "raw.json"
    texts = [f"{json.dumps(key)}: {json.dumps(value, indent=indent, ensure_ascii=False)}" for key, value in members]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("h2htalk.curation.gather.records._CHUNK", chunk)
        path.write_text(" \n{" + " ,".join(texts) + "} ", encoding="utf-8-sig")
        assert list(json_members(path, lambda size: None)) == members
        path.write_text(json.dumps([value for _, value in members], indent=indent), encoding="utf-8")
        assert list(json_members(path, lambda size: None)) == [("", value) for _, value in members]
