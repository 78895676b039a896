"""A small release folder, made by hand: scenarios of both languages in two splits, two cases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from h2htalk.data.case import Case
from h2htalk.data.files import write_json, write_text
from h2htalk.data.readers.reads import READ_GATES
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.scenario import Scenario

Splits = Mapping[str, Sequence[Scenario]]
LINES = {
    "en": (
        "My plants died while I was away. It is silly, but I cried.",
        "That is not silly; you cared for them.",
    ),
    "zh": ("出差回来，花都枯了，我居然哭了。", "不奇怪，那是你用心养的呀。"),
}
COMMON = {"persona": "nora", "licence": "CC-BY-4.0"}
TAGS = {"emotion": "sadness", "complexity": "basic", "interaction": "casual", "risk": "none"}


def scenario(number: int, language: str = "en", **other: Any) -> Scenario:
    said, reply = LINES[language]
    record: dict[str, Any] = {
        "id": f"made-{number:06}:dialogue_base",
        "subtask": "dialogue_base",
        "tags": TAGS,
    }
    record |= {"inputs": {"history": [{"role": "user", "content": f"{said} ({number})"}]}}
    record |= {"references": [reply, f"{reply} {reply}"]}
    record |= {
        "provenance": {
            "source": "made",
            "dialogue": f"made-{number:06}",
            "person": f"made-p{number:04}",
        }
    }
    return Scenario.from_dict(record | {"language": language, **COMMON} | other)


def case(number: int, language: str = "en", **other: Any) -> Case:
    """A case of the study `high_risk` with one checked turn."""
    said, reply = LINES[language]
    record: dict[str, Any] = {
        "id": f"case-{language}-{number}",
        "study": "high_risk",
        "kind": "grief",
    }
    record |= {"family": f"grief-{number}"}
    record |= {"sessions": [{"turns": [{"user": said, "reference": reply, "points": ["stays"]}]}]}
    record |= {
        "points": [{"id": "stays", "kind": "must", "text": "stays with the feeling", "severity": 2}]
    }
    return Case.from_dict(record | {"language": language, **COMMON} | other)


def make_release(
    folder: Path,
    splits: Splits | None = None,
    cases: Sequence[Case] = (),
    *,
    name: str = "made",
    version: str = "1.0.0",
) -> Path:
    """Write a release; by default with two scenarios a language in `test` and one in `dev`.

    Nobody has read it, and its owner allows that.
    """
    if splits is None:
        test = [scenario(n, "en" if n < 10 else "zh") for n in (1, 2, 11, 12)]
        splits = {"test": test, "dev": [scenario(3), scenario(13, "zh")]}
    configs: dict[str, dict[str, int]] = {}
    canary = releases.canary_of(name)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for split, scenarios in splits.items():
        for one in sorted(scenarios, key=lambda one: one.language):
            messages = [{"role": "user", "content": one.turns[0].content}]
            rows.setdefault((one.language, split), []).append(
                releases.scenario_row(one, messages, canary)
            )
    for item in cases:
        rows.setdefault((f"high_risk_{item.language}", "test"), []).append(
            releases.case_row(item, canary)
        )
    for (config, split), own in rows.items():
        configs.setdefault(config, {})[split] = releases.write_rows(folder, config, split, own)
    declared = [
        {
            "config_name": config,
            "data_files": [{"split": one, "path": f"data/{config}/{one}-*.parquet"} for one in own],
        }
        for config, own in configs.items()
    ]
    head = json.dumps({"license": "cc-by-4.0", "configs": declared})
    write_text(folder / releases.CARD, f"---\n{head}\n---\n# {name}\n")
    write_json(folder / releases.HISTORY, {"test": [], "dev": []})
    about = (name, version, "CC-BY-4.0", "Made for tests.", "2026-01-02", canary)
    allowed = [{"gate": gate, "items": 100, "reason": "made for tests"} for gate in READ_GATES]
    facts = {"allowed_unread": allowed}
    releases.Manifest(*about, configs, releases.hash_files(folder), facts).write(folder)
    return folder
