"""How many answers people should label, and which: drawn by strata of the judges' score, and stored in the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import stdev
from typing import Any

from pydantic import TypeAdapter, ValidationError

from h2htalk.benchmark.adjudication.rating_rounds import open_rating_round
from h2htalk.benchmark.calibration.correction import LEAST, LEAST_DRAWN
from h2htalk.benchmark.calibration.human_labels import COLUMNS, read_labels
from h2htalk.benchmark.calibration.judged_items import JudgedItem, load_judged
from h2htalk.benchmark.judge.judgements import answer_id, judgements_folder
from h2htalk.benchmark.statistics.corrected_mean import draw_labels, strata_of
from h2htalk.data.files import read_sealed, write_sealed, write_text
from h2htalk.data.responses import Response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, counted
from h2htalk.text.escaping import csv_text

APART = 16  # labels of a level from which it is drawn apart: with 8, intervals miss rare large errors
LEAST_HALF_WIDTH = 0.001
ERROR_SD = 0.6  # of a judge's error on an item, where no pilot labels say it


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """Which answers people should label.

    Attributes:
        seed: of the draw. judges: fingerprints of those whose scores made the strata.
        answers: ids of the answers to label (`judgements.answer_id`), the first of each drawn item.
        strata: item -> its stratum, `SUBTASK/NUMBER` where each level was drawn apart.
    """

    seed: int
    judges: tuple[str, ...]
    answers: tuple[str, ...]
    strata: Mapping[str, str]


def plan_path(run: Path) -> Path:
    """Return where the plan of a run lies."""
    return judgements_folder(run) / "label_plan.json"


def read_plan(run: Path) -> LabelPlan | None:
    """Read the plan of a run, None where there is none. Raises DataError where it was edited."""
    path, advice = plan_path(run), "restore it"
    try:
        return TypeAdapter(LabelPlan).validate_python(read_sealed(path, advice))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise DataError(f"{path}: {error.errors()[0]['msg']}; {advice}") from error


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
    """Draw the answers that people should label, and store the plan in the run.

    Args:
        path: a judged run.
        half_width: wanted of the 95 % interval of the corrected R, on the scale 0 to 5; or `labels`, how many.
        pilot: labels of this run that say how much the judges' errors vary.
        out: a new CSV file to fill in, which does not show the judges' score. round_out: the folder of a round to open
            on these answers, with `round_options` as `open_rating_round` takes them. Without both nothing is drawn.
        seed: of the draw.

    Returns:
        What to tell the user.

    Raises:
        ConfigError: neither or both of half width and labels, too few items, or a plan is there by which labels are
            weighted.
    """
    judged = load_judged(path)
    items = [one for one in judged.items.values() if SUBTASKS[one.subtask].level] or list(judged.items.values())
    spread, source = ERROR_SD, "assumed; --pilot measures it"
    if pilot is not None:
        pairs = judged.labelled(read_labels(judged.run, pilot))
        if len(pairs) < LEAST:
            raise ConfigError(f"{pilot}: labels {counted(len(pairs), 'item')} with a judge's score; {LEAST} are needed")
        spread, source = stdev(one.error for one in pairs), f"measured on {counted(len(pairs), 'item')}"
    if half_width is not None and half_width >= LEAST_HALF_WIDTH and labels is None:
        labels = labels_needed(half_width, len(items), spread)
        source = f"standard deviation of the judges' error: {spread:.2f}, {source}"
    elif labels is None or half_width is not None:
        raise ConfigError(f"name one of --half-width ({LEAST_HALF_WIDTH} or more) and --labels")
    if not LEAST_DRAWN <= labels <= len(items):
        raise ConfigError(f"--labels is {labels}; it must be {LEAST_DRAWN} to {len(items)}, the items with a score")
    if out is None and round_out is None:
        notes = [f"{labels} of {counted(len(items), 'item')} to label; --out or --open draws them", source]
        return notes if half_width is not None else notes[:1]
    if out is not None and out.exists():
        raise ConfigError(f"{out}: is there already and may hold labels; name another file")
    drawn, strata = draw_by_level(items, labels, seed)
    answers = [one for item in drawn if isinstance(one := judged.run.answers[item.id, 0], Response)]
    plan = LabelPlan(seed, judged.judging.judges, tuple(map(answer_id, answers)), strata)
    if read_plan(path) not in (None, plan):
        raise ConfigError(f"{plan_path(path)}: the run has another plan; remove it, and its labels count as not drawn")
    notes = [f"{labels} of {counted(len(items), 'item')} to label, drawn by judge score", source]
    if out is not None:
        rows = [(item.id, 0, item.subtask, one.answer, None) for item, one in zip(drawn, answers, strict=True)]
        write_text(out, csv_text(COLUMNS, rows))
    if round_out is not None:
        notes += open_rating_round(judged.run, [(one.id, 0) for one in drawn], round_out, round_options or {})[1]
    write_sealed(plan_path(path), asdict(plan))
    return notes if half_width is not None else notes[:1] + notes[2:]


def draw_by_level(items: Sequence[JudgedItem], labels: int, seed: int) -> tuple[list[JudgedItem], dict[str, str]]:
    """Draw items, in their order, and say every item's stratum: of its subtask where each gets enough, else of all."""
    groups = {name: [one for one in items if one.subtask == name] for name in sorted({one.subtask for one in items})}
    exact = {name: labels * len(own) / len(items) for name, own in groups.items()}
    if min(exact.values()) < APART:
        groups, exact = {"": list(items)}, {"": float(labels)}
    shares = {name: int(share) for name, share in exact.items()}
    for name in sorted(shares, key=lambda name: shares[name] - exact[name])[: labels - sum(shares.values())]:
        shares[name] += 1  # the largest remainders
    drawn: set[str] = set()
    strata: dict[str, str] = {}
    for name, own in groups.items():
        scores = [one.score for one in own]
        drawn |= {own[at].id for at in draw_labels(scores, shares[name], seed)}
        strata |= {one.id: f"{name}/{h}" for one, h in zip(own, strata_of(scores, seed), strict=True)}
    return [one for one in items if one.id in drawn], strata
