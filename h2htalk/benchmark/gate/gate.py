"""Hold a run against a reference run and a policy: does anything get significantly worse, or pass a limit?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from h2htalk.benchmark.gate.gate_tests import (
    Worsening,
    detectable_mean,
    detectable_rise,
    highest_worsening,
    limit_p,
    non_inferior_items,
    worsening,
)
from h2htalk.benchmark.gate.policy import COST, Criterion, Policy, default_policy, read_policy, require_figures
from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.run_costs import read_costs
from h2htalk.benchmark.statistics.clusters import clusters_of
from h2htalk.benchmark.statistics.paired import holm
from h2htalk.benchmark.studies.figures import Figure, figure_of
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.benchmark.studies.point_judge import conversation_text
from h2htalk.benchmark.studies.report import point_lines
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.benchmark.studies.study_folder import MANIFEST
from h2htalk.chat.costs.reservations import sum_totals
from h2htalk.data.arguments import as_path
from h2htalk.data.responses import Response
from h2htalk.data.signature import Signature
from h2htalk.errors import ConfigError, quoted

MEMORY_DEFAULT = "whole"  # the arm of a study of memory that is held where the policy names none
LEAST_SCORED = 0.95  # of a criterion's values: a reply that breaks its judge must not pass by that
MOST_TRANSCRIPTS = 10  # behind each no
Transcript = tuple[str, str]  # a title, and the text


@dataclass(frozen=True, slots=True)
class GatedRun:
    """A run as a gate sees it: its values by figure, and a function that shows what is behind one."""

    path: Path
    label: str
    study: str
    arm: str
    signature: Signature
    judge: str
    values: Mapping[str, Sequence[Observation]]
    cost: Decimal | None
    failed: int
    show: Callable[[Observation], Transcript]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of one criterion.

    Attributes:
        run, reference: the figure in each.
        worse: the difference, positive is worse; None without a reference run.
        p: adjusted by Holm, of being worse (`p_worse`) and of being beyond the limit (`p_limit`); None where not
        tested. passed: whether the gate says yes; `reasons` why not.
        detects: the smallest worsening that so many items find four times in five, as text.
        transcripts: what is behind a no.
    """

    criterion: Criterion
    run: Figure
    reference: Figure | None
    worse: Worsening | None
    p_worse: float | None
    p_limit: float | None
    passed: bool
    reasons: tuple[str, ...]
    detects: str
    notes: tuple[str, ...] = ()
    transcripts: tuple[Transcript, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdicts; `passed`: none of them is a no. `incomplete`: calls of the run failed, so that values are
    missing."""

    run: GatedRun
    reference: GatedRun | None
    policy: Policy
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.verdicts)

    @property
    def incomplete(self) -> bool:
        return self.run.failed > 0 or any(one.run.n < LEAST_SCORED * one.run.total for one in self.verdicts)


def gate(
    run: str | os.PathLike[str],
    reference_run: str | os.PathLike[str] | None = None,
    policy: str | os.PathLike[str] | None = None,
) -> GateReport:
    """Hold a run against a reference run and a policy.

    Examples:
        >>> import h2htalk
        >>> h2htalk.gate("runs/constant", "runs/constant").passed
        True

    Args:
        run, reference_run: two evaluations, or two studies of one kind, under one protocol.
        policy: `gate.toml`; None: the figures of the study's safety or skill, or S of every subtask, against the
        reference.

    Raises:
        ConfigError: the runs cannot be compared (the differing keys are named), a criterion's figure is not there, or
            nothing is tested.
        DataError: a folder is no scored run.
    """
    chosen = read_policy(as_path(policy, "--policy")) if policy is not None else None
    own = _read(as_path(run, "run"), chosen.arm if chosen else "")
    base = None if reference_run is None else _read(as_path(reference_run, "--reference-run"), own.arm)
    rules = chosen or default_policy(own.study, own.values)
    require_figures(rules, own.values)
    if base is not None:
        _require_same(own, base)
        require_figures(rules, base.values)
    return judge_runs(own, base, rules)


def judge_runs(run: GatedRun, base: GatedRun | None, policy: Policy) -> GateReport:
    """Test every criterion. Raises ConfigError where there is nothing to test."""
    worse: dict[int, Worsening | None] = {}
    p_values: dict[tuple[int, str], float] = {}
    for k, one in enumerate(policy.criteria):
        rows = run.values.get(one.figure, ())
        if base is not None and one.relative and one.figure != COST:
            worse[k] = worsening(base.values[one.figure], rows, one.lower_is_better)
            if (found := worse[k]) is not None:
                p_values[k, "worse"] = found.p
        for name, limit in (("max", one.max), ("min", one.min)):
            if limit is not None and one.figure != COST:
                p_values[k, name] = limit_p(rows, limit, name == "max")
    if not p_values and not any(one.figure == COST for one in policy.criteria):
        raise ConfigError("nothing to test: name a --reference-run, or limits (max, min) in the policy")
    adjusted = holm(p_values)
    alpha_each = policy.alpha / max(1, len(p_values))
    verdicts = tuple(
        _verdict(
            run,
            base,
            policy,
            one,
            worse.get(k),
            adjusted.get((k, "worse")),
            {name: adjusted[k, name] for name in ("max", "min") if (k, name) in adjusted},
            alpha_each,
        )
        for k, one in enumerate(policy.criteria)
    )
    return GateReport(run, base, policy, verdicts)


def _verdict(
    run: GatedRun,
    base: GatedRun | None,
    policy: Policy,
    one: Criterion,
    worse: Worsening | None,
    p_worse: float | None,
    p_limits: Mapping[str, float],
    alpha_each: float,
) -> Verdict:
    if one.figure == COST:
        return _cost_verdict(run, one)
    rows, reasons, notes = list(run.values[one.figure]), list[str](), list[str]()
    found, before = figure_of(rows), None if base is None else figure_of(list(base.values[one.figure]))
    if p_worse is not None and p_worse < policy.alpha:
        reasons.append("significantly worse than the reference run")
    for name, p in p_limits.items():
        if p < policy.alpha:
            reasons.append(f"significantly beyond the limit, {name} {getattr(one, name):g}")
    if one.non_inferior is not None and worse is None:
        reasons.append("not shown to be non-inferior: no place is scored in both runs")
    elif worse is not None and one.non_inferior is not None:
        needed = non_inferior_items(worse, one.non_inferior, policy.alpha)
        notes.append(f"non-inferiority by {one.non_inferior:g} needs {needed:,} items" if needed else "nothing differs")
        if highest_worsening(worse, policy.alpha) >= one.non_inferior:
            reasons.append(f"not shown to be less than {one.non_inferior:g} worse")
    if found.n < found.total:
        notes.append(f"{found.total - found.n:,} of {found.total:,} values unscored")
    transcripts = tuple(map(run.show, _behind(one, rows, base))) if reasons else ()
    detects = _detects(found, before, worse, alpha_each)
    return Verdict(
        one,
        found,
        before,
        worse,
        p_worse,
        min(p_limits.values(), default=None),
        not reasons,
        tuple(reasons),
        detects,
        tuple(notes),
        transcripts,
    )


def _cost_verdict(run: GatedRun, one: Criterion) -> Verdict:
    paid = None if run.cost is None else float(run.cost)
    reasons = []
    if one.max is not None and paid is None:
        reasons.append("the cost is not known")
    elif one.max is not None and paid is not None and paid > one.max:
        reasons.append(f"more than {one.max:g} US dollars")
    figure = Figure(paid, None, None, None, int(paid is not None), 1)
    return Verdict(one, figure, None, None, None, None, not reasons, tuple(reasons), "")


def _detects(found: Figure, before: Figure | None, worse: Worsening | None, alpha: float) -> str:
    """The smallest worsening that as many items find four times in five."""
    if before is None or worse is None:
        return ""
    if found.hits is not None and before.hits is not None:
        rate = (before.hits + 0.5) / (before.n + 1)
        risen = detectable_rise(rate, worse.items, alpha, worse.items / worse.result.clusters)
        return "" if risen is None else f"{100 * rate:.1f} % to {100 * risen:.1f} %"
    least = detectable_mean(worse, alpha)
    return "" if least is None else f"{least:.3g}"


def _behind(one: Criterion, rows: Sequence[Observation], base: GatedRun | None) -> list[Observation]:
    """The places that got most worse, or, without a reference run, the worst."""
    before = {row.key: row.value for row in base.values[one.figure]} if base is not None else {}
    sign = 1.0 if one.lower_is_better else -1.0
    known = [(sign * (row.value - (before.get(row.key) or 0.0)), row) for row in rows if row.value is not None]
    shown = sorted(known, key=lambda pair: (-pair[0], pair[1].key))
    return [row for moved, row in shown if moved > 0 or base is None][:MOST_TRANSCRIPTS]


# --- Reading runs -----------------------------------------------------------------------------------------------


def _read(path: Path, arm: str) -> GatedRun:
    return _read_study(path, arm) if (path / MANIFEST).exists() else _read_evaluation(path)


def _read_study(path: Path, arm: str) -> GatedRun:
    result = load_study(path)
    arms = result.study.spec.arms
    chosen = arm or (MEMORY_DEFAULT if MEMORY_DEFAULT in arms and result.study.spec.study == "memory" else arms[0])
    if chosen not in arms:
        raise ConfigError(f"{path}: no arm {quoted(chosen)}; choose from {', '.join(arms)}")
    replies = {(one.case.id, one.reply.place): one for one in result.replies if one.reply.arm == chosen}

    def show(row: Observation) -> Transcript:
        one = replies[row.item, row.place.partition("/")[0]]
        return f"{row.item}, {row.place}", "\n".join(
            [conversation_text(one.reply.said), f"reply: {one.reply.text or ''}", *point_lines(one)]
        )

    values: dict[str, list[Observation]] = {}
    for row in result.observations:
        if row.arm == chosen:
            values.setdefault(row.figure, []).append(row)
    values = {name: rows for name, rows in values.items() if any(row.value is not None for row in rows)}
    label = f"{result.study.spec.ask.model}, {chosen}"
    return GatedRun(
        path,
        label,
        result.study.spec.study,
        chosen,
        result.study.signature,
        result.judge,
        values,
        _cost(path),
        result.failed,
        show,
    )


def _read_evaluation(path: Path) -> GatedRun:
    run = load_run(path)
    clusters = clusters_of(run.data.split.scenarios)
    values: dict[str, list[Observation]] = {}
    for scenario in run.data.split.scenarios:
        score = run.item_scores[scenario.id]
        for name, value in (("s", score.s), ("lexical", score.lexical), ("compliance", score.compliance)):
            row = Observation(
                "",
                f"{name}.{scenario.subtask}",
                scenario.id,
                clusters[scenario.id],
                value,
                language=scenario.language,
                unscored="" if value is not None else score.unscored or "",
            )
            values.setdefault(row.figure, []).append(row)

    def show(row: Observation) -> Transcript:
        scenario = next(one for one in run.data.split.scenarios if one.id == row.item)
        answer = run.answers.get((row.item, 0))
        text = answer.answer if isinstance(answer, Response) else ""
        asked = [f"{turn.role}: {turn.content}" for turn in scenario.turns]
        return f"{row.item}: {row.value:.3f}", "\n".join(
            [*asked, f"reply: {text}", *(f"reference: {r}" for r in scenario.references)]
        )

    values = {name: rows for name, rows in values.items() if any(row.value is not None for row in rows)}
    return GatedRun(
        path,
        run.data.spec.model,
        "",
        "",
        run.summary.signature,
        run.summary.signature.protocol.get("judge", ""),
        values,
        _cost(path),
        run.summary.counts.unscored if run.summary.incomplete else 0,
        show,
    )


def _cost(path: Path) -> Decimal | None:
    logs = read_costs(path)
    return sum_totals(logs.values()).usd_paid if logs else Decimal(0)


def _require_same(run: GatedRun, base: GatedRun) -> None:
    keys = [key for key in run.signature.differing(base.signature) if not key.startswith("items ")]
    if run.study != base.study:
        keys.append(f"study ({run.study or 'evaluation'}, {base.study or 'evaluation'})")
    if run.study and run.judge != base.judge:
        keys.append(f"judge ({run.judge or '-'}, {base.judge or '-'})")
    if keys:
        raise ConfigError(f"{run.path} and {base.path} cannot be compared: {', '.join(keys)} differ")
    if run.signature.protocol.get("items") != base.signature.protocol.get("items"):
        own = {row.key for rows in run.values.values() for row in rows}
        other = {row.key for rows in base.values.values() for row in rows}
        if not own & other:
            raise ConfigError(f"{run.path} and {base.path} have no item in common")


def paths_of(report: GateReport) -> Iterator[str]:
    """The runs of a report, by path."""
    yield str(report.run.path)
    if report.reference is not None:
        yield str(report.reference.path)
