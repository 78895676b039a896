"""Stages and shards on Ray, with a stand-in for it: what travels to a task, what errors become, what is tried again."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from h2htalk.errors import ConfigError, DataError, IncompleteError, MissingExtraError
from h2htalk.extras import Requirement
from h2htalk.parallel import EXECUTOR
from h2htalk.scale import ray_cluster
from h2htalk.scale.ray_cluster import Cluster, Task, connect, launch
from support.command_line import h2htalk_here, scripted
from support.curations import all_bytes, dialogue, gathered, run_one
from support.splits import write_split

WORDS = "the lighthouse keeper counted"


class RayError(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: BaseException) -> None:
        self.cause = cause


class StandIn:
    """Ray's calls, carried out at once in this process: arguments and results are pickled, the last task is done first.

    `lost` tasks end without a result.
    """

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self, *sizes: dict[str, float], lost: int = 0) -> None:
        self.sizes, self.lost = sizes, lost
        self.travelled: list[bytes] = []
        self.options: list[dict[str, Any]] = []
        self.submitted = self.most = 0

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": size} for size in self.sizes]

    def remote(self, **limits: int) -> Callable[..., Any]:
        return lambda function: SimpleNamespace(
            options=lambda **options: self.call(function, limits | options)
        )

    def call(self, function: Callable[..., Any], options: dict[str, Any]) -> Any:
        self.options.append(options)

        def remote(*arguments: object) -> tuple[Callable[..., Any], bytes]:
            self.travelled.append(pickle.dumps(arguments))
            self.submitted += 1
            self.most = max(self.most, self.submitted)
            return function, self.travelled[-1]

        return SimpleNamespace(remote=remote)

    def wait(self, references: Sequence[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        fits = any(size.get("CPU", 0) >= 1 for size in self.sizes)
        return ([references[-1]], references[:-1]) if fits else ([], references)

    def get(self, reference: tuple[Callable[..., Any], bytes]) -> Any:
        self.submitted -= 1
        if self.lost:
            self.lost -= 1
            raise RayError("the worker died")
        function, arguments = reference
        try:
            result = pickle.dumps(function(*pickle.loads(arguments)))
        except Exception as error:
            raise RayTaskError(error) from error
        self.travelled.append(result)
        return pickle.loads(result)


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[StandIn], Cluster]]:
    before = EXECUTOR.set(None)

    def run_on(ray: StandIn) -> Cluster:
        cluster = Cluster(ray, 0.0)
        EXECUTOR.set(cluster)
        return cluster

    monkeypatch.setattr(ray_cluster, "_QUIET", 0.2)
    yield run_on
    EXECUTOR.reset(before)


def test_stages_have_the_same_bytes_and_neither_dialogues_nor_the_key_travel(
    tmp_path: Path, on: Callable[[StandIn], Cluster]
) -> None:
    texts = [
        (f"my name is Emily Carter, {WORDS} {n} ships", f"You said: {WORDS} {n}.")
        for n in range(20)
    ]
    messages = [dialogue(n, *texts[n - n % 2]) for n in range(20)]
    local = gathered(tmp_path / "here", messages, part=4)
    (tmp_path / "there").mkdir()
    shutil.copy2(local.key_path, tmp_path / "there")
    on_ray = gathered(tmp_path / "there", messages, part=4)
    ray = StandIn({"CPU": 1}, {"CPU": 1}, {"CPU": 0})
    for stage in ("anonymize", "safety", "dedup"):
        EXECUTOR.set(None)
        counts = run_one(stage, local)
        on(ray)
        assert run_one(stage, on_ray) == counts, "one process is set, and many machines work"
        assert all_bytes(local.stage(stage)) == all_bytes(on_ray.stage(stage))
    assert counts.rejected >= 10  # duplicates are found in both
    assert (
        len(ray.options) == 3 * 5 + 5 + 42
    )  # the parts of each stage, those that dedup maps, its bands
    assert ray.most == 4  # two tasks ahead for each CPU
    limits = ("num_cpus", "num_gpus", "max_retries", "max_calls")
    assert set(map(itemgetter(*limits), ray.options)) == {(1, 0, 3, 0)}
    secrets = [WORDS.encode(), b"Emily", local.open_key(), local.open_key().hex().encode()]
    travelled = b"\n".join(ray.travelled)
    assert [secret for secret in secrets if secret in travelled] == []
    assert max(map(len, ray.travelled)) < 4_000


def fails(error: Exception | None) -> str:
    if error is not None:
        raise error
    return "done"


def test_an_error_of_a_rule_is_raised_bare_and_a_bug_as_it_is(
    on: Callable[[StandIn], Cluster],
) -> None:
    cluster = on(StandIn({"CPU": 2}))
    with pytest.raises(DataError, match="part-00000: broken"):
        list(cluster(fails, [(None,), (DataError("part-00000: broken"),)]))
    with pytest.raises(RayTaskError) as raised:
        list(cluster(fails, [(ZeroDivisionError(),)]))
    assert isinstance(raised.value.cause, ZeroDivisionError)


def test_a_lost_worker_a_small_and_a_silent_cluster_are_incomplete(
    on: Callable[[StandIn], Cluster],
) -> None:
    with pytest.raises(
        IncompleteError,
        match=r"ended before its work was done \(RayError\); .* the same command cont",
    ):
        list(on(StandIn({"CPU": 1}, lost=1))(fails, [(None,)]))
    with pytest.raises(IncompleteError, match="no machine of the Ray cluster has a CPU and 2 GPUs"):
        list(on(StandIn({"GPU": 4})).results([Task(fails, (None,), gpus=2)], 1))
    with pytest.raises(IncompleteError, match="does not answer any more"):
        list(on(StandIn())(fails, [(None,)]))


def test_machines_of_another_version_or_without_folder_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"has h2htalk .*, not 0\.0\.0: install the same"):
        ray_cluster._call("0.0.0", str(tmp_path), fails, (None,))
    with pytest.raises(ConfigError, match=r"has no .*/nowhere: start where all machines share it"):
        ray_cluster._call(ray_cluster.__version__, str(tmp_path / "nowhere"), fails, (None,))


def test_without_ray_the_extra_is_named_and_options_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    with pytest.raises(MissingExtraError, match=r'pip install "h2htalk\[ray\]"'), connect():
        pass
    assert EXECUTOR.get() is None
    advice = "--ray-address belongs to --executor ray"
    for words, message in (
        (["--executor", "ray"], 'pip install "h2htalk[ray]"'),
        (["--ray-address", "127.0.0.1:6379"], advice),
        (["--executor", "ray", "--processes", 2], advice),
    ):
        done = h2htalk_here("curate", "run", tmp_path / "x.toml", *words)
        assert (done.returncode, message in done.stderr) == (2, True)


def test_a_suite_runs_what_is_missing_and_tries_paid_shards_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on: Callable[[StandIn], Cluster]
) -> None:
    for name in ("OPENAI_API_KEY", "RAY_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    write_split(tmp_path / "split", 6)
    suite = tmp_path / "suite.toml"
    suite.write_text(f"""out = "{tmp_path}/runs"
