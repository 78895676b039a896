"""Import responses that another tool produced as a run, and score them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from h2htalk.benchmark.baselines import write_baselines
from h2htalk.benchmark.run_data import read_run_data
from h2htalk.benchmark.score_run import metric_keys, open_metrics, score_run_data
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.data.imports.response_files import read_foreign_responses
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import RunFolder, RunWriter
from h2htalk.data.signature import HUMAN, Signature
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError


def import_responses(
    path: Path, name: str, split_name: str, out: Path, embedder: str = "bge-m3", human: bool = False
) -> Summary:
    """Score a JSONL file of `id`, `response` against a split.

    The prompts are not known: the signature holds `prompts:unknown`, and the run compares only with imported ones.

    Args:
        path: the responses; ids that it lacks stay unscored.
        name: what the table calls the model, or the people.
        split_name: the split that was answered.
        out: a new run folder.
        embedder: as in `EvaluateSpec`.
        human: people wrote the responses; every table says so.

    Raises:
        DataError, ConfigError: the responses or the split cannot be read, or `out` is not a new folder.
    """
    if not name.strip():
        raise ConfigError("--name is empty; say what the table is to call the model")
    if os.path.exists(out / "run.json"):
        raise DataError(f"{out}: holds a run already; name a new folder with --out")
    if os.path.exists(path) and not os.path.isfile(path):
        raise DataError(f"{path}: is not a file; save the responses into one")  # it is read twice, a pipe is not
    split = load_split(split_name)
    responses = read_foreign_responses(path, [s.id for s in split.scenarios])
    metrics = open_metrics(embedder, "f1")
    samples = 1 + max(response.sample for response in responses)
    spec = EvaluateSpec(
        model=f"imported:{name}",
        split=split_name,
        out=str(out),
        embedder=embedder,
        samples=samples,
        temperature=1.0 if samples > 1 else 0.0,
    )
    protocol = {"items": split.fingerprint, "prompts": "unknown", **metric_keys(metrics, split)}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    subject = {
        "engine": HUMAN if human else "imported",
        "model": name,
        "file": digest,
        "samples": str(samples),
        "sap": "unknown",
    }
    writer = RunWriter(RunFolder(out), spec.to_dict(), Signature(protocol, subject), split, {})
    try:
        for response in responses:
            # Of people's replies the text alone: they have no model, no tokens and no request.
            if human and isinstance(response, Response):
                response = Response(response.id, response.sample, response.text)
            writer.store(response)
        write_baselines(writer.folder, split, split)
        return score_run_data(read_run_data(out), metrics)
    finally:
        writer.close()
