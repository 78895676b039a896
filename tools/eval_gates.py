"""Count the real dialogues that the gate on leaked prompts stops, or where words point at a minor beside romance.

Nearly all of them are clean.

    H2HTALK_DATA=... python tools/eval_gates.py [--show]

Of the sources that classifiers learn from, only the dialogues held out from training (of EmoLLM every second one). In
MemoryBank companions say that they are an AI, which is a leak.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from eval_safety import unseen

from h2htalk.curation.release.content import ReleaseContent, ReleaseItem
from h2htalk.curation.release.gate_context import GateContext
from h2htalk.curation.release.gates import GATES, HINTS
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.data.scenario import Scenario, bundled_personas

Said = tuple[str, str]  # role, text


def dialogues(data: Path) -> Iterator[tuple[str, str, list[Said]]]:
    """The source, the language and the messages of each."""
    for name, own in unseen(data):
        for one in own if name != "EmoLLM" else ():
            yield name, one.language, [(turn.role, turn.content) for turn in one.messages]
    for row in json.loads((data / "raw/emollm_aiwei_zh.json").read_text(encoding="utf-8"))[1::2]:
        turns = row["conversation"]
        yield (
            "EmoLLM",
            "zh",
            [s for t in turns for s in (("user", t["input"]), ("companion", t["output"]))],
        )
    for row in json.loads((data / "safety/diasafety_val.json").read_text(encoding="utf-8")):
        yield "DiaSafety", "en", [("user", row["context"]), ("companion", row["response"])]


def items(data: Path) -> Iterator[tuple[str, Scenario]]:
    """Scenarios whose reference is the companion's last message."""
    for number, (source, language, messages) in enumerate(dialogues(data)):
        grouped = groupby(
            ((role, text.strip()) for role, text in messages if text.strip()),
            key=lambda one: one[0],
        )
        turns = [
            {"role": role, "content": "\n".join(text for _, text in group)}
            for role, group in grouped
        ]
        while turns and turns[-1]["role"] != "companion":
            turns.pop()
        if len(turns) > 1:
            record = {
                "id": f"real-{number:06}:dialogue_base",
                "subtask": "dialogue_base",
                "language": language,
                "persona": "nora",
                "inputs": {"history": turns[:-1]},
                "references": [turns[-1]["content"]],
                "tags": {
                    "emotion": "sadness",
                    "complexity": "basic",
                    "interaction": "casual",
                    "risk": "none",
                },
                "provenance": {"source": source, "dialogue": f"real-{number:06}"},
                "licence": "CC-BY-4.0",
            }
            yield f"{source} {language}", Scenario.from_dict(record)


def main() -> int:
    found = list(items(Path(os.environ["H2HTALK_DATA"])))
    sources = {one.id: source for source, one in found}
    content = ReleaseContent(
        {"test": tuple(ReleaseItem(one, ()) for _, one in found)}, personas=bundled_personas()
    )
    of = Counter(sources.values())
    for gate in ("leaked_prompts", "minors"):
        findings = HINTS.get(gate, GATES[gate]).run(
            content, GateContext(ReleaseSpec("real", "1.0.0", "CC-BY-4.0", ""))
        )
        stopped = Counter(sources[item] for item in {finding.item for finding in findings})
        print(gate, ", ".join(f"{source} {stopped[source]} of {n:,}" for source, n in of.items()))
        for finding in findings if "--show" in sys.argv else ():
            print(f"  {sources[finding.item]}: {finding.detail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
