"""Convert traditional characters to simplified ones, one for one: the rules know 號 and 樓 as 号 and 楼.

`traditional.txt` is derived from OpenCC's TSCharacters (Carbo Kuo and the OpenCC authors, Apache-2.0).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FILE = Path(__file__).parent / "traditional.txt"


def simplified(text: str) -> str:
    """Convert a text to simplified characters; the length stays the same."""
    return text if text.isascii() else text.translate(_table())


@cache
def _table() -> dict[int, str]:
    """Read `traditional.txt`, which holds pairs of characters."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    pairs = "".join(line for line in lines if not line.startswith("#"))
    return {ord(old): new for old, new in zip(pairs[::2], pairs[1::2], strict=True)}
