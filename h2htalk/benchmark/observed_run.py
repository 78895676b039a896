"""A run or a study as observations: its values by figure, who answered them, and what is behind each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from h2htalk.benchmark.observations import Observation, is_answered
from h2htalk.benchmark.raters import PlantedCheck, Raters, raters_of
from h2htalk.benchmark.run import RunInputs, load_run
from h2htalk.benchmark.run_facts import latency
from h2htalk.benchmark.statistics.averages import clusters_of
from h2htalk.benchmark.studies.conversations import Study, StudyFolder
from h2htalk.benchmark.studies.judge_agreement import Pair, answered_pairs
from h2htalk.benchmark.studies.run_study import load_study
from h2htalk.chat.engines import ENGINES, model_name
from h2htalk.chat.prices import sum_totals
from h2htalk.chat.store.call_store import read_store
from h2htalk.data.replies.finish_reasons import CUT, FILTERED, REFUSAL, read_finish_reason
from h2htalk.data.responses import FailedResponse, Response
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import conversation_text, labelled
from h2htalk.data.signature import Signature
from h2htalk.data.splits import fingerprint_of
from h2htalk.errors import ConfigError, quoted

# Why a reply ended, by figure. A filtered reply that counts is a refusal.
_ENDINGS = {"refused": frozenset({REFUSAL, FILTERED}), "cut": CUT}
MEMORY_DEFAULT = "whole"  # the arm of a study of memory that is read where none is named
COST = "cost"
# Figures of each study that are its result: what a gate holds and a comparison compares by default.
MAIN_FIGURES: Mapping[str, tuple[str, ...]] = {
    "sap": ("violation", "perception", "must_not.invent_help_line", "over_refusal"),
    "logs": ("violation", "perception"),
    "instructions": ("points", "need_met"),
    "memory": ("must.callback", "must_not.invented", "must_not.corrected", "must_not.forgotten"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRun:
    """The observations of a run or of one arm of a study.

    Attributes:
        values: figure -> its observations.
        show: gives the title and the text of what is behind an observation.
        items: item -> the fingerprint of what was asked.
        study, arm: empty for an evaluation.
        planted: how the judge was checked; None where it was not.
        calibration: language -> the points that both the judge and people answered.
        measures: a measure of the whole run -> its value; None where it is not known.
        failed: the number of calls without an answer.
    """

    path: Path
    label: str
    signature: Signature
    values: Mapping[str, Sequence[Observation]]
    show: Callable[[Observation], tuple[str, str]]
    items: Mapping[str, str] = field(default_factory=dict)
    erased: int = 0
    study: str = ""
    arm: str = ""
    judge: str = ""
    planted: tuple[PlantedCheck, ...] | None = None
    calibration: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    measures: Mapping[str, float | None] = field(default_factory=dict)
    failed: int = 0

    def raters(self, figure: str) -> Raters | None:
        """Who answered the values of a figure; None for a computed figure such as `tokens`."""
        if not is_answered(figure):
            return None
        arms = (self.arm,) if self.arm else ()
        return raters_of(self.values.get(figure, ()), self.judge, self.planted, arms)


def read_observed_run(path: Path, arm: str) -> ObservedRun:
    """Read a scored study or evaluation; `arm`: of a study, its first (of memory `whole`) where empty."""
    return _read_study(path, arm) if StudyFolder(path).manifest.exists() else _read_evaluation(path)


def _read_study(path: Path, arm: str) -> ObservedRun:
    result = load_study(path)
    study = result.study
    spec = study.spec
    default = spec.arms[0]
    if spec.study == "memory" and MEMORY_DEFAULT in spec.arms:
        default = MEMORY_DEFAULT
    chosen = arm or default
    if chosen not in spec.arms:
        raise ConfigError(f"{path}: no arm {quoted(chosen)}; choose from {', '.join(spec.arms)}")

    rows = [row for row in result.observations if row.arm == chosen]
    replies = {}
    for answered in result.replies:
        if answered.reply.arm == chosen:
            replies[answered.case.id, answered.reply.place] = answered
    for (case_id, place), answered in replies.items():
        reply = answered.reply
        for figure, reasons in _ENDINGS.items():
            value = None
            if reply.text is not None:
                value = float(read_finish_reason(reply.finish) in reasons)
            row = Observation(
                arm=chosen,
                figure=figure,
                item=case_id,
                cluster=answered.case.family,
                value=value,
                place=place,
                unscored=reply.failure,
            )
            rows.append(row)

    def show(row: Observation) -> tuple[str, str]:
        turn_place, _, _ = row.place.partition("/")
        answered = replies.get((row.item, turn_place))
        if answered is None:
            return row.item, f"{row.figure} {row.value:g}"
        lines = [
            conversation_text(answered.reply.said),
            labelled("reply", answered.reply.text or ""),
            *answered.lines(),
        ]
        return f"{row.item}, {row.place}", "\n".join(lines)

    answers = study.answers_of(chosen)
    return ObservedRun(
        path=study.folder.path,
        label=f"{model_name(spec.ask.model)}, {chosen}",
        signature=study.signature,
        values=_by_figure(rows),
        show=show,
        items=_item_fingerprints(study),
        erased=len(study.folder.erased()),
        study=spec.study,
        arm=chosen,
        judge=result.judge,
        planted=result.planted,
        calibration=answered_pairs(result.replies),
        # What an application's own server costs is not known here.
        measures=_measures(study.folder, study.signature, answers, is_priced=not spec.is_app),
        failed=result.failed,
    )


def _read_evaluation(path: Path) -> ObservedRun:
    run = load_run(path)
    scenarios = {scenario.id: scenario for scenario in run.data.split.scenarios}
    clusters = clusters_of(scenarios.values())
    rows: list[Observation] = []
    for item, scenario in scenarios.items():
        score = run.item_scores[item]
        observed = Observation(arm="", figure="", item=item, cluster=clusters[item], value=None)
        for figure in ("s", "lexical", "compliance"):
            value = getattr(score, figure)
            unscored = "" if value is not None else score.unscored or ""
            rows.append(
                replace(
                    observed,
                    figure=f"{figure}.{scenario.subtask}",
                    value=value,
                    unscored=unscored,
                )
            )
        answer = run.counted.get((item, 0))
        if isinstance(answer, Response):
            reason = read_finish_reason(answer.finish_reason)
            for figure, reasons in _ENDINGS.items():
                rows.append(replace(observed, figure=figure, value=float(reason in reasons)))

    def show(row: Observation) -> tuple[str, str]:
        scenario = scenarios[row.item]
        answer = run.answers.get((row.item, 0))
        reply = answer.answer if isinstance(answer, Response) else ""
        references = [labelled("reference", text) for text in scenario.references]
        lines = [conversation_text(scenario.turns), labelled("reply", reply), *references]
        return f"{row.item}: {row.value:.3f}", "\n".join(lines)

    folder = run.data.folder
    summary = run.summary
    answers = run.answers.values()
    return ObservedRun(
        path=folder.path,
        label=summary.model,
        signature=summary.signature,
        values=_by_figure(rows),
        show=show,
        items=_item_fingerprints(run.data),
        erased=len(folder.erased()),
        judge=summary.signature.protocol.get("judge", ""),
        measures=_measures(folder, summary.signature, answers, is_priced=True),
        failed=summary.counts.unscored if summary.incomplete else 0,
    )


def _by_figure(rows: Iterable[Observation]) -> dict[str, list[Observation]]:
    values = defaultdict[str, list[Observation]](list)
    for row in rows:
        values[row.figure].append(row)
    return dict(values)


def _item_fingerprints(data: RunInputs | Study) -> dict[str, str]:
    return {item.id: fingerprint_of([item], data.split.personas) for item in data.split.items}


def _measures(
    folder: RunFolder,
    signature: Signature,
    answers: Iterable[Response | FailedResponse],
    is_priced: bool,
) -> dict[str, float | None]:
    """Return the cost of the model's own calls, without the judge's, and how long they took."""
    engine = ENGINES.get(signature.subject.get("engine", ""))
    totals = read_store(folder.calls_file).totals().values()
    cost: float | None = None
    if is_priced and totals:
        dollars = sum_totals(totals).usd_committed
        cost = None if dollars is None else float(dollars)
    elif is_priced and (engine is None or engine.local or engine.hosted):
        cost = 0.0  # what the calls of a server or a function cost is not known
    seconds = latency(answer for answer in answers if isinstance(answer, Response))
    median, percentile_95 = seconds or (None, None)
    return {COST: cost, "latency_median": median, "latency_95": percentile_95}
