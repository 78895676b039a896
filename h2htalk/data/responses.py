"""What a run stores: responses, typed failures and token usage."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, with_config

from h2htalk.data.files import UNIQUE_KEYS, json_line, read_jsonl, replacing, require_file
from h2htalk.data.records import Id, adapter, read_record
from h2htalk.errors import DataError

CALLS = "calls.jsonl"  # the call store of a folder (`chat/store/call_store`)
# An item's id and the number of the sample, from 0.
SampleKey = tuple[str, int]
Count = Annotated[int, Field(strict=True, ge=0)]
Moment = Annotated[float, Field(ge=0, lt=1e11)]
_FOREIGN = ConfigDict(extra="ignore")  # a line of a call store, or of another tool, holds more


class _Stored:
    """A record that is written without the fields that are None."""

    __slots__: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        kind: Any = type(self)
        return adapter(kind).dump_python(self, exclude_none=True, warnings=False)  # type: ignore[no-any-return]


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class Usage(_Stored):
    """Tokens of one call. None means that the engine did not report it: unknown, never zero."""

    input_tokens: Count | None = None  # the whole prompt
    output_tokens: Count | None = None  # all that was written
    cache_read_tokens: Count | None = None  # the part of the prompt that a provider read from its cache
    cache_write_tokens: Count | None = None  # the part that it wrote there
    cache_write_1h_tokens: Count | None = None  # of that, for an hour
    reasoning_tokens: Count | None = None  # the part of the output before the reply


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class Failure(_Stored):
    """Why a call gave no answer."""

    reason: str  # a short code to count by: `timeout`, `http_500`, `malformed_reply`, ...
    message: str = ""  # for people
    attempts: Count = 1  # 0 where nothing was called


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class Response(_Stored):
    """A model's answer to one sample of one scenario, unchanged; `answer` is what is scored."""

    id: Id
    sample: Count
    text: str  # may still hold a thinking block
    finish_reason: str = "unknown"
    usage: Usage = field(default_factory=Usage)
    thinking: str | None = None  # reasoning that the engine delivered apart from the text
    request_id: str | None = None
    model: str | None = None  # as the server returned it
    system_fingerprint: str | None = None  # as the server returned it
    endpoint: str | None = None  # what was asked
    at: Moment | None = None  # the Unix time when the answer was stored
    seconds: float | None = None  # what a live call took

    @property
    def answer(self) -> str:
        """The text without thinking blocks and outer white space."""
        return strip_thinking(self.text)


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class FailedResponse(_Stored):
    """A call that failed after its retries: the item stays unscored until a restart repairs it."""

    id: Id
    sample: Count
    failure: Failure
    at: Moment | None = None


def read_response(raw: Mapping[str, Any], where: str) -> Response | FailedResponse:
    """Read a response or failure. Null is as good as absent, and no `sample` is 0, in files made elsewhere."""
    given = {"sample": 0} | {key: value for key, value in raw.items() if value is not None}
    kind: Any = FailedResponse if "failure" in given else Response
    return read_record(kind, given, where, as_python=True)  # type: ignore[no-any-return]


def read_outcomes(raw: Mapping[str, Any], where: str) -> Iterator[Response | FailedResponse]:
    """Read the replies, or the final failure, in a line of `calls.jsonl`, as `read_response`; there may be none."""
    if "text" not in raw and not raw.keys().isdisjoint(("reserved", "call", "job", "erased")):
        return
    first = read_response(raw, where)
    if "more" not in raw or isinstance(first, FailedResponse):
        yield first
        return
    shared = {key: value for key, value in raw.items() if key not in ("more", "usage")}
    yield replace(first, usage=Usage())  # one call: the usage is that of all its replies
    yield from (read_response({**shared, **one}, where) for one in raw["more"])


# The final outcome of each sample.
Answers = dict[SampleKey, Response | FailedResponse]
_MONEY = (b'{"reserved":', b'{"job":')  # lines of a call store without an outcome begin so


def fold_answer(answers: Answers, response: Response | FailedResponse) -> None:
    """Add one response: an answer wins over a failure, a later one over an earlier one."""
    key = (response.id, response.sample)
    if isinstance(response, Response) or not isinstance(answers.get(key), Response):
        answers[key] = response


def read_answers(
    path: Path, stage: str | None = None, check: Callable[[Response | FailedResponse, str], None] | None = None
) -> Answers:
    """Read the final outcome of each sample of a call store, if there is one; of one stage, or of all.

    `check` is called with each response and its position. Raises DataError for a damaged line; names file and line.
    """
    answers: Answers = {}
    for where, record in read_jsonl(path, torn_tail=True, skip=_MONEY) if path.exists() else ():
        for response in read_outcomes(record, where) if stage in (None, record.get("stage")) else ():
            if check is not None:
                check(response, where)
            fold_answer(answers, response)
    return answers


