"""Folders of a curation's workspace that hold candidates: a stage by name, or the last one that is finished."""

from __future__ import annotations

import os
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import require_erased
from h2htalk.data.erasure.unfinished_erasure import refuse_unfinished_erasure
from h2htalk.errors import DataError

# The stages of a workspace whose records are candidates, the last one first.
CANDIDATE_STAGES = ("review", "compose")


def is_workspace(path: Path) -> bool:
    """Whether a path is the workspace of a curation."""
    return os.path.isfile(path / "workspace.json")  # pathlib raises on a name that is too long


def find_stage_folder(path: Path) -> Path | None:
    """The stage that a path names: a stage's folder, or of a workspace the last finished stage with candidates."""
    if is_workspace(path):
        return last_candidates(path)
    refuse_unfinished_erasure(path)
    if not is_workspace(path.parent) or not os.path.isfile(path / "stage.json"):
        return None
    if path.name not in CANDIDATE_STAGES:
        raise DataError(
            f"{path}: holds dialogues, not candidates; choose from {', '.join(CANDIDATE_STAGES)}"
        )
    if not (path / "summary.json").is_file():
        raise DataError(f"{path}: this stage is not finished; finish it first: h2htalk curate run")
    return path


def last_candidates(workspace: Path) -> Path:
    """The folder of the last finished stage with candidates. Raises DataError where there is none."""
    require_erased(workspace)
    for stage in CANDIDATE_STAGES:
        if (workspace / stage / "summary.json").is_file():
            return workspace / stage
    raise DataError(
        f"{workspace}: no stage with candidates is finished; finish compose first: h2htalk curate run"
    )
