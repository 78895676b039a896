"""Killed at any byte of a journal and at any call: in the end every batch call is paid once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from unittest import mock

import pytest
from batch_double import CALL_USD, PRICE, BatchDouble, Killed, Story, both, requests, stranger
from hypothesis import example, given
from hypothesis import strategies as st

from h2htalk.data.files import AppendLog

# --- Killed anywhere --------------------------------------------------------------------------------------------


@contextmanager
def killed_at_write(number: int, share: float) -> Iterator[None]:
    """Kill in the middle of the so-many-th write to a journal, with that share of its bytes on disk."""
    left = [number]
    whole = AppendLog._write

    def write(log: AppendLog, lines: bytes, size: int) -> None:
        left[0] -= 1
        if left[0] != 0:
            whole(log, lines, size)
            return
        with log.path.open("ab") as file:
            file.write(lines[: int(len(lines) * share)])
        raise Killed

    with mock.patch.object(AppendLog, "_write", write):
        yield


@contextmanager
def killed_at_call(double: BatchDouble, number: int, after: bool) -> Iterator[None]:
    """Kill before or after the provider did its part of the so-many-th call."""
    left = [number]

    def kill(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    name = "after" if after else "before"
    previous = getattr(double, name)
    setattr(double, name, kill)
    try:
        yield
    finally:
        setattr(double, name, previous)


WRITES = st.tuples(st.just("write"), st.integers(1, 24), st.sampled_from([0.0, 0.3, 0.9, 1.0]))
CALLS = st.tuples(st.just("call"), st.integers(1, 12), st.sampled_from([0.0, 1.0]))
FATES = ("ok", "ok", "ok expired ok", "expired ok", "overloaded ok", "uncomputed ok", "expired overloaded ok")


@pytest.mark.slow
@both
@given(
    kills=st.lists(WRITES | CALLS, min_size=1, max_size=5),
    fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=4),
    samples=st.integers(1, 2),
    strangers=st.booleans(),
)
@example(kills=[("write", 4, 0.3), ("call", 3, 1.0)], fates=["ok", "expired ok"], samples=2, strangers=True)
def test_killed_anywhere_every_call_is_paid_once(
    provider: str,
    kills: list[tuple[str, int, float]],
    fates: list[str],
    samples: int,
    strangers: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever byte of a journal or call of the API a run is killed at, however often: in the end every request has
    its reply, nothing that is stored was asked for again, and the store says what the provider charged."""
    # Anthropic has a result for every request.
    fates = [fate.replace("uncomputed", "expired") if provider == "anthropic" else fate for fate in fates]
    orders = {f"item {number}": fate.split() for number, fate in enumerate(fates)}

    def fate(text: str, times: int) -> str:
        words = orders.get(text, ["ok"])
        # In a call a sample, the samples share their item's fates.
        return words[min((times - 1) // (samples if provider == "anthropic" else 1), len(words) - 1)]

    double = BatchDouble(provider, fate, seed=len(kills))
    asked = requests(*orders, samples=samples)
    bounds = [double.api.bound(call) for call in double.api.calls(asked)]
    worst = [PRICE.worst(bound.input_tokens, bound.output_tokens, batch=True) for bound in bounds]
    # No more than one batch of everything may cost: what a kill leaves reserved would otherwise be in the way.
    limit = sum((dollars or Decimal(0) for dollars in worst), Decimal(0))
    run = Story(double, tmp_path_factory.mktemp("killed"), asked, limit)
    if strangers:
        stranger(double, len(run.asked), -5.0)
    for kind, number, share in kills:
        kill = killed_at_write(number, share) if kind == "write" else killed_at_call(double, number, share == 1.0)
        try:
            with kill:
                run.run()
        except Killed:
            if strangers:
                stranger(double, len(run.asked))
    # Failures are asked for again by hand, as `uncomputed` ones are.
    for _ in range(4):
        if not run.is_whole():
            run.run()
    assert run.run() == []
    assert run.is_whole()
    ours = sum(count for text, count in double.charged.items() if text in orders)
    assert ours == len(orders) * (1 if provider == "openai" else samples), "each call is computed once"
    assert run.totals.usd_paid == CALL_USD * ours
    assert (run.totals.open, run.totals.possibly_paid) == (0, 0)
    assert run.open_jobs == []
