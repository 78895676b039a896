"""The table of traditional characters that the safety layers fold: from OpenCC's characters (Apache-2.0)."""

from __future__ import annotations

from pathlib import Path

NOTE = "# Traditional and simplified character, pair after pair; from OpenCC (Apache-2.0), see ATTRIBUTION.md"
CHARACTERS = range(0x4E00, 0xA000)
PAIRS_A_LINE = 50
# Traditional pronouns for which OpenCC keeps the character: their readers take them for the same word.
PRONOUNS = ("妳你", "牠它")


def write_traditional(path: Path) -> int:
    """Write the table, and say how many pairs it holds. Needs `pip install opencc-python-reimplemented`."""
    from opencc import OpenCC

    simplify = OpenCC("t2s").convert
    pairs = [chr(code) + simplify(chr(code)) for code in CHARACTERS]
    changed = [pair for pair in pairs if len(pair) == 2 and pair[0] != pair[1]]
    changed = sorted({*changed, *PRONOUNS})
    lines = ["".join(changed[at : at + PAIRS_A_LINE]) for at in range(0, len(changed), PAIRS_A_LINE)]
    path.write_text("\n".join([NOTE, *lines]) + "\n", encoding="utf-8")
    return len(changed)
