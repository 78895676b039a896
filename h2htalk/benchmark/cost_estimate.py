"""`--dry-run`: what an evaluation would ask and cost. Neither model nor embedder is opened, and nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from h2htalk.benchmark.evaluate import EvaluationPlan, make_plan, make_signature, stage_calls
from h2htalk.benchmark.generate import GENERATE, MissingRequests
from h2htalk.benchmark.score_run import open_metrics
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.costs.prices import Price, add, dollars_text, prompt_tokens, rough_tokens
from h2htalk.chat.costs.totals import Totals
from h2htalk.chat.engines import ENGINES, parse_model
from h2htalk.chat.protocol import Call, Request
from h2htalk.chat.store.call_store import read_costs, read_store, require_no_jobs
from h2htalk.data.responses import Usage
from h2htalk.data.run_folder import RunFolder
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
    items = f"{len(plan.split.scenarios):,} items of {plan.split.name} {plan.split.version}"
    if engine is None:
        return f"{spec.model} on {items}: no calls; into {spec.out}."
    answers = folder.answers() if folder.path.is_dir() else {}
    requests = MissingRequests.of(plan.split.scenarios, spec, plan.prompt_of, answers)
    done = len(plan.split.scenarios) * spec.samples - len(requests)
    answered = f" ({done:,} answered already)" if done else ""
    if engine.hosted:
        work = _hosted_work(plan, _not_in_batches(spec, requests))
        return f"{spec.model} on {items}: {work.described(answered)}; into {spec.out}. {_price(spec, work)}"
    sent = sum(prompt_tokens(request) for request in requests)
    budget = sum(request.sampling.budget for request in requests)
    price = "nothing but time" if engine.local else "unknown"
    return f"{spec.model} on {items}: {_asked(len(requests), answered, sent, budget)}; into {spec.out}. Price: {price}."


def _asked(calls: int, answered: str, sent: int, budget: int) -> str:
    return f"{calls:,} calls{answered}, about {sent:,} tokens sent, at most {budget:,} tokens back"


# --- Hosted models ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Work:
    """The calls of a hosted model. `usages`: the expected usage of each, with such `replies`; dollars are None where
    unknown."""

    calls: int
    usages: Sequence[Usage]
    budget: int
    expected: Decimal | None
    greatest: Decimal | None
    price: Price | None
    replies: str

    def described(self, answered: str) -> str:
        sent = sum(usage.input_tokens or 0 for usage in self.usages)
        return _asked(self.calls, answered, sent, self.budget)


def _not_in_batches(spec: EvaluateSpec, requests: MissingRequests) -> MissingRequests:
    """Leave out the samples that an open batch job will bring."""
    store = read_store(RunFolder(spec.out_path).shard)
    jobs = store.open_jobs(GENERATE)
    if not spec.batch:
        require_no_jobs(jobs, spec.out)
    sent = (job for job in jobs if job.state != "planned")
    waiting = {item for job in sent for call in store.calls_of(job) for item in call.items}
    return replace(requests, missing=tuple(m for m in requests.missing if (m[0].id, m[1]) not in waiting))


def _hosted_work(plan: EvaluationPlan, requests: Sequence[Request]) -> _Work:
    spec = plan.spec
    price = stage_calls(spec).price
    engine, name = parse_model(spec.model)
    api = engine.open_wire(name)
    # Of a private reference nothing is known but the budget.
    lengths = {
        s.id: max(map(rough_tokens, s.references), default=spec.max_tokens or SUBTASKS[s.subtask].max_tokens)
        for s in plan.split.scenarios
    }
    begun: set[str] = set()
    usages, expected, greatest, budget, calls = [], [], [], 0, list(api.calls(requests))
    if calls:
        api.body(calls[0], spec.batch)  # raises where the API does not take such a request
    for call in calls:
        usage, bound = _expected_usage(call, lengths[call.request.id], spec.batch, begun), api.bound(call)
        usages.append(usage)
        budget += bound.output_tokens
        if price is not None:
            expected.append(price.cost(usage, spec.batch))
            greatest.append(price.worst(bound.input_tokens, bound.output_tokens, spec.batch))
    known = price is not None
    return _Work(
        calls=len(calls),
        usages=usages,
        budget=budget,
        expected=add(*expected) if known else None,
        greatest=add(*greatest) if known else None,
        price=price,
        replies="as long as the references" if all(s.references for s in plan.split.scenarios) else "of full length",
    )


def _expected_usage(call: Call, reply: int, batch: bool, begun: set[str]) -> Usage:
    """Estimate the usage of a call: a reply as long as the reference after all allowed reasoning. The first call of a
    prefix writes the cache, the others read it. `begun`: the prefixes so far; the call's own is added."""
    request = call.request
    output = (reply + (request.sampling.thinking or 0)) * len(call.requests)
    sent = prompt_tokens(request)
    if call.prefix is None:
        return Usage(sent, output)
    shared = min(sent, sum(rough_tokens(message.content[: message.shared]) for message in request.messages))
    if call.prefix in begun:
        return Usage(sent, output, cache_read_tokens=shared)
    begun.add(call.prefix)
    if batch:
        return Usage(sent, output, cache_write_1h_tokens=shared)
    return Usage(sent, output, cache_write_tokens=shared)


def _price(spec: EvaluateSpec, work: _Work) -> str:
    """Describe the price."""
    before = read_costs(spec.out_path).get(GENERATE, Totals())
    paid = f" Paid already: {_paid_already(before)}." if before.calls else ""
    if not work.calls:
        return f"Price: nothing more.{paid}"
    calls = stage_calls(spec)
    if work.price is None:
        meant = calls.prices.suggest(spec.model) if calls.prices else ""
        return f"Price: unknown: {meant}name it in a file with --prices.{paid}"
    if work.expected is None or work.greatest is None:
        why = "of a batch " if spec.batch and work.price.batch is None else "of some calls "
        refused = "" if spec.max_cost is None else " --max-cost refuses what may cost an unknown amount."
        where = f"under the prices of {work.price.date}: name it in a file with --prices."
        return f"Price: unknown {why}{where}{paid}{refused}"
    share = "" if not spec.batch else f", in a batch at {float(work.price.batch or 0) * 100:g} % of them"
    message = (
        f"Price: about {dollars_text(work.expected)} US dollars if replies are {work.replies}, at most "
        f"{dollars_text(work.greatest, at_most=True)} if no reply is lost (prices of {work.price.date}{share})."
        f"{paid}"
    )
    return message + _limit(spec, before, work.greatest)


def _paid_already(before: Totals) -> str:
    possible = "" if not before.usd_possible else f", at most {dollars_text(before.usd_possible, True)} more"
    at_most = "unknown" if before.usd_open is None else f"at most {dollars_text(before.usd_open, True)}"
    running = f"; reserved for {before.open:,} calls still open: {at_most}" if before.open else ""
    return f"{dollars_text(before.usd_paid)} US dollars{possible}{running}"


def _limit(spec: EvaluateSpec, before: Totals, greatest: Decimal) -> str:
    """Describe whether `--max-cost` may stop the run before its end."""
    limit, committed = stage_calls(spec).limit, before.usd_committed
    if limit is None or committed is None or committed + greatest <= limit:
        return ""
    if spec.batch:
        return f" --max-cost {limit:f} refuses that: a batch is sent whole or not at all."
    return f" --max-cost {limit:f} may stop the run before its end."
