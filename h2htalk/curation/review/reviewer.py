"""The calls of a reviewer and their replies: the rubric, and comparisons of two answers.

Both replies are JSON with the evidence before the score. They are read strictly (`chat.response_schema`): a reply
that is truncated or refused, or has a second object, a score out of range or other text, is unscored with that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, Literal, cast

from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Message, Reply, Request
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import ModelCalls, sampling_of
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.prompts import Prompts, json_lines
from h2htalk.curation.review.faireval import ORDERS, ComparedPair, EvidenceSample, Order, calibrate
from h2htalk.curation.stages import ReviewSettings
from h2htalk.data.responses import Failure
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.fences import Fence

CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
TEMPLATES = ("review_rubric.j2", "review_item.j2", "review_compare.j2", "review_pair.j2")
# For evidence of two sentences a criterion, and the JSON around it.
RUBRIC_TOKENS = 1200
PAIR_TOKENS = 600
NO_SUBTASK = "none"
MOST_COMPARED = 4  # references of a candidate, as comparisons grow with their square


class Criterion(BaseModel):
    """One criterion of the rubric: the evidence, then 1 to 5."""

    evidence: str = Field(min_length=1, max_length=2000)
    score: int = Field(ge=1, le=5)


class RubricReply(BaseModel):
    """The review of one candidate."""

    accuracy: Criterion
    consistency: Criterion
    domain_compliance: Criterion
    safety: Criterion
    subtask_fit: Criterion
    fitting_subtask: str = Field(max_length=64)
    revision: str = Field(max_length=2000)
    verdict: Literal["accept", "revise", "reject"]


class PairReply(BaseModel):
    """Two answers in the order of the prompt: the evidence, then 1 to 10 each."""

    evidence: str = Field(min_length=1, max_length=4000)
    score_first: int = Field(ge=1, le=10)
    score_second: int = Field(ge=1, le=10)


RUBRIC = ResponseSchema("review", RubricReply)
PAIR = ResponseSchema("comparison", PairReply)


@dataclass(frozen=True, slots=True)
class Rubric:
    """A review: criterion -> 1 to 5, the evidence for each, the fitting subtask, what to change; or `unscored`: why."""

    scores: Mapping[str, int] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    fitting_subtask: str = ""
    revision: str = ""
    verdict: str = ""
    unscored: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if (name == "unscored") == bool(self.unscored)}


def read_rubric(reply: Reply) -> Rubric:
    """The review in a reply, or an unscored one with the reason."""
    read = RUBRIC.read(reply)
    if isinstance(read, Failure):
        return Rubric(unscored=read.reason)
    review = cast(RubricReply, read)
    if review.fitting_subtask not in (*SUBTASKS, NO_SUBTASK):
        return Rubric(unscored="malformed_output")
    criteria: dict[str, Criterion] = {name: getattr(review, name) for name in CRITERIA}
    scores = {name: one.score for name, one in criteria.items()}
    evidence = {name: one.evidence for name, one in criteria.items()}
    return Rubric(scores, evidence, review.fitting_subtask, review.revision, review.verdict)


def read_pair(reply: Reply, order: Order) -> EvidenceSample:
    """The comparison in a reply: the scores mapped back to the answers, or unscored with the reason."""
    read = PAIR.read(reply)
    if isinstance(read, Failure):
        return EvidenceSample(order, None, None, read.reason)
    pair = cast(PairReply, read)
    first, second = float(pair.score_first), float(pair.score_second)
    return EvidenceSample(order, first, second) if order == "ab" else EvidenceSample(order, second, first)


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Makes the calls: the settings, and the run's seed, prompts and secret."""

    settings: ReviewSettings
    seed: int
    prompts: Prompts
    secret: bytes

    def rubric(self, candidate: Candidate, reference: str) -> Request:
        """The call that reviews a candidate with one of its references."""
        name = f"{candidate.id}/rubric"
        fence = Fence.of(self.secret, name, 0)
        values = {"subtasks": list(SUBTASKS), "reference": fence.around(reference, "reference")}
        return self._request(candidate, name, 0, TEMPLATES[:2], values, 0.0, RUBRIC_TOKENS, RUBRIC)

    def comparison(self, candidate: Candidate, pair: tuple[int, int], order: Order, sample: int) -> Request:
        """The call that compares two of a candidate's references (counted from 0) in one order. Its id is
        `CANDIDATE/pair-1-2/ab`, references counted from 1."""
        name = f"{candidate.id}/pair-{pair[0] + 1}-{pair[1] + 1}/{order}"
        fence = Fence.of(self.secret, name, sample)
        first, second = (candidate.references[at].text for at in (pair if order == "ab" else pair[::-1]))
        values = {"first": fence.around(first, "first answer"), "second": fence.around(second, "second answer")}
        temperature = self.settings.temperature
        return self._request(candidate, name, sample, TEMPLATES[2:], values, temperature, PAIR_TOKENS, PAIR)

    def compare(
        self, candidates: Iterable[Candidate], calls: ModelCalls, part: str
    ) -> dict[str, tuple[ComparedPair, ...]]:
        """Compare all pairs of references, in both orders, `samples` times each. Raises IncompleteError."""
        asked: dict[tuple[str, tuple[int, int]], list[tuple[Order, Request]]] = {}
        for candidate in candidates:
            for pair in compared_pairs(candidate):
                asked[candidate.id, pair] = [
                    (order, self.comparison(candidate, pair, order, sample))
                    for order in ORDERS
                    for sample in range(self.settings.samples)
                ]
        replies = calls.ask([request for requests in asked.values() for _, request in requests], part)
        found: dict[str, tuple[ComparedPair, ...]] = {}
        for (name, pair), requests in asked.items():
            read = tuple(read_pair(replies[one.id, one.sample], order) for order, one in requests)
            compared = ComparedPair(*pair, read, calibrate(read, margin=self.settings.margin))
            found[name] = (*found.get(name, ()), compared)
        return found

    def _request(
        self,
        candidate: Candidate,
        name: str,
        sample: int,
        templates: tuple[str, ...],
        values: Mapping[str, object],
        temperature: float,
        tokens: int,
        form: ResponseSchema,
    ) -> Request:
        """A call with the fenced scenario, and further values of the second template."""
        scenario, fence = candidate.scenario, Fence.of(self.secret, name, sample)
        inputs: Mapping[str, Any] = scenario.to_dict()["inputs"]
        shown = f"persona: {scenario.persona}\nrisk: {scenario.tags.risk}\n{json_lines(inputs)}"
        values = {**values, "subtask": scenario.subtask, "scenario": fence.around(shown, "scenario")}
        rules, asked = (
            self.prompts.render(f"{scenario.language}/{template}", given)
            for template, given in zip(templates, ({}, values), strict=True)
        )
        # All calls have the same rules: engines that cache prefixes read them once.
        messages = (Message("system", rules, shared=len(rules)), Message("user", asked))
        sampling = sampling_of(self.settings.model, temperature, tokens, self.seed, name, sample)
        return Request(name, messages, sampling, sample, form)


def compared_pairs(candidate: Candidate) -> list[tuple[int, int]]:
    """The pairs of references that are compared: all pairs of the first four."""
    return list(combinations(range(min(len(candidate.references), MOST_COMPARED)), 2))
