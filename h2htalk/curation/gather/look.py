"""Say what a raw file is, which setting of a source reads it, and show some of its dialogues; nothing is stored."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from h2htalk.curation.export_programs import EXPORT_PROGRAMS
from h2htalk.curation.gather import formats, records
from h2htalk.curation.gather.encodings import NAMES, UTF8
from h2htalk.curation.gather.exports.dates import is_moment
from h2htalk.curation.gather.exports.dialogues import UnknownCompanionError
from h2htalk.curation.gather.exports.export_files import ARCHIVE, matches
from h2htalk.curation.gather.exports.logs.log_forms import find_form
from h2htalk.curation.gather.exports.logs.log_patterns import short_pattern
from h2htalk.curation.gather.exports.programs import PROGRAMS
from h2htalk.curation.gather.exports.tables import turns
from h2htalk.curation.gather.exports.tables.columns import (
    REQUIRED,
    find_columns,
    guess_columns,
    guess_time,
)
from h2htalk.curation.gather.exports.tables.odd_columns import odd_columns
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem, clean
from h2htalk.curation.gather.refusals import Refusals
from h2htalk.curation.gather.source_files import Item, plan_source
from h2htalk.curation.stages import Source
from h2htalk.data.languages import Language
from h2htalk.errors import ConfigError, DataError, counted, listed, quoted, shorten
from h2htalk.text.escaping import printable

_ANY_LICENCE = "CC0-1.0"  # for the look alone
_HEAD = 1 << 16
_LONG_HEAD = 1 << 18  # of a log, whose pattern must read rare lines too
_MOST_ITEMS = 1000  # that are read
_SHOWN = 3  # dialogues
_TURNS = 6  # of a dialogue
_LONGEST = 100  # characters of a turn
_MOST_ROWS = 200  # of a table, by which its columns are guessed
_LEAST_ROWS = 0.9  # of the first records, that are rows of the header's columns
_MARKDOWN_RULE = re.compile(r"^ {0,3}\|[-:| ]{0,40}-{3}[-:| ]{0,400}$", re.MULTILINE)
_LEAST_REPEATED = 1  # rows with the value that stands in the place of a column's name
_ROWS = "rows of one message"
_BY_CHARACTERS = "by its characters; en and zh are read"
_HAN = re.compile("[\u4e00-\u9fff]")
_KANA = re.compile("[\u3041-\u30ff]")


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is, and the settings that read it."""

    title: str
    settings: Mapping[str, Any]


def look(path: Path, companion: str = "", language: Language | None = None) -> Iterator[str]:
    """Describe a file or a folder: its kind, the TOML of its source, and three dialogues, shortened.

    `language`: of the dialogues; None tells English from Chinese by the characters.

    Raises ConfigError where there is no such file, and DataError where it cannot be read.
    """
    file = _one_file(path)
    if not file.stat().st_size:
        yield f"{file}: the file is empty"
        return
    kind = find_kind(file)
    if kind is None:
        yield f"{file}: no format of this package reads it as it is"
        yield from advice(file)
        return
    encoding = records.encoding_of(file)
    written = "" if encoding == UTF8 else f", in {NAMES[encoding]}"
    yield f"{file}: {kind.title}{written}"
    source = Source(
        name=re.sub(r"[^\w.-]+", "-", file.stem).strip("-._")[:40] or "chats",
        path=str(path.absolute()),
        language=language or "en",
        licence=_ANY_LICENCE,
        companion=companion,
        **kind.settings,
    )
    source, notes, items = readable(source)
    refusals = Refusals()
    refusals.add(items)
    dialogues = [item.content for item in items if isinstance(item.content, RawDialogue)]
    if language is None and dialogues:
        source = replace(source, language=language_of(dialogues))
        foreign = other_language(dialogues)
        note = (
            f"the text is in {foreign}, and en and zh alone are read" if foreign else _BY_CHARACTERS
        )
        notes = {**notes, "language": note}
    more = " in the first" if len(items) == _MOST_ITEMS else ""
    yield f"{counted(len(dialogues), 'dialogue')}{more} of {counted(len(items), 'item')}"
    yield from filter(None, [refusals.left_out_line(), *refusals.joined_lines(), *refusals.lines()])
    if source.format == "turns":
        yield from _notes_on_columns(file, source)
    yield ""
    yield from _toml(source, notes)
    for number, dialogue in enumerate(dialogues[:_SHOWN], 1):
        yield ""
        yield f"dialogue {number}, {counted(len(dialogue.messages), 'message')}:"
        yield from _shown(dialogue, source.language)


