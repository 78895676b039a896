"""Export a run: entries for a model's page on the Hub, records of Every Eval Ever, or a bundle that can be verified.

`.eval_results/NAME.yaml`: one wrong entry hides the whole file, so each benchmark has a file of its own, and nothing in
it is null. Every Eval Ever 0.3.0 (`schemas/`, with their licence): an aggregate and a row a sample, scores from 0 to 1.
A bundle is a folder or a .zip with what somebody else needs to compute the scores again:

bundle.json      model, signature, split (fingerprint and source), figures, and the SHA-256 of the others
responses.jsonl  a line a sample: the answer, or the reason why there is none
scores.jsonl     a line a sample: every metric, and the contract rules that were broken
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from h2htalk.benchmark.metrics.composite import ItemScore, SampleScore
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.statistics.intervals import RULE
from h2htalk.benchmark.statistics.table2_averages import Cell, ItemValue, aggregate
from h2htalk.benchmark.summary import Measure
from h2htalk.chat.protocol import Message
from h2htalk.data.arguments import as_path
from h2htalk.data.dialogue import read_id
from h2htalk.data.files import (
    json_line,
    parse_object,
    read_bounded,
    replacing,
    sha256_of,
    write_json,
    write_jsonl,
    write_text,
)
from h2htalk.data.imports.harness_log import read_members
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.links import link_copies
from h2htalk.data.records import read_record
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS, task_id
from h2htalk.distributions import CONFIDENCE
from h2htalk.errors import ConfigError, DataError, counted, quoted, suggest

# A folder of this machine before a name, as in `bge-m3:/data/models/bge-m3`.
_FOLDER = re.compile(r"(^|:)(?:~|\.{1,2})?/(?:\S*/)?")


class LanguageFigures(NamedTuple):
    """A cell for each of `subtasks.FIGURES` that has a value; the lexical mean where there is no S."""

    measure: Measure
    cells: dict[str, Cell]


def language_figures(scenarios: Sequence[Scenario], scores: Mapping[str, ItemScore]) -> dict[Language, LanguageFigures]:
    """Aggregate the scored items of each language."""
    figures: dict[Language, LanguageFigures] = {}
    for language in LANGUAGES:
        own = [s for s in scenarios if s.language == language]
        measure: Measure = "s" if any(scores[s.id].s is not None for s in own) else "lexical"
        row = aggregate(ItemValue(s.id, s.subtask, getattr(scores[s.id], measure)) for s in own)
        cells = {"overall": row.overall, **row.dimensions, **row.cells}
        if valued := {name: cell for name, cell in cells.items() if cell.value is not None}:
            figures[language] = LanguageFigures(measure, valued)
    return figures


def require_scored(run: Run) -> None:
    """Raise ConfigError unless each item of a run has a score."""
    counts, path = run.summary.counts, run.data.folder.path
    if counts.unscored:
        raise ConfigError(f"{path}: incomplete: {counted(counts.unscored, 'item')} unscored; finish the run first")
    if counts.private:
        raise ConfigError(
            f"{path}: not scored: its references are private; h2htalk score RUN --references FILE scores it"
        )


def answered_at(run: Run) -> datetime:
    """When the run's last session ended; of a run that does not know it, when its answers were last written."""
    if ended := run.summary.answering.ended:
        return datetime.fromisoformat(ended)
    return datetime.fromtimestamp(int(run.data.folder.shard.stat().st_mtime), UTC)


def hub_name(split: Split) -> str:
    """`OWNER/NAME` of a split that was loaded from the Hub."""
    return split.source.removeprefix("hub:").partition("@")[0]


def without_folders(texts: Mapping[str, str]) -> dict[str, str]:
    """The values of a signature without folders of this machine."""
    return {key: _FOLDER.sub(r"\1", text) for key, text in texts.items()}


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
    texts = {name: _read(path, name, most) for name, most in _LARGEST.items()}
    return read_record(BundleHead, texts.pop(HEAD), f"{path}: {HEAD}: not a bundle of this version"), texts


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


NAME = "h2htalk"  # of the collection and the library
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_MODEL = re.compile(r"\w([\w.-]*\w)?/\w([\w.-]*\w)?", re.ASCII)


def write_every_eval_ever(
    run: Run, out: Path, model: str | None, organization: str | None, relationship: str = "third_party"
) -> list[Path]:
    """Write aggregate and samples of a run, at the paths that the data store of Every Eval Ever has for them."""
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


