"""H2HTalk as a benchmark of EvalScope, which finds no code of other packages: this module registers it and runs it.

python -m h2htalk.integrations.evalscope --model M --api-url http://127.0.0.1:8000/v1 --language en --out DIR
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from threading import Lock
from typing import Any

from evalscope.api.benchmark import BenchmarkMeta, DefaultDataAdapter
from evalscope.api.dataset import DatasetDict, MemoryDataset, Sample
from evalscope.api.messages import dict_to_chat_message
from evalscope.api.metric import AggScore, Score
from evalscope.api.metric.semantics import MetricSelector
from evalscope.api.model import GenerateConfig
from evalscope.api.registry import register_benchmark
from evalscope.config import TaskConfig
from evalscope.constants import ScoreStatus
from evalscope.metrics.semantics.catalog import METRIC_DEFINITIONS
from evalscope.metrics.semantics.entry import MetricEntry
from evalscope.run import run_task

from h2htalk.errors import H2HTalkError
from h2htalk.integrations.harness_split import SETTINGS, HarnessSplit

OVERALL = {
    "lexical": "weighted_lexical",
    "s": "weighted_s",
}  # EvalScope allows no metric named `overall`
COLUMNS = ("rouge_1", "lexical", "s", "ss", "compliance")  # the others are in its catalogue
for _name in (*COLUMNS, *OVERALL.values()):
    METRIC_DEFINITIONS.setdefault(
        _name, MetricEntry(baseline="quality.score.ratio", metric_name=_name)
    )


@register_benchmark(
    BenchmarkMeta(
        name="h2htalk",
        pretty_name="H2HTalk",
        description="Language models that act as emotional companions.",
        dataset_id="h2htalk",
        subset_list=["default"],
        metric_list=["lexical"],
        primary_metric=MetricSelector(name="lexical", aggregation="mean"),
        extra_params={
            name: {"type": "str", "description": "As of `HarnessSplit`.", "value": None}
            for name in SETTINGS
        },
    )
)
class H2HTalkAdapter(DefaultDataAdapter):
    """A split with real turns, each item with the budget of its subtask; settings of `HarnessSplit` in `extra_params`.

    The primary metric is S where all items have one, else the lexical mean. An item that has no value is excluded.
    """

    def load(self) -> tuple[Any, None]:
        """Open the split as the subset `default`."""
        self.harness_split = HarnessSplit.of(self.extra_params)
        self._scoring = Lock()
        self.benchmark_meta.primary_metric = MetricSelector(
            name=self.harness_split.measure, aggregation="mean"
        )
        samples = []
        for number, item in enumerate(self.harness_split.items):
            row = item.to_dict()
            about = {name: row[name] for name in ("id", "subtask", "max_tokens", "canary")}
            sample = Sample(
                id=number,
                group_id=number,
                input=[dict_to_chat_message(message) for message in row["messages"]],
                target=row["reference"],
                metadata=about | row["tags"],
            )
            samples.append(sample)
        dataset = MemoryDataset(samples, name=self.harness_split.split.name)
        return DatasetDict({"default": dataset}), None

    def _on_inference(self, model: Any, sample: Sample) -> Any:
        config = GenerateConfig(max_tokens=model.config.max_tokens or sample.metadata["max_tokens"])
        return model.generate(input=sample.input, config=config)

    def match_score(
        self, original_prediction: str, filtered_prediction: str, reference: str, task_state: Any
    ) -> Score:
        """The values of a reply by `HarnessSplit.columns`; excluded, with the reason, where it has none."""
        score = Score(extracted_prediction=filtered_prediction, prediction=original_prediction)
        output = task_state.output
        # EvalScope makes a reply of the message of some refused requests; such a one has no usage.
        refused = output.stop_reason if output.usage is None else None
        reply = "" if refused == "content_filter" else original_prediction  # as in our own runs
        with self._scoring:  # called from many threads
            values = self.harness_split.score(task_state.metadata["id"], reply)
        if refused == "model_length":
            values = "context_length"
        if isinstance(values, str):
            score.status = ScoreStatus.EXCLUDED
            score.explanation = values
        else:
            score.value = values
            score.main_score_name = self.harness_split.measure
        return score

    def aggregate_scores(self, sample_scores: Sequence[Any]) -> list[Any]:
        """The means of the columns; of lexical and S also with Table 1's weights (over items where a subtask lacks)."""
        figures: list[Any] = super().aggregate_scores(sample_scores)
        for column, name in OVERALL.items():
            values = {}
            ids = []
            for sample in sample_scores:
                if column in sample.score.value:
                    values[sample.sample_metadata["id"]] = sample.score.value[column]
                    ids.append(sample.sample_id)
            if ids:
                weighted = self.harness_split.figures(values)
                figure = AggScore(
                    score=weighted.get("overall", weighted["items_mean"]),
                    metric_name=name,
                    aggregation="weighted_mean",
                    num=len(ids),
                    ids=ids,
                )
                figures.append(figure)
        return figures


def run(
    model: str,
    api_url: str,
    out: str,
    *,
    api_key: str = "EMPTY",
    concurrency: int = 8,
    **settings: Any,
) -> Any:
    """Evaluate a model of an OpenAI-compatible server; return EvalScope's reports by benchmark.

    Args:
        settings: of `HarnessSplit`; without `embedder` H2HTALK_EMBEDDER names one.

    A failed call leaves its item out; the report's `execution_summary` counts it.
    """
    config = TaskConfig(
        model=model,
        api_url=api_url,
        api_key=api_key,
        eval_type="openai_api",
        work_dir=out,
        generation_config={"temperature": 0.0},
        eval_batch_size=concurrency,
        ignore_errors=True,
        datasets=["h2htalk"],
        dataset_args={"h2htalk": {"extra_params": settings}},
        no_timestamp=True,
    )
    return run_task(config)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="python -m h2htalk.integrations.evalscope", description=run.__doc__
    )
    for name in ("--model", "--api-url", "--out"):
        parser.add_argument(name, required=True)
    parser.add_argument("--api-key", default=os.environ.get("OPENAI_API_KEY", "EMPTY"))
    parser.add_argument("--concurrency", type=int, default=8)
    for name in ("--split", "--language", "--sap", "--embedder"):
        parser.add_argument(name)
    parser.add_argument("--subtasks", nargs="+")
    parser.add_argument("--limit", type=int, help="A stratified sample of this many items.")
    options = vars(parser.parse_args())
    try:
        run(**{name: value for name, value in options.items() if value is not None})
    except H2HTalkError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