def language_of(dialogues: Sequence[RawDialogue]) -> Language:
    """Chinese where a third of the letters is Chinese and hardly any Japanese; English else."""
    text = _text_of(dialogues)
    chinese = len(_HAN.findall(text))
    japanese = len(_KANA.findall(text))
    letters = sum(map(str.isalpha, text))
    return "zh" if chinese * 3 >= letters > 0 and japanese * 20 < chinese else "en"


def other_language(dialogues: Sequence[RawDialogue]) -> str:
    """The name of the language of most of a text that is neither English nor Chinese; empty where that is unsure, or
    the package that tells languages is not installed."""
    try:
        import pycld2
    except ImportError:
        return ""
    printed = "".join(filter(str.isprintable, _text_of(dialogues)))
    is_reliable, _, languages = pycld2.detect(printed)
    name, code, *_ = languages[0]
    is_other = is_reliable and code[:2] not in ("en", "zh", "un")
    return str(name).capitalize() if is_other else ""


def _text_of(dialogues: Sequence[RawDialogue]) -> str:
    return "\n".join(content for dialogue in dialogues for _, content in dialogue.messages)


def _notes_on_columns(file: Path, source: Source) -> Iterator[str]:
    """Columns that may say that rows are no messages, and the setting that leaves these out."""
    values = _first_records(
        file, records.read_head(file, _HEAD) if file.suffix != records.PARQUET else "", _MOST_ITEMS
    )
    # Rows that are left out already need no setting.
    rows = [
        value
        for value in values
        if isinstance(value, Mapping) and turns.is_message(value, source.columns)
    ]
    for column, counts, value in odd_columns(rows, source.columns):
        shown = listed(
            [f"{shorten(text, 30)} ({count:,})" for text, count in counts.most_common()], 4
        )
        setting = (
            f"leave_out = "
            f"{{ {json.dumps(column, ensure_ascii=False)} = [{json.dumps(value, ensure_ascii=False)}] }}"
        )
        blank = len(rows) - counts.total()
        others = f", and nothing in {counted(blank, 'row')}" if blank else ""
        yield printable(
            f"the column {column} has {shown}{others}; if it says which rows are no messages: {setting}"
        )


def _one_file(path: Path) -> Path:
    """The file itself, or the first of a folder whose kind is known."""
    if not path.exists():
        raise ConfigError(f"{path}: no such file")
    if path.is_file():
        return path
    files = sorted(
        file for file in path.rglob("*") if file.is_file() and not file.name.startswith(".")
    )
    if not files:
        raise ConfigError(f"{path}: the folder holds no file")
    return next((file for file in files[:200] if find_kind(file) is not None), files[0])


def find_kind(file: Path) -> FileKind | None:
    """What a file is, by its content."""
    try:
        if file.suffix.lower() == ARCHIVE:
            return _kind_of_archive(file)
        head = "" if file.suffix == records.PARQUET else records.read_head(file, _HEAD)
    except DataError:
        return None
    for name, program in PROGRAMS.items():
        if program.looks_like is not None and program.looks_like(head):
            return FileKind(f"an export of {EXPORT_PROGRAMS[name].title}", {"format": name})
    if _MARKDOWN_RULE.search(head):
        # A table of Markdown, of which the bars are no marks between columns alone.
        return _kind_of_log(file, head)
    return _kind_of_records(file, head) or _kind_of_log(file, head)


def _kind_of_archive(file: Path) -> FileKind | None:
    """What an archive holds, by the text in it that a program knows by name and by content."""
    try:
        with zipfile.ZipFile(file) as archive:
            for member in archive.namelist()[:_MOST_ITEMS]:
                for name, program in PROGRAMS.items():
                    is_named = matches(Path(member).name, program.patterns)
                    if not is_named or program.looks_like is None:
                        continue
                    with archive.open(member) as held:
                        head = held.read(_HEAD).decode(UTF8, "ignore").removeprefix("\ufeff")
                    if program.looks_like(head):
                        return FileKind(
                            f"an archive of {EXPORT_PROGRAMS[name].title}", {"format": name}
                        )
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        NotImplementedError,
    ) as error:  # broken, cut off, encrypted
        raise DataError(f"{file}: the archive cannot be read: {error}") from error
    return None


