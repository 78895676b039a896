"""The calls of a reviewer and their replies: the rubric, and comparisons of two answers; a check on gold comparisons.

Both replies are JSON with the evidence before the score. They are read strictly (`chat.response_schema`): a reply
that is truncated or refused, or has a second object, a score out of range or other text, is unscored with that reason.
A reviewer at or below chance on gold comparisons is sure where it is wrong, so its comparisons are not used.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, Field

from h2htalk.chat.protocol import Message, Reply, Request
from h2htalk.chat.response_schema import ResponseSchema
from h2htalk.chat.store.model_calls import ModelCalls, sampling_of
from h2htalk.curation.candidates import Candidate, Reference
from h2htalk.curation.prompts import Prompts, fingerprint, json_lines
from h2htalk.curation.review import faireval
from h2htalk.curation.review.faireval import ComparedPair, EvidenceSample, Order, Verdict, check_judge
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stages import ReviewSettings
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.records import Id, Text, read_record, strict_record
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Scenario, bundled_personas
from h2htalk.data.subtasks import SUBTASKS, find_subtask
from h2htalk.errors import ConfigError, DataError, IncompleteError, quoted
from h2htalk.text.escaping import printable
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
    scores, evidence = ({name: getattr(one, of) for name, one in criteria.items()} for of in ("score", "evidence"))
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
        return self._request(candidate, f"{candidate.id}/rubric", 0, RUBRIC, {"reference": reference})

    def comparison(self, candidate: Candidate, pair: tuple[int, int], order: Order, sample: int) -> Request:
        """The call that compares two of a candidate's references (counted from 0) in one order. Its id is
        `CANDIDATE/pair-1-2/ab`, references counted from 1."""
        name = f"{candidate.id}/pair-{pair[0] + 1}-{pair[1] + 1}/{order}"
        first, second = (candidate.references[at].text for at in (pair if order == "ab" else pair[::-1]))
        return self._request(candidate, name, sample, PAIR, {"first answer": first, "second answer": second})

    def compare(
        self, candidates: Iterable[Candidate], calls: ModelCalls, part: str
    ) -> dict[str, tuple[ComparedPair, ...]]:
        """Compare all pairs of references, in both orders, `samples` times each. Raises IncompleteError."""
        asked: dict[tuple[str, tuple[int, int]], list[tuple[Order, Request]]] = {}
        for candidate in candidates:
            for pair in compared_pairs(candidate):
                asked[candidate.id, pair] = [
                    (order, self.comparison(candidate, pair, order, sample))
                    for order in faireval.ORDERS
                    for sample in range(self.settings.samples)
                ]
        replies = calls.ask([request for requests in asked.values() for _, request in requests], part)
        found: dict[str, tuple[ComparedPair, ...]] = {}
        for (name, pair), requests in asked.items():
            read = tuple(read_pair(replies[one.id, one.sample], order) for order, one in requests)
            compared = ComparedPair(*pair, read, faireval.calibrate(read, margin=self.settings.margin))
            found[name] = (*found.get(name, ()), compared)
        return found

    def _request(
        self, candidate: Candidate, name: str, sample: int, form: ResponseSchema, answers: Mapping[str, str]
    ) -> Request:
        """A call with the scenario and the answers between fences."""
        scenario, fence = candidate.scenario, Fence.of(self.secret, name, sample)
        whole = form is RUBRIC
        shown = f"persona: {scenario.persona}\nrisk: {scenario.tags.risk}\n{json_lines(scenario.to_dict()['inputs'])}"
        values: dict[str, object] = {"subtasks": list(SUBTASKS), "subtask": scenario.subtask}
        texts = {what.split()[0]: fence.around(text, what) for what, text in {"scenario": shown, **answers}.items()}
        rules_file, asked_file = (f"{scenario.language}/{one}" for one in (TEMPLATES[:2] if whole else TEMPLATES[2:]))
        rules, asked = self.prompts.render(rules_file, {}), self.prompts.render(asked_file, values | texts)
        # All calls have the same rules: engines that cache prefixes read them once.
        messages = (Message("system", rules, shared=len(rules)), Message("user", asked))
        limits = (0.0, RUBRIC_TOKENS) if whole else (self.settings.temperature, PAIR_TOKENS)
        sampling = sampling_of(self.settings.model, *limits, self.seed, name, sample)
        return Request(name, messages, sampling, sample, form)


def compared_pairs(candidate: Candidate) -> list[tuple[int, int]]:
    """The pairs of references that are compared: all pairs of the first four."""
    return list(combinations(range(min(len(candidate.references), MOST_COMPARED)), 2))


NOTE = "judge_check"  # the name of the note, and a reason for people to decide
_VERDICTS: Mapping[str, Verdict] = {"a": "win", "b": "lose", "tie": "tie"}


@dataclass(frozen=True, slots=True)
class Gold:
    """The gold comparisons: candidates of two references each, and the verdict on the first reference by id."""

    candidates: tuple[Candidate, ...]
    verdicts: Mapping[str, Verdict]

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits of the content, in any order."""
        return fingerprint({one.id: [one.to_dict(), self.verdicts[one.id]] for one in self.candidates})


