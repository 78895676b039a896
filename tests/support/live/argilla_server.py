"""An Argilla deployment on the loopback interface, annotators of known skill who work on it, and small rounds for them.

Redis and Java come from the system, the server from an environment of its own (`make live-argilla`), the search engine
from the folder in `H2HTALK_OPENSEARCH`. Annotators have keys of their own, read like the web page, and respond through
the SDK; changed responses, which the SDK does not support, are submitted like the page does.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.questions import HARMFUL, KINDS, READING_KINDS, Kind, Question, questions_for
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from support.kills import wait_until
from support.live.real_servers import (
    PATIENCE,
    ROOT,
    RealServer,
    free_port,
    made_items,
    send,
    write_annotators,
    write_items,
)

SERVER_PYTHON = Path(
    os.environ.get("H2HTALK_ARGILLA_PYTHON", ROOT / ".venv-argilla" / "bin" / "python")
)
OWNER_KEY = "argilla.apikey"


def missing() -> str:
    """What the stack needs and this machine lacks; empty if it can run."""
    if not os.environ.get("H2HTALK_OPENSEARCH"):
        return "set H2HTALK_OPENSEARCH to a folder with opensearch.sh"
    if not SERVER_PYTHON.exists():
        return "run `make live-argilla`: it installs the server in an environment of its own"
    lacking = [program for program in ("redis-server", "java") if shutil.which(program) is None]
    return f"install {lacking[0]} (Debian: redis-server, default-jre-headless)" if lacking else ""


def free_ports_apart(distance: int) -> int:
    """A free port; the port `distance` higher is free as well."""
    while True:
        port = free_port()
        with socket.socket() as sock, contextlib.suppress(OSError, OverflowError):
            sock.bind(("127.0.0.1", port + distance))
            return port


@dataclass
class Stack(RealServer):
    """`start` starts all of a deployment, `stop` ends it; its parts can be ended one by one."""

    search_port: int = field(default_factory=lambda: free_ports_apart(100))
    redis_port: int = field(default_factory=free_port)

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

    def start(self) -> None:
        self.search("start")
        options = [
            "--bind",
            "127.0.0.1",
            "--port",
            self.redis_port,
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        self.begin("redis", "redis-server", *options)
        self._command("database", "migrate")
        self._command("database", "users", "create_default")
        self.start_server()
        self.begin("worker", SERVER_PYTHON, "-m", "argilla_server", "worker", "--num-workers", "1")

    def stop(self) -> None:
        super().stop()
        with contextlib.suppress(subprocess.CalledProcessError):
            self.search("stop")

    def start_server(self) -> None:
        where = ("--host", "127.0.0.1", "--port", self.port)
        self.begin(
            "server", SERVER_PYTHON, "-m", "argilla_server", "start", *where, ready="/api/v1/status"
        )

    def search(self, action: str) -> None:
        """Start the search engine, or stop it and delete its index."""
        # It may run as another user, who needs access to every folder above it.
        home = self.home / "search"
        home.mkdir(exist_ok=True)
        script = f"{os.environ['H2HTALK_OPENSEARCH']}/opensearch.sh"
        self._run("search", "bash", script, action, self.search_port, home)

    def pause_search(self) -> None:
        """Kill the search engine, and keep its index."""
        os.kill(int((self.home / "search" / "pid").read_text()), signal.SIGKILL)

        def gone() -> int:
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", self.search_port))

        wait_until(gone, "the search engine still answers")

    def reindex(self) -> None:
        """Rebuild the index, as an administrator does."""
        self._command("search-engine", "reindex")

    def _command(self, *arguments: str) -> None:
        self._run("commands", SERVER_PYTHON, "-m", "argilla_server", *arguments)

    def _run(self, name: str, *command: object) -> None:
        with (self.home / f"{name}.log").open("ab") as log:
            words = [*map(str, command)]
            subprocess.run(
                words, check=True, env=self.environment, stdout=log, stderr=log, timeout=180
            )


@dataclass
class SimulatedAnnotator:
    """An annotator with an account on the server.

    `skill`: probability of the right answer, 0 to 1; wrong answers are equally probable.
    """

    name: str
    skill: float
    url: str
    key: str

    def __post_init__(self) -> None:
        # Imported here because the SDK takes seconds, also for collecting the tests.
        import argilla

        self.sdk = argilla.Argilla(api_url=self.url, api_key=self.key, retries=0)
        self.user = self.sdk.me.id
        self.http = httpx.Client(
            base_url=self.url, headers={"X-Argilla-Api-Key": self.key}, timeout=60
        )

    def answer(self, item: str, questions: Sequence[Question]) -> dict[str, str | int]:
        """Their answers to an item, the same at every call."""
        said: dict[str, str | int] = {}
        for question in (one for one in questions if one.decided):
            draw = random.Random(f"0/{self.name}/{item}/{question.name}")
            right = truth(item, question)
            others = [choice for choice in choices_of(question) if choice != right]
            said[question.name] = right if draw.random() < self.skill else draw.choice(others)
        return said

    def datasets(self, workspace: str) -> list[dict[str, Any]]:
        """The datasets that they see in workspaces with this prefix."""
        places, seen = (
            send(self.http, "GET", f"/api/v1/me/{kind}")["items"]
            for kind in ("workspaces", "datasets")
        )
        ids = {one["id"] for one in places if one["name"].startswith(workspace)}
        return [one for one in seen if one["workspace_id"] in ids]

    def pending(self, dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The records that are pending for them, from the search index, like on the page."""
        scopes = ({"entity": entity, "property": "status"} for entity in ("response", "record"))
        filters = [{"type": "terms", "scope": scope, "values": ["pending"]} for scope in scopes]
        path = f"/api/v1/me/datasets/{dataset['id']}/records/search?limit=1000&include=responses"
        return [
            one["record"]
            for one in send(self.http, "POST", path, {"filters": {"and": filters}})["items"]
        ]

    def hand_in(self, answers: Iterable[tuple[str, Mapping[str, Any], str]]) -> None:
        """Submit their first responses to records (record id, values, status) through the SDK, one by one."""
        from argilla._exceptions import ConflictError, InternalServerError
        from argilla._models import UserResponseModel

        for record, values, status in answers:
            # The SDK's public class cannot make a discard without values.
            given = UserResponseModel(values=valued(values), status=status, user_id=self.user)  # type: ignore[arg-type]
            end = time.monotonic() + PATIENCE
            lost = False
            done = False
            while not done:
                with contextlib.suppress(httpx.TransportError, ConflictError, InternalServerError):
                    # A response without acknowledgement may be stored, and must not be submitted twice.
                    if not (lost and self._stored(record, given)):
                        self.sdk.api.records.create_record_response(record, given)
                    done = True
                if not done:
                    lost = True
                    assert time.monotonic() < end, f"{record}: the server stayed away"
                    time.sleep(0.3)

    def _stored(self, record: str, given: Any) -> bool:
        """Whether the server has their response to a record, which must then be this one."""
        there = [
            one
            for one in self.sdk.api.records.get(record).responses or ()
            if one.user_id == self.user
        ]
        assert [(one.status, one.values or {}) for one in there] in (
            [],
            [(given.status, given.values)],
        )
        return bool(there)

    def submit(self, record: str, values: Mapping[str, Any]) -> None:
        """Submit a response like the page does.

        If two annotators submit to one record at once, the server stores both and reports a conflict in its search
        index to one of them: a failed response is submitted again.
        """
        items = [{"record_id": record, "status": "submitted", "values": valued(values)}]
        end = time.monotonic() + PATIENCE
        while (
            found := send(self.http, "POST", "/api/v1/me/responses/bulk", {"items": items})[
                "items"
            ][0]
        )["error"]:
            assert time.monotonic() < end, found

    def work_through(self, workspace: str, kind: Kind) -> dict[str, dict[str, str | int]]:
        """Answer the pending records of every dataset. Returns item -> answers."""
        said: dict[str, dict[str, str | int]] = {}
        for dataset in self.datasets(workspace):
            waiting = {record["id"]: item_of(record) for record in self.pending(dataset)}
            given = {item: self.answer(item, ASKED[kind]) for item in waiting.values()}
            self.hand_in((record, given[item], "submitted") for record, item in waiting.items())
            said |= given
        return said