def _kind_of_records(file: Path, head: str) -> FileKind | None:
    """The format of a table or a file of JSON, by its first records."""
    values = _first_records(file, head)
    if not values:
        return None
    is_json = _is_json(head)
    record = values[0]
    if isinstance(record, RefusedItem) and is_json:
        return _kind_of_object(file)
    if isinstance(record, list):
        record = {"messages": record}
    if not isinstance(record, Mapping):
        return None
    kind = _kind_of_record(record)
    if kind is not None and kind.title == _ROWS:
        return _with_time(kind, values)
    return kind or _kind_of_rows(values) or (_kind_of_object(file) if is_json else None)


def _is_json(head: str) -> bool:
    return head.lstrip()[:1] in ("{", "[")


def _first_records(file: Path, head: str, most: int = _MOST_ROWS) -> list[Any]:
    """The first records of a table or a file of JSON; none of another file."""
    is_table = file.suffix == records.PARQUET or bool(re.match(r"[^\n]*[,;\t|]", head))
    if not _is_json(head) and not is_table:
        return []
    values = []
    try:
        size = file.stat().st_size
        rows = records.file_records(file, lambda n: None, (0, size), table=not _is_json(head))
        for _, _, value in islice(rows, most):
            values.append(value)
    except DataError:
        # What stands before the break is enough to know the file by.
        pass
    return values


def _kind_of_record(record: Mapping[str, Any]) -> FileKind | None:
    for name, title in (
        ("messages", "conversations of messages"),
        ("question_answers", "questions and answers"),
    ):
        try:
            formats.READERS[name](record)
        except RefusedItem as refused:
            # Its form is right, and a role or a key of its messages is to be named.
            if name == "messages" and refused.reason in ("role", "tool", "empty", "not_text"):
                return FileKind(title, {"format": name})
        else:
            return FileKind(title, {"format": name})
    if turns.looks_like(record):
        return FileKind(_ROWS, {"format": "turns"})
    return None


def _with_time(kind: FileKind, values: list[Any]) -> FileKind:
    """Rows of one message with the column of the time, which has a name of its own."""
    rows = [value for value in values if isinstance(value, Mapping)]
    time = guess_time(rows)
    if time is None:
        return kind
    return FileKind(
        f"{_ROWS}; the column of the time is guessed", {**kind.settings, "columns": {"time": time}}
    )


def _kind_of_rows(values: list[Any]) -> FileKind | None:
    """Rows of one message whose columns have other names, by what is in them."""
    rows = [value for value in values if isinstance(value, Mapping)]
    if len(rows) < _LEAST_ROWS * len(values) or any(is_moment(key) for key in rows[0]):
        return None
    columns = guess_columns(rows)
    if not columns:
        return None
    note = "; its columns are guessed by what is in them"
    return FileKind(f"{_ROWS}{note}", {"format": "turns", "columns": columns})


def _kind_of_object(file: Path) -> FileKind | None:
    """A memory bank, which is one object of users."""
    try:
        _, user = next(records.json_members(file, lambda n: None), ("", None))
    except DataError:
        return None
    is_bank = isinstance(user, Mapping) and isinstance(user.get("history"), Mapping)
    return FileKind("a memory bank", {"format": "memory_bank"}) if is_bank else None


def _kind_of_log(file: Path, head: str) -> FileKind | None:
    """A log of lines, by the form that reads most of them."""
    form = find_form(head)
    if form is None:
        return None
    lines = re.split(r"\r\n|\n|\r", records.read_head(file, _LONG_HEAD))
    return FileKind(
        "a log of lines", {"format": "chat_log", "pattern": short_pattern(form.parts, lines)}
    )


def advice(file: Path) -> Iterator[str]:
    """What can be done with a file that no format reads."""
    head = "" if file.suffix.lower() == ARCHIVE else records.read_head(file, _HEAD)
    if head.lstrip()[:1] == "<":
        yield "it is a page: export the chat as text (WhatsApp) or as machine-readable JSON (Telegram Desktop)"
        return
    if head.lstrip()[:1] in ("{", "["):
        names = list(dict.fromkeys(re.findall(r'"([^"\n]{1,40})"\s*:', head)))
        yield f"it is JSON with the keys {listed([quoted(name) for name in names], 12)}; `columns` names other keys"
        return
    values = _first_records(file, head)
    if len(values) > 1 and isinstance(values[0], Mapping) and len(values[0]) > 1:
        rows = [value for value in values if isinstance(value, Mapping)]
        yield _ADVICE_ON_HEADER if _lacks_header(rows) else _advice_on_table(values[0])
        return
    yield (
        'a log of lines is read by format = "chat_log" and a pattern with the groups speaker and text, such as '
        "pattern = '(?P<speaker>[^:]+): (?P<text>.*)'; where no line says who speaks, there is no dialogue to read"
    )


