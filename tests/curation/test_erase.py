"""Erase a person: tombstones, and the workspace of a run that never had them; then purge."""

from __future__ import annotations

import json
import random
import shutil
from itertools import count
from pathlib import Path

import pytest
from command_line import h2htalk
from curation_made import MODELS, all_files, dialogue, gathered, source, write_models
from kills import killed_at
from test_update import WORDS as THINGS

from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.show import explain
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.errors import ConfigError, DataError

WORDS = "cinnamon porridge"  # of Emily alone
SPEC = f'workspace = "work"\npart = PART\nprocesses = 1\n{source("chat", "raw.jsonl")}{MODELS}'
TOPICS = ("my garden", "the long train ride", "a chess game", "our choir", "the leaking roof", "new shoes")
CELLO = (
    "My neighbour on the third floor plays the cello every evening between seven and nine, and I lie on the carpet "
    "with the lamp off and listen to each single note of it. "
)
REPLY = (
    "Listening in the dark like that sounds like a small private concert. What do you notice first when the music "
    "stops: the silence in the room, the street outside, or how your own breath has slowed down?"
)
# 7 and 8 have the same reply to half similar inputs: 8 is a duplicate of 7. 9 and 10 have the same question: one is
# folded.
EXCHANGES = {
    7: (CELLO + "Tonight there was no music at all, which worried me more than I wanted to admit to anybody.", REPLY),
    8: (CELLO + "Yesterday I finally knocked, brought two pears, and we talked until both kettles boiled dry.", REPLY),
    9: ("Why does the smell of wet chalk make me homesick every autumn?", "Which classroom comes to mind first?"),
    10: ("Why does the smell of wet chalk make me homesick every autumn?", "Smells keep places for us, far away."),
}  # fmt: skip


def talk(at: int) -> dict[str, object]:
    """A raw dialogue; 2 and 5 are Emily's. 5 is a near copy of 2, 6 of 3."""
    emily, rng = at in (2, 5), random.Random({5: 2, 6: 3}.get(at, at))
    topic = f"the {WORDS} that burnt on day {at}" if emily else TOPICS[rng.randrange(6)]
    first, second, third, fourth = (" ".join(rng.sample(THINGS, 9)) for _ in range(4))
    texts = EXCHANGES.get(at) or (
        f"I was sad about {topic}: the {first}.",
        f"What about the {second}?",
        f"Nobody but me cared for {topic}, not even number {at}: the {third}.",
        f"Tell me of the {fourth}!",
    )
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    return {"id": f"raw-{at}", "messages": messages} | ({"person": "Emily Carter"} if emily else {})


def project(folder: Path, part: int, without: tuple[int, ...] = ()) -> Path:
    """A new project; all have the same key. The lines of the dialogues in `without` are empty."""
    (folder / "work").mkdir(parents=True)
    (folder / "work" / "secret.key").write_text("5a" * 32)
    spec = folder / "curate.toml"
    spec.write_text(SPEC.replace("PART", str(part)))
    raw = ["" if at in without else json.dumps(talk(at)) for at in range(1, 11)]
    (folder / "raw.jsonl").write_text("\n".join(raw) + "\n")
    write_models(folder)
    return spec


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished project with one part."""
    folder = tmp_path_factory.mktemp("whole") / "one"
    curate(project(folder, 20))
    return folder


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished project with parts of three."""
    folder = tmp_path_factory.mktemp("parted") / "three"
    curate(project(folder, 3))
    return folder


def results(folder: Path) -> dict[str, bytes]:
    """All files of the stages, except those with the hash of the raw file."""
    found = all_files(folder / "work")
    kept = {name for name in found if "/" in name and not name.endswith(("stage.json", "sources.json"))}
    return {name: _sorted_calls(found[name]) if name.endswith("calls.jsonl") else found[name] for name in kept}


def _sorted_calls(data: bytes) -> bytes:
    """Stored calls are in order of arrival, each with its time."""
    lines = [{**line, "at": 0} for line in map(json.loads, data.splitlines())]
    return "\n".join(sorted(map(json.dumps, lines))).encode()


