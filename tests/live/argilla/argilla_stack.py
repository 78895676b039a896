"""An Argilla deployment on the loopback interface: Redis, search engine, server and worker, each a process.

Redis and Java come from the system, the server from an environment of its own (`make live-argilla`), the search engine
from the folder in `H2HTALK_OPENSEARCH`. Everything that is started here is ended here, by its process id.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
SERVER_PYTHON = Path(os.environ.get("H2HTALK_ARGILLA_PYTHON", ROOT / ".venv-argilla" / "bin" / "python"))
OWNER_KEY = "argilla.apikey"


def missing() -> str:
    """What the stack needs and this machine lacks; empty if it can run."""
    if not os.environ.get("H2HTALK_OPENSEARCH"):
        return "set H2HTALK_OPENSEARCH to a folder with opensearch.sh"
    if not SERVER_PYTHON.exists():
        return "run `make live-argilla`: it installs the server in an environment of its own"
    for program in ("redis-server", "java"):
        if shutil.which(program) is None:
            return f"install {program} (Debian: redis-server, default-jre-headless)"
    return ""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def free_ports_apart(distance: int) -> int:
    """A free port; the port `distance` higher is free as well."""
    while True:
        port = free_port()
        with socket.socket() as sock, contextlib.suppress(OSError, OverflowError):
            sock.bind(("127.0.0.1", port + distance))
            return port


@dataclass
class Stack:
    """A deployment in `home`. `start` starts all of it, `stop` ends it; its parts can be ended one by one."""

    home: Path
    port: int = field(default_factory=free_port)
    search_port: int = field(default_factory=lambda: free_ports_apart(100))
    redis_port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def database(self) -> Path:
        return self.home / "argilla.db"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith("ARGILLA_")},
            "ARGILLA_HOME_PATH": str(self.home),
            "ARGILLA_DATABASE_URL": f"sqlite+aiosqlite:///{self.database}",
            "ARGILLA_SEARCH_ENGINE": "opensearch",
            "ARGILLA_ELASTICSEARCH": f"http://127.0.0.1:{self.search_port}",
            "ARGILLA_REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "ARGILLA_AUTH_SECRET_KEY": "a fixed secret, so that who is signed in stays so",
            "ARGILLA_ENABLE_TELEMETRY": "0",
            "HF_HUB_OFFLINE": "1",
        }

    def start(self) -> Stack:
        self.home.mkdir(parents=True, exist_ok=True)
        self.start_search()
        self.start_redis()
        self._server_command("database", "migrate")
        self._server_command("database", "users", "create_default")
        self.start_server()
        self.start_worker()
        return self

    def stop(self) -> None:
        for name in list(self.processes):
            self.end(name)
        self.stop_search()

    # --- Parts ------------------------------------------------------------------------------------------------------

    def start_server(self) -> None:
        command = ["start", "--host", "127.0.0.1", "--port", str(self.port)]
        self._run("server", [str(SERVER_PYTHON), "-m", "argilla_server", *command])
        self._wait(f"{self.url}/api/v1/status", "server")

    def start_worker(self) -> None:
        self._run("worker", [str(SERVER_PYTHON), "-m", "argilla_server", "worker", "--num-workers", "1"])

    def start_redis(self) -> None:
        options = ["--bind", "127.0.0.1", "--port", str(self.redis_port), "--save", "", "--appendonly", "no"]
        self._run("redis", ["redis-server", *options])

    def start_search(self) -> None:
        self._search("start")

    def stop_search(self) -> None:
        """End the search engine, and delete its index."""
        with contextlib.suppress(subprocess.CalledProcessError):
            self._search("stop")

    def pause_search(self) -> None:
        """Kill the search engine, and keep its index."""
        os.kill(int((self._search_home / "pid").read_text()), signal.SIGKILL)
        self._wait_gone(self.search_port)

    def end(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a process and its children."""
        process = self.processes.pop(name)
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)

    def reindex(self) -> None:
        """Rebuild the index, as an administrator does."""
        self._server_command("search-engine", "reindex")

    # --- How --------------------------------------------------------------------------------------------------------

    @property
    def _search_home(self) -> Path:
        return self.home / "search"

    def _search(self, action: str) -> None:
        script = Path(os.environ["H2HTALK_OPENSEARCH"]) / "opensearch.sh"
        # The search engine may run as another user, who needs access to every folder above it.
        self._search_home.mkdir(parents=True, exist_ok=True)
        command = ["bash", str(script), action, str(self.search_port), str(self._search_home)]
        with (self.home / "search.log").open("ab") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=180)

    def _server_command(self, *arguments: str) -> None:
        command = [str(SERVER_PYTHON), "-m", "argilla_server", *arguments]
        with (self.home / "commands.log").open("ab") as log:
            subprocess.run(command, check=True, env=self.environment, stdout=log, stderr=log, timeout=180)

    def _run(self, name: str, command: list[str]) -> None:
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command,
                env=self.environment,
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, url: str, name: str, seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.processes[name].poll() is not None:
                break
            with contextlib.suppress(OSError, urllib.error.URLError), urllib.request.urlopen(url, timeout=5) as reply:
                if reply.status == 200:
                    return
            time.sleep(0.3)
        log = (self.home / f"{name}.log").read_text(errors="replace")
        raise RuntimeError(f"{name} did not answer at {url}:\n{log[-3000:]}")

    def _wait_gone(self, port: int) -> None:
        for _ in range(100):
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", port)):
                    return
            time.sleep(0.1)
