"""Files and servers of others are read in bounded memory and time, and what passes a bound is one line."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import random
import re
import resource
import subprocess
import sys
import textwrap
import time
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.look import find_kind
from h2htalk.curation.gather.records import file_records
from h2htalk.data.bounded.bounds import COLUMNS, LISTING, Bound
from h2htalk.data.bounded.json_values import require_few_values
from h2htalk.data.bounded.memory_limit import limited_memory
from h2htalk.data.files import read_jsonl
from h2htalk.data.parquet import read_parquet, write_parquet
from h2htalk.detect.personal.engine.user_recognizers import read_registry
from h2htalk.errors import ConfigError, DataError, RoundError
from h2htalk.integrations.label_studio.client import LabelStudioClient
from h2htalk.rounds.argilla import client as annotation_client
from h2htalk.rounds.argilla.client import ServerClient
from support.doubles.loopback import DRIPS, Answer, HttpServer
from support.memory import PEAK

LONG = "x" * (2 << 20)
_COUNT = (
    PEAK
    + """
import resource, sys
from pathlib import Path
from h2htalk.curation.gather.records import file_records
import pyarrow.parquet
path = Path(sys.argv[1])
base = peak()
count, message = 0, ""
try:
    for _ in file_records(path, lambda size: None, (0, path.stat().st_size)):
        count += 1
except Exception as error:
    message = f"{type(error).__name__}: {error}"
used = resource.getrusage(resource.RUSAGE_SELF)
print(count, (peak() - base) >> 10, used.ru_utime + used.ru_stime, message, sep="\\t")
"""
)


def _read(path: Path) -> tuple[int, int, float, str]:
    """Records, MiB beside what was loaded, seconds of a processor, and the error, of a process that reads a file."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_COUNT), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    count, memory, seconds, message = done.stdout.rstrip("\n").split("\t")
    return int(count), int(memory), float(seconds), message


@pytest.mark.parametrize("form", ["text", "list", "view", "binary"])
def test_a_small_parquet_file_that_unfolds_is_read_in_little_memory(
    form: str, tmp_path: Path
) -> None:
    """68 KiB took 2.1 GB: the texts of a batch were decoded together."""
    columns: dict[str, Any] = {
        "text": [LONG] * 200,
        "list": [[{"content": LONG}]] * 200,
        "view": pa.array([LONG] * 200, pa.string_view()),
        "binary": [LONG.encode()] * 200,
    }
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": columns[form]}), path, compression="zstd")
    assert path.stat().st_size < 200_000
    count, memory, _, message = _read(path)
    assert not message
    assert count == 200
    assert memory < 320


_N = 20_000_000
_ONE_ROW = pa.array([0, _N], pa.int32())
_MEBIBYTE = "a" * (1 << 20)
_LONG_TEXTS = [LONG + str(number) for number in range(150)]


def _long_texts(kind: str) -> pa.Array:
    """A column of one row, or of few, whose texts are some hundred MB."""
    texts = [_MEBIBYTE] * 300
    if kind == "list of one text":
        return pa.array([texts])
    if kind == "list of views":
        return pa.array([texts], pa.list_(pa.string_view()))
    if kind == "list view":
        return pa.array([texts], pa.list_view(pa.string()))
    if kind == "fixed list":
        return pa.array([texts], pa.list_(pa.string(), 300))
    if kind == "large list":
        return pa.array([texts], pa.large_list(pa.large_string()))
    if kind == "list of binary":
        return pa.array([texts], pa.list_(pa.binary()))
    if kind == "list of json":
        values = pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))
        return pa.ListArray.from_arrays(pa.array([0, 300], pa.int32()), values)
    if kind == "different texts":
        return pa.array(_LONG_TEXTS)
    if kind == "list of different texts":
        return pa.array([_LONG_TEXTS])
    assert kind == "long text"
    return pa.array([_MEBIBYTE * 300])


