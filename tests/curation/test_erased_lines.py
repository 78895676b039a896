"""An erased chat is recognised in a later export in which some of its messages were edited, deleted or left out."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from h2htalk.curation.curate import curate
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl
from support.byte_search import files_with
from support.curations import THINGS, source
from support.kills import killed_at

SECRET = "the parrot Quetzalina"
# What many say, and what a program says to everybody.
COMMON = (
    ("Ann", "Good morning"),
    ("Luna", "Good morning! It is lovely to hear from you today. How did you sleep?"),
    ("Ann", "ok"),
)
Messages = list[tuple[str, str]]


def talk(day: int, speaker: str = "Ann") -> Messages:
    """Six messages of a day; on day 2 the third and the fourth have the secret."""
    rng = random.Random(f"{day} {speaker}")
    messages: Messages = []
    for turn in range(3):
        first, second = (" ".join(rng.sample(THINGS, 6)) for _ in range(2))
        subject = f"{SECRET}, {first}" if (day, turn, speaker) == (2, 1, "Ann") else first
        messages.append((speaker, f"Today I kept thinking of {subject}, and I cried."))
        messages.append(("Luna", f"Tell me more about {second}, please."))
    return messages


def lines_of(day: int, messages: Messages) -> list[str]:
    return [
        f"[{day:02}/03/2024, 21:{minute:02}:00] {speaker}: {text}"
        for minute, (speaker, text) in enumerate(messages)
    ]


def write(path: Path, *days: tuple[int, Messages]) -> None:
    lines = [line for day, messages in days for line in lines_of(day, messages)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def spec_of(folder: Path) -> Path:
    made = source("ann", "exports", "whatsapp", 'companion = "Luna"\ndate_order = "dmy"')
    (folder / "curate.toml").write_text(f'workspace = "work"\npart = 2\nprocesses = 1\n{made}')
    return folder / "curate.toml"


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    write(tmp_path / "exports/ann.txt", *((day, talk(day)) for day in range(1, 6)))
    curate(spec_of(tmp_path), ["gather"])
    return tmp_path / "curate.toml"


def ids(place: Workspace) -> list[str]:
    return [str(record["id"]) for record in place.stage("gather").records()]


def _edited(messages: Messages) -> Messages:
    speaker, text = messages[1]
    return [
        messages[0],
        (speaker, text.replace("please", "pleease <This message was edited>")),
        *messages[2:],
    ]


def _deleted_by_the_person(messages: Messages) -> Messages:
    return [("Ann", "This message was deleted"), *messages[1:]]


def _beginning_left_out(messages: Messages) -> Messages:
    return messages[1:]


def _half_deleted(messages: Messages) -> Messages:
    return messages[2:]


def _end_deleted(messages: Messages) -> Messages:
    return messages[:4]


def _all_of_the_user_but_one_edited(messages: Messages) -> Messages:
    edited = [(who, f"{text} Yes." if who == "Ann" else text) for who, text in messages]
    return [*edited[:2], messages[2], *edited[3:]]


def _within_a_longer_chat(messages: Messages) -> Messages:
    return [*talk(41), *messages[2:4], *talk(42), *talk(43)]


CHANGES: dict[str, Callable[[Messages], Messages]] = {
    "edited": _edited,
    "deleted by the person": _deleted_by_the_person,
    "beginning left out": _beginning_left_out,
    "half deleted": _half_deleted,
    "end deleted": _end_deleted,
    "all of the user's but one edited": _all_of_the_user_but_one_edited,
    "within a longer chat": _within_a_longer_chat,
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_export_brings_no_erased_chat_back(
    chat: Path, change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Workspace(chat.parent / "work")
    assert files_with(place.path, SECRET) != []
    erase(place, "ann-000002")
    days = [(day, CHANGES[change](talk(day)) if day == 2 else talk(day)) for day in range(1, 8)]
    write(chat.parent / "exports/ann.txt", *days)
    capsys.readouterr()
    place = curate(chat, ["gather"], update=True)
    message = "4 items were gathered before; 2 are new; 1 is erased, and left out"
    errors = capsys.readouterr().err
    assert message in errors
    # Where it stands, as it is left out by its lines alone.
    assert "gather: source 'ann': left out by lines that an erased dialogue has: ann.txt:" in errors
    assert ids(place) == [f"ann-00000{n}" for n in (1, 3, 4, 5, 6, 7)]
    assert files_with(place.path, "Quetzalina") == []
    # Nor does a run that reads everything again.
    place = curate(chat, ["gather"], from_stage="gather")
    assert len(ids(place)) == 6
    assert files_with(place.path, "Quetzalina") == []


def test_what_is_said_by_many_identifies_nobody(tmp_path: Path) -> None:
    """In the erased chat and in those of others, none of whom was gathered before."""
    (tmp_path / "exports").mkdir()
    write(tmp_path / "exports/ann.txt", (1, talk(1)), (2, [*COMMON, *talk(2)]))
    curate(spec_of(tmp_path), ["gather"])
    place = Workspace(tmp_path / "work")
    erase(place, "ann-000002")
    for name in ("Ben", "Cleo"):
        common = [(name if who == "Ann" else who, text) for who, text in COMMON]
        own_words = (
            talk(9, name)
            if name == "Ben"
            else [(name, "The bus is late."), ("Luna", "Take a book along.")]
        )
        write(
            tmp_path / f"exports/{name}.txt",
            (1, [*common, *own_words]),
            (3, [*own_words[:2], *common]),
        )
    write(
        tmp_path / "exports/ann.txt",
        (1, talk(1)),
        (4, [*COMMON, *talk(4)]),
        (6, [*COMMON, ("Ann", "Bye")]),
    )
    place = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert len(ids(place)) == 1 + 4 + 2
    assert files_with(place.path, "Quetzalina") == []


def test_a_greeting_that_recurs_in_one_chat_leaves_out_no_later_day(tmp_path: Path) -> None:
    """An application pastes it since the day that was erased."""
    greeting = (
        "Ann",
        "Your daily card: breathe, smile, and tell somebody what you are grateful for",
    )
    (tmp_path / "exports").mkdir()
    write(tmp_path / "exports/ann.txt", (1, talk(1)), (2, [greeting, *talk(2)]))
    curate(spec_of(tmp_path), ["gather"])
    workspace = Workspace(tmp_path / "work")
    erase(workspace, "ann-000002")
    days = [(day, [greeting, *talk(day)]) for day in range(2, 5)]
    write(tmp_path / "exports/ann.txt", (1, talk(1)), *days)
    workspace = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert ids(workspace) == ["ann-000001", "ann-000003", "ann-000004"]
    workspace = curate(tmp_path / "curate.toml", ["gather"], from_stage="gather")
    assert len(ids(workspace)) == 3
    assert files_with(workspace.path, "Quetzalina") == []


def test_a_line_that_a_dialogue_has_that_stays_identifies_nobody(tmp_path: Path) -> None:
    prayer = "Give me the calm to bear what I cannot change, and the strength for everything else."
    (tmp_path / "exports").mkdir()
    write(
        tmp_path / "exports/ann.txt",
        (1, [("Ann", prayer), *talk(1)]),
        (2, [("Ann", prayer), *talk(2)]),
    )
    curate(spec_of(tmp_path), ["gather"])
    place = Workspace(tmp_path / "work")
    erase(place, "ann-000002")
    days = [(1, [("Ann", prayer), *talk(1)]), (2, talk(2)[1:]), (3, [("Ann", prayer), *talk(3)])]
    write(tmp_path / "exports/ann.txt", *days)
    place = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert ids(place) == ["ann-000001", "ann-000003"]
    assert files_with(place.path, "Quetzalina") == []


SHORT = [
    ("Ann", "my mum died"), ("Luna", "I am so sorry. Where are you now?"), ("Ann", "at the mill"), ("Luna", "Alone?"),
    ("Ann", "with Quetzalina"), ("Luna", "That is good to hear, stay with her."), ("Ann", "idk what now"),
    ("Luna", "Shall we think of tomorrow?"), ("Ann", "not yet"), ("Luna", "Then not yet."),
]  # fmt: skip
CHINESE = [
    ("Ann", "昨天晚上我又梦见了外婆和鹦鹉Quetzalina。"), ("Luna", "听起来你很想念她们，是吗？"),
    ("Ann", "是的，醒来以后我一直在哭。"), ("Luna", "那一定很难受，我在这里陪着你。"),
]  # fmt: skip
CHINESE_OF_OTHERS = [
    ("Ann", "早上好"), ("Luna", "早上好！昨晚睡得好吗？"), ("Ann", "还好"), ("Luna", "今天有什么打算呢？"),
    ("Ann", "下午去公园跑步，晚上和弟弟一起做饺子。"), ("Luna", "饺子要包什么馅？"),
]  # fmt: skip


@pytest.mark.parametrize("messages", [SHORT, CHINESE], ids=["short", "chinese"])
@pytest.mark.parametrize("first", [1, 2])
def test_short_messages_identify_together(tmp_path: Path, messages: Messages, first: int) -> None:
    greeting = CHINESE_OF_OTHERS[:4]
    (tmp_path / "exports").mkdir()
    write(tmp_path / "exports/ann.txt", (1, talk(1)), (2, [*greeting, *messages]))
    curate(spec_of(tmp_path), ["gather"])
    place = Workspace(tmp_path / "work")
    erase(place, "ann-000002")
    write(tmp_path / "exports/ann.txt", (1, talk(1)), (2, messages[first:]), (4, CHINESE_OF_OTHERS))
    place = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert ids(place) == ["ann-000001", "ann-000003"]
    assert files_with(place.path, "Quetzalina") == []
    assert files_with(place.path, "饺子") != []


def _records(*dialogues: Messages) -> str:
    roles = {"Luna": "assistant"}
    records = [
        {"messages": [{"role": roles.get(who, "user"), "content": text} for who, text in messages]}
        for messages in dialogues
    ]
    return "".join(json.dumps(record) + "\n" for record in records)


def test_records_without_ids(tmp_path: Path) -> None:
    """They hold many people's dialogues, to whom the companion said the same."""
    path = tmp_path / "raw.jsonl"
    path.write_text(_records(talk(1), talk(2), talk(3)))
    made = source("r", "raw.jsonl")
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\nprocesses = 1\n{made}')
    place = curate(tmp_path / "curate.toml", ["gather"])
    erase(place, "r-000002")
    of_another = [
        said if said[0] == "Luna" else ("Ann", f"The {thing} of my aunt.")
        for said, thing in zip(talk(2), THINGS, strict=False)
    ]
    path.write_text(_records(talk(1), _edited(talk(2))[2:], talk(3), of_another))
    place = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert ids(place) == ["r-000001", "r-000003", "r-000004"]
    assert files_with(place.path, "Quetzalina") == []
    assert files_with(place.path, "of my aunt") != []


