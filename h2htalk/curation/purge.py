"""Remove what could lead a surrogate back to a person: the command `curate purge`."""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.erase import finish_erasure
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, remove_for_good
from h2htalk.curation.stage_table import FIRST_STAGE, LAST_STAGE, STAGES
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns the removed paths. Reviewed records stay.

    Raises:
        ConfigError: the last stage is not finished, and without the key it could not be finished.
        DataError: there is no workspace, something cannot be removed, or a symbolic link leads out of the workspace.
    """
    workspace.require_begun()
    with workspace.locked():
        finish_erasure(workspace)
        if not (workspace.stage(LAST_STAGE).path / "summary.json").exists():
            raise ConfigError(
                f"{workspace.path}: {LAST_STAGE} is not finished, and without the key it cannot be; finish it first: "
                "h2htalk curate run"
            )
        workspace.require_no_links()
        # Written first: after a kill nothing is added to the workspace any more.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        gathered = workspace.stage(FIRST_STAGE).path
        paths = [*(gathered / name for name in (KEPT, REJECTED, AUDIT, "calls", "raw")), workspace.key_path]
        removed = [path for path in paths if path.exists()]
        for path in removed:
            remove_for_good(path)
        for stage in STAGES:
            workspace.stage(stage).remove_unfinished()
    return removed
