"""Export a run: entries for a model's page on the Hub, records of Every Eval Ever, or a bundle that can be verified.

`.eval_results/NAME.yaml`: one wrong entry hides the whole file, so each benchmark has a file of its own, without null.
Every Eval Ever 0.3.0: an aggregate and a row a sample, scores from 0 to 1.
A bundle is a folder or a .zip with what somebody else needs to compute the scores again:

bundle.json    model, signature, split (fingerprint and source), figures, and the SHA-256 of the other file
samples.jsonl  a line a sample: the answer, or the reason why there is none, every metric, and broken contract rules
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from h2htalk.benchmark.metrics.composite import Metrics, SampleScore, Scores, score_answers
from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.score_run import REFERENCES_LENGTH, REVISION_LENGTH, metric_keys, open_metrics
from h2htalk.benchmark.statistics import RULE, Cell, aggregate
from h2htalk.benchmark.summary import Measure
from h2htalk.chat.protocol import Message
from h2htalk.data import files
from h2htalk.data.imports.harness_log import read_members
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.links import link_copies
from h2htalk.data.records import AnyPath, as_path, read_record
from h2htalk.data.responses import Response, SampleKey, read_response
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split, list_splits, load_split, with_references
from h2htalk.data.subtasks import DIMENSIONS, FIGURES, SUBTASKS, task_id
from h2htalk.distributions import CONFIDENCE
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted, suggest

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
        raise ConfigError(f"--to {quoted(to)}: {suggest(to, FORMATS)}choose from {', '.join(FORMATS)}")
    loaded = load_run(run)
    link_copies([loaded.data.folder.path], folder)
    if to == "bundle":
        return write_bundle(loaded, folder)
    if to == "eval-results":
        return [write_eval_results(loaded, folder, dataset, revision, source_url)]
    return write_every_eval_ever(loaded, folder, model, organization, relationship)


class Figure(NamedTuple):
    """A cell of a language's items that has a value; of the lexical mean where they have no S."""

    language: Language
    measure: Measure
    cell: Cell


def figures_of(scenarios: Sequence[Scenario], scores: Scores) -> dict[str, Figure]:
    """Return `subtasks.FIGURES` of each language, by `task_id`."""
    figures: dict[str, Figure] = {}
    for language in LANGUAGES:
        own = [s for s in scenarios if s.language == language]
        measure: Measure = "s" if any(scores[s.id].s is not None for s in own) else "lexical"
        row = aggregate((s.subtask, getattr(scores[s.id], measure)) for s in own)
        for name in FIGURES:
            cell = row.get(f"{name}_avg" if name in DIMENSIONS else name)
            if cell is not None and cell.value is not None:
                figures[task_id(name, language)] = Figure(language, measure, cell)
    return figures


def _figures(run: Run) -> dict[str, Figure]:
    """The figures of a run of which each item has a score; raises ConfigError for another run."""
    counts, path = run.summary.counts, run.data.folder.path
    if counts.unscored:
        raise ConfigError(f"{path}: incomplete: {counted(counts.unscored, 'item')} unscored; finish the run first")
    if counts.private:
        raise ConfigError(f"{path}: its references are private; h2htalk score RUN --references FILE scores it")
    return figures_of(run.data.split.scenarios, run.item_scores)


def _answered_at(run: Run) -> datetime:
    """When the run's last session ended; of a run that does not know it, when its answers were last written."""
    if ended := run.summary.answering.ended:
        return datetime.fromisoformat(ended)
    return datetime.fromtimestamp(int(run.data.folder.calls_file.stat().st_mtime), UTC)


def _hub_name(run: Run) -> str:
    """`OWNER/NAME` of a split that was loaded from the Hub."""
    return run.data.split.source.removeprefix("hub:").partition("@")[0]


def without_folders(texts: Mapping[str, str]) -> dict[str, str]:
    """The values of a signature without folders of this machine, as in `bge-m3:/data/models/bge-m3`."""
    return {key: re.sub(r"(^|:)(?:~|\.{1,2})?/(?:\S*/)?", r"\1", text) for key, text in texts.items()}


HEAD, SAMPLES = "bundle.json", "samples.jsonl"


