"""Run a study: ask the model in every arm, let a judge or people read the replies, and write figures and a page.

Each step reads what the one before stored, so that a killed study goes on where it was, another judge asks the model
nothing, and `score_study` gives the same figures from stored replies alone.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from h2htalk.benchmark.evaluate import GENERATE, call_settings, subject_of, with_begun_forms
from h2htalk.benchmark.judge.judgements import (
    JUDGEMENTS,
    Judge,
    Judgements,
    PeopleRating,
    ask_in_other_forms,
    begun_forms,
    fence_secret,
    list_people_ratings,
    outcome_of,
)
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.observations import read_observations
from h2htalk.benchmark.planted.check import check_judge
from h2htalk.benchmark.planted.draw import Drawing, draw_all, plant, requests_with_planted
from h2htalk.benchmark.raters import PlantedCheck
from h2htalk.benchmark.run import RunWriter, require_agreement
from h2htalk.benchmark.run_facts import recorded_session
from h2htalk.benchmark.score_run import ErasableRun, open_metrics
from h2htalk.benchmark.studies.applications import converse, read_adapter
from h2htalk.benchmark.studies.conversations import (
    LIVE,
    ArmConversations,
    Ask,
    Study,
    StudyFolder,
    StudyPrompts,
    StudyReply,
    conversations_of,
    run_together,
)
from h2htalk.benchmark.studies.judge_reading import ask_judge
from h2htalk.benchmark.studies.logs import RAW, read_logs
from h2htalk.benchmark.studies.points.judge_requests import judge_of, open_replies
from h2htalk.benchmark.studies.points.observe import observe
from h2htalk.benchmark.studies.points.point_answers import (
    AnsweredReply,
    answer_points,
    trivial_answers,
)
from h2htalk.benchmark.studies.report.study_page import write_report
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.chat.engines import (
    ENGINES,
    ChatOptions,
    engine_names,
    model_identity,
    require_model,
)
from h2htalk.chat.function_chat import function_keys
from h2htalk.chat.prices import dollars_text
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.chat.refused_parameters import with_other_forms
from h2htalk.chat.store.model_calls import (
    CallSettings,
    ModelCalls,
    check_model,
    describe_calls,
    request_key,
)
from h2htalk.chat.wire_options import REQUEST_FORM, forms_of
from h2htalk.data.case import turn_scenarios
from h2htalk.data.files import WAIT, sha256_of, writer_lock
from h2htalk.data.responses import FILTERED_REPLY, Failure, FilterRule, SampleKey
from h2htalk.data.settings import AnyPath, as_path
from h2htalk.data.signature import FILTERED_KEY, Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, quoted
from h2htalk.text.embeddings.embedders import require_embedder
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
    require_study(spec)
    plan = plan_study(spec)  # a wrong name is told before anything is loaded
    metrics = open_metrics(spec.ask.embedder, spec.ask.rouge)
    if spec.judge:
        check_model(_judge_settings(spec))
    if spec.is_app:
        return _run(plan, metrics)
    check_model(call_settings(spec.ask))
    begun = with_begun_forms(spec.ask, plan.folder)

    def run(engine_options: Mapping[str, str]) -> StudyResult:
        ask = replace(spec.ask, engine_options=engine_options)
        planned = plan_study(replace(spec, ask=ask))
        if engine_options != begun.engine_options:
            _adopt_reply_form(planned)
        return _run(planned, metrics)

    return with_other_forms(run, begun.engine_options)


def require_study(spec: StudySpec) -> None:
    """Raise MissingExtraError or ConfigError where a package or a key is missing that a study needs; nothing is
    read."""
    require_embedder(spec.ask.embedder)
    _require_priced_judge(spec)
    if spec.judge:
        require_model(spec.judge)
    if not spec.is_app:
        require_model(spec.ask.model)


def _require_priced_judge(spec: StudySpec) -> None:
    """Raise ConfigError for a limit of money that could stop nothing; stored studies that have one stay readable."""
    if spec.judge_max_cost is None:
        return
    engine = spec.judge.partition(":")[0]
    if engine not in ENGINES or not ENGINES[engine].hosted:
        names = engine_names(" and ", hosted=True)
        raise ConfigError(
            f"--judge-max-cost is for judges of {names} only: no price of {spec.judge or 'no judge'} is known"
        )


def _adopt_reply_form(study: Study) -> None:
    """Let the signature of a study that began say how its replies are asked to follow a schema, where only that is new:
    the first call with a schema comes after others, and no reply to one is stored."""
    folder = study.folder
    if not folder.manifest.exists():
        return
    stored = folder.signature()
    stored_forms = forms_of(stored.subject)
    forms = forms_of(study.signature.subject)
    if forms == {**stored_forms, "response_format": forms.get("response_format")}:
        subject = {**stored.subject, REQUEST_FORM: study.signature.subject[REQUEST_FORM]}
        folder.write_facts("signature", replace(stored, subject=subject).to_dict())


def _run(plan: Study, metrics: Metrics) -> StudyResult:
    """Ask what a planned study lacks, and score it."""
    study, writer = open_study(plan)
    spec = study.spec
    try:
        if spec.judge:
            study = _with_judge(study, begun_forms(study.path, judge_of(study)))
        study.folder.write_facts("spec", study.spec.to_dict())
        packages = () if spec.is_app else ENGINES[spec.ask.engine].packages
        with recorded_session(study.folder, installed_versions(*packages)):
            if spec.is_logged:
                read_logs(spec).store(study.cases, writer.answers, writer.calls)
            elif spec.is_app:
                converse(spec, study.cases, writer.answers, writer.calls)
            else:
                settings = call_settings(spec.ask)
                with ModelCalls(settings, writer.calls, GENERATE, once=True, adapts=False) as calls:
                    _ask(study, calls.outcomes)
            replies = stored_replies(study)
            if spec.judge:
                study = _judge(study, replies)
        return _score(study, replies, metrics)
    except H2HTalkError:
        writer.discard()
        raise
    finally:
        writer.close()


def _with_judge(study: Study, forms: Mapping[str, str]) -> Study:
    """The study with a judge whose requests have these forms."""
    return replace(study, spec=replace(study.spec, judge_options=forms))


def _judge(study: Study, replies: Sequence[StudyReply]) -> Study:
    """Let the judge read what is open; returns the study with the judge that answered."""
    folder = study.path / JUDGEMENTS
    secret = fence_secret(folder)

    def ask(judge: Judge) -> None:
        # Each judge, and each form of its requests, has a draw of its own.
        planted = plant(study, replies, judge)
        requests = list(requests_with_planted(study, replies, planted, secret))
        rubrics = {opened.reply.id: opened.rubric for opened in open_replies(replies, study.cases)}
        rubrics |= {reply.id: reply.rubric for reply in planted}
        spec = _with_judge(study, judge.forms).spec
        with ModelCalls(_judge_settings(spec), folder, judge.stage, adapts=False) as calls:
            ask_judge(calls, requests, Judgements(study.path, judge), rubrics, spec)

    judge = ask_in_other_forms(study.path, judge_of(study), ask, "--judge-option")
    judged = _with_judge(study, judge.forms)
    study.folder.write_facts("spec", judged.spec.to_dict())
    return judged


def score_study(
    path: AnyPath,
    embedder: str = "",
    filtered: FilterRule | None = None,
    prompts: AnyPath | None = None,
    ask_judge: bool = False,
    judge_max_cost: float | None = None,
) -> StudyResult:
    """Compute a study's figures, tables and page again from what is stored.

    Examples:
        >>> import h2htalk
        >>> len(h2htalk.score_study("studies/memory").study.cases)
        2

    `embedder`: another one than the study's. Raises MissingExtraError where it is not on this machine. `filtered`: what
    replies that a provider's filter declined count as from now on; None: as before. `prompts`: the templates that it
    was asked with, where they are not those of this version: without them the sizes of prompts are not known.
    `ask_judge`: the study's judge is asked what it has not answered, planted replies among it; the model is asked
    nothing. `judge_max_cost`: US dollars that judging may cost in all, from now on; None: as before. Raises ConfigError
    for a study without a judge, ModelCallError where the judge cannot be asked.
    """
    if embedder:
        require_embedder(embedder)
    study = read_study(as_path(path, "study"))  # what is no study gets no lock
    folder = study.folder
    if ask_judge:
        study = _with_judge_to_ask(study, judge_max_cost)
    with writer_lock(folder.calls_file, WAIT):
        if ask_judge:
            _judge(study, stored_replies(study))
        if filtered is not None and filtered != study.spec.ask.filtered:
            _write_filter_rule(study, filtered)
        return score_locked(
            folder.path, embedder, None if prompts is None else as_path(prompts, "prompts")
        )


def _with_judge_to_ask(study: Study, max_cost: float | None) -> Study:
    """A stored study whose judge can be asked again, for `max_cost` US dollars in all where that is not None."""
    spec = study.spec
    if not spec.judge:
        raise ConfigError(f"{study.path}: has no judge to ask; its own command takes --judge")
    if max_cost is not None:
        spec = replace(spec, judge_max_cost=max_cost)
        _require_priced_judge(spec)
    require_model(spec.judge)
    check_model(_judge_settings(spec))
    asking = replace(study, spec=spec)
    return _with_judge(asking, begun_forms(study.path, judge_of(asking)))


def _write_filter_rule(study: Study, rule: FilterRule) -> None:
    """Store another rule for filtered replies in the specification and the signature of a study."""
    spec = replace(study.spec, ask=replace(study.spec.ask, filtered=rule))
    signature = replace(study.signature, protocol={**study.signature.protocol, FILTERED_KEY: rule})
    study.folder.write_facts("spec", spec.to_dict())
    study.folder.write_facts("signature", signature.to_dict())


def score_locked(path: Path, embedder: str = "", prompts: Path | None = None) -> StudyResult:
    """As `score_study`, by a caller that holds the study's lock."""
    study = read_study(path, prompts)
    ask = replace(study.spec.ask, embedder=embedder or study.spec.ask.embedder)
    study = replace(study, spec=replace(study.spec, ask=ask))
    return _score(study, stored_replies(study), open_metrics(ask.embedder, ask.rouge))


