"""Logs of other harnesses as runs: what our tasks say there of their split; their replies, scored anew.

Raises DataError for a log of another task, of other items, messages or settings, a damaged or an invalidated one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from h2htalk.benchmark.baselines import write_baselines
from h2htalk.benchmark.evaluate import MODELS_OWN, EvaluationPlan, make_plan, make_signature
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.run import RunInputs, RunWriter
from h2htalk.benchmark.score_run import open_metrics, score_run_data
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.local.checkpoints import hash_files
from h2htalk.chat.protocol import Message
from h2htalk.data.files import read_json_object, sha256_of
from h2htalk.data.imports.harness_log import read_harness_log, reading_log
from h2htalk.data.imports.inspect_log import content_text, inspect_parts
from h2htalk.data.imports.log_records import HarnessLog, ItemInput, LogRecord
from h2htalk.data.links import URL
from h2htalk.data.releases.release_folder import HUB
from h2htalk.data.replies.finish_reasons import FILTERED, read_finish_reason
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature, differing_keys
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, quoted, shorten
from h2htalk.text.embeddings.embedders import require_embedder
from h2htalk.version import __version__

_TEMPERATURE = re.compile(r"\btemperature['\"]?\s*[=:]\s*(\d[\d.]*)")  # in a config of OpenCompass
# Settings of Inspect that reach no model, or may hold a key.
_NOT_SENT = re.compile(
    "max_retries|(attempt_|stream_idle_)?timeout|(max|adaptive)_connections|batch|extra_headers"
)


@dataclass(frozen=True, slots=True)
class ImportedReply:
    """A reply of a log: `inputs` are the messages that were sent, `settings` those of each call."""

    answer: Response | FailedResponse
    inputs: Sequence[ItemInput]
    settings: Sequence[Mapping[str, Any]]


def about_split(
    split: Split, protocol: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What a log says of its split, with its canary, and what an import checks."""
    about = {"version": __version__, "asked": dict(settings), "protocol": dict(protocol)}
    return {"canary": split.canary, "licence": split.licence, "h2htalk": about}


def import_inspect(
    path: Path, out: Path, embedder: str | None = None, split: str | None = None
) -> Summary:
    """Make a run of a log, with an embedder or its own: its replies (also those that were cut), failures and tokens.

    `split`: where the items are, if not where the log says; a log may be anybody's, so that the Hub is asked for no
    split that only a log names.
    """
    if embedder is not None:
        require_embedder(embedder)
    log = read_harness_log(path)
    records = {(record.item, record.epoch): record for record in log.records}
    with reading_log(path):
        samples = inspect_parts(path)
        header = next(samples)
        evaluation = header["eval"]
        stats = header.get("stats") or {}
        about = (evaluation.get("metadata") or {}).get("h2htalk")
        if about is None or log.task.rpartition("/")[2] != "mini":
            raise DataError(
                f"{path}: is of the task {quoted(log.task)}; only logs of h2htalk/mini can be made a run"
            )
        sampling = _sampling(header["plan"]["config"])
        sampling |= _sampling(evaluation["model_generate_config"])
        settings = {
            "out": str(out),
            "embedder": embedder,
            "split": split,
            "samples": evaluation["config"].get("epochs") or 1,
            "max_tokens": sampling.get("max_tokens"),
            "temperature": sampling.get("temperature"),
        }
        # Inspect's own --limit asks fewer.
        ids = set(evaluation["dataset"].get("sample_ids") or ())
        session = {
            "started": stats.get("started_at"),
            "ended": stats.get("completed_at"),
            "versions": evaluation["packages"],
            "endpoint": evaluation.get("model_base_url") or "",
        }
        replies = []
        for sample in samples:
            record = records[str(sample["id"]), sample["epoch"]]
            replies.append(_reply(sample, record))
    facts = {"sessions": [session]} if session["started"] else {}
    return _write(log, about, settings, replies, sampling, ids, facts)


