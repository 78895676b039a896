"""A log of lines that a regular expression of the owner reads: `pattern`, with the groups `speaker` and `text`.

A line that does not match goes on with the message before it; before the first message it is the head of the log, which
is left out and counted. So are lines that match without a `speaker`, headings of days, lines with marks before them and
remarks in brackets (`log_lines`). The groups `time` and `conversation` may be there too.
Python's `re` tries alternatives again, so that some patterns need years for one line; such a pattern is refused before
anything is read: no repetition within a repetition, no back reference, and a trial on lines that would show the others.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from itertools import takewhile
from re import _constants, _parser  # type: ignore[attr-defined]
from types import MappingProxyType
from typing import Any

from h2htalk.curation.gather.exports.export_files import ExportFile
from h2htalk.curation.gather.exports.logs.joined_lines import JoinedLine, settle
from h2htalk.curation.gather.exports.logs.log_lines import (
    RENAMED,
    day_in,
    is_heading,
    is_of_program,
    is_placeholder,
    is_remark,
    moments_of,
)
from h2htalk.curation.gather.exports.messages import Chat, ChatMessage, Kind, plain_name, same_name
from h2htalk.curation.gather.exports.tables.columns import words
from h2htalk.curation.gather.formats import RefusedItem
from h2htalk.errors import ConfigError, DataError, quoted

PATTERNS = ("*.txt", "*.log", "*.md")
GROUPS = ("speaker", "text", "time", "conversation")
_HEAD = 2000  # characters of a line that the pattern reads; what follows belongs to the text
_SLOW = 0.05  # seconds for a line of the trial
_TOO_SLOW = 2.0  # seconds for a line of the file
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_CONTINUED = re.compile(r"^\s+[|¦│]\s?")  # marks of a line that goes on with a message
_QUOTE = re.compile(r"「[^\n：:]{1,60}[：:].{0,4000}」", re.DOTALL)
_RULE_BELOW_QUOTE = re.compile(r"\s*(?:- ){5,}-?\s*|\s*-{10,}\s*|\s*[—–]{5,}\s*")
_RULE_OF_TABLE = re.compile(r"\|[-:| ]{3,400}")
_QUOTE_BELOW = re.compile(r"\n引用[:：][^\n]*\Z")  # of LC044/WeChatMsg
_ACCOUNT_NUMBER = re.compile(r"[(（]\d{5,12}[)）]$")
_AUTOMATIC = re.compile(r"<(?:auto-?reply|automatic)[^<>]*>", re.IGNORECASE)
_DATE_IN_HEAD = re.compile(r"\d+[/.:-]\d")
_LEAST_HEAD = 10  # characters before the date of a session's head
_SELDOM = 3  # times as many messages have both speakers of a log as a name within a text
_MANY = 10  # times: a repetition that may be taken more often than this counts


@lru_cache
def compile_pattern(pattern: str, where: str) -> re.Pattern[str]:
    """The pattern of a source. Raises ConfigError where it has no such groups, or may take too long."""
    try:
        compiled = re.compile(pattern)
        tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ConfigError(f"{where}: pattern: no regular expression: {error}") from error
    unknown = sorted(set(compiled.groupindex) - set(GROUPS))
    if unknown or not {"speaker", "text"} <= set(compiled.groupindex):
        wanted = "(?P<speaker>...) and (?P<text>...), also (?P<time>...) and (?P<conversation>...)"
        raise ConfigError(f"{where}: pattern: it must have the groups {wanted}")
    if problem := _problem(tree, is_repeated=False):
        raise ConfigError(
            f"{where}: pattern: {problem}, which may take years for a line; write it without"
        )
    _try(compiled, where)
    return compiled


def _problem(tree: Any, is_repeated: bool) -> str:
    """Why a pattern may take very long; empty where nothing is found."""
    for name, argument in tree:
        if name in (_constants.GROUPREF, _constants.GROUPREF_EXISTS):
            return "it refers back to a group"
        if str(name) == "BRANCH" and is_repeated:
            return "it repeats alternatives, such as (a|ab)+"
        inner = is_repeated
        if str(name) in _REPEATS:
            most = argument[1]
            if most > _MANY and is_repeated:
                return "it repeats something that is repeated, such as (a+)+"
            inner = is_repeated or most > _MANY
        for part in _parts(argument):
            if problem := _problem(part, inner):
                return problem
    return ""


def _parts(argument: Any) -> Iterator[Any]:
    """The patterns within the argument of a node."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for part in argument:
            yield from _parts(part)


