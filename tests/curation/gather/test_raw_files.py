"""Files as people have them: encodings and separators, other keys, reasoning in the text, and why items are refused."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_formats import read_file

from h2htalk.curation.gather.formats import RawDialogue, RefusedItem
from h2htalk.curation.show import explain
from h2htalk.curation.stages import GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import DataError
from support.curations import run_one

ASKED, REPLY = (
    "I could not sleep again, my head keeps going over the exam.",
    "That sounds exhausting. What keeps coming?",
)
TURNS = (("user", ASKED), ("companion", REPLY))


def only(path: Path, form: str = "messages", **more: Any) -> RawDialogue | RefusedItem:
    (item,) = read_file(path, form, **more)
    return item.content


def turns_of(path: Path, form: str = "messages", **more: Any) -> tuple[tuple[str, str], ...]:
    content = only(path, form, **more)
    assert isinstance(content, RawDialogue), content.problem
    return content.messages


def gather(folder: Path, **settings: Any) -> Workspace:
    place = Workspace(folder / "work")
    source = Source(
        **{"name": "chat", "format": "messages", "language": "en", "licence": "CC0-1.0", **settings}
    )
    run_one("gather", place, GatherSettings((source,)), folder=folder)
    return place


TABLES = {
    "semicolons": "\ufeffquestion;answer\r\n{0};{1}\r\n",
    "sep=": 'sep=;\nquestion;answer\n"{0}";"{1}"\n',
    "sep=, of one cell": '"sep=|"\nquestion|answer\n{0}|{1}\n',
    "tabs": "question\tanswer\n{0}\t{1}\n",
    "commas in quotes": '"question, whole";answer;"id, number, or name"\n{0};{1};1\n',
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_read_whatever_separates_its_cells(tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.csv").write_text(TABLES[kind].format(ASKED, REPLY), encoding="utf-8", newline="")
    columns = {"question": "question, whole"} if "quotes" in kind else {}
    (item,) = read_file(tmp_path / "a.csv", "question_answers", columns=columns)
    assert isinstance(item.content, RawDialogue)
    assert item.content.messages == TURNS
    assert item.line == (3 if "sep=" in kind else 2)


RECORD: dict[str, Any] = {
    "messages": [{"role": "user", "content": ASKED}, {"role": "assistant", "content": REPLY}]
}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("form", ["lines", "array", "table", "bank"])
def test_utf_16_is_read_with_and_without_its_mark(tmp_path: Path, encoding: str, form: str) -> None:
    """PowerShell and Excel's "Unicode text" write it."""
    path = tmp_path / ("a.tsv" if form == "table" else "a.json")
    texts = {
        "lines": json.dumps(RECORD) + "\r\n" + json.dumps(RECORD) + "\r\n",
        "array": json.dumps([RECORD, RECORD], indent=1),
        "table": f"question\tanswer\n{ASKED}\t{REPLY}\n{ASKED}\t{REPLY}\n",
        "bank": json.dumps(
            {
                "Ann": {
                    "history": {
                        f"2024-01-0{n}": [{"query": ASKED, "response": REPLY}] for n in (1, 2)
                    }
                }
            }
        ),
    }
    marked = (
        codecs.BOM_UTF16_BE + texts[form].encode(encoding)
        if encoding == "utf-16-be"
        else texts[form].encode(encoding)
    )
    path.write_bytes(marked)
    name = {"table": "question_answers", "bank": "memory_bank"}.get(form, "messages")
    items = read_file(path, name)
    assert [item.content.messages for item in items if isinstance(item.content, RawDialogue)] == [
        TURNS,
        TURNS,
    ]


