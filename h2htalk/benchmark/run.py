"""A run: open and check its folder, load its scores and items, write its tables and page.

`read_run_data` checks a folder against its signature; `load_run` reads a scored run, as report, compare, judge,
calibrate, adjudicate, gate and exports do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import ItemScore, answer_hash, item_score, read_scores
from h2htalk.benchmark.prompts.prompt_set import ASSEMBLY_VERSION, PromptOf, PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.chat.protocol import Message
from h2htalk.data.files import WAIT, writer_lock
from h2htalk.data.records import as_path
from h2htalk.data.responses import Answers, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, counted, quoted

UNKNOWN = "unknown"  # the prompts of imported answers
REVISION_LENGTH = 23  # "sha256:" and 16 hex digits


@dataclass(frozen=True, slots=True)
class RunData:
    """The content of a run folder: the split, the specification, and each item's prompt (None for imported answers)."""

    folder: RunFolder
    spec: EvaluateSpec
    split: Split
    prompt_of: PromptOf | None
    note: str = ""


def read_run_data(path: Path) -> RunData:
    """Read a run folder, and check it against its signature."""
    folder = RunFolder(path)
    spec = EvaluateSpec.from_dict(folder.read_run()["spec"], str(path / "run.json"))
    signature, split = folder.signature(), folder.split()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    require_agreement(folder.inputs, "items", items, signature.protocol)
    require_agreement(path / "run.json", "samples", str(spec.samples), signature.subject)
    if signature.protocol.get("prompts") == UNKNOWN:
        return RunData(folder, spec, split, None)
    sap = Sap.parse(spec.sap)
    prompts = PromptSet.load_for(folder.prompts, split, sap)
    require_agreement(folder.prompts, "prompts", prompts.fingerprint, signature.protocol)
    require_agreement(path / "run.json", "sap", str(sap), signature.subject)
    if prompts.assembly != ASSEMBLY_VERSION:
        note = "this version of h2htalk builds prompts in another way: prompt leaks were searched for by phrases only"
        return RunData(folder, spec, split, None, note)

    def prompt_of(scenario: Scenario) -> tuple[Message, ...]:
        return prompts.messages(scenario, split.personas[scenario.persona], sap)

    return RunData(folder, spec, split, prompt_of)


def require_agreement(where: Path, key: str, found: str, signed: Mapping[str, str]) -> None:
    """Raise DataError unless a key of a signature is what the folder holds."""
    if found != signed.get(key):
        raise DataError(
            f"{where}: {key} are not those of the run's signature ({found}, signed {signed.get(key, '-')}): edited, or "
            "another version of h2htalk; put them back, or evaluate into a new folder"
        )


@dataclass(frozen=True, slots=True)
class Run:
    """A scored run: `data` is what was asked and how, `answers` and `item_scores` are keyed by scenario."""

    data: RunData
    summary: Summary
    answers: Answers
    item_scores: Mapping[str, ItemScore]

    def scores(self) -> Any:
        """Return the scores as a `pyarrow.Table`, one row a sample.

        Columns: `id`, `sample`, each metric (`bleu_1`, ..., `rouge_l`, `ss`), `lexical` (the mean of the lexical
        metrics), `s`, `violations` and `unscored` (the reason, or null).
        """
        import pyarrow.parquet as pq

        return pq.read_table(self.data.folder.scores(self.summary.signature))

    def items(self) -> Any:
        """Return the items as a `pyarrow.Table`, one row a scenario, with its answers and the means of its samples."""
        import pyarrow as pa

        rows, samples = [(s, self.item_scores[s.id]) for s in self.data.split.scenarios], range(self.data.spec.samples)
        found = [[self.answers.get((s.id, k)) for k in samples] for s, _ in rows]
        answers = [[one.answer if isinstance(one, Response) else None for one in own] for own in found]
        tags = ("emotion", "complexity", "interaction", "risk")
        means = ("lexical", "ss", "s", "compliance")
        return pa.table(
            {
                **{name: [getattr(s, name) for s, _ in rows] for name in ("id", "subtask", "language")},
                **{name: [getattr(s.tags, name) for s, _ in rows] for name in tags},
                "reference": [s.reference for s, _ in rows],
                "references": pa.array([list(s.references) for s, _ in rows], pa.list_(pa.string())),
                "answers": pa.array(answers, pa.list_(pa.string())),
                **{name: pa.array([getattr(i, name) for _, i in rows], pa.float64()) for name in means},
                "unscored": pa.array([i.unscored for _, i in rows], pa.string()),
            }
        )