def import_opencompass(path: Path, out: Path, embedder: str | None = None) -> Summary:
    """Make a run of the replies of a model in a folder WORK/TIME; items of data sets that did not end are unscored."""
    if embedder is not None:
        require_embedder(embedder)
    log = read_harness_log(path)
    work = log.path.parents[1]
    with reading_log(path):
        abouts = []
        for results in sorted((work / "results" / log.path.name).glob("*.json")):
            abouts += read_json_object(results).get("about", [{}])
        about = abouts[0] if abouts else {}
        if "h2htalk" not in about or any(other_about != about for other_about in abouts):
            raise DataError(
                f"{path}: has no results, or not all are of one folder of `integrations opencompass`"
            )
        config = ""
        for config_file in sorted((work / "configs").glob("*.py"))[-1:]:
            config = config_file.read_text(encoding="utf-8")
        temperatures = {*_TEMPERATURE.findall(config)}
        if len(temperatures) > 1:
            raise DataError(
                f"{path}: its config has temperatures of several models; run one model a folder"
            )
        sampling = {}
        if temperatures:
            sampling["temperature"] = float(*temperatures)
        log = replace(log, harness=f"OpenCompass {about['opencompass']}")
    settings = {
        "out": str(out),
        "embedder": embedder,
        "samples": 1 + max(record.epoch for record in log.records),
        **sampling,
    }
    replies = []
    for record in log.records:
        response = Response(record.item, record.epoch, record.answer or "")
        replies.append(ImportedReply(response, [record.input or ItemInput((), ())], ()))
    return _write(log, about["h2htalk"], settings, replies, sampling, (), {})


def _write(
    log: HarnessLog,
    about: Mapping[str, Any],
    settings: Mapping[str, Any],
    replies: Sequence[ImportedReply],
    sampling: Mapping[str, Any],
    ids: Collection[str],
    facts: Mapping[str, Any],
) -> Summary:
    """Make a run of replies to the split that `about` names, or to those of its items whose `ids` a log has.

    `settings` replace those with which the harness was started; `sampling` is what was sent to the model.
    """
    spec, signed = _spec_of(log, about, settings)
    plan = make_plan(
        replace(spec, model="baseline:constant", samples=1, temperature=0.0)
    )  # any model that is known
    keys = {"items": plan.split.fingerprint, "prompts": plan.prompts.fingerprint}
    different = ", ".join(differing_keys(keys, signed))
    if different:
        raise DataError(
            f"{log.path}: differs from this version in {different}; use h2htalk {about.get('version')}"
        )
    _require_asked(log.path, plan, replies, sampling)
    answered = tuple(scenario for scenario in plan.split.scenarios if scenario.id in ids)
    split = replace(plan.split, scenarios=answered or plan.split.scenarios)
    plan = replace(plan, spec=spec, split=split)
    metrics = open_metrics(spec.embedder, spec.rouge, filtered=spec.filtered)
    signature = _signature_of(log, plan, metrics, sampling)
    folder = RunFolder(spec.out_path)
    writer = RunWriter(folder, spec.to_dict(), signature, split, plan.prompts.files(), facts=facts)
    try:
        for reply in replies:
            writer.calls.append(reply.answer.to_dict())
        write_baselines(folder, split, plan.full_split)
        return score_run_data(
            RunInputs(folder, spec, split, plan.prompt_of), metrics, note="; ".join(log.notes)
        )
    except BaseException:  # passed on; the log still holds what is removed
        writer.calls.outcomes = 0
        writer.discard()
        raise
    finally:
        writer.close()


