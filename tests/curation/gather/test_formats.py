"""What a source may be, what every raw format becomes, and what is refused for which reason."""

from __future__ import annotations

import contextlib
import gzip
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.gather.formats import (
    LONGEST_MESSAGE,
    READERS,
    RawDialogue,
    RefusedItem,
    breaks_off,
    clean,
)
from h2htalk.curation.gather.records import json_members
from h2htalk.curation.gather.source_files import Item, plan_source
from h2htalk.curation.stages import Source
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Role, Turn
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.parsing.html_text import plain_text
from support.tables import table


def read_file(
    path: str | Path, form: str = "messages", name_keys: tuple[str, ...] = (), **more: Any
) -> list[Item]:
    """The items of a source of one file or folder."""
    plan = plan_source(Source("s", str(path), form, "en", "CC0-1.0", **more), Path("/"))
    return list(replace(plan, name_keys=name_keys).items(lambda size: None))


TWO = (("user", "Hi"), ("companion", "Hello"))


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_what_a_record_holds() -> None:
    for user, companion in (
        ("user", "assistant"),
        ("seeker", "supporter"),
        ("Human", " AI "),
        ("来访者", "咨询师"),
    ):
        found = READERS["messages"](
            {"id": 7, "messages": [message(user, "Hi"), message(companion, "Hello")]}
        )
        assert (found.messages, found.raw_id) == (TWO, "7")
    parts = [{"type": "text", "text": "Hello"}, {"type": "output_text", "text": "there"}]
    said = [message("system", "Be Nora."), message("user", "Hi"), message("assistant", parts)]
    found = READERS["messages"]({"user_id": 12, "messages": said})
    assert found.messages == (("user", "Hi"), ("companion", "Hello\nthere"))
    assert (found.person, found.metadata) == ("12", {"system": "Be Nora."})
    turns = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]
    found = READERS["messages"]({"id": "a", "system": "Be Ren.", "conversations": turns})
    assert (found.messages, found.raw_id, found.metadata) == (TWO, "a", {"system": "Be Ren."})
    exchanges = [
        {"system": "Be Aiwei.", "input": "Hi", "output": "Hello"},
        {"input": "Bye", "output": "Bye."},
    ]
    found = READERS["messages"]({"conversation": exchanges})
    assert found.messages == (*TWO, ("user", "Bye"), ("companion", "Bye."))
    assert found.metadata == {"system": "Be Aiwei."}
    # The package's own records keep known metadata.
    turns = (Turn("user", "Hi"), Turn("companion", "Hello"))
    metadata = {
        "emotion": "joy",
        "interaction": "casual",
        "home": "12 Elm St",
        "date": "2024-01-01",
    }
    record = Dialogue("d-1", "en", turns, {"person": "Ann"}, "CC0-1.0", metadata).to_dict()
    found = READERS["dialogues"](record)
    assert found.metadata == {"emotion": "joy", "interaction": "casual", "date": "2024-01-01"}
    assert (found.raw_id, found.person, found.language, found.licence) == (
        "d-1",
        "Ann",
        "en",
        "CC0-1.0",
    )
    for wrong, expected in table("curation", "wrong_messages"):
        with pytest.raises(RefusedItem, match=expected):
            READERS["messages"]({"messages": [message("user", "Hi"), *wrong] if wrong else wrong})


HEADER = "questionID,questionTitle,questionText,topic,answerText,upvotes\n"


def rows(tmp_path: Path, text: str | bytes) -> list[Item]:
    path = tmp_path / "raw.csv"
    path.write_bytes(HEADER.encode() + (text if isinstance(text, bytes) else text.encode()))
    return read_file(path, "question_answers")


