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
from h2htalk.chat.refused_parameters import with_other_forms
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.stage_calls import StageCalls, prompt_fingerprint
from h2htalk.data.responses import CALLS, Failure, SampleKey, Usage
from h2htalk.errors import ConfigError, IncompleteError
from h2htalk.progress import Progress

_QUICK = 2.0  # seconds; calls of a part that take no longer show no progress
Replies = Mapping[SampleKey, Reply]


@dataclass(frozen=True, slots=True)
class CallSettings:
    """A model that a stage calls, and the most that all calls in its folder may cost in US dollars (None: no limit).

    Attributes:
        prices: a file of prices that replace bundled ones.
        concurrency: calls in flight at once.
        schema: whether its replies must match a response schema.
        options: the other settings of the engine.
        option: what the user types to set an engine option, where it is not `--engine-option`.
        served_by: the digests of what gives its replies, to be stored with them.
        apart: whether a request is sent again whose stored reply something else gave.
    """

    model: str
    max_cost: float | None = None
    batch: bool = False
    prices: str = ""
    concurrency: int = 32
    schema: bool = False
    options: engines.ChatOptions = field(default_factory=engines.ChatOptions)
    option: str = ""
    served_by: str | None = None
    apart: bool = False

    def stage_calls(self, store: CallStore, stage: str) -> StageCalls:
        """Its calls in a store. Raises ConfigError for an unknown model, or a limit without a known price."""
        engine, _ = engines.parse_model(self.model)
        if engine.model_is == "file":
            # Stored replies outlive an edit of a script, whose content is part of the stage's identity.
            identity = engines.model_name(self.model)
        else:
            identity = engines.model_identity(self.model)
        if self.apart and self.served_by:
            identity += f", {self.served_by}"
        return StageCalls(
            store,
            stage,
            self.model,
            paid=engine.hosted,
            identity=identity,
            prices=load_prices(self.prices) if engine.hosted else None,
            limit=None if self.max_cost is None else Decimal(str(self.max_cost)),
            served_by=self.served_by,
        )

    def open_chat(self, calls: StageCalls) -> Chat:
        """Open the model; raises ConfigError, ModelCallError or MissingExtraError where it cannot be asked."""
        options = replace(self.options, concurrency=self.concurrency, calls=calls, batch=self.batch)
        return engines.open_chat(self.model, options)


