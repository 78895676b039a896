"""Score the responses of a run, once generated or imported; report it; erase items from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.answering import answer_warnings, describe_answering, read_sessions
from h2htalk.benchmark.judge.judgements import Judging, read_judging, with_judgements
from h2htalk.benchmark.metrics import composite
from h2htalk.benchmark.metrics.composite import METRICS, ItemScore, Metrics, Scores, score_answers, write_scores
from h2htalk.benchmark.metrics.lexical import ROUGE_KINDS
from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.benchmark.report.notes import write_facts
from h2htalk.benchmark.report.table2 import TABLES, write_tables
from h2htalk.benchmark.run import UNKNOWN, RunData, RunWriter, load_run, read_run_data
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.statistics import RULE, clusters_of
from h2htalk.benchmark.summary import (
    NEEDS_REFERENCES,
    Scored,
    Summary,
    count_outcomes,
    find_baseline,
    null_shares,
    read_baselines,
    summarize,
    write_baselines,
)
from h2htalk.chat.store.call_store import read_costs
from h2htalk.data.erasure.folder_kinds import ERASED, ErasableFolder, Record
from h2htalk.data.files import WAIT, read_json_object, read_jsonl, remove_file, write_jsonl, writer_lock
from h2htalk.data.imports.response_files import read_foreign_responses
from h2htalk.data.responses import Answers, FailedResponse, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import HUMAN, Signature
from h2htalk.data.splits import Split, fingerprint_of, load_split, with_references
from h2htalk.errors import ConfigError, DataError, H2HTalkError, MissingExtraError
from h2htalk.text.contracts.contract import CONTRACTS_VERSION
from h2htalk.text.embeddings.cache import CachedEmbedder
from h2htalk.text.embeddings.embedders import open_embedder, packages_of
from h2htalk.text.tokens import release_tokenizers, tokenizer_signature
from h2htalk.version import __version__, installed_versions

REFERENCES_LENGTH = 16  # hex digits of the hash of private references in a signature
REVISION_LENGTH = 23  # "sha256:" and 16 hex digits
Replies = Iterable[Response | FailedResponse]


def open_metrics(embedder: str, rouge: str, contracts: str = "package") -> Metrics:
    """Open the metrics by the names of embedder, ROUGE kind and contracts."""
    if rouge not in ROUGE_KINDS:
        raise ConfigError(f"--rouge {rouge!r}: choose from {', '.join(ROUGE_KINDS)}")
    opened = None if embedder == "none" else CachedEmbedder(open_embedder(embedder))
    return Metrics(opened, rouge, contracts != "none", composite.installed_metrics())


def metric_keys(metrics: Metrics, split: Split) -> dict[str, str]:
    """Return the protocol keys that depend on scoring alone; `references` where an item has more or fewer than one."""
    embedder = "none"
    if metrics.embedder is not None:
        embedder = f"{metrics.embedder.name}@{metrics.embedder.revision[:REVISION_LENGTH]}"
        languages = sorted({s.language for s in split.scenarios})
        if not all(metrics.asks_s(language) for language in languages):
            embedder += f"({','.join(filter(metrics.asks_s, languages)) or 'no language here'})"
    numbers = [len(scenario.references) for scenario in split.scenarios]
    least, most = min(numbers), max(numbers)
    references = "private" if not least else str(most) if least == most else f"{least}-{most}"
    return {
        "tokens": tokenizer_signature(),
        "metrics": ",".join(f"{metric.name}-{metric.version}" for metric in (*METRICS.values(), *metrics.installed)),
        "contracts": CONTRACTS_VERSION if metrics.contracts else "none",
        "rouge": metrics.rouge,
        "intervals": RULE,
        "embedder": embedder,
        "judge": "none",
        **({"references": references} if references != "1" else {}),
    }


def score(path: Path, embedder: str | None = None, rouge: str | None = None, references: Path | None = None) -> Summary:
    """Score the stored answers of a run again, without the model; `embedder`, `rouge`: None uses those of the run.

    `references`: the file of the split's private references; the run keeps its hash, not the texts.
    """
    data = read_run_data(path)
    spec, split, erased = data.spec, data.split, ""
    if references is not None:
        with suppress(H2HTalkError):  # erasing items from the split leaves another file, whose hash the split names
            erased = load_split(spec.split).references_sha256 if data.folder.erased() else ""
        split = with_references(split, references, erased)
    metrics = open_metrics(embedder or spec.embedder, rouge or spec.rouge, spec.contracts)
    with writer_lock(data.folder.calls_file, WAIT):
        return score_run_data(data, metrics, split)


def stored_summary(folder: RunFolder, baselines: bool) -> Summary | None:
    """Return the summary of a complete run that was scored after its last answer, None where it must be scored."""
    try:
        run = load_run(folder.path)
        scored_last = folder.summary.stat().st_mtime_ns >= folder.calls_file.stat().st_mtime_ns
    except (DataError, OSError):  # scoring writes again what is damaged or missing, or says what cannot be read
        return None
    summary, written = run.summary, (folder.page, *(folder.tables / name for name in (*TABLES, "run.csv")))
    current = (
        scored_last
        and not summary.incomplete
        and summary.package_version == __version__
        and _without_references(summary.signature) == _without_references(folder.signature())
        and bool(summary.baselines) == baselines
        and summary.costs == read_costs(folder.path)
        and all(path.is_file() for path in written)
    )
    return summary if current else None


def _without_references(signature: Signature) -> Signature:
    """The signature without what private references and judges change: a run that has them stays scored."""
    keys = ("references", "references_sha256", "judge")
    return replace(signature, protocol={k: v for k, v in signature.protocol.items() if k not in keys})


def score_run_data(data: RunData, metrics: Metrics, split: Split | None = None, note: str = "") -> Summary:
    """Score the answers of a run, and write scores, summary, tables and page.

    `split` is the run's split with its private references, which are used and not written; `note` is one more warning.
    """
    folder, split, samples = data.folder, split or data.split, data.spec.samples
    signed, keys, erased = folder.signature(), metric_keys(metrics, split), folder.erased()
    if split != data.split:
        keys["references_sha256"] = split.references_sha256[:REFERENCES_LENGTH]
    elif erased:  # the numbers of references of all items that were asked
        keys |= {"references": signed.protocol.get("references", "1")}
        keys = {key: value for key, value in keys.items() if (key, value) != ("references", "1")}
    signature = Signature({**_without_references(signed).protocol, **keys}, signed.subject)
    answers = folder.answers([s.id for s in split.scenarios], samples)
    scores = score_answers(split, answers, samples, metrics, data.prompt_of)
    own, baselines = Scored(scores, null_shares(split.scenarios, answers, scores)), dict[str, Scored]()
    clusters = clusters_of([s for s in split.scenarios if metrics.asks_s(s.language)] or split.scenarios)
    for name, replies in read_baselines(folder).items():
        same = score_answers(split, replies, 1, metrics)
        # Both are compared on the items that the model has a score for.
        same |= {one.id: ItemScore(one.id, unscored=one.unscored) for one in scores.values() if one.unscored}
        baselines[name] = Scored(same, null_shares(split.scenarios, replies, same))
    release_tokenizers()  # their memory serves what comes now: pyarrow, the intervals, the page
    counts, judging = count_outcomes(split.scenarios, answers, scores, len(erased)), read_judging(folder)
    packages = ("numpy", "jieba", "sacrebleu", "rapidfuzz", *packages_of(signature.protocol["embedder"]))
    costs = read_costs(folder.path)
    answering = describe_answering(read_sessions(folder), answers, costs, installed_versions(*packages))
    more = (*answer_warnings(answers, counts.truncated, answering), *([note] if note else []))
    folder.write_facts("answering", asdict(answering))
    subject, sap = signature.subject, signature.subject.get("sap", "full")
    label = f"Human replies ({subject['model']})" if signature.human else f"{subject['engine']}:{subject['model']}"
    label += f" (SAP {sap})" * (sap not in ("full", "unknown")) + answering.label
    summary = summarize(label, split, signature, metrics.embedder, own, baselines, counts, clusters)
    summary = replace(summary, costs=costs, answering=answering, warnings=(*summary.warnings, *more))
    return _write(data, judging, summary, answers, scores)


def report(path: Path) -> Summary:
    """Write the tables and the page of a scored run again. Raises DataError when it was never scored."""
    run = load_run(path)
    with writer_lock(run.data.folder.calls_file, WAIT):
        write_report(run.data, run.summary, run.answers, run.item_scores)
    return run.summary


def write_report(data: RunData, summary: Summary, answers: Answers, scores: Scores) -> None:
    """Write the tables and the page of a run."""
    write_tables(summary, data.split, scores, data.folder.tables)
    write_facts(summary, data.folder.tables)
    found = {s.id: [answers.get((s.id, k)) for k in range(data.spec.samples)] for s in data.split.scenarios}
    views = (
        ItemView(s, data.prompt_of(s) if data.prompt_of else (), tuple(filter(None, found[s.id])), scores[s.id])
        for s in data.split.scenarios
    )
    write_page(data.folder.page, summary, views)


def judge_again(path: Path, locked: bool = False) -> Summary:
    """Put the judgements and people's ratings of a scored run into its scores, tables and page."""
    with nullcontext() if locked else writer_lock(RunFolder(path).calls_file, WAIT):
        run = load_run(path)
        unjudged = replace(run.summary.without_judgements(), costs=read_costs(path))
        return _write(run.data, read_judging(run.data.folder), unjudged, run.answers, run.item_scores)


