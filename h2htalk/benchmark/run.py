"""A run: write its folder, open and check it, load its scores and items.

`RunWriter` makes or continues a folder, `read_run_data` checks one against its signature, and `load_run` reads a scored
run, as report, compare, judge, calibrate, adjudicate, gate and exports do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import (
    METRIC_COLUMNS,
    Scores,
    all_columns,
    answer_hash,
    read_scores,
)
from h2htalk.benchmark.prompts.prompt_set import PromptOf, PromptSet, StoredPrompts
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.erasure.folder_kinds import FOLDER_KINDS
from h2htalk.data.files import remove_file, remove_half_written, write_json, write_text
from h2htalk.data.links import link_folder, link_items
from h2htalk.data.responses import (
    CALLS,
    Answers,
    FailedResponse,
    Response,
    counted_answers,
    fold_answer,
)
from h2htalk.data.run_folder import SOURCE, RunFolder, require_asked
from h2htalk.data.scenario import TAGS, Scenario
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.signature import Signature
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, counted, quoted
from h2htalk.version import __version__

UNKNOWN = "unknown"  # the prompts of imported answers
TEMPLATE = "template"  # in place of a role: the text of a template that was not rendered


class RunWriter:
    """The one writer of a run folder: creates or resumes it, and stores answers as they come.

    `answers` holds what the folder held when it was opened, `calls` is its open call store.
    """

    def __init__(
        self,
        folder: RunFolder,
        spec: Mapping[str, Any],
        signature: Signature,
        split: Split,
        prompts: Mapping[str, str],
        calls: CallStore | None = None,
        facts: Mapping[str, Any] = {},
    ) -> None:
        """Open for writing; a new folder gets its inputs and run.json, with `facts`, before this returns.

        `calls` is the folder's call store, which this opens; None makes it. Raises ConfigError where the folder holds a
        run of another signature, and DataError where it cannot be used. Then everything created here is removed.
        """
        self.folder = folder
        self.answers = Answers()
        ids = frozenset(scenario.id for scenario in split.scenarios)
        samples = int(spec.get("samples", 1))

        def remember(response: Response | FailedResponse, where: str) -> None:
            if not split.cases:  # a study asks more about a case than its turns
                require_asked(response, ids, samples, where)
            fold_answer(self.answers, response)

        folder.require_usable(signature)
        self._new = False
        self._made = not os.path.lexists(folder.path)
        self.calls = calls or CallStore(folder.calls_file)
        self.calls.on_outcome = remember
        try:
            self.calls.open()
            self._new = not folder.manifest.exists()
            if not self._new:  # another process may have begun the run before this had the lock
                folder.require_usable(signature)
            remove_half_written(folder.path, FOLDER_KINDS[folder.kind].written)
            # Before the run holds a copy of the items: an erasure finds it even if it is interrupted now.
            source = link_folder(str(spec.get("ask", spec).get("split", "")))
            if source is not None:
                items = ((item.id, item.to_dict()) for item in split.items)
                link_items(source, folder.kind, folder.place, items if self._new else ())
            if self._new:
                # A killed start may have left half of them; without run.json they are not used.
                shutil.rmtree(folder.inputs, ignore_errors=True)
                export_split(split, folder.inputs / "split")
                for name, text in prompts.items():
                    write_text(folder.prompts / name, text)
                run = {
                    "spec": dict(spec),
                    "signature": signature.to_dict(),
                    "package_version": __version__,
                    **facts,
                }
                if split.source:
                    run["split"] = {key: getattr(split, key) for key in SOURCE}
                write_json(folder.manifest, run)
        except BaseException:  # passed on; a start that failed leaves no folder
            self.discard()
            raise

    def close(self) -> None:
        self.calls.close()

    def discard(self) -> None:
        """Close, and remove what this writer created if nothing is lost with it."""
        self.close()
        if self._new and self.calls.is_disposable():
            judgements = self.folder.path / "judgements"  # a study's key
            for written in (self.folder.baselines, judgements):
                shutil.rmtree(written, ignore_errors=True)
            # A kill at any step leaves a run, or a start that was killed (`data.erasure.begun`).
            with suppress(OSError):
                os.truncate(self.folder.calls_file, 0)
            remove_file(self.folder.manifest)
            shutil.rmtree(self.folder.inputs, ignore_errors=True)
            for name in (CALLS, "calls.lock"):
                remove_file(self.folder.path / name)
        if self._made:
            remove_file(self.folder.path)  # where it is empty now


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The content of a run folder: the split, the specification, and each item's prompt.

    `prompt_of` is None for imported answers, and where `unrendered` has the templates of the run: they are not those of
    this version, and whoever gave the folder away may have written them.
    """

    folder: RunFolder
    spec: EvaluateSpec
    split: Split
    prompt_of: PromptOf | None
    unrendered: StoredPrompts | None = None

    def require_rendered(self, what: str) -> None:
        """Raise ConfigError where the templates of the run are not rendered, and `what` needs its messages."""
        if self.unrendered is not None:
            raise ConfigError(
                f"{self.folder.path}: {what} holds the messages that were sent, and the templates of this run are not "
                f"those of this version; --prompts {self.folder.prompts} renders them"
            )

    def shown_prompt(self, scenario: Scenario) -> tuple[tuple[str, str], ...]:
        """Role and text of what an item was asked with: its messages, or the texts of templates that are not rendered
        (`TEMPLATE`, one each) and the item's inputs by name; nothing for imported answers."""
        if self.prompt_of is not None:
            return tuple((message.role, message.content) for message in self.prompt_of(scenario))
        if self.unrendered is None:
            return ()
        from h2htalk.rounds.item_sources import input_text  # what compares runs needs no rounds

        inputs = ((name, input_text(value)) for name, value in scenario.inputs.items())
        templates = ((TEMPLATE, text) for text in self.unrendered.texts_for(scenario))
        return *templates, *inputs


