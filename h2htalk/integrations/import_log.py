"""Logs of other harnesses as runs: what our tasks say there of their split; their replies, scored anew.

Raises DataError for a log of another task, of other items, messages or settings, a damaged or an invalidated one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from h2htalk.benchmark.evaluate import MODELS_OWN, EvaluationPlan, make_plan, make_signature
from h2htalk.benchmark.run import RunData, RunWriter
from h2htalk.benchmark.score_run import open_metrics, score_run_data
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary, write_baselines
from h2htalk.chat.local.checkpoints import hash_files
from h2htalk.data.files import read_json_object, sha256_of
from h2htalk.data.imports import harness_log
from h2htalk.data.imports.harness_log import HarnessLog, ItemInput, LogRecord, reading_log
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import differing_keys
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError, quoted, shorten
from h2htalk.version import __version__

FINISH = {"max_tokens": "length", "model_length": "context", "content_filter": "refusal"}  # Inspect's ends as ours
# Settings of Inspect that reach no model, or may hold a key.
_NOT_SENT = re.compile("max_retries|(attempt_|stream_idle_)?timeout|(max|adaptive)_connections|batch|extra_headers")
Fields = Mapping[str, Any]
Asked = tuple[Response | FailedResponse, Sequence[ItemInput], Sequence[Fields]]  # also what was asked, and how


def about_split(split: Split, protocol: Mapping[str, str], asked: Fields) -> dict[str, Any]:
    """What a log says of its split, with its canary, and what an import checks."""
    about = {"version": __version__, "asked": dict(asked), "protocol": dict(protocol)}
    return {"canary": split.canary, "licence": split.licence, "h2htalk": about}


def import_inspect(path: Path, out: Path, embedder: str | None = None) -> Summary:
    """Make a run of a log, with an embedder or its own: its replies (also those that were cut), failures and tokens."""
    log = harness_log.read_harness_log(path)
    records = {(one.item, one.epoch): one for one in log.records}
    with reading_log(path):
        header = next(parts := harness_log.inspect_parts(path))
        about, stats = header["eval"], header.get("stats") or {}
        if (own := (about.get("metadata") or {}).get("h2htalk")) is None or log.task.rpartition("/")[2] != "mini":
            raise DataError(f"{path}: is of the task {quoted(log.task)}; only logs of h2htalk/mini can be made a run")
        sampling = _sampling(header["plan"]["config"]) | _sampling(about["model_generate_config"])
        asked = {"out": str(out), "embedder": embedder, "samples": about["config"].get("epochs") or 1}
        asked |= {name: sampling.get(name) for name in ("max_tokens", "temperature")}
        ids = set(about["dataset"].get("sample_ids") or ())  # Inspect's own --limit asks fewer
        session = {"started": stats.get("started_at"), "ended": stats.get("completed_at")}
        session |= {"versions": about["packages"], "endpoint": about.get("model_base_url") or ""}
        replies = [_reply(one, records[str(one["id"]), one["epoch"]]) for one in parts]
    return _write(log, own, asked, replies, sampling, ids, {"sessions": [session]} if session["started"] else {})


def import_opencompass(path: Path, out: Path, embedder: str | None = None) -> Summary:
    """Make a run of the replies of a model in a folder WORK/TIME; items of data sets that did not end are unscored."""
    work = (log := harness_log.read_harness_log(path)).path.parents[1]
    with reading_log(path):
        results = map(read_json_object, sorted((work / "results" / log.path.name).glob("*.json")))
        about, *others = [one for result in results for one in result.get("about", [{}])] or [{}]
        if "h2htalk" not in about or any(one != about for one in others):
            raise DataError(f"{path}: has no results, or not all are of one folder of `integrations opencompass`")
        config = "".join(one.read_text(encoding="utf-8") for one in sorted((work / "configs").glob("*.py"))[-1:])
        found = {*re.findall(r"\btemperature['\"]?\s*[=:]\s*(\d[\d.]*)", config)}
        if len(found) > 1:
            raise DataError(f"{path}: its config has temperatures of several models; run one model a folder")
        sampling = {"temperature": float(*found)} if found else {}
        log = replace(log, harness=f"OpenCompass {about['opencompass']}")
    asked = {"out": str(out), "embedder": embedder, "samples": 1 + max(one.epoch for one in log.records), **sampling}
    replies = [(Response(r.item, r.epoch, r.answer or ""), [r.input or ItemInput((), ())], ()) for r in log.records]
    return _write(log, about["h2htalk"], asked, replies, sampling, (), {})


def _write(
    log: HarnessLog, own: Fields, given: Fields, replies: Sequence[Asked], sampling: Fields, ids: Any, facts: Fields
) -> Summary:
    """Make a run of replies to the split that `own` names, or to those of its items whose `ids` are given."""
    with reading_log(log.path):
        asked, signed = {**own["asked"]}, {key: own["protocol"].get(key) for key in ("items", "prompts")}
        asked |= {name: value for name, value in given.items() if value} | {"model": f"imported:{log.model}"}
        asked["temperature"] = asked.get("temperature") or float(asked["samples"] > 1)
    spec = EvaluateSpec.from_dict(asked, str(log.path))
    if (spec.out_path / "run.json").exists():
        raise DataError(f"{spec.out}: holds a run already; name a new folder with --out")
    plan = make_plan(replace(spec, model="baseline:constant", samples=1, temperature=0.0))  # any model that is known
    found = {"items": plan.split.fingerprint, "prompts": plan.prompts.fingerprint}
    if different := ", ".join(differing_keys(found, signed)):
        raise DataError(f"{log.path}: differs from this version in {different}; use h2htalk {own.get('version')}")
    _require_asked(log.path, plan, replies, sampling)
    split = replace(plan.split, scenarios=tuple(s for s in plan.split.scenarios if s.id in ids) or plan.split.scenarios)
    plan, metrics = replace(plan, spec=spec, split=split), open_metrics(spec.embedder, spec.rouge)
    sha256 = sha256_of(log.path) if log.path.is_file() else hash_files(log.path.glob("*.json"))
    subject = {"engine": "imported", "model": log.model, "harness": log.harness, "file": sha256[:16]}
    signature, folder = make_signature(plan, subject, metrics), RunFolder(spec.out_path)
    texts = {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in sampling.items()}
    sent = {name: texts.get(name, MODELS_OWN) for name in ("temperature", "top_p", "seed")}  # not what `spec` says
    signature = replace(signature, subject={**texts, **signature.subject, **sent})
    writer = RunWriter(folder, spec.to_dict(), signature, split, plan.prompts.files(), facts=facts)
    try:
        for answer, *_ in replies:
            writer.calls.append(answer.to_dict())
        write_baselines(folder, split, plan.whole)
        return score_run_data(RunData(folder, spec, split, plan.prompt_of), metrics, note="; ".join(log.notes))
    except BaseException:  # passed on; the log still holds what is removed
        writer.calls.outcomes = 0
        writer.discard()
        raise
    finally:
        writer.close()


def _require_asked(path: Path, plan: EvaluationPlan, replies: Sequence[Asked], sampling: Fields) -> None:
    """Raise DataError where an item was asked with other messages or settings than a run would."""
    scenarios = {one.id: one for one in plan.split.scenarios}
    for answer, inputs, settings in replies:
        one = scenarios.get(answer.id)
        ours = plan.prompt_of(one) if one and "system_message" not in sampling else ()  # Inspect adds one when it asks
        messages = ItemInput.of([(m.role, m.content) for m in ours], None).messages
        if one is None or any(sent.messages != messages for sent in inputs):
            raise DataError(f"{path}: {quoted(answer.id)} has no results, or its messages are not those of h2htalk")
        budget = {"max_tokens": SUBTASKS[one.subtask].max_tokens, **sampling}
        if other := [f"{name} {v}" for sent in settings for name, v in sent.items() if budget.get(name) != v]:
            raise DataError(f"{path}: {quoted(answer.id)} was asked with {', '.join(other)}, which no option had set")


def _sampling(config: Fields) -> dict[str, Any]:
    return {name: value for name, value in config.items() if value is not None and not _NOT_SENT.fullmatch(name)}


def _reply(sample: Fields, record: LogRecord) -> Asked:
    """The reply of a sample, or why there is none; what its input and its messages ask; settings of its calls."""
    said = [(one["role"], harness_log.content_text(one["content"])) for one in sample.get("messages") or ()]
    said = said[: -1 if said and said[-1][0] == "assistant" else None]
    settings = [_sampling(one["config"]) for one in sample.get("events") or () if one["event"] == "model"]
    inputs = [one for one in (record.input, ItemInput.of(said, None)) if one and one.messages]
    item, number, output = record.item, record.epoch - 1, sample.get("output") or {}
    at = datetime.fromisoformat(sample["completed_at"]).timestamp() if sample.get("completed_at") else None
    reason, used = output["choices"][0]["stop_reason"] if output.get("choices") else "", output.get("usage") or {}
    if record.failure or not reason or (reason == "model_length" and not used):
        message = (sample.get("error") or {}).get("message") or output.get("completion", "")
        failure = Failure(record.failure or reason or "no_response", shorten(message, 300))
        return FailedResponse(item, number, failure, at), inputs, settings
    cached, written = used.get("input_tokens_cache_read"), used.get("input_tokens_cache_write")
    sent = used["input_tokens"] + (cached or 0) + (written or 0) if used else None
    tokens = Usage(sent, used.get("output_tokens"), cached, written, reasoning_tokens=used.get("reasoning_tokens"))
    text = "" if reason == "content_filter" and not used else output["completion"]  # the provider's message
    end, model = FINISH.get(reason, reason), output.get("model")
    return Response(item, number, text, end, tokens, model=model, at=at, seconds=output.get("time")), inputs, settings
