"""Exports of chat programs: what each becomes, whom it needs to know, and what is refused in one line."""

from __future__ import annotations

import json
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from test_formats import read_file

from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.stages import GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError, DataError
from support.command_line import h2htalk
from support.curations import run_one

Turns = list[tuple[str, str]]


def dialogues(path: Path, form: str, **more: Any) -> list[RawDialogue]:
    contents = [item.content for item in read_file(path, form, **more)]
    assert [content for content in contents if isinstance(content, RefusedItem)] == []
    return [content for content in contents if isinstance(content, RawDialogue)]


def turns(path: Path, form: str, **more: Any) -> Turns:
    (dialogue,) = dialogues(path, form, **more)
    return list(dialogue.messages)


def refusal(path: Path, form: str, **more: Any) -> RefusedItem:
    (item,) = read_file(path, form, **more)
    assert isinstance(item.content, RefusedItem)
    return item.content


# --- WhatsApp -----------------------------------------------------------------------------------------------------

IPHONE = """\
[12/03/24, 21:15:03] Luna: \u200eMessages and calls are end-to-end encrypted. No one outside of this chat can read them.
[12/03/24, 21:15:03] Ann Lee: hey
are you there?

[12/03/24, 21:16:11] Luna: Always. What's up: work again?
\u200e[12/03/24, 21:17:00] Ann Lee: \u200eimage omitted
\u200e[12/03/24, 21:17:30] Ann Lee: my desk \u200e<attached: 00000012-PHOTO-2024-03-12-21-17-30.jpg>
[12/03/24, 21:18:00] Luna: \u200eThis message was deleted.
[12/03/24, 21:18:05] Luna: Looks calm. \u200e<This message was edited>
[12/03/24, 21:19:05] Ann Lee: \u200eMissed voice call
[14/03/24, 09:00:05] Ann Lee: morning
[14/03/24, 09:01:05] Luna: Good morning!
"""
ANDROID = """\
9/25/26, 2:22\u202fPM - Messages and calls are end-to-end encrypted. Only people in this chat can read them.
9/25/26, 2:22\u202fPM - Sam: hello
9/25/26, 2:23\u202fPM - \u202a+1 (415) 555-2671\u202c: IMG-20260925-WA0001.jpg (file attached)
a caption below
9/25/26, 2:24\u202fPM - Sam: <Media omitted>
9/25/26, 2:25\u202fPM - Sam: You deleted this message
9/25/26, 2:25\u202fPM - Sam: null
9/25/26, 2:26\u202fPM - \u202a+1 (415) 555-2671\u202c: ok then <This message was edited>
9/25/26, 2:27\u202fPM - Sam: see https://a.example/b at 12:30 - ok?
"""
CHINESE = """\
2024/3/12 下午9:15 - 消息和通话已进行端到端加密。只有此聊天中的成员可以查看、收听或分享。
2024/3/12 下午9:15 - 小雨: 在吗
2024/3/12 下午9:16 - 阿暖: 在的，怎么了？
2024/3/12 下午9:16 - 小雨: <省略影音内容>
2024/3/12 下午9:17 - 小雨: 你删除了这条消息
2024/3/12 下午9:18 - 阿暖: 我陪你。<这条消息已经过编辑>
"""


def test_whatsapp_of_an_iphone(tmp_path: Path) -> None:
    (tmp_path / "_chat.txt").write_text(IPHONE, encoding="utf-8")
    first, second = dialogues(tmp_path / "_chat.txt", "whatsapp", companion="luna")
    assert first.messages == (
        ("user", "hey\nare you there?"),
        ("companion", "Always. What's up: work again?"),
        ("user", "my desk"),
        ("companion", "Looks calm."),
    )
    assert second.messages == (("user", "morning"), ("companion", "Good morning!"))
    assert first.left_out == {"deleted": 1, "edited": 1, "media": 1, "system": 2}
    # Both may be people: anonymize replaces their names, but for those that the owner keeps.
    assert first.metadata == {"name": ["Ann Lee", "Luna"]}
    assert first.person == second.person == "Ann Lee"
    (kept, _) = dialogues(
        tmp_path / "_chat.txt", "whatsapp", companion="Luna", companions=("Luna",)
    )
    assert kept.metadata == {"name": "Ann Lee"}
    assert len(dialogues(tmp_path / "_chat.txt", "whatsapp", companion="Luna", silence=48.0)) == 1


