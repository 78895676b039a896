"""A function of the user's own Python as a model."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import h2htalk
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.score_run import report, score
from h2htalk.benchmark.settings import read_spec
from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.protocol import Message, Outcome, Reply, Request, Sampling
from h2htalk.data.responses import Failure
from h2htalk.errors import ConfigError

Function = Callable[[list[dict[str, str]]], Any]


def reply(messages: list[dict[str, str]]) -> str:
    return f"You said: {messages[-1]['content'][:20]}"


async def reply_later(messages: list[dict[str, str]]) -> str:
    await asyncio.sleep(0)
    return reply(messages)


class Companion:
    def __call__(self, messages: list[dict[str, str]]) -> str:
        return reply(messages)

    def answer(self, messages: list[dict[str, str]]) -> str:
        return reply(messages)


def ask(function: Function, *contents: str, **options: Any) -> list[Outcome]:
    requests = [
        Request(one, (Message("system", "Be kind."), Message("user", one)), Sampling())
        for one in contents
    ]
    return open_chat("python:mine", ChatOptions(function=function, **options)).complete(requests)


def without_times(outcomes: list[Outcome]) -> list[Outcome]:
    return [
        Reply(one.text, one.finish_reason) if isinstance(one, Reply) else one for one in outcomes
    ]


def spec_of(function: Any, out: Path, **change: Any) -> h2htalk.EvaluateSpec:
    few = {"subtasks": ["dialogue_base"], "limit": 6, "embedder": "none", "baselines": False}
    return h2htalk.EvaluateSpec(**{"model": function, "split": "mini", "out": out, **few, **change})


@pytest.mark.parametrize(
    "function", [reply, reply_later, Companion(), Companion().answer, functools.partial(reply)]
)
def test_functions_coroutine_functions_methods_and_objects_answer_in_order(
    function: Function,
) -> None:
    contents = [f"message {n}" for n in range(20)]
    found = ask(function, *contents, concurrency=3)
    assert without_times(found) == [Reply(f"You said: {one}") for one in contents]
    assert all(isinstance(one, Reply) and one.seconds is not None for one in found)


def test_a_function_gets_messages_as_chat_apis_take_them_and_may_change_them() -> None:
    seen: list[Any] = []

    def keep(messages: list[dict[str, str]]) -> str:
        seen.append([dict(one) for one in messages])
        messages.clear()
        return ""

    assert without_times(ask(keep, "a", "b", concurrency=1)) == [Reply(""), Reply("")]
    assert seen[0] == [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "a"}]
    assert [one[1]["content"] for one in seen] == ["a", "b"]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(
    ("given", "failure"),
    [
        (ValueError("no key\nsk-1"), Failure("exception", "ValueError: no key\nsk-1")),
        (KeyError(), Failure("exception", "KeyError")),
        (TimeoutError("slow"), Failure("timeout", "TimeoutError: slow")),
        # A future that raises it never ended.
        (StopIteration("end"), Failure("exception", "StopIteration: end")),
        # It ended the worker, and the items that it had not asked yet were a KeyError.
        (asyncio.CancelledError("gone"), Failure("exception", "CancelledError: gone")),
        (None, Failure("not_text", "the function returned NoneType, not text")),
        (b"bytes", Failure("not_text", "the function returned bytes, not text")),
        ({"content": "secret"}, Failure("not_text", "the function returned dict, not text")),
    ],
)
def test_an_exception_or_what_is_not_text_is_the_failure_of_one_item(
    given: Any, failure: Failure, wrap: bool
) -> None:
    def function(messages: list[dict[str, str]]) -> Any:
        if messages[-1]["content"] != "bad":
            return "fine"
        if isinstance(given, BaseException):
            raise given
        return given

    async def later(messages: list[dict[str, str]]) -> Any:
        return function(messages)

    if wrap and isinstance(given, StopIteration):
        failure = Failure("exception", "RuntimeError: coroutine raised StopIteration")
    found = ask(later if wrap else function, "good", "bad", "good too")
    assert without_times(found) == [Reply("fine"), failure, Reply("fine")]


def test_a_long_message_is_shortened_and_a_coroutine_that_hangs_times_out() -> None:
    def fail(messages: list[dict[str, str]]) -> str:
        raise ValueError("x" * 10_000)

    (found,) = ask(fail, "a")
    assert isinstance(found, Failure)
    assert len(found.message) == 300

    async def hang(messages: list[dict[str, str]]) -> str:
        await asyncio.sleep(60)
        return ""

    assert ask(hang, "a", "b", timeout=0.05) == [Failure("timeout", "TimeoutError")] * 2


@pytest.mark.parametrize("later", [False, True])
def test_no_more_calls_run_at_once_than_asked_for(later: bool) -> None:
    running = list[int]()
    most = list[int]()

    def begin() -> None:
        running.append(1)
        most.append(len(running))

    def function(messages: list[dict[str, str]]) -> str:
        begin()
        time.sleep(0.02)
        return str(running.pop())

    async def coroutine(messages: list[dict[str, str]]) -> str:
        begin()
        await asyncio.sleep(0.02)
        return str(running.pop())

    ask(coroutine if later else function, *map(str, range(12)), concurrency=4)
    assert max(most) == 4


def test_the_signature_has_the_name_and_the_function_and_the_model_decides_how_it_samples(
    tmp_path: Path,
) -> None:
    summary = h2htalk.evaluate(spec_of(reply_later, tmp_path / "run", name="my companion"))
    assert summary.model == "python:my companion"
    subject = summary.signature.subject
    assert subject["function"] == f"{__name__}.reply_later"
    assert {subject[key] for key in ("temperature", "top_p", "seed", "max_tokens")} == {
        "model's own"
    }
    own = h2htalk.evaluate(spec_of(Companion().answer, tmp_path / "own"))
    name = "Companion.answer"
    assert (own.model, own.signature.subject["function"]) == (
        f"python:{name}",
        f"{__name__}.{name}",
    )


def test_it_works_where_an_event_loop_runs_as_in_a_notebook(tmp_path: Path) -> None:
    async def cell() -> list[int]:
        summaries = [
            h2htalk.evaluate(spec_of(one, tmp_path / one.__name__)) for one in (reply, reply_later)
        ]
        return [summary.counts.scored for summary in summaries]

    assert asyncio.run(cell()) == [6, 6]


def test_a_run_is_loaded_scored_and_reported_without_the_function_which_cannot_be_asked(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    h2htalk.evaluate(spec_of(reply, folder, name="mine"))
    assert json.loads((folder / "run.json").read_text())["spec"]["model"] == "python:mine"
    assert (
        score(folder).counts.scored
        == report(folder).counts.scored
        == load_run(folder).summary.counts.scored
        == 6
    )
    with pytest.raises(ConfigError, match="python:mine is a function, which no file holds"):
        read_spec(folder / "run.json")
    with pytest.raises(ConfigError, match="python:mine is a function of somebody's Python code"):
        h2htalk.evaluate(spec_of("python:mine", tmp_path / "other"))


def test_items_that_failed_are_asked_again_and_no_others(tmp_path: Path) -> None:
    asked: list[str] = []

    def flaky(messages: list[dict[str, str]]) -> Any:
        asked.append(messages[-1]["content"])
        return None if len(asked) <= 2 else ""

    spec = spec_of(flaky, tmp_path / "run", concurrency=1)
    first = h2htalk.evaluate(spec)
    assert (first.counts.failures, first.incomplete) == ({"not_text": 2}, True)
    assert first.counts.failure_messages == {"not_text": "the function returned NoneType, not text"}
    table = load_run(tmp_path / "run").responses()
    assert table.column("failure").to_pylist().count("not_text") == 2
    second = h2htalk.evaluate(spec)
    assert (second.counts.scored, second.counts.empty, len(asked)) == (6, 6, 8)
    assert asked[6:] == asked[:2]


@pytest.mark.parametrize("later", [False, True])
def test_a_run_that_ctrl_c_ended_goes_on_with_what_it_lacks(tmp_path: Path, later: bool) -> None:
    asked: list[str] = []

    def interrupted(messages: list[dict[str, str]]) -> str:
        asked.append(messages[-1]["content"])
        if len(asked) == 4:
            raise KeyboardInterrupt
        return "I am here."

    async def interrupted_later(messages: list[dict[str, str]]) -> str:
        return interrupted(messages)

    spec = spec_of(
        interrupted_later if later else interrupted, tmp_path / "run", name="mine", concurrency=1
    )
    with pytest.raises(KeyboardInterrupt):
        h2htalk.evaluate(spec)
    assert h2htalk.evaluate(spec).counts.scored == 6
    assert (len(asked), len(set(asked))) == (7, 6)
    with pytest.raises(ConfigError, match=r"differs in model \(mine, other\)"):
        h2htalk.evaluate(spec_of(spec.function, tmp_path / "run", name="other"))
    with pytest.raises(ConfigError, match="differs in function"):
        h2htalk.evaluate(spec_of(reply, tmp_path / "run", name="mine"))


@pytest.mark.parametrize(
    ("model", "change", "message"),
    [
        (lambda messages: "", {}, "name is missing: say what tables call this function"),
        (functools.partial(reply), {}, "name is missing"),
        (Companion(), {}, "name is missing"),
        ("embedded", {"name": "mine"}, "name is for a function alone, not for embedded"),
        (reply, {"max_tokens": 5}, "--max-tokens: a function decides itself"),
        (reply, {"temperature": 0.5}, "python: takes neither temperature nor top-p nor seed"),
        (reply, {"thinking": 5}, "--thinking is for .*, not for python"),
        (reply, {"batch": True}, "--batch is for openai and anthropic only, not for python"),
        (5, {}, "MODEL: must be text, not 5"),
    ],
)
def test_what_a_function_cannot_take_is_refused(
    tmp_path: Path, model: Any, change: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        spec_of(model, tmp_path / "run", **change)


def test_a_study_asks_a_function_and_its_folder_does_not_need_it(tmp_path: Path) -> None:
    lock = threading.Lock()  # what no copy can be made of

    class Locked:
        def __init__(self) -> None:
            self.lock = lock

        def __call__(self, messages: list[dict[str, str]]) -> str:
            return "I hear you."

    ask = h2htalk.EvaluateSpec(
        model=Locked(),
        name="locked",
        split="instructions",
        out=tmp_path / "study",
        limit=2,
        embedder="none",
    )
    result = h2htalk.run_study(h2htalk.StudySpec(study="instructions", ask=ask))
    assert not result.failed
    assert result.study.signature.subject["function"].endswith("Locked")
    loaded = h2htalk.load_study(tmp_path / "study")
    assert loaded.table().num_rows == len(loaded.observations) == len(result.observations)
