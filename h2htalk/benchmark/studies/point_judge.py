"""A judge answers the points of replies that code cannot, and rates how safe a reply is.

Each statement gets the evidence before a yes or no, on the strict reader of the judge of runs: a reply of another form
leaves its points unscored with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from h2htalk.benchmark.judge.judgements import Judge
from h2htalk.benchmark.studies.conversations import StudyReply
from h2htalk.benchmark.studies.study_prompts import StudyPrompts
from h2htalk.chat.engines import ENGINES, parse_model
from h2htalk.chat.protocol import Message, Reply, Request, Sampling, request_seed
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.case import Case, Point
from h2htalk.data.dialogue import Turn
from h2htalk.data.persona import Persona
from h2htalk.data.responses import Failure, strip_thinking
from h2htalk.text.fences import Fence

PERCEPTION = "perception"
RULE = "points, yes or no"
_EVIDENCE = 1000  # characters
_TOKENS = 200  # of a reply, and so many for each statement
_SCALE = (1, 5)


@dataclass(frozen=True, slots=True)
class OpenReply:
    """A reply with the points that are open, and whether its safety is to be rated."""

    reply: StudyReply
    case: Case
    points: tuple[Point, ...]
    perception: bool

    @property
    def id(self) -> str:
        """`HASH/ARM/PART/CASE/PLACE`: a judgement belongs to one text."""
        return f"{self.reply.text_hash}/{self.reply.key}"


@dataclass(frozen=True, slots=True)
class ReplyJudgement:
    """What a judge says of a reply.

    Attributes:
        points: point -> (whether its statement is true, the evidence).
        perception: 1 to 5 with the evidence; None where it was not asked.
        unscored: why there is nothing else. unread: what is wrong with a reply that could not be read.
    """

    points: Mapping[str, tuple[bool, str]] = field(default_factory=dict)
    perception: tuple[int, str] | None = None
    unscored: str = ""
    unread: str = ""


def judge_of(model: str, prompts: StudyPrompts) -> Judge:
    """Describe the judge, as the file beside its judgements does. Raises ConfigError."""
    temperature = None if ENGINES[parse_model(model)[0].name].sampling == "none" else 0.0
    return replace(Judge.of(model, prompts.judge_texts(), temperature, None, False), rule=RULE)


def judge_requests(
    judge: Judge,
    model: str,
    prompts: StudyPrompts,
    open_replies: Sequence[OpenReply],
    personas: Mapping[str, Persona],
    secret: bytes,
) -> Iterator[Request]:
    """Yield the request for each reply."""
    schemas = parse_model(model)[0].schemas
    for one in open_replies:
        messages = _messages(prompts, one, personas[one.case.persona], Fence.of(secret, one.id, 0))
        sampling = Sampling(
            judge.temperature, max_tokens=_TOKENS * (1 + len(one.points)), seed=request_seed(0, one.id, 0)
        )
        schema = reply_schema(len(one.points), one.perception) if schemas else None
        yield Request(one.id, messages, sampling, response_schema=schema, item=one.case.id)


def _messages(prompts: StudyPrompts, one: OpenReply, persona: Persona, fence: Fence) -> tuple[Message, ...]:
    language, number = one.case.language, len(one.points)
    example: dict[str, Any] = {name: {"evidence": "...", "answer": False} for name in _names(number)}
    if one.perception:
        example[PERCEPTION] = {"evidence": "...", "score": 3}
    rules = prompts.templates.render(
        f"{language}/judge_points.j2", {"perception": one.perception, "example": json.dumps(example)}
    )
    said = conversation_text(one.reply.said)
    statements = "\n".join(f"{name}: {point.text}" for name, point in zip(_names(number), one.points, strict=True))
    values = {
        "persona": fence.around(persona.descriptions[language], "persona"),
        "conversation": fence.around(said, "conversation"),
        "reply": fence.around(one.reply.text or "", "reply"),
        "statements": fence.around(statements, "statements"),
    }
    return Message("system", rules, shared=len(rules)), Message(
        "user", prompts.templates.render(f"{language}/judge_item.j2", values)
    )


def conversation_text(turns: Sequence[Turn]) -> str:
    """Turns as lines; the further lines of a turn are indented, so that no reply can pass for what the user said."""
    return "\n".join(labelled(turn.role, turn.content) for turn in turns)


def labelled(label: str, text: str) -> str:
    """A text after its label; further lines are indented."""
    return "\n    ".join(f"{label}: {text}".splitlines())


def _names(number: int) -> tuple[str, ...]:
    return tuple(f"p{k}" for k in range(1, number + 1))


@cache
def reply_schema(points: int, perception: bool) -> ResponseSchema:
    """The form of a judge's reply: the statements in order, then the rating."""
    from pydantic import BaseModel, Field, create_model

    class PointAnswer(BaseModel):
        evidence: str = Field(min_length=1, max_length=_EVIDENCE)
        answer: bool

    class Rating(BaseModel):
        evidence: str = Field(min_length=1, max_length=_EVIDENCE)
        score: int = Field(ge=_SCALE[0], le=_SCALE[1])

    fields: dict[str, Any] = dict.fromkeys(_names(points), (PointAnswer, ...))
    if perception:
        fields[PERCEPTION] = (Rating, ...)
    return ResponseSchema("points", create_model("Points", **fields))


def read_judgement(outcome: Reply | Failure, one: OpenReply) -> ReplyJudgement:
    """Read a judge's reply, or why it says nothing."""
    if isinstance(outcome, Failure):
        return ReplyJudgement(unscored=outcome.reason)
    read = reply_schema(len(one.points), one.perception).read(replace(outcome, text=strip_thinking(outcome.text)))
    if isinstance(read, Failure):
        unread = "" if read.reason == "refusal" else f"{read.reason}: {read.message}"
        return ReplyJudgement(unscored=read.reason, unread=unread)
    parts: Mapping[str, Any] = dict(read)
    points = {
        point.id: (parts[name].answer, parts[name].evidence)
        for name, point in zip(_names(len(one.points)), one.points, strict=True)
    }
    rating = parts.get(PERCEPTION)
    return ReplyJudgement(points, rating and (rating.score, rating.evidence))
