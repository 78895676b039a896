"""Build the summary of a run from the scores of its items and of the baselines.

Each function takes scenarios and scores and returns the figures of one part of the summary.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from h2htalk.benchmark.judge.judgements import TOO_LONG
from h2htalk.benchmark.metrics.composite import (
    LEXICAL_COLUMNS,
    LEXICAL_FOLDED,
    METRICS,
    PRIVATE_REFERENCE,
    ItemScore,
    Metrics,
    SampleScore,
    Scores,
    all_columns,
)
from h2htalk.benchmark.replies.reply_endings import count_endings
from h2htalk.benchmark.run_facts import RunFacts
from h2htalk.benchmark.statistics.averages import (
    Row,
    aggregate,
    aggregate_slices,
    clusters_of,
    null_class,
)
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.paired_tests import Difference, paired_figures
from h2htalk.benchmark.summary import (
    JUDGE_WARNING,
    JudgeFigures,
    Measure,
    RunCounts,
    ScoreRows,
    Summary,
)
from h2htalk.chat.prices import Totals
from h2htalk.data.replies.finish_reasons import reasons_text
from h2htalk.data.responses import (
    FILTERED_REPLY,
    JUDGE_FILTERED,
    Answers,
    FailedResponse,
    Response,
)
from h2htalk.data.scenario import TAGS, Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted, shorten
from h2htalk.text.contracts.memory_blocks import is_null_memory
from h2htalk.version import __version__

TYPOGRAPHY_POINTS = 1.0  # of the lexical mean, from which on a warning names them
# What a scenario counts in a figure, 0 to 1.
ValueOf = Callable[[Scenario, ItemScore | SampleScore], float | None]


class Scored(NamedTuple):
    """The scores of the model or of a baseline, by item id; `nulls` as `null_shares` returns."""

    scores: Scores
    nulls: Sequence[tuple[float, bool]] = ()


def summarize(
    model: str,
    split: Split,
    signature: Signature,
    metrics: Metrics,
    scored: Scored,
    baselines: Mapping[str, Scored],
    counts: RunCounts,
    judging: JudgeFigures | None = None,
    warnings: Sequence[str] = (),
    costs: Mapping[str, Totals] | None = None,
    run_facts: RunFacts | None = None,
) -> Summary:
    """Build the summary of a run from its scores, which hold the ratings of judges and people where there are any.

    Args:
        model: what tables call the model.
        baselines: their scores on the items that the model has a score for.
        judging: what judges gave; None in a run without judgements.
        warnings: those that follow from the answers, not from the figures.
        costs: what each stage paid.
        run_facts: how the model was asked.
    """
    scores = scored.scores
    scenarios = split.scenarios
    with_s = [scenario for scenario in scenarios if metrics.asks_s(scenario.language)]
    measure: Measure = "s" if with_s else "lexical"
    measured = with_s or scenarios
    clusters = clusters_of(measured)

    not_beaten = {}
    baseline_rows = {}
    for name, baseline in baselines.items():
        not_beaten[name] = figures_not_beaten(measured, measure, scores, baseline.scores, clusters)
        baseline_rows[name] = score_rows(scenarios, with_s, baseline)
    languages = tuple(sorted({scenario.language for scenario in scenarios}))
    s_languages = tuple(sorted({scenario.language for scenario in with_s}))
    rows = score_rows(scenarios, with_s, scored)
    of_figures = summary_warnings(not_beaten, languages, s_languages, rows)
    main_figures = _main_figures(measured, scores, measure, rows, judging, [*of_figures, *warnings])
    source = f" ({split.source}, commit {split.commit[:12]})" if split.commit else ""
    broken_rules = Counter[str]()
    for item in scores.values():
        for sample in item.samples:
            broken_rules.update(sample.violations or ())
    # The most frequent rule first.
    violations = sorted(broken_rules.items(), key=lambda entry: (-entry[1], entry[0]))
    embedder = metrics.embedder
    return Summary(
        model=model,
        split=f"{split.name} {split.version}{source}",
        signature=signature,
        package_version=__version__,
        measure=measure,
        s_comparable=embedder is not None and embedder.comparable,
        counts=counts,
        languages=languages,
        s_languages=s_languages,
        metrics=metric_means(scenarios, with_s, scores),
        baselines=baseline_rows,
        reached=not_beaten,
        violations=dict(violations),
        costs=costs or {},
        run_facts=run_facts or RunFacts(),
        **main_figures,
    )


def summarize_ratings(
    stored: Summary, scenarios: Sequence[Scenario], scores: Scores, judging: JudgeFigures
) -> Summary:
    """Return the stored summary of a run with the figures of other ratings, which `scores` hold.

    Figures that no rating changes are not computed again: those of baselines need the embedder.
    """
    measured = scenarios
    if stored.measure == "s":
        measured = [item for item in scenarios if item.language in stored.s_languages]
    main_figures = _main_figures(
        measured, scores, stored.measure, stored.rows, judging, stored.scoring_warnings
    )
    return replace(stored, **main_figures)


def _main_figures(
    scenarios: Sequence[Scenario],
    scores: Scores,
    measure: Measure,
    rows: ScoreRows,
    judging: JudgeFigures | None,
    warnings: Sequence[str],
) -> dict[str, Any]:
    """Return the fields of a summary that ratings change: in a judged run levels I to III have J in the place of S."""
    is_judged = judging is not None and measure == "s"

    def value_of(scenario: Scenario, score: ItemScore | SampleScore) -> float | None:
        if is_judged:
            return judged_value(scenario, score)
        return score.s if measure == "s" else score.lexical

    if judging is not None:
        texts = judge_warnings(judging, has_s=measure == "s")
        warnings = [*warnings, *(JUDGE_WARNING + text for text in texts)]
    if is_judged:
        judged_row = aggregate(
            (item.subtask, judged_value(item, scores[item.id])) for item in scenarios
        )
        rows = replace(rows, judged=judged_row)
    return {
        "rows": rows,
        "slices": slices_of(scenarios, scores, value_of),
        "by_sample": tuple(by_sample(scenarios, scores, value_of)),
        "judged": is_judged,
        "judging": judging,
        "warnings": tuple(warnings),
    }


def judged_value(scenario: Scenario, score: ItemScore | SampleScore) -> float | None:
    """J / 5 for levels I to III, S for others."""
    if not SUBTASKS[scenario.subtask].level:
        return score.s
    return None if score.j is None else score.j / 5


def figures_not_beaten(
    scenarios: Sequence[Scenario],
    measure: Measure,
    scores: Scores,
    baseline: Scores,
    clusters: Mapping[str, str],
) -> tuple[str, ...]:
    """Return the figures in which the model is not shown to be above a baseline.

    See `PairedResult.is_above_zero`.
    """
    differences = []
    for scenario in scenarios:
        model_value = getattr(scores[scenario.id], measure)
        baseline_value = getattr(baseline[scenario.id], measure)
        if model_value is not None and baseline_value is not None:
            cluster = clusters[scenario.id]
            differences.append(Difference(scenario.subtask, cluster, model_value - baseline_value))
    results = paired_figures(differences)
    return tuple(key for key, result in results.items() if not result.is_above_zero)


def summary_warnings(
    not_beaten: Mapping[str, Sequence[str]],
    languages: Sequence[str],
    s_languages: Sequence[str],
    rows: ScoreRows,
) -> list[str]:
    """Warn of baselines that the model is not shown to be above, of languages without S, and of typography."""
    warnings = []
    subtasks = []
    for subtask in SUBTASKS.values():
        if any(subtask.name in figures for figures in not_beaten.values()):
            subtasks.append(subtask.title)
    if subtasks:
        number = counted(len(subtasks), "subtask")
        warnings.append(
            f"not shown to be above an answer that needs no model in {number}: {', '.join(subtasks)}"
        )
    # The constant answer of a subtask with a null line is right as often as the reference is null.
    for subtask in SUBTASKS.values():
        if subtask.has_null_line and subtask.name in not_beaten.get("constant", ()):
            warnings.append(
                f"{subtask.title}: not shown to be above printing the null line every time"
            )
    without_s = sorted(set(languages) - set(s_languages))
    if s_languages and without_s:
        warnings.append(
            f"no S on {', '.join(without_s)} items: the embedder is not made for them; see their lexical mean"
        )
    return warnings + typography_warnings(rows)


def typography_warnings(rows: ScoreRows) -> list[str]:
    """Warn where replies lose a point or more of the lexical mean by their quotes, dashes and widths alone."""
    if rows.lexical_folded is None:
        return []
    lexical = rows.lexical["items_mean"].value
    folded = rows.lexical_folded["items_mean"].value
    if lexical is None or folded is None or folded - lexical < TYPOGRAPHY_POINTS:
        return []
    return [
        f"typography costs {folded - lexical:.1f} points of the lexical mean of the items ({lexical:.2f}; folded "
        f"{folded:.2f}): these replies write quotes, dashes or full-width marks otherwise than the references"
    ]


def judge_warnings(judging: JudgeFigures, has_s: bool) -> Iterator[str]:
    """Yield what a reader must know of the judgements."""
    if judging.failed:
        yield (
            f"{counted(judging.failed, 'answer')} with judgements that failed or were not made: `h2htalk judge run` "
            "with the same judges repeats them; where --max-cost stopped it, raise that"
        )
    if judging.declined:
        declined = counted(sum(judging.declined.values()), "answer")
        first = shorten(next(iter(judging.declined)), 200)
        yield (
            f"the filter of a judge's provider declined {declined} ({first}): no rating, and the same judge is not "
            "asked again; name another judge"
        )
    if judging.unknown_reasons:
        yield reasons_text(judging.unknown_reasons, "the judges' replies")
    if judging.unscored and not judging.failed:
        reasons = ", ".join(f"{number:,} {reason}" for reason, number in judging.unscored.items())
        advice = ""
        if not set(judging.unscored) <= {TOO_LONG, JUDGE_FILTERED}:
            advice = (
                "; `h2htalk judge run --repeat-unscored` with the same judges asks again for replies that were not "
                "read"
            )
        yield f"answers without a rating ({reasons}) leave the judged row incomplete, which is not ranked{advice}"
        for reason, message in judging.unread.items():
            yield f"the first reply of a judge that is {reason}: {message}"
    if not has_s:
        yield "without S there is no J: the ratings of levels I to III stand apart; score with an --embedder"


def count_outcomes(
    scenarios: Sequence[Scenario], answers: Answers, scores: Scores, erased: int = 0
) -> RunCounts:
    """Count scored items, replies of each kind and failures."""
    endings = count_endings(answers.values())
    failures = Counter[str]()
    messages: dict[str, str] = {}
    for item in scores.values():
        for sample in item.samples:
            reason = sample.unscored
            if reason and reason != FILTERED_REPLY:
                answer = answers.get((sample.id, sample.sample))
                failures[reason] += 1
                messages.setdefault(reason, _failure_message(reason, answer))
    reasons = [scores[scenario.id].unscored for scenario in scenarios]
    return RunCounts(
        items=len(scenarios),
        scored=reasons.count(None),
        samples=endings.replies,
        private=reasons.count(PRIVATE_REFERENCE),
        left_out=reasons.count(FILTERED_REPLY),
        erased=erased,
        failures=dict(sorted(failures.items())),
        failure_messages=dict(sorted(messages.items())),
        empty=sum(endings.empty.values()),
        truncated=endings.cut,
        refused=endings.refused,
        filtered=endings.filtered,
        empty_causes=endings.empty,
    )


def _failure_message(reason: str, answer: Response | FailedResponse | None) -> str:
    """Explain to people why a sample is unscored."""
    if answer is None:
        return "no answer is stored"
    if isinstance(answer, FailedResponse):
        return answer.failure.message or reason
    return "the references are private" if reason == PRIVATE_REFERENCE else reason


def null_shares(
    scenarios: Sequence[Scenario], answers: Answers, scores: Scores
) -> list[tuple[float, bool]]:
    """For each scored item of a subtask with a null line, compare answers and reference.

    Returns the share of its answers that are the null line, and whether its reference is.
    """
    pairs = []
    for scenario in scenarios:
        score = scores[scenario.id]
        if not SUBTASKS[scenario.subtask].has_null_line or score.unscored is not None:
            continue
        replies = [answers[scenario.id, sample.sample] for sample in score.samples]
        texts = [reply.answer for reply in replies if isinstance(reply, Response)]
        null_answers = sum(is_null_memory(text, scenario.language) for text in texts)
        null_reference = is_null_memory(scenario.reference, scenario.language)
        pairs.append((null_answers / len(texts), null_reference))
    return pairs


def by_sample(scenarios: Sequence[Scenario], scores: Scores, value_of: ValueOf) -> list[float]:
    """Return the headline figure of each sample, over items of which every sample is scored.

    Empty where an item has one sample.
    """
    samples = min((len(scores[scenario.id].samples) for scenario in scenarios), default=0)
    if samples < 2:
        return []
    values: dict[str, list[float | None]] = {}
    for scenario in scenarios:
        values[scenario.id] = [value_of(scenario, sample) for sample in scores[scenario.id].samples]
    complete = [scenario for scenario in scenarios if None not in values[scenario.id]]

    figures = []
    for sample in range(samples):
        row = aggregate((scenario.subtask, values[scenario.id][sample]) for scenario in complete)
        # The mean over items stands for the overall where subtasks are missing.
        figure = row["items_mean" if row["overall"].value is None else "overall"].value
        if figure is not None:
            figures.append(figure)
    return figures


def score_rows(
    scenarios: Sequence[Scenario], with_s: Sequence[Scenario], scored: Scored
) -> ScoreRows:
    """Aggregate the scores of items into the rows of Table 2; S over the items that have it."""

    def row(measure: str, items: Sequence[Scenario]) -> Row:
        return aggregate((item.subtask, getattr(scored.scores[item.id], measure)) for item in items)

    folded = aggregate(
        (item.subtask, scored.scores[item.id].metrics.get(LEXICAL_FOLDED)) for item in scenarios
    )
    synthesis_items = sum(SUBTASKS[scenario.subtask].has_null_line for scenario in scenarios)
    return ScoreRows(
        s=row("s", with_s) if with_s else None,
        lexical=row("lexical", scenarios),
        compliance=row("compliance", scenarios),
        null_class=null_class(scored.nulls, synthesis_items) if synthesis_items else None,
        lexical_folded=folded,
    )


def slices_of(
    scenarios: Sequence[Scenario], scores: Scores, value_of: ValueOf
) -> dict[str, dict[str, Estimate]]:
    """Return a cell for each value of each tag, and for each language."""
    values = [(scenario, value_of(scenario, scores[scenario.id])) for scenario in scenarios]
    slices = {}
    for tag in TAGS:
        slices[tag] = aggregate_slices(
            (str(getattr(scenario.tags, tag)), value) for scenario, value in values
        )
    slices["language"] = aggregate_slices((item.language, value) for item, value in values)
    return slices


def metric_means(
    scenarios: Sequence[Scenario], with_s: Sequence[Scenario], scores: Scores
) -> dict[str, dict[str, Estimate]]:
    """Return a cell for each metric of each subtask, by subtask and metric.

    SS covers the items that have S. A metric without any value is left out, unless it is lexical. The lexical mean
    without typography is a row of its own (`ScoreRows`).
    """
    cells: dict[str, dict[str, Estimate]] = defaultdict(dict)
    for metric in all_columns(scores[scenario.id].metrics for scenario in scenarios):
        if metric == LEXICAL_FOLDED:
            continue
        items = with_s if metric in METRICS["semantic"].columns else scenarios
        values = [(item.subtask, scores[item.id].metrics.get(metric)) for item in items]
        has_value = any(value is not None for _, value in values)
        if has_value or metric in LEXICAL_COLUMNS:
            for subtask, cell in aggregate_slices(values).items():
                cells[subtask][metric] = cell
    return {subtask: cells[subtask] for subtask in SUBTASKS if subtask in cells}
