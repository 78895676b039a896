"""Dialogues and workspaces for the tests of dedup."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from h2htalk.curation.dedup.stage import run_dedup
from h2htalk.curation.outcomes import Kept
from h2htalk.curation.settings import CurateSpec, DedupSettings, GatherSettings
from h2htalk.curation.stage_folder import StageFolder, part_name
from h2htalk.curation.workspace import Workspace
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.files import write_json
from h2htalk.data.languages import Language


def dialogue(
    name: str, *contents: str, language: Language = "en", metadata: dict[str, Any] | None = None
) -> Dialogue:
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
    """A workspace whose safety stage kept the dialogues."""
    workspace = Workspace(folder)
    before = workspace.stage("safety")
    for start in range(0, len(dialogues), part):
        kept = [[Kept(d.to_dict())] for d in dialogues[start : start + part]]
        before.write(part_name(start // part), kept, "safety")
    write_json(before.path / "stage.json", {"fingerprint": "made"})
    write_json(before.path / "summary.json", {})
    return workspace


def spec_of(workspace: Workspace, against: tuple[str, ...] = (), threshold: float = 0.7) -> CurateSpec:
    return CurateSpec(
        str(workspace.path), GatherSettings(), dedup=DedupSettings(against=against, threshold=threshold)
    )


def deduplicated(
    folder: Path, dialogues: Sequence[Dialogue], against: tuple[str, ...] = (), part: int = 3
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """The kept and the rejected lines of a run, by id."""
    workspace = workspace_of(folder, dialogues, part)
    run_dedup(spec_of(workspace, against), workspace, b"", processes=1)
    stage = workspace.stage("dedup")
    return lines(stage, "kept"), lines(stage, "rejected")


def lines(stage: StageFolder, kind: str) -> dict[str, dict[str, Any]]:
    return {record["id"]: dict(record) for record in stage.records(kind)}
