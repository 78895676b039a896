"""What single programs write into their exports: accounts of the program, chats of many people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from test_chat_exports import turns, written

from support.command_line import h2htalk


@pytest.mark.parametrize("kind", ["private_group", "private_supergroup", "public_channel"])
def test_telegram_of_many_people_is_refused_as_a_group(tmp_path: Path, kind: str) -> None:
    """Of a supergroup, `look` said that no format reads it."""
    messages = [written(1, "Ann", "a"), written(2, "Bea", "b")]
    chat = {"name": "G", "type": kind, "id": 3, "messages": messages}
    (tmp_path / "result.json").write_text(json.dumps(chat, indent=1), encoding="utf-8")
    output = h2htalk("curate", "look", tmp_path / "result.json")
    assert "rejected (group)" in output.stdout


def test_the_account_of_a_program_is_no_third_person_of_a_log(tmp_path: Path) -> None:
    """A chat of QQ was refused as one of a group, for 系统消息(10000)."""
    heads = ("小雨", "阿暖", "系统消息(10000)", "小雨")
    texts = ("在吗", "在的", "对方撤回了一条消息", "想你")
    entries = [
        f"2024-03-12 21:1{minute}:03 {head}\n{text}\n"
        for minute, (head, text) in enumerate(zip(heads, texts, strict=True))
    ]
    (tmp_path / "a.txt").write_text("\n".join(entries), encoding="utf-8")
    pattern = r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?P<speaker>\S.*?)(?P<text>)$"
    messages = turns(tmp_path / "a.txt", "chat_log", companion="阿暖", pattern=pattern)
    assert messages == [("user", "在吗"), ("companion", "在的"), ("user", "想你")]
