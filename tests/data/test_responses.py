"""What a run stores: responses, typed failures, the answer that is scored, records in Parquet; and its folder."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from h2htalk import __version__
from h2htalk.benchmark.run import RunWriter
from h2htalk.data.files import AppendLog, read_jsonl
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.data.replies import reasoning
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage, read_response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, DataError

THINKING = [row for _, row in read_jsonl(Path(__file__).parent / "golden" / "thinking.jsonl")]


@pytest.mark.parametrize("row", THINKING)
def test_thinking_is_kept_in_the_file_and_told_from_the_answer_even_where_the_prompt_opened_it(
    row: Any,
) -> None:
    text = row["text"]
    opened = row.get("opened", False)
    if "thinking" in row:
        assert reasoning.split_reasoning(text, opened) == (row["answer"], row["thinking"])
    if not opened:
        response = Response("a", 0, text)
        assert reasoning.strip_reasoning(text) == response.answer == row["answer"]
        assert read_response(response.to_dict(), "x") == response


USED = {"input_tokens": 12, "output_tokens": 0}


@pytest.mark.parametrize(
    ("response", "line"),
    [
        (Response("a", 0, ""), {"sample": 0, "text": "", "finish_reason": "unknown", "usage": {}}),
        (
            Response("a", 2, "Hi.", "stop", Usage(12, 0), "hm"),
            {"sample": 2, "text": "Hi.", "finish_reason": "stop", "usage": USED, "thinking": "hm"},
        ),
        (
            FailedResponse("a", 1, Failure("timeout", "in 120 s", 4)),
            {"sample": 1, "failure": {"reason": "timeout", "message": "in 120 s", "attempts": 4}},
        ),
    ],
)
def test_a_line_holds_what_is_known_and_comes_back(
    response: Response | FailedResponse, line: dict[str, Any]
) -> None:
    assert response.to_dict() == {"id": "a", **line}
    assert read_response({"id": "a", **line}, "x") == response


def test_a_line_made_elsewhere_may_leave_out_what_it_does_not_know() -> None:
    nulls = {
        "id": "a",
        "text": "Hi.",
        "finish_reason": None,
        "usage": None,
        "failure": None,
        "more": 1,
    }
    assert (
        read_response({"id": "a", "text": "Hi."}, "x")
        == read_response(nulls, "x")
        == Response("a", 0, "Hi.")
    )


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"id": "a", "text": None}, "a: text: is missing"),
        ({"id": "a", "text": "x", "sample": True}, "a: sample: must be a whole number"),
        (
            {"id": "a", "text": "x", "usage": {"output_tokens": "3"}},
            "a: usage.output_tokens: must be a whole number",
        ),
        ({"id": "a", "text": "x", "at": float("inf")}, "a: at: must be "),
    ],
)
def test_a_wrong_line_is_named(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as raised:
        read_response(raw, "part-0.jsonl:17")
    assert str(raised.value).startswith(f"part-0.jsonl:17: {message}")


def test_parquet_rows_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = [None if i % 3 == 0 else i / 7 for i in range(25)]
    rows = [
        {"id": f"r{i}", "value": v, "tags": {"n": i, "list": ["你好", None]}}
        for i, v in enumerate(values)
    ]
    monkeypatch.setattr(
        "h2htalk.data.parquet.ROWS_A_GROUP", 1
    )  # a value of a column may first come after a group
    path = tmp_path / "x.parquet"
    assert write_parquet(path, iter(rows), json_columns=["tags"]) == 25
    stream = list(read_parquet(path))
    assert [row for _, row in stream] == rows
    assert stream[16][0] == f"{path}:row 17"


def test_parquet_json_columns_hold_half_a_character_and_plain_ones_refuse_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.parquet"
    write_parquet(path, [{"id": "a", "inputs": {"text": "\ud83d"}}], json_columns=["inputs"])
    assert [row for _, row in read_parquet(path)] == [{"id": "a", "inputs": {"text": "\ud83d"}}]
    with pytest.raises(DataError, match=r"half a character .*write JSONL"):
        write_parquet(path, [{"id": "a", "inputs": {}, "text": "\ud83d"}], json_columns=["inputs"])
    with pytest.raises(DataError, match="no record to write"):
        write_parquet(tmp_path / "none.parquet", [])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("note", "cell"), [(b"PAR1", None), (b'["tags"]', 5), (b'["tags"]', '{"n":1,"n":2}')]
)
def test_a_foreign_file_that_is_broken_is_named(tmp_path: Path, note: bytes, cell: object) -> None:
    path = tmp_path / "x.parquet"
    table = pa.Table.from_pylist([{"id": "a", "tags": cell}])
    pq.write_table(table.replace_schema_metadata({b"h2htalk_json_columns": note}), path)
    if cell is None:
        path.write_bytes(note)
    with pytest.raises(DataError, match=r"x\.parquet: not a readable Parquet file"):
        list(read_parquet(path))


SUBJECT = {"engine": "hf", "model": "tiny", "seed": "0"}
SIGNATURE = Signature({"items": "1", "embedder": "none"}, SUBJECT)
PROMPTS = {"en/dialogue_base.j2": "Answer.", "zh/dialogue_base.j2": "回答。"}
FAILED = Failure("timeout", "no answer")


@pytest.fixture(scope="module")
def split() -> Split:
    """Four scenarios, a to d."""
    four = load_split("mini@1").select(limit=4)
    return replace(
        four, scenarios=tuple(replace(s, id=i) for s, i in zip(four.scenarios, "abcd", strict=True))
    )


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "runs" / "first")


def open_writer(folder: RunFolder, split: Split, signature: Signature = SIGNATURE) -> RunWriter:
    return RunWriter(folder, {"model": "tiny", "samples": 2}, signature, split, PROMPTS)


def tree(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_a_new_run_stands_alone_before_anything_is_asked(folder: RunFolder, split: Split) -> None:
    open_writer(folder, split).close()
    head = {
        "spec": {"model": "tiny", "samples": 2},
        "signature": SIGNATURE.to_dict(),
        "package_version": __version__,
    }
    assert (folder.read_run(), folder.signature(), folder.split(), folder.answers()) == (
        head,
        SIGNATURE,
        split,
        {},
    )
    assert (folder.prompts / "zh" / "dialogue_base.j2").read_text(encoding="utf-8") == "回答。"


def test_the_last_word_counts_and_an_answer_beats_a_failure(
    folder: RunFolder, split: Split
) -> None:
    failed_later = FailedResponse("c", 0, Failure("http_500", "later"))
    words: list[Response | FailedResponse] = [
        *(FailedResponse("a", 0, FAILED), Response("a", 0, "first"), Response("a", 0, "second")),
        *(Response("b", 0, "kept"), FailedResponse("b", 0, FAILED)),
        *(FailedResponse("c", 0, FAILED), failed_later, Response("a", 1, "another sample")),
    ]
    writer = open_writer(folder, split)
    for word in words:
        writer.calls.append(word.to_dict())
    writer.discard()  # keeps every answer
    before = tree(folder.path)
    answers = folder.answers()
    assert answers == {
        ("a", 0): words[2],
        ("b", 0): words[3],
        ("c", 0): failed_later,
        ("a", 1): words[-1],
    }
    again = open_writer(folder, split)
    again.close()
    assert again.answers == answers
    assert tree(folder.path) == before


def test_another_signature_is_refused_by_its_keys_and_nothing_is_written(
    folder: RunFolder, split: Split
) -> None:
    open_writer(folder, split).close()
    before = tree(folder.path)
    other = Signature({"items": "2", "embedder": "none"}, {**SUBJECT, "seed": "7", "sap": "none"})
    with pytest.raises(ConfigError) as raised:
        open_writer(folder, split, other)
    assert str(raised.value) == (
        f"{folder.path}: holds a run of another signature; it differs in items (1, 2), seed (0, 7), "
        "sap (-, none); choose another --out"
    )
    assert tree(folder.path) == before


@pytest.mark.parametrize(
    ("key", "rescored"), [("embedder", True), ("rouge", True), ("prompts", False)]
)
def test_what_scoring_decides_can_be_scored_anew(
    folder: RunFolder, split: Split, key: str, rescored: bool
) -> None:
    open_writer(folder, split).close()
    with pytest.raises(ConfigError, match="choose another --out") as raised:
        folder.require_usable(replace(SIGNATURE, protocol={**SIGNATURE.protocol, key: "x@2"}))
    assert (f"h2htalk score {folder.path}" in str(raised.value)) == rescored


def test_a_look_beforehand_compares_neither_model_nor_revision_of_the_embedder(
    folder: RunFolder, split: Split
) -> None:
    open_writer(
        folder, split, replace(SIGNATURE, protocol={**SIGNATURE.protocol, "embedder": "minilm@1"})
    ).close()
    folder.require_usable(
        Signature({**SIGNATURE.protocol, "embedder": "minilm"}, {"seed": "0"}), partial=True
    )


def test_a_run_that_another_process_begins_meanwhile_is_not_written_over(
    folder: RunFolder, split: Split, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found the folder empty; the other one was first at the lock and is done already."""
    real = AppendLog.__init__

    def begun_by_another(self: AppendLog, *arguments: object) -> None:
        monkeypatch.setattr(AppendLog, "__init__", real)
        other = Signature({"items": "9", "embedder": "none"}, SIGNATURE.subject)
        open_writer(folder, split, other).close()
        real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(AppendLog, "__init__", begun_by_another)
    with pytest.raises(ConfigError, match=r"differs in items \(9, 1\)"):
        open_writer(folder, split)
    assert folder.signature().protocol["items"] == "9"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id":"e","sample":0,"text":"x"}', "'e' is not a scenario of this run; remove the line"),
        (
            '{"id":"a","sample":2,"text":"x"}',
            "sample 2 of 'a', but this run asks 2 an item, counted from 0",
        ),
    ],
)
def test_an_answer_to_what_was_never_asked_is_named_and_stops_scoring_and_resuming(
    folder: RunFolder, split: Split, line: str, message: str
) -> None:
    """Lines of another run, put into this one's file, were counted among its answers."""
    writer = open_writer(folder, split)
    writer.calls.append(Response("a", 1, "Hi.").to_dict())
    writer.close()
    with (folder.path / "calls.jsonl").open("a") as file:
        file.write(line + "\n")
    before = tree(folder.path)
    for read in (lambda: folder.answers("abcd", 2), lambda: open_writer(folder, split)):
        with pytest.raises(DataError) as raised:
            read()
        assert str(raised.value).startswith(f"{folder.path}/calls.jsonl:2: {message}")
    assert tree(folder.path) == before


