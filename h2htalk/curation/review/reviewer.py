"""The calls of a reviewer and their replies: the rubric, and comparisons of two answers.

Both replies are JSON with the evidence before the score. They are read strictly (`chat.response_schema`): a reply
that is truncated or refused, or has a second object, a score out of range or other text, is unscored with that reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, cast

from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Message, Reply, Request, Sampling
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import Replies, sampling_of
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.prompts.templates import Prompts
from h2htalk.curation.review.faireval import ORDERS, EvidenceSample, Order, calibrate
from h2htalk.curation.review.review_outcome import ComparedPair
from h2htalk.data.responses import Failure
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.fences import Fence

CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
TEMPLATES = ("review_rubric.j2", "review_item.j2", "review_compare.j2", "review_pair.j2")
# For evidence of two sentences a criterion, and the JSON around it.
RUBRIC_TOKENS = 1200
PAIR_TOKENS = 600
NO_SUBTASK = "none"

ReviewVerdict = Literal["accept", "revise", "reject"]


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
    verdict: ReviewVerdict

    def scores(self) -> dict[str, int]:
        """Criterion -> score, 1 to 5, in the rubric's order."""
        return {name: getattr(self, name).score for name in CRITERIA}

    def evidence(self) -> dict[str, str]:
        """Criterion -> its evidence."""
        return {name: getattr(self, name).evidence for name in CRITERIA}


class PairReply(BaseModel):
    """Two answers in the order of the prompt: the evidence, then 1 to 10 each."""

    evidence: str = Field(min_length=1, max_length=4000)
    score_first: int = Field(ge=1, le=10)
    score_second: int = Field(ge=1, le=10)


RUBRIC = ResponseSchema("review", RubricReply)
PAIR = ResponseSchema("comparison", PairReply)


# --- Reading ----------------------------------------------------------------------------------------------------


def read_rubric(reply: Reply) -> RubricReply | Failure:
    """The review in a reply, or why it cannot be read."""
    read = RUBRIC.read(reply)
    if isinstance(read, Failure):
        return read
    review = cast(RubricReply, read)
    if review.fitting_subtask not in (*SUBTASKS, NO_SUBTASK):
        return Failure("malformed_output", "form review: fitting_subtask is neither a subtask nor none")
    return review


def read_pair(reply: Reply, order: Order) -> EvidenceSample:
    """The comparison in a reply: the scores mapped back to the answers, or unscored with the reason."""
    read = PAIR.read(reply)
    if isinstance(read, Failure):
        return EvidenceSample(order, None, None, read.reason)
    pair = cast(PairReply, read)
    first, second = float(pair.score_first), float(pair.score_second)
    return EvidenceSample(order, first, second) if order == "ab" else EvidenceSample(order, second, first)


# --- Asking -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Makes the calls: the model, the temperature of comparisons, and the run's seed, prompts and secret."""

    model: str
    temperature: float
    seed: int
    prompts: Prompts
    secret: bytes

    def rubric(self, candidate: Candidate, reference: str) -> Request:
        """The call that reviews a candidate with one of its references."""
        name = f"{candidate.id}/rubric"
        fence = Fence.of(self.secret, name, 0)
        values = {
            "subtask": candidate.scenario.subtask,
            "subtasks": list(SUBTASKS),
            "scenario": fence.around(scenario_text(candidate), "scenario"),
            "reference": fence.around(reference, "reference"),
        }
        messages = self._messages(candidate, "review_rubric.j2", "review_item.j2", values)
        return Request(name, messages, self._sampling(name, 0, 0.0, RUBRIC_TOKENS), 0, RUBRIC)

    def comparison(self, candidate: Candidate, pair: tuple[int, int], order: Order, sample: int) -> Request:
        """The call that compares two of a candidate's references (counted from 0), in one order."""
        name = pair_name(candidate.id, pair, order)
        fence = Fence.of(self.secret, name, sample)
        shown = pair if order == "ab" else pair[::-1]
        first, second = (candidate.references[at].text for at in shown)
        values = {
            "subtask": candidate.scenario.subtask,
            "scenario": fence.around(scenario_text(candidate), "scenario"),
            "first": fence.around(first, "first answer"),
            "second": fence.around(second, "second answer"),
        }
        messages = self._messages(candidate, "review_compare.j2", "review_pair.j2", values)
        sampling = self._sampling(name, sample, self.temperature, PAIR_TOKENS)
        return Request(name, messages, sampling, sample, PAIR)

    def _messages(
        self, candidate: Candidate, system: str, user: str, values: Mapping[str, object]
    ) -> tuple[Message, ...]:
        language = candidate.scenario.language
        rules = self.prompts.render(f"{language}/{system}", {})
        # All calls have the same rules: engines that cache prefixes read them once.
        return (
            Message("system", rules, shared=len(rules)),
            Message("user", self.prompts.render(f"{language}/{user}", values)),
        )

    def _sampling(self, name: str, sample: int, temperature: float, tokens: int) -> Sampling:
        return sampling_of(self.model, temperature, tokens, self.seed, name, sample)


def pair_name(candidate_id: str, pair: tuple[int, int], order: Order) -> str:
    """The id of a comparison's calls: `CANDIDATE/pair-1-2/ab`, references counted from 1."""
    return f"{candidate_id}/pair-{pair[0] + 1}-{pair[1] + 1}/{order}"


def scenario_text(candidate: Candidate) -> str:
    """The text of a scenario in a prompt: persona, risk, and the inputs as JSON, one a line."""
    scenario = candidate.scenario
    record: dict[str, Any] = scenario.to_dict()
    lines = [f"persona: {scenario.persona}", f"risk: {scenario.tags.risk}"]
    lines += [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in record["inputs"].items()]
    return "\n".join(lines)


MOST_COMPARED = 4  # references of a candidate, as comparisons grow with their square


def compared_pairs(candidate: Candidate) -> list[tuple[int, int]]:
    """The pairs of references that are compared: all pairs of the first four."""
    return list(combinations(range(min(len(candidate.references), MOST_COMPARED)), 2))


def comparisons(reviewer: Reviewer, candidate: Candidate, samples: int) -> Iterator[Request]:
    """The calls that compare a candidate's references: every pair, in both orders, `samples` times each."""
    for pair in compared_pairs(candidate):
        for order in ORDERS:
            for sample in range(samples):
                yield reviewer.comparison(candidate, pair, order, sample)


def read_comparisons(candidate: Candidate, replies: Replies, samples: int, margin: float) -> tuple[ComparedPair, ...]:
    """The results of the replies to `comparisons`, pair by pair."""
    pairs = []
    for pair in compared_pairs(candidate):
        read = tuple(
            read_pair(replies[pair_name(candidate.id, pair, order), sample], order)
            for order in ORDERS
            for sample in range(samples)
        )
        pairs.append(ComparedPair(*pair, read, calibrate(read, margin=margin)))
    return tuple(pairs)
