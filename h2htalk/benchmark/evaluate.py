"""Evaluate a model: a specification in, a run folder and its summary out; `--dry-run` says what it would cost.

Everything that can fail is opened first, so that a wrong name costs nothing. Then the model is asked for what the run
still lacks, each answer is stored as it arrives, and the run is scored (`score_run.score_run_data`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from h2htalk.benchmark.baselines import NEEDS_REFERENCES, find_baseline, write_baselines
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.prompts.prompt_set import PromptOf, PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.benchmark.report.cost_tables import totals_text
from h2htalk.benchmark.run import RunInputs, RunWriter, read_run_data, require_unedited
from h2htalk.benchmark.run_facts import read_sessions, recorded_session
from h2htalk.benchmark.score_run import metric_keys, open_metrics, score_run_data, stored_summary
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import Summary
from h2htalk.chat.engines import ENGINES, ChatOptions, parse_model, require_model
from h2htalk.chat.prices import Totals, add, dollars_text, prompt_tokens, rough_tokens
from h2htalk.chat.protocol import Bound, Chat, Outcome, Request, Sampling, request_seed
from h2htalk.chat.refused_parameters import with_other_forms
from h2htalk.chat.store.call_store import CallStore, read_costs, read_store
from h2htalk.chat.store.model_calls import CallSettings
from h2htalk.chat.store.stage_calls import StageCalls, require_no_jobs
from h2htalk.chat.wire_options import SAMPLING, forms_of, sampling_left_out
from h2htalk.data.links import URL
from h2htalk.data.replies.finish_reasons import is_cut
from h2htalk.data.replies.reasoning import strip_reasoning
from h2htalk.data.responses import Answers, Failure, Response, SampleKey, Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split, load_split
from h2htalk.data.subtasks import SUBTASKS, in_table_order
from h2htalk.errors import ConfigError, H2HTalkError, PausedError
from h2htalk.progress import Progress
from h2htalk.text.embeddings.embedders import check_embedder, require_embedder
from h2htalk.version import installed_versions

GENERATE = "generate"  # the stage of a run's answers in its call store
STARVED_REPLIES = 8  # after so many empty replies the run stops: the others, which may cost money, would be empty too
MODELS_OWN = "model's own"  # in a signature: the sampling of a model whose API takes none


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """An evaluation before the model is asked: the split, whole and as selected, and the prompts."""

    spec: EvaluateSpec
    full_split: Split
    split: Split
    prompts: PromptSet
    sap: Sap
    prompt_of: PromptOf

    def with_forms(self, engine_options: Mapping[str, str]) -> EvaluationPlan:
        """The plan with other engine options."""
        return replace(self, spec=replace(self.spec, engine_options=engine_options))


def make_plan(spec: EvaluateSpec) -> EvaluationPlan:
    """Load the split and the prompts. Raises ConfigError or DataError for a wrong name in the specification."""
    engine, _, name = spec.model.partition(":")
    sap = Sap.parse(spec.sap)
    full_split = load_split(spec.split)
    if engine != "baseline":
        parse_model(spec.model, "baseline")
    else:
        find_baseline(name)
        if spec.samples > 1:
            raise ConfigError(f"{spec.model} has one answer an item; leave out --samples")
        if name in NEEDS_REFERENCES and not all(
            scenario.references for scenario in full_split.scenarios
        ):
            raise ConfigError(
                f"{spec.model} answers with references, and those of {full_split.name} are private"
            )
    split = full_split.select(spec.language, spec.subtasks, spec.limit)
    prompts = PromptSet.load(Path(spec.prompts) if spec.prompts else None)
    return EvaluationPlan(spec, full_split, split, prompts, sap, prompts.prompt_of(split, sap))


def evaluate(spec: EvaluateSpec) -> Summary:
    """Evaluate a model on a split, or continue the run that the folder holds already.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.EvaluateSpec(
        ...     model="baseline:constant", split="mini", out="runs/constant", limit=22, embedder="none"
        ... )
        >>> summary = h2htalk.evaluate(spec)
        >>> summary.counts.scored
        22

    Returns:
        The summary, which is also in the run folder. `summary.incomplete`: items are unscored (exit code 3); the same
        call again asks for those alone, and scores a finished run no more.

    Raises:
        ConfigError, DataError, MissingExtraError, ModelCallError: the model cannot be asked, or not any further. Where
            it stops answering after some answers, those are scored, and a warning says that the run paused.
    """
    if URL in str(spec.out):
        raise ConfigError(
            f"--out {spec.out}: a run lies in a folder here; storage is for attempts at a --shard"
        )
    require_model(spec.model, "baseline")
    require_embedder(spec.embedder)
    spec = with_begun_forms(spec, RunFolder(spec.out_path))
    plan = make_plan(spec)
    metrics = open_metrics(spec.embedder, spec.rouge, spec.contracts, spec.filtered)
    engine, _, name = spec.model.partition(":")
    if engine == "baseline":
        return _evaluate(
            plan, metrics, {"engine": engine, "model": name}, partial(_ask_baseline, plan, name)
        )
    return with_other_forms(
        lambda options: _evaluate_model(plan.with_forms(options), metrics), spec.engine_options
    )


def _evaluate_model(plan: EvaluationPlan, metrics: Metrics) -> Summary:
    """Open the model, and let it answer what the run lacks. Raises RefusedParameterError before the first answer."""
    settings = call_settings(plan.spec)
    calls = settings.stage_calls(CallStore(RunFolder(plan.spec.out_path).calls_file), GENERATE)
    chat = settings.open_chat(calls)
    try:
        return _evaluate(
            plan, metrics, chat.subject, partial(ask_chat, plan, chat, calls), calls.store
        )
    finally:
        chat.close()


def with_begun_forms(spec: EvaluateSpec, folder: RunFolder) -> EvaluateSpec:
    """A specification with the forms of requests that the run in a folder began with, unless it names others."""
    if not folder.manifest.exists():
        return spec
    subject = folder.signature().subject
    if subject.get("engine") != spec.engine:
        return spec
    return replace(spec, engine_options={**forms_of(subject), **spec.engine_options})


def call_settings(spec: EvaluateSpec) -> CallSettings:
    """Return how the model of an evaluation or a study is called."""
    names = ("timeout", "attempts", "deadline", "engine_options", "download", "function")
    options = ChatOptions(**{name: getattr(spec, name) for name in names})
    prices = str(spec.prices or "")
    return CallSettings(
        spec.model, spec.max_cost, spec.batch, prices, spec.concurrency, options=options
    )


def _evaluate(
    plan: EvaluationPlan,
    metrics: Metrics,
    subject: Mapping[str, str],
    ask: Callable[[RunWriter], str | None],
    calls: CallStore | None = None,
) -> Summary:
    """Open the run's folder, let `ask` store the answers that it lacks, and score it.

    `ask` returns None where no answer was missing, else a note on the figures, which may be empty.
    """
    folder = RunFolder(plan.spec.out_path)
    signature = make_signature(plan, subject, metrics)
    folder.require_usable(signature)
    if (folder.path / "run.json").exists():
        read_run_data(folder.path)  # its copies of scenarios and templates may be damaged
        require_unedited(folder)
    writer = RunWriter(
        folder, plan.spec.to_dict(), signature, plan.split, plan.prompts.files(), calls
    )
    try:
        note = ask(writer)
        if (
            note is None
            and (summary := stored_summary(folder, plan.spec.baselines, signature)) is not None
        ):
            return summary
        write_baselines(folder, plan.split, plan.full_split if plan.spec.baselines else None)
        return score_run_data(
            RunInputs(folder, plan.spec, plan.split, plan.prompt_of), metrics, note=note or ""
        )
    except H2HTalkError:
        writer.discard()
        raise
    finally:
        writer.close()


def _ask_baseline(plan: EvaluationPlan, name: str, writer: RunWriter) -> str | None:
    answers = find_baseline(name)(plan.split.scenarios, plan.full_split.scenarios)
    missing = [answer for answer in answers if (answer.id, answer.sample) not in writer.answers]
    for answer in missing:
        writer.calls.append(answer.to_dict())
    return "" if missing else None


def ask_chat(plan: EvaluationPlan, chat: Chat, calls: StageCalls, writer: RunWriter) -> str | None:
    calls.open(plan.spec.batch)
    unsettled = bool(calls.open_jobs())  # batch jobs to collect, even where no answer is missing
    requests = missing_requests(plan, writer.answers)
    if not requests and not unsettled:
        return None
    calls.endpoint = endpoint = getattr(chat, "endpoint", "")
    earlier = {
        answer.endpoint
        for answer in writer.answers.values()
        if isinstance(answer, Response) and answer.endpoint
    }
    if unsettled:
        # The answers of open jobs, which are still to be collected, come from the endpoints of earlier sessions.
        sessions = read_sessions(writer.folder)
        earlier |= {session.endpoint for session in sessions if session.endpoint}
    if endpoint and earlier and endpoint not in earlier and not plan.spec.accept_endpoint:
        raise ConfigError(
            f"{writer.folder.path}: was answered by {' and '.join(sorted(earlier))}, and {endpoint} is to be asked; "
            "name the same endpoint, choose another --out, or add --accept-endpoint: every table then says so"
        )
    try:
        with recorded_session(
            writer.folder, installed_versions(*ENGINES[plan.spec.engine].packages), endpoint
        ):
            generate(chat, requests, calls, plan.spec)
    except PausedError as error:  # shown with the figures, where there are any
        if not any(isinstance(answer, Response) for answer in writer.folder.answers().values()):
            raise
        return str(error)
    return ""


@dataclass(frozen=True, slots=True)
class MissingRequests(Sequence[Request]):
    """Requests that are built when they are read."""

    plan: EvaluationPlan
    missing: tuple[tuple[Scenario, int], ...]

    def __len__(self) -> int:
        return len(self.missing)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return replace(self, missing=self.missing[index])
        scenario, sample = self.missing[index]
        spec = self.plan.spec
        sampling = Sampling(
            temperature=spec.sampling_temperature,
            top_p=spec.top_p,
            max_tokens=spec.max_tokens or SUBTASKS[scenario.subtask].max_tokens,
            seed=request_seed(spec.seed, scenario.id, sample),
            thinking=spec.thinking,
        )
        return Request(scenario.id, self.plan.prompt_of(scenario), sampling, sample)


def missing_requests(plan: EvaluationPlan, answers: Answers) -> MissingRequests:
    """Return the calls that a run still lacks, in split order: samples that were never asked, then those that failed.

    A few that always fail must not pause each restart before the others are asked.
    """
    never_asked = []
    failed = []
    for scenario in plan.split.scenarios:
        for sample in range(plan.spec.samples):
            answer = answers.get((scenario.id, sample))
            if answer is None:
                never_asked.append((scenario, sample))
            elif not isinstance(answer, Response):
                failed.append((scenario, sample))
    return MissingRequests(plan, (*never_asked, *failed))


def generate(chat: Chat, requests: MissingRequests, calls: StageCalls, spec: EvaluateSpec) -> None:
    """Send the requests; every outcome is stored in `calls` as it arrives. Raises DataError where one could not be
    (disk full; what was stored before is kept), ConfigError or ModelCallError where no item can succeed, or the first
    replies are all cut before their first word (a model that reasons within the reply budget)."""
    hungry, starved = True, 0  # no reply with text has arrived
    with Progress("generate", len(requests), money=calls.spent) as progress:

        def on_done(index: int, outcome: Outcome) -> None:
            nonlocal hungry, starved
            failed = isinstance(outcome, Failure)
            if not calls.paid or failed:  # a paid reply is stored with its cost
                scenario, sample = requests.missing[index]
                calls.store_free_outcome(scenario.id, sample, outcome)
            progress.advance(failed)
            if hungry and not isinstance(outcome, Failure):
                hungry = is_cut(outcome.finish_reason) and not strip_reasoning(outcome.text)
                starved += hungry
                if hungry and starved == STARVED_REPLIES:
                    raise ConfigError(
                        f"the first {STARVED_REPLIES} replies of {spec.model} were cut before their first word: it "
                        "reasons first; add --thinking 2048, or switch it off with --thinking 0; choose a new --out"
                    )

        chat.complete(requests, on_done)


def make_signature(plan: EvaluationPlan, model: Mapping[str, str], metrics: Metrics) -> Signature:
    """Return the signature of the run."""
    spec = plan.spec
    split = plan.split
    protocol = {
        "items": split.fingerprint,
        "prompts": plan.prompts.fingerprint,
        **metric_keys(metrics, split),
    }
    names = in_table_order(s.subtask for s in split.scenarios)
    listed = ",".join(f"{name}={SUBTASKS[name].max_tokens}" for name in names)
    budgets = f"by-subtask@{hashlib.sha256(listed.encode()).hexdigest()[:8]}"
    return Signature(protocol, subject_of(spec, model, budgets, str(plan.sap)))


def subject_of(
    spec: EvaluateSpec, model: Mapping[str, str], budgets: str, sap: str
) -> dict[str, str]:
    """Return what is measured: the model and how it is asked; `budgets` names reply budgets that are not set."""
    left_to_model: Collection[str] = SAMPLING
    if spec.sampling_temperature is not None:
        left_to_model = sampling_left_out(spec.engine_options)
    return {
        **model,
        "temperature": MODELS_OWN if "temperature" in left_to_model else f"{spec.temperature:g}",
        "top_p": MODELS_OWN if "top_p" in left_to_model else f"{spec.top_p:g}",
        "max_tokens": model.get("max_tokens") or str(spec.max_tokens or budgets),
        **({} if spec.thinking is None else {"thinking": str(spec.thinking)}),
        "samples": str(spec.samples),
        "seed": MODELS_OWN if "seed" in left_to_model else str(spec.seed),
        "sap": sap,
    }


def estimate(spec: EvaluateSpec) -> str:
    """Describe in a few sentences what the evaluation would ask and cost.

    Tokens are a rough count (four letters or one and a half Chinese characters a token): no tokenizer is loaded.
    """
    engine = ENGINES.get(spec.engine)  # None: a baseline, or refused by the plan
    if engine is not None and spec.engine_options:
        engine.check_options(spec.engine_options)
    spec = with_begun_forms(spec, RunFolder(spec.out_path))
    plan = make_plan(spec)
    check_embedder(spec.embedder)
    folder = RunFolder(spec.out_path)
    scenarios = plan.split.scenarios
    # Neither the model nor the embedder is opened: what their weights decide is not compared.
    metrics = open_metrics("none", spec.rouge, spec.contracts, spec.filtered)
    signature = make_signature(plan, {"engine": spec.engine}, metrics)
    protocol = {**signature.protocol, "embedder": spec.embedder}
    folder.require_usable(replace(signature, protocol=protocol), partial=True)
    subject = f"{spec.model} on {len(scenarios):,} items of {plan.split.name} {plan.split.version}"
    if engine is None:
        return f"{subject}: no calls; into {spec.out}."
    requests = missing_requests(plan, folder.answers() if folder.path.is_dir() else {})
    done = len(scenarios) * spec.samples - len(requests)
    answered = f" ({done:,} answered already)" if done else ""
    if engine.hosted:
        bounds, usages = _hosted_calls(spec, requests, scenarios)
        calls = len(bounds)
        sent = sum(usage.input_tokens or 0 for usage in usages)
        budget = sum(bound.output_tokens for bound in bounds)
        price = _price(spec, usages, bounds, scenarios)
    else:
        calls = len(requests)
        sent = sum(map(prompt_tokens, requests))
        budget = sum(request.sampling.budget for request in requests)
        price = f"Price: {'nothing but time' if engine.local else 'unknown'}."
    volume = (
        f"{calls:,} calls{answered}, about {sent:,} tokens sent, at most {budget:,} tokens back"
    )
    return f"{subject}: {volume}; into {spec.out}. {price}"


def _hosted_calls(
    spec: EvaluateSpec, requests: Sequence[Request], scenarios: Sequence[Scenario]
) -> tuple[list[Bound], list[Usage]]:
    """Return the bound and the expected usage of each call, without the samples that an open batch job will bring.

    A reply is as long as the reference after all allowed reasoning; nothing is expected of a provider's cache. Raises
    ConfigError where the API does not take such a request.
    """
    store = read_store(RunFolder(spec.out_path).calls_file)
    jobs = store.open_jobs(GENERATE)
    if not spec.batch:
        require_no_jobs(jobs, spec.out)
    sent = (job for job in jobs if job.state != "planned")
    waiting: set[SampleKey] = set()
    for job in sent:
        for paid_call in store.calls_of(job):
            waiting |= set(paid_call.items)
    engine, name = parse_model(spec.model)
    api = engine.open_wire(name)
    unsent = [request for request in requests if (request.id, request.sample) not in waiting]
    calls = list(api.calls(unsent))
    if calls:
        api.body(calls[0], spec.batch)
    # Of a private reference nothing is known but the budget.
    budgets = {s.id: spec.max_tokens or SUBTASKS[s.subtask].max_tokens for s in scenarios}
    lengths = {s.id: max(map(rough_tokens, s.references), default=budgets[s.id]) for s in scenarios}
    usages = []
    for call in calls:
        first = call.requests[0]
        reply_tokens = lengths[first.id] + (first.sampling.thinking or 0)
        usages.append(Usage(prompt_tokens(first), len(call.requests) * reply_tokens))
    return [api.bound(call) for call in calls], usages


def _price(
    spec: EvaluateSpec,
    usages: Sequence[Usage],
    bounds: Sequence[Bound],
    scenarios: Sequence[Scenario],
) -> str:
    """Describe what the calls would cost, beside what is paid, and whether `--max-cost` may stop the run."""
    stage = call_settings(spec).stage_calls(CallStore(None), GENERATE)
    before = read_costs(spec.out_path).get(GENERATE, Totals())
    paid = f" Paid already: {totals_text(before)}." if before.calls else ""
    if not usages:
        return f"Price: nothing more.{paid}"
    if (price := stage.price) is None:
        suggestion = stage.prices.suggest(spec.model) if stage.prices else ""
        return f"Price: unknown: {suggestion}name it in a file with --prices.{paid}"
    expected = add(*(price.cost(usage, spec.batch) for usage in usages))
    greatest = add(
        *(price.worst(bound.input_tokens, bound.output_tokens, spec.batch) for bound in bounds)
    )
    if expected is None or greatest is None:
        why = "of a batch " if spec.batch and price.batch is None else "of some calls "
        refused = (
            "" if spec.max_cost is None else " --max-cost refuses what may cost an unknown amount."
        )
        return f"Price: unknown {why}under the prices of {price.date}: name it in a file with --prices.{paid}{refused}"
    about = dollars_text(expected)
    most = dollars_text(greatest, at_most=True)
    replies = (
        "as long as the references" if all(s.references for s in scenarios) else "of full length"
    )
    share = f", in a batch at {float(price.batch or 0) * 100:g} % of them" if spec.batch else ""
    stops = ""
    committed = before.usd_committed
    if stage.limit is not None and committed is not None and committed + greatest > stage.limit:
        stops = (
            "refuses that: a batch is sent whole or not at all"
            if spec.batch
            else "may stop the run before its end"
        )
        stops = f" --max-cost {stage.limit:f} {stops}."
    return (
        f"Price: about {about} US dollars if replies are {replies}, at most {most} if no reply is lost "
        f"(prices of {price.date}{share}).{paid}{stops}"
    )
