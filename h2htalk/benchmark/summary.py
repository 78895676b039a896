"""The summary of a run, made of its scores and of those of the baselines: trivial answers that models should beat."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple

from h2htalk.benchmark.answering import Answering
from h2htalk.benchmark.metrics.composite import METRICS, PRIVATE_REFERENCE, ItemScore, SampleScore, Scores, all_columns
from h2htalk.benchmark.statistics import (
    Cell,
    Difference,
    NullClass,
    Row,
    aggregate,
    aggregate_slices,
    null_class,
    paired_figures,
)
from h2htalk.chat.prices import Totals
from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import find_language
from h2htalk.data.records import read_record
from h2htalk.data.responses import Answers, FailedResponse, Failure, Response, read_answers
from h2htalk.data.run_folder import SCORE_AGAIN, RunFolder
from h2htalk.data.scenario import Scenario, ScheduleEntry, Turn
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, suggest
from h2htalk.text.contracts.memory_blocks import is_null_memory
from h2htalk.text.embeddings.vectors import Embedder
from h2htalk.version import __version__

Baseline = Callable[[Sequence[Scenario], Sequence[Scenario]], list[Response | FailedResponse]]


def constant(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Response | FailedResponse]:
    """Answer every item with one line; recollection_synthesis with the null line (64 % of the authors' references)."""
    lines = ((s.id, SUBTASKS[s.subtask].has_null_line, find_language(s.language)) for s in scenarios)
    return [Response(name, 0, own.null_memory if null else own.constant_reply, "stop") for name, null, own in lines]


def copy_last_turn(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Response | FailedResponse]:
    """Answer with the last turn, memory, plan or text among the inputs."""
    return [Response(s.id, 0, _last_input(s), "stop") for s in scenarios]


def _last_input(scenario: Scenario) -> str:
    value = list(scenario.inputs.values())[-1]
    entry = value if isinstance(value, str) else value[-1]
    if isinstance(entry, Turn):
        return entry.content
    return f"{entry.time} {entry.activity}" if isinstance(entry, ScheduleEntry) else entry


def random_reference(scenarios: Sequence[Scenario], pool: Sequence[Scenario]) -> list[Response | FailedResponse]:
    """Answer with the reference of another scenario of the same subtask and language, chosen by a hash of the id.

    `pool` holds the scenarios and may hold more. The choice does not depend on row order; an item without such
    a neighbour is a failure.
    """
    groups: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in sorted(pool, key=lambda s: s.id):
        groups.setdefault((scenario.subtask, scenario.language), []).append(scenario)
    places = {s.id: place for group in groups.values() for place, s in enumerate(group)}

    def answer(scenario: Scenario) -> Response | FailedResponse:
        group = groups[scenario.subtask, scenario.language]
        if len(group) < 2:
            failure = Failure("no_neighbour", "no other scenario of this subtask and language", 0)
            return FailedResponse(scenario.id, 0, failure)
        pick = int.from_bytes(hashlib.sha256(scenario.id.encode()).digest()[:8], "big") % (len(group) - 1)
        pick += pick >= places[scenario.id]  # never itself
        return Response(scenario.id, 0, group[pick].reference, "stop")

    return [answer(scenario) for scenario in scenarios]


BASELINES = {"constant": constant, "copy-last-turn": copy_last_turn, "random-reference": random_reference}
NEEDS_REFERENCES = ("random-reference",)  # which a split with private references does not have


def find_baseline(name: str) -> Baseline:
    """Return the baseline of that name. Raises ConfigError, with the choices, for another name."""
    if name not in BASELINES:
        raise ConfigError(f"unknown baseline {name!r}; {suggest(name, BASELINES)}choose from {', '.join(BASELINES)}")
    return BASELINES[name]


def write_baselines(folder: RunFolder, split: Split, whole: Split | None) -> None:
    """Store the baselines' answers, so that a later scoring uses the same ones.

    `whole` is the split before selection, from which random references are drawn. None removes the baselines.
    """
    if whole is None:
        shutil.rmtree(folder.baselines, ignore_errors=True)
        return
    private = not all(scenario.references for scenario in whole.scenarios)
    for name, baseline in BASELINES.items():
        if private and name in NEEDS_REFERENCES:
            continue
        answers = baseline(split.scenarios, whole.scenarios)
        write_jsonl(folder.baselines / f"{name}.jsonl", (answer.to_dict() for answer in answers))


def read_baselines(folder: RunFolder) -> dict[str, Answers]:
    """Read the stored answers of each baseline, by name; empty where the run has none."""
    paths = {name: folder.baselines / f"{name}.jsonl" for name in BASELINES}
    return {name: read_answers(path) for name, path in paths.items() if path.exists()}


@dataclass(frozen=True, slots=True)
class RunCounts:
    """How many items and samples were scored.

    `items` leaves out those that were `erased` later; `private` are answered items whose references are private.
    `failures` counts unscored samples by reason, `failure_messages` has the first message of each; `empty`, `truncated`
    and `refused` count replies.
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
        costs: what each stage paid, if any. answering: when, how long and by what the run was answered; in `run.json`.
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
        return replace(
            self,
            signature=replace(self.signature, protocol={**self.signature.protocol, "judge": "none"}),
            rows=replace(self.rows, judged=None),
            judged=False,
            judging=None,
            warnings=tuple(one for one in self.warnings if not one.startswith(JUDGE_WARNING)),
        )

    def _repr_html_(self) -> str:
        """The figures by subtask, as a notebook shows them; by name, as the tables import this module."""
        return str(resolve_name("h2htalk.benchmark.report.table2:notebook_table")(self).to_html())

    def to_dict(self) -> dict[str, Any]:
        return {
            **{name: value for name, value in asdict(replace(self, costs={})).items() if name != "answering"},
            "signature": self.signature.to_dict(),
            "incomplete": self.incomplete,
            "costs": {stage: totals.to_dict() for stage, totals in self.costs.items()},
        }


def read_summary(path: Path) -> Summary:
    """Read and check a run's `summary.json`: it may be of another version, edited or damaged."""
    folder = RunFolder(path.parent)
    try:
        raw = folder.read_summary()
    except FileNotFoundError:
        folder.read_run()  # it may be no run
        raise DataError(f"{path}: not there; run `h2htalk score {path.parent}` first") from None
    raw |= {"answering": folder.read_run().get("answering", {})}
    return read_record(Summary, raw, f"{path}: not a summary of this version", advice=f"; {SCORE_AGAIN}")


_TAGS = ("emotion", "complexity", "interaction", "risk")
ValueOf = Callable[[Scenario, ItemScore | SampleScore], float | None]  # what it counts in a figure, 0 to 1


class Scored(NamedTuple):
    """The scores of the model or of a baseline by id; `nulls` are those of `answering.null_shares`."""

    scores: Scores
    nulls: Sequence[tuple[float, bool]] = ()


def summarize(
    model: str,
    split: Split,
    signature: Signature,
    embedder: Embedder | None,
    scored: Scored,
    baselines: Mapping[str, Scored],
    counts: RunCounts,
    clusters: Mapping[str, str],
) -> Summary:
    """Build the summary of a run from its scores and those of each baseline on the items that the model has one for.

    `model` is what the table calls the model; `clusters` has the cluster of each item with the main measure.
    """
    scores, scenarios = scored.scores, split.scenarios
    with_s = [s for s in scenarios if embedder is not None and s.language in embedder.languages]
    measure: Measure = "s" if with_s else "lexical"
    own = with_s or scenarios

    def value_of(scenario: Scenario, score: ItemScore | SampleScore) -> float | None:
        return score.s if measure == "s" else score.lexical

    reached = {}
    for name, baseline in baselines.items():
        pairs = [(s, getattr(scores[s.id], measure), getattr(baseline.scores[s.id], measure)) for s in own]
        known = [(s, mine, other) for s, mine, other in pairs if mine is not None and other is not None]
        found = paired_figures([Difference(s.subtask, clusters[s.id], mine - other) for s, mine, other in known])
        reached[name] = tuple(key for key, result in found.items() if result.low is None or result.low <= 0)
    broken = Counter(rule for item in scores.values() for sample in item.samples for rule in sample.violations or ())
    languages, s_languages = ({s.language for s in some} for some in (scenarios, with_s))
    beaten = [one.title for one in SUBTASKS.values() if any(one.name in keys for keys in reached.values())]
    plural = f"{len(beaten)} subtask{'s' if len(beaten) > 1 else ''}"
    first = f"not shown to be above an answer that needs no model in {plural}: {', '.join(beaten)}"
    # The constant answer of a subtask with a null line is right as often as the reference is null.
    null = [s.title for s in SUBTASKS.values() if s.has_null_line and s.name in reached.get("constant", ())]
    warnings = [first] * bool(beaten) + [f"{t}: not shown to be above printing the null line every time" for t in null]
    if s_languages and (without := ", ".join(sorted(languages - s_languages))):
        warnings.append(f"no S on {without} items: the embedder is not made for them; see their lexical mean")
    origin = f" ({split.source}, commit {split.commit[:12]})" if split.commit else ""
    return Summary(
        model=model,
        split=f"{split.name} {split.version}{origin}",
        signature=signature,
        package_version=__version__,
        measure=measure,
        s_comparable=embedder is not None and embedder.comparable,
        counts=counts,
        languages=tuple(sorted(languages)),
        s_languages=tuple(sorted(s_languages)),
        rows=score_rows(scenarios, with_s, scored),
        metrics=metric_means(scenarios, with_s, scores),
        slices=slices_of(own, scores, value_of),
        baselines={name: score_rows(scenarios, with_s, one) for name, one in baselines.items()},
        reached=reached,
        by_sample=tuple(by_sample(own, scores, value_of)),
        violations=dict(sorted(broken.items(), key=lambda pair: (-pair[1], pair[0]))),
        warnings=tuple(warnings),
    )


def count_outcomes(scenarios: Sequence[Scenario], answers: Answers, scores: Scores, erased: int = 0) -> RunCounts:
    """Count scored items, replies of each kind and failures."""
    replies = [answer for answer in answers.values() if isinstance(answer, Response)]
    failures, messages = Counter[str](), dict[str, str]()
    for sample in (sample for item in scores.values() for sample in item.samples):
        if reason := sample.unscored:
            answer = answers.get((sample.id, sample.sample))
            message = "the references are private" if reason == PRIVATE_REFERENCE else reason
            if not isinstance(answer, Response):
                message = "no answer is stored" if answer is None else answer.failure.message or reason
            failures[reason] += 1
            messages.setdefault(reason, message)
    return RunCounts(
        items=len(scenarios),
        scored=sum(scores[s.id].unscored is None for s in scenarios),
        samples=len(replies),
        empty=sum(not reply.answer for reply in replies),
        truncated=sum(reply.finish_reason == "length" for reply in replies),
        refused=sum(reply.finish_reason == "refusal" for reply in replies),
        failures=dict(sorted(failures.items())),
        failure_messages=dict(sorted(messages.items())),
        private=sum(scores[s.id].unscored == PRIVATE_REFERENCE for s in scenarios),
        erased=erased,
    )


def null_shares(scenarios: Sequence[Scenario], answers: Answers, scores: Scores) -> list[tuple[float, bool]]:
    """For each scored item of a subtask with a null line: the share of its answers that are null; is the reference."""
    pairs = []
    for scenario in scenarios:
        score = scores[scenario.id]
        if SUBTASKS[scenario.subtask].has_null_line and score.unscored is None:
            replies = [answers[scenario.id, s.sample] for s in score.samples]
            null = [is_null_memory(r.answer, scenario.language) for r in replies if isinstance(r, Response)]
            pairs.append((sum(null) / len(null), is_null_memory(scenario.reference, scenario.language)))
    return pairs


def by_sample(scenarios: Sequence[Scenario], scores: Scores, value_of: ValueOf) -> Iterator[float]:
    """The headline figure of each sample, over the items of which every sample is scored."""
    samples = min((len(scores[s.id].samples) for s in scenarios), default=0)
    if samples < 2:
        return
    values = {s.id: [value_of(s, sample) for sample in scores[s.id].samples] for s in scenarios}
    whole = [s for s in scenarios if None not in values[s.id]]
    for number in range(samples):
        row = aggregate((s.subtask, values[s.id][number]) for s in whole)
        figure = row["items_mean" if row["overall"].value is None else "overall"].value
        if figure is not None:
            yield figure


def score_rows(scenarios: Sequence[Scenario], with_s: Sequence[Scenario], scored: Scored) -> ScoreRows:
    """Aggregate the scores of items into rows; those with S are asked for it."""

    def row(name: str, items: Sequence[Scenario] = scenarios) -> Row:
        return aggregate((s.subtask, getattr(scored.scores[s.id], name)) for s in items)

    synthesis = sum(SUBTASKS[s.subtask].has_null_line for s in scenarios)
    return ScoreRows(
        s=row("s", with_s) if with_s else None,
        lexical=row("lexical"),
        compliance=row("compliance"),
        null_class=null_class(scored.nulls, synthesis) if synthesis else None,
    )


def slices_of(scenarios: Sequence[Scenario], scores: Scores, value_of: ValueOf) -> dict[str, dict[str, Cell]]:
    """A cell for each value of each tag."""
    values = [(s, value_of(s, scores[s.id])) for s in scenarios]
    by_tag = {tag: [(str(getattr(s.tags, tag)), value) for s, value in values] for tag in _TAGS}
    by_tag["language"] = [(s.language, value) for s, value in values]
    return {tag: aggregate_slices(listed) for tag, listed in by_tag.items()}


def metric_means(
    scenarios: Sequence[Scenario], with_s: Sequence[Scenario], scores: Scores
) -> dict[str, dict[str, Cell]]:
    """A cell for each metric of each subtask, SS of the items with S alone; not lexical ones only with values."""
    rows: dict[str, dict[str, Cell]] = {}
    for name in all_columns(scores[s.id].metrics for s in scenarios):
        own = with_s if name in METRICS["semantic"].columns else scenarios
        values = [(s.subtask, scores[s.id].metrics.get(name)) for s in own]
        if name not in METRICS["lexical"].columns and all(value is None for _, value in values):
            continue
        for subtask, cell in aggregate_slices(values).items():
            rows.setdefault(subtask, {})[name] = cell
    return {subtask: rows[subtask] for subtask in SUBTASKS if subtask in rows}
