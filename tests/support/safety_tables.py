"""Dialogues and labelled lines for tests of the safety stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn

HERE = Path(__file__).parents[1] / "curation" / "safety"
GOLDEN = HERE.parent / "golden"


def talk(
    *texts: str, language: Language = "en", metadata: dict[str, Any] | None = None
) -> Dialogue:
    """A dialogue of alternating turns, the user first."""
    turns = tuple(Turn("companion" if n % 2 else "user", text) for n, text in enumerate(texts))
    return Dialogue("d1", language, turns, metadata=metadata or {})


def rows(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def dialogues(path: Path, language: Language) -> list[tuple[str, Dialogue]]:
    """The dialogues of a labelled set, with their kind."""
    return [
        (
            row["kind"],
            Dialogue("d", language, tuple(Turn(m["role"], m["content"]) for m in row["messages"])),
        )
        for row in rows(path)
    ]


def ordinary_lines(language: Language, writers: str) -> list[str]:
    """Harmless messages by some of the writers of tools/crisis."""
    folder = HERE.parents[2] / "tools/crisis"
    files = [folder / f"harmless_{language}_{writer}.txt" for writer in writers]
    return [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
