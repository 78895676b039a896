"""Words that the tests of batch jobs share: what came of requests, what is to become of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from batch_double import CALL_USD, PROVIDERS, BatchDouble, Fate, requests
from provider_batches import Job

from h2htalk.chat.prices import Totals
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.chat.store.call_store import BatchRecord, CallStore, StageCalls, read_store
from h2htalk.data.responses import SampleKey

both = pytest.mark.parametrize("provider", PROVIDERS)


def texts(outcomes: list[Outcome]) -> list[str]:
    """What each request got: the reply's text, or the failure's reason."""
    return [o.text if isinstance(o, Reply) else o.reason for o in outcomes]


def fates(**by_text: str) -> Fate:
    """What becomes of a text: its fates in turn, the last one for good; `ok` where nothing is ordered."""

    def fate(text: str, times: int) -> str:
        words = by_text.get(text, "ok").split()
        return words[min(times, len(words)) - 1]

    return fate


def interrupt_once_there_is(double: BatchDouble) -> Callable[[str], None]:
    """Ctrl-C at the first call after a job was made."""

    def before(_: str) -> None:
        if double.jobs:
            raise KeyboardInterrupt

    return before


def events(folder: Path) -> list[str]:
    """What was recorded of jobs."""
    lines = map(json.loads, (folder / "calls.jsonl").read_text().splitlines())
    return [line["event"] for line in lines if "job" in line]


PLACE = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}  # where jobs are made and looked at


def jobs_in(folder: Path) -> list[BatchRecord]:
    """The open jobs of a store."""
    return read_store(folder / "calls.jsonl").open_jobs("generate")


def totals(calls: StageCalls) -> Totals:
    return calls.store.totals().get(calls.stage, Totals())


class Killed(BaseException):
    """Nothing may catch it, as nothing catches `kill -9`."""


class Story:
    """A run that is killed and started again, with the call store of its folder."""

    def __init__(self, double: BatchDouble, folder: Path, asked: list[Request], limit: Decimal | None = None):
        self.double, self.folder, self.asked, self.limit = double, folder, asked, limit
        self.stored: dict[SampleKey, Outcome] = {}
        self.attempts = 4
        self.before_store: Callable[[], None] = lambda: None
        self.after_store: Callable[[], None] = lambda: None

    def run(self) -> list[Outcome]:
        """One start: asks for what is not stored."""
        store = CallStore(self.folder / "calls.jsonl").open()
        self.stored |= {(item, sample): reply for (_, item, sample, _), reply in store.replies.items()}
        missing = [request for request in self.asked if not isinstance(self.answer(request), Reply)]
        given: Counter[int] = Counter()

        def on_done(index: int, outcome: Outcome) -> None:
            given[index] += 1
            self.before_store()
            self.stored[missing[index].id, missing[index].sample] = outcome
            self.after_store()

        calls = self.double.calls_in(store, self.limit)
        outcomes = self.double.run(missing, calls, on_done, self.attempts)
        self.totals = totals(calls)
        assert given == dict.fromkeys(range(len(missing)), 1), "every request has exactly one outcome"
        return outcomes

    def killed(self) -> None:
        """One start that does not end by itself."""
        with pytest.raises(Killed):
            self.run()

    def answer(self, request: Request) -> Outcome | None:
        return self.stored.get((request.id, request.sample))

    def is_whole(self) -> bool:
        """Everything has its own reply."""
        answers = [self.answer(request) for request in self.asked]
        return all(isinstance(a, Reply) and a.text == f"re: {r.id}" for a, r in zip(answers, self.asked, strict=True))

    def require_paid_once(self) -> None:
        """The provider charged each call once, and the store says just that."""
        assert self.is_whole()
        calls = len(self.double.api.calls(self.asked))
        assert self.totals.usd_paid == self.double.bill == calls * CALL_USD
        assert (self.totals.open, self.totals.possibly_paid, self.totals.usd_open) == (0, 0, 0)

    @property
    def open_jobs(self) -> list[str]:
        return [job.state for job in jobs_in(self.folder)]


def story(provider: str, folder: Path, *names: str) -> Story:
    return Story(BatchDouble(provider), folder, requests(*(names or ("a", "b", "c"))))


def kill_at(wanted: str, error: BaseException | None = None) -> Callable[[str], None]:
    """For `before` and `after`: kill at the first call that starts so; later ones go through."""
    left = [error or Killed()]

    def hook(call: str) -> None:
        if call.startswith(wanted) and left:
            raise left.pop()

    return hook


def stranger(double: BatchDouble, calls: int, seconds: float = 0.0) -> Job:
    """A job of somebody else, made so many seconds from now."""
    body = {"messages": [{"content": "somebody else's"}]}
    return double.create(double.provider, [(f"nightly-{n}", body) for n in range(calls)], created=double.now + seconds)
