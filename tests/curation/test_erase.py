"""Erase a person from a workspace and from everything that was made from it: no byte of their words is left."""

from __future__ import annotations

import json
import random
import shutil
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants
from test_curate import WORDS as THINGS

from h2htalk.benchmark.evaluate import evaluate
from h2htalk.benchmark.results_export.export import export_results
from h2htalk.benchmark.run import load_run
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.erase import erase, purge
from h2htalk.curation.show import explain
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import ErasedIds, read_erased, require_erased
from h2htalk.data.erasure.folder_kinds import erase as erase_folder
from h2htalk.data.files import read_jsonl, write_jsonl, writer_lock
from h2htalk.data.links import add_link
from h2htalk.data.releases.hub import cache_folder, publish
from h2htalk.data.releases.release_folder import TOMBSTONES, private_folder
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.splits import load_split
from h2htalk.errors import ConfigError, DataError, H2HTalkError
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import files_with
from support.command_line import h2htalk, h2htalk_here
from support.curations import MODELS, all_files, dialogue, gathered, source, write_models
from support.kills import interrupted_at, killed_at
from support.releases import make_release
from support.rounds import NAMES, answer, crowd, expert, spec_of
from support.spreadsheet_rounds import fill, places, workbook_path
from support.studies import REPLY, cases_of, spec, write_script
from support.tables import table

WORDS = "cinnamon porridge"  # of Emily alone
SPEC = f'workspace = "work"\npart = PART\nprocesses = 1\n{source("chat", "raw.jsonl")}{MODELS}'
TOPICS = (
    "my garden",
    "the long train ride",
    "a chess game",
    "our choir",
    "the leaking roof",
    "new shoes",
)
CELLO = (
    "My neighbour on the third floor plays the cello every evening between seven and nine, and I lie on the carpet "
    "with the lamp off and listen to each single note of it. "
)
HEARD = (
    "Listening in the dark like that sounds like a small private concert. What do you notice first when the music "
    "stops: the silence in the room, the street outside, or how your own breath has slowed down?"
)
# 7 and 8 have the same reply to half similar inputs: 8 is a duplicate of 7. 9 and 10 have the same question: one is
# folded.
EXCHANGES = {
    7: (CELLO + "Tonight there was no music at all, which worried me more than I wanted to admit to anybody.", HEARD),
    8: (CELLO + "Yesterday I finally knocked, brought two pears, and we talked until both kettles boiled dry.", HEARD),
    9: ("Why does the smell of wet chalk make me homesick every autumn?", "Which classroom comes to mind first?"),
    10: ("Why does the smell of wet chalk make me homesick every autumn?", "Smells keep places for us, far away."),
}  # fmt: skip


