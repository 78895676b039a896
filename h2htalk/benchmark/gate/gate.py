"""Hold a run against a reference run and a policy: tests, verdicts, and the report as text, Markdown and JUnit."""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from statistics import fmean
from xml.etree import ElementTree as xml

from h2htalk.benchmark.gate.gated_run import (
    DEFAULTS,
    MEASURES,
    Criterion,
    GatedRun,
    Policy,
    default_policy,
    read_gated_run,
    read_policy,
    require_comparable,
)
from h2htalk.benchmark.observations import (
    Figure,
    Observation,
    effect_of,
    figure_of,
    is_rate,
    p_text,
    percent,
    score,
    scored,
    shifts,
)
from h2htalk.benchmark.statistics import POWER, Difference, PairedResult, holm, paired_result
from h2htalk.benchmark.studies.report import TRIVIAL, name_of
from h2htalk.data.records import as_path
from h2htalk.distributions import binomial_tail, t_quantile, z_quantile
from h2htalk.errors import ConfigError, counted, quoted
from h2htalk.text.escaping import code_block, escape_markdown, printable, printable_lines
from h2htalk.text.html_pages import render_page
from h2htalk.text.tables import NONE, Table, value_text

_SIGN = {True: 1.0, False: -1.0}  # of a worsening, by whether lower is better


def limit_p(rows: Sequence[Observation], limit: float, lower_is_better: bool) -> float:
    """One-sided p that a figure is beyond a limit: of rates binomial, of means by the sign-flip test of a comparison.

    Values of one cluster are alike, so that they count for fewer: in the binomial test by the ratio of the variance of
    cluster totals to that of as many independent values.
    """
    own = scored(rows)
    if not own:
        return 1.0
    values = [row.value or 0.0 for row in own]
    if not is_rate(rows[0].figure):
        shifts = [_SIGN[lower_is_better] * (value - limit) for value in values]
        return paired_result([Difference("", r.cluster, d) for r, d in zip(own, shifts, strict=True)]).p(above=True)
    mean, n = fmean(values), len(own) / effect_of(own)
    share, most = (mean, limit) if lower_is_better else (1 - mean, 1 - limit)
    return binomial_tail(math.floor(share * n + 1e-9), max(1, round(n)), most)


def worst_p(rows: Sequence[Observation], limit: float, lower_is_better: bool) -> float:
    """The lowest p that `limit_p` could give as many items: were each of them as bad as can be."""
    worst = float(lower_is_better) if rows and is_rate(rows[0].figure) else limit + _SIGN[lower_is_better]
    return limit_p([replace(row, value=worst) for row in scored(rows)], limit, lower_is_better)


def detectable_rise(rate: float, items: int, alpha: float, per_cluster: float = 1.0) -> float | None:
    """The rate to which a rise is found four times in five, with so many items in each run; None: not even to 1."""
    steps = 1 << 40

    def found(step: int) -> bool:
        return items_for_rise(rate, rate + (1 - rate) * step / steps, alpha, per_cluster) <= items

    step = bisect_left(range(steps + 1), True, key=found)
    return None if step > steps else rate + (1 - rate) * step / steps


def items_for_rise(rate: float, risen: float, alpha: float, per_cluster: float = 1.0) -> float:
    """How many items in each run find a rise of a rate four times in five, one-sided.

    The flipped signs give the mean difference the spread of its second moment, the runs that of two binomial
    variances; t has the degrees of freedom of the clusters, of `per_cluster` items each.
    """
    shift = risen - rate
    if shift <= 0:
        return math.inf
    spread, needed = rate * (1 - rate) + risen * (1 - risen), 10.0
    for _ in range(20):  # t depends on the number that is sought
        df = max(2, round(needed / per_cluster) - 1)  # whole, so that its quantiles are computed once
        far = t_quantile(df, 1 - alpha) * math.sqrt(spread + shift**2) + t_quantile(df, POWER) * math.sqrt(spread)
        needed = (needed + (far / shift) ** 2) / 2
    return needed


