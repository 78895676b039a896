"""What a run stores: responses, typed failures and token usage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, with_config

from h2htalk.data.files import read_jsonl
from h2htalk.data.records import Id, adapter, read_record
from h2htalk.data.replies.finish_reasons import FILTERED, read_finish_reason
from h2htalk.data.replies.reasoning import strip_reasoning

FILTERED_REPLY = "filtered"  # the reason by which what a provider's own filter declined is counted
JUDGE_FILTERED = (
    "judge_filtered"  # why a judgement is unscored: the filter of the judge's provider declined it
)
FilterRule = Literal[
    "refusal", "unscored"
]  # what a filtered reply counts as: a refusal of the model, or left out
CALLS = "calls.jsonl"  # the call store of a folder (`chat/store/call_store`)
# An item's id and the number of the sample, from 0.
SampleKey = tuple[str, int]
Count = Annotated[int, Field(strict=True, ge=0)]
Moment = Annotated[float, Field(ge=0, lt=1e11)]
_FOREIGN = ConfigDict(extra="ignore")  # a line of a call store, or of another tool, holds more


class _Stored:
    """A record that is written without the fields that are None."""

    __slots__: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        kind: Any = type(self)
        return adapter(kind).dump_python(self, exclude_none=True, warnings=False)  # type: ignore[no-any-return]


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class Usage(_Stored):
    """Tokens of one call, and what its answer says of their price. None means that the engine did not report it:
    unknown, never zero."""

    input_tokens: Count | None = None  # the whole prompt
    output_tokens: Count | None = None  # all that was written
    cache_read_tokens: Count | None = (
        None  # the part of the prompt that a provider read from its cache
    )
    cache_write_tokens: Count | None = None  # the part that it wrote there
    cache_write_1h_tokens: Count | None = None  # of that, for an hour
    reasoning_tokens: Count | None = None  # the part of the output before the reply
    inference_geo: str | None = None  # where it was computed, in the provider's word
    speed: str | None = None  # in the provider's word
    service_tier: str | None = None  # in the provider's word


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class Failure(_Stored):
    """Why a call gave no answer."""

    reason: str  # a short code to count by: `timeout`, `http_500`, `malformed_reply`, ...
    message: str = ""  # for people
    attempts: Count = 1  # 0 where nothing was called


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class Response(_Stored):
    """A model's answer to one sample of one scenario, unchanged; `answer` is what is scored."""

    id: Id
    sample: Count
    text: str  # may still hold a thinking block
    finish_reason: str = "unknown"
    usage: Usage = field(default_factory=Usage)
    thinking: str | None = None  # reasoning that the engine delivered apart from the text
    request_id: str | None = None
    model: str | None = None  # as the server returned it
    system_fingerprint: str | None = None  # as the server returned it
    endpoint: str | None = None  # what was asked
    at: Moment | None = None  # the Unix time when the answer was stored
    seconds: float | None = None  # what a live call took
    filtered_by: str | None = None  # of a filtered reply: the provider and what it said
    served_by: str | None = None  # digests of what gave it (`chat/served_model.py`)

    @property
    def answer(self) -> str:
        """The text without thinking blocks and outer white space."""
        return strip_reasoning(self.text)


def is_filtered(response: Response) -> bool:
    """Whether a provider's filter declined the prompt, or stopped the reply."""
    return read_finish_reason(response.finish_reason) == FILTERED


@with_config(_FOREIGN)
@dataclass(frozen=True, slots=True)
class FailedResponse(_Stored):
    """A call that failed after its retries: the item stays unscored until a restart repairs it."""

    id: Id
    sample: Count
    failure: Failure
    at: Moment | None = None


def read_response(raw: Mapping[str, Any], where: str) -> Response | FailedResponse:
    """Read a response or failure. Null is as good as absent, and no `sample` is 0, in files made elsewhere."""
    fields = {"sample": 0} | {key: value for key, value in raw.items() if value is not None}
    kind: Any = FailedResponse if "failure" in fields else Response
    return read_record(kind, fields, where, coerce=True)  # type: ignore[no-any-return]


def read_outcomes(raw: Mapping[str, Any], where: str) -> Iterator[Response | FailedResponse]:
    """Read the replies, or the final failure, in a line of `calls.jsonl`, as `read_response`; there may be none."""
    if "text" not in raw and not raw.keys().isdisjoint(("reserved", "call", "job", "erased")):
        return
    first = read_response(raw, where)
    if "more" not in raw or isinstance(first, FailedResponse):
        yield first
        return
    shared = {key: value for key, value in raw.items() if key not in ("more", "usage")}
    yield replace(first, usage=Usage())  # one call: the usage is that of all its replies
    for reply in raw["more"]:
        yield read_response({**shared, **reply}, where)


# The final outcome of each sample.
Answers = dict[SampleKey, Response | FailedResponse]


def counted_answers(answers: Answers, rule: FilterRule) -> Answers:
    """Return the answers that count: all, or those that no provider's filter declined."""
    if rule == "refusal":
        return answers
    return {
        key: answer
        for key, answer in answers.items()
        if not (isinstance(answer, Response) and is_filtered(answer))
    }


_MONEY = (b'{"reserved":', b'{"job":')  # lines of a call store without an outcome begin so


def fold_answer(answers: Answers, response: Response | FailedResponse) -> None:
    """Add one response: an answer wins over a failure, a later one over an earlier one."""
    key = (response.id, response.sample)
    if isinstance(response, Response) or not isinstance(answers.get(key), Response):
        answers[key] = response


def read_answers(
    path: Path,
    stage: str | None = None,
    check: Callable[[Response | FailedResponse, str], None] | None = None,
) -> Answers:
    """Read the final outcome of each sample of a call store, if there is one; of one stage, or of all.

    `check` is called with each response and its position. Raises DataError for a damaged line; names file and line.
    """
    answers: Answers = {}
    for where, record in read_jsonl(path, torn_tail=True, skip=_MONEY) if path.exists() else ():
        for response in (
            read_outcomes(record, where) if stage in (None, record.get("stage")) else ()
        ):
            if check is not None:
                check(response, where)
            fold_answer(answers, response)
    return answers