def test_rows_of_questions_and_answers(tmp_path: Path) -> None:
    text = '9,Why?,"I wonder,\nwhy?",t,"<p>Because&nbsp;&amp; so.</p><p>Truly</p>",1\n9,Why?,I wonder,t,No idea <3,0\n'
    items = rows(tmp_path, text)
    first, second = (item.content for item in items)
    assert isinstance(first, RawDialogue)
    assert isinstance(second, RawDialogue)
    assert first.messages == (
        ("user", "Why?\nI wonder,\nwhy?"),
        ("companion", "Because\xa0& so.\n\nTruly"),
    )
    assert second.messages[1] == ("companion", "No idea <3")
    assert first.question == second.question == "9"
    assert [item.line for item in items] == [2, 4]
    # A row of another length is refused.
    items = rows(tmp_path, "1,a,b\n2,T,Text,t,Answer,0\n3,T,Text,t,Answer,0,more\n")
    assert [isinstance(item.content, RefusedItem) for item in items] == [True, False, True]
    # A row that is not UTF-8, in a file that is otherwise, is refused, and one of two megabytes read.
    long = b'2,T,"' + b"x" * 2_000_000 + b'",t,Answer,0\n'
    first, second = (
        item.content for item in rows(tmp_path, b"1,T,<p>caf\xe9</p>,t,\xc3\xa9,0\n" + long)
    )
    assert isinstance(first, RawDialogue)
    assert isinstance(second, RawDialogue)
    with pytest.raises(RefusedItem, match="encoding"):
        clean(first, "en")
    # An unclosed quotation mark is an error with its line.
    with pytest.raises(DataError, match=r"broken CSV, from line 3 on"):
        rows(tmp_path, '1,T,Text,t,Answer,0\n2,T,"Text,t,Answer,0\n3,T,Text,t,A,0\n')


def test_each_day_of_each_user_is_a_dialogue(tmp_path: Path) -> None:
    day = [{"query": "Hi", "response": "Hello"}]
    dated = dict.fromkeys(
        ("2023-04-27", "2023/5/1", "2023年4月7日", "2023.04.08", "some day", "2023-13-01"), day
    )
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
    refused = [
        (item.row, item.content.reason) for item in items if isinstance(item.content, RefusedItem)
    ]
    assert refused == [(7, "broken"), (8, "empty"), (9, "broken"), (10, "empty")]


