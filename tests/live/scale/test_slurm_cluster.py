"""A suite on a real Slurm with three nodes: tasks are killed, a node is lost, a shard has two writers."""

from __future__ import annotations

import getpass
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.store.call_store import read_costs, read_store
from support.doubles.loopback import LoopbackServer
from support.doubles.providers import ProviderServer, price_file
from support.hosted_runs import item_of
from support.kills import stored_replies, wait_until
from support.shards import same_bytes
from support.splits import write_split

NODES = ("n1", "n2", "n3")
PROGRAMS = ("sbatch", "slurmctld", "slurmd", "munged", "mungekey")
CONFIGURATION = """ClusterName=h2h
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={home}/munge.sock,cred_expire=5
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool-%n
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd-%n.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd-%n.log
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmdTimeout=6
KillWait=5
MinJobAge=600
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
{nodes}
PartitionName=main Nodes=ALL Default=YES
"""


class SlurmCluster:
    """A controller and a daemon for each of three nodes of two CPUs; everything lies in `home`."""

    def __init__(self, home: Path) -> None:
        self.home = home
        with ExitStack() as stack:  # all are bound at once, so that they differ
            bound = [stack.enter_context(socket.socket()) for _ in range(4)]
            for one in bound:
                one.bind(("127.0.0.1", 0))
            ports = [one.getsockname()[1] for one in bound]
        common = "NodeAddr=127.0.0.1 NodeHostname=localhost CPUs=2 RealMemory=4000"
        nodes = "\n".join(
            f"NodeName={name} {common} Port={port}"
            for name, port in zip(NODES, ports[1:], strict=True)
        )
        text = CONFIGURATION.format(home=home, user=getpass.getuser(), ports=ports, nodes=nodes)
        (home / "slurm.conf").write_text(text)
        (home / "state").mkdir()

    def start(self) -> None:
        munge = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid"}
        munge |= {"log-file": "munged.log", "seed-file": "munged.seed"}
        self.run("mungekey", "-c", "-k", self.home / "munge.key")
        self.run("munged", *(f"--{name}={self.home / file}" for name, file in munge.items()))
        self.run("slurmctld")
        for node in NODES:
            self.run("slurmd", "-N", node)
        wait_until(
            lambda: self.run("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 3,
            "no node became idle",
        )

    def run(self, *words: object) -> str:
        """Run a command with this cluster's settings; returns its output."""
        done = subprocess.run(
            [*map(str, words)], capture_output=True, text=True, env=self.environment, timeout=60
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLURM_", "SBATCH_"))
        }
        paths = f"{own.get('PATH', '')}:/usr/sbin:/sbin"
        return {**own, "SLURM_CONF": str(self.home / "slurm.conf"), "PATH": paths}

    def jobs(self) -> list[str]:
        return self.run("squeue", "-h", "-r", "-o", "%i %T").splitlines()

    def processes(self, node: str) -> list[int]:
        """The processes of the jobs on a node, by the environment that Slurm gave them."""
        found = []
        for place in Path("/proc").iterdir():
            with suppress(OSError):
                if place.name.isdecimal():
                    own = (place / "environ").read_bytes().split(b"\0")
                    if {
                        f"SLURMD_NODENAME={node}".encode(),
                        f"SLURM_CONF={self.home}/slurm.conf".encode(),
                    } <= {*own}:
                        found.append(int(place.name))
        return found

    def lose(self, node: str) -> None:
        """Kill all that runs on a node at once: its daemon, the steps of its jobs, and the jobs."""
        jobs = self.processes(node)
        steps = {
            int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1]) for job in jobs
        } - {*jobs}
        assert all("slurmstepd" in Path(f"/proc/{step}/cmdline").read_text() for step in steps)
        for pid in (int((self.home / f"slurmd-{node}.pid").read_text()), *steps, *jobs):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        (self.home / f"slurmd-{node}.pid").unlink()

    def stop(self) -> None:
        for node in NODES:
            for pid in self.processes(node):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for names in ("slurmd-*.pid", "slurmctld.pid", "munged.pid"):
            for file in self.home.glob(names):
                with suppress(OSError, ValueError):
                    os.kill(int(file.read_text()), signal.SIGTERM)
            wait_until(lambda names=names: not [*self.home.glob(names)], f"{names} did not end")  # type: ignore[misc]


pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
CONCURRENCY = 2
SUITE = """out = {out}
splits = ["split"]
shards = {shards}
[evaluate]
embedder = "none"
max_tokens = 64
concurrency = {concurrency}
{settings}
[slurm]
cpus = 1
command = {command}
setup = "sleep() {{ command sleep 0.1; }}"  # a merge that comes too early is over soon
[[models]]
name = "companion"
model = {model}
gpus = 0
"""


@pytest.fixture(scope="module")
def cluster(home: Path) -> Iterator[SlurmCluster]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if lacking := [name for name in PROGRAMS if shutil.which(name, path=path) is None]:
        pytest.skip(
            f"needs {', '.join(lacking)}: apt-get install --no-install-recommends slurm-wlm munge"
        )
    made = SlurmCluster(home)
    try:
        made.start()
        yield made
    finally:
        made.stop()


class Runs:
    def __init__(self, folder: Path, cluster: SlurmCluster, environment: dict[str, str]) -> None:
        self.folder, self.cluster = folder, cluster
        self.environment = {**environment, **cluster.environment, "PYTHONPATH": str(ROOT)}
        self.shards = folder / "runs" / "companion.shards"

    def write(self, model: str, shards: int, settings: str = "") -> None:
        command = json.dumps(f"{sys.executable} -m h2htalk")
        values = {
            "shards": shards,
            "settings": settings,
            "command": command,
            "concurrency": CONCURRENCY,
        }
        for out in ("runs", "single"):
            text = SUITE.format(out=json.dumps(out), model=json.dumps(model), **values)
            (self.folder / f"{out}.toml").write_text(text)

    def start(self, *words: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "h2htalk", *map(str, words)]
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, text=True, stdout=pipe, stderr=pipe
        )

    def command(self, *words: object, code: int = 0) -> str:
        process = self.start(*words)
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == code, stdout + stderr
        return stdout

    def attempts(self) -> dict[Path, dict[str, Any]]:
        """The attempts that began, with the facts of their manifests."""
        return {
            one.parent: json.loads(one.read_text())["shard"]
            for one in self.shards.glob("*/*/attempt.json")
        }

    def running(self, least: int) -> dict[Path, dict[str, Any]]:
        """The attempts that run, with at least so many replies."""
        found = {
            path: facts
            for path, facts in self.attempts().items()
            if not (path / "shard.json").exists()
        }
        return {
            path: facts
            for path, facts in found.items()
            if len(stored_replies(path / "calls.jsonl")) >= least
        }

    def wait_for_queue(self, seconds: float = 200) -> None:
        wait_until(
            lambda: (time.sleep(0.5), not self.cluster.jobs())[1],
            f"{self.cluster.jobs()} did not end",
            seconds,
        )

    def require_equal(self) -> None:
        """The merged run is the single one, byte for byte, but for what was paid and what names it."""
        merged, single = (self.folder / name / "companion" for name in ("runs", "single"))
        assert set(same_bytes(single, merged)) <= {"summary.json", "tables/costs.csv"}
        own, other = (json.loads((run / "summary.json").read_text()) for run in (merged, single))
        differing = {key for key in own.keys() | other.keys() if own.get(key) != other.get(key)}
        assert differing <= {"costs", "sha256"}


