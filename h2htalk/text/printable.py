"""Text from dialogues, models and files, made harmless for a terminal, a table cell or a page.

What is invisible there but acts (escape sequences, direction overrides, zero-width marks) is shown as its escape.
"""

from __future__ import annotations

import re

# C0 and C1 controls, soft hyphen, direction marks and overrides, zero-width and other invisible format
# characters, line and paragraph separators, byte order mark, interlinear marks, lone surrogates, tags.
# The joiner U+200D stays: emoji are made with it.
_ACTING = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str) -> str:
    """One line of text in which every control or invisible character stands as `\\n`, `\\x1b` or `\\u202e`."""
    return _ACTING.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
