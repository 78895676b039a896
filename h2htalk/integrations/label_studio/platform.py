"""The platform `label-studio`: a project for each session, a task for each item, annotations from the database.

The community edition has no roles: every account can open every project and every answer. Accounts are therefore named
by the annotators' hashes. Every step creates only what is missing, so that it can be interrupted and repeated.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import jinja2

from h2htalk.data.files import read_toml
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla import datasets
from h2htalk.rounds.argilla.client import RETRY_SECONDS, TIMEOUT, ServerClient
from h2htalk.rounds.argilla.datasets import FIELD, RoundContent, RoundDataset
from h2htalk.rounds.argilla.read_annotations import ServerResponse, read_responses
from h2htalk.rounds.assignment.assignments import is_eligible
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Collected, Message
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.spreadsheets.item_text import context_blocks, reply_blocks
from h2htalk.rounds.texts import interface
from h2htalk.text.escaping import printable, printable_lines

LOGINS = "label_studio_logins.csv"
# Tasks or projects in one listing, and the longest title of a project.
PAGE, MAX_TITLE = 500, 50
_FOLDER = Path(__file__).parent
_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
)
_TEMPLATES.globals |= {"texts": interface, "printable": printable, "printable_lines": printable_lines}


def project_settings(content: RoundContent, planned: RoundDataset) -> dict[str, Any]:
    """Return the settings of a project as the server accepts and lists them. Raise DataError."""
    state, language = content.state, planned.language
    guidelines = state.folder.guidelines(language).splitlines()
    return {
        **read_toml(_FOLDER / "project.toml"),
        "label_config": _TEMPLATES.get_template("config.xml.j2").render(questions=state.questions, language=language),
        "expert_instruction": _TEMPLATES.get_template("guidelines.html.j2").render(lines=guidelines),
        "maximum_annotations": planned.annotators,
    }


def item_html(item: Item) -> str:
    """Return the field of an item's task; the text of a crisis is folded until the annotator opens it."""
    blocks = (*context_blocks(item, item.language), *reply_blocks(item, item.language))
    return _TEMPLATES.get_template("item.html.j2").render(item=item, blocks=blocks)


