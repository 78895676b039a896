"""Every raw format: what it becomes, and what is refused for which reason."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from gather_made import read_file
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.gather.formats import READERS, RawDialogue, RefusedItem, clean
from h2htalk.curation.gather.source_files import Item
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.errors import DataError

TWO = (("user", "Hi"), ("companion", "Hello"))


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    "roles", [("user", "assistant"), ("seeker", "supporter"), ("Human", " AI "), ("来访者", "咨询师")]
)
def test_roles_have_many_names(roles: tuple[str, str]) -> None:
    said = [message(role, text) for role, text in zip(roles, ("Hi", "Hello"), strict=True)]
    found = READERS["messages"]({"id": 7, "messages": said})
    assert (found.messages, found.raw_id) == (TWO, "7")


def test_a_record_has_a_person_a_system_prompt_and_content_in_parts() -> None:
    parts = [{"type": "text", "text": "Hello"}, {"type": "output_text", "text": "there"}]
    said = [message("system", "Be Nora."), message("user", "Hi"), message("assistant", parts)]
    found = READERS["messages"]({"user_id": 12, "messages": said})
    assert found.messages == (("user", "Hi"), ("companion", "Hello\nthere"))
    assert (found.person, found.metadata) == ("12", {"system": "Be Nora."})


def test_sharegpt_and_xtuner() -> None:
    turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    found = READERS["messages"]({"id": "a", "system": "Be Ren.", "conversations": turns})
    assert (found.messages, found.raw_id, found.metadata) == (TWO, "a", {"system": "Be Ren."})
    exchanges = [{"system": "Be Aiwei.", "input": "Hi", "output": "Hello"}, {"input": "Bye", "output": "Bye."}]
    found = READERS["messages"]({"conversation": exchanges})
    assert found.messages == (*TWO, ("user", "Bye"), ("companion", "Bye."))
    assert found.metadata == {"system": "Be Aiwei."}


SYSTEMS = [{"system": name, "input": "Hi", "output": "x"} for name in ("A", "B")]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([message("narrator", "He smiled.")], "role"),
        ([message("system", "Be rude.")], "role"),
        ([message("user", None)], "empty"),
        (["Hi"], "broken"),
        (None, "broken"),
        ([message("tool", "42")], "tool"),
        ([{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}], "tool"),
        ([{"role": "assistant", "content": "", "function_call": {"name": "f"}}], "tool"),
        ([message("user", [{"type": "tool_result", "content": "42"}])], "tool"),
        ([message("user", [{"type": "image_url", "image_url": {"url": "x"}}])], "not_text"),
        ([message("user", [3])], "broken"),
        # A kind that cannot be a key ended the whole run.
        ([message("user", [{"type": [], "text": "hi"}])], "broken"),
        ([{"input": "Hi"}], "empty"),
        (SYSTEMS, "role"),
    ],
)
def test_wrong_messages(messages: Any, expected: str) -> None:
    said = [message("user", "Hi"), *messages] if messages else messages
    with pytest.raises(RefusedItem, match=expected):
        READERS["messages"]({"messages": said})


HEADER = "questionID,questionTitle,questionText,topic,answerText,upvotes\n"


def rows(tmp_path: Path, text: str | bytes) -> list[Item]:
    path = tmp_path / "raw.csv"
    path.write_bytes(HEADER.encode() + (text if isinstance(text, bytes) else text.encode()))
    return read_file(path, "question_answers")


def test_each_answer_is_a_dialogue_linked_by_its_question(tmp_path: Path) -> None:
    text = '9,Why?,"I wonder,\nwhy?",t,"<p>Because&nbsp;&amp; so.</p><p>Truly</p>",1\n9,Why?,I wonder,t,No idea <3,0\n'
    items = rows(tmp_path, text)
    first, second = (item.content for item in items)
    assert isinstance(first, RawDialogue)
    assert isinstance(second, RawDialogue)
    assert first.messages == (("user", "Why?\nI wonder,\nwhy?"), ("companion", "Because\xa0& so.\n\nTruly"))
    assert second.messages[1] == ("companion", "No idea <3")
    assert first.question == second.question == "9"
    assert [item.line for item in items] == [2, 4]


def test_a_row_of_another_length_is_refused(tmp_path: Path) -> None:
    items = rows(tmp_path, "1,a,b\n2,T,Text,t,Answer,0\n3,T,Text,t,Answer,0,more\n")
    assert [isinstance(item.content, RefusedItem) for item in items] == [True, False, True]


def test_a_row_that_is_not_utf8_is_refused_and_one_of_two_megabytes_read(tmp_path: Path) -> None:
    long = b'2,T,"' + b"x" * 2_000_000 + b'",t,Answer,0\n'
    first, second = (item.content for item in rows(tmp_path, b"1,T,<p>caf\xe9</p>,t,Answer,0\n" + long))
    assert isinstance(first, RawDialogue)
    assert isinstance(second, RawDialogue)
    with pytest.raises(RefusedItem, match="encoding"):
        clean(first, "en")


def test_an_unclosed_quotation_mark_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"broken CSV, from line 3 on"):
        rows(tmp_path, '1,T,Text,t,Answer,0\n2,T,"Text,t,Answer,0\n3,T,Text,t,A,0\n')


def test_each_day_of_each_user_is_a_dialogue(tmp_path: Path) -> None:
    day = [{"query": "Hi", "response": "Hello"}]
    dated = dict.fromkeys(("2023-04-27", "2023/5/1", "2023年4月7日", "2023.04.08", "some day", "2023-13-01"), day)
    days = {**dated, "2023-05-02": 3}
    bank = {" Ann ": {"name": " Ann ", "history": days}, "Bo": {"history": {}}, "Di": "no user"}
    bank["Cy"] = {"history": {"2023-04-27": [{"query": "Hi"}]}}
    (tmp_path / "raw").write_text(json.dumps(bank, indent=1))
    items = read_file(tmp_path / "raw", "memory_bank")
    found = [item.content for item in items if isinstance(item.content, RawDialogue)]
    assert [raw.person for raw in found] == ["Ann"] * 6
    dates = ["2023-04-27", "2023-05-01", "2023-04-07", "2023-04-08", None, None]
    assert [raw.metadata.get("date") for raw in found] == dates
    assert found[4].tags == ("undated",)
    refused = [(item.row, item.content.reason) for item in items if isinstance(item.content, RefusedItem)]
    assert refused == [(7, "broken"), (8, "empty"), (9, "broken"), (10, "empty")]


def test_our_own_records_keep_known_metadata() -> None:
    turns = (Turn("user", "Hi"), Turn("companion", "Hello"))
    metadata = {"emotion": "joy", "interaction": "casual", "home": "12 Elm St", "date": "2024-01-01"}
    record = Dialogue("d-1", "en", turns, {"person": "Ann"}, "CC0-1.0", metadata).to_dict()
    found = READERS["dialogues"](record)
    assert found.metadata == {"emotion": "joy", "interaction": "casual", "date": "2024-01-01"}
    assert (found.raw_id, found.person, found.language, found.licence) == ("d-1", "Ann", "en", "CC0-1.0")


KEYS = ["messages", "role", "content", "input", "output", "system", "type", "text", "question", "answer"]
KEYS += ["person", "licence", "language", "provenance", "metadata", "conversations", "id"]
RECORDS = st.recursive(
    st.none() | st.integers() | st.sampled_from(["user", "assistant", "system", "Hi"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("form", ["messages", "dialogues", "question_answers"])
@given(record=RECORDS)
def test_any_json_is_read_or_refused(form: str, record: Any) -> None:
    """A list as a record of ours ended the run."""
    with contextlib.suppress(RefusedItem):
        assert isinstance(READERS[form](record), RawDialogue)