def _many_values(kind: str) -> pa.Array:
    """A column of one row with twenty million values."""
    numbers = pa.repeat(0, _N)
    if kind == "nulls":
        return pa.ListArray.from_arrays(_ONE_ROW, pa.nulls(_N, pa.string()))
    if kind == "numbers":
        return pa.ListArray.from_arrays(_ONE_ROW, numbers)
    if kind == "fixed list of numbers":
        return pa.FixedSizeListArray.from_arrays(numbers, _N)
    empty = pa.repeat("", _N // 4)
    quarter = pa.array([0, _N // 4], pa.int32())
    if kind == "map":
        return pa.MapArray.from_arrays(quarter, empty, empty)
    assert kind == "lists of structs"
    structs = pa.StructArray.from_arrays([empty] * 4, names=list("abcd"))
    messages = pa.ListArray.from_arrays(quarter, structs)
    return pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), messages)


_KINDS_OF_MANY_VALUES = ["nulls", "numbers", "fixed list of numbers", "map", "lists of structs"]


@pytest.mark.parametrize(
    "kind",
    [
        *_KINDS_OF_MANY_VALUES,
        "list of one text",
        "list of views",
        "list view",
        "fixed list",
        "large list",
        "list of binary",
        *(["list of json"] if hasattr(pa, "json_") else []),  # from pyarrow 19 on
        "different texts",
        "list of different texts",
        "long text",
    ],
)
def test_what_unfolds_to_too_much_is_refused_in_little_memory(kind: str, tmp_path: Path) -> None:
    """17 KB of different texts took 2 GB, a list of one text in the type of JSON 800 MB, a list of nulls 400 MB."""
    make_column = _many_values if kind in _KINDS_OF_MANY_VALUES else _long_texts
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": make_column(kind)}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    count, memory, _, message = _read(path)
    assert count == 0
    assert message.startswith(f"DataError: {path}: ")
    assert re.search(
        "(a row|pages or rows) of more than .* bytes; where that is right, set ", message
    )
    assert memory < 320


def test_rows_that_share_a_long_text_end(tmp_path: Path) -> None:
    """3 KB of a million rows with one text of 8 MiB would have been read for hours; here are a tenth of them."""
    indices = pa.repeat(0, 100_000).cast(pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array([LONG * 4]))
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", compression="zstd")
    _, memory, seconds, message = _read(tmp_path / "a.parquet")
    assert "a table of more than 1,073,741,824 bytes" in message
    assert memory < 320
    assert seconds < 30


def test_long_texts_that_differ_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers put at least 1,024 rows into a page: what a page may take grows with the file."""
    monkeypatch.setenv("H2HTALK_PARQUET_MEMORY", str(4 << 20))
    draw = random.Random(1)
    texts = ["".join(draw.choices("etaoin shrdlu", k=8_000)) for _ in range(1024)]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=False)
    assert [row["text"] for _, row in read_parquet(tmp_path / "a.parquet")] == texts


def test_a_large_footer_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A footer of 300,000 columns took 873 MB before they were counted."""
    path = tmp_path / "a.parquet"
    fields = [pa.field(f"c{number}", pa.int8()) for number in range(20_000)]
    pq.write_table(pa.schema(fields).empty_table(), path)
    with pytest.raises(DataError, match=r"a\.parquet: a table of more than 10,000 columns"):
        list(read_parquet(path))
    monkeypatch.setenv("H2HTALK_LARGEST_FOOTER", "100000")
    with pytest.raises(DataError, match=r"a\.parquet: a footer of more than 100,000 bytes"):
        list(read_parquet(path))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([b"\xff\xfe"]).view(pa.string()),
        pa.array([1 << 62], pa.timestamp("us")),
        pa.array([1 << 30], pa.date32()),
        pa.array([1 << 62], pa.duration("s")),
    ],
)
def test_values_that_python_does_not_have_are_one_line(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": column}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read: "):
        list(file_records(tmp_path / "a.parquet", lambda size: None, (0, 1)))
    with pytest.raises(DataError, match=r"a\.parquet: not a readable Parquet file"):
        list(read_parquet(tmp_path / "a.parquet"))


