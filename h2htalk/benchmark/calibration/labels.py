"""People's labels of judged answers: how many are needed and which, stored in the run; and the files that hold them."""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from h2htalk.benchmark.adjudicate import open_rating_round, read_round_ratings
from h2htalk.benchmark.calibration.corrected_mean import JudgedItem, draw_labels, strata_of
from h2htalk.benchmark.judge.judgements import (
    ALL_LEVELS,
    JUDGEMENTS,
    Judging,
    Ratings,
    answer_id,
    rate_answers,
    require_judging,
)
from h2htalk.benchmark.judge.rubric import HIGHEST, PLAN_QUALITIES, QUALITIES, qualities_of
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.data.files import read_sealed, write_sealed, write_text
from h2htalk.data.imports.csv_rows import read_rows
from h2htalk.data.records import read_record
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted
from h2htalk.rounds.item_sources import scenario_item
from h2htalk.rounds.platforms import require_platform
from h2htalk.rounds.spreadsheets.item_text import cell_text, item_blocks, join_blocks
from h2htalk.rounds.texts.interface import interface_text
from h2htalk.text.escaping import harmless_cell

COLUMNS = (
    "id",
    "sample",
    "subtask",
    "scenario",
    "reply",
    "rating",
)  # to fill in; `subtask`, `scenario` are not read
_QUALITIES = (*QUALITIES, *PLAN_QUALITIES)
_KNOWN = dict.fromkeys((*COLUMNS, "annotator", *_QUALITIES))
# Of an answer: annotator -> 0 to 5. Without a column `annotator` the name is empty.
Labels = Mapping[SampleKey, Mapping[str, float]]


def read_labels(run: Run, path: Path) -> Labels:
    """Read people's ratings of a run's answers.

    `path` is a closed adjudication round, or a CSV file with `id` and `rating` (0 to 5), or a column for each quality
    of the rubric in its place; where needed `sample` and `annotator`. Empty cells are skipped.
    """
    if path.is_dir():
        return read_round_ratings(run, path)
    labels: dict[SampleKey, dict[str, float]] = {}
    lines: dict[tuple[Hashable, str], str] = {}
    ids = {shown: s for s in run.data.split.scenarios for shown in (s.id, harmless_cell(s.id))}
    for where, row in read_rows(path):
        if (
            "id" not in row
            or not row.keys() <= _KNOWN.keys()
            or ("rating" in row and row.keys() & {*_QUALITIES})
        ):
            raise ConfigError(
                f"{path}: needs the columns id and rating, or id and the rubric's qualities in its place; it may have "
                f"{', '.join(_KNOWN)}, and no others"
            )
        scenario = ids.get(row["id"])
        sample = row.get("sample") or "0"
        key = ("" if scenario is None else scenario.id, int(sample) if sample.isdecimal() else -1)
        if scenario is None or not isinstance(answer := run.answers.get(key), Response):
            raise DataError(
                f"{where}: the run has no answer {quoted(sample)} to an item {quoted(row['id'])}"
            )
        given = (
            answer.answer.split(),
            harmless_cell(answer.answer).split(),
        )  # spreadsheets change white space
        if (shown := row.get("reply", "").split()) and shown not in given:
            raise DataError(
                f"{where}: the reply is not the run's answer; name the run that was labelled"
            )
        names = ("rating",) if "rating" in row else qualities_of(scenario.subtask)
        if any(row.get(name) for name in names):  # rows that were not filled in are none
            annotator = row.get("annotator", "")
            require_first_rating(lines, key, annotator, where)
            labels.setdefault(key, {})[annotator] = fmean(
                read_number(row.get(n, ""), f"{where}: {n}", 0, HIGHEST) for n in names
            )
    return labels


def require_first_rating(
    lines: dict[tuple[Hashable, str], str], reply: Hashable, annotator: str, where: str
) -> None:
    """Note the line of an annotator's rating of a reply. Raises DataError for a second one, naming both lines.

    `lines` holds the line of each rating that was read before, by reply and annotator. Names are one person's where
    they differ in capitals or in full-width characters alone.
    """
    name = unicodedata.normalize("NFKC", annotator).casefold()
    earlier = lines.setdefault((reply, name), where)
    if earlier == where:
        return
    advice = "keep the one that counts"
    if not annotator:
        advice += ", or name who gave each in a column `annotator`"
    raise DataError(
        f"{where}: a second rating of this reply by the same annotator, after {earlier}; {advice}"
    )


