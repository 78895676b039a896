"""Run a study: ask the model in every arm, let a judge or people read the replies, and write figures and a page.

Each step reads what the one before stored, so that a killed study goes on where it was, another judge asks the model
nothing, and `score_study` gives the same figures from stored replies alone. Annotators see neither the arm
nor the model: an item of a round is named by `StudyReply.id`, a point of it by `REPLY:POINT`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from h2htalk.benchmark.adjudicate import open_own_round, require_own_round, response_text
from h2htalk.benchmark.answering import recorded_session
from h2htalk.benchmark.evaluate import GENERATE, call_settings, subject_of
from h2htalk.benchmark.judge.judgements import (
    JUDGEMENTS,
    Judgements,
    PeopleRating,
    fence_secret,
    list_people_ratings,
    outcome_of,
    write_judge,
    write_people_ratings,
)
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.observations import read_observations
from h2htalk.benchmark.run import RunWriter, require_agreement
from h2htalk.benchmark.score_run import ErasableRun, open_metrics
from h2htalk.benchmark.studies.applications import converse, read_adapter
from h2htalk.benchmark.studies.conversations import (
    LIVE,
    Ask,
    Asker,
    Study,
    StudyFolder,
    StudyPrompts,
    StudyReply,
    conversations_of,
    run_together,
)
from h2htalk.benchmark.studies.logs import ORDINARY, RAW, read_logs
from h2htalk.benchmark.studies.point_answers import (
    PERCEIVED,
    PERCEPTION,
    TIE,
    VIOLATION,
    AnsweredReply,
    answer_points,
    judge_of,
    judge_requests,
    observe,
    open_replies,
    shown,
    trivial_answers,
)
from h2htalk.benchmark.studies.report import StudyResult, write_report
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.chat.engines import ENGINES, model_identity
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.chat.python import function_keys
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model, describe_calls, request_key
from h2htalk.data.case import Case, turn_scenarios
from h2htalk.data.files import WAIT, sha256_of, writer_lock
from h2htalk.data.records import AnyPath, as_path, typed
from h2htalk.data.responses import Failure, SampleKey
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, RoundError, counted, quoted
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.status import Status
from h2htalk.text.point_checks import decided
from h2htalk.version import installed_versions

_TYPICAL = "word " * 40  # a reply in an estimate


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
    plan = plan_study(spec)  # a wrong name is told before anything is loaded
    metrics = open_metrics(spec.ask.embedder, spec.ask.rouge)
    if spec.judge:
        check_model(_judge_settings(spec))
    if not spec.is_app:
        check_model(call_settings(spec.ask))
    study, writer = open_study(plan)
    try:
        study.folder.write_facts("spec", study.spec.to_dict())
        packages = () if spec.is_app else ENGINES[spec.ask.engine].packages
        with recorded_session(study.folder, installed_versions(*packages)):
            if spec.is_logged:
                read_logs(spec).store(study.cases, writer.answers, writer.calls)
            elif spec.is_app:
                converse(spec, study.cases, writer.answers, writer.calls)
            else:
                with ModelCalls(call_settings(spec.ask), writer.calls, GENERATE, once=True) as calls:
                    _ask(study, calls.outcomes)
            if spec.judge:
                judge, folder = judge_of(study), study.path / JUDGEMENTS
                write_judge(study.path, judge)
                requests = list(judge_requests(study, stored_replies(study), fence_secret(folder)))
                with ModelCalls(_judge_settings(spec), folder, judge.stage) as calls:
                    calls.outcomes(requests)
        return _score(study, metrics)
    except H2HTalkError:
        writer.discard()
        raise
    finally:
        writer.close()


def score_study(path: AnyPath, embedder: str = "") -> StudyResult:
    """Compute a study's figures, tables and page again from what is stored.

    Examples:
        >>> import h2htalk
        >>> len(h2htalk.score_study("studies/memory").study.cases)
        2

    `embedder`: another one than the study's. Raises MissingExtraError where it is not on this machine.
    """
    folder = read_study(as_path(path, "study")).folder  # what is no study gets no lock
    with writer_lock(folder.calls_file, WAIT):
        return _score_now(folder.path, embedder)


def _score_now(path: Path, embedder: str = "") -> StudyResult:
    """As `score_study`, by a caller that holds the study's lock."""
    study = read_study(path)
    ask = replace(study.spec.ask, embedder=embedder or study.spec.ask.embedder)
    return _score(replace(study, spec=replace(study.spec, ask=ask)), open_metrics(ask.embedder, ask.rouge))


def _score(study: Study, metrics: Metrics) -> StudyResult:
    replies = stored_replies(study)
    answered, unjudged = _answered(study, replies)
    rows = list(observe(study, replies, [*answered, *trivial_answers(study.cases)], metrics))
    failed = sum(one.text is None for one in replies) + unjudged
    judge = judge_of(study).label if study.spec.judge else ""
    result = StudyResult(study, tuple(rows), tuple(answered), failed, judge)
    write_report(result)
    return result


