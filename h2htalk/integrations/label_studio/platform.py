"""The platform `label-studio`: a project for each session, a task for each item, annotations from the database.

Every account can open every project and answer, so accounts are named by hashes. Every step creates what is missing.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import jinja2

from h2htalk.data.files import read_toml
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.argilla import datasets
from h2htalk.rounds.argilla.client import RETRY_SECONDS, TIMEOUT, ServerClient
from h2htalk.rounds.argilla.read_annotations import ServerResponse, read_responses
from h2htalk.rounds.assignment.assignments import is_eligible
from h2htalk.rounds.platforms import Collected, Message
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.spreadsheets import item_text
from h2htalk.rounds.texts import interface
from h2htalk.text import escaping

# The file of passwords; the end of accounts' addresses, no real domain; entries in a listing; the longest title.
LOGINS, DOMAIN, PAGE, MAX_TITLE = "label_studio_logins.csv", "@annotators.invalid", 500, 50
# A skip in advance, for annotators who must not get an item.
ADVANCE_SKIP: Mapping[str, Any] = {"result": [], "was_cancelled": True, "ground_truth": False}
_PAGES = jinja2.Environment(loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True)
_PAGES.globals |= {"texts": interface, "item_text": item_text, "escaping": escaping}
# The field of an item's task; the text of a crisis is folded until the annotator opens it.
item_html = _PAGES.get_template("item.html.j2").render


def project_settings(state: RoundState, planned: datasets.RoundDataset) -> dict[str, Any]:
    """Return the settings of a project as the server accepts and lists them. Raise DataError."""
    lines = state.folder.guidelines(planned.language).splitlines()
    values = {"language": planned.language, "questions": state.questions, "lines": lines}
    texts = {name: _PAGES.get_template(f"{name}.j2").render(values) for name in ("label_config", "expert_instruction")}
    return {**read_toml(Path(__file__).with_name("project.toml")), **texts, "maximum_annotations": planned.annotators}


class LabelStudioClient(ServerClient):
    """A connection to a Label Studio server."""

    NAME, URL, KEY, VERSION = "Label Studio", "LABEL_STUDIO_URL", "LABEL_STUDIO_API_KEY", "1.23"
    VERSION_PATH = "/api/version"
    KEYS = "copy a personal access token, or a legacy token if it is enabled, from Account & Settings"

    def pages(self, path: str, key: str, **params: object) -> list[dict[str, Any]]:
        """Return a paged listing, newest first; pages may overlap while entries are added, and a 404 ends them."""
        found, pages, params = dict[int, dict[str, Any]](), count(1), {**params, "page_size": PAGE}
        while entries := self.call("GET", path, params={**params, "page": next(pages)}, allowed=(404,))[1].get(key):
            found |= {one["id"]: one for one in entries}
        return [found[id] for id in sorted(found, reverse=True)]

    def projects(self, content: datasets.RoundContent) -> Iterator[tuple[datasets.RoundDataset, str, Any, list[Any]]]:
        """Yield each project of a round: its description, the project on the server or None, and (item, task) pairs."""
        found = {one["description"]: one for one in self.pages("/api/projects", "results")}
        items = datasets.record_ids(content.items, content.salt)
        for planned in datasets.round_datasets(content):
            project = found.get(name := f"h2htalk {content.marker}, {planned.name}")
            tasks = self.pages("/api/tasks", "tasks", project=project["id"], fields="all") if project else []
            ids = [(str(task["data"].get("id")), task) for task in tasks]
            yield planned, name, project, [(items[id], task) for id, task in ids if id in items]

    def users(self) -> dict[str, int]:
        """Return e-mail address -> user id of all accounts."""
        return {str(one["email"]): one["id"] for one in self.get("/api/users/")}

    def add_users(self, state: RoundState) -> list[str]:
        """Create missing accounts of active annotators; return messages. Raise RoundError."""
        users, salt, active = self.users(), state.folder.salt(), [one for one in state.annotators if one.active]
        if not (missing := [one.id for one in active if one.id + DOMAIN not in users]):
            return []
        # An attempt after an interruption makes the same ones.
        passwords = {one.id: hmac.new(salt, b"login" + one.id.encode(), "sha256").hexdigest()[:20] for one in active}
        rows = "".join(f"{one.name},{one.id}{DOMAIN},{passwords[one.id]}\n" for one in active)
        state.folder.write_private(LOGINS, f"name,email,password\n{rows}")
        address = f"/user/signup/?token={self.get('/api/invite')['token']}"
        for one in missing:
            try:
                with httpx.Client(base_url=self.http.base_url, timeout=TIMEOUT) as page:
                    token = page.get(address).cookies.get("csrftoken", "")
                    form = {"email": one + DOMAIN, "password": passwords[one], "csrfmiddlewaretoken": token}
                    page.post(address, data=form, headers={"Referer": self.url})
            except httpx.TransportError as error:
                raise RoundError(f"{self.url} does not answer ({error}); repeat the command") from error
        if not {one + DOMAIN for one in missing} <= self.users().keys():
            raise RoundError(f"{self.url}: it refuses to create accounts, or one of the round was removed")
        return [f"{counted(len(missing), 'account')} created; send annotators theirs: {state.folder.private / LOGINS}"]


class LabelStudioPlatform:
    """A Label Studio server, which hands items out to annotators."""

    assigns_items = False

    @cached_property
    def _client(self) -> LabelStudioClient:
        """The connection of this command: one that has answered is kept through a restart of the server."""
        client = LabelStudioClient.open(RETRY_SECONDS, lambda _, key: {"headers": {"Authorization": f"Token {key}"}})
        # A personal access token is exchanged for an access token of five minutes.
        if (key := client.http.headers["Authorization"].removeprefix("Token ")).count(".") == 2:
            _, reply = client.call("POST", "/api/token/refresh/", {"refresh": key})
            client.http.headers["Authorization"] = f"Bearer {reply['access']}"
        return client

    def check(self, state: RoundState) -> None:
        """Check server, key and version; change nothing. Raise RoundError, also for a round with suggestions."""
        if state.spec.suggest:
            raise RoundError("a round on Label Studio shows no suggestions; leave out `suggest`")
        self._client.get("/api/projects/", page_size=1)

    def publish(self, state: RoundState) -> list[str]:
        """Create missing accounts, projects and tasks; return messages for the manager."""
        client, content = self._client, datasets.round_content(state)
        # Not repeated: a request whose reply was lost may have been carried out.
        once, needed = replace(client, retry_seconds=0.0), state.requests(state.annotators, ties=True)
        messages, annotated = client.add_users(state), {key[:2] for key in state.annotations}
        emails = {one.id + DOMAIN: one.id for one in state.annotators}
        users = {emails[email]: user for email, user in client.users().items() if email in emails}
        for planned, description, project, pairs in client.projects(content):
            if project is None and planned.current.isdisjoint(needed):
                continue
            body = {"title": planned.name[-MAX_TITLE:], "description": description, **project_settings(state, planned)}
            project = project or once.call("POST", "/api/projects/", body)[1]
            path, tasks, new = f"/api/projects/{project['id']}", dict(pairs), []
            for item in (content.items[name] for name in planned.items):
                name, is_current, task = item.id, item.id in planned.current, tasks.get(item.id)
                # An item is offered in its last assignment set.
                may = {one.id for one in state.annotators if is_current and is_eligible(one, item)}
                barred = {user for one, user in users.items() if one not in may or (name, one) in annotated}
                if task is None:
                    data = {"id": datasets.record_id(name, content.salt), datasets.FIELD: item_html(item=item)}
                    skips = [{**ADVANCE_SKIP, "completed_by": one} for one in barred]
                    new += [{"data": data, "annotations": skips}] * (is_current and name in needed)
                    continue
                theirs = {one["completed_by"] for one in task["annotations"]}
                for user in barred - theirs if not task["is_labeled"] else ():
                    client.call("POST", f"/api/tasks/{task['id']}/annotations", {**ADVANCE_SKIP, "completed_by": user})
                for one in task["annotations"]:
                    if _is_advance_skip(one) and one["completed_by"] not in barred:
                        client.call("DELETE", f"/api/annotations/{one['id']}", allowed=(404,))
            if new:
                # An import takes skips for answers, and marks items as completed, until the overlap is changed.
                client.call("PATCH", path, {"maximum_annotations": planned.annotators + len(users) + 1})
                once.call("POST", f"{path}/import", new)
            client.call("PATCH", path, {"maximum_annotations": planned.annotators})
            address = f"{client.url}/projects/{project['id']}/data?labeling=1"
            messages += [f"{planned.name}, {counted(len(planned.current), 'item')}: {address}"] * bool(planned.current)
        return messages

    def collect(self, state: RoundState) -> Collected:
        """Return all annotations, skips and drafts, from the server's database."""
        client, content = self._client, datasets.round_content(state)
        needed, users = state.requests(state.annotators, ties=True), client.users()
        emails = {one.id + DOMAIN: one for one in state.annotators}
        annotators = emails | {str(user): emails[email] for email, user in users.items() if email in emails}
        responses, mistakes, notes, offered = list[ServerResponse](), list[str](), list[str](), dict[str, int]()
        for planned, _, project, tasks in client.projects(content):
            if project is None:
                notes.append(Message(planned.name, "missing on the server; collected annotations count"))
                continue
            changed = [name for name, value in project_settings(state, planned).items() if project[name] != value]
            notes += [Message(planned.name, f"changed on the server: {', '.join(changed)}; restore it")] * bool(changed)
            fields = {name: task["data"].get(datasets.FIELD) for name, task in tasks}
            mistakes += datasets.describe_edited(planned, fields, {n: item_html(item=content.items[n]) for n in fields})
            notes += datasets.describe_missing(planned, planned.current & needed.keys(), fields)
            for name, task in tasks:
                offered[name] = 0 if task["is_labeled"] else max(0, task["overlap"] - task["total_annotations"])
                drafts = client.get(f"/api/tasks/{task['id']}/drafts") if task["draft_exists"] else []
                given = [one for one in (*task["annotations"], *drafts) if not _is_advance_skip(one)]
                responses += [_response(planned.name, name, one, state) for one in given if not one.get("annotation")]
        names = {str(user): email for email, user in users.items()}
        read, _ = read_responses(state, responses, annotators=annotators, names=names, discarded=())
        return replace(read, notes=(*notes, *read.notes), mistakes=(*mistakes, *read.mistakes), offered=offered)

    def close(self, state: RoundState) -> list[str]:
        """Return a message: the server keeps everything, and later answers are not read."""
        return ["later answers do not count unless the round is reopened; delete its projects and accounts in the end"]

    def erase(self, state: RoundState, items: Collection[str]) -> list[str]:
        """Delete the tasks of items, with annotations and drafts, from every project that the key sees."""
        client, ids = self._client, datasets.record_ids(items, state.folder.salt())
        projects = client.pages("/api/projects", "results")
        tasks = [task for one in projects for task in client.pages("/api/tasks", "tasks", project=one["id"])]
        gone = [task["id"] for task in tasks if str(task["data"].get("id")) in ids]
        for task in gone:
            client.call("DELETE", f"/api/tasks/{task}", allowed=(404,))
        kept = "its operator must compact the database (VACUUM), delete exports, and let backups expire"
        return [f"{client.url}: {counted(len(gone), 'task')} deleted with answers and drafts; {kept}"]


def _is_advance_skip(one: Mapping[str, Any]) -> bool:
    """Return whether a skip is an `ADVANCE_SKIP`: an annotator's own was last changed by the annotator."""
    return bool(one.get("was_cancelled") and not one["result"] and one["updated_by"] != one["completed_by"])


def _response(dataset: str, item: str, one: Mapping[str, Any], state: RoundState) -> ServerResponse:
    """Return an annotation or draft as a response of the account that wrote it last: any account can change any."""
    status = "draft" if "was_cancelled" not in one else "discarded" if one["was_cancelled"] else "submitted"
    forms, values = {question.name: question.form for question in state.questions}, dict[str, object]()
    for part in one["result"] if status == "submitted" else ():
        name, value = (str(part.get("from_name")), part.get("value")) if isinstance(part, dict) else ("", None)
        if name in forms and isinstance(value, dict):
            given = [str(text) for found in value.values() if isinstance(found, list) for text in found]
            values[name] = given if forms[name] == "labels" else "\n".join(given)
    user = str(one["user"] if status == "draft" else one["updated_by"])
    return ServerResponse(dataset, item, user, status, values, one["updated_at"], str(one["id"]))