@pytest.mark.parametrize("files", [["notes.txt"], ["calls.lock", "inputs/my-data.csv"]])
def test_a_folder_of_something_else_is_refused_and_left_alone(
    tmp_path: Path, split: Split, files: list[str]
) -> None:
    """A project with a folder called `inputs` once lost it to a new run."""
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"id": "mine", "text": "x"}\n')
    before = tree(tmp_path)
    with pytest.raises(
        DataError, match=r"holds other files and no run\.json; name a new folder with --out"
    ):
        open_writer(RunFolder(tmp_path), split)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("left", ["lock", "log", "half the inputs", "half of run.json"])
def test_a_start_that_was_killed_is_repaired(folder: RunFolder, split: Split, left: str) -> None:
    open_writer(folder, split).close()
    run = (folder.path / "run.json").read_text()
    (folder.path / "run.json").unlink()
    if left in ("lock", "log"):
        shutil.rmtree(folder.inputs)
    if left == "lock":
        (folder.path / "calls.jsonl").unlink()
    if left == "half the inputs":
        shutil.rmtree(folder.prompts)
        (folder.inputs / "split" / "scenarios.jsonl").write_text('{"id": "ha')
    if left == "half of run.json":
        (folder.path / ".run.json.4711").write_text(run[:10])
    other = replace(SIGNATURE, subject={"engine": "hf", "model": "other"})
    open_writer(folder, split, other).close()
    assert folder.signature() == other
    assert folder.split() == split
    assert set(os.listdir(folder.path)) == {"run.json", "inputs", "calls.jsonl", "calls.lock"}