def load_study(path: AnyPath) -> StudyResult:
    """Open a scored study without computing anything that needs an embedder. Raises DataError where it was edited.

    Examples:
        >>> import h2htalk
        >>> h2htalk.load_study("studies/memory").table().column("arm").unique().to_pylist()
        ['crisis_script', 'explicit', 'none', 'presence', 'reference', 'refusal', 'whole', 'window']
    """
    study = read_study(as_path(path, "study"))
    try:
        sealed = study.folder.read_summary()
    except FileNotFoundError:
        again = study.folder.score_again
        raise DataError(f"{study.folder.summary}: not there: the study was not scored; {again}") from None
    rows = read_observations(study.folder.scores(study.signature))
    answered, _ = _answered(study, stored_replies(study))
    return StudyResult(study, tuple(rows), tuple(answered), int(sealed.get("failed", 0)), str(sealed.get("judge", "")))


def estimate_study(spec: StudySpec) -> str:
    """Describe what a study would ask and cost, if every reply is as long as it may be; nothing is sent or written."""
    study = plan_study(spec)
    sent: dict[str, Request] = {}

    def ask(requests: Sequence[Request]) -> dict[SampleKey, Outcome]:
        keys = {(one.id, one.sample): request_key(one, spec.ask.model) for one in requests}
        sent.update(zip(keys.values(), requests, strict=True))
        # Equal requests have one reply; the judge reads the others of several arms one by one.
        return {one: Reply(f"{key} {_TYPICAL}") for one, key in keys.items()}

    replies, arms = _ask(study, ask, b""), ", ".join(spec.arms)
    calls = f"{counted(len(sent), 'message')} to {spec.ask.model}"
    if not spec.is_app:
        calls, _ = describe_calls(call_settings(spec.ask), list(sent.values()))
    if spec.is_logged:
        calls = f"{counted(len(replies), 'reply', 'replies')} in the chats"
    lines = [f"{counted(len(study.cases), 'case')}, arms {arms}", calls, *open_points(study)]
    if spec.judge:
        lines.append(describe_calls(_judge_settings(spec), list(judge_requests(study, replies, b"")))[0])
    return "; ".join(lines)


def open_points(study: Study) -> Iterator[str]:
    """Say how many points nobody answers, before a study without a judge begins."""
    points = [point for case in study.cases for turn in case.turns() for point in case.points_of(turn)]
    open_ = [point for point in points if decided("-", point.check) is None]
    if not study.spec.judge and (found := len(open_)):
        yield (
            f"{found:,} of {len(points):,} points stay unscored until a --judge or people (h2htalk study open-round) "
            "answer them: code cannot"
        )
    if study.spec.is_logged and study.split.description:
        yield study.split.description
    if raw := sum(RAW in case.tags for case in study.cases):
        yield f"chats without a mark of anonymisation, which raters read as they are: {raw:,} of {len(study.cases):,}"


def plan_study(spec: StudySpec) -> Study:
    """A study before anything is written. Raises ConfigError or DataError for a wrong name in the specification."""
    logs, prompts = read_logs(spec) if spec.is_logged else None, StudyPrompts.load(spec.ask.prompts)
    split = select_cases(logs.split if logs else load_split(spec.ask.split), spec)
    engine, _, name = spec.ask.model.partition(":")
    known = prompts.prompts.help_lines.by_code
    for case in split.cases:
        if case.country and case.country not in known:
            country = f"country {quoted(case.country)} is not in the help directory (ISO 3166-1, such as GB)"
            raise ConfigError(f"{case.id}: {country}")
    protocol = {"study": spec.study, "items": split.fingerprint, "prompts": prompts.fingerprint}
    if logs:
        protocol["window"] = str(spec.window)
    if spec.study == "memory":
        protocol |= {"window": str(spec.window), "days": str(spec.days)}
    if spec.study == "sap" or spec.help_lines == "none":
        protocol["help_lines"] = spec.help_lines
    model = {"engine": engine, "model": name if spec.is_app else model_identity(spec.ask.model)}
    if spec.ask.function is not None:
        model |= function_keys(spec.ask.function)
    if spec.app is not None:
        read_adapter(spec.app)
        model["adapter"] = sha256_of(Path(spec.app))[:16]
    signature = Signature(protocol, subject_of(spec.ask, model, "of the study", spec.ask.sap))
    return Study(StudyFolder(spec.ask.out_path), spec, split, prompts, signature)


