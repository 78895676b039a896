"""`curate run --update` goes on after `curate erase`, whatever its owner did with the erased lines, and after kills."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from h2htalk.curation.curate import curate
from h2htalk.curation.erase import erase
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError
from support.byte_search import files_with
from support.command_line import h2htalk_here
from support.curations import THINGS, source
from support.kills import killed_at

SECRET = "a parrot called Vasco"


def line(number: int, person: str = "") -> str:
    words = f"{SECRET} {number}" if number == 2 else f"the {THINGS[number % 10]} of street {number}"
    rng = random.Random(number)
    scene, question = (" ".join(rng.sample(THINGS, 8)) for _ in range(2))
    record = {
        "id": f"raw{number}",
        "user_id": person or f"person{number}",
        "messages": [
            {"role": "user", "content": f"All week I have been thinking about {words}, {scene}."},
            {"role": "assistant", "content": f"What is it about {words}? Is it {question}?"},
        ],
    }
    return json.dumps(record) + "\n"


def write(path: Path, numbers: range | list[int]) -> None:
    path.write_text("".join(map(line, numbers)))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    write(tmp_path / "a.jsonl", range(1, 6))
    write(tmp_path / "b.jsonl", range(11, 14))
    sources = source("a", "a.jsonl") + source("b", "b.jsonl")
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\npart = 2\nprocesses = 1\n{sources}')
    curate(tmp_path / "curate.toml", ["gather"])
    return tmp_path / "curate.toml"


def ids(place: Workspace) -> list[str]:
    return [str(record["id"]) for record in place.stage("gather").records()]


def texts(place: Workspace) -> dict[str, str]:
    return {
        str(record["id"]): record["messages"][0]["content"]
        for record in place.stage("gather").records()
    }


def update(spec: Path, *stages: str) -> Workspace:
    return curate(spec, stages or ("gather",), update=True)


def _left(folder: Path) -> None:
    """The lines stay in the file."""


def _deleted(folder: Path) -> None:
    write(folder / "a.jsonl", [1, 3, 4, 5])


def _replaced(folder: Path) -> None:
    lines = (folder / "a.jsonl").read_text().splitlines(keepends=True)
    lines[1] = '{"erased": true}\n'
    (folder / "a.jsonl").write_text("".join(lines))


def _blank(folder: Path) -> None:
    lines = (folder / "a.jsonl").read_text().splitlines(keepends=True)
    lines[1] = "\n"
    (folder / "a.jsonl").write_text("".join(lines))


def _removed_file(folder: Path) -> None:
    (folder / "a.jsonl").unlink()


OWNER: dict[str, Callable[[Path], None]] = {
    "left": _left,
    "deleted": _deleted,
    "replaced": _replaced,
    "blank": _blank,
    "file removed": _removed_file,
}


@pytest.mark.parametrize("what", OWNER)
def test_an_update_goes_on_whatever_the_owner_did_with_the_erased_lines(
    spec: Path, what: str
) -> None:
    """Deleting the lines, as `erase` asks, locked the workspace: only --from-stage gather was left, with new ids."""
    place = Workspace(spec.parent / "work")
    before = texts(place)
    erased = erase(place, "raw2")
    assert erased.raw == ("a.jsonl:2",)
    OWNER[what](spec.parent)
    with (spec.parent / "b.jsonl").open("a") as file:
        file.write(line(14))
    place = update(spec)
    after = texts(place)
    assert {
        name: text for name, text in before.items() if name != "a-000002"
    }.items() <= after.items()
    assert [name for name in after if name not in before] == ["b-000004"]
    assert files_with(place.path, SECRET) == []
    assert ids(update(spec)) == ids(curate(spec, ["gather"])) == ids(place)
    # A second erasure, and a second update.
    erase(place, "raw12")
    write(spec.parent / "b.jsonl", [11, 13, 14, 15])
    place = update(spec)
    names = ids(place)
    assert [name for name in names if name.startswith("b-")] == [
        "b-000001",
        "b-000003",
        "b-000004",
        "b-000005",
    ]
    assert texts(place)["b-000005"] == json.loads(line(15))["messages"][0]["content"]
    assert place.erased() >= {"a-000002", "b-000002"}
    assert ids(update(spec)) == ids(curate(spec, ["gather"])) == names


def test_erased_and_new_lines_in_one_file(spec: Path) -> None:
    place = Workspace(spec.parent / "work")
    erase(place, "raw2")
    write(spec.parent / "a.jsonl", [7, 1, 3, 4, 5, 2, 6])
    place = update(spec)
    after = texts(place)
    assert set(after) == {
        *(f"a-00000{n}" for n in (1, 3, 4, 5, 6, 7)),
        *(f"b-00000{n}" for n in (1, 2, 3)),
    }
    assert "street 7, " in after["a-000006"]
    assert "street 6, " in after["a-000007"]
    assert files_with(place.path, SECRET) == []


def test_lines_of_others_may_be_new_by_the_same_person(spec: Path) -> None:
    """Our id of a person stays the same in a file whose lines count nothing any more."""
    place = Workspace(spec.parent / "work")
    erase(place, "a-000002")
    write(spec.parent / "a.jsonl", [1, 3, 4, 5])
    with (spec.parent / "a.jsonl").open("a") as file:
        file.write(line(8, "person3"))
    place = update(spec)
    persons = {
        str(record["id"]): record["provenance"]["person"]
        for record in place.stage("gather").records()
    }
    assert persons["a-000006"] == persons["a-000003"]


def test_without_an_erasure_a_changed_line_is_refused(spec: Path) -> None:
    write(spec.parent / "a.jsonl", [1, 3, 4, 5, 6])
    with pytest.raises(
        ConfigError, match=r"a\.jsonl has changed: 1 item that was gathered cannot be found in it"
    ):
        update(spec)
    with pytest.raises(
        ConfigError, match=r"to read what is new: --update; to read all files again"
    ):
        curate(spec, ["gather"])


def _owner_went_on(spec: Path) -> None:
    """Erased, deleted, and new lines in both sources."""
    erase(Workspace(spec.parent / "work"), "raw2")
    write(spec.parent / "a.jsonl", [1, 3, 4, 5, 6, 7, 8])
    write(spec.parent / "b.jsonl", [11, 12, 13, 14])


@pytest.mark.parametrize("goes_on_with", ["run", "update"])
def test_an_update_that_is_killed_goes_on_to_the_same_bytes(
    spec: Path, tmp_path: Path, goes_on_with: str
) -> None:
    _owner_went_on(spec)
    whole = tmp_path / "whole"
    shutil.copytree(spec.parent, whole, ignore=shutil.ignore_patterns("whole"))
    wanted = texts(update(whole / "curate.toml"))
    before = ["a-000001", "a-000003", "a-000004", "a-000005", "b-000001", "b-000002", "b-000003"]
    assert list(wanted) == [*before, "a-000006", "a-000007", "a-000008", "b-000004"]
    steps = 0
    for step in range(0, 60, 3 if goes_on_with == "run" else 4):
        lab = tmp_path / "lab"
        shutil.rmtree(lab, ignore_errors=True)
        shutil.copytree(spec.parent, lab, ignore=shutil.ignore_patterns("whole", "lab"))
        if not killed_at(step, lambda lab=lab: update(lab / "curate.toml")):
            break
        steps += 1
        is_begun = (
            len(json.loads((lab / "work/gather/sources.json").read_bytes())["first_parts"]) > 1
        )
        if goes_on_with == "run" and not is_begun:
            # Before the update has written what it found, a run is as it was.
            with pytest.raises(
                ConfigError, match=r"b\.jsonl has \d+ new bytes; to read what is new: --update"
            ):
                curate(lab / "curate.toml", ["gather"])
        place = curate(
            lab / "curate.toml", ["gather"], update=goes_on_with == "update" or not is_begun
        )
        assert texts(place) == wanted, step
        assert files_with(place.path, SECRET) == []
    assert steps > 5


def _killed_in_gather(spec: Path) -> None:
    """Kill an update after it has written its first part."""
    parts = spec.parent / "work/gather/parts"
    before = len(list(parts.iterdir()))
    for step in range(8, 80):
        if not killed_at(step, lambda: update(spec)):
            break
        if len(list(parts.iterdir())) > before:
            return
    raise AssertionError("no kill between two parts")


def test_lines_that_are_deleted_while_an_update_is_unfinished(spec: Path) -> None:
    _owner_went_on(spec)
    _killed_in_gather(spec)
    place = Workspace(spec.parent / "work")
    erase(place, "raw4")
    write(spec.parent / "a.jsonl", [1, 3, 5, 6, 7, 8])
    with pytest.raises(
        ConfigError,
        match=r"a\.jsonl has changed since it was gathered; to read what is new: --update",
    ):
        curate(spec, ["gather"])
    place = update(spec)
    assert {name[-1] for name in ids(place) if name.startswith("a-")} == set("135678")
    assert "a-000004" in place.erased()
    assert files_with(place.path, "meadow of street 4") == []
    assert ids(curate(spec, ["gather"])) == ids(update(spec)) == ids(place)


def test_a_source_that_grows_while_an_update_is_unfinished(spec: Path) -> None:
    """The run asked for --update, and --update asked for the run."""
    with (spec.parent / "a.jsonl").open("a") as file:
        file.write(line(6) + line(7) + line(8))
    _killed_in_gather(spec)
    with (spec.parent / "a.jsonl").open("a") as file:
        file.write(line(9))
    shutil.copytree(spec.parent, spec.parent / "other", ignore=shutil.ignore_patterns("other"))
    assert len(ids(curate(spec.parent / "other/curate.toml", ["gather"]))) == 11
    for folder in (spec.parent, spec.parent / "other"):
        place = update(folder / "curate.toml")
        assert sorted(ids(place))[5:9] == ["a-000006", "a-000007", "a-000008", "a-000009"]


def test_later_stages_keep_what_they_made(spec: Path) -> None:
    stages = ("gather", "anonymize", "safety", "dedup")
    place = curate(spec, stages)
    before = place.stage("anonymize").mark("part-00001").stat().st_mtime_ns
    _owner_went_on(spec)
    place = update(spec, *stages)
    kept = [str(record["id"]) for record in place.stage("dedup").records()]
    assert sorted(kept) == sorted(ids(place))
    assert len(kept) == 11
    assert place.stage("anonymize").mark("part-00001").stat().st_mtime_ns == before
    assert files_with(place.path, SECRET) == []


# Exports, which a program writes anew.


def whatsapp(*days: tuple[int, tuple[tuple[str, str], ...]]) -> str:
    lines = []
    for day, messages in days:
        for minute, (speaker, text) in enumerate(messages):
            lines.append(f"[{day:02}/03/2024, 21:{minute:02}:00] {speaker}: {text}")
    return "\n".join(lines) + "\n"


FIRST = (1, (("Ann", "I could not sleep at all last night, the harbour was loud."),
             ("Luna", "That sounds exhausting. What was going on there?")))  # fmt: skip
SECOND = (3, (("Ann", f"My sister gave me {SECRET} for my birthday."),
              ("Luna", f"How lovely! What is it like to live with {SECRET}?")))  # fmt: skip
THIRD = (5, (("Ann", "The violin lesson today was a disaster from start to end."),
             ("Luna", "I am sorry to hear that. What happened in it?")))  # fmt: skip
GOES_ON = (5, (*THIRD[1], ("Ann", "I forgot everything that I had practised."),
               ("Luna", "Nerves can do that. Would you like to tell me more?")))  # fmt: skip
FOURTH = (20, (("Ann", "The glacier trip is planned for Saturday at last."),
               ("Luna", "You have waited for that. Who comes with you?")))  # fmt: skip


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports/_chat.txt").write_text(whatsapp(FIRST, SECOND, THIRD))
    more = 'companion = "Luna"\ndate_order = "dmy"'
    made = source("wa", "exports", "whatsapp", more)
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\npart = 2\nprocesses = 1\n{made}')
    curate(tmp_path / "curate.toml", ["gather"])
    return tmp_path / "curate.toml"


def messages(place: Workspace) -> list[str]:
    return [
        turn["content"] for record in place.stage("gather").records() for turn in record["messages"]
    ]


@pytest.mark.parametrize("name", ["_chat.txt", "_chat (1).txt"])
@pytest.mark.parametrize("is_old_file_left", [True, False])
def test_an_export_that_has_grown_gives_what_is_new(
    chat: Path, name: str, is_old_file_left: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """It needed --from-stage gather, or all of the chat was gathered twice."""
    place = Workspace(chat.parent / "work")
    before = texts(place)
    if not is_old_file_left:
        (chat.parent / "exports/_chat.txt").unlink()
    (chat.parent / "exports" / name).write_text(whatsapp(FIRST, SECOND, GOES_ON, FOURTH))
    with pytest.raises(ConfigError, match=r"--update"):
        curate(chat, ["gather"])
    place = update(chat)
    after = texts(place)
    assert before.items() <= after.items()
    assert after["wa-000004"] == "I forgot everything that I had practised."
    assert after["wa-000005"].startswith("The glacier trip")
    assert len(messages(place)) == len(set(messages(place))) == 10
    said = capsys.readouterr().err
    assert (
        "2 items were gathered before; 2 are new; 1 of them begins where a gathered dialogue ended"
        in said
    )
    assert ids(update(chat)) == ids(curate(chat, ["gather"])) == ids(place)


def test_what_one_speaker_wrote_waits_for_an_answer(
    chat: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (chat.parent / "exports/_chat.txt").write_text(whatsapp(FIRST, SECOND, (5, GOES_ON[1][:3])))
    place = update(chat)
    assert len(ids(place)) == 3
    assert "after 1 gathered dialogue one speaker alone has written" in capsys.readouterr().err
    assert ids(curate(chat, ["gather"])) == ids(place)
    (chat.parent / "exports/_chat.txt").write_text(whatsapp(FIRST, SECOND, GOES_ON))
    assert texts(update(chat))["wa-000004"] == "I forgot everything that I had practised."


def test_an_erased_dialogue_comes_back_from_no_later_export(chat: Path) -> None:
    """Its last dialogue went on after it was erased, and began with the erased words."""
    place = Workspace(chat.parent / "work")
    last = (7, SECOND[1])
    (chat.parent / "exports/_chat.txt").write_text(whatsapp(FIRST, THIRD, last))
    curate(chat, ["gather"], from_stage="gather")
    erased = erase(place, "wa-000003")
    assert erased.raw == ("exports/_chat.txt:5-6",)
    goes_on = (
        7,
        (*SECOND[1], ("Ann", "It whistles all day long."), ("Luna", "Which tunes does it know?")),
    )
    (chat.parent / "exports/_chat.txt").write_text(whatsapp(FIRST, THIRD, goes_on, FOURTH))
    place = update(chat)
    assert files_with(place.path, SECRET) == []
    assert files_with(place.path, "glacier trip") != []
    assert set(texts(place)) >= {"wa-000001", "wa-000002"}
    assert ids(update(chat)) == ids(curate(chat, ["gather"])) == ids(place)


LATER = (("Ann", f"And {SECRET} wore a green hat, which I forgot to tell."),
         ("Luna", "A green hat is a lovely memory of it."))  # fmt: skip
LATEST = (
    ("Ann", "Anyway, the bus to the quarry comes at noon today."),
    ("Luna", "Then leave at half past eleven."),
)


@pytest.fixture
def continued(chat: Path) -> Path:
    """A chat of which an update gathered what followed the third dialogue."""
    write_chat(chat, THIRD)
    curate(chat, ["gather"], from_stage="gather")
    write_chat(chat, (5, (*THIRD[1], *LATER)))
    assert ids(update(chat)) == ["wa-000001", "wa-000002", "wa-000003", "wa-000004"]
    return chat


def write_chat(
    chat: Path, third: tuple[int, tuple[tuple[str, str], ...]], *more: tuple[int, Any]
) -> None:
    # The secret is in the later part alone.
    second = (
        3,
        (
            ("Ann", "The orchard is in bloom, and I walked there for hours."),
            ("Luna", "What did you see?"),
        ),
    )
    (chat.parent / "exports/_chat.txt").write_text(whatsapp(FIRST, second, third, *more))


def test_a_later_part_is_erased_alone_and_the_earlier_one_is_named(
    continued: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The lines of the dialogue before it were named for deletion, and what followed was lost without a word."""
    place = Workspace(continued.parent / "work")
    result = h2htalk_here("curate", "erase", str(place.path), "wa-000004")
    assert result.returncode == 0
    assert "erased 1 id: wa-000004" in result.stdout
    assert "earlier parts of the same chats stay: wa-000003; erase each by its id" in result.stdout
    assert "your own file still holds the raw text: exports/_chat.txt:7-8\n" in result.stderr
    assert files_with(place.path, "green hat") == []
    capsys.readouterr()
    write_chat(continued, (5, (*THIRD[1], *LATER, *LATEST)), FOURTH)
    place = update(continued)
    message = "1 is new; 1 is erased, and left out\n"
    assert message in capsys.readouterr().err
    assert ids(place) == ["wa-000001", "wa-000002", "wa-000003", "wa-000005"]
    assert files_with(place.path, "green hat") == []
    assert files_with(place.path, "glacier trip") != []
    assert files_with(place.path, "violin lesson") != []
    assert ids(update(continued)) == ids(curate(continued, ["gather"])) == ids(place)


