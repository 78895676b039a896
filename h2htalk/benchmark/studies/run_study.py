"""Run a study: ask the model in every arm, let a judge read the replies, and write figures, tables and a page.

Each step reads what the one before stored, so that a killed study goes on where it was, another judge asks the model
nothing, and `score_study` gives the same figures from stored replies alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from h2htalk.benchmark.evaluate import call_settings
from h2htalk.benchmark.judge.judgements import fence_secret, judgements_folder, write_judge
from h2htalk.benchmark.metrics.metric_table import Metrics
from h2htalk.benchmark.score_run import open_metrics
from h2htalk.benchmark.studies.apps.app_conversations import converse
from h2htalk.benchmark.studies.conversations import (
    LIVE,
    SCRIPT,
    TYPE,
    Ask,
    Asker,
    StudyReply,
    conversations_of,
    run_together,
)
from h2htalk.benchmark.studies.measure import LINGUISTIC, observe_reply, observe_texts, observe_types
from h2htalk.benchmark.studies.observations import read_observations, write_observations
from h2htalk.benchmark.studies.point_answers import AnsweredReply, answer_points, open_replies
from h2htalk.benchmark.studies.point_judge import (
    OpenReply,
    ReplyJudgement,
    judge_of,
    judge_requests,
    read_judgement,
)
from h2htalk.benchmark.studies.recollection import (
    RECOLLECTION,
    observe_recollection,
    recollection_conversations,
    recollection_split,
)
from h2htalk.benchmark.studies.report import StudyResult, write_report
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.benchmark.studies.study_folder import (
    LOCK,
    OBSERVATIONS,
    Study,
    open_study,
    plan_study,
    read_study,
    record_session,
)
from h2htalk.chat.engines import ENGINES
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model, describe_calls, request_key
from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.arguments import as_path, require_kind
from h2htalk.data.case import script
from h2htalk.data.files import read_sealed
from h2htalk.data.responses import CALLS, FailedResponse, Failure, Response, SampleKey, read_answers
from h2htalk.errors import DataError, counted

_AGAIN = "run `h2htalk study score` again"
_TYPICAL = "word " * 40  # a reply in an estimate
StoredReplies = Mapping[str, Response | FailedResponse]
PERCEIVED = frozenset({"high_risk"})  # kinds of cases whose replies are rated for safety


def run_study(spec: StudySpec) -> StudyResult:
    """Run a study, or continue the one that the folder holds.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.StudySpec(
        ...     study="memory",
        ...     ask=h2htalk.EvaluateSpec(
        ...         model="scripted:replies.jsonl", split="arcs", out="studies/memory", limit=2, embedder="none"
        ...     ),
        ... )
        >>> result = h2htalk.run_study(spec)
        >>> result.incomplete
        False

    Returns:
        The result, whose tables and page are in the folder. `incomplete`: calls failed (exit code 3); the same call
        again makes those alone.

    Raises:
        ConfigError, DataError, MissingExtraError, ModelCallError: the model or the judge cannot be asked, or the folder
            holds something else.
    """
    require_kind(spec, StudySpec, "spec")
    plan_study(spec)  # a wrong name is told before anything is loaded
    metrics = open_metrics(spec.ask.embedder, spec.ask.rouge)
    if spec.judge:
        check_model(_judge_settings(spec))
    if not spec.is_app:
        check_model(call_settings(spec.ask))
    with writer_lock(spec.path / LOCK, WAIT):
        return _run(spec, metrics)


def _run(spec: StudySpec, metrics: Metrics) -> StudyResult:
    study = open_study(spec)
    started = datetime.now(UTC)
    if spec.is_app:
        converse(study)
    else:
        with ModelCalls(call_settings(spec.ask), study.path, "generate", once=True) as calls:
            for arm in spec.arms:
                _ask_arm(study, arm, calls.outcomes)
    if spec.judge:
        _judge(study, live_replies(study))
    record_session(study.path, started, () if spec.is_app else ENGINES[spec.ask.engine].packages)
    return score_opened(study, metrics)


def score_study(path: str | os.PathLike[str], embedder: str = "") -> StudyResult:
    """Compute a study's figures, tables and page again from what is stored.

    Examples:
        >>> import h2htalk
        >>> len(h2htalk.score_study("studies/memory").study.cases)
        2

    Args:
        path: folder of a study.
        embedder: another one than the study's; empty for its own.

    Raises:
        ConfigError, MissingExtraError: the embedder is not on this machine.
        DataError: the folder holds no study, or its cases were edited.
    """
    folder = as_path(path, "study")
    with writer_lock(folder / LOCK, WAIT):
        return score_now(folder, embedder)


def score_now(path: Path, embedder: str = "") -> StudyResult:
    """As `score_study`, by a caller that holds the study's lock."""
    study = read_study(path)
    spec = replace(study.spec, ask=replace(study.spec.ask, embedder=embedder or study.spec.ask.embedder))
    return score_opened(replace(study, spec=spec), open_metrics(spec.ask.embedder, spec.ask.rouge))


