"""What a comparison reads of a run: each item with its value, and what makes it the same item in two runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from h2htalk.benchmark.load_run import load_run
from h2htalk.benchmark.metrics.composite import ItemScore, SampleScore
from h2htalk.benchmark.metrics.metric_table import columns
from h2htalk.benchmark.run_data import RunData
from h2htalk.benchmark.statistics.clusters import clusters_of
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.data.imports.harness_log import ItemInput
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import Answers
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, suggest

COMPLIANCE = "compliance"
JUDGED = "judged"  # the main row of a judged run: levels I to III as 20 J, the others as 100 S
RATING = "rating"  # 20 R
# Keys of the protocol that change what a value means, by metric; the others say which items were asked, and how.
_LEXICAL = ("metrics", "tokens", "rouge")
_S = (*_LEXICAL, "embedder")
_MEANING = {"s": _S, "ss": ("metrics", "embedder"), JUDGED: (*_S, "judge"), RATING: ("judge",)}


@dataclass(frozen=True, slots=True)
class ScoredItem:
    """An item of a run.

    Attributes:
        id, subtask: of the scenario; in another harness's log its id or position, and no subtask.
        cluster: of items that are not independent of each other.
        content: what was asked and what it is scored against; equal in two runs of the same item.
        values: one a sample, on the 0-100 scale; empty for an unscored item.
        unscored: why it has no value, else None.
        answers: one a sample; empty texts for failures.
        failed: whether a call gave no answer.
        own_id: whether `id` is the data set's, not a position in a log.
    """

    id: str
    subtask: str
    cluster: str
    content: str
    values: tuple[float, ...]
    unscored: str | None
    answers: tuple[str, ...]
    failed: bool = False
    own_id: bool = True

    @property
    def value(self) -> float | None:
        return sum(self.values) / len(self.values) if self.values else None


@dataclass(frozen=True, slots=True)
class ScoredItems:
    """A run as a comparison sees it; `metric` is what its values are, `scenarios` are by id.

    `corrected`: 20 J of levels I to III by people's labels, of a run that was calibrated.
    `input_of`: what an item asked, None where that is unknown; `harness` and `notes` of another harness's log.
    """

    label: str
    split: str
    metric: str
    signature: Signature
    items: Mapping[str, ScoredItem]
    scenarios: Mapping[str, Scenario]
    input_of: Callable[[str], ItemInput | None]
    corrected: Cell | None = None
    harness: str = ""
    notes: tuple[str, ...] = ()

    def meaning(self) -> dict[str, str]:
        """The part of the protocol that decides what a value of the metric means."""
        protocol = self.signature.protocol
        if "study" in protocol:
            return dict(protocol)
        keys = ("contracts",) if self.metric == COMPLIANCE else _MEANING.get(self.metric, _LEXICAL)
        return {key: protocol.get(key, "-") for key in (*keys, *(["references"] if "references" in protocol else []))}


def metric_names() -> tuple[str, ...]:
    """What `--metric` may name."""
    return ("s", JUDGED, RATING, "lexical", *columns(), COMPLIANCE)


def read_run_items(path: Path, metric: str | None) -> ScoredItems:
    """Read a scored run; without a metric, what its main table is made of: `judged`, S, or the lexical mean.

    Raises:
        ConfigError: there is no such metric, or the run has no value of it.
        DataError: the folder is no scored run.
    """
    if metric is not None and metric not in metric_names():
        raise ConfigError(
            f"--metric {metric!r}: {suggest(metric, metric_names())}choose from {', '.join(metric_names())}"
        )
    run = load_run(path)
    name = metric or (JUDGED if run.summary.judged else run.summary.measure)
    clusters = clusters_of(run.data.split.scenarios)
    items = {
        s.id: _item(s, clusters[s.id], run.item_scores[s.id], name, run.answers, run.data.spec.samples)
        for s in run.data.split.scenarios
        if _is_asked(run.item_scores[s.id], name)
    }
    if not any(item.values for item in items.values()):
        raise ConfigError(f"{path}: no item has a value of {name}; choose another --metric")
    scenarios = {s.id: s for s in run.data.split.scenarios}
    summary = run.summary
    input_of = partial(_input, run.data, scenarios)
    corrected = summary.judging.corrected.get("levels") if summary.judging is not None and name == JUDGED else None
    return ScoredItems(summary.model, summary.split, name, summary.signature, items, scenarios, input_of, corrected)


def _input(data: RunData, scenarios: Mapping[str, Scenario], item: str) -> ItemInput | None:
    """The prompt; of imported answers the turns of a conversation, None of other scenarios."""
    scenario = scenarios[item]
    if data.prompt_of is None and not SUBTASKS[scenario.subtask].is_chat:
        return None
    messages = data.prompt_of(scenario) if data.prompt_of else scenario.turns
    return ItemInput.of([(message.role, message.content) for message in messages], scenario.references)


def _item(
    scenario: Scenario, cluster: str, score: ItemScore, metric: str, answers: Answers, samples: int
) -> ScoredItem:
    by_judge = metric == JUDGED and SUBTASKS[scenario.subtask].level is not None
    values = [_value(sample, "j" if by_judge else metric) for sample in score.samples]
    whole = score.unscored is None and None not in values
    replies = [answers.get((scenario.id, k)) for k in range(samples)]
    return ScoredItem(
        id=scenario.id,
        subtask=scenario.subtask,
        cluster=cluster,
        content=repr((scenario.inputs, scenario.references)),
        values=tuple(100 * v for v in values if v is not None) if whole else (),
        unscored=None if whole else score.unscored or f"no {metric}",
        answers=tuple(reply.answer if isinstance(reply, Response) else "" for reply in replies),
        failed=not all(isinstance(reply, Response) for reply in replies),
    )


def _is_asked(score: ItemScore, metric: str) -> bool:
    """Whether an item is asked for a metric: an embedder gives no S to items in languages that are not its own, and
    judges read the items in their scope alone."""
    if metric == RATING:
        return any(one.rating is not None or one.unjudged for one in score.samples)
    return metric not in ("s", "ss", JUDGED) or score.ss is not None or score.unscored is not None


def _value(sample: SampleScore, metric: str) -> float | None:
    if metric == COMPLIANCE:
        return float(not sample.violations) if sample.values and sample.violations is not None else None
    if metric in ("j", RATING):
        value = sample.j if metric == "j" else sample.rating
        return None if value is None else value / 5
    if metric in ("s", "lexical", JUDGED):
        return sample.lexical if metric == "lexical" else sample.s
    return sample.values.get(metric)