@dataclass(frozen=True, slots=True)
class BundleHead:
    """`bundle.json`. `split`: name, version, fingerprint, and of a release source and commit; `figures`: the cells of
    `figures_of`; `sha256`: of the samples."""

    format: Literal["h2htalk results 2"]
    model: str
    package_version: str
    protocol: Mapping[str, str]
    subject: Mapping[str, str]
    samples: int
    split: Mapping[str, str]
    figures: Mapping[str, Cell]
    sha256: str


def write_bundle(run: Run, out: Path) -> list[Path]:
    """Write a run's bundle into a new folder, or a new file whose name ends with .zip. Raises DataError."""
    if os.path.lexists(out) and (not out.is_dir() or any(out.iterdir())):
        raise DataError(f"{out}: is there already; name a new folder or file with --out")
    split, summary = run.data.split, run.summary
    samples = "".join(files.json_line(_sample(run, one)) for item in run.item_scores.values() for one in item.samples)
    head = BundleHead(
        "h2htalk results 2",
        summary.model,
        summary.package_version,
        without_folders(summary.signature.protocol),
        without_folders(summary.signature.subject),
        run.data.spec.samples,
        {name: getattr(split, name) for name in ("name", "version", "fingerprint", "source", "commit")},
        {task: one.cell for task, one in figures_of(split.scenarios, run.item_scores).items()},
        hashlib.sha256(samples.encode()).hexdigest(),
    )
    texts = {HEAD: json.dumps(asdict(head), ensure_ascii=False, indent=2) + "\n", SAMPLES: samples}
    if out.suffix != ".zip":
        for name, text in texts.items():
            files.write_text(out / name, text)
        return [out / name for name in texts]
    with files.replacing(out) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in texts.items():
            file.writestr(zipfile.ZipInfo(name), text)  # without a date: the same run gives the same bytes
    return [out]


def _sample(run: Run, score: SampleScore) -> dict[str, Any]:
    """The scores and the answer's text; a failure without its message, which may name a server."""
    found = run.answers.get((score.id, score.sample))
    if isinstance(found, Response):
        return {**score.to_dict(), "text": found.text, "finish_reason": found.finish_reason}
    return {**score.to_dict(), "failure": {"reason": "missing" if found is None else found.failure.reason}}


NAME = "h2htalk"  # of the collection and the library
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
_MODEL = re.compile(r"\w([\w.-]*\w)?/\w([\w.-]*\w)?", re.ASCII)


def write_every_eval_ever(
    run: Run, out: Path, model: str | None, organization: str | None, relationship: str = "third_party"
) -> list[Path]:
    """Write aggregate and samples of a run, at the paths that the data store of Every Eval Ever has for them."""
    figures = _figures(run)
    if not organization:
        raise ConfigError("every-eval-ever needs the name of who ran the evaluation: --organization NAME")
    if relationship not in RELATIONSHIPS:
        raise ConfigError(f"--relationship {quoted(relationship)}: choose from {', '.join(RELATIONSHIPS)}")
    if not model or not _MODEL.fullmatch(model):
        raise ConfigError("every-eval-ever needs the model's name: --model DEVELOPER/NAME")
    signature, time = run.summary.signature, str(int(_answered_at(run).timestamp()))
    head = {"schema_version": "0.3.0", "evaluation_id": f"{NAME}/{model.replace('/', '_')}/{time}"}
    # The store wants random UUIDs: this one has their form, and is the same whenever the run is exported.
    identity = uuid5(NAMESPACE_URL, f"{signature}\n{model}\n{files.sha256_of(run.data.folder.calls_file)}")
    name = f"data/{NAME}/{model}/{UUID(bytes=identity.bytes, version=4)}"
    samples = out / f"{name}_samples.jsonl"
    rows = files.write_jsonl(samples, (head | {"model_id": model} | row for row in _rows(run)))
    found = {"format": "jsonl", "file_path": f"{name}_samples.jsonl", "hash_algorithm": "sha256"}
    who = {"source_organization_name": organization, "evaluator_relationship": relationship}
    library = {"name": NAME, "version": run.summary.package_version}
    aggregate = head | {
        "evaluation_timestamp": time,
        "retrieved_timestamp": time,
        "source_metadata": {"source_name": NAME, "source_type": "evaluation_run", **who},
        "eval_library": library | {"additional_details": without_folders(signature.protocol)},
        "model_info": {
            "name": run.summary.model if signature.human else signature.subject["model"],
            "id": model,
            "developer": model.partition("/")[0],
            "inference_engine": {"name": signature.subject["engine"]},
            "additional_details": {"deployment_type": "unknown", "model_availability": "unknown"},
        },
        "evaluation_results": [_result(run, task, figure) for task, figure in figures.items()],
        "detailed_evaluation_results": found | {"checksum": files.sha256_of(samples), "total_rows": rows},
    }
    files.write_json(out / f"{name}.json", aggregate)
    return [out / f"{name}.json", samples]


