"""Runs of the real command line against the provider double, and what must hold of every one of them.

A test makes a `HostedRun`, carries it out in this process (`run`) or as one of its own (`start`, `finish`), and asks
what was stored and what the journal of costs says. Everything that a run leaves or says is searched for the key.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, quote_plus

import pytest
from provider_wires import KEY
from providers import ProviderServer, price_file
from quick_batches import hurried
from splits_made import write_split

from h2htalk.chat.store.call_store import PaidCall, read_store
from h2htalk.cli import main

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])
# One of them in the quick tests, the other where `-m live` runs.
_LATER = {name: pytest.param(name, marks=pytest.mark.live) for name in ("openai", "anthropic")}
OPENAI_FIRST = pytest.mark.parametrize("provider", ["openai", _LATER["anthropic"]])
ANTHROPIC_FIRST = pytest.mark.parametrize("provider", ["anthropic", _LATER["openai"]])
MODELS = {"openai": "openai:gpt-test", "anthropic": "anthropic:claude-test"}
QUICK = Path(__file__).with_name("quick_batches.py")
_PROGRESS = re.compile(r"\w+ +\d+/\d+ |batch|.*waiting for", re.IGNORECASE)
_ITEM = re.compile(r"item(\d+)")


NOTHING = Decimal(0)


class Books:
    """All calls of a journal. `metered`: those whose reply came and told what it cost; `paid`: their sum; `possible`:
    the most for calls that ended and whose bill nobody knows; `ends`: how many ended how."""

    def __init__(self, journal: Path) -> None:
        self.calls = read_store(journal).calls
        self.metered = [call for call in self.calls if call.usd is not None]
        twice = [items for items, count in Counter(call.items for call in self.metered).items() if count > 1]
        assert not twice, f"{twice} were paid twice"
        assert all(most_of(call) <= (call.worst or 0) for call in self.calls), "a call cost more than was reserved"
        self.ends = Counter(call.billing for call in self.calls)
        self.paid = sum(map(most_of, self.metered), NOTHING)
        self.possible = sum((most_of(c) for c in self.calls if c.usd is None and c.billing != "open"), NOTHING)

    def most_by_item(self) -> dict[str, Decimal]:
        """The most that all calls of an item can have cost, open ones included."""
        sums: defaultdict[str, Decimal] = defaultdict(Decimal)
        for call in self.calls:
            sums[call.id] += most_of(call)
        return sums


def most_of(call: PaidCall) -> Decimal:
    """The most that a call can have cost."""
    return NOTHING if call.billing == "free" else call.usd if call.usd is not None else call.worst or NOTHING


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command said, and its exit code."""

    code: int
    stdout: str
    stderr: str

    @property
    def errors(self) -> list[str]:
        """The lines on stderr that are none of progress."""
        return [line for line in self.stderr.splitlines() if not _PROGRESS.match(line)]


