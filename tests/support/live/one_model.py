"""A model behind a loopback server, whose replies depend on the messages alone, and our own runs of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import h2htalk
from h2htalk.benchmark.metrics.composite import LEXICAL_COLUMNS
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import write_jsonl
from h2htalk.data.splits import load_split
from h2htalk.integrations.harness_split import HarnessSplit
from support.doubles.loopback import LoopbackServer

PARTS = LEXICAL_COLUMNS
LANGUAGES = {"en": 176, "zh": 176}  # items of mini
Messages = tuple[tuple[str, str], ...]


def key_of(messages: Iterable[Mapping[str, str]]) -> Messages:
    """Roles and contents, to the last space; a message has nothing else."""
    assert all(one.keys() == {"role", "content"} for one in messages)
    return tuple((one["role"], one["content"]) for one in messages)


@cache
def items() -> dict[Messages, Any]:
    return {key_of(item.messages): item for item in HarnessSplit("mini").items}


def reply(request: dict[str, Any], count: int = 0) -> str:
    """Answer a request by its messages: a reference, half of one, words of one out of order, nothing, or spaces and an
    emoji around one."""
    asked = key_of(request["messages"])
    digest = hashlib.sha256(json.dumps(asked).encode()).digest()
    text = items()[asked].references[0]
    kinds = [
        text,
        text[: len(text) // 2],
        " ".join(text.split()[::-1]),
        "",
        f"\n {text} 🙂 \n\n{text[:9]}  ",
    ]
    return kinds[digest[0] % len(kinds)]


@dataclass(frozen=True)
class Seen:
    """What a server saw: the messages of each request, and its `max_tokens`, by item."""

    messages: dict[str, Messages]
    budgets: dict[str, int]

    @classmethod
    def by(cls, server: LoopbackServer) -> Seen:
        requests = [json.loads(body) for body in server.counts.elements()]
        found = [(items()[key_of(one["messages"])].id, one) for one in requests]
        assert len(found) == len(dict(found)), "an item was asked for twice"
        budgets = {
            name: one.get("max_tokens") or one["max_completion_tokens"] for name, one in found
        }
        return cls({name: key_of(one["messages"]) for name, one in found}, budgets)


def columns(language: str) -> tuple[str, ...]:
    """The columns of scores with the embedder `minilm`, which is for English."""
    return (*PARTS, "lexical", *(("ss", "s") if language == "en" else ()))


def write_private(folder: Path, limit: int, every: int) -> set[str]:
    """Write a split in which every so many English items have no reference; returns their ids."""
    records = [one.to_dict() for one in load_split("mini").select("en", limit=limit).scenarios]
    for record in records[::every]:
        del record["reference"]
        record["references"] = []
    write_jsonl(folder / "scenarios.jsonl", records)
    return {record["id"] for record in records[::every]}


@dataclass(frozen=True)
class Ours:
    """A run of `h2htalk.evaluate`: its folder, its scores by item, its summary, and what its server saw."""

    out: Path
    scores: dict[str, dict[str, Any]]
    summary: Summary
    seen: Seen

    @property
    def broken(self) -> set[str]:
        return {name for name, row in self.scores.items() if row["violations"]}


def run_ours(out: Path) -> dict[str, Ours]:
    runs = {}
    for language in LANGUAGES:
        with LoopbackServer(reply=reply) as server:
            spec = h2htalk.EvaluateSpec(
                model=server.spec,
                split="mini",
                language=language,
                out=str(out / language),
                embedder="minilm",
            )
            summary = h2htalk.evaluate(spec)
            seen = Seen.by(server)
        rows = h2htalk.load_run(out / language).scores().to_pylist()
        runs[language] = Ours(out / language, {row["id"]: row for row in rows}, summary, seen)
    return runs


def require_ours(ours: Ours, theirs: Mapping[str, Mapping[str, Any]], language: str) -> None:
    """The values of every item are those of our own run to 1e-9."""
    assert theirs.keys() == ours.scores.keys()
    assert len(theirs) == LANGUAGES[language]
    own = ours.scores.items()
    found = {
        name: max(abs(theirs[one][name] - row[name]) for one, row in own)
        for name in columns(language)
    }
    assert {name: most for name, most in found.items() if most > 1e-9} == {}