def _result(run: Run, task: str, figure: Figure) -> dict[str, Any]:
    split, summary, cell = run.data.split, run.summary, figure.cell
    asked = {"version": split.version, "language": figure.language, "items": summary.signature.protocol["items"]}
    source: dict[str, Any] = {"dataset_name": split.name, "source_type": "other", "additional_details": asked}
    if split.commit:
        asked |= {"source": split.source, "revision": split.commit}
        source |= {"source_type": "hf_dataset", "hf_repo": _hub_name(run), "hf_split": "test"}
    names = {"metric_id": f"{NAME}.s", "metric_name": "S: mean of BLEU-1 to 4, ROUGE-1, ROUGE-L and SS"}
    if figure.measure == "lexical":
        names = {"metric_id": f"{NAME}.lexical_mean", "metric_name": "Mean of BLEU-1 to 4, ROUGE-1 and ROUGE-L"}
    details = {"comparable_with_paper": str(figure.measure == "s" and summary.s_comparable).lower()}
    if summary.judging is not None:  # the fingerprint is that of S and J
        details["without_ratings_of"] = ", ".join(summary.judging.judges)
    bounds = {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0, "lower_is_better": False}
    uncertainty: dict[str, Any] = {"num_samples": cell.n}
    if cell.low is not None and cell.high is not None:
        ends = {"lower": cell.low / 100, "upper": cell.high / 100, "confidence_level": CONFIDENCE, "method": RULE}
        uncertainty["confidence_interval"] = ends
    return {
        "evaluation_result_id": task,
        "evaluation_name": task,
        "source_data": source,
        "metric_config": names | {"metric_unit": "proportion", **bounds, "additional_details": details},
        "score_details": {"score": (cell.value or 0.0) / 100, "uncertainty": uncertainty},
        "generation_config": {"additional_details": without_folders(summary.signature.subject)},
    }


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    for scenario in run.data.split.scenarios:
        if run.data.prompt_of is not None:
            messages = list(run.data.prompt_of(scenario))
        elif SUBTASKS[scenario.subtask].is_chat:  # of imported answers the scenario's own texts
            turns = scenario.turns
            messages = [Message("user" if turn.role == "user" else "assistant", turn.content) for turn in turns]
        else:
            messages = [Message("user", json.dumps(scenario.to_dict()["inputs"], ensure_ascii=False))]
        for score in run.item_scores[scenario.id].samples:
            if isinstance(response := run.answers[scenario.id, score.sample], Response):
                yield _row(scenario, messages, response, score)