LEAST_SCORED = 0.95  # of a criterion's values: a reply that breaks its judge must not pass by that
MOST_TRANSCRIPTS = 10  # behind each no


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of one criterion."""

    criterion: Criterion
    run: Figure
    reference: Figure | None = None
    shown: tuple[Figure, ...] = ()  # run and reference at the places that both scored, on which they are compared
    worse: PairedResult | None = None  # the difference, positive is worse
    p: Mapping[str, float] = field(default_factory=dict)  # adjusted (Holm), of what is tested: worse, max, min
    reasons: tuple[str, ...] = ()  # why it is a no
    notes: tuple[str, ...] = ()
    detects: str = ""  # the smallest worsening that so many items find four times in five
    not_tested: tuple[str, ...] = ()  # on what the figure was not tested, and why
    transcripts: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # what is behind a no: title, text

    @property
    def passed(self) -> bool:
        return not self.reasons

    @property
    def word(self) -> str:
        """`yes`, `NO`, or `not tested`: a criterion that could not say no says no yes either."""
        return "NO" if self.reasons else NOT_TESTED if self.not_tested else "yes"


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
    def failed(self) -> int:
        """Calls of the runs that have no answer."""
        return self.run.failed + (self.reference.failed if self.reference else 0)

    @property
    def incomplete(self) -> bool:
        return self.failed > 0 or any(one.not_tested for one in self.verdicts)

    @property
    def headline(self) -> str:
        """`passed`, `not passed`, or `not tested` where a criterion was not."""
        return ("not tested" if self.incomplete else "passed") if self.passed else "not passed"


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
    own = read_gated_run(as_path(run, "run"), chosen.arm if chosen else "")
    base = None if reference_run is None else read_gated_run(as_path(reference_run, "--reference-run"), own.arm)
    if base is not None:
        require_comparable(own, base)
    values = {**(base.values if base else {}), **own.values}
    rules, known = chosen or default_policy(own.study, values), {*MEASURES, *values, *DEFAULTS.get(own.study, ())}
    for one in rules.criteria:
        if one.figure not in known:
            raise ConfigError(f"no figure {quoted(one.figure)} in this run; choose from {', '.join(sorted(known))}")
    return judge_runs(own, base, rules)


def judge_runs(run: GatedRun, base: GatedRun | None, policy: Policy) -> GateReport:
    """Test every criterion. Raises ConfigError where there is nothing to test."""
    worse: dict[Criterion, PairedResult | None] = {}
    p_values: dict[tuple[Criterion, str], float] = {}
    tested = [one for one in policy.criteria if one.figure not in MEASURES]
    for one in tested:
        rows = run.values.get(one.figure, ())
        if base is not None and one.relative:
            moved = shifts(base.values.get(one.figure, ()), rows)
            pairs = [Difference("", cluster, _SIGN[one.lower_is_better] * value) for cluster, value in moved]
            worse[one] = paired_result(pairs) if pairs else None
            p_values |= {(one, "worse"): found.p(above=True)} if (found := worse[one]) else {}
        p_values |= {(one, name): limit_p(rows, limit, name == "max") for name, limit in one.limits.items()}
    if not p_values and base is None and len(tested) == len(policy.criteria):
        raise ConfigError("nothing to test: name a --reference-run, or limits (max, min) in the policy")
    adjusted, alphas = holm(p_values), (policy.alpha, policy.alpha / max(1, len(p_values)))
    verdicts = []
    for one in policy.criteria:
        p = {name: value for (criterion, name), value in adjusted.items() if criterion == one}
        verdict = _verdict(run, base, one, worse.get(one), p, alphas) if one in tested else _measured(run, one)
        verdicts.append(replace(verdict, not_tested=(*_not_tested(run, base, one.figure), *verdict.not_tested)))
    return GateReport(run, base, policy, tuple(verdicts))


def _verdict(
    run: GatedRun,
    base: GatedRun | None,
    one: Criterion,
    worse: PairedResult | None,
    p: Mapping[str, float],
    alphas: tuple[float, float],
) -> Verdict:
    """`alphas`: of all tests together, and of each."""
    rows, others = (() if of is None else of.values.get(one.figure, ()) for of in (run, base))
    found, before = figure_of(rows), None if base is None else figure_of(others)
    both = {row.key for row in scored(rows)} & {row.key for row in scored(others)} if worse else set()
    paired = [figure_of([row for row in of if row.key in both]) for of in (rows, others)] if worse else []
    reasons, notes, untested = list[str](), list[str](), list[str]()
    for name in (name for name, value in p.items() if value < alphas[0]):
        limit = f"beyond the limit, {name} {one.limits[name]:g}" if name in one.limits else ""
        reasons.append(f"significantly {limit or 'worse than the reference run'}")
    if one.non_inferior is not None:
        shown, note = _non_inferior(worse, one.non_inferior, alphas[0])
        if not shown:
            why = "" if worse else ": there is no reference run, or no place is scored in both runs"
            reasons.append(f"not shown to be less than {one.non_inferior:g} worse{why}")
        notes += note
    who, by = (" and ".join(sorted({row.by for row in of if row.by})) or "nobody" for of in (rows, others))
    if base is not None and who != by:
        notes.append(f"answered by {who}, in the reference run by {by}")
    for name, figure in (("", found), (" in the reference run", before)):
        if figure is not None and figure.n < figure.total:
            unscored = f"{figure.total - figure.n:,} of {figure.total:,} values unscored{name}"
            (untested if figure.n < LEAST_SCORED * figure.total else notes).append(unscored)
    compared = 0 if worse is None else worse.clusters
    # The lowest one-sided p of a sign-flip test is that of one assignment of signs.
    powerless = base is not None and one.relative and 0.5**compared >= alphas[1]
    detects = "" if powerless else _detects(one.lower_is_better, found, before, worse, alphas[1])
    most = "no worsening of any size would be significant" if powerless else "even the worst rate might not be found"
    if powerless or (worse and before and None not in (found.hits, before.hits) and not detects):
        untested.append(f"only {counted(compared, 'independent item')} compared: {most}")
    if unreachable := [name for name, limit in one.limits.items() if worst_p(rows, limit, name == "max") >= alphas[1]]:
        few = "so few independent items that nothing could be significantly beyond"
        untested.append(f"{few} {' and '.join(unreachable)}")
    # Behind a no are the places that got most worse; without a reference run the worst.
    values, sign = {row.key: row.value or 0.0 for row in others}, _SIGN[one.lower_is_better]
    moved = [(sign * (row.value - values.get(row.key, 0.0)), row) for row in rows if row.value is not None]
    moved = [(by, row) for by, row in moved if reasons and (by > 0 or not others)]
    moved.sort(key=lambda pair: (-pair[0], pair[1].key))
    return Verdict(
        *(one, found, before, tuple(paired), worse, p, tuple(reasons), tuple(notes)),
        detects=detects,
        not_tested=tuple(untested),
        transcripts=tuple(run.show(row) for _, row in moved[:MOST_TRANSCRIPTS]),
    )


def _non_inferior(worse: PairedResult | None, margin: float, alpha: float) -> tuple[bool, list[str]]:
    """Whether the upper end of a worsening's one-sided interval is below a margin, and how many items would show it."""
    if worse is None:
        return False, []
    if worse.error is None or worse.df is None:
        return worse.mean < margin, ["nothing differs"]
    sd = worse.error * math.sqrt(worse.items)
    needed = math.ceil(((z_quantile(1 - alpha) + z_quantile(POWER)) * sd / margin) ** 2)
    note = f"a run that is no worse is shown to be less than {margin:g} worse four times in five with {needed:,} items"
    return worse.mean + t_quantile(worse.df, 1 - alpha) * worse.error < margin, [note]


