"""Where the variance of a judged run's R comes from, and the cheapest design for an interval."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from h2htalk.benchmark.calibration.label_plan import LEAST_HALF_WIDTH
from h2htalk.benchmark.judge.judgements import Judge, Judgements, read_judge
from h2htalk.benchmark.judge.ratings import Judging, read_judging
from h2htalk.benchmark.judge.rubric import HIGHEST
from h2htalk.benchmark.load_run import Run, load_run
from h2htalk.benchmark.run_costs import GENERATE, read_costs
from h2htalk.benchmark.statistics.intervals import t_quantile
from h2htalk.benchmark.statistics.variance_components import VarianceComponents, cheapest, variance_components
from h2htalk.chat.costs.reservations import Totals
from h2htalk.data.arguments import as_path
from h2htalk.data.responses import Response
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, counted

COSTS = ("item", "answer", "judgement")  # of one more of each


@dataclass(frozen=True, slots=True)
class JudgeVariance:
    """The components of one judge's R over `numbers` of items, of answers an item and of judgements an answer.

    `left_out` items lack an answer or a judgement. `costs` are in the order of COSTS; `source` says where from.
    """

    judge: str
    numbers: tuple[int, int, int]
    left_out: int
    components: VarianceComponents
    costs: tuple[float, ...]
    source: str

    def lines(self, half_width: float | None) -> Iterator[str]:
        """The components, the standard error and, for a half width, the cheapest design."""
        found, total = self.components, self.components.variance(1, 1, 1)
        yield f"{self.judge}: {_design(*self.numbers)}; {counted(self.left_out, 'item')} left out"
        for name, number in zip(COSTS, self.numbers, strict=True):
            value = getattr(found, f"{name}s")
            share = f"{value:9.4f}{100 * value / total if total else 0:7.1f} %"
            yield f"  variance of {name + 's':11}{share if number > 1 else 'cannot be told apart, in the line above'}"
        error = math.sqrt(found.error2)
        yield f"  standard error of R {error:.3f}, 95 % interval +-{t_quantile(self.numbers[0] - 1) * error:.3f}"
        if half_width is not None:
            item, answer, judgement = self.costs
            *design, cost = cheapest(found, half_width, item, answer, judgement)
            yield f"  +-{half_width:g} costs least with {_design(*map(int, design))}: {cost:,.2f} ({self.source})"


def _design(items: int, answers: int, judgements: int) -> str:
    parts = counted(items, "item"), counted(answers, "answer"), counted(judgements, "judgement")
    return "{}, {} an item, {} an answer".format(*parts)


def judge_variance(
    path: str | os.PathLike[str], costs: Mapping[str, float | None], half_width: float | None = None
) -> list[JudgeVariance]:
    """Estimate the variance of items, answers and judgements, for each judge of a run's tables.

    `costs` are by COSTS; None takes what the run's cost logs say, or 1. `half_width` is for `JudgeVariance.lines`.

    Raises:
        ConfigError: the run was not judged, fewer than two items are whole, or a number is out of range.
        DataError: as `load_run`, or a file of judgements is damaged.
    """
    if half_width is not None and not LEAST_HALF_WIDTH <= half_width <= HIGHEST:
        raise ConfigError(f"--half-width is {half_width}; it must be {LEAST_HALF_WIDTH} to {HIGHEST}")
    for name, cost in costs.items():
        if cost is not None and not 0 <= cost <= 1e9:
            raise ConfigError(f"--{name}-cost is {cost}; it must be 0 to 1e9")
    run, found = load_run(as_path(path, "run")), []
    judging = read_judging(run.data.folder) or Judging(())
    for judge in (read_judge(run.data.folder.path, name) for name in judging.judges):
        scores, left_out = _scores(run, judge, judging)
        if len(scores) < 2:
            raise ConfigError(f"{path}: {judge.label} has not judged two items in full; run `h2htalk judge run` again")
        numbers, parts = (len(scores), len(scores[0]), len(scores[0][0])), variance_components(scores)
        found.append(JudgeVariance(judge.label, numbers, left_out, parts, *_costs(run, judge, costs)))
    if not found:
        raise ConfigError(f"{path}: was not judged; run `h2htalk judge run` first")
    return found


def _scores(run: Run, judge: Judge, judging: Judging) -> tuple[list[list[list[float]]], int]:
    """R by item, answer and judgement of the items that have them all, and how many items are left out."""
    stored, whole, items = Judgements(run.data.folder.path, judge), [], 0
    for s in run.data.split.scenarios:
        if judging.scope == "all" or SUBTASKS[s.subtask].level:
            items += 1
            answers = [run.answers.get((s.id, sample)) for sample in range(run.data.spec.samples)]
            judged = [stored.of(one, s.subtask, judging.judgements) for one in answers if isinstance(one, Response)]
            ratings = [[one.rating for one in own if one.rating is not None] for own in judged]
            if [len(own) for own in ratings] == [judging.judgements] * len(answers):
                whole.append(ratings)
    return whole, items - len(whole)


def _costs(run: Run, judge: Judge, given: Mapping[str, float | None]) -> tuple[tuple[float, ...], str]:
    """The given costs, the others in US dollars of the cost logs, in which an item costs nothing, or 1."""
    logs = read_costs(run.data.folder.path)
    known = any(one.usd_paid for one in logs.values()) and all(one.usd_paid is not None for one in logs.values())
    answered, judged = logs.get(GENERATE, Totals()), logs.get(judge.stage, Totals())
    answers = sum(isinstance(one, Response) for one in run.answers.values())  # one call can give several
    paid = (0.0, float(answered.usd_paid or 0) / answers, float(judged.usd_paid or 0) / max(1, judged.paid))
    default = dict(zip(COSTS, paid if known else (1.0, 1.0, 1.0), strict=True))
    rest = [name for name in COSTS if given.get(name) is None]
    costs = default | {name: cost for name, cost in given.items() if cost is not None}
    source = "in US dollars of the run's cost logs" if known else "1, as the run has no cost log"
    return tuple(costs.values()), f"a further {' and '.join(rest)} {source}" if rest else "costs as given"