KEYS = [
    "messages",
    "role",
    "content",
    "input",
    "output",
    "system",
    "type",
    "text",
    "question",
    "answer",
]
KEYS += ["person", "licence", "language", "provenance", "metadata", "conversations", "id"]
RECORDS = st.recursive(
    st.none() | st.integers() | st.sampled_from(["user", "assistant", "system", "Hi"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("form", ["messages", "dialogues", "question_answers"])
@given(record=RECORDS)
def test_any_json_is_read_or_refused(form: str, record: Any) -> None:
    """A list as a record of ours ended the run."""
    with contextlib.suppress(RefusedItem):
        assert isinstance(READERS[form](record), RawDialogue)


COMMIT = "0123456789" * 4


def record(number: int) -> dict[str, Any]:
    said = [("user", f"I cannot sleep, night {number}"), ("assistant", "That sounds hard.")]
    return {
        "id": f"r{number}",
        "messages": [{"role": role, "content": text} for role, text in said],
    }


def jsonl(numbers: range) -> bytes:
    return "".join(json.dumps(record(n)) + "\n" for n in numbers).encode()


def items_of(path: str | Path, form: str = "messages", **more: Any) -> list[tuple[str, str, str]]:
    """Id, file, and the first message or the reason of each item."""
    found = []
    for item in read_file(path, form, **more):
        content = item.content
        said = content.messages[0][1] if isinstance(content, RawDialogue) else content.reason
        found.append((f"s-{item.row:06}", item.file, said))
    return found


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst", "a.json.gz"])
def test_compressed_files_are_read_as_they_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = jsonl(range(1, 4))
    with (
        gzip.open(path, "wb")
        if name.endswith("gz")
        else pa.CompressedOutputStream(str(path), "zstd") as file
    ):
        file.write(
            json.dumps([record(n) for n in (1, 2, 3)]).encode() if ".json." in name else content
        )
    (tmp_path / "plain.jsonl").write_bytes(content)
    assert items_of(path) == items_of(tmp_path / "plain.jsonl")
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(DataError, match="cannot be read"):
        items_of(path)


def test_a_folder_and_a_pattern_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a.jsonl").write_bytes(jsonl(range(1, 3)))
    (tmp_path / "b" / "c.jsonl").write_bytes(jsonl(range(3, 5)))
    (tmp_path / ".hidden").write_bytes(b"no")
    items = items_of(tmp_path)
    assert [(item[-1], file, said[-1]) for item, file, said in items] == [
        *((n, "a.jsonl", n) for n in "12"),
        *((n, "b/c.jsonl", n) for n in "34"),
    ]
    assert items_of(tmp_path / "*.jsonl") == items[:2]
    assert items_of(tmp_path, limit=3) == items[:3]
    with pytest.raises(ConfigError, match="no such file"):
        items_of(tmp_path / "*.csv")
    with pytest.raises(ConfigError, match=r"\$NO_SUCH is not set; set it to the folder"):
        items_of(Path("$NO_SUCH/a.jsonl"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="the folder holds no file to read"):
        items_of(tmp_path / "empty")


def test_parquet_rows_are_records_and_question_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([record(1), record(2)]), path)
    assert [said for _, _, said in items_of(path)] == [
        "I cannot sleep, night 1",
        "I cannot sleep, night 2",
    ]
    pq.write_table(pa.table({"question": ["Why?", None], "answer": ["So.", "No."]}), path)
    assert [said for _, _, said in items_of(path, "question_answers")] == ["Why?", ""]
    pq.write_table(pa.table({"a": ["b"]}), path)
    assert [said for _, _, said in items_of(path, "question_answers")] == ["broken"]
    with pytest.raises(ConfigError, match="not from a table"):
        items_of(path, "memory_bank")
    path.write_bytes(b"no parquet at all")
    with pytest.raises(DataError, match="cannot be read"):
        items_of(path)


def test_a_saved_data_set_is_read_by_its_split(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the release extra is not installed")
    rows = datasets.Dataset.from_list([record(n) for n in (1, 2)])
    rows.save_to_disk(tmp_path / "one")
    assert len(items_of(tmp_path / "one")) == 2
    datasets.DatasetDict({"train": rows, "test": rows.select([1])}).save_to_disk(tmp_path / "two")
    assert [said for _, _, said in items_of(f"{tmp_path}/two#test")] == ["I cannot sleep, night 2"]
    with pytest.raises(ConfigError, match="#SPLIT: test, train"):
        items_of(tmp_path / "two")


def test_a_data_set_of_the_hub_needs_its_commit() -> None:
    with pytest.raises(ConfigError, match="40 digits"):
        items_of("hub:owner/name@main")
    plan = plan_source(
        Source("s", f"hub:owner/name@{COMMIT}:en#train", "messages", "en", "MIT"), Path("/")
    )
    assert plan.to_settings()["sha256"] == f"hub:owner/name@{COMMIT}:en#train"


def test_names_of_roles_can_be_given(tmp_path: Path) -> None:
    messages = [{"role": "Ratsuchender", "content": "Hallo"}, {"role": "tool", "content": "Hi"}]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"messages": messages}) + "\n")
    assert items_of(path)[0][2] == "role"
    assert items_of(path, roles={"ratsuchender": "user", "tool": "companion"})[0][2] == "Hallo"
    with pytest.raises(ConfigError, match="names no roles"):
        items_of(path, "question_answers", roles={"a": "user"})


def test_columns_map_keys_of_records(tmp_path: Path) -> None:
    """A file with other keys had to be rewritten."""
    path = tmp_path / "a.csv"
    path.write_text("Frage,Antwort,Klientin\nWarum?,Darum.,Ann\n")
    assert items_of(path, "question_answers")[0][2] == "broken"
    columns = {"question": "Frage", "answer": "Antwort", "person": "Klientin"}
    (item,) = read_file(path, "question_answers", columns=columns)
    assert isinstance(item.content, RawDialogue)
    assert (item.content.messages[0], item.content.person) == (("user", "Warum?"), "Ann")
    for typo, message in (
        ("Klient", "no record has Klient; did you mean 'Klientin'"),
        ("", "first record has Frage"),
    ):
        with pytest.raises(ConfigError, match=message):
            read_file(path, "question_answers", columns={**columns, "person": typo})
    for form, name in (
        ("memory_bank", "question"),
        ("messages", "question"),
        ("dialogues", "person"),
    ):
        with pytest.raises(ConfigError, match=f"columns: the format {form} reads no {name}"):
            read_file(path, form, columns={name: "Frage"})
    path.write_text("Frage,Antwort,Frage,,\nWarum?,Darum.,Ann,,\n")
    with pytest.raises(DataError, match="Frage is the name of several columns"):
        read_file(path, "question_answers")


GOOD = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}


def reasons(items: list[Item]) -> list[str]:
    return [
        item.content.reason if isinstance(item.content, RefusedItem) else "read" for item in items
    ]