def _not_tested(run: GatedRun, base: GatedRun | None, figure: str) -> Iterator[str]:
    """On what a criterion is not tested: items of the reference run that the run lacks, or that were erased from it."""
    if figure in MEASURES and run.measures.get(figure) is None:
        yield f"the {figure.replace('_', ' ')} is not known"
    elif figure not in (*MEASURES, *run.values):
        yield "nothing in this run has it"
    elif base is None and run.erased:
        yield f"not on {counted(run.erased, 'item')} erased from this run"
    elif base is not None:
        changed = {name for name, content in base.items.items() if run.items.get(name) != content}
        if figure not in MEASURES:
            own, rows = {row.key for row in run.values[figure]}, base.values.get(figure, ())
            changed = {row.item for row in rows if row.item in changed or row.key not in own}
        if changed:
            yield f"not on {counted(len(changed), 'item')} of the reference run, which this run lacks or asked changed"


def _measured(run: GatedRun, one: Criterion) -> Verdict:
    """A measure that is not known is not tested, which is no yes."""
    found = run.measures.get(one.figure)
    figure = Figure(found, None, None, None, int(found is not None), 1)
    beyond = found is not None and found > one.limits["max"]
    return Verdict(one, figure, reasons=(f"more than {one.max:g} {MEASURES[one.figure]}",) if beyond else ())


