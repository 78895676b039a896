"""Faults of a real server: interruptions, a dead or empty search index, no Redis, other users, changed answers."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from argilla_annotators import SimulatedAnnotator, item_of, made_items, write_items
from argilla_small import SAYS, Opened, found_dataset, small_spec
from argilla_stack import Stack

from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.client import ArgillaClient, connect
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.questions import QUESTIONS, SKIPPED

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.usefixtures("signed_in")]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


def test_changed_answers_count_once(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "minds")
    one, other, _ = small.annotators
    records = small.records(one)
    assert sorted(records) == ["item-000", "item-002", "item-004"]
    one.submit(records["item-000"], SAYS)
    one.submit(records["item-002"], {}, "discarded")
    other.submit(records["item-004"], {"keep": "drop"}, "draft")
    status = round_status(small.round.path)
    assert (status.completed, status.skipped, status.mistakes, status.notes) == (1, 1, (), ())
    one.submit(records["item-000"], SAYS | {"quality": 1})
    one.submit(records["item-002"], SAYS)
    assert round_status(small.round.path).skipped == 0
    assert small.values()["item-000", "quality"] == 1
    one.submit(records["item-000"], {}, "discarded")
    status = round_status(small.round.path)
    assert (status.completed, status.skipped, status.new) == (1, 1, 4)
    assert small.values()["item-000", SKIPPED] == "yes"


def test_unacknowledged_answers_are_not_submitted_twice(stack: Stack, base: Path) -> None:
    """The tests with a killed server rely on this: an annotator without a reply first looks for their answer."""
    small = Opened(base, stack, "unheard")
    annotator = small.annotators[0]
    records = small.records(annotator)
    answers = [(records["item-000"], SAYS, "submitted"), (records["item-002"], {}, "discarded")]
    for _ in range(2):
        annotator.hand_in(answers)
    assert annotator.again == len(answers)
    status = round_status(small.round.path)
    assert (status.completed, status.skipped, status.new, status.mistakes) == (1, 1, 4, ())
    with pytest.raises(AssertionError):
        annotator.hand_in([(records["item-000"], SAYS | {"quality": 1}, "submitted")])


def test_further_annotators_and_other_users(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "crowded")
    records = small.records(small.annotators[0])
    for annotator in small.annotators:
        annotator.submit(records["item-000"], SAYS)
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.mistakes) == (3, ())

    client = connect()
    account = {"username": "passer-by", "first_name": "p", "password": "12345678", "role": "annotator"}
    _, stranger = client.call("POST", "/api/v1/users", account)
    place = next(one for one in client.get("/api/v1/me/workspaces")["items"] if one["name"] == "crowded-en")
    client.call("POST", f"/api/v1/workspaces/{place['id']}/users", {"user_id": stranger["id"]})
    passing = SimulatedAnnotator("passer-by", 1.0, stack.url, stranger["api_key"])
    passing.submit(records["item-004"], SAYS)
    status = round_status(small.round.path)
    (message,) = status.notes
    assert "by 'passer-by', who is not an annotator of this round" in message
    assert status.mistakes == ()
    assert status.by_item["item-004"] == 0
    # The server counts it: of the two annotators that the round needs, it requests one more.
    offered = ArgillaPlatform().collect(small.round).offered
    assert offered is not None
    assert (offered["item-000"], offered["item-002"], offered["item-004"]) == (0, 2, 1)
    response = re.search(r"response ([0-9a-f-]{36})", message)[1]
    client.call("DELETE", f"/api/v1/responses/{response}")
    status = round_status(small.round.path)
    assert (status.mistakes, status.notes) == ((), ())
    client.call("DELETE", f"/api/v1/users/{stranger['id']}")


def test_returning_annotators_get_their_items_again(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "returned")
    one, _, third = small.annotators
    for here, waiting in ((False, []), (True, ["item-000", "item-002", "item-004"])):
        changed = [replace(v, active=here) if v.name == one.name else v for v in small.round.annotators()]
        small.round.write_records("private/annotators.jsonl", changed)
        open_round(small.spec, small.round.path)
        assert sorted(small.records(one)) == waiting
    assert sorted(small.records(third)) == ["item-000", "item-004"]
    changed = [replace(v, crisis=True) for v in small.round.annotators()]
    small.round.write_records("private/annotators.jsonl", changed)
    open_round(small.spec, small.round.path)
    assert sorted(small.records(third)) == ["item-000", "item-002", "item-004"]
    assert round_status(small.round.path).skipped == 0


def test_crises_only_with_consent(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "spared")
    seen = {
        name
        for annotator in small.annotators[2:]
        for language in ("en", "zh")
        for name in small.records(annotator, language)
    }
    assert seen == {"item-000", "item-001", "item-003", "item-004"}
    assert round_status(small.round.path).skipped == 0


def test_every_form_of_question_and_a_suggestion(stack: Stack, base: Path) -> None:
    items = [{**item, "suggested": {"violation": "no"}} for item in made_items(2, "safety")]
    safe = write_items(base / "safe.items.jsonl", items)
    small = Opened(base, stack, "safe", kind="safety", items=str(safe), suggest=True)
    one = small.annotators[0]
    said = {"perception": 2, "violation": "yes", "violations": ["privacy", "boundary"], "comment": "名字太多"}
    one.submit(small.records(one)["item-000"], said)
    status = round_status(small.round.path)
    assert (status.completed, status.mistakes) == (1, ())
    kept = {question: value for (_, question), value in small.values().items()}
    assert kept == said | {"violations": ("boundary", "privacy")}
    client = connect()
    dataset = found_dataset(client, "safe-en", "safe-set1-en-01")
    (record,) = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=9, include="suggestions")["items"]
    assert [(one["value"], one["agent"]) for one in record["suggestions"]] == [("no", "reviewer")]


def test_ties_are_given_to_other_annotators(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "tied")
    one, other, third = small.annotators
    records = small.records(one)
    one.submit(records["item-000"], SAYS)
    other.submit(records["item-000"], SAYS | {"keep": "drop"})
    reopen_round(small.round.path)
    (second,) = [one for one in third.datasets("tied") if one["name"] == "tied-set2-en-01"]
    assert [item_of(record) for record in third.pending(second)] == ["item-000"]
    assert [annotator.pending(second) for annotator in (one, other)] == [[], []]
    third.submit(third.pending(second)[0]["id"], SAYS)
    status = round_status(small.round.path)
    assert (status.by_item["item-000"], status.skipped) == (3, 0)


@pytest.mark.parametrize("at", [6, 8, 13, 16, 21, 23, 26, 30, 31, 34, 37, 43, 50])
def test_opening_killed_at_any_request_can_be_repeated(stack: Stack, base: Path, at: int) -> None:
    name = f"killed-{at}"
    spec, out = small_spec(base, name), base / name
    script = Path(__file__).with_name("argilla_killed.py")
    done = subprocess.run(
        [sys.executable, str(script), json.dumps(spec.to_dict()), str(out), str(at)], timeout=120, check=False
    )
    assert done.returncode == -signal.SIGKILL
    open_round(spec, out)
    client = connect()
    for language in ("en", "zh"):
        dataset = found_dataset(client, f"{name}-{language}", f"{name}-set1-{language}-01")
        listed = client.get(f"/api/v1/datasets/{dataset['id']}/records", limit=100, include="responses")
        assert (dataset["status"], listed["total"]) == ("ready", 3)
        assert client.get(f"/api/v1/datasets/{dataset['id']}/progress")["total"] == 3
        # The crisis is discarded for the annotator without consent only.
        assert [len(record["responses"]) for record in listed["items"]].count(1) == 1
        questions = client.get(f"/api/v1/datasets/{dataset['id']}/questions")["items"]
        assert [one["name"] for one in questions] == [one.name for one in QUESTIONS["crowd"]]
    assert round_status(out).notes == ()


def test_a_dead_search_engine_loses_no_annotation(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "deaf")
    one = small.annotators[0]
    records = small.records(one)
    stack.pause_search()
    try:
        values = {name: {"value": value} for name, value in SAYS.items()}
        reply = one.http.post(
            f"/api/v1/records/{records['item-000']}/responses", json={"status": "submitted", "values": values}
        )
        assert reply.status_code == 500
        status = round_status(small.round.path)
        assert status.completed == 1
        assert any("the search engine does not answer" in line for line in status.notes)
        with pytest.raises(RoundError, match="the server's search engine does not answer"):
            open_round(small_spec(base, "never"), base / "never")
    finally:
        stack.start_search()
    wait_for_search()
    open_round(small_spec(base, "never"), base / "never")


def test_an_empty_search_index_is_noted_and_repaired(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "empty")
    one = small.annotators[0]
    records = small.records(one)
    stack.stop_search()
    stack.start_search()
    wait_for_search()
    one.http.post("/api/v1/me/responses/bulk", json={"items": [
        {"record_id": records["item-000"], "status": "submitted",
         "values": {name: {"value": value} for name, value in SAYS.items()}}]})  # fmt: skip
    status = round_status(small.round.path)
    assert status.completed == 1
    assert any("python -m argilla_server search-engine reindex" in line for line in status.notes)
    with pytest.raises(RoundError, match="search-engine reindex"):
        open_round(small.spec, small.round.path)
    stack.reindex()
    assert round_status(small.round.path).notes == ()
    open_round(small.spec, small.round.path)
    assert sorted(small.records(one)) == ["item-002", "item-004"]


def test_annotating_without_redis(stack: Stack, base: Path) -> None:
    small = Opened(base, stack, "lone")
    records = small.records(small.annotators[0])
    stack.end("redis", signal.SIGKILL)
    try:
        small.annotators[0].submit(records["item-000"], SAYS)
        assert round_status(small.round.path).completed == 1
    finally:
        stack.start_redis()


def test_requests_are_repeated_during_a_restart(stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is killed after its first answers to the command."""
    small = Opened(base, stack, "restart")
    records = small.records(small.annotators[0])
    small.annotators[0].submit(records["item-000"], SAYS)
    call, starting = ArgillaClient.call, threading.Thread(target=stack.start_server)

    def killed_before(self: ArgillaClient, method: str, path: str, *rest: Any, **more: Any) -> Any:
        if "/records" in path and not starting.ident:
            stack.end("server", signal.SIGKILL)
            starting.start()
        return call(self, method, path, *rest, **more)

    monkeypatch.setattr(ArgillaClient, "call", killed_before)
    assert round_status(small.round.path).completed == 1
    starting.join(60)


