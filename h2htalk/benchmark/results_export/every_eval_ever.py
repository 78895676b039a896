"""The record of Every Eval Ever 0.3.0: an aggregate, and a row a sample (`schemas/`, with their licence).

Scores are proportions: S or the lexical mean from 0 to 1. Each sample belongs to the result of its subtask.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from h2htalk.benchmark.load_run import Run
from h2htalk.benchmark.metrics.composite import SampleScore
from h2htalk.benchmark.results_export.run_figures import (
    answered_at,
    hub_name,
    language_figures,
    require_scored,
    without_folders,
)
from h2htalk.benchmark.statistics.intervals import RULE
from h2htalk.benchmark.statistics.table2_averages import Cell
from h2htalk.benchmark.summary import Measure
from h2htalk.chat.protocol import Message
from h2htalk.data.files import sha256_of, write_json, write_jsonl
from h2htalk.data.languages import Language
from h2htalk.data.responses import Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS, task_id
from h2htalk.distributions import CONFIDENCE
from h2htalk.errors import ConfigError, quoted

NAME = "h2htalk"  # of the collection and the library
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_MODEL = re.compile(r"\w([\w.-]*\w)?/\w([\w.-]*\w)?", re.ASCII)


def write_every_eval_ever(
    run: Run, out: Path, model: str | None, organization: str | None, relationship: str = "third_party"
) -> list[Path]:
    """Write aggregate and samples of a run, at the paths that the data store of Every Eval Ever has for them.

    Raises:
        ConfigError: the run is incomplete, or one of the names is missing or wrong.
    """
    require_scored(run)
    if not organization:
        raise ConfigError("every-eval-ever needs the name of who ran the evaluation: --organization NAME")
    if relationship not in RELATIONSHIPS:
        raise ConfigError(f"--relationship {quoted(relationship)}: choose from {', '.join(RELATIONSHIPS)}")
    if not model or not _MODEL.fullmatch(model):
        raise ConfigError("every-eval-ever needs the model's name: --model DEVELOPER/NAME")
    subject = run.summary.signature.subject
    time = str(int(answered_at(run).timestamp()))
    head = {"schema_version": "0.3.0", "evaluation_id": f"{NAME}/{model.replace('/', '_')}/{time}"}
    # The store wants random UUIDs: this one has their form, and is the same whenever the run is exported.
    identity = uuid5(NAMESPACE_URL, f"{run.summary.signature}\n{model}\n{sha256_of(run.data.folder.shard)}")
    name = f"data/{NAME}/{model}/{UUID(bytes=identity.bytes, version=4)}"
    samples = out / f"{name}_samples.jsonl"
    rows = write_jsonl(samples, (head | {"model_id": model} | row for row in _rows(run)))
    found = {"format": "jsonl", "file_path": f"{name}_samples.jsonl", "hash_algorithm": "sha256"}
    aggregate = head | {
        "evaluation_timestamp": time,
        "retrieved_timestamp": time,
        "source_metadata": {
            "source_name": NAME,
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": relationship,
        },
        "eval_library": {
            "name": NAME,
            "version": run.summary.package_version,
            "additional_details": without_folders(run.summary.signature.protocol),
        },
        "model_info": {
            "name": run.summary.model if run.summary.signature.human else subject["model"],
            "id": model,
            "developer": model.partition("/")[0],
            "inference_engine": {"name": subject["engine"]},
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": list(_results(run)),
        "detailed_evaluation_results": found | {"checksum": sha256_of(samples), "total_rows": rows},
    }
    write_json(out / f"{name}.json", aggregate)
    return [out / f"{name}.json", samples]


def _results(run: Run) -> Iterator[dict[str, Any]]:
    generation = {"additional_details": without_folders(run.summary.signature.subject)}
    for language, figures in language_figures(run.data.split.scenarios, run.item_scores).items():
        for name, cell in figures.cells.items():
            yield {
                "evaluation_result_id": task_id(name, language),
                "evaluation_name": task_id(name, language),
                "source_data": _source_data(run, language),
                "metric_config": _metric(run, figures.measure),
                "score_details": _score(cell),
                "generation_config": generation,
            }


def _source_data(run: Run, language: Language) -> dict[str, Any]:
    split = run.data.split
    details = {"version": split.version, "language": language, "items": run.summary.signature.protocol["items"]}
    if not split.commit:
        return {"dataset_name": split.name, "source_type": "other", "additional_details": details}
    where = {"dataset_name": split.name, "source_type": "hf_dataset", "hf_repo": hub_name(split), "hf_split": "test"}
    return where | {"additional_details": details | {"source": split.source, "revision": split.commit}}


def _metric(run: Run, measure: Measure) -> dict[str, Any]:
    names = {"metric_id": f"{NAME}.s", "metric_name": "S: mean of BLEU-1 to 4, ROUGE-1, ROUGE-L and SS"}
    if measure == "lexical":
        names = {"metric_id": f"{NAME}.lexical_mean", "metric_name": "Mean of BLEU-1 to 4, ROUGE-1 and ROUGE-L"}
    details = {"comparable_with_paper": str(measure == "s" and run.summary.s_comparable).lower()}
    if run.summary.judging is not None:  # the fingerprint is that of S and J
        details["without_ratings_of"] = ", ".join(run.summary.judging.judges)
    bounds = {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0, "lower_is_better": False}
    return {**names, "metric_unit": "proportion", **bounds, "additional_details": details}


def _score(cell: Cell) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": cell.n}
    if cell.low is not None and cell.high is not None:
        ends = {"lower": cell.low / 100, "upper": cell.high / 100, "confidence_level": CONFIDENCE}
        uncertainty |= {"confidence_interval": ends | {"method": RULE}}
    return {"score": (cell.value or 0.0) / 100, "uncertainty": uncertainty}


# --- Samples ----------------------------------------------------------------------------------------------------


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    for scenario in run.data.split.scenarios:
        messages = _messages(run, scenario)
        for score in run.item_scores[scenario.id].samples:
            response = run.answers[scenario.id, score.sample]
            if isinstance(response, Response):
                yield _row(scenario, messages, response, score)


def _messages(run: Run, scenario: Scenario) -> list[Message]:
    """The messages that were sent; of imported answers the scenario's own texts."""
    if run.data.prompt_of is not None:
        return list(run.data.prompt_of(scenario))
    if SUBTASKS[scenario.subtask].is_chat:
        return [Message("user" if turn.role == "user" else "assistant", turn.content) for turn in scenario.turns]
    return [Message("user", json.dumps(scenario.to_dict()["inputs"], ensure_ascii=False))]


