"""A merge that is killed, wherever that is, is done again; one that is at work is left alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from command_line import scripted
from kills import killed_at
from splits_made import write_split

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.data.files import writer_lock
from h2htalk.errors import DataError
from h2htalk.scale.merge import merge
from h2htalk.scale.shards import Shard, evaluate_shard


@pytest.fixture
def shards(tmp_path: Path) -> str:
    split = str(write_split(tmp_path / "split", 6))
    spec = EvaluateSpec(model=scripted(tmp_path), split=split, out=str(tmp_path / "shards"), embedder="none")
    for number in (1, 2):
        evaluate_shard(spec, Shard(number, 2))
    return str(spec.out)


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_a_merge_killed_before_any_of_its_changes_is_done_again(tmp_path: Path, shards: str, stride: int) -> None:
    out = tmp_path / "merged"
    for step in itertools.count(4, stride):  # the folder that each kill leaves is where the next merge begins
        if not killed_at(step, lambda: merge([shards], out)):
            break
    assert step > 20
    assert merge([shards], out).counts.scored == 6
    assert [one.name for one in tmp_path.iterdir() if "merged" in one.name] == ["merged"]


def test_a_merge_at_work_is_left_alone(tmp_path: Path, shards: str) -> None:
    out = tmp_path / "merged"
    merge([shards], out)
    (out / "summary.json").unlink()
    with writer_lock(out / "calls.jsonl"), pytest.raises(DataError, match="wait"):
        merge([shards], out)
    assert (out / "run.json").is_file()
    assert merge([shards], out).counts.scored == 6
