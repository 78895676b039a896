"""Plain text of HTML: without tags, with entities decoded; linear in the length of the text."""

from __future__ import annotations

import html
import re

_INLINE = """a abbr acronym b big cite code del dfn em font i img ins kbd mark q s samp small span strike strong sub sup
tt u"""
_BLOCKS = """article aside blockquote body br center dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 head header hr
html li main nav ol p pre section table tbody td tfoot th thead tr ul"""
_HIDDEN = "script|style|title|noscript|iframe"
# Known names only: `<3` and `x < y` are text.
_BREAKING = re.compile(rf"</?(?:{'|'.join(_BLOCKS.split())})(?:\s[^<>]*)?/?>[ \t]*", re.IGNORECASE)
_TAG = re.compile(rf"</?(?:{'|'.join(_INLINE.split())}|{_HIDDEN})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_OPENING = re.compile(rf"<(?:({_HIDDEN})(?:\s[^<>]*)?>|(!--))", re.IGNORECASE)
_CLOSING = {
    name: re.compile(f"</{name}" if name.isalpha() else re.escape("-->"), re.IGNORECASE)
    for name in (*_HIDDEN.split("|"), "!--")
}
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


def plain_text(text: str) -> str:
    """The text without HTML; a text without any is unchanged."""
    if "<" in text:
        bare = _TAG.sub("", _BREAKING.sub("\n", _without_hidden(text)))
        text = text if bare == text else _BLANK_LINES.sub("\n\n", bare).strip()
    return html.unescape(text) if "&" in text else text


def _without_hidden(text: str) -> str:
    """The text without comments, scripts and styles and their contents; an unclosed one stays."""
    kept: list[str] = []
    unclosed: set[str] = set()
    at = 0
    while match := _OPENING.search(text, at):
        name = (match[1] or match[2]).lower()
        close = None if name in unclosed else _CLOSING[name].search(text, match.end())
        if close is None:
            unclosed.add(name)
            kept.append(text[at : match.end()])
            at = match.end()
            continue
        kept.append(text[at : match.start()])
        tail = text.find(">", close.start())
        at = tail + 1 if tail >= 0 else len(text)
    return "".join(kept) + text[at:]