def test_windows_1252_is_read_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The advice was to convert it from GB18030, which makes an English file unreadable."""
    asked, reply = (
        "I can’t sleep – again. Zoë’s café…",
        "That’s “hard”. Which part – the naïve one?",
    )
    record = {
        "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": reply}]
    }
    text = json.dumps(record, ensure_ascii=False)
    (tmp_path / "a.jsonl").write_bytes(text.encode("cp1252"))
    place = gather(tmp_path, path="a.jsonl")
    (kept,) = place.stage("gather").records()
    assert [turn["content"] for turn in kept["messages"]] == [asked, reply]
    assert "a.jsonl is read as Windows-1252 (CP1252), as it is not UTF-8" in capsys.readouterr().err
    # A file that mixes encodings, and one of a few characters, are not guessed at; the owner can say what they are.
    (tmp_path / "a.jsonl").write_bytes(text.encode("cp1252") + b"\n" + text.encode() + b"\n")
    assert [
        getattr(item.content, "reason", "read") for item in read_file(tmp_path / "a.jsonl")
    ] == ["encoding", "read"]
    chinese = {
        "messages": [
            {"role": "user", "content": "你好"},
            {"role": "assistant", "content": "我在听。"},
        ]
    }
    (tmp_path / "a.jsonl").write_bytes(json.dumps(chinese, ensure_ascii=False).encode("gb18030"))
    refused = only(tmp_path / "a.jsonl")
    assert isinstance(refused, RefusedItem)
    assert refused.reason == "encoding"
    assert turns_of(tmp_path / "a.jsonl", encoding="gb18030")[1] == ("companion", "我在听。")


TEXTS = {
    "gb18030": ("地铁坐过了三站，因为我在看小说。", "什么小说这样好看？"),
    "big5": ("今天過得怎麼樣？我覺得很好。", "謝謝你，天氣不錯。"),
    "cp932": ("おはようございます。", "今日は良い天気ですね。"),
    "cp949": ("안녕하세요, 오늘 날씨가 좋네요.", "네, 정말 좋아요."),
    "cp1251": ("Привет, как дела?", "Всё хорошо, спасибо."),
    "cp1252": ("Das „ß“ klemmt, das „Ä“ auch.", "AÊÊÊ, que avó! Não é pão."),
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_encodings_of_older_programs_are_found_by_their_frequent_characters(
    tmp_path: Path, encoding: str
) -> None:
    asked, reply = TEXTS[encoding]
    record = {
        "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": reply}]
    }
    (tmp_path / "a.jsonl").write_bytes(json.dumps(record, ensure_ascii=False).encode(encoding))
    assert turns_of(tmp_path / "a.jsonl") == (("user", asked), ("companion", reply))


@pytest.mark.parametrize("write", [json.dumps, repr], ids=["JSON", "Python"])
def test_messages_in_a_cell_of_a_table_are_parsed(
    tmp_path: Path, write: Callable[[Any], str]
) -> None:
    cell = write(RECORD["messages"]).replace('"', '""')
    (tmp_path / "a.csv").write_text(f'id,messages\na,"{cell}"\nb,"[{{broken"\n', encoding="utf-8")
    first, second = (item.content for item in read_file(tmp_path / "a.csv"))
    assert isinstance(first, RawDialogue)
    assert (first.messages, first.raw_id) == (TURNS, "a")
    assert isinstance(second, RefusedItem)
    assert second.problem.startswith("the messages are text that is no JSON: Expecting")


def test_columns_name_the_keys_of_the_role_and_the_content(tmp_path: Path) -> None:
    """Records of LibreChat and LangChain were refused, with advice that changes nothing."""
    path = tmp_path / "a.jsonl"
    messages = [{"sender": "User", "mes": ASKED}, {"sender": "Joy", "mes": REPLY}]
    path.write_text(json.dumps({"messages": messages}), encoding="utf-8")
    refused = only(path)
    assert isinstance(refused, RefusedItem)
    assert "name it: columns = { role = KEY }" in refused.problem
    assert refused.names == ("sender", "mes")
    columns = {"role": "sender", "content": "mes"}
    assert turns_of(path, columns=columns, roles={"joy": "companion"}) == TURNS
    (item,) = read_file(path, columns=columns)
    assert isinstance(item.content, RefusedItem)
    assert (item.content.reason, item.content.names) == ("role", ("Joy",))


def test_each_refusal_says_why_and_names_are_not_among_the_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line said `broken {"line": 1}` whatever was wrong."""
    other = {"messages": [{"role": "Emily Stone", "content": "Hi"}]}
    lines = [json.dumps(RECORD), '{"messages": [', "7", json.dumps({"talk": []}), json.dumps(other)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines), encoding="utf-8")
    place = gather(tmp_path, path="a.jsonl")
    said = capsys.readouterr().err
    for line in (
        "first line 2, column 15: no JSON: Expecting value",
        "first line 3: the item is a number, not an object or a list of messages",
        "first line 4: the record has no key of messages (messages, dialog, dialogue, conversation, conversations)",
        "first line 5, message 1: an unknown role; say who it is",
        "the file has 'Emily Stone'",
        "the file has 'talk'",
    ):
        assert line in said
    rejected = list(place.stage("gather").records("rejected"))
    assert "Emily" not in json.dumps(rejected)
    assert (
        rejected[1]["evidence"]["problem"]
        == "the item is a number, not an object or a list of messages"
    )
    assert explain(place, "chat-000005")[0].details["names"] == ["Emily Stone"]
    # Where nothing is read, the error says it.
    (tmp_path / "a.jsonl").write_text(json.dumps({"talk": []}), encoding="utf-8")
    place.stage("gather").remove()
    with pytest.raises(DataError, match=r"no key of messages .* the file has 'talk'"):
        gather(tmp_path, path="a.jsonl")