_TAG = re.compile(r"<(/?)think(?:ing)?\s*>", re.IGNORECASE)
# Marks that make a tag between them plain text. Straight quotation marks do so for an opening tag only:
# reasoning often ends with a draft of the reply in quotes, which a closing tag follows at once.
_QUOTES = frozenset(("``", "“”", "‘’", "「」", "『』"))
_QUOTES_AROUND_OPEN = _QUOTES | {'""', "''"}


def strip_thinking(text: str) -> str:
    """Remove `<think>` (or `<thinking>`) blocks and outer white space."""
    return split_thinking(text)[0]


def split_thinking(text: str, opened: bool = False) -> tuple[str, str | None]:
    """Split a text into the answer and the reasoning in `<think>` blocks; None where there is no block.

    A block goes from its tag to the first closing one; blocks do not nest, as reasoning may mention the tag. Some
    chat templates open the block in the prompt: everything before a lone `</think>` is reasoning too, and where the
    prompt `opened` one, all is without a tag. A block that was cut off before it closed leaves no answer after it. A
    tag in quotation marks or backticks is text.
    """
    kept, thought, start, inside, found = "", "", 0, opened, opened
    for tag in _TAG.finditer(text):
        closes = bool(tag[1])
        around = text[max(0, tag.start() - 1) : tag.start()] + text[tag.end() : tag.end() + 1]
        if around in (_QUOTES if closes else _QUOTES_AROUND_OPEN) or (inside and not closes):
            continue
        part = text[start : tag.start()]
        if not closes:
            kept += part
        elif inside:
            thought += part
        else:  # the prompt opened it
            kept, thought = "", thought + kept + part
        start, inside, found = tag.end(), not closes, True
    kept, thought = (kept, thought + text[start:]) if inside else (kept + text[start:], thought)
    return kept.strip(), thought.strip() if found else None


_JSON_COLUMNS = b"h2htalk_json_columns"
ROWS_A_GROUP = 2048  # of a Parquet file


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stream `(where, record)` from a Parquet file that `write_parquet` or another tool made. Raises DataError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with require_file(path).open("rb") as source, pq.ParquetFile(source) as file:
            nested = json.loads((file.schema_arrow.metadata or {}).get(_JSON_COLUMNS, b"[]"))
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}:row {number}", row | {name: UNIQUE_KEYS.decode(row[name]) for name in nested}
    except (OSError, ValueError, TypeError, KeyError, RecursionError, pa.ArrowException) as error:
        raise DataError(f"{path}: not a readable Parquet file (row {number}): {error}") from error


def write_parquet(
    path: Path, records: Iterable[Mapping[str, Any]], json_columns: Sequence[str] = (), schema: Any = None
) -> int:
    """Stream records with equal keys, at least one, to a Parquet file that appears only when it is complete.

    `json_columns` are keys whose objects or lists are stored as JSON text, which `read_parquet` parses; `schema` is a
    `pyarrow.Schema`, or None to infer it from all rows, which are then one group. Raises DataError for no record, and
    for half a character (a lone surrogate) outside `json_columns`.
    """
    import pyarrow.parquet as pq

    rows, count = iter(records), 0
    try:
        # Opened here: pyarrow takes no path that is not UTF-8.
        with replacing(path) as temporary, temporary.open("wb") as file, contextlib.ExitStack() as stack:
            writer = None
            while batch := list(islice(rows, None if schema is None else ROWS_A_GROUP)):
                lines = [dict(row) | {key: json_line(row[key])[:-1] for key in json_columns} for row in batch]
                table = _table(lines, schema)
                if writer is None:
                    schema = table.schema.with_metadata({_JSON_COLUMNS: json.dumps(list(json_columns))})
                    writer = stack.enter_context(pq.ParquetWriter(file, schema))
                writer.write_table(table.replace_schema_metadata(schema.metadata))
                count += len(batch)
            if not count:
                raise DataError(f"{path}: no record to write")
    except UnicodeEncodeError as error:
        bad = error.object[error.start]
        raise DataError(f"{path}: Parquet cannot hold half a character ({bad!a}); write JSONL") from error
    return count


def _table(rows: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """Convert rows to a `pyarrow.Table` of a schema, by way of JSON, which holds every number exactly.

    `Table.from_pylist` loads pandas where it is installed, which costs every run 50 MB and 0.3 s.
    """
    import pyarrow as pa
    import pyarrow.json as pj

    if schema is None:
        return pa.Table.from_pylist(rows)
    lines = "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows).encode()
    return pj.read_json(
        pa.BufferReader(lines),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(lines)),
        parse_options=pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error"),
    )