def _row(scenario: Scenario, messages: list[Message], response: Response, score: SampleScore) -> dict[str, Any]:
    name, chat = task_id(scenario.subtask, scenario.language), any(one.role == "assistant" for one in messages)
    texts, reply, place = [_text(one.content) for one in messages], _text(response.text), len(messages) if chat else 0
    source = f"messages[{place}].content" if chat else "output.raw"
    attribution = {"turn_idx": place, "source": source, "extracted_value": _text(response.answer)}
    spoken = zip([*(one.role for one in messages), "assistant"], [*texts, reply], strict=True)
    turns = [{"turn_idx": n, "role": role, "content": text} for n, (role, text) in enumerate(spoken)]
    contract = "not checked" if score.violations is None else ", ".join(score.violations) or "kept"
    return {
        "evaluation_name": name,
        "evaluation_result_id": name,
        "sample_id": scenario.id,
        "interaction_type": "multi_turn" if chat else "single_turn",
        "input": {
            "raw": texts[-1],
            "formatted": None if chat else "\n\n".join(texts),
            "reference": [_text(text) for text in scenario.references],
        },
        "output": None if chat else {"raw": [reply]},
        "messages": turns if chat else None,
        "answer_attribution": [attribution | {"extraction_method": "whole_reply", "is_terminal": True}],
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

    figures, split = _figures(run), run.data.split
    if run.summary.signature.human:
        raise ConfigError(f"{run.data.folder.path}: people's replies have no model's page; use another --to")
    if run.data.spec.limit is not None or "#" in split.source:
        raise ConfigError(f"{run.data.folder.path}: results of the benchmark are of all items of split test")
    repo, commit = dataset or (split.commit and _hub_name(run)), revision or split.commit
    if not repo or not commit:
        named = "name the same data set there with --dataset OWNER/NAME and --revision COMMIT"
        raise ConfigError(f"the run's split was not loaded from the Hub: {named}")
    date = _answered_at(run).isoformat().replace("+00:00", "Z")
    entries = [
        EvalResultEntry(
            repo, task, round(one.cell.value or 0.0, 2), commit, date=date, source_url=source_url, notes=_note(run, one)
        )
        for task, one in figures.items()
    ]
    path = out / ".eval_results" / f"{repo.replace('/', '--')}.yaml"
    files.write_text(path, yaml_dump(eval_result_entries_to_yaml(entries), sort_keys=False))
    return path


def _note(run: Run, figure: Figure) -> str:
    summary, cell, caution = run.summary, figure.cell, ""
    if figure.measure == "lexical":
        caution = "mean of six lexical metrics, not S; "
    elif not summary.s_comparable:
        caution = f"S with embedder {summary.signature.protocol['embedder']}, not with BGE-M3; "
    if summary.judging is not None:  # the fingerprint is that of S and J
        caution += f"without the ratings of {', '.join(summary.judging.judges)}; "
    interval = "" if cell.low is None else f", 95 % interval {cell.low:.2f} to {cell.high:.2f}"
    made = f"h2htalk {summary.package_version}; protocol {summary.signature.fingerprint}{summary.answering.label}"
    return f"{caution}{cell.n:,} items{interval}; {made}"


_JUDGED = {"rating", "j", "people", "unjudged"}  # of judges and people, who cannot be asked again
_ANSWER = {"text", "finish_reason", "failure"}  # keys of a line that are no scores
_LARGEST = {HEAD: 1 << 22, SAMPLES: 1 << 28}  # bytes
TOLERANCE = 1e-9
# Embeddings are numbers of single precision: their last digits depend on the machine.
EMBEDDING_TOLERANCE = 1e-5
Rows = Mapping[SampleKey, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Verification:
    """What of a bundle was confirmed on which split, what differs, and what was not computed again: not verified."""

    split: str
    matches: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def compare(self, name: str, pairs: Iterable[tuple[Any, Any]], tolerance: float = TOLERANCE) -> None:
        """Compare our values with the bundle's."""
        apart = [_distance(ours, theirs) for ours, theirs in pairs]
        if (worst := max(apart, default=0.0)) <= tolerance:
            self.matches.append(name if worst <= TOLERANCE else f"{name}, but for the last digits ({worst:.0e})")
        else:
            most = "" if math.isinf(worst) else f", by up to {worst:.3g}"
            self.differs.append(f"{name}: {sum(one > tolerance for one in apart):,} of {len(apart):,} values{most}")


def _distance(ours: Any, theirs: Any) -> float:
    """How far two values are apart; infinitely where they are not equal and one is no number."""
    if ours == theirs:
        return 0.0
    try:
        return distance if math.isfinite(distance := abs(ours - theirs)) else math.inf
    except (TypeError, OverflowError):  # no numbers, or one with hundreds of digits
        return math.inf


def verify_results(bundle: AnyPath, split: str | None = None, references: AnyPath | None = None) -> Verification:
    """Compute the scores of a bundle, a folder or .zip of `export_results`, again from its responses, and compare them.

    Args:
        split: the split that was asked; by default the bundled one with the fingerprint of the bundle's items. What the
            bundle names is loaded from the Hub by that name alone.
        references: the file of the split's private references, if the run was scored with it.

    Examples:
        >>> import h2htalk
        >>> h2htalk.verify_results("bundle").differs
        []

    Raises:
        ConfigError: the split is not known, or none was named and no bundled one has the items.
        DataError: `bundle` is no bundle, a line is broken or there twice, or the split lacks an item.
    """
    path = as_path(bundle, "bundle")
    text = {name: _read(path, name, most) for name, most in _LARGEST.items()}
    head = read_record(BundleHead, text[HEAD], f"{path}: {HEAD}: not a bundle of this version")
    rows = _read_rows(text[SAMPLES], head.samples)
    ids = {item for item, _ in rows}
    if not rows or len(rows) != len(ids) * head.samples:
        raise DataError(f"{path}: {counted(len(rows), 'line')} of {quoted(head.samples)} samples an item")
    name = split or _find_bundled(head, ids)
    whole = load_split(name)
    asked = _part(whole, ids)
    if unknown := sorted(ids - {s.id for s in asked.scenarios}):
        raise DataError(f"{path}: {counted(len(unknown), 'item')} that its split lacks: {quoted(unknown[0])}")
    found = Verification(f"{name} ({whole.name} {whole.version}{whole.commit and f', commit {whole.commit}'})")
    found.compare("the hash of the samples", [(hashlib.sha256(text[SAMPLES].encode()).hexdigest(), head.sha256)])
    if rest := len(whole.scenarios) - len(ids):
        part = f"{len(ids):,} of {len(whole.scenarios):,} items of split {whole.name}"
        found.unchecked.append(f"{counted(rest, 'item')}: the bundle holds {part}")
    same = asked.fingerprint == head.split.get("fingerprint")
    found.compare(f"the items of {whole.name} {whole.version}", [(same, True)])
    private = "references_sha256" in head.protocol
    if references is not None and not private:
        raise ConfigError("the bundle's answers were not scored with private references; leave out --references")
    if private and references is None:
        found.unchecked.append("the scores: name the file of private references with --references")
    elif same:
        asked = asked if references is None else with_references(asked, as_path(references, "references"))
        _compare_scores(found, head, asked, rows)
    known = {*metric_keys(Metrics(), asked), "references_sha256"}
    known |= {"items"} if head.protocol.get("items") == asked.fingerprint else set()
    claims = {**head.subject, **{key: value for key, value in head.protocol.items() if key not in known}}
    said = listed([f"{quoted(key)[1:-1]} {quoted(value)}" for key, value in claims.items()], 30)
    found.unchecked.append(f"that {quoted(head.model)} gave these answers, asked with {said}")
    other = "how each answer ended; the hashes of stored answers"
    found.unchecked.append(f"that h2htalk {quoted(head.package_version)} was used; {other}")
    return found


def _read(path: Path, name: str, most: int) -> str:
    try:
        if path.is_dir():
            return files.read_bounded(path / name, most).decode()
        return next(content for _, content in read_members(path, lambda _: [name], most)).decode()
    except (OSError, ValueError, DataError) as error:
        raise DataError(f"{path}: not a bundle: {name} cannot be read: {error}") from error


def _read_rows(text: str, samples: int) -> dict[SampleKey, dict[str, Any]]:
    """Read the lines by item and sample, each with its `answer`. Raises DataError, also for a second line."""
    rows: dict[SampleKey, dict[str, Any]] = {}
    for number, line in enumerate(io.StringIO(text), 1):
        where = f"{SAMPLES}:{number}"
        record = files.parse_object(line.encode(), where, unique_keys=True)
        answer = read_response({key: record[key] for key in record.keys() & {"id", "sample", *_ANSWER}}, where)
        key = answer.id, answer.sample
        if answer.sample >= samples:
            raise DataError(f"{where}: sample {answer.sample}, but the bundle has {samples:,} an item, from 0 on")
        if key in rows:
            raise DataError(f"{where}: a second line of {quoted(answer.id)}, sample {answer.sample}")
        rows[key] = {name: value for name, value in record.items() if name not in _ANSWER} | {"answer": answer}
    return rows


def _compare_scores(found: Verification, head: BundleHead, asked: Split, rows: Rows) -> None:
    metrics, prompts, prompt_of = _open_metrics(head, found), PromptSet.load(), None
    if prompts.fingerprint == head.protocol.get("prompts"):  # for the contract's leak rule
        prompt_of = prompts.prompt_of(asked, Sap.parse(head.subject.get("sap", "full")))
    else:
        found.unchecked.append("contract violations: the bundle's prompts are not those of this version")
    keys = metric_keys(metrics, asked) | {"embedder": head.protocol.get("embedder", "none")}
    if (judge := head.protocol.get("judge", "none")) != "none":
        keys["judge"] = judge
        found.unchecked.append(f"ratings of {quoted(judge)}, and J: the figures here are those of S")
    if "references_sha256" in head.protocol:
        keys["references_sha256"] = asked.references_sha256[:REFERENCES_LENGTH]
    found.compare("the versions of the metrics", [(value, head.protocol.get(key)) for key, value in keys.items()])
    scores = score_answers(asked, {key: row["answer"] for key, row in rows.items()}, head.samples, metrics, prompt_of)
    ours = {(row.id, row.sample): row.to_dict() for item in scores.values() for row in item.samples}
    embedded = metrics.embedder is not None or keys["embedder"] == "none"
    # The hash is of the whole stored answer, of which a bundle holds the text alone.
    skipped = {"answer"} | (_JUDGED if judge != "none" else set()) | (set() if prompt_of else {"violations"})
    skipped |= set() if embedded else {"ss", "s", "unscored"}
    columns = next(iter(ours.values())).keys()
    found.compare("the columns", [(columns, row.keys()) for row in rows.values()])
    for column in [name for name in columns if name not in skipped]:
        tolerance = EMBEDDING_TOLERANCE if column in ("ss", "s") else TOLERANCE
        found.compare(column, [(row[column], rows[key].get(column)) for key, row in ours.items()], tolerance)
    if not embedded:
        found.unchecked.append("figures and intervals: they hold S")
        return
    figures = {task: astuple(one.cell) for task, one in figures_of(asked.scenarios, scores).items()}
    theirs = {task: astuple(cell) for task, cell in head.figures.items()}
    none, tasks = (None,) * len(fields(Cell)), figures.keys() | theirs.keys()
    pairs = [pair for task in tasks for pair in zip(figures.get(task, none), theirs.get(task, none), strict=True)]
    tolerance = TOLERANCE if metrics.embedder is None else EMBEDDING_TOLERANCE
    found.compare("figures and intervals", pairs, 100 * tolerance)  # on the scale from 0 to 100


def _part(whole: Split, ids: Collection[str]) -> Split:
    return replace(whole, scenarios=tuple(one for one in whole.scenarios if one.id in ids))


def _find_bundled(head: BundleHead, ids: Collection[str]) -> str:
    """Find the bundled split of the items. Nothing else that a bundle names is loaded: a forger can publish items."""
    for name in list_splits():
        split = load_split(name)
        if (split.version, _part(split, ids).fingerprint) == (head.split.get("version"), head.split.get("fingerprint")):
            return name
    source, commit = head.split.get("source") or head.split.get("name", ""), head.split.get("commit", "")
    # The tag may be at another commit now.
    name = re.sub("@[^#]*", lambda _: f"@{commit}", source) if commit else source
    raise ConfigError(f"the bundle's items are those of {quoted(source)}, it says; if you trust them: --split {name}")


def _open_metrics(head: BundleHead, found: Verification) -> Metrics:
    """The metrics that the bundle names; without its embedder where that is not on this machine."""
    text, rouge = head.protocol.get("embedder", "none"), head.protocol.get("rouge", "f1")
    contracts = head.protocol.get("contracts", "")
    name, _, revision = text.partition("(")[0].rpartition("@")
    name = "bge-m3" if name.startswith("bge-m3:") else name
    why = "is neither bge-m3 nor minilm, and is not loaded"  # it may be a folder, which the library may run code of
    if name in ("bge-m3", "minilm"):
        try:
            metrics = open_metrics(name, rouge, contracts)
            if metrics.embedder is not None and metrics.embedder.revision[:REVISION_LENGTH] == revision:
                return metrics
            why = "is of another revision here"
        except ConfigError as error:
            why = f"is not on this machine: {error}"
    if text != "none":
        found.unchecked.append(f"SS and S: embedder {quoted(text)} {why}")
    return open_metrics("none", rouge, contracts)
