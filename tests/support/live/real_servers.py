"""Servers of annotation platforms on the loopback interface, and what rounds on them begin with.

Everything that is started here is ended here, by its process id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import LANGUAGES
from h2htalk.rounds.questions import Kind
from support.kills import wait_until

ROOT = Path(__file__).parents[3]
LINES = {"en": "Tell me how the rain sounded today.", "zh": "今天的雨声是什么样的？"}
REPLIES = {"en": "Soft, like somebody turning pages.", "zh": "很轻，像有人在翻书。"}
# Seconds that an annotator tries again while the server restarts.
PATIENCE = 90.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class RealServer:
    """A server whose files, and the logs of its processes, are in `home`."""

    home: Path
    port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        raise NotImplementedError

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        for name in list(self.processes):
            self.end(name)

    def begin(self, name: str, *command: object, ready: str = "") -> None:
        """Start a process; with a path in `ready`, wait until the server answers there."""
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*map(str, command)], env=self.environment, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip

        def answers() -> bool:
            with contextlib.suppress(httpx.TransportError):
                return httpx.get(self.url + ready, timeout=5).status_code == 200
            return False

        if ready:
            wait_until(
                lambda: self.processes[name].poll() is not None or answers(),
                f"no {name} at {self.url}",
                300,
            )
            assert self.processes[name].poll() is None, (self.home / f"{name}.log").read_text(
                errors="replace"
            )[-3000:]

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        process = self.processes.pop(name)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)


@contextlib.contextmanager
def running(server: RealServer, **environment: str) -> Iterator[None]:
    """Start a server, with its address and the owner's key in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        try:
            server.start()
            yield
        finally:
            server.stop()


def send(
    http: httpx.Client, method: str, path: str, body: object = None, allowed: tuple[int, ...] = ()
) -> Any:
    """Send a request until the server answers; None for a status of `allowed` and for no content."""
    end = time.monotonic() + PATIENCE
    while True:
        with contextlib.suppress(httpx.TransportError):
            reply = http.request(method, path, json=body)
            if reply.status_code in allowed:
                return None
            if reply.status_code < 500:
                return reply.raise_for_status().json() if reply.content else None
        assert time.monotonic() < end, f"{method} {path}: the server stayed away"
        time.sleep(0.3)


def made_items(
    count: int, kind: Kind, crises: int = 10, languages: Sequence[str] = LANGUAGES
) -> list[dict[str, Any]]:
    """`count` items in alternating languages; every `crises`-th is about a crisis."""
    items = []
    for number in range(count):
        language = languages[number % len(languages)]
        line = f"{LINES[language]} ({number})"
        item = {
            "id": f"item-{number:03}",
            "language": language,
            "prompt": [{"role": "user", "content": line}],
        }
        item |= {
            "context": {"memories": f"<b>{number}</b> rain & wind"},
            "reference": REPLIES[language],
        }
        if kind in ("safety", "adjudication"):
            item["response"] = REPLIES[language]
        if number % crises == crises - 1:
            item["crisis"] = True
        items.append(item)
    return items


def write_items(path: Path, items: Iterable[Mapping[str, Any]]) -> Path:
    write_jsonl(path, items)
    return path


def write_annotators(path: Path, names: Iterable[str], without_crises: Sequence[str] = ()) -> Path:
    """Write a list of annotators: whole rows, or names of such as read both languages."""
    rows = [
        name if "," in name else f"{name},en zh,{'no' if name in without_crises else 'yes'}"
        for name in names
    ]
    path.write_text("\n".join(["name,languages,crisis", *rows]) + "\n", encoding="utf-8")
    return path
