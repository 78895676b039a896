"""Erasing a person: a tombstone, and the workspace of a run that never had them; clearing up after a release."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import all_files, dialogue, gathered

from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.erase import erase
from h2htalk.curation.erasure_scope import OthersGoToo, place_of
from h2htalk.curation.explain import explain
from h2htalk.curation.gather.stage import run_gather
from h2htalk.curation.purge import purge
from h2htalk.curation.settings import CurateSpec, GatherSettings, Source
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.errors import ConfigError, DataError

KILLED = 137
# What changes a folder, as Python's audit events call it: each is a step before which a kill may come.
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree"}
WORDS = "cinnamon porridge"  # what Emily alone says
SPEC = """
workspace = "work"
part = PART
processes = 1

[[gather.sources]]
name = "chat"
path = "raw.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"

[review]
model = "scripted:reviewer.jsonl"
"""
CRITERIA = ("accuracy", "consistency", "domain_compliance", "safety", "subtask_fit")
TOPICS = ("my garden", "the long train ride", "a chess game", "our choir", "the leaking roof", "new shoes")
CELLO = (
    "My neighbour on the third floor plays the cello every evening between seven and nine, and I lie on the carpet "
    "with the lamp off and listen to each single note of it. "
)
REPLY = (
    "Listening in the dark like that sounds like a small private concert. What do you notice first when the music "
    "stops: the silence in the room, the street outside, or how your own breath has slowed down?"
)
# 7 and 8 have one reply to inputs that are half alike: 8 goes for the sake of 7. 9 and 10 ask the same: one is folded.
EXCHANGES = {
    7: (CELLO + "Tonight there was no music at all, which worried me more than I wanted to admit to anybody.", REPLY),
    8: (CELLO + "Yesterday I finally knocked, brought two pears, and we talked until both kettles boiled dry.", REPLY),
    9: ("Why does the smell of wet chalk make me homesick every autumn?", "Which classroom comes to mind first?"),
    10: ("Why does the smell of wet chalk make me homesick every autumn?", "Smells keep places for us, far away."),
}  # fmt: skip


def talk(at: int) -> dict[str, object]:
    """Dialogues 2 and 5 are Emily's."""
    mine = at in (2, 5)
    topic = f"the {WORDS} that burnt on day {at}" if mine else TOPICS[at % len(TOPICS)]
    said = EXCHANGES.get(at) or (
        f"I was thinking about {topic} all of yesterday, and it made me rather sad in the end.",
        f"What was it about {topic} that stayed with you so long?",
        f"That nobody but me cared for {topic}, not even number {at} of my friends.",
        "Caring alone is tiring. Whom would you tell first?",
    )
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]
    return {"id": f"raw-{at}", "messages": messages} | ({"person": "Emily Carter"} if mine else {})


def project(folder: Path, part: int, without: tuple[int, ...] = ()) -> Path:
    """A curation that has not begun, of a key that all of them have; the lines of some dialogues are empty."""
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "secret.key").write_text("5a" * 32)
    spec = folder / "curate.toml"
    spec.write_text(SPEC.replace("PART", str(part)))
    raw = ["" if at in without else json.dumps(talk(at)) for at in range(1, 11)]
    (folder / "raw.jsonl").write_text("\n".join(raw) + "\n")
    criteria = {name: {"evidence": "Seen.", "score": 5} for name in CRITERIA}
    verdict = {**criteria, "fitting_subtask": "dialogue_base", "revision": "", "verdict": "accept"}
    write_jsonl(folder / "reviewer.jsonl", [{"id": "*", "text": json.dumps(verdict)}])
    return spec


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished curation of one part."""
    folder = tmp_path_factory.mktemp("whole") / "one"
    curate(project(folder, 20))
    return folder


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished curation of parts of three."""
    folder = tmp_path_factory.mktemp("parted") / "three"
    curate(project(folder, 3))
    return folder


def results(folder: Path) -> dict[str, bytes]:
    """All files of the stages, but for what names the raw file by its hash."""
    found = all_files(folder / "work")
    return {name: data for name, data in found.items() if "/" in name and not name.endswith("stage.json")}


