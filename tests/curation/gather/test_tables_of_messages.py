"""Tables with one message a row, as databases, spreadsheets and scripts write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_chat_exports import dialogues, refusal
from test_formats import read_file

from h2htalk.curation.gather import look
from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from support.command_line import h2htalk

MYSQL = (
    "id\tsender\tcreated_at\tcontent\tdeleted_at\n"
    "1\tAnn\t2025-06-10 21:30:02\ttwo things:\\nsweet\\tand salty\tNULL\n"
    "2\tJoy\t2025-06-10 21:30:06\t¯\\\\_(ツ)_/¯ NULL is a word\tNULL\n"
    "3\tJoy\t2025-06-10 21:30:07\toops\t2025-06-10 21:30:09\n"
    "4\tAnn\t2025-06-10 21:30:08\tNULL\tNULL\n"
    '5\tAnn\t2025-06-10 21:30:10\t"open mark\tNULL\n'
    "6\tJoy\t2025-06-10 21:30:12\tok\tNULL\n"
)


def test_escapes_of_mysql_batch_are_line_ends_and_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(MYSQL, encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.tsv", "turns", companion="Joy")
    assert list(dialogue.messages) == [
        ("user", "two things:\nsweet\tand salty"),
        ("companion", "¯\\_(ツ)_/¯ NULL is a word"),
        ("user", '"open mark'),
        ("companion", "ok"),
    ]
    assert dialogue.left_out == {"deleted": 1, "empty": 1}


def test_a_backslash_that_is_no_escape_stays(tmp_path: Path) -> None:
    text = 'sender\ttext\nAnn\t"it is in C:\\users\\new"\nJoy\tfine, I see it\n'
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.tsv", "turns", companion="Joy")
    assert dialogue.messages[0] == ("user", "it is in C:\\users\\new")


def test_marks_with_a_backslash_within_quoted_cells(tmp_path: Path) -> None:
    text = 'sender,text\n"Ann","she said \\"go\\", twice"\n"Joy","and you?"\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.csv", "turns", companion="Joy")
    assert dialogue.messages[0] == ("user", 'she said "go", twice')


NEWEST_FIRST = {
    "times of minutes": "Sent\tName\tBody\n03/05/2025 20:41\tJoy\tc\n03/05/2025 20:40\tAnn\tb2\n"
    "03/05/2025 20:40\tAnn\tb1\n13/04/2025 20:38\tJoy\ta\n",
    "numbers": "id,sender,text\n9,Joy,c\n8,Ann,b2\n7,Ann,b1\n6,Joy,a\n",
    "days apart": "date;time;author;text\n14/05/2025;20:41;Joy;c\n03/05/2025;20:41;Ann;b2\n"
    "03/05/2025;20:40;Ann;b1\n02/05/2025;20:38;Joy;a\n",
}


@pytest.mark.parametrize("kind", NEWEST_FIRST)
def test_a_table_with_the_newest_row_first_is_turned_round_and_says_so(
    tmp_path: Path, kind: str
) -> None:
    (tmp_path / "a.csv").write_text(NEWEST_FIRST[kind], encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.csv", "turns", companion="Joy", silence=8784)
    assert [text for _, text in dialogue.messages] == ["a", "b1", "b2", "c"]
    assert dialogue.left_out == {"turned": 4}
    said = h2htalk("curate", "look", str(tmp_path / "a.csv"), "--companion", "Joy").stdout
    assert "newest first: 4 messages read in the order of their times or numbers" in said


@pytest.mark.parametrize("cell", ["", " ", "None"])
def test_rows_with_an_empty_conversation_are_split_where_nobody_wrote_for_long(
    tmp_path: Path, cell: str
) -> None:
    """An empty cell was the name of a conversation, so that all rows of a table were one dialogue, over weeks."""
    rows = [
        f"{cell},Ann,I took the ferry,2024-03-01 10:00:00",
        f"{cell},Joy,was it windy?,2024-03-01 10:01:00",
        f"{cell},Ann,back again,2024-03-09 10:00:00",
        f"{cell},Joy,welcome back,2024-03-09 10:01:00",
        "7,Ann,another one,2024-03-01 10:00:00",
        "7,Joy,over two weeks,2024-03-15 10:00:00",
    ]
    table = "\n".join(["conversation_id,sender,text,created_at", *rows])
    (tmp_path / "a.csv").write_text(table, encoding="utf-8")
    texts: list[list[str]] = []
    for dialogue in dialogues(tmp_path / "a.csv", "turns", companion="Joy"):
        texts.append([text for _, text in dialogue.messages])
    assert sorted(texts) == [
        ["I took the ferry", "was it windy?"],
        ["another one", "over two weeks"],
        ["back again", "welcome back"],
    ]


def test_columns_say_what_is_no_text_of_a_speaker(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"id": 1, "author": "SYSTEM", "text": "session started", "kind": "text"},
        {"id": 2, "author": "Ann", "text": "hi", "kind": "text"},
        {"id": 3, "author": "Joy", "text": "wave", "kind": "sticker"},
        {"id": 4, "author": "Joy", "text": "up/1.jpg", "kind": "image/jpeg"},
        {"id": 5, "author": "Joy", "text": "ho", "kind": "text", "edited_at": "2025-01-01"},
        {"id": 5, "author": "Joy", "text": "ho", "kind": "text"},
        {"id": 6, "author": "Joy", "text": "lost", "kind": "text", "status": "failed"},
        {"id": 7, "author": "Joy", "text": "oops", "kind": "text", "deleted": True},
        {"id": 8, "author": "Joy", "text": "thinking", "kind": "text", "internal": True},
        {"id": 9, "author": "Ann", "text": "bye", "kind": "text", "deleted": False},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.jsonl", "turns", companion="Joy")
    assert list(dialogue.messages) == [("user", "hi"), ("companion", "ho"), ("user", "bye")]
    assert dialogue.left_out == {"deleted": 2, "duplicate": 1, "edited": 1, "hidden": 1, "media": 2}
    assert dialogue.metadata == {"system": "session started", "name": ["Ann", "Joy"]}


def test_a_column_that_says_yes_and_no_gives_the_roles(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("is_bot,msg\n0,hi\n1,ho\n", encoding="utf-8")
    assert list(dialogues(tmp_path / "a.csv", "turns")[0].messages) == [
        ("user", "hi"),
        ("companion", "ho"),
    ]
    (tmp_path / "a.csv").write_text("from_me,msg\nfalse,hi\ntrue,ho\n", encoding="utf-8")
    assert list(dialogues(tmp_path / "a.csv", "turns")[0].messages) == [
        ("companion", "hi"),
        ("user", "ho"),
    ]


# As chat_backup.py of alan-couzens/replika_stuff writes it, and that of Hotohori/replika_backup.
REPLIKA = {
    "oldest first": 'Timestamp,From,Text,Reaction,ID\r\n2021-03-01T16:51:16.3Z,Rep,"Hi!\nHow are you?",None,a1\r\n'
    "2021-03-01T16:51:40.1Z,Me,tired,None,a2\r\n2021-03-01T16:51:44Z,Rep,Tell me more.,upvote,a3\r\n",
    "newest first": "Timestamp,From,Text,Reaction,ID\r\n2021-03-01T16:51:44Z,Rep,Tell me more.,upvote,a3\r\n"
    "2021-03-01T16:51:40.1Z,Me,tired,None,a2\r\n2021-03-01T16:51:16.3Z,Rep,Hi!\\nHow are you?,None,a1\r\n",
}


@pytest.mark.parametrize("form", REPLIKA)
@pytest.mark.parametrize("companion", ["", "Rep"])
def test_backups_of_replika_in_two_forms(tmp_path: Path, form: str, companion: str) -> None:
    (tmp_path / "a.csv").write_text(REPLIKA[form], encoding="utf-8", newline="")
    (dialogue,) = dialogues(tmp_path / "a.csv", "turns", companion=companion)
    expected = [
        ("companion", "Hi!\nHow are you?"),
        ("user", "tired"),
        ("companion", "Tell me more."),
    ]
    assert list(dialogue.messages) == expected
    assert dialogue.metadata == {}  # `Me` and `Rep` are nobody's name
    said = h2htalk("curate", "look", str(tmp_path / "a.csv")).stdout
    assert 'format = "turns"' in said
    assert "companion: Hi! How are you?" in said


def test_look_guesses_columns_by_what_is_in_them(tmp_path: Path) -> None:
    rows = [
        ("a9x8b7c6d5", "ann", "how was the walk today?"),
        ("b9x8b7c6d5", "joy", "long, and it rained a lot"),
    ] * 3
    lines = [
        f"{code};{who};2024-03-1{n} 10:00;{text} {n}" for n, (code, who, text) in enumerate(rows)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["k;p;q;r", *lines]), encoding="utf-8")
    said = h2htalk("curate", "look", str(tmp_path / "a.csv")).stdout
    assert 'columns = { speaker = "p", text = "r", time = "q" }' in said
    assert "its columns are guessed by what is in them" in said
    assert "user: how was the walk today? 0" in said


def test_a_table_without_a_speaker_says_which_column_is_missing(tmp_path: Path) -> None:
    text = "msg_id,text,created_at\n" + "".join(
        f"{n},line {n} of a talk,2020-11-09 18:0{n}:02\n" for n in range(8)
    )
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    said = h2htalk("curate", "look", str(tmp_path / "a.csv")).stdout
    assert "none is known to say who wrote a message" in said
    assert "columns = { speaker = NAME }" in said
    assert "no column of the speaker" in refusal_of_first(tmp_path / "a.csv")


def refusal_of_first(path: Path) -> str:
    content = read_file(path, "turns")[0].content
    assert not isinstance(content, RawDialogue)
    return content.problem


def test_times_with_an_offset_are_in_order_where_clocks_are_set_back(tmp_path: Path) -> None:
    text = "sender,text,time\nAnn,hi,2024-10-27T02:50:00+02:00\nJoy,ho,2024-10-27T02:10:00+01:00\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert [
        text for _, text in dialogues(tmp_path / "a.csv", "turns", companion="Joy")[0].messages
    ] == ["hi", "ho"]


def test_a_group_in_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("sender,text\nAnn,hi\nJoy,ho\nBo,yo\n", encoding="utf-8")
    assert refusal(tmp_path / "a.csv", "turns", companion="Joy").reason == "group"


ANN = {"kind": "human", "name": "Ann"}
PIP = {"kind": "assistant", "name": "Pip"}
MONGO = (
    {
        "from": {"kind": "system"},
        "body": "You are Pip.",
        "sentAt": {"$date": "2024-05-02T18:03:26.631Z"},
    },
    {"from": ANN, "body": "hi", "sentAt": {"$date": {"$numberLong": "1714673072873"}}},
    {
        "from": PIP,
        "body": [
            {"type": "thinking", "text": "hm"},
            {"type": "text", "text": "ho"},
            {"type": "text", "text": "so?"},
        ],
        "sentAt": {"$date": {"$numberLong": "1714673074000"}},
    },
    {
        "from": {"kind": "human", "name": "Ann"},
        "body": [{"type": "image"}],
        "sentAt": {"$date": "2024-05-02T18:05:00Z"},
    },
    {"kind": "typing", "by": {"kind": "human"}, "sentAt": {"$date": "2024-05-02T18:05:00Z"}},
    {
        "from": PIP,
        "body": {"text": "dry"},
        "sentAt": {"$date": "2024-05-02T18:07:00Z"},
    },
    {"from": ANN, "body": "rain", "sentAt": {"$date": "2024-05-02T18:06:00Z"}},
)


def test_objects_of_a_data_base_in_the_order_of_their_times(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, MONGO)), encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.jsonl", "turns")
    expected = [("user", "hi"), ("companion", "ho\nso?"), ("user", "rain"), ("companion", "dry")]
    assert list(dialogue.messages) == expected
    assert dialogue.left_out == {"media": 1, "system": 1}
    assert dialogue.metadata["system"] == "You are Pip."
    assert sorted(dialogue.metadata["name"]) == ["Ann", "Pip"]


def test_a_column_within_an_object_can_be_named(tmp_path: Path) -> None:
    rows = [{"a": {"b": name}, "text": text} for name, text in (("Ann", "hi"), ("Joy", "ho"))]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (dialogue,) = dialogues(
        tmp_path / "a.jsonl", "turns", columns={"speaker": "a.b"}, companion="Joy"
    )
    assert list(dialogue.messages) == [("user", "hi"), ("companion", "ho")]


def test_parts_as_json_in_a_cell_are_text_and_json_that_somebody_wrote_stays(
    tmp_path: Path,
) -> None:
    cells = (
        '[{"type": "text", "text": "hi"}]',
        '{"my": "json"}',
        '[{"type": "text", "text": ""}, {"type": "image"}]',
    )
    rows = ["sender\ttext", f"Ann\t{cells[0]}", f"Joy\t{cells[1]}", f"Ann\t{cells[2]}"]
    (tmp_path / "a.tsv").write_text("\n".join(rows), encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.tsv", "turns", companion="Joy")
    assert list(dialogue.messages) == [("user", "hi"), ("companion", '{"my": "json"}')]
    assert dialogue.left_out == {"media": 1}


@pytest.mark.parametrize(
    ("column", "usual", "rare"),
    [
        ("supprime_le", "", "2022-02-19 18:52:40"),
        ("状态", "正常", "已撤回"),
        ("Gelöscht am", "NULL", "19.02.2022"),
        ("estado", "ok", "eliminado"),
        ("superseded", "false", "true"),
    ],
)
def test_messages_that_were_taken_back_are_known_in_several_languages(
    tmp_path: Path, column: str, usual: str, rare: str
) -> None:
    rows = [f"sender;text;{column}", f"Ann;hi;{usual}", f"Joy;oops;{rare}", f"Joy;ho;{usual}"]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")
    (dialogue,) = dialogues(tmp_path / "a.csv", "turns", companion="Joy")
    assert list(dialogue.messages) == [("user", "hi"), ("companion", "ho")]
    assert dialogue.left_out == {"deleted": 1}


def test_look_proposes_no_setting_for_rows_that_are_left_out_already(tmp_path: Path) -> None:
    messages = "Ann;hello;text;phone\nJoy;hi;text;phone\n" * 6
    event = "Ann;joined;system;server\n"
    path = tmp_path / "a.csv"
    path.write_text(f"sender;text;type;origin\n{messages}{event}", encoding="utf-8")
    output = "\n".join(look.look(path, "Joy"))
    assert "lines of the program 1" in output
    assert "leave_out" not in output


def test_look_shows_columns_that_may_say_which_rows_are_no_messages(tmp_path: Path) -> None:
    lines = [
        f"{('Ann', 'Joy')[n % 2]};message {n};{'x7' if n == 5 else 'p1'};2024-03-12 21:1{n}"
        for n in range(10)
    ]
    (tmp_path / "a.csv").write_text(
        "\n".join(["sender;text;flag;moment", *lines]), encoding="utf-8"
    )
    shown = "\n".join(look.look(tmp_path / "a.csv", "Joy"))
    setting = 'leave_out = { "flag" = ["x7"] }'
    assert (
        f"the column flag has p1 (9), x7 (1); if it says which rows are no messages: {setting}"
        in shown
    )
    # The time has a name of its own.
    assert 'columns = { time = "moment" }' in shown
    (dialogue,) = dialogues(
        tmp_path / "a.csv", "turns", companion="Joy", leave_out={"flag": ("x7",)}
    )
    assert len(dialogue.messages) == 9
    assert dialogue.left_out == {"named": 1}
    first, *_ = read_file(tmp_path / "a.csv", "turns", companion="Joy", leave_out={"gone": ("x7",)})
    assert isinstance(first.content, RefusedItem)
    assert first.content.problem == "leave_out: no row has the column gone"
