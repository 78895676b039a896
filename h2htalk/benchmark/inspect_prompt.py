"""Show what a model sees: one scenario's messages to read, or every scenario's as JSONL for another tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from h2htalk.benchmark.prompting import PromptSet
from h2htalk.benchmark.sap import Sap
from h2htalk.data.files import json_line
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError
from h2htalk.text.printable import printable


def prompt_lines(scenario_id: str, split_name: str, sap: str, folder: Path | None = None) -> Iterator[str]:
    """Lines to print: a `--- role ---` heading and the text of each message, or with `all` one JSON a scenario.

    Raises:
        ConfigError: no such scenario in the split; near ids are named.
    """
    split, prompts, scaffolding = load_split(split_name), PromptSet.load(folder), Sap.parse(sap)
    chosen = [s for s in split.scenarios if scenario_id in ("all", s.id)]
    if not chosen:
        from rapidfuzz.process import extract

        near = [name for name, _, _ in extract(scenario_id, [s.id for s in split.scenarios], limit=3)]
        raise ConfigError(f"split {split.name} has no scenario {scenario_id!r}; near ones: {', '.join(near)}")
    for scenario in chosen:
        messages = prompts.messages(scenario, split.personas[scenario.persona], scaffolding)
        if scenario_id == "all":
            listed = [{"role": m.role, "content": m.content} for m in messages]
            yield json_line({"id": scenario.id, "messages": listed}).rstrip("\n")
            continue
        for message in messages:
            yield f"--- {message.role} ---"
            # Line ends are the text's own; anything else that acts on a terminal is shown as its escape.
            yield from (printable(line) for line in message.content.split("\n"))