def test_paid_shards_survive_kills_a_lost_node_and_a_second_writer(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    items = 128
    shards = 8
    chance = random.Random(7)
    write_split(tmp_path / "split", items)
    (tmp_path / "prices.toml").write_text(price_file())
    with ProviderServer(latency=1.5) as server:
        server.model.numbered = False
        suite = Runs(tmp_path, cluster, server.environment())
        suite.write("openai:gpt-test", shards, 'prices = "prices.toml"\nbaselines = false')
        text = suite.command("launch", "slurm", "runs.toml", "--submit")
        assert all(part in text for part in ("8 shards missing", "--array=0-7", "--no-requeue"))

        # Six tasks run, two on each node. One node is lost, two tasks are killed, and a shard gets a second writer.
        wait_until(lambda: len(suite.running(2)) == 6, "six tasks do not run at once", 90)
        running = suite.running(2)
        node = chance.choice(NODES)
        lost = {*cluster.processes(node)}
        others = sorted(path for path, facts in running.items() if facts["pid"] not in lost)
        *killed, doubled = chance.sample(others, 3)
        shard = "{shard}/{of}".format(**running[doubled])
        ghost = suite.start(
            "evaluate", "--suite", "runs/launch/suite.toml", "--run", "companion", "--shard", shard
        )
        cluster.lose(node)
        for path in killed:
            group = os.getpgid(running[path]["pid"])
            assert group != os.getpgid(0)
            os.killpg(group, signal.SIGKILL)
        ghost_said = ghost.communicate(timeout=90)
        assert ghost.returncode == 0, ghost_said
        suite.wait_for_queue()

        rounds = 0
        status = ("launch", "status", "runs.toml")
        while lines := [
            one for one in suite.command(*status, code=3).splitlines() if "sbatch" in one
        ]:
            rounds += 1
            assert rounds <= 3, "what was submitted again did not finish"
            for line in lines:
                subprocess.run(
                    ["bash", "-c", line], check=True, cwd=tmp_path, env=suite.environment
                )
            suite.wait_for_queue()
        assert rounds
        suite.command("merge", "--suite", "runs/launch/suite.toml")
        suite.command("launch", "status", "runs.toml")

        attempts = suite.attempts()
        unfinished = {path for path in attempts if not (path / "shard.json").exists()}
        ghosts = {path for path, facts in attempts.items() if "slurm_job_id" not in facts}
        assert {*killed} < unfinished
        assert (len(unfinished), len(ghosts)) == (4, 1)
        calls = {path: read_store(path / "calls.jsonl").calls for path in attempts}
        cut = Counter(
            call.id for path in unfinished for call in calls[path] if call.billing == "open"
        )
        twice = Counter(call.id for path in ghosts for call in calls[path])
        asked = Counter(item_of(message) for message in server.seen.elements())
        assert asked.total() <= items + cut.total() + twice.total()
        assert all(number <= 1 + cut[item] + twice[item] for item, number in asked.items())
        assert (
            max(sum(call.billing == "open" for call in calls[path]) for path in unfinished)
            <= CONCURRENCY
        )
        assert twice, "the second writer took over everything"
        totals = read_costs(tmp_path / "runs" / "companion")["generate"]
        arrived = sum((charge.dollars for charge in server.charged() if charge.arrived), Decimal(0))
        assert max(arrived, server.bill()) <= (totals.usd_committed or 0)
        assert totals.calls == asked.total()
        server.latency = 0
        suite.command("evaluate", "--suite", "single.toml")
        suite.require_equal()


def test_a_requeued_task_goes_on_where_it_was_stopped(
    tmp_path: Path, cluster: SlurmCluster
) -> None:
    items = 24
    write_split(tmp_path / "split", items)
    with LoopbackServer(latency=1.0) as server:
        suite = Runs(tmp_path, cluster, dict(os.environ))
        suite.write(server.spec, 2)
        # The merge does not start because its tasks were cancelled.
        suite.command("launch", "slurm", "runs.toml", "--submit")
        assert suite.command("launch", "stop", "runs.toml").startswith("cancelled 1 merge ")
        suite.wait_for_queue()
        assert not [*(tmp_path / "runs" / "launch" / "logs").glob("*merge*")]
        shutil.rmtree(suite.shards, ignore_errors=True)  # a task may have begun before the stop
        before = server.requests

        suite.command("launch", "slurm", "runs.toml", "--submit")
        array = json.loads((tmp_path / "runs/launch/jobs.jsonl").read_text().splitlines()[-2])[
            "job"
        ]
        wait_until(lambda: len(suite.running(2)) == 2, "two tasks do not run", 90)
        first = next(path for path, facts in suite.running(2).items() if facts["shard"] == 1)
        cluster.run("scontrol", "requeue", f"{array}_0")
        suite.wait_for_queue()
        suite.command("launch", "status", "runs.toml")  # the merge ran by itself
        begun, second = sorted(
            path for path, facts in suite.attempts().items() if facts["shard"] == 1
        )
        assert (begun, suite.attempts()[second]["slurm_restart_count"]) == (first, "1")
        assert [(path / "shard.json").exists() for path in (first, second)] == [False, True]
        log = (tmp_path / "runs" / "launch" / "logs" / f"{array}_0.out").read_text()
        assert "stopped; what is finished is stored" in log
        assert items <= server.requests - before <= items + CONCURRENCY
        server.latency = 0
        suite.command("evaluate", "--suite", "single.toml")
        suite.require_equal()
