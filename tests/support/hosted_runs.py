"""Runs of the real command line against the provider double, and what must hold of every one of them.

A test makes a `HostedRun`, carries it out in this process (`run`) or as one of its own (`start`, `finish`), and asks
what was stored and what the journal of costs says. Everything that a run leaves or says is searched for the key.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, quote_plus

import pytest

from h2htalk.chat.batch import batch_runner
from h2htalk.chat.prices import Totals
from h2htalk.chat.store.call_store import read_costs, read_store
from support.command_line import h2htalk_here
from support.doubles.providers import KEY, ProviderServer, price_file
from support.kills import communicate
from support.splits import write_split

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])
# One of them in the quick tests, the other where `-m live` runs.
_LATER = {name: pytest.param(name, marks=pytest.mark.live) for name in ("openai", "anthropic")}
OPENAI_FIRST = pytest.mark.parametrize("provider", ["openai", _LATER["anthropic"]])
ANTHROPIC_FIRST = pytest.mark.parametrize("provider", ["anthropic", _LATER["openai"]])
MODELS = {"openai": "openai:gpt-test", "anthropic": "anthropic:claude-test"}
# Batch jobs are looked at every few hundredths of a second, since those of the double end at once.
HURRY = {"FIRST_POLL": 0.03, "LONGEST_POLL": 0.2, "SETTLE": 0.5}
HURRIED_MAIN = f"""from h2htalk.chat.batch import batch_runner
from h2htalk.cli import main
vars(batch_runner).update({HURRY})
main()"""
_PROGRESS = re.compile(r"\w+ +\d+/\d+ |batch|.*waiting for", re.IGNORECASE)
_ITEM = re.compile(r"item(\d+)")


def hurried() -> AbstractContextManager[object]:
    return patch.multiple(batch_runner, **HURRY)


def error_lines(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if not _PROGRESS.match(line)]


@dataclass(slots=True)
class HostedRun:
    server: ProviderServer
    folder: Path
    model: str
    items: int
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        write_split(self.folder / "split", self.items)
        (self.folder / "prices.toml").write_text(price_file())
        common = {
            "embedder": "none",
            "baselines": False,
            "max_tokens": 64,
            "prices": str(self.folder / "prices.toml"),
        }
        self.settings = common | self.settings

    @property
    def out(self) -> Path:
        return self.folder / "run"

    def command(self, *options: object, **settings: Any) -> list[str]:
        """The arguments of the command; `settings` are laid over the run's own for this once."""
        spec = self.folder / "spec.toml"
        spec.write_text(
            "".join(f"{k} = {json.dumps(v)}\n" for k, v in {**self.settings, **settings}.items())
        )
        places = [
            "--spec",
            str(spec),
            "--split",
            str(self.folder / "split"),
            "--out",
            str(self.out),
        ]
        return ["evaluate", self.model, *places, *map(str, options)]

    def start(self, *options: object, **settings: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", HURRIED_MAIN, *self.command(*options, **settings)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.server.environment(),
            cwd=self.folder,
        )

    def finish(
        self, process: subprocess.Popen[str], code: int = 0
    ) -> subprocess.CompletedProcess[str]:
        stdout, stderr = communicate(process)
        return self._check(process.returncode, stdout, stderr, code)

    def run(
        self, *options: object, code: int = 0, **settings: Any
    ) -> subprocess.CompletedProcess[str]:
        """Carry the command out in this process, and want that exit code."""
        with patch.dict(os.environ, self.server.environment()), hurried():
            done = h2htalk_here(*self.command(*options, **settings))
        return self._check(done.returncode, done.stdout, done.stderr, code)

    def _check(
        self, got: int, stdout: str, stderr: str, code: int
    ) -> subprocess.CompletedProcess[str]:
        assert got == code, stderr or stdout
        assert "Traceback" not in stderr, stderr
        left = {path.name: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        left |= {"its output": stdout.encode(), "its messages": stderr.encode()}
        for where, content in left.items():
            assert not [one for one in SPELLINGS if one in content], f"the key stands in {where}"
        return subprocess.CompletedProcess([], got, stdout, stderr)

    def lines(self) -> list[dict[str, Any]]:
        path = self.out / "calls.jsonl"
        return (
            [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
            if path.exists()
            else []
        )

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

    def charges_by_item(self) -> Counter[str]:
        """Item -> replies that the server charged for."""
        return sum(
            (Counter({item_of(one.item): one.samples}) for one in self.server.charged()),
            Counter[str](),
        )

    def require_true_books(self, closed: bool = True) -> Totals:
        """The journal and the server agree: what is paid was charged to the digit, and nothing is left out.

        `closed`: the run came to its own end, so that no call is open.
        """
        charges = {charge.request_id: charge for charge in self.server.charged()}
        paid: set[object] = set()
        most: defaultdict[str, Decimal] = defaultdict(
            Decimal
        )  # that all calls of an item can have cost
        for call in read_store(self.out / "calls.jsonl").calls:
            worst = call.worst or Decimal(0)
            if call.usd is not None:
                assert call.items not in paid, f"{call.items} was paid twice"
                assert call.usd <= worst, "a call cost more than was reserved"
                # A call that a kill left open is settled by its stored answer, without an id.
                if call.request_id is not None:
                    assert (
                        charges[re.sub(r"^(msg_|chatcmpl-)", "", call.request_id)].dollars
                        == call.usd
                    )
                paid.add(call.items)
            if call.billing != "free":
                most[call.id] += worst if call.usd is None else call.usd
        for charge in charges.values():
            most[item_of(charge.item)] -= charge.dollars
        assert min(most.values(), default=0) >= 0, f"an item cost more than the books say: {most}"
        totals = read_costs(self.out)["generate"]
        assert (totals.usd_paid or 0) <= self.server.bill()
        assert not (closed and totals.open)
        return totals


def item_of(message: str) -> str:
    return name(int(_ITEM.findall(message)[-1]))


def name(number: int) -> str:
    return f"made-{number:05}"


def _spellings(key: str) -> set[bytes]:
    """The key as text, in JSON, in URLs and in base64 at each of its three offsets; half a key is half a secret."""
    plain = {
        *(key, key[:18], key[-16:], quote(key, safe=""), quote_plus(key)),
        *(json.dumps(key)[1:-1], key.replace("/", "\\/")),
    }
    encoders = (base64.b64encode, base64.urlsafe_b64encode)
    coded = {encode(b"x" * shift + key.encode())[4:-4] for shift in range(3) for encode in encoders}
    return {text.encode() for text in plain} | coded


SPELLINGS = _spellings(KEY)
