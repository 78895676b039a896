"""Export a run: entries for a model's page on the Hub, records of Every Eval Ever, or a bundle that can be verified.

The entries for a model's page stand in `.eval_results/NAME.yaml`. The Hub hides a whole file for one wrong entry, so
each benchmark has a file of its own, and no entry holds null. The records of Every Eval Ever (version 0.3.0) are an
aggregate and a row for each sample, with scores from 0 to 1.
A bundle is a folder or a .zip with what somebody else needs to compute the scores again:

bundle.json    model, signature, split (fingerprint and source), figures, and the SHA-256 of the other file
samples.jsonl  a line a sample: the answer, or the reason why there is none, every metric, and broken contract rules
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from pydantic import ConfigDict

from h2htalk.benchmark.estimate_text import format_interval
from h2htalk.benchmark.metrics.composite import LEXICAL_FOLDED, SampleScore, Scores, all_columns
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.averages import INTERVAL_RULE, aggregate
from h2htalk.benchmark.statistics.estimates import Estimate, stored_fields
from h2htalk.benchmark.summary import Measure
from h2htalk.chat.protocol import Message
from h2htalk.data import files
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.links import link_copies
from h2htalk.data.model_names import without_path, without_paths
from h2htalk.data.records import STRICT
from h2htalk.data.responses import FILTERED_REPLY, Response
from h2htalk.data.scenario import Scenario
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.subtasks import DIMENSIONS, FIGURES, SUBTASKS, task_id
from h2htalk.distributions import CONFIDENCE
from h2htalk.errors import ConfigError, DataError, counted, quoted, suggest

FORMATS = ("eval-results", "every-eval-ever", "bundle")


def export_results(
    run: AnyPath,
    to: str,
    out: AnyPath,
    *,
    dataset: str | None = None,
    revision: str | None = None,
    source_url: str | None = None,
    model: str | None = None,
    organization: str | None = None,
    relationship: str = "third_party",
    prompts: AnyPath | None = None,
) -> list[Path]:
    """Write the results of a scored run in a format of others, and return the files. Nothing is sent.

    Args:
        to: `eval-results` (for the model's page on the Hub), `every-eval-ever`, or `bundle` (for `verify_results`).
        out: the folder to write into; of a bundle a new folder, or a new file ending with .zip.
        dataset: of eval-results: the data set on the Hub; default: that of the run.
        revision: of eval-results: its commit; default: that of the run.
        source_url: of eval-results: a page about the run.
        model: of every-eval-ever: `DEVELOPER/MODEL`.
        organization: of every-eval-ever: who ran the evaluation.
        relationship: of every-eval-ever: what they are to the model's developer; one of `RELATIONSHIPS`.
        prompts: of every-eval-ever: the templates to render, as of `load_run`.

    Examples:
        >>> import h2htalk
        >>> [path.name for path in h2htalk.export_results("runs/constant", "bundle", "bundle")]
        ['bundle.json', 'samples.jsonl']

    Raises:
        ConfigError: an unknown format, a run that it does not take, or a name that it needs.
        DataError: no scored run, or a file that cannot be written.
    """
    folder = as_path(out, "out")
    if to not in FORMATS:
        raise ConfigError(
            f"--to {quoted(to)}: {suggest(to, FORMATS)}choose from {', '.join(FORMATS)}"
        )
    loaded = load_run(run, prompts)
    link_copies([loaded.data.folder.path], folder)
    if to == "bundle":
        return write_bundle(loaded, folder)
    if to == "eval-results":
        return [write_eval_results(loaded, folder, dataset, revision, source_url)]
    return write_every_eval_ever(loaded, folder, model, organization, relationship)


class TaskResult(NamedTuple):
    """A figure of a language's items that has a value. Its measure is the lexical mean where the items have no S.

    `folded` is the folded lexical mean of the same items. It is None in runs that an earlier version scored.
    """

    language: Language
    measure: Measure
    estimate: Estimate
    folded: float | None


def figures_of(scenarios: Sequence[Scenario], scores: Scores) -> dict[str, TaskResult]:
    """Return `subtasks.FIGURES` of each language, by `task_id`."""
    results: dict[str, TaskResult] = {}
    for language in LANGUAGES:
        items = []
        for scenario in scenarios:
            if scenario.language == language:
                items.append((scenario.subtask, scores[scenario.id]))
        has_s = any(score.s is not None for _, score in items)
        measure: Measure = "s" if has_s else "lexical"
        row = aggregate((subtask, getattr(score, measure)) for subtask, score in items)
        folded_row = aggregate(
            (subtask, score.metrics.get(LEXICAL_FOLDED)) for subtask, score in items
        )
        for name in FIGURES:
            key = f"{name}_avg" if name in DIMENSIONS else name
            estimate = row.get(key)
            if estimate is not None and estimate.value is not None:
                folded = folded_row[key].value
                results[task_id(name, language)] = TaskResult(language, measure, estimate, folded)
    return results


def _figures(run: Run) -> dict[str, TaskResult]:
    """The figures of a run of which each item has a score; raises ConfigError for another run."""
    counts = run.summary.counts
    path = run.data.folder.path
    if counts.unscored:
        raise ConfigError(
            f"{path}: incomplete: {counted(counts.unscored, 'item')} unscored; finish the run first"
        )
    if counts.private:
        raise ConfigError(
            f"{path}: its references are private; h2htalk score RUN --references FILE scores it"
        )
    return figures_of(run.data.split.scenarios, run.item_scores)


def _answered_at(run: Run) -> datetime:
    """When the run's last session ended; of a run that does not know it, when its answers were last written."""
    if ended := run.summary.run_facts.ended:
        return datetime.fromisoformat(ended)
    return datetime.fromtimestamp(int(run.data.folder.calls_file.stat().st_mtime), UTC)


def _hub_name(run: Run) -> str:
    """`OWNER/NAME` of a split that was loaded from the Hub."""
    return run.data.split.source.removeprefix("hub:").partition("@")[0]


HEAD = "bundle.json"
SAMPLES = "samples.jsonl"


@dataclass(frozen=True, slots=True)
class BundleHead:
    """The content of `bundle.json`.

    `split` holds name, version and fingerprint, and the source and commit of a release. `figures` are the estimates of
    `figures_of`. `sha256` is the hash of the file of samples.
    """

    # A field that this version does not know is refused, because it could not be verified.
    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    format: Literal["h2htalk results 2"]
    model: str
    package_version: str
    protocol: Mapping[str, str]
    subject: Mapping[str, str]
    samples: int
    split: Mapping[str, str]
    figures: Mapping[str, Estimate]
    sha256: str


def write_bundle(run: Run, out: Path) -> list[Path]:
    """Write a run's bundle into a new folder, or a new file whose name ends with .zip. Raises DataError."""
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: is there already; name a new folder or file with --out")
    split = run.data.split
    summary = run.summary
    columns = all_columns(item.metrics for item in run.item_scores.values())
    scores = chain.from_iterable(item.samples for item in run.item_scores.values())
    samples = "".join(files.json_line(_sample(run, score, columns)) for score in scores)
    results = figures_of(split.scenarios, run.item_scores)
    split_facts = {
        "name": split.name,
        "version": split.version,
        "fingerprint": split.fingerprint,
        "source": split.source,
        "commit": split.commit,
    }
    head = BundleHead(
        format="h2htalk results 2",
        model=summary.model,
        package_version=summary.package_version,
        protocol=without_paths(summary.signature.protocol),
        subject=without_paths(summary.signature.subject),
        samples=run.data.spec.samples,
        split=split_facts,
        figures={task: result.estimate for task, result in results.items()},
        sha256=hashlib.sha256(samples.encode()).hexdigest(),
    )
    record = asdict(head, dict_factory=stored_fields)
    texts = {HEAD: json.dumps(record, ensure_ascii=False, indent=2) + "\n", SAMPLES: samples}
    if out.suffix != ".zip":
        for name, text in texts.items():
            files.write_text(out / name, text)
        return [out / name for name in texts]
    with (
        files.replacing(out) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file,
    ):
        for name, text in texts.items():
            # A `ZipInfo` has no date of now, so that the same run gives the same bytes.
            member = zipfile.ZipInfo(name)
            file.writestr(member, text)
    return [out]


def _sample(run: Run, score: SampleScore, columns: Iterable[str]) -> dict[str, Any]:
    """The line of a sample: its scores in all columns of the run, and the answer's text or why there is none.

    The reason of a failure stands there without its message, which may name a server.
    """
    scores = score.to_dict()
    for name in columns:
        scores.setdefault(name, None)
    answer = run.answers.get((score.id, score.sample))
    if isinstance(answer, Response):
        return {**scores, "text": answer.text, "finish_reason": answer.finish_reason}
    reason = "missing" if answer is None else answer.failure.reason
    return {**scores, "failure": {"reason": reason}}


# The name of the collection of results, and of the library that made them.
NAME = "h2htalk"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_MODEL = re.compile(r"\w([\w.-]*\w)?/\w([\w.-]*\w)?", re.ASCII)


def write_every_eval_ever(
    run: Run,
    out: Path,
    model: str | None,
    organization: str | None,
    relationship: str = "third_party",
) -> list[Path]:
    """Write aggregate and samples of a run, at the paths that the data store of Every Eval Ever has for them."""
    results = _figures(run)
    run.data.require_rendered("every-eval-ever")
    if not organization:
        raise ConfigError(
            "every-eval-ever needs the name of who ran the evaluation: --organization NAME"
        )
    if relationship not in RELATIONSHIPS:
        raise ConfigError(
            f"--relationship {quoted(relationship)}: choose from {', '.join(RELATIONSHIPS)}"
        )
    if not model or not _MODEL.fullmatch(model):
        raise ConfigError("every-eval-ever needs the model's name: --model DEVELOPER/NAME")
    signature = run.summary.signature
    time = str(int(_answered_at(run).timestamp()))
    head = {"schema_version": "0.3.0", "evaluation_id": f"{NAME}/{model.replace('/', '_')}/{time}"}
    # The store wants random UUIDs: this one has their form, and is the same whenever the run is exported.
    identity = uuid5(
        NAMESPACE_URL, f"{signature}\n{model}\n{files.sha256_of(run.data.folder.calls_file)}"
    )
    name = f"data/{NAME}/{model}/{UUID(bytes=identity.bytes, version=4)}"
    samples = out / f"{name}_samples.jsonl"
    number_of_rows = files.write_jsonl(
        samples, ({**head, "model_id": model, **row} for row in _rows(run))
    )
    samples_file = {
        "format": "jsonl",
        "file_path": f"{name}_samples.jsonl",
        "hash_algorithm": "sha256",
        "checksum": files.sha256_of(samples),
        "total_rows": number_of_rows,
    }
    if signature.human:
        model_name = run.summary.model
    else:
        model_name = without_path(signature.subject["model"])
    record = {
        **head,
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
            "additional_details": without_paths(signature.protocol),
        },
        "model_info": {
            "name": model_name,
            "id": model,
            "developer": model.partition("/")[0],
            "inference_engine": {"name": signature.subject["engine"]},
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [_result(run, task, result) for task, result in results.items()],
        "detailed_evaluation_results": samples_file,
    }
    files.write_json(out / f"{name}.json", record)
    return [out / f"{name}.json", samples]


def _result(run: Run, task: str, result: TaskResult) -> dict[str, Any]:
    split = run.data.split
    summary = run.summary
    estimate = result.estimate
    data_details = {
        "version": split.version,
        "language": result.language,
        "items": summary.signature.protocol["items"],
    }
    if split.commit:
        data_details["source"] = split.source
        data_details["revision"] = split.commit
    source = {
        "dataset_name": split.name,
        "source_type": "hf_dataset" if split.commit else "other",
        "additional_details": data_details,
    }
    if split.commit:
        source["hf_repo"] = _hub_name(run)
        source["hf_split"] = "test"
    names = {
        "metric_id": f"{NAME}.s",
        "metric_name": "S: mean of BLEU-1 to 4, ROUGE-1, ROUGE-L and SS",
    }
    if result.measure == "lexical":
        names = {
            "metric_id": f"{NAME}.lexical_mean",
            "metric_name": "Mean of BLEU-1 to 4, ROUGE-1 and ROUGE-L",
        }
    details = {"comparable_with_paper": str(result.measure == "s" and summary.s_comparable).lower()}
    if result.folded is not None:
        details["lexical_mean_folded"] = str(result.folded / 100)
    # The fingerprint is that of S and J, but the figure holds no ratings.
    if summary.judging is not None:
        details["without_ratings_of"] = ", ".join(summary.judging.judges)
    bounds = {
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": 1.0,
        "lower_is_better": False,
    }
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.interval is not None:
        low, high = estimate.interval
        uncertainty["confidence_interval"] = {
            "lower": low / 100,
            "upper": high / 100,
            "confidence_level": CONFIDENCE,
            "method": INTERVAL_RULE,
        }
    return {
        "evaluation_result_id": task,
        "evaluation_name": task,
        "source_data": source,
        "metric_config": {
            **names,
            "metric_unit": "proportion",
            **bounds,
            "additional_details": details,
        },
        "score_details": {"score": (estimate.value or 0.0) / 100, "uncertainty": uncertainty},
        "generation_config": {"additional_details": without_paths(summary.signature.subject)},
    }


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    for scenario in run.data.split.scenarios:
        if run.data.prompt_of is not None:
            messages = list(run.data.prompt_of(scenario))
        elif SUBTASKS[scenario.subtask].is_chat:
            # The prompts of imported answers are not known: the scenario's own texts stand in their place.
            messages = []
            for turn in scenario.turns:
                if turn.role == "user":
                    messages.append(Message("user", turn.content))
                else:
                    messages.append(Message("assistant", turn.content))
        else:
            inputs = scenario.to_dict()["inputs"]
            messages = [Message("user", json.dumps(inputs, ensure_ascii=False))]
        for score in run.item_scores[scenario.id].samples:
            response = run.answers[scenario.id, score.sample]
            # A reply that is left out has no score, and must not stand there as one that failed.
            if isinstance(response, Response) and score.unscored != FILTERED_REPLY:
                yield _row(scenario, messages, response, score)


def _row(
    scenario: Scenario, messages: list[Message], response: Response, score: SampleScore
) -> dict[str, Any]:
    name = task_id(scenario.subtask, scenario.language)
    is_chat = any(message.role == "assistant" for message in messages)
    texts = [_text(message.content) for message in messages]
    reply = _text(response.text)
    reply_turn = len(messages) if is_chat else 0
    attribution = {
        "turn_idx": reply_turn,
        "source": f"messages[{reply_turn}].content" if is_chat else "output.raw",
        "extracted_value": _text(response.answer),
        "extraction_method": "whole_reply",
        "is_terminal": True,
    }
    roles = [*(message.role for message in messages), "assistant"]
    contents = [*texts, reply]
    turns = []
    for turn, (role, content) in enumerate(zip(roles, contents, strict=True)):
        turns.append({"turn_idx": turn, "role": role, "content": content})
    if score.violations is None:
        contract = "not checked"
    elif score.violations:
        contract = ", ".join(score.violations)
    else:
        contract = "kept"
    return {
        "evaluation_name": name,
        "evaluation_result_id": name,
        "sample_id": scenario.id,
        "interaction_type": "multi_turn" if is_chat else "single_turn",
        "input": {
            "raw": texts[-1],
            "formatted": None if is_chat else "\n\n".join(texts),
            "reference": [_text(text) for text in scenario.references],
        },
        "output": None if is_chat else {"raw": [reply]},
        "messages": turns if is_chat else None,
        "answer_attribution": [attribution],
        # Whether a reply is correct is not defined here, and must not be null.
        "evaluation": {"score": score.lexical if score.s is None else score.s, "is_correct": False},
        "metadata": {
            "sample": str(score.sample),
            "finish_reason": response.finish_reason,
            "contract": contract,
        },
    }


def _text(text: str) -> str:
    """A text with `?` for each half of a surrogate pair, which strict readers of JSON refuse."""
    return text.encode("utf-8", "replace").decode()


def write_eval_results(
    run: Run,
    out: Path,
    dataset: str | None = None,
    revision: str | None = None,
    source_url: str | None = None,
) -> Path:
    """Write the entries of a run on a whole release into `out`, which stands for the model's repository."""
    # Imported here because it is slow, and the other formats do not need it.
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    results = _figures(run)
    split = run.data.split
    if run.summary.signature.human:
        raise ConfigError(
            f"{run.data.folder.path}: people's replies have no model's page; use another --to"
        )
    if run.data.spec.limit is not None or "#" in split.source:
        raise ConfigError(
            f"{run.data.folder.path}: results of the benchmark are of all items of split test"
        )
    repo = dataset
    if not repo and split.commit:
        repo = _hub_name(run)
    commit = revision or split.commit
    if not repo or not commit:
        named = "name the same data set there with --dataset OWNER/NAME and --revision COMMIT"
        raise ConfigError(f"the run's split was not loaded from the Hub: {named}")
    date = _answered_at(run).isoformat().replace("+00:00", "Z")
    entries = [
        EvalResultEntry(
            dataset_id=repo,
            task_id=task,
            value=round(result.estimate.value or 0.0, 2),
            dataset_revision=commit,
            date=date,
            source_url=source_url,
            notes=_note(run, result),
        )
        for task, result in results.items()
    ]
    path = out / ".eval_results" / f"{repo.replace('/', '--')}.yaml"
    files.write_text(path, yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False))
    return path


def _note(run: Run, result: TaskResult) -> str:
    summary = run.summary
    estimate = result.estimate
    caution = ""
    if result.measure == "lexical":
        caution = "mean of six lexical metrics, not S; "
    elif not summary.s_comparable:
        caution = f"S with embedder {summary.signature.protocol['embedder']}, not with BGE-M3; "
    # The fingerprint is that of S and J, but the figure holds no ratings.
    if summary.judging is not None:
        caution += f"without the ratings of {', '.join(summary.judging.judges)}; "
    interval = format_interval(estimate.interval, frame=", 95 % interval {}")
    folded = "" if result.folded is None else f", folded lexical mean {result.folded:.2f}"
    protocol = f"protocol {summary.signature.fingerprint}{summary.run_facts.label}"
    version = f"h2htalk {summary.package_version}; {protocol}"
    return f"{caution}{estimate.n:,} items{interval}{folded}; {version}"
