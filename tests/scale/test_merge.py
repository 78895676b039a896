"""What a merge refuses; attempts on object storage; erasure from attempts; merges that are killed."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import h2htalk
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.erasure.sweep import sweep
from h2htalk.data.files import (
    read_jsonl,
    read_sealed,
    sha256_of,
    write_jsonl,
    write_sealed,
    writer_lock,
)
from h2htalk.data.links import add_link, read_links
from h2htalk.errors import ConfigError, DataError, H2HTalkError, IncompleteError
from h2htalk.scale.attempt_erasure import erase_stored
from h2htalk.scale.attempts import Attempt, Shard, winner_of
from h2htalk.scale.merge import find_attempts, merge
from h2htalk.scale.shards import evaluate_shard
from h2htalk.scale.storage_folder import StorageFolder
from support.command_line import h2htalk_here, scripted
from support.doubles.loopback import Answer, LoopbackServer
from support.kills import killed_at
from support.shards import ITEMS, OF, attempt_all, attempts_at, own_words, same_bytes, spec_of
from support.splits import write_split

Damage = Callable[[Path], object]
BUCKET = "memory://bucket/runs"


@pytest.fixture(scope="module")
def single_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with attempts at all shards of a run, and the same as a single run."""
    folder = tmp_path_factory.mktemp("whole")
    with LoopbackServer(reply=own_words) as server:
        attempt_all(spec_of(server, folder))
        h2htalk.evaluate(spec_of(server, folder, "single"))
    return folder


@pytest.fixture
def shards(single_run: Path, tmp_path: Path) -> Path:
    shutil.copytree(single_run / "shards", tmp_path / "shards")
    return tmp_path / "shards"


def attempt_of(shards: Path, number: int) -> Path:
    return next((shards / f"{number}-of-{OF}").iterdir())


def seal_again(attempt: Path) -> None:
    """As somebody would who edits a file and its hash."""
    mark = read_sealed(attempt / "shard.json", "")
    mark["files"] = {name: sha256_of(attempt / name) for name in mark["files"]}
    write_sealed(attempt / "shard.json", mark)