def _score(study: Study, replies: Sequence[StudyReply], metrics: Metrics) -> StudyResult:
    answered, failed = _answered(study, replies)
    rows = observe(study, replies, [*answered, *trivial_answers(study.cases)], metrics)
    checks = _checks(study)
    failed += sum(reply.text is None and reply.failure != FILTERED_REPLY for reply in replies)
    failed += sum(check.unanswered for check in checks or ())
    judge = judge_of(study).label if study.spec.judge else ""
    result = StudyResult(study, tuple(rows), tuple(answered), failed, judge, checks)
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
        folder = study.folder
        raise DataError(
            f"{folder.summary}: not there: the study was not scored; {folder.score_again}"
        ) from None
    rows = read_observations(study.folder.scores(study.signature))
    answered, _ = _answered(study, stored_replies(study))
    failed = int(sealed.get("failed", 0))
    judge = str(sealed.get("judge", ""))
    return StudyResult(study, tuple(rows), tuple(answered), failed, judge, _checks(study))


def estimate_study(spec: StudySpec) -> str:
    """Describe what a study would ask and cost, if every reply is as long as it may be; nothing is sent or written."""
    study = plan_study(spec)
    sent: dict[str, Request] = {}

    def ask(requests: Sequence[Request]) -> dict[SampleKey, Outcome]:
        outcomes: dict[SampleKey, Outcome] = {}
        for request in requests:
            key = request_key(request, spec.ask.model)
            sent[key] = request
            # Equal requests have one reply; the judge reads the others of several arms one by one.
            outcomes[request.id, request.sample] = Reply(f"{key} {_TYPICAL}")
        return outcomes

    replies = _ask(study, ask, b"")
    arms = ", ".join(spec.arms)
    calls = f"{counted(len(sent), 'message')} to {spec.ask.model}"
    if not spec.is_app:
        calls, _ = describe_calls(call_settings(spec.ask), list(sent.values()))
    if spec.is_logged:
        calls = f"{counted(len(replies), 'reply', 'replies')} in the chats"
    lines = [f"{counted(len(study.cases), 'case')}, arms {arms}", calls, *open_points(study)]
    if spec.judge:
        lines.append(_describe_judging(study, replies))
    return "; ".join(lines)


