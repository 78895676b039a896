"""Anthropic's Message Batches as the provider double serves them."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import provider_anthropic as wire
from aiohttp import web
from provider_delivery import cut, drop
from provider_faults import Refused
from provider_jobs import Job, Result

if TYPE_CHECKING:
    from providers import ProviderServer

_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PLACE = "/v1/messages/batches"


class AnthropicBatches:
    """The routes; jobs and charges are the server's."""

    def __init__(self, server: ProviderServer) -> None:
        self.server = server
        self.jobs = server.jobs

    def routes(self) -> list[web.RouteDef]:
        made = {
            ("POST", _PLACE): self.create,
            ("GET", _PLACE): self.list,
            ("GET", f"{_PLACE}/{{job}}"): self.retrieve,
            ("GET", f"{_PLACE}/{{job}}/results"): self.results,
            ("POST", f"{_PLACE}/{{job}}/cancel"): self.cancel,
            ("DELETE", f"{_PLACE}/{{job}}"): self.delete,
        }
        return [web.route(*place, self.server.guarded(wire, handle)) for place, handle in made.items()]

    async def create(self, request: web.Request) -> web.Response:
        body = wire.parse(await request.read())
        if not isinstance(body, dict) or set(body) != {"requests"}:
            raise wire.refuse("requests: Field required, and no other input is permitted")
        lines = [_read_line(one, number) for number, one in enumerate(body["requests"])]
        if not lines:
            raise wire.refuse("requests: List should have at least 1 item")
        if len({custom_id for custom_id, _ in lines}) < len(lines):
            raise wire.refuse("requests: custom_id must be unique")
        if self.jobs.plan.use("unmade"):
            return drop(request)
        job = self.jobs.add("anthropic", "msgbatch_", lines)
        if self.jobs.plan.use("create_dropped"):
            return drop(request)
        return web.json_response(self._show(job))

    async def list(self, request: web.Request) -> web.Response:
        if "before_id" in request.query:
            raise wire.refuse("before_id: not spoken here")
        page, more = self.jobs.page("anthropic", request.query.get("after_id"), int(request.query.get("limit", 20)))
        for job in page:
            self._look(job)
        ends = {"first_id": page[0].id if page else None, "last_id": page[-1].id if page else None}
        return web.json_response({"data": [self._show(job) for job in page], "has_more": more, **ends})

    async def retrieve(self, request: web.Request) -> web.Response:
        job = self._find(request)
        if self.jobs.plan.use("polls_failed"):
            raise Refused(500, "api_error", "Internal server error")
        self._look(job)
        return web.json_response(self._show(job))

    async def results(self, request: web.Request) -> web.StreamResponse:
        job = self._find(request)
        if job.results is None:
            raise wire.refuse("The batch has not ended yet", 404, "not_found_error")
        content = "".join(json.dumps(_row(result)) + "\n" for result in job.results).encode()
        if self.jobs.plan.use("results_cut"):
            return await cut(request, content, {})
        stream = web.StreamResponse(headers={"content-type": "application/binary"})
        await stream.prepare(request)
        for start in range(0, len(content), 1000):  # lines broken anywhere, as a network does
            await stream.write(content[start : start + 1000])
        await stream.write_eof()
        return stream

    async def cancel(self, request: web.Request) -> web.Response:
        job = self._find(request)
        job.canceled = not job.ended
        return web.json_response(self._show(job))

    async def delete(self, request: web.Request) -> web.Response:
        job = self._find(request)
        if not job.ended:
            raise wire.refuse("The batch is in progress")
        self.jobs.all.remove(job)
        return web.json_response({"id": job.id, "type": "message_batch_deleted"})

    def _look(self, job: Job) -> None:
        """Time passes with each look at a job."""
        self.jobs.look(job, lambda body: self.server.compute_in_batch(wire, body))

    def _find(self, request: web.Request) -> Job:
        job = self.jobs.find("anthropic", request.match_info["job"])
        if job is None:
            raise wire.refuse(f"batch {request.match_info['job']}", 404, "not_found_error")
        return job

    def _show(self, job: Job) -> dict[str, Any]:
        created = datetime.fromtimestamp(job.created, UTC)
        status = "ended" if job.ended else "canceling" if job.canceled else "in_progress"
        return {
            "id": job.id,
            "type": "message_batch",
            "processing_status": status,
            "request_counts": {
                "processing": 0 if job.ended else len(job.lines),
                **{kind: job.count(kind) for kind in ("succeeded", "errored", "canceled", "expired")},
            },
            "created_at": created.isoformat(),
            "expires_at": (created + timedelta(days=1)).isoformat(),
            "ended_at": created.isoformat() if job.ended else None,
            "cancel_initiated_at": created.isoformat() if job.canceled else None,
            "archived_at": None,
            "results_url": f"{self.server.url}{_PLACE}/{job.id}/results" if job.ended else None,
        }


def _row(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {"type": result.kind}
    if isinstance(result.found, Refused):
        found["error"] = wire.error(result.found, result.request_id)
    elif not isinstance(result.found, str):
        found["message"] = result.found
    return {"custom_id": result.custom_id, "result": found}


def _read_line(one: Any, number: int) -> tuple[str, Any]:
    """Custom id and body; the body is checked when it is computed, as the API does."""
    if not isinstance(one, dict) or set(one) != {"custom_id", "params"}:
        raise wire.refuse(f"requests.{number}: custom_id and params are required")
    if not isinstance(one["custom_id"], str) or not _CUSTOM_ID.fullmatch(one["custom_id"]):
        raise wire.refuse(f"requests.{number}.custom_id: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'")
    return one["custom_id"], one["params"]
