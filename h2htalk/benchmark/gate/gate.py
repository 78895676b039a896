"""Hold a run against a reference run and a policy: the verdict on each criterion."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from h2htalk.benchmark.estimate_text import format_figure, format_percent
from h2htalk.benchmark.gate.comparison import WORSE, Compared, compare, require_comparable
from h2htalk.benchmark.gate.policy import (
    MEASURES,
    Criterion,
    Policy,
    default_policy,
    read_policy,
)
from h2htalk.benchmark.gate.power import (
    detectable_rise,
    detectable_shift,
    items_for_margin,
    upper_end,
    worsening_sign,
    worst_p,
)
from h2htalk.benchmark.observations import figure_of
from h2htalk.benchmark.observed_run import MAIN_FIGURES, ObservedRun, read_observed_run
from h2htalk.benchmark.raters import Raters
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import PairedResult, holm
from h2htalk.data.settings import as_path
from h2htalk.errors import ConfigError, counted, quoted
from h2htalk.progress import QUICK, Progress, counted_items

LEAST_SCORED = 0.95  # of a criterion's values: a reply that breaks its judge must not pass by that
MOST_TRANSCRIPTS = 10  # behind each no
NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a gate says of one criterion."""

    criterion: Criterion
    run: Estimate
    reference: Estimate | None = None
    compared_figures: tuple[
        Estimate, ...
    ] = ()  # run and reference at the places that both scored, on which they are compared
    worse: PairedResult | None = None  # the difference, positive is worse
    p: Mapping[str, float] = field(
        default_factory=dict
    )  # adjusted (Holm), of what is tested: worse, max, min
    reasons: tuple[str, ...] = ()  # why it is a no
    notes: tuple[str, ...] = ()
    detects: str = ""  # the smallest worsening that so many items find four times in five
    not_tested: tuple[str, ...] = ()  # on what the figure was not tested, and why
    raters: Raters | None = None  # who answered the run's values; None: they are computed
    reference_raters: Raters | None = None
    transcripts: tuple[tuple[str, str], ...] = field(
        default=(), repr=False
    )  # what is behind a no: title, text

    @property
    def passed(self) -> bool:
        return not self.reasons

    @property
    def word(self) -> str:
        """`yes`, `NO`, or `not tested`: a criterion that could not say no says no yes either."""
        if self.reasons:
            return "NO"
        return NOT_TESTED if self.not_tested else "yes"


@dataclass(frozen=True, slots=True)
class GateReport:
    """The verdicts; `passed`: none of them is a no. `incomplete`: a yes says little, because the run lacks items of the
    reference run, calls of a run failed, values of a criterion are missing, its judge was not checked or failed the
    check, or too few items are compared."""

    run: ObservedRun
    reference: ObservedRun | None
    policy: Policy
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def failed(self) -> int:
        """Calls of the runs that have no answer."""
        return self.run.failed + (self.reference.failed if self.reference else 0)

    @property
    def incomplete(self) -> bool:
        return self.failed > 0 or any(verdict.not_tested for verdict in self.verdicts)

    @property
    def headline(self) -> str:
        """`passed`, `not passed`, or `not tested` where a criterion was not."""
        if not self.passed:
            return "not passed"
        return NOT_TESTED if self.incomplete else "passed"


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
        run: an evaluation or a study. A figure that it lacks is not tested.
        reference_run: another one of this kind, under one protocol.
        policy: `gate.toml`; None: figures of the study's safety or skill, or S of every subtask, against the reference.

    Raises:
        ConfigError: the runs cannot be compared, a criterion's figure is not known, or nothing is tested.
        DataError: a folder is no scored run.
    """
    chosen = None if policy is None else read_policy(as_path(policy, "--policy"))
    base = None
    with Progress("reading runs", 1 if reference_run is None else 2, silent=QUICK) as progress:
        gated = read_observed_run(as_path(run, "run"), chosen.arm if chosen else "")
        progress.advance()
        if reference_run is not None:
            base = read_observed_run(as_path(reference_run, "--reference-run"), gated.arm)
            progress.advance()
            require_comparable(gated, base)
    values = {**(base.values if base else {}), **gated.values}
    rules = chosen or default_policy(gated.study, values)
    figures = {*MEASURES, *values, *MAIN_FIGURES.get(gated.study, ())}
    for criterion in rules.criteria:
        if criterion.figure not in figures:
            choices = ", ".join(sorted(figures))
            raise ConfigError(
                f"no figure {quoted(criterion.figure)} in this run; choose from {choices}"
            )
    return judge_runs(gated, base, rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tests:
    """The tests of all criteria, adjusted together (Holm)."""

    p: Mapping[tuple[Criterion, str], float]
    p_with_ties: Mapping[
        tuple[Criterion, str], float
    ]  # with what people are tied about at its worst
    p_with_unread: Mapping[
        tuple[Criterion, str], float
    ]  # with that, and what nobody answered, at its worst
    alpha: float  # of all tests together
    alpha_each: float  # the lowest that a test must reach

    def of(self, criterion: Criterion) -> dict[str, float]:
        """p of a criterion's tests by name."""
        return {name: p for (tested, name), p in self.p.items() if tested == criterion}

    def only_with_ties(self, criterion: Criterion) -> list[str]:
        """The names of a criterion's tests that say no where ties are at their worst, and not where they are out."""
        return self._only_in(self.p_with_ties, criterion)

    def only_with_unread(self, criterion: Criterion) -> list[str]:
        """The same with what nobody answered, beside ties."""
        return self._only_in(self.p_with_unread, criterion)

    def _only_in(
        self, p_at_worst: Mapping[tuple[Criterion, str], float], criterion: Criterion
    ) -> list[str]:
        names = []
        for (tested, name), p in p_at_worst.items():
            without = self.p.get((tested, name), 1.0)
            if tested == criterion and p < self.alpha <= without:
                names.append(name)
        return names


