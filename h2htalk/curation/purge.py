"""Remove what could lead a surrogate back to a person: the command `curate purge`."""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.erase import finish_erasure
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, remove_for_good
from h2htalk.curation.stage_table import FIRST_STAGE, STAGES, stages_from
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns the removed paths. Anonymized records stay.

    No further stage can be made afterwards.

    Raises:
        ConfigError: a stage has begun and is not finished, or none after `gather` is finished.
        DataError: there is no workspace, something cannot be removed, or a symbolic link leads out of the workspace.
    """
    workspace.require_begun()
    with workspace.locked():
        finish_erasure(workspace)
        begun = [name for name in STAGES if (workspace.stage(name).path / "stage.json").exists()]
        unfinished = [name for name in begun if not (workspace.stage(name).path / "summary.json").exists()]
        if unfinished or begun == [FIRST_STAGE]:
            raise ConfigError(
                f"{workspace.path}: {(unfinished or stages_from(FIRST_STAGE)[1:])[0]} is not finished, and without the "
                "key it cannot be; finish it first: h2htalk curate run"
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
