"""A stage: parts through a rule, counted and resumed; new files and lines of sources with `curate run --update`."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import asdict
from pathlib import Path

import pytest
from curation_made import all_bytes, dialogue, dropping, gathered, keeping, source, stage

from h2htalk.curation.curate import curate
from h2htalk.curation.run import RuleFactory, run_stage
from h2htalk.curation.stage_folder import RecordCounts
from h2htalk.curation.workspace import Workspace
from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import write_json
from h2htalk.errors import ConfigError, DataError

SAD = dialogue(4, "I am so sad about the rain.", "Tell me about the rain.")
MADE = [dialogue(n) for n in range(1, 4)] + [SAD] + [dialogue(n, "Hello", "Hi", "Bye") for n in range(5, 9)]
KEEPING, DROPPING = RuleFactory(keeping), RuleFactory(dropping, ("sad",))


def test_kept_and_rejected_add_up_to_what_was_read(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    counts = run_stage(stage("anonymize", DROPPING), workspace, processes=1)
    assert counts == RecordCounts(8, 7, 1, 7, 0, {"says sad": 1}, {"review": 4})
    folder = workspace.stage("anonymize")
    assert [(r["id"], r["stage"]) for r in folder.records("rejected")] == [("made-000004", "anonymize")]
    assert json.loads((folder.path / "summary.json").read_text()) == asdict(counts)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_interrupted_stage_ends_with_the_same_bytes(tmp_path: Path, processes: int) -> None:
    whole, torn = gathered(tmp_path / "a", MADE), gathered(tmp_path / "b", MADE)
    run = stage("anonymize", DROPPING)
    run_stage(run, whole, processes=1)
    run_stage(run, torn, processes=1)
    folder = torn.stage("anonymize")
    folder.mark("part-00001").unlink()
    folder.file("kept", "part-00001").write_text('{"torn')
    partial = folder.path / "kept" / ".part-00001.jsonl.999"
    partial.write_text('{"id": "somebody"')
    run_stage(run, torn, processes=processes)
    assert not partial.exists()
    assert all_bytes(folder) == all_bytes(whole.stage("anonymize"))


def test_other_settings_are_an_error_that_names_them(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", KEEPING, operators={}, allow=["Nora"]), workspace, processes=1)
    with pytest.raises(ConfigError, match=r"another setting of operators; .* --from-stage anonymize"):
        run_stage(stage("anonymize", KEEPING, operators={"URL": "mask"}, allow=["Nora"]), workspace, processes=1)
    with pytest.raises(ConfigError, match="another version of its rule"):
        run_stage(stage("anonymize", KEEPING, 2, operators={}, allow=["Nora"]), workspace, processes=1)


@pytest.mark.parametrize("left", ["lines", "nothing"])
def test_missing_records_of_the_stage_before_are_an_error(tmp_path: Path, left: str) -> None:
    workspace = gathered(tmp_path, MADE)
    path = workspace.stage("gather").file("kept", "part-00001")
    lines = path.read_text().splitlines(keepends=True)
    path.unlink() if left == "nothing" else path.write_text("".join(lines[:-1]))
    with pytest.raises(DataError, match=r"part-00001\.jsonl: has [02] records, but 3 were written"):
        run_stage(stage("anonymize", KEEPING), workspace, processes=1)
    assert not workspace.stage("anonymize").finished


def test_a_removed_stage_keeps_what_was_paid_for(tmp_path: Path) -> None:
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", KEEPING), workspace, processes=1)
    folder = workspace.stage("anonymize")
    paid = [folder.path / name for name in ("calls.jsonl", "calls.lock")]
    for path in paid:
        write_json(path, {})
    folder.remove()
    assert sorted(path for path in folder.path.rglob("*") if path.is_file()) == sorted(paid)


@pytest.mark.parametrize("steps", range(6))
def test_a_cut_removal_leaves_nothing_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """`stage.json` was removed first, and the next run used the parts that were left."""
    workspace = gathered(tmp_path, MADE)
    run_stage(stage("anonymize", DROPPING, word="sad"), workspace, processes=1)
    folder, left = workspace.stage("anonymize"), iter(range(steps))

    def remove(path: Path) -> None:
        if next(left, None) is None:
            raise DataError("killed")
        remove_for_good(path)

    monkeypatch.setattr("h2htalk.curation.stage_folder.remove_for_good", remove)
    with contextlib.suppress(DataError):
        folder.remove()
    monkeypatch.undo()
    other = stage("anonymize", KEEPING, word="")
    if folder.path.exists():
        with pytest.raises(ConfigError, match="another setting of word"):
            run_stage(other, workspace, processes=1)
    folder.remove()
    assert run_stage(other, workspace, processes=1).kept == 8


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    key = workspace.open_key()
    assert len(key) == 32
    assert workspace.open_key() == key
    assert workspace.key_path.stat().st_mode & 0o077 == 0
    assert key.hex() not in (workspace.path / "workspace.json").read_text()
    # Another or missing key is an error.
    workspace = Workspace(tmp_path)
    workspace.open_key()
    for text, message in (("ab" * 32, "is not the key"), ("short", "must hold 32 bytes")):
        workspace.key_path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            workspace.open_key()
    workspace.key_path.unlink()
    with pytest.raises(ConfigError, match="is missing"):
        workspace.open_key()


SPEC = f'workspace = "work"\npart = 3\nprocesses = 1\n{source("a", "a")}{source("b", "b.jsonl")}'
WORDS = ("kiln", "tram", "violin", "orchard", "ferry", "lantern", "quarry", "saddle", "willow", "chimney", "harbour")
WORDS += ("meadow", "cellar", "bridge", "attic", "garden", "market", "stove", "ladder", "canal", "beach", "castle")
WORDS += ("forest", "piano", "kitchen", "window", "mountain", "river", "teacher", "painting")


def raw_line(number: int) -> str:
    rng = random.Random(number)
    first, second = (" ".join(rng.sample(WORDS, 9)) for _ in range(2))
    said = {"user": f"Yesterday I saw the {first} again.", "assistant": f"What did the {second} look like?"}
    record = {"user_id": f"u{number % 4}", "messages": [{"role": r, "content": c} for r, c in said.items()]}
    return json.dumps(record) + "\n"


def lines(*numbers: int) -> str:
    return "".join(map(raw_line, numbers))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "curate.toml").write_text(SPEC)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/2.jsonl").write_text(lines(*range(4)))
    (tmp_path / "b.jsonl").write_text(lines(10, 11))
    curate(tmp_path / "curate.toml", ["gather", "anonymize", "safety", "dedup"])
    return tmp_path / "curate.toml"


def again(spec: Path, update: bool = False) -> Workspace:
    return curate(spec, ["gather", "anonymize", "safety", "dedup"], update=update)


def persons(place: Workspace, stage: str) -> dict[str, str]:
    return {str(record["id"]): record["provenance"]["person"] for record in place.stage(stage).records()}


def add(folder: Path) -> None:
    """New lines in both sources, and a file that comes first."""
    with (folder / "a/2.jsonl").open("a") as file:
        file.write(lines(4, 5))
    (folder / "a/1.jsonl").write_text(lines(6))
    with (folder / "b.jsonl").open("a") as file:
        file.write(lines(12))


def test_new_lines_and_files_follow_what_was_gathered(spec: Path) -> None:
    place = again(spec)
    before, made = persons(place, "dedup"), place.stage("safety").mark("part-00000").stat().st_mtime_ns
    add(spec.parent)
    with pytest.raises(ConfigError, match=r"a/1\.jsonl is new; to read what is new: --update"):
        again(spec)
    place = again(spec, update=True)
    after = persons(place, "dedup")
    assert set(after) - set(before) == {"a-000005", "a-000006", "a-000007", "b-000003"}
    assert before.items() <= after.items()
    assert [after[f"a-00000{n}"] for n in (5, 6, 7)] == [before[f"a-00000{n}"] for n in (3, 1, 2)]
    assert place.stage("safety").mark("part-00000").stat().st_mtime_ns == made
    audit = {str(one["id"]): one["raw"] for one in place.stage("gather").records("audit")}
    assert [audit[name]["file"] for name in ("a-000005", "a-000007")] == ["a/1.jsonl", "a/2.jsonl"]
    assert audit["b-000003"] | {"id": 0} == audit["b-000003"] | {"line": 3, "row": 3, "id": 0}
    assert persons(again(spec), "dedup") == after


def test_a_line_that_is_being_written_is_read_when_it_is_whole(spec: Path) -> None:
    """Half a raw_line was gathered, and its other half could not be."""
    half, path = raw_line(4)[:40], spec.parent / "a/2.jsonl"
    for text, count in ((half, 6), (raw_line(4)[40:].rstrip(), 7), ("\n" + raw_line(5)[:50], 7), (raw_line(5)[50:], 8)):
        with path.open("a") as file:
            file.write(text)
        place = again(spec, update=True)
        assert (place.stage("gather").total().read, place.stage("gather").total().kept) == (count, count)
    assert [one["id"] for one in place.stage("gather").records()][-2:] == ["a-000005", "a-000006"]


def test_a_memory_bank_that_has_grown_is_not_read_twice(tmp_path: Path) -> None:
    bank = {"Ann": {"history": {"2023-04-27": [{"query": "Hi", "response": "Hello."}]}}}
    (tmp_path / "b.jsonl").write_text(json.dumps(bank) + "\n")
    source = SPEC[SPEC.rindex("[[") :].replace('"messages"', '"memory_bank"')
    (tmp_path / "curate.toml").write_text(f'workspace = "work"\n{source}')
    curate(tmp_path / "curate.toml", ["gather"])
    (tmp_path / "b.jsonl").write_text(json.dumps(bank) + "\n" + json.dumps(bank) + "\n")
    with pytest.raises(ConfigError, match=r"b\.jsonl has grown, but not by lines of JSON; .*--from-stage gather"):
        curate(tmp_path / "curate.toml", ["gather"], update=True)


@pytest.mark.parametrize("step", ["adopt_parts", "run_stage", "_remove"])
def test_an_update_that_is_cut_is_finished_by_the_next(spec: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    add(spec.parent)
    with monkeypatch.context() as patch:
        patch.setattr(f"h2htalk.curation.curate.{step}", lambda *args, **more: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            again(spec, update=True)
    assert len(persons(again(spec, update=True), "dedup")) == 10


def test_changed_and_missing_files_are_named(spec: Path) -> None:
    """Both were "another setting of sources"."""
    (spec.parent / "b.jsonl").write_text(lines(10, 13))
    (spec.parent / "a/2.jsonl").rename(spec.parent / "a/3.jsonl")
    for update in (False, True):
        with pytest.raises(ConfigError, match=r"gathered file 2\.jsonl is missing.*b\.jsonl has changed.*--from-stage"):
            again(spec, update=update)
    assert len(persons(curate(spec, from_stage="gather"), "dedup")) == 6