def _describe_judging(study: Study, replies: Sequence[StudyReply]) -> str:
    """The calls of the judge and their cost, and how much of both planted replies take."""
    settings = _judge_settings(study.spec)
    planted = draw_all(Drawing(study, replies), "estimate")
    requests = requests_with_planted(study, replies, planted, b"")
    names = {reply.id for reply in planted}
    share = f"{100 * len(planted) / max(1, len(requests)):.0f} %"
    _, cost = describe_calls(settings, [request for request in requests if request.id in names])
    if cost:
        share += f", about {dollars_text(cost)} US dollars"
    languages = Counter(reply.language for reply in planted)
    if len(languages) > 1:
        numbers = [f"{number} {language}" for language, number in sorted(languages.items())]
        share += f"; {', '.join(numbers)}"
    number = counted(len(planted), "planted reply", "planted replies")
    return f"{describe_calls(settings, requests)[0]}, of which {number} ({share})"


def open_points(study: Study) -> Iterator[str]:
    """Say how many points nobody answers, before a study without a judge begins."""
    points = 0
    undecided = 0
    for case in study.cases:
        for point in chain.from_iterable(map(case.points_of, case.turns())):
            points += 1
            undecided += decided("-", point.check) is None
    if not study.spec.judge and undecided:
        yield (
            f"{undecided:,} of {points:,} points stay unscored until a --judge or people (h2htalk study open-round) "
            "answer them: code cannot"
        )
    if study.spec.is_logged and study.split.description:
        yield study.split.description
    raw = sum(RAW in case.tags for case in study.cases)
    if raw:
        yield f"chats without a mark of anonymisation, which raters read as they are: {raw:,} of {len(study.cases):,}"


