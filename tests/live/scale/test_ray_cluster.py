"""Ray on a cluster of three nodes: workers are killed and a node is lost, and every file is that of one machine."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from support.command_line import h2htalk
from support.curations import all_files
from support.doubles.loopback import LoopbackServer
from support.kills import wait_for, wait_until
from support.shards import own_words, same_bytes
from support.splits import write_split

pytestmark = pytest.mark.live

EXAMPLES = Path(__file__).parents[3] / "examples"
STAGES = ("gather", "anonymize", "safety", "dedup")
STORE = 80 << 20
OF = 8


class Nodes:
    """A head without a CPU, and two nodes with one CPU each."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.workers: list[Any] = []

    def two(self) -> str:
        """Replace lost nodes; returns the address."""
        while len(self.workers) < 2:
            self.workers.append(self.cluster.add_node(num_cpus=1, object_store_memory=STORE))
        return str(self.cluster.address)

    def busy(self) -> dict[int, Any]:
        """The processes that run a task, each with its node."""
        raylets = {node.all_processes["raylet"][0].process.pid: node for node in self.workers}
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in raylets and (path / "cmdline").read_bytes().startswith(b"ray::_call"):
                    found[int(path.name)] = raylets[parent]
            except OSError:
                continue
        return found

    def lose(self, node: Any) -> None:
        self.workers.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture(scope="module")
def nodes() -> Iterator[Nodes]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray: pip install 'h2htalk[ray]'")
    with (
        pytest.MonkeyPatch.context() as patch,
        TemporaryDirectory(prefix="h2htalk-", dir="/tmp") as folder,
    ):
        settings = {"AUTH_MODE": "token", "AUTH_TOKEN": secrets.token_hex(32), "TMPDIR": folder}
        settings |= dict.fromkeys(("USAGE_STATS_ENABLED", "ENABLE_WINDOWS_OR_OSX_CLUSTER"), "0")
        for name, value in settings.items():
            patch.setenv(f"RAY_{name}", value)
        made = Nodes()
        yield made
        made.cluster.shutdown()


Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started() -> Iterator[Started]:
    begun: list[subprocess.Popen[str]] = []

    def start(*words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "h2htalk", *map(str, words)]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        begun.append(subprocess.Popen(command, text=True, start_new_session=True, **pipes))
        return begun[-1]

    yield start
    for one in begun:
        if one.poll() is None:
            os.killpg(one.pid, signal.SIGKILL)
        one.communicate()


def drawn(
    run: subprocess.Popen[str], draw: random.Random, choices: Callable[[], Collection[int]]
) -> int:
    found: list[int] = []

    def any_there() -> bool:
        found[:] = choices()
        return bool(found) or run.poll() is not None

    wait_until(any_there, "nothing to choose from", 60)
    assert run.poll() is None, run.communicate()
    return draw.choice(sorted(found))


def example(folder: Path, part: int = 8) -> list[object]:
    """The command that curates a copy of the example, in small parts."""
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("workspace"))
    spec = folder / "curate.toml"
    spec.write_text(spec.read_text().replace("part = 100", f"part = {part}"))
    return ["curate", "run", spec, *(word for stage in STAGES for word in ("--stage", stage))]


def parts_of(folder: Path, stage: str) -> int:
    return len([*(folder / "workspace" / stage / "parts").glob("part-*.json")])


def test_a_curation_whose_worker_and_node_are_killed_has_the_bytes_of_one_machine(
    nodes: Nodes, started: Started, tmp_path: Path
) -> None:
    address, draw = nodes.two(), random.Random(1)
    here, there = tmp_path / "here", tmp_path / "there"
    done = h2htalk(*example(here))
    assert done.returncode == 0, done.stderr
    command = example(there)
    (there / "workspace").mkdir(mode=0o700)
    shutil.copy2(here / "workspace" / "secret.key", there / "workspace")
    run = started(*command, "--executor", "ray", "--ray-address", address)
    wait_for(run, lambda: parts_of(there, "anonymize"), 2)
    os.kill(drawn(run, draw, nodes.busy), signal.SIGKILL)
    wait_for(run, lambda: parts_of(there, "anonymize"), 10)
    nodes.lose(draw.choice(nodes.workers))
    stdout, stderr = run.communicate(timeout=120)
    assert (run.returncode, stdout) == (0, done.stdout), stderr
    made = all_files(there / "workspace")
    assert (
        len([name for name in made if name.startswith("dedup/kept/")])
        == parts_of(here, "safety")
        > 20
    )
    assert made == all_files(here / "workspace")


def suite_of(folder: Path, model: str, gpus: int = 0, shards: int = OF) -> Path:
    path = folder / "suite.toml"
    path.write_text(f"""out = "{folder}/runs"
splits = ["{write_split(folder / "split", 48)}"]
shards = {shards}
[evaluate]
embedder = "minilm"
concurrency = 1
[[models]]
name = "loop"
model = "{model}"
gpus = {gpus}
""")
    return path


def attempts(folder: Path, finished: bool = False) -> dict[int, str]:
    """The attempts that have begun, or are finished: the process and the number of the shard."""
    found = [path.parent for path in (folder / "runs" / "loop.shards").glob("*/*/attempt.json")]
    chosen = [one for one in found if not finished or (one / "shard.json").exists()]
    begun = [json.loads((one / "attempt.json").read_bytes())["shard"] for one in chosen]
    return {one["pid"]: one["shard"] for one in begun}


