"""Evaluations: their settings, what a run says of its answering, and that a run survives what breaks."""

from __future__ import annotations

import io
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from h2htalk.benchmark.evaluate import STARVED_REPLIES, evaluate, make_plan, missing_requests
from h2htalk.benchmark.report.leaderboard import leaderboard
from h2htalk.benchmark.report.terminal import print_summary
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.run_facts import Session, collect_facts
from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, H2HTalkError
from support.command_line import scripted
from support.doubles.loopback import Answer, LoopbackServer, completion
from support.kills import communicate, stored_replies, wait_for
from support.splits import write_split
from support.tables import table

WORK: dict[str, Any] = {"model": "embedded", "split": "mini@1", "out": "runs/a"}
NUMBERS = ("timeout", "deadline", "temperature", "top_p", "max_cost")
OPTIONS = {"model": "MODEL", "split": "--split", "out": "--out", "prompts": "--prompts"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"modle": "x"}, "unknown key modle; did you mean 'model'? choose from model, split"),
        ({"max_tokens": 10**30}, "--max-tokens: must be 1,000,000 or less, not 1000"),
        *(
            ({key: float("nan")}, f"--{key.replace('_', '-')}: must be a finite number")
            for key in NUMBERS
        ),
        *(
            ({key: float("inf")}, f"--{key.replace('_', '-')}: must be a finite number")
            for key in NUMBERS
        ),
        ({"subtasks": ["dialog"]}, "--subtask.1: unknown subtask 'dialog'"),
        # These were taken for 1, for False and for 5.
        ({"limit": True}, "--limit: must be a whole number, not True"),
        ({"temperature": True}, "--temperature: must be a number, not True"),
        *(
            ({key: " "}, f"{OPTIONS[key]}: must be text that is not empty")
            for key in ("model", "split", "out")
        ),
        *(
            ({key: "x\0y"}, f"{OPTIONS[key]} holds the character NUL")
            for key in ("model", "split", "out", "prompts")
        ),
    ],
)
def test_a_wrong_value_names_its_option(change: dict[str, Any], message: str) -> None:
    with pytest.raises(H2HTalkError) as raised:
        EvaluateSpec.from_dict({**WORK, **change}, "eval.toml")
    assert str(raised.value).startswith(f"eval.toml: {message}")
    assert "\n" not in str(raised.value)
    assert raised.value.exit_code == 2


def test_options_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "eval.toml"
    path.write_text(
        'model = "embedded"\nsplit = "mini@1"\nlimit = 5\nsubtasks = ["dialogue_base"]\nsamples = 2\n'
    )
    spec = read_spec(path, {"out": "runs/b", "limit": 7, "temperature": 0.7})
    assert (spec.model, spec.out, spec.limit, spec.samples) == ("embedded", "runs/b", 7, 2)
    assert spec.subtasks == ("dialogue_base",)
    # Minus zero signed as `-0`, and was another run than temperature 0.
    assert (
        str(read_spec(path, {"out": "runs/b", "samples": 1, "temperature": -0.0}).temperature)
        == "0.0"
    )


def test_the_spec_of_a_run_goes_on_in_the_folder_that_holds_it(tmp_path: Path) -> None:
    """A run that was moved was begun anew where it had been."""
    (tmp_path / "moved").mkdir()
    path = tmp_path / "moved" / "run.json"
    path.write_text(json.dumps({"spec": EvaluateSpec(**WORK).to_dict()}))
    assert read_spec(path).out_path == tmp_path / "moved"


def test_imported_answers_cannot_be_asked_for_but_by_a_model_that_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"spec": {**WORK, "model": "imported:mine"}}))
    with pytest.raises(
        ConfigError, match="json: imported answers cannot be asked for; use `h2htalk score`"
    ):
        read_spec(path)
    assert read_spec(path, {"model": "embedded", "out": "runs/b"}).model == "embedded"