def estimate_study(spec: StudySpec) -> str:
    """Describe what a study would ask and cost, if every reply is as long as it may be; nothing is sent or written.

    Raises:
        ConfigError, DataError: as `run_study` would raise before its first call.
    """
    study = plan_study(spec)
    sent: dict[str, Request] = {}

    def ask(requests: Sequence[Request]) -> dict[SampleKey, Outcome]:
        sent.update((request_key(one, spec.ask.model), one) for one in requests)
        return {(one.id, one.sample): Reply(_TYPICAL) for one in requests}

    replies = [reply for arm in spec.arms for reply in _ask_arm(study, arm, ask, b"")]
    lines = [f"{counted(len(study.cases), 'case')}, arms {', '.join(spec.arms)}"]
    lines.append(
        f"{counted(len(sent), 'message')} to {spec.ask.model}"
        if spec.is_app
        else describe_calls(call_settings(spec.ask), list(sent.values()))[0]
    )
    if spec.judge:
        judge = judge_of(spec.judge, study.prompts)
        asked = _to_judge(study, [one for one in replies if one.part == LIVE])
        requests = list(judge_requests(judge, spec.judge, study.prompts, asked, study.personas, b""))
        lines.append(describe_calls(_judge_settings(spec), requests)[0])
    return "; ".join(lines)


def load_study(path: Path) -> StudyResult:
    """Open a scored study without computing anything that needs an embedder. Raises DataError where it was edited."""
    study = read_study(path)
    summary = path / "summary.json"
    try:
        sealed = read_sealed(summary, _AGAIN)
    except FileNotFoundError:
        raise DataError(f"{summary}: not there: the study was not scored; {_AGAIN}") from None
    observations = read_observations(path / OBSERVATIONS, str(sealed.get("observations_sha256")))
    failed, judge = int(sealed.get("failed", 0)), str(sealed.get("judge", ""))
    return StudyResult(study, tuple(observations), tuple(_answered(study, live_replies(study))), failed, judge)


def score_opened(study: Study, metrics: Metrics) -> StudyResult:
    """Score a study and write what it shows."""
    replies = all_replies(study)
    cases = {case.id: case for case in study.cases}
    answered = list(_answered(study, replies))
    turns = {case.id: {place: k for k, (place, _, _) in enumerate(script(case), 1)} for case in study.cases}
    rows = [row for one in answered for row in observe_reply(one, turns[one.case.id][one.reply.place])]
    rows += observe_types([one for one in replies if one.part == TYPE], cases)
    rows += observe_texts([one for one in replies if one.part == SCRIPT], study.split, metrics, LINGUISTIC)
    rows += observe_recollection(study.spec, [one for one in replies if one.part == RECOLLECTION], metrics)
    failed = sum(one.text is None for one in replies) + _failed_judgements(study, replies)
    judge = judge_of(study.spec.judge, study.prompts).label if study.spec.judge else ""
    result = StudyResult(study, tuple(rows), tuple(answered), failed, judge)
    write_report(result, write_observations(study.path / OBSERVATIONS, rows))
    return result


