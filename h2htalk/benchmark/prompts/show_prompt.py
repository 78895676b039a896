"""Print a model's messages: those of one scenario to read, or of every scenario as JSONL for another tool."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.prompts.sap import Sap
from h2htalk.chat.protocol import Message
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, quoted
from h2htalk.text.escaping import printable


def prompt_lines(scenario_id: str | None, split_name: str, sap: str, folder: Path | None = None) -> Iterator[str]:
    """Yield the lines to print: a `--- role ---` heading and the text of each message, or one JSON object a scenario.

    Args:
        scenario_id: the scenario; None, or `all` where no scenario has this id, prints every one as JSON.
        split_name: as in `load_split`.
        sap: as in `EvaluateSpec`.
        folder: templates that replace bundled ones.

    Raises:
        ConfigError: no such scenario in the split; the message lists similar ids.
    """
    split, scaffolding = load_split(split_name), Sap.parse(sap)
    prompts = PromptSet.load_for(folder, split, scaffolding)
    chosen = [s for s in split.scenarios if s.id == scenario_id]
    if not chosen and scenario_id not in (None, "all"):
        from rapidfuzz.process import extract

        near = [name for name, _, _ in extract(scenario_id, [s.id for s in split.scenarios], limit=3)]
        raise ConfigError(f"split {split.name} has no scenario {quoted(scenario_id)}; similar ids: {', '.join(near)}")
    for scenario in chosen or split.scenarios:
        messages = prompts.messages(scenario, split.personas[scenario.persona], scaffolding)
        if not chosen:
            yield _json(scenario.id, messages)
            continue
        for message in messages:
            yield f"--- {message.role} ---"
            # Line ends stay; other control characters are escaped.
            yield from (printable(line) for line in message.content.split("\n"))


def _json(scenario_id: str, messages: Iterable[Message]) -> str:
    """Format one line of JSON for another tool, in ASCII, so that control characters are escaped."""
    listed = [{"role": m.role, "content": m.content} for m in messages]
    return json.dumps({"id": scenario_id, "messages": listed}).replace("\x7f", "\\u007f")
