"""A run: write its folder, open and check it, load its scores and items.

`RunWriter` makes or continues a folder, `read_run_data` checks one against its signature, and `load_run` reads a scored
run, as report, compare, judge, calibrate, adjudicate, gate and exports do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.metrics.composite import METRIC_COLUMNS, Scores, all_columns, answer_hash, read_scores
from h2htalk.benchmark.prompts.prompt_set import PromptOf, PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.files import remove_file, write_json, write_text
from h2htalk.data.links import add_link, link_folder
from h2htalk.data.records import AnyPath, as_path
from h2htalk.data.responses import CALLS, Answers, FailedResponse, Response, fold_answer
from h2htalk.data.run_folder import HALF_WRITTEN, SOURCE, RunFolder, require_asked
from h2htalk.data.signature import Signature
from h2htalk.data.split_output import export_split
from h2htalk.data.splits import Split
from h2htalk.errors import DataError, counted, quoted
from h2htalk.version import __version__

UNKNOWN = "unknown"  # the prompts of imported answers


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
        self.folder, self.answers = folder, Answers()
        ids, samples = frozenset(scenario.id for scenario in split.scenarios), int(spec.get("samples", 1))

        def remember(response: Response | FailedResponse, where: str) -> None:
            if not split.cases:  # a study asks more about a case than its turns
                require_asked(response, ids, samples, where)
            fold_answer(self.answers, response)

        folder.require_usable(signature)
        self._new, self._made = False, not os.path.lexists(folder.path)
        self.calls = calls or CallStore(folder.calls_file)
        self.calls.on_outcome = remember
        try:
            self.calls.open()
            self._new = not folder.manifest.exists()
            if not self._new:  # another process may have begun the run before this had the lock
                folder.require_usable(signature)
            # Before the run holds a copy of the items: an erasure finds it even if it is interrupted now.
            if (source := link_folder(str(spec.get("ask", spec).get("split", "")))) is not None:
                add_link(source, folder.kind, folder.place)
            if self._new:
                # A killed start may have left half of them; without run.json they are not used.
                shutil.rmtree(folder.inputs, ignore_errors=True)
                for half_written in folder.path.glob(HALF_WRITTEN):
                    half_written.unlink()
                export_split(split, folder.inputs / "split")
                for name, text in prompts.items():
                    write_text(folder.prompts / name, text)
                run = {"spec": dict(spec), "signature": signature.to_dict(), "package_version": __version__, **facts}
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
        if self._new and self.calls.worthless():
            for made in (self.folder.inputs, self.folder.baselines, self.folder.path / "judgements"):  # a study's key
                shutil.rmtree(made, ignore_errors=True)
            for name in (self.folder.manifest.name, CALLS, "calls.lock"):
                remove_file(self.folder.path / name)
        if self._made:
            remove_file(self.folder.path)  # where it is empty now


@dataclass(frozen=True, slots=True)
class RunData:
    """The content of a run folder: the split, the specification, and each item's prompt (None for imported answers)."""

    folder: RunFolder
    spec: EvaluateSpec
    split: Split
    prompt_of: PromptOf | None


def read_run_data(path: Path, kind: type[RunFolder] = RunFolder) -> RunData:
    """Read a run folder, and check it against its signature."""
    folder = kind(path)
    spec = EvaluateSpec.from_dict(folder.read_run()["spec"], str(folder.manifest))
    signature, split = folder.signature(), folder.split()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    require_agreement(folder.inputs, "items", items, signature.protocol)
    require_agreement(folder.manifest, "samples", str(spec.samples), signature.subject)
    if signature.protocol.get("prompts") == UNKNOWN:
        return RunData(folder, spec, split, None)
    prompts, sap = PromptSet.load(folder.prompts), Sap.parse(spec.sap)
    require_agreement(folder.prompts, "prompts", prompts.fingerprint, signature.protocol)
    require_agreement(folder.manifest, "sap", str(sap), signature.subject)
    return RunData(folder, spec, split, prompts.prompt_of(split, sap))


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
    item_scores: Scores

    def scores(self) -> Any:
        """Return the scores as a `pyarrow.Table`, one row a sample: `id`, `sample`, each metric (`bleu_1`, ...,
        `rouge_l`, `ss`), `lexical` (the mean of the lexical metrics), `s`, `violations`, `unscored` (why, or null)."""
        import pyarrow.parquet as pq

        return pq.read_table(self.data.folder.scores(self.summary.signature))

    def responses(self) -> Any:
        """Return what was answered as a `pyarrow.Table`, one row a sample: its `text`, the `answer` in it that is
        scored, how it came, and of a call that failed `failure` and `message`."""
        import pyarrow as pa

        kinds = {"sample": pa.int32(), "input_tokens": pa.int64(), "output_tokens": pa.int64(), "seconds": pa.float64()}
        names = ("id", "sample", "answer", "text", "thinking", "finish_reason", "model", *[*kinds][1:], "failure")
        schema, rows = pa.schema([(name, kinds.get(name, pa.string())) for name in (*names, "message")]), []
        for one in self.answers.values():
            row = {"answer": getattr(one, "answer", None), **one.to_dict()}
            failure = row.pop("failure", {})
            rows.append(row | row.get("usage", {}) | {"failure": failure.get("reason"), **failure})
        return pa.Table.from_pylist(rows, schema)

    def items(self) -> Any:
        """Return the items as a `pyarrow.Table`, one row a scenario: its answers, and the means of its samples."""
        import pyarrow as pa

        rows, samples = [(s, self.item_scores[s.id]) for s in self.data.split.scenarios], range(self.data.spec.samples)
        found = [[self.answers.get((s.id, k)) for k in samples] for s, _ in rows]
        answers = [[one.answer if isinstance(one, Response) else None for one in own] for own in found]
        tags = ("emotion", "complexity", "interaction", "risk")
        means = ("lexical", "ss", "s", "compliance")
        own = all_columns(i.metrics for _, i in rows)[len(METRIC_COLUMNS) :]
        return pa.table(
            {
                **{name: [getattr(s, name) for s, _ in rows] for name in ("id", "subtask", "language")},
                **{name: [getattr(s.tags, name) for s, _ in rows] for name in tags},
                "reference": [s.reference for s, _ in rows],
                "references": pa.array([list(s.references) for s, _ in rows], pa.list_(pa.string())),
                "answers": pa.array(answers, pa.list_(pa.string())),
                **{name: pa.array([getattr(i, name) for _, i in rows], pa.float64()) for name in means},
                **{name: pa.array([i.metrics.get(name) for _, i in rows], pa.float64()) for name in own},
                "unscored": pa.array([i.unscored for _, i in rows], pa.string()),
            }
        )


def load_run(path: AnyPath) -> Run:
    """Load a scored run.

    Examples:
        >>> import h2htalk
        >>> run = h2htalk.load_run("runs/constant")
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
    scores = read_scores(data.folder.scores(summary.signature))
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


def require_scored(folder: Path, answers: Answers, scores: Scores, resumed: bool = False) -> None:
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
