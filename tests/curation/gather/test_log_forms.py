"""Logs of chats: `curate look` proposes the pattern that reads them, and what stands between messages is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_formats import read_file

from h2htalk.curation.gather import look
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from support.command_line import h2htalk

Turns = list[tuple[str, str]]


def read(path: Path, companion: str) -> tuple[Turns, dict[str, int]]:
    """The turns of a file as `look` would have it read, and what was left out."""
    kind = look.find_kind(path)
    assert kind is not None
    settings: dict[str, Any] = dict(kind.settings)
    contents = [
        item.content
        for item in read_file(path, settings.pop("format"), companion=companion, **settings)
    ]
    assert [content.problem for content in contents if isinstance(content, RefusedItem)] == []
    dialogues = [content for content in contents if isinstance(content, RawDialogue)]
    turns = [message for dialogue in dialogues for message in dialogue.messages]
    return turns, dict(dialogues[0].left_out)


TALK: Turns = [
    ("user", "hi Joy"),
    ("companion", "hi! how was it?"),
    ("user", "long: very long\nand wet"),
    ("companion", "poor you"),
]
# The same talk in many forms, a line each.
FORMS = {
    "a clock after the name": (
        "【2024年3月12日】\n"
        "Ann 21:15\n"
        "hi Joy\n"
        "Joy 21:16\n"
        "hi! how was it?\n"
        "Ann 下午 9:17\n"
        "long: very long\n"
        "and wet\n"
        "Joy 21:18\n"
        "poor you\n"
    ),
    "a list": (
        "- Ann (21:15): hi Joy\n"
        "- Joy (21:16): hi! how was it?\n"
        "- Ann (21:17): long: very long\n"
        "and wet\n"
        "- Joy (21:18): poor you\n"
    ),
    "arrows": (
        "21:15 Ann -> hi Joy\n"
        "21:16 Joy -> hi! how was it?\n"
        "21:17 Ann -> long: very long\n"
        "and wet\n"
        "21:18 Joy -> poor you\n"
    ),
    "HexChat": (
        "**** BEGIN LOGGING AT Sun Oct  6 23:31:33 2013\n"
        "Oct 06 23:31:40 <Ann>\thi Joy\n"
        "Oct 06 23:32:40 <Joy>\thi! how was it?\n"
        "Oct 06 23:33:50 <Ann>\tlong: very long\n"
        "and wet\n"
        "Oct 06 23:34:40 <Joy>\tpoor you\n"
    ),
    "a level of a log": (
        "2024-03-12T21:15:03Z [INFO] Ann: hi Joy\n"
        "2024-03-12T21:16:03Z [INFO] Joy: hi! how was it?\n"
        "2024-03-12T21:17:03Z [WARN] reconnecting\n"
        "2024-03-12T21:17:03Z [INFO] Ann: long: very long\n"
        "and wet\n"
        "2024-03-12T21:18:03Z [INFO] Joy: poor you\n"
    ),
    "mIRC": (
        "Session Start: Sun Oct 06 23:31:33 2013\n"
        "Session Ident: joy\n"
        "[23:31] <Ann> hi Joy\n"
        "[23:32] * Ann sets mode: +i\n"
        "[23:32] <Joy> hi! how was it?\n"
        "[23:33] <Ann> long: very long\n"
        "and wet\n"
        "[23:33] <Joy> poor you\n"
        "Session Close: Sun Oct 06 23:35:00 2013\n"
    ),
    "irssi with a new nick": (
        "--- Log opened Sun Oct 06 23:31:33 2013\n"
        "23:31 <Ann> hi Joy\n"
        "23:32 < Joy> hi! how was it?\n"
        "23:33 -!- Ann is now known as Ann_zzz\n"
        "--- Day changed Mon Oct 07 2013\n"
        "00:02 <Ann_zzz> long: very long\n"
        "and wet\n"
        "00:03 <@Joy> poor you\n"
        "--- Log closed Mon Oct 07 00:05:00 2013\n"
    ),
    "Pidgin": (
        "Conversation with joy@im.example at Tue 11 Mar 2014 11:17:05 PM EDT on ann@im.example/home (jabber)\n"
        "(11:19:11 PM) Ann: hi Joy\n"
        "(11:21:55 PM) Joy: hi! how was it?\n"
        "(11:22:00 PM) Joy has signed off.\n"
        "(11:23:38 PM) Ann: long: very long\n"
        "and wet\n"
        "(11:23:40 PM) Ann <AUTO-REPLY>: I am away\n"
        "(12:24:54 AM) Joy: poor you\n"
    ),
    "LINE": (
        "[LINE] Chat history in Joy\n"
        "Saved on: 2024/03/13 10:00\n"
        "\n"
        "2024/03/12(火)\n"
        "21:15\tAnn\thi Joy\n"
        "21:16\tJoy\thi! how was it?\n"
        "21:16\tJoy\t[スタンプ]\n"
        "21:17\tAnn\tlong: very long\n"
        "and wet\n"
        "\n"
        "2024/03/13(水)\n"
        "07:18\tJoy\tpoor you\n"
    ),
    "KakaoTalk": (
        "--------------- 2024년 3월 12일 화요일 ---------------\n"
        "[Ann] [오후 9:15] hi Joy\n"
        "[Joy] [오후 9:16] hi! how was it?\n"
        "[Ann] [오후 9:17] long: very long\n"
        "and wet\n"
        "[Joy] [오후 9:18] poor you\n"
    ),
    "weechat": (
        "2013-10-06 23:31:00\t--\tirc: connected\n"
        "2013-10-06 23:31:00\tAnn\thi Joy\n"
        "2013-10-06 23:32:00\tJoy\thi! how was it?\n"
        "2013-10-06 23:33:00\tAnn\tlong: very long\n"
        "and wet\n"
        "2013-10-06 23:34:00\tJoy\tpoor you\n"
    ),
    "Discord, copied": (
        "Ann — Today at 9:15 PM\n"
        "hi Joy\n"
        "Joy — Today at 9:16 PM\n"
        "hi! how was it?\n"
        "Ann — Today at 9:17 PM\n"
        "long: very long\n"
        "and wet\n"
        "Joy — Today at 9:18 PM\n"
        "poor you\n"
    ),
    "QQ": (
        "2024-03-12 21:15:03 Ann\n"
        "hi Joy\n"
        "\n"
        "2024-03-12 21:16:03 Joy\n"
        "hi! how was it?\n"
        "\n"
        "2024-03-12 21:17:03 Ann\n"
        "long: very long\n"
        "and wet\n"
        "\n"
        "2024-03-12 21:18:03 Joy\n"
        "poor you\n"
    ),
    "headings of Markdown": (
        "# My talk\n"
        "\n"
        "## Ann\n"
        "\n"
        "hi Joy\n"
        "\n"
        "## Joy\n"
        "\n"
        "hi! how was it?\n"
        "\n"
        "## Ann\n"
        "\n"
        "long: very long\n"
        "and wet\n"
        "\n"
        "## Joy\n"
        "\n"
        "poor you\n"
    ),
    "bold names": (
        "**Ann:** hi Joy\n\n**Joy:** hi! how was it?\n\n**Ann:** long: very long\nand wet\n\n**Joy:** poor you\n"
    ),
    "names alone": (
        "Ann\nhi Joy\n\nJoy\nhi! how was it?\n\nAnn\nlong: very long\nand wet\n\nJoy\npoor you\n"
    ),
    "names above a colon": (
        "Ann:\nhi Joy\n\nJoy:\nhi! how was it?\n\nAnn:\nlong: very long\nand wet\n\nJoy:\npoor you\n"
    ),
    "a script's own": (
        "2024-03-12T21:15:03 | Ann | hi Joy\n"
        "2024-03-12T21:15:09 | Joy | hi! how was it?\n"
        "2024-03-12T21:16:03 | Ann | long: very long\n"
        "                    | and wet\n"
        "2024-03-12T21:16:09 | Joy | poor you\n"
    ),
    "the name first": (
        "Ann (21:15): hi Joy\n"
        "Joy (21:16): hi! how was it?\n"
        "Ann (21:17): long: very long\n"
        "and wet\n"
        "Joy (21:18): poor you\n"
    ),
    "headings and remarks": (
        "our talks\n"
        "\n"
        "== Monday, 3 March 2025 ==\n"
        "\n"
        "Ann: hi Joy\n"
        "Joy: hi! how was it?\n"
        "[photo of the dog]\n"
        "\n"
        "Tuesday\n"
        "\n"
        "Ann: long: very long\n"
        "and wet\n"
        "(then the line broke down)\n"
        "\n"
        "Joy: poor you\n"
    ),
    "a table of Markdown": (
        "# Talks\n\n| When | Who | What |\n| --- | :-- | --- |\n"
        "| 2024-03-12 21:15 | Ann | hi Joy |\n"
        "| 2024-03-12 21:16 | Joy | hi! how was it? |\n"
        "| 2024-03-12 21:17 | Ann | long: very long<br>and wet |\n"
        "| 2024-03-12 21:18 | Joy | poor you |\n"
    ),
    "a table of Markdown without times": (
        "| Who | What |\n|---|---|\n| **Ann** | hi Joy |\n| **Joy** | hi! how was it? |\n"
        "| **Ann** | long: very long<br>and wet |\n| **Joy** | poor you |\n"
    ),
    "a dash before the time": (
        "12 March 2024, 9:15 pm - Ann: hi Joy\n"
        "12 March 2024, 9:16 pm - Joy: hi! how was it?\n"
        "12 March 2024, 9:17 pm - Ann: long: very long\n"
        "and wet\n"
        "12 March 2024, 9:18 pm - Joy: poor you\n"
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_look_proposes_a_pattern_for_a_form(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.txt").write_text(FORMS[form], encoding="utf-8")
    turns, _ = read(tmp_path / "a.txt", "Joy")
    assert [(role, text.replace("<br>", "\n")) for role, text in turns] == TALK


# As public exporters write them: LC044/WeChatMsg, app/DataBase/exporter_txt.py, and BlueMatthew/WechatExporter,
# res/templates_txt.
WECHAT = {
    "LC044": (
        "2024-03-12 21:15:03 小雨\n在吗\n想你\n\n2024-03-12 21:15:20 小雨\n[图片]\n\n2024-03-12 21:16:03 阿暖\n在的\n\n"
        "2024-03-12 21:16:30 你撤回了一条消息\n\n2024-03-12 21:17:00 小雨\n真的吗\n引用:阿暖:在的\n\n"
        "2024-03-12 21:18:00 阿暖\n真的。\n\n"
    ),
    "BlueMatthew": (
        "小雨 (2024-03-12 21:15:03):在吗\n想你\n小雨 (2024-03-12 21:15:20):[图片]\n阿暖 (2024-03-12 21:16:03):在的\n"
        "系统消息：你撤回了一条消息\n小雨 (2024-03-12 21:17:00):「阿暖：在的」\n- - - - - - - - - - - - - - -\n真的吗\n"
        "阿暖 (2024-03-12 21:18:00):真的。\n"
    ),
}


@pytest.mark.parametrize("form", WECHAT)
def test_text_of_wechat_as_two_exporters_write_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.txt").write_text(WECHAT[form], encoding="utf-8")
    turns, left_out = read(tmp_path / "a.txt", "阿暖")
    expected = [
        ("user", "在吗\n想你"),
        ("companion", "在的"),
        ("user", "真的吗"),
        ("companion", "真的。"),
    ]
    assert turns == expected
    assert left_out == {"media": 1, "system": 1, "joined": 1}


def test_words_before_a_colon_in_a_text_are_no_speaker(tmp_path: Path) -> None:
    text = "我：喂\n阿May：係\n我：今晚睇戲\n時間：7點半\n地點：旺角\n阿May：咩戲\n我:卡通\n阿May：咁去\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert read(tmp_path / "a.txt", "阿May")[0][2] == ("user", "今晚睇戲\n時間：7點半\n地點：旺角")


def test_a_third_name_with_a_time_of_its_own_makes_a_group(tmp_path: Path) -> None:
    lines = [
        f"[21:1{n}] {name}: hi"
        for n, name in enumerate(("Ann", "Joy", "Ann", "Joy", "Ann", "Joy", "Bo"))
    ]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    kind = look.find_kind(tmp_path / "a.txt")
    assert kind is not None
    (item,) = read_file(
        tmp_path / "a.txt", "chat_log", companion="Joy", pattern=kind.settings["pattern"]
    )
    assert isinstance(item.content, RefusedItem)
    assert item.content.reason == "group"


def test_headings_of_days_give_lines_with_a_clock_their_day(tmp_path: Path) -> None:
    text = (
        "=== 3 March 2025 ===\n[21:15] Ann: hi\n[21:16] Joy: ho\n[00:10] Ann: still up\n[00:11] Joy: me too\n"
        "=== 9 March 2025 ===\n[08:00] Ann: morning\n[08:01] Joy: good morning\n"
    )
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    pattern = r"\[(?P<time>[^\]]+)\] (?P<speaker>[^:]+): (?P<text>.*)"
    items = read_file(tmp_path / "a.txt", "chat_log", companion="Joy", pattern=pattern)
    contents = [item.content for item in items if isinstance(item.content, RawDialogue)]
    assert [len(content.messages) for content in contents] == [4, 2]
    assert contents[0].left_out == {"system": 2}


def test_prose_is_no_log(tmp_path: Path) -> None:
    text = "Dear diary,\nthe plan: sleep.\nI woke at 7:30 and made tea.\nNote: buy milk.\nThen we walked.\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    assert look.find_kind(tmp_path / "a.txt") is None


@pytest.mark.parametrize("form", FORMS)
def test_a_proposed_pattern_is_short_enough_to_be_read(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.txt").write_text(FORMS[form], encoding="utf-8")
    kind = look.find_kind(tmp_path / "a.txt")
    assert kind is not None
    rows = kind.settings["pattern"].split("\n")
    assert max(len(row.split("  # ")[0]) for row in rows) <= 100
    assert sum(map(len, rows)) <= 500
    # A long pattern says what each row is for.
    assert len(rows) == 1 or all("  # " in row for row in rows[1:])


def test_rare_lines_of_a_log_count_when_its_pattern_is_made_short(tmp_path: Path) -> None:
    lines = [f"[19:{n % 60:02}] {('Ann', 'Joy')[n % 2]}: message {n}" for n in range(600)]
    lines += ["[8.05 pm] **Joy** ： late", "[20:06] Ann: bye"]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    turns, _ = read(tmp_path / "a.txt", "Joy")
    assert turns[-2:] == [("companion", "late"), ("user", "bye")]


def test_messages_without_a_time_are_those_of_names_that_have_one_elsewhere(tmp_path: Path) -> None:
    text = "Ann (9.10): hi\nJoy (9.11): ho\nAnn: late?\nJoy: never\nAnn (9.15): place: the mill\nJoy (9.16): fine\n"
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    turns, _ = read(tmp_path / "a.txt", "Joy")
    assert turns[2:5] == [("user", "late?"), ("companion", "never"), ("user", "place: the mill")]


LINES = (
    *("Ann: hi", "Joy: ho", "(mum called)", "Ann: I know", "* to do: buy a hinge"),
    *("Joy: a list:", "    1. one", "    2. two", "Ann: fine", ""),
)
SINGLE = "\n".join(LINES)


def test_a_line_that_stands_alone_with_a_mark_is_a_remark_where_no_other_goes_on_in_its_place(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text(SINGLE, encoding="utf-8")
    turns, left_out = read(tmp_path / "a.txt", "Joy")
    assert turns[1:4] == [
        ("companion", "ho"),
        ("user", "I know"),
        ("companion", "a list:\n1. one\n2. two"),
    ]
    assert left_out == {"remark": 2, "joined": 2}
    # Where other lines go on in the same place, marks are as people write.
    (tmp_path / "b.txt").write_text(SINGLE + "Joy: so\nand so on\n", encoding="utf-8")
    turns, left_out = read(tmp_path / "b.txt", "Joy")
    assert turns[1] == ("companion", "ho\n(mum called)")
    assert "remark" not in left_out


def test_what_its_owner_says_about_lines_of_a_log_counts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(SINGLE, encoding="utf-8")
    pattern = r"(?P<speaker>\w+): (?P<text>.*)"
    for words, expected in (((), "ho\n(mum called)"), (("mum",), "ho"), (("*",), "ho")):
        items = read_file(
            tmp_path / "a.txt",
            "chat_log",
            companion="Joy",
            pattern=pattern,
            leave_out={"lines": words},
        )
        (content,) = [item.content for item in items if isinstance(item.content, RawDialogue)]
        assert content.messages[1][1] == expected
        assert content.messages[3][1] == ("a list:" if "*" in words else "a list:\n1. one\n2. two")


def test_look_and_a_run_show_the_lines_that_went_on_with_a_message(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(SINGLE, encoding="utf-8")
    shown = "\n".join(look.look(tmp_path / "a.txt", "Joy"))
    assert (
        '2 lines without a name went on with the message before: "1. one", "2. two"; leave_out = { lines'
        in shown
    )
    assert "left out as remarks" in shown
    assert '"(mum called)", "* to do: buy a hinge"' in shown
    (tmp_path / "curate.toml").write_text(
        'workspace = "work"\n[[gather.sources]]\nname = "a"\npath = "a.txt"\nformat = "chat_log"\nlanguage = "en"\n'
        'licence = "CC0-1.0"\ncompanion = "Joy"\npattern = \'(?P<speaker>\\w+): (?P<text>.*)\'\n',
        encoding="utf-8",
    )
    ran = h2htalk("curate", "run", str(tmp_path / "curate.toml"), "--stage", "gather")
    assert (
        '2 lines without a name went on with the message before: "1. one", "2. two"' in ran.stderr
    ), ran.stderr


def test_the_head_of_a_session_is_no_part_of_the_message_before_it(tmp_path: Path) -> None:
    head = "Conversation with Joy at {}/2/2012 9:03:12 PM on ann (aim)\n"
    talk = "(9:03:15 PM) Ann: hi\n(9:03:31 PM) Joy: ho\n(9:03:50 PM) Ann: bye\n\n"
    later = "(8:15:00 AM) Joy: morning\n(8:16:00 AM) Ann: morning\n(8:17:00 AM) Joy: tea?\n"
    (tmp_path / "a.txt").write_text(
        head.format(11) + talk + head.format(12) + later, encoding="utf-8"
    )
    turns, _ = read(tmp_path / "a.txt", "Joy")
    assert [text for _, text in turns] == ["hi", "ho", "bye", "morning", "morning", "tea?"]