@dataclass(slots=True)
class HostedRun:
    """One run folder and the specification that makes it."""

    server: ProviderServer
    folder: Path
    model: str
    items: int
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        split = self.folder / "split"
        if not split.exists():
            write_split(split, self.items)
        (self.folder / "prices.toml").write_text(price_file())
        common = {"embedder": "none", "baselines": False, "max_tokens": 64, "prices": "prices.toml"}
        self.settings = {**common, **self.settings, "prices": str(self.folder / "prices.toml")}

    @property
    def out(self) -> Path:
        return self.folder / "run"

    def command(self, *options: object, **settings: Any) -> list[str]:
        """The arguments of the command; `settings` are laid over the run's own for this once."""
        spec = self.folder / "spec.toml"
        spec.write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in {**self.settings, **settings}.items()))
        places = ["--spec", str(spec), "--split", str(self.folder / "split"), "--out", str(self.out)]
        return ["evaluate", self.model, *places, *map(str, options)]

    def start(self, *options: object, **settings: Any) -> subprocess.Popen[str]:
        """Start a process of its own."""
        return subprocess.Popen(
            [sys.executable, str(QUICK), *self.command(*options, **settings)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.server.environment(),
            cwd=self.folder,
        )

    def finish(self, process: subprocess.Popen[str], code: int = 0, timeout: float = 60) -> Ended:
        """Wait for the end of a process, and want that exit code."""
        stdout, stderr = process.communicate(timeout=timeout)
        return self._check(Ended(process.returncode, stdout, stderr), code)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """As `kill -9` does, now."""
        process.kill()
        self.finish(process, -signal.SIGKILL)

    def run(self, *options: object, code: int | None = 0, **settings: Any) -> Ended:
        """Carry the command out in this process, and want that exit code (None: any)."""
        stdout, stderr, got = io.StringIO(), io.StringIO(), 0
        with (
            patch.dict(os.environ, self.server.environment()),
            patch.object(sys, "argv", ["h2htalk", *self.command(*options, **settings)]),
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
            hurried(),
        ):
            try:
                main()
            except SystemExit as end:
                got = int(end.code or 0)
        return self._check(Ended(got, stdout.getvalue(), stderr.getvalue()), code)

    def _check(self, ended: Ended, code: int | None) -> Ended:
        assert code is None or ended.code == code, ended.stderr or ended.stdout
        assert "Traceback" not in ended.stderr, ended.stderr
        require_no_key(ended.stdout.encode(), "its output")
        require_no_key(ended.stderr.encode(), "its messages")
        for path in self.folder.rglob("*"):
            if path.is_file():
                require_no_key(path.read_bytes(), path.name)
        return ended

    def lines(self) -> list[dict[str, Any]]:
        """The whole lines of the run's call store."""
        path = self.out / "calls.jsonl"
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1] if line.strip()]

    def stored(self) -> dict[tuple[str, int], str]:
        """Item and sample -> the text that is stored; no answer may stand there twice."""
        found: dict[tuple[str, int], str] = {}
        for line in (one for first in self.lines() for one in (first, *first.get("more", ()))):
            if "text" in line:
                key = (line["id"], line["sample"])
                assert key not in found, f"{key} was answered twice"
                found[key] = line["text"]
        return found

    def failures(self) -> dict[str, str]:
        """Item -> the reason of its last failure, of items without an answer."""
        answered = {item for item, _ in self.stored()}
        failed = [line for line in self.lines() if "failure" in line and line["id"] not in answered]
        return {line["id"]: line["failure"]["reason"] for line in failed}

    def wait_until_stored(self, count: int, process: subprocess.Popen[str], seconds: float = 30) -> None:
        """Until so many answers are stored."""
        limit = time.monotonic() + seconds
        while len(self.stored()) < count and process.poll() is None:
            assert time.monotonic() < limit, "nothing is stored"
            time.sleep(0.01)

    def charges_by_item(self) -> Counter[str]:
        """Item -> replies that the server charged for."""
        counts: Counter[str] = Counter()
        for charge in self.server.charged():
            counts[item_of(charge.item)] += charge.samples
        return counts

    def require_true_books(self, closed: bool = True) -> Books:
        """The journal and the server agree: what is paid was charged to the digit, and nothing is left out.

        `closed`: the run came to its own end, so that no call is open.
        """
        books, charges = Books(self.out / "calls.jsonl"), self.server.charged()
        dollars = {charge.request_id: charge.dollars for charge in charges}
        for call in books.metered:
            # A call that a kill left open is settled by its stored answer, without an id.
            if call.request_id is not None:
                assert dollars[re.sub(r"^(msg_|chatcmpl-)", "", call.request_id)] == call.usd
        by_item: defaultdict[str, Decimal] = defaultdict(Decimal)
        for charge in charges:
            by_item[item_of(charge.item)] += charge.dollars
        most = books.most_by_item()
        assert books.paid <= sum(dollars.values()) <= sum(most.values())
        for item, cost in by_item.items():
            assert cost <= most[item], f"{item} cost more than the books say"
        assert not (closed and books.ends["open"])
        return books


def item_of(message: str) -> str:
    """The item of the split that a prompt is of."""
    marks = _ITEM.findall(message)
    assert marks, message
    return f"made-{int(marks[-1]):05}"


def name(number: int) -> str:
    """The id of an item of a split made for a test."""
    return f"made-{number:05}"


def spellings(key: str) -> set[bytes]:
    """The key as text, in JSON, in URLs and in base64 at each of its three offsets."""
    plain = {key, quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1], key.replace("/", "\\/")}
    encoders = (base64.b64encode, base64.urlsafe_b64encode)
    coded = {encode(b"x" * shift + key.encode())[4:-4] for shift in range(3) for encode in encoders}
    # Half a key is half a secret.
    return {text.encode() for text in plain} | coded | {key[:18].encode(), key[-16:].encode()}


def require_no_key(content: bytes, where: str) -> None:
    """The key stands nowhere in those bytes, in no spelling."""
    for spelling in spellings(KEY):
        assert spelling not in content, f"the key stands in {where}"