def test_a_broken_or_too_long_line_is_refused_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = json.dumps(GOOD).encode()
    deep = b"[" * 100_000
    lines = [good, b'{"messages": [', good + b" 1", b"", b"7", b"\xff" + good, deep, good]
    path = tmp_path / "raw.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
    items = read_file(path)
    assert reasons(items) == ["read", "broken", "broken", "broken", "encoding", "broken", "read"]
    assert [item.row for item in items] == [1, 2, 3, 5, 6, 7, 8]
    assert [item.line for item in items] == [item.row for item in items]
    monkeypatch.setattr("h2htalk.curation.gather.records.MAX_LINE", 200)
    path.write_bytes(jsonl(range(1, 2)) + b'"' + b"x" * 900 + b'"\n' + jsonl(range(2, 3)))
    assert [said for _, _, said in items_of(path)] == [
        "I cannot sleep, night 1",
        "too_long",
        "I cannot sleep, night 2",
    ]


@pytest.mark.parametrize(("names", "kept"), table("curation", "names_of_users"))
def test_names_of_the_user_are_kept_for_anonymize(
    tmp_path: Path, names: dict[str, Any], kept: dict[str, Any]
) -> None:
    (tmp_path / "raw.jsonl").write_text(json.dumps(GOOD | names))
    (item,) = read_file(tmp_path / "raw.jsonl", name_keys=("patient",))
    assert isinstance(item.content, RawDialogue)
    assert clean(item.content, "en").metadata == kept


def test_a_number_of_thousands_of_digits_and_nan_break_no_item(tmp_path: Path) -> None:
    """In an array it ended the process."""
    text = json.dumps(GOOD)[:-1] + ', "n": ' + "9" * 5000 + ', "m": NaN}'
    for n, content in enumerate((f"{text}\n", f"[{text}]")):
        (tmp_path / f"{n}.jsonl").write_text(content, encoding="utf-8")
        assert reasons(read_file(tmp_path / f"{n}.jsonl")) == ["read"]


def test_a_broken_array_or_one_that_is_nested_too_deeply_is_an_error_that_names_the_file(
    tmp_path: Path,
) -> None:
    """A nested one took gigabytes."""
    for form, start in (("messages", "["), ("memory_bank", '{"a":')):
        (tmp_path / "raw.json").write_text(start + "[" * 100_000)
        with pytest.raises(DataError, match="nested too deeply"):
            read_file(tmp_path / "raw.json", form)
    for text in (
        '[{"a": 1}, {"a": }]',
        '[{"a": 1}, {"a": "x',
        '[{"a": 1}',
        "[{}, 1 2]",
        "[{}] 1",
        "[{},]",
    ):
        (tmp_path / "raw.json").write_text(text)
        with pytest.raises(
            DataError, match=r"raw\.json: broken JSON after item [012]: .*cannot be counted"
        ):
            read_file(tmp_path / "raw.json")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcd", max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


MEMBERS = st.lists(st.tuples(st.text("abcd", max_size=5), JSON), max_size=6)


