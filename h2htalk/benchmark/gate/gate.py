"""Hold a run against a reference run and a policy: does anything get significantly worse, or pass a limit?"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.benchmark.gate.gate_tests import (
    Worsening,
    detectable_mean,
    detectable_rise,
    highest_worsening,
    limit_p,
    non_inferior_items,
    worsening,
    worst_p,
)
from h2htalk.benchmark.gate.gated_run import GatedRun, Transcript, read_gated_run, require_comparable
from h2htalk.benchmark.gate.policy import COST, Criterion, Policy, default_policy, read_policy, require_figures
from h2htalk.benchmark.statistics.paired import holm
from h2htalk.benchmark.studies.figures import Figure, figure_of
from h2htalk.benchmark.studies.observations import Observation
from h2htalk.data.arguments import as_path
from h2htalk.errors import ConfigError, counted

LEAST_SCORED = 0.95  # of a criterion's values: a reply that breaks its judge must not pass by that
MOST_TRANSCRIPTS = 10  # behind each no


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of one criterion.

    Attributes:
        run, reference: the figure in each; reference is None without a reference run.
        worse: the difference, positive is worse; None where nothing is compared.
        p: adjusted by Holm: `worse` than the reference, beyond `max`, beyond `min`; only of what is tested.
        reasons: why the gate says no; none: it says yes.
        detects: the smallest worsening that so many items find four times in five, as text.
        powerless: so few independent items (cases, families) that no difference, or nothing beyond a limit, could be
            significant.
        not_tested: on what the figure was not tested, and why; empty where nothing is missing.
        transcripts: what is behind a no.
    """

    criterion: Criterion
    run: Figure
    reference: Figure | None = None
    worse: Worsening | None = None
    p: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    detects: str = ""
    powerless: bool = False
    not_tested: str = ""
    transcripts: tuple[Transcript, ...] = field(default=(), repr=False)

    @property
    def passed(self) -> bool:
        return not self.reasons


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdicts; `passed`: none of them is a no. `incomplete`: a yes says little, because the run lacks items of the
    reference run, calls of a run failed, values of a criterion are missing, or too few items are compared."""

    run: GatedRun
    reference: GatedRun | None
    policy: Policy
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.verdicts)

    @property
    def incomplete(self) -> bool:
        runs = [one for one in (self.run, self.reference) if one is not None]
        figures = [figure for one in self.verdicts for figure in (one.run, one.reference) if figure is not None]
        return (
            any(one.failed for one in runs)
            or any(one.powerless or one.not_tested for one in self.verdicts)
            or any(figure.n < LEAST_SCORED * figure.total for figure in figures)
        )


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
        reference. A figure that the run lacks is not tested.

    Raises:
        ConfigError: the runs cannot be compared (the differing keys are named), neither they nor the study know a
            criterion's figure, or nothing is tested.
        DataError: a folder is no scored run.
    """
    chosen = read_policy(as_path(policy, "--policy")) if policy is not None else None
    own = read_gated_run(as_path(run, "run"), chosen.arm if chosen else "")
    base = None if reference_run is None else read_gated_run(as_path(reference_run, "--reference-run"), own.arm)
    if base is not None:
        require_comparable(own, base)
    values = {**({} if base is None else base.values), **own.values}
    rules = chosen or default_policy(own.study, values)
    require_figures(rules, own.study, values)
    return judge_runs(own, base, rules)


def judge_runs(run: GatedRun, base: GatedRun | None, policy: Policy) -> GateReport:
    """Test every criterion. Raises ConfigError where there is nothing to test."""
    worse: dict[int, Worsening | None] = {}
    p_values: dict[tuple[int, str], float] = {}
    for k, one in enumerate(policy.criteria):
        if one.figure == COST:
            continue
        rows = run.values.get(one.figure, ())
        if base is not None and one.relative:
            worse[k] = worsening(base.values.get(one.figure, ()), rows, one.lower_is_better)
            if (found := worse[k]) is not None:
                p_values[k, "worse"] = found.p
        for name, limit in one.limits.items():
            p_values[k, name] = limit_p(rows, limit, name == "max")
    if not p_values and base is None and not any(one.figure == COST for one in policy.criteria):
        raise ConfigError("nothing to test: name a --reference-run, or limits (max, min) in the policy")
    adjusted, alpha_each = holm(p_values), policy.alpha / max(1, len(p_values))
    verdicts = []
    for k, one in enumerate(policy.criteria):
        p = {name: value for (number, name), value in adjusted.items() if number == k}
        verdicts.append(
            _cost_verdict(run, base, one)
            if one.figure == COST
            else _verdict(run, base, one, worse.get(k), p, (policy.alpha, alpha_each))
        )
    return GateReport(run, base, policy, tuple(verdicts))