def test_a_start_that_fails_leaves_nothing(tmp_path: Path, split: Split) -> None:
    """A split that could not be written left its half, and the next start found a folder that was no run."""
    unwritable = replace(
        split, scenarios=(replace(split.scenarios[0], metadata={"n": float("inf")}),)
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for out in (tmp_path / "runs" / "first", tmp_path / "mine", tmp_path / "link"):
        with pytest.raises(DataError, match=r"holds NaN or infinity|File exists"):
            open_writer(RunFolder(out), unwritable)
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "link", tmp_path / "mine", tmp_path / "runs"]


def test_a_signature_reads_as_one_line_and_its_fingerprint_is_the_protocols() -> None:
    """Runs may be compared when their protocols agree, whatever the subject is."""
    assert Signature.from_dict(SIGNATURE.to_dict(), "run.json") == SIGNATURE
    assert str(SIGNATURE) == "items:1|embedder:none|engine:hf|model:tiny|seed:0"
    backwards = dict(reversed(SIGNATURE.protocol.items()))
    assert Signature(backwards, {"model": "other"}).fingerprint == SIGNATURE.fingerprint
    assert len(SIGNATURE.fingerprint) == 12
    for key in (*SIGNATURE.protocol, "judge"):
        assert (
            Signature({**SIGNATURE.protocol, key: "else"}, SUBJECT).fingerprint
            != SIGNATURE.fingerprint
        )
