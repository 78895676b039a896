"""Dialogues and workspaces for the tests of dedup."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curation_made import finished, run_one

from h2htalk.curation.stage_folder import RecordCounts, StageFolder
from h2htalk.curation.stages import DedupSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn


def dialogue(name: str, *contents: str, language: Language = "en", metadata: dict[str, Any] | None = None) -> Dialogue:
    """A dialogue whose messages are the user's and the companion's in turn."""
    turns = tuple(Turn("companion" if n % 2 else "user", text) for n, text in enumerate(contents))
    return Dialogue(name, language, turns, {"source": "made"}, "CC0-1.0", metadata or {})


def words(seed: object, count: int) -> str:
    """A text of invented words; two seeds share next to none."""
    rng = random.Random(str(seed))
    return " ".join("".join(rng.choices("abcdefghiklmnoprstuvw", k=rng.randint(2, 9))) for _ in range(count))


def edited(text: str, share: float, seed: object = 0) -> str:
    """A share of the characters replaced."""
    rng = random.Random(f"{seed} {text}")
    units = list(text)
    for place in rng.sample(range(len(units)), round(share * len(units))):
        units[place] = rng.choice("xyz")
    return "".join(units)


def workspace_of(folder: Path, dialogues: Sequence[Dialogue], part: int = 3) -> Workspace:
    """A workspace whose safety stage has kept the dialogues."""
    return finished(folder, "safety", [d.to_dict() for d in dialogues], part)


def dedup(workspace: Workspace, splits: tuple[str, ...] = (), processes: int = 1) -> RecordCounts:
    return run_one("dedup", workspace, DedupSettings(contamination_splits=splits), processes=processes)


def deduplicated(
    folder: Path, dialogues: Sequence[Dialogue], splits: tuple[str, ...] = (), part: int = 3
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The kept and the rejected lines of a run, by id."""
    workspace = workspace_of(folder, dialogues, part)
    dedup(workspace, splits)
    stage = workspace.stage("dedup")
    return lines(stage, "kept"), lines(stage, "rejected")


def lines(stage: StageFolder, kind: str) -> dict[str, dict[str, Any]]:
    return {record["id"]: dict(record) for record in stage.records(kind)}
