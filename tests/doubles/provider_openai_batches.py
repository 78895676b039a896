"""OpenAI's files and batches as the provider double serves them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import provider_openai as wire
from aiohttp import web
from provider_delivery import cut, drop
from provider_faults import Refused
from provider_jobs import Job, Result

if TYPE_CHECKING:
    from providers import ProviderServer

ENDPOINT = "/v1/chat/completions"
_EXPIRED = {
    "code": "batch_expired",
    "message": "This request could not be executed before the completion window expired.",
}
_CANCELED = {"code": "batch_cancelled", "message": "This request was cancelled before it was executed."}


class OpenAIBatches:
    """The routes; jobs and charges are the server's."""

    def __init__(self, server: ProviderServer) -> None:
        self.server = server
        self.jobs = server.jobs

    def routes(self) -> list[web.RouteDef]:
        made = {
            ("POST", "/v1/files"): self.upload,
            ("GET", "/v1/files/{file}"): self.file,
            ("GET", "/v1/files/{file}/content"): self.content,
            ("POST", "/v1/batches"): self.create,
            ("GET", "/v1/batches"): self.list,
            ("GET", "/v1/batches/{job}"): self.retrieve,
            ("POST", "/v1/batches/{job}/cancel"): self.cancel,
        }
        return [web.route(*place, self.server.guarded(wire, handle)) for place, handle in made.items()]

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        sent = form.get("file")
        if form.get("purpose") != "batch" or not isinstance(sent, web.FileField):
            raise wire.refuse("A file and the purpose 'batch' are required.", "file")
        file_id = self.jobs.next_id("file-")
        self.jobs.files[file_id] = (sent.filename, sent.file.read())
        return web.json_response(self._file(file_id))

    async def file(self, request: web.Request) -> web.Response:
        return web.json_response(self._file(request.match_info["file"]))

    async def content(self, request: web.Request) -> web.StreamResponse:
        self._file(request.match_info["file"])
        content = self.jobs.files[request.match_info["file"]][1]
        if not self.jobs.plan.use("results_cut"):
            return web.Response(body=content, content_type="application/octet-stream")
        return await cut(request, content, {})

    def _file(self, file_id: str) -> dict[str, Any]:
        if file_id not in self.jobs.files:
            raise wire.refuse(f"No such File object: {file_id}", "id", status=404)
        name, content = self.jobs.files[file_id]
        return {
            "id": file_id,
            "object": "file",
            "bytes": len(content),
            "created_at": 1,
            "filename": name,
            "purpose": "batch",
            "status": "processed",
        }

    async def create(self, request: web.Request) -> web.Response:
        body = wire.parse(await request.read())
        unknown = set(body) - {
            "completion_window",
            "endpoint",
            "input_file_id",
            "metadata",
            "output_expires_after",
        }
        if unknown:
            raise wire.refuse(f"Unknown parameter: '{min(unknown)}'.", min(unknown), "unknown_parameter")
        if body.get("endpoint") != ENDPOINT or body.get("completion_window") != "24h":
            raise wire.refuse("Invalid endpoint or completion_window.", "endpoint")
        metadata = body.get("metadata") or {}
        if len(metadata) > 16 or any(not isinstance(v, str) or len(v) > 512 for v in metadata.values()):
            raise wire.refuse("Invalid 'metadata'.", "metadata")
        self._file(body.get("input_file_id", ""))
        if self.jobs.plan.use("unmade"):
            return drop(request)
        lines, invalid = _read_lines(self.jobs.files[body["input_file_id"]][1])
        if self.jobs.plan.use("invalid"):
            invalid = [_invalid("model_not_found", "The provided model is not supported.", 1)]
        job = self.jobs.add(
            "openai", "batch_", lines, metadata=metadata, input_file=body["input_file_id"], invalid=invalid
        )
        if self.jobs.plan.use("create_dropped"):
            return drop(request)
        return web.json_response(self._show(job))

    async def list(self, request: web.Request) -> web.Response:
        page, more = self.jobs.page("openai", request.query.get("after"), int(request.query.get("limit", 20)))
        for job in page:
            self._look(job)
        shown = [self._show(job) for job in page]
        ends = {"first_id": page[0].id, "last_id": page[-1].id} if page else {}
        return web.json_response({"object": "list", "data": shown, "has_more": more, **ends})

    async def retrieve(self, request: web.Request) -> web.Response:
        job = self._find(request)
        if self.jobs.plan.use("polls_failed"):
            raise Refused(500, "server_error", "The server had an error.")
        self._look(job)
        return web.json_response(self._show(job))

    async def cancel(self, request: web.Request) -> web.Response:
        job = self._find(request)
        job.canceled = not job.ended
        return web.json_response(self._show(job))

    def _look(self, job: Job) -> None:
        """Time passes with each look at a job."""
        self.jobs.look(job, lambda body: self.server.compute_in_batch(wire, body))

    def _find(self, request: web.Request) -> Job:
        job = self.jobs.find("openai", request.match_info["job"])
        if job is None:
            raise wire.refuse(f"No batch found with id '{request.match_info['job']}'.", status=404)
        return job

    def _show(self, job: Job) -> dict[str, Any]:
        at = int(job.created)
        shown: dict[str, Any] = {
            "id": job.id,
            "object": "batch",
            "endpoint": ENDPOINT,
            "errors": {"object": "list", "data": job.invalid} if job.invalid else None,
            "input_file_id": job.input_file or "file-strange",
            "completion_window": "24h",
            "status": self._status(job),
            "output_file_id": None,
            "error_file_id": None,
            "created_at": at,
            "expires_at": at + 86_400,
            "metadata": job.metadata or None,
            "request_counts": {
                "total": 0 if job.invalid else len(job.lines),
                "completed": job.count("succeeded"),
                "failed": job.count("errored", "expired", "canceled"),
            },
        }
        if job.results is not None:
            shown["output_file_id"] = self._results_file(job, "output", lambda r: r.kind == "succeeded")
            shown["error_file_id"] = self._results_file(job, "error", lambda r: r.kind != "succeeded")
        return shown

    def _status(self, job: Job) -> str:
        if job.invalid:
            return "failed" if job.polls else "validating"
        if job.results is None:
            return "cancelling" if job.canceled else "in_progress" if job.polls else "validating"
        if job.canceled:
            return "cancelled"
        return "expired" if job.count("expired") else "completed"

    def _results_file(self, job: Job, name: str, chosen: Any) -> str | None:
        rows = [_row(result, number) for number, result in enumerate(job.results or ()) if chosen(result)]
        if not rows:
            return None
        file_id = f"file-{job.id}-{name}"
        self.jobs.files[file_id] = (
            f"{job.id}_{name}.jsonl",
            "".join(json.dumps(row) + "\n" for row in rows).encode(),
        )
        return file_id