def _write(data: RunData, judging: Judging | None, summary: Summary, answers: Answers, scores: Scores) -> Summary:
    """Add the judgements, if any, to the summary of S, and write scores, tables, page and summary."""
    if judging is not None:
        summary, scores = with_judgements(data, judging, summary, answers, scores)
    write_report(data, summary, answers, scores)
    # Scores and summary together: one without the other is refused. Last: a restart scores again unless the summary is
    # the newest.
    write_scores(data.folder.scores(summary.signature), scores)
    data.folder.write_summary(summary.to_dict(), data.folder.scores(summary.signature))
    return summary


def import_responses(
    path: Path, name: str, split_name: str, out: Path, embedder: str = "bge-m3", human: bool = False
) -> Summary:
    """Score a JSONL file of `id`, `response` against a split; ids that the file lacks stay unscored.

    The prompts are not known: the signature holds `prompts:unknown`, and the run compares only with imported ones.
    `name` is what the table calls the model, or the people (`human`: every table says so); `out` is a new run folder;
    `embedder` is as in `EvaluateSpec`.
    """
    if not name.strip():
        raise ConfigError("--name is empty; say what the table is to call the model")
    if (out / "run.json").exists():
        raise DataError(f"{out}: holds a run already; name a new folder with --out")
    if path.exists() and not path.is_file():  # it is read twice, a pipe is not
        raise DataError(f"{path}: is not a file; save the responses into one")
    split = load_split(split_name)
    responses = read_foreign_responses(path, {s.id for s in split.scenarios})
    metrics = open_metrics(embedder, "f1")
    samples = 1 + max(response.sample for response in responses)
    asked: Any = {"samples": samples, "temperature": 1.0 if samples > 1 else 0.0, "embedder": embedder}
    spec = EvaluateSpec(model=f"imported:{name}", split=split_name, out=str(out), **asked)
    digest, engine = hashlib.sha256(path.read_bytes()).hexdigest()[:16], HUMAN if human else "imported"
    subject = {"engine": engine, "model": name, "file": digest, "samples": str(samples), "sap": "unknown"}
    # Of people's replies the text alone: they have no model, no tokens and no request.
    replies = (Response(r.id, r.sample, r.text) if human and isinstance(r, Response) else r for r in responses)
    return store_answers(spec, split, subject, replies, metrics)


