"""The pattern that `curate look` proposes for a log: the form that reads it, cut down to what its lines need.

A form knows all programs and languages, so that nobody can read its pattern. Each of its parts gives way to the first
shorter one with which every line of the file is read as before; a long pattern is written on several lines, with what
each part is for, as Python's verbose regular expressions are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from h2htalk.curation.gather.exports.logs.chat_log import compile_pattern
from h2htalk.errors import ConfigError

Read = tuple[str | None, ...]  # what a pattern finds on a line
# Parts of a pattern, and what a line of comment calls them. Others hold parts together.
STAMP = ("before", "time", "after")
_ROWS = {
    "before": "the time",
    "time": "the time",
    "after": "the time",
    "gap": "the time",
    "list": "where a line begins",
    "speaker": "who speaks",
    "delimiter": "between name and text",
    "notice": "who speaks",
    "text": "what is said",
    "below": "the text stands below",
    "rule": "the line below the names of the columns",
    "program": "no speaker: a line of the program, which is left out",
}
_SHORT = 90  # characters of a pattern that stands on one line
_MOST_SHAPES = 3  # of the times of a file
_LONGEST = 2000  # characters of a line, as a run reads it
_TOKEN = re.compile(r"\d+|[^\W\d]+|\s+|.", re.DOTALL)
_FIXED = (
    "T",
    "Z",
    "at",
    "um",
    "h",
    "à",
    "às",
    "Uhr",
)  # words of a time that are no part of the day and no name
_SPECIAL = frozenset("\\+.*^?$|(){}[]")
_NO_TIME = r"(?![\d/)])"  # after a colon: of a clock, an address, an emoticon
_SPEAKERS = (
    r"(?P<speaker>\w[^:]{0,39}?)",
    r"(?P<speaker>\w[^:：]{0,39}?)",
    r"(?P<speaker>\w\S{0,39}?)",
    r"(?P<speaker>\w[^:<>|*]{0,39}?)",
    r"\*\*(?P<speaker>\w[^:*]{0,39}?)\*\*",
    r"\*{0,2}(?P<speaker>[^\s:：*][^:：*]{0,39}?)\*{0,2}",
)
_NICKS = (
    r"<(?P<speaker>[^<>\s]+)> (?P<text>.*)",
    r"<[ @+%&~]?(?P<speaker>[^<>\s]+)>\s(?P<text>.*)",
    r"(?:<[ @+%&~]?|\* )(?P<speaker>[^<>\s]+)>?\s(?P<text>.*)",
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a pattern. `kind`: one of `_ROWS`, or empty for what holds parts together."""

    kind: str
    pattern: str


def joined(parts: Sequence[Part]) -> str:
    """The pattern of some parts."""
    return "".join(_with_stamp(part, parts) for part in parts)


def _with_stamp(part: Part, parts: Sequence[Part]) -> str:
    """The pattern of a part; lines of the program have the time that messages have."""
    if part.kind != "program":
        return part.pattern
    stamp = "".join(other.pattern for other in parts if other.kind in STAMP)
    return part.pattern + stamp.replace("(?P<time>", "(?:")


def short_pattern(parts: Sequence[Part], lines: Sequence[str]) -> str:
    """The pattern of a form for a file. `lines`: of the file, all of which it reads as the form does."""
    lines = [line[:_LONGEST] for line in lines]
    kept = list(parts)
    as_before = _read(joined(parts), lines)
    strings = _strings(parts, lines)
    for position, part in enumerate(parts):
        for pattern in _simpler(part, strings[position]):
            if len(pattern) >= len(part.pattern):
                continue
            trial = [*kept[:position], replace(part, pattern=pattern), *kept[position + 1 :]]
            if _read(joined(trial), lines) == as_before:
                kept = trial
                break
    written = _written(kept)
    try:
        compile_pattern(written, "the proposed pattern")
    except ConfigError:
        # Shapes of rare lines may need too long; the form itself is known to be quick.
        return joined(parts)
    return written if _read(written, lines) == as_before else joined(kept)


def _read(pattern: str, lines: Sequence[str]) -> list[Read]:
    """What a pattern finds on each line; of patterns that are none, nothing that equals another one's."""
    try:
        compiled = re.compile(pattern)
    except re.error:
        return [("no pattern",)]
    has_time = "time" in compiled.groupindex
    found: list[Read] = []
    for line in lines:
        match = compiled.match(line)
        if match is None:
            found.append(())
            continue
        if match["speaker"] is None:
            # A line of the program, whatever else is read on it.
            found.append((None,))
            continue
        text = match["text"]
        time = match["time"] if has_time else None
        found.append((match["speaker"], text.strip() if text else text, time))
    return found


def _strings(parts: Sequence[Part], lines: Sequence[str]) -> list[list[str]]:
    """What each part of a form matches on the lines with a speaker, each text once."""
    grouped = [
        Part(part.kind, f"(?P<part{position}>{part.pattern})") if _is_held(part) else part
        for position, part in enumerate(parts)
    ]
    compiled = re.compile("".join(_with_stamp(part, parts) for part in grouped))
    strings: list[dict[str, None]] = [{} for _ in parts]
    for line in lines:
        match = compiled.match(line)
        if match is None or match["speaker"] is None:
            continue
        for position, part in enumerate(parts):
            text = match[f"part{position}"] if _is_held(part) else None
            if text is not None:
                strings[position][text] = None
    return [list(held) for held in strings]