def test_whatsapp_of_android_with_narrow_spaces_and_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(ANDROID, encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.txt", "whatsapp", companion="+1 (415) 555-2671")
    assert dialogue.messages == (
        ("user", "hello"),
        ("companion", "a caption below"),
        ("companion", "ok then"),
        ("user", "see https://a.example/b at 12:30 - ok?"),
    )
    assert dialogue.left_out == {"deleted": 1, "edited": 1, "media": 2, "system": 1}


def test_whatsapp_in_chinese(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(CHINESE, encoding="utf-8")
    assert turns(tmp_path / "a.txt", "whatsapp", companion="阿暖") == [
        ("user", "在吗"),
        ("companion", "在的，怎么了？"),
        ("companion", "我陪你。"),
    ]


FORMS = (
    "[2024/3/12 21:15:03] {}: {}",
    "[2024/3/12 下午9:15:03] {}: {}",
    "12.03.24, 21:15 - {}: {}",
    "13/03/2014 21:15: {}: {}",
    "13-03-24 21.15 - {}: {}",
    "2024-03-12, 9:15 p.m. - {}: {}",
    "13/3/24, 9:15 p. m. - {}: {}",
    "3/13/24, 9:15 PM - {}: {}",
    "\u200e[13/03/2024, 9:15:03\u202fPM] {}: {}",
    "13.3.2024 klo 21.15 - {}: {}",
    "[21:15, 13/03/2024] {}: {}",
    "[9:15 PM, 3/13/2024] {}: {}",
    "[١٣\u200f/٠٣\u200f/٢٠٢٤، ٩:١٥:٠٣ م] {}: {}",
)


@pytest.mark.parametrize("form", FORMS)
def test_whatsapp_in_the_forms_of_many_phones(tmp_path: Path, form: str) -> None:
    lines = [
        form.format("~\u202fAnn", "hi"),
        form.format("Luna", "ho"),
        form.format("~\u202fAnn", "1:2 or 3"),
    ]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    expected = [("user", "hi"), ("companion", "ho"), ("user", "1:2 or 3")]
    assert turns(tmp_path / "a.txt", "whatsapp", companion="Luna") == expected


PLACEHOLDERS = (
    "Mensagem apagada",
    "Você apagou esta mensagem",
    "localização em tempo real compartilhada",
    "Bu mesaj silindi",
    "<Medya dahil edilmedi>",
    "Данное сообщение удалено",
    "Pesan ini telah dihapus",
    "ubicación en tiempo real compartida",
    "STK-20200303-WA0005.webp (fail dilampirkan)",
    "<Medien ausgeschlossen>\n4Bit Addierer.mod",
)


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_what_android_writes_in_place_of_messages_is_no_text(
    tmp_path: Path, placeholder: str
) -> None:
    text = f"03/13/2020 19:02 - Lia: oi\n03/13/2020 19:03 - Dani: {placeholder}\n03/13/2020 19:04 - Dani: oii\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.txt", "whatsapp", companion="Lia")
    assert list(dialogue.messages) == [("companion", "oi"), ("user", "oii")]
    assert sum(dialogue.left_out.values()) == 1


PASTED = {
    "another form": "[09/04/2025, 10:15] Hygienist: please come early",
    "the same form": "[09/03/2025, 10:15:00 am] Hygienist: please come early\n[09/03/2025, 10:16:00 am] Ann: why?",
    "an earlier message": "[14/03/2025, 7:02:11 am] Ann: good morning",
}


@pytest.mark.parametrize("kind", PASTED)
def test_lines_that_somebody_pasted_belong_to_the_message(tmp_path: Path, kind: str) -> None:
    text = (
        "[14/03/2025, 7:02:11 am] Ann: good morning\n[14/03/2025, 7:03:11 am] Joy: good morning\n"
        f"[14/03/2025, 7:04:11 am] Ann: look at this:\n{PASTED[kind]}\nstrange?\n"
        "[14/03/2025, 7:05:11 am] Joy: yes\n"
    )
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    expected = [
        ("user", "good morning"),
        ("companion", "good morning"),
        ("user", f"look at this:\n{PASTED[kind]}\nstrange?"),
        ("companion", "yes"),
    ]
    assert turns(tmp_path / "a.txt", "whatsapp", companion="Joy") == expected


def test_a_third_person_whose_time_goes_on_makes_a_group(tmp_path: Path) -> None:
    text = (
        "[14/03/2025, 7:02:11 am] Ann: hi\n[14/03/2025, 7:03:11 am] Joy: ho\n"
        "[14/03/2025, 7:04:11 am] Bo: yo\n[14/03/2025, 7:05:11 am] Joy: yes\n"
    )
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert refusal(tmp_path / "a.txt", "whatsapp", companion="Joy").reason == "group"


def test_media_beside_words_and_pages_of_documents(tmp_path: Path) -> None:
    lines = [
        "Ann: plan.pdf • \u200e2 pages \u200edocument omitted",
        "Ann: look! \u200eimage omitted",
        "Luna: ho",
    ]
    (tmp_path / "a.txt").write_text(
        "\n".join(f"[13/03/24, 21:15:03] {line}" for line in lines), encoding="utf-8"
    )
    (dialogue,) = dialogues(tmp_path / "a.txt", "whatsapp", companion="Luna")
    assert (dialogue.messages, dialogue.left_out) == (
        (("user", "look!"), ("companion", "ho")),
        {"media": 1},
    )


def test_day_and_month_are_told_apart_by_the_whole_file_or_by_the_owner(tmp_path: Path) -> None:
    """03/04 is March or April; a file whose days go on tells which."""
    path = tmp_path / "a.txt"
    talk = "{0}, 21:15 - Ann: hi\n{0}, 21:16 - Luna: ho\n"

    def parts(*days: str, **more: Any) -> int:
        path.write_text("".join(talk.format(day) for day in days), encoding="utf-8")
        return len(dialogues(path, "whatsapp", companion="Luna", **more))

    assert parts("01/02/24", "13/02/24") == 2
    # One order would go back in time.
    assert parts("30/04/24", "01/05/24") == 2
    assert parts("11/04/24", "02/05/24") == 2
    assert parts("05/05/24") == 1
    path.write_text(talk.format("03/04/24") + talk.format("04/04/24"), encoding="utf-8")
    refused = refusal(path, "whatsapp", companion="Luna")
    assert refused.problem.endswith('say which comes first: date_order = "dmy" or "mdy"')
    assert parts("03/04/24", "04/04/24", date_order="dmy") == 2
    path.write_text(talk.format("13/04/24"), encoding="utf-8")
    assert refusal(path, "whatsapp", companion="Luna", date_order="mdy").problem.startswith(
        "dates that do not exist"
    )


def test_who_the_companion_is_is_said_and_groups_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(IPHONE, encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"say who the companion is: two speak, 'Ann Lee' \(3 messages\), 'Luna'"
    ):
        read_file(path, "whatsapp")
    refused = refusal(path, "whatsapp", companion="Lena")
    assert (refused.reason, refused.names) == ("companion", ("Ann Lee", "Luna"))
    path.write_text(ANDROID + "9/25/26, 2:28\u202fPM - Bo: hi\n", encoding="utf-8")
    assert refusal(path, "whatsapp", companion="Bo").reason == "group"
    # A group in which two have spoken so far.
    path.write_text(
        '9/25/26, 2:20\u202fPM - Sam created group "A: b"\n' + ANDROID, encoding="utf-8"
    )
    assert refusal(path, "whatsapp", companion="Sam").reason == "group"
    path.write_text("Dear diary,\nI am well.\n", encoding="utf-8")
    assert refusal(path, "whatsapp", companion="Sam").problem.startswith(
        "no line begins as in an export of WhatsApp"
    )
    with pytest.raises(
        ConfigError, match=r"format messages names no companion; say who the roles are"
    ):
        read_file(path, "messages", companion="Luna")


def test_an_archive_is_read_and_a_folder_without_its_media(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "WhatsApp Chat - Ann.zip", "w") as archive:
        archive.writestr("_chat.txt", IPHONE)
        archive.writestr("00000012-PHOTO.jpg", b"\xff\xd8")
    (tmp_path / "IMG.jpg").write_bytes(b"\xff\xd8")
    assert len(dialogues(tmp_path, "whatsapp", companion="Luna")) == 2
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("readme.md", "x")
    with pytest.raises(DataError, match=r"the archive must hold one \*\.txt, but has none"):
        read_file(tmp_path / "b.zip", "whatsapp", companion="Luna")


# --- Telegram -----------------------------------------------------------------------------------------------------


def written(number: int, name: str | None, text: Any, **more: Any) -> dict[str, Any]:
    record = {"id": number, "type": "message", "date": f"2024-03-12T21:1{number}:00", "text": text}
    return record | {"from": name, "from_id": f"user{len(name or 'deleted')}", **more}


MESSAGES = [
    {
        "id": 1,
        "type": "service",
        "date": "2024-03-12T21:10:00",
        "actor": "Ann",
        "action": "phone_call",
        "text": "",
    },
    written(2, "Ann", "hey"),
    written(3, "Luna", ["see ", {"type": "link", "text": "https://a.example"}, ", ok?"]),
    written(4, "Ann", "", photo="(File not included. Change data exporting settings to download.)"),
    written(5, "Ann", "my desk", photo="photos/p.jpg", edited="2024-03-12T21:20:00"),
    written(6, "Luna", "words of Bob", forwarded_from="Bob"),
    written(7, "Luna", "nice", edited="1970-01-01T01:00:00"),
    {"id": 8, "type": "unsupported"},
    written(9, "Ann", "", media_type="voice_message", file="v.ogg"),
]
CHAT = {"name": "Luna", "type": "personal_chat", "id": 42, "messages": MESSAGES}
TELEGRAM: Turns = [
    ("user", "hey"),
    ("companion", "see https://a.example, ok?"),
    ("user", "my desk"),
    ("companion", "nice"),
]


def _telegram_record(number: int, speaker: str, day: int) -> dict[str, object]:
    date = f"2024-03-{day:02}T21:10:{number:02}"
    record: dict[str, object] = {"id": number, "type": "message", "date": date}
    return record | {"from": speaker, "from_id": speaker, "text": f"{speaker} {day}"}


def test_ids_of_parts_of_telegram_stay_when_older_messages_are_deleted(tmp_path: Path) -> None:
    """They counted the parts of the file."""
    records: list[dict[str, object]] = []
    for day in range(1, 4):
        records.append(_telegram_record(10 * day, "Ann", day))
        records.append(_telegram_record(10 * day + 1, "Luna", day))
    path = tmp_path / "result.json"
    exports = {"first": records[:2], "all": records, "without the first day": records[2:]}
    ids: dict[str, list[str | None]] = {}
    for export, messages in exports.items():
        path.write_text(json.dumps({**CHAT, "messages": messages}, indent=1), encoding="utf-8")
        ids[export] = [
            dialogue.raw_id for dialogue in dialogues(path, "telegram", companion="Luna")
        ]
    assert ids["first"] == ["42/10"]
    assert ids["all"] == ["42/10", "42/20", "42/30"]
    assert ids["without the first day"] == ["42/20", "42/30"]


def test_telegram_of_one_chat_in_two_versions(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(CHAT, indent=1), encoding="utf-8")
    for companion in ("Luna", "user4"):
        (dialogue,) = dialogues(path, "telegram", companion=companion)
        assert list(dialogue.messages) == TELEGRAM
    assert dialogue.left_out == {"edited": 1, "forwarded": 1, "media": 3, "system": 1}
    assert (dialogue.raw_id, dialogue.metadata) == ("42/2", {"name": ["Ann", "Luna"]})
    # Before 2022: people have numbers. Control characters are written as C does.
    older = [
        {**record, "from_id": int(record["from_id"][4:])}
        for record in MESSAGES
        if "from_id" in record
    ]
    text = json.dumps({**CHAT, "messages": older}).replace("nice", "ni\\x0Bce")
    path.write_text(text, encoding="utf-8")
    assert turns(path, "telegram", companion="Luna") == [*TELEGRAM[:3], ("companion", "ni\x0bce")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ([{"type": "bot_command", "text": "/start"}], "command"),
        ("/start r1b2c3", "command"),
        ("/settings@aria_bot", "command"),
        ("/me thinks that it rains", "text"),
        ("1/2 of it", "text"),
    ],
)
def test_a_command_to_a_bot_is_no_message(tmp_path: Path, text: object, kind: str) -> None:
    messages = [
        {
            "id": n,
            "type": "message",
            "date": f"2024-03-12T21:1{n}:00",
            "from": name,
            "from_id": name,
            "text": words,
        }
        for n, (name, words) in enumerate((("Ann", text), ("Aria", "hi"), ("Ann", "ho")))
    ]
    chat = {"name": "Aria", "type": "bot_chat", "id": 4, "messages": messages}
    (tmp_path / "result.json").write_text(json.dumps(chat), encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "result.json", "telegram", companion="Aria")
    assert len(dialogue.messages) == (3 if kind == "text" else 2)
    assert dialogue.left_out == ({} if kind == "text" else {"command": 1})


