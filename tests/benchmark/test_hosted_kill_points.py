"""Killed at each write to each file of a hosted run, in the middle of the line: what is left, and how it goes on.

A kill between two bytes is an exception out of the write, after which nothing can be written any more; the files
are then as `kill -9` leaves them. Real kills are in `test_hosted_runs` and `test_hosted_batches`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hosted_runs import MODELS, HostedRun
from providers import JobPlan, ProviderServer

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.batch import batch_runner
from h2htalk.chat.store.call_store import read_store
from h2htalk.data.append_log import AppendLog

ITEMS = 4


class Killed(BaseException):
    """The process is gone."""


class Pen:
    """Writes for all logs of a run, and dies at its so-many-th write, `part` of it (0 to 1) done."""

    def __init__(self, at: int | None = None, part: float = 1.0) -> None:
        self.at, self.part = at, part
        self.writes = 0
        self.write = AppendLog._write

    @property
    def dead(self) -> bool:
        return self.at is not None and self.writes >= self.at

    def __call__(self, log: AppendLog, line: bytes, size: int) -> None:
        self.writes += 1
        if self.dead:
            if self.writes == self.at and self.part:
                log._file.write(line[: int(len(line) * self.part)])
            raise Killed
        self.write(log, line, size)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("FIRST_POLL", 0.01), ("LONGEST_POLL", 0.02), ("SETTLE", 0.05)):
        monkeypatch.setattr(batch_runner, name, seconds)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProviderServer]:
    with ProviderServer(faults_at={"item1": "http_500:1"}, plan=JobPlan(looks=2)) as running:
        for key, value in running.environment().items():
            monkeypatch.setenv(key, value)
        yield running


def go(run: HostedRun, pen: Pen, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Evaluate until the end (True) or the kill (False)."""
    spec = EvaluateSpec(model=run.model, split=str(run.folder / "split"), out=str(run.out), **run.settings)
    monkeypatch.setattr(AppendLog, "_write", lambda log, line, size: pen(log, line, size))
    try:
        complete = not evaluate(spec).incomplete
        # Whoever dies in its very last write may come to its end.
        return complete and not pen.dead
    except Killed:
        return False
    finally:
        monkeypatch.setattr(AppendLog, "_write", pen.write)


@pytest.mark.slow
@pytest.mark.parametrize(
    "points",
    [pytest.param(slice(4, None, 5), id="some"), pytest.param(slice(None), id="all", marks=pytest.mark.live)],
)
@pytest.mark.parametrize("batch", [False, True], ids=["calls", "jobs"])
@pytest.mark.parametrize("provider", MODELS)
def test_whatever_write_is_the_last_one_every_answer_is_kept_and_paid_once(
    tmp_path: Path,
    provider: str,
    batch: bool,
    points: slice,
    server: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pen = Pen()
    settings = {"batch": batch, "concurrency": 2}
    whole = HostedRun(server, tmp_path / "whole", MODELS[provider], ITEMS, settings)
    assert go(whole, pen, monkeypatch)
    assert whole.require_true_books().paid == server.bill()
    assert pen.writes > (ITEMS if batch else 2 * ITEMS)  # each call is reserved, and settled by its reply
    # Half a line, or a whole one, after which it is not known that it was written.
    for at, part in [(at, part) for at in range(1, pen.writes + 1) for part in (0.5, 1.0)][points]:
        earlier = len(server.charged())
        server.seen.clear()
        run = HostedRun(server, tmp_path / f"{at}-{part}", MODELS[provider], ITEMS, settings)
        assert not go(run, Pen(at, part), monkeypatch)
        stored, charged = run.stored(), server.charged()[earlier:]
        assert go(run, Pen(), monkeypatch), f"killed at write {at}, it did not go on"
        assert run.stored().items() >= stored.items(), f"killed at write {at}, an answer was lost"
        assert len(run.stored()) == ITEMS
        later = server.charged()[earlier + len(charged) :]
        # What was asked again had not been stored; a job's results are read again, never computed again.
        assert len(later) == ITEMS - (len(charged) if batch else len(stored)), f"killed at write {at}"
        run.require_true_books(earlier=earlier)
        assert read_store(run.out / "calls.jsonl").open_jobs("generate") == []