def judge_runs(run: ObservedRun, base: ObservedRun | None, policy: Policy) -> GateReport:
    """Test every criterion. Raises ConfigError where there is nothing to test."""
    tested = [criterion for criterion in policy.criteria if criterion.figure not in MEASURES]
    is_limited = len(tested) < len(policy.criteria) or any(criterion.limits for criterion in tested)
    if base is None and not is_limited:
        raise ConfigError(
            "nothing to test: name a --reference-run, or limits (max, min) in the policy"
        )
    least_agreement = policy.agreement if policy.needs_calibrated else None
    compared = {}
    for criterion in counted_items("testing criteria", tested):
        compared[criterion] = compare(run, base, criterion, least_agreement)
    p_values = _p_values(compared.values())
    with_ties = [values.with_ties_at_worst() for values in compared.values()]
    unread = _p_values(values.with_unread_at_worst() for values in with_ties)
    tests = _Tests(
        p=holm(p_values),
        p_with_ties=holm(_p_values(with_ties)),
        p_with_unread=holm(unread),
        alpha=policy.alpha,
        alpha_each=policy.alpha / max(1, len(p_values)),
    )
    verdicts = []
    for criterion in policy.criteria:
        values = compared.get(criterion)
        verdict = (
            _measured(run, criterion) if values is None else _verdict(run, base, values, tests)
        )
        lacking = tuple(_lacking(run, base, criterion.figure))
        verdicts.append(replace(verdict, not_tested=lacking + verdict.not_tested))
    return GateReport(run, base, policy, tuple(verdicts))


def _p_values(compared: Iterable[Compared]) -> dict[tuple[Criterion, str], float]:
    p_values: dict[tuple[Criterion, str], float] = {}
    for values in compared:
        p_values |= {(values.criterion, name): p for name, p in values.tests().items()}
    return p_values


def _verdict(
    run: ObservedRun, base: ObservedRun | None, values: Compared, tests: _Tests
) -> Verdict:
    """What the tests say of one criterion."""
    criterion = values.criterion
    before = None if base is None else figure_of(values.reference_rows)
    verdict = Verdict(
        criterion=criterion,
        run=figure_of(values.rows),
        reference=before,
        compared_figures=values.compared_figures,
        worse=values.worse,
        raters=values.raters,
        reference_raters=values.reference_raters,
    )
    if values.doubts:
        return replace(verdict, not_tested=values.doubts)
    p = tests.of(criterion)
    reasons = [_significant(criterion, name) for name, value in p.items() if value < tests.alpha]
    notes: list[str] = []
    untested: list[str] = []
    unlike, is_mostly_alike = _unlike(values)
    (notes if is_mostly_alike else untested).extend(unlike)
    if criterion.non_inferior is not None:
        margin = _MarginTest(values.worse, criterion.non_inferior, tests.alpha)
        notes += margin.notes()
        if not margin.is_shown and is_mostly_alike:
            reasons.append(margin.reason())
    for missing, is_many in _unscored(verdict.run, before):
        (untested if is_many else notes).append(missing)
    if not reasons:
        left_out = list(_ties(values, tests)) or list(_unread(values, tests))
        untested += left_out
    detects, weak = _power(values, verdict.run, before, tests.alpha_each)
    if is_mostly_alike:
        untested += weak
    unreachable = [
        name
        for name, limit in criterion.limits.items()
        if worst_p(values.rows, limit, name == "max") >= tests.alpha_each
    ]
    if unreachable:
        names = " and ".join(unreachable)
        untested.append(
            f"so few independent items that nothing could be significantly beyond {names}"
        )
    return replace(
        verdict,
        p=p,
        reasons=tuple(reasons),
        notes=tuple(notes),
        detects=detects,
        not_tested=tuple(untested),
        transcripts=_transcripts(run, values) if reasons else (),
    )