def talk(at: int) -> dict[str, object]:
    """A raw dialogue; 2 and 5 are Emily's. 5 is a near copy of 2, 6 of 3."""
    emily = at in (2, 5)
    rng = random.Random({5: 2, 6: 3}.get(at, at))
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
    kept = {
        name for name in found if "/" in name and not name.endswith(("stage.json", "sources.json"))
    }
    return {
        name: _sorted_calls(found[name]) if name.endswith("calls.jsonl") else found[name]
        for name in kept
    }


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
        (
            "chat-000010",
            (9, 10),
        ),  # the same question of two dialogues of unknown people: both are erased
        ("chat-000003:dialogue_base", (3,)),  # 6 is a near copy, which comes back
        ("chat-000006", (6,)),
    ],
)
def test_the_next_run_is_one_without_the_erased(
    whole: Path, tmp_path: Path, asked: str, gone: tuple[int, ...]
) -> None:
    control = tmp_path / "control"
    folder = tmp_path / "erased"
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
    assert all(set(line) - {"items", "lines"} == {"id", "of", "marks"} for line in lines)
    assert ["lines" in line for line in lines] == [True, True, False]
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
def test_the_next_command_completes_an_erasure(
    parted: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
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
            assert {
                name: data for name, data in there.items() if not name.startswith(".")
            } == untouched
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
    safety = workspace.stage("safety")
    dedup = workspace.stage("dedup")
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


def test_copies_of_the_same_person_go_too_and_similar_dialogues_of_others_stay(
    tmp_path: Path,
) -> None:
    """Equal words of unknown people are one person's."""
    for n, (person, reason) in enumerate(
        [(OTHER, "near_duplicate"), (OTHER, "duplicate"), (None, "near_duplicate")]
    ):
        workspace = copies(tmp_path / str(n), person, reason)
        done = h2htalk("curate", "erase", str(workspace.path), "made-000003")
        assert done.returncode == 0
        assert "similar dialogues of other or unknown people stay: made-000001;" in done.stdout
        assert [record["id"] for record in workspace.stage("gather").records()] == [
            "made-000001",
            "made-000002",
        ]
    for person, reason in ((None, "folded"), (EMILY, "near_duplicate")):
        assert erase(copies(tmp_path / reason, person, reason), "made-000001").copies == (
            "made-000003",
        )


def test_an_unknown_id_or_a_missing_key_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    """`erase None` erased everybody without a raw id; without the key nobody was recognized in a changed file."""
    workspace = gathered(tmp_path / "made", [dialogue(1, person=EMILY), dialogue(2)])
    for asked in ("made-000099", "None"):
        with pytest.raises(DataError, match=f"no id '{asked}'"):
            erase(workspace, asked)
    for command in (lambda place: erase(place, "x"), purge):
        with pytest.raises(DataError, match="there is no curation here"):
            command(Workspace(tmp_path / "nosuch" / "ws"))
    assert not (tmp_path / "nosuch").exists()
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
    """A kill at any point is completed by the next purge."""
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


EMILY_CARTER = "Emily Carter"
# What was made from the workspace, in the order in which links lead to it.
MADE = ("crowd", "run-candidates", "logs", "release", "expert", "run-release")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A curation, a crowd round on CSV files, an expert round on workbooks, a release, runs on both."""
    folder = tmp_path_factory.mktemp("published") / "lab"
    curate(project(folder, 3))
    work = folder / "work"
    open_round(
        spec_of("crowd", work, care={"session_items": 20, "crisis_share": 1.0}), folder / "crowd"
    )
    answer(folder / "crowd", lambda *_: crowd())
    close_round(folder / "crowd")
    open_round(spec_of("expert", folder / "crowd", 3), folder / "expert")
    for name in NAMES[:3]:
        round = RoundFolder(folder / "expert")
        typed = expert() | {"comment": f"My {WORDS} never burns."}
        fill(workbook_path(round, name), dict.fromkeys(places(round, name).values(), typed))
    close_round(folder / "expert")
    scenarios = [one for one in load_split(work).scenarios if one.language == "en"]
    release = make_release(folder / "release", {"test": scenarios[:-1], "dev": scenarios[-1:]})
    private_folder(release).mkdir()
    add_link(work, "release", release)
    for name, split in (("run-candidates", work), ("run-release", release)):
        model = "baseline:copy-last-turn"
        evaluate(
            EvaluateSpec(model=model, split=str(split), out=str(folder / name), embedder="none")
        )
    model = write_script(folder / "model.jsonl", [{"id": "*", "text": REPLY["en"]}])
    run_study(spec("sap", model, folder / "study", arms=("sap",), language="en", limit=4))
    run_study(spec("logs", "logs:chats", folder / "logs", split=work / "safety"))
    return folder


@pytest.fixture
def lab(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published, tmp_path / "lab")


def require_gone(lab: Path) -> None:
    """Only the owner's own file, which the command names, still has Emily's words; everything else verifies."""
    # A comment of an annotator on another item stays.
    assert files_with(lab, f"the {WORDS}") == ["raw.jsonl"]
    assert all(name == "raw.jsonl" for name in files_with(lab, EMILY_CARTER))
    for name in ("crowd", "expert"):
        outcome = read_outcome(lab / name)
        assert outcome.decisions
        assert {item for item, _, _ in outcome.annotations} == outcome.sources.keys()
    for name in ("run-candidates", "run-release"):
        counts = load_run(lab / name).summary.counts
        assert (counts.erased > 0, counts.scored) == (True, counts.items)
    ids = {one.id for one in load_split(lab / "release").scenarios}
    assert ids
    assert ids.isdisjoint(read_erased(lab / "release" / TOMBSTONES))


def test_before_a_purge(lab: Path) -> None:
    before = read_outcome(lab / "crowd").decisions
    done = h2htalk_here("curate", "erase", str(lab / "work"), EMILY_CARTER)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    named = [
        line.split(":")[0].split()[-1].rpartition("/")[2]
        for line in lines
        if line.endswith(" erased")
    ]
    assert set(named) == set(MADE)
    assert "annalena, bogumil: ask them to delete their copies" in done.stdout
    assert "the next version with this folder as `previous`" in done.stdout
    assert "raw.jsonl:2" in done.stderr
    require_gone(lab)
    gone = workspace_items(lab)
    after = read_outcome(lab / "crowd").decisions
    assert after == {key: one for key, one in before.items() if key[0] not in gone}
    curate(lab / "curate.toml")
    require_gone(lab)
    # Erasing her again, under any name, changes nothing.
    files = all_files(lab)
    assert erase(Workspace(lab / "work"), "chat-000002").folders
    assert all_files(lab) == files


def workspace_items(lab: Path) -> set[str]:
    lines = [line for _, line in read_jsonl(lab / "work" / "tombstones.jsonl")]
    return {item for line in lines for item in line.get("items", ())}


@pytest.mark.parametrize("asked", [f"chat:{EMILY_CARTER}", "raw-5"])
def test_after_a_purge(lab: Path, asked: str) -> None:
    """Raw names were unknown after a purge."""
    place = Workspace(lab / "work")
    purge(place)
    assert files_with(lab / "work", EMILY_CARTER) == files_with(lab / "work", "raw-5") == []
    assert (place.path / "erasure.key").stat().st_mode & 0o077 == 0
    before = {one.stage: one.counts for one in summaries(place)}
    # What she wrote nearly alike goes with each of her dialogues.
    assert {"chat-000002", "chat-000005"} <= set(erase(place, asked).ids)
    require_gone(lab)
    index = [line["id"] for _, line in read_jsonl(place.path / "erasure_index.jsonl")]
    assert not {"chat-000002", "chat-000005"}.intersection(index)
    after = {one.stage: one.counts for one in summaries(place)}
    assert after["review"].written == before["review"].written - len(workspace_items(lab))
    assert after["anonymize"].read == before["anonymize"].read - 2
    for one, other in (("anonymize", "safety"), ("safety", "dedup"), ("compose", "review")):
        assert after[one].written == after[other].read
    # Her name is still known, and nobody else's is hers.
    assert set(erase(place, EMILY_CARTER).ids) <= {"chat-000002", "chat-000005", "chat-p0001"}
    with pytest.raises(DataError, match="no id 'Nobody'"):
        erase(place, "Nobody")


def test_versions_on_the_hub_and_caches(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cached copies go, also of a raw set, which nobody had anonymised; what is on the Hub is its owner's to delete."""
    home = tmp_path / "home"
    monkeypatch.setattr(constants, "HF_HOME", str(home))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(home / "datasets"))
    kept, made, raw = map(cache_folder, ("lab/else", "lab/made", "lab/raw"))
    raws = (raw, home / "datasets" / "lab___raw")
    for folder in (kept, made, *raws):
        (folder / "snapshots").mkdir(parents=True)
        (folder / "snapshots" / "rows.jsonl").write_text(f"the {WORDS}")
    stage = lab / "work" / "gather" / "stage.json"
    settings = json.loads(stage.read_text())
    settings["settings"]["sources"][0]["sha256"] = f"hub:lab/raw@{'a' * 40}:en#train"
    stage.write_text(json.dumps(settings))
    add_link(private_folder(lab / "release"), "hub", "hub:lab/made@v1.0")
    other = make_release(tmp_path / "other")
    private_folder(other).mkdir()
    add_link(lab / "work", "release", other)
    add_link(private_folder(other), "hub", "hub:lab/other@v1.0")
    folders = {one.name: one for one in erase(Workspace(lab / "work"), EMILY_CARTER).folders}
    assert [folder.exists() for folder in (kept, made, *raws)] == [True, False, False, False]
    first, second = folders["hub:lab/made@v1.0"].messages
    assert first == f"deleted from the cache: {made}"
    assert "`hf repos tag delete lab/made v1.0 --repo-type dataset`" in second
    (last,) = [one for name, one in folders.items() if name.startswith("hub:lab/raw@aaaa")]
    assert [
        str(folder) in message for folder, message in zip(raws, last.messages, strict=False)
    ] == [True, True]
    assert "still holds the raw text" in last.messages[-1]
    # Nothing of hers was in the other release.
    assert "hub:lab/other@v1.0" not in folders
    require_gone(lab)


