"""From item scores to a Summary: rows of the model and the floors, slices, counts, warnings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from h2htalk import __version__
from h2htalk.benchmark.aggregate import Cell, Value, aggregate, aggregate_slices, null_class
from h2htalk.benchmark.composite import METRIC_NAMES, ItemScore
from h2htalk.benchmark.scoring import Metrics
from h2htalk.benchmark.summary import Counts, Measure, Standing, Summary
from h2htalk.data.run import Response
from h2htalk.data.run_folder import Answers
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.contracts import is_null_memory

SLICES = ("emotion", "complexity", "interaction", "risk", "language")
# Beyond this share of replies cut at their token budget the run says so.
TRUNCATED_SHARE = 0.1

Scored = tuple[Answers, Mapping[str, ItemScore]]


def summarize(
    model: str,
    split: Split,
    signature: Signature,
    metrics: Metrics,
    contender: Scored,
    floors: Mapping[str, Scored],
) -> Summary:
    """Fold a run into its summary.

    Args:
        model: what the table calls the contender.
        split: the items that were asked.
        contender: the model's answers and their scores by id.
        floors: the same for each baseline, by name.
    """
    languages = sorted({s.language for s in split.scenarios})
    s_languages = tuple(language for language in languages if metrics.asks_s(language))
    measure: Measure = "s" if s_languages else "lexical"
    answers, scores = contender
    standing = standing_of(split.scenarios, contender, s_languages)
    floor_standings = {
        name: standing_of(split.scenarios, floor, s_languages) for name, floor in floors.items()
    }
    counts = count_fates(split.scenarios, answers, scores)
    return Summary(
        model=model,
        split=f"{split.name} {split.version}",
        signature=signature,
        package_version=__version__,
        measure=measure,
        s_languages=s_languages,
        s_comparable=metrics.embedder is not None and metrics.embedder.comparable,
        counts=counts,
        standing=standing,
        metrics=metric_means(split.scenarios, scores),
        slices=slices_of(split.scenarios, scores, measure, s_languages),
        floors=floor_standings,
        violations=count_violations(scores.values()),
        warnings=(
            *floor_warnings(standing, floor_standings, measure),
            *_language_warnings(languages, s_languages),
            *_truncation_warnings(counts),
        ),
    )


def count_fates(scenarios: Sequence[Scenario], answers: Answers, scores: Mapping[str, ItemScore]) -> Counts:
    """How items and replies fared."""
    asked = {s.id for s in scenarios}
    replies = [a for a in answers.values() if isinstance(a, Response) and a.id in asked]
    unscored = [s.unscored for item in scores.values() for s in item.samples if s.unscored]
    return Counts(
        items=len(scenarios),
        scored=sum(scores[s.id].unscored is None for s in scenarios),
        samples=len(replies),
        empty=sum(not reply.answer for reply in replies),
        truncated=sum(reply.finish_reason == "length" for reply in replies),
        refused=sum(reply.finish_reason == "refusal" for reply in replies),
        failures=dict(sorted(Counter(unscored).items())),
    )


def count_violations(scores: Iterable[ItemScore]) -> dict[str, int]:
    """How many answers break each contract rule, most frequent first."""
    counts = Counter(rule for item in scores for sample in item.samples for rule in sample.violations)
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def null_pairs(
    scenarios: Sequence[Scenario], answers: Answers, scores: Mapping[str, ItemScore]
) -> list[tuple[bool, bool]]:
    """For each sample of each scored recollection_synthesis item: is the answer null, is the reference."""
    pairs = []
    for scenario in scenarios:
        score = scores[scenario.id]
        if scenario.subtask != "recollection_synthesis" or score.unscored:
            continue
        reference = is_null_memory(scenario.reference, scenario.language)
        for sample in score.samples:
            answer = answers[scenario.id, sample.sample]
            if isinstance(answer, Response):
                pairs.append((is_null_memory(answer.answer, scenario.language), reference))
    return pairs


def standing_of(scenarios: Sequence[Scenario], scored: Scored, s_languages: Sequence[str]) -> Standing:
    """Fold item scores into rows.

    Args:
        scenarios: every item that was asked, scored or not.
        scored: answers, and scores by id.
        s_languages: the languages whose items are asked for S.
    """
    answers, scores = scored

    def values(measure: str, chosen: Sequence[Scenario]) -> list[Value]:
        return [Value(s.id, s.subtask, getattr(scores[s.id], measure)) for s in chosen]

    with_s = [s for s in scenarios if s.language in s_languages]
    return Standing(
        s=aggregate(values("s", with_s)) if with_s else None,
        lexical=aggregate(values("lexical", scenarios)),
        compliance=aggregate(values("compliance", scenarios)),
        null_class=null_class(null_pairs(scenarios, answers, scores))
        if any(s.subtask == "recollection_synthesis" for s in scenarios)
        else None,
    )


def slices_of(
    scenarios: Sequence[Scenario],
    scores: Mapping[str, ItemScore],
    measure: Measure,
    s_languages: Sequence[str],
) -> dict[str, dict[str, Cell]]:
    """A cell for each value of each tag, over the items that the measure was asked for."""
    chosen = [s for s in scenarios if measure == "lexical" or s.language in s_languages]

    def tag_of(scenario: Scenario, tag: str) -> str:
        return scenario.language if tag == "language" else str(getattr(scenario.tags, tag))

    return {
        tag: aggregate_slices(Value(s.id, tag_of(s, tag), getattr(scores[s.id], measure)) for s in chosen)
        for tag in SLICES
    }


def metric_means(
    scenarios: Sequence[Scenario], scores: Mapping[str, ItemScore]
) -> dict[str, dict[str, float]]:
    """The mean of each metric over the scored samples of each subtask, in [0, 1]."""
    found: dict[str, dict[str, list[float]]] = {}
    for scenario in scenarios:
        for sample in scores[scenario.id].samples:
            named = dict(zip(METRIC_NAMES, sample.lexical or (), strict=False))
            if sample.ss is not None:
                named["ss"] = sample.ss
            for name, value in named.items():
                found.setdefault(scenario.subtask, {}).setdefault(name, []).append(value)
    return {
        subtask: {name: math.fsum(values) / len(values) for name, values in found[subtask].items()}
        for subtask in SUBTASKS
        if subtask in found
    }


def floor_warnings(standing: Standing, floors: Mapping[str, Standing], measure: Measure) -> list[str]:
    """Where a trivial answer scores at least as high as the model: one line that names the subtasks, and one
    more for RecollectionSynthesis, whose constant answer is right as often as its references are null."""
    beaten = [name for name in SUBTASKS if any(_beats(f, standing, name, measure) for f in floors.values())]
    if not beaten:
        return []
    titles = ", ".join(SUBTASKS[name].title for name in beaten)
    plural = f"{len(beaten)} subtask{'s' if len(beaten) > 1 else ''}"
    lines = [f"an answer that needs no model scores at least as much in {plural}: {titles}"]
    constant = floors.get("constant")
    if constant and _beats(constant, standing, "recollection_synthesis", measure):
        lines.append("RecollectionSynthesis: printing the null line every time would score at least as much")
    return lines


def _beats(floor: Standing, standing: Standing, subtask: str, measure: Measure) -> bool:
    rows = floor.row(measure), standing.row(measure)
    cells = [row.cells.get(subtask) for row in rows if row]
    values = [cell.value for cell in cells if cell and cell.value is not None]
    return len(values) == 2 and values[0] >= values[1]


def _language_warnings(languages: Sequence[str], s_languages: Sequence[str]) -> list[str]:
    without = [language for language in languages if language not in s_languages]
    if not s_languages or not without:
        return []
    return [f"S was not asked for on {', '.join(without)} items: the embedder is not made for them"]


def _truncation_warnings(counts: Counts) -> list[str]:
    if counts.truncated <= TRUNCATED_SHARE * counts.samples:
        return []
    return [
        f"{counts.truncated} of {counts.samples} replies were cut at their token budget (finish reason length)"
    ]