def _spec_of(
    log: HarnessLog, about: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[EvaluateSpec, dict[str, str]]:
    """The settings of a run of the log, and the keys of the protocol that it was made with. Raises DataError."""
    with reading_log(log.path):
        values = {**about["asked"]}
        signed = {key: about["protocol"].get(key) for key in ("items", "prompts")}
        values |= {name: value for name, value in settings.items() if value}
        values["model"] = f"imported:{log.model}"
        values["temperature"] = values.get("temperature") or float(values["samples"] > 1)
        split = values.get("split")
    if not settings.get("split") and isinstance(split, str) and (HUB in split or URL in split):
        raise DataError(
            f"{log.path}: its split is {quoted(split)}, for which nobody is asked because a log says so; "
            f"where you know it, name it yourself: --split {split}"
        )
    spec = EvaluateSpec.from_dict(values, str(log.path))
    if (spec.out_path / "run.json").exists():
        raise DataError(f"{spec.out}: holds a run already; name a new folder with --out")
    return spec, signed


def _signature_of(
    log: HarnessLog, plan: EvaluationPlan, metrics: Metrics, sampling: Mapping[str, Any]
) -> Signature:
    sha256 = sha256_of(log.path) if log.path.is_file() else hash_files(log.path.glob("*.json"))
    subject = {
        "engine": "imported",
        "model": log.model,
        "harness": log.harness,
        "file": sha256[:16],
    }
    signature = make_signature(plan, subject, metrics)
    sent = {}
    for name, value in sampling.items():
        sent[name] = f"{value:g}" if isinstance(value, float) else str(value)
    subject = {**sent, **signature.subject}
    for name in ("temperature", "top_p", "seed"):  # not what the settings of the run say
        subject[name] = sent.get(name, MODELS_OWN)
    return replace(signature, subject=subject)


def _require_asked(
    path: Path, plan: EvaluationPlan, replies: Sequence[ImportedReply], sampling: Mapping[str, Any]
) -> None:
    """Raise DataError where an item was asked with other messages or settings than a run would."""
    scenarios = {scenario.id: scenario for scenario in plan.split.scenarios}
    for reply in replies:
        item = reply.answer.id
        scenario = scenarios.get(item)
        prompt: Sequence[Message] = ()
        if scenario and "system_message" not in sampling:  # Inspect adds one when it asks
            prompt = plan.prompt_of(scenario)
        wanted = ItemInput.of([(message.role, message.content) for message in prompt], None)
        if scenario is None or any(sent.messages != wanted.messages for sent in reply.inputs):
            raise DataError(
                f"{path}: {quoted(item)} has no results, or its messages are not those of h2htalk"
            )
        budget = {"max_tokens": SUBTASKS[scenario.subtask].max_tokens, **sampling}
        different = []
        for settings in reply.settings:
            for name, value in settings.items():
                if budget.get(name) != value:
                    different.append(f"{name} {value}")
        if different:
            raise DataError(
                f"{path}: {quoted(item)} was asked with {', '.join(different)}, which no option had set"
            )


def input_of(messages: list[tuple[str, str]]) -> ItemInput:
    """What the messages of a sample (role, text) ask: all but the reply at their end."""
    if messages and messages[-1][0] == "assistant":
        messages = messages[:-1]
    return ItemInput.of(messages, None)


def _sampling(config: Mapping[str, Any]) -> dict[str, Any]:
    sampling = {}
    for name, value in config.items():
        if value is not None and not _NOT_SENT.fullmatch(name):
            sampling[name] = value
    return sampling


def _reply(sample: Mapping[str, Any], record: LogRecord) -> ImportedReply:
    """The reply of a sample, or why there is none; what its input and its messages ask; settings of its calls."""
    messages = []
    for message in sample.get("messages") or ():
        messages.append((message["role"], content_text(message["content"])))
    settings = []
    for event in sample.get("events") or ():
        if event["event"] == "model":
            settings.append(_sampling(event["config"]))
    candidates = (record.input, input_of(messages))
    inputs = [sent for sent in candidates if sent and sent.messages]
    return ImportedReply(_answer(sample, record), inputs, settings)


def _answer(sample: Mapping[str, Any], record: LogRecord) -> Response | FailedResponse:
    number = record.epoch - 1
    output = sample.get("output") or {}
    completed = None
    if sample.get("completed_at"):
        completed = datetime.fromisoformat(sample["completed_at"]).timestamp()
    stop_reason = output["choices"][0]["stop_reason"] if output.get("choices") else ""
    usage = output.get("usage") or {}
    if record.failure or not stop_reason or (stop_reason == "model_length" and not usage):
        message = (sample.get("error") or {}).get("message") or output.get("completion", "")
        reason = record.failure or stop_reason or "no_response"
        return FailedResponse(
            record.item, number, Failure(reason, shorten(message, 300)), completed
        )
    cached = usage.get("input_tokens_cache_read")
    written = usage.get("input_tokens_cache_write")
    input_tokens = None
    if usage:
        input_tokens = usage["input_tokens"] + (cached or 0) + (written or 0)
    text = ""  # the provider's message is no reply
    if usage or stop_reason != "content_filter":
        text = output["completion"]
    finish_reason = read_finish_reason(stop_reason)
    tokens = Usage(
        input_tokens,
        usage.get("output_tokens"),
        cached,
        written,
        reasoning_tokens=usage.get("reasoning_tokens"),
    )
    return Response(
        id=record.item,
        sample=number,
        text=text,
        finish_reason=finish_reason,
        usage=tokens,
        model=output.get("model"),
        at=completed,
        seconds=output.get("time"),
        filtered_by=f"stop reason {stop_reason}" if finish_reason == FILTERED else None,
    )
