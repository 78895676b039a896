"""The rubric of a judge: qualities, yes-or-no points, the form of a reply, and the prompt.

Qualities are each 0 to 5 with anchored levels (`prompts/LANGUAGE/judge_rubric.j2`), the evidence before the score. A
reply is read strictly: one that is cut, refused, has another text beside its JSON object, a key too many or a score
out of range is unscored with that reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from h2htalk.chat.protocol import Message, Reply
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.data.languages import Language
from h2htalk.data.replies.finish_reasons import is_known
from h2htalk.data.replies.reasoning import strip_reasoning
from h2htalk.data.responses import FILTERED_REPLY, JUDGE_FILTERED, Failure
from h2htalk.data.scenario import Persona, Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError
from h2htalk.text.fences import Fence
from h2htalk.text.jinja_templates import Templates, read_templates

RULE = "mean of qualities"  # how R is made of a reply's scores
HIGHEST = 5
QUALITIES = (
    "personality_authenticity", "contextual_awareness", "emotional_expressiveness", "immersive_interaction"
)  # fmt: skip
PLAN_QUALITIES = ("plan_feasibility", "history_consistency")
# Failure signatures that a judge answers with yes or no, by dimension.
POINTS = {
    "dialogue": ("memory_collapse", "missed_hint"),
    "itinerary": ("planning_fragmentation",),
    "recollection": (),
}
_EVIDENCE = 1000  # characters


def qualities_of(subtask: str) -> tuple[str, ...]:
    """The qualities that a subtask's answers are judged by, in the rubric's order."""
    return (
        (*QUALITIES, *PLAN_QUALITIES) if SUBTASKS[subtask].dimension == "itinerary" else QUALITIES
    )


def points_of(subtask: str) -> tuple[str, ...]:
    """The yes-or-no points of a subtask."""
    return POINTS[SUBTASKS[subtask].dimension]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One judge's reply to one answer: each quality's score, 0 to 5, each point's answer, and the sentence behind it.

    `unscored`: why there are none (`refusal`, `judge_filtered`, `truncated`, `malformed_output`, `out_of_range`, or
    the reason of a failed call), else None; `message`: what is wrong with a reply that could not be read, with its
    beginning; `failed`: what is wrong with a call that failed; `declined`: what the filter of the judge's provider
    said; `unknown_reason`: why the reply ended, where that is not known here (it was read as it is).
    """

    scores: Mapping[str, int] = field(default_factory=dict)
    points: Mapping[str, bool] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    unscored: str | None = None
    message: str = ""
    failed: str = ""
    declined: str = ""
    unknown_reason: str = ""

    @property
    def rating(self) -> float | None:
        """R of Eq. 3: the plain mean of the qualities, 0 to 5; None where unscored."""
        return fmean(self.scores.values()) if self.scores else None


@dataclass(frozen=True, slots=True)
class Rubric:
    """What a judge says of one answer.

    Attributes:
        parts: names in the order of the reply, each after its evidence.
        points: the parts that are answered with yes or no; the others are scores from `least` to 5.
        point_ids: the ids under which a `Judgement` holds the answers to the points; empty where these are the names.
    """

    parts: tuple[str, ...]
    points: tuple[str, ...]
    least: int = 0
    # Not compared: rubrics with the same parts share one schema.
    point_ids: tuple[str, ...] = field(default=(), compare=False)

    def example(self) -> str:
        """The example in the prompt, which itself can be read."""
        kinds = {
            name: {"answer": False} if name in self.points else {"score": 3} for name in self.parts
        }
        return json.dumps({name: {"evidence": "...", **value} for name, value in kinds.items()})

    def read(self, reply: Reply | Failure) -> Judgement:
        """Read a judge's reply, or why it says nothing."""
        if isinstance(reply, Failure):
            return Judgement(unscored=reply.reason, failed=reply.message or reply.reason)
        unknown = "" if is_known(reply.finish_reason) else reply.finish_reason
        read = schema_of(self).read(replace(reply, text=strip_reasoning(reply.text)))
        if isinstance(read, Failure):
            if read.reason == FILTERED_REPLY:
                return Judgement(
                    unscored=JUDGE_FILTERED, declined=reply.filtered_by or read.message
                )
            message = "" if read.reason == "refusal" else read.message
            return Judgement(unscored=read.reason, message=message, unknown_reason=unknown)
        answers = cast(Mapping[str, Any], dict(read))
        ids = dict(zip(self.points, self.point_ids or self.points, strict=True))
        return Judgement(
            scores={name: part.score for name, part in answers.items() if name not in ids},
            points={point_id: answers[name].answer for name, point_id in ids.items()},
            evidence={ids.get(name, name): part.evidence for name, part in answers.items()},
            unknown_reason=unknown,
        )


