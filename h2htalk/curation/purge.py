"""Remove what could lead a surrogate back to a person: the command `curate purge`."""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.erase import finish_erasure, items_by_id
from h2htalk.curation.erasure_scope import read_index
from h2htalk.curation.stage_folder import AUDIT, KEPT, REJECTED, StageFolder
from h2htalk.curation.stage_table import FIRST_STAGE, STAGES, stages_from
from h2htalk.curation.tombstones import mark, nfc, source_of, write_tombstones
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.filter_files import remove_for_good
from h2htalk.data.files import refuse_links, write_json
from h2htalk.errors import ConfigError


def purge(workspace: Workspace) -> list[Path]:
    """Remove the raw inputs, the private index and the key; returns the removed paths. Anonymized records stay.

    No further stage can be made afterwards, so what a stage has made that is not finished is removed too. Keyed hashes
    of raw ids stay, so that a person who asks for it later is still erased.

    Raises ConfigError where a stage must be finished first, DataError where something cannot be removed.
    """
    workspace.require_begun()
    with workspace.locked():
        finish_erasure(workspace)
        finished = [name for name in STAGES if (workspace.stage(name).path / "summary.json").exists()]
        missing = next((name for name in STAGES if name not in finished), None)
        if missing is not None and (missing in list(STAGES)[:2] or finished[-1] in stages_from(missing)):
            raise ConfigError(
                f"{workspace.path}: {missing} is not finished, and without the key it cannot be; finish it first: "
                "h2htalk curate run"
            )
        refuse_links(workspace.path)
        if not workspace.facts().get("purged"):
            _write_index(workspace)
        # Written first: after a kill nothing is added to the workspace any more.
        write_json(workspace.path / "workspace.json", {**workspace.facts(), "purged": True})
        gathered = workspace.stage(FIRST_STAGE).path
        paths = [*(gathered / name for name in (KEPT, REJECTED, AUDIT, "calls", "raw")), workspace.key_path]
        unfinished = unfinished_stages(workspace)
        removed = [path for path in paths if path.exists()]
        for path in removed:
            remove_for_good(path)
        for folder in unfinished:
            folder.remove()
        for stage in STAGES:
            workspace.stage(stage).remove_unfinished()
    return [*removed, *(folder.path for folder in unfinished)]


def _write_index(workspace: Workspace) -> None:
    """Store hashes of the raw ids of every dialogue (with its earlier states) and person, and the items on them."""
    key, items = workspace.open_erasure_key(make=True), items_by_id(workspace)
    assert key is not None
    hashes: dict[str, set[str]] = {}
    for name, entry in read_index(workspace).items():
        raw = {what: nfc(str(entry[what])) for what in ("id", "person") if entry.get(what) not in (None, "")}
        latest = hashes.setdefault(str(entry.get("state_of", name)), set())
        latest |= {mark(key, what, source_of(name), text) for what, text in raw.items()}
    lines = ({"id": name, "hashes": sorted(of), "items": sorted(items.get(name, ()))} for name, of in hashes.items())
    write_tombstones(workspace.index_path, sorted(lines, key=lambda line: str(line["id"])))


def unfinished_stages(workspace: Workspace) -> list[StageFolder]:
    """The stages that have begun and are not finished. `purge` removes them, but not what was paid for."""
    folders = map(workspace.stage, STAGES)
    return [f for f in folders if (f.path / "stage.json").exists() and not (f.path / "summary.json").exists()]
