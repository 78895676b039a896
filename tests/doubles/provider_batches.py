"""The batch APIs of both providers without a wire: what they are asked, what they keep, what they answer.

A double says in `ends` when a job has ended and in `compute` what came of a request. Results are shuffled.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from provider_model import Refused, error

# A reply's JSON, a refusal, why the request was never tried (`expired`, `canceled`), or None: no result is kept.
Found = dict[str, Any] | Refused | str | None
PREFIX = {"openai": "batch", "anthropic": "msgbatch"}


@dataclass(slots=True)
class Job:
    """A job: `lines` are `(custom_id, body)`; `results` are the lines of its files once it has ended."""

    id: str
    provider: str
    lines: list[tuple[str, Any]]
    created: float = field(default_factory=time.time)
    file: str = ""
    metadata: dict[str, str] | None = None
    problems: list[dict[str, Any]] = field(default_factory=list)
    archived: bool = False
    looks: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    results: list[dict[str, Any]] | None = None


class BatchApi:
    """The jobs, oldest first, and the files. A double has `ends(job)` and `compute(job, body)`."""

    page_size = 100
    url = "http://double"

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.files: dict[str, bytes] = {}
        self.random = random.Random(0)

    def create(self, provider: str, lines: list[tuple[str, Any]], **more: Any) -> Job:
        assert len(dict(lines)) == len(lines) > 0
        job = Job(f"{PREFIX[provider]}_{len(self.jobs)}", provider, lines, **more)
        self.jobs.append(job)
        return job

    def listed(self, provider: str) -> list[Job]:
        """The jobs that a list shows, newest first."""
        return [job for job in reversed(self.jobs) if job.provider == provider]

    def answer(self, method: str, path: str, query: Mapping[str, str], content: bytes) -> dict[str, Any] | list[Any]:
        """Answer a call by JSON, or by lines of results; raises Refused."""
        match method, path.removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                file_id = f"file-{len(self.files)}"
                boundary = content.partition(b"\r\n")[0]
                [part] = [part for part in content.split(boundary) if b"filename=" in part]
                self.files[file_id] = part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
                return {"id": file_id, "object": "file"}
            case "POST", ["batches"]:
                sent = json.loads(content)
                assert (sent["endpoint"], sent["completion_window"]) == ("/v1/chat/completions", "24h")
                rows = [json.loads(line) for line in self.files[sent["input_file_id"]].splitlines()]
                lines = [(row["custom_id"], row["body"]) for row in rows]
                return self.show(self.create("openai", lines, file=sent["input_file_id"], metadata=sent["metadata"]))
            case "POST", ["messages", "batches"]:
                rows = json.loads(content)["requests"]
                assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"]) for row in rows)
                return self.show(self.create("anthropic", [(row["custom_id"], row["params"]) for row in rows]))
            case "GET", ["batches"]:
                return self._page("openai", query)
            case "GET", ["messages", "batches"]:
                return self._page("anthropic", query)
            case "GET", ["batches", name] | ["messages", "batches", name] if job := self.job(name):
                return self.show(job)
            case "GET", ["messages", "batches", name, "results"] if job := self.job(name):
                return job.results or []
            case "GET", ["files", name, "content"] if (job := self.job(name.partition("+")[0])) and not job.archived:
                return [row for row in job.results or [] if (row.get("error") is None) == name.endswith("+out")]
        raise Refused(404, "not_found_error", f"nothing at {path}")

    def job(self, job_id: str) -> Job | None:
        return next((job for job in self.jobs if job.id == job_id), None)

    def _page(self, provider: str, query: Mapping[str, str]) -> dict[str, Any]:
        """A page of the list, newest first, behind the job `after`."""
        newest, after = self.listed(provider), query.get("after") or query.get("after_id")
        start = next((n + 1 for n, job in enumerate(newest) if job.id == after), 0)
        end = start + min(self.page_size, int(query.get("limit", 20)))
        return {"data": [self.show(job, listed=True) for job in newest[start:end]], "has_more": end < len(newest)}

    def end(self, job: Job) -> bool:
        """Look at a job; all its calls are computed when it has ended."""
        job.looks += 1
        if job.results is None and not job.problems and self.ends(job):
            job.results = []
            for custom_id, body in job.lines:
                found, request_id = self.compute(job, body)
                kind = found if isinstance(found, str) else "errored" if isinstance(found, Refused) else "succeeded"
                job.counts[kind] += 1
                if found is not None:
                    job.results.append({"custom_id": custom_id} | row_of(job.provider, found, request_id))
            self.random.shuffle(job.results)
        return job.results is not None or bool(job.problems)

    def show(self, job: Job, listed: bool = False) -> dict[str, Any]:
        """Describe a job as its provider does."""
        ended, counts = self.end(job), job.counts
        at = datetime.fromtimestamp(job.created, UTC).isoformat()
        if job.provider == "anthropic":
            shown = {kind: counts[kind] for kind in ("succeeded", "errored", "canceled", "expired")}
            return {
                "id": job.id,
                "processing_status": "ended" if ended else "in_progress",
                "request_counts": {"processing": 0 if ended else len(job.lines), **shown},
                "created_at": at,
                "archived_at": at if job.archived else None,
                "results_url": f"{self.url}/v1/messages/batches/{job.id}/results" if ended else None,
            }
        status = "expired" if counts["expired"] else "completed"
        whole, failed = ended and not job.problems, counts["errored"] + counts["expired"] + counts["canceled"]
        return {
            "id": job.id,
            "status": "failed" if job.problems else status if ended else "in_progress",
            "errors": {"object": "list", "data": job.problems} if job.problems else None,
            "created_at": int(job.created),
            "input_file_id": job.file or "file-strange",
            "metadata": job.metadata,
            "request_counts": {"total": len(job.lines), "completed": counts["succeeded"], "failed": failed},
            "output_file_id": f"{job.id}+out" if whole else None,
            "error_file_id": f"{job.id}+err" if whole else None,
        }


def row_of(provider: str, found: dict[str, Any] | Refused | str, request_id: str) -> dict[str, Any]:
    """What came of a request, in a line of results."""
    if provider == "anthropic":
        if isinstance(found, str):
            return {"result": {"type": found}}
        if isinstance(found, Refused):
            return {"result": {"type": "errored", "error": error(provider, found, request_id)}}
        return {"result": {"type": "succeeded", "message": found}}
    if isinstance(found, str):
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}[found]
        return {"response": None, "error": {"code": code, "message": "not executed"}}
    status, body = (found.status, error(provider, found, request_id)) if isinstance(found, Refused) else (200, found)
    return {"response": {"status_code": status, "request_id": request_id, "body": body}, "error": None}
