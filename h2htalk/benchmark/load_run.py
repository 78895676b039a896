"""Load a scored run: its summary, and its scores and items as Arrow tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.benchmark.judge.judgements import require_stored
from h2htalk.benchmark.metrics.composite import ItemScore
from h2htalk.benchmark.metrics.scoring import answer_hash, read_scores
from h2htalk.benchmark.run_data import RunData, read_run_data
from h2htalk.benchmark.summary import Summary, read_summary
from h2htalk.data.arguments import as_path
from h2htalk.data.responses import Response
from h2htalk.data.run_folder import Answers, RunFolder
from h2htalk.errors import DataError, counted, quoted


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
        answers = [
            [a.answer if isinstance(a := self.answers.get((s.id, k)), Response) else None for k in samples]
            for s, _ in rows
        ]
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
    run = load_scored(as_path(path, "path"))
    if run.summary.judging is not None:
        require_stored(run.data.folder.path, run.summary.judging.files)
    return run


def load_scored(folder: Path) -> Run:
    """As `load_run`, but ratings may have come or changed since the run was scored."""
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
            f"({quoted(min(ids))}); restore responses/, or score the answers that are there with "
            f"`h2htalk score {folder}`"
        )