def test_a_suite_with_killed_workers_a_lost_node_and_a_ghost_has_the_bytes_of_one_run(
    nodes: Nodes, started: Started, tmp_path: Path
) -> None:
    address, draw = nodes.two(), random.Random(2)
    with LoopbackServer(reply=own_words, latency=0.3) as server:
        suite = suite_of(tmp_path, server.spec)
        launched = started("launch", "ray", suite, "--ray-address", address)

        def asking() -> set[int]:
            done = attempts(tmp_path, finished=True)
            return nodes.busy().keys() & attempts(tmp_path).keys() - done.keys()

        for lost in ("worker", "node", "worker"):
            process = drawn(launched, draw, asking)
            if lost == "node":
                node, number = (
                    nodes.busy().get(process, nodes.workers[0]),
                    attempts(tmp_path)[process],
                )
                ghost = started("evaluate", "--suite", suite, "--shard", f"{number}/{OF}")
                nodes.lose(node)
            else:
                os.kill(process, signal.SIGKILL)
                wait_until(lambda gone=process: gone not in nodes.busy())
        stdout, stderr = launched.communicate(timeout=120)
        assert launched.returncode == 0, (stdout, stderr)
        _, stderr_of_ghost = ghost.communicate(timeout=60)
        assert ghost.returncode == 0, stderr_of_ghost
        assert stderr.count("loop: shard ") == OF
        server.latency = 0.0
        suite.write_text(suite.read_text().replace(f"{tmp_path}/runs", f"{tmp_path}/alone"))
        done = h2htalk("evaluate", "--suite", suite)
        assert done.returncode == 0, done.stderr
    assert len(attempts(tmp_path)) >= OF + 3  # three were lost
    assert same_bytes(tmp_path / "alone" / "loop", tmp_path / "runs" / "loop") == {}
    assert [*(tmp_path / "runs" / "loop" / "scores").iterdir()]


# --- A cluster of one's own -------------------------------------------------------------------------------------------

LISTENING = """
import os, stat, sys
from pathlib import Path
from h2htalk.scale.ray_cluster import connect
out = sys.stdout
with connect() as cluster:
    import psutil
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    found = [one for process in family for one in process.connections("inet") if one.status == "LISTEN"]
    places = {one.laddr.ip.removeprefix("::ffff:") for one in found}
    folder = Path(os.environ["RAY_TMPDIR"])
    print(*sorted(places), oct(stat.S_IMODE(folder.stat().st_mode)), len(os.environ["RAY_AUTH_TOKEN"]), file=out)
    print(list(cluster(pow, [(2, 3), (3, 2)])) in ([8, 9], [9, 8]), file=out)
print(folder.exists(), [one.pid for one in family[1:] if one.is_running() and one.status() != "zombie"])
"""


@pytest.fixture
def nothing_set(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("nothing_set")
def test_an_own_cluster_is_on_this_machine_alone_and_leaves_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTENING], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["127.0.0.1 0o700 64", "True", "False []"], done.stderr


def test_ctrl_c_ends_a_curation_on_ray_within_seconds(
    nodes: Nodes, started: Started, tmp_path: Path
) -> None:
    run = started(*example(tmp_path / "there"), "--executor", "ray", "--ray-address", nodes.two())
    wait_for(run, lambda: parts_of(tmp_path / "there", "anonymize") and len(nodes.busy()))
    begun = time.monotonic()
    os.killpg(run.pid, signal.SIGINT)
    _, stderr = run.communicate(timeout=60)
    assert (run.returncode, time.monotonic() - begun < 10, "Traceback" in stderr) == (
        130,
        True,
        False,
    ), stderr
    assert "the same command continues" in stderr
    wait_until(lambda: not nodes.busy(), "tasks go on", 100)
    own = started(*example(tmp_path / "own"), "--executor", "ray")
    wait_for(own, lambda: parts_of(tmp_path / "own", "anonymize"))
    own.send_signal(signal.SIGINT)
    _, stderr = own.communicate(timeout=200)
    assert (own.returncode, "Traceback" in stderr) == (130, False), stderr


@pytest.mark.usefixtures("nothing_set")
def test_a_cluster_that_is_lost_or_not_there_is_an_error_with_advice(
    started: Started, tmp_path: Path
) -> None:
    nobody = h2htalk(
        *example(tmp_path / "nobody"), "--executor", "ray", "--ray-address", "127.0.0.1:1"
    )
    assert (nobody.returncode, "--ray-address 127.0.0.1:1: cannot be used" in nobody.stderr) == (
        2,
        True,
    ), nobody.stderr
    with LoopbackServer(reply=own_words) as server:
        small = h2htalk("launch", "ray", suite_of(tmp_path, server.spec, gpus=64, shards=2))
    assert (
        small.returncode,
        "no machine of the Ray cluster has a CPU and 64 GPUs" in small.stderr,
    ) == (3, True)
    run = started(*example(tmp_path / "there", part=2), "--executor", "ray")
    wait_for(run, lambda: parts_of(tmp_path / "there", "anonymize"))
    children = subprocess.run(
        ["pgrep", "-P", str(run.pid), "gcs_server"], capture_output=True, text=True, check=True
    )
    os.kill(int(children.stdout), signal.SIGKILL)
    _, stderr = run.communicate(timeout=100)
    assert (run.returncode, "the same command continues" in stderr) == (3, True), stderr
