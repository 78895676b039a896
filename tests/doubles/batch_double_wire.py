"""How the batch double's jobs and results look in the words of each provider."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2

TOKENS = (20, 10)  # input and output that each reply is charged for
# What becomes of a text. All but `ok`, `garbage`, `missing` are free; `missing`: computed, but no result is kept.
FATES = (
    "ok",
    "garbage",
    "missing",
    "invalid",
    "overloaded",
    "timeout",
    "expired",
    "canceled",
    "fatal",
    "uncomputed",
)


@dataclass(slots=True)
class DoubleJob:
    """A job: `lines` are `(custom_id, body)`; `results` are the lines of its files once it has ended."""

    id: str
    lines: list[tuple[str, Any]]
    created: float
    file: str = ""
    metadata: dict[str, str] | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    canceled: bool = False
    archived: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    results: list[dict[str, Any]] | None = None


def openai_row(fate: str, text: str, body: Any) -> dict[str, Any]:
    if fate in ("expired", "canceled"):
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[fate]
        return {"response": None, "error": {"code": code, "message": "not executed"}}
    errors = {
        "invalid": (400, {"type": "invalid_request_error", "message": "long", "code": "context_length_exceeded"}),
        "overloaded": (503, {"type": "server_error", "message": "overloaded"}),
        "timeout": (504, {"type": "server_error", "message": "timed out"}),
        "fatal": (401, {"type": "invalid_request_error", "message": "no", "code": "invalid_api_key"}),
    }  # fmt: skip
    if fate in errors:
        status, error = errors[fate]
        response = {"status_code": status, "request_id": "req-e", "body": {"error": error}}
        return {"response": response, "error": None}
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": f"re: {text}"}}
    choices = [choice | {"index": index} for index in range(body.get("n") or 1)]
    usage = {"prompt_tokens": TOKENS[0], "completion_tokens": TOKENS[1]}
    reply = {"id": "chatcmpl-1", "usage": usage} | ({} if fate == "garbage" else {"choices": choices})
    return {"response": {"status_code": 200, "request_id": f"req-{text}", "body": reply}, "error": None}


def anthropic_row(fate: str, text: str, body: Any) -> dict[str, Any]:
    errors = {
        "invalid": ("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
        "overloaded": ("overloaded_error", "Overloaded"),
        "timeout": ("timeout_error", "Timed out"),
        "fatal": ("authentication_error", "no"),
    }
    if fate in ("expired", "canceled"):
        return {"result": {"type": fate}}
    if fate in errors:
        kind, message = errors[fate]
        error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req-e"}
        return {"result": {"type": "errored", "error": error}}
    usage = {"input_tokens": TOKENS[0], "output_tokens": TOKENS[1]}
    message = {"id": f"msg-{text}", "stop_reason": "end_turn", "usage": usage}
    if fate != "garbage":
        message |= {"content": [{"type": "text", "text": f"re: {text}"}]}
    return {"result": {"type": "succeeded", "message": message}}


def openai_job(job: DoubleJob, ended: bool) -> dict[str, Any]:
    status = "completed" if ended else "in_progress"
    if ended and (job.canceled or job.counts["expired"]):
        status = "cancelled" if job.canceled else "expired"
    completed, failed = job.counts["succeeded"], job.counts["errored"]
    return {
        "id": job.id,
        "object": "batch",
        "status": "failed" if job.problems else status,
        "errors": {"object": "list", "data": job.problems} if job.problems else None,
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "created_at": int(job.created),
        "input_file_id": job.file,
        "metadata": job.metadata,
        "request_counts": {"total": len(job.lines), "completed": completed, "failed": failed},
        "output_file_id": f"{job.id}+out" if ended and not job.problems else None,
        "error_file_id": f"{job.id}+err" if ended and not job.problems else None,
    }


def anthropic_job(job: DoubleJob, ended: bool) -> dict[str, Any]:
    kinds = ("succeeded", "errored", "canceled", "expired")
    counts = {kind: job.counts[kind] if ended else 0 for kind in kinds}
    counts["processing"] = 0 if ended else len(job.lines)
    at = datetime.fromtimestamp(job.created, UTC).isoformat()
    return {
        "id": job.id,
        "type": "message_batch",
        "processing_status": "ended" if ended else "in_progress",
        "request_counts": counts,
        "created_at": at,
        "expires_at": at,
        "archived_at": at if job.archived else None,
        "results_url": f"http://double/v1/messages/batches/{job.id}/results" if ended else None,
    }


class Pieces(httpx2.SyncByteStream):
    """A body in pieces that end anywhere; a broken one ends in the middle."""

    def __init__(self, content: bytes, broken: bool) -> None:
        self.content, self.broken = content, broken

    def __iter__(self) -> Iterator[bytes]:
        content = self.content[: len(self.content) * 2 // 3] if self.broken else self.content
        for start in range(0, len(content), 97):
            yield content[start : start + 97]
        if self.broken:
            raise httpx2.RemoteProtocolError("peer closed connection")
