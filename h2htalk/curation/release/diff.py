"""What changed from one release to another: items by split, and why they went; licence, counts, personas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class ReleaseDiff:
    """The difference of two releases; a split is `test`, `dev`, or `STUDY` for cases.

    Attributes:
        manifest: field of the manifest -> old and new value, where they differ.
        counts: (configuration, split) -> old and new number of rows, where they differ.
        added: id -> split.
        removed: id -> split and why: `erased` (a tombstone of the new release), or no longer accepted or not chosen.
        moved: id -> old and new split.
        changed: id -> fields that differ; `votes` are those on an item.
        personas: that were added, removed or changed.
    """

    manifest: Mapping[str, tuple[str, str]]
    counts: Mapping[tuple[str, str], tuple[int, int]]
    added: Mapping[str, str]
    removed: Mapping[str, tuple[str, str]]
    moved: Mapping[str, tuple[str, str]]
    changed: Mapping[str, tuple[str, ...]]
    personas: tuple[str, ...]


def diff_releases(old: Path, new: Path) -> ReleaseDiff:
    """Compare two release folders; private references count where both private folders are beside them.

    Raises:
        DataError: a folder is no release, or a file is damaged.
    """
    (manifest, content), (manifest2, content2) = (
        read_content(folder, private_folder(folder) / PRIVATE_REFERENCES) for folder in (old, new)
    )
    one, other = _items(content), _items(content2)
    erased = read_tombstones(new / TOMBSTONES)
    both = sorted(one.keys() & other.keys())
    rows, rows2 = _rows(manifest), _rows(manifest2)
    names = content.personas.keys() | content2.personas.keys()
    return ReleaseDiff(
        manifest={
            name: (str(before), str(after))
            for name in _COMPARED
            if (before := getattr(manifest, name)) != (after := getattr(manifest2, name))
        },
        counts={
            part: (rows.get(part, 0), rows2.get(part, 0))
            for part in dict.fromkeys([*rows, *rows2])
            if rows.get(part, 0) != rows2.get(part, 0)
        },
        added={name: other[name][0] for name in sorted(other.keys() - one.keys())},
        removed={
            name: (one[name][0], ERASED if name in erased else LEFT_OUT) for name in sorted(one.keys() - other.keys())
        },
        moved={name: (one[name][0], other[name][0]) for name in both if one[name][0] != other[name][0]},
        changed={name: fields for name in both if (fields := _differing(one[name][1], other[name][1]))},
        personas=tuple(sorted(n for n in names if content.personas.get(n) != content2.personas.get(n))),
    )


def _items(content: ReleaseContent) -> dict[str, tuple[str, dict[str, Any]]]:
    """Id -> split and record of every item and case."""
    items = {
        item.id: (split, item.scenario.to_dict() | {"references": item.scenario.references, "votes": item.votes})
        for split, members in content.splits.items()
        for item in members
    }
    return items | {case.id: (case.study, case.to_dict()) for case in content.cases}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[str, ...]:
    # Private references that are not at hand tell nothing; whether they changed, their hash says.
    unknown = {"references", "reference"} if () in (one.get("references"), other.get("references")) else {"reference"}
    return tuple(sorted(key for key in (one.keys() | other.keys()) - unknown if one.get(key) != other.get(key)))


def _rows(manifest: Manifest) -> dict[tuple[str, str], int]:
    return {(config, split): n for config, splits in manifest.configs.items() for split, n in splits.items()}


def format_diff(diff: ReleaseDiff, most: int = 20) -> str:
    """The difference as text, with at most so many items of a kind."""
    lines = [
        f"{name}: {printable(old) or '-'} -> {printable(new) or '-'}" for name, (old, new) in diff.manifest.items()
    ]
    lines += [f"{config}, {split}: {old:,} -> {new:,} rows" for (config, split), (old, new) in diff.counts.items()]
    parts: dict[str, tuple[list[str], Iterable[str]]] = {
        "added": ([f"{name} ({split})" for name, split in diff.added.items()], diff.added.values()),
        "removed": (
            [f"{name} ({split}): {why}" for name, (split, why) in diff.removed.items()],
            (why for _, why in diff.removed.values()),
        ),
        "moved to another split": ([f"{name}: {old} -> {new}" for name, (old, new) in diff.moved.items()], ()),
        "changed": (
            [f"{name}: {', '.join(fields)}" for name, fields in diff.changed.items()],
            (field for fields in diff.changed.values() for field in fields),
        ),
        "personas that differ": (list(diff.personas), ()),
    }
    for what, (items, kinds) in parts.items():
        if items:
            by_kind = ", ".join(f"{kind} {number:,}" for kind, number in sorted(Counter(kinds).items()))
            lines.append(f"{what}: {len(items):,}{f' ({by_kind})' if by_kind else ''}")
            lines += [f"  {printable(item)}" for item in items[:most]]
            lines += [f"  and {len(items) - most:,} more"] if len(items) > most else []
    return "\n".join(lines) or "no difference"
