"""The programs whose exports are read: what a release says of each. How they are read: `gather/exports/programs.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportProgram:
    """A program, or a kind of file, by the name that a source gives as its `format`.

    Attributes:
        title: how it is named in messages and on the card of a release.
        of_people: the chats are between people, as far as the program knows; the card of a release says so.
    """

    title: str
    of_people: bool


EXPORT_PROGRAMS: Mapping[str, ExportProgram] = {
    "whatsapp": ExportProgram(title="WhatsApp", of_people=True),
    "telegram": ExportProgram(title="Telegram Desktop", of_people=True),
    "sillytavern": ExportProgram(title="SillyTavern", of_people=False),
    "chatgpt": ExportProgram(title="ChatGPT", of_people=False),
    "claude": ExportProgram(title="Claude", of_people=False),
    "open_webui": ExportProgram(title="Open WebUI", of_people=False),
    "librechat": ExportProgram(title="LibreChat", of_people=False),
    "character_ai": ExportProgram(title="Character.AI", of_people=False),
    "turns": ExportProgram(title="rows of one message", of_people=True),
    "chat_log": ExportProgram(title="a log of lines", of_people=True),
}
