"""What a run says at its end of the largest group of near duplicates, and how to keep its dialogues apart.

One frame with other contents in it, as programs write dialogues, is a group of near duplicates: its best one stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from h2htalk.curation.stage_folder import REJECTED
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import counted

STAGE = "dedup"
NEAR = "near_duplicate"
LEAST = 3  # dialogues of a group that is worth a line
STEP = 0.01  # of a threshold that is suggested


@dataclass(slots=True)
class DuplicateGroup:
    """A dialogue that dedup kept, and its near duplicates; `least` and `most`: their similarity to it."""

    kept: str
    dialogues: int = 1
    least: float = 1.0
    most: float = 0.0

    def add(self, similarity: float) -> None:
        """Count one more near duplicate."""
        self.dialogues += 1
        self.least = min(self.least, similarity)
        self.most = max(self.most, similarity)

    @property
    def threshold(self) -> float:
        """The lowest threshold, in steps of .01, at which none of them is a near duplicate of the kept one.

        Some of them may be nearer to each other.
        """
        return round(math.floor(self.most / STEP + 1e-9) * STEP + STEP, 2)


def largest_group(workspace: Workspace) -> DuplicateGroup | None:
    """The largest group of near duplicates; None where dedup found none."""
    folder = workspace.stage(STAGE)
    groups: dict[str, DuplicateGroup] = {}
    for line in folder.records(REJECTED):
        if line["reason"] == NEAR:
            evidence = line["evidence"]
            group = groups.setdefault(str(evidence["of"]), DuplicateGroup(str(evidence["of"])))
            group.add(float(evidence["similarity"]))
    return min(groups.values(), key=lambda group: (-group.dialogues, group.kept), default=None)


def group_lines(workspace: Workspace) -> list[str]:
    """The largest group of near duplicates, its share, and what keeps its dialogues; none for a small one."""
    folder = workspace.stage(STAGE)
    group = largest_group(workspace) if folder.begun else None
    if group is None or group.dialogues < LEAST:
        return []
    read = folder.total().read
    line = f"{STAGE:10} largest group of near duplicates: {group.dialogues:,} of {counted(read, 'dialogue')}"
    line += f" ({group.dialogues / read:.0%}), of which {group.kept} stays"
    line += f" (similarity {group.least:.2f} to {group.most:.2f})"
    if group.threshold >= 1:
        return [line]
    keep = f"if they are one frame with other contents, `threshold = {group.threshold}` in [{STAGE}] keeps most of them"
    read_them = f"h2htalk show {workspace.path / STAGE} --reason {NEAR}"
    return [line, f"{STAGE:10} {keep} (`--from-stage {STAGE}`); to read them: {read_them}"]
