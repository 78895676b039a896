"""The release before: whose items stay in their split, and what a new version changes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from h2htalk.curation.release.content import ReleaseContent, read_content
from h2htalk.curation.release.selection import Accepted, History
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.released import erased_after_build
from h2htalk.data.erasure.folder_kinds import ErasedIds, read_erased
from h2htalk.data.files import read_json_object
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.releases.hub import release_folder
from h2htalk.errors import ConfigError, counted

IN_NO_ROUND = "in none of its rounds"
NOT_CHOSEN = "accepted, and not chosen by the quotas"


@dataclass(frozen=True, slots=True)
class Previous:
    """The release before a new version; nothing of it where there is none.

    Attributes:
        version: of the release; empty without one.
        history: split -> ids of items, dialogues and persons that were in it in this or an earlier release.
        tombstones: ids of items that were erased from it, or that erased ids cover.
        items: ids of its items.
        erased: how many items an erasure has removed from its folder.
    """

    version: str = ""
    history: History = field(default_factory=dict)
    tombstones: frozenset[str] = frozenset()
    items: frozenset[str] = frozenset()
    erased: int = 0


def read_previous(spec: ReleaseSpec, erased: Collection[str]) -> Previous:
    """Read the release that a specification names. Raises ConfigError where it is no earlier version, DataError."""
    if not spec.previous:
        return Previous()
    folder = release_folder(spec.previous)
    manifest, content = read_content(folder)
    old, new = (
        [int(part) for part in f"{one.version}.0".split(".")[:3]] for one in (manifest, spec)
    )
    if manifest.name != spec.name or old >= new:
        known = f"{manifest.name} {manifest.version}"
        raise ConfigError(
            f"previous: {known} is not an earlier version of {spec.name} {spec.version}"
        )
    gone = ErasedIds(frozenset(erased))
    raw = read_json_object(folder / releases.HISTORY)
    now = {item.id for item in content.items() if gone.covers(item.scenario.to_dict())}
    return Previous(
        version=manifest.version,
        history={split: frozenset(map(str, raw.get(split, ()))) for split in releases.SPLITS},
        tombstones=frozenset(read_erased(folder / releases.TOMBSTONES)) | now,
        items=frozenset(item.id for item in content.items()),
        erased=erased_after_build(manifest),
    )


def changes_since(
    previous: Previous, accepted: Accepted, content: ReleaseContent
) -> dict[str, Any]:
    """What a release changes of the one before, as facts for its card; empty without one."""
    if not previous.version:
        return {}
    chosen = {item.id for item in content.items()}
    accepted_ids = {item.id for item in accepted.items}
    gone = previous.items - chosen - previous.tombstones
    reasons: Counter[str] = Counter()
    for name in gone:
        reasons[
            NOT_CHOSEN if name in accepted_ids else accepted.refused.get(name, IN_NO_ROUND)
        ] += 1
    return {
        "version": previous.version,
        "stay": len(previous.items & chosen),
        "new": len(chosen - previous.items),
        "erased": previous.erased + len(previous.items & previous.tombstones),
        "left": dict(sorted(reasons.items())),
        "waiting": len(accepted_ids - chosen - previous.items),
    }


def changes_lines(changes: Mapping[str, Any]) -> list[str]:
    """Say what a release changes of the one before, and what its owner can do."""
    if not changes:
        return []
    lines = [f"since version {changes_text(changes)}"]
    if changes["left"].get(IN_NO_ROUND):
        lines.append(
            f"previous: {counted(changes['left'][IN_NO_ROUND], 'item')} of version {changes['version']} left, as no "
            "round of this release holds them; name their rounds under `rounds` too, or leave `rounds` out"
        )
    if changes["waiting"]:
        number = counted(changes["waiting"], "new item was", "new items were")
        lines.append(
            f"{number} accepted, and not chosen, as the quotas are full; raise `[quotas]` to take them in"
        )
    return lines


def changes_text(changes: Mapping[str, Any]) -> str:
    """The changes in a line: `1.0.0: 40 items stay, 12 new; 1 left (erased 1)`."""
    text = f"{changes['version']}: {counted(changes['stay'], 'item stays', 'items stay')}, {changes['new']:,} new"
    reasons = {"erased": changes["erased"], **changes["left"]}
    listed = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items() if count)
    return f"{text}; {sum(reasons.values()):,} left ({listed})" if listed else text
