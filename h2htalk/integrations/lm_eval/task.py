"""The class of the tasks of this folder, named by their YAML files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datasets import Dataset
from lm_eval.api.metrics import mean
from lm_eval.api.task import ConfigurableTask

from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import ConfigError
from h2htalk.integrations.harness_split import HarnessSplit
from h2htalk.version import __version__

OVERALL = {
    "lexical": "overall",
    "s": "overall_s",
}  # the columns that get a figure with Table 1's weights


class H2HTalkTask(ConfigurableTask):
    """A split with real turns, each item with the budget of its subtask.

    `metadata` (of the YAML, or `--metadata` as JSON) holds the settings of `HarnessSplit`; without an embedder there,
    H2HTALK_EMBEDDER names one. Metrics: the columns of `HarnessSplit`, as means over the items that have a value;
    `overall` of the lexical means and `overall_s` of S, with Table 1's weights; `unscored`, items without a value.

    Raises ConfigError for options of the harness that would change the prompts.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        settings: dict[str, Any] = {
            "output_type": "generate_until",
            "generation_kwargs": {"until": [], "temperature": 0.0},
            "test_split": "test",
            "doc_to_text": "id",
            "doc_to_target": "reference",
            # `aggregation` names them; without a list the harness would add its own.
            "metric_list": [],
            **(config or {}),
        }
        settings.pop("class", None)
        super().__init__(config=settings)

    def download(self, *_: object, **__: object) -> None:
        """Open the split; nothing is fetched from the Hub."""
        metadata = self.config.metadata or {}
        self.harness_split = HarnessSplit.of(metadata)
        items = self.harness_split.items
        language = str(self.config.task).rpartition("_")[2]
        if language in LANGUAGES and any(item.language != language for item in items):
            raise ConfigError(
                f"task {self.config.task} is for {language}; choose the task of the other language"
            )
        self.config.metadata = {
            **metadata,
            "h2htalk": __version__,
            "protocol": self.harness_split.protocol,
            "canary": self.harness_split.split.canary,
        }
        self.dataset = {"test": Dataset.from_list([item.to_dict() for item in items])}

    def fewshot_context(
        self,
        doc: Mapping[str, Any],
        num_fewshot: int,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[[list[dict[str, str]]], Any] | None = None,
        gen_prefix: str | None = None,
    ) -> Any:
        """The turns of an item, as the model's chat template renders them."""
        if chat_template is None:
            raise ConfigError("h2htalk asks with the turns of a chat; add --apply_chat_template")
        if num_fewshot or system_instruction or gen_prefix:
            raise ConfigError(
                "h2htalk's prompts are whole: no --num_fewshot, --system_instruction or gen_prefix"
            )
        return chat_template([dict(message) for message in doc["messages"]])

    def construct_requests(self, doc: Mapping[str, Any], ctx: Any, **kwargs: Any) -> Any:
        """The request of an item, with its own `max_gen_toks` where `--gen_kwargs` has none."""
        request = super().construct_requests(doc, ctx, **kwargs)
        request.arguments = (ctx, {"max_gen_toks": doc["max_tokens"], **request.arguments[1]})
        return request

    def process_results(self, doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, Any]:
        """The values of a reply; an item without one has only `unscored`, which is left out of every mean."""
        values = self.harness_split.score(doc["id"], results[0])
        if isinstance(values, str):
            return {"unscored": 1.0}
        pairs = {OVERALL[name]: (doc["id"], values[name]) for name in OVERALL if name in values}
        return {**values, **pairs, "unscored": 0.0}

    def aggregation(self) -> dict[str, Callable[[list[Any]], float]]:
        """How each metric becomes a figure; without all eleven subtasks `overall` is a mean over items."""
        figures: dict[str, Callable[[list[Any]], float]] = dict.fromkeys(
            self.harness_split.columns, mean
        )
        figures |= dict.fromkeys(OVERALL.values(), self._overall)
        return figures | {"unscored": sum}

    def _overall(self, pairs: Sequence[tuple[str, float]]) -> float:
        figures = self.harness_split.figures(dict(pairs))
        return figures.get("overall", figures["items_mean"])

    def higher_is_better(self) -> dict[str, bool]:
        return {**dict.fromkeys(self.aggregation(), True), "unscored": False}
