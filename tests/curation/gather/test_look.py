"""`curate look`: what a raw file is, the source that reads it, and three of its dialogues."""

from __future__ import annotations

import json
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from support.command_line import h2htalk

EXAMPLES = Path(__file__).parents[3] / "examples"
CHAT = "[13/03/24, 21:15:03] Ann: hi\n[13/03/24, 21:16:03] Luna: ho, how are you?\n"
TELEGRAM = {
    "name": "Luna",
    "type": "personal_chat",
    "id": 4,
    "messages": [
        {
            "id": n,
            "type": "message",
            "date": f"2024-03-12T21:1{n}:00",
            "from": name,
            "from_id": f"user{n}",
            "text": "hi",
        }
        for n, name in enumerate(("Ann", "Luna"))
    ],
}
TAVERN = [
    {"user_name": "Ann", "character_name": "Aria"},
    {"name": "Ann", "is_user": True, "mes": "hi"},
    {"name": "Aria", "is_user": False, "mes": "ho"},
]
NODES = {
    "u": {
        "id": "u",
        "parent": None,
        "message": {"author": {"role": "user"}, "content": {"parts": ["hi"]}},
    },
    "a": {
        "id": "a",
        "parent": "u",
        "message": {"author": {"role": "assistant"}, "content": {"parts": ["ho"]}},
    },
}
MESSAGES = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]}
BANK = {"Ann": {"history": {"2024-03-12": [{"query": "hi", "response": "ho"}]}}}
FILES = {
    "whatsapp": ("_chat.txt", CHAT),
    "telegram": ("result.json", json.dumps(TELEGRAM, indent=1)),
    "sillytavern": ("a.jsonl", "\n".join(map(json.dumps, TAVERN))),
    "chatgpt": (
        "conversations.json",
        json.dumps([{"id": "c", "current_node": "a", "mapping": NODES}]),
    ),
    "turns": ("a.csv", "conversation_id;sender;message\n1;Ann;hi\n1;Joy;ho\n"),
    "chat_log": ("a.log", "Ann: hi\nJoy: ho\nAnn: so\nJoy: no\n"),
    "messages": ("b.jsonl", json.dumps(MESSAGES)),
    "memory_bank": ("bank.json", json.dumps(BANK)),
    "question_answers": ("qa.csv", "question,answer\nWhy?,So.\n"),
}


def looked(path: Path, *words: str) -> tuple[str, dict[str, Any]]:
    """What the command says, and the source in it."""
    said = h2htalk("curate", "look", str(path), *words).stdout
    table = said[said.index("[[gather.sources]]") :].split("\n\n")[0]
    (source,) = tomllib.loads(table)["gather"]["sources"]
    return said, source


@pytest.mark.parametrize("form", FILES)
def test_each_kind_is_known_and_its_source_reads_it(tmp_path: Path, form: str) -> None:
    name, text = FILES[form]
    (tmp_path / name).write_text(text, encoding="utf-8")
    said, source = looked(tmp_path / name)
    assert source["format"] == form
    assert "1 dialogue of 1 item" in said
    assert "\n  user: " in said
    assert "\n  companion: " in said
    # The table is one of a curation that runs, once its owner has said what licence the data have.
    assert source["licence"] == ""
    source["licence"] = "CC0-1.0"
    lines = [
        'workspace = "work"',
        "[[gather.sources]]",
        *(f"{key} = {json.dumps(source[key])}" for key in source),
    ]
    (tmp_path / "curate.toml").write_text("\n".join(lines), encoding="utf-8")
    ran = h2htalk("curate", "run", str(tmp_path / "curate.toml"), "--stage", "gather")
    assert ran.returncode == 0, ran.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ""] == ["work"]


def test_an_export_of_telegram_that_was_written_again_is_known(tmp_path: Path) -> None:
    """Without the space after each colon it was JSON that no format reads."""
    text = json.dumps(TELEGRAM, separators=(",", ":"))
    (tmp_path / "result.json").write_text(text, encoding="utf-8")
    _, source = looked(tmp_path / "result.json")
    assert source["format"] == "telegram"


