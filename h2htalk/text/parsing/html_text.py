"""Text without the tags and entities of HTML."""

from __future__ import annotations

import html
import re
from pathlib import Path

from h2htalk.text.language_data import read_data

_TAGS = read_data(Path(__file__).with_suffix(".toml"))["tags"]
# Known names only: `<3` and `x < y` are text.
_BREAKING = re.compile(rf"</?(?:{'|'.join(_TAGS['block'])})(?:\s[^<>]*)?/?>[ \t]*", re.IGNORECASE)
_OTHER = re.compile(
    rf"</?(?:{'|'.join(_TAGS['inline'] + _TAGS['hidden'])})(?:\s[^<>]*)?/?>|<!--", re.IGNORECASE
)
SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def plain_text(text: str) -> str:
    """The text without tags of HTML and with its entities decoded; one with bytes that were not UTF-8 is unchanged."""
    if not text.isascii() and SURROGATE.search(text):
        return text
    bare, breaks = _BREAKING.subn("\n", text)
    if _OTHER.search(bare):
        from selectolax.lexbor import LexborHTMLParser

        tree = LexborHTMLParser(bare)
        tree.strip_tags(_TAGS["hidden"], recursive=True)
        bare = tree.text()
    elif not breaks:
        return html.unescape(text)
    else:
        bare = html.unescape(bare)
    return _BLANK_LINES.sub("\n\n", bare).strip()
