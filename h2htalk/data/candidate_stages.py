"""A stage of a curation as a split: its candidates, read where they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from h2htalk.data.erasure.filter_files import require_erased
from h2htalk.data.files import read_json_object, read_jsonl
from h2htalk.errors import DataError

# The stages of a workspace whose records are candidates, the last one first.
CANDIDATE_STAGES = ("review", "compose")


def find_stage_folder(path: Path) -> Path | None:
    """The stage that a path names: a stage's folder, or of a workspace the last finished stage with candidates.

    Raises:
        DataError: the stage is not finished, or holds dialogues; names one that can be read.
    """
    if is_workspace(path):
        return last_candidates(path)
    require_erased(path.parent)
    if not is_workspace(path.parent) or not os.path.isfile(path / "stage.json"):
        return None
    if path.name not in CANDIDATE_STAGES:
        raise DataError(f"{path}: holds dialogues, not candidates; choose from {', '.join(CANDIDATE_STAGES)}")
    if not (path / "summary.json").is_file():
        raise DataError(f"{path}: this stage is not finished; finish it first: h2htalk curate run")
    return path


def is_workspace(path: Path) -> bool:
    """Whether a path is the workspace of a curation."""
    return os.path.isfile(path / "workspace.json")  # pathlib raises on a name that is too long


def last_candidates(workspace: Path) -> Path:
    """The folder of the last finished stage with candidates. Raises DataError where there is none."""
    require_erased(workspace)
    for name in CANDIDATE_STAGES:
        if (workspace / name / "summary.json").is_file():
            return workspace / name
    raise DataError(f"{workspace}: no stage with candidates is finished; finish compose first: h2htalk curate run")


def stage_header(folder: Path) -> dict[str, str]:
    """Name, version and description of a stage as a split, and that it holds surrogates."""
    summary = read_json_object(folder / "summary.json").values()
    notes = [note["message"] for note in summary if isinstance(note, dict) and "message" in note]
    title = f"Candidates of a curation's stage {folder.name}, on which no people decided"
    return {
        "name": f"{folder.resolve().parent.name}-{folder.name}",
        "version": str(read_json_object(folder / "stage.json").get("fingerprint")),
        "description": ". ".join([title, *notes]),
        "surrogates": "private",
    }


def candidate_records(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The scenario of each candidate, with file and line; its reference is the candidate's first one."""
    for path in sorted((folder / "kept").glob("part-*.jsonl")):
        for where, record in read_jsonl(path, unique_keys=True):
            if not isinstance(record.get("scenario"), dict):
                raise DataError(f"{where}: not a candidate: scenario is missing")
            yield where, record["scenario"]
