"""Call a model within a stage: every reply is stored when it comes, and no paid call is repeated.

calls/part-00000.jsonl       {"id", "sample", "prompt", "model", ...}: a reply or a failure a line, in order of arrival
costs/STAGE.jsonl            every paid call of a hosted model, reserved before it is sent; of a second model
                             costs/STAGE-HASH.jsonl, as one file holds the calls of one model
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from h2htalk.chat.batch.job_journal import BatchFolder
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.costs.prices import PriceList, load_prices
from h2htalk.chat.costs.reservations import dollars_text
from h2htalk.chat.engines import engine_names, model_kind, open_chat, parse_model, require_batches
from h2htalk.chat.protocol import Chat, Outcome, Reply, Request, Sampling, request_seed
from h2htalk.chat.stored_calls.cost_limit import StageLedger, StageLimit, cost_log_path
from h2htalk.chat.stored_calls.model_identity import model_identity, model_name
from h2htalk.data.append_log import AppendLog
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import FailedResponse, Failure, Response, SampleKey, Usage, read_response
from h2htalk.errors import ConfigError, DataError, IncompleteError
from h2htalk.progress import Progress

COPY = "copy"  # marks a reply that was stored for an equal request and not called for
PARTS = "calls/part-*.jsonl"
_QUICK = 2.0  # seconds; calls of a part that take no longer show no progress of their own
Replies = Mapping[SampleKey, Reply]
_Known = dict[tuple[SampleKey, str], Reply]  # by item and sample, and the prompt's fingerprint


@dataclass(frozen=True, slots=True)
class CallSettings:
    """A model that a stage calls, and the most that all models of the stage may cost in US dollars (None: no limit).

    `prices`: a file of prices that replace bundled ones; `concurrency`: calls in flight at once; `schema`: its replies
    must match a response schema; `options`: how the engine is run otherwise.
    """

    model: str
    max_cost: float | None = None
    batch: bool = False
    prices: str = ""
    concurrency: int = 32
    schema: bool = False
    options: ChatOptions = field(default_factory=ChatOptions)


class StoredCalls:
    """A model that a stage calls, and the folder of its stored replies. Close it, or use it in a `with` block.

    The model is opened at the first call whose reply is not stored.
    """

    def __init__(
        self,
        settings: CallSettings,
        folder: Path,
        stage: str,
        limit: StageLimit | None = None,
        replies: str = PARTS,
        once: bool = False,
    ) -> None:
        """Prepare the calls; nothing is sent or written.

        Args:
            settings: the model, and the cost limit of its stage.
            folder: the stage's.
            stage: its name, or a name for each of its models.
            limit: the limit that several models share (`shared_limit`).
            replies: where in the folder replies are stored; a `*` stands for the part.
            once: call once for equal greedy requests (`request_key`) of all parts; each gets a line of its own.

        Raises:
            ConfigError: an unknown model, or a limit without a known price.
            DataError: a cost log is damaged.
        """
        self._settings, self._folder, self._stage, self._replies = settings, folder, stage, replies
        self._chat: Chat | None = None
        self._ledger: StageLedger | None = None
        # Of the last part; a simulation calls for the same part turn after turn.
        self._known: tuple[str, _Known] = ("", {})
        self._replied: dict[str, Reply] = {}  # where `once`: replies of all parts by the prompt's fingerprint
        engine, _ = parse_model(settings.model)
        self._once = once
        # Stored replies outlive an edit of a script, whose content is part of the stage's identity.
        name = model_name if engine.model_is == "file" else model_identity
        self._model = name(settings.model)
        if engine.hosted:
            prices = _prices(settings)
            self._ledger = StageLedger(
                cost_log_path(folder / "costs", stage, settings.model),
                model=settings.model,
                price=prices.find(settings.model),
                limit=limit or StageLimit(folder / "costs", settings.max_cost, prices),
                stage=stage,
                stored=self._stored_usages,
            )

    def ask(self, requests: Sequence[Request], part: str) -> Replies:
        """The reply to every request of a part, by id and sample; only those that are not stored are called for.

        Raises:
            IncompleteError: calls failed after their retries; the other replies are stored, and a restart calls again.
            ConfigError, ModelCallError: no call can succeed.
            DataError: a reply cannot be stored.
        """
        outcomes = self.outcomes(requests, part)
        failures = {key: one for key, one in outcomes.items() if isinstance(one, Failure)}
        for (item, _), failure in failures.items():
            raise IncompleteError(
                f"{len(failures)} calls of {part} failed, first {item}: {failure.message or failure.reason}"
            )
        return {key: one for key, one in outcomes.items() if isinstance(one, Reply)}

    def outcomes(
        self, requests: Sequence[Request], part: str, again: Collection[SampleKey] = ()
    ) -> dict[SampleKey, Outcome]:
        """As `ask`, with the failures of calls in place of an error; `again`: calls for these although stored."""
        prompts = {(r.id, r.sample): prompt_fingerprint(r, self._model) for r in requests}
        if len(prompts) < len(requests):
            raise AssertionError(f"{self._stage}: two requests have the same id and sample")
        path = self._path(part)
        if self._known[0] != part:
            replies = {(_key(response), prompt): _reply(response) for prompt, _, response in _stored(path)}
            self._known = (part, replies)
            self._replied |= {prompt: reply for (_, prompt), reply in replies.items()} if self._once else {}
        known = self._known[1]
        missing = [r for r in requests if (key := (r.id, r.sample)) in again or (key, prompts[key]) not in known]
        failures: dict[SampleKey, Outcome] = {}
        equal: dict[str, list[Request]] = {}
        for n, request in enumerate(missing):
            equal.setdefault(request_key(request, self._model) if self._once else str(n), []).append(request)
        copied = {prompt: own for prompt, own in equal.items() if prompt in self._replied}
        called = [own for prompt, own in equal.items() if prompt not in copied]

        def store(own: Sequence[Request], outcome: Outcome, copies: int) -> None:
            """Store the outcome of equal requests; the last `copies` were not called for."""
            for n, request in enumerate(own):
                key = (request.id, request.sample)
                line = _line(request, outcome) | {"prompt": prompts[key], "model": self._model}
                log.append(line | ({COPY: True} if n >= len(own) - copies else {}))
                if isinstance(outcome, Failure):
                    failures[key] = outcome
                else:
                    known[key, prompts[key]] = outcome
                    self._replied |= {prompts[key]: outcome} if self._once else {}
                progress.advance(isinstance(outcome, Failure))

        if missing:
            progress = Progress(f"{self._stage} calls", len(missing), money=self._spent, silent=_QUICK)
            with AppendLog(path) as log, progress:
                for prompt, own in copied.items():
                    store(own, self._replied[prompt], len(own))
                if called:
                    first = [own[0] for own in called]
                    self._open().complete(first, lambda n, end: store(called[n], end, len(called[n]) - 1))
        return {key: failures.get(key) or known[key, prompt] for key, prompt in prompts.items()}

    def _open(self) -> Chat:
        if self._chat is None:
            batches = BatchFolder(self._folder / "batches")
            live = not self._settings.batch
            if self._ledger is not None:
                if live and (jobs := batches.open_jobs()):
                    raise ConfigError(
                        f"{batches.path}: {len(jobs)} batch job{'s' if len(jobs) > 1 else ''} of an earlier start "
                        f"({', '.join(job.label for job in jobs)}) would be paid for twice: set batch = true again "
                        "until they are collected"
                    )
                self._ledger.open()
                if live:
                    batches.drop_unsent(self._ledger)
            options = replace(
                self._settings.options,
                concurrency=self._settings.concurrency,
                ledger=self._ledger,
                batch=None if live else batches,
            )
            self._chat = open_chat(self._settings.model, options)
        return self._chat

    def _spent(self) -> str:
        """The cost of all calls of the stage so far, for progress; empty where they cost nothing."""
        if self._ledger is None:
            return ""
        paid = self._ledger.totals().usd_paid
        return "price unknown" if paid is None else f"{dollars_text(paid)} US dollars"

    def _path(self, part: str) -> Path:
        return self._folder / self._replies.replace("part-*", part)

    def _stored_usages(self) -> Iterator[tuple[SampleKey, Usage]]:
        """For the ledger: this model's stored replies with their usage, in order of arrival."""
        for path in sorted(self._folder.glob(self._replies)):
            for _, model, response in _stored(path, copies=False):
                if model == self._model:
                    yield _key(response), response.usage

    def close(self) -> None:
        """Release the model and the ledger. May be called twice."""
        if self._chat is not None:
            self._chat.close()
        if self._ledger is not None:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shared_limit(folder: Path, settings: CallSettings) -> StageLimit:
    """The limit of a stage that calls several models; `folder` is the stage's. Raises ConfigError for its prices."""
    return StageLimit(folder / "costs", settings.max_cost, _prices(settings))


