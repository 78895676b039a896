"""Asking a model within a stage: every answer stored as it comes, no paid call repeated.

calls/part-00000.jsonl       {"id", "sample", "prompt", "model", ...}: an answer or a failure a line, as they came
costs/STAGE.jsonl            of hosted models: every paid call, reserved before it is sent; of a second model
                             costs/STAGE-MODEL.jsonl, as a journal holds the calls of one
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from h2htalk.chat.batch.job_journal import BatchFolder
from h2htalk.chat.chat_options import ChatOptions
from h2htalk.chat.costs.prices import PriceList, load_prices
from h2htalk.chat.costs.reservations import dollars_text
from h2htalk.chat.engines import open_chat, parse_model, require_batches
from h2htalk.chat.protocol import Chat, Outcome, Reply, Request, Sampling, request_seed
from h2htalk.curation.model_calls.cost_limit import StageLedger, StageLimit, journal_path
from h2htalk.curation.model_calls.model_identity import model_identity, model_name
from h2htalk.curation.pipeline import Incomplete
from h2htalk.data.append_log import AppendLog
from h2htalk.data.files import read_jsonl
from h2htalk.data.responses import FailedResponse, Failure, Response, SampleKey, Usage, read_response
from h2htalk.errors import ConfigError, DataError
from h2htalk.progress import Progress

# A part whose calls take no longer is told by the stage's own line.
_QUICK = 2.0  # seconds
Answers = Mapping[SampleKey, Reply]


@dataclass(frozen=True, slots=True)
class AskSettings:
    """Which model a stage asks, and what all of the stage's models may cost in US dollars (None: no limit).

    `prices`: a file of prices over the bundled ones; `concurrency`: calls in flight at once.
    """

    model: str
    max_cost: float | None = None
    batch: bool = False
    prices: str = ""
    concurrency: int = 32


class Asking:
    """A model that a stage asks, and the folder where its answers lie. Close it, or use it as a context manager.

    The model is opened at the first call that is not stored already.
    """

    def __init__(
        self, settings: AskSettings, folder: Path, stage: str, limit: StageLimit | None = None
    ) -> None:
        """Nothing is asked, and nothing written.

        Args:
            settings: the model, and the limit of its stage.
            folder: the stage's.
            stage: its name; of a stage of several models another one for each.
            limit: the one that those share (`shared_limit`).

        Raises:
            ConfigError: an unknown model, or a limit without a known price.
            DataError: a journal of paid calls is damaged.
        """
        self._settings, self._folder, self._stage = settings, folder, stage
        self._chat: Chat | None = None
        self._ledger: StageLedger | None = None
        # Of the part that was asked last; a simulation asks of the same one turn after turn.
        self._known: tuple[str, Known] = ("", {})
        engine, _ = parse_model(settings.model)
        # Of a script its name alone: a stage's identity holds its content, and stored answers outlive an edit.
        script = engine.model_is == "file"
        self._model = model_name(settings.model) if script else model_identity(settings.model)
        if engine.hosted:
            prices = _prices(settings.prices)
            self._ledger = StageLedger(
                journal_path(folder / "costs", stage, settings.model),
                model=settings.model,
                price=prices.find(settings.model),
                limit=limit or StageLimit(folder / "costs", settings.max_cost, prices),
                stage=stage,
                answers=self._answered,
            )

    def ask(self, requests: Sequence[Request], part: str) -> Answers:
        """The answer to every request of a part, by id and sample: stored ones as they are, the others asked for.

        Raises:
            Incomplete: calls failed after their retries; what came is stored, and a restart asks for the rest.
            ConfigError, ModelCallError: no call can succeed.
            DataError: an answer cannot be stored.
        """
        prints = {(r.id, r.sample): prompt_fingerprint(r, self._model) for r in requests}
        if len(prints) < len(requests):
            raise AssertionError(f"{self._stage}: two requests of one id and sample")
        known = self._stored(part)
        answers = {key: known[key, prompt] for key, prompt in prints.items() if (key, prompt) in known}
        missing = [request for request in requests if (request.id, request.sample) not in answers]
        if not missing:
            return answers
        with AppendLog(self._path(part)) as log:
            failures = self._complete(missing, prints, log, answers, known)
        if failures:
            item, failure = failures[0]
            raise Incomplete(
                f"{len(failures)} calls of {part} failed, first {item}: {failure.message or failure.reason}"
            )
        return answers

    def _stored(self, part: str) -> Known:
        """The answers of a part that are stored; its file is read once, and nobody else answers in it meanwhile."""
        if self._known[0] != part:
            self._known = (part, stored_answers(self._path(part)))
        return self._known[1]

    def _complete(
        self,
        missing: Sequence[Request],
        prints: Mapping[SampleKey, str],
        log: AppendLog,
        answers: dict[SampleKey, Reply],
        known: Known,
    ) -> list[tuple[str, Failure]]:
        failures: list[tuple[str, Failure]] = []

        def on_done(index: int, outcome: Outcome) -> None:
            request = missing[index]
            key = (request.id, request.sample)
            log.append({"prompt": prints[key], "model": self._model, **line_of(request, outcome)})
            if isinstance(outcome, Failure):
                failures.append((request.id, outcome))
            else:
                answers[key] = known[key, prints[key]] = outcome
            progress.advance(isinstance(outcome, Failure))

        with Progress(f"{self._stage} calls", len(missing), money=self._spent, silent=_QUICK) as progress:
            self._open().complete(missing, on_done)
        return failures

    def _open(self) -> Chat:
        if self._chat is None:
            batches = BatchFolder(self._folder / "batches")
            if self._ledger is not None:
                if not self._settings.batch:
                    _require_no_open_jobs(batches)
                self._ledger.open()
                if not self._settings.batch:
                    batches.drop_unsent(self._ledger)
            options = ChatOptions(
                concurrency=self._settings.concurrency,
                ledger=self._ledger,
                batch=batches if self._settings.batch else None,
            )
            self._chat = open_chat(self._settings.model, options)
        return self._chat

    def _spent(self) -> str:
        """What all calls of the stage cost so far, for the line of progress; empty where they cost nothing."""
        if self._ledger is None:
            return ""
        paid = self._ledger.totals().usd_paid
        return "price unknown" if paid is None else f"{dollars_text(paid)} US dollars"

    def _path(self, part: str) -> Path:
        return self._folder / "calls" / f"{part}.jsonl"

    def _answered(self) -> Iterator[tuple[SampleKey, Usage]]:
        """For the ledger: this model's stored answers with what each used, in the order in which they came."""
        for path in sorted((self._folder / "calls").glob("part-*.jsonl")):
            for where, record in read_jsonl(path, torn_tail=True):
                if record.get("model") == self._model:
                    _, response = read_line(record, where)
                    if isinstance(response, Response):
                        yield (response.id, response.sample), response.usage

    def close(self) -> None:
        """Give back the model and the ledger. Harmless when called twice."""
        if self._chat is not None:
            self._chat.close()
        if self._ledger is not None:
            self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shared_limit(folder: Path, dollars: float | None, prices: str = "") -> StageLimit:
    """The limit of a stage that asks several models; `folder` is the stage's, `prices` as in `AskSettings`.

    Raises:
        ConfigError: the prices cannot be read.
    """
    return StageLimit(folder / "costs", dollars, _prices(prices))