def edit_calls(attempt: Path, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    write_jsonl(
        attempt / "calls.jsonl", edit([line for _, line in read_jsonl(attempt / "calls.jsonl")])
    )
    seal_again(attempt)


def first_call(shards: Path) -> dict[str, Any]:
    return next(line for _, line in read_jsonl(attempt_of(shards, 1) / "calls.jsonl"))


def edit_model(attempt: Path) -> None:
    raw = json.loads((attempt / "attempt.json").read_text())
    raw["signature"]["subject"]["model"] = "other"
    (attempt / "attempt.json").write_text(json.dumps(raw))
    seal_again(attempt)


def another_attempt(shards: Path, total: int = OF, items: int = ITEMS, **settings: Any) -> None:
    """Shard 2 of another run, made elsewhere, in the place of its own."""
    shutil.rmtree(shards / "2-of-4")
    write_split(shards.parent / "split", items)
    with LoopbackServer(reply=own_words) as server:
        evaluate_shard(spec_of(server, shards.parent, "other", **settings), Shard(2, total))
    shutil.move(shards.parent / "other" / f"2-of-{total}", shards)


NUMBER = "another number of shards: .* is shard 2 of 5"
EDITED = "is missing, or was edited"
DAMAGES: list[tuple[Damage, type[H2HTalkError], str]] = [
    (lambda s: edit_model(attempt_of(s, 2)), ConfigError, "differ in model"),
    (lambda s: another_attempt(s, temperature=0.5), ConfigError, r"differ in .*temperature \(0"),
    (lambda s: another_attempt(s, seed=7), ConfigError, r"differ in .*seed \("),
    (lambda s: another_attempt(s, sap="none"), ConfigError, r"differ in .*sap \("),
    (lambda s: another_attempt(s, items=ITEMS + 1), ConfigError, r"differ in items \("),
    (lambda s: another_attempt(s, total=5), ConfigError, NUMBER),
    (
        lambda s: shutil.rmtree(s / "2-of-4"),
        IncompleteError,
        "3 of 4 shards are finished; missing: 2",
    ),
    (lambda s: (attempt_of(s, 3) / "shard.json").unlink(), IncompleteError, "3 of 4 .*missing: 3"),
    (
        lambda s: (attempt_of(s, 3) / "shard.json").write_text('{"shard"'),
        IncompleteError,
        "3 of 4 .*missing: 3",
    ),
    (
        lambda s: (attempt_of(s, 3) / "calls.jsonl").open("a").write("\n"),
        DataError,
        f"calls.jsonl {EDITED}",
    ),
    (lambda s: next((attempt_of(s, 3) / "baselines").iterdir()).unlink(), DataError, EDITED),
    (
        lambda s: (attempt_of(s, 3) / "shard.json").write_text("{}"),
        DataError,
        "not an attempt at a shard",
    ),
    (
        lambda s: edit_calls(attempt_of(s, 4), lambda lines: [*lines, lines[0]]),
        DataError,
        "1 sample twice, first 'made",
    ),
    (
        lambda s: edit_calls(attempt_of(s, 4), lambda lines: lines[1:]),
        DataError,
        "1 sample missing, first 'made",
    ),
    (
        lambda s: edit_calls(attempt_of(s, 2), lambda lines: [*lines, first_call(s)]),
        DataError,
        "1 sample of another shard",
    ),
]


@pytest.mark.parametrize(("damage", "error", "message"), DAMAGES)
def test_what_does_not_fit_is_refused(
    shards: Path, damage: Damage, error: type[H2HTalkError], message: str
) -> None:
    damage(shards)
    with pytest.raises(error, match=message) as raised:
        merge([str(shards)], shards.parent / "merged")
    assert raised.value.exit_code == (3 if error is IncompleteError else 2)
    assert not (shards.parent / "merged").exists()


def test_places_may_be_named_one_by_one_and_twice(shards: Path, single_run: Path) -> None:
    places = [str(attempt_of(shards, 1)), *(str(shards / f"{n}-of-{OF}") for n in range(1, OF + 1))]
    merge(places, shards.parent / "merged")
    assert same_bytes(single_run / "single", shards.parent / "merged") == {}
    nothing = {str(shards.parent / "nothing"): "no attempt at a shard is there"}
    nothing |= {
        "nothing://bucket/x": "Protocol not known: nothing",
        "memory://bucket/empty": "no attempt at a shard",
    }
    for address, message in nothing.items():
        with pytest.raises((ConfigError, DataError), match=message):
            merge([address], shards.parent / "other")


def test_an_attempt_is_counted_once_whatever_its_folder_is_called(
    shards: Path, single_run: Path
) -> None:
    shutil.copytree(shards / "1-of-4", shards / "1-of-4.bak")
    merge([str(shards), os.path.relpath(shards)], shards.parent / "merged")
    assert same_bytes(single_run / "single", shards.parent / "merged") == {}


def test_a_ghost_that_ends_after_the_merge_changes_nothing_and_what_people_gave_is_kept(
    shards: Path,
) -> None:
    out = shards.parent / "merged"
    summary = merge([str(shards)], out)
    shutil.copytree(
        attempt_of(shards, 2), shards / "2-of-4" / "00000000T000000-00000000"
    )  # it began before the winner
    assert merge([str(shards)], out) == summary
    (out / "judgements").mkdir()
    (out / "summary.json").unlink()
    with pytest.raises(DataError, match=r"holds judgements and no summary"):
        merge([str(shards)], out)
    assert (out / "judgements").is_dir()


def test_other_commands_say_what_an_attempt_is(shards: Path) -> None:
    done = h2htalk_here("report", attempt_of(shards, 1))
    assert "is an attempt, and this command needs a run; `h2htalk merge --out RUN" in done.stderr


# --- Object storage ---------------------------------------------------------------------------------------------------


@pytest.fixture
def bucket() -> Iterator[str]:
    MemoryFileSystem.store.clear()
    yield BUCKET
    MemoryFileSystem.store.clear()


@pytest.fixture(scope="module")
def files_of_attempt(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an attempt at all items on object storage, by their names there."""
    MemoryFileSystem.store.clear()
    with LoopbackServer(reply=own_words) as server:
        attempt_all(spec_of(server, tmp_path_factory.mktemp("stored"), BUCKET), 1)
    files = {name: file.getvalue() for name, file in MemoryFileSystem.store.items()}
    MemoryFileSystem.store.clear()
    return files


def test_shards_on_object_storage_are_the_same_run(tmp_path: Path, bucket: str) -> None:
    with LoopbackServer(reply=own_words) as server:
        attempt_all(spec_of(server, tmp_path, bucket))
        h2htalk.evaluate(spec_of(server, tmp_path, "single"))
    merge([bucket], tmp_path / "merged")
    assert same_bytes(tmp_path / "single", tmp_path / "merged") == {}
    assert [
        name
        for name in MemoryFileSystem.store
        if "/1-of-4/" in name and name.endswith("/calls/00001.jsonl")
    ]
    assert {link.target for link in read_links(tmp_path / "merged")} == {
        attempt.storage.address for attempt in found_at(bucket)
    }


def found_at(address: str) -> list[Attempt]:
    return list(find_attempts(StorageFolder(address)))


@pytest.mark.parametrize("broken", ["calls/00001.jsonl", "inputs/", "shard.json"])
def test_an_upload_that_broke_is_no_finished_attempt_and_its_replies_are_taken_over(
    tmp_path: Path, bucket: str, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    single_run = MemoryFileSystem.pipe_file

    def breaking(self: MemoryFileSystem, path: str, value: bytes, mode: str = "overwrite") -> None:
        if broken in path:
            single_run(
                self, path, value[: len(value) // 2]
            )  # as when a client dies: half a file may be there
            raise OSError("connection reset")
        single_run(self, path, value, mode)

    with LoopbackServer(reply=own_words) as server:
        spec = spec_of(server, tmp_path, bucket)
        with (
            patch.object(MemoryFileSystem, "pipe_file", breaking),
            pytest.raises(DataError, match="connection reset"),
        ):
            evaluate_shard(spec, Shard(1, 2))
        assert winner_of(attempts_at(spec, 1, 2)) is None
        replies = list(
            tmp_path.glob("h2htalk-*/*/work-*/*/calls.jsonl")
        )  # replies that the storage did not take are not lost
        assert [len(path.read_bytes().splitlines()) for path in replies] == (
            [12] if "calls" in broken else []
        )
        requests = server.requests
        evaluate_shard(spec, Shard(1, 2))
        assert (
            server.requests - requests
            <= {"calls/00001.jsonl": 7, "inputs/": 12, "shard.json": 0}[broken]
        )
        evaluate_shard(spec, Shard(2, 2))
        h2htalk.evaluate(spec_of(server, tmp_path, "single"))
    merge([bucket], tmp_path / "merged")
    assert same_bytes(tmp_path / "single", tmp_path / "merged") == {}


def test_an_object_whose_name_leads_elsewhere_is_refused(tmp_path: Path, bucket: str) -> None:
    with LoopbackServer(reply=own_words) as server:
        attempt_all(spec_of(server, tmp_path, bucket), 1)
    address = found_at(bucket)[0].storage.address.removeprefix("memory:/")
    store = MemoryFileSystem.store
    store[f"{address}/../../../../../../../../{tmp_path}/planted"] = store[
        f"{address}/attempt.json"
    ]
    with pytest.raises(DataError, match="leads out of its folder"):
        merge([bucket], tmp_path / "merged")
    assert not (tmp_path / "planted").exists()


# --- Erasure ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", ["shards", "memory://bucket/erased"])
def test_an_erasure_reaches_winners_and_losers_and_what_is_merged(
    tmp_path: Path, bucket: str, out: str
) -> None:
    """From the merged run to every attempt, here and on object storage; then a merge makes the run without them."""
    with LoopbackServer(reply=own_words) as server:
        spec = spec_of(server, tmp_path, out)
        attempt_all(spec)
        for ghost in found_at(spec.out):  # a ghost beside the winner of each shard
            with patch("h2htalk.scale.shards.winner_of", return_value=None):
                evaluate_shard(spec, ghost.shard)
    merge([spec.out], tmp_path / "merged")
    gone = "made-00003"
    places = [attempt.storage.address for attempt in found_at(spec.out)]
    assert len(places) == 2 * OF
    erased = ErasedIds(frozenset({gone}))
    (tmp_path / "workspace").mkdir()
    add_link(tmp_path / "workspace", "run", tmp_path / "merged")
    swept = list(sweep(tmp_path / "workspace", erased))
    assert sorted(ghost.kind for ghost in swept) == ["attempt"] * 2 * OF + ["run"]
    assert not any(ghost.messages for ghost in swept), swept
    runs = [
        path for path in tmp_path.rglob("*") if path.is_file() and path.parent != tmp_path / "split"
    ]
    contents = [path.read_bytes() for path in runs]
    contents += [file.getvalue() for file in MemoryFileSystem.store.values()]
    assert not [text for text in contents if re.search(rb"\bitem3\b", text)]
    merged_again = merge([spec.out], tmp_path / "again")
    assert merged_again.counts.items == ITEMS - 1
    assert merged_again.counts.erased == 1
    assert same_bytes(tmp_path / "merged", tmp_path / "again") == {}


@pytest.mark.parametrize("fails_at", range(1, 64, 3))
def test_an_interrupted_erasure_on_storage_is_completed_by_the_next(
    tmp_path: Path, bucket: str, files_of_attempt: dict[str, bytes], fails_at: int
) -> None:
    for name, content in files_of_attempt.items():
        MemoryFileSystem().pipe_file(name, content)
    url = found_at(bucket)[0].storage.address
    erased = ErasedIds(frozenset({"made-00003"}))
    steps = iter(range(1, 100))

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def step(*arguments: object) -> object:
            if next(steps) == fails_at:
                raise DataError("503")
            return real(*arguments)

        return step

    with (
        patch.object(StorageFolder, "write", failing(StorageFolder.write)),
        patch.object(StorageFolder, "remove", failing(StorageFolder.remove)),
        suppress(DataError),
    ):
        erase_stored(url, erased)
    done = erase_stored(url, erased)
    assert not done.unfinished
    assert done.items == {"made-00003"}
    assert not [
        file
        for file in MemoryFileSystem.store.values()
        if re.search(rb"\bitem3\b", file.getvalue())
    ]
    assert merge([bucket], tmp_path / "merged").counts.erased == 1


def test_an_attempt_from_which_somebody_is_erased_while_it_runs_does_not_finish(
    tmp_path: Path, bucket: str
) -> None:
    def reply(body: dict[str, Any], count: int) -> str | Answer:
        if server.requests == 3:
            erase_stored(found_at(bucket)[0].storage.address, ErasedIds(frozenset({"made-00003"})))
        return own_words(body, count)

    with LoopbackServer(reply=reply) as server:
        spec = spec_of(server, tmp_path, bucket, concurrency=1)
        with pytest.raises(
            IncompleteError, match="items were erased from this attempt while it ran"
        ):
            evaluate_shard(spec, Shard(1, 1))
    assert not [
        file
        for file in MemoryFileSystem.store.values()
        if re.search(rb"\bitem3\b", file.getvalue())
    ]


@pytest.fixture
def small_shards(tmp_path: Path) -> str:
    split = str(write_split(tmp_path / "split", 6))
    spec = EvaluateSpec(
        model=scripted(tmp_path), split=split, out=str(tmp_path / "small_shards"), embedder="none"
    )
    for number in (1, 2):
        evaluate_shard(spec, Shard(number, 2))
    return str(spec.out)


@pytest.mark.parametrize("stride", [9, pytest.param(3, marks=pytest.mark.slow)])
def test_a_merge_killed_before_any_of_its_changes_is_done_again(
    tmp_path: Path, small_shards: str, stride: int
) -> None:
    out = tmp_path / "merged"
    for step in itertools.count(
        4, stride
    ):  # the folder that each kill leaves is where the next merge begins
        if not killed_at(step, lambda: merge([small_shards], out)):
            break
    assert step > 20
    assert merge([small_shards], out).counts.scored == 6
    assert [path.name for path in tmp_path.iterdir() if "merged" in path.name] == ["merged"]
    merge([small_shards], tmp_path / "never killed")
    assert same_bytes(tmp_path / "never killed", out) == {}


def test_a_merge_at_work_is_left_alone(tmp_path: Path, small_shards: str) -> None:
    out = tmp_path / "merged"
    merge([small_shards], out)
    (out / "summary.json").unlink()
    with writer_lock(out / "calls.jsonl"), pytest.raises(DataError, match="wait"):
        merge([small_shards], out)
    assert (out / "run.json").is_file()
    assert merge([small_shards], out).counts.scored == 6
