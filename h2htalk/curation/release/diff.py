"""What changed from one release to another: items by split, and why they went; licence, counts, personas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from h2htalk.curation.release.content import ReleaseContent, read_content
from h2htalk.data.releases.release_folder import (
    PRIVATE_REFERENCES,
    TOMBSTONES,
    Manifest,
    private_folder,
    read_tombstones,
)
from h2htalk.text.escaping import printable

ERASED, LEFT_OUT = "erased", "no longer accepted, or not chosen"
_COMPARED = ("name", "version", "licence", "description", "date", "canary", "references_sha256")


# `facts`, `added`, `removed`, `moved` or `changed` -> what differs -> how.
ReleaseDiff = Mapping[str, Mapping[str, str]]


def diff_releases(old: Path, new: Path) -> ReleaseDiff:
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
    facts, facts2, one, other = _facts(manifest), _facts(manifest2), _records(content), _records(content2)
    erased = read_tombstones(new / TOMBSTONES)
    both = sorted(one.keys() & other.keys())
    splits = {name: (one[name]["split"], other[name]["split"]) for name in both}
    return {
        "facts": {
            name: f"{facts.get(name, '-')} -> {facts2.get(name, '-')}"
            for name in dict.fromkeys([*facts, *facts2])
            if facts.get(name) != facts2.get(name)
        },
        "added": {name: other[name]["split"] for name in sorted(other.keys() - one.keys())},
        "removed": {name: ERASED if name in erased else LEFT_OUT for name in sorted(one.keys() - other.keys())},
        "moved": {name: f"{before} -> {after}" for name, (before, after) in splits.items() if before != after},
        "changed": {name: fields for name in both if (fields := _differing(one[name], other[name]))},
    }


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
            records[item.id] = item.scenario.to_dict() | own
    return records | {case.id: case.to_dict() | {"split": case.study} for case in content.cases}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    # Private references that are not at hand tell nothing; whether they changed, their hash says.
    unknown = {"references"} if () in (one.get("references"), other.get("references")) else set()
    names = (one.keys() | other.keys()) - unknown - {"reference", "split"}
    return ", ".join(sorted(name for name in names if one.get(name) != other.get(name)))


def format_diff(diff: ReleaseDiff, most: int = 20) -> str:
    """The difference as text, with at most so many items of a kind."""
    lines = [f"{name}: {printable(values)}" for name, values in diff["facts"].items()]
    for what, items in diff.items():
        if items and what != "facts":
            kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(Counter(items.values()).items()))
            lines += [f"{what}: {len(items):,} ({printable(kinds)})"]
            lines += [f"  {printable(f'{name}: {detail}')}" for name, detail in list(items.items())[:most]]
            lines += [f"  and {len(items) - most:,} more"] if len(items) > most else []
    return "\n".join(lines) or "no difference"
