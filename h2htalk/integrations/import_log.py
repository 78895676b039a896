"""Logs of other harnesses as runs: what our tasks say there of their split; their replies, scored anew.

Raises DataError for a log of another task, of other items or prompts than here, a damaged or an invalidated one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any

from h2htalk.benchmark.evaluate import make_plan, make_signature
from h2htalk.benchmark.run import RunData, RunWriter
from h2htalk.benchmark.score_run import open_metrics, score_run_data
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary, write_baselines
from h2htalk.chat.local.checkpoints import hash_files
from h2htalk.data.files import parse_object, read_bounded, read_json_object, sha256_of
from h2htalk.data.imports.harness_log import HarnessLog, ItemInput, inspect_members, read_harness_log, read_members
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import differing_keys
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, H2HTalkError, quoted, shorten
from h2htalk.integrations.door import Door
from h2htalk.version import __version__

FINISH = {"max_tokens": "length", "model_length": "context"}  # Inspect's stop reasons as ours; the others are the same
ERRORS = ("model_length", "content_filter")  # without usage: the provider's error message, which is no reply
Answers = Iterable[Response | FailedResponse]
Fields = Mapping[str, Any]


def about_split(split: Split, protocol: Mapping[str, str], asked: Fields) -> dict[str, Any]:
    """What a log says of its split, with its canary, and what an import checks."""
    about = {"version": __version__, "asked": dict(asked), "protocol": dict(protocol)}
    return {"canary": split.canary, "licence": split.licence, "h2htalk": about}


def import_inspect(path: Path, out: Path, embedder: str | None = None) -> Summary:
    """Make a run of a log, with an embedder or its own: its replies (also those that were cut), failures and tokens."""
    log = read_harness_log(path)
    failures = {(one.item, one.epoch): one.failure for one in log.records}
    members = read_members(path, inspect_members) if path.suffix == ".eval" else [(str(path), read_bounded(path))]
    parts = (parse_object(text, where, nan=True) for where, text in members)
    header = next(parts)
    about, samples = header["eval"], chain(parts, header.get("samples") or ())
    own = (about.get("metadata") or {}).get("h2htalk")
    if own is None or log.task.rpartition("/")[2] != "mini":
        raise DataError(f"{path}: is of the task {quoted(log.task)}; only logs of h2htalk/mini can be made a run")
    config = {**header["plan"]["config"], **{k: v for k, v in about["model_generate_config"].items() if v is not None}}
    asked = {"out": str(out), "embedder": embedder, "samples": about["config"].get("epochs") or 1}
    asked |= {name: config.get(name) for name in ("max_tokens", "temperature")}
    stats, ids = header.get("stats") or {}, set(about["dataset"]["sample_ids"])  # Inspect's own --limit asks fewer
    session = {"started": stats.get("started_at"), "ended": stats.get("completed_at"), "versions": about["packages"]}
    facts = {"sessions": [session | {"endpoint": about.get("model_base_url") or ""}]} if stats.get("started_at") else {}
    answers = (_outcome(one, failures[str(one["id"]), one["epoch"]]) for one in samples)
    return _write(log, own, asked, answers, ids, facts)


def import_opencompass(path: Path, out: Path, embedder: str | None = None) -> Summary:
    """Make a run of the replies of a model in a folder WORK/TIME; items of data sets that did not end are unscored."""
    log = read_harness_log(path)
    work = log.path.parents[1]
    results = [read_json_object(one) for one in sorted((work / "results" / log.path.name).glob("*.json"))]
    about, *others = [one for result in results for one in result.get("about", [{}])] or [{}]
    if "h2htalk" not in about or any(one != about for one in others):
        raise DataError(f"{path}: has no results, or not all are of one folder of `h2htalk integrations opencompass`")
    config = "".join(one.read_text(encoding="utf-8") for one in sorted((work / "configs").glob("*.py"))[-1:])
    temperature = max(map(float, re.findall(r"\btemperature=(\d[\d.]*)", config)), default=None)
    samples = 1 + max(one.epoch for one in log.records)
    asked = {"out": str(out), "embedder": embedder, "samples": samples, "temperature": temperature}
    log = replace(log, harness=f"OpenCompass {about['opencompass']}")
    return _write(log, about["h2htalk"], asked, _replies(log, about["h2htalk"]["asked"]))


def _replies(log: HarnessLog, asked: Fields) -> Answers:
    messages = {one.id: [(m["role"], m["content"]) for m in one.messages] for one in Door(**asked).items}
    for one in log.records:
        if one.input is None or one.input.messages != ItemInput.of(messages.get(one.item, ()), None).messages:
            raise DataError(f"{log.path}: {quoted(one.item)} has no results, or its messages are not those of h2htalk")
        yield Response(one.item, one.epoch, one.answer or "")


def _write(
    log: HarnessLog, own: Fields, given: Fields, answers: Answers, ids: Any = None, facts: Fields | None = None
) -> Summary:
    """Make a run of answers to the split that `own` names, or to those of its items whose `ids` are given."""
    asked = own["asked"] | {name: value for name, value in given.items() if value}
    asked |= {"model": f"imported:{log.model}", "temperature": asked.get("temperature") or float(asked["samples"] > 1)}
    spec = EvaluateSpec.from_dict(asked, str(log.path))
    if (spec.out_path / "run.json").exists():
        raise DataError(f"{spec.out}: holds a run already; name a new folder with --out")
    plan = make_plan(replace(spec, model="baseline:constant", samples=1, temperature=0.0))  # any model that is known
    found = {"items": plan.split.fingerprint, "prompts": plan.prompts.fingerprint}
    if different := differing_keys(found, {key: own["protocol"].get(key) for key in found}):
        raise DataError(
            f"{log.path}: differs from this version in {', '.join(different)}; use h2htalk {own['version']}"
        )
    split = replace(plan.split, scenarios=tuple(s for s in plan.split.scenarios if ids is None or s.id in ids))
    plan, metrics = replace(plan, spec=spec, split=split), open_metrics(spec.embedder, spec.rouge)
    sha256 = sha256_of(log.path) if log.path.is_file() else hash_files(log.path.glob("*.json"))
    subject = {"engine": "imported", "model": log.model, "harness": log.harness, "file": sha256[:16]}
    signature, folder = make_signature(plan, subject, metrics), RunFolder(spec.out_path)
    writer = RunWriter(folder, spec.to_dict(), signature, split, plan.prompts.files(), facts=facts or {})
    try:
        for answer in answers:
            writer.calls.append(answer.to_dict())
        write_baselines(folder, split, plan.whole)
        return score_run_data(RunData(folder, spec, split, plan.prompt_of), metrics, note="; ".join(log.notes))
    except H2HTalkError:
        writer.discard()
        raise
    finally:
        writer.close()


def _outcome(sample: Mapping[str, Any], failure: str | None) -> Response | FailedResponse:
    """The reply of a sample, or why there is none."""
    item, number, output = str(sample["id"]), sample["epoch"] - 1, sample.get("output") or {}
    at = datetime.fromisoformat(sample["completed_at"]).timestamp() if sample.get("completed_at") else None
    reason, used = output["choices"][0]["stop_reason"] if output.get("choices") else "", output.get("usage") or {}
    if failure or not reason or (reason in ERRORS and not used):
        message = (sample.get("error") or {}).get("message") or output.get("completion", "")
        return FailedResponse(item, number, Failure(failure or reason or "no_response", shorten(message, 300)), at)
    cached, written = used.get("input_tokens_cache_read"), used.get("input_tokens_cache_write")
    sent = used["input_tokens"] + (cached or 0) + (written or 0) if used else None
    tokens = Usage(sent, used.get("output_tokens"), cached, written, reasoning_tokens=used.get("reasoning_tokens"))
    end, model = FINISH.get(reason, reason), output.get("model")
    return Response(item, number, output["completion"], end, tokens, model=model, at=at, seconds=output.get("time"))