def valued(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"value": value} for name, value in values.items()}


def item_of(record: Mapping[str, Any]) -> str:
    """The id of an item, from its text: the record id does not reveal it."""
    text = json.loads(record["fields"]["item"]["data"])["turns"][0]["content"]
    return f"item-{int(text.rpartition('(')[2].rstrip(')')):03}"


def choices_of(question: Question) -> tuple[Any, ...]:
    return question.labels or question.ratings


def truth(item: str, question: Question) -> Any:
    return random.Random(f"truth/{item}/{question.name}").choice(choices_of(question))


def signed_in(url: str, logins: Path, skills: Mapping[str, float]) -> list[SimulatedAnnotator]:
    """Sign in the annotators of a round with their passwords, and return them with their keys."""
    with logins.open(encoding="utf-8", newline="") as file:
        passwords = {row["name"]: row["password"] for row in csv.DictReader(file)}
    annotators = []
    for name, skill in skills.items():
        form = {"username": name, "password": passwords[name]}
        token = (
            httpx.post(f"{url}/api/v1/token", data=form, timeout=30)
            .raise_for_status()
            .json()["access_token"]
        )
        me = httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=30)
        annotators.append(
            SimulatedAnnotator(name, skill, url, me.raise_for_status().json()["api_key"])
        )
    return annotators


