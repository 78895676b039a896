"""The review stage: a model reviews every candidate, people get what it cannot decide.

Three phases, each a file in the stage's folder, so that a kill repeats only what was in flight:

calls/part-00000.jsonl       every reply, raw, as it came (`asking`); those to gold comparisons in calls/part-gold.jsonl
remarks.json                 whether the reviewer passed the gate (`review_gate`), before it compares anything
reviews/part-00000.jsonl     map: a candidate's comparisons and review as numbers, a line each
hand_off.jsonl               reduce: which candidates people decide, and why; over all parts at once
kept, rejected               what each candidate came to
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from h2htalk.curation.candidates import Candidate
from h2htalk.curation.model_calls.model_identity import model_identity
from h2htalk.curation.model_calls.prompts import Prompts
from h2htalk.curation.model_calls.stored_calls import Asking, AskSettings
from h2htalk.curation.outcomes import Kept, Outcomes, PartRule, Record, Rejected
from h2htalk.curation.pipeline import Incomplete, Opener, Stage, claim, require_finished, run_stage
from h2htalk.curation.review.faireval import Calibration, audit_slice, hand_off
from h2htalk.curation.review.gold_check import Gatekeeper, read_gold
from h2htalk.curation.review.review_outcome import choose_reference, decide
from h2htalk.curation.review.review_record import Reviewed, rubric_of, told, with_reference_first
from h2htalk.curation.review.reviewer import (
    TEMPLATES,
    Reviewer,
    compared,
    comparisons,
    read_comparisons,
    read_rubric,
)
from h2htalk.curation.settings import CurateSpec, ReviewSettings
from h2htalk.curation.stage_folder import Counts, StageFolder
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError, DataError

# 2: a reference wins by its share of comparisons; the hand-off is of candidates
# 3: nobody in crisis is rejected by a machine alone; a rejection by verdict says so; full agreement is no entropy; what
#    a comparison came to is kept with its samples
VERSION = 3
# Settings that decide over stored answers; a margin may make another reference win, whose review is then asked for.
_ARITHMETIC = frozenset({"margin", "hand_off", "audit", "accept"})


def run_review(spec: CurateSpec, workspace: Workspace, key: bytes) -> Counts:
    """Review what compose kept.

    Raises:
        ConfigError: no model is named, or the stage was made with other settings.
        Incomplete: calls failed; the same command asks for them again.
    """
    settings = spec.review
    prompts = Prompts.load(spec.prompts)
    folder = workspace.stage("review")
    made = make_stage(spec, workspace, key)
    before = workspace.stage("compose")
    claim(folder, made, require_finished(before))
    reviewer = Reviewer(settings.model, settings.temperature, spec.seed, prompts, key)
    _review_parts(spec, reviewer, before, folder)
    _hand_off(settings, spec.seed, before, folder)
    return run_stage(made, workspace)


def make_stage(spec: CurateSpec, workspace: Workspace, key: bytes) -> Stage:
    """The stage `review` of a curation: what it is made with, and its last phase; `run_review` goes through all.

    Raises:
        ConfigError: no model is named, or a script, a template or the gold file cannot be read.
        DataError: a line of the gold file is no comparison; names file and line.
    """
    settings = spec.review
    if not settings.model:
        raise ConfigError(
            "review.model is empty: name who reviews, such as anthropic:claude-sonnet-5 or scripted:FILE"
        )
    prompts = Prompts.load(spec.prompts)
    folder = workspace.stage("review").path
    names = [f"{language}/{name}" for language in LANGUAGES for name in TEMPLATES]
    gold = {"gold": read_gold(Path(settings.gold)).fingerprint} if settings.gold else {}
    return Stage(
        "review",
        VERSION,
        {
            **gold,
            "model": model_identity(settings.model),
            "samples": settings.samples,
            "margin": settings.margin,
            "hand_off": settings.hand_off,
            "audit": settings.audit,
            "accept": settings.accept,
            "temperature": settings.temperature,
            "seed": spec.seed,
            "prompts": prompts.fingerprint(*names),
        },
        Opener(open_rule, (folder, settings.accept, settings.margin)),
        alone=True,
        arithmetic=_ARITHMETIC,
    )


# --- Map: ask, and read what came ------------------------------------------------------------------------------


def _review_parts(spec: CurateSpec, reviewer: Reviewer, before: StageFolder, folder: StageFolder) -> None:
    """Ask for the parts that lack their reviews; a part whose calls failed is left, the others are still asked."""
    settings = AskSettings(spec.review.model, spec.review.max_cost, spec.review.batch, spec.prices)
    gold = read_gold(Path(spec.review.gold)) if spec.review.gold else None
    gatekeeper = Gatekeeper(folder, gold, reviewer, spec.review)
    failed = []
    with Asking(settings, folder.path, "review") as asking:
        for part in before.parts():
            path = reviews_path(folder, part)
            if path.exists():
                continue
            candidates = [Candidate.from_dict(record) for record in before.part_records(part)]
            # Not in the `try`: where gold cannot be asked, no part can be compared.
            comparing = not any(map(compared, candidates)) or gatekeeper.admits(asking)
            try:
                reviewed = _review(candidates, reviewer, asking, part, spec.review, comparing)
            except Incomplete as error:
                failed.append(error)
                continue
            write_jsonl(path, (item.to_dict() for item in reviewed))
    if failed:
        raise Incomplete(f"{folder.path}: {'; '.join(map(str, failed[:3]))}; the same command asks again")
    gatekeeper.close()


def reviews_path(folder: StageFolder, part: str) -> Path:
    """Where a part's reviews lie as numbers."""
    return folder.path / "reviews" / f"{part}.jsonl"


