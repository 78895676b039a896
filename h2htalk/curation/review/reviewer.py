"""The calls of a reviewer and their replies: the rubric, and comparisons of two answers; a check on gold comparisons.

Both replies are JSON with the evidence before the score, and the safety questions after it: of the inputs, and of each
answer that the call shows. They are read strictly (`chat.response_schema`): a reply
that is truncated or refused, or has a second object, a score out of range or other text, is unscored with that reason.
A reviewer at or below chance on gold comparisons is sure where it is wrong, so its comparisons are not used.
"""

from __future__ import annotations

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
from h2htalk.curation.reading.question import TOKENS_AN_ENTRY, SafetyAnswers
from h2htalk.curation.review import faireval
from h2htalk.curation.review.candidate_reads import PlaceAnswers
from h2htalk.curation.review.faireval import (
    ComparedPair,
    EvidenceSample,
    Order,
    Verdict,
    check_judge,
)
from h2htalk.curation.run import say
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stages import ReviewSettings
from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import Id, Text, read_record, strict_record
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import Scenario, bundled_personas
from h2htalk.data.subtasks import SUBTASKS, find_subtask
from h2htalk.errors import ConfigError, DataError, IncompleteError, quoted
from h2htalk.text.fences import Fence

CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
RUBRIC_TEMPLATES = ("review_rubric.j2", "review_item.j2")
PAIR_TEMPLATES = ("review_compare.j2", "review_pair.j2")
QUESTIONS = "review_safety.j2"  # the safety questions, in the rules of both
TEMPLATES = (*RUBRIC_TEMPLATES, *PAIR_TEMPLATES, QUESTIONS)
# For evidence of two sentences a criterion, the JSON around it, and two entries of answers to the safety questions.
RUBRIC_TOKENS = 1200 + 2 * TOKENS_AN_ENTRY
PAIR_TOKENS = 600 + 2 * TOKENS_AN_ENTRY
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
    # After the scores, which they are not to move.
    in_scenario: SafetyAnswers
    in_reference: SafetyAnswers


class PairReply(BaseModel):
    """Two answers in the order of the prompt: the evidence, then 1 to 10 each, then what is the matter with each."""

    evidence: str = Field(min_length=1, max_length=4000)
    score_first: int = Field(ge=1, le=10)
    score_second: int = Field(ge=1, le=10)
    in_first: SafetyAnswers
    in_second: SafetyAnswers


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
        return {
            name: value
            for name, value in asdict(self).items()
            if (name == "unscored") == bool(self.unscored)
        }


@dataclass(frozen=True, slots=True)
class Comparisons:
    """The compared pairs of candidates, and what the replies say of the safety of their references; both by id."""

    pairs: Mapping[str, tuple[ComparedPair, ...]]
    answers: Mapping[str, tuple[PlaceAnswers, ...]]


def _read_review(reply: Reply) -> RubricReply | Failure:
    read = RUBRIC.read(reply)
    if isinstance(read, Failure):
        return read
    review = cast(RubricReply, read)
    if review.fitting_subtask not in (*SUBTASKS, NO_SUBTASK):
        return Failure(
            "malformed_output", f"form {RUBRIC.name}: no subtask {quoted(review.fitting_subtask)}"
        )
    return review


def read_rubric(reply: Reply) -> Rubric:
    """The review in a reply, or an unscored one with the reason."""
    review = _read_review(reply)
    if isinstance(review, Failure):
        return Rubric(unscored=review.reason)
    criteria: dict[str, Criterion] = {name: getattr(review, name) for name in CRITERIA}
    scores, evidence = (
        {name: getattr(one, of) for name, one in criteria.items()} for of in ("score", "evidence")
    )
    return Rubric(scores, evidence, review.fitting_subtask, review.revision, review.verdict)


