"""The values of one criterion in a run and its reference run: paired, tested, and whether their answers count."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from h2htalk.benchmark.gate.policy import Criterion
from h2htalk.benchmark.gate.power import limit_p, worsening_sign
from h2htalk.benchmark.observations import (
    TIED,
    Observation,
    figure_of,
    is_answered,
    is_rate,
    tied_in,
)
from h2htalk.benchmark.observed_run import ObservedRun
from h2htalk.benchmark.paired_observations import PairedObservations, pair
from h2htalk.benchmark.raters import JUDGE, PEOPLE, Raters, describe_check, kinds_of
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import Difference, PairedResult, paired_result
from h2htalk.benchmark.studies.judge_agreement import calibration_doubts
from h2htalk.data.responses import FILTERED_REPLY
from h2htalk.data.signature import rescoring_advice
from h2htalk.errors import ConfigError

WORSE = (
    "worse"  # the name of the test against the reference run; those of limits are `max` and `min`
)
_RUN = "this run"
_REFERENCE = "the reference run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """What a criterion is tested on.

    `doubts`: why the answers do not count, so that nothing is tested on them.
    """

    criterion: Criterion
    rows: Sequence[Observation]  # of the run
    reference_rows: Sequence[Observation]  # of the reference run
    paired: PairedObservations  # of the reference run and the run
    worse: (
        PairedResult | None
    )  # the difference, positive is worse; None: there is no reference run, or no pair
    compared_figures: tuple[Estimate, ...]  # run and reference at the places that are compared
    raters: Raters | None
    reference_raters: Raters | None
    doubts: tuple[str, ...] = ()

    @property
    def tied(self) -> int:
        """Values of the run about which people are tied."""
        return tied_in(self.rows)

    @property
    def unread(self) -> int:
        """Values of a rate of the run that nobody answered, though there is no tie and no filtered reply."""
        return sum(map(_is_unread, self.rows))

    def tests(self) -> dict[str, float]:
        """p of each test by its name, not adjusted; nothing is tested on answers that do not count."""
        if self.doubts:
            return {}
        p = {} if self.worse is None else {WORSE: self.worse.p(above=True)}
        for name, limit in self.criterion.limits.items():
            p[name] = limit_p(self.rows, limit, name == "max")
        return p

    def with_ties_at_worst(self) -> Compared:
        """The same with what people are tied about at its worst in the run, and at its best in the reference run."""
        worst = float(self.criterion.lower_is_better)
        return self._with_rows(
            _with_ties(self.rows, worst), _with_ties(self.reference_rows, 1 - worst)
        )

    def with_unread_at_worst(self) -> Compared:
        """The same with what nobody answered at its worst, in both runs: a judge fails as often about either."""
        worst = float(self.criterion.lower_is_better)
        rows = _with_unread(self.rows, self.reference_rows, worst)
        return self._with_rows(rows, _with_unread(self.reference_rows, self.rows, worst))

    def _with_rows(self, rows: list[Observation], reference_rows: list[Observation]) -> Compared:
        paired = pair(reference_rows, rows)
        worse = _difference(self.criterion, paired)
        return replace(self, rows=rows, reference_rows=reference_rows, paired=paired, worse=worse)


def _is_unread(row: Observation) -> bool:
    """Whether nobody answered a value that a judge, people or code are asked for."""
    is_asked = is_rate(row.figure) and is_answered(row.figure)
    return is_asked and row.value is None and row.unscored not in (TIED, FILTERED_REPLY)


def compare(
    run: ObservedRun, base: ObservedRun | None, criterion: Criterion, least_agreement: float | None
) -> Compared:
    """Pair what a run and its reference run have of a criterion's figure.

    `least_agreement`: of the run's judge with people, for its answers to count; None: it needs no calibration.
    """
    figure = criterion.figure
    rows = run.values.get(figure, ())
    reference_rows = () if base is None else base.values.get(figure, ())
    paired = pair(reference_rows, rows)
    worse = _difference(criterion, paired)
    raters = run.raters(figure)
    reference_raters = None if base is None else base.raters(figure)
    doubts = doubts_about(raters, _RUN, run)
    if criterion.relative and base is not None:
        doubts += doubts_about(reference_raters, _REFERENCE, base)
    if least_agreement is not None and raters is not None and raters.judged:
        answered_in = {
            row.language for row in rows if row.value is not None and JUDGE in kinds_of(row.by)
        }
        doubts += tuple(calibration_doubts(run.calibration, answered_in, least_agreement))
    return Compared(
        criterion=criterion,
        rows=rows,
        reference_rows=reference_rows,
        paired=paired,
        worse=worse,
        compared_figures=_compared_figures(rows, reference_rows, paired) if worse else (),
        raters=raters,
        reference_raters=reference_raters,
        doubts=doubts,
    )


def _difference(criterion: Criterion, paired: PairedObservations) -> PairedResult | None:
    """How much worse a run is at the places that are compared; None where there is none, or nothing to compare with."""
    if not criterion.relative or not paired.pairs:
        return None
    sign = worsening_sign(criterion.lower_is_better)
    return paired_result(
        [Difference("", cluster, sign * value) for cluster, value in paired.shifts]
    )


def _compared_figures(
    rows: Sequence[Observation], reference_rows: Sequence[Observation], paired: PairedObservations
) -> tuple[Estimate, ...]:
    """Run and reference at the places that are compared, with the ties beside each."""
    compared = {row.key for _, row in paired.pairs}
    figures = []
    for side in (rows, reference_rows):
        figures.append(
            figure_of([row for row in side if row.key in compared or row.unscored == TIED])
        )
    return tuple(figures)


def _with_ties(rows: Sequence[Observation], value: float) -> list[Observation]:
    """The values with those about which people are tied at 0, or at 1; a rating has no ties."""
    if not tied_in(rows):
        return list(rows)
    resolved = []
    for row in rows:
        is_tied = row.unscored == TIED
        resolved.append(replace(row, value=value, by=PEOPLE, unscored="") if is_tied else row)
    return resolved


def _with_unread(
    rows: Sequence[Observation], reference_rows: Sequence[Observation], value: float
) -> list[Observation]:
    """The values with those that nobody answered at 0, or at 1, as if who answered in the other run had."""
    raters = {row.key: row.by for row in reference_rows}
    resolved = []
    for row in rows:
        by = raters.get(row.key) or JUDGE
        resolved.append(replace(row, value=value, by=by, unscored="") if _is_unread(row) else row)
    return resolved


def doubts_about(raters: Raters | None, where: str, run: ObservedRun) -> tuple[str, ...]:
    """Why the answers of a judge do not count; nothing where it answered nothing, or passed its planted replies."""
    if raters is None or raters.is_checked:
        return ()
    judge = f"the judge {raters.judge}" if raters.judge else "a judge"
    answered = f"{judge} answered {raters.judged:,} of {raters.total:,} values of {where}"
    doubt = "the judge was not checked"
    if raters.planted is not None:
        doubt = describe_check(raters.failed_checks)
    if raters.planted is None or any(check.lacks_answers for check in raters.failed_checks):
        command = f"h2htalk study score {shlex.quote(str(run.path))} --ask-judge"
        doubt += f"; to ask it about planted replies: {command}"
        if raters.planted is not None:
            doubt += " (where --judge-max-cost stopped it, with a higher one)"
    return (f"{answered}; {doubt}",)


def protocol_differences(run: ObservedRun, base: ObservedRun) -> list[str]:
    """Name what differs in kind and protocol of two runs, but for their items; nothing where they can be compared."""
    keys = [key for key in run.signature.differing(base.signature) if not key.startswith("items ")]
    if run.study != base.study:
        keys.append(f"study ({run.study or 'evaluation'}, {base.study or 'evaluation'})")
    if run.study and run.judge != base.judge:
        keys.append(f"judge ({run.judge or '-'}, {base.judge or '-'})")
    return keys


def require_comparable(run: ObservedRun, base: ObservedRun) -> None:
    """Raise ConfigError, naming what differs, unless two runs are of one kind, under one protocol, on common items."""
    keys = protocol_differences(run, base)
    if keys:
        command = "h2htalk study score STUDY" if run.study else "h2htalk score RUN"
        advice = rescoring_advice(run.signature, base.signature, command)
        raise ConfigError(
            f"{run.path} and {base.path} cannot be compared: {', '.join(keys)} differ{advice}"
        )
    if _places_of(run).isdisjoint(_places_of(base)):
        raise ConfigError(f"{run.path} and {base.path} have no item in common")


def _places_of(run: ObservedRun) -> set[tuple[str, str]]:
    return {row.key for row in chain.from_iterable(run.values.values())}