class LabelStudioClient(ServerClient):
    """A connection to a Label Studio server."""

    NAME, URL, KEY, VERSION = "Label Studio", "LABEL_STUDIO_URL", "LABEL_STUDIO_API_KEY", "1.23"
    VERSION_PATH = "/api/version"
    KEYS = "copy a personal access token, or a legacy token if it is enabled, from Account & Settings"

    def pages(self, path: str, key: str, **params: object) -> Iterator[dict[str, Any]]:
        """Yield a paged listing, each entry once; pages may overlap while entries are added."""
        seen: set[int] = set()
        for page in count(1):
            # 404: there is no such page.
            status, reply = self.call("GET", path, params={**params, "page": page, "page_size": PAGE}, allowed=(404,))
            if status == 404 or not reply[key]:
                return
            yield from (one for one in reply[key] if one["id"] not in seen)
            seen |= {one["id"] for one in reply[key]}

    def projects(self, content: RoundContent) -> dict[RoundDataset, tuple[str, dict[str, Any] | None]]:
        """Return the description of each project of a round, and the project if it exists: of several the first."""
        newest_first = sorted(self.pages("/api/projects", "results"), key=lambda one: -one["id"])
        found = {one["description"]: one for one in newest_first}
        names = {
            planned: f"h2htalk {content.marker}, {planned.language}, {planned.assignment_set}-{planned.session}"
            for planned in datasets.round_datasets(content)
        }
        return {planned: (name, found.get(name)) for planned, name in names.items()}

    def tasks(self, content: RoundContent, project: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return (item, task) of a project's tasks, with their annotations."""
        items = datasets.record_ids(content.items, content.salt)
        tasks = self.pages("/api/tasks", "tasks", project=project["id"], fields="all")
        return [(items[id], task) for task in tasks if (id := str(task["data"].get("id"))) in items]

    def users(self, state: RoundState) -> tuple[dict[str, int], dict[int, str]]:
        """Return annotator id -> user id of their accounts, and user id -> e-mail address of all accounts."""
        emails = {one["id"]: str(one["email"]) for one in self.get("/api/users/")}
        known = {one.id: user for one in state.annotators for user, email in emails.items() if email == _email(one)}
        return known, emails

    def add_users(self, state: RoundState) -> list[str]:
        """Create missing accounts of active annotators; return messages. Raise RoundError."""
        users, salt = self.users(state)[0], state.folder.salt()
        missing = [one for one in state.annotators if one.active and one.id not in users]
        if not missing:
            return []
        # An attempt after an interruption makes the same ones.
        passwords = {one: hmac.new(salt, f"password {one.id}".encode(), "sha256").hexdigest()[:20] for one in missing}
        rows = "".join(f"{one.name},{_email(one)},{password}\n" for one, password in passwords.items())
        state.folder.write_private(LOGINS, f"name,email,password\n{rows}")
        signup = f"/user/signup/?token={self.get('/api/invite')['token']}"
        for one, password in passwords.items():
            with httpx.Client(base_url=self.http.base_url, timeout=TIMEOUT) as page:
                try:
                    token = page.get(signup).cookies.get("csrftoken", "")
                    form = {"email": _email(one), "password": password, "csrfmiddlewaretoken": token}
                    page.post(signup, data=form, headers={"Referer": self.url})
                except httpx.TransportError as error:
                    raise RoundError(f"{self.url} does not answer ({error}); repeat the command") from error
        users = self.users(state)[0]
        if refused := [one.name for one in missing if one.id not in users]:
            raise RoundError(f"{self.url}: no account could be created for {', '.join(refused)}; was one deleted?")
        created = f"{counted(len(missing), 'account')} created with passwords in {state.folder.private / LOGINS}"
        return [f"{created}; send each annotator their own"]


class _Credentials(httpx.Auth):
    """A legacy token, or a personal access token, which is exchanged for access tokens of a few minutes."""

    requires_response_body = True

    def __init__(self, address: str, key: str) -> None:
        self._key, self._refresh = key, f"{address}/api/token/refresh/"
        self._header = f"Bearer {key}" if key.count(".") == 2 else f"Token {key}"

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        request.headers["Authorization"] = self._header
        if (yield request).status_code == 401 and self._header.startswith("Bearer"):
            reply = yield httpx.Request("POST", self._refresh, json={"refresh": self._key})
            if reply.status_code == 200:
                self._header = request.headers["Authorization"] = f"Bearer {reply.json()['access']}"
                yield request


class LabelStudioPlatform:
    """A Label Studio server, which hands items out to annotators."""

    assigns_items = False

    @cached_property
    def _client(self) -> LabelStudioClient:
        """The connection of this command: one that has answered is kept through a restart of the server."""
        return LabelStudioClient.open(RETRY_SECONDS, lambda address, key: {"auth": _Credentials(address, key)})

    def check(self, state: RoundState) -> None:
        """Check server, key and version; change nothing. Raise RoundError, also for a round with suggestions."""
        if state.spec.suggest:
            raise RoundError("a round on Label Studio shows no suggestions; leave out `suggest`")
        self._client.get("/api/projects/", page_size=1)

    def publish(self, state: RoundState) -> list[str]:
        """Create missing accounts, projects and tasks; return messages for the manager.

        Tasks are skipped in advance for annotators who must not get them.
        """
        client, content, needed = (
            self._client,
            datasets.round_content(state),
            state.requests(state.annotators, ties=True),
        )
        # Neither is repeated: a request whose reply was lost may have been carried out.
        once = replace(client, retry_seconds=0.0)
        messages = client.add_users(state)
        users = client.users(state)[0]
        free, annotated = [one for one in state.annotators if one.id in users], {key[:2] for key in state.annotations}
        for planned, (name, project) in client.projects(content).items():
            if project is None and planned.current.isdisjoint(needed):
                continue
            if project is None:
                body = {"title": planned.name[-MAX_TITLE:], "description": name, **project_settings(content, planned)}
                _, project = once.call("POST", "/api/projects/", body)
            excluded = dict[str, set[int]]()
            for item in map(content.items.__getitem__, planned.items):
                # An item is offered in its last assignment set.
                may = (one for one in free if item.id in planned.current and is_eligible(one, item))
                excluded[item.id] = {*users.values()} - {
                    users[one.id] for one in may if (item.id, one.id) not in annotated
                }
            existing = dict(client.tasks(content, project))
            if new := [name for name in planned.items if name in planned.current & needed.keys() - existing.keys()]:
                tasks = [
                    {"data": {"id": datasets.record_id(name, content.salt), FIELD: item_html(content.items[name])},
                     "annotations": [_advance_skip(user) for user in sorted(excluded[name])]}
                    for name in new
                ]  # fmt: skip
                once.call("POST", f"/api/projects/{project['id']}/import", tasks)
            for name, task in existing.items():
                given = {one["completed_by"]: one for one in task["annotations"]}
                for user in sorted(excluded[name] - given.keys()) if not task["is_labeled"] else ():
                    client.call("POST", f"/api/tasks/{task['id']}/annotations", _advance_skip(user))
                for user in {*users.values()} & given.keys() - excluded[name]:
                    if _is_advance_skip(given[user]):
                        client.call("DELETE", f"/api/annotations/{given[user]['id']}", allowed=(404,))
            if planned.current:
                address = f"{client.url}/projects/{project['id']}/data?labeling=1"
                messages.append(f"{planned.name}, {counted(len(planned.current), 'item')}: {address}")
        return messages

    def collect(self, state: RoundState) -> Collected:
        """Return all annotations, skips and drafts, from the server's database."""
        client, content, needed = (
            self._client,
            datasets.round_content(state),
            state.requests(state.annotators, ties=True),
        )
        users, emails = client.users(state)
        annotators = {str(users[one.id]): one for one in state.annotators if one.id in users}
        responses, discarded, offered = list[ServerResponse](), set[tuple[str, str, str]](), dict[str, int]()
        mistakes, notes = list[str](), list[str]()
        for planned, (_, project) in client.projects(content).items():
            if project is None:
                problem = "the project is missing on the server; annotations collected earlier count"
                notes += [Message(planned.name, problem)] * bool(planned.current)
                continue
            if changed := [
                name for name, value in project_settings(content, planned).items() if project[name] != value
            ]:
                notes.append(
                    Message(planned.name, f"changed on the server: {', '.join(changed)}; restore its settings")
                )
            tasks = client.tasks(content, project)
            fields = {name: task["data"].get(FIELD) for name, task in tasks}
            shown = {name: item_html(content.items[name]) for name in fields}
            mistakes += datasets.describe_edited(planned, fields, shown)
            notes += datasets.describe_missing(planned, planned.current & needed.keys(), fields)
            for name, task in tasks:
                offered[name] = 0 if task["is_labeled"] else max(0, task["overlap"] - task["total_annotations"])
                skips = [str(one["completed_by"]) for one in task["annotations"] if _is_advance_skip(one)]
                discarded |= {(planned.name, name, annotators[user].id) for user in skips if user in annotators}
                responses += [_response(planned.name, name, one, state.questions) for one in task["annotations"]]
                if task["draft_exists"]:
                    drafts = client.get(f"/api/tasks/{task['id']}/drafts")
                    writers = [user for one in drafts for user, email in emails.items() if email == one["user"]]
                    responses += [ServerResponse(planned.name, name, str(user), "draft", {}, "") for user in writers]
        names = {str(user): email for user, email in emails.items()}
        read, _ = read_responses(state, responses, annotators=annotators, names=names, discarded=discarded)
        return replace(read, notes=(*notes, *read.notes), mistakes=(*mistakes, *read.mistakes), offered=offered)

    def close(self, state: RoundState) -> list[str]:
        """Return a message: the server keeps everything, and later answers are not read."""
        return [
            "later answers in Label Studio do not count unless the round is reopened; delete its projects and accounts"
        ]

    def erase(self, state: RoundState, items: Collection[str]) -> list[str]:
        """Delete the tasks of items, with annotations and drafts, from every project that the key sees."""
        client, ids, deleted = self._client, datasets.record_ids(items, state.folder.salt()), 0
        for project in client.pages("/api/projects", "results"):
            for task in client.pages("/api/tasks", "tasks", project=project["id"]):
                if task["data"].get("id") in ids:
                    client.call("DELETE", f"/api/tasks/{task['id']}", allowed=(404,))
                    deleted += 1
        return [
            f"{client.url}: {counted(deleted, 'task')} deleted with answers and drafts. Its files keep the bytes: ask "
            "its operator to compact the database (VACUUM), to delete exports, and to let backups expire"
        ]


def _email(annotator: Annotator) -> str:
    """Return the e-mail address of an annotator's account, whose domain cannot exist."""
    return f"{annotator.id}@annotators.invalid"


def _advance_skip(user: int) -> dict[str, Any]:
    return {"result": [], "was_cancelled": True, "ground_truth": False, "completed_by": user}


def _is_advance_skip(annotation: Mapping[str, Any]) -> bool:
    """Return whether a skip is an `_advance_skip`: an annotator's own was last changed by the annotator."""
    return bool(annotation["was_cancelled"] and annotation["updated_by"] != annotation["completed_by"])


def _response(dataset: str, item: str, annotation: Mapping[str, Any], questions: Sequence[Question]) -> ServerResponse:
    """Return an annotation as a response of the account that wrote it: any account can change any annotation."""
    forms, values = {question.name: question.form for question in questions}, dict[str, object]()
    for one in annotation["result"] or ():
        name, value = one.get("from_name"), one.get("value")
        if name in forms and isinstance(value, dict):
            given = [str(text) for found in value.values() if isinstance(found, list) for text in found]
            values[name] = given if forms[name] == "labels" else "\n".join(given)
    skipped = annotation["was_cancelled"]
    user = annotation["completed_by" if skipped else "updated_by"]
    when = datetime.fromisoformat(annotation["updated_at"]).astimezone(UTC).isoformat(timespec="milliseconds")
    status = "discarded" if skipped else "submitted"
    return ServerResponse(dataset, item, str(user), status, {} if skipped else values, when, str(annotation["id"]))