def load_run(path: str | os.PathLike[str]) -> Run:
    """Load a scored run.

    Examples:
        >>> import h2htalk
        >>> run = h2htalk.load_run("runs/constant")
        >>> run.summary.counts.scored
        22
        >>> run.scores().select(["id", "bleu_1", "rouge_l"]).num_rows
        22
        >>> run.items().column("language").unique().to_pylist()
        ['en', 'zh']

    Raises:
        ConfigError: `path` is no path.
        DataError: the folder holds no run, the run was never scored, or its answers, its scores or its summary
            changed since.
    """
    folder = as_path(path, "path")
    summary = read_summary(folder / "summary.json")
    data = read_run_data(folder)
    ids = [s.id for s in data.split.scenarios]
    scores = read_scores(data.folder.scores(summary.signature), ids)
    answers = data.folder.answers(ids, data.spec.samples)
    if data.folder.signature().subject != summary.signature.subject:
        raise DataError(f"{folder / 'run.json'}: its signature is not that of the scores; restore it")
    require_scored(folder, answers, scores)
    return Run(data, summary, answers, scores)


def require_unedited(folder: RunFolder) -> None:
    """Raise DataError where an answer was changed since it was scored; without valid scores none is known to be."""
    try:
        scores = read_scores(folder.scores(read_summary(folder.summary).signature))
    except DataError:
        return
    require_scored(folder.path, folder.answers(), scores, resumed=True)


def require_scored(folder: Path, answers: Answers, scores: Mapping[str, ItemScore], resumed: bool = False) -> None:
    """Raise DataError unless the answers are those that were scored; `resumed`: others may have come since."""
    found = {key: answer_hash(answer) for key, answer in answers.items() if isinstance(answer, Response)}
    scored = {(s.id, s.sample): s.answer for item in scores.values() for s in item.samples if s.answer is not None}
    different = {key for key in scored if found.get(key) != scored[key]}
    different |= set() if resumed else found.keys() - scored.keys()
    if ids := {item_id for item_id, _ in different}:
        raise DataError(
            f"{folder}: {counted(len(ids), 'item')} with answers that are not those that were scored "
            f"({quoted(min(ids))}); restore calls.jsonl, or score the answers that are there with "
            f"`h2htalk score {folder}`"
        )


def report(path: Path) -> Summary:
    """Write the tables and the page of a scored run again. Raises DataError when it was never scored."""
    run = load_run(path)
    with writer_lock(run.data.folder.shard, WAIT):
        write_report(run.data, run.summary, run.answers, run.item_scores)
    return run.summary


def write_report(data: RunData, summary: Summary, answers: Answers, scores: Mapping[str, ItemScore]) -> None:
    from h2htalk.benchmark.report.html_page import ItemView, write_page
    from h2htalk.benchmark.report.run_tables import write_facts, write_tables

    write_tables(summary, data.split, scores, data.folder.tables)
    write_facts(summary, data.folder.tables)
    samples = range(data.spec.samples)
    views = (
        ItemView(
            scenario=scenario,
            messages=data.prompt_of(scenario) if data.prompt_of else (),
            responses=tuple(one for k in samples if (one := answers.get((scenario.id, k))) is not None),
            score=scores.get(scenario.id) or item_score(scenario.id, ()),
        )
        for scenario in data.split.scenarios
    )
    write_page(data.folder.page, summary, views)
