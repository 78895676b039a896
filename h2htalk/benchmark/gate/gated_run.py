"""What the gate reads: its policy, and the observations of a run or study."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from h2htalk.benchmark.answering import latency
from h2htalk.benchmark.observations import COUNTS, SCALES, Observation, scored
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.statistics import clusters_of
from h2htalk.benchmark.studies.conversations import conversation_text, labelled
from h2htalk.benchmark.studies.point_answers import AnsweredReply
from h2htalk.benchmark.studies.report import point_lines
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.benchmark.studies.study_folder import StudyFolder
from h2htalk.chat.engines import model_name
from h2htalk.chat.prices import sum_totals
from h2htalk.chat.store.call_store import read_costs
from h2htalk.data.files import read_toml
from h2htalk.data.records import read_record
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, fingerprint_of
from h2htalk.errors import ConfigError, quoted

COST = "cost"
# Measures of a whole run, with their units: compared with a limit and nothing else.
MEASURES = {COST: "US dollars", "latency_median": "seconds", "latency_95": "seconds"}
# Figures of which less is better; of all others more is.
LOWER = ("violation", "over_refusal", "tokens", "refused", "cut", *MEASURES)
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "sap": ("violation", "perception", "must_not.invent_help_line", "over_refusal"),
    "instructions": ("points", "need_met"),
    "memory": ("must.callback", "must_not.invented", "must_not.corrected", "must_not.forgotten"),
}


class Criterion(BaseModel):
    """One figure (docs/how-to/gate-in-ci.md lists them), and what it is held against."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    figure: str = Field(min_length=1)
    relative: bool = True  # whether it is held against the reference run
    max: float | None = Field(default=None, allow_inf_nan=False)
    min: float | None = Field(default=None, allow_inf_nan=False)
    # The gate also says no unless the run is shown to be less than so much worse.
    non_inferior: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _limits_cost(self) -> Criterion:
        """Refuse what could never say no."""
        if self.figure in MEASURES and (self.max is None or self.min is not None or self.non_inferior is not None):
            raise ValueError(f"{self.figure} needs max: it is compared with a limit and nothing else")
        if not self.relative and (self.non_inferior is not None or not self.limits):
            raise ValueError("relative = false leaves out the reference run: name max or min, and no non_inferior")
        least, most = SCALES.get(self.figure, (0.0, math.inf if self.figure in (*MEASURES, *COUNTS) else 1.0))
        within = (self.max is None or least <= self.max < most) and (self.min is None or least < self.min <= most)
        if not within:
            raise ValueError(f"{self.figure} is {least:g} to {most:g}, of which max and min must leave some out")
        if self.non_inferior is not None and self.non_inferior >= most - least:
            raise ValueError(f"non_inferior must be below {most - least:g}: nothing can be that much worse")
        return self

    @property
    def limits(self) -> dict[str, float]:
        """`max` and `min`, those that are given."""
        return {name: end for name, end in (("max", self.max), ("min", self.min)) if end is not None}

    @property
    def lower_is_better(self) -> bool:
        return self.figure in LOWER or self.figure.startswith("must_not.")


