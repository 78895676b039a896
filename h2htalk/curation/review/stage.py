"""The review stage: a model reviews every candidate, and people decide what it cannot.

Three phases, each with files in the stage's folder, so that after a kill only calls in flight are repeated:

calls.jsonl                  the call store: every reply as it came, those to gold comparisons too
notes.json                   the result of the judge check (`gold_check`), before anything is compared
reviews/part-00000.jsonl     map: a candidate's comparisons and review as numbers, a line each
escalated.jsonl              reduce: the candidates that people decide, with reasons; over all parts together
kept, rejected               the outcome of each candidate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from h2htalk.chat.engines import model_identity
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls
from h2htalk.curation.candidates import Candidate
from h2htalk.curation.outcomes import Kept, Outcomes, PartRule, Record, Rejected
from h2htalk.curation.prompts.templates import Prompts
from h2htalk.curation.review.faireval import Calibration, EvidenceSample, audit_slice, calibrate, escalate
from h2htalk.curation.review.gold_check import NOTE, Gold, add_missing_note, may_compare, read_gold
from h2htalk.curation.review.review_outcome import ComparedPair, ReviewDecision, Rubric, choose_reference, decide_review
from h2htalk.curation.review.reviewer import (
    TEMPLATES,
    Reviewer,
    RubricReply,
    compared_pairs,
    comparisons,
    read_comparisons,
    read_rubric,
)
from h2htalk.curation.run import RuleFactory, StageRun, raise_incomplete
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stage_folder import StageFolder
from h2htalk.curation.stages import ReviewSettings, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.responses import Failure
from h2htalk.data.scenario import notes_crisis
from h2htalk.errors import ConfigError, DataError, IncompleteError

# 2: a reference wins by its share of comparisons; the hand-off is of candidates
# 3: in a crisis people decide instead of a rejection; a rejection by verdict has its own reason; an item whose samples
#    all agree is never handed over for its entropy; the results of comparisons are kept with their samples
# 4: a possible crisis counts as one
VERSION = 4
STAGE = "review"
# They decide over stored replies; with another margin another reference may win, whose review is then called for.
_ARITHMETIC = frozenset({"margin", "escalate", "audit", "accept"})


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> StageRun:
    """The stage as a specification sets it.

    Raises:
        ConfigError: no model is named, a script, a template or the gold file cannot be read, or no reviewer could pass
            on it.
        DataError: a line of the gold file is no comparison; names file and line.
    """
    settings = spec.section(ReviewSettings)
    if not settings.model:
        raise ConfigError("review.model is empty: name a reviewer, such as anthropic:claude-sonnet-5 or scripted:FILE")
    prompts = Prompts.load(spec.prompts)
    folder = workspace.stage(STAGE)
    names = [f"{language}/{name}" for language in LANGUAGES for name in TEMPLATES]
    gold = read_gold(Path(settings.gold)) if settings.gold else None
    calls = CallSettings(settings.model, settings.max_cost, settings.batch, spec.prices, schema=True)
    reviewer = Reviewer(settings.model, settings.temperature, spec.seed, prompts, key)
    before = workspace.stage(stage_before(STAGE))
    values = {key: value for key, value in asdict(settings).items() if key not in ("max_cost", "batch")}
    values |= {
        "model": model_identity(settings.model),
        "gold": gold.fingerprint if gold else "",
        "seed": spec.seed,
        "prompts": prompts.fingerprint(*names),
    }
    return StageRun(
        STAGE,
        VERSION,
        values,
        RuleFactory(open_rule, (folder.path, settings.accept, settings.margin)),
        calls=(calls,),
        arithmetic=_ARITHMETIC,
        prepare=partial(_review_all, settings, calls, gold, reviewer, before),
    )


# --- Map: call, and read the replies ----------------------------------------------------------------------------


def _review_all(
    settings: ReviewSettings,
    call_settings: CallSettings,
    gold: Gold | None,
    reviewer: Reviewer,
    before: StageFolder,
    folder: StageFolder,
) -> None:
    """Review the parts that have no reviews, and choose the candidates that people decide.

    Raises:
        IncompleteError: calls of some parts failed; the other parts are reviewed.
    """
    failed = []
    with ModelCalls(call_settings, folder.path, STAGE) as calls:
        for part in before.parts():
            path = reviews_path(folder, part)
            if path.exists():
                continue
            candidates = [Candidate.from_dict(record) for record in before.part_records(part)]
            # Not in the `try`: where the judge check fails, no part can be compared.
            comparing = not any(map(compared_pairs, candidates)) or may_compare(folder, gold, reviewer, calls, settings)
            try:
                reviewed = _review(candidates, reviewer, calls, part, settings, comparing)
            except IncompleteError as error:
                failed.append(error)
            else:
                write_jsonl(path, (review.to_dict() for review in reviewed))
    raise_incomplete(folder, failed)
    add_missing_note(folder, gold)
    _escalate(settings, reviewer.seed, before, folder)


def reviews_path(folder: StageFolder, part: str) -> Path:
    """The file of a part's reviews."""
    return folder.path / "reviews" / f"{part}.jsonl"