def test_folders_that_were_moved_or_are_busy(lab: Path, tmp_path: Path) -> None:
    (lab / "crowd").rename(tmp_path / "elsewhere")
    work = str(lab / "work")
    with writer_lock(RunFolder(lab / "run-release").calls_file):
        done = h2htalk_here("curate", "erase", work, EMILY_CARTER)
    assert done.returncode == 3
    assert "crowd: missing" in done.stdout
    assert (
        "another process is writing it; wait for it, then start the same erasure again"
        in done.stdout
    )
    assert "not finished" in done.stderr
    assert files_with(lab, f"the {WORDS}") != ["raw.jsonl"]
    wrong = h2htalk_here("curate", "erase", work, EMILY_CARTER, "--also", str(tmp_path / "nowhere"))
    assert (wrong.returncode, "is no folder" in wrong.stderr) == (2, True)
    done = h2htalk_here(
        "curate", "erase", work, EMILY_CARTER, "--also", str(tmp_path / "elsewhere")
    )
    assert done.returncode == 0
    # The expert round is known to the crowd round alone.
    assert files_with(tmp_path / "elsewhere", f"the {WORDS}") == []
    assert files_with(lab, f"the {WORDS}")
    done = h2htalk_here("curate", "erase", work, EMILY_CARTER, "--also", str(lab))
    assert done.returncode == 0
    (tmp_path / "elsewhere").rename(lab / "crowd")
    require_gone(lab)


