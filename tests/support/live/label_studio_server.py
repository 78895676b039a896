"""A Label Studio server with its database in a folder, and annotators who sign in at it.

The server has an environment of its own (`make live-label-studio`).
"""

from __future__ import annotations

import contextlib
import csv
import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from support.live.real_servers import PATIENCE, ROOT, RealServer, send

PROGRAM = Path(
    os.environ.get("H2HTALK_LABEL_STUDIO", ROOT / ".venv-label-studio" / "bin" / "label-studio")
)
OWNER, PASSWORD, TOKEN = (
    "owner@example.org",
    "the owner's password",
    "0123456789abcdef0123456789abcdef01234567",
)
# Seconds for which the server reserves an item that somebody has opened; a day by default. A kill leaves such locks.
LOCK_SECONDS = 10


class LabelStudio(RealServer):
    @property
    def environment(self) -> dict[str, str]:
        return {
            **{
                key: value
                for key, value in os.environ.items()
                if not key.startswith(("LABEL_STUDIO_", "PYTHON"))
            },
            "LABEL_STUDIO_BASE_DATA_DIR": str(self.home / "data"),
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
            "LABEL_STUDIO_USERNAME": OWNER,
            "LABEL_STUDIO_PASSWORD": PASSWORD,
            "LABEL_STUDIO_USER_TOKEN": TOKEN,
            **dict.fromkeys(("COLLECT_ANALYTICS", "LATEST_VERSION_CHECK"), "false"),
            **dict.fromkeys(
                ("FEATURE_FLAGS_OFFLINE", "LABEL_STUDIO_DISABLE_SIGNUP_WITHOUT_LINK"), "true"
            ),
            **dict.fromkeys(("SENTRY_DSN", "FRONTEND_SENTRY_DSN"), ""),
            "TASK_LOCK_TTL": str(LOCK_SECONDS),
            "HOME": str(self.home),
        }

    def start(self) -> None:
        where = ("--internal-host", "127.0.0.1", "--port", self.port)
        self.begin("server", PROGRAM, "start", "--no-browser", *where, ready="/health")


class SimulatedAnnotator:
    """An annotator who signs in with a password, and answers with the token of their own account like the page does."""

    def __init__(self, url: str, email: str, password: str) -> None:
        with httpx.Client(base_url=url, timeout=60) as page:
            token = page.get("/user/login/").cookies["csrftoken"]
            form = {"email": email, "password": password, "csrfmiddlewaretoken": token}
            assert (
                page.post("/user/login/", data=form, headers={"Referer": url}).status_code == 302
            ), email
            key = page.get("/api/current-user/token").raise_for_status().json()["token"]
        self.http = httpx.Client(
            base_url=url, headers={"Authorization": f"Token {key}"}, timeout=60
        )

    def next_task(self, project: int) -> dict[str, Any] | None:
        """The next item, or None where there is none (404), or the project is closed to this annotator (403)."""
        task: dict[str, Any] | None = send(
            self.http, "GET", f"/api/projects/{project}/next", allowed=(403, 404)
        )
        return task

    def answer(self, task: int, answers: Mapping[str, Any]) -> None:
        """Submit an annotation unless an attempt whose reply was lost has stored it."""
        end = time.monotonic() + PATIENCE
        path = f"/api/tasks/{task}/annotations"
        body = {
            "result": [result_of(name, value) for name, value in answers.items()],
            "lead_time": 4.0,
        }
        while True:
            with contextlib.suppress(httpx.TransportError):
                if self.http.post(path, json=body).status_code == 201:
                    return
            assert time.monotonic() < end
            time.sleep(0.3)
            me = send(self.http, "GET", "/api/current-user/whoami")["id"]
            if any(one["completed_by"] == me for one in send(self.http, "GET", path)):
                return


def result_of(name: str, value: Any) -> dict[str, Any]:
    """An answer as the page stores it."""
    fields = {
        "id": f"{random.getrandbits(40):010x}",
        "from_name": name,
        "to_name": "item",
        "origin": "manual",
    }
    if name == "comment":
        return {**fields, "type": "textarea", "value": {"text": [value]}}
    return {
        **fields,
        "type": "choices",
        "value": {"choices": [*map(str, value if isinstance(value, tuple) else [value])]},
    }


def signed_in(url: str, logins: Path) -> dict[str, SimulatedAnnotator]:
    with logins.open(encoding="utf-8", newline="") as file:
        return {
            row["name"]: SimulatedAnnotator(url, row["email"], row["password"])
            for row in csv.DictReader(file)
        }