def _significant(criterion: Criterion, name: str) -> str:
    """What a significant test says."""
    if name == WORSE:
        return "significantly worse than the reference run"
    return f"significantly beyond the limit, {name} {criterion.limits[name]:g}"


@dataclass(frozen=True, slots=True)
class _MarginTest:
    """Whether a run is shown to be less than a margin worse than its reference run."""

    worse: PairedResult | None
    margin: float
    alpha: float

    @property
    def is_shown(self) -> bool:
        """Whether the upper end of the worsening's one-sided interval is below the margin."""
        return self.worse is not None and upper_end(self.worse, self.alpha) < self.margin

    def reason(self) -> str:
        """Why it is a no."""
        why = (
            "" if self.worse else ": there is no reference run, or no place is scored in both runs"
        )
        return f"not shown to be less than {self.margin:g} worse{why}"

    def notes(self) -> list[str]:
        """How many items would show it."""
        if self.worse is None:
            return []
        needed = items_for_margin(self.worse, self.margin, self.alpha)
        if needed is None:
            return ["nothing differs" if self.worse.mean == 0 else "the differences do not vary"]
        claim = f"a run that is no worse is shown to be less than {self.margin:g} worse"
        return [f"{claim} four times in five with {needed:,} items"]


def _unlike(values: Compared) -> tuple[list[str], bool]:
    """What is said of pairs that different kinds of raters answered, and whether nearly all are of one kind."""
    if not values.criterion.relative or not values.paired.unlike:
        return [], True
    kinds = Counter(
        (row.by or "nobody", earlier.by or "nobody") for earlier, row in values.paired.unlike
    )
    number = len(values.paired.unlike)
    total = number + len(values.paired.pairs)
    (run, reference), _ = kinds.most_common(1)[0]
    text = f"{number:,} of {total:,} values are not compared: answered by {run}, in the reference run by {reference}"
    if len(kinds) > 1:
        text += f", and {counted(len(kinds) - 1, 'other combination')}"
    if number <= (1 - LEAST_SCORED) * total:
        return [text], True
    return [f"{text}; let one kind of rater answer both runs"], False


def _unscored(run: Estimate, reference: Estimate | None) -> Iterator[tuple[str, bool]]:
    """What is unscored in the run and in its reference run, and whether it is so much that nothing is tested."""
    for where, figure in (("", run), (" in the reference run", reference)):
        if figure is not None and figure.n < figure.total:
            missing = f"{figure.total - figure.n:,} of {figure.total:,} values unscored{where}"
            yield missing, figure.n < LEAST_SCORED * figure.total


def _ties(values: Compared, tests: _Tests) -> Iterator[str]:
    """Why a criterion that holds only where ties are left out is not tested."""
    names = tests.only_with_ties(values.criterion)
    resolved = values.with_ties_at_worst()
    margin = values.criterion.non_inferior
    if margin is not None and not _MarginTest(resolved.worse, margin, tests.alpha).is_shown:
        names.append("non_inferior")
    if not names:
        return
    figure = figure_of(resolved.rows)
    shown = (
        format_percent(figure, count=True)
        if figure.hits is not None
        else format_figure(figure, digits=3)
    )
    ties = f"{values.tied:,} of {len(values.rows):,} values, about which people are tied"
    worst = f"with them at their worst it is {shown}"
    if not values.tied:
        ties = "what people are tied about in the reference run"
        worst = "with that at its best there, it is worse"
    yield f"passes {_tests_text(names)} only without {ties}: {worst}; ask one more person (study open-round --tied)"


def _unread(values: Compared, tests: _Tests) -> Iterator[str]:
    """Why a criterion that passes only where what nobody answered is left out is not tested."""
    names = tests.only_with_unread(values.criterion)
    if not names:
        return
    resolved = values.with_ties_at_worst().with_unread_at_worst()
    number = f"{values.unread:,} of {len(values.rows):,} values, which nobody answered"
    ties = f", and {values.tied:,} ties of people" if values.tied else ""
    worst = f"with them at their worst it is {format_percent(figure_of(resolved.rows), count=True)}"
    yield f"passes {_tests_text(names)} only without {number}{ties}: {worst}"


def _tests_text(names: Iterable[str]) -> str:
    """The names of tests, as reasons name them."""
    return " and ".join(
        "the comparison with the reference run" if name == WORSE else name for name in names
    )


