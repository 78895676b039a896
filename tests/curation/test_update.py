"""`curate run --update`: new files and lines of sources are read, and what was gathered stays."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from curation_made import source

from h2htalk.curation.curate import curate
from h2htalk.curation.workspace import Workspace
from h2htalk.errors import ConfigError

SPEC = f'workspace = "work"\npart = 3\nprocesses = 1\n{source("a", "a")}{source("b", "b.jsonl")}'
WORDS = ("kiln", "tram", "violin", "orchard", "ferry", "lantern", "quarry", "saddle", "willow", "chimney", "harbour")
WORDS += ("meadow", "cellar", "bridge", "attic", "garden", "market", "stove", "ladder", "canal", "beach", "castle")
WORDS += ("forest", "piano", "kitchen", "window", "mountain", "river", "teacher", "painting")


def line(number: int) -> str:
    rng = random.Random(number)
    first, second = (" ".join(rng.sample(WORDS, 9)) for _ in range(2))
    said = {"user": f"Yesterday I saw the {first} again.", "assistant": f"What did the {second} look like?"}
    record = {"user_id": f"u{number % 4}", "messages": [{"role": r, "content": c} for r, c in said.items()]}
    return json.dumps(record) + "\n"


def lines(*numbers: int) -> str:
    return "".join(map(line, numbers))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    (tmp_path / "curate.toml").write_text(SPEC)
    (tmp_path / "a").mkdir()
    (tmp_path / "a/2.jsonl").write_text(lines(*range(4)))
    (tmp_path / "b.jsonl").write_text(lines(10, 11))
    curate(tmp_path / "curate.toml", ["gather", "anonymize", "safety", "dedup"])
    return tmp_path / "curate.toml"


def run(spec: Path, update: bool = False) -> Workspace:
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
    place = run(spec)
    before, made = persons(place, "dedup"), place.stage("safety").mark("part-00000").stat().st_mtime_ns
    add(spec.parent)
    with pytest.raises(ConfigError, match=r"a/1\.jsonl is new; to read what is new: --update"):
        run(spec)
    place = run(spec, update=True)
    after = persons(place, "dedup")
    assert set(after) - set(before) == {"a-000005", "a-000006", "a-000007", "b-000003"}
    assert before.items() <= after.items()
    assert [after[f"a-00000{n}"] for n in (5, 6, 7)] == [before[f"a-00000{n}"] for n in (3, 1, 2)]
    assert place.stage("safety").mark("part-00000").stat().st_mtime_ns == made
    audit = {str(one["id"]): one["raw"] for one in place.stage("gather").records("audit")}
    assert [audit[name]["file"] for name in ("a-000005", "a-000007")] == ["a/1.jsonl", "a/2.jsonl"]
    assert audit["b-000003"] | {"id": 0} == audit["b-000003"] | {"line": 3, "row": 3, "id": 0}
    assert persons(run(spec), "dedup") == after


def test_a_line_that_is_being_written_is_read_when_it_is_whole(spec: Path) -> None:
    """Half a line was gathered, and its other half could not be."""
    half, path = line(4)[:40], spec.parent / "a/2.jsonl"
    for text, count in ((half, 6), (line(4)[40:].rstrip(), 7), ("\n" + line(5)[:50], 7), (line(5)[50:], 8)):
        with path.open("a") as file:
            file.write(text)
        place = run(spec, update=True)
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
            run(spec, update=True)
    assert len(persons(run(spec, update=True), "dedup")) == 10


def test_changed_and_missing_files_are_named(spec: Path) -> None:
    """Both were "another setting of sources"."""
    (spec.parent / "b.jsonl").write_text(lines(10, 13))
    (spec.parent / "a/2.jsonl").rename(spec.parent / "a/3.jsonl")
    for update in (False, True):
        with pytest.raises(ConfigError, match=r"gathered file 2\.jsonl is missing.*b\.jsonl has changed.*--from-stage"):
            run(spec, update=update)
    assert len(persons(curate(spec, from_stage="gather"), "dedup")) == 6
