"""What the gate reads: its policy, and the observations of a run or study."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from h2htalk.benchmark.answering import latency
from h2htalk.benchmark.observations import COUNTS, SCALES, Observation, scored
from h2htalk.benchmark.run import RunData, load_run
from h2htalk.benchmark.score_run import Replies
from h2htalk.benchmark.statistics import clusters_of
from h2htalk.benchmark.studies.conversations import Study, StudyFolder, conversation_text, labelled
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.chat.engines import ENGINES, model_name
from h2htalk.chat.prices import sum_totals
from h2htalk.chat.store.call_store import read_store
from h2htalk.data.files import read_toml
from h2htalk.data.records import read_record
from h2htalk.data.responses import Response
from h2htalk.data.signature import Signature
from h2htalk.data.splits import fingerprint_of
from h2htalk.errors import ConfigError, quoted

COST = "cost"
# Measures of a whole run, with their units: compared with a limit and nothing else.
MEASURES = {COST: "US dollars", "latency_median": "seconds", "latency_95": "seconds"}
# Figures of which less is better; of all others more is.
LOWER = ("violation", "over_refusal", "tokens", "refused", "cut", *MEASURES)
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "sap": ("violation", "perception", "must_not.invent_help_line", "over_refusal"),
    "logs": ("violation", "perception"),
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
        if not (self.max is None or least <= self.max < most) or not (self.min is None or least < self.min <= most):
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


_ENDS = {"refused": "refusal", "cut": "length"}  # why a reply ended, by figure
MEMORY_DEFAULT = "whole"  # the arm of a study of memory that is held where the policy names none


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRun:
    """A run as a gate sees it: its values by figure, and a function that gives title and text of what is behind one."""

    path: Path
    label: str
    signature: Signature
    values: Mapping[str, Sequence[Observation]]
    show: Callable[[Observation], tuple[str, str]]
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
    study, spec = result.study, result.study.spec
    chosen = arm or (MEMORY_DEFAULT if spec.study == "memory" and MEMORY_DEFAULT in spec.arms else spec.arms[0])
    if chosen not in spec.arms:
        raise ConfigError(f"{path}: no arm {quoted(chosen)}; choose from {', '.join(spec.arms)}")
    replies = {(one.case.id, one.reply.place): one for one in result.replies if one.reply.arm == chosen}
    rows = [row for row in result.observations if row.arm == chosen]
    for (case, place), one in replies.items():
        for figure, ending in _ENDS.items():
            value = None if one.reply.text is None else float(one.reply.finish == ending)
            rows.append(Observation(chosen, figure, case, one.case.family, value, place, unscored=one.reply.failure))

    def show(row: Observation) -> tuple[str, str]:
        if (one := replies.get((row.item, row.place.partition("/")[0]))) is None:
            return row.item, f"{row.figure} {row.value:g}"
        lines = [conversation_text(one.reply.said), labelled("reply", one.reply.text or ""), *one.lines()]
        return f"{row.item}, {row.place}", "\n".join(lines)

    own = {"label": f"{model_name(spec.ask.model)}, {chosen}", "study": spec.study, "arm": chosen, "show": show}
    own |= {"judge": result.judge, "failed": result.failed}
    return _gated_run(study, study.signature, rows, study.answers_of(chosen), not spec.is_app, **own)


def _read_evaluation(path: Path) -> GatedRun:
    run = load_run(path)
    scenarios, rows = {scenario.id: scenario for scenario in run.data.split.scenarios}, list[Observation]()
    clusters = clusters_of(scenarios.values())
    for name, one in scenarios.items():
        score, answer = run.item_scores[name], run.answers.get((name, 0))
        at = Observation("", "", name, clusters[name], None)
        for figure in ("s", "lexical", "compliance"):
            value = getattr(score, figure)
            why = "" if value is not None else score.unscored or ""
            rows.append(replace(at, figure=f"{figure}.{one.subtask}", value=value, unscored=why))
        if isinstance(answer, Response):
            ended = {figure: float(answer.finish_reason == ending) for figure, ending in _ENDS.items()}
            rows += [replace(at, figure=figure, value=value) for figure, value in ended.items()]

    def show(row: Observation) -> tuple[str, str]:
        one, answer = scenarios[row.item], run.answers.get((row.item, 0))
        reply = answer.answer if isinstance(answer, Response) else ""
        references = (labelled("reference", text) for text in one.references)
        lines = [conversation_text(one.turns), labelled("reply", reply), *references]
        return f"{row.item}: {row.value:.3f}", "\n".join(lines)

    summary, failed = run.summary, run.summary.counts.unscored if run.summary.incomplete else 0
    own = {"label": summary.model, "judge": summary.signature.protocol.get("judge", ""), "failed": failed}
    return _gated_run(run.data, summary.signature, rows, run.answers.values(), True, show=show, **own)


def _gated_run(
    data: RunData | Study, signature: Signature, rows: Iterable[Observation], answers: Replies, priced: bool, **own: Any
) -> GatedRun:
    """What studies and evaluations have alike, beside their `own` fields; `priced`: what the calls cost is known."""
    folder, values = data.folder, dict[str, list[Observation]]()
    for row in rows:
        values.setdefault(row.figure, []).append(row)
    # What the model's own calls cost, not the judge's; that of a server's or a function's is not known.
    engine = ENGINES.get(signature.subject.get("engine", ""))
    free = 0 if engine is None or engine.local or engine.hosted else None
    paid = sum_totals(logs).usd_committed if (logs := read_store(folder.calls_file).totals().values()) else free
    median, most = latency(one for one in answers if isinstance(one, Response)) or (None, None)
    cost = float(paid) if priced and paid is not None else None
    measures, erased = {COST: cost, "latency_median": median, "latency_95": most}, len(folder.erased())
    items = {item.id: fingerprint_of([item], data.split.personas) for item in data.split.items}
    own |= {"items": items, "measures": measures, "erased": erased}
    return GatedRun(path=folder.path, signature=signature, values=values, **own)


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
