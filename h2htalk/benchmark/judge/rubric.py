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

# How R is made of a reply's scores; the fingerprint of a judge holds it.
RATING_RULE = "mean of qualities"
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
_MAX_EVIDENCE = 1000  # characters of the sentence behind a score


def qualities_of(subtask: str) -> tuple[str, ...]:
    """The qualities that a subtask's answers are judged by, in the rubric's order."""
    if SUBTASKS[subtask].dimension == "itinerary":
        return (*QUALITIES, *PLAN_QUALITIES)
    return QUALITIES


def points_of(subtask: str) -> tuple[str, ...]:
    """The yes-or-no points of a subtask."""
    return POINTS[SUBTASKS[subtask].dimension]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One judge's reply to one answer.

    Attributes:
        scores: each quality's score, 0 to 5.
        points: each yes-or-no point's answer.
        evidence: the sentence behind each score and each answer.
        unscored: why there are no scores (`refusal`, `judge_filtered`, `truncated`, `malformed_output`,
            `out_of_range`, or the reason of a failed call); None where there are.
        message: what is wrong with a reply that could not be read, with its beginning.
        failed: what is wrong with a call that failed.
        declined: what the filter of the judge's provider said.
        unknown_reason: the finish reason of a reply, where this version does not know it. Such a reply is read as if
            it had ended normally.
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
    # The ids are not compared, so that rubrics with the same parts share one schema.
    point_ids: tuple[str, ...] = field(default=(), compare=False)

    def example(self) -> str:
        """Return the example reply that the prompt shows; `read` can read it."""
        reply: dict[str, dict[str, Any]] = {}
        for name in self.parts:
            if name in self.points:
                reply[name] = {"evidence": "...", "answer": False}
            else:
                reply[name] = {"evidence": "...", "score": 3}
        return json.dumps(reply)

    def read(self, reply: Reply | Failure) -> Judgement:
        """Read a judge's reply; the judgement of a reply that says nothing, or of a failed call, holds the reason."""
        if isinstance(reply, Failure):
            return Judgement(unscored=reply.reason, failed=reply.message or reply.reason)
        unknown_reason = "" if is_known(reply.finish_reason) else reply.finish_reason
        without_reasoning = replace(reply, text=strip_reasoning(reply.text))
        outcome = schema_of(self).read(without_reasoning)
        if isinstance(outcome, Failure):
            if outcome.reason == FILTERED_REPLY:
                declined = reply.filtered_by or outcome.message
                return Judgement(unscored=JUDGE_FILTERED, declined=declined)
            message = "" if outcome.reason == "refusal" else outcome.message
            return Judgement(
                unscored=outcome.reason, message=message, unknown_reason=unknown_reason
            )
        parts = cast(Mapping[str, Any], dict(outcome))
        id_of_point = dict(zip(self.points, self.point_ids or self.points, strict=True))
        return Judgement(
            scores={name: part.score for name, part in parts.items() if name not in id_of_point},
            points={point_id: parts[name].answer for name, point_id in id_of_point.items()},
            evidence={id_of_point.get(name, name): part.evidence for name, part in parts.items()},
            unknown_reason=unknown_reason,
        )


@cache
def schema_of(rubric: Rubric) -> ResponseSchema:
    """The form of a reply: every part with its evidence, then its score or answer."""
    # Imported here because it is slow, and a command that asks no judge does not need it.
    from pydantic import BaseModel, Field, create_model

    # Servers are sent the names of the two classes in the schema: other names would be other requests.
    class Score(BaseModel):
        evidence: str = Field(min_length=1, max_length=_MAX_EVIDENCE)
        score: int = Field(ge=rubric.least, le=HIGHEST)

    class PointAnswer(BaseModel):
        evidence: str = Field(min_length=1, max_length=_MAX_EVIDENCE)
        answer: bool

    # pydantic's `...` says that a field must be there.
    fields: dict[str, Any] = {}
    for name in rubric.parts:
        model = PointAnswer if name in rubric.points else Score
        fields[name] = (model, ...)
    return ResponseSchema("judgement", create_model("Judgement", **fields))


def rubric_of(subtask: str, reverse: bool = False) -> Rubric:
    """The rubric of a subtask's answers: first its qualities, with `reverse` in the reverse order, then its points."""
    qualities = qualities_of(subtask)
    if reverse:
        qualities = qualities[::-1]
    points = points_of(subtask)
    return Rubric(parts=(*qualities, *points), points=points)


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
    """Return a function that writes the prompts of one judge; it renders the rules of each subtask once."""

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
        # Imported here because it loads the rounds, which a command that compares runs does not need.
        from h2htalk.rounds.item_sources import input_text

        material = "\n\n".join(
            f"{name}:\n{input_text(value)}" for name, value in scenario.inputs.items()
        )
        language = scenario.language
        parts = {"persona": persona.descriptions[language], "material": material, "answer": answer}
        return judge_messages(prompts, language, rules(scenario.subtask, language), parts, fence)

    return messages
