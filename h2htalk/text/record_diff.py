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
    old: Records,
    new: Records,
    facts: tuple[Mapping[str, str], Mapping[str, str]],
    removed: Mapping[str, str],
) -> RecordDiff:
    """Compare records by id; each has a key `split`, the part that holds it.

    Args:
        facts: what is known of the whole, before and after.
        removed: id of a record that is gone -> why; those that are not in it were left out.
    """
    common = sorted(old.keys() & new.keys())
    moved = {}
    changed = {}
    for name in common:
        old_split = old[name]["split"]
        new_split = new[name]["split"]
        if old_split != new_split:
            moved[name] = f"{old_split} -> {new_split}"
        fields = differing_fields(old[name], new[name])
        if fields:
            changed[name] = ", ".join(fields)
    before, after = facts
    changed_facts = {}
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            changed_facts[name] = f"{before.get(name, '-')} -> {after.get(name, '-')}"
    left_out = removed.get("", "left out")
    added = {}
    for name in sorted(new.keys() - old.keys()):
        added[name] = new[name]["split"]
    reasons = {}
    for name in sorted(old.keys() - new.keys()):
        reasons[name] = removed.get(name, left_out)
    return {
        "facts": changed_facts,
        "added": added,
        "removed": reasons,
        "moved": moved,
        "changed": changed,
    }


def differing_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The names of the fields in which two records differ, but `split`."""
    names = (old.keys() | new.keys()) - {"split"}
    # Private references that are not at hand tell nothing; whether they changed, their hash says.
    if () in (old.get("references"), new.get("references")):
        names.discard("references")
    return sorted(name for name in names if old.get(name) != new.get(name))


def format_diff(diff: RecordDiff, most: int = 20) -> str:
    """The difference as text, with at most so many records of a kind."""
    lines = [f"{name}: {printable(values)}" for name, values in diff["facts"].items()]
    for what, items in diff.items():
        if not items or what == "facts":
            continue
        counts = sorted(Counter(items.values()).items())
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in counts)
        lines.append(f"{what}: {len(items):,} ({printable(kinds)})")
        for name, detail in list(items.items())[:most]:
            lines.append(f"  {printable(f'{name}: {detail}')}")
        if len(items) > most:
            lines.append(f"  and {len(items) - most:,} more")
    return "\n".join(lines) or "no difference"
