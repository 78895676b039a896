"""Delete what erasure leaves behind: the command `curate purge`."""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.erase import _require_no_links, finish_erasure
from h2htalk.curation.stage_folder import (
    AUDIT,
    KEPT,
    REJECTED,
    remove_for_good,
)
from h2htalk.curation.workspace import STAGES, Workspace
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns what is gone. What was reviewed stays.

    Raises:
        ConfigError: the last stage is not finished: without the key it never could be.
        DataError: there is no workspace, something cannot be removed, or a symbolic link leads out of the workspace;
            names it.
    """
    workspace.require_begun()
    with workspace.locked():
        finish_erasure(workspace)
        last = list(STAGES)[-1]
        if not (workspace.stage(last).path / "summary.json").exists():
            raise ConfigError(
                f"{workspace.path}: {STAGES[last]} is not finished, and without the key it cannot be; finish it first: "
                "h2htalk curate run"
            )
        _require_no_links(workspace)
        # Said first: a kill in the middle leaves a workspace that nothing is added to.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        gathered = workspace.stage("gather").path
        gone = [gathered / name for name in (KEPT, REJECTED, AUDIT, "calls", "raw")]
        gone = [path for path in (*gone, workspace.key_path) if path.exists()]
        for path in gone:
            remove_for_good(path)
        for stage in STAGES:
            workspace.stage(stage).drop_unfinished()
    return gone