@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ("Emily Carter", (2, 5)),
        ("chat-000007", (7,)),  # the better of two with the same reply, which stays in the control
        ("raw-8", (8,)),
        ("chat-000010", (9, 10)),  # the same question of two dialogues of unknown people: both are erased
        ("chat-000003:dialogue_base", (3,)),  # 6 is a near copy, which comes back
        ("chat-000006", (6,)),
    ],
)
def test_the_next_run_is_one_without_the_erased(whole: Path, tmp_path: Path, asked: str, gone: tuple[int, ...]) -> None:
    control, folder = tmp_path / "control", tmp_path / "erased"
    curate(project(control, 20, without=gone))
    shutil.copytree(whole, folder)
    place = Workspace(folder / "work")
    erased = erase(place, asked)
    assert {f"chat-{at:06}" for at in gone} <= set(erased.ids)
    assert erased.raw == tuple(sorted(f"raw.jsonl:{at}" for at in gone))
    assert erased.removed == ("dedup", "compose", "review")
    texts = {at: {turn["content"] for turn in talk(at)["messages"]} for at in range(1, 11)}  # type: ignore[attr-defined]
    others = set().union(*(texts[at] for at in texts if at not in gone))
    own = set().union(*(texts[at] for at in gone)) - others
    assert own
    for name, data in all_files(place.path).items():
        words = [*own, *(["Emily"] if 2 in gone else [])]
        assert not [text for text in words if text.encode() in data], name
    curate(folder / "curate.toml")
    assert results(folder) == results(control)


