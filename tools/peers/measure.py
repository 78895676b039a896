"""Run a command against a loopback server of its own, and say what it cost."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("mock_server.py")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command cost.

    `cpu`: user + system seconds of the process and the children it waited for. `wall`: seconds from start to
    end. `rss`: peak resident memory in MiB of the largest process. `requests`, `span`: what the server saw,
    seconds from the first request to the last answer. `others`: cores that were busy with anything else (the
    server included), on average over the run.
    """

    cpu: float
    wall: float
    rss: float
    requests: int = 0
    span: float = 0.0
    others: float = 0.0


@contextlib.contextmanager
def served(command: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A server process: the line that it says first, and what it says as JSON once its stdin ends, filled in then."""
    seen: dict[str, Any] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip(), seen
        process.stdin.close()
        seen.update(json.loads(process.stdout.readline() or "{}"))


def measure(
    command: Sequence[str], log: Path, environment: Mapping[str, str], latency: float | None = None
) -> Cost:
    """Run a command to its end; `{url}` in its arguments and in the environment is the server's address.

    Args:
        command: program and arguments.
        log: where its output goes.
        environment: variables on top of this process's own.
        latency: seconds before each answer of the server; None starts no server.

    Raises:
        RuntimeError: the command failed; the message ends with the last lines of its output.
    """
    if latency is None:
        return _run(command, log, environment)
    with served([sys.executable, str(SERVER), "--latency", str(latency)]) as (url, seen):
        filled = [part.replace("{url}", url) for part in command]
        cost = _run(
            filled, log, {key: value.replace("{url}", url) for key, value in environment.items()}
        )
    return Cost(cost.cpu, cost.wall, cost.rss, int(seen["requests"]), seen["span"], cost.others)


def _run(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> Cost:
    with log.open("wb") as output:
        busy = _busy_seconds()
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **environment},
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        busy = _busy_seconds() - busy
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise RuntimeError(f"exit {process.returncode}: {' '.join(command[:4])} ...\n{tail}")
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(cpu, wall, usage.ru_maxrss / 1024, others=max(0.0, (busy - cpu) / wall))


def _busy_seconds() -> float:
    """CPU seconds that all cores have been busy since the machine started (Linux)."""
    fields = [int(value) for value in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]]
    user, nice, system, _idle, _iowait, irq, softirq = fields
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