def read_run_data(
    path: Path, kind: type[RunFolder] = RunFolder, prompts: Path | None = None
) -> RunInputs:
    """Read a run folder, and check it against its signature.

    Its templates are rendered where they are those of this version, or those of `prompts`, the folder that a command
    was given; others are texts (`RunInputs.unrendered`). Raises ConfigError where `prompts` are not those of the run.
    """
    folder = kind(path)
    spec = EvaluateSpec.from_dict(folder.read_run()["spec"], str(folder.manifest))
    signature = folder.signature()
    split = folder.split()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    require_agreement(folder.inputs, "items", items, signature.protocol)
    require_agreement(folder.manifest, "samples", str(spec.samples), signature.subject)
    if signature.protocol.get("prompts") == UNKNOWN:
        if prompts is not None:
            raise ConfigError(
                f"--prompts {prompts}: {path} holds imported answers, whose prompts nobody knows"
            )
        return RunInputs(folder, spec, split, None)
    stored = StoredPrompts.read(folder.prompts)
    sap = Sap.parse(spec.sap)
    require_agreement(folder.prompts, "prompts", stored.fingerprint, signature.protocol)
    require_agreement(folder.manifest, "sap", str(sap), signature.subject)
    if prompts is not None:
        named = PromptSet.load(prompts)
        if named.fingerprint != stored.fingerprint:
            raise ConfigError(
                f"--prompts {prompts}: not the prompts that {path} was asked with; its own are in {folder.prompts}"
            )
        return RunInputs(folder, spec, split, named.prompt_of(split, sap))
    if stored.is_bundled:
        return RunInputs(folder, spec, split, stored.bundled().prompt_of(split, sap))
    return RunInputs(folder, spec, split, None, stored)


def require_agreement(where: Path, key: str, value: str, signed: Mapping[str, str]) -> None:
    """Raise DataError unless a key of a signature is what the folder holds."""
    if value != signed.get(key):
        raise DataError(
            f"{where}: {key} are not those of the run's signature ({value}, signed {signed.get(key, '-')}): edited, or "
            "another version of h2htalk; put them back, or evaluate into a new folder"
        )


_MEANS = ("lexical", "ss", "s", "compliance")
# Of a response, in the order of `Run.responses`.
_TEXT_COLUMNS = ("answer", "text", "thinking", "finish_reason", "filtered_by", "model")