@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ("Emily Carter", (2, 5)),
        ("chat-000007", (7,)),  # the better of two that share a reply, for whose sake the other one went
        ("raw-8", (8,)),
        ("chat-000010", (9, 10)),  # one question: whoever asked it, its dialogues go together
        ("chat-000003:dialogue_base", (3, 6)),  # one frame, near copies of each other
    ],
)
def test_what_is_left_is_the_run_that_never_had_them(
    whole: Path, tmp_path: Path, asked: str, gone: tuple[int, ...]
) -> None:
    control, folder = tmp_path / "control", tmp_path / "erased"
    curate(project(control, 20, without=gone))
    shutil.copytree(whole, folder)
    place = Workspace(folder / "work")
    erased = erase(place, asked, others_too=True)
    assert {f"chat-{at:06}" for at in gone} <= set(erased.ids)
    assert erased.raw == tuple(sorted(f"raw.jsonl:{at}" for at in gone))
    assert erased.again == dict.fromkeys(("anonymize", "safety", "dedup", "compose", "review"), 1)
    texts = {at: {turn["content"] for turn in talk(at)["messages"]} for at in range(1, 11)}  # type: ignore[attr-defined]
    theirs = set().union(*(texts[at] for at in gone)) - set().union(
        *(texts[at] for at in texts if at not in gone)
    )
    assert theirs
    for name, data in all_files(place.path).items():
        assert not [text for text in [*theirs, *(["Emily"] if 2 in gone else [])] if text.encode() in data], (
            name
        )
    curate(folder / "curate.toml")
    assert results(folder) == results(control)


def test_the_dialogues_that_the_cases_need(whole: Path) -> None:
    """One is rejected for the sake of 7 by its reply alone, one is folded."""
    found = {line["id"]: line for line in Workspace(whole / "work").stage("dedup").records("rejected")}
    assert found["chat-000008"]["evidence"]["of"] == "chat-000007"
    assert found["chat-000008"]["evidence"]["on"] == "references"
    assert found.keys() & {"chat-000009", "chat-000010"}


def test_a_run_never_shows_them_again(parted: Path, tmp_path: Path) -> None:
    """The raw file is read again, from the beginning and in another workspace: the tombstone is enough."""
    shutil.copytree(parted, tmp_path / "a")
    place = Workspace(tmp_path / "a" / "work")
    assert erase(place, "Emily Carter").ids == ("chat-000002", "chat-000005", "chat-p0001")
    lines = [record for _, record in read_jsonl(place.tombstones_path)]
    assert [line["id"] for line in lines] == ["chat-000002", "chat-000005", "chat-p0001"]
    assert all(set(line) == {"id", "of", "marks"} for line in lines)
    curate(tmp_path / "a" / "curate.toml")
    spec = project(tmp_path / "b", 3)
    shutil.copy(place.tombstones_path, tmp_path / "b" / "work")
    curate(spec)
    assert results(tmp_path / "b") == results(tmp_path / "a")
    curate(spec, again="gather")
    assert results(tmp_path / "b") == results(tmp_path / "a")
    with pytest.raises(DataError, match="was erased"):
        explain(place, "chat-000002")
    # Asked for once more, by whatever name: it is done.
    assert erase(place, "Emily Carter").ids == ("chat-p0001",)
    assert erase(place, "chat-000002").again == {}


# --- A kill in the middle ---------------------------------------------------------------------------------------


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do something in a process that is killed before its so-many-th change of a file; False where it came through."""
    child = os.fork()
    if not child:
        left = [step]

        def watch(event: str, args: tuple[object, ...]) -> None:
            if event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(KILLED)

        sys.addaudithook(watch)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED


@pytest.mark.slow
@pytest.mark.parametrize("stride", [pytest.param(1, marks=pytest.mark.live), 11])
@pytest.mark.timeout(600)
def test_killed_before_any_change_it_is_finished_by_who_comes_next(
    parted: Path, tmp_path: Path, stride: int, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(parted, tmp_path / "control")
    erase(Workspace(tmp_path / "control" / "work"), "Emily Carter")
    curate(tmp_path / "control" / "curate.toml")
    expected = all_files(tmp_path / "control" / "work")
    assert not any(WORDS.encode() in data for data in expected.values())
    untouched = all_files(parted / "work")
    begun = 0
    for step in count(step=stride):
        folder = tmp_path / str(step)
        shutil.copytree(parted, folder)
        place = Workspace(folder / "work")
        if not killed_at(step, lambda place=place: erase(place, "Emily Carter")):  # type: ignore[misc]
            break
        if not place.tombstones_path.exists():
            # Nothing of it was begun, and nothing but what it was writing down is there.
            there = all_files(place.path)
            assert {name: data for name, data in there.items() if not name.startswith(".")} == untouched
            continue
        begun += 1
        if begun % 3 == 1:  # killed once more
            killed_at(step // 2, lambda folder=folder: curate(folder / "curate.toml"))  # type: ignore[misc]
        if begun % 3 == 2:
            erase(place, "chat-000002")
        curate(folder / "curate.toml")
        assert all_files(place.path) == expected, step
        shutil.rmtree(folder)
    assert begun > 50 // stride
    assert "erase: an interrupted erasure is finished" in capfd.readouterr().err


@pytest.fixture
def halfway(parted: Path, tmp_path: Path) -> Path:
    """Killed in the middle of the stages' files."""
    shutil.copytree(parted, tmp_path / "halfway")
    assert killed_at(40, lambda: erase(Workspace(tmp_path / "halfway" / "work"), "Emily Carter"))
    assert any(WORDS.encode() in data for data in all_files(tmp_path / "halfway" / "work").values())
    return tmp_path / "halfway"