def _review(
    candidates: Sequence[Candidate],
    reviewer: Reviewer,
    asking: Asking,
    part: str,
    settings: ReviewSettings,
    comparing: bool,
) -> Iterator[Reviewed]:
    """Two rounds: the comparisons, then the review of each candidate with the reference that won."""
    several = [candidate for candidate in candidates if comparing and compared(candidate)]
    requests = [r for candidate in several for r in comparisons(reviewer, candidate, settings.samples)]
    replies = asking.ask(requests, part)
    pairs = {c.id: read_comparisons(c, replies, settings.samples, settings.margin) for c in several}
    found = []
    for candidate in candidates:
        made = pairs.get(candidate.id, ())
        gated = not comparing and bool(compared(candidate))
        found.append((candidate, made, choose_reference(made, len(candidate.references)), gated))
    rubrics = [
        reviewer.rubric(candidate, candidate.references[chosen].text) for candidate, _, chosen, _ in found
    ]
    replies = asking.ask(rubrics, part)
    return (
        Reviewed(
            candidate.id, made, chosen, rubric_of(read_rubric(replies[request.id, 0])), settings.margin, gated
        )
        for (candidate, made, chosen, gated), request in zip(found, rubrics, strict=True)
    )


# --- Reduce: who is decided by people ---------------------------------------------------------------------------


def _hand_off(settings: ReviewSettings, seed: int, before: StageFolder, folder: StageFolder) -> None:
    """Write which candidates people decide. One line a candidate; the cut is over all of them."""
    path = folder.path / "hand_off.jsonl"
    if path.exists():
        return
    ids: list[str] = []
    worst: dict[str, Calibration] = {}  # of each candidate the comparison that is least sure
    reasons: dict[str, list[str]] = {}
    for part in before.parts():
        for _, record in read_jsonl(reviews_path(folder, part)):
            reviewed = Reviewed.from_dict(record, settings.margin)
            ids.append(reviewed.id)
            if reviewed.gated:
                reasons.setdefault(reviewed.id, []).append("gate")
            found = {str(number): pair.calibration for number, pair in enumerate(reviewed.pairs)}
            for why in hand_off(found, share=0, audit=0).values():
                reasons.setdefault(reviewed.id, []).extend(why)
            if found:
                worst[reviewed.id] = max(found.values(), key=lambda pair: (pair.bpde or 0.0, -pair.gap))
    for name, why in hand_off(worst, share=settings.hand_off, audit=0, seed=seed).items():
        reasons.setdefault(name, []).extend(why)
    for name in audit_slice(ids, settings.audit, seed):
        reasons.setdefault(name, []).append("audit")
    write_jsonl(path, ({"id": name, "people": sorted(set(why))} for name, why in sorted(reasons.items())))


# --- What each candidate came to --------------------------------------------------------------------------------


def open_rule(folder: Path, accept: float, margin: float) -> PartRule:
    """The rule over a part of candidates; reads what the other two phases wrote."""
    people = {record["id"]: tuple(record["people"]) for _, record in read_jsonl(folder / "hand_off.jsonl")}

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
        raise DataError(f"{candidate.id} has no review; make the stage again with --again review")
    reviewed = reviews[candidate.id]
    decision = decide(
        reviewed.rubric,
        candidate.scenario.subtask,
        people=people.get(candidate.id, ()),
        crisis=candidate.scenario.tags.risk != "none",
        accept=accept,
    )
    if decision.status == "reject":
        evidence = {"scores": dict(reviewed.rubric.scores), "evidence": dict(reviewed.rubric.evidence)}
        return Rejected(candidate.id, f"review:{decision.reasons[0]}", evidence, record)
    made = with_reference_first(candidate, reviewed.chosen, told(reviewed, decision))
    # A status and the reasons that people are asked for, without what only this item has.
    reasons = [f"people:{reason}" for reason in decision.reasons] if decision.status == "needs_people" else []
    return Kept(made.to_dict(), (decision.status, *reasons))
