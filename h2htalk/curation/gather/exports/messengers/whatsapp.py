"""WhatsApp's "Export chat": a text file, in the language and the form of dates of the phone that wrote it.

iOS writes `[12/03/24, 21:15:03] Ann: text` and a left-to-right mark before everything that the program says itself
(lines about the chat, media, deleted messages); Android writes `12/03/24, 21:15 - Ann: text`, and lines about the chat
without a speaker. Versions since 2022 print a narrow no-break space before AM and PM. After the public parsers
whatstk (auto_header), chat-miner, whatsapp-chat-parser (Pustur; parser.ts), OpenChatLab, chatcarve and whats_json
(starkdmi; patterns.dart), and for what the program writes in other languages after public converters that list it.

Somebody may paste lines of another export into a message. Such a line has another form than those of the file, or goes
back in time: it is part of the message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from itertools import islice
from pathlib import Path

from h2htalk.curation.gather.exports.dates import DATE, EVENING, MORNING, NOON, find_order, moment
from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.messages import MARKS, Chat, ChatMessage, Kind, plain_name
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.text.language_data import read_data

PATTERNS = ("*.txt",)
_SPACE = r"[ \u00a0\u2009\u202f]"
_HALF = rf"(?:{MORNING}|{EVENING}|{NOON}|[ap]\.{_SPACE}?m\.?)"
_TIME = rf"(?:{_HALF}{_SPACE}?)?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?:{_SPACE}?{_HALF})?"
# A word may stand between date and time: `at`, `um`, `kl.`
_WHEN = rf"(?P<date>{DATE})[,،]?{_SPACE}(?:[^\W\d]{{1,4}}\.?{_SPACE})??(?P<time>{_TIME})"
# Android puts the time outside of brackets; a chat that is copied from the program in a browser has it before the date.
_WHEN_ANDROID = _WHEN.replace("?P<date>", "?P<date2>").replace("?P<time>", "?P<time2>")
_WHEN_COPIED = rf"(?P<time3>{_TIME}),{_SPACE}(?P<date3>{DATE})"
_START = re.compile(
    rf"[{MARKS}]*(?:(?P<bracket>\[)(?:{_WHEN}|{_WHEN_COPIED})\]{_SPACE}?"
    rf"|{_WHEN_ANDROID}(?:{_SPACE}[-\u2013]{_SPACE}|:{_SPACE}))(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_SEPARATOR = re.compile(r"\d\u200f?([/.\-年])")
_PROGRAM_MARK = "\u200e"  # before what the program says itself, on iOS
_LONGEST_NAME = 80
_LONGEST_LINE = 600  # characters of what the program says
_SAMPLE = 200  # lines by which the form of a file is known
_SELDOM = 2  # messages of a speaker who may be a name in a pasted line
_MOST_PASTED = 50  # lines
_ANGLE = re.compile(r"<[^<>\n]{2,60}>")
_INVISIBLE = re.compile(f"[{MARKS}]")


@cache
def _phrases() -> dict[str, re.Pattern[str]]:
    """What the program writes instead of a message, by kind, in the languages of phones."""
    table = read_data(Path(__file__).with_suffix(".toml"))
    return {
        kind: re.compile("|".join(f"(?:{line})" for line in table[kind]), re.IGNORECASE)
        for kind in table
    }


@dataclass(frozen=True, slots=True)
class _Line:
    """The first line of a message and the lines that go on."""

    date: str
    time: str
    rest: str
    raw: str  # with its date and time
    number: int  # of the file's line, from 1


def looks_like(head: str) -> bool:
    """Whether a text begins as an export of WhatsApp."""
    lines = head.splitlines()[:40]
    return sum(_START.fullmatch(line) is not None for line in lines) >= min(
        2, len([line for line in lines if line])
    )


def read(file: ExportFile, date_order: str = "") -> Iterator[Chat | RefusedItem]:
    """The one chat of a file. Raises RefusedItem where the order of day and month is not known."""
    lines = _lines(file.text())
    if not lines:
        yield RefusedItem(
            "broken", "no line begins as in an export of WhatsApp: [12/03/24, 21:15:03] NAME: TEXT"
        )
        return
    order = find_order((line.date for line in lines), date_order)
    times = [moment(line.date, line.time, order) for line in lines]
    messages = []
    is_group = False
    for line, when in _with_quotations(lines, times):
        message = _message(line)
        is_group |= (
            message.kind == "system" and _phrases()["group"].search(message.text) is not None
        )
        last_line = line.number + line.rest.rstrip().count("\n")
        messages.append(replace(message, time=when, line=line.number, last_line=last_line))
    yield Chat(tuple(messages), line=1, is_group=is_group)


def _with_quotations(
    lines: list[_Line], times: list[datetime | None]
) -> Iterator[tuple[_Line, datetime | None]]:
    """The messages with their times; pasted lines, which go back in time, belong to the message before them.

    They are those of a speaker who seldom writes, copies of earlier lines, and the lines beside these that go back too.
    """
    speakers = Counter(speaker for line in lines if (speaker := _speaker(line)))
    main = {speaker for speaker, _ in speakers.most_common(2)}
    seen: set[str] = set()
    kept: tuple[_Line, datetime | None] | None = None
    position = 0
    while position < len(lines):
        end = _end_of_step_back(times, position, None if kept is None else kept[1])
        pasted = lines[position:end]
        is_pasted = any(
            _is_foreign(line, speakers, main) or _first_line(line) in seen for line in pasted
        )
        if kept is not None and is_pasted:
            texts = [kept[0].rest, *(line.raw for line in pasted)]
            kept = (replace(kept[0], rest="\n".join(texts)), kept[1])
            position = end
            continue
        if kept is not None:
            yield kept
        kept = (lines[position], times[position])
        seen.add(_first_line(lines[position]))
        position += 1
    if kept is not None:
        yield kept


def _end_of_step_back(times: list[datetime | None], start: int, before: datetime | None) -> int:
    """The end of the lines from `start` on that are earlier than the message before them."""
    end = start
    while end < len(times) and end - start < _MOST_PASTED:
        when = times[end]
        if before is None or when is None or when >= before:
            break
        end += 1
    return end


def _is_foreign(line: _Line, speakers: Counter[str], main: set[str]) -> bool:
    speaker = _speaker(line)
    return bool(speaker) and speaker not in main and speakers[speaker] <= _SELDOM


def _first_line(line: _Line) -> str:
    return line.raw.partition("\n")[0]


def _speaker(line: _Line) -> str:
    """The name before the colon of a line; empty where there is none."""
    name, colon, _ = line.rest.partition(":")
    return plain_name(name) if colon and "\n" not in name and len(name) <= _LONGEST_NAME else ""


def _lines(text: str) -> list[_Line]:
    """The messages of a text, each with the lines that go on; a pasted line of another form belongs to its message."""
    texts = re.split(r"\r\n|\n|\r", text)
    # What matches is not kept: a chat of years has a million lines.
    matches = (match for line in texts if (match := _START.fullmatch(line)))
    forms = Counter(_form(match) for match in islice(matches, _SAMPLE))
    main = forms.most_common(1)[0][0] if forms else None
    lines: list[_Line] = []
    parts: list[list[str]] = []
    for number, line in enumerate(texts, 1):
        match = _START.fullmatch(line)
        if match is not None and _form(match) == main:
            lines.append(_Line(_group(match, "date"), _group(match, "time"), "", line, number))
            parts.append([match["rest"]])
        elif parts:
            parts[-1].append(line)
    return [
        replace(line, rest="\n".join(part), raw="\n".join([line.raw, *part[1:]]))
        for line, part in zip(lines, parts, strict=True)
    ]


def _group(match: re.Match[str], name: str) -> str:
    """The date or the time of a line, wherever it stands."""
    return match[name] or match[f"{name}2"] or match[f"{name}3"]


@dataclass(frozen=True, slots=True)
class _Form:
    """What the first lines of the messages of a file have in common."""

    has_bracket: bool
    separator: str  # of the date
    is_year_first: bool
    has_seconds: bool
    has_half: bool  # of the day: AM or PM
    has_comma: bool  # after the date


def _form(match: re.Match[str]) -> _Form:
    date = _group(match, "date")
    time = _group(match, "time")
    separator = _SEPARATOR.search(date)
    head = match.string[: match.start("rest")]
    return _Form(
        has_bracket=match["bracket"] is not None,
        separator=separator[1] if separator else "",
        is_year_first=len(re.split(r"\D", date)[0]) == 4,
        has_seconds=len(re.findall(r"\d+", time)) == 3,
        has_half=re.search(r"[^\W\d]", time) is not None,
        has_comma="," in head,
    )


def _message(line: _Line) -> ChatMessage:
    """The message of a line, without its time."""
    name, colon, text = line.rest.partition(":")
    if (
        not colon
        or len(name) > _LONGEST_NAME
        or "\n" in name
        or (text and text[0] not in " \u00a0\u202f\u200e\n")
    ):
        return ChatMessage("", _bare(line.rest), kind="system")
    if len(line.rest) <= _LONGEST_LINE and _phrases()["system"].search(_bare(line.rest)):
        return ChatMessage("", _bare(line.rest), kind="system")
    return _spoken(plain_name(name), text)


def _spoken(speaker: str, text: str) -> ChatMessage:
    """A message with a speaker, which may be the program's: media, a deleted message, a call."""
    phrases = _phrases()
    # Marks without which the slow expressions below find nothing.
    is_edited = ">" in text and phrases["edited"].search(text) is not None
    text = (phrases["edited"].sub("", text) if is_edited else text).strip(" \u00a0\u202f\n")
    first, line_end, caption_below = text.partition("\n")
    if line_end and _is_placeholder(_bare(first)):
        text = caption_below
        # The name of a document stands below its placeholder.
        if phrases["file"].fullmatch(_bare(text)):
            return ChatMessage(speaker, "", kind="media")
    has_marks = any(mark in text for mark in "<(\u200e")
    caption = phrases["attachment"].sub("", text) if has_marks else text
    if caption != text:
        bare = _bare(caption)
        # A caption stays; the name of a file alone is none.
        if not bare or phrases["file"].fullmatch(bare):
            return ChatMessage(speaker, "", kind="media")
        return ChatMessage(speaker, bare, is_edited=is_edited)
    bare = _bare(text)
    for kind in _PROGRAM_KINDS:
        if phrases[kind].fullmatch(bare):
            return ChatMessage(speaker, bare, kind=kind)
    if text.startswith(_PROGRAM_MARK):
        return ChatMessage(speaker, bare, kind="system")
    if not bare or _ANGLE.fullmatch(bare):
        return ChatMessage(speaker, bare, kind="media")
    return ChatMessage(speaker, bare, is_edited=is_edited)


def _is_placeholder(text: str) -> bool:
    return _ANGLE.fullmatch(text) is not None and _phrases()["media"].fullmatch(text) is not None


_PROGRAM_KINDS: tuple[Kind, ...] = ("deleted", "media", "system")


def _bare(text: str) -> str:
    """A text without invisible marks at its ends; those within it are counted when it is cleaned."""
    return text.strip(" \u00a0\u202f\n\u200e\u200f\u202a\u202c\ufeff")
