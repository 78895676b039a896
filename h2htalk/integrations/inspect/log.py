"""Inspect's logs of the task `mini` as runs; what the logs of our tasks say of their split."""

from __future__ import annotations

from collections.abc import Mapping
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
from h2htalk.data.files import parse_object, read_bounded, sha256_of
from h2htalk.data.imports.harness_log import inspect_members, read_harness_log, read_members
from h2htalk.data.responses import FailedResponse, Failure, Response, Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import differing_keys
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, H2HTalkError, quoted, shorten
from h2htalk.version import __version__

FINISH = {"max_tokens": "length", "model_length": "context"}  # Inspect's stop reasons as ours; the others are the same
ERRORS = ("model_length", "content_filter")  # without usage: the provider's error message, which is no reply


def about_split(split: Split, protocol: Mapping[str, str], asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a log says of its split, with its canary, and what `import_log` checks."""
    about = {"version": __version__, "asked": dict(asked), "protocol": dict(protocol)}
    return {"canary": split.canary, "licence": split.licence, "h2htalk": about}


def import_log(path: Path, out: Path, embedder: str | None = None) -> Summary:
    """Make a run of a log of the task `mini`: its replies, failures, tokens and times, scored anew.

    `embedder`: None uses that of the task. A reply that was cut at its budget is scored, as in `h2htalk evaluate`.
    Raises DataError for a log of another task, of other items or prompts than here, a damaged or an invalidated one.
    """
    if (out / "run.json").exists():
        raise DataError(f"{out}: holds a run already; name a new folder with --out")
    log = read_harness_log(path)
    failures = {(one.item, one.epoch): one.failure for one in log.records}
    members = read_members(path, inspect_members) if path.suffix == ".eval" else [(str(path), read_bounded(path))]
    parts = (parse_object(text, where, nan=True) for where, text in members)
    header = next(parts)
    about, samples = header["eval"], chain(parts, header.get("samples") or ())
    own = (about.get("metadata") or {}).get("h2htalk")
    if own is None or log.task.rpartition("/")[2] != "mini":
        raise DataError(f"{path}: is of the task {quoted(log.task)}; only logs of h2htalk/mini can be made a run")
    asked, epochs = own["asked"], about["config"].get("epochs") or 1
    config = {**header["plan"]["config"], **{k: v for k, v in about["model_generate_config"].items() if v is not None}}
    given = {
        "model": f"imported:{log.model}",
        "out": str(out),
        "samples": epochs,
        "max_tokens": config.get("max_tokens"),
    }
    given |= {"temperature": config.get("temperature") or float(epochs > 1)}
    spec = EvaluateSpec.from_dict(asked | given | ({"embedder": embedder} if embedder else {}), str(path))
    plan = make_plan(replace(spec, model="baseline:constant", samples=1, temperature=0.0))  # any model that is known
    found = {"items": plan.split.fingerprint, "prompts": plan.prompts.fingerprint}
    if different := differing_keys(found, {key: own["protocol"].get(key) for key in found}):
        advice = f"import it with h2htalk {own['version']}, which asked"
        raise DataError(f"{path}: differs from this version in {', '.join(different)}; {advice}")
    ids = set(about["dataset"]["sample_ids"])  # Inspect's own --limit asks fewer
    split = replace(plan.split, scenarios=tuple(one for one in plan.split.scenarios if one.id in ids))
    plan = replace(plan, spec=spec, split=split)
    metrics, stats = open_metrics(spec.embedder, spec.rouge), header.get("stats") or {}
    subject = {"engine": "imported", "model": log.model, "harness": log.harness, "file": sha256_of(path)[:16]}
    session = {"started": stats.get("started_at"), "ended": stats.get("completed_at"), "versions": about["packages"]}
    facts = {"sessions": [session | {"endpoint": about.get("model_base_url") or ""}]} if stats.get("started_at") else {}
    signature, folder = make_signature(plan, subject, metrics), RunFolder(out)
    writer = RunWriter(folder, spec.to_dict(), signature, split, plan.prompts.files(), facts=facts)
    try:
        for sample in samples:
            writer.calls.append(_outcome(sample, failures[str(sample["id"]), sample["epoch"]]).to_dict())
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
