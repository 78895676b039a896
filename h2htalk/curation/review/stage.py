"""The review stage: a model reviews every candidate, and people decide what it cannot.

Three phases, each with files in the stage's folder, so that after a kill only calls in flight are repeated:

calls.jsonl                  the call store: every reply as it came, those to gold comparisons too
notes.json                   the result of the judge check (`reviewer.may_compare`), before anything is compared
reviews/part-00000.jsonl     map: a candidate's comparisons and review as numbers, and its reading, a line each
escalated.jsonl              reduce: the candidates that people decide, with reasons; over all parts together
kept, rejected               the outcome of each candidate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from h2htalk.chat.engines import ChatOptions, model_identity
from h2htalk.chat.served_model import served_by
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.review.candidate_reads import (
    READ,
    candidate_read,
    open_questions,
    reviewer_name,
)
from h2htalk.curation.review.faireval import (
    Calibration,
    ComparedPair,
    audit_slice,
    choose_reference,
    escalate,
)
from h2htalk.curation.review.reviewer import (
    NOTE,
    Gold,
    Reviewer,
    Rubric,
    add_missing_note,
    compared_pairs,
    may_compare,
    read_gold,
    read_rubric,
    require_questions,
    review_prompt_fingerprint,
    rubric_answers,
)
from h2htalk.curation.run import RuleFactory, StageRun, raise_incomplete
from h2htalk.curation.stage_folder import Kept, Outcomes, PartRule, Record, Rejected, StageFolder
from h2htalk.curation.stages import CurateSpec, ReviewSettings, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.readers.reads import read_read
from h2htalk.data.readers.served_by import served_together
from h2htalk.data.scenario import notes_crisis
from h2htalk.errors import ConfigError, IncompleteError

VERSION = 6
STAGE = "review"
ESCALATED = "escalated.jsonl"
# They decide over stored replies; with another margin another reference may win, whose review is then called for.
_ARITHMETIC = frozenset({"margin", "escalate", "audit", "accept"})


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it. Raises ConfigError for a missing model, script, template or gold file, or
    rules without the safety questions, and DataError, which names file and line, for a line of gold that is no
    comparison."""
    settings = spec.section(ReviewSettings)
    if not settings.model:
        raise ConfigError(
            "review.model is empty: name a reviewer, such as anthropic:claude-sonnet-5 or scripted:FILE"
        )
    prompts = Prompts.load(spec.prompts)
    require_questions(prompts)
    gold = read_gold(Path(settings.gold)) if settings.gold else None
    calls = CallSettings(
        model=settings.model,
        max_cost=settings.max_cost,
        batch=settings.batch,
        prices=spec.prices,
        schema=True,
        options=ChatOptions(engine_options=settings.engine_options),
        option="review.engine_options",
        served_by=served_by(settings.model, settings.engine_options),
    )
    reviewer = Reviewer(settings, spec.seed, prompts, key)
    values = {
        key: value for key, value in asdict(settings).items() if key not in ("max_cost", "batch")
    }
    if not settings.engine_options:  # without any, as earlier versions signed
        del values["engine_options"]
    values |= {
        "model": model_identity(settings.model),
        "gold": gold.fingerprint if gold else "",
        "seed": spec.seed,
        "prompts": review_prompt_fingerprint(prompts),
    }
    return StageRun(
        STAGE,
        VERSION,
        values,
        RuleFactory(open_rule, (workspace.stage(STAGE), settings.accept)),
        calls=(calls,),
        arithmetic=_ARITHMETIC,
        prepare=partial(_review_all, calls, gold, reviewer, workspace.stage(stage_before(STAGE))),
    )


def read_reviews(folder: StageFolder, part: str) -> dict[str, dict[str, Any]]:
    """The reviews of a part by candidate, as its record holds them (`_review`)."""
    return {record.pop("id"): record for _, record in read_jsonl(folder.file("reviews", part))}


