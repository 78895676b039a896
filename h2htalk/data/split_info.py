"""A split in words: what it holds, for people."""

from __future__ import annotations

from collections import Counter

from h2htalk.data.splits import Split
from h2htalk.data.subtasks import SUBTASKS, TOTAL_COUNT


def describe_split(split: Split) -> str:
    """Name, licence and fingerprint, a table of counts beside Table 1's, and the tags."""
    counts = Counter((s.subtask, s.language) for s in split.scenarios)
    languages = sorted({s.language for s in split.scenarios})
    lines = [
        f"{split.name} {split.version}: {len(split.scenarios):,} scenarios, {split.licence}",
        *([split.description] if split.description else []),
        f"fingerprint {split.fingerprint}; personas {', '.join(split.personas)}",
        "",
        f"{'subtask':<28}" + "".join(f"{language:>7}" for language in languages) + f"{'Table 1':>10}",
    ]
    for subtask in SUBTASKS.values():
        row = "".join(f"{counts[subtask.name, language]:>7,}" for language in languages)
        lines.append(f"{subtask.name:<28}{row}{subtask.count:>10,}")
    totals = Counter(s.language for s in split.scenarios)
    row = "".join(f"{totals[language]:>7,}" for language in languages)
    lines.append(f"{'total':<28}{row}{TOTAL_COUNT:>10,}")
    for tag in ("emotion", "complexity", "interaction", "risk"):
        values = Counter(str(getattr(s.tags, tag)) for s in split.scenarios)
        shown = ", ".join(
            f"{value} {n:,}" for value, n in sorted(values.items(), key=lambda p: (-p[1], p[0]))
        )
        lines += ["", f"{tag}: {shown}"]
    return "\n".join(lines) + "\n"
