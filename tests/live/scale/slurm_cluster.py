"""Slurm with three virtual nodes on this machine, of Debian's packages slurm-wlm and munge."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import subprocess
from contextlib import ExitStack, suppress
from pathlib import Path

from kills import wait_until

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
        nodes = "\n".join(f"NodeName={name} {common} Port={port}" for name, port in zip(NODES, ports[1:], strict=True))
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
        wait_until(lambda: self.run("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * 3, "no node became idle")

    def run(self, *words: object) -> str:
        """Run a command with this cluster's settings; returns its output."""
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=self.environment, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SBATCH_"))}
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
                    if {f"SLURMD_NODENAME={node}".encode(), f"SLURM_CONF={self.home}/slurm.conf".encode()} <= {*own}:
                        found.append(int(place.name))
        return found

    def lose(self, node: str) -> None:
        """Kill all that runs on a node at once: its daemon, the steps of its jobs, and the jobs."""
        jobs = self.processes(node)
        steps = {int(Path(f"/proc/{job}/stat").read_text().rpartition(")")[2].split()[1]) for job in jobs} - {*jobs}
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