def _power(
    values: Compared, run: Estimate, before: Estimate | None, alpha: float
) -> tuple[str, list[str]]:
    """The smallest worsening that so many items find four times in five, and why none would be found."""
    worse = values.worse
    if before is None or not values.criterion.relative:
        return "", []
    clusters = 0 if worse is None else worse.clusters
    few = f"only {counted(clusters, 'independent item')} compared"
    # The lowest one-sided p of a sign-flip test is that of one assignment of signs.
    if worse is None or 0.5**clusters >= alpha:
        return "", [f"{few}: no worsening of any size would be significant"]
    if run.hits is None or before.hits is None:
        shift = detectable_shift(worse, alpha)
        return "" if shift is None else f"{shift:.3g}", []
    lower_is_better = values.criterion.lower_is_better
    faults = before.hits if lower_is_better else before.n - before.hits
    risen = _detectable(faults, before.n, worse, alpha)
    if risen is not None:
        start, end = (100 * (share if lower_is_better else 1 - share) for share in risen)
        return f"{start:.1f} % to {end:.1f} %", []
    if _detectable(0, before.n, worse, alpha) is None:
        return "", [f"{few}: even the worst rate might not be found"]
    if _is_no_worse(worse, alpha):
        return "", []
    rate = before.hits / before.n
    unseen = (
        f"with {counted(clusters, 'independent item')} no worsening that is left would be found"
    )
    advice = "a limit (max or min) holds it"
    return "", [
        f"the reference run is at {100 * rate:.1f} %, so near the worst that {unseen}; {advice}"
    ]


def _detectable(
    faults: int, n: int, worse: PairedResult, alpha: float
) -> tuple[float, float] | None:
    """The rate of faults that a reference run has, and that to which a rise is found; None: not even to 1."""
    rate = (faults + 0.5) / (n + 1)
    risen = detectable_rise(rate, worse.items, alpha, worse.items / worse.clusters)
    return None if risen is None else (rate, risen)


def _is_no_worse(worse: PairedResult, alpha: float) -> bool:
    """Whether a run equals its reference run at every place, as one that is held against itself, or is better."""
    differs = worse.mean != 0 or worse.effect is not None
    return not differs or worse.p(above=True) > 1 - alpha


def _transcripts(run: ObservedRun, values: Compared) -> tuple[tuple[str, str], ...]:
    """What is behind a no: the places that got most worse; without a reference run the worst."""
    sign = worsening_sign(values.criterion.lower_is_better)
    before = {row.key: row.value or 0.0 for row in values.reference_rows}
    unlike = {row.key for _, row in values.paired.unlike}
    moved = []
    for row in values.rows:
        if row.value is None:
            continue
        if row.key in unlike and not values.criterion.limits:
            continue
        start = 0.0 if row.key in unlike else before.get(row.key, 0.0)
        by = sign * (row.value - start)
        if by > 0 or not values.reference_rows:
            moved.append((by, row))
    moved.sort(key=lambda pair: (-pair[0], pair[1].key))
    return tuple(run.show(row) for _, row in moved[:MOST_TRANSCRIPTS])


def _lacking(run: ObservedRun, base: ObservedRun | None, figure: str) -> Iterator[str]:
    """On what a criterion is not tested: items of the reference run that the run lacks, or that were erased from it."""
    if figure in MEASURES and run.measures.get(figure) is None:
        yield f"the {figure.replace('_', ' ')} is not known"
    elif figure not in (*MEASURES, *run.values):
        yield "nothing in this run has it"
    elif base is None and run.erased:
        yield f"not on {counted(run.erased, 'item')} erased from this run"
    elif base is not None:
        changed = _changed_items(run, base, figure)
        if changed:
            yield f"not on {counted(len(changed), 'item')} of the reference run, which this run lacks or asked changed"


def _changed_items(run: ObservedRun, base: ObservedRun, figure: str) -> set[str]:
    """Items of the reference run that the run lacks or asked with another content; of a figure, those that have it."""
    changed = {name for name, content in base.items.items() if run.items.get(name) != content}
    if figure in MEASURES:
        return changed
    keys = {row.key for row in run.values[figure]}
    rows = base.values.get(figure, ())
    return {row.item for row in rows if row.item in changed or row.key not in keys}


def _measured(run: ObservedRun, criterion: Criterion) -> Verdict:
    """A measure that is not known is not tested, which is no yes."""
    value = run.measures.get(criterion.figure)
    figure = Estimate(value, None, None, int(value is not None), 1)
    reasons = []
    if value is not None and value > criterion.limits["max"]:
        reasons.append(f"more than {criterion.max:g} {MEASURES[criterion.figure]}")
    return Verdict(criterion=criterion, run=figure, reasons=tuple(reasons))