@pytest.mark.parametrize("name", ["crowd", "expert", "release", "run-release", "study"])
def test_an_erasure_killed_at_any_write_is_completed_by_the_next(
    published: Path, tmp_path: Path, name: str
) -> None:
    """The one `erase` over all kinds of folders: refused until it is completed, then as if it was never cut."""
    cases = "".join(
        path.read_text() for path in (published / "study" / "inputs" / "split").glob("*.jsonl")
    )
    case = min(one.id for one in cases_of("high_risk", "en") if f'"{one.id}"' in cases)
    erased = ErasedIds(frozenset({"chat-000002", "chat-000005", "chat-p0001", case}))
    control = shutil.copytree(published / name, tmp_path / "control" / name)
    items = erase_folder(control, erased).items
    expected = words_in(control)
    assert items
    assert not files_with(control, f"the {WORDS}")
    for write in range(100):
        folder = shutil.copytree(published / name, tmp_path / str(write) / name)
        if not interrupted_at(write, partial(erase_folder, folder, erased)):
            break
        if write:  # the first one writes the mark
            with pytest.raises(DataError, match="an erasure was interrupted here"):
                require_erased(folder)
        again = erase_folder(folder, erased)
        assert (again.items, again.unfinished, words_in(folder)) == (items, False, expected), write
        assert not files_with(folder, f"the {WORDS}")
        require_erased(folder)
    assert write > 3


def words_in(folder: Path) -> dict[str, bytes]:
    """Files by name, but for those with times: pages, workbooks, events."""
    return {
        name: data
        for name, data in all_files(folder).items()
        if not name.endswith((".html", ".xlsx")) and "events" not in name
    }