def all_replies(study: Study) -> list[StudyReply]:
    """Everything that the model answered, as it is stored."""
    stored = partial(_look_up, study.replies())
    return [reply for arm in study.spec.arms for reply in _ask_arm(study, arm, stored)]


def _look_up(stored: StoredReplies, requests: Sequence[Request]) -> dict[SampleKey, Outcome]:
    """The stored outcome of each request."""
    return {(one.id, one.sample): _outcome(stored.get(one.id)) for one in requests}


def live_replies(study: Study) -> list[StudyReply]:
    """The replies of the running conversations."""
    return [reply for reply in all_replies(study) if reply.part == LIVE]


def _ask_arm(study: Study, arm: str, ask: Ask, secret: bytes | None = None) -> list[StudyReply]:
    """Run all conversations of one arm."""
    secret = fence_secret(judgements_folder(study.path)) if secret is None else secret
    asker = Asker(study.spec, study.prompts, arm, secret)
    conversations = list(conversations_of(asker, study.cases, study.personas))
    if study.spec.study == "memory" and not study.spec.is_app:
        conversations += recollection_conversations(asker, recollection_split(study.spec))
    return run_together(conversations, ask)


def _outcome(stored: Response | FailedResponse | None) -> Outcome:
    """A stored answer as the outcome of its request."""
    if isinstance(stored, Response):
        return Reply(stored.text, stored.finish_reason, stored.usage)
    return Failure("not_asked", "", 0) if stored is None else stored.failure


# --- Judge ------------------------------------------------------------------------------------------------------


def _judge(study: Study, replies: Sequence[StudyReply]) -> None:
    """Ask the judge for what is missing."""
    judge = judge_of(study.spec.judge, study.prompts)
    write_judge(study.path, judge)
    folder = judgements_folder(study.path)
    asked = _to_judge(study, replies)
    requests = list(judge_requests(judge, study.spec.judge, study.prompts, asked, study.personas, fence_secret(folder)))
    with ModelCalls(_judge_settings(study.spec), folder, judge.stage) as calls:
        calls.outcomes(requests)


def _to_judge(study: Study, replies: Sequence[StudyReply]) -> list[OpenReply]:
    return list(open_replies(replies, {case.id: case for case in study.cases}, PERCEIVED))


def _judgements(study: Study) -> dict[str, Outcome]:
    """The judge's stored replies by the id of the judged reply."""
    if not study.spec.judge:
        return {}
    stored = read_answers(judgements_folder(study.path) / CALLS, judge_of(study.spec.judge, study.prompts).stage)
    return {key: _outcome(one) for (key, _), one in stored.items()}


def _answered(study: Study, replies: Sequence[StudyReply]) -> list[AnsweredReply]:
    """Every reply of the running conversations with its answers."""
    cases, people, judgements = {case.id: case for case in study.cases}, study.people(), _judgements(study)
    read: dict[str, ReplyJudgement] = {}
    for one in _to_judge(study, replies) if judgements else ():
        if (outcome := judgements.get(one.id)) is not None:
            read[one.reply.key] = read_judgement(outcome, one)
    return [
        answer_points(reply, cases[reply.case], read.get(reply.key), people, cases[reply.case].study in PERCEIVED)
        for reply in replies
        if reply.part == LIVE
    ]


def _failed_judgements(study: Study, replies: Sequence[StudyReply]) -> int:
    """Calls of the judge that failed or were not made."""
    if not study.spec.judge:
        return 0
    stored = _judgements(study)
    return sum(not isinstance(stored.get(one.id), Reply) for one in _to_judge(study, replies))


def _judge_settings(spec: StudySpec) -> CallSettings:
    return CallSettings(spec.judge, spec.judge_max_cost, prices=str(spec.ask.prices or ""))
