"""A small Argilla server in memory, with the requests that rounds use and with faults.

The real server is tested in tests/live/argilla; this one stands in for it where none is at hand, and can be made to
lose connections, another version, or another user's server.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.argilla.datasets import record_id
from h2htalk.rounds.argilla.platform import ArgillaPlatform
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.lifecycle import open_round
from h2htalk.rounds.round_folder import RoundFolder, read_state
from h2htalk.rounds.settings import Care, RoundSpec
from support.doubles.loopback import Answer, HttpServer

OWNER_KEY = "the.owners.key"
PARTS = {"fields": "fields", "questions": "questions", "metadata-properties": "metadata"}


class Refused(Exception):
    """A refused request, with the status."""


class ArgillaDouble(HttpServer):
    """The server.

    Attributes:
        version, role: of the server, and of the key's owner.
        search: whether its search engine answers. `hidden`: number of records that the index lacks.
        unseen: names of workspaces that the key's owner does not see (admins see their own).
        asking: id of the user of the current request's key.
        before: called with number, method and path of a request before it is processed; a ConnectionError closes the
            connection.
    """

    def __init__(self) -> None:
        super().__init__()
        self.version, self.role = "2.8.0", "owner"
        self.search, self.hidden = True, 0
        self.unseen: set[str] = set()
        self.asking = ""
        self.before: Callable[[int, str, str], None] = lambda number, method, path: None
        self.requests: list[tuple[str, str]] = []
        self.users: dict[str, dict[str, Any]] = {}
        self.workspaces: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.count = itertools.count(1)
        self.add_user("argilla", "owner")

    # --- What a test does or looks at -------------------------------------------------------------------------------

    def add_user(self, name: str, role: str = "annotator") -> str:
        id = self.new_id()
        key = OWNER_KEY if not self.users else f"key.of.{id}"
        self.users[id] = {"id": id, "username": name, "role": role, "api_key": key}
        return id

    def user_id(self, name: str) -> str:
        return next(id for id, user in self.users.items() if user["username"] == name)

    def dataset(self, name: str) -> dict[str, Any]:
        return next(one for one in self.datasets.values() if one["name"] == name)

    def respond(
        self, dataset: str, item: str, user: str, status: str = "submitted", **values: Any
    ) -> None:
        """Store a user's response to an item, in place of an earlier one."""
        record = self.dataset(dataset)["records"][item]
        said = {name: {"value": value} for name, value in values.items()}
        at = f"2030-01-01T00:00:{next(self.count) % 60:02}.5"
        told = {"id": self.new_id(), "status": status, "values": said, "updated_at": at}
        record["responses"][self.user_id(user)] = told

    def whose(self, key: str | None) -> str:
        """Return the user id of a key; refuse an unknown key."""
        found = [id for id, user in self.users.items() if user["api_key"] == key]
        _require(bool(found), 401)
        return found[0]

    def may_see(self, workspace: str) -> bool:
        """Whether the user of the current request may see a workspace: members, and the owner."""
        owner = self.asking == self.user_id("argilla")
        return owner or self.asking in self.workspaces[workspace]["users"]

    def offered(self, name: str) -> list[str]:
        """The datasets that an annotator's page lists, asked for over the wire with their key."""
        headers = {"X-Argilla-Api-Key": self.users[self.user_id(name)]["api_key"]}
        with httpx.Client(base_url=self.url, headers=headers) as page:
            places = page.get("/api/v1/me/workspaces").json()["items"]
            found = [
                page.get("/api/v1/me/datasets", params={"workspace_id": one["id"]})
                for one in places
            ]
        return sorted(dataset["name"] for one in found for dataset in one.json()["items"])

    def become(self, dataset: str, item: str, user: str, status: str, **values: Any) -> None:
        """Change an existing response; its id stays."""
        kept = self.dataset(dataset)["records"][item]["responses"][self.user_id(user)]["id"]
        self.respond(dataset, item, user, status, **values)
        self.dataset(dataset)["records"][item]["responses"][self.user_id(user)]["id"] = kept

    # --- How --------------------------------------------------------------------------------------------------------

    def new_id(self) -> str:
        return f"00000000-0000-4000-8000-{next(self.count):012}"

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        url = urlsplit(target)
        self.requests.append((method, url.path))
        try:
            self.before(len(self.requests), method, url.path)
            if url.path not in ("/api/v1/version", "/api/v1/status"):
                self.asking = self.whose(headers.get("X-Argilla-Api-Key"))
            said = self.do(method, url.path, parse_qs(url.query), json.loads(body or b"null"))
        except Refused as refused:
            return Answer({"detail": "refused"}, refused.args[0])
        except ConnectionError:
            return "drop"
        return Answer(said)

    def do(self, method: str, path: str, query: dict[str, list[str]], body: Any) -> Any:
        parts = path.removeprefix("/api/v1/").split("/")
        match (method, *parts):
            case "GET", "version":
                return {"version": self.version}
            case "GET", "status":
                _require(self.search, 500)
                return {}
            case "GET", "me":
                return {
                    **self.users[self.user_id("argilla")],
                    "role": self.role,
                    "api_key": OWNER_KEY,
                }
            case "GET", "me", "workspaces":
                shown = [one for one in self.workspaces.values() if one["name"] not in self.unseen]
                return {"items": [one for one in shown if self.may_see(one["id"])]}
            case "POST", "workspaces":
                _require(self.role == "owner", 403)
                _require(body["name"] not in {one["name"] for one in self.workspaces.values()}, 409)
                made = {"id": self.new_id(), "name": body["name"], "users": []}
                self.workspaces[made["id"]] = made
                return made
            case "GET", "users":
                _require(self.role == "owner", 403)
                return {"items": list(self.users.values())}
            case "POST", "users":
                _require(self.role == "owner", 403)
                _require(len(body["password"]) >= 8, 422)
                _require(
                    body["username"] not in {user["username"] for user in self.users.values()}, 409
                )
                self.users[(id := self.add_user(body["username"], body["role"]))]["password"] = (
                    body["password"]
                )
                return self.users[id]
            case "GET", "workspaces", place, "users":
                return {
                    "items": [
                        self.users[id] for id in self.workspaces[place]["users"] if id in self.users
                    ]
                }
            case "POST", "workspaces", place, "users":
                _require(body["user_id"] not in self.workspaces[place]["users"], 409)
                self.workspaces[place]["users"].append(body["user_id"])
                return {}
            case "DELETE", "workspaces", place, "users", user:
                _require(user in self.workspaces[place]["users"], 404)
                self.workspaces[place]["users"].remove(user)
                return self.users[user]
            case "DELETE", "workspaces", place:
                _require(self.role == "owner", 403)
                _require(place in self.workspaces, 404)
                _require(place not in {one["workspace_id"] for one in self.datasets.values()}, 409)
                return self.workspaces.pop(place)
            case "GET", "users", user, "workspaces":
                _require(self.role == "owner", 403)
                return {"items": [one for one in self.workspaces.values() if user in one["users"]]}
            case "DELETE", "users", user:
                _require(self.role == "owner", 403)
                _require(user in self.users, 404)
                for _, record in self._records():
                    record["responses"].pop(user, None)
                for one in self.workspaces.values():
                    one["users"] = [id for id in one["users"] if id != user]
                return self.users.pop(user)
            case "GET", "datasets", id, "users", "progress":
                return {"users": self.progress(id)}
            case "DELETE", "datasets", id:
                _require(id in self.datasets, 404)
                return _without(self.datasets.pop(id))
            case "GET", "me", "datasets" if "workspace_id" not in query:
                return {"items": [_without(one) for one in self.datasets.values()]}
            case "GET", "me", "datasets":
                place = query["workspace_id"][0]
                _require(self.may_see(place), 403)
                return {
                    "items": [
                        _without(one)
                        for one in self.datasets.values()
                        if one["workspace_id"] == place
                    ]
                }
            case "POST", "datasets":
                taken = {(one["workspace_id"], one["name"]) for one in self.datasets.values()}
                _require((body["workspace_id"], body["name"]) not in taken, 409)
                made = {"id": self.new_id(), "status": "draft", "records": {}, **body}
                made["inserted_at"] = f"2030-01-01T00:00:{next(self.count):09}"
                self.datasets[made["id"]] = (
                    made | {kind: [] for kind in PARTS.values()} | {"facts": body["metadata"]}
                )
                return _without(self.datasets[made["id"]])
            case "GET", "me", "datasets", id, "metadata-properties":
                return {"items": self.datasets[id]["metadata"]}
            case ("GET", "datasets", id, ("fields" | "questions") as kind):
                return {"items": self.datasets[id][kind]}
            case ("POST", "datasets", id, ("fields" | "questions" | "metadata-properties") as kind):
                there = self.datasets[id][PARTS[kind]]
                _require(body["name"] not in {one["name"] for one in there}, 409)
                there.append({"id": self.new_id(), **body})
                return there[-1]
            case "PUT", "datasets", id, "publish":
                _require(self.datasets[id]["status"] == "draft", 422)
                _require(all(self.datasets[id][kind] for kind in ("fields", "questions")), 422)
                self.datasets[id]["status"] = "ready"
                return {}
            case "GET", "datasets", id, "progress":
                _require(self.search, 500)
                records = self.datasets[id]["records"].values()
                done = sum(one["status"] == "completed" for one in self._listed(id))
                return {
                    "total": len(records) - self.hidden,
                    "completed": done,
                    "pending": len(records) - done,
                }
            case "GET", "datasets", id, "records":
                start = int(query.get("offset", ["0"])[0])
                limit = int(query["limit"][0])
                return {
                    "items": self._listed(id)[start : start + limit],
                    "total": len(self.datasets[id]["records"]),
                }
            case "PUT", "datasets", id, "records", "bulk":
                _require(self.datasets[id]["status"] == "ready", 422)
                for sent in body["items"]:
                    _require(re.fullmatch(r"[\w.:#-]+", sent["external_id"]) is not None, 422)
                    new = {"id": self.new_id(), "responses": {}}
                    record = self.datasets[id]["records"].setdefault(sent["external_id"], new)
                    record |= {key: value for key, value in sent.items() if key != "responses"}
                    for one in sent.get("responses") or ():
                        # Like Argilla 2.8.0, which stores such a response and then fails to index it.
                        _require(one["values"] is not None, 500)
                        made = {**one, "id": self.new_id(), "updated_at": "2030-01-01T00:00:00"}
                        record["responses"][one["user_id"]] = made
                return {"items": []}
            case "DELETE", "datasets", id, "records":
                ids = query["ids"][0].split(",")
                _require(len(ids) <= 100, 422)
                kept = {
                    name: one
                    for name, one in self.datasets[id]["records"].items()
                    if one["id"] not in ids
                }
                self.datasets[id]["records"] = kept
                return {}
            case "POST", "records", id, "responses":
                for dataset, record in self._records():
                    if record["id"] == id:
                        _require(
                            self.asking in self.workspaces[dataset["workspace_id"]]["users"], 403
                        )
                        _require(self.asking not in record["responses"], 409)
                        made = {**body, "id": self.new_id(), "updated_at": "2030-01-01T00:00:00"}
                        record["responses"][self.asking] = made
                        return made
            case "DELETE", "responses", id:
                for _, record in self._records():
                    for user, one in list(record["responses"].items()):
                        if one["id"] == id:
                            del record["responses"][user]
                            return {**one, "record_id": record["id"]}
        raise Refused(404)

    def progress(self, dataset: str) -> list[dict[str, Any]]:
        """User name and number of responses of each user who has some in a dataset."""
        found: dict[str, int] = {}
        for record in self.datasets[dataset]["records"].values():
            for user in record["responses"]:
                name = self.users[user]["username"]
                found[name] = found.get(name, 0) + 1
        return [
            {"username": name, "completed": {"submitted": n}, "pending": {}}
            for name, n in found.items()
        ]

    def _records(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        return [
            (dataset, record)
            for dataset in self.datasets.values()
            for record in dataset["records"].values()
        ]

    def _listed(self, dataset: str) -> list[dict[str, Any]]:
        wanted = self.datasets[dataset]["distribution"]["min_submitted"]
        listed = []
        for record in self.datasets[dataset]["records"].values():
            said = [
                {"user_id": user, **one}
                for user, one in record["responses"].items()
                if user in self.users
            ]
            done = sum(one["status"] == "submitted" for one in said) >= wanted
            listed.append(
                {**record, "responses": said, "status": "completed" if done else "pending"}
            )
        return listed


def _without(dataset: dict[str, Any]) -> dict[str, Any]:
    """A dataset as the server lists it, without records, fields and questions."""
    kept = (
        "id", "name", "workspace_id", "status", "guidelines", "distribution", "allow_extra_metadata", "inserted_at"
    )  # fmt: skip
    return {key: dataset[key] for key in kept} | {"metadata": dataset["facts"]}


def _require(holds: bool, status: int) -> None:
    if not holds:
        raise Refused(status)


def interrupt_after(patch: pytest.MonkeyPatch, stop: int) -> None:
    """End the command after its `stop`-th request that changes a server, of Argilla or Label Studio."""
    changes = list[str]()
    call = ServerClient.call

    def interrupted(self: ServerClient, method: str, path: str, *more: Any, **options: Any) -> Any:
        reply = call(self, method, path, *more, **options)
        if method != "GET":
            changes.append(path)
            if len(changes) == stop:
                raise KeyboardInterrupt
        return reply

    patch.setattr(ServerClient, "call", interrupted)


ITEMS: list[dict[str, Any]] = [
    {"id": "a", "language": "en", "prompt": "Good morning.", "reference": "Good morning to you."},
    {"id": "b", "language": "en", "prompt": "It has been a long, long day.", "crisis": True},
    {"id": "c </script>", "language": "en", "prompt": "</script><b>$& #TEMPLATE#</b>", "suggested": {"keep": "drop"}},
    {"id": "d", "language": "zh", "prompt": "早上好。", "subtask": "dialogue_base"},
]  # fmt: skip
DATASET = "round-set1-en-01"
SAYS: dict[str, Any] = {"subtask": "none", "keep": "keep", "quality": 4, "harmful": "no"}


def named(round: RoundFolder, item: str) -> str:
    """An item's record id."""
    return record_id(item, round.salt())


def spec_in(base: Path, items: list[dict[str, Any]] = ITEMS, **changes: Any) -> RoundSpec:
    base.mkdir(parents=True, exist_ok=True)
    (base / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    (base / "annotators.csv").write_text(
        "name,languages,crisis\nann,en zh,yes\nben,en,no\ncem,zh en,yes\n"
    )
    made = RoundSpec(
        kind="crowd", items=str(base / "items.jsonl"), where="argilla",
        annotators=str(base / "annotators.csv"), overlap=2, planted=False,
        care=Care(session_items=20, crisis_share=0.5),
    )  # fmt: skip
    return replace(made, **changes)


def opened(base: Path, **changes: Any) -> RoundFolder:
    open_round(spec_in(base, **changes), base / "round")
    return RoundFolder(base / "round")


def change(round: RoundFolder, name: str, **facts: Any) -> list[str]:
    """Change an annotator, and publish the round again."""
    changed = [replace(one, **facts) if one.name == name else one for one in round.annotators()]
    round.write_records("private/annotators.jsonl", changed)
    return ArgillaPlatform().publish(read_state(round))


def add_second_set(round: RoundFolder) -> None:
    """Publish the item `a` again, in a second assignment set for one annotator."""
    (first,) = round.assignment_sets()
    round.write_records("assignment_sets.jsonl", [first, AssignmentSet(2, {"a": 1}, (), (("a",),))])


def discarded_for(
    server: ArgillaDouble, round: RoundFolder, item: str, dataset: str = DATASET
) -> set[str]:
    """Names of users for whom an item is discarded."""
    responses = server.dataset(dataset)["records"][named(round, item)]["responses"]
    return {
        server.users[user]["username"]
        for user, one in responses.items()
        if one["status"] == "discarded"
    }