def test_texts_that_share_their_beginnings_are_read(tmp_path: Path) -> None:
    """pyarrow makes no dictionary of such a page: it was not read at all."""
    path = tmp_path / "a.parquet"
    options: dict[str, Any] = {
        "use_dictionary": False,
        "column_encoding": {"text": "DELTA_BYTE_ARRAY"},
    }
    pq.write_table(pa.table({"text": [_MEBIBYTE] * 20}), path, **options)
    assert len(list(read_parquet(path))) == 20
    pq.write_table(pa.table({"text": [_MEBIBYTE] * 400}), path, **options)
    _, memory, _, message = _read(path)
    assert "a.parquet: pages or rows of more than" in message
    assert memory < 320


def test_the_limit_of_memory_ends_with_the_block() -> None:
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(MemoryError), limited_memory(1 << 26):
        bytearray(1 << 28)
    assert resource.getrlimit(resource.RLIMIT_DATA) == limits
    assert len(bytearray(1 << 28)) == 1 << 28


def test_a_row_of_parquet_that_is_too_long_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("H2HTALK_LARGEST_LINE", "1000")
    pq.write_table(pa.table({"id": ["a"], "text": [LONG]}), tmp_path / "a.parquet")
    with pytest.raises(
        DataError,
        match=r"a\.parquet: a row of more than 1,000 bytes.*set H2HTALK_LARGEST_LINE=4000",
    ):
        list(read_parquet(tmp_path / "a.parquet"))
    with pytest.raises(DataError, match=r"a\.parquet: a row of more than 1,000 bytes"):
        list(file_records(tmp_path / "a.parquet", lambda size: None, (0, 1)))


def test_rows_of_all_types_are_read_as_before(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {
            "id": "a",
            "n": 1,
            "f": 0.5,
            "b": b"\xff",
            "l": ["x", "y"],
            "s": {"k": "v", "z": None},
            "d": {"1": [2]},
        },
        {"id": "b", "n": None, "f": None, "b": None, "l": [], "s": None, "d": {}},
    ]
    write_parquet(tmp_path / "a.parquet", rows, ["d"])
    assert [row for _, row in read_parquet(tmp_path / "a.parquet")] == rows


