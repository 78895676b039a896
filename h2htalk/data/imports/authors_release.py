"""Read the original release: the authors' references, without the inputs, personas and ids that were never released."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import DataError

# The authors' file names and the subtask whose references each holds: DialogueSchedule and ItineraryInitialization are
# swapped there, as row counts and texts show.
AUTHORS_FILES = {
    "dialogue_base": "dialogue_base",
    "dialogue_emotion": "dialogue_emotion",
    "itinerary_initialize": "dialogue_schedule",
    "recollection_synthesize": "recollection_synthesis",
    "recollection_refine": "recollection_refinement",
    "recollection_initialize": "recollection_initialization",
    "itinerary_basic": "itinerary_basic",
    "itinerary_middle": "itinerary_middle",
    "itinerary_advanced": "itinerary_advanced",
    "itinerary_feedback": "itinerary_response",
    "dialogue_schedule": "itinerary_initialization",
}


@dataclass(frozen=True, slots=True)
class AuthorsRelease:
    """The references of the authors' release by true subtask, and a description of each thing that is missing."""

    references: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]


def read_authors_release(folder: Path) -> AuthorsRelease:
    """Read the eleven files of `{"response": ...}` lines (`.json`, `.jsonl` or `.txt`) as references.

    Raises DataError where none of the files exists, or a line is not such an object.
    """
    references: dict[str, tuple[str, ...]] = {}
    missing: list[str] = []
    for name, subtask in AUTHORS_FILES.items():
        title, expected = SUBTASKS[subtask].title, SUBTASKS[subtask].count
        found = [path for ending in ("jsonl", "json", "txt") if (path := folder / f"{name}.{ending}").is_file()]
        if len(found) > 1:
            raise DataError(f"{folder}: both {found[0].name} and {found[1].name}; keep one")
        if not found:
            missing.append(f"{title}: no file {name}.jsonl")
            continue
        texts = []
        for where, record in read_jsonl(found[0]):
            if not isinstance(text := record.get("response"), str):
                raise DataError(f"{where}: needs a response that is text")
            texts.append(text)
        references[subtask] = tuple(texts)
        if len(texts) != expected:
            missing.append(f"{title}: {len(texts)} references of Table 1's {expected} ({found[0].name})")
    if not references:
        raise DataError(f"{folder}: none of the authors' files is there, such as dialogue_base.jsonl")
    missing.append("every subtask: the inputs (persona, history, memories, schedules) and ids were never released")
    return AuthorsRelease({name: references[name] for name in SUBTASKS if name in references}, tuple(missing))


def write_authors_references(release: AuthorsRelease, folder: Path) -> Path:
    """Write `references.jsonl` (`id`, `subtask`, `language`, `reference`) into a folder. Raises DataError."""
    if os.path.lexists(path := folder / "references.jsonl"):
        raise DataError(f"{path}: is there already; name a new folder with --out")
    records = (
        {"id": f"authors-{subtask}-{row:04}", "subtask": subtask, "language": "zh", "reference": text}
        for subtask, texts in release.references.items()
        for row, text in enumerate(texts, 1)
    )
    write_jsonl(path, records)
    return path
