"""Correlate what runs measure: metrics with people's ratings, dimensions with each other and with other benchmarks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np

from h2htalk.benchmark.calibration.labels import read_number, require_first_rating
from h2htalk.benchmark.compare.comparison import title_of
from h2htalk.benchmark.estimate_text import format_interval
from h2htalk.benchmark.metrics.composite import METRIC_COLUMNS, ItemScore, item_score
from h2htalk.benchmark.report.table2 import main_row
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.benchmark.statistics.estimates import Estimate
from h2htalk.benchmark.statistics.rank_correlation import FEW, MIN_PAIRS, rank_correlation
from h2htalk.data.imports.csv_rows import read_rows
from h2htalk.data.model_names import without_path
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.signature import rescoring_advice
from h2htalk.data.subtasks import DIMENSIONS, SUBTASKS
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted
from h2htalk.progress import counted_items
from h2htalk.text.tables import Table

# The ratings of a reply by (item, sample), one for each annotator; the sample is None where a table or a run does not
# say which it is.
Ratings = dict[tuple[str, int | None], list[float]]


def _read_benchmarks(
    path: Path | None, runs: Sequence[Run]
) -> tuple[list[dict[str, float]], list[str]]:
    """Each run's scores by benchmark, and the names of rows that are no run's."""
    scores = [dict[str, float]() for _ in runs]
    strangers = list[str]()
    if path is None:
        return scores, strangers
    for where, row in read_rows(path):
        (_, name), *cells = row.items()
        index = _run_named(name, runs, where)
        if index is None:
            strangers.append(name)
        elif scores[index]:
            raise DataError(f"{where}: a second row of {quoted(name)}; keep one")
        else:
            for key, cell in cells:
                if cell:
                    scores[index][key] = read_number(cell, f"{where}: {key}")
    if not any(scores):
        names = listed([run.summary.model for run in runs])
        raise DataError(f"{path}: has no row named like one of {names}")
    return scores, strangers


def _read_ratings(path: Path | None, runs: Sequence[Run]) -> list[Ratings]:
    """Read each run's ratings; raise DataError, naming both lines, where one annotator rates a reply twice."""
    ratings: list[Ratings] = [{} for _ in runs]
    if path is None:
        return ratings
    lines: dict[tuple[Hashable, str], str] = {}
    columns = {"id", "rating"}
    if len(runs) > 1:
        columns.add("run")
    for where, row in read_rows(path):
        missing = columns - row.keys()
        if missing:
            raise ConfigError(
                f"{path}: lacks the column {listed(sorted(missing))}; it has {listed(list(row))}"
            )
        index = _run_named(row["run"], runs, where) if "run" in row else 0
        item = None if index is None else runs[index].item_scores.get(row["id"])
        samples = {} if item is None else _samples_by_cell(item)
        cell = row.get("sample", "")
        if index is None or cell not in samples:
            raise DataError(
                f"{where}: no run that is named here has such an item or sample: {quoted(row)}"
            )
        reply = (row["id"], samples[cell])
        require_first_rating(lines, (index, reply), row.get("annotator", ""), where)
        rating = read_number(row["rating"], f"{where}: rating")
        ratings[index].setdefault(reply, []).append(rating)
    return ratings


def _samples_by_cell(item: ItemScore) -> dict[str, int | None]:
    """What a cell `sample` names: a sample, or None for the item; the only sample of an item is the item."""
    samples: dict[str, int | None] = {"": None}
    for scored in item.samples:
        samples[str(scored.sample)] = scored.sample if len(item.samples) > 1 else None
    return samples


def _run_named(name: str, runs: Sequence[Run], where: str) -> int | None:
    """The run of a name: as in tables, of its folder, or of the model alone."""
    numbers = []
    for number, run in enumerate(runs):
        model = run.summary.signature.subject["model"]
        folder = run.data.folder.path.name
        if name in (run.summary.model, folder, model, without_path(model)):
            numbers.append(number)
    if len(numbers) > 1:
        raise DataError(
            f"{where}: {quoted(name)} names {len(numbers)} runs; write the name of a run's folder"
        )
    return numbers[0] if numbers else None