def test_a_file_that_is_no_specification_is_named(tmp_path: Path) -> None:
    deep = b"[" * 100_000
    files = {
        "missing.toml": None,
        "deep.toml": b"limit = " + deep,
        "deep.json": deep,
        "null.json": b'{"spec": null}',
    }
    for name, content in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(ConfigError, match=f"{name}: not a readable specification"):
            read_spec(tmp_path / name)


def test_an_engines_options_are_texts_whether_they_come_as_toml_or_json(tmp_path: Path) -> None:
    options = {
        "tensor_parallel_size": "8",
        "enforce_eager": "true",
        "gpu_memory_utilization": "0.85",
    }
    lines = ['model = "vllm:m"', 'split = "mini@1"', 'out = "r"', "[engine_options]"]
    (tmp_path / "spec.toml").write_text(
        "\n".join([*lines, *(f"{key} = {value}" for key, value in options.items())])
    )
    spec = read_spec(tmp_path / "spec.toml")
    assert spec.engine_options == options
    assert EvaluateSpec.from_dict(json.loads(json.dumps(spec.to_dict())), "run.json") == spec


def test_sampling_is_the_models_own_where_its_api_takes_none_or_it_is_left_to_it() -> None:
    for model, given, temperature in (
        ("anthropic:claude-sonnet-5-5", {"samples": 3}, None),
        ("openai:gpt-4o", {}, 0.0),
        ("openai:gpt-4o", {"samples": 3, "model_sampling": True}, None),
    ):
        assert EvaluateSpec(**WORK | {"model": model} | given).sampling_temperature == temperature


