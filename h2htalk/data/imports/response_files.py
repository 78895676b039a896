"""Read responses that another tool produced."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import FailedResponse, Response, SampleKey, fold_answer, read_outcomes, read_response
from h2htalk.errors import DataError, listed, quoted


def read_foreign_responses(path: Path, ids: Collection[str]) -> list[Response | FailedResponse]:
    """Read responses of another tool, JSONL lines of `id` and `response` (or `text`), optionally `sample`, or of a
    run's `calls.jsonl`, in which a reply wins over a failure.

    Args:
        path: the file.
        ids: the split's scenario ids. An id missing from the file stays unscored; one missing from the split is an
            error, because it belongs to another split.

    Raises:
        DataError: a broken line, a foreign id, a repeated answer, or an item that lacks a sample which others
            have; names file and line.
    """
    known = set(ids)
    responses: dict[SampleKey, Response | FailedResponse] = {}
    lines: dict[str, list[tuple[int, str]]] = {}
    foreign: list[str] = []
    for where, record in read_jsonl(path, torn_tail=True):
        own = any(key in record for key in ("stage", "call", "job"))  # of a call store
        for response in read_outcomes(record, where) if own else (_read_foreign(record, where),):
            if response.id not in known:
                # In ASCII: a foreign id may look exactly like one of the split's.
                foreign.append(f"{quoted(response.id)} ({where.rpartition(':')[2]})")
                continue
            key = (response.id, response.sample)
            if key not in responses:
                lines.setdefault(response.id, []).append((response.sample, where))
            elif not own:
                raise DataError(f"{where}: a second response to {response.id}, sample {response.sample}")
            fold_answer(responses, response)
    if foreign:
        raise DataError(
            f"{path}: {len(foreign)} ids are not in the split: id (line) "
            f"{listed(foreign)}; name the split these responses answer"
        )
    if not responses:
        raise DataError(f"{path}: holds no response")
    _require_equal_samples(lines)
    return list(responses.values())


def _require_equal_samples(lines: Mapping[str, Sequence[tuple[int, str]]]) -> None:
    """Raise DataError unless every item has the samples 0 to K - 1, with one K for all.

    An item's score is the mean of its samples: an item with fewer would never be scored.
    """
    count = max(map(len, lines.values()))
    for item_id, found in lines.items():
        lacking = sorted(set(range(count)) - {sample for sample, _ in found})
        if lacking:
            raise DataError(
                f"{found[-1][1]}: {item_id} lacks sample {lacking[0]}; give every answered item the samples "
                f"0 to {count - 1} (a call that gave no answer is a line with a failure)"
                if count > 1
                else f"{found[-1][1]}: {item_id} has sample {found[-1][0]} alone; the first sample is 0"
            )


def _read_foreign(record: Mapping[str, object], where: str) -> Response | FailedResponse:
    if "response" not in record:
        return read_response(record, where)
    if not isinstance(record["response"], str):
        raise DataError(f"{where}: response must be text, not {type(record['response']).__name__}")
    for other in ("text", "failure"):
        if record.get(other) is not None:
            raise DataError(f"{where}: holds a response and a {other}; keep one of them")
    # Other tools' usage and reasoning fields have other shapes: only what is scored is read.
    read = ("id", "sample", "finish_reason")
    own = {key: record[key] for key in read if key in record}
    return read_response({**own, "text": record["response"]}, where)
