"""What changed from one release to another: items by split, and why they went; licence, counts, personas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from h2htalk.curation.release.content import ReleaseContent, read_content
from h2htalk.data.erasure.folder_kinds import read_erased
from h2htalk.data.releases.release_folder import PRIVATE_REFERENCES, TOMBSTONES, Manifest, private_folder
from h2htalk.text.record_diff import RecordDiff, diff_records

ERASED, LEFT_OUT = "erased", "no longer accepted, or not chosen"
_COMPARED = ("name", "version", "licence", "description", "date", "canary", "references_sha256")


def diff_releases(old: Path, new: Path) -> RecordDiff:
    """Compare two release folders; private references count where both private folders are beside them.

    Returns:
        facts: field of the manifest, or configuration and split -> old and new value.
        added: id -> split: `test`, `dev`, or `STUDY` for cases.
        removed: id -> `erased` (a tombstone of the new release), or no longer accepted or not chosen.
        moved: id -> old and new split.
        changed: id of an item, or `persona ID` -> the fields that differ; `votes` are those on an item.

    Raises:
        DataError: a folder is no release, or a file is damaged.
    """
    (manifest, content), (manifest2, content2) = (
        read_content(folder, private_folder(folder) / PRIVATE_REFERENCES) for folder in (old, new)
    )
    removed = {"": LEFT_OUT} | dict.fromkeys(read_erased(new / TOMBSTONES), ERASED)
    return diff_records(_records(content), _records(content2), (_facts(manifest), _facts(manifest2)), removed)


def _facts(manifest: Manifest) -> dict[str, str]:
    rows = {f"{config}, {split}": n for config, splits in manifest.configs.items() for split, n in splits.items()}
    return {name: getattr(manifest, name) or "-" for name in _COMPARED} | {
        key: f"{n:,} rows" for key, n in rows.items()
    }


def _records(content: ReleaseContent) -> dict[str, dict[str, Any]]:
    """The records of items, cases and personas with their split, by id."""
    records: dict[str, dict[str, Any]] = {
        f"persona {name}": {"split": "personas", "persona": one} for name, one in content.personas.items()
    }
    for split, items in content.splits.items():
        for item in items:
            own = {"references": item.scenario.references, "votes": item.votes, "split": split}
            records[item.id] = {key: one for key, one in item.scenario.to_dict().items() if key != "reference"} | own
    return records | {case.id: case.to_dict() | {"split": case.study} for case in content.cases}