_ADVICE_ON_HEADER = (
    "it is a table without a line of the names of its columns: write one above the others, with a name for each column "
    "in their order, such as time,speaker,text, with the mark between them that the table has"
)


def _lacks_header(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the first line of a table is a row as the others are: with a time, or a value that its column repeats."""
    names = [str(name) for name in rows[0]]
    if any(is_moment(name) for name in names):
        return True
    return any(sum(row.get(name) == name for row in rows) >= _LEAST_REPEATED for name in names)


def _advice_on_table(row: Mapping[str, Any]) -> str:
    """Which column is not found, and how to name it."""
    known = find_columns(list(row), {})
    missing = [name for name in REQUIRED if name not in known]
    names = listed([quoted(str(name)) for name in row], 12)
    wanted = ", ".join(f"{name} = NAME" for name in missing)
    what = {"speaker": "who wrote a message", "text": "its text"}
    lacking = " and ".join(what[name] for name in missing)
    return (
        f'it is a table with the columns {names}, and none is known to say {lacking}; name it: format = "turns", '
        f"columns = {{ {wanted} }}; where no column says it, the table has no dialogue"
    )


def readable(source: Source) -> tuple[Source, dict[str, str], list[Item]]:
    """The source with what it lacks, notes on what was guessed for that, and its first items."""
    notes: dict[str, str] = {}
    while True:
        try:
            items = _items(source)
        except UnknownCompanionError as error:
            others = [json.dumps(name, ensure_ascii=False) for name in error.speakers[:-1]]
            notes["companion"] = f"a guess; say who it is: or {listed(others)}"
            source = replace(source, companion=error.speakers[-1])
            continue
        reasons = {item.content.reason for item in items if isinstance(item.content, RefusedItem)}
        if reasons != {"dates"} or source.date_order:
            return source, notes, items
        notes["date_order"] = 'a guess, as 03/04 may be in March or April: or "mdy"'
        source = replace(source, date_order="dmy")


def _items(source: Source) -> list[Item]:
    plan = plan_source(source, Path())
    return list(islice(plan.items(lambda size: None), _MOST_ITEMS))


def _toml(source: Source, notes: Mapping[str, str]) -> Iterator[str]:
    """The table of the source, to be pasted into a specification."""
    yield "[[gather.sources]]"
    names = ("name", "path", "format", "language", "licence", "companion", "date_order")
    for name in names:
        value = getattr(source, name)
        note = notes.get(name, "")
        if name == "licence":
            # Nobody knows it from the file, and a run refuses a source without one.
            yield 'licence = ""  # of the data: yours to say, such as "CC-BY-4.0"'
        elif value:
            yield f"{name} = {json.dumps(value, ensure_ascii=False)}" + (
                f"  # {note}" if note else ""
            )
    if source.columns:
        pairs = ", ".join(
            f"{name} = {json.dumps(key, ensure_ascii=False)}"
            for name, key in source.columns.items()
        )
        yield f"columns = {{ {pairs} }}"
    if source.pattern:
        yield from _pattern(source.pattern)


def _pattern(pattern: str) -> Iterator[str]:
    """The setting of a pattern, as it is written: a literal string, of several lines where it has these."""
    if "'''" in pattern or pattern.endswith("'"):
        yield f"pattern = {json.dumps(pattern, ensure_ascii=False)}"
    elif "\n" in pattern:
        yield "pattern = '''"
        yield from pattern.split("\n")
        yield "'''"
    else:
        quote = "'''" if "'" in pattern else "'"
        yield f"pattern = {quote}{pattern}{quote}"


def _shown(dialogue: RawDialogue, language: Language) -> Iterator[str]:
    """The first turns of a dialogue, each on a line."""
    try:
        messages = [(turn.role, turn.content) for turn in clean(dialogue, language).messages]
    except RefusedItem as refused:
        yield f"  (rejected by a run: {refused.reason})"
        messages = list(dialogue.messages)
    for role, text in messages[:_TURNS]:
        yield printable(f"  {role}: {shorten(' '.join(text.split()), _LONGEST)}")
    if len(messages) > _TURNS:
        yield f"  ... and {len(messages) - _TURNS} more"
