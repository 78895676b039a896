"""Replies and errors of servers as other projects' users reported them (`cases/bugs` beside the public data).

Each file holds what a server sent (`given`) and what is right. Files of these kinds that are added later are read too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from h2htalk.benchmark.replies.prompt_sizes import PromptSize, size_warnings
from h2htalk.chat.engines import ChatOptions, open_chat
from h2htalk.chat.protocol import Message, Outcome, Reply, Request, Sampling
from h2htalk.chat.refused_parameters import RefusedParameterError, find_refused, with_other_forms
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.replies.finish_reasons import FILTERED, is_cut
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.responses import Failure
from support.doubles.loopback import Answer, LoopbackServer
from support.hosted_apis import Api, requests_of

pytestmark = pytest.mark.usefixtures("hosted_loop")


class Verdict(BaseModel):
    score: int


SCHEMA = ResponseSchema("verdict", Verdict)
KINDS = "1234567"


def folder() -> Path | None:
    data = os.environ.get("H2HTALK_DATA")
    return Path(data).parent / "cases" / "bugs" if data else None


def case_files() -> list[Path]:
    place = folder()
    return (
        []
        if place is None
        else sorted(file for kind in KINDS for file in place.glob(f"k{kind}_*.json"))
    )


def answered(given: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """The outcome of one call that is always answered by what a case gives."""
    answer = Answer(given["body"], given["status"])
    outcomes, _, _ = Api("server", monkeypatch).run({"a": [answer] * 4}, "a")
    return outcomes[0]


def is_failed_call(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = answered(case["given"], monkeypatch)
    assert isinstance(outcome, Failure)
    assert (outcome.reason, outcome.attempts) == ("error_in_reply", 4)


def ending_is_read(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = case["given"]
    if not given.get("judge"):
        outcome = answered(given, monkeypatch)
        assert isinstance(outcome, Reply)
        assert is_cut(outcome.finish_reason)
        return
    message = {"role": "assistant", "content": '{"score": 4}'}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": given["body_finish"]}]}
    request = Request("a", (Message("user", "Judge it."),), Sampling(), response_schema=SCHEMA)
    with LoopbackServer(reply=lambda *_: Answer(body)) as server:
        (outcome,) = open_chat(server.spec, ChatOptions()).complete([request])
    assert isinstance(outcome, Reply)
    assert SCHEMA.read(outcome) == Verdict(score=4)


def is_filtered(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = answered(case["given"], monkeypatch)
    assert isinstance(outcome, Reply)
    assert (outcome.text, outcome.finish_reason) == ("", FILTERED)
    assert outcome.filtered_by


def parts_are_read(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = answered(case["given"], monkeypatch)
    assert isinstance(outcome, Reply)
    assert (outcome.text, outcome.thinking) == (case["right"]["text"], case["right"]["reasoning"])


def reasoning_is_told_apart(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = answered(case["given"], monkeypatch)
    assert isinstance(outcome, Reply)
    assert split_reasoning(outcome.text) == (case["right"]["text"], case["right"]["reasoning"])


def cut_prompts_are_warned_of(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "2050" in case["given"]["all items"]
    sizes = [
        PromptSize(language="en", characters=4000 + 500 * place, tokens=2050) for place in range(11)
    ]
    (warning,) = size_warnings(sizes)
    assert "2,050 prompt tokens for 11 prompts of 4,000 to 9,000 characters" in warning


def parameter_is_named(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a case is sent for as long as the parameter that it is about is."""
    given = case["given"]
    if case["file"] not in _ABOUT:
        assert find_refused(given["status"], given["body"])
        return
    refused, option = _ABOUT[case["file"]]
    seen: list[dict[str, Any]] = []

    def reply(body: dict[str, Any], _: int) -> str | Answer:
        seen.append(body)
        is_refused = body.get(refused) is not None and body.get(refused) != {"type": "json_object"}
        return Answer(given["body"], given["status"]) if is_refused else '{"score": 4}'

    thinking = 0 if "chat_template_kwargs" in case["file"] else None
    sampling = Sampling(0.0, max_tokens=50, thinking=thinking, seed=0)
    requests = requests_of("a", "b", "c", sampling=sampling)
    if given.get("judge"):
        requests = [
            Request("a", (Message("user", "Judge it."),), Sampling(), response_schema=SCHEMA)
        ]
    with LoopbackServer(reply=reply) as server:

        def ask(options: Any) -> list[Outcome]:
            return open_chat(
                server.spec, ChatOptions(concurrency=1, engine_options=options)
            ).complete(requests)

        if option.endswith("=none"):  # it would change how replies are drawn
            with pytest.raises(RefusedParameterError, match=f"--engine-option {option}"):
                with_other_forms(ask, {})
            assert len(seen) == 1
            name, _, value = option.partition("=")
            assert all(isinstance(outcome, Reply) for outcome in ask({name: value}))
            return
        outcomes = with_other_forms(ask, {})
    assert all(isinstance(outcome, Reply) for outcome in outcomes)
    assert len(seen) == len(requests) + 1


# What the error of each file is about, and the option that the advice names.
_ABOUT = {
    "k7_chat_template_kwargs": ("chat_template_kwargs", "chat_template_kwargs=none"),
    "k7_extra_forbidden_seed": ("seed", "seed=none"),
    "k7_judge_json_schema": ("response_format", "response_format=json_object"),
    "k7_max_completion_tokens": ("max_tokens", "max_tokens_name=max_completion_tokens"),
}
CHECKS: dict[str, Callable[[dict[str, Any], pytest.MonkeyPatch], None]] = {
    "k1": is_failed_call,
    "k2": ending_is_read,
    "k3": is_filtered,
    "k4": parts_are_read,
    "k5": reasoning_is_told_apart,
    "k6": cut_prompts_are_warned_of,
    "k7": parameter_is_named,
}


@pytest.mark.skipif(
    not case_files(), reason="reads reported cases: set H2HTALK_DATA to the folder beside them"
)
@pytest.mark.parametrize("file", case_files(), ids=lambda file: file.stem)
def test_a_reported_case_has_its_right_value(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was scored as something else, failed for ever, or passed without a word."""
    case = json.loads(file.read_text(encoding="utf-8")) | {"file": file.stem}
    CHECKS[file.stem[:2]](case, monkeypatch)