def _prices(settings: CallSettings) -> PriceList:
    return load_prices(Path(settings.prices) if settings.prices else None)


def check_model(settings: CallSettings) -> None:
    """Check that a model can be called: its name, its price where there is a limit, its key, and that it enforces a
    schema where the stage needs one. Loads no local model.

    Raises:
        ConfigError: it cannot; says what to change.
        DataError: a line of a script is damaged.
    """
    engine, _ = parse_model(settings.model)
    if settings.schema and not engine.schemas:
        raise ConfigError(
            f"{engine.name}: cannot enforce a response schema; choose from {engine_names(', ', schemas=True)}"
        )
    StoredCalls(settings, Path(), "check").close()
    if engine.hosted or engine.model_is in ("file", "url"):
        open_chat(settings.model).close()
    if settings.batch:
        require_batches(engine, ": leave batch = true out, or change the model")


def sampling_of(model: str, temperature: float, tokens: int, seed: int, item: str, sample: int = 0) -> Sampling:
    """How one sample of an item is drawn; without a temperature where the model's API takes none.

    Args:
        model: `ENGINE:NAME`.
        temperature: 0 is greedy.
        tokens: of the reply at most.
        seed: of the run; the seed of the request depends on it, the item and the sample.
        item, sample: which one.
    """
    fixed = parse_model(model)[0].sampling == "none"
    return Sampling(None if fixed else temperature, max_tokens=tokens, seed=request_seed(seed, item, sample))