OPENER = "Hello, I would like to talk about how I feel today"
SONG = "And in the quiet of the evening I remember every star above the sea"
REPLIES = ("I feel anxious today", "Yes, show me the exercise")


@pytest.mark.parametrize(
    "openers", [(OPENER,), (SONG,), REPLIES], ids=["template", "song", "buttons"]
)
@pytest.mark.parametrize("form", ["messages", "turns"])
def test_what_many_conversations_begin_with_leaves_none_of_them_out(
    tmp_path: Path, openers: tuple[str, ...], form: str
) -> None:
    """An opener of the app, in the erased conversation alone when it was erased, took all later ones with it."""

    def conversation(text: str) -> Messages:
        messages: Messages = []
        for opener in openers:
            messages += [("Ann", opener), ("Luna", "Of course, go on.")]
        return [*messages, ("Ann", text), ("Luna", "I hear you, thank you.")]

    def write_conversations(*conversations: Messages) -> None:
        if form == "messages":
            path.write_text(_records(*conversations))
            return
        rows = []
        for number, messages in enumerate(conversations):
            for minute, (speaker, text) in enumerate(messages):
                time = f"2024-03-{number + 1:02} 10:{minute:02}"
                rows.append(
                    {"conversation": number, "speaker": speaker, "text": text, "time": time}
                )
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    path = tmp_path / "raw.jsonl"
    erased = conversation(f"Since Monday I have missed {SECRET}.")
    write_conversations(talk(1), erased)
    settings = 'companion = "Luna"' if form == "turns" else ""
    table = source("r", "raw.jsonl", form, settings)
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\nprocesses = 1\n{table}')
    workspace = curate(tmp_path / "curate.toml", ["gather"])
    erase(workspace, "r-000002")
    later = [
        conversation(f"My exam in {subject} went badly, and mum is cross.")
        for subject in THINGS[:4]
    ]
    write_conversations(talk(1), erased, *later)
    workspace = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert len(ids(workspace)) == 1 + len(later)
    assert files_with(workspace.path, "Quetzalina") == []


