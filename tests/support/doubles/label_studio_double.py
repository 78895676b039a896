"""A small Label Studio server in memory, with the requests that rounds use, and annotators who sign in at it.

The real server is tested in tests/live/label_studio; what this one answers was read from there.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Mapping
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from h2htalk.rounds.round_folder import RoundFolder
from support.doubles.loopback import Answer, HttpServer

OWNER, TOKEN, INVITE = "owner@example.org", "0" * 40, "an-invitation"


class Refused(Exception):
    """A refused request, with the status."""


def _require(holds: object, status: int) -> None:
    if not holds:
        raise Refused(status)


class LabelStudioDouble(HttpServer):
    """The server.

    Attributes:
        owns: whether the key is the organization's owner's.
        before: called with number, method and path of a request before it is processed; a ConnectionError closes the
            connection.
    """

    def __init__(self) -> None:
        super().__init__()
        self.owns = True
        self.before: Callable[[int, str, str], None] = lambda number, method, path: None
        self.requests: list[tuple[str, str]] = []
        self.count = itertools.count(1)
        self.users: dict[int, dict[str, Any]] = {}
        self.projects: dict[int, dict[str, Any]] = {}
        self.tasks: dict[int, dict[str, Any]] = {}
        self.annotations: dict[int, dict[str, Any]] = {}
        self.drafts: dict[int, dict[str, Any]] = {}
        self.add_user(OWNER, "", TOKEN)

    def add_user(self, email: str, password: str, token: str = "") -> int:
        user = next(self.count)
        self.users[user] = {"id": user, "email": email, "password": password, "removed": False,
                            "token": token or f"token-of-{user}"}  # fmt: skip
        return user

    def user_of(self, email: str) -> int:
        return next(user for user, one in self.users.items() if one["email"] == email)

    def task_of(self, text: str) -> int:
        """The id of the last task whose field holds a text."""
        return max(task for task, one in self.tasks.items() if text in one["data"]["item"])

    # --- How --------------------------------------------------------------------------------------------------------

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        url = urlsplit(target)
        self.requests.append((method, url.path))
        try:
            self.before(len(self.requests), method, url.path)
            return self.do(method, url.path, parse_qs(url.query), headers, body)
        except Refused as refused:
            return Answer({"detail": "refused"}, refused.args[0])
        except ConnectionError:
            return "drop"

    def do(
        self, method: str, path: str, query: dict[str, list[str]], headers: Message, body: bytes
    ) -> Answer:
        parts = path.strip("/").split("/")
        if path == "/api/version":
            return Answer({"release": "1.23.2"})
        if parts[0] == "user":
            return self.page(method, parts[1], query, body)
        token = str(headers.get("Authorization", "")).partition(" ")[2]
        asking = next((user for user, one in self.users.items() if one["token"] == token), 0)
        _require(asking, 401)
        given = json.loads(body or b"null")
        answer = self.organization(method, parts[1:], asking, given)
        if answer is None:
            # Whose membership was removed opens no project.
            _require(not self.users[asking]["removed"], 403)
            answer = self.content(method, parts[1:], query, asking, given)
        return answer if isinstance(answer, Answer) else Answer(answer)

    def page(self, method: str, name: str, query: dict[str, list[str]], body: bytes) -> Answer:
        """The pages on which people sign up and sign in."""
        if method == "GET":
            return Answer("<form>", headers={"set-cookie": "csrftoken=c"})
        form = {key: values[0] for key, values in parse_qs(body.decode()).items()}
        _require(name == "login" or query.get("token") == [INVITE], 403)
        known = {one["email"]: one for one in self.users.values()}
        if name == "signup":
            if form["email"] in known:
                return Answer("<form>: this address is in use")
            self.add_user(form["email"], form["password"])
        elif known.get(form["email"], {}).get("password") != form["password"]:
            return Answer("<form>: wrong")
        return Answer("", 302, {"location": "/"})

    def organization(self, method: str, parts: list[str], asking: int, given: Any) -> Any:
        match (method, *parts):
            case "GET", "invite":
                return {"token": INVITE}
            case "GET", "current-user", "whoami":
                return {"id": asking, "active_organization": 1}
            case "GET", "users":
                return [{"id": one["id"], "email": "Deleted" if one["removed"] else one["email"]}
                        for one in self.users.values()]  # fmt: skip
            case "DELETE", "organizations", _, "memberships", user:
                _require(self.owns, 403)
                _require(int(user) in self.users and not self.users[int(user)]["removed"], 404)
                self.users[int(user)]["removed"] = True
                return {}
            case "DELETE", "users", user:
                _require(self.owns, 403)
                _require(int(user) in self.users, 404)
                del self.users[int(user)]
                for one in self.annotations.values():
                    one |= {
                        key: None for key in ("completed_by", "updated_by") if one[key] == int(user)
                    }
                self.drafts = {id: one for id, one in self.drafts.items() if one["by"] != int(user)}
                return {}
        return None

    def content(
        self, method: str, parts: list[str], query: dict[str, list[str]], asking: int, given: Any
    ) -> Any:
        match (method, *parts):
            case "GET", "projects":
                return self.listing("results", [*self.projects.values()], query)
            case "POST", "projects":
                _require(3 <= len(given["title"]) <= 50, 400)
                project = next(self.count)
                self.projects[project] = {"id": project, **given}
                return self.projects[project]
            case "PATCH", "projects", project:
                self.projects[int(project)] |= given
                return {}
            case "DELETE", "projects", project:
                _require(int(project) in self.projects, 404)
                del self.projects[int(project)]
                self.tasks = {
                    id: one for id, one in self.tasks.items() if one["project"] != int(project)
                }
                self.annotations = {
                    id: one for id, one in self.annotations.items() if one["task"] in self.tasks
                }
                return {}
            case "POST", "projects", project, "import":
                for sent in given:
                    task = next(self.count)
                    self.tasks[task] = {"id": task, "project": int(project), "data": sent["data"]}
                    for one in sent["annotations"]:
                        self.annotate(task, one["completed_by"], asking, one)
                return {}
            case "GET", "projects", project, "next":
                task = self.next_task(int(project), asking)
                _require(task, 404)
                return self.shown(task)  # type: ignore[arg-type]
            case "GET", "tasks":
                found = [
                    self.shown(id)
                    for id, one in self.tasks.items()
                    if [str(one["project"])] == query["project"]
                ]
                return self.listing("tasks", found, query)
            case "DELETE", "tasks", task:
                _require(self.tasks.pop(int(task), None), 404)
                return {}
            case "GET", "tasks", task, "drafts":
                return [one for one in self.drafts.values() if one["task"] == int(task)]
            case "POST", "tasks", task, "annotations":
                _require(int(task) in self.tasks, 404)
                return self.annotate(int(task), given.get("completed_by", asking), asking, given)
            case "POST", "tasks", task, "drafts":
                draft = next(self.count)
                kept = {
                    "id": draft,
                    "task": int(task),
                    "user": self.users[asking]["email"],
                    "annotation": None,
                }
                self.drafts[draft] = kept | {
                    "by": asking,
                    "updated_at": "2030-01-01T00:00:00Z",
                    **given,
                }
                return self.drafts[draft]
            case "DELETE", ("annotations" | "drafts") as kind, one:
                _require(getattr(self, kind).pop(int(one), None), 404)
                return {}
        raise Refused(404)

    def annotate(
        self, task: int, completed_by: int, by: int, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        annotation = next(self.count)
        at = f"2030-01-01T00:00:{annotation % 60:02}.5Z"
        self.annotations[annotation] = {
            "id": annotation, "task": task, "completed_by": completed_by, "updated_by": by, "updated_at": at,
            "result": given["result"], "was_cancelled": bool(given.get("was_cancelled")),
        }  # fmt: skip
        return self.annotations[annotation]

    def listing(self, key: str, found: list[dict[str, Any]], query: dict[str, list[str]]) -> Any:
        size = int(query["page_size"][0])
        page = int(query.get("page", ["1"])[0])
        shown = found[(page - 1) * size : page * size]
        _require(shown or page == 1, 404)
        return {key: shown}

    def shown(self, task: int) -> dict[str, Any]:
        annotations = [one for one in self.annotations.values() if one["task"] == task]
        overlap = self.projects[self.tasks[task]["project"]]["maximum_annotations"]
        given = {
            one["completed_by"]
            for one in annotations
            if not one["was_cancelled"] and one["completed_by"]
        }
        return {
            **self.tasks[task], "annotations": annotations, "overlap": overlap, "is_labeled": len(given) >= overlap,
            "total_annotations": sum(not one["was_cancelled"] for one in annotations),
            "draft_exists": any(one["task"] == task for one in self.drafts.values()),
        }  # fmt: skip

    def next_task(self, project: int, user: int) -> int | None:
        for task in (one for one, facts in self.tasks.items() if facts["project"] == project):
            shown = self.shown(task)
            if not shown["is_labeled"] and user not in {
                one["completed_by"] for one in shown["annotations"]
            }:
                return task
        return None


class Person:
    """An annotator who signs in with the login that a round wrote, and works with the token of that account."""

    def __init__(self, server: LabelStudioDouble, round: RoundFolder, name: str) -> None:
        with (round.private / "label_studio_logins.csv").open(encoding="utf-8", newline="") as file:
            (login,) = [row for row in csv.DictReader(file) if row["name"] == name]
        self.server, self.email = server, login["email"]
        self.user = server.user_of(self.email)
        assert server.users[self.user]["password"] == login["password"]
        headers = {"Authorization": f"Token {server.users[self.user]['token']}"}
        self.http = httpx.Client(base_url=server.url, headers=headers)

    def offered(self) -> dict[str, str | None]:
        """Title of each project -> the text of the item that it offers next; `403` where it may not be opened."""
        found: dict[str, str | None] = {}
        for project in list(self.server.projects.values()):
            reply = self.http.get(f"/api/projects/{project['id']}/next")
            if reply.status_code == 200:
                found[project["title"]] = reply.json()["data"]["item"]
            else:
                found[project["title"]] = (
                    None if reply.status_code == 404 else str(reply.status_code)
                )
        return found

    def answer(self, text: str, answers: Mapping[str, Any]) -> int:
        """Answer the item that shows a text; return the status."""
        result = [result_of(name, value) for name, value in answers.items()]
        path = f"/api/tasks/{self.server.task_of(text)}/annotations"
        return self.http.post(path, json={"result": result}).status_code


def result_of(name: str, value: Any) -> dict[str, Any]:
    if name == "comment":
        return {"from_name": name, "type": "textarea", "value": {"text": [value]}}
    chosen = [*map(str, value if isinstance(value, tuple) else [value])]
    return {"from_name": name, "type": "choices", "value": {"choices": chosen}}


def write_people(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["name,languages,crisis", *lines]) + "\n", encoding="utf-8")
    return path