def _review(
    candidates: Sequence[Candidate],
    reviewer: Reviewer,
    calls: ModelCalls,
    part: str,
    settings: ReviewSettings,
    comparing: bool,
) -> list[Reviewed]:
    """Compare the references of candidates, then review each candidate with the winning reference."""
    several = [candidate for candidate in candidates if comparing and compared_pairs(candidate)]
    requests = [r for candidate in several for r in comparisons(reviewer, candidate, settings.samples)]
    replies = calls.ask(requests, part)
    pairs = {c.id: read_comparisons(c, replies, settings.samples, settings.margin) for c in several}
    winners = [choose_reference(pairs.get(c.id, ()), len(c.references)) for c in candidates]
    rubrics = [
        reviewer.rubric(candidate, candidate.references[winner].text)
        for candidate, winner in zip(candidates, winners, strict=True)
    ]
    replies = calls.ask(rubrics, part)
    return [
        Reviewed(
            candidate.id,
            pairs.get(candidate.id, ()),
            winner,
            rubric_of(read_rubric(replies[request.id, 0])),
            settings.margin,
            not comparing and bool(compared_pairs(candidate)),
        )
        for candidate, winner, request in zip(candidates, winners, rubrics, strict=True)
    ]


# --- Reduce: what people decide ---------------------------------------------------------------------------------


def _escalate(settings: ReviewSettings, seed: int, before: StageFolder, folder: StageFolder) -> None:
    """Write the candidates that people decide; shares are of all candidates."""
    path = folder.path / "escalated.jsonl"
    if path.exists():
        return
    ids: list[str] = []
    doubtful: dict[str, Calibration] = {}  # the most doubtful comparison of each candidate
    reasons: dict[str, list[str]] = {}
    for part in before.parts():
        for _, record in read_jsonl(reviews_path(folder, part)):
            reviewed = Reviewed.from_dict(record, settings.margin)
            ids.append(reviewed.id)
            if reviewed.not_compared:
                reasons.setdefault(reviewed.id, []).append(NOTE)
            found = {str(number): pair.calibration for number, pair in enumerate(reviewed.pairs)}
            for why in escalate(found, share=0, audit=0).values():
                reasons.setdefault(reviewed.id, []).extend(why)
            if found:
                doubtful[reviewed.id] = max(found.values(), key=lambda pair: (pair.bpde or 0.0, -pair.gap))
    for name, why in escalate(doubtful, share=settings.escalate, audit=0, seed=seed).items():
        reasons.setdefault(name, []).extend(why)
    for name in audit_slice(ids, settings.audit, seed):
        reasons.setdefault(name, []).append("audit")
    write_jsonl(path, ({"id": name, "people": sorted(set(why))} for name, why in sorted(reasons.items())))


# --- The outcome of each candidate ------------------------------------------------------------------------------


def open_rule(folder: Path, accept: float, margin: float) -> PartRule:
    """The rule for a part of candidates, which reads the files of the other two phases."""
    people = {record["id"]: tuple(record["people"]) for _, record in read_jsonl(folder / "escalated.jsonl")}

    def rule(records: Sequence[Record], part: str) -> Sequence[Outcomes]:
        path = reviews_path(StageFolder(folder), part)
        reviews = {r["id"]: Reviewed.from_dict(r, margin) for _, r in read_jsonl(path)}
        return [[_outcome(record, reviews, people, accept)] for record in records]

    return rule


