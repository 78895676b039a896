"""From a run folder to its numbers and pages: the steps `score` and `report`, each alone on stored answers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.benchmark.baselines import BASELINES
from h2htalk.benchmark.generate import PromptOf
from h2htalk.benchmark.metrics.composite import METRICS_VERSION, ItemScore, item_score
from h2htalk.benchmark.metrics.lexical import ROUGE_KINDS
from h2htalk.benchmark.metrics.scoring import Metrics, read_scores, score_answers, write_scores
from h2htalk.benchmark.prompts.prompt_set import ASSEMBLY_VERSION, PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.report.html_page import ItemView, write_page
from h2htalk.benchmark.report.tables import write_tables
from h2htalk.benchmark.run_costs import read_costs
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summarize import summarize
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.chat.protocol import Message
from h2htalk.data.append_log import writer_lock
from h2htalk.data.files import read_jsonl, write_json, write_jsonl
from h2htalk.data.responses import Response, read_response
from h2htalk.data.run_folder import Answers, RunFolder, fold_answer
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.contracts.contract import CONTRACTS_VERSION
from h2htalk.text.tokens import release_tokenizers, tokenizer_signature

UNKNOWN = "unknown"  # how answers from elsewhere were asked for
REVISION_LENGTH = 23  # "sha256:" and 16 hex digits


@dataclass(frozen=True, slots=True)
class Material:
    """A run folder, read: what was asked and how, and what each item was shown (None for answers from elsewhere)."""

    folder: RunFolder
    spec: EvaluateSpec
    split: Split
    prompt_of: PromptOf | None
    note: str = ""


def read_material(path: Path) -> Material:
    """Read a run folder, and see that it still holds what its signature says.

    Raises:
        DataError: it is no run folder, or its scenarios, templates or specification are not those it was
            made with (edited, or made by another version of the prompts).
    """
    folder = RunFolder(path)
    spec = EvaluateSpec.from_dict(folder.read_run()["spec"], str(path / "run.json"))
    signature, split = folder.signature(), folder.split()
    _require_agreement(folder.inputs, "items", split.fingerprint, signature.protocol)
    _require_agreement(path / "run.json", "samples", str(spec.samples), signature.subject)
    if signature.protocol.get("prompts") == UNKNOWN:
        return Material(folder, spec, split, None)
    prompts, sap = PromptSet.load(folder.prompts), Sap.parse(spec.sap)
    _require_agreement(folder.prompts, "prompts", prompts.fingerprint, signature.protocol)
    _require_agreement(path / "run.json", "sap", str(sap), signature.subject)
    if prompts.assembly != ASSEMBLY_VERSION:
        note = (
            "this version of h2htalk builds prompts in another way: leaks were looked for without the prompts"
        )
        return Material(folder, spec, split, None, note)

    def prompt_of(scenario: Scenario) -> tuple[Message, ...]:
        return prompts.messages(scenario, split.personas[scenario.persona], sap)

    return Material(folder, spec, split, prompt_of)


def _require_agreement(where: Path, key: str, found: str, signed: Mapping[str, str]) -> None:
    if found != signed.get(key):
        raise DataError(
            f"{where}: {key} are not those of the run's signature ({found}, signed {signed.get(key, '-')}): edited, or "
            "another version of h2htalk; put them back, or evaluate into a new folder"
        )


def open_metrics(embedder: str, rouge: str) -> Metrics:
    """How to score, by name.

    Raises:
        ConfigError, MissingExtraError: the embedder is not at hand; the message lists the choices.
    """
    if rouge not in ROUGE_KINDS:
        raise ConfigError(f"--rouge {rouge!r}: choose from {', '.join(ROUGE_KINDS)}")
    if embedder == "none":
        return Metrics(None, rouge)
    from h2htalk.text.embeddings.cache import CachedEmbedder
    from h2htalk.text.embeddings.embedders import open_embedder

    return Metrics(CachedEmbedder(open_embedder(embedder)), rouge)


def metric_keys(metrics: Metrics, split: Split) -> dict[str, str]:
    """The protocol keys that scoring decides."""
    embedder = "none"
    if metrics.embedder is not None:
        embedder = f"{metrics.embedder.name}@{metrics.embedder.revision[:REVISION_LENGTH]}"
        languages = sorted({s.language for s in split.scenarios})
        if not all(metrics.asks_s(language) for language in languages):
            embedder += f"({','.join(filter(metrics.asks_s, languages)) or 'no language here'})"
    return {
        "tokens": tokenizer_signature(),
        "metrics": METRICS_VERSION,
        "contracts": CONTRACTS_VERSION,
        "rouge": metrics.rouge,
        "embedder": embedder,
        "judge": "none",
    }


def score(path: Path, embedder: str | None = None, rouge: str | None = None) -> Summary:
    """Score a run folder's stored answers again; nothing is asked of the model.

    Args:
        path: a run folder.
        embedder, rouge: None takes what the run was made with.
    """
    material = read_material(path)
    metrics = open_metrics(embedder or material.spec.embedder, rouge or material.spec.rouge)
    with writer_lock(material.folder.shard):
        return score_material(material, metrics)


def score_material(material: Material, metrics: Metrics) -> Summary:
    """Score what a run holds, and write scores, summary, tables and page."""
    folder, split, samples = material.folder, material.split, material.spec.samples
    made = folder.signature()
    signature = Signature({**made.protocol, **metric_keys(metrics, split)}, made.subject)
    ids = [s.id for s in split.scenarios]
    answers = folder.answers(ids, samples)
    scores = score_answers(split, answers, samples, metrics, material.prompt_of)
    floors = {n: (floor, score_answers(split, floor, 1, metrics)) for n, floor in read_floors(folder).items()}
    release_tokenizers()  # their memory serves what comes now: pyarrow, the intervals, the page
    summary = summarize(model_label(signature), split, signature, metrics, (answers, scores), floors)
    summary = replace(summary, costs=read_costs(folder.path))
    if material.note:
        summary = replace(summary, warnings=(*summary.warnings, material.note))
    write_scores(folder.scores(signature), scores)
    write_json(folder.summary, summary.to_dict())
    _write_report(material, summary, answers, scores)
    return summary


def report(path: Path) -> Summary:
    """Write a scored run's tables and page again; raises DataError when it was never scored."""
    summary = read_summary(path / "summary.json")
    material = read_material(path)
    ids = [s.id for s in material.split.scenarios]
    scores = read_scores(material.folder.scores(summary.signature), ids)
    answers = material.folder.answers(ids, material.spec.samples)
    answered = {key for key, answer in answers.items() if isinstance(answer, Response)}
    if answered != {(s.id, s.sample) for item in scores.values() for s in item.samples if s.lexical}:
        raise DataError(f"{path}: its answers are not those that were scored; run `h2htalk score {path}`")
    with writer_lock(material.folder.shard):
        _write_report(material, summary, answers, scores)
    return summary


