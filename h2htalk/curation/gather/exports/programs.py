"""The table of programs: how the export of each is found, read and named in a source's `format`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from h2htalk.curation.gather.exports.assistants import (
    character_ai,
    chatgpt,
    claude,
    librechat,
    open_webui,
    sillytavern,
)
from h2htalk.curation.gather.exports.dialogues import ChatRules, dialogues_of
from h2htalk.curation.gather.exports.export_files import ARCHIVE, ExportFile, matches
from h2htalk.curation.gather.exports.logs import chat_log
from h2htalk.curation.gather.exports.messages import Chat
from h2htalk.curation.gather.exports.messengers import telegram, whatsapp
from h2htalk.curation.gather.exports.tables import columns, turns
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.gather.records import OnRead, Record, file_records
from h2htalk.curation.stages import Source

Chats = Iterator[Chat | RefusedItem]


@dataclass(frozen=True, slots=True)
class Program:
    """How a kind of export is read; `EXPORT_PROGRAMS` has its title.

    Attributes:
        read: its chats.
        patterns: of the names of its files, in a folder and in an archive.
        is_one_chat: a file holds one chat, or chats of one account with the same people; all lines are theirs.
        names_companion: the companion has a name in its files.
        columns: our names of the columns that a source may give.
        looks_like: whether the head of a text file is one; None where no text says it.
    """

    read: Callable[[ExportFile, Source], Chats]
    patterns: tuple[str, ...]
    is_one_chat: bool = False
    names_companion: bool = True
    columns: tuple[str, ...] = ()
    looks_like: Callable[[str], bool] | None = None

    def is_file(self, name: str) -> bool:
        """Whether a file of a folder is one of its exports, by its name."""
        return matches(name, (*self.patterns, f"*{ARCHIVE}"))


def _whatsapp(file: ExportFile, source: Source) -> Chats:
    return whatsapp.read(file, source.date_order)


def _telegram(file: ExportFile, source: Source) -> Chats:
    return telegram.read(file)


def _sillytavern(file: ExportFile, source: Source) -> Chats:
    return sillytavern.read(file)


def _chatgpt(file: ExportFile, source: Source) -> Chats:
    return chatgpt.read(file)


def _claude(file: ExportFile, source: Source) -> Chats:
    return claude.read(file)


def _open_webui(file: ExportFile, source: Source) -> Chats:
    return open_webui.read(file)


def _librechat(file: ExportFile, source: Source) -> Chats:
    return librechat.read(file)


def _character_ai(file: ExportFile, source: Source) -> Chats:
    return character_ai.read(file)


def _turns(file: ExportFile, source: Source) -> Chats:
    rows = file_records(
        file.path, file.on_read, (0, file.path.stat().st_size), table=True, encoding=file.encoding
    )
    return turns.read(rows, source.columns, source.date_order, source.leave_out)


def _chat_log(file: ExportFile, source: Source) -> Chats:
    pattern = chat_log.compile_pattern(source.pattern, f"source {source.name!r}")
    return chat_log.read(file, pattern, source.date_order, source.companion, source.leave_out)


PROGRAMS: Mapping[str, Program] = {
    "whatsapp": Program(
        read=_whatsapp,
        patterns=whatsapp.PATTERNS,
        is_one_chat=True,
        looks_like=whatsapp.looks_like,
    ),
    "telegram": Program(
        read=_telegram,
        patterns=telegram.PATTERNS,
        is_one_chat=True,
        looks_like=telegram.looks_like,
    ),
    "sillytavern": Program(
        read=_sillytavern,
        patterns=sillytavern.PATTERNS,
        is_one_chat=True,
        looks_like=sillytavern.looks_like,
    ),
    "chatgpt": Program(
        read=_chatgpt,
        patterns=chatgpt.PATTERNS,
        names_companion=False,
        looks_like=chatgpt.looks_like,
    ),
    "claude": Program(
        read=_claude,
        patterns=claude.PATTERNS,
        names_companion=False,
        looks_like=claude.looks_like,
    ),
    "open_webui": Program(
        read=_open_webui,
        patterns=open_webui.PATTERNS,
        names_companion=False,
        looks_like=open_webui.looks_like,
    ),
    "librechat": Program(
        read=_librechat,
        patterns=librechat.PATTERNS,
        names_companion=False,
        looks_like=librechat.looks_like,
    ),
    "character_ai": Program(
        read=_character_ai,
        patterns=character_ai.PATTERNS,
        is_one_chat=True,
        looks_like=character_ai.looks_like,
    ),
    "turns": Program(
        read=_turns,
        patterns=("*.csv", "*.tsv", "*.jsonl", "*.json", "*.parquet", "*.gz", "*.zst", "*.txt"),
        columns=columns.NAMED,
    ),
    "chat_log": Program(
        read=_chat_log,
        patterns=chat_log.PATTERNS,
        is_one_chat=True,
    ),
}


def export_records(path: Path, name: str, source: Source, on_read: OnRead) -> Iterator[Record]:
    """The dialogues of an export, numbered from 1, or why a chat is none. Raises ConfigError, DataError.

    `name`: the file's path in the folder of the source, or empty.
    """
    program = PROGRAMS[source.format]
    file = ExportFile(
        path=path, name=name, patterns=program.patterns, encoding=source.encoding, on_read=on_read
    )
    rules = ChatRules(
        source=source.name,
        companion=source.companion if program.names_companion else "",
        companions=source.companions,
        roles=source.roles,
        silence=source.silence,
    )
    for row, (line, content) in enumerate(_contents(program, file, source, rules), 1):
        yield row, line, content


def _contents(
    program: Program, file: ExportFile, source: Source, rules: ChatRules
) -> Iterator[tuple[int | None, RawDialogue | RefusedItem]]:
    """The line and the content of each item of a file."""
    try:
        for chat in program.read(file, source):
            if isinstance(chat, RefusedItem):
                yield None, chat
                continue
            for content in dialogues_of(chat, rules):
                line = content.place.get("line") if isinstance(content, RawDialogue) else None
                yield (line if isinstance(line, int) else chat.line), content
    except RefusedItem as refused:  # of the file as a whole
        yield None, refused
