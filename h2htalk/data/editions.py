"""Editions of the bundled splits: earlier versions that are kept, and what changed since (`errata.toml`).

An earlier version that figures may have been published on is kept whole as `SPLIT@VERSION`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from h2htalk.data.files import read_toml
from h2htalk.data.splits import BUNDLED_FOLDER, is_bundled
from h2htalk.errors import counted, listed

_SHOWN = 5  # items that a sentence names


@dataclass(frozen=True, slots=True)
class Erratum:
    """A correction of an item: the version that has it first, what of the item changed, and why."""

    item: str
    version: str
    change: str
    reason: str


def earlier_edition(name: str, version: str) -> str | None:
    """The name of an earlier version of a bundled split; None where it is not kept."""
    edition = f"{name}@{version}"
    return edition if is_bundled(edition) else None


def read_errata(name: str) -> list[Erratum]:
    """Read the corrections of a bundled split, the newest first."""
    path = BUNDLED_FOLDER / name / "errata.toml"
    if not path.is_file():
        return []
    entries: list[dict[str, Any]] = read_toml(path).get("erratum", [])
    return [
        Erratum(
            item=entry["item"],
            version=str(entry["version"]),
            change=entry["change"],
            reason=entry["reason"],
        )
        for entry in entries
    ]


def later_corrections(name: str, version: str, items: Collection[str]) -> list[Erratum]:
    """The corrections of some items of a bundled split after a version, the newest first."""
    if not version.isdecimal():
        return []
    return [
        erratum
        for erratum in read_errata(name)
        if erratum.item in items and int(erratum.version) > int(version)
    ]


def describe_later(name: str, version: str, newest: str, items: Collection[str]) -> str:
    """Say that items are of an earlier version, and which of them were corrected since.

    `mini 3, an earlier version: mini 4 corrects 1 of these items: mini-zh-itinerary-response-10 (reference)`.
    """
    corrected: dict[str, list[str]] = {}
    for erratum in later_corrections(name, version, items):
        changes = corrected.setdefault(erratum.item, [])
        changes += [change for change in erratum.change.split(", ") if change not in changes]
    if not corrected:
        return f"{name} {version}, an earlier version; {name} {newest} corrects none of these items"
    named = listed(
        [f"{item} ({', '.join(changes)})" for item, changes in corrected.items()], _SHOWN
    )
    number = counted(len(corrected), "of these items", "of these items")
    return f"{name} {version}, an earlier version: {name} {newest} corrects {number}: {named}"