def test_telegram_of_an_account_reads_the_chats_of_two(tmp_path: Path) -> None:
    group = {
        "name": "G",
        "type": "private_group",
        "id": 3,
        "messages": [written(1, "A", "a"), written(2, "BB", "b")],
    }
    saved = {"type": "saved_messages", "id": 1, "messages": [written(1, "Ann", "note")]}
    gone = {
        "name": None,
        "type": "personal_chat",
        "id": 9,
        "messages": [written(1, None, "a"), written(2, "Ann", "b")],
    }
    account = {
        "about": "",
        "personal_information": {},
        "chats": {"about": "", "list": [group, CHAT, saved, gone]},
    }
    (tmp_path / "result.json").write_text(json.dumps(account), encoding="utf-8")
    items = read_file(tmp_path / "result.json", "telegram", companion="Luna")
    assert [getattr(item.content, "reason", "read") for item in items] == [
        "group",
        "read",
        "one_speaker",
        "companion",
    ]
    (tmp_path / "result.json").write_text('{"contacts": {}}', encoding="utf-8")
    assert (
        "machine-readable JSON"
        in refusal(tmp_path / "result.json", "telegram", companion="Luna").problem
    )


# --- Programs that know who the companion is -----------------------------------------------------------------------

TAVERN: list[dict[str, Any]] = [
    {
        "user_name": "Ann",
        "character_name": "Aria",
        "create_date": "2024-3-1 @10h",
        "chat_metadata": {"integrity": "x"},
    },
    {
        "name": "Aria",
        "is_user": False,
        "is_name": True,
        "send_date": "March 1, 2024 10:00am",
        "mes": "Hi {{user}}.",
    },
    {"name": "Ann", "is_user": True, "mes": "hello", "send_date": 1709287200000},
    {"name": "System", "is_user": False, "is_system": True, "mes": "a note"},
    {
        "name": "Aria",
        "is_user": False,
        "mes": "B",
        "swipes": ["A", "B"],
        "swipe_id": 1,
        "extra": {"reasoning": "hm"},
    },
    {"name": "Ann", "is_user": True, "mes": "and?"},
    {
        "name": "Aria",
        "is_user": False,
        "mes": "",
        "swipes": [{"message": "X"}, {"message": "Y"}],
        "swipe_id": 0,
    },
]