@given(members=MEMBERS, indent=st.sampled_from([None, 1]), chunk=st.sampled_from([1, 7, 1 << 20]))
def test_objects_and_arrays_are_read_as_by_json(
    tmp_path_factory: pytest.TempPathFactory,
    members: list[tuple[str, Any]],
    indent: int | None,
    chunk: int,
) -> None:
    """Wherever the text is cut; two users of one name are both items_of."""
    path = tmp_path_factory.mktemp("json") / "raw.json"
    texts = [
        f"{json.dumps(key)}: {json.dumps(value, indent=indent, ensure_ascii=False)}"
        for key, value in members
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("h2htalk.curation.gather.records._CHUNK", chunk)
        path.write_text(" \n{" + " ,".join(texts) + "} ", encoding="utf-8-sig")
        assert list(json_members(path, lambda size: None)) == members
        path.write_text(
            json.dumps([value for _, value in members], indent=indent), encoding="utf-8"
        )
        assert list(json_members(path, lambda size: None)) == [("", value) for _, value in members]


USER, COMPANION = "user", "companion"


def raw(*messages: tuple[Role, str]) -> RawDialogue:
    return RawDialogue(messages)


def refused(dialogue: RawDialogue) -> tuple[str, dict[str, int]]:
    with pytest.raises(RefusedItem) as caught:
        clean(dialogue, "en")
    return caught.value.reason, caught.value.evidence


def test_refused_conversations() -> None:
    for reply, reason in (
        *((reply, "empty") for reply in (" \n ", "\u202e\u2066")),
        ("Hel\x00lo", "control"),
        ("Hello \ud83d", "encoding"),
        ("I know, and the", "truncated"),
    ):
        assert refused(raw((USER, "Hi"), (COMPANION, reply)))[0] == reason
    assert (refused(raw())[0], refused(raw((USER, "Hi"), (USER, "Anyone?")))[0]) == (
        "empty",
        "one_speaker",
    )


@pytest.mark.parametrize(
    ("said", "last", "is_cut"),
    [
        # A word that ends no sentence, whoever writes.
        ((), "i went back and the", True),
        (("no marks here",), "i stayed because", True),
        # One that seldom ends a sentence: only of a speaker who closes sentences with a mark.
        (("That sounds hard.",), "You could try to", True),
        (("That sounds hard.", "I see.", "Yes!", "Of course."), "Maybe you can talk with", True),
        ((), "That sounds hard. You could try to", True),
        (("that sounds hard", "i see"), "you could try to", False),
        ((), "you could try to", False),
        (("That sounds hard.",), "Tell me what you are afraid of.", False),
        # A comma.
        (("That sounds hard.",), "If you like,", True),
        (("that sounds hard",), "if you like,", False),
    ],
)
def test_a_last_message_is_cut_as_the_page_says(
    said: tuple[str, ...], last: str, is_cut: bool
) -> None:
    turns = [turn for text in said for turn in ((COMPANION, text), (USER, "Hm."))]
    dialogue = raw((USER, "Hi."), *turns, (COMPANION, last))
    if is_cut:
        assert refused(dialogue)[0] == "truncated"
    else:
        assert clean(dialogue, "en").messages[-1].content == last


def test_long_joined_and_open_messages() -> None:
    assert (
        clean(raw((USER, "x" * LONGEST_MESSAGE), (COMPANION, "Hello")), "en").messages[1].content
        == "Hello"
    )
    half = "x" * (LONGEST_MESSAGE // 2)
    assert refused(raw((USER, half), (USER, half), (COMPANION, "Hello")))[0] == "too_long"
    two_megabytes = raw((USER, "x" * 2_000_000), (COMPANION, "Hello"))
    assert refused(two_megabytes) == ("too_long", {"message": 1, "characters": 2_000_000})
    # Messages in a row become one, and control characters are removed and counted.
    found = clean(
        raw((USER, "Hi "), (USER, "a\u202eb\u2066c\r\nd\re\x1b[2Jf"), (COMPANION, "Hello.\u200f")),
        "en",
    )
    assert found.messages == (Turn("user", "Hi\nabc\nd\ne [2Jf"), Turn("companion", "Hello."))
    assert found.removed == {"control": 1, "direction": 3}
    # Zero-width characters stay for anonymize.
    assert (
        clean(raw((USER, "1\u200b3\u200d8"), (COMPANION, "Yes.")), "en").messages[0].content
        == "1\u200b3\u200d8"
    )
    # A speaker who never closes sentences.
    free = [
        Turn("user", "hey"),
        Turn("companion", "how are you"),
        Turn("user", "Bad."),
        Turn("companion", "oh no"),
    ]
    for text in ("that is what I was afraid of", "i know,"):
        assert not breaks_off([*free, Turn("user", "x."), Turn("companion", text)], "en")
    talk = [Turn("companion", "在的呀怎么了"), Turn("user", "我今天一个人去看了一场很好看的电影")]
    assert not breaks_off([Turn("user", "我想你了亲爱的朋友"), *talk], "zh")


BEFORE = {"en": "I see. Tell me more.", "zh": "我明白。说说看。"}


@pytest.mark.parametrize(("language", "text", "cut"), table("curation", "endings"))
def test_complete_and_incomplete_endings(language: Language, text: str, cut: bool) -> None:
    said = [
        (USER, BEFORE[language]),
        (COMPANION, BEFORE[language]),
        (USER, BEFORE[language]),
        (COMPANION, text),
    ]
    assert breaks_off([Turn(role, content) for role, content in said], language) == cut


def test_plain_text_of_html_and_of_hostile_html_in_linear_time() -> None:
    for text, plain in table("curation", "plain_text_of_html"):
        assert plain_text(text) == plain
    for piece in ("<", "<!--", "<script>", "&", "\n "):
        start = time.process_time()
        plain_text("<" + piece * (1_000_000 // len(piece)))
        assert time.process_time() - start < 3, piece