def read_number(cell: str, where: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Read a finite number of a table, within the ends. Raises DataError."""
    with suppress(ValueError):
        if math.isfinite(value := float(cell)) and least <= value <= most:
            return value
    raise DataError(
        f"{where} is {quoted(cell)}; write a number"
        + f" from {least:g} to {most:g}" * math.isfinite(most)
    )


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run, whose judgements count in it, its ratings, and its items with a score, in its order."""

    run: Run
    judging: Judging
    ratings: Ratings
    items: Mapping[str, JudgedItem]

    def labelled(self, labels: Labels) -> list[JudgedItem]:
        """The items that people rated, with their ratings."""
        rated = defaultdict[str, list[SampleKey]](list)
        for key in labels:
            rated[key[0]].append(key)
        return [
            replace(
                item,
                people=fmean(fmean(labels[key].values()) for key in rated[name]),
                panel=tuple(
                    map(fmean, zip(*(self.ratings[key].known for key in rated[name]), strict=True))
                ),
                whole=len(rated[name]) == self.run.data.spec.samples,
            )
            for name, item in self.items.items()
            if name in rated
        ]


def load_judged(path: Path) -> JudgedRun:
    """Load a judged run. Raises ConfigError where it was not judged."""
    run = load_run(path)
    judging = require_judging(run.data.folder)
    ratings = rate_answers(run.data.folder, judging, run.counted, run.data.split.scenarios)
    items = {}
    clusters = clusters_of(run.data.split.scenarios)
    for s in judging.judged(run.data.split.scenarios):
        keys = [(s.id, sample) for sample in range(run.data.spec.samples)]
        own = [one for key in keys if (one := ratings.get(key)) and None not in one.judges]
        if len(own) == len(keys):
            replies = [
                reply.answer for key in keys if isinstance(reply := run.answers[key], Response)
            ]
            score = fmean(fmean(one.known) for one in own)
            length = fmean(math.log(1 + len(one)) for one in replies)
            items[s.id] = JudgedItem(
                s.id, s.subtask, clusters[s.id], score, run.item_scores[s.id].s, length
            )
    return JudgedRun(run, judging, ratings, items)


PLAN = "label_plan.json"
LEAST_DRAWN, LEAST = 8, 4  # labels, drawn by strata or not
APART = 16  # labels of a level that is drawn by itself: with 8, intervals miss rare large errors
LEAST_HALF_WIDTH = 0.001
ERROR_SD = 0.6  # of a judge's error on an item, where no pilot labels say it


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Which answers people should label (`judgements.answer_id`): the first of each item that was drawn.

    `judges` made the strata, by item; `serves` names the figures of `calibrate` that the labels correct: `levels` and
    each level that was drawn by itself, or dimensions where no item is of levels I to III.
    """

    seed: int
    judges: tuple[str, ...]
    answers: tuple[str, ...]
    strata: Mapping[str, str]
    serves: tuple[str, ...]


def read_plan(run: Path) -> LabelPlan | None:
    """Read the plan of a run, None where there is none. Raises DataError where it was edited."""
    path = run / JUDGEMENTS / PLAN
    advice = "restore it"
    try:
        return read_record(LabelPlan, read_sealed(path, advice), str(path), advice=f"; {advice}")
    except FileNotFoundError:
        return None


def labels_needed(half_width: float, items: int, error_sd: float = ERROR_SD) -> int:
    """Return how many labels give R's 95 % interval a half width (0 to 5), for the mean of these items."""
    wanted = (2 * error_sd / half_width) ** 2
    return min(items, max(LEAST_DRAWN, math.ceil(wanted / (1 + wanted / items) - 1e-9)))


def plan_labels(
    path: Path,
    half_width: float | None = None,
    labels: int | None = None,
    *,
    pilot: Path | None = None,
    out: Path | None = None,
    round_out: Path | None = None,
    round_options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> list[str]:
    """Draw the answers of a judged run that people should label, and store the plan in it; return messages.

    Args:
        half_width: wanted of the 95 % interval of the corrected R, on the scale 0 to 5; or `labels`, how many.
        pilot: labels of this run that say how much the judges' errors vary.
        out: a new CSV file to fill in, which does not show the judges' score. round_out: the folder of a round to open
            on these answers, with `round_options` as `open_rating_round` takes them. Without both nothing is drawn.
    """
    if round_out is not None:
        require_platform(round_options or {})
    judged = load_judged(path)
    items = [one for one in judged.items.values() if SUBTASKS[one.subtask].level] or list(
        judged.items.values()
    )
    groups = groups_of(items)
    apart = drawn_apart_from(groups)
    least = LEAST_DRAWN if ALL_LEVELS in groups else apart
    spread, source = ERROR_SD, "assumed; --pilot measures it"
    if pilot is not None:
        pairs = judged.labelled(read_labels(judged.run, pilot))
        if len(pairs) < LEAST:
            raise ConfigError(
                f"{pilot}: labels {counted(len(pairs), 'item')} with a judge's score; {LEAST} are needed"
            )
        spread = stdev(one.error for one in pairs)
        source = f"measured on {counted(len(pairs), 'item')}"
    if half_width is not None and half_width >= LEAST_HALF_WIDTH and labels is None:
        labels = max(least, labels_needed(half_width, len(items), spread))
        source = f"standard deviation of the judges' error: {spread:.2f}, {source}"
    elif labels is None or half_width is not None:
        raise ConfigError(f"name one of --half-width ({LEAST_HALF_WIDTH} or more) and --labels")
    if not least <= labels <= len(items):
        raise ConfigError(
            f"--labels is {labels}; it must be {least} to {len(items)}, the items with a score"
        )
    drawing = (
        "--out or --open draws them"
        if out is None and round_out is None
        else "drawn by judge score"
    )
    serve = listed(
        [
            SUBTASKS[name].title if name in SUBTASKS else name
            for name in groups
            if name != ALL_LEVELS
        ]
    )
    if labels < apart:
        serve += f" together; each by itself needs {apart} labels, as `calibrate` would refuse it"
    elif ALL_LEVELS in groups:
        serve += ", each by itself and together"
    notes = [
        f"{labels} of {counted(len(items), 'item')} to label; {drawing}",
        f"the labels serve {serve}",
    ]
    notes += [] if half_width is None else [source]
    if out is None and round_out is None:
        return notes
    if out is not None and out.exists():
        raise ConfigError(f"{out}: is there already and may hold labels; name another file")
    drawn, strata, serves = draw_by_level(items, labels, seed)
    answers = [one for item in drawn if isinstance(one := judged.run.answers[item.id, 0], Response)]
    plan = LabelPlan(seed, judged.judging.judges, tuple(map(answer_id, answers)), strata, serves)
    file = path / JUDGEMENTS / PLAN
    if read_plan(path) not in (None, plan):
        raise ConfigError(
            f"{file}: the run has another plan; remove it, and its labels count as not drawn"
        )
    if out is not None:
        write_text(out, label_sheet(judged, answers))
    if round_out is not None:
        notes += open_rating_round(
            judged.run, [(one.id, 0) for one in drawn], round_out, round_options or {}
        )[1]
    write_sealed(file, asdict(plan))
    return notes


def label_sheet(judged: JudgedRun, answers: Sequence[Response]) -> str:
    """The file to fill in: each answer, and before it the scenario as annotators of a round see it, without the score;
    no cell is a formula."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    scenarios = {scenario.id: scenario for scenario in judged.run.data.split.scenarios}
    for answer in answers:
        item = scenario_item(scenario := scenarios[answer.id], judged.run.data.split.personas)
        notice = f"{interface_text(item.notice, item.language)}\n\n" if item.crisis else ""
        text = cell_text(notice + join_blocks(item_blocks(item, item.language), titled=True))
        cells = (
            harmless_cell(answer.id),
            0,
            scenario.subtask,
            text,
            harmless_cell(answer.answer),
            "",
        )
        writer.writerow(cells)
    return output.getvalue()


def groups_of(items: Sequence[JudgedItem]) -> dict[str, list[JudgedItem]]:
    """The items of each figure that labels can serve: of `levels` and each level, else of each dimension."""
    levels = any(SUBTASKS[one.subtask].level for one in items)
    groups = defaultdict[str, list[JudgedItem]](list)
    for one in items:
        groups[one.subtask if levels else SUBTASKS[one.subtask].dimension].append(one)
    return ({ALL_LEVELS: list(items)} if levels else {}) | dict(sorted(groups.items()))


def drawn_apart_from(groups: Mapping[str, Sequence[JudgedItem]]) -> int:
    """Return the number of labels from which each level, or each dimension, is drawn by itself."""
    sizes = [len(own) for name, own in groups.items() if name != ALL_LEVELS]
    return (
        LEAST_DRAWN
        if len(sizes) == 1
        else min(sum(sizes), math.ceil(APART * sum(sizes) / min(sizes)))
    )


def draw_by_level(
    items: Sequence[JudgedItem], labels: int, seed: int
) -> tuple[list[JudgedItem], dict[str, str], tuple[str, ...]]:
    """Draw items, in their order; return them, every item's stratum, and the figures that they serve. Each level is
    drawn by itself where all of them get enough labels, else they are drawn together."""
    groups = groups_of(items)
    apart = labels >= drawn_apart_from(groups)
    serves = tuple(
        name for name, own in groups.items() if name == ALL_LEVELS or (apart and len(own) > 1)
    )
    parts = (
        {name: own for name, own in groups.items() if name != ALL_LEVELS}
        if apart
        else {"": list(items)}
    )
    exact = {name: labels * len(own) / len(items) for name, own in parts.items()}
    left = labels - sum(map(int, exact.values()))
    one_more = sorted(exact, key=lambda name: int(exact[name]) - exact[name])[
        :left
    ]  # the largest remainders
    drawn: set[str] = set()
    strata: dict[str, str] = {}
    for name, own in parts.items():
        scores = [one.score for one in own]
        drawn |= {
            own[at].id for at in draw_labels(scores, int(exact[name]) + (name in one_more), seed)
        }
        strata |= {
            one.id: f"{name}/{h}" for one, h in zip(own, strata_of(scores, seed), strict=True)
        }
    return [one for one in items if one.id in drawn], strata, serves