def _write_report(
    material: Material, summary: Summary, answers: Answers, scores: Mapping[str, ItemScore]
) -> None:
    write_tables(summary, material.folder.tables)
    write_page(material.folder.page, summary, _item_views(material, answers, scores))


def _item_views(material: Material, answers: Answers, scores: Mapping[str, ItemScore]) -> Iterator[ItemView]:
    for scenario in material.split.scenarios:
        keys = [(scenario.id, sample) for sample in range(material.spec.samples)]
        yield ItemView(
            scenario=scenario,
            messages=material.prompt_of(scenario) if material.prompt_of else (),
            responses=tuple(answers[key] for key in keys if key in answers),
            score=scores.get(scenario.id) or item_score(scenario.id, ()),
        )


def model_label(signature: Signature) -> str:
    """What a table calls a model: `backend:model`, with the SAP variant when it is not the full one."""
    label = f"{signature.subject['backend']}:{signature.subject['model']}"
    sap = signature.subject.get("sap", "full")
    return label if sap in ("full", "unknown") else f"{label} (SAP {sap})"


def write_floors(folder: RunFolder, split: Split, whole: Split | None) -> None:
    """Store the baselines' answers, so that a later scoring finds the same floors.

    `whole` is the split before selection: random references are drawn from it. None takes floors away.
    """
    if whole is None:
        shutil.rmtree(folder.floors, ignore_errors=True)
        return
    for name, baseline in BASELINES.items():
        answers = baseline(split.scenarios, whole.scenarios)
        write_jsonl(folder.floors / f"{name}.jsonl", (answer.to_dict() for answer in answers))


def read_floors(folder: RunFolder) -> dict[str, Answers]:
    """The stored answers of each baseline, by name; empty when floors were not asked for."""
    floors: dict[str, Answers] = {}
    for name in BASELINES:
        path = folder.floors / f"{name}.jsonl"
        if path.exists():
            floors[name] = {}
            for where, record in read_jsonl(path):
                fold_answer(floors[name], read_response(record, where))
    return floors