def write_eval_results(
    run: Run, out: Path, dataset: str | None = None, revision: str | None = None, source_url: str | None = None
) -> Path:
    """Write the entries of a run on a whole release into `out`, which stands for the model's repository."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    from huggingface_hub.utils import yaml_dump  # type: ignore[attr-defined]

    require_scored(run)
    if run.summary.signature.human:
        raise ConfigError(f"{run.data.folder.path}: people's replies have no model's page; use another --to")
    split = run.data.split
    if run.data.spec.limit is not None or "#" in split.source:
        raise ConfigError(f"{run.data.folder.path}: results of the benchmark are of all items of split test")
    repo, commit = dataset or (split.commit and hub_name(split)), revision or split.commit
    if not repo or not commit:
        raise ConfigError(
            "the run's split was not loaded from the Hub: name the same data set there with --dataset OWNER/NAME and "
            "--revision COMMIT"
        )
    date = answered_at(run).isoformat().replace("+00:00", "Z")
    entries = [
        EvalResultEntry(repo, task, value, commit, date=date, source_url=source_url, notes=notes)
        for task, value, notes in _values(run)
    ]
    path = out / ".eval_results" / f"{repo.replace('/', '--')}.yaml"
    write_text(path, yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False))
    return path


def _values(run: Run) -> Iterator[tuple[str, float, str]]:
    """Yield task, value and notes of each figure."""
    summary = run.summary
    made = f"h2htalk {summary.package_version}; protocol {summary.signature.fingerprint}{summary.answering.label}"
    for language, figures in language_figures(run.data.split.scenarios, run.item_scores).items():
        caution = ""
        if figures.measure == "lexical":
            caution = "mean of six lexical metrics, not S; "
        elif not summary.s_comparable:
            caution = f"S with embedder {summary.signature.protocol['embedder']}, not with BGE-M3; "
        if summary.judging is not None:  # the fingerprint is that of S and J
            caution += f"without the ratings of {', '.join(summary.judging.judges)}; "
        for name, cell in figures.cells.items():
            interval = "" if cell.low is None else f", 95 % interval {cell.low:.2f} to {cell.high:.2f}"
            yield task_id(name, language), round(cell.value or 0.0, 2), f"{caution}{cell.n:,} items{interval}; {made}"


FORMATS = ("eval-results", "every-eval-ever", "bundle")


def export_results(
    run: str | os.PathLike[str],
    to: str,
    out: str | os.PathLike[str],
    *,
    dataset: str | None = None,
    revision: str | None = None,
    source_url: str | None = None,
    model: str | None = None,
    organization: str | None = None,
    relationship: str = "third_party",
) -> list[Path]:
    """Write the results of a scored run in a format of others. Nothing is sent.

    Args:
        run: its folder.
        to: `eval-results` (entries for the model's page on the Hub), `every-eval-ever` (its data store), or `bundle`
            (for `verify_results`).
        out: the folder to write into; of a bundle a new folder, or a new file ending with .zip.
        dataset, revision: of eval-results: the data set on the Hub and its commit; default: those of the run.
        source_url: of eval-results: a page about the run.
        model: of every-eval-ever: `DEVELOPER/MODEL`.
        organization, relationship: of every-eval-ever: who ran the evaluation, and what they are to the model's
            developer; one of `every_eval_ever.RELATIONSHIPS`.

    Examples:
        >>> import h2htalk
        >>> [path.name for path in h2htalk.export_results("runs/constant", "bundle", "bundle")]
        ['bundle.json', 'responses.jsonl', 'scores.jsonl']

    Returns:
        The files.

    Raises:
        ConfigError: an unknown format, a run that it does not take, or a name that it needs.
        DataError: no scored run, or a file that cannot be written.
    """
    folder = as_path(out, "out")
    if to not in FORMATS:
        raise ConfigError(f"--to {quoted(to)}: {suggest(to, FORMATS)}choose from {', '.join(FORMATS)}")
    loaded = load_run(run)
    link_copies([loaded.data.folder.path], folder)
    if to == "bundle":
        return write_bundle(loaded, folder)
    if to == "eval-results":
        return [write_eval_results(loaded, folder, dataset, revision, source_url)]
    return write_every_eval_ever(loaded, folder, model, organization, relationship)