def store_answers(
    spec: EvaluateSpec, split: Split, subject: Mapping[str, str], answers: Replies, metrics: Metrics
) -> Summary:
    """Write answers whose prompts are not known as a new run, and score it."""
    protocol = {"items": split.fingerprint, "prompts": UNKNOWN, **metric_keys(metrics, split)}
    writer = RunWriter(RunFolder(spec.out_path), spec.to_dict(), Signature(protocol, subject), split, {})
    try:
        for answer in answers:
            writer.calls.append(answer.to_dict())
        write_baselines(writer.folder, split, split)
        return score_run_data(read_run_data(spec.out_path), metrics)
    finally:
        writer.close()


class ErasableRun(ErasableFolder):
    """A run: prompt, answer and score of an item go."""

    folder_type: type[RunFolder] = RunFolder

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.folder = self.folder_type(path)
        self.folder.read_run()

    def locked(self) -> AbstractContextManager[None]:
        return writer_lock(self.folder.calls_file, "wait for it, then start the same erasure again")

    def items(self) -> Iterator[tuple[str, Record]]:
        return ((one.id, one.to_dict()) for one in self.folder.split().items)

    def record(self, gone: frozenset[str]) -> None:
        """Note the erased ids. Raises DataError where no item is left, or the items are not those signed."""
        split, ids = self.folder.split(), self.erased() | gone
        signed = self.folder.signature().protocol.get("items", "")
        if self.folder.signed_items(split.fingerprint, signed) != signed:
            raise DataError(f"{self.folder.inputs}: not those of the {self.folder.kind}'s signature; put them back")
        if not (items := [one for one in split.items if one.id not in ids]):
            raise DataError(f"{self.path}: every item of this {self.folder.kind} is erased; delete the folder")
        rest = fingerprint_of(items, split.personas)  # by which the run is still recognised
        left = [one for one in split.scenarios if one.id not in ids]
        engine, _, name = str(self.folder.read_run()["spec"].get("model")).partition(":")
        if engine == "baseline" and name in NEEDS_REFERENCES:  # its answers may be references of these items
            quoted = {text for one in split.scenarios if one.id in gone for text in one.references}
            drawn = {one.id: one.to_dict() for one in find_baseline(name)(left, left)}
            lines = [line for _, line in read_jsonl(self.folder.calls_file, torn_tail=True)]
            lines = [drawn.get(one["id"], one) if one.get("text") in quoted else one for one in lines]
            write_jsonl(self.folder.calls_file, lines)
        write_jsonl(self.path / ERASED, ({"id": one, "items": rest} for one in sorted(ids)))

    def remake(self) -> Iterator[str]:
        """Score again; where that fails, say which command does it."""
        scored = self.folder.summary.exists()
        try:
            self.score()
        except (ConfigError, DataError, MissingExtraError) as error:
            remove_file(self.folder.summary)
            if scored:
                yield f"its figures were removed ({error}); {self.folder.score_again} ({self.path})"

    def score(self) -> None:
        """Draw the baselines again, whose answers may be references of erased items; then score."""
        folder, split = self.folder, self.folder.split()
        if folder.baselines.is_dir():
            write_baselines(folder, split, split)
        # Its hashes are those of the scores before the erasure.
        raw = read_json_object(folder.summary, missing_ok=True)
        keys = Signature.from_dict(raw.get("signature"), str(folder.summary)).protocol
        if "references_sha256" in keys:
            raise ConfigError("it was scored with private references: add --references FILE")
        score_run_data(read_run_data(self.path), open_metrics(keys["embedder"].partition("@")[0], keys["rouge"]))