def _try(pattern: re.Pattern[str], where: str) -> None:
    """Match longer and longer lines of one or two characters. Raises ConfigError where one takes too long."""
    seeds = list(
        dict.fromkeys(
            ["a", " ", ":", "1", "a ", "a:", "1:", "] ", "- ", "你", *pattern.pattern[:40]]
        )
    )
    for length in (16, 20, 24, 28, 60, 200, 600, _HEAD):
        for seed in seeds:
            line = (seed * length)[:length]
            for text in (line, line + "\x00"):
                start = time.process_time()
                pattern.match(text)
                if time.process_time() - start > _SLOW:
                    problem = f"it takes too long for a line of {length} characters {quoted(seed)}"
                    raise ConfigError(f"{where}: pattern: {problem}; write [^:]+ instead of .+")


@dataclass(slots=True)
class _Entry:
    """A message of a log while its lines are read."""

    speaker: str
    raw: str  # its first line
    number: int  # of that line
    lines: list[str]
    time: str | None = None
    day: date | None = None  # of the heading above
    kind: Kind = "text"
    joined: list[JoinedLine] = field(default_factory=list)  # lines that go on with it


@dataclass(slots=True)
class _Conversation:
    line: int
    entries: list[_Entry] = field(default_factory=list)
    joined: tuple[str, ...] = ()  # lines that go on with messages, and may be no part of them
    remarks: tuple[str, ...] = ()  # lines that are none, by how the file is written