def test_a_later_part_is_erased_with_its_dialogue(continued: Path) -> None:
    place = Workspace(continued.parent / "work")
    result = h2htalk_here("curate", "erase", str(place.path), "wa-000003")
    assert "erased 2 ids: wa-000003, wa-000004" in result.stdout
    assert "later parts of the same chats among them: wa-000004" in result.stdout
    assert "chats stay" not in result.stdout
    for words in ("green hat", "violin lesson"):
        assert files_with(place.path, words) == []
    write_chat(continued, (5, (*THIRD[1], *LATER, *LATEST)), FOURTH)
    place = update(continued)
    for words in ("green hat", "violin lesson", "bus to the quarry"):
        assert files_with(place.path, words) == []
    assert files_with(place.path, "glacier trip") != []


def test_all_later_parts_are_erased_and_those_of_other_chats_stay(continued: Path) -> None:
    write_chat(continued, (5, (*THIRD[1], *LATER, *LATEST)), FOURTH)
    place = update(continued)
    assert erase(place, "wa-000003").ids == ("wa-000003", "wa-000004", "wa-000005")
    assert set(texts(place)) == {"wa-000001", "wa-000002", "wa-000006"}


def _telegram(texts: list[tuple[str, str]]) -> str:
    records = [
        {
            "id": 100 + number,
            "type": "message",
            "date": f"2024-03-{1 + number // 2:02}T21:{number % 2:02}:00",
            "from": speaker,
            "from_id": f"user{len(speaker)}",
            "text": text,
        }
        for number, (speaker, text) in enumerate(texts)
    ]
    return json.dumps({"name": "Luna", "type": "personal_chat", "id": 77, "messages": records})


def test_a_telegram_chat_that_has_grown(tmp_path: Path) -> None:
    told = [*FIRST[1], *SECOND[1], *THIRD[1]]
    (tmp_path / "result.json").write_text(_telegram(told))
    made = source("tg", "result.json", "telegram", 'companion = "Luna"')
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\nprocesses = 1\n{made}')
    place = curate(tmp_path / "curate.toml", ["gather"])
    before = texts(place)
    assert len(before) == 3
    erased = erase(place, "tg-000002")
    assert erased.raw == ("result.json, conversation 77, messages 102 to 103",)
    (tmp_path / "result.json").write_text(_telegram([*told, *FOURTH[1]]))
    place = update(tmp_path / "curate.toml")
    assert list(texts(place)) == ["tg-000001", "tg-000003", "tg-000004"]
    assert files_with(place.path, SECRET) == []
    assert texts(place)["tg-000001"] == before["tg-000001"]