def _row(scenario: Scenario, messages: list[Message], response: Response, score: SampleScore) -> dict[str, Any]:
    name = task_id(scenario.subtask, scenario.language)
    spoken = [*messages, Message("assistant", response.text)]
    turns = [{"turn_idx": n, "role": m.role, "content": _text(m.content)} for n, m in enumerate(spoken)]
    contract = "not checked" if score.violations is None else ", ".join(score.violations) or "kept"
    chat = any(message.role == "assistant" for message in messages)
    place = len(messages) if chat else 0
    attribution = {"turn_idx": place, "source": f"messages[{place}].content" if chat else "output.raw"}
    return {
        "evaluation_name": name,
        "evaluation_result_id": name,
        "sample_id": scenario.id,
        "interaction_type": "multi_turn" if chat else "single_turn",
        "input": {
            "raw": _text(messages[-1].content),
            "formatted": None if chat else _text("\n\n".join(message.content for message in messages)),
            "reference": [_text(text) for text in scenario.references],
        },
        "output": None if chat else {"raw": [_text(response.text)]},
        "messages": turns if chat else None,
        "answer_attribution": [
            attribution
            | {"extracted_value": _text(response.answer), "extraction_method": "whole_reply", "is_terminal": True}
        ],
        # Whether a reply is correct is not defined here, and must not be null.
        "evaluation": {"score": score.lexical if score.s is None else score.s, "is_correct": False},
        "metadata": {"sample": str(score.sample), "finish_reason": response.finish_reason, "contract": contract},
    }


def _text(text: str) -> str:
    """A text without halves of characters, which strict readers of JSON refuse."""
    return text.encode("utf-8", "replace").decode()
