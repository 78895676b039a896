"""Ask a model through a call store: every reply is stored when it comes, and no stored reply is asked for again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Self

from h2htalk.chat import engines
from h2htalk.chat.prices import add, dollars_text, load_prices, prompt_tokens
from h2htalk.chat.protocol import Chat, Outcome, Reply, Request, Sampling, request_seed
from h2htalk.chat.store.call_store import CallStore, StageCalls, prompt_fingerprint
from h2htalk.data.responses import CALLS, Failure, SampleKey, Usage
from h2htalk.errors import ConfigError, IncompleteError
from h2htalk.progress import Progress

_QUICK = 2.0  # seconds; calls of a part that take no longer show no progress of their own
Replies = Mapping[SampleKey, Reply]


@dataclass(frozen=True, slots=True)
class CallSettings:
    """A model that a stage calls, and the most that all calls in its folder may cost in US dollars (None: no limit).

    `prices`: a file of prices that replace bundled ones; `concurrency`: calls in flight at once; `schema`: its replies
    must match a response schema; `options`: how the engine is run otherwise.
    """

    model: str
    max_cost: float | None = None
    batch: bool = False
    prices: str = ""
    concurrency: int = 32
    schema: bool = False
    options: engines.ChatOptions = field(default_factory=engines.ChatOptions)

    def stage_calls(self, store: CallStore, stage: str) -> StageCalls:
        """Its calls in a store. Raises ConfigError for an unknown model, or a limit without a known price."""
        engine, _ = engines.parse_model(self.model)
        return StageCalls(
            store,
            stage,
            self.model,
            paid=engine.hosted,
            # Stored replies outlive an edit of a script, whose content is part of the stage's identity.
            identity=(engines.model_name if engine.model_is == "file" else engines.model_identity)(self.model),
            prices=load_prices(self.prices) if engine.hosted else None,
            limit=None if self.max_cost is None else Decimal(str(self.max_cost)),
        )

    def open_chat(self, calls: StageCalls) -> Chat:
        """Open the model; raises ConfigError, ModelCallError or MissingExtraError where it cannot be asked."""
        options = replace(self.options, concurrency=self.concurrency, calls=calls, batch=self.batch)
        return engines.open_chat(self.model, options)


class ModelCalls:
    """A model that a stage calls, opened at the first call whose reply is not stored. Close it, or use it in a `with`.
    `store`: a folder, or its store, which several models share and their owner closes. `stage`: its name, or a name for
    each of its models. `once`: call once for equal greedy requests (`request_key`)."""

    def __init__(self, settings: CallSettings, store: CallStore | Path, stage: str, once: bool = False) -> None:
        self._settings, self._stage, self._once = settings, stage, once
        self._own = isinstance(store, Path)
        self._calls = settings.stage_calls(CallStore(store / CALLS) if isinstance(store, Path) else store, stage)
        self._chat: Chat | None = None

    def ask(self, requests: Sequence[Request], part: str) -> Replies:
        """The reply to every request of a part, by id and sample; only those that are not stored are called for. Raises
        IncompleteError where calls failed after their retries: the other replies are stored."""
        outcomes = self.outcomes(requests)
        if failed := [(item, one) for (item, _), one in outcomes.items() if isinstance(one, Failure)]:
            item, first = failed[0]
            what = f"{len(failed)} calls of {part} failed, first {item}"
            raise IncompleteError(f"{what}: {first.message or first.reason}")
        return {key: one for key, one in outcomes.items() if isinstance(one, Reply)}

    def outcomes(self, requests: Sequence[Request], again: Collection[SampleKey] = ()) -> dict[SampleKey, Outcome]:
        """As `ask`, with the failures of calls in place of an error; `again`: calls for these although stored."""
        keys = [(request.id, request.sample) for request in requests]
        if len(set(keys)) < len(keys):
            raise AssertionError(f"{self._stage}: two requests have the same id and sample")
        if not requests:
            return {}
        calls, store = self._calls, self._calls.store.open()
        found: dict[SampleKey, Outcome] = {}
        equal: dict[str, list[Request]] = {}
        for n, (key, request) in enumerate(zip(keys, requests, strict=True)):
            if key not in again and (reply := calls.find(request)) is not None:
                found[key] = reply
            else:
                equal.setdefault(request_key(request, calls.identity) if self._once else str(n), []).append(request)

        def take(own: Sequence[Request], outcome: Outcome, called: bool) -> None:
            for n, request in enumerate(own):
                copy = n > 0 or not called
                own_outcome = replace(outcome, seconds=None) if copy and isinstance(outcome, Reply) else outcome
                calls.done(request, own_outcome, copy)
                found[request.id, request.sample] = outcome
                progress.advance(isinstance(outcome, Failure))

        with Progress(f"{self._stage} calls", len(requests) - len(found), money=calls.spent, silent=_QUICK) as progress:
            missing = []
            for name, own in equal.items():  # one of equal requests is called for
                if (stored := store.by_prompt.get((self._stage, name))) is not None:
                    take(own, stored, False)
                else:
                    missing.append(own)
            if missing:
                if self._chat is None:
                    self._chat = self._settings.open_chat(calls.open(self._settings.batch))
                self._chat.complete([own[0] for own in missing], lambda n, end: take(missing[n], end, True))
        return {key: found[key] for key in keys}

    def close(self) -> None:
        """Release the model, and the store where it is its own. May be called twice."""
        if self._chat is not None:
            self._chat.close()
        if self._own:
            self._calls.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_model(settings: CallSettings) -> None:
    """Check that a model can be called: its name, its price where there is a limit, its key, and that it enforces a
    schema where the stage needs one. Loads no local model. Raises ConfigError or DataError."""
    engine, _ = engines.parse_model(settings.model)
    if settings.schema and not engine.schemas:
        others = engines.engine_names(", ", schemas=True)
        raise ConfigError(f"{engine.name}: cannot enforce a response schema; choose from {others}")
    settings.stage_calls(CallStore(), "check")
    if engine.hosted or engine.model_is in ("file", "url"):
        engines.open_chat(settings.model).close()
    if settings.batch:
        engines.require_batches(engine, ": leave batch = true out, or change the model")


def sampling_of(model: str, temperature: float, tokens: int, seed: int, item: str, sample: int = 0) -> Sampling:
    """How one sample of an item is drawn with the seed of a run; without a temperature where its API takes none."""
    fixed = engines.parse_model(model)[0].sampling == "none"
    return Sampling(None if fixed else temperature, max_tokens=tokens, seed=request_seed(seed, item, sample))


def request_key(request: Request, model: str) -> str:
    """What equal requests have in common: the prompt's fingerprint at temperature 0; else, and for a script, which
    answers by name, every request is its own."""
    greedy = request.sampling.temperature == 0 and engines.model_kind(model.partition(":")[0]) != "file"
    return prompt_fingerprint(request, model) if greedy else f"{request.id}/{request.sample}"


def describe_calls(settings: CallSettings, requests: Sequence[Request]) -> tuple[str, Decimal | None]:
    """The calls of a model and their cost, if every reply is as long as it may be, before any is made."""
    engine, _ = engines.parse_model(settings.model)
    used = [Usage(prompt_tokens(request), request.sampling.budget) for request in requests]
    sent, back = (sum(getattr(one, name) for one in used) for name in ("input_tokens", "output_tokens"))
    tokens = f"about {sent:,} tokens sent, at most {back:,} tokens back"
    calls = f"{settings.model}: at most {len(requests):,} calls, {tokens}"
    if engine.local:
        return f"{calls}; costs nothing but time", Decimal(0)
    price = load_prices(settings.prices).models.get(settings.model) if engine.hosted else None
    total = add(*(price.cost(one, settings.batch) if price else None for one in used))
    if price is None or total is None:
        return f"{calls}; the price is unknown", None
    limit = "" if settings.max_cost is None or total <= Decimal(str(settings.max_cost)) else ", more than max_cost"
    return f"{calls}; about {dollars_text(total)} US dollars{limit} (prices of {price.date})", total
