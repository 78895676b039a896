"""A bundle: what somebody else needs to compute a run's scores again, as a folder or a .zip.

bundle.json      model, signature, split (fingerprint and source), figures, and the SHA-256 of the others
responses.jsonl  a line a sample: the answer, or the reason why there is none
scores.jsonl     a line a sample: every metric, and the contract rules that were broken
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from h2htalk.benchmark.load_run import Run
from h2htalk.benchmark.metrics.composite import ItemScore
from h2htalk.benchmark.results_export.run_figures import language_figures, without_folders
from h2htalk.data.dialogue import read_id
from h2htalk.data.files import json_line, parse_object, read_bounded, replacing, write_text
from h2htalk.data.imports.zip_members import read_members
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.scenario import Scenario
from h2htalk.errors import DataError, quoted, shorten

HEAD = "bundle.json"
RESPONSES, SCORES = "responses.jsonl", "scores.jsonl"
_LARGEST = {HEAD: 1 << 22, RESPONSES: 1 << 28, SCORES: 1 << 28}  # bytes


@dataclass(frozen=True, slots=True)
class BundleHead:
    """`bundle.json`.

    `split`: name, version, fingerprint, and of a release source and commit. `figures`: the cells of `language_figures`.
    `files`: the SHA-256 of each other file.
    """

    format: Literal["h2htalk results 1"]
    model: str
    package_version: str
    protocol: Mapping[str, str]
    subject: Mapping[str, str]
    samples: int
    split: Mapping[str, str]
    figures: Mapping[str, Mapping[str, Mapping[str, float | None]]]
    files: Mapping[str, str]


def write_bundle(run: Run, out: Path) -> list[Path]:
    """Write a run's bundle into a new folder, or a new file whose name ends with .zip. Raises DataError."""
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: is there already; name a new folder or file with --out")
    texts = _texts(run)
    if out.suffix != ".zip":
        for name, text in texts.items():
            write_text(out / name, text)
        return [out / name for name in texts]
    with replacing(out) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name), text)  # without a date: the same run gives the same bytes
    return [out]


def _texts(run: Run) -> dict[str, str]:
    split, summary, samples = run.data.split, run.summary, run.data.spec.samples
    answers = (_answer(run, s.id, sample) for s in split.scenarios for sample in range(samples))
    scores = (score.to_dict() for item in run.item_scores.values() for score in item.samples)
    parts = {RESPONSES: "".join(map(json_line, answers)), SCORES: "".join(map(json_line, scores))}
    head = BundleHead(
        "h2htalk results 1",
        summary.model,
        summary.package_version,
        without_folders(summary.signature.protocol),
        without_folders(summary.signature.subject),
        samples,
        {name: getattr(split, name) for name in ("name", "version", "fingerprint", "source", "commit")},
        figure_cells(split.scenarios, run.item_scores),
        {name: sha256(text) for name, text in parts.items()},
    )
    return {HEAD: json.dumps(asdict(head), ensure_ascii=False, indent=2) + "\n", **parts}


def figure_cells(scenarios: Sequence[Scenario], scores: Mapping[str, ItemScore]) -> dict[str, dict[str, Any]]:
    """Language -> name -> cell of `language_figures` as a JSON object."""
    figures = language_figures(scenarios, scores)
    return {language: {k: c.to_dict() for k, c in found.cells.items()} for language, found in figures.items()}


def _answer(run: Run, item_id: str, sample: int) -> dict[str, Any]:
    """An answer without thinking and request id; a failure without its message, which may name a server."""
    found = run.answers.get((item_id, sample))
    if isinstance(found, Response):
        return {"id": item_id, "sample": sample, "text": found.text, "finish_reason": found.finish_reason}
    reason = "missing" if found is None else found.failure.reason
    return {"id": item_id, "sample": sample, "failure": {"reason": reason, "message": ""}}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def read_bundle(path: Path) -> tuple[BundleHead, dict[str, str]]:
    """Return head and other files of a bundle. Raises DataError where it is none, or of another version."""
    from pydantic import TypeAdapter, ValidationError

    texts = {name: _read(path, name, most) for name, most in _LARGEST.items()}
    try:
        head = TypeAdapter(BundleHead).validate_json(texts.pop(HEAD), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = shorten(".".join(map(str, first["loc"])), 80)
        raise DataError(f"{path}: {HEAD}: not a bundle of this version: {place}: {first['msg']}") from error
    return head, texts


def read_rows(name: str, text: str, samples: int) -> dict[SampleKey, tuple[str, dict[str, Any]]]:
    """Read the lines of a file by item and sample, each with its place. Raises DataError, also for a second line."""
    rows: dict[SampleKey, tuple[str, dict[str, Any]]] = {}
    for number, line in enumerate(io.StringIO(text), 1):
        where = f"{name}:{number}"
        record = parse_object(line.encode(), where, unique_keys=True)
        item_id, sample = read_id(record, where), record.get("sample")
        if type(sample) is not int or not 0 <= sample < samples:
            raise DataError(f"{where}: sample {quoted(sample)}, but the bundle has {samples:,} an item, from 0 on")
        if (item_id, sample) in rows:
            raise DataError(f"{where}: a second line of {quoted(item_id)}, sample {sample}")
        rows[item_id, sample] = where, record
    return rows


def _read(path: Path, name: str, most: int) -> str:
    try:
        if path.is_dir():
            return read_bounded(path / name, most).decode()
        return next(content for _, content in read_members(path, lambda _: [name], most)).decode()
    except (OSError, ValueError, DataError) as error:
        raise DataError(f"{path}: not a bundle: {name} cannot be read: {error}") from error
