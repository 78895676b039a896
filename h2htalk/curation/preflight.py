"""Checks before anything is removed, read or sent: whether the stages can be made at all."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from h2htalk.chat.store.model_calls import check_model
from h2htalk.curation.pipeline import StageRun, require_finished
from h2htalk.curation.settings import CurateSpec
from h2htalk.curation.stage_table import find_stage, stage_before
from h2htalk.curation.workspace import Workspace
from h2htalk.text.escaping import printable


def preflight(names: Sequence[str], spec: CurateSpec, workspace: Workspace, key: bytes) -> None:
    """Check that stages can be made: their sources, settings, models, prices, keys, and the stages that they read.

    Args:
        names: of the stages, in order.
        spec: their settings.
        workspace: it is not changed.
        key: its secret key.

    Raises:
        ConfigError: a stage cannot be made, or a package is not installed; says what to change.
        DataError: a split or a script is damaged.
    """
    runs: list[StageRun] = []
    for name in names:
        previous = stage_before(name)
        if previous and previous not in names:
            require_finished(workspace.stage(previous))
        runs.append(find_stage(name).make(spec, workspace, key))
    for settings in (settings for run in runs for settings in run.calls):
        check_model(settings)


def leave_out_unnamed(names: Sequence[str], spec: CurateSpec, workspace: Workspace, from_stage: str) -> list[str]:
    """The stages without those whose required setting is empty and that have not begun; says so on standard error."""
    kept = []
    for name in names:
        stage = find_stage(name)
        kind = stage.settings_type()
        missing = stage.required and kind is not None and not getattr(spec.section(kind), stage.required)
        if missing and name != from_stage and not (workspace.stage(name).path / "stage.json").exists():
            message = (
                f"{name}: {name}.{stage.required} is empty, so the run ends with the results of {stage_before(name)}; "
                f'to run {name}, set it, for instance {stage.required} = "anthropic:claude-sonnet-5" in [{name}], and '
                "start the same command again"
            )
            print(printable(message), file=sys.stderr, flush=True)
        else:
            kept.append(name)
    return kept
