"""The double's files and batch jobs, spoken to by the real SDKs."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from provider_clients import anthropic_client, openai_client
from providers import JobPlan, ProviderServer


@pytest.fixture(scope="module")
def server() -> Iterator[ProviderServer]:
    with ProviderServer() as running:
        yield running


def openai_lines(*texts: str, **more: Any) -> bytes:
    body = {"model": "gpt-test", "max_completion_tokens": 64, **more}
    rows = [
        {
            "custom_id": f"x-{number}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {**body, "messages": [{"role": "user", "content": text}]},
        }
        for number, text in enumerate(texts)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def create_openai(client: openai.OpenAI, content: bytes) -> Any:
    sent = client.files.create(file=("in.jsonl", io.BytesIO(content)), purpose="batch")
    return client.batches.create(
        input_file_id=sent.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata={"marker": "abc"},
    )


def rows(client: openai.OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    assert file_id is not None
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()]


def test_an_openai_batch_ends_after_some_polls_with_replies_and_errors_apart() -> None:
    at = {"late": "expired", "broken": "http_500"}
    with ProviderServer(faults_at=at, jobs=JobPlan(polls=2, strangers=1)) as server:
        client = openai_client(server)
        job = create_openai(client, openai_lines(*"abcdefgh", "late", "broken"))
        assert job.status == "validating"
        assert client.batches.retrieve(job.id).status == "in_progress"
        assert server.charged() == []
        ended = client.batches.retrieve(job.id)
        assert (ended.status, ended.request_counts.completed, ended.request_counts.failed) == (
            "expired",
            8,
            2,
        )  # type: ignore[union-attr]
        replies = rows(client, ended.output_file_id)
        ids = [row["custom_id"] for row in replies]
        assert sorted(ids) == [f"x-{n}" for n in range(8)] != ids
        assert all(row["response"]["body"]["choices"] for row in replies)
        failed = {row["custom_id"]: row for row in rows(client, ended.error_file_id)}
        assert failed["x-8"]["error"]["code"] == "batch_expired"
        assert failed["x-9"]["response"]["status_code"] == 500
        assert {charge.batch for charge in server.charged()} == {True}
        assert len(server.charged()) == 8
        listed = list(client.batches.list(limit=1))
        assert [one.id == job.id for one in listed] == [True, False]
        assert [one.metadata for one in listed] == [{"marker": "abc"}, None]


def test_an_openai_batch_whose_file_is_wrong_fails_as_a_whole(server: ProviderServer) -> None:
    client = openai_client(server)
    twice = openai_lines("a") + openai_lines("b") + b"{half a li\n"
    ended = client.batches.retrieve(create_openai(client, twice).id)
    assert ended.status == "failed"
    errors = [(error.code, error.line) for error in ended.errors.data or []]  # type: ignore[union-attr]
    assert errors == [("duplicate_custom_id", 2), ("invalid_json_line", 3)]


def test_a_batch_can_be_canceled(server: ProviderServer) -> None:
    client, other = openai_client(server), anthropic_client(server)
    job = create_openai(client, openai_lines("a", "b"))
    assert client.batches.cancel(job.id).status == "cancelling"
    assert client.batches.retrieve(job.id).status == "cancelled"
    mine = other.messages.batches.create(requests=anthropic_requests("a"))
    assert other.messages.batches.cancel(mine.id).processing_status == "canceling"
    assert other.messages.batches.retrieve(mine.id).request_counts.canceled == 1


def anthropic_requests(*texts: str, **more: Any) -> Any:
    body = {"model": "claude-test", "max_tokens": 64, **more}
    return [
        {"custom_id": f"x-{number}", "params": {**body, "messages": [{"role": "user", "content": text}]}}
        for number, text in enumerate(texts)
    ]


def test_a_message_batch_gives_its_results_in_any_order() -> None:
    at = {"late": "expired", "broken": "overloaded"}
    with ProviderServer(faults_at=at, jobs=JobPlan(polls=2, strangers=1)) as server:
        client = anthropic_client(server)
        job = client.messages.batches.create(requests=anthropic_requests(*"abcdefgh", "late", "broken"))
        assert client.messages.batches.retrieve(job.id).processing_status == "in_progress"
        assert client.messages.batches.retrieve(job.id).request_counts.succeeded == 8
        results = {one.custom_id: one.result for one in client.messages.batches.results(job.id)}
        assert list(results) != sorted(results)
        assert results["x-8"].type == "expired"
        assert results["x-9"].type == "errored"
        assert results["x-9"].error.error.type == "overloaded_error"
        assert results["x-0"].type == "succeeded"
        assert results["x-0"].message.usage.output_tokens > 0
        assert len(server.charged()) == 8
        assert [one.id == job.id for one in client.messages.batches.list(limit=1)] == [True, False]


def test_parameters_of_a_message_batch_are_checked_one_by_one_when_it_runs(server: ProviderServer) -> None:
    client = anthropic_client(server)
    requests = [*anthropic_requests("a"), {**anthropic_requests("b")[0], "custom_id": "x-1"}]
    requests[1]["params"]["temperature"] = 1
    job = client.messages.batches.create(requests=requests)
    found = {one.custom_id: one.result.type for one in client.messages.batches.results(job.id)}
    assert found == {"x-0": "succeeded", "x-1": "errored"}
    with pytest.raises(anthropic.BadRequestError, match="unique"):
        client.messages.batches.create(requests=anthropic_requests("a") * 2)


def test_creations_and_results_can_break_after_and_before_the_job_exists() -> None:
    plan = JobPlan(unmade=1, create_dropped=1, results_cut=1, polls_failed=1)
    with ProviderServer(jobs=plan) as server:
        client = anthropic_client(server)
        for made in (0, 1):
            with pytest.raises(anthropic.APIConnectionError):
                client.messages.batches.create(requests=anthropic_requests("a"))
            assert len(list(client.messages.batches.list())) == made
        (job,) = client.messages.batches.list()
        with pytest.raises(anthropic.InternalServerError):
            client.messages.batches.retrieve(job.id)
        with pytest.raises(Exception, match=r"peer closed connection|incomplete|Unterminated"):
            list(client.messages.batches.results(job.id))
        assert len(list(client.messages.batches.results(job.id))) == 1
        assert len(server.charged()) == 1