def _review_all(
    call_settings: CallSettings,
    gold: Gold | None,
    reviewer: Reviewer,
    before: StageFolder,
    folder: StageFolder,
) -> None:
    """Review the parts that have no reviews, also where calls for one fail; choose what people decide."""
    failed = []
    with ModelCalls(call_settings, folder.path, STAGE) as calls:
        for part in before.parts():
            path = folder.file("reviews", part)
            if path.exists():
                continue
            candidates = [Candidate.from_dict(record) for record in before.part_records(part)]
            # Not in the `try`: where the judge check fails, no part can be compared.
            comparing = not any(map(compared_pairs, candidates)) or may_compare(
                folder, gold, reviewer, calls
            )
            try:
                write_jsonl(path, _review(candidates, reviewer, calls, part, comparing))
            except IncompleteError as error:
                failed.append(error)
    raise_incomplete(folder, failed)
    add_missing_note(folder, gold)
    if not (folder.path / ESCALATED).exists():
        _escalate(reviewer, before, folder)


def _review(
    candidates: Sequence[Candidate],
    reviewer: Reviewer,
    calls: ModelCalls,
    part: str,
    comparing: bool,
) -> list[dict[str, Any]]:
    """Compare the references of candidates, and review each candidate with the winner; returns all numbers that another
    margin or share would need, and what was read."""
    compared = reviewer.compare(candidates if comparing else (), calls, part)
    pairs = compared.pairs
    both = [
        (one, choose_reference(pairs.get(one.id, ()), len(one.references))) for one in candidates
    ]
    rubrics = [
        reviewer.rubric(candidate, candidate.references[winner].text) for candidate, winner in both
    ]
    replies = calls.ask(rubrics, part)
    reader = reviewer_name(reviewer.settings.model)
    prompt = review_prompt_fingerprint(reviewer.prompts)
    reviews: list[dict[str, Any]] = []
    for (candidate, winner), request in zip(both, rubrics, strict=True):
        reply = replies[request.id, 0]
        answers = [*compared.answers.get(candidate.id, ()), *rubric_answers(reply, winner)]
        read = candidate_read(candidate, answers, reader, prompt)
        review = {
            "id": candidate.id,
            "rubric": read_rubric(reply).to_dict(),
            "chosen": winner,
            "margin": reviewer.settings.margin,
            "pairs": [_pair_details(pair) for pair in pairs.get(candidate.id, ())],
        }
        if read is not None:
            sources = [answer.served_by for answer in answers]
            review[READ] = replace(read, served_by=served_together(sources)).to_dict()
        reviews.append(review)
    return reviews


def _pair_details(pair: ComparedPair) -> dict[str, Any]:
    calibration = pair.calibration
    return {
        "first": pair.first,
        "second": pair.second,
        "status": calibration.status,
        "verdict": calibration.verdict,  # of the first of the two
        "score_first": calibration.score_a,
        "score_second": calibration.score_b,
        "bpde": None if calibration.bpde is None else round(calibration.bpde, 6),
        "conflict": calibration.conflict,
        "samples": [
            [sample.order, sample.score_a, sample.score_b, sample.status] for sample in pair.samples
        ],
    }


def _escalate(reviewer: Reviewer, before: StageFolder, folder: StageFolder) -> None:
    """Write the candidates that people decide; shares are of all candidates."""
    settings = reviewer.settings
    refused = folder.notes()[NOTE]["accepted"] is False
    doubtful: dict[str, Calibration] = {}  # the most doubtful comparison of each candidate
    reasons: dict[str, set[str]] = {}
    for part in before.parts():
        reviews = read_reviews(folder, part)
        for candidate in map(Candidate.from_dict, before.part_records(part)):
            names = (
                "verdict",
                "score_first",
                "score_second",
                "bpde",
                "conflict",
                "status",
            )  # see `_pair_details`
            pairs = enumerate(reviews[candidate.id]["pairs"])
            found = {
                str(number): Calibration(*(pair[name] for name in names)) for number, pair in pairs
            }
            compared = refused and compared_pairs(candidate)
            reasons[candidate.id] = {NOTE} if compared else {*chain(*escalate(found).values())}
            if found:
                doubtful[candidate.id] = max(
                    found.values(), key=lambda pair: (pair.bpde or 0.0, -pair.gap)
                )
    for name, why in escalate(doubtful, share=settings.escalate).items():
        reasons[name].update(why)
    for name in audit_slice(reasons, settings.audit, reviewer.seed):
        reasons[name].add("audit")
    people = ({"id": name, "people": sorted(why)} for name, why in sorted(reasons.items()) if why)
    write_jsonl(folder.path / ESCALATED, people)


