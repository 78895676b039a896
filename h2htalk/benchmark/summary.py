"""The summary of a scored run: everything that its tables and its page show.

`summarize` builds it from scores; this module holds its records and reads `summary.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal

from h2htalk.benchmark.run_facts import RunFacts
from h2htalk.benchmark.statistics.averages import NullClass, Row
from h2htalk.benchmark.statistics.estimates import Estimate, stored_fields
from h2htalk.chat.prices import Totals
from h2htalk.data.model_names import without_path
from h2htalk.data.records import read_record
from h2htalk.data.run_folder import SCORE_AGAIN, RunFolder
from h2htalk.data.signature import Signature
from h2htalk.errors import DataError


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many items and samples were scored.

    `items` leaves out those that were `erased` later; `private` are answered items whose references are private.
    `failures` counts unscored samples by reason, `failure_messages` has the first message of each; `empty`,
    `truncated`, `refused` (by the model) and `filtered` (by the provider) count replies, `empty_causes` those without
    text by cause.
    `left_out`: items that are unscored because a reply was filtered, and the specification leaves such replies out.
    """

    items: int
    scored: int
    samples: int
    empty: int = 0
    truncated: int = 0
    refused: int = 0
    filtered: int = 0
    left_out: int = 0
    empty_causes: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    failure_messages: Mapping[str, str] = field(default_factory=dict)
    private: int = 0
    erased: int = 0

    @property
    def unscored(self) -> int:
        """Items without a score that could have one."""
        return self.items - self.scored - self.private - self.left_out


JUDGE_WARNING = "judge: "  # how warnings about judges begin
Measure = Literal["s", "lexical"]  # of a row: the composite S, or the mean of its six lexical parts


@dataclass(frozen=True, slots=True)
class JudgeFigures:
    """What judges gave, and what they did not.

    Attributes:
        judges: labels of the judges whose mean counts, `MODEL@FINGERPRINT`.
        judgements: of each answer by each judge. scope: `levels` or `all`.
        scored, total: answers with a rating, of those that were to be judged; `people` of them were rated by people.
        failed: answers of which a call failed or was not made: judging again repeats these alone.
        unscored: reason -> answers without a rating. unread: reason -> the first reply that could not be read.
        ratings: 20 R by subtask (0 to 100). points: yes-or-no point -> share of yes, in percent.
        queue: trigger (`J`, `judge`) -> items below the threshold (Eq. 4); of `items` that have both J and R.
        disagreement: of a panel, the mean difference between the highest and the lowest judge of an answer, 0 to 5.
        corrected: `levels` or a level's subtask -> 20 J corrected by people's labels; n of `total` items were labelled.
        correction: the estimator and the number of labels, or why nothing is corrected; empty without labels.
        declined: what the filter of a judge's provider said -> answers without a rating for its sake.
        unknown_reasons: why replies of judges ended, where that is not known here -> number of replies.
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
    points: Mapping[str, Estimate]
    queue: Mapping[str, int]
    items: int
    unread: Mapping[str, str] = field(default_factory=dict)
    disagreement: float | None = None
    corrected: Mapping[str, Estimate] = field(default_factory=dict)
    correction: str = ""
    declined: Mapping[str, int] = field(default_factory=dict)
    unknown_reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoreRows:
    """The rows of the model or of a baseline.

    `s` is None where no embedder was used; in `judged`, levels I to III have J in the place of S (20 J a cell), None
    where there is no judge or no S. `lexical_folded` is the lexical mean without typography, None in runs that an
    earlier version scored.
    """

    s: Row | None
    lexical: Row
    compliance: Row
    null_class: NullClass | None
    judged: Row | None = None
    lexical_folded: Row | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything the tables show.

    Attributes:
        measure: what the main row is made of: `s`, or `lexical` where no embedder was asked for.
        languages: those of the items. s_languages: those that have S: with an English embedder, the English items; the
            lexical mean and the contract are of all items.
        s_comparable: whether S may stand beside the paper's (BGE-M3 only).
        metrics: subtask -> metric -> cell. slices: tag -> value -> cell of the measure.
        reached: baseline -> the figures (`figure_weights`) in which the model is not shown to be above it, by the
            paired 95 % interval.
        by_sample: the headline figure (overall, else the mean over items) of each sample, where an item has several.
        judged: False while levels I-III have no judge's rating in them; `judging` holds what judges gave.
        costs: what each stage paid, if any. run_facts: when, how long and by what the run was answered; in `run.json`.
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
    metrics: Mapping[str, Mapping[str, Estimate]]
    slices: Mapping[str, Mapping[str, Estimate]]
    baselines: Mapping[str, ScoreRows]
    reached: Mapping[str, tuple[str, ...]]
    violations: Mapping[str, int]
    warnings: tuple[str, ...]
    by_sample: tuple[float, ...] = ()
    judged: bool = False
    judging: JudgeFigures | None = None
    costs: Mapping[str, Totals] = field(default_factory=dict)
    run_facts: RunFacts = field(default_factory=RunFacts)

    @property
    def measured(self) -> str:
        """The languages of the items with the measure: `en`, `zh` or `en+zh`."""
        return "+".join(self.s_languages or self.languages)

    @property
    def incomplete(self) -> bool:
        """Whether any item is unscored, private references apart, a judge's call failed or its reply could not be read:
        marked in every table, exit code 3."""
        judging = self.judging
        return self.counts.unscored > 0 or (
            judging is not None and (judging.failed > 0 or bool(judging.unread))
        )

    @property
    def scoring_warnings(self) -> tuple[str, ...]:
        """The warnings that no judge is the cause of."""
        return tuple(text for text in self.warnings if not text.startswith(JUDGE_WARNING))

    def without_judgements(self) -> Summary:
        """The same run as no judge had read it; its warnings are without those about judges."""
        return replace(
            self,
            signature=replace(
                self.signature, protocol={**self.signature.protocol, "judge": "none"}
            ),
            rows=replace(self.rows, judged=None),
            judged=False,
            judging=None,
            warnings=self.scoring_warnings,
        )

    def _repr_html_(self) -> str:
        """The figures by subtask, as a notebook shows them; by name, as the tables import this module."""
        return str(
            resolve_name("h2htalk.benchmark.report.run_tables:notebook_table")(self).to_html()
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `summary.json` holds; how the run was answered is in `run.json`."""
        record = asdict(replace(self, costs={}), dict_factory=stored_fields)
        del record["run_facts"]
        costs = {stage: totals.to_dict() for stage, totals in self.costs.items()}
        return record | {
            "signature": self.signature.to_dict(),
            "incomplete": self.incomplete,
            "costs": costs,
        }


def read_summary(path: Path) -> Summary:
    """Read and check a run's `summary.json`: it may be of another version, edited or damaged."""
    folder = RunFolder(path.parent)
    try:
        raw = folder.read_summary()
    except FileNotFoundError:
        folder.read_run()  # it may be no run
        raise DataError(f"{path}: not there; run `h2htalk score {path.parent}` first") from None
    raw["run_facts"] = folder.read_run().get("answering", {})
    summary = read_record(
        Summary, raw, f"{path}: not a summary of this version", advice=f"; {SCORE_AGAIN}"
    )
    return replace(
        summary, model=without_path(summary.model)
    )  # earlier versions stored the path of a file