def test_an_interrupted_erasure_goes_out_by_no_command_and_the_next_run_completes_it(
    lab: Path, tmp_path: Path
) -> None:
    """Half erased folders were published, exported, shown on pages and opened as rounds of annotators."""
    for step in (60, 230):
        folder = shutil.copytree(lab, tmp_path / str(step) / "lab")
        out = tmp_path / str(step) / "out"
        assert killed_at(
            step, lambda folder=folder: erase(Workspace(folder / "work"), EMILY_CARTER)
        )  # type: ignore[misc]
        assert (folder / "work" / "tombstones.jsonl").exists()
        compared = h2htalk_here(
            "compare", folder / "run-candidates", folder / "run-candidates", "--out", out / "page"
        )
        refused = "error: " in compared.stderr
        for send in (
            lambda folder=folder: publish(folder / "release", "lab/made", dry_run=True),
            lambda folder=folder, out=out: export_results(
                folder / "run-release", "bundle", out / "bundle"
            ),
            lambda folder=folder, out=out: open_round(
                spec_of("crowd", folder / "work"), out / "one"
            ),
            lambda folder=folder, out=out: open_round(
                spec_of("crowd", folder / "work" / "compose"), out / "two"
            ),
            lambda folder=folder, out=out: open_round(
                spec_of("expert", folder / "crowd", 3), out / "three"
            ),
            lambda folder=folder: load_split(folder / "release"),
        ):
            try:
                send()  # type: ignore[no-untyped-call]
            except H2HTalkError:
                refused = True
        assert refused, step
        assert files_with(out, f"the {WORDS}") == [], step
        curate(folder / "curate.toml")
        require_gone(folder)


def test_pages_and_exports_of_a_run_are_named(lab: Path) -> None:
    run = lab / "run-release"
    log = lab / "log.json"
    for words in (
        ("compare", run, lab / "run-candidates", "--metric", "lexical", "--out", lab / "page"),
        ("gate", run, "--reference-run", run, "--markdown", lab / "gate.md", "--junit", log),
        ("results", "export", run, "--to", "bundle", "--out", lab / "bundle.zip"),
    ):
        assert "error" not in h2htalk_here(*words).stderr
    log.unlink()
    done = h2htalk_here("curate", "erase", str(lab / "work"), EMILY_CARTER)
    named = [
        line.partition(":")[0]
        for line in done.stdout.splitlines()
        if line.endswith(": not changed")
    ]
    assert {name.rpartition("/")[2] for name in named} == {"page", "gate.md", "bundle.zip"}
    assert (
        "a folder that lost some: if it was made before, make it again, or delete it" in done.stdout
    )
    closing = done.stdout.splitlines()[-1]
    assert all(what in closing for what in ("caches of `datasets`", "spreadsheets that come back"))


def test_items_made_again_without_a_reference_stay_in_later_rounds() -> None:
    """The id of an item says nothing where its record tells what it rests on."""
    erased = ErasedIds(frozenset({"d-2"}), frozenset({"d-1:dialogue_base"}))
    record: dict[str, Any] = {
        "id": "d-1:dialogue_base",
        "references": [{"text": "Yes.", "provenance": {"dialogue": "d-3"}}],
    }
    assert not erased.covers_item(record["id"], record)
    silents: list[dict[str, Any] | None] = [{**record, "references": ["Yes."]}, None]
    for silent in silents:
        assert erased.covers_item(record["id"], silent)
    assert erased.covers_item("d-1:dialogue_base#keep", None)
    assert erased.covers(
        {**record, "references": [{"text": "No.", "provenance": {"dialogue": "d-2"}}]}
    )


@pytest.mark.parametrize(("name", "covered"), table("curation", "ids_of_an_erased_dialogue"))
def test_ids_of_items_calls_and_ties(name: str, covered: bool) -> None:
    assert ErasedIds(frozenset({"d-2"})).covers_item(name, None) == covered
    assert ErasedIds(frozenset({"d-2"})).covers({"id": name}) == covered


@pytest.mark.parametrize("record", table("curation", "records_of_an_erased_id"))
def test_records_that_hold_words_of_an_erased_id(record: dict[str, object]) -> None:
    assert ErasedIds(frozenset({"d-2", "p-2"})).covers(record)
    assert not ErasedIds(frozenset({"d-3"})).covers(record)