def _prices(path: str) -> PriceList:
    return load_prices(Path(path) if path else None)


def check_model(settings: AskSettings) -> None:
    """See that a model can be asked, before anything is: its name, its price where there is a limit, its key.

    Models that run here are not loaded for it.

    Raises:
        ConfigError: it cannot; says what to change.
        DataError: a line of a script is damaged.
    """
    engine, _ = parse_model(settings.model)
    Asking(settings, Path(), "check").close()
    if engine.hosted or engine.model_is == "file":
        open_chat(settings.model).close()
    if settings.batch:
        require_batches(engine, ": leave batch = true out, or change the model")


def _require_no_open_jobs(batches: BatchFolder) -> None:
    """See that no batch job of an earlier start is out: what it answers would be paid for twice."""
    if jobs := batches.open_jobs():
        names = ", ".join(record.label for record in jobs)
        raise ConfigError(
            f"{batches.path}: waits for batch job{'s' if len(jobs) > 1 else ''} {names} of an earlier start: "
            "set batch = true again until they are collected"
        )


def sampling_of(
    model: str, temperature: float, tokens: int, seed: int, item: str, sample: int = 0
) -> Sampling:
    """How one sample of an item is drawn: at this temperature, unless the model's API takes none.

    Args:
        model: `ENGINE:NAME`.
        temperature: 0 is greedy.
        tokens: of the reply at most.
        seed: the run's; the request's own is made of it, the item's id and the sample.
        item, sample: whose.
    """
    own = parse_model(model)[0].sampling == "none"
    return Sampling(None if own else temperature, max_tokens=tokens, seed=request_seed(seed, item, sample))


Known = dict[tuple[SampleKey, str], Reply]  # by item and sample, and the prompt's fingerprint


def prompt_fingerprint(request: Request, model: str) -> str:
    """What a request asks of whom, in 16 hexadecimal digits: an answer to other words, or another model's, is not its
    answer."""
    parts = [model, *(f"{message.role}\0{message.content}" for message in request.messages)]
    parts += [repr(request.sampling), request.response_schema.name if request.response_schema else ""]
    return hashlib.sha256("\0\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def stored_answers(path: Path) -> Known:
    """The stored answers of a part, the last one to each prompt; failures are not among them.

    Raises:
        DataError: a line is no call; names file and line.
    """
    if not path.exists():
        return {}
    found: Known = {}
    for where, record in read_jsonl(path, torn_tail=True):
        if "result" in record:  # of a moderation endpoint, which was asked before (`guard`)
            continue
        prompt, response = read_line(record, where)
        if isinstance(response, Response):
            found[(response.id, response.sample), prompt] = _reply(response)
    return found


def read_line(record: Mapping[str, Any], where: str) -> tuple[str, Response | FailedResponse]:
    """One stored call: the prompt's fingerprint and what came. Raises DataError; its message starts with `where`."""
    prompt = record.get("prompt")
    if not isinstance(prompt, str):
        raise DataError(f"{where}: not a stored call: prompt is missing")
    told = {key: value for key, value in record.items() if key not in ("prompt", "model")}
    return prompt, read_response(told, where)


def line_of(request: Request, outcome: Outcome) -> dict[str, Any]:
    """What came of a request, as its line holds it beside the prompt's fingerprint and the model."""
    if isinstance(outcome, Failure):
        return FailedResponse(request.id, request.sample, outcome).to_dict()
    return Response(
        request.id,
        request.sample,
        outcome.text,
        outcome.finish_reason,
        outcome.usage,
        outcome.thinking,
        outcome.request_id,
    ).to_dict()


def _reply(response: Response) -> Reply:
    return Reply(
        response.text, response.finish_reason, response.usage, response.thinking, response.request_id
    )