def plan_study(spec: StudySpec) -> Study:
    """A study before anything is written. Raises ConfigError or DataError for a wrong name in the specification."""
    logs = read_logs(spec) if spec.is_logged else None
    prompts = StudyPrompts.load(spec.ask.prompts)
    split = select_cases(logs.split if logs else load_split(spec.ask.split), spec)
    engine, _, name = spec.ask.model.partition(":")
    countries = prompts.prompts.help_lines.by_code
    for case in split.cases:
        if case.country and case.country not in countries:
            country = f"country {quoted(case.country)} is not in the help directory (ISO 3166-1, such as GB)"
            raise ConfigError(f"{case.id}: {country}")
    protocol = {"study": spec.study, "items": split.fingerprint, "prompts": prompts.fingerprint}
    protocol[FILTERED_KEY] = spec.ask.filtered
    if logs:
        protocol["window"] = str(spec.window)
    if spec.study == "memory":
        protocol |= {"window": str(spec.window), "days": str(spec.days)}
    if spec.study == "sap" or spec.help_lines == "none":
        protocol["help_lines"] = spec.help_lines
    model = {"engine": engine, "model": name if spec.is_app else model_identity(spec.ask.model)}
    if spec.ask.function is not None:
        model |= function_keys(spec.ask.function)
    if engine in ENGINES:
        model |= ENGINES[engine].form_subject(spec.ask.engine_options)
    if spec.app is not None:
        read_adapter(spec.app)
        model["adapter"] = sha256_of(Path(spec.app))[:16]
    signature = Signature(protocol, subject_of(spec.ask, model, "of the study", spec.ask.sap))
    return Study(StudyFolder(spec.ask.out_path), spec, split, prompts, signature)


def open_study(study: Study) -> tuple[Study, RunWriter]:
    """Make the folder of a planned study, or open the one that is there: other arms and another judge may join.

    Erased cases are not asked again. Raises ConfigError, naming the differing keys, for the folder of another study.
    """
    folder = study.folder
    signed = study.signature
    if folder.manifest.exists() and folder.signature().protocol.get("items") == folder.signed_items(
        signed.protocol["items"], folder.signature().protocol.get("items", "")
    ):
        study = replace(study, split=folder.split())
        signed = replace(signed, protocol={**signed.protocol, "items": study.split.fingerprint})
    return study, RunWriter(folder, study.spec.to_dict(), signed, study.split, {})


