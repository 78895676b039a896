"""Stored answers of a stage's calls: the lines of calls/part-*.jsonl, and which prompt of whom each one answers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import FailedResponse, Failure, Response, SampleKey, read_response
from h2htalk.errors import DataError

Known = dict[tuple[SampleKey, str], Reply]  # by item and sample, and the prompt's fingerprint


def prompt_fingerprint(request: Request, model: str) -> str:
    """What a request asks of whom, in 16 hexadecimal digits: an answer to other words, or another model's, is not its
    answer."""
    parts = [model, *(f"{message.role}\0{message.content}" for message in request.messages)]
    parts += [repr(request.sampling), request.form.name if request.form else ""]
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def stored_answers(path: Path) -> Known:
    """The stored answers of a part, the last one to each prompt; failures are not among them.

    Raises:
        DataError: a line is no call; names file and line.
    """
    if not path.exists():
        return {}
    found: Known = {}
    for where, record in read_jsonl(path, torn_tail=True):
        if "result" in record:  # of a moderation endpoint, which was asked before (`guard`)
            continue
        prompt, response = read_line(record, where)
        if isinstance(response, Response):
            found[(response.id, response.sample), prompt] = _reply(response)
    return found


def read_line(record: Mapping[str, Any], where: str) -> tuple[str, Response | FailedResponse]:
    """One stored call: the prompt's fingerprint and what came. Raises DataError; its message starts with `where`."""
    prompt = record.get("prompt")
    if not isinstance(prompt, str):
        raise DataError(f"{where}: not a stored call: prompt is missing")
    told = {key: value for key, value in record.items() if key not in ("prompt", "model")}
    return prompt, read_response(told, where)


def line_of(request: Request, outcome: Outcome) -> dict[str, Any]:
    """What came of a request, as its line holds it beside the prompt's fingerprint and the model."""
    if isinstance(outcome, Failure):
        return FailedResponse(request.id, request.sample, outcome).to_dict()
    return Response(
        request.id,
        request.sample,
        outcome.text,
        outcome.finish_reason,
        outcome.usage,
        outcome.thinking,
        outcome.request_id,
    ).to_dict()


def _reply(response: Response) -> Reply:
    return Reply(
        response.text, response.finish_reason, response.usage, response.thinking, response.request_id
    )