HUMAN = "human_rating"
_METRICS = ("s", "lexical", *METRIC_COLUMNS)
_DIMENSIONS = tuple(f"{name}_avg" for name in DIMENSIONS)
_FIGURES = ("overall", *_DIMENSIONS, *SUBTASKS)
_WITHIN = (*combinations(_DIMENSIONS, 2), *combinations(SUBTASKS, 2))
# The names of columns in tables and figures; benchmarks keep theirs.
TITLES = {name: name.upper().replace("_", "-") for name in _METRICS} | {
    name: title_of(name) for name in _FIGURES
}
TITLES |= {"lexical": "Lexical mean", HUMAN: "Human rating"}
Unit = tuple[str, Mapping[str, float]]  # a cluster, and values by column


class Correlation(NamedTuple):
    """Spearman's correlation of two columns over pairs of values, in so many clusters.

    Each pair of values belongs to an item, a dialogue (or another cluster of items) or a model (`level`).
    """

    level: str
    a: str
    b: str
    estimate: Estimate
    clusters: int

    @property
    def titles(self) -> tuple[str, str]:
        """What tables and figures call both columns."""
        return TITLES.get(self.a, self.a), TITLES.get(self.b, self.b)

    def row(self) -> tuple[str | float | None, ...]:
        """Return the values of `_COLUMNS`."""
        value, low, high, n, _ = self.estimate.fields
        return (self.level, self.a, self.b, value, low, high, n, self.clusters)


_COLUMNS = ("level", "a", "b", "value", "low", "high", "n", "clusters")
_METHOD = "rho: Spearman. Over items and dialogues: within each run, mean over runs; bootstrap by cluster."


class Correlations(NamedTuple):
    """The pairs that have values, level by level, and what the reader must know."""

    pairs: tuple[Correlation, ...]
    notes: tuple[str, ...]

    def to(self, format: str) -> str:
        """Return every pair in full as `csv` or `json`; for the `terminal` those of two subtasks are left out."""
        if format != "terminal":
            rows = [pair.row() for pair in self.pairs]
            return Table("", _COLUMNS, rows, self.notes).to(format)
        lines = []
        for pair in self.pairs:
            if pair.a in SUBTASKS and pair.b in SUBTASKS:
                continue
            estimate = pair.estimate
            rho = None if estimate.value is None else f"{estimate.value:+.2f}"
            interval = format_interval(estimate.interval, "+.2f")
            lines.append((f"{pair.level}s", *pair.titles, rho, interval, estimate.n))
        header = ("over", "", "", "rho", "95 % interval", "n")
        return Table("", header, lines, (*self.notes, _METHOD)).to_terminal() + "\n"


def correlate(
    runs: Sequence[AnyPath], *, ratings: AnyPath | None = None, other_scores: AnyPath | None = None
) -> Correlations:
    """Correlate the figures of scored runs by rank: over items and dialogues within each run, over models.

    Args:
        ratings: a CSV file of people's ratings of replies: `id`, `rating` and, where needed, `annotator`, `sample` and
            `run`; one rating of a reply by each annotator.
        other_scores: a CSV file of other benchmarks, a row a model (named as in tables, as its run's folder or as
            the model alone) and a column a benchmark.

    Examples:
        >>> import h2htalk
        >>> h2htalk.correlate(["runs/constant"]).notes[0]
        '1 model of at least 4: no correlation over models'

    Raises:
        ConfigError: the runs' protocols differ (the keys are named), or a table lacks a column.
        DataError: a folder is no scored run, or a table cannot be read.
    """
    paths = dict.fromkeys(as_path(path, "runs") for path in runs)
    loaded = [load_run(path) for path in counted_items("reading runs", paths)]
    _require_one_protocol(loaded)
    rated = _read_ratings(None if ratings is None else as_path(ratings, "ratings"), loaded)
    scores_file = None if other_scores is None else as_path(other_scores, "other_scores")
    benchmarks, strangers = _read_benchmarks(scores_file, loaded)
    names = dict.fromkeys(chain.from_iterable(benchmarks))
    clashes = names.keys() & {HUMAN, *_FIGURES}
    if clashes:
        raise ConfigError(
            f"{other_scores}: a column is named {min(clashes)} as a figure here is; rename it"
        )
    items = []
    dialogues = []
    models = []
    for number, run in enumerate(loaded):
        items.append(list(_rated(run, rated[number])))
        dialogues.append(list(_dialogues(run)))
        if not run.summary.signature.human:
            models.append((str(number), _figures(run, rated[number]) | benchmarks[number]))
    across = (*product((*_FIGURES, HUMAN), names), ("overall", HUMAN), *_WITHIN)
    pairs = [
        *_correlations("item", product(_METRICS, (HUMAN,)), items),
        *_correlations("dialogue", _WITHIN, dialogues),
        *_correlations("model", across, [models]),
    ]
    return Correlations(tuple(pairs), tuple(_notes(loaded, len(models), pairs, strangers)))