# Kind -> the questions of a round that this version opens.
ASKED: Mapping[Kind, tuple[Question, ...]] = {
    kind: questions_for(kind, [], [HARMFUL.name] if kind in READING_KINDS else []) for kind in KINDS
}
SAYS: dict[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4, "harmful": "no"}
NAMES = ("small-a", "small-b", "small-c")


class Opened:
    """A small round of six items in both languages, with three annotators."""

    logins: Path | None = None

    def __init__(self, base: Path, stack: Stack, name: str, **changes: Any) -> None:
        self.name, self.spec = name, small_spec(base, name, **changes)
        open_round(self.spec, base / name)
        self.round = RoundFolder(base / name)
        # The first of these rounds creates the accounts; later ones find them.
        Opened.logins = Opened.logins or self.round.private / "argilla_logins.csv"
        self.annotators = signed_in(stack.url, Opened.logins, dict.fromkeys(NAMES, 0.8))

    def records(self, annotator: SimulatedAnnotator, part: str = "-en-") -> dict[str, str]:
        """Item -> record id, as the annotator sees it."""
        (dataset,) = [one for one in annotator.datasets(self.name) if part in one["name"]]
        return {item_of(one): one["id"] for one in annotator.pending(dataset)}

    def values(self) -> dict[tuple[str, str], Any]:
        return {
            (item, question): one.value
            for (item, _, question), one in self.round.annotations().items()
        }


def small_spec(base: Path, name: str, **changes: Any) -> RoundSpec:
    items = write_items(base / f"{name}.jsonl", made_items(6, "crowd", crises=3))
    people = write_annotators(base / f"{name}.csv", NAMES, NAMES[2:])
    care = Care(session_items=20, crisis_share=0.5)
    spec = RoundSpec(
        "crowd",
        str(items),
        where="argilla",
        annotators=str(people),
        overlap=2,
        care=care,
        planted=False,
    )
    return replace(spec, **changes)


def found_dataset(client: ServerClient, workspace: str, name: str) -> dict[str, Any]:
    place = next(
        one["id"]
        for one in client.get("/api/v1/me/workspaces")["items"]
        if one["name"] == workspace
    )
    found = client.get("/api/v1/me/datasets", workspace_id=place)["items"]
    return next(one for one in found if one["name"] == name)