def test_what_is_guessed_is_said(tmp_path: Path) -> None:
    said, source = looked(EXAMPLES / "chat_export.txt")
    assert source["companion"] == "Luna"
    assert 'companion = "Luna"  # a guess; say who it is: or "Noor"' in said
    assert (
        "messages left out: media 1, lines of the program 1; 1 edited message read as last edited"
        in said
    )
    said, source = looked(EXAMPLES / "chat_export.txt", "--companion", "Noor")
    assert "guess" not in said
    (tmp_path / "a.txt").write_text(
        "03/04/24, 21:15 - Ann: hi\n03/04/24, 21:16 - Luna: ho\n", encoding="utf-8"
    )
    said, source = looked(tmp_path / "a.txt")
    assert (source["date_order"], source["companion"]) == ("dmy", "Luna")
    assert 'a guess, as 03/04 may be in March or April: or "mdy"' in said


def test_the_language_is_told_by_the_characters(tmp_path: Path) -> None:
    rows = ["03/04/24, 21:15 - Ann: 今天面试过了，妈妈很高兴", "03/04/24, 21:16 - Luna: 太好了！"]
    (tmp_path / "a.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    said, source = looked(tmp_path / "a.txt")
    assert source["language"] == "zh"
    assert "  # by its characters; en and zh are read" in said
    said, source = looked(tmp_path / "a.txt", "--language", "en")
    assert (source["language"], "by its characters" in said) == ("en", False)


GERMAN = "Ich habe den ganzen Tag an meine Schwester gedacht und kann nicht schlafen."
KOREAN = "오늘 하루 종일 언니 생각을 했고 잠을 잘 수가 없어요."


@pytest.mark.parametrize(("language", "text"), [("German", GERMAN), ("Korean", KOREAN)])
def test_another_language_is_named(tmp_path: Path, language: str, text: str) -> None:
    """It was called English."""
    path = tmp_path / "a.txt"
    lines = f"03/04/24, 21:15 - Ann: {text}\n03/04/24, 21:16 - Luna: {text}\n"
    path.write_text(lines, encoding="utf-8")
    output, _ = looked(path)
    note = f"# the text is in {language}, and en and zh alone are read"
    assert note in output


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    """It was an export of WhatsApp."""
    path = tmp_path / "a.txt"
    path.touch()
    result = h2htalk("curate", "look", str(path))
    assert result.stdout == f"{path}: the file is empty\n"


def test_folders_archives_and_other_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "WhatsApp Chat - Luna.zip", "w") as archive:
        archive.writestr("_chat.txt", CHAT)
        archive.writestr("PHOTO.jpg", b"\xff\xd8")
    (tmp_path / "IMG.jpg").write_bytes(b"\xff\xd8\x00")
    said, source = looked(tmp_path)
    assert (source["format"], source["path"]) == ("whatsapp", str(tmp_path))
    assert "an archive of WhatsApp" in said
    for name, text, advice in (
        (
            "messages.html",
            "<!DOCTYPE html><html></html>",
            "machine-readable JSON (Telegram Desktop)",
        ),
        ("a.json", '{"foo": {"bar": 1}}', "it is JSON with the keys 'foo', 'bar'"),
        (
            "b.csv",
            "2024-03-12 21:15,Ann,hi\n2024-03-12 21:16,Joy,ho\n2024-03-12 21:17,Ann,so\n",
            "a table without a line of",
        ),
        (
            "c.csv",
            "Ann;hi\nJoy;ho\nAnn;so\nJoy;no\n",
            "a table without a line of the names of its columns",
        ),
        ("a.txt", "Dear diary,\nI am well.\n", 'format = "chat_log" and a pattern'),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
        said = h2htalk("curate", "look", str(tmp_path / name)).stdout
        assert "no format of this package reads it as it is" in said
        assert advice in said
    assert "no such file" in h2htalk("curate", "look", str(tmp_path / "gone")).stderr
