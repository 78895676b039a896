"""Shards made for a test: a split, a server that answers each item in its own words, attempts at all shards."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.scale.attempts import Attempt, Shard, read_attempts
from h2htalk.scale.shards import evaluate_shard
from h2htalk.scale.storage_folder import StorageFolder
from support.doubles.loopback import Answer, LoopbackServer
from support.splits import write_split

ITEMS, OF = 24, 4
# What the bytes of a run do not say: when, where and in which order its answers came.
OF_TIME = {"run.json", "calls.jsonl", "report.html", "tables/run.csv", "links.jsonl"}


def own_words(body: dict[str, Any], count: int) -> str | Answer:
    """A reply that depends on the request alone."""
    return f"I hear you, {hashlib.sha256(json.dumps(body).encode()).hexdigest()[:8]}. What weighs most?"


def spec_of(
    server: LoopbackServer, folder: Path, out: str = "shards", **settings: Any
) -> EvaluateSpec:
    split = folder / "split"
    if not split.exists():
        write_split(split, ITEMS)
    given = {
        "model": server.spec,
        "split": str(split),
        "embedder": "none",
        "out": out if "://" in out else str(folder / out),
        "attempts": 1,
    }
    return EvaluateSpec(**{**given, **settings})


def attempt_all(spec: EvaluateSpec, of: int = OF, but: Sequence[int] = ()) -> None:
    """Make an attempt at each shard, but for some."""
    for number in range(1, of + 1):
        if number not in but:
            evaluate_shard(spec, Shard(number, of))


def attempts_at(spec: EvaluateSpec, number: int, of: int = OF) -> list[Attempt]:
    return read_attempts(StorageFolder(spec.out) / Shard(number, of).folder)


def same_bytes(one: Path, other: Path) -> dict[str, str]:
    """What differs between two runs beside what only times decide: empty where they are the same."""
    names = {
        p.relative_to(run).as_posix() for run in (one, other) for p in run.rglob("*") if p.is_file()
    }
    found = {}
    for name in sorted(name for name in names - OF_TIME if not name.endswith(".lock")):
        if not ((one / name).exists() and (other / name).exists()):
            found[name] = "is in one alone"
        elif (one / name).read_bytes() != (other / name).read_bytes():
            found[name] = "differs"
    return found