@pytest.mark.parametrize("remaining", [4, 5, 6])
def test_the_beginning_of_an_erased_chat_alone_stays_erased(tmp_path: Path, remaining: int) -> None:
    """Its lines are short, and nobody else has any of them."""
    (tmp_path / "exports").mkdir()
    write(tmp_path / "exports/ann.txt", (1, talk(1)), (2, SHORT))
    curate(spec_of(tmp_path), ["gather"])
    erase(Workspace(tmp_path / "work"), "ann-000002")
    write(tmp_path / "exports/ann.txt", (1, talk(1)), (2, SHORT[:remaining]))
    workspace = curate(tmp_path / "curate.toml", ["gather"], update=True)
    assert ids(workspace) == ["ann-000001"]


def test_an_update_that_is_killed_brings_no_erased_chat_back(chat: Path) -> None:
    place = Workspace(chat.parent / "work")
    erase(place, "ann-000002")
    days = [(day, talk(day)[1:] if day == 2 else talk(day)) for day in range(1, 8)]
    write(chat.parent / "exports/ann.txt", *days)
    kills = 0
    for step in range(2, 60, 9):
        kills += killed_at(step, lambda: curate(chat, ["gather"], update=True))
        assert files_with(place.path, "Quetzalina") == []
    assert kills > 2
    place = curate(chat, ["gather"], update=True)
    assert ids(place) == [f"ann-00000{n}" for n in (1, 3, 4, 5, 6, 7)]


def test_a_tombstone_of_an_earlier_version_knows_the_whole_and_the_beginning(chat: Path) -> None:
    place = Workspace(chat.parent / "work")
    erase(place, "ann-000002")
    lines = [record for _, record in read_jsonl(place.tombstones_path)]
    assert len(lines[0].pop("lines")) == 6
    place.tombstones_path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    days = [(day, [*talk(day), *talk(50)] if day == 2 else talk(day)) for day in range(1, 8)]
    write(chat.parent / "exports/ann.txt", *days)
    place = curate(chat, ["gather"], update=True)
    assert ids(place) == [f"ann-00000{n}" for n in (1, 3, 4, 5, 6, 7)]
    assert files_with(place.path, "Quetzalina") == []


def test_purge_removes_the_marks_of_lines(chat: Path) -> None:
    curate(chat, ["gather", "anonymize", "safety", "dedup"])
    place = Workspace(chat.parent / "work")
    erase(place, "ann-000002")
    curate(chat, ["gather", "anonymize", "safety", "dedup"])
    purge(place)
    assert ["lines" in record for _, record in read_jsonl(place.tombstones_path)] == [False]
    assert place.erased() == {"ann-000002"}
