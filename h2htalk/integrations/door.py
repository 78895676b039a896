"""A split as another harness sees it: what each item asks, what a reply to it scores, and the figures of Table 2.

door = Door("mini", language="en")
item = door.items[0]
door.score(item.id, "I hear you.")     {"bleu_1": 0.02, ..., "lexical": 0.05, "compliance": 1.0}, or why not
door.figures({item.id: 0.05, ...})     {"overall": ..., "items_mean": ..., "dialogue_base": ...}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from h2htalk.benchmark.metrics.composite import METRIC_COLUMNS, score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.score_run import metric_keys, open_metrics
from h2htalk.benchmark.statistics import aggregate
from h2htalk.data.responses import Answers, Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS

SETTINGS = ("split", "language", "subtasks", "limit", "sap", "embedder")  # of `Door`


@dataclass(frozen=True, slots=True)
class DoorItem:
    """An item: `messages` as chat APIs take them (`role`, `content`), `max_tokens` of its subtask's reply."""

    id: str
    subtask: str
    language: str
    messages: tuple[dict[str, str], ...]
    references: tuple[str, ...]
    max_tokens: int
    tags: Mapping[str, str]
    canary: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a row of a harness's data set; `reference` is the first one, or empty where private."""
        plain = {name: getattr(self, name) for name in ("id", "subtask", "language", "max_tokens", "canary")}
        listed = {"messages": list(self.messages), "references": list(self.references), "tags": dict(self.tags)}
        return plain | listed | {"reference": next(iter(self.references), "")}


class Door:
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
        prompts, self.metrics = PromptSet.load(), open_metrics(embedder, "f1")
        self._prompt_of = prompts.prompt_of(self.split, Sap.parse(sap))
        self._scenarios = {one.id: one for one in self.split.scenarios}
        self.items = [self._item(one) for one in self.split.scenarios]
        keys = metric_keys(self.metrics, self.split)
        self.protocol = {"items": self.split.fingerprint, "prompts": prompts.fingerprint, **keys}
        columns = [name for name in METRIC_COLUMNS if name != "ss" or self.metrics.embedder is not None]
        own = [name for metric in self.metrics.installed for name in metric.columns]
        self.columns = (*columns, "lexical", *(["s"] if self.metrics.embedder is not None else []), "compliance", *own)
        self.measure = "s" if all(self.metrics.asks_s(one.language) for one in self.split.scenarios) else "lexical"

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Door:
        """Open a door as a harness's settings say, texts or lists; H2HTALK_EMBEDDER names an embedder they lack."""
        given = {name: settings[name] for name in SETTINGS if settings.get(name) is not None}
        given |= {"subtasks": given["subtasks"].split(",")} if isinstance(given.get("subtasks"), str) else {}
        return cls(**{"embedder": os.environ.get("H2HTALK_EMBEDDER") or "none", **given})

    def _item(self, one: Scenario) -> DoorItem:
        messages = tuple({"role": each.role, "content": each.content} for each in self._prompt_of(one))
        tags = {name: str(getattr(one.tags, name)) for name in ("emotion", "complexity", "interaction", "risk")}
        budget = SUBTASKS[one.subtask].max_tokens
        return DoorItem(one.id, one.subtask, one.language, messages, one.references, budget, tags, self.split.canary)

    def score(self, item: str, reply: str) -> dict[str, float] | str:
        """The values of a reply to an item by `columns`, or why it has none (private references, an embedder that
        failed). An empty reply is a reply, and scores 0. Without S for a language there is no `ss` and no `s`."""
        split = replace(self.split, scenarios=(self._scenarios[item],), cases=())
        answers: Answers = {(item, 0): Response(item, 0, reply)}
        found = score_answers(split, answers, 1, self.metrics, self._prompt_of)[item]
        if found.unscored:
            return found.unscored
        values = {**found.metrics, "lexical": found.lexical, "s": found.s, "compliance": found.compliance}
        return {name: value for name in self.columns if (value := values.get(name)) is not None}

    def figures(self, values: Mapping[str, float]) -> dict[str, float]:
        """The means of values by item: `overall` with Table 1's weights where every subtask has some, `items_mean`, the
        dimensions and the subtasks; in [0, 1] where the values are. Items without a value are left out."""
        row = aggregate((one.subtask, values.get(one.id)) for one in self.items)
        return {name: cell.value / 100 for name, cell in row.items() if cell.value is not None}