def _require_one_protocol(runs: Sequence[Run]) -> None:
    """Raise ConfigError, naming what differs, unless all runs have the first model's protocol."""
    signatures = [run.summary.signature for run in runs]
    if not signatures:
        return
    first = min(signatures, key=lambda signature: signature.human)  # people's have no prompts
    for run in runs:
        different = first.differing(run.summary.signature)
        if different:
            advice = rescoring_advice(first, run.summary.signature, "h2htalk score RUN")
            where = run.data.folder.path
            raise ConfigError(
                f"{where}: another protocol than the first run's: {listed(different)}{advice}"
            )


def cells_of_level(
    correlations: Correlations, level: str
) -> dict[tuple[str, str], tuple[float | None, float | None, float | None]]:
    """Return of each pair of a level, by the titles of both columns, the correlation and its interval."""
    cells = {}
    for pair in correlations.pairs:
        if pair.level == level:
            estimate = pair.estimate
            cells[pair.titles] = (estimate.value, estimate.low, estimate.high)
    return cells


def _notes(
    runs: Sequence[Run], models: int, pairs: Sequence[Correlation], strangers: Sequence[str]
) -> Iterator[str]:
    if models < MIN_PAIRS:
        yield f"{counted(models, 'model')} of at least {MIN_PAIRS}: no correlation over models"
    elif models < FEW:
        yield f"{models} models are few: the intervals over models are wide"
    if all(pair.level != "dialogue" for pair in pairs):
        yield "no two dialogues have items of the same two subtasks: no correlation over dialogues"
    human = [run.summary.model for run in runs if run.summary.signature.human]
    incomplete = [run.summary.model for run in runs if run.summary.incomplete]
    for text, names in (
        ("written by people, not among the models", human),
        ("incomplete, so of fewer items than the others", incomplete),
        ("rows that name no run", strangers),
    ):
        if names:
            yield f"{text}: {listed(names)}"


def _rated(run: Run, ratings: Ratings) -> Iterator[Unit]:
    """Each rated reply with its mean rating, S and the parts of S."""
    clusters = clusters_of(run.data.split.scenarios)
    measure = run.summary.measure
    for (item, sample), of_reply in ratings.items():
        score = run.item_scores[item]
        if sample is not None:
            score = item_score(item, [score.samples[sample]])
        values = {name: score.metrics.get(name) for name in _METRICS}
        values[measure] = getattr(score, measure)
        values[HUMAN] = fmean(of_reply)
        yield clusters[item], {name: value for name, value in values.items() if value is not None}


def _dialogues(run: Run) -> Iterator[Unit]:
    """Each cluster with the means of its items by dimension and by subtask."""
    clusters = clusters_of(run.data.split.scenarios)
    by_cluster = defaultdict[str, dict[str, list[float]]](dict)
    for scenario in run.data.split.scenarios:
        value = getattr(run.item_scores[scenario.id], run.summary.measure)
        if value is None:
            continue
        columns = by_cluster[clusters[scenario.id]]
        for name in (f"{SUBTASKS[scenario.subtask].dimension}_avg", scenario.subtask):
            columns.setdefault(name, []).append(value)
    for cluster, columns in by_cluster.items():
        yield cluster, {name: fmean(values) for name, values in columns.items()}


def _figures(run: Run, ratings: Ratings) -> dict[str, float]:
    row = main_row(run.summary)
    figures = {}
    for key in _FIGURES:
        value = row[key].value if key in row else None
        if value is not None:
            figures[key] = value
    if ratings:
        figures[HUMAN] = fmean(map(fmean, ratings.values()))
    return figures


def _correlations(
    level: str, columns: Iterable[tuple[str, str]], runs: Sequence[Sequence[Unit]]
) -> Iterator[Correlation]:
    """Correlate each two columns over the units that have both, in runs with at least four of these."""
    for a, b in counted_items(f"correlating over {level}s", list(columns)):
        samples = []
        names = set[str]()
        for units in runs:
            with_both = [unit for unit in units if a in unit[1] and b in unit[1]]
            if len(with_both) >= MIN_PAIRS:
                clusters = [cluster for cluster, _ in with_both]
                values = np.array([(unit[1][a], unit[1][b]) for unit in with_both])
                samples.append((clusters, values.T))
                names.update(clusters)
        if samples:
            yield Correlation(level, a, b, rank_correlation(samples), len(names))