@pytest.mark.parametrize("companion", ["", "aria"])
def test_sillytavern_reads_the_chosen_swipe(tmp_path: Path, companion: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, TAVERN)), encoding="utf-8")
    (dialogue,) = dialogues(path, "sillytavern", companion=companion)
    assert list(dialogue.messages) == [
        ("companion", "Hi Ann."),
        ("user", "hello"),
        ("companion", "B"),
        ("user", "and?"),
        ("companion", "X"),
    ]
    assert (dialogue.person, dialogue.left_out, dialogue.metadata) == (
        "Ann",
        {"hidden": 1},
        {"name": "Ann"},
    )
    path.write_text(
        "\n".join(map(json.dumps, [*TAVERN, {"name": "Bo", "is_user": False, "mes": "yo"}])),
        encoding="utf-8",
    )
    assert refusal(path, "sillytavern").reason == "group"


def test_a_user_of_sillytavern_may_change_the_name(tmp_path: Path) -> None:
    lines = [
        {"user_name": "unused", "character_name": "unused"},
        {"name": "Ann", "is_user": True, "mes": "hi"},
        {"name": "Aria", "is_user": False, "mes": "ho {{user}}"},
        {"name": "Queen", "is_user": True, "mes": "bye"},
        {"name": "System", "is_user": False, "mes": "The day ends.", "extra": {"type": "narrator"}},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    assert turns(tmp_path / "a.jsonl", "sillytavern") == [
        ("user", "hi"),
        ("companion", "ho Ann"),
        ("user", "bye"),
    ]


def node(
    name: str, parent: str | None, role: str, *parts: Any, kind: str = "text", **more: Any
) -> dict[str, Any]:
    content = {"content_type": kind, "parts": list(parts)}
    message = {
        "id": name,
        "author": {"role": role},
        "create_time": 1710000000 + len(name),
        "content": content,
    }
    return {
        "id": name,
        "parent": parent,
        "message": message | {"recipient": "all", "metadata": {}, **more},
    }


NODES = [
    {"id": "root", "message": None, "parent": None},
    node("system", "root", "system", ""),
    node("context", "system", "user", kind="user_editable_context"),
    node("u1", "context", "user", "hi"),
    node("regenerated", "u1", "assistant", "an answer that was replaced"),
    node("a1", "u1", "assistant", "new \ue200cite\ue202turn0search0\ue201"),
    node("thought", "a1", "assistant", kind="thoughts"),
    node("call", "thought", "assistant", "search()", recipient="web"),
    node("tool", "call", "tool", "results"),
    node(
        "u2",
        "tool",
        "user",
        {"content_type": "image_asset_pointer"},
        "look",
        kind="multimodal_text",
    ),
    node("a2", "u2", "assistant", "nice", channel="final"),
]
MAPPING = {held["id"]: held for held in NODES}


def test_chatgpt_reads_the_branch_of_the_current_node(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    older = {name: MAPPING[name] for name in ("root", "system", "u1", "a1")}
    older["u1"] = node("u1", "system", "user", "hi")
    conversations = [
        {"title": "T", "conversation_id": "c1", "current_node": "a2", "mapping": MAPPING},
        {"title": "T", "id": "c2", "mapping": older},
    ]
    path.write_text(json.dumps(conversations), encoding="utf-8")
    first, second = dialogues(path, "chatgpt", companion="ChatGPT")
    assert list(first.messages) == [
        ("user", "hi"),
        ("companion", "new"),
        ("user", "look"),
        ("companion", "nice"),
    ]
    assert first.left_out == {"reasoning": 1, "tool": 2}
    assert list(second.messages) == [("user", "hi"), ("companion", "new")]
    assert (first.raw_id, second.raw_id) == ("c1", "c2")
    assert first.person == second.person
    # Newer exports are several files; others in the folder are no conversations.
    path.rename(tmp_path / "conversations-000.json")
    (tmp_path / "user.json").write_text("{}", encoding="utf-8")
    (tmp_path / "shared_conversations.json").write_text("[]", encoding="utf-8")
    assert len(dialogues(tmp_path, "chatgpt")) == 2


CLAUDE = {
    "uuid": "c1",
    "account": {"uuid": "owner"},
    "chat_messages": [
        {"uuid": "1", "sender": "human", "text": "hi"},
        {
            "uuid": "2",
            "sender": "assistant",
            "parent_message_uuid": "1",
            "text": "an answer that was made again",
        },
        {
            "uuid": "3",
            "sender": "assistant",
            "parent_message_uuid": "1",
            "text": "```This block is not supported on your current device yet.```",
            "content": [
                {"type": "thinking", "thinking": "so"},
                {"type": "tool_use"},
                {"type": "text", "text": "ho"},
            ],
        },
    ],
}
CLAUDE_OLD = {
    "uuid": "c1",
    "chat_messages": [{"sender": "human", "text": "hi"}, {"sender": "assistant", "text": "ho"}],
}
DETAILS = '<details type="reasoning" done="true">\n<summary>Thought for 2 seconds</summary>\nso\n</details>\nho'
WEBUI_MESSAGES = {
    "1": {"id": "1", "parentId": None, "childrenIds": ["2", "3"], "role": "user", "content": "hi"},
    "2": {"id": "2", "parentId": "1", "childrenIds": [], "role": "assistant", "content": "again"},
    "3": {"id": "3", "parentId": "1", "childrenIds": [], "role": "assistant", "content": DETAILS},
}
WEBUI = {
    "id": "c1",
    "user_id": "u",
    "chat": {"history": {"currentId": "3", "messages": WEBUI_MESSAGES}, "messages": []},
}
WEBUI_OLD = {
    "id": "c1",
    "user_id": "u",
    "chat": {"messages": [WEBUI_MESSAGES["1"], WEBUI_MESSAGES["3"]]},
}
LIBRE_USER = {
    "messageId": "1",
    "parentMessageId": "0",
    "isCreatedByUser": True,
    "sender": "User",
    "text": "hi",
}
LIBRE_AGAIN = {
    "messageId": "2",
    "parentMessageId": "1",
    "isCreatedByUser": False,
    "sender": "GPT-4o",
    "text": "again",
}
LIBRE_REPLY = {
    "messageId": "3",
    "parentMessageId": "1",
    "isCreatedByUser": False,
    "sender": "GPT-4o",
    "text": "",
    "content": [{"type": "think", "think": "so"}, {"type": "text", "text": {"value": "ho"}}],
}
LIBRE = {
    "conversationId": "c1",
    "branches": True,
    "messages": [LIBRE_USER, LIBRE_AGAIN, LIBRE_REPLY],
}
LIBRE_TREE = {
    "conversationId": "c1",
    "messagesTree": [{**LIBRE_USER, "children": [LIBRE_AGAIN, LIBRE_REPLY]}],
}
CAI_MESSAGES = [
    {"src": {"is_human": True, "name": "Ann"}, "text": "hi"},
    {"src": {"is_human": False, "name": "Aria"}, "text": "ho"},
]
CAI = {"info": {}, "histories": {"histories": [{"external_id": "c1", "msgs": CAI_MESSAGES}]}}
CAI_TURNS = {
    "chat_id": "c1",
    "turns": [
        {
            "author": {"name": "Aria"},
            "create_time": "2024-03-12T10:01:00.5Z",
            "primary_candidate_id": "b",
            "candidates": [
                {"candidate_id": "a", "raw_content": "no"},
                {"candidate_id": "b", "raw_content": "ho"},
            ],
        },
        {
            "author": {"name": "Ann", "is_human": True},
            "create_time": "2024-03-12T10:00:00.5Z",
            "primary_candidate_id": "c",
            "candidates": [{"candidate_id": "c", "raw_content": "hi"}],
        },
    ],
}
ASSISTANTS = {
    "claude": (CLAUDE, CLAUDE_OLD),
    "open_webui": (WEBUI, WEBUI_OLD),
    "librechat": (LIBRE, LIBRE_TREE),
    "character_ai": (CAI, CAI_TURNS),
}


@pytest.mark.parametrize("form", ASSISTANTS)
def test_other_programs_of_companions_in_two_versions_each(tmp_path: Path, form: str) -> None:
    """The branch or the answer that the user chose, without what the model thought."""
    for version in ASSISTANTS[form]:
        value = version if form in ("librechat", "character_ai") else [version]
        path = tmp_path / "chat-conversations.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        (dialogue,) = dialogues(path, form)
        assert list(dialogue.messages) == [("user", "hi"), ("companion", "ho")]
        assert dialogue.raw_id == "c1"
        assert f'format = "{form}"' in h2htalk("curate", "look", str(path)).stdout
        path.write_text('[{"foo": 1}]', encoding="utf-8")
        assert refusal(path, form).reason == "broken"


# --- Tables and logs -----------------------------------------------------------------------------------------------

ROWS = """\
conversation_id,sender,message,created_at
1,Ann,hi,2024-03-12 10:00
2,Bo,yo,2024-03-12 10:00
1,Joy,ho,2024-03-12 10:01
2,Joy,first,2024-03-12 09:59
"""


def test_rows_of_one_message_become_conversations_in_the_order_of_time(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(ROWS, encoding="utf-8")
    first, second = dialogues(tmp_path / "a.csv", "turns", companion="Joy")
    assert list(first.messages) == [("user", "hi"), ("companion", "ho")]
    assert list(second.messages) == [("companion", "first"), ("user", "yo")]
    assert (first.raw_id, first.person, second.person) == ("1", "Ann", "Bo")
    # Names of roles say who speaks, columns may have any name, and the table any form.
    text = "Gespräch;Rolle;Was;Wann\n1;system;Be Joy.;\n1;user;hi;\n1;assistant;<think>so</think>ho;\n1;tool;3;\n"
    (tmp_path / "a.csv").write_text(text, encoding="cp1252")
    columns = {"conversation": "Gespräch", "speaker": "Rolle", "text": "Was", "time": "Wann"}
    (dialogue,) = dialogues(tmp_path / "a.csv", "turns", columns=columns)
    assert list(dialogue.messages) == [("user", "hi"), ("companion", "ho")]
    assert (dialogue.metadata, dialogue.left_out) == ({"system": "Be Joy."}, {"tool": 1})
    refused = read_file(tmp_path / "a.csv", "turns")[0].content
    assert isinstance(refused, RefusedItem)
    assert "no column of the speaker" in refused.problem
    assert refused.names == ("Gespräch", "Rolle", "Was", "Wann")


def test_rows_have_numbers_and_truth_values_too(tmp_path: Path) -> None:
    rows = [
        {"session": "a", "index": 1, "is_bot": True, "text": "ho"},
        {"session": "a", "index": 0, "is_bot": False, "text": "hi"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (dialogue,) = dialogues(
        tmp_path / "a.jsonl", "turns", companion="true", columns={"speaker": "is_bot"}
    )
    assert (dialogue.messages, dialogue.metadata) == ((("user", "hi"), ("companion", "ho")), {})
    # A row without a text is no media.
    (tmp_path / "a.csv").write_text("speaker,text\nAnn,hi\nJoy,ho\nJoy,\n", encoding="utf-8")
    assert dialogues(tmp_path / "a.csv", "turns", companion="Joy")[0].left_out == {"empty": 1}


def test_text_of_wechat_is_a_log(tmp_path: Path) -> None:
    text = "小雨 2024-03-12 21:15:03\n在吗\n想你\n\n阿暖 2024-03-12 21:16:03\n在的\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    pattern = r"(?P<speaker>\S.*?) +(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?)(?P<text>)$"
    found = turns(tmp_path / "a.txt", "chat_log", companion="阿暖", pattern=pattern)
    assert found == [("user", "在吗\n想你"), ("companion", "在的")]


LINES = "== begin ==\n[2024-03-12 10:00] Ann: hi\nand more\n[2024-03-12 10:01] Joy: ho: ho\n"
PATTERN = r"\[(?P<time>[^\]]+)\] (?P<speaker>[^:]+): (?P<text>.*)"


def test_a_log_is_read_by_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LINES, encoding="utf-8")
    expected = [("user", "hi\nand more"), ("companion", "ho: ho")]
    assert turns(tmp_path / "a.log", "chat_log", companion="Joy", pattern=PATTERN) == expected
    with pytest.raises(ConfigError, match="needs a pattern of its lines"):
        read_file(tmp_path / "a.log", "chat_log", companion="Joy")


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        (r"(?P<speaker>(a+)+): (?P<text>.*)$", "repeats something that is repeated"),
        (r"(?P<speaker>(a|aa)+): (?P<text>.*)$", "repeats alternatives"),
        (r"(?P<speaker>.*.*.*.*.*): (?P<text>.*)$", "takes too long for a line"),
        (r"(?P<speaker>\w) \1(?P<text>.*)", "refers back to a group"),
        (r"(?P<speaker>a", "no regular expression"),
        (r"(?P<who>\w+): (?P<text>.*)", "must have the groups"),
    ],
)
def test_a_pattern_that_may_take_for_ever_is_refused_at_once(
    tmp_path: Path, pattern: str, problem: str
) -> None:
    (tmp_path / "a.log").write_text(LINES, encoding="utf-8")
    start = time.process_time()
    with pytest.raises(ConfigError, match=problem):
        read_file(tmp_path / "a.log", "chat_log", companion="Joy", pattern=pattern)
    assert time.process_time() - start < 20


# --- In the stage ---------------------------------------------------------------------------------------------------


def test_a_run_says_what_was_left_out_and_the_audit_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "_chat.txt").write_text(IPHONE, encoding="utf-8")
    place = Workspace(tmp_path / "work")
    source = Source("wa", "_chat.txt", "whatsapp", "en", "CC0-1.0", companion="Luna")
    run_one("gather", place, GatherSettings((source,)), folder=tmp_path)
    said = capsys.readouterr().err
    assert (
        "messages left out: deleted 1, media 1, lines of the program 2; 1 edited message read as last edited"
        in said
    )
    first, second = place.stage("gather").records()
    assert first["id"] == "wa-000001"
    assert first["provenance"]["person"] == second["provenance"]["person"] == "wa-p0001"
    audits = list(place.stage("gather").records("audit"))
    assert audits[0]["left_out"] == {"deleted": 1, "edited": 1, "media": 1, "system": 2}
    # A chat that has grown is no log of lines.
    with (tmp_path / "_chat.txt").open("a", encoding="utf-8") as file:
        file.write("[14/03/24, 09:02:05] Ann Lee: hm\n")
    with pytest.raises(ConfigError, match="new bytes"):
        run_one("gather", place, GatherSettings((source,)), folder=tmp_path)


def test_lines_before_the_first_message_of_a_log_are_counted(tmp_path: Path) -> None:
    """They were lost without a word."""
    log = tmp_path / "log.txt"
    log.write_text(
        "Session of Monday\n\nAda: Good morning.\nJune: Good morning, Ada.\n", encoding="utf-8"
    )
    (dialogue,) = dialogues(
        log, "chat_log", pattern=r"(?P<speaker>\w+): (?P<text>.*)", companion="June"
    )
    assert dialogue.messages == (("user", "Good morning."), ("companion", "Good morning, Ada."))
    assert dialogue.left_out == {"system": 1}
