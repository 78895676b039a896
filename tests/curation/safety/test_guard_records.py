"""What a guard read through kills, updates and erasures, and what it cost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from h2htalk.chat.store.call_store import read_costs
from h2htalk.curation.curate import curate
from h2htalk.curation.erase import erase
from h2htalk.curation.stages import SafetySettings
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError, IncompleteError
from support.curations import all_bytes, dialogue, finished, run_one
from support.doubles.loopback import Answer, LoopbackServer
from support.doubles.providers import ProviderServer, price_file
from support.guards import answer_question, guard_settings, safety_records
from support.hosted_runs import hurried
from support.kills import interrupted_at

HELLO = ("I planted tomatoes on the balcony today.", "How lovely, which kind did you choose?")
USER = "openai:gpt-test"
DAY = 1_700_000_000.0


def test_a_run_that_was_stopped_at_any_write_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h2htalk.chat.store.stage_calls.time.time", lambda: DAY)
    dialogues = [
        dialogue(1),
        dialogue(2, *HELLO),
        dialogue(3, *HELLO),
        dialogue(4, HELLO[0], "(harm)"),
    ]
    template = finished(tmp_path / "template", "anonymize", dialogues, part=2)
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any], number: int) -> str | Answer:
        bodies.append(body)
        return answer_question(body, number)

    def run(name: str) -> Workspace:
        workspace = Workspace(tmp_path / name)
        run_one("safety", workspace, settings)
        return workspace

    server = LoopbackServer(reply=reply)
    with server:
        settings = guard_settings(server)
        shutil.copytree(template.path, tmp_path / "whole")
        whole = all_bytes(run("whole").stage("safety"))
    calls = len(bodies)
    assert calls == 3
    stopped = 0
    for write in range(40):
        shutil.copytree(template.path, tmp_path / f"w{write}")
        with server:  # its end takes what the stopped run still had under way
            was_stopped = interrupted_at(write, lambda name=f"w{write}": run(name))
        bodies.clear()
        with server:
            workspace = run(f"w{write}")
        assert all_bytes(workspace.stage("safety")) == whole, write
        assert len(bodies) <= calls
        stopped += was_stopped
        if not was_stopped:
            assert bodies == []
            break
    assert stopped > calls


def test_a_guard_that_costs_money_is_limited_counted_and_asked_by_batches_at_half_the_price(
    tmp_path: Path,
) -> None:
    bills = []
    with (
        ProviderServer(dearest=True, looks=2) as server,
        patch.dict(os.environ, server.environment()),
    ):
        for name, batch in (("live", False), ("batch", True)):
            workspace = finished(tmp_path / name, "anonymize", [dialogue(1), dialogue(2, *HELLO)])
            prices = tmp_path / name / "prices.toml"
            prices.write_text(price_file())
            before = len(server.charged())

            def run(
                max_cost: float,
                batch: bool = batch,
                place: Workspace = workspace,
                prices: Path = prices,
            ) -> None:
                guard = SafetySettings(
                    guard=USER, guard_scope="all", max_cost=max_cost, batch=batch
                )
                run_one("safety", place, guard, prices=str(prices))

            with hurried():
                with pytest.raises((ConfigError, IncompleteError), match=r"max_cost 0\.0001"):
                    run(0.0001)
                assert len(server.charged()) == before
                for _ in range(2):  # the second asks for nothing
                    run(5.0)
            charges = server.charged()[before:]
            assert len(charges) == 2
            bills.append(sum(charge.dollars for charge in charges))
            assert read_costs(workspace.path)["safety"].paid == 2
            # The double does not know the form: nothing is read, and nobody says so.
            assert all(
                "read" not in record["audit"] for record in safety_records(workspace).values()
            )
    assert bills[0] == 2 * bills[1]


SPEC = """
workspace = "work"
part = 2
[[gather.sources]]
name = "made"
path = "raw.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"
[safety]
guard_scope = "all"
guard = "{guard}"
"""


def add_raw(folder: Path, *texts: tuple[str, ...]) -> None:
    with (folder / "raw.jsonl").open("a", encoding="utf-8") as file:
        for messages in texts:
            turns: list[dict[str, str]] = []
            for at, text in enumerate(messages):
                turns.append({"role": ("user", "assistant")[at % 2], "content": text})
            file.write(json.dumps({"messages": turns}) + "\n")


def stored_ids(workspace: Workspace) -> list[str]:
    """The ids in the safety stage's call store, with a text or without one."""
    path = workspace.stage("safety").path / "calls.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [str(line["id"]).partition("/")[0] for line in lines if "id" in line]


def test_an_erasure_removes_what_a_guard_read_and_an_update_reads_what_is_new(
    tmp_path: Path,
) -> None:
    bodies: list[dict[str, Any]] = []

    def reply(body: dict[str, Any], number: int) -> str | Answer:
        bodies.append(body)
        return answer_question(body, number)

    tale = (
        "I mended the old bicycle with my neighbour all afternoon.",
        "That must feel good, is it fast again?",
    )
    add_raw(
        tmp_path,
        HELLO,
        tale,
        ("I read a novel about lighthouses and storms.", "(harm) Which one was it?"),
    )
    stages = ["gather", "anonymize", "safety"]
    with LoopbackServer(reply=reply) as server:
        spec = tmp_path / "curate.toml"
        spec.write_text(SPEC.format(guard=server.spec))
        workspace = curate(spec, stages)
        assert sorted(set(stored_ids(workspace))) == ["made-000001", "made-000002", "made-000003"]
        finding = safety_records(workspace)["made-000003"]["audit"]["read"]["findings"]
        assert finding[0]["what"] == "keeps her from a doctor"
        erase(workspace, "made-000003")
        assert sorted(safety_records(workspace)) == ["made-000001", "made-000002"]
        assert "made-000003" not in stored_ids(workspace)
        folder = workspace.stage("safety").path
        for path in folder.rglob("*"):
            if path.is_file():
                assert b"keeps her from a doctor" not in path.read_bytes(), path
        asked = len(bodies)
        add_raw(
            tmp_path,
            ("We painted the kitchen in a pale yellow at last.", "Yellow sounds warm and bright."),
        )
        curate(spec, stages, update=True)
        assert len(bodies) == asked + 1
    records = safety_records(workspace)
    assert sorted(records) == ["made-000001", "made-000002", "made-000004"]
    assert all(record["audit"]["read"]["passages"] for record in records.values())