def read(
    file: ExportFile,
    pattern: re.Pattern[str],
    date_order: str = "",
    companion: str = "",
    leave_out: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[Chat | RefusedItem]:
    """The chats of a file: one, or one for each `conversation`. `leave_out`: words of lines that are no messages."""
    conversations = _conversations(file, pattern)
    if not any(entry.speaker for held in conversations.values() for entry in held.entries):
        yield RefusedItem(
            "broken", "no line matches the pattern; h2htalk curate look FILE proposes another one"
        )
        return
    for name, held in conversations.items():
        _settle(held, leave_out)
        try:
            yield _chat(name, held, date_order, companion)
        except RefusedItem as refused:
            yield refused


def _conversations(file: ExportFile, pattern: re.Pattern[str]) -> dict[str, _Conversation]:
    """The messages of a log, and what stands between them, by conversation."""
    conversations: dict[str, _Conversation] = {}
    current = ""
    day: date | None = None
    lines = re.split(r"\r\n|\n|\r", file.text())
    for number, line in enumerate(lines, 1):
        match = _match(pattern, line, file, number)
        before = lines[number - 2] if number > 1 else ""
        after = lines[number] if number < len(lines) else ""
        if match is not None and match["speaker"] is not None:
            groups = match.groupdict()
            text = (groups["text"] or "") + (line[_HEAD:] if match.end("text") == _HEAD else "")
            current = groups.get("conversation") or current
            entry = _Entry(
                plain_name(groups["speaker"]), line, number, [text], groups.get("time"), day
            )
            conversations.setdefault(current, _Conversation(number)).entries.append(entry)
            continue
        held = conversations.setdefault(current, _Conversation(number))
        if (
            _RULE_OF_TABLE.fullmatch(line)
            and held.entries
            and held.entries[-1].number == number - 1
        ):
            # The names of the columns of a table of Markdown.
            held.entries[-1].speaker = ""
            held.entries[-1].kind = "system"
        if _RULE_BELOW_QUOTE.fullmatch(line) and _has_quote_alone(held):
            held.entries[-1].lines.clear()
            held.entries[-1].joined.clear()
            continue
        kind: Kind = "text"
        if match is not None or not _lacks_text(held):
            # Below a name that stands on a line of its own, brackets are a part of the text up to an empty line.
            after = "text" if _has_text_below(held) else after
            kind = _kind_between(line, is_matched=match is not None, before=before, after=after)
        if kind == "text" and _begins_as_head(line, held):
            kind = "system"
        if kind == "text":
            _add_line(held, line, number, after_blank=not before.strip() or _stands_apart(held))
        elif line.strip():
            held.entries.append(_Entry("", line, number, [line.strip()], None, day, kind))
            if kind == "system":
                day = day_in(line, day) or day
    return conversations


def _kind_between(line: str, is_matched: bool, before: str, after: str) -> Kind:
    """What a line is that begins no message: `text` where it goes on with the message before."""
    if (
        is_matched
        or is_of_program(line)
        or _is_said_by_program(line)
        or is_heading(line, after_blank=not before.strip())
    ):
        return "system"
    if is_placeholder(line):
        return "media"
    return (
        "remark"
        if is_remark(line, beside_blank=not before.strip() or not after.strip())
        else "text"
    )


def _lacks_text(held: _Conversation) -> bool:
    """Whether the last line is a name above a text."""
    last = held.entries[-1] if held.entries else None
    return last is not None and bool(last.speaker) and not "".join(last.lines).strip()


def _is_said_by_program(line: str) -> bool:
    """Whether a line begins with a name that programs give themselves: `System: ...`."""
    name, colon, _ = line.replace("：", ":").partition(":")
    return bool(colon) and name.strip().casefold() in words()["values"]["program"]


def _has_quote_alone(held: _Conversation) -> bool:
    """Whether the last message is, as far as it goes, the words of an earlier one that WeChat repeats above a reply."""
    last = held.entries[-1] if held.entries else None
    return (
        last is not None
        and bool(last.speaker)
        and _QUOTE.fullmatch("\n".join(last.lines).strip()) is not None
    )


def _has_text_below(held: _Conversation) -> bool:
    """Whether the last message has its text on the lines below the name."""
    last = held.entries[-1] if held.entries else None
    return (
        last is not None
        and bool(last.speaker)
        and len(last.lines) > 1
        and not last.lines[0].strip()
    )


def _stands_apart(held: _Conversation) -> bool:
    """Whether a heading or a remark stands between a line and the message before it."""
    return bool(held.entries) and not held.entries[-1].speaker


def _begins_as_head(line: str, held: _Conversation) -> bool:
    """Whether a line begins as one of the log's head does, up to its date: the head of the next session."""
    date_at = _DATE_IN_HEAD.search(line)
    if date_at is None or date_at.start() < _LEAST_HEAD:
        return False
    begin = line[: date_at.start()]
    heads = takewhile(lambda entry: not entry.speaker, held.entries)
    return any(entry.raw.startswith(begin) for entry in heads)


def _settle(held: _Conversation, leave_out: Mapping[str, Sequence[str]]) -> None:
    """Take the lines out of messages that are remarks, by how the file is written or by what its owner says."""
    entries = [entry for entry in held.entries if entry.speaker]
    settled = settle([entry.joined for entry in entries], leave_out)
    held.joined = tuple(settled.joined)
    held.remarks = tuple(line.text.strip() for _, line in settled.remarks)
    for number, line in reversed(settled.remarks):
        entry = entries[number]
        del entry.lines[line.position]
        remark = _Entry("", line.text, line.number, [line.text.strip()], kind="remark")
        held.entries.insert(_position(held.entries, entry) + 1, remark)


def _position(entries: Sequence[_Entry], entry: _Entry) -> int:
    return next(position for position, other in enumerate(entries) if other is entry)


def _add_line(held: _Conversation, line: str, number: int, after_blank: bool) -> None:
    """Add a line to the message that it goes on with; lines before the first message are the head of the log."""
    last = next((entry for entry in reversed(held.entries) if entry.speaker), None)
    if last is not None:
        has_text = bool("".join(last.lines).strip())
        is_marked = _CONTINUED.match(line) or _QUOTE_BELOW.fullmatch("\n" + line)
        if has_text and line.strip() and not is_marked:
            last.joined.append(JoinedLine(len(last.lines), line, number, after_blank))
        last.lines.append(_CONTINUED.sub("", line).strip())
    elif line.strip():
        held.entries.append(_Entry("", line, number, [line.strip()], None, None, "system"))


def _chat(name: str, held: _Conversation, date_order: str, companion: str) -> Chat:
    """The chat of a conversation. Raises RefusedItem where day and month cannot be told apart."""
    entries = _with_names_in_texts(held.entries, companion)
    _rename(entries)
    times = moments_of(
        [entry.time for entry in entries], [entry.day for entry in entries], date_order
    )
    with_text = {entry.speaker for entry in entries if "".join(entry.lines).strip()}
    messages = []
    for entry, moment in zip(entries, times, strict=True):
        if entry.speaker not in with_text:
            # What stands in the place of a name is a line of the program.
            entry.kind = "system"
        text = _QUOTE_BELOW.sub("", "\n".join(entry.lines).strip())
        kind = entry.kind if entry.kind != "text" else _kind_of_message(entry, text)
        length = len("\n".join(entry.lines).rstrip().splitlines())
        messages.append(
            ChatMessage(
                speaker=entry.speaker,
                text=text,
                time=moment,
                kind=kind,
                line=entry.number,
                last_line=entry.number + max(length - 1, 0),
            )
        )
    return Chat(
        messages=tuple(messages),
        id=name or None,
        line=held.line,
        is_one_dialogue=bool(name),
        joined=held.joined,
        remarks=held.remarks,
    )


def _kind_of_message(entry: _Entry, text: str) -> Kind:
    """What a message with a speaker is."""
    # QQ puts the number of an account behind its name: 系统消息(10000).
    name = _ACCOUNT_NUMBER.sub("", entry.speaker).casefold()
    if name in words()["values"]["program"] or not any(sign.isalnum() for sign in name):
        return "system"
    if _AUTOMATIC.search(entry.speaker):
        return "system"
    return "media" if is_placeholder(text) else "text"


def _with_names_in_texts(entries: list[_Entry], companion: str) -> list[_Entry]:
    """The messages without those of names that are words of a text: `Place: the old mill`.

    Such a name is seldom there, and its line has no time of its own.
    """
    counts = Counter(entry.speaker for entry in entries if entry.speaker)
    main = [name for name, _ in counts.most_common(2)]
    if len(main) < 2 or len(counts) == 2:
        return entries
    least = counts[main[1]]
    kept: list[_Entry] = []
    for entry in entries:
        is_main = not entry.speaker or entry.speaker in main or same_name(entry.speaker, companion)
        is_name = is_main or entry.time is not None or counts[entry.speaker] * _SELDOM > least
        last = next((earlier for earlier in reversed(kept) if earlier.speaker), None)
        if not is_name and last is not None:
            last.lines += [entry.raw.strip(), *entry.lines[1:]]
            continue
        if not is_name:
            # The head of a log: `title: ...`.
            entry.speaker = ""
            entry.kind = "system"
        kept.append(entry)
    return kept


def _rename(entries: list[_Entry]) -> None:
    """Give a speaker one name where a line of the program says that it has changed."""
    names: dict[str, str] = {}
    for entry in entries:
        if entry.speaker:
            entry.speaker = names.get(entry.speaker, entry.speaker)
        elif match := RENAMED.search(entry.lines[0][:_HEAD] if entry.lines else ""):
            names[match[2]] = names.get(match[1], match[1])


def _match(
    pattern: re.Pattern[str], line: str, file: ExportFile, number: int
) -> re.Match[str] | None:
    start = time.process_time()
    found = pattern.match(line[:_HEAD])
    if time.process_time() - start > _TOO_SLOW:
        raise DataError(
            f"{file.path}:{number}: the pattern takes too long for this line; write [^:]+ instead of .+"
        )
    return found
