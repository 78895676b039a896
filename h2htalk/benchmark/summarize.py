"""Summarize item scores: rows of the model and the baselines, slices, counts, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from h2htalk.benchmark.metrics.composite import PRIVATE_REFERENCE, ItemScore, SampleScore
from h2htalk.benchmark.metrics.metric_table import METRICS, Metrics, columns
from h2htalk.benchmark.statistics.intervals import clusters_of
from h2htalk.benchmark.statistics.paired import Difference, paired_figures
from h2htalk.benchmark.statistics.table2_averages import Cell, ItemValue, Row, aggregate, aggregate_slices, null_class
from h2htalk.benchmark.summary import Measure, RunCounts, ScoreRows, Summary
from h2htalk.data.responses import KEY_MASK, Answers, FailedResponse, Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted
from h2htalk.text.contracts.memory_blocks import is_null_memory
from h2htalk.version import __version__

SLICES = ("emotion", "complexity", "interaction", "risk", "language")
# Warn when more than this share of the replies was cut at the token budget.
TRUNCATED_SHARE = 0.1

# What an item, or one sample of it, counts in a figure: 0 to 1.
ValueOf = Callable[[Scenario, ItemScore | SampleScore], float | None]
Scored = tuple[Answers, Mapping[str, ItemScore]]


def summarize(
    model: str,
    split: Split,
    signature: Signature,
    metrics: Metrics,
    scored: Scored,
    baselines: Mapping[str, Scored],
) -> Summary:
    """Build the summary of a run.

    Args:
        model: what the table calls the model.
        split: the items that were asked.
        scored: the model's answers and their scores by id.
        baselines: the same for each baseline, by name.
    """
    baselines = {name: (answers, _on_same_items(scores, scored[1])) for name, (answers, scores) in baselines.items()}
    with_s = [s for s in split.scenarios if metrics.asks_s(s.language)]
    measure: Measure = "s" if with_s else "lexical"
    own = with_s or split.scenarios

    def value_of(scenario: Scenario, score: ItemScore | SampleScore) -> float | None:
        return score.s if measure == "s" else score.lexical

    reached = {name: reached_figures(own, scored[1], scores, measure) for name, (_, scores) in baselines.items()}
    counts = count_outcomes(split.scenarios, *scored)
    return Summary(
        model=model,
        split=f"{split.name} {split.version}"
        + (f" ({split.source}, commit {split.commit[:12]})" if split.commit else ""),
        signature=signature,
        package_version=__version__,
        measure=measure,
        s_comparable=metrics.embedder is not None and metrics.embedder.comparable,
        counts=counts,
        languages=tuple(sorted({s.language for s in split.scenarios})),
        s_languages=tuple(sorted({s.language for s in with_s})),
        rows=score_rows(split.scenarios, with_s, scored),
        metrics=metric_means(split.scenarios, with_s, scored[1]),
        slices=slices_of(own, scored[1], value_of),
        baselines={name: score_rows(split.scenarios, with_s, baseline) for name, baseline in baselines.items()},
        reached=reached,
        by_sample=tuple(by_sample(own, scored[1], value_of)),
        violations=count_violations(scored[1].values()),
        warnings=(
            *baseline_warnings(reached),
            *_language_warnings(split.scenarios, with_s),
            *_truncation_warnings(counts),
            *_key_warnings(scored[0]),
        ),
    )


def by_sample(scenarios: Sequence[Scenario], scores: Mapping[str, ItemScore], value_of: ValueOf) -> Iterator[float]:
    """The headline figure of each sample, over the items of which every sample is scored."""
    values = {s.id: [value_of(s, sample) for sample in scores[s.id].samples] for s in scenarios}
    whole = [s for s in scenarios if None not in values[s.id]]
    samples = min((len(values[s.id]) for s in whole), default=0)
    for number in range(samples if samples > 1 else 0):
        row = aggregate(ItemValue(s.id, s.subtask, values[s.id][number]) for s in whole)
        figure = row.items_mean.value if row.overall.value is None else row.overall.value
        if figure is not None:
            yield figure


def reached_figures(
    scenarios: Sequence[Scenario], model: Mapping[str, ItemScore], baseline: Mapping[str, ItemScore], measure: Measure
) -> tuple[str, ...]:
    """Return the figures of Table 2 in which a model is not shown to be above a baseline, by the paired interval."""
    clusters = clusters_of(scenarios)
    differences = []
    for s in scenarios:
        own, other = (getattr(scores[s.id], measure) for scores in (model, baseline))
        if own is not None and other is not None:
            differences.append(Difference(s.subtask, clusters[s.id], own - other))
    return tuple(key for key, result in paired_figures(differences).items() if not result.above)


def _on_same_items(baseline: Mapping[str, ItemScore], model: Mapping[str, ItemScore]) -> dict[str, ItemScore]:
    """Leave out the items that the model has no score for, so that both are compared on the same items."""
    return {
        item_id: ItemScore(item_id, unscored=model[item_id].unscored) if model[item_id].unscored else score
        for item_id, score in baseline.items()
    }


def count_outcomes(scenarios: Sequence[Scenario], answers: Answers, scores: Mapping[str, ItemScore]) -> RunCounts:
    """Count scored items, replies of each kind and failures."""
    asked = {s.id for s in scenarios}
    replies = [a for a in answers.values() if isinstance(a, Response) and a.id in asked]
    unscored = [(s, s.unscored) for item in scores.values() for s in item.samples if s.unscored]
    messages: dict[str, str] = {}
    for sample, reason in unscored:
        messages.setdefault(reason, _message(answers.get((sample.id, sample.sample)), reason))
    return RunCounts(
        items=len(scenarios),
        scored=sum(scores[s.id].unscored is None for s in scenarios),
        samples=len(replies),
        empty=sum(not reply.answer for reply in replies),
        truncated=sum(reply.finish_reason == "length" for reply in replies),
        refused=sum(reply.finish_reason == "refusal" for reply in replies),
        failures=dict(sorted(Counter(reason for _, reason in unscored).items())),
        failure_messages=dict(sorted(messages.items())),
        private=sum(scores[s.id].unscored == PRIVATE_REFERENCE for s in scenarios),
    )


def _message(answer: Response | FailedResponse | None, reason: str) -> str:
    """Why one sample is unscored, in words."""
    if isinstance(answer, FailedResponse):
        return answer.failure.message or reason
    if reason == PRIVATE_REFERENCE:
        return "the references are private"
    return "no answer is stored" if answer is None else reason


def count_violations(scores: Iterable[ItemScore]) -> dict[str, int]:
    """How many answers break each contract rule, most frequent first."""
    counts = Counter(rule for item in scores for sample in item.samples for rule in sample.violations or ())
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def null_shares(
    scenarios: Sequence[Scenario], answers: Answers, scores: Mapping[str, ItemScore]
) -> list[tuple[float, bool]]:
    """For each scored item of a subtask with a null line: the share of its answers that are null; is the reference."""
    pairs = []
    for scenario in scenarios:
        score = scores[scenario.id]
        if SUBTASKS[scenario.subtask].has_null_line and score.unscored is None:
            replies = [answers[scenario.id, s.sample] for s in score.samples]
            null = [is_null_memory(r.answer, scenario.language) for r in replies if isinstance(r, Response)]
            pairs.append((sum(null) / len(null), is_null_memory(scenario.reference, scenario.language)))
    return pairs


def score_rows(scenarios: Sequence[Scenario], with_s: Sequence[Scenario], scored: Scored) -> ScoreRows:
    """Aggregate the scores of items into rows; those with S are asked for it."""
    answers, scores = scored

    def row(name: str, items: Sequence[Scenario] = scenarios) -> Row:
        return aggregate([ItemValue(s.id, s.subtask, getattr(scores[s.id], name)) for s in items])

    synthesis = sum(SUBTASKS[s.subtask].has_null_line for s in scenarios)
    return ScoreRows(
        s=row("s", with_s) if with_s else None,
        lexical=row("lexical"),
        compliance=row("compliance"),
        null_class=null_class(null_shares(scenarios, answers, scores), synthesis) if synthesis else None,
    )


def slices_of(
    scenarios: Sequence[Scenario], scores: Mapping[str, ItemScore], value_of: ValueOf
) -> dict[str, dict[str, Cell]]:
    """A cell for each value of each tag."""

    def tag_of(scenario: Scenario, tag: str) -> str:
        return scenario.language if tag == "language" else str(getattr(scenario.tags, tag))

    return {
        tag: aggregate_slices(ItemValue(s.id, tag_of(s, tag), value_of(s, scores[s.id])) for s in scenarios)
        for tag in SLICES
    }


def metric_means(
    scenarios: Sequence[Scenario], with_s: Sequence[Scenario], scores: Mapping[str, ItemScore]
) -> dict[str, dict[str, Cell]]:
    """A cell for each metric of each subtask, SS of the items with S alone; not lexical ones only with values."""
    rows: dict[str, dict[str, Cell]] = {}
    for name in columns():
        own = with_s if name in METRICS["semantic"].columns else scenarios
        values = [ItemValue(s.id, s.subtask, scores[s.id].metric(name)) for s in own]
        if name not in METRICS["lexical"].columns and all(value.value is None for value in values):
            continue
        for subtask, cell in aggregate_slices(values).items():
            rows.setdefault(subtask, {})[name] = cell
    return {subtask: rows[subtask] for subtask in SUBTASKS if subtask in rows}


def baseline_warnings(reached: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a warning that names the subtasks in which the model is not shown to be above a baseline, and one more for
    each subtask with a null line, where the constant answer is right as often as the reference is null."""
    beaten = [name for name in SUBTASKS if any(name in keys for keys in reached.values())]
    if not beaten:
        return []
    titles = ", ".join(SUBTASKS[name].title for name in beaten)
    plural = f"{len(beaten)} subtask{'s' if len(beaten) > 1 else ''}"
    lines = [f"not shown to be above an answer that needs no model in {plural}: {titles}"]
    for subtask in SUBTASKS.values():
        if subtask.has_null_line and subtask.name in reached.get("constant", ()):
            lines.append(f"{subtask.title}: not shown to be above printing the null line every time")
    return lines


def _language_warnings(scenarios: Sequence[Scenario], with_s: Sequence[Scenario]) -> list[str]:
    languages = ", ".join(sorted({s.language for s in scenarios} - {s.language for s in with_s}))
    if not with_s or not languages:
        return []
    return [f"no S on {languages} items: the embedder is not made for them; see their lexical mean"]


def _truncation_warnings(counts: RunCounts) -> list[str]:
    if counts.truncated <= TRUNCATED_SHARE * counts.samples:
        return []
    return [f"{counts.truncated} of {counts.samples} replies were cut at their token budget (finish reason length)"]


def _key_warnings(answers: Answers) -> list[str]:
    ids = sorted({answer.id for answer in answers.values() if KEY_MASK in str(answer)})
    if not ids:
        return []
    return [f"the server repeated the API key in its answers to {counted(len(ids), 'item')} ({ids[0]}); it was masked"]