def _is_held(part: Part) -> bool:
    return bool(part.kind) and part.kind != "program"


def _simpler(part: Part, strings: Sequence[str]) -> Iterator[str]:
    """Shorter patterns for a part, the simplest first. `strings`: what it matches in the file."""
    if part.kind == "time":
        shapes = sorted({_shape(text) for text in strings}, key=len, reverse=True)
        if "[^\\]" in part.pattern:
            yield r"(?P<time>[^\]]*\d:\d\d[^\]]*)"
        if "[^)" in part.pattern:
            yield r"(?P<time>[^)]*\d:\d\d[^)]*)"
        if 0 < len(shapes) <= _MOST_SHAPES:
            yield f"(?P<time>{'|'.join(shapes)})"
    elif part.kind == "speaker":
        yield from _SPEAKERS
    elif part.kind == "notice":
        yield from _NICKS
    elif part.kind == "below":
        yield "(?P<text>)$"
        yield r"\s{0,4}(?P<text>)$"
    elif part.kind == "program":
        yield "|"
        yield "|---|"
    elif part.kind in ("gap", "list", "delimiter"):
        yield from _between(strings, is_colon=_is_colon(part))


def _is_colon(part: Part) -> bool:
    return part.kind == "delimiter" and "(?!" in part.pattern


def _between(strings: Sequence[str], is_colon: bool) -> Iterator[str]:
    """Patterns for what stands between a time, a name and a text."""
    marks = sorted({text.strip() for text in strings})
    if not strings:
        yield ""
        return
    if marks == [""]:
        if len(strings) == 1:
            yield _escaped(strings[0])
        yield r"\s{0,4}" if "" in strings else r"\s{1,4}"
        return
    if any(len(mark) != 1 for mark in marks) and len(marks) > 1:
        return
    mark = _escaped(marks[0]) if len(marks) == 1 else f"[{''.join(marks)}]"
    befores = {text[: len(text) - len(text.lstrip())] for text in strings}
    afters = {text[len(text.rstrip()) :] for text in strings}
    after = _space(afters)
    guard = _NO_TIME if is_colon and "" in afters else ""
    yield _space(befores) + mark + guard + after


def _space(texts: set[str]) -> str:
    """White space as it stands in some places."""
    if len(texts) == 1:
        (text,) = texts
        return _escaped(text)
    longest = max(map(len, texts))
    return rf"\s{{0,{longest}}}" if longest > 1 else r"\s?"


def _escaped(text: str) -> str:
    signs = []
    for sign in text:
        if sign in _SPECIAL:
            signs.append("\\" + sign)
        elif sign.isspace() and sign != " ":
            signs.append(r"\t" if sign == "\t" else r"\s")
        else:
            signs.append(sign)
    return "".join(signs)


def _shape(text: str) -> str:
    """A pattern of times that are written as one is: `19:04` is `\\d{1,2}:\\d{2}`."""
    shapes: list[str] = []
    before = ""
    for token in _TOKEN.findall(text):
        shapes.append(_shape_of(token, before))
        before = token
    return "".join(shapes)


def _shape_of(token: str, before: str) -> str:
    if token.isdigit():
        if len(token) > 2:
            return rf"\d{{{len(token)}}}"
        return r"\d{2}" if before == ":" else r"\d{1,2}"
    if token in _FIXED or (len(token) == 1 and token.isalpha()):
        return token
    if token.casefold() in ("am", "pm"):
        return "[AaPp][Mm]"
    if token.isalpha():
        # A name of a month or of a day; the day parts of Chinese and Korean have as many signs each.
        return r"\w{1,12}" if token.isascii() else rf"\w{{{len(token)}}}"
    return " " if token == " " else _escaped(token)


def _written(parts: Sequence[Part]) -> str:
    """A pattern on one line, or, where it is long, on several, with what each is for."""
    pattern = joined(parts)
    if len(pattern) <= _SHORT:
        return pattern
    rows: list[tuple[str, str]] = []  # comment and pattern
    before = ""
    for part in parts:
        fragment = _spaced(_with_stamp(part, parts))
        if not fragment:
            continue
        if not part.kind:
            is_end = fragment.startswith(")") and bool(rows)
            if is_end:
                rows[-1] = (rows[-1][0], rows[-1][1] + fragment)
            else:
                before += fragment
            continue
        comment = _ROWS[part.kind]
        if rows and rows[-1][0] == comment and not before:
            rows[-1] = (comment, rows[-1][1] + fragment)
        else:
            rows.append((comment, before + fragment))
        before = ""
    if not rows:
        return pattern
    width = min(max(len(fragment) for _, fragment in rows), 60)
    lines = [
        f"{fragment:<{width}}  # {comment}" if comment else fragment for comment, fragment in rows
    ]
    return "\n".join(["(?x)", *lines])


def _spaced(pattern: str) -> str:
    """A pattern in which spaces and `#` count in a verbose expression too."""
    signs: list[str] = []
    is_escaped = is_in_class = False
    for sign in pattern:
        if is_escaped:
            signs.append(sign)
            is_escaped = False
            continue
        is_escaped = sign == "\\"
        if not is_in_class and sign == " ":
            signs.append("[ ]")
            continue
        if not is_in_class and sign == "#":
            signs.append(r"\#")
            continue
        # The first `]` of a class is never a member here, as no form has one.
        if sign == "[":
            is_in_class = True
        elif sign == "]":
            is_in_class = False
        signs.append(sign)
    return "".join(signs)