def test_a_dead_server_is_reported_in_seconds(stack: Stack, base: Path) -> None:
    """`status` and `close` tried for half a minute."""
    small = Opened(base, stack, "dead")
    stack.end("server")
    try:
        for command in (round_status, close_round):
            start = time.monotonic()
            with pytest.raises(RoundError, match=r"does not answer \(ConnectError\)"):
                command(small.round.path)
            assert time.monotonic() - start < 6
    finally:
        stack.start_server()
    assert round_status(small.round.path).state == "open"


def test_other_keys_rounds_and_settings_are_refused(stack: Stack, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Opened(base, stack, "mine")
    (base / "again").mkdir()
    with pytest.raises(RoundError, match="belongs to another round"):
        Opened(base / "again", stack, "mine")
    client = connect()
    dataset = found_dataset(client, "mine-en", "mine-set1-en-01")
    client.call(
        "PATCH",
        f"/api/v1/datasets/{dataset['id']}",
        {"distribution": {"strategy": "overlap", "min_submitted": 7}},
    )
    with pytest.raises(RoundError, match="7 annotators per item, not 2"):
        open_round(small.spec, small.round.path)
    monkeypatch.setenv("ARGILLA_API_KEY", small.annotators[0].key)
    with pytest.raises(RoundError, match="use the key of an owner"):
        round_status(small.round.path)
    monkeypatch.setenv("ARGILLA_API_KEY", "no.such.key")
    with pytest.raises(RoundError, match="rejects the key in ARGILLA_API_KEY"):
        round_status(small.round.path)


def wait_for_search() -> None:
    client = connect()
    end = time.monotonic() + 60
    while client.ask_search_engine("/api/v1/status") is None:
        assert time.monotonic() < end
        time.sleep(0.3)