def _row(result: Result, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": f"batch_req_{number:06}", "custom_id": result.custom_id}
    if isinstance(result.found, str):
        return {**row, "response": None, "error": _EXPIRED if result.found == "expired" else _CANCELED}
    if isinstance(result.found, Refused):
        status, body = result.found.status, wire.error(result.found, result.request_id)
    else:
        status, body = 200, result.found
    response = {"status_code": status, "request_id": result.request_id, "body": body}
    return {**row, "response": response, "error": None}


def _invalid(code: str, message: str, line: int | None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": None, "line": line}


def _read_lines(content: bytes) -> tuple[list[tuple[str, Any]], list[dict[str, Any]]]:
    """The requests of an input file, and what makes the whole file invalid."""
    lines: list[tuple[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    seen: set[str] = set()
    models: set[str] = set()
    for number, text in enumerate(content.splitlines(), 1):
        try:
            row = json.loads(text)
            custom_id, body = row["custom_id"], row["body"]
            usable = row["method"] == "POST" and row["url"] == ENDPOINT
        except (ValueError, LookupError, TypeError):
            invalid.append(_invalid("invalid_json_line", "This line is not parseable as valid JSON.", number))
            continue
        if not usable:
            invalid.append(_invalid("mismatched_url", "The URL does not match the batch endpoint.", number))
        if custom_id in seen:
            invalid.append(_invalid("duplicate_custom_id", f"The custom_id '{custom_id}' is used twice.", number))
        seen.add(custom_id)
        models.add(str(body.get("model")))
        lines.append((custom_id, body))
    if len(models) > 1:
        invalid.append(_invalid("mismatched_model", "All requests of a file must be of one model.", None))
    if not content.strip():
        invalid.append(_invalid("empty_file", "The input file is empty.", None))
    return lines, invalid