def test_a_table_of_one_line_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    """A gigabyte of one line, 1 MB as .csv.gz, was read whole."""
    with gzip.open(tmp_path / "a.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"id,text\n")
        for _ in range(100):
            file.write(b"x" * (1 << 20))
    _, memory, _, message = _read(tmp_path / "a.csv.gz")
    assert message.startswith("DataError")
    assert "a line of more than 67,108,864 bytes" in message
    assert memory < 400


def test_white_space_in_json_takes_no_memory(tmp_path: Path) -> None:
    """Each piece of white space was kept, and searched again with the next: quadratic."""
    with gzip.open(tmp_path / "a.json.gz", "wb", compresslevel=1) as file:
        file.write(b'[{"id": "a"},')
        for _ in range(100):
            file.write(b" " * (1 << 20))
        file.write(b'{"id": "b"}]')
    count, memory, seconds, message = _read(tmp_path / "a.json.gz")
    assert not message
    assert count == 2
    assert memory < 60
    assert seconds < 20


@pytest.mark.parametrize("repeated", [False, True])
def test_a_table_of_too_many_columns_is_refused_quickly(repeated: bool, tmp_path: Path) -> None:
    """300,000 columns: each name was counted among all others."""
    names = ["a" if repeated else f"c{number}" for number in range(300_000)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n", encoding="utf-8")
    began = time.process_time()
    with pytest.raises(
        DataError, match=r"a table of more than 10,000 columns; .* set H2HTALK_MOST_COLUMNS=40000"
    ):
        list(file_records(tmp_path / "a.csv", lambda size: None, (0, 1)))
    assert time.process_time() - began < 5


def test_a_bound_is_raised_by_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"c{number}" for number in range(10_001)]
    (tmp_path / "a.csv").write_text(
        ",".join(names) + "\n" + ",".join(names) + "\n", encoding="utf-8"
    )
    monkeypatch.setenv(COLUMNS.variable, "40000")
    assert len(list(file_records(tmp_path / "a.csv", lambda size: None, (0, 1)))) == 1
    for wrong in ("-1", "many", "0", "1e9", "9" * 30):
        monkeypatch.setenv(COLUMNS.variable, wrong)
        with pytest.raises(
            ConfigError, match="H2HTALK_MOST_COLUMNS must be a whole number above 0"
        ):
            _ = Bound(COLUMNS.variable, 1, "columns").value


def test_yaml_aliases_are_refused(tmp_path: Path) -> None:
    """Ten lines of aliases unfold into a billion entries."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    (tmp_path / "r.yaml").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ConfigError, match="an alias") as raised:
        read_registry(tmp_path / "r.yaml")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content",
    ["recognizers: 2026-99-99", "recognizers: " + "[" * 5000, "a: &a [*a]", "? {a: b}: c"],
)
def test_odd_yaml_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"r\.yaml"):
        read_registry(tmp_path / "r.yaml")


class OddServer(HttpServer):
    """An annotation server whose pages never end, or whose objects lack what a real one has."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.numbers = kind, itertools.count()

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        if target.startswith("/api/version"):
            return Answer({"release": "1.23.0"})
        if self.kind == "new pages":
            return Answer({"tasks": [{"id": next(self.numbers)} for _ in range(500)]})
        if self.kind == "same page":
            return Answer({"tasks": [{"id": 1}]})
        if self.kind == "no id":
            return Answer({"tasks": [{"name": "a"}]})
        if self.kind == "texts":
            return Answer({"tasks": "many"})
        if self.kind == "deep":
            return Answer("[" * 100_000, headers={"content-type": "application/json"})
        return Answer(json.dumps([1]) if self.kind == "list" else "null")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LISTING.variable, "5000")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("kind", ["new pages", "same page", "no id", "texts"])
