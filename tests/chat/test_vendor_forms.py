"""Replies and errors in the forms of further vendors: `vendor_forms.json` holds what they send."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.protocol import Outcome, Reply
from h2htalk.chat.refused_parameters import find_refused
from h2htalk.data.replies.reasoning import split_reasoning
from h2htalk.data.replies.reasoning_marks import opening_mark
from h2htalk.data.responses import Failure
from support.doubles.loopback import Answer, completion
from support.hosted_apis import Api

pytestmark = pytest.mark.usefixtures("hosted_loop")
FORMS = json.loads(Path(__file__).with_name("vendor_forms.json").read_text(encoding="utf-8"))
ANSWER = "I hear you, and I am glad you told me. What would help most tonight?"
REASONING = "The user is sad. I should be warm and short and ask a question."
HOSTILE = (
    "*Thinking...*\n>" + "\n" * 10**6,
    "*Thinking...*\n>" + "\n " * 10**5,
    "## Thinking\n" + "\n#" * 10**5,
    "/think\n" + "<|im_end|>" * 10**5,
)


def outcome_of(body: Any, status: int, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """The outcome of one call that is always answered so."""
    answers = [Answer(body, status)] * 4
    outcomes, _, _ = Api("server", monkeypatch).run({"a": answers}, "a")
    return outcomes[0]


@pytest.mark.parametrize("fields", FORMS["broken"])
def test_an_error_beside_an_empty_reply_is_a_failed_call(
    fields: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an empty reply of score 0."""
    outcome = outcome_of(completion("") | fields, 200, monkeypatch)
    assert isinstance(outcome, Failure)
    assert outcome.reason == "error_in_reply"


@pytest.mark.parametrize("fields", FORMS["ordinary"])
def test_a_reply_stays_one_whatever_stands_beside_it(
    fields: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = outcome_of(completion(ANSWER) | fields, 200, monkeypatch)
    assert isinstance(outcome, Reply)
    assert outcome.text == ANSWER


@pytest.mark.parametrize(("status", "body"), FORMS["filtered"])
def test_a_filter_is_told_in_the_words_of_further_vendors(
    status: int, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were failed calls, which every restart sent again."""
    outcome = outcome_of(body, status, monkeypatch)
    assert isinstance(outcome, Reply)
    assert outcome.finish_reason == "content_filter"


@pytest.mark.parametrize(("status", "body"), FORMS["not_filtered"])
def test_an_error_about_the_form_of_a_request_is_no_filter(
    status: int, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(outcome_of(body, status, monkeypatch), Failure)


@pytest.mark.parametrize(("content", "thinking"), FORMS["parts"])
def test_parts_of_further_vendors_are_read(
    content: Any, thinking: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One part without a text lost the whole reply, and Google's thoughts were scored."""
    body = completion(ANSWER)
    body["choices"][0]["message"]["content"] = content
    outcome = outcome_of(body, 200, monkeypatch)
    assert isinstance(outcome, Reply)
    assert outcome.text == ANSWER
    assert outcome.thinking == thinking


@pytest.mark.parametrize(("name", "status", "body"), FORMS["refused"])
def test_a_refused_parameter_is_named_in_further_forms(name: str, status: int, body: Any) -> None:
    """Every item was asked, and all failed without advice."""
    assert find_refused(status, body) == name


@pytest.mark.parametrize("text", FORMS["marked"])
def test_reasoning_between_further_marks_is_no_part_of_the_answer(text: str) -> None:
    assert split_reasoning(text) == (ANSWER, REASONING)


@pytest.mark.parametrize("text", FORMS["spoken_of"])
def test_a_reply_that_only_looks_like_a_mark_stays_whole(text: str) -> None:
    assert split_reasoning(text) == (text, None)


@pytest.mark.parametrize(("answer", "mark"), FORMS["openings"])
def test_an_opening_that_may_be_reasoning_is_named(answer: str, mark: str) -> None:
    assert opening_mark(answer) == mark


@pytest.mark.parametrize("text", HOSTILE)
def test_a_long_reply_of_such_marks_is_read_at_once(text: str) -> None:
    started = time.process_time()
    split_reasoning(text)
    assert time.process_time() - started < 8
