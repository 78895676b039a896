"""A Label Studio server on the loopback interface, with its database in a folder; it is ended here, by its process id.

The server has an environment of its own (`make live-label-studio`).
"""

from __future__ import annotations

import contextlib
import csv
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[3]
PROGRAM = Path(os.environ.get("H2HTALK_LABEL_STUDIO", ROOT / ".venv-label-studio" / "bin" / "label-studio"))
OWNER, PASSWORD, TOKEN = "owner@example.org", "the owner's password", "0123456789abcdef0123456789abcdef01234567"
# Seconds for which the server reserves an item that somebody has opened; a day by default. A kill leaves such locks.
LOCK_SECONDS = 10
# Seconds that an annotator tries again while the server restarts.
PATIENCE = 90.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class LabelStudio:
    """A server whose files are in `home`."""

    home: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> LabelStudio:
        environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("LABEL_STUDIO_", "PYTHON"))},
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.home / "data"),
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "LABEL_STUDIO_USERNAME": OWNER,
            "LABEL_STUDIO_PASSWORD": PASSWORD,
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            "COLLECT_ANALYTICS": "false",
            "LATEST_VERSION_CHECK": "false",
            "FEATURE_FLAGS_OFFLINE": "true",
            "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK": "true",
            "SENTRY_DSN": "",
            "FRONTEND_SENTRY_DSN": "",
            "TASK_LOCK_TTL": str(LOCK_SECONDS),
            "HOME": str(self.home),
        }
        command = [PROGRAM, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(self.port)]
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command, env=environment, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + 300
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return self
            time.sleep(0.3)
        raise RuntimeError((self.home / "server.log").read_text(errors="replace")[-3000:])

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)


class SimulatedAnnotator:
    """An annotator who signs in with a password, and answers with the token of their own account like the page does."""

    def __init__(self, url: str, email: str, password: str) -> None:
        self.email, self.password, self.url = email, password, url
        with httpx.Client(base_url=url, timeout=60) as page:
            token = page.get("/user/login/").cookies["csrftoken"]
            form = {"email": email, "password": password, "csrfmiddlewaretoken": token}
            assert page.post("/user/login/", data=form, headers={"Referer": url}).status_code == 302, email
            key = page.get("/api/current-user/token").raise_for_status().json()["token"]
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Token {key}"}, timeout=60)

    def send(self, method: str, path: str, body: object = None, allowed: tuple[int, ...] = ()) -> Any:
        """Send a request until the server answers."""
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(httpx.TransportError):
                reply = self.http.request(method, path, json=body)
                if reply.status_code in allowed:
                    return None
                if reply.status_code < 500:
                    return reply.raise_for_status().json() if reply.content else None
            assert time.monotonic() < end, f"{method} {path}"
            time.sleep(0.3)

    def next_task(self, project: int) -> dict[str, Any] | None:
        task: dict[str, Any] | None = self.send("GET", f"/api/projects/{project}/next", allowed=(404,))
        return task

    def answer(self, task: int, answers: Mapping[str, Any]) -> None:
        """Submit an annotation unless an attempt whose reply was lost has stored it."""
        end = time.monotonic() + PATIENCE
        body = {"result": [result_of(name, value) for name, value in answers.items()], "lead_time": 4.0}
        while True:
            with contextlib.suppress(httpx.TransportError):
                if self.http.post(f"/api/tasks/{task}/annotations", json=body).status_code == 201:
                    return
            assert time.monotonic() < end
            time.sleep(0.3)
            me = self.send("GET", "/api/current-user/whoami")["id"]
            if any(one["completed_by"] == me for one in self.send("GET", f"/api/tasks/{task}/annotations")):
                return

    def skip(self, task: int) -> None:
        self.send("POST", f"/api/tasks/{task}/annotations?was_cancelled=1", {"result": [], "lead_time": 1.0})


def result_of(name: str, value: Any) -> dict[str, Any]:
    """An answer as the page stores it."""
    kind, given = ("textarea", {"text": [value]}) if name == "comment" else ("choices", None)
    given = given or {"choices": [str(one) for one in (value if isinstance(value, tuple) else (value,))]}
    fields = {"id": f"{random.getrandbits(40):010x}", "from_name": name, "to_name": "item", "origin": "manual"}
    return {**fields, "type": kind, "value": given}


def signed_in(url: str, logins: Path) -> dict[str, SimulatedAnnotator]:
    with logins.open(encoding="utf-8", newline="") as file:
        return {row["name"]: SimulatedAnnotator(url, row["email"], row["password"]) for row in csv.DictReader(file)}