def _verdict(
    run: GatedRun,
    base: GatedRun | None,
    one: Criterion,
    worse: Worsening | None,
    p: Mapping[str, float],
    alphas: tuple[float, float],
) -> Verdict:
    """`alphas`: of all tests together, and of each."""
    rows, others = (() if of is None else of.values.get(one.figure, ()) for of in (run, base))
    reasons, notes = list[str](), list[str]()
    found, before = figure_of(rows), None if base is None else figure_of(others)
    for name in (name for name, value in p.items() if value < alphas[0]):
        limit = one.limits.get(name)
        reasons.append(
            "significantly worse than the reference run"
            if limit is None
            else f"significantly beyond the limit, {name} {limit:g}"
        )
    if one.non_inferior is not None and worse is None:
        why = "there is no reference run" if base is None else "no place is scored in both runs"
        reasons.append(f"not shown to be non-inferior: {why}")
    elif worse is not None and one.non_inferior is not None:
        needed = non_inferior_items(worse, one.non_inferior, alphas[0])
        notes.append(
            f"a run that is no worse is shown to be less than {one.non_inferior:g} worse four times in five with "
            f"{needed:,} items"
            if needed
            else "nothing differs"
        )
        if highest_worsening(worse, alphas[0]) >= one.non_inferior:
            reasons.append(f"not shown to be less than {one.non_inferior:g} worse")
    if base is not None and (who := _raters(rows)) != (before_by := _raters(others)):
        notes.append(f"answered by {who}, in the reference run by {before_by}")
    if found.n < found.total:
        notes.append(f"{found.total - found.n:,} of {found.total:,} values unscored")
    compared = 0 if worse is None else worse.result.clusters
    # The lowest one-sided p of a sign-flip test is that of one assignment of signs.
    powerless = base is not None and one.relative and 0.5**compared >= alphas[1]
    if powerless:
        independent = counted(compared, "independent item")
        notes.append(f"only {independent} compared: no worsening of any size would be significant")
    if unreachable := [name for name, limit in one.limits.items() if worst_p(rows, limit, name == "max") >= alphas[1]]:
        notes.append(f"so few independent items that nothing could be significantly beyond {' and '.join(unreachable)}")
    detects = "" if powerless else _detects(found, before, worse, alphas[1])
    transcripts = tuple(map(run.show, _behind(one, rows, others))) if reasons else ()
    few, not_tested = powerless or bool(unreachable), _not_tested(run, base, one.figure)
    return Verdict(one, found, before, worse, p, tuple(reasons), tuple(notes), detects, few, not_tested, transcripts)


def _not_tested(run: GatedRun, base: GatedRun | None, figure: str) -> str:
    """On what a criterion is not tested: items of the reference run that the run lacks, or that were erased from it."""
    if figure not in (COST, *run.values):
        return "nothing in this run has it"
    if base is None:
        gone = run.erased
    elif figure == COST:
        gone = sum(run.items.get(name) != content for name, content in base.items.items())
    else:
        own = {row.key for row in run.values[figure]}
        rows = base.values.get(figure, ())
        changed = {row.item for row in rows if run.items.get(row.item) != base.items.get(row.item)}
        gone = len(changed | {row.item for row in rows if row.key not in own})
    where = "erased from this run" if base is None else "of the reference run, which this run lacks or asked changed"
    return f"not on {counted(gone, 'item')} {where}" if gone else ""


def _raters(rows: Sequence[Observation]) -> str:
    return " and ".join(sorted({row.by for row in rows if row.by})) or "nobody"


def _cost_verdict(run: GatedRun, base: GatedRun | None, one: Criterion) -> Verdict:
    paid = None if run.cost is None else float(run.cost)
    why = "the cost is not known" if paid is None else f"more than {one.max:g} US dollars"
    passed = paid is not None and one.max is not None and paid <= one.max
    figure, lacking = Figure(paid, None, None, None, int(paid is not None), 1), _not_tested(run, base, COST)
    return Verdict(one, figure, reasons=() if passed else (why,), not_tested=lacking)


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


def _behind(one: Criterion, rows: Sequence[Observation], others: Sequence[Observation]) -> list[Observation]:
    """The places that got most worse than others, those of the reference run; without them the worst."""
    before = {row.key: row.value for row in others}
    sign = 1.0 if one.lower_is_better else -1.0
    known = [(sign * (row.value - (before.get(row.key) or 0.0)), row) for row in rows if row.value is not None]
    shown = sorted(known, key=lambda pair: (-pair[0], pair[1].key))
    return [row for moved, row in shown if moved > 0 or not others][:MOST_TRANSCRIPTS]