@strict_record
class _Line:
    """A line of the file; its scenario is checked with the scenario."""

    id: Id
    language: Language
    subtask: str
    a: Text
    b: Text
    better: Literal["a", "b", "tie"]
    prompt: Text | None = None
    inputs: dict[str, Any] | None = None
    persona: str | None = None
    risk: str = "none"


def read_gold(path: Path) -> Gold:
    """Read a file of comparisons with known answers, a JSON object a line:

        {"id": "g1", "language": "en", "subtask": "dialogue_base", "prompt": "I failed the exam.", "a": "...",
         "b": "...", "better": "a"}

    `prompt` is the one message of a dialogue subtask; other subtasks have `inputs` instead, as in a scenario. `better`
    is `a`, `b` or `tie`; `persona` and `risk` are optional. The reviewer gets them like the references of candidates.

    Raises ConfigError where there is no file, or no reviewer could be accepted on it, and DataError, which names file
    and line, for a line that is no comparison or repeats an id.
    """
    if not path.is_file():
        raise ConfigError(f"review.gold: {path}: no such file")
    candidates: dict[str, Candidate] = {}
    verdicts: dict[str, Verdict] = {}
    for where, record in read_jsonl(path, unique_keys=True):
        line = read_record(_Line, record, where)
        name = f"gold:{line.id}"
        if name in candidates:
            raise DataError(f"{where}: the id {quoted(line.id)} is there twice; give each line its own id")
        candidates[name], verdicts[name] = _candidate(line, name, f"{where}: {line.id}"), _VERDICTS[line.better]
    best = check_judge(verdicts, verdicts) if verdicts else None
    if best is None or not best.accepted:
        ties = Counter(verdicts.values())["tie"]
        problem = f"a reviewer that gets all {len(verdicts):,} comparisons right would be refused"
        advice = "add comparisons with a better answer (a or b), for instance 30"
        raise ConfigError(f"review.gold: {path}: {problem}; {ties:,} of them are ties: {advice}")
    return Gold(tuple(candidates.values()), verdicts)


def _candidate(line: _Line, name: str, where: str) -> Candidate:
    if (line.prompt is None) == (line.inputs is None):
        raise DataError(f"{where}: give either prompt or inputs")
    if line.a == line.b and line.better != "tie":
        raise DataError(f"{where}: a and b are the same text, so neither is better")
    inputs = line.inputs
    if inputs is None:
        subtask = find_subtask(line.subtask, where)
        if [field for field, _ in subtask.inputs] != ["history"] or not subtask.is_chat:
            raise DataError(f"{where}: {subtask.name} needs more than a prompt; give its inputs")
        inputs = {"history": [{"role": "user", "content": line.prompt}]}
    scenario = {
        "id": name,
        "subtask": line.subtask,
        "language": line.language,
        "persona": line.persona or next(p.id for p in bundled_personas().values() if line.language in p.names),
        "inputs": inputs,
        "reference": line.a,
        "tags": {"emotion": "unknown", "complexity": "basic", "interaction": "casual", "risk": line.risk},
        "provenance": {},
        "licence": "unknown",
    }
    return Candidate(Scenario.from_dict(scenario, where), (Reference(line.a), Reference(line.b)))


def may_compare(folder: StageFolder, gold: Gold | None, reviewer: Reviewer, calls: ModelCalls) -> bool:
    """Whether the reviewer's comparisons are used, which is checked once in a stage; without gold they are."""
    if gold is None:
        return True
    if NOTE not in folder.notes():
        note = _check(gold, reviewer, calls)
        folder.add_note(NOTE, note)
        if not note["accepted"]:
            print(printable(f"review: {note['message']}"), file=sys.stderr, flush=True)
    return bool(folder.notes()[NOTE]["accepted"])


def add_missing_note(folder: StageFolder, gold: Gold | None) -> None:
    """Note why the check was not made, in a stage that did not need it."""
    if NOTE not in folder.notes():
        reason = "as no candidate has several references to compare"
        if gold is None:
            reason = "as review.gold names no gold comparisons: nothing shows that the reviewer beats chance"
        folder.add_note(NOTE, {"accepted": None, "message": f"judge check: not made, {reason}"})


def _check(gold: Gold, reviewer: Reviewer, calls: ModelCalls) -> dict[str, Any]:
    try:
        compared = reviewer.compare(gold.candidates, calls, "the gold comparisons")
    except IncompleteError as error:
        raise IncompleteError(f"review.gold: {error}; the same command makes these calls again") from error
    # As for candidates: a comparison whose orders conflict is left to people.
    results = {name: pair.calibration for name, (pair,) in compared.items()}
    verdicts = {name: None if one.conflict else one.verdict for name, one in results.items()}
    languages = sorted({candidate.scenario.language for candidate in gold.candidates})
    undecided = Counter(verdicts.values())[None]
    check = check_judge(verdicts, gold.verdicts)
    message = f"judge check: {'passed' if check.accepted else 'refused'}: accuracy {check.accuracy:.3f} (95 % interval "
    message += f"{check.low:.3f} to {check.high:.3f}) on {check.n:,} gold comparisons ({', '.join(languages)})"
    if undecided:
        message += f", {undecided:,} of them without a verdict"
    if not check.accepted:
        message += f"; {check.reason}; people decide candidates with several references, which keep the first"
    return asdict(check) | {"undecided": undecided, "message": message}
