"""The summary of a run: rows, slices, baselines, counts and warnings, as in `summary.json`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from h2htalk.benchmark.answering import Answering
from h2htalk.benchmark.statistics.table2_averages import Cell, NullClass, Row
from h2htalk.chat.costs.totals import Totals
from h2htalk.data.records import read_record
from h2htalk.data.run_folder import SCORE_AGAIN, RunFolder
from h2htalk.data.signature import Signature
from h2htalk.errors import DataError

JUDGE_WARNING = "judge: "  # how warnings about judges begin
# The two measures of a row: the composite S, or the mean of its six lexical parts.
Measure = Literal["s", "lexical"]


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many items and samples were scored.

    `erased` counts items that were asked and erased later; `items` leaves them out. `private` counts answered items
    whose references are private. `failures` counts unscored samples by reason, `failure_messages` holds the first
    message of each reason; `empty`, `truncated` and `refused` count replies.
    """

    items: int
    scored: int
    samples: int
    empty: int = 0
    truncated: int = 0
    refused: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    failure_messages: Mapping[str, str] = field(default_factory=dict)
    private: int = 0
    erased: int = 0

    @property
    def unscored(self) -> int:
        """Items without a score that could have one."""
        return self.items - self.scored - self.private


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """What judges gave, and what they did not.

    Attributes:
        judges: labels of the judges whose mean counts, `MODEL@FINGERPRINT`.
        judgements: of each answer by each judge. scope: `levels` or `all`.
        scored, total: answers with a rating, of those that were to be judged; `people` of them were rated by people.
        failed: answers of which a call failed or was not made: judging again repeats these alone.
        unscored: reason -> answers without a rating. unread: reason -> the first reply that could not be read.
        ratings: 20 R by subtask (0 to 100).
        points: yes-or-no point -> share of yes, in percent.
        queue: trigger (`J`, `judge`) -> items below the threshold (Eq. 4); of `items` that have both J and R.
        files: the files that the ratings are made of, each with its size and hash.
        disagreement: of a panel, the mean difference between the highest and the lowest judge of an answer, 0 to 5.
        corrected: `levels` or a level's subtask -> 20 J corrected by people's labels; n of `total` items were labelled.
        correction: the estimator and the number of labels, or why nothing is corrected; empty without labels.
    """

    judges: tuple[str, ...]
    judgements: int
    scope: str
    scored: int
    total: int
    people: int
    failed: int
    unscored: Mapping[str, int]
    ratings: Row
    points: Mapping[str, Cell]
    queue: Mapping[str, int]
    items: int
    files: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    disagreement: float | None = None
    corrected: Mapping[str, Cell] = field(default_factory=dict)
    correction: str = ""


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """The rows of the model or of a baseline.

    `s` is None where no embedder was used; in `judged`, levels I to III have J in the place of S (20 J a cell), None
    where there is no judge or no S.
    """

    s: Row | None
    lexical: Row
    compliance: Row
    null_class: NullClass | None
    judged: Row | None = None

    def row(self, measure: Measure) -> Row:
        return (self.judged or self.s or self.lexical) if measure == "s" else self.lexical


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything the tables show.

    Attributes:
        measure: what the main row is made of: `s`, or `lexical` where no embedder was asked for.
        languages: those of the items. s_languages: those that have S; an English embedder on a split in two languages
            gives S to the English items, and the lexical mean and the contract are of all items.
        s_comparable: whether S may stand beside the paper's (BGE-M3 only).
        metrics: subtask -> metric -> cell. slices: tag -> value -> cell of the measure.
        reached: baseline -> the figures (`figure_weights`) in which the model is not shown to be above it: the paired
            95 % interval of the difference holds 0, or lies below.
        by_sample: the headline figure (overall, else the mean over items) of each sample alone; empty where an item has
            one answer.
        judged: False while levels I-III have no judge's rating in them; `judging` holds what judges gave.
        costs: what each stage paid; empty where no call cost anything.
        answering: when, how long and by what the run was answered.
    """

    model: str
    split: str
    signature: Signature
    package_version: str
    measure: Measure
    s_comparable: bool
    counts: RunCounts
    languages: tuple[str, ...]
    s_languages: tuple[str, ...]
    rows: ScoreRows
    metrics: Mapping[str, Mapping[str, Cell]]
    slices: Mapping[str, Mapping[str, Cell]]
    baselines: Mapping[str, ScoreRows]
    reached: Mapping[str, tuple[str, ...]]
    violations: Mapping[str, int]
    warnings: tuple[str, ...]
    by_sample: tuple[float, ...] = ()
    judged: bool = False
    judging: JudgeFigures | None = None
    costs: Mapping[str, Totals] = field(default_factory=dict)
    answering: Answering = field(default_factory=Answering)

    @property
    def measured(self) -> str:
        """The languages of the items with the measure: `en`, `zh` or `en+zh`."""
        return "+".join(self.s_languages or self.languages)

    @property
    def incomplete(self) -> bool:
        """Whether any item is unscored, private references apart, a judge's call failed or its reply could not be read:
        marked in every table, exit code 3."""
        judging = self.judging
        return self.counts.unscored > 0 or (judging is not None and (judging.failed > 0 or bool(judging.unread)))

    def without_judgements(self) -> Summary:
        """The same run as no judge had read it; its warnings are without those about judges."""
        protocol = {**self.signature.protocol, "judge": "none"}
        return replace(
            self,
            signature=replace(self.signature, protocol=protocol),
            rows=replace(self.rows, judged=None),
            judged=False,
            judging=None,
            warnings=tuple(one for one in self.warnings if not one.startswith(JUDGE_WARNING)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(replace(self, costs={})),
            "signature": self.signature.to_dict(),
            "incomplete": self.incomplete,
            "costs": {stage: totals.to_dict() for stage, totals in self.costs.items()},
        }

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> Summary:
        """Read and check what `to_dict` wrote: the file may be of another version, edited or damaged."""
        return read_record(cls, raw, f"{where}: not a summary of this version", advice=f"; {SCORE_AGAIN}")


def read_summary(path: Path) -> Summary:
    """A run's `summary.json`."""
    try:
        raw = RunFolder(path.parent).read_summary()
    except FileNotFoundError:
        if not os.path.exists(path.parent / "run.json"):
            raise DataError(f"{path.parent}: not a run folder: it holds no run.json") from None
        raise DataError(f"{path}: not there; run `h2htalk score {path.parent}` first") from None
    return Summary.from_dict(raw, str(path))