Decision = tuple[
    Literal["accept", "revise", "reject", "needs_people"], tuple[str, ...]
]  # and every reason for it
# A criterion at this score or below rejects; with one below the next score a candidate cannot be accepted.
REJECTING = 1
ACCEPTABLE = 3
SAFE_IN_CRISIS = 4  # in a crisis people decide on an answer whose safety is below this score


def open_rule(folder: StageFolder, accept: float) -> PartRule:
    """The rule for a part of candidates, which reads the files of the other two phases."""
    people = {
        record["id"]: tuple(record["people"]) for _, record in read_jsonl(folder.path / ESCALATED)
    }

    def rule(records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        reviews = read_reviews(folder, part)
        candidates = map(Candidate.from_dict, records)
        return [
            [_outcome(one, reviews[one.id], people.get(one.id, ()), accept)] for one in candidates
        ]

    return rule


def _outcome(
    candidate: Candidate, review: Mapping[str, Any], people: Sequence[str], accept: float
) -> Kept | Rejected:
    scenario = candidate.scenario
    rubric = Rubric(**review["rubric"])
    read = read_read(review[READ], f"{candidate.id}: review.{READ}") if READ in review else None
    questions = open_questions(read, scenario)
    crisis = (
        scenario.tags.risk != "none"
        or notes_crisis(scenario.metadata)
        or f"{READ}:danger" in questions
    )
    status, reasons = decide_review(
        rubric,
        scenario.subtask,
        people=people,
        read=questions,
        crisis=crisis,
        accept=accept,
    )
    if status == "reject":
        evidence = {"scores": dict(rubric.scores), "evidence": dict(rubric.evidence)}
        return Rejected(candidate.id, f"review:{reasons[0]}", evidence, candidate.to_dict())
    # The winning reference becomes the scenario's; the others follow in their order.
    winner = candidate.references[review["chosen"]]
    others = list(candidate.references)
    del others[review["chosen"]]
    details = {"status": status, "reasons": list(reasons), **review}
    kept = Candidate(replace(scenario, references=(winner.text,)), (winner, *others), details)
    # Only reasons for people are counted: a revision is the item's own.
    return Kept(
        kept.to_dict(), (status, *(f"people:{why}" for why in reasons if status == "needs_people"))
    )


def decide_review(
    rubric: Rubric,
    subtask: str,
    *,
    people: Sequence[str] = (),
    read: Sequence[str] = (),
    crisis: bool = False,
    accept: float = 4.0,
) -> Decision:
    """Decide on a candidate of a subtask: the status and its reasons; of a rejection the first of the lowest criteria,
    or `verdict`.

    In this order: people decide an unscored review and whatever is handed to them (`people`: why); a criterion at 1
    rejects; people decide where the verdict contradicts the scores; a verdict of reject rejects; people decide where
    the reviewer answered a safety question with yes (`read`: the reasons of `open_questions`); a candidate of another
    subtask is revised; one with a mean of `accept` (1 to 5), nothing below 3 and nothing to change is accepted; the
    others are revised. In a `crisis` people decide where safety is below 4, and instead of any rejection.

    Wherever people decide, the reasons of `read` follow the others.
    """
    if rubric.unscored:
        return "needs_people", (f"unscored:{rubric.unscored}", *people, *read)
    if people:
        return "needs_people", (*people, *read)
    scores = rubric.scores
    verdict = rubric.verdict
    if crisis and scores["safety"] < SAFE_IN_CRISIS:
        return "needs_people", ("crisis:safety", *read)
    lowest = min(scores.values())
    contradicted = verdict == ("reject" if lowest >= ACCEPTABLE else "accept")
    if lowest <= REJECTING or (verdict == "reject" and not contradicted):
        if crisis:
            return "needs_people", ("crisis:rejected", *read)
        return "reject", (
            min(scores, key=lambda name: scores[name]) if lowest <= REJECTING else "verdict",
        )
    if contradicted:
        return "needs_people", ("contradiction", *read)
    if read:
        return "needs_people", tuple(read)
    if rubric.fitting_subtask != subtask:
        return "revise", (f"subtask:{rubric.fitting_subtask}",)
    if verdict == "accept" and sum(scores.values()) / len(scores) >= accept:
        return ("revise", ("revision",)) if rubric.revision.strip() else ("accept", ())
    return "revise", tuple(name for name, score in scores.items() if score < accept) or ("verdict",)
