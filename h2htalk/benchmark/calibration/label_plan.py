"""Which answers of a judged run people should label, and how many: the plan that is stored in the run."""

from __future__ import annotations

import csv
import io
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import stdev
from typing import Any

from h2htalk.benchmark.calibration.corrected_mean import JudgedItem, draw_labels, strata_of
from h2htalk.benchmark.calibration.judged_items import JudgedRun, load_judged
from h2htalk.benchmark.calibration.labels import COLUMNS, read_labels
from h2htalk.benchmark.judge.judgements import ALL_LEVELS, JUDGEMENTS, answer_id
from h2htalk.benchmark.rating_rounds import open_rating_round
from h2htalk.data.files import read_sealed, write_sealed, write_text
from h2htalk.data.records import read_record
from h2htalk.data.responses import Response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, counted, listed
from h2htalk.rounds.item_sources import scenario_item
from h2htalk.rounds.platforms import require_platform
from h2htalk.rounds.spreadsheets.item_text import cell_text, item_blocks, join_blocks
from h2htalk.rounds.texts.interface import interface_text
from h2htalk.text.escaping import harmless_cell

PLAN = "label_plan.json"
LEAST_DRAWN = 8  # labels, drawn by strata
LEAST = 4  # labels, drawn otherwise
# Labels of a level that is drawn by itself: with 8, intervals miss rare large errors.
LEAST_BY_GROUP = 16
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
    items = _items_to_label(judged)
    groups = groups_of(items)
    least = LEAST_DRAWN if ALL_LEVELS in groups else labels_by_group(groups)
    error_sd, source = _error_sd(judged, pilot)
    if half_width is not None and half_width >= LEAST_HALF_WIDTH and labels is None:
        labels = max(least, labels_needed(half_width, len(items), error_sd))
    elif labels is None or half_width is not None:
        raise ConfigError(f"name one of --half-width ({LEAST_HALF_WIDTH} or more) and --labels")
    if not least <= labels <= len(items):
        raise ConfigError(
            f"--labels is {labels}; it must be {least} to {len(items)}, the items with a score"
        )
    draws = out is not None or round_out is not None
    drawing = "drawn by judge score" if draws else "--out or --open draws them"
    messages = [
        f"{labels} of {counted(len(items), 'item')} to label; {drawing}",
        f"the labels serve {_figures_served(groups, labels)}",
    ]
    if half_width is not None:
        messages.append(f"standard deviation of the judges' error: {error_sd:.2f}, {source}")
    if not draws:
        return messages
    if out is not None and out.exists():
        raise ConfigError(f"{out}: is there already and may hold labels; name another file")
    drawn_items, strata, serves = draw_by_level(items, labels, seed)
    keys = [(item.id, 0) for item in drawn_items]
    replies = [judged.run.answers[key] for key in keys]
    answers = [reply for reply in replies if isinstance(reply, Response)]
    plan = LabelPlan(
        seed=seed,
        judges=judged.judging.judges,
        answers=tuple(answer_id(answer) for answer in answers),
        strata=strata,
        serves=serves,
    )
    file = path / JUDGEMENTS / PLAN
    if read_plan(path) not in (None, plan):
        raise ConfigError(
            f"{file}: the run has another plan; remove it, and its labels count as not drawn"
        )
    if out is not None:
        write_text(out, label_sheet(judged, answers))
    if round_out is not None:
        _, notes = open_rating_round(judged.run, keys, round_out, round_options or {})
        messages += notes
    write_sealed(file, asdict(plan))
    return messages


def _items_to_label(judged: JudgedRun) -> list[JudgedItem]:
    """The items of levels I to III; all where a run has none of them."""
    items = list(judged.items.values())
    of_levels = [item for item in items if SUBTASKS[item.subtask].level]
    return of_levels or items


def _error_sd(judged: JudgedRun, pilot: Path | None) -> tuple[float, str]:
    """The standard deviation of the judges' error, and where it comes from."""
    if pilot is None:
        return ERROR_SD, "assumed; --pilot measures it"
    labelled = judged.labelled(read_labels(judged.run, pilot))
    number = counted(len(labelled), "item")
    if len(labelled) < LEAST:
        raise ConfigError(f"{pilot}: labels {number} with a judge's score; {LEAST} are needed")
    return stdev(item.error for item in labelled), f"measured on {number}"


