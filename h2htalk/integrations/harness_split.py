"""A split as another harness sees it: what each item asks, what a reply to it scores, and the figures of Table 2.

split = HarnessSplit("mini", language="en")
item = split.items[0]
split.score(item.id, "I hear you.")     {"bleu_1": 0.02, ..., "lexical": 0.05, "compliance": 1.0}, or why not
split.figures({item.id: 0.05, ...})     {"overall": ..., "items_mean": ..., "dialogue_base": ...}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from h2htalk.benchmark.metrics.composite import METRIC_COLUMNS, score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.score_run import metric_keys, open_metrics
from h2htalk.benchmark.statistics.averages import aggregate
from h2htalk.data.responses import Answers, Response
from h2htalk.data.scenario import TAGS, Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

SETTINGS = ("split", "language", "subtasks", "limit", "sap", "embedder")  # of `HarnessSplit`


@dataclass(frozen=True, slots=True)
class HarnessItem:
    """An item: `messages` as chat APIs take them (`role`, `content`), `max_tokens` of its subtask's reply."""

    id: str
    subtask: str
    language: str
    max_tokens: int
    canary: str
    messages: tuple[dict[str, str], ...]
    references: tuple[str, ...]
    tags: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a row of a harness's data set; `reference` is the first one, or empty where private."""
        return asdict(self) | {"reference": next(iter(self.references), "")}


class HarnessSplit:
    """The items of a split, or of the cases of a study (their turns, each with the history that is written).

    Args:
        split, language, subtasks, limit, sap, embedder: as of `h2htalk.EvaluateSpec`.

    Attributes:
        items: in the split's order. protocol: how scores are made, as in the signature of a run.
        columns: the keys of `score`: metrics, each 0 to 1 (`ss`: -1 to 1), their means, compliance, and the metrics of
            other distributions.
        measure: the column of Table 2's figures: `s`, or `lexical` where an item's language has no S.

    Raises ConfigError or DataError for a name that does not exist.
    """

    def __init__(
        self,
        split: str = "mini",
        language: str | None = None,
        subtasks: Sequence[str] = (),
        limit: int | None = None,
        sap: str = "full",
        embedder: str = "none",
    ) -> None:
        self.split = load_split(split).select(language, subtasks, limit)
        prompts = PromptSet.load()
        self.metrics = open_metrics(embedder, "f1")
        self._prompt_of = prompts.prompt_of(self.split, Sap.parse(sap))
        scenarios = self.split.scenarios
        self._scenarios = {scenario.id: scenario for scenario in scenarios}
        self.items = [self._item(scenario) for scenario in scenarios]
        keys = metric_keys(self.metrics, self.split)
        self.protocol = {"items": self.split.fingerprint, "prompts": prompts.fingerprint, **keys}
        columns = [*METRIC_COLUMNS, "lexical", "s", "compliance"]
        if self.metrics.embedder is None:
            columns.remove("ss")
            columns.remove("s")
        for metric in self.metrics.installed:
            columns += metric.columns
        self.columns = tuple(columns)
        has_s = all(self.metrics.asks_s(scenario.language) for scenario in scenarios)
        self.measure = "s" if has_s else "lexical"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> HarnessSplit:
        """Open a split as a harness's settings say, texts or lists; H2HTALK_EMBEDDER names an embedder they lack."""
        chosen: dict[str, Any] = {"embedder": os.environ.get("H2HTALK_EMBEDDER") or "none"}
        for name in SETTINGS:
            if settings.get(name) is not None:
                chosen[name] = settings[name]
        subtasks = chosen.get("subtasks")
        if isinstance(subtasks, str):
            chosen["subtasks"] = subtasks.split(",")
        return cls(**chosen)

    def _item(self, scenario: Scenario) -> HarnessItem:
        prompt = self._prompt_of(scenario)
        messages = [{"role": message.role, "content": message.content} for message in prompt]
        tags = {name: str(getattr(scenario.tags, name)) for name in TAGS}
        return HarnessItem(
            id=scenario.id,
            subtask=scenario.subtask,
            language=scenario.language,
            max_tokens=SUBTASKS[scenario.subtask].max_tokens,
            canary=self.split.canary,
            messages=tuple(messages),
            references=scenario.references,
            tags=tags,
        )

    def score(self, item: str, reply: str) -> dict[str, float] | str:
        """The values of a reply to an item by `columns`, or why it has none (private references, an embedder that
        failed). An empty reply is a reply, and scores 0. Without S for a language there is no `ss` and no `s`."""
        split = replace(self.split, scenarios=(self._scenarios[item],), cases=())
        answers: Answers = {(item, 0): Response(item, 0, reply)}
        scores = score_answers(split, answers, 1, self.metrics, self._prompt_of)[item]
        if scores.unscored:
            return scores.unscored
        values: dict[str, float | None] = {
            **scores.metrics,
            "lexical": scores.lexical,
            "s": scores.s,
            "compliance": scores.compliance,
        }
        scored = {}
        for name in self.columns:
            value = values.get(name)
            if value is not None:
                scored[name] = value
        return scored

    def figures(self, values: Mapping[str, float]) -> dict[str, float]:
        """The means of values by item: `overall` with Table 1's weights where every subtask has some, `items_mean`, the
        dimensions and the subtasks; in [0, 1] where the values are. Items without a value are left out."""
        row = aggregate((item.subtask, values.get(item.id)) for item in self.items)
        return {name: cell.value / 100 for name, cell in row.items() if cell.value is not None}