splits = ["{tmp_path}/split"]
shards = 2
[evaluate]
embedder = "none"
[[models]]
name = "free"
model = "{scripted(tmp_path)}"
[[models]]
name = "paid"
model = "openai:gpt-4o"
shards = 1
""")
    messages: list[str] = []
    ray = StandIn({"CPU": 2, "GPU": 1}, lost=2)
    monkeypatch.setattr(ray_cluster, "connect", lambda address: nullcontext(on(ray)))
    monkeypatch.setattr(
        ray_cluster, "RAY", Requirement("Ray", (), "")
    )  # a stand-in is asked, no package is needed
    assert launch(suite, "", messages.append) == 3
    wanted = [
        (option["num_gpus"], option["max_retries"], option["max_calls"]) for option in ray.options
    ]
    assert wanted == [(0, 3, 1), (0, 3, 1), (0, 0, 1)]
    assert [
        line for line in messages if "(RayError)" in line and line.startswith("paid: shard 1: ")
    ]
    assert [
        line for line in messages if line.startswith("free: 1 of 2 shards are finished; missing: 2")
    ]
    assert launch(suite, "", messages.append) == 3  # the paid model has no key
    assert len(ray.options) == 3 + 2
    assert [
        line for line in messages if line.startswith("paid: shard 1: ") and "OPENAI_API_KEY" in line
    ]
    assert json.loads((tmp_path / "runs" / "free" / "summary.json").read_bytes())
    assert messages[-2] == f"free: done, {tmp_path}/runs/free"
