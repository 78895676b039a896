"""`--dry-run`: what an evaluation would ask and cost. Neither model nor embedder is opened, and nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from h2htalk.benchmark.evaluate import GENERATE, make_plan, make_signature, missing_requests, stage_calls
from h2htalk.benchmark.score_run import open_metrics
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.engines import ENGINES, parse_model
from h2htalk.chat.prices import Totals, add, dollars_text, prompt_tokens, rough_tokens
from h2htalk.chat.protocol import Bound, Call, Request
from h2htalk.chat.store.call_store import StageCalls, read_costs, read_store, require_no_jobs
from h2htalk.data.responses import Usage
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.text.embeddings.embedders import check_embedder


def estimate(spec: EvaluateSpec) -> str:
    """Describe in a few sentences what the evaluation would ask and cost.

    Tokens are a rough count (four letters or one and a half Chinese characters a token), since the model's
    tokenizer is not loaded.
    """
    engine = ENGINES.get(spec.engine)  # None: a baseline, or refused by the plan
    if engine is not None and spec.engine_options:
        engine.check_options(spec.engine_options)
    plan = make_plan(spec)
    check_embedder(spec.embedder)
    folder = RunFolder(spec.out_path)
    # Neither the model nor the embedder is opened: what their weights decide is not compared.
    made = make_signature(plan, {"engine": spec.engine}, open_metrics("none", spec.rouge, spec.contracts))
    protocol = {**made.protocol, "embedder": spec.embedder}
    folder.require_usable(replace(made, protocol=protocol), partial=True)
    begin = f"{spec.model} on {len(plan.split.scenarios):,} items of {plan.split.name} {plan.split.version}"
    if engine is None:
        return f"{begin}: no calls; into {spec.out}."
    requests = missing_requests(plan, folder.answers() if folder.path.is_dir() else {})
    done = len(plan.split.scenarios) * spec.samples - len(requests)
    calls, price = len(requests), f"Price: {'nothing but time' if engine.local else 'unknown'}."
    sent = sum(map(prompt_tokens, requests))
    budget = sum(request.sampling.budget for request in requests)
    if engine.hosted:
        stage = stage_calls(spec)
        hosted = _hosted_calls(spec, _not_in_batches(spec, requests))
        usages = _expected_usages(spec, [call for call, _ in hosted], plan.split.scenarios)
        calls, sent = len(hosted), sum(usage.input_tokens or 0 for usage in usages)
        budget = sum(bound.output_tokens for _, bound in hosted)
        replies = "as long as the references" if all(s.references for s in plan.split.scenarios) else "of full length"
        price = _price(spec, stage, usages, [bound for _, bound in hosted], replies)
    answered = f" ({done:,} answered already)" if done else ""
    asked = f"{calls:,} calls{answered}, about {sent:,} tokens sent, at most {budget:,} tokens back"
    return f"{begin}: {asked}; into {spec.out}. {price}"


# --- Hosted models ----------------------------------------------------------------------------------------------


def _not_in_batches(spec: EvaluateSpec, requests: Sequence[Request]) -> list[Request]:
    """Leave out the samples that an open batch job will bring."""
    store = read_store(RunFolder(spec.out_path).shard)
    jobs = store.open_jobs(GENERATE)
    if not spec.batch:
        require_no_jobs(jobs, spec.out)
    sent = (job for job in jobs if job.state != "planned")
    waiting = {item for job in sent for call in store.calls_of(job) for item in call.items}
    return [request for request in requests if (request.id, request.sample) not in waiting]


def _hosted_calls(spec: EvaluateSpec, requests: Sequence[Request]) -> list[tuple[Call, Bound]]:
    """Return the calls, each with its bound. Raises ConfigError where the API does not take such a request."""
    engine, name = parse_model(spec.model)
    api = engine.open_wire(name)
    calls = list(api.calls(requests))
    if calls:
        api.body(calls[0], spec.batch)
    return [(call, api.bound(call)) for call in calls]


def _expected_usages(spec: EvaluateSpec, calls: Sequence[Call], scenarios: Sequence[Scenario]) -> list[Usage]:
    """Estimate the usage of each call: a reply as long as the reference after all allowed reasoning.

    The first call of a prefix writes the cache, the others read it.
    """
    # Of a private reference nothing is known but the budget.
    lengths = {
        s.id: max(map(rough_tokens, s.references), default=spec.max_tokens or SUBTASKS[s.subtask].max_tokens)
        for s in scenarios
    }
    usages, begun = [], set[str]()
    for call in calls:
        request, sent = call.requests[0], prompt_tokens(call.requests[0])
        usage = Usage(sent, (lengths[request.id] + (request.sampling.thinking or 0)) * len(call.requests))
        if call.prefix is not None:
            shared = min(sent, sum(rough_tokens(message.content[: message.shared]) for message in request.messages))
            write = "cache_write_1h_tokens" if spec.batch else "cache_write_tokens"
            usage = replace(usage, **{"cache_read_tokens" if call.prefix in begun else write: shared})
            begun.add(call.prefix)
        usages.append(usage)
    return usages


def _price(
    spec: EvaluateSpec, stage: StageCalls, usages: Sequence[Usage], bounds: Sequence[Bound], replies: str
) -> str:
    """Describe what the calls would cost, beside what is paid, and whether `--max-cost` may stop the run."""
    before = read_costs(spec.out_path).get(GENERATE, Totals())
    paid = f" Paid already: {_paid_already(before)}." if before.calls else ""
    if not usages:
        return f"Price: nothing more.{paid}"
    if (price := stage.price) is None:
        meant = stage.prices.suggest(spec.model) if stage.prices else ""
        return f"Price: unknown: {meant}name it in a file with --prices.{paid}"
    expected = add(*(price.cost(usage, spec.batch) for usage in usages))
    greatest = add(*(price.worst(one.input_tokens, one.output_tokens, spec.batch) for one in bounds))
    if expected is None or greatest is None:
        why = "of a batch " if spec.batch and price.batch is None else "of some calls "
        refused = "" if spec.max_cost is None else " --max-cost refuses what may cost an unknown amount."
        return f"Price: unknown {why}under the prices of {price.date}: name it in a file with --prices.{paid}{refused}"
    about, most = dollars_text(expected), dollars_text(greatest, at_most=True)
    share = f", in a batch at {float(price.batch or 0) * 100:g} % of them" if spec.batch else ""
    return (
        f"Price: about {about} US dollars if replies are {replies}, at most {most} if no reply is lost "
        f"(prices of {price.date}{share}).{paid}{_limit(spec, stage.limit, before, greatest)}"
    )


def _paid_already(before: Totals) -> str:
    possible = "" if not before.usd_possible else f", at most {dollars_text(before.usd_possible, True)} more"
    at_most = "unknown" if before.usd_open is None else f"at most {dollars_text(before.usd_open, True)}"
    running = f"; reserved for {before.open:,} calls still open: {at_most}" if before.open else ""
    return f"{dollars_text(before.usd_paid)} US dollars{possible}{running}"


def _limit(spec: EvaluateSpec, limit: Decimal | None, before: Totals, greatest: Decimal) -> str:
    committed = before.usd_committed
    if limit is None or committed is None or committed + greatest <= limit:
        return ""
    if spec.batch:
        return f" --max-cost {limit:f} refuses that: a batch is sent whole or not at all."
    return f" --max-cost {limit:f} may stop the run before its end."