def _detects(
    lower_is_better: bool, found: Figure, before: Figure | None, worse: PairedResult | None, alpha: float
) -> str:
    """The smallest worsening that as many items find four times in five; empty where not even the worst rate is."""
    if before is None or worse is None:
        return ""
    if found.hits is not None and before.hits is not None:
        rate = ((before.hits if lower_is_better else before.n - before.hits) + 0.5) / (before.n + 1)
        risen = detectable_rise(rate, worse.items, alpha, worse.items / worse.clusters)
        start, end = (100 * (one if lower_is_better else 1 - one) for one in (rate, risen or 0.0))
        return "" if risen is None else f"{start:.1f} % to {end:.1f} %"
    if worse.error is None or worse.df is None:
        return ""
    return f"{(t_quantile(worse.df, 1 - alpha) + t_quantile(worse.df, POWER)) * worse.error:.3g}"


NOT_TESTED = "not tested"
# How the files begin.
MARKDOWN, JUNIT = "### Gate: ", '<?xml version="1.0" encoding="UTF-8"?>\n<testsuite name="h2htalk gate"'
HTML = "<!doctype html><!-- h2htalk gate -->"


def gate_table(report: GateReport) -> Table:
    """One row a criterion."""
    rows, words = [], {"max": "at most", "min": "at least"}
    for one in report.verdicts:
        limits = [p for name, p in one.p.items() if name != "worse"]
        rate, unit = one.run.hits is not None, MEASURES.get(one.criterion.figure, "")
        times, unit = (100, " %") if rate else (1, f" {unit}".rstrip())
        run, reference = one.shown or (one.run, one.reference)
        row = (
            name_of(one.criterion.figure),
            NONE if reference is None else _figure(reference),
            _figure(run, unit.strip(" %")),
            _worse(one),
            p_text(one.p["worse"]) if "worse" in one.p else NONE,
            ", ".join(f"{words[name]} {times * end:g}{unit}" for name, end in one.criterion.limits.items()) or NONE,
            p_text(min(limits)) if limits else NONE,
            one.detects or NONE,
            one.word,
        )
        rows.append(row)
    against = f" against {report.reference.label}" if report.reference else ""
    title = f"Gate: {report.run.label}{against}: {report.headline}"
    header = ("criterion", "reference", "run", "worse by", "p", "limit", "p of limit", "detects", "passes")
    return Table(title, header, rows, tuple(_notes(report)))


def _figure(one: Figure, unit: str = "") -> str:
    if unit:
        return NONE if one.value is None else f"{one.value:.4f} {unit}"
    return percent(one, count=True) if one.hits is not None else score(one, digits=3)


def _worse(one: Verdict) -> str:
    if one.worse is None:
        return NONE
    rate, ends = one.run.hits is not None, ""
    times, most, unit = (100.0, 1.0, " points") if rate else (1.0, math.inf, "")
    if one.worse.low is not None and one.worse.high is not None:
        ends = f" ({times * max(-most, one.worse.low):+.3g} to {times * min(most, one.worse.high):+.3g})"
    return f"{times * one.worse.mean:+.3g}{ends}{unit}"