def test_it_is_finished_even_where_the_run_itself_is_refused(halfway: Path) -> None:
    (halfway / "curate.toml").write_text(SPEC.replace("PART", "5"))
    with pytest.raises(ConfigError, match="another setting of part"):
        curate(halfway / "curate.toml")
    assert not any(WORDS.encode() in data for data in all_files(halfway / "work").values())


def test_purge_finishes_it_and_waits_for_the_last_stage(halfway: Path) -> None:
    """Without the index and the key nobody would have known any more who was meant."""
    place = Workspace(halfway / "work")
    with pytest.raises(ConfigError, match="06-reviewed is not finished"):
        purge(place)
    assert not any(WORDS.encode() in data for data in all_files(place.path).values())
    assert place.key_path.exists()


@pytest.mark.parametrize("kinds", [("kept",), ("kept", "audit")])
def test_a_part_that_a_kill_left_uncounted_is_counted(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    """Parts were counted anew only where that very call had found something."""
    workspace = gathered(tmp_path, [dialogue(n) for n in (1, 2, 3)])
    write_jsonl(workspace.tombstones_path, [{"id": "made-000002"}])
    for kind in kinds:
        path = workspace.stage("gather").file(kind, "part-00000")
        write_jsonl(path, [record for _, record in read_jsonl(path) if record["id"] != "made-000002"])
    erase(workspace, "made-000002")
    assert [item.counts.read for item in summaries(workspace)] == [2]
    assert len(workspace.stage("gather").handed_on("part-00000")) == 2


def test_what_a_kill_left_unfinished_is_no_hiding_place(tmp_path: Path) -> None:
    """Parts without their mark, half-written files and what dedup is in the middle of kept the words of a person."""
    workspace = gathered(tmp_path, [dialogue(n) for n in (1, 2)])
    safety, dedup = workspace.stage("safety"), workspace.stage("dedup")
    left = [
        safety.path / "reviews" / ".part-00000.jsonl.77",
        safety.file("kept", "part-00009"),
        dedup.path / "work" / "texts.bin",
        workspace.path / ".secret.key.77",
    ]
    for path in left:
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("My tea is cold")
    erase(workspace, "made-000001")
    assert not any(path.exists() for path in left)


# --- Who ----------------------------------------------------------------------------------------------------------

EMILY = "made-p0001"


def copies(path: Path, person: str | None) -> Workspace:
    """Three dialogues, the first Emily's, the third a person's; dedup holds the third for a copy of the first."""
    whose = {1: EMILY, 3: person}
    made = gathered(path, [dialogue(n, person=whose.get(n)) for n in (1, 2, 3)])
    evidence = {"of": "made-000001", "on": "inputs", "similarity": 0.9}
    loser = {"id": "made-000003", "reason": "near_duplicate", "evidence": evidence}
    write_jsonl(made.stage("dedup").path / "losers.jsonl", [loser])
    return made


def test_others_go_as_near_copies_only_when_that_is_said(tmp_path: Path) -> None:
    """Whoever had said the same went unasked, and was named afterwards."""
    workspace = copies(tmp_path, None)
    before = all_files(workspace.path)
    with pytest.raises(OthersGoToo, match="dialogues of others, which would go too: made-000001;"):
        erase(workspace, "made-000003")
    asked = ["curate", "erase", str(workspace.path), "made-000003"]
    refused = h2htalk(*asked)
    assert (refused.returncode, refused.stdout.splitlines()) == (
        2,
        ["made-000001  of others", "made-000003  asked for"],
    )
    assert "do it with --yes" in refused.stderr
    assert all_files(workspace.path) == before
    assert h2htalk(*asked, "--yes").returncode == 0
    assert [record["id"] for record in workspace.stage("gather").records()] == ["made-000002"]


def test_near_copies_of_the_same_person_go_without_a_word(tmp_path: Path) -> None:
    assert erase(copies(tmp_path, EMILY), "made-000001").copies == ("made-000003",)


def test_a_stranger_is_an_error_and_nothing_is_made(tmp_path: Path) -> None:
    """Who has no raw id was called `None`, and `erase None` took out everybody."""
    workspace = gathered(tmp_path / "made", [dialogue(1)])
    for asked in ("made-000099", "None"):
        with pytest.raises(DataError, match=f"nobody of id '{asked}'"):
            erase(workspace, asked)
    for refused in (lambda place: erase(place, "x"), purge):
        with pytest.raises(DataError, match="no curation has begun here"):
            refused(Workspace(tmp_path / "nosuch" / "ws"))
    assert not (tmp_path / "nosuch").exists()


def test_without_its_key_nothing_is_promised(tmp_path: Path) -> None:
    """Nobody was known again in a changed file, though `will not come back` stood on the screen."""
    workspace = gathered(tmp_path, [dialogue(1, person=EMILY), dialogue(2)])
    workspace.key_path.rename(workspace.path / "elsewhere")
    before = all_files(workspace.path)
    with pytest.raises(ConfigError, match=r"secret\.key: is missing, .* put it back"):
        erase(workspace, EMILY)
    assert all_files(workspace.path) == before


def chat(tmp_path: Path, *records: dict[str, object]) -> Workspace:
    """These raw dialogues, gathered."""
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    write_jsonl(tmp_path / "raw.jsonl", [{"messages": said, **record} for record in records])
    place = Workspace(tmp_path / "work")
    source = Source("chat", "raw.jsonl", "messages", "en", "CC0-1.0")
    run_gather(CurateSpec(str(place.path), GatherSettings((source,))), tmp_path, place, place.open_key())
    return place


def test_a_raw_id_of_several_dialogues_is_asked_back(tmp_path: Path) -> None:
    """Files number their dialogues anew in every session: whoever had number 7 went with the one who asked, and came
    back with neither, as what others are called too was a mark."""
    place = chat(tmp_path, *[{"id": 7}] * 3)
    for asked in ("7", "chat:7"):
        with pytest.raises(ConfigError, match=r"id of 3 dialogues .* chat-000001, chat-000002, chat-000003"):
            erase(place, asked)
    assert erase(place, "chat-000002").ids == ("chat-000002",)
    assert not place.tombstones().called("7", place.open_key())


def test_where_raw_text_stands_is_told(tmp_path: Path) -> None:
    """`bank.json:1` was the place of everybody in a file of one line."""
    assert place_of({"file": "bank.json", "line": 1, "row": 4}) == "bank.json:1, item 4"
    assert place_of({"file": "bank.json", "line": 1, "row": 1}) == "bank.json:1, item 1"
    assert place_of({"file": "raw.jsonl", "line": 4, "row": 4}) == "raw.jsonl:4"
    assert place_of({"file": "generated", "row": 4}) == "generated:4"


# --- Links ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linked", ["05-composed", "02-anonymized/kept/part-00000.jsonl"])
def test_nothing_is_erased_behind_a_link(whole: Path, tmp_path: Path, linked: str) -> None:
    """A linked file was replaced by another one, a linked table passed over: the words stayed where it led."""
    shutil.copytree(whole, tmp_path / "linked")
    path = tmp_path / "linked" / "work" / linked
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    before = all_files(tmp_path)
    with pytest.raises(DataError, match="is a symbolic link, and what it leads to would outlive this"):
        erase(Workspace(tmp_path / "linked" / "work"), "Emily Carter")
    assert all_files(tmp_path) == before


# --- purge ------------------------------------------------------------------------------------------------------


def test_purge_leaves_what_was_reviewed_and_nothing_raw(parted: Path, tmp_path: Path) -> None:
    """Killed anywhere, the next finishes it; who is erased after it goes out of every stage, and numbers add up."""
    shutil.copytree(parted, tmp_path / "whole")
    place = Workspace(tmp_path / "whole" / "work")
    purge(place)
    expected = all_files(place.path)
    assert not [name for name in expected if name.startswith("01-gathered") and name.endswith("jsonl")]
    with pytest.raises(ConfigError, match="was purged"):
        place.open_key()
    for step in count(step=4):
        folder = tmp_path / str(step)
        shutil.copytree(parted, folder)
        if not killed_at(step, lambda folder=folder: purge(Workspace(folder / "work"))):  # type: ignore[misc]
            break
        purge(Workspace(folder / "work"))
        assert all_files(folder / "work") == expected, step
    assert step > 4
    before = {item.stage: item.counts for item in summaries(place)}
    assert erase(place, "chat-p0001").ids == ("chat-000002", "chat-000005", "chat-p0001")
    assert not any(WORDS.encode() in data for data in all_files(place.path).values())
    after = {item.stage: item.counts for item in summaries(place)}
    assert after["anonymize"].read == before["anonymize"].read - 2
    for one, other in (("anonymize", "safety"), ("safety", "dedup"), ("compose", "review")):
        assert after[one].written == after[other].read


def test_purge_says_what_it_could_not_remove(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that could not be removed was named among what is gone."""
    shutil.copytree(whole, tmp_path / "whole")
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "secret.key":
            raise PermissionError(1, "Operation not permitted", str(path))
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(DataError, match=r"secret\.key: cannot be removed: Operation not permitted"):
        purge(Workspace(tmp_path / "whole" / "work"))