def rubric_answers(reply: Reply, reference: int) -> tuple[PlaceAnswers, ...]:
    """What a review says of the safety of the inputs and of its reference; nothing where it is unscored.

    `reference`: the place of its reference among those of the candidate, from 0.
    """
    review = _read_review(reply)
    if isinstance(review, Failure):
        return ()
    return (
        PlaceAnswers(
            answers=review.in_scenario, reference=None, stored=reply.at, served_by=reply.served_by
        ),
        PlaceAnswers(
            answers=review.in_reference,
            reference=reference,
            stored=reply.at,
            served_by=reply.served_by,
        ),
    )


def pair_answers(reply: Reply, pair: tuple[int, int], order: Order) -> tuple[PlaceAnswers, ...]:
    """What a comparison says of the safety of two references, mapped back to their places; nothing where it is
    unscored."""
    read = PAIR.read(reply)
    if isinstance(read, Failure):
        return ()
    compared = cast(PairReply, read)
    first, second = pair if order == "ab" else pair[::-1]
    return (
        PlaceAnswers(
            answers=compared.in_first, reference=first, stored=reply.at, served_by=reply.served_by
        ),
        PlaceAnswers(
            answers=compared.in_second, reference=second, stored=reply.at, served_by=reply.served_by
        ),
    )


def read_pair(reply: Reply, order: Order) -> EvidenceSample:
    """The comparison in a reply: the scores mapped back to the answers, or unscored with the reason."""
    read = PAIR.read(reply)
    if isinstance(read, Failure):
        return EvidenceSample(order, None, None, read.reason)
    pair = cast(PairReply, read)
    first = float(pair.score_first)
    second = float(pair.score_second)
    return (
        EvidenceSample(order, first, second)
        if order == "ab"
        else EvidenceSample(order, second, first)
    )


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Makes the calls: the settings, and the run's seed, prompts and secret."""

    settings: ReviewSettings
    seed: int
    prompts: Prompts
    secret: bytes

    def rubric(self, candidate: Candidate, reference: str) -> Request:
        """The call that reviews a candidate with one of its references."""
        return self._request(
            candidate, f"{candidate.id}/rubric", 0, RUBRIC, {"reference": reference}
        )

    def comparison(
        self, candidate: Candidate, pair: tuple[int, int], order: Order, sample: int
    ) -> Request:
        """The call that compares two of a candidate's references (counted from 0) in one order. Its id is
        `CANDIDATE/pair-1-2/ab`, references counted from 1."""
        name = f"{candidate.id}/pair-{pair[0] + 1}-{pair[1] + 1}/{order}"
        first, second = (
            candidate.references[at].text for at in (pair if order == "ab" else pair[::-1])
        )
        return self._request(
            candidate, name, sample, PAIR, {"first answer": first, "second answer": second}
        )

    def compare(self, candidates: Iterable[Candidate], calls: ModelCalls, part: str) -> Comparisons:
        """Compare all pairs of references, in both orders, `samples` times each. Raises IncompleteError."""
        asked: dict[tuple[str, tuple[int, int]], list[tuple[Order, Request]]] = {}
        for candidate in candidates:
            for pair in compared_pairs(candidate):
                asked[candidate.id, pair] = [
                    (order, self.comparison(candidate, pair, order, sample))
                    for order in faireval.ORDERS
                    for sample in range(self.settings.samples)
                ]
        replies = calls.ask(
            [request for requests in asked.values() for _, request in requests], part
        )
        pairs: dict[str, tuple[ComparedPair, ...]] = {}
        answers: dict[str, tuple[PlaceAnswers, ...]] = {}
        for (name, pair), requests in asked.items():
            ordered = [(order, replies[request.id, request.sample]) for order, request in requests]
            samples = tuple(read_pair(reply, order) for order, reply in ordered)
            compared = ComparedPair(
                *pair, samples, faireval.calibrate(samples, margin=self.settings.margin)
            )
            pairs[name] = (*pairs.get(name, ()), compared)
            for order, reply in ordered:
                answers[name] = (*answers.get(name, ()), *pair_answers(reply, pair, order))
        return Comparisons(pairs=pairs, answers=answers)

    def _request(
        self,
        candidate: Candidate,
        name: str,
        sample: int,
        form: ResponseSchema,
        answers: Mapping[str, str],
    ) -> Request:
        """A call with the scenario and the answers between fences."""
        scenario = candidate.scenario
        fence = Fence.of(self.secret, name, sample)
        whole = form is RUBRIC
        shown = f"persona: {scenario.persona}\nrisk: {scenario.tags.risk}\n{json_lines(scenario.to_dict()['inputs'])}"
        values: dict[str, object] = {"subtasks": list(SUBTASKS), "subtask": scenario.subtask}
        texts = {
            what.split()[0]: fence.around(text, what)
            for what, text in {"scenario": shown, **answers}.items()
        }
        rules_file, asked_file = RUBRIC_TEMPLATES if whole else PAIR_TEMPLATES
        rules = self.prompts.render(f"{scenario.language}/{rules_file}", {})
        asked = self.prompts.render(f"{scenario.language}/{asked_file}", values | texts)
        # All calls have the same rules: engines that cache prefixes read them once.
        messages = (Message("system", rules, shared=len(rules)), Message("user", asked))
        limits = (0.0, RUBRIC_TOKENS) if whole else (self.settings.temperature, PAIR_TOKENS)
        sampling = sampling_of(self.settings.model, *limits, self.seed, name, sample)
        return Request(name, messages, sampling, sample, form)