def _notes(report: GateReport) -> Iterator[str]:
    for one in report.verdicts:
        for text in (*one.reasons, *one.not_tested, *one.notes):
            yield f"{name_of(one.criterion.figure)}: {text}"
    yield (
        f"One-sided tests, Holm over all of them at {report.policy.alpha:g}: sign-flip test on clusters of "
        "items; limits of rates binomial, with the clusters' effective n. Positive is worse."
    )
    yield "p is adjusted (Holm). Detects: the smallest worsening that as many items find four times in five."
    yield "Intervals are 95 %, two-sided and not adjusted, so that one may exclude 0 beside a p above .05."
    yield "yes: no worsening was shown, which is no proof that there is none: detects says what would have been found."
    yield from [TRIVIAL] * (report.run.study in ("sap", "logs"))
    yield "Run and reference are shown at the places that both scored; a limit is tested on all places of the run."
    if report.incomplete:
        why = "a criterion was not tested on all items, has too few, or more than 5 % of its values unscored"
        if report.failed:
            why = f"{report.failed:,} calls of the runs have no answer; repeat their commands"
        yield f"incomplete, and no yes: {why}"


def to_markdown(report: GateReport) -> str:
    """The table, and the transcripts behind each no."""
    parts = [gate_table(report).to_markdown()]
    for one in report.verdicts:
        if one.transcripts:
            parts.append(f"#### {name_of(one.criterion.figure)}: what is behind the no\n")
            parts += [f"{escape_markdown(title)}\n\n{code_block(text)}\n" for title, text in one.transcripts]
    return "\n".join(parts)


def to_html(report: GateReport) -> str:
    """A page: the verdict, the table, and the transcripts behind each no."""
    words = Counter(one.word for one in report.verdicts)
    of = f"of {counted(len(report.verdicts), 'criterion', 'criteria')}"
    labels = {"NO": "Say no", NOT_TESTED: "Not tested", "yes": "No worsening shown"}
    tiles = [{"label": label, "value": words[word], "note": of} for word, label in labels.items()]
    view = {"report": report, "table": gate_table(report), "tiles": tiles, "name": name_of, "clean": printable_lines}
    return render_page(files("h2htalk.benchmark.gate") / "page", view)


def to_junit(report: GateReport) -> str:
    """JUnit XML: a test case a criterion, a failure with its transcripts for each no."""
    table = gate_table(report)
    words = [one.word for one in report.verdicts] + [NOT_TESTED] * (report.failed > 0)
    counts = {"tests": len(words), "failures": words.count("NO"), "errors": 0, "skipped": words.count(NOT_TESTED)}
    suite = xml.Element("testsuite", {"name": "h2htalk gate"} | {name: str(number) for name, number in counts.items()})
    for one, row in zip(report.verdicts, table.rows, strict=True):
        case = xml.SubElement(suite, "testcase", classname="gate", name=one.criterion.figure)
        if not one.passed:
            failure = xml.SubElement(case, "failure", message=printable("; ".join(one.reasons)))
            failure.text = "\n\n".join(f"{printable(t)}\n{printable_lines(text)}" for t, text in one.transcripts)
        elif one.not_tested:
            xml.SubElement(case, "skipped", message=printable("; ".join(one.not_tested)))
        cells = zip(table.header, map(value_text, row), strict=True)
        xml.SubElement(case, "system-out").text = ", ".join(f"{name} {printable(cell)}" for name, cell in cells)
    if report.failed:
        case = xml.SubElement(suite, "testcase", classname="gate", name="calls of the runs")
        xml.SubElement(case, "skipped", message=f"{report.failed:,} calls have no answer; repeat their commands")
    xml.indent(suite)
    return JUNIT.partition("\n")[0] + "\n" + xml.tostring(suite, encoding="unicode") + "\n"


FORMS = ((to_junit, JUNIT), (to_markdown, MARKDOWN), (to_html, HTML))