def _outcome(
    record: Record,
    reviews: Mapping[str, Reviewed],
    people: Mapping[str, tuple[str, ...]],
    accept: float,
) -> Kept | Rejected:
    candidate = Candidate.from_dict(record)
    if candidate.id not in reviews:
        raise DataError(f"{candidate.id} has no review; make the stage again with --from-stage {STAGE}")
    reviewed = reviews[candidate.id]
    decision = decide_review(
        reviewed.rubric,
        candidate.scenario.subtask,
        people=people.get(candidate.id, ()),
        crisis=candidate.scenario.tags.risk != "none" or notes_crisis(candidate.scenario.metadata),
        accept=accept,
    )
    if decision.status == "reject":
        evidence = {"scores": dict(reviewed.rubric.scores), "evidence": dict(reviewed.rubric.evidence)}
        return Rejected(candidate.id, f"review:{decision.reasons[0]}", evidence, record)
    kept = with_reference_first(candidate, reviewed.chosen, review_details(reviewed, decision))
    # Only reasons for people are counted: a revision is the item's own.
    reasons = [f"people:{reason}" for reason in decision.reasons] if decision.status == "needs_people" else []
    return Kept(kept.to_dict(), (decision.status, *reasons))


# --- The records of a candidate's review ---


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A candidate's comparisons and review, as numbers.

    `margin`: of ties, with which the comparisons were read; `not_compared`: the judge check refused the reviewer.
    """

    id: str
    pairs: tuple[ComparedPair, ...]
    chosen: int
    rubric: Rubric
    margin: float
    not_compared: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The replies, without what follows from them by arithmetic."""
        return {
            "id": self.id,
            **({"not_compared": True} if self.not_compared else {}),
            "chosen": self.chosen,
            "rubric": self.rubric.to_dict(),
            "pairs": [{"first": pair.first, "second": pair.second, "samples": _samples(pair)} for pair in self.pairs],
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], margin: float) -> Reviewed:
        """Read `to_dict`; `margin` is the setting with which it was written."""
        pairs = []
        for pair in raw["pairs"]:
            samples = tuple(EvidenceSample(*sample) for sample in pair["samples"])
            pairs.append(ComparedPair(pair["first"], pair["second"], samples, calibrate(samples, margin=margin)))
        rubric, not_compared = Rubric(**raw["rubric"]), raw.get("not_compared", False)
        return cls(raw["id"], tuple(pairs), raw["chosen"], rubric, margin, not_compared)


def _samples(pair: ComparedPair) -> list[list[Any]]:
    return [[sample.order, sample.score_a, sample.score_b, sample.status] for sample in pair.samples]


def rubric_of(read: RubricReply | Failure) -> Rubric:
    """The review in a reply, or an unscored one."""
    if isinstance(read, Failure):
        return Rubric(unscored=read.reason)
    return Rubric(read.scores(), read.evidence(), read.fitting_subtask, read.revision, read.verdict)


def review_details(reviewed: Reviewed, decision: ReviewDecision) -> dict[str, Any]:
    """The `review` of a kept candidate: all numbers that another margin or share would need."""
    return {
        "status": decision.status,
        "reasons": list(decision.reasons),
        "rubric": reviewed.rubric.to_dict(),
        "chosen": reviewed.chosen,
        "margin": reviewed.margin,
        "pairs": [_pair_details(pair) for pair in reviewed.pairs],
    }


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
        "samples": _samples(pair),
    }


def with_reference_first(candidate: Candidate, chosen: int, review: Mapping[str, Any]) -> Candidate:
    """The candidate with the winning reference as its scenario's; the others follow in their order."""
    references = candidate.references[chosen], *candidate.references[:chosen], *candidate.references[chosen + 1 :]
    scenario = replace(candidate.scenario, references=(references[0].text,))
    return Candidate(scenario, references, review)