class Policy(BaseModel):
    """A gate's criteria. `alpha`: of all tests together (Holm), one-sided; `arm`: of studies, the arm that is held."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    alpha: float = Field(default=0.05, gt=0, le=0.5)
    arm: str = ""
    criteria: tuple[Criterion, ...] = Field(min_length=1)


def read_policy(path: Path) -> Policy:
    """Read `gate.toml`: `alpha`, `arm` and a table `[[criteria]]` a criterion. Raises ConfigError."""
    return read_record(Policy, read_toml(path), str(path), error=ConfigError)


def default_policy(study: str, figures: Mapping[str, Sequence[Observation]]) -> Policy:
    """The policy where none is given: the figures of a study's safety or skill, or S of every subtask.

    A study's figure that is unscored or not there is among them, so that it is missed; without an embedder the lexical
    mean is taken for S.
    """
    chosen = list(DEFAULTS.get(study, ()))
    if not study:
        kind = "s." if any(name.startswith("s.") and scored(rows) for name, rows in figures.items()) else "lexical."
        chosen = sorted(name for name in figures if name.startswith(kind))
    if not chosen:
        raise ConfigError("the run has none of the figures that a gate holds by default; name some in --policy")
    return Policy(criteria=tuple(Criterion(figure=name) for name in chosen))


def require_figures(policy: Policy, study: str, figures: Collection[str]) -> None:
    """Raise ConfigError for a criterion whose figure is neither one of the runs nor one of the study."""
    known = {*MEASURES, *figures, *DEFAULTS.get(study, ())}
    for one in policy.criteria:
        if one.figure not in known:
            raise ConfigError(f"no figure {quoted(one.figure)} in this run; choose from {', '.join(sorted(known))}")


_ENDS = {"refused": "refusal", "cut": "length"}  # why a reply ended, by figure
MEMORY_DEFAULT = "whole"  # the arm of a study of memory that is held where the policy names none
Transcript = tuple[str, str]  # a title, and the text


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRun:
    """A run as a gate sees it: its values by figure, and a function that shows what is behind one."""

    path: Path
    label: str
    signature: Signature
    values: Mapping[str, Sequence[Observation]]
    show: Callable[[Observation], Transcript]
    items: Mapping[str, str] = field(default_factory=dict)  # the fingerprint of each item that was asked
    erased: int = 0
    study: str = ""  # empty for an evaluation, as is `arm`
    arm: str = ""
    judge: str = ""
    measures: Mapping[str, float | None] = field(default_factory=dict)  # of the whole run; None: not known
    failed: int = 0  # calls without an answer


def read_gated_run(path: Path, arm: str) -> GatedRun:
    """Read a scored study or evaluation; `arm`: of a study, its first (of memory `whole`) where empty."""
    return _read_study(path, arm) if StudyFolder(path).manifest.exists() else _read_evaluation(path)


def _read_study(path: Path, arm: str) -> GatedRun:
    result = load_study(path)
    spec = result.study.spec
    chosen = arm or (MEMORY_DEFAULT if spec.study == "memory" and MEMORY_DEFAULT in spec.arms else spec.arms[0])
    if chosen not in spec.arms:
        raise ConfigError(f"{path}: no arm {quoted(chosen)}; choose from {', '.join(spec.arms)}")
    replies = {(one.case.id, one.reply.place): one for one in result.replies if one.reply.arm == chosen}

    def show(row: Observation) -> Transcript:
        if (one := replies.get((row.item, row.place.partition("/")[0]))) is None:
            return row.item, f"{row.figure} {row.value:g}"
        lines = [conversation_text(one.reply.said), labelled("reply", one.reply.text or ""), *point_lines(one)]
        return f"{row.item}, {row.place}", "\n".join(lines)

    return GatedRun(
        path=path,
        label=f"{model_name(spec.ask.model)}, {chosen}",
        signature=result.study.signature,
        values=_by_figure([*(row for row in result.observations if row.arm == chosen), *_ends(replies.values())]),
        show=show,
        items=_fingerprints(result.study.split),
        erased=len(result.study.folder.erased()),
        study=spec.study,
        arm=chosen,
        judge=result.judge,
        measures=_measures(None if spec.is_app else _cost(path), result.study.answers_of(chosen)),
        failed=result.failed,
    )


def _read_evaluation(path: Path) -> GatedRun:
    run = load_run(path)
    scenarios = {scenario.id: scenario for scenario in run.data.split.scenarios}
    clusters = clusters_of(run.data.split.scenarios)

    def observed() -> Iterator[Observation]:
        for name, one in scenarios.items():
            score = run.item_scores[name]
            for figure in ("s", "lexical", "compliance"):
                value = getattr(score, figure)
                why = "" if value is not None else score.unscored or ""
                yield Observation("", f"{figure}.{one.subtask}", name, clusters[name], value, unscored=why)
            if isinstance(answer := run.answers.get((name, 0)), Response):
                for figure, ended in _ENDS.items():
                    yield Observation("", figure, name, clusters[name], float(answer.finish_reason == ended))

    def show(row: Observation) -> Transcript:
        one, answer = scenarios[row.item], run.answers.get((row.item, 0))
        reply = answer.answer if isinstance(answer, Response) else ""
        references = (labelled("reference", text) for text in one.references)
        lines = [conversation_text(one.turns), labelled("reply", reply), *references]
        return f"{row.item}: {row.value:.3f}", "\n".join(lines)

    summary = run.summary
    return GatedRun(
        path=path,
        label=summary.model,
        signature=summary.signature,
        values=_by_figure(observed()),
        show=show,
        items=_fingerprints(run.data.split),
        erased=len(run.data.folder.erased()),
        judge=summary.signature.protocol.get("judge", ""),
        measures=_measures(_cost(path), run.answers.values()),
        failed=summary.counts.unscored if summary.incomplete else 0,
    )


def _by_figure(rows: Iterable[Observation]) -> dict[str, list[Observation]]:
    """The observations of each figure."""
    values: dict[str, list[Observation]] = {}
    for row in rows:
        values.setdefault(row.figure, []).append(row)
    return values


def _fingerprints(split: Split) -> dict[str, str]:
    return {item.id: fingerprint_of([item], split.personas) for item in split.items}


def _ends(replies: Iterable[AnsweredReply]) -> Iterator[Observation]:
    """Whether each reply of a study was refused or cut; those whose call failed have no value."""
    for one in replies:
        reply, at = one.reply, (one.case.id, one.case.family)
        for figure, ended in _ENDS.items():
            value = None if reply.text is None else float(reply.finish == ended)
            yield Observation(reply.arm, figure, *at, value, reply.place, unscored=reply.failure)


def _measures(cost: Decimal | None, answers: Iterable[Response | FailedResponse]) -> dict[str, float | None]:
    median, most = latency(one for one in answers if isinstance(one, Response)) or (None, None)
    return {COST: None if cost is None else float(cost), "latency_median": median, "latency_95": most}


def _cost(path: Path) -> Decimal | None:
    logs = read_costs(path)
    return sum_totals(logs.values()).usd_paid if logs else Decimal(0)


def require_comparable(run: GatedRun, base: GatedRun) -> None:
    """Raise ConfigError, naming what differs, unless two runs are of one kind, under one protocol, on common items."""
    keys = [key for key in run.signature.differing(base.signature) if not key.startswith("items ")]
    if run.study != base.study:
        keys.append(f"study ({run.study or 'evaluation'}, {base.study or 'evaluation'})")
    if run.study and run.judge != base.judge:
        keys.append(f"judge ({run.judge or '-'}, {base.judge or '-'})")
    if keys:
        raise ConfigError(f"{run.path} and {base.path} cannot be compared: {', '.join(keys)} differ")
    own, other = ({row.key for rows in one.values.values() for row in rows} for one in (run, base))
    if own.isdisjoint(other):
        raise ConfigError(f"{run.path} and {base.path} have no item in common")