def test_a_tombstone_keeps_them_out_of_every_later_run(parted: Path, tmp_path: Path) -> None:
    shutil.copytree(parted, tmp_path / "a")
    place = Workspace(tmp_path / "a" / "work")
    assert erase(place, "Emily Carter").ids == ("chat-000002", "chat-000005", "chat-p0001")
    lines = [record for _, record in read_jsonl(place.tombstones_path)]
    assert [line["id"] for line in lines] == ["chat-000002", "chat-000005", "chat-p0001"]
    items = [set(line.get("items", ())) for line in lines]
    assert "chat-000002:dialogue_base" in items[0]
    assert items[2] == items[0] | items[1]
    assert all(set(line) - {"items"} == {"id", "of", "marks"} for line in lines)
    curate(tmp_path / "a" / "curate.toml")
    spec = project(tmp_path / "b", 3)
    shutil.copy(place.tombstones_path, tmp_path / "b" / "work")
    for from_stage in ("", "gather"):
        curate(spec, from_stage=from_stage)
        assert results(tmp_path / "b") == results(tmp_path / "a")
    with pytest.raises(DataError, match="was erased"):
        explain(place, "chat-000002")
    # A second erasure under any name changes nothing.
    assert erase(place, "Emily Carter").ids == ("chat-p0001",)
    assert erase(place, "chat-000002").removed == ()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_next_command_completes_an_erasure(parted: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(parted, tmp_path / "control")
    erase(Workspace(tmp_path / "control" / "work"), "Emily Carter")
    curate(tmp_path / "control" / "curate.toml")
    expected = all_files(tmp_path / "control" / "work")
    assert not any(WORDS.encode() in data for data in expected.values())
    untouched = all_files(parted / "work")
    begun = 0
    for step in count(step=11):
        folder = tmp_path / str(step)
        shutil.copytree(parted, folder)
        place = Workspace(folder / "work")
        if not killed_at(step, lambda place=place: erase(place, "Emily Carter")):  # type: ignore[misc]
            break
        if not place.tombstones_path.exists():
            # Nothing has been changed, apart from a partial file of tombstones.
            there = all_files(place.path)
            assert {name: data for name, data in there.items() if not name.startswith(".")} == untouched
            continue
        begun += 1
        if begun % 3 == 1:  # a second kill
            killed_at(step // 2, lambda folder=folder: curate(folder / "curate.toml"))  # type: ignore[misc]
        if begun % 3 == 2:
            erase(place, "chat-000002")
        curate(folder / "curate.toml")
        assert all_files(place.path) == expected, step
        shutil.rmtree(folder)
    assert begun > 4
    assert "erase: an interrupted erasure was completed" in capfd.readouterr().err


def test_unfinished_and_temporary_files_are_removed(tmp_path: Path) -> None:
    """They kept the words of a person."""
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


EMILY, OTHER = "made-p0001", "made-p0002"


def copies(path: Path, person: str | None, reason: str = "near_duplicate") -> Workspace:
    """Three dialogues, the first of Emily, the third of `person`, which dedup calls a duplicate of the first."""
    persons = {1: EMILY if person else None, 3: person}
    workspace = gathered(path, [dialogue(n, person=persons.get(n)) for n in (1, 2, 3)])
    evidence = {"of": "made-000001", "on": "inputs", "similarity": 0.9}
    line = {"id": "made-000003", "reason": reason, "evidence": evidence}
    write_jsonl(workspace.stage("dedup").path / "duplicates.jsonl", [line])
    return workspace


@pytest.mark.parametrize(("person", "reason"), [(OTHER, "near_duplicate"), (OTHER, "duplicate"), (None, "")])
def test_similar_dialogues_of_others_stay(tmp_path: Path, person: str | None, reason: str) -> None:
    workspace = copies(tmp_path, person, reason or "near_duplicate")
    done = h2htalk("curate", "erase", str(workspace.path), "made-000003")
    assert done.returncode == 0
    assert "similar dialogues of other or unknown people stay: made-000001;" in done.stdout
    assert [record["id"] for record in workspace.stage("gather").records()] == ["made-000001", "made-000002"]


@pytest.mark.parametrize(("person", "reason"), [(None, "folded"), (EMILY, "near_duplicate")])
def test_copies_of_the_same_person_go_too(tmp_path: Path, person: str | None, reason: str) -> None:
    """Equal words of unknown people are one person's."""
    assert erase(copies(tmp_path, person, reason), "made-000001").copies == ("made-000003",)


def test_an_unknown_id_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    """`erase None` erased everybody without a raw id."""
    workspace = gathered(tmp_path / "made", [dialogue(1)])
    for asked in ("made-000099", "None"):
        with pytest.raises(DataError, match=f"no id '{asked}'"):
            erase(workspace, asked)
    for command in (lambda place: erase(place, "x"), purge):
        with pytest.raises(DataError, match="there is no curation here"):
            command(Workspace(tmp_path / "nosuch" / "ws"))
    assert not (tmp_path / "nosuch").exists()


def test_without_its_key_nothing_is_erased(tmp_path: Path) -> None:
    """Nobody was recognized in a changed file."""
    workspace = gathered(tmp_path, [dialogue(1, person=EMILY), dialogue(2)])
    workspace.key_path.rename(workspace.path / "elsewhere")
    before = all_files(workspace.path)
    with pytest.raises(ConfigError, match=r"secret\.key: is missing, .* put it back"):
        erase(workspace, EMILY)
    assert all_files(workspace.path) == before


@pytest.mark.parametrize("linked", ["compose", "anonymize/kept/part-00000.jsonl"])
def test_nothing_is_erased_behind_a_symbolic_link(whole: Path, tmp_path: Path, linked: str) -> None:
    """A linked file was replaced by another one, so the words stayed in its target."""
    shutil.copytree(whole, tmp_path / "linked")
    path = tmp_path / "linked" / "work" / linked
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    before = all_files(tmp_path)
    with pytest.raises(DataError, match="is a symbolic link, and its target would not be removed"):
        erase(Workspace(tmp_path / "linked" / "work"), "Emily Carter")
    assert all_files(tmp_path) == before


def test_purge_keeps_reviewed_and_removes_raw_records(parted: Path, tmp_path: Path) -> None:
    """A kill at any point is completed by the next purge; later erasures filter every stage."""
    parted = shutil.copytree(parted, tmp_path / "parted")
    shutil.copytree(parted, tmp_path / "whole")
    place = Workspace(tmp_path / "whole" / "work")
    purge(place)
    expected = all_files(place.path)
    assert not [name for name in expected if name.startswith("gather") and name.endswith("jsonl")]
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


@pytest.mark.parametrize("begun", [False, True])
def test_purge_after_the_last_finished_stage(whole: Path, tmp_path: Path, begun: bool) -> None:
    """Later stages never ran, or have begun; without a terminal `--yes` confirms."""
    shutil.copytree(whole, tmp_path / "whole")
    place = Workspace(tmp_path / "whole" / "work")
    place.stage("review").remove()
    (place.stage("compose").path / "summary.json").unlink()
    if not begun:
        place.stage("compose").remove()
    command = ["curate", "purge", str(place.path)]
    refused = h2htalk(*command)
    assert refused.returncode == 2
    assert ("the unfinished compose stage" in refused.stderr) == begun
    assert "add --yes" in refused.stderr
    assert place.key_path.exists()
    assert h2htalk(*command, "--yes").returncode == 0
    assert not place.key_path.exists()
    assert [item.stage for item in summaries(place)] == ["gather", "anonymize", "safety", "dedup"]
    assert list(place.stage("dedup").records())