def test_a_server_whose_listing_is_odd_ends_in_one_line(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OddServer(kind) as server:
        monkeypatch.setenv("LABEL_STUDIO_URL", server.url)
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", "a-key-of-the-owner-77")
        client = LabelStudioClient.open(0.1, lambda _, key: {})
        with pytest.raises(RoundError) as raised:
            client.pages("/api/tasks", "tasks")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("kind", ["list", "null", "deep"])
def test_a_listing_that_is_no_object_is_an_empty_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OddServer(kind) as server:
        monkeypatch.setenv("LABEL_STUDIO_URL", server.url)
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", "a-key-of-the-owner-77")
        client = LabelStudioClient.open(0.1, lambda _, key: {})
        assert client.pages("/api/tasks", "tasks") == []


def test_a_reply_that_drips_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that sends a byte now and then kept a command for ever: each byte began the timeout again."""

    class Dripping(httpx.SyncByteStream):
        def __iter__(self) -> Any:
            while True:
                time.sleep(0.01)
                yield b" "

    monkeypatch.setattr(annotation_client, "LONGEST_REQUEST", 0.2)
    http = httpx.Client(
        transport=httpx.MockTransport(lambda request: httpx.Response(200, stream=Dripping()))
    )
    client = ServerClient(http, "http://server", "owner", 0.1)
    began = time.monotonic()
    with pytest.raises(RoundError, match=r"does not answer \(ReadTimeout\)"):
        client.get("http://server/api/v1/me")
    assert time.monotonic() - began < 30


class DrippingServer(HttpServer):
    """An annotation server that says its version, and then drips in a way."""

    def __init__(self, drip: str) -> None:
        super().__init__()
        self.drip = drip

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        return Answer({"version": "2.8.0"}) if target.endswith("version") else self.drip


@pytest.mark.parametrize("drip", DRIPS)
def test_a_server_that_drips_before_the_body_ends(
    drip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a request was counted between parts of a body, and never in a head."""
    with DrippingServer(drip) as server:
        monkeypatch.setenv("ARGILLA_API_URL", server.url)
        monkeypatch.setenv("ARGILLA_API_KEY", "a-key-of-the-owner-77")
        client = ServerClient.open(0.1, lambda _, key: {"trust_env": False})
        monkeypatch.setattr(annotation_client, "LONGEST_REQUEST", 0.2)
        began = time.monotonic()
        with pytest.raises(RoundError, match=r"does not answer \(ReadTimeout\)"):
            client.get("/api/v1/me")
        assert client.ask_search_engine("/api/v1/status") is None
    assert time.monotonic() - began < 5


_MANY_VALUES = b'{"id": "a", "turns": [' + b"[]," * 11_000_000 + b"[]]}"
_READ_JSON = (
    PEAK
    + """
import sys
from pathlib import Path
from h2htalk.data.files import read_json_object, read_jsonl
read = {"line": lambda path: list(read_jsonl(path)), "object": read_json_object}[sys.argv[1]]
base = peak()
try:
    read(Path(sys.argv[2]))
    message = ""
except Exception as error:
    message = f"{type(error).__name__}: {error}"
print((peak() - base) >> 10, message, sep="\\t")
"""
)


@pytest.mark.parametrize("kind", ["line", "object"])
def test_json_of_millions_of_values_is_refused_before_it_is_parsed(
    kind: str, tmp_path: Path
) -> None:
    """33 MB of `[],` took 889 MB."""
    path = tmp_path / "a.jsonl"
    first = b'{"id": "b"}\n' if kind == "line" else b""
    path.write_bytes(first + _MANY_VALUES)
    command = [sys.executable, "-c", _READ_JSON, kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    memory, message = done.stdout.rstrip("\n").split("\t")
    where = f"{path}:2" if kind == "line" else str(path)
    expected = (
        "JSON of more than 1,000,000 values; where that is right, set H2HTALK_MOST_VALUES=4000000"
    )
    assert message == f"DataError: {where}: {expected}"
    assert int(memory) < 150


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_an_export_of_millions_of_values_is_refused_before_it_is_parsed(
    name: str, tmp_path: Path
) -> None:
    line = _MANY_VALUES + b"\n"
    (tmp_path / name).write_bytes(line if name == "a.jsonl" else b"[" + line + b"]")
    _, memory, _, message = _read(tmp_path / name)
    if name == "a.json":
        assert "after item 0: JSON of more than 1,000,000 values" in message
    assert memory < 320


def test_the_last_line_is_refused_where_a_torn_one_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no line whose writer was killed: it would be missing without a word."""
    monkeypatch.setenv("H2HTALK_MOST_VALUES", "100")
    (tmp_path / "a.jsonl").write_bytes(b'{"a": [' + b"1, " * 101 + b"1]}")
    with pytest.raises(DataError, match=r"a\.jsonl:1: JSON of more than 100 values"):
        list(read_jsonl(tmp_path / "a.jsonl", torn_tail=True))


@pytest.mark.parametrize(
    "text",
    [
        '"' + "a, [{" * 100 + '"',
        '"' + "\\\\" * 200 + '"',
        '"' + '\\",' * 200 + '"',
        "[" + "1, " * 90 + "1]" + " " * 300,
    ],
)
def test_strings_and_white_space_count_as_no_values(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("H2HTALK_MOST_VALUES", "100")
    require_few_values(text)
    require_few_values(text.encode())


def test_an_open_string_is_read_over_once() -> None:
    """Each of its quotation marks may begin a string: quadratic."""
    began = time.process_time()
    require_few_values('"' + '\\"' * 8_000_000)
    assert time.process_time() - began < 5


_READ_ARCHIVE = (
    PEAK
    + """
import sys
from pathlib import Path
from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.data.imports.zip_members import read_members
from h2htalk.rounds.annotator_traces import _text_of
from h2htalk.rounds.spreadsheets.codes import holds_code
path = Path(sys.argv[2])
readers = {
    "members": lambda: list(read_members(path, list)),
    "export": lambda: ExportFile(path, "", ["*.json"], "", lambda size: None).text(),
    "code": lambda: holds_code(path, ["0123456789abcdef"]),
    "text": lambda: _text_of(path),
}
base = peak()
try:
    readers[sys.argv[1]]()
    message = ""
except Exception as error:
    message = f"{type(error).__name__}: {error}"
print((peak() - base) >> 10, message, sep="\\t")
"""
)


def _read_archive(reader: str, path: Path) -> tuple[int, str]:
    """MiB beside what was loaded, and the error, of a process that reads a compressed file."""
    command = [sys.executable, "-c", _READ_ARCHIVE, reader, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    memory, message = done.stdout.rstrip("\n").split("\t")
    return int(memory), message


def _write_lying_zip(path: Path, size: int, content: bytes = b" " * (200 << 20)) -> None:
    """Write a zip file whose only member is larger than the size that is stated."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", content)
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = size.to_bytes(4, "little")
    path.write_bytes(data)


@pytest.mark.parametrize("reader", ["members", "export", "code", "text"])
def test_a_zip_file_that_lies_about_a_size_is_read_in_little_memory(
    reader: str, tmp_path: Path
) -> None:
    """800 KB took 1.6 GB: a member was unfolded before its size was compared."""
    path = tmp_path / "a.xlsx"
    if reader == "export":
        path = tmp_path / "a.zip"
    _write_lying_zip(path, 1000)
    memory, message = _read_archive(reader, path)
    if reader == "members":
        assert message.startswith(f"DataError: {path}: no whole zip file")
    elif reader == "export":
        assert message.startswith(f"DataError: {path}: the archive cannot be read")
    else:
        assert not message  # such a workbook is searched as it is
    assert memory < 50


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zip"])
def test_an_export_that_unfolds_to_too_much_is_refused(suffix: str, tmp_path: Path) -> None:
    """6.9 MB of `.json.gz` took 3 GB, as no more than the size of the compressed file was looked at."""
    path = tmp_path / f"a.json{suffix}"
    spaces = b" " * (200 << 20)
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.json", spaces)
    elif suffix == ".gz":
        path.write_bytes(gzip.compress(spaces, 1))
    else:
        path.write_bytes(lzma.compress(spaces, preset=0))
    memory, message = _read_archive("export", path)
    assert message.startswith(
        f"DataError: {path}: unfolds to more than 64 MiB; where that is right"
    )
    assert memory < 150


@pytest.mark.parametrize("damage", ["cut off", "broken"])
def test_an_archive_with_a_damaged_member_is_no_export(damage: str, tmp_path: Path) -> None:
    """`zlib.error` and `EOFError` of a member were tracebacks of `curate look`."""
    path = tmp_path / "conversations.zip"
    draw = random.Random(1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", draw.randbytes(100_000).hex())
    data = bytearray(path.read_bytes())
    if damage == "broken":
        data[60:90] = b"\xff" * 30
    else:
        # The directory says that there is more of the member than the file holds.
        directory = data.rindex(b"PK\x01\x02")
        data[directory + 20 : directory + 24] = (10_000_000).to_bytes(4, "little")
        del data[5_000:directory]
        end = data.rindex(b"PK\x05\x06")
        data[end + 16 : end + 20] = (5_000).to_bytes(4, "little")
    path.write_bytes(data)
    assert find_kind(path) is None
    with pytest.raises(DataError, match="the archive cannot be read"):
        ExportFile(path, "", ["*.json"], "", lambda size: None).text()