def read_study(path: Path, prompts: Path | None = None) -> Study:
    """Open the study that a folder holds.

    `prompts`: the templates that it was asked with, where they are not those of this version. A folder that only the
    study names is not read: the study may be somebody else's. Raises DataError: there is no study, or its cases are not
    those it signed; ConfigError: it was asked with other prompts.
    """
    folder = StudyFolder(path)
    spec = StudySpec.from_dict(folder.read_run()["spec"], str(folder.manifest))
    spec = replace(spec, ask=replace(spec.ask, out=str(path)))  # it may have been moved
    split = folder.split()
    signature = folder.signature()
    items = folder.signed_items(split.fingerprint, signature.protocol.get("items", ""))
    require_agreement(folder.inputs, "items", items, signature.protocol)
    templates = StudyPrompts.load(prompts)
    is_signed = templates.fingerprint == signature.protocol.get("prompts")
    if prompts is not None and not is_signed:
        raise ConfigError(
            f"--prompts {prompts}: not the prompts that {path} was asked with, which its signature names"
        )
    # Else they are not those of an earlier version, or of a folder that is not named here.
    templates = replace(templates, are_known=is_signed)
    return Study(folder, spec, split, templates, signature)


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
            key = (case.study, case.language, case.kind, case.family)
            families.setdefault(key, []).append(case.id)
    order = sorted(families, key=lambda family: hashlib.sha256(family[3].encode()).digest())
    # Families take turns by kind, then by study and language; chats that were had are a simple random sample.
    for length in () if spec.is_logged else (3, 2):
        turns = Counter[tuple[str, ...]]()
        ranks = {}
        for family in order:
            group = family[:length]
            ranks[family] = (turns[group], group)
            turns[group] += 1
        order.sort(key=ranks.__getitem__)
    chosen: set[str] = set()
    for family in order:
        size = len(chosen) + len(families[family])
        if chosen and spec.ask.limit is not None and size > spec.ask.limit:
            break
        chosen.update(families[family])
    if not chosen:
        raise ConfigError(f"split {split.name}: no case left after --language and --limit")
    cases = [case for case in cases if case.id in chosen]
    scenarios = tuple(chain.from_iterable(map(turn_scenarios, cases)))
    names = sorted({case.persona for case in cases})
    personas = {name: split.personas[name] for name in names}
    return replace(split, cases=tuple(cases), scenarios=scenarios, personas=personas)


def stored_replies(study: Study) -> list[StudyReply]:
    """Return everything that the model answered, as it is stored; filtered replies count as the study says."""
    stored = study.folder.answers()

    def outcomes(requests: Sequence[Request]) -> dict[SampleKey, Outcome]:
        keys = [(request.id, request.sample) for request in requests]
        return {key: outcome_of(stored.get(key)) or Failure("not_asked", "", 0) for key in keys}

    rule = study.spec.ask.filtered
    return [reply.counted(rule) for reply in _ask(study, outcomes)]


def _ask(study: Study, ask: Ask, secret: bytes | None = None) -> list[StudyReply]:
    if secret is None:
        secret = fence_secret(study.path / JUDGEMENTS)
    replies = []
    for arm in study.spec.arms:
        conversations = conversations_of(ArmConversations(study, arm, secret), study.cases)
        replies += run_together(conversations, ask)
    return replies


def _judge_settings(spec: StudySpec) -> CallSettings:
    options = ChatOptions(engine_options=spec.judge_options)
    return CallSettings(
        spec.judge, spec.judge_max_cost, prices=str(spec.ask.prices or ""), options=options
    )


def _answered(study: Study, replies: Sequence[StudyReply]) -> tuple[list[AnsweredReply], int]:
    """Every reply of the running conversations with its answers, and how many calls of the judge gave none."""
    judgements = {}
    failed = 0
    if study.spec.judge:
        stored = Judgements(study.path, judge_of(study))
        for opened in open_replies(replies, study.cases):
            outcome = stored.outcome(opened.reply.id)
            failed += not isinstance(outcome, Reply)
            if outcome is not None:
                judgements[opened.reply.id] = opened.rubric.read(outcome)
    cases = {case.id: case for case in study.cases}
    people = {rating.answer: rating for rating in pooled(list_people_ratings(study.folder))}
    answered = []
    for reply in replies:
        if reply.part == LIVE:
            judgement = judgements.get(reply.id)
            answered.append(answer_points(reply, cases[reply.case], judgement, people))
    return answered, failed


def _checks(study: Study) -> tuple[PlantedCheck, ...] | None:
    """What the planted replies show of the judge; None in a study without one, or of an earlier version."""
    return check_judge(study, judge_of(study)) if study.spec.judge else None


def pooled(ratings: Sequence[PeopleRating]) -> Iterator[PeopleRating]:
    """Yield what people of all rounds gave each answer."""
    ratings_by_answer: dict[str, list[PeopleRating]] = {}
    for rating in ratings:
        ratings_by_answer.setdefault(rating.answer, []).append(rating)
    for of_rounds in ratings_by_answer.values():
        annotators = sum(rating.annotators for rating in of_rounds)
        total = sum(rating.rating * rating.annotators for rating in of_rounds)
        yield replace(of_rounds[0], rating=total / annotators, annotators=annotators)


class ErasableStudy(ErasableRun):
    """A study from which cases are erased: replies, judgements and people's answers go, and it is scored again."""

    folder_type = StudyFolder

    def score(self) -> Iterator[str]:
        score_locked(self.path)
        yield from ()