def prompt_fingerprint(request: Request, model: str) -> str:
    """16 hexadecimal digits of the prompt and the model: a stored reply to another prompt or model is not used."""
    parts = [model, *(f"{message.role}\0{message.content}" for message in request.messages)]
    parts += [repr(request.sampling), request.response_schema.name if request.response_schema else ""]
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def request_key(request: Request, model: str) -> str:
    """What equal requests have in common: the prompt's fingerprint at temperature 0; else every request is its own.

    A script answers by the request's name.
    """
    greedy = request.sampling.temperature == 0 and model_kind(model.partition(":")[0]) != "file"
    return prompt_fingerprint(request, model) if greedy else f"{request.id}/{request.sample}"


def _stored(path: Path, copies: bool = True) -> Iterator[tuple[str, str, Response]]:
    """The prompt's fingerprint, the model and the reply of every stored call that succeeded.

    Raises:
        DataError: a line is no call; names file and line.
    """
    for where, record in read_jsonl(path, torn_tail=True) if path.exists() else ():
        if COPY in record and not copies:
            continue
        if "result" in record:  # of a moderation endpoint (`guard_model`)
            continue
        if not isinstance(record.get("prompt"), str):
            raise DataError(f"{where}: not a stored call: prompt is missing")
        response = read_response(record, where)
        if isinstance(response, Response):
            yield record["prompt"], str(record.get("model")), response


def _line(request: Request, outcome: Outcome) -> dict[str, Any]:
    """The result of a request as a record."""
    if isinstance(outcome, Failure):
        return FailedResponse(request.id, request.sample, outcome).to_dict()
    texts = (outcome.thinking, outcome.request_id)
    line = Response(request.id, request.sample, outcome.text, outcome.finish_reason, outcome.usage, *texts).to_dict()
    return line | ({"returned_model": outcome.model} if outcome.model else {})


def _key(response: Response) -> SampleKey:
    return response.id, response.sample


def _reply(response: Response) -> Reply:
    return Reply(response.text, response.finish_reason, response.usage, response.thinking, response.request_id)