@pytest.mark.parametrize(("model", "given", "message"), table("benchmark", "engines"))
def test_what_an_engine_cannot_do_is_refused_beforehand(
    model: str, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        EvaluateSpec(**WORK | {"model": model} | given)


ITEMS = 24


def named(payload: dict[str, Any], count: int) -> Answer:
    fingerprint = "fp_new" if "item7" in payload["messages"][-1]["content"] else "fp_old"
    return Answer(completion() | {"model": "loopback-2026", "system_fingerprint": fingerprint})


def spec_of(server: LoopbackServer, folder: Path, **settings: Any) -> EvaluateSpec:
    where = {"split": str(write_split(folder / "split", ITEMS)), "out": str(folder / "run")}
    return EvaluateSpec(model=server.spec, embedder="none", baselines=False, **where, **settings)


def test_what_a_run_says_of_itself(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    with LoopbackServer(reply=named) as server:
        summary = evaluate(spec_of(server, tmp_path))
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    stored = json.loads((tmp_path / "run" / "summary.json").read_text())
    told = summary.run_facts
    assert ("answering" in run, "answering" in stored) == (
        True,
        False,
    )  # of times a summary knows nothing
    assert (
        before - timedelta(seconds=1) <= datetime.fromisoformat(told.started) <= datetime.now(UTC)
    )
    assert (told.sessions, told.input_tokens, told.output_tokens) == (1, 120 * ITEMS, 24 * ITEMS)
    assert 0 < told.seconds < 60
    assert (told.endpoints, told.models) == ({server.url: ITEMS}, {"loopback-2026": ITEMS})
    assert told.fingerprints == {"fp_old": ITEMS - 1, "fp_new": 1}
    assert {one.partition(" ")[0] for one in told.versions} == {"h2htalk", "Python", "aiohttp"}
    assert {"numpy", "jieba", "sacrebleu"} < {
        one.partition(" ")[0] for one in told.scoring_versions
    }
    assert load_run(tmp_path / "run").summary == summary
    print_summary(summary, Console(file=(text := io.StringIO()), width=200))
    written = [(tmp_path / "run" / name).read_text() for name in ("tables/run.csv", "report.html")]
    for content in (text.getvalue(), *written):
        for fact in (
            told.started,
            "2,880 in, 576 out",
            "loopback-2026",
            "fp_new (1 answer)",
            "Python 3.",
            "aiohttp",
        ):
            assert fact in content, fact
    assert "the server's system_fingerprint changed during the run" in text.getvalue()


def test_another_endpoint_is_refused_unless_accepted_and_then_in_every_table(
    tmp_path: Path,
) -> None:
    with LoopbackServer(faults={"context_length": 0.5}) as first:
        assert evaluate(spec_of(first, tmp_path)).incomplete
    with LoopbackServer() as second:
        with pytest.raises(
            ConfigError, match=rf"{first.url}, and {second.url} is to be asked.*--accept-endpoint"
        ):
            evaluate(spec_of(second, tmp_path))
        assert second.requests == 0
        summary = evaluate(spec_of(second, tmp_path, accept_endpoint=True))
        assert summary == evaluate(spec_of(second, tmp_path))  # complete: nothing is asked
    assert (summary.incomplete, summary.run_facts.sessions) == (False, 2)
    assert set(summary.run_facts.endpoints) == {first.url, second.url}
    assert sum(summary.run_facts.endpoints.values()) == ITEMS
    print_summary(summary, Console(file=(text := io.StringIO()), width=80))
    written = [tmp_path / "run" / "report.html", *(tmp_path / "run" / "tables").glob("*2.*")]
    for shown in (
        text.getvalue(),
        leaderboard([tmp_path / "run"]).rows[0].name,
        *map(Path.read_text, written),
    ):
        assert "2 endpoints" in shown
    assert f"{second.url} (" in text.getvalue().replace("\n", "")


def test_a_session_that_was_killed_ended_with_its_last_answer() -> None:
    start = datetime(2026, 11, 1, 12, tzinfo=UTC)
    sessions = [
        Session(start, "http://a"),
        Session(
            start + timedelta(hours=1), "http://a", ended=start + timedelta(hours=1, minutes=5)
        ),
        Session(start + timedelta(hours=3), "http://a"),  # killed before its first answer
    ]
    answers = {
        (name, 0): replace(
            Response(name, 0, "hi"), at=(start + timedelta(minutes=minutes)).timestamp()
        )
        for name, minutes in (("a", 2), ("b", 10), ("c", 61))
    }
    told = collect_facts(sessions, answers, {}, {})
    assert (told.seconds, told.sessions, told.ended) == (15 * 60, 2, "2026-11-01T13:05:00+00:00")
    assert told.input_tokens is None


CUT = {"text": "", "finish_reason": "length"}
CUT_IN_THOUGHT = CUT | {"text": "<think>The user seems"}
REPLY = {"text": "Tell me more.", "finish_reason": "stop"}
IDS = [s.id for s in load_split("mini@1").select("en", (), 20).scenarios]


def spec_of_lines(tmp_path: Path, lines: list[Mapping[str, str]], **more: float) -> EvaluateSpec:
    """A run of 20 items; `lines` answer the first ones, the last line all others."""
    ids = [*IDS[: len(lines) - 1], "*"]
    model = scripted(
        tmp_path, *({"id": item, **line} for item, line in zip(ids, lines, strict=True))
    )
    scoring = {"embedder": "none", "baselines": False, "limit": 20, "language": "en"}
    return EvaluateSpec(model=model, split="mini@1", out=str(tmp_path / "run"), **scoring, **more)


@pytest.mark.parametrize("cut", [CUT, CUT_IN_THOUGHT], ids=["empty", "in thought"])
def test_a_model_that_only_reasons_is_stopped_and_its_replies_are_kept(
    tmp_path: Path, cut: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="--thinking 2048"):
        evaluate(spec_of_lines(tmp_path, [cut]))
    assert len(RunFolder(tmp_path / "run").answers()) == STARVED_REPLIES


def test_one_reply_with_a_word_in_it_lets_the_run_go_on(tmp_path: Path) -> None:
    summary = evaluate(spec_of_lines(tmp_path, [CUT] * (STARVED_REPLIES - 1) + [REPLY] + [CUT]))
    assert summary.counts.scored == 20


def test_what_was_never_asked_comes_before_what_failed(tmp_path: Path) -> None:
    """A few items that always fail would pause each restart before the others are asked."""
    plan = make_plan(spec_of_lines(tmp_path, [REPLY], samples=2, temperature=0.7))
    first, *others = [scenario.id for scenario in plan.split.scenarios]
    answers: Answers = {
        (first, 0): FailedResponse(first, 0, Failure("timeout")),
        (first, 1): Response(first, 1, "a"),
    }
    keys = [(request.id, request.sample) for request in missing_requests(plan, answers)]
    assert keys == [*((name, sample) for name in others for sample in range(2)), (first, 0)]


ITEM = re.compile(r"item(\d+)")


def start_run(*words: object, **options: object) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        "-m",
        "h2htalk",
        "evaluate",
        *map(str, words),
        "--embedder",
        "none",
        "--no-baselines",
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def finish(run: subprocess.Popen[str], code: int = 0) -> tuple[str, str]:
    shown = communicate(run)
    assert run.returncode == code, shown
    return shown


def stored_ids(out: Path) -> Counter[str]:
    return Counter(stored_replies(out / "calls.jsonl"))


def asked(server: LoopbackServer) -> Counter[str]:
    """How often each item of the split was asked, by scenario id."""
    counts = server.counts_by_message().items()
    return Counter(
        {f"made-{int(ITEM.findall(message)[-1]):05}": count for message, count in counts}
    )


def test_a_server_that_stops_answering_pauses_the_run_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    split, out = write_split(tmp_path / "split", 60), tmp_path / "run"
    command = ("--split", split, "--out", out, "--concurrency", 4, "--timeout", 0.5)

    def answers_ten(payload: object, count: int) -> str:
        return "I am here." if not hanging or server.requests <= 10 else "hang"

    with LoopbackServer(reply=answers_ten) as server:
        for hanging in (True, True, False):
            stdout, _ = finish(start_run(server.spec, *command), 3 if hanging else 0)
            assert ("warning: paused: http://127.0.0.1" in stdout, "INCOMPLETE" in stdout) == (
                hanging,
                hanging,
            )
    assert stored_ids(out) == Counter({f"made-{i:05}": 1 for i in range(60)})


@pytest.mark.slow
def test_kill_9_at_20_random_moments_loses_nothing_and_repeats_only_what_was_in_flight(
    tmp_path: Path,
) -> None:
    concurrency, kills = 8, 20
    split, out = write_split(tmp_path / "split", 600), tmp_path / "run"
    draw = random.Random(20)
    command = ("--split", split, "--out", out, "--concurrency", concurrency)
    with LoopbackServer(latency=0.02) as server:
        done = 0
        while done < kills:
            finished, counts = stored_ids(out), asked(server)
            run = start_run(server.spec, *command)
            # A moment after the first answer of this start, or anywhere in it.
            wait_for(run, lambda: asked(server).total(), counts.total() + 1)
            time.sleep(draw.uniform(0, 0.08))
            run.kill()
            run.communicate()
            done += 1
            now = stored_ids(out)
            assert finished - now == Counter(), "an answer that was stored is gone"
            assert max(now.values(), default=0) <= 1
            repeated = sum((asked(server) - Counter(dict.fromkeys(asked(server), 1))).values())
            assert repeated <= done * concurrency
            for item in finished:
                assert asked(server)[item] == counts[item], "a stored item was asked again"
        finish(start_run(server.spec, *command))
    assert stored_ids(out) == Counter({f"made-{i:05}": 1 for i in range(600)})
    assert len(RunFolder(out).answers()) == 600


def test_ctrl_c_leaves_a_folder_that_goes_on(tmp_path: Path) -> None:
    split, out = write_split(tmp_path / "split", 40), tmp_path / "run"
    with LoopbackServer(latency=0.1) as server:
        run = start_run(server.spec, "--split", split, "--out", out, "--concurrency", 4)
        wait_for(run, lambda: len(stored_ids(out)))
        run.send_signal(signal.SIGINT)
        _, stderr = finish(run, 130)
        assert ("the same command continues" in stderr, "Traceback" in stderr) == (True, False)
        server.latency = 0
        finish(start_run(server.spec, "--split", split, "--out", out))