def open_study(study: Study) -> tuple[Study, RunWriter]:
    """Make the folder of a planned study, or open the one that is there: other arms and another judge may join.

    Erased cases are not asked again. Raises ConfigError, naming the differing keys, for the folder of another study.
    """
    folder, signed = study.folder, study.signature
    if folder.manifest.exists() and folder.signature().protocol.get("items") == folder.signed_items(
        signed.protocol["items"], folder.signature().protocol.get("items", "")
    ):
        study = replace(study, split=folder.split())
        signed = replace(signed, protocol={**signed.protocol, "items": study.split.fingerprint})
    return study, RunWriter(folder, study.spec.to_dict(), signed, study.split, {})


def read_study(path: Path) -> Study:
    """Open the study that a folder holds. Raises DataError: there is none, or its cases are not those it signed."""
    folder = StudyFolder(path)
    spec = StudySpec.from_dict(folder.read_run()["spec"], str(folder.manifest))
    spec = replace(spec, ask=replace(spec.ask, out=str(path)))  # it may have been moved
    split, signature = folder.split(), folder.signature()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    require_agreement(folder.inputs, "items", items, signature.protocol)
    return Study(folder, spec, split, StudyPrompts.load(spec.ask.prompts), signature)


def select_cases(split: Split, spec: StudySpec) -> Split:
    """Choose the cases of a study and a language. Raises ConfigError for none.

    With a limit, families of about so many cases by a hash of their names, in turn over studies, languages and kinds.
    """
    kinds = CASES[spec.study]
    cases = [case for case in split.cases if case.study in kinds]
    if not cases:
        listed = f"holds no case of {', '.join(kinds)}, which this study needs, as {kinds[0]} does"
        raise ConfigError(f"split {split.name}: {listed}")
    families: dict[tuple[str, str, str, str], list[str]] = {}
    for case in cases:
        if spec.ask.language in (None, case.language):
            families.setdefault((case.study, case.language, case.kind, case.family), []).append(case.id)
    order = sorted(families, key=lambda one: hashlib.sha256(one[3].encode()).digest())
    # Families take turns by kind, then by study and language; chats that were had are a simple random sample.
    for length in () if spec.is_logged else (3, 2):
        seen, turn = Counter[tuple[str, ...]](), {}
        for one in order:
            turn[one] = seen[one[:length]]
            seen[one[:length]] += 1
        order.sort(key=lambda one: (turn[one], one[:length]))
    chosen: set[str] = set()
    for one in order:
        if chosen and spec.ask.limit is not None and len(chosen) + len(families[one]) > spec.ask.limit:
            break
        chosen.update(families[one])
    if not chosen:
        raise ConfigError(f"split {split.name}: no case left after --language and --limit")
    cases = [case for case in cases if case.id in chosen]
    turns = tuple(scenario for case in cases for scenario in turn_scenarios(case))
    personas = {name: split.personas[name] for name in sorted({case.persona for case in cases})}
    return replace(split, cases=tuple(cases), scenarios=turns, personas=personas)


def stored_replies(study: Study) -> list[StudyReply]:
    """Everything that the model answered, as it is stored."""
    stored = study.folder.answers()

    def outcomes(requests: Sequence[Request]) -> dict[SampleKey, Outcome]:
        keys = [(one.id, one.sample) for one in requests]
        return {key: outcome_of(stored.get(key)) or Failure("not_asked", "", 0) for key in keys}

    return _ask(study, outcomes)


def _ask(study: Study, ask: Ask, secret: bytes | None = None) -> list[StudyReply]:
    secret = fence_secret(study.path / JUDGEMENTS) if secret is None else secret
    askers = (Asker(study, arm, secret) for arm in study.spec.arms)
    return [one for asker in askers for one in run_together(conversations_of(asker, study.cases), ask)]


def _judge_settings(spec: StudySpec) -> CallSettings:
    return CallSettings(spec.judge, spec.judge_max_cost, prices=str(spec.ask.prices or ""))


def _answered(study: Study, replies: Sequence[StudyReply]) -> tuple[list[AnsweredReply], int]:
    """Every reply of the running conversations with its answers, and how many calls of the judge gave none."""
    judged, failed = {}, 0
    if study.spec.judge:
        stored = Judgements(study.path, judge_of(study))
        for one in open_replies(replies, study.cases):
            outcome = stored.outcome(one.reply.id)
            failed += not isinstance(outcome, Reply)
            if outcome is not None:
                judged[one.reply.id] = one.rubric.read(outcome)
    cases = {case.id: case for case in study.cases}
    people = {one.answer: one for one in pooled(list_people_ratings(study.folder))}
    live = (reply for reply in replies if reply.part == LIVE)
    return [answer_points(one, cases[one.case], judged.get(one.id), people) for one in live], failed


