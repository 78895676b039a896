"""Read responses that another tool produced."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import FailedResponse, Response, SampleKey, fold_answer, read_outcomes, read_response
from h2htalk.errors import DataError, listed, quoted


def read_foreign_responses(path: Path, ids: Collection[str]) -> list[Response | FailedResponse]:
    """Read responses of another tool, JSONL lines of `id` and `response` (or `text`), optionally `sample`, or of a
    run's `calls.jsonl`, in which a reply wins over a failure.

    Args:
        path: the file.
        ids: the split's scenario ids. An id missing from the file stays unscored.

    Raises:
        DataError: a broken line, an id of another split, a repeated answer, or an item that lacks a sample which
            others have (an item's score is the mean of its samples); names file and line.
    """
    known = set(ids)
    responses: dict[SampleKey, Response | FailedResponse] = {}
    lines: dict[str, str] = {}
    foreign: list[str] = []
    for where, record in read_jsonl(path, torn_tail=True):
        own = any(key in record for key in ("stage", "call", "job"))  # of a call store
        for response in read_outcomes(record, where) if own else (_read_foreign(record, where),):
            if response.id not in known:
                # Quoted: a foreign id may look exactly like one of the split's.
                foreign.append(f"{quoted(response.id)} ({where.rpartition(':')[2]})")
            elif (response.id, response.sample) in responses and not own:
                raise DataError(f"{where}: a second response to {response.id}, sample {response.sample}")
            else:
                fold_answer(responses, response)
                lines[response.id] = where
    if foreign:
        raise DataError(
            f"{path}: {len(foreign)} ids are not in the split: id (line) "
            f"{listed(foreign)}; name the split these responses answer"
        )
    if not responses:
        raise DataError(f"{path}: holds no response")
    count = -(-len(responses) // len(lines))
    for item_id, where in lines.items():
        lacking = [sample for sample in range(count) if (item_id, sample) not in responses]
        if lacking:
            raise DataError(
                f"{where}: {item_id} lacks sample {lacking[0]}; give every answered item the samples 0 to {count - 1} "
                "(a call that gave no answer is a line with a failure)"
            )
    return list(responses.values())


def _read_foreign(record: Mapping[str, object], where: str) -> Response | FailedResponse:
    if "response" not in record:
        return read_response(record, where)
    if not isinstance(record["response"], str):
        raise DataError(f"{where}: response must be text, not {type(record['response']).__name__}")
    for other in ("text", "failure"):
        if record.get(other) is not None:
            raise DataError(f"{where}: holds a response and a {other}; keep one of them")
    # Other tools' usage and reasoning fields have other shapes: only what is scored is read.
    own = {key: record[key] for key in ("id", "sample", "finish_reason") if key in record}
    return read_response({**own, "text": record["response"]}, where)