def review_prompt_fingerprint(prompts: Prompts) -> str:
    """The fingerprint of the templates of a reviewer's calls, of all languages: its readings and its certificate have
    it in common."""
    return prompts.fingerprint(
        *(f"{language}/{name}" for language in LANGUAGES for name in TEMPLATES)
    )


# The rules of each call, and the fields of its reply that answer the safety questions.
_ASKED_FIELDS = {
    RUBRIC_TEMPLATES[0]: ("in_scenario", "in_reference"),
    PAIR_TEMPLATES[0]: ("in_first", "in_second"),
}


def require_questions(prompts: Prompts) -> None:
    """Raise ConfigError where rules of a user's own do not ask the safety questions: every reply would be unscored."""
    for language in LANGUAGES:
        for file, fields in _ASKED_FIELDS.items():
            name = f"{language}/{file}"
            rules = prompts.render(name, {})
            missing = [field for field in fields if field not in rules]
            if missing:
                problem = (
                    f"does not ask for {' and '.join(missing)}, so that no reply could be read"
                )
                advice = f'add {{% include "{language}/{QUESTIONS}" %}} and the fields, as the bundled prompt does'
                raise ConfigError(f"{prompts.origin(name)}: {problem}; {advice}")


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
        return fingerprint(
            {one.id: [one.to_dict(), self.verdicts[one.id]] for one in self.candidates}
        )


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
            raise DataError(
                f"{where}: the id {quoted(line.id)} is there twice; give each line its own id"
            )
        candidates[name], verdicts[name] = (
            _candidate(line, name, f"{where}: {line.id}"),
            _VERDICTS[line.better],
        )
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
        "persona": line.persona
        or next(p.id for p in bundled_personas().values() if line.language in p.names),
        "inputs": inputs,
        "reference": line.a,
        "tags": {
            "emotion": "unknown",
            "complexity": "basic",
            "interaction": "casual",
            "risk": line.risk,
        },
        "provenance": {},
        "licence": "unknown",
    }
    return Candidate(Scenario.from_dict(scenario, where), (Reference(line.a), Reference(line.b)))


def may_compare(
    folder: StageFolder, gold: Gold | None, reviewer: Reviewer, calls: ModelCalls
) -> bool:
    """Whether the reviewer's comparisons are used, which is checked once in a stage; without gold they are."""
    if gold is None:
        return True
    if NOTE not in folder.notes():
        note = _check(gold, reviewer, calls)
        folder.add_note(NOTE, note)
        if not note["accepted"]:
            say(f"review: {note['message']}")
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
        raise IncompleteError(
            f"review.gold: {error}; the same command makes these calls again"
        ) from error
    # As for candidates: a comparison whose orders conflict is left to people.
    results = {name: pair.calibration for name, (pair,) in compared.pairs.items()}
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