class ModelCalls:
    """A model that a stage calls, opened at the first call whose reply is not stored. Close it, or use it in a `with`.

    Args:
        settings: the model, and how it is called.
        store: a folder, or its store, which several models share and their owner closes.
        stage: the stage's name, or a name for each of its models.
        once: call once for equal greedy requests (`request_key`).
        adapts: where the server refuses a parameter, ask in its other form; else raise RefusedParameterError, for a
            caller whose signature names the form.
        sampled_too: with `once`, call once for equal requests of a model that takes no temperature, too.
    """

    def __init__(
        self,
        settings: CallSettings,
        store: CallStore | Path,
        stage: str,
        once: bool = False,
        adapts: bool = True,
        sampled_too: bool = False,
    ) -> None:
        self._settings = settings
        self._stage = stage
        self._once = once
        self._adapts = adapts
        self._sampled_too = sampled_too
        self._owns_store = isinstance(store, Path)
        if isinstance(store, Path):
            store = CallStore(store / CALLS)
        self._calls = settings.stage_calls(store, stage)
        self._chat: Chat | None = None

    def ask(self, requests: Sequence[Request], part: str) -> Replies:
        """Return the reply to every request of a part, by id and sample; only those that are not stored are called for.

        Raises IncompleteError where calls failed after their retries: the other replies are stored.
        """
        replies: dict[SampleKey, Reply] = {}
        failures: list[tuple[str, Failure]] = []
        for (item, sample), outcome in self.outcomes(requests).items():
            if isinstance(outcome, Failure):
                failures.append((item, outcome))
            else:
                replies[item, sample] = outcome
        if failures:
            item, failure = failures[0]
            failed = f"{len(failures)} calls of {part} failed, first {item}"
            raise IncompleteError(f"{failed}: {failure.message or failure.reason}")
        return replies

    def outcomes(
        self, requests: Sequence[Request], repeated: Collection[SampleKey] = ()
    ) -> dict[SampleKey, Outcome]:
        """As `ask`, with the failures of calls in place of an error; `repeated`: call for these although stored."""
        if not self._adapts:
            return self._outcomes(requests, repeated)

        def ask(engine_options: Mapping[str, str]) -> dict[SampleKey, Outcome]:
            self._use(engine_options)
            return self._outcomes(requests, repeated)

        return with_other_forms(ask, self._settings.options.engine_options, self._settings.option)

    def _use(self, engine_options: Mapping[str, str]) -> None:
        """Open the model anew, at its next call, where the engine options are others than it was opened with."""
        options = self._settings.options
        if engine_options == options.engine_options:
            return
        options = replace(options, engine_options=engine_options)
        self._settings = replace(self._settings, options=options)
        if self._chat is not None:
            self._chat.close()
            self._chat = None

    def _outcomes(
        self, requests: Sequence[Request], repeated: Collection[SampleKey]
    ) -> dict[SampleKey, Outcome]:
        keys = [(request.id, request.sample) for request in requests]
        if len(set(keys)) < len(keys):
            raise AssertionError(f"{self._stage}: two requests have the same id and sample")
        if not requests:
            return {}
        calls = self._calls
        store = calls.store.open()
        outcomes: dict[SampleKey, Outcome] = {}
        groups: dict[
            str, list[Request]
        ] = {}  # requests without a stored reply, equal ones together
        for position, (key, request) in enumerate(zip(keys, requests, strict=True)):
            reply = None if key in repeated else calls.find(request)
            if reply is not None:
                outcomes[key] = reply
                continue
            name = str(position)
            if self._once:
                name = request_key(request, calls.identity, self._sampled_too)
            groups.setdefault(name, []).append(request)

        def take(group: Sequence[Request], outcome: Outcome, called: bool) -> None:
            """Store the outcome of equal requests, of which the first may have been called for."""
            for position, request in enumerate(group):
                copy = position > 0 or not called
                stored_outcome = outcome
                if copy and isinstance(outcome, Reply):
                    stored_outcome = replace(outcome, seconds=None)
                calls.store_outcome(request, stored_outcome, copy)
                stored = calls.find(request)
                if isinstance(outcome, Reply) and stored is not None:
                    # A copy has the time of the reply that it repeats.
                    outcome = replace(outcome, at=stored.at, served_by=stored.served_by)
                outcomes[request.id, request.sample] = outcome
                progress.advance(isinstance(outcome, Failure))

        with Progress(
            f"{self._stage} calls", len(requests) - len(outcomes), money=calls.spent, silent=_QUICK
        ) as progress:
            missing = []
            for name, group in groups.items():  # one of equal requests is called for
                reply = store.by_prompt.get((self._stage, name))
                if reply is not None:
                    take(group, reply, called=False)
                else:
                    missing.append(group)
            if missing:
                if self._chat is None:
                    self._chat = self._settings.open_chat(calls.open(self._settings.batch))
                self._chat.complete(
                    [group[0] for group in missing],
                    lambda index, outcome: take(missing[index], outcome, called=True),
                )
        return {key: outcomes[key] for key in keys}

    def close(self) -> None:
        """Release the model, and the store where it is its own. May be called twice."""
        if self._chat is not None:
            self._chat.close()
        if self._owns_store:
            self._calls.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def check_model(settings: CallSettings) -> None:
    """Check that a model can be called: its name, its price where there is a limit, its key, and that it enforces a
    schema where the stage needs one. Loads no local model. Raises ConfigError or DataError."""
    engines.require_model(settings.model)
    engine, _ = engines.parse_model(settings.model)
    if settings.schema and not engine.schemas:
        able = engines.engine_names(", ", schemas=True)
        raise ConfigError(f"{engine.name}: cannot enforce a response schema; choose from {able}")
    settings.stage_calls(CallStore(), "check")
    if engine.hosted or engine.model_is in ("file", "url"):
        engines.open_chat(settings.model, settings.options).close()
    if settings.batch:
        engines.require_batches(engine, ": leave batch = true out, or change the model")


def sampling_of(
    model: str, temperature: float, tokens: int, seed: int, item: str, sample: int = 0
) -> Sampling:
    """Return how a sample of an item is drawn with a run's seed, without a temperature where the API takes none."""
    engine, _ = engines.parse_model(model)
    return Sampling(
        temperature=None if engine.sampling == "none" else temperature,
        max_tokens=tokens,
        seed=request_seed(seed, item, sample),
    )


def request_key(request: Request, model: str, sampled_too: bool = False) -> str:
    """Return a key that equal requests share: the prompt's fingerprint at temperature 0, with `sampled_too` also
    without a temperature.

    Otherwise, and for a script, which answers by name, every request has a key of its own.
    """
    temperature = request.sampling.temperature
    shared = temperature == 0 or (sampled_too and temperature is None)
    is_script = engines.model_kind(model.partition(":")[0]) == "file"
    if shared and not is_script:
        return prompt_fingerprint(request, model)
    return f"{request.id}/{request.sample}"


def describe_calls(
    settings: CallSettings, requests: Sequence[Request]
) -> tuple[str, Decimal | None]:
    """Describe the calls of a model and their cost, if every reply is as long as it may be, before any call is made."""
    engine, _ = engines.parse_model(settings.model)
    usages = [Usage(prompt_tokens(request), request.sampling.budget) for request in requests]
    input_tokens = sum(usage.input_tokens or 0 for usage in usages)
    output_tokens = sum(usage.output_tokens or 0 for usage in usages)
    tokens = f"about {input_tokens:,} tokens sent, at most {output_tokens:,} tokens back"
    calls = f"{settings.model}: at most {len(requests):,} calls, {tokens}"
    if engine.local:
        return f"{calls}; costs nothing but time", Decimal(0)
    price = load_prices(settings.prices).models.get(settings.model) if engine.hosted else None
    if price is None:
        return f"{calls}; the price is unknown", None
    total = add(*(price.cost(usage, settings.batch) for usage in usages))
    if total is None:
        return f"{calls}; the price is unknown", None
    cost = f"about {dollars_text(total)} US dollars"
    if settings.max_cost is not None and total > Decimal(str(settings.max_cost)):
        cost += ", more than max_cost"
    return f"{calls}; {cost} (prices of {price.date})", total
