"""What the tests of the live loop share."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.hosted_apis import APIS, PROVIDERS, Api, set_keys

if TYPE_CHECKING:
    from support.doubles.batch_double import BatchDouble


@pytest.fixture
def hosted_loop(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Made-up keys; waits between attempts as they are, but a hundred times shorter; nothing left lying about, of
    which asyncio would log: an exception nobody saw, a connection nobody closed."""
    set_keys(monkeypatch)
    monkeypatch.setattr("h2htalk.chat.live_calls.FIRST_WAIT", 0.005)
    monkeypatch.setattr("h2htalk.chat.live_calls.LONGEST_WAIT", 0.08)
    yield
    gc.collect(1)  # the young: a whole collection takes half a second once the SDKs are loaded
    records = caplog.get_records("call") + caplog.records
    assert [record.getMessage() for record in records if record.name == "asyncio"] == []


@pytest.fixture(params=APIS)
def api(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, hosted_loop: None) -> Api:
    return Api(str(request.param), monkeypatch)


@pytest.fixture(params=PROVIDERS)
def double(request: pytest.FixtureRequest, tmp_path: Path) -> BatchDouble:
    """The batch API of each provider, and a folder with a call store."""
    from support.doubles.batch_double import BatchDouble  # it loads both SDKs

    return BatchDouble(str(request.param), tmp_path)


@pytest.fixture(params=PROVIDERS)
def provider(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, hosted_loop: None
) -> Api:
    return Api(str(request.param), monkeypatch)
