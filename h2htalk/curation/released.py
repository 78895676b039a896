"""What became of a release after it was built: erased items, a later version, a publication, gates that are unread."""

from __future__ import annotations

from pathlib import Path

from h2htalk.curation.release.settings import read_stored_spec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import ErasedIds, require_erased
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.links import follow_links, read_links
from h2htalk.data.readers.reads import REIDENTIFICATION
from h2htalk.data.releases.release_folder import (
    ERASED_ITEMS,
    SPEC,
    Manifest,
    is_release,
    item_rows,
    private_folder,
    read_manifest,
)
from h2htalk.errors import DataError, counted


def erased_after_build(manifest: Manifest) -> int:
    """Return how many scenarios an erasure has removed from a release; 0 where it does not say how many it had."""
    # Items by their number of references.
    built = int(sum(manifest.facts.get("references", {}).values()))
    languages = [rows for config, rows in manifest.configs.items() if config in LANGUAGES]
    remaining = sum(sum(rows.values()) for rows in languages)
    return max(0, built - remaining)


def describe_stale_card(manifest: Manifest) -> str:
    """Say that items were erased from a release that its card and figures still count; empty where none was."""
    erased = max(erased_after_build(manifest), manifest.facts.get(ERASED_ITEMS, 0))
    if not erased:
        return ""
    items = counted(erased, "item was", "items were")
    return f"{items} erased from it, and its card still counts them: build the next version with it as `previous`"


def require_erased_release(folder: Path) -> None:
    """Raise DataError where a release holds words of an erased person, or its card counts items that were erased.

    Whether it holds such words is known where its workspace is at hand.
    """
    _require_known_erased(folder)
    stale = describe_stale_card(read_manifest(folder))
    if stale:
        raise DataError(f"{folder}: {stale}, and publish that one")


def _require_known_erased(folder: Path) -> None:
    try:
        workspace = Workspace(Path(read_stored_spec(private_folder(folder) / SPEC).workspace))
    except FileNotFoundError:
        return
    require_erased(workspace.path)
    erased = ErasedIds(workspace.erased())
    if any(map(erased.covers, item_rows(folder, read_manifest(folder)))):
        advice = f"repeat `h2htalk curate erase` with `--also {folder}`"
        raise DataError(f"{folder}: holds items that were erased from {workspace.path}: {advice}")


def later_version(release: Path) -> Path | None:
    """Return the last release, of those that its workspace links, with this one as its `previous`; None without one."""
    try:
        spec = read_stored_spec(private_folder(release) / SPEC)
    except FileNotFoundError:  # a copy
        return None
    manifest = read_manifest(release)
    followed_by: Path | None = None
    for link, path in follow_links(read_links(Path(spec.workspace))):
        if link.kind == "release" and is_release(path):
            later = read_manifest(path)
            before = later.facts.get("changes", {}).get("version")
            if (later.name, before) == (manifest.name, manifest.version):
                followed_by = path
    return followed_by


def describe_what_followed(release: Path) -> list[str]:
    """Say which later version has a release as its `previous`, or else that items were erased from it."""
    later = later_version(release)
    if later is not None:
        return [f"a later version has it as `previous`: see {later}"]
    erased = erased_after_build(read_manifest(release))
    if not erased:
        return []
    items = counted(erased, "item was", "items were")
    return [
        f"{items} erased from it: build the next version with it as `previous`, and do not publish this one"
    ]


def published_as(release: Path) -> list[str]:
    """Return the names under which a release was published from here, `hub:OWNER/NAME@TAG`."""
    return [link.target for link in read_links(private_folder(release)) if link.kind == "hub"]


def describe_unread(release: Path) -> tuple[str, str]:
    """Say for which gates items of a release are unread, and which command has them read; both empty without one."""
    unread = _unread_gates(read_manifest(release))
    measure = "h2htalk release risk SPEC --model MODEL"
    if not unread:
        return "", ""
    if unread == [REIDENTIFICATION]:
        what = (
            f"{REIDENTIFICATION} is not tested, as dialogues are unread for it; have a model read them, and build a "
            "new version"
        )
        return what, measure
    for_risk = f" (for {REIDENTIFICATION}: {measure})" if REIDENTIFICATION in unread else ""
    what = f"gates are not tested, as items are unread; have a guard read them{for_risk}, and build a new version"
    return what, "h2htalk release read SPEC --guard MODEL"


def _unread_gates(manifest: Manifest) -> list[str]:
    """Return the gates for which items are unread that the owner did not allow; of an old release all, as `all`."""
    reads = manifest.facts.get("reads")
    if not reads:
        return ["all"]
    return [
        gate
        for gate, unread in reads.get("unread", {}).items()
        if unread["items"] and not unread.get("reason")
    ]
