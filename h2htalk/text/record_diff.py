"""What changed from one set of records to another: added, removed, moved and changed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from h2htalk.text.escaping import printable

# `facts`, `added`, `removed`, `moved` or `changed` -> what differs -> how.
RecordDiff = Mapping[str, Mapping[str, str]]
Records = Mapping[str, Mapping[str, Any]]


def diff_records(
    old: Records, new: Records, facts: tuple[Mapping[str, str], Mapping[str, str]], removed: Mapping[str, str]
) -> RecordDiff:
    """Compare records by id; each has a key `split`, the part that holds it.

    Args:
        facts: what is known of the whole, before and after.
        removed: id of a record that is gone -> why; those that are not in it were left out.
    """
    both = sorted(old.keys() & new.keys())
    splits = {name: (old[name]["split"], new[name]["split"]) for name in both}
    before, after = facts
    return {
        "facts": {
            name: f"{before.get(name, '-')} -> {after.get(name, '-')}"
            for name in dict.fromkeys([*before, *after])
            if before.get(name) != after.get(name)
        },
        "added": {name: new[name]["split"] for name in sorted(new.keys() - old.keys())},
        "removed": {name: removed.get(name, removed.get("", "left out")) for name in sorted(old.keys() - new.keys())},
        "moved": {name: f"{one} -> {other}" for name, (one, other) in splits.items() if one != other},
        "changed": {name: ", ".join(fields) for name in both if (fields := differing_fields(old[name], new[name]))},
    }


def differing_fields(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The names of the fields in which two records differ, but `split`."""
    # Private references that are not at hand tell nothing; whether they changed, their hash says.
    unknown = {"references"} if () in (one.get("references"), other.get("references")) else set()
    names = (one.keys() | other.keys()) - unknown - {"split"}
    return sorted(name for name in names if one.get(name) != other.get(name))


def format_diff(diff: RecordDiff, most: int = 20) -> str:
    """The difference as text, with at most so many records of a kind."""
    lines = [f"{name}: {printable(values)}" for name, values in diff["facts"].items()]
    for what, items in diff.items():
        if items and what != "facts":
            kinds = ", ".join(f"{kind} {number:,}" for kind, number in sorted(Counter(items.values()).items()))
            lines += [f"{what}: {len(items):,} ({printable(kinds)})"]
            lines += [f"  {printable(f'{name}: {detail}')}" for name, detail in list(items.items())[:most]]
            lines += [f"  and {len(items) - most:,} more"] if len(items) > most else []
    return "\n".join(lines) or "no difference"