@cache
def schema_of(rubric: Rubric) -> ResponseSchema:
    """The form of a reply: every part with its evidence, then its score or answer."""
    from pydantic import BaseModel, Field, create_model

    class Score(BaseModel):
        evidence: str = Field(min_length=1, max_length=_EVIDENCE)
        score: int = Field(ge=rubric.least, le=HIGHEST)

    class PointAnswer(BaseModel):
        evidence: str = Field(min_length=1, max_length=_EVIDENCE)
        answer: bool

    parts: dict[str, Any] = {
        name: (PointAnswer if name in rubric.points else Score, ...) for name in rubric.parts
    }
    return ResponseSchema("judgement", create_model("Judgement", **parts))


def rubric_of(subtask: str, reverse: bool = False) -> Rubric:
    """The rubric of a subtask's answers: qualities (`reverse`: in the reverse order), then points."""
    qualities = qualities_of(subtask)[::-1] if reverse else qualities_of(subtask)
    return Rubric((*qualities, *points_of(subtask)), points_of(subtask))


def load_prompts(folder: Path | str | None = None) -> Templates:
    """Load the templates of a judge; those of `folder` replace bundled ones by name (`en/judge_rubric.j2`)."""
    bundled = read_templates(Path(str(files("h2htalk.benchmark.judge") / "prompts")))
    replacing = read_templates(Path(folder)) if folder else {}
    for name, (path, _) in replacing.items():
        if name not in bundled:
            raise ConfigError(
                f"{path}: no judge prompt has this name; choose from {', '.join(bundled)}"
            )
    prompts = Templates.of(bundled, replacing)
    for name in prompts.sources:
        prompts.parse(name)
    return prompts


def judge_messages(
    templates: Templates, language: Language, rules: str, parts: Mapping[str, str], fence: Fence
) -> tuple[Message, ...]:
    """The prompt of a judge: the rules, then what others wrote, in fences (`LANGUAGE/judge_item.j2`)."""
    text = templates.render(
        f"{language}/judge_item.j2",
        {name: fence.around(text, name) for name, text in parts.items()},
    )
    # Engines that cache prefixes read the rules once.
    return Message("system", rules, shared=len(rules)), Message("user", text)


def prompt_writer(
    prompts: Templates, reverse: bool = False
) -> Callable[[Scenario, Persona, str, Fence], tuple[Message, ...]]:
    """Return what writes the prompts of one judge: what is the same for all answers to a subtask is rendered once."""

    @cache
    def rules(subtask: str, language: Language) -> str:
        rubric = rubric_of(subtask, reverse)
        values = {
            "subtask": subtask,
            "dimension": SUBTASKS[subtask].dimension,
            "qualities": [name for name in rubric.parts if name not in rubric.points],
            "points": list(rubric.points),
            "example": rubric.example(),
        }
        return prompts.render(f"{language}/judge_rubric.j2", values)

    def messages(
        scenario: Scenario, persona: Persona, answer: str, fence: Fence
    ) -> tuple[Message, ...]:
        from h2htalk.rounds.item_sources import input_text  # what compares runs needs no rounds

        material = "\n\n".join(
            f"{name}:\n{input_text(value)}" for name, value in scenario.inputs.items()
        )
        language = scenario.language
        parts = {"persona": persona.descriptions[language], "material": material, "answer": answer}
        return judge_messages(prompts, language, rules(scenario.subtask, language), parts, fence)

    return messages