def _figures_served(groups: Mapping[str, Sequence[JudgedItem]], labels: int) -> str:
    titles = []
    for name in groups:
        if name != ALL_LEVELS:
            titles.append(SUBTASKS[name].title if name in SUBTASKS else name)
    text = listed(titles)
    least = labels_by_group(groups)
    if labels < least:
        return (
            f"{text} together; each by itself needs {least} labels, as `calibrate` would refuse it"
        )
    if ALL_LEVELS in groups:
        text += ", each by itself and together"
    return text


def label_sheet(judged: JudgedRun, answers: Sequence[Response]) -> str:
    """The file to fill in: each answer, and before it the scenario as annotators of a round see it, without the score;
    no cell is a formula."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(COLUMNS)
    split = judged.run.data.split
    scenarios = {scenario.id: scenario for scenario in split.scenarios}
    for answer in answers:
        scenario = scenarios[answer.id]
        item = scenario_item(scenario, split.personas)
        text = join_blocks(item_blocks(item, item.language), titled=True)
        if item.crisis:
            text = f"{interface_text(item.notice, item.language)}\n\n{text}"
        reply = harmless_cell(answer.answer)
        writer.writerow((harmless_cell(answer.id), 0, scenario.subtask, cell_text(text), reply, ""))
    return output.getvalue()


def groups_of(items: Sequence[JudgedItem]) -> dict[str, list[JudgedItem]]:
    """The items of each figure that labels can serve: of `levels` and each level, else of each dimension."""
    has_levels = any(SUBTASKS[item.subtask].level for item in items)
    groups = defaultdict[str, list[JudgedItem]](list)
    for item in items:
        groups[item.subtask if has_levels else SUBTASKS[item.subtask].dimension].append(item)
    by_name = dict(sorted(groups.items()))
    return {ALL_LEVELS: list(items), **by_name} if has_levels else by_name


def labels_by_group(groups: Mapping[str, Sequence[JudgedItem]]) -> int:
    """Return the number of labels from which each level, or each dimension, is drawn by itself."""
    sizes = [len(members) for name, members in groups.items() if name != ALL_LEVELS]
    if len(sizes) == 1:
        return LEAST_DRAWN
    return min(sum(sizes), math.ceil(LEAST_BY_GROUP * sum(sizes) / min(sizes)))


def draw_by_level(
    items: Sequence[JudgedItem], labels: int, seed: int
) -> tuple[list[JudgedItem], dict[str, str], tuple[str, ...]]:
    """Draw items, in their order; return them, every item's stratum, and the figures that they serve. Each level is
    drawn by itself where all of them get enough labels, else they are drawn together."""
    groups = groups_of(items)
    by_group = labels >= labels_by_group(groups)
    serves = []
    drawn_groups = {}
    for name, members in groups.items():
        if name == ALL_LEVELS or (by_group and len(members) > 1):
            serves.append(name)
        if name != ALL_LEVELS and by_group:
            drawn_groups[name] = members
    if not by_group:
        drawn_groups[""] = list(items)
    counts = _share_labels(labels, {name: len(group) for name, group in drawn_groups.items()})
    ids: set[str] = set()
    strata: dict[str, str] = {}
    for name, members in drawn_groups.items():
        scores = [item.score for item in members]
        ids |= {members[index].id for index in draw_labels(scores, counts[name], seed)}
        for item, stratum in zip(members, strata_of(scores, seed), strict=True):
            strata[item.id] = f"{name}/{stratum}"
    return [item for item in items if item.id in ids], strata, tuple(serves)


def _share_labels(labels: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Share labels among groups in proportion to their sizes; the largest remainders get one more."""
    items = sum(sizes.values())
    counts = {}
    remainders = {}
    for name, size in sizes.items():
        exact = labels * size / items
        counts[name] = int(exact)
        remainders[name] = exact - int(exact)
    unshared = labels - sum(counts.values())
    for name in sorted(remainders, key=lambda name: -remainders[name])[:unshared]:
        counts[name] += 1
    return counts