THOUGHT = "<think>\nThe user is anxious.\n</think>\n\n"
BLOCK = {"type": "thinking", "thinking": "x", "signature": "y"}
REPLIES = {
    "tags": THOUGHT + REPLY,
    "a block": [BLOCK, {"type": "text", "text": REPLY}],
    "in the middle": f"{REPLY[:24]}<think>hm</think>{REPLY[24:]}",
}


@pytest.mark.parametrize("reply", REPLIES)
def test_what_a_model_thought_is_no_turn(tmp_path: Path, reply: str) -> None:
    messages = [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": REPLIES[reply]},
    ]
    (tmp_path / "a.jsonl").write_text(
        json.dumps({"messages": messages}) + "\n" + json.dumps(RECORD), encoding="utf-8"
    )
    place = gather(tmp_path, path="a.jsonl")
    first, second = place.stage("gather").records()
    assert [turn["content"] for turn in first["messages"]] == [ASKED, REPLY]
    assert first["messages"] == second["messages"]
    assert place.stage("gather").total().tags == {"reasoning": 1}


def test_reasoning_alone_is_no_reply_and_a_users_tag_is_text(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "<think>so</think> what?"},
        {"role": "assistant", "content": REPLY},
    ]
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    assert turns_of(tmp_path / "a.jsonl")[0] == ("user", "<think>so</think> what?")
    messages[1]["content"] = "<think>The user is"
    (tmp_path / "b.jsonl").write_text(
        "\n".join([json.dumps({"messages": messages}), json.dumps(RECORD)]), encoding="utf-8"
    )
    place = gather(tmp_path, path="b.jsonl")
    (rejected,) = place.stage("gather").records("rejected")
    assert (rejected["reason"], rejected["evidence"]["problem"]) == (
        "empty",
        "nothing but reasoning",
    )


def test_pages_of_sharegpt_are_text(tmp_path: Path) -> None:
    page = '<div class="markdown prose"><p>That sounds hard.</p><pre><button>Copy code</button><code>x &lt; 1</code>'
    page += "</pre></div>"
    turns = [
        {"from": "human", "value": "Is 1 &lt; 2, and I <3 you?"},
        {"from": "gpt", "value": page},
    ]
    (tmp_path / "a.jsonl").write_text(json.dumps({"conversations": turns}), encoding="utf-8")
    asked, replied = turns_of(tmp_path / "a.jsonl")
    assert asked == ("user", "Is 1 < 2, and I <3 you?")
    assert replied == ("companion", "That sounds hard.\n\nx < 1")
    # A talk about HTML is no page.
    turns = [
        {"from": "human", "value": "How do I write bold?"},
        {"from": "gpt", "value": "Put <b> and </b> around it."},
    ]
    (tmp_path / "a.jsonl").write_text(json.dumps({"conversations": turns}), encoding="utf-8")
    assert turns_of(tmp_path / "a.jsonl")[1] == ("companion", "Put <b> and </b> around it.")
