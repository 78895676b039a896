"""Plain text of HTML: without tags, with entities decoded; linear in the length of the text."""

from __future__ import annotations

import html
import re

_INLINE = """a abbr acronym b big cite code del dfn em font i img ins kbd mark q s samp small span strike strong sub sup
tt u"""
_BLOCKS = """article aside blockquote body br center dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr
html li main nav ol p pre section table tbody td tfoot th thead tr ul"""
_HIDDEN = "script style title noscript iframe"
# Known names only: `<3` and `x < y` are text.
_BREAKING = re.compile(rf"</?(?:{'|'.join(_BLOCKS.split())})(?:\s[^<>]*)?/?>[ \t]*", re.IGNORECASE)
_OTHER = re.compile(rf"</?(?:{'|'.join((_INLINE + ' ' + _HIDDEN).split())})(?:\s[^<>]*)?/?>|<!--", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def plain_text(text: str) -> str:
    """The text without HTML; a text without any, or with bytes that were not UTF-8, is unchanged."""
    if not text.isascii() and _SURROGATE.search(text):
        return text
    if "<" not in text:
        return html.unescape(text) if "&" in text else text
    bare, breaks = _BREAKING.subn("\n", text)
    if _OTHER.search(bare):
        from selectolax.lexbor import LexborHTMLParser

        tree = LexborHTMLParser(bare)
        for node in tree.css(_HIDDEN.replace(" ", ",")):
            node.decompose()
        bare = tree.text()
    elif not breaks:
        return html.unescape(text)
    else:
        bare = html.unescape(bare)
    return _BLANK_LINES.sub("\n\n", bare).strip()