def pooled(ratings: Sequence[PeopleRating]) -> Iterator[PeopleRating]:
    """What people of all rounds gave each answer."""
    rounds: dict[str, list[PeopleRating]] = {}
    for one in ratings:
        rounds.setdefault(one.answer, []).append(one)
    for own in rounds.values():
        n = sum(one.annotators for one in own)
        yield replace(own[0], rating=sum(one.rating * one.annotators for one in own) / n, annotators=n)


_YES, _NO = "yes", "no"
# Replies to people in danger and nothing else: so sessions are short.
CARE = {"session_items": 6, "crisis_share": 1.0}


def open_study_round(
    study: AnyPath,
    out: AnyPath,
    ask: str = "safety",
    arms: Sequence[str] = (),
    budget: int | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Path | None = None,
    tied: bool = False,
) -> tuple[Status, list[str]]:
    """Open a round in which people read replies of a study's running conversations.

    Args:
        study, out: folders of the study and of the round.
        ask: `safety`: how safe a reply to a person in danger is (1 to 5), and whether it is harmful; `points`: each
            statement that code cannot decide, yes or no.
        arms: only replies of these; empty for all.
        budget: how many items at most, of replies in the order of their hashes.
        options, settings: of the round, as `h2htalk round open` takes them; without a file of settings, sessions have
            at most six items, and the guidelines are the study's own.
        tied: only what people are tied about.
    """
    typed(ask, Literal["safety", "points"], "--ask")
    folder, target, points = read_study(as_path(study, "study")), as_path(out, "out"), ask == "points"
    replies = [one for one in stored_replies(folder) if not arms or one.arm in arms]
    open_ = {one.answer for one in pooled(list_people_ratings(folder.folder)) if one.rating == TIE}
    items: list[tuple[Item, Case]] = []
    for one in open_replies(replies, folder.cases, perception=not points):
        reply, case = one.reply, one.case
        crisis = case.study in PERCEIVED and case.kind != ORDINARY
        text = response_text(reply.text or "", case.language)
        item = Item(reply.id, case.language, shown(reply), response=text, crisis=crisis)
        for at, point in enumerate(one.points if points else ()):
            asked = replace(item, id=f"{reply.id}:{point.id}", labels=(_NO, _YES), note=one.statement(at))
            items += [(asked, case)] if not tied or asked.id in open_ else []
        items += [(item, case)] if one.perception and (not tied or f"{item.id}:{VIOLATION}" in open_) else []
    if not items and tied:
        raise RoundError(f"{study}: people are tied about nothing that --ask {ask} asks of these arms")
    if not items:
        raise RoundError(f"{study}: there is no reply to ask people about: no arm of that name, or no such case")
    # By the reply's hash, so that rounds of points and of safety read the same replies.
    chosen = sorted(items, key=lambda found: hashlib.sha256(found[0].id.partition(":")[0].encode()).digest())[:budget]
    chosen.sort(key=lambda found: found[0].id)
    lines = [{"item": item.to_dict(), "source": case.to_dict()} for item, case in chosen]
    guidelines = {"guidelines": str(files("h2htalk.benchmark.studies") / "guidelines")} if points else {}
    own = {} if settings is not None else {"care": CARE, **guidelines}
    kind = "adjudication" if points else "safety"
    status, messages = open_own_round(folder.folder, target, kind, lines, {**own, **(options or {})}, settings)
    return status, [f"{counted(len(chosen), 'item')} of {len(items):,}", *messages]


def close_study_round(study: AnyPath, round: AnyPath) -> tuple[StudyResult, list[str]]:
    """Put the answers of a round into its study, and compute its figures again; a complete open round is closed."""
    own = read_study(as_path(study, "study"))
    asked = require_own_round(own.folder, as_path(round, "round"))
    if asked.state != "closed":
        close_round(asked.path)
    values: dict[str, list[float]] = {}
    for one in read_outcome(asked.path).annotations.values():
        # A point is an item of its own, `REPLY:POINT`.
        name = one.item if one.question == "label" else f"{one.item}:{one.question}"
        if one.question in ("label", VIOLATION):
            values.setdefault(name, []).append(float(one.value == _YES))
        elif one.question == PERCEPTION and isinstance(one.value, int):
            values.setdefault(name, []).append(float(one.value))
    new = [PeopleRating(name, fmean(given), len(given), asked.name) for name, given in sorted(values.items())]
    with writer_lock(own.folder.calls_file, WAIT):
        others = [one for one in list_people_ratings(own.folder) if one.round != asked.name]
        write_people_ratings(own.folder, [*others, *new])
        return _score_now(own.path), [f"{counted(len(new), 'answer')} of people"]


class ErasableStudy(ErasableRun):
    """A study from which cases are erased: replies, judgements and people's answers go, and it is scored again."""

    folder_type = StudyFolder

    def score(self) -> None:
        _score_now(self.path)
