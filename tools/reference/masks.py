"""Mask what two reference folders of equal commits write differently: `masks.toml` lists it, with reasons."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mask:
    """A pattern, what takes its place, and why it differs between equal commits."""

    pattern: re.Pattern[str]
    replacement: str
    reason: str


def read_masks(path: Path) -> list[Mask]:
    """Read a table of masks; `^` and `$` of a pattern stand for the ends of a line."""
    masks = []
    for entry in tomllib.loads(path.read_text(encoding="utf-8"))["masks"]:
        pattern = re.compile(entry["pattern"], re.MULTILINE)
        masks.append(Mask(pattern, entry["replacement"], entry["reason"]))
    return masks


MASKS = read_masks(Path(__file__).with_name("masks.toml"))
# Files whose lines are stored in the order in which parallel calls end: judges of studies and of probes are asked in
# parallel whatever `--concurrency` says of the model.
UNORDERED = re.compile(r"(probe|studies/[^/]+)/judgements/calls\.jsonl")


def masked(text: str) -> str:
    """A text with everything masked that two runs of one commit write differently."""
    for entry in MASKS:
        text = entry.pattern.sub(entry.replacement, text)
    return text