@dataclass(frozen=True, slots=True)
class Run:
    """A scored run: `data` is what was asked and how, `answers` and `item_scores` are keyed by scenario."""

    data: RunInputs
    summary: Summary
    answers: Answers
    item_scores: Scores

    @property
    def counted(self) -> Answers:
        """The answers that count: those that a provider's filter declined may be left out."""
        return counted_answers(self.answers, self.summary.signature.filter_rule)

    def scores(self) -> Any:
        """Return the scores as a `pyarrow.Table`, one row a sample: `id`, `sample`, each metric (`bleu_1`, ...,
        `rouge_l`, `ss`), `lexical` (the mean of the lexical metrics), `s`, `violations`, `unscored` (why, or null)."""
        import pyarrow.parquet as pq

        return pq.read_table(self.data.folder.scores(self.summary.signature))

    def responses(self) -> Any:
        """Return what was answered as a `pyarrow.Table`, one row a sample: its `text`, the `answer` in it that is
        scored, how it came, and of a call that failed `failure` and `message`."""
        import pyarrow as pa

        kinds = {
            "id": pa.string(),
            "sample": pa.int32(),
            **dict.fromkeys(_TEXT_COLUMNS, pa.string()),
            "input_tokens": pa.int64(),
            "output_tokens": pa.int64(),
            "seconds": pa.float64(),
            "failure": pa.string(),
            "message": pa.string(),
        }
        rows = []
        for answer in self.answers.values():
            row = {"answer": getattr(answer, "answer", None), **answer.to_dict()}
            failure = row.pop("failure", {})
            rows.append(row | row.get("usage", {}) | {"failure": failure.get("reason"), **failure})
        return pa.Table.from_pylist(rows, pa.schema(kinds))

    def items(self) -> Any:
        """Return the items as a `pyarrow.Table`, one row a scenario: its answers, and the means of its samples."""
        import pyarrow as pa

        text = pa.string()
        texts = pa.list_(text)
        metrics = all_columns(score.metrics for score in self.item_scores.values())
        own_metrics = metrics[len(METRIC_COLUMNS) :]
        facts = ("id", "subtask", "language")
        kinds = {
            **dict.fromkeys((*facts, *TAGS, "reference"), text),
            "references": texts,
            "answers": texts,
            **dict.fromkeys((*_MEANS, *own_metrics), pa.float64()),
            "unscored": text,
        }
        rows = []
        for scenario in self.data.split.scenarios:
            score = self.item_scores[scenario.id]
            answers = [
                self.answers.get((scenario.id, sample)) for sample in range(self.data.spec.samples)
            ]
            row = {name: getattr(scenario, name) for name in (*facts, "reference", "references")}
            row |= {tag: getattr(scenario.tags, tag) for tag in TAGS}
            row |= {mean: getattr(score, mean) for mean in _MEANS}
            row |= {metric: score.metrics.get(metric) for metric in own_metrics}
            row["answers"] = [getattr(answer, "answer", None) for answer in answers]
            row["unscored"] = score.unscored
            rows.append(row)
        return pa.Table.from_pylist(rows, pa.schema(kinds))


def load_run(path: AnyPath, prompts: AnyPath | None = None) -> Run:
    """Load a scored run.

    `prompts`: a folder of templates to render, where those of the run are not those of this version: the one that it
    was evaluated with, or its own `inputs/prompts`. Without it they stay texts, for templates are programs.

    Examples:
        >>> import h2htalk
        >>> run = h2htalk.load_run("runs/constant")
        >>> run.scores().select(["id", "bleu_1", "rouge_l"]).num_rows
        22
        >>> run.items().column("language").unique().to_pylist()
        ['en', 'zh']

    Raises:
        ConfigError: `path` is no path, or `prompts` are not those of the run.
        DataError: the folder holds no run, the run was never scored, or its answers, its scores or its summary
            changed since.
    """
    folder = as_path(path, "path")
    summary = read_summary(folder / "summary.json")
    data = read_run_data(folder, prompts=None if prompts is None else as_path(prompts, "prompts"))
    ids = [s.id for s in data.split.scenarios]
    scores = read_scores(data.folder.scores(summary.signature))
    answers = data.folder.answers(ids, data.spec.samples)
    if data.folder.signature().subject != summary.signature.subject:
        raise DataError(
            f"{folder / 'run.json'}: its signature is not that of the scores; restore it"
        )
    require_scored(folder, answers, scores)
    return Run(data, summary, answers, scores)


def require_unedited(folder: RunFolder) -> None:
    """Raise DataError where an answer was changed since it was scored; without valid scores none is known to be."""
    try:
        scores = read_scores(folder.scores(read_summary(folder.summary).signature))
    except DataError:
        return
    require_scored(folder.path, folder.answers(), scores, resumed=True)


def require_scored(folder: Path, answers: Answers, scores: Scores, resumed: bool = False) -> None:
    """Raise DataError unless the answers are those that were scored; `resumed`: others may have come since."""
    hashes = {}
    for key, answer in answers.items():
        if isinstance(answer, Response):
            hashes[key] = answer_hash(answer)
    scored = {}
    for item in scores.values():
        for sample in item.samples:
            if sample.answer is not None:
                scored[sample.id, sample.sample] = sample.answer
    keys = {key for key, scored_hash in scored.items() if hashes.get(key) != scored_hash}
    if not resumed:
        keys |= hashes.keys() - scored.keys()
    different = {item_id for item_id, _ in keys}
    if different:
        raise DataError(
            f"{folder}: {counted(len(different), 'item')} with answers that are not those that were scored "
            f"({quoted(min(different))}); restore calls.jsonl, or score the answers that are there with "
            f"`h2htalk score {folder}`"
        )
