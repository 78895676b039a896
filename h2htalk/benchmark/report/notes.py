"""Notes on the figures of a run, and facts about its judges."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import stdev

from h2htalk.benchmark.estimate_text import format_with_interval, half_width_text, items_text
from h2htalk.benchmark.metrics.composite import THRESHOLD
from h2htalk.benchmark.report.run_tables import most_first
from h2htalk.benchmark.report.table2 import FOLDED, NOT_SCORED, UNJUDGED, has_levels, main_row
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.summary import JudgeFigures, Summary
from h2htalk.data.model_names import without_path
from h2htalk.data.responses import JUDGE_FILTERED
from h2htalk.data.signature import HUMAN
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import counted, listed

JUDGED = (
    "Itinerary Basic, Middle and Advanced (levels I-III) are 20 J (Eq. 3); the unjudged 100 S stands apart. "
    "Baselines are unjudged."
)


def notes(summary: Summary) -> Iterator[tuple[str, bool]]:
    """Yield the notes on this summary's figures, most important first, each with whether it has a warning colour."""
    counts = summary.counts
    if summary.signature.human:
        yield "Replies written by people, not by a model.", False
    if summary.incomplete:
        yield f"INCOMPLETE: {_incomplete(summary)}", True
    if counts.private:
        items = counted(counts.private, "item")
        advice = (
            "Whoever has them scores the stored answers with `h2htalk score RUN --references FILE`."
        )
        yield f"{NOT_SCORED.capitalize()} ({items}). {advice}", True
    if counts.left_out:
        yield (
            f"{counted(counts.left_out, 'item')} left out: the provider's filter declined the reply.",
            True,
        )
    if counts.erased:
        yield f"{counted(counts.erased, 'item')} erased since: the figures leave them out.", True
    if summary.measure == "lexical":
        yield (
            "S was not asked for: the figures are means of BLEU-1 to 4, ROUGE-1 and ROUGE-L.",
            False,
        )
    elif not summary.s_comparable:
        embedder = summary.signature.protocol.get("embedder", "another embedder")
        yield (
            f"S is not comparable with the paper's: its SS comes from {embedder}, not from BGE-M3.",
            True,
        )
    if has_levels(summary.rows.lexical):
        yield JUDGED if summary.judged else UNJUDGED, False
    if summary.rows.lexical_folded is not None:
        yield FOLDED, False
    row = main_row(summary)
    missing = [subtask.title for name, subtask in SUBTASKS.items() if name not in row]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        yield (
            f"No overall: it needs all subtasks, and {listed(missing, len(SUBTASKS))} {are} missing.",
            False,
        )


def _incomplete(summary: Summary) -> str:
    """Describe how many items are unscored, and what to do, which depends on where the answers come from."""
    counts = summary.counts
    judging = summary.judging
    if not counts.unscored and judging is not None:
        return _unjudged(judging)
    engine = summary.signature.subject.get("engine")
    missing = min(counts.failures.get("missing", 0), counts.unscored)
    advice = "Start the same command again: it sends only those."
    if engine == "baseline":
        advice = "The baseline has no answer to those: use a split with more items for each subtask and language."
    elif engine in ("imported", HUMAN):
        advice = "Score the run again."
        if missing:
            ids = "ids" if missing > 1 else "id"
            advice = f"The imported file has no answer to {missing:,} {ids}: import a complete one into a new folder."
    return f"{counts.unscored:,} of {counts.items:,} items are unscored; the figures leave them out. {advice}"


def _unjudged(judging: JudgeFigures) -> str:
    """Describe how many answers have no rating, and which command asks again."""
    option = ""
    number = judging.failed
    if not number:
        option = " --repeat-unscored"
        number = sum(judging.unscored.values()) - judging.unscored.get(JUDGE_FILTERED, 0)
    answers = counted(number, "answer is", "answers are")
    return f"{answers} not judged; run `h2htalk judge run{option}` with the same judges again."


def spread_lines(summary: Summary) -> list[str]:
    """Return a line on how much the headline figure differs between the answers to the same items, if any has two."""
    figures = summary.by_sample
    if not figures:
        return []
    name = "Mean of items" if main_row(summary)["overall"].value is None else "Overall"
    texts = ", ".join(f"{figure:.2f}" for figure in figures)
    return [f"{name} by sample: {texts} (standard deviation {stdev(figures):.2f})"]


def judge_facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """Yield a name and a text for each fact about judges; none for a run that was never judged."""
    judging = summary.judging
    if judging is None:
        return
    judges = ", ".join(map(without_path, judging.judges))
    judgements = counted(judging.judgements, "judgement")
    yield "judges", f"{judges}; {judgements} of an answer by each; scope {judging.scope}"
    yield "rated", _rated(judging)
    ratings = []
    for name, cell in judging.ratings.items():
        if name in SUBTASKS:
            ratings.append(f"{SUBTASKS[name].title} {format_with_interval(cell)}{_part(cell)}")
    yield "20 R", ", ".join(ratings)
    if judging.items:
        by_j = judging.queue["J"]
        by_judge = judging.queue["judge"]
        items = counted(judging.items, "item")
        yield (
            "to people",
            f"by the judge's R, Eq. 4 (J < {THRESHOLD}) sends {by_j:,} of {items}, "
            f"--human-trigger judge (R < {THRESHOLD}) {by_judge:,}",
        )
    if judging.correction:
        texts = []
        means = []
        for name, cell in judging.corrected.items():
            title = SUBTASKS[name].title if name in SUBTASKS else "levels I to III"
            means.append(f"{title} {format_with_interval(cell)}")
        if means:
            texts.append(", ".join(means))
        yield "20 J corrected by people's labels", "; ".join([*texts, judging.correction])
    if judging.disagreement is not None:
        yield (
            "disagreement of judges",
            f"{judging.disagreement:.2f} of 5 on average, highest minus lowest",
        )
    for point, cell in judging.points.items():
        share = "none"
        if cell.value is not None:
            share = f"{cell.value:.1f} % {half_width_text(cell)}".rstrip()
        yield point, f"{share} of {counted(cell.n, 'item')}{_part(cell)}, by the judge"


def _rated(judging: JudgeFigures) -> str:
    """How many answers have a rating, by whom, and why the others have none."""
    text = f"{judging.scored:,} of {counted(judging.total, 'answer')}"
    if judging.scope == "levels":
        text += " of itinerary levels I to III (--scope all judges every subtask)"
    if judging.people:
        text += f", {judging.people:,} of them by people"
    reasons = [f"{number:,} {reason}" for reason, number in most_first(judging.unscored)]
    if reasons:
        text += f"; unscored: {', '.join(reasons)}"
    return text


def _part(cell: Estimate) -> str:
    """Say how many items a figure rests on, where it is not all."""
    return "" if cell.n == cell.total else f" ({items_text(cell)} items)"
