"""The platform `label-studio`: a project for each session, a task for each item, annotations from the database.

Every account can open every project and answer, so accounts are named by hashes. Every step creates what is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2

from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import read_toml
from h2htalk.errors import RoundError, counted
from h2htalk.integrations.label_studio.accounts import (
    ACCOUNTS,
    GONE,
    LOGINS,
    Deletion,
    add_accounts,
    delete_accounts,
    delete_each,
    end_access,
    read_accounts,
)
from h2htalk.integrations.label_studio.client import LabelStudioClient, is_of_round
from h2htalk.integrations.label_studio.displayed_texts import comparable_setting, lines_of_item
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla import datasets
from h2htalk.rounds.argilla.client import RETRY_SECONDS
from h2htalk.rounds.argilla.read_annotations import ServerResponse, read_responses
from h2htalk.rounds.assignment.assignments import is_eligible
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Collected, Message, Removal, ServerWords
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.spreadsheets import item_text
from h2htalk.rounds.texts import interface, item_notes
from h2htalk.text import escaping

# Label Studio's words.
WORDS = ServerWords(record="task", response="annotation")
# The longest title of a project.
MAX_TITLE = 50
# A skip in advance, for annotators who must not get an item.
ADVANCE_SKIP: Mapping[str, Any] = {"result": [], "was_cancelled": True, "ground_truth": False}
_KEPT_BYTES = "its operator must compact the database (VACUUM), delete exports and logs, and let backups expire"
_OWNERS_KEY = "only the key of the organization's owner deletes them"
_PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True
)
_PAGES.globals |= {
    "texts": interface,
    "item_text": item_text,
    "escaping": escaping,
    "notes": item_notes,
}
# The field of an item's task; the text of a crisis is folded until the annotator opens it.
item_html = _PAGES.get_template("item.html.j2").render


def project_settings(state: RoundState, planned: datasets.RoundDataset) -> dict[str, Any]:
    """Return the settings of a project as the server accepts and lists them. Raise DataError."""
    lines = state.folder.guidelines(planned.language).splitlines()
    values = {"language": planned.language, "questions": state.questions, "lines": lines}
    settings = read_toml(Path(__file__).with_name("project.toml"))
    for name in ("label_config", "expert_instruction"):
        settings[name] = _PAGES.get_template(f"{name}.j2").render(values)
    settings["maximum_annotations"] = planned.annotators
    return settings


def task_html(state: RoundState, item: Item) -> str:
    """Return the field of an item's task, with the help lines of the round in the notice of a crisis."""
    return item_html(item=item, help_lines=interface.notice_help_lines(state.spec, item.language))


class LabelStudioPlatform:
    """A Label Studio server, which hands items out to annotators."""

    assigns_items = False

    @cached_property
    def _client(self) -> LabelStudioClient:
        """The connection of this command: one that has answered is kept through a restart of the server."""
        client = LabelStudioClient.open(
            RETRY_SECONDS, lambda _, key: {"headers": {"Authorization": f"Token {key}"}}
        )
        # A personal access token is exchanged for an access token of five minutes.
        key = client.http.headers["Authorization"].removeprefix("Token ")
        if key.count(".") == 2:
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
        client = self._client
        content = datasets.round_content(state)
        # Not repeated: a request whose reply was lost may have been carried out.
        once = replace(client, retry_seconds=0.0)
        needed = state.offered()
        accounts, messages = add_accounts(client, state)
        inactive = {annotator.id for annotator in state.annotators if not annotator.active}
        messages += end_access(client, state, inactive, "left the round")
        users = {
            name: accounts.ids[address]
            for name, address in accounts.current.items()
            if name not in inactive
        }
        annotated = {key[:2] for key in state.annotations}
        for planned, description, project, pairs in client.projects(content):
            if project is None and planned.current.isdisjoint(needed):
                continue
            if project is None:
                settings = project_settings(state, planned)
                names = {"title": planned.name[-MAX_TITLE:], "description": description}
                body = names | settings
                _, project = once.call("POST", "/api/projects/", body)
            path = f"/api/projects/{project['id']}"
            tasks = dict(pairs)
            new = []
            for name in planned.items:
                item = content.items[name]
                # An item is offered in its last assignment set.
                allowed = set()
                if name in planned.current:
                    allowed = _allowed_annotators(state, item, annotated)
                barred = {user for annotator, user in users.items() if annotator not in allowed}
                if name in tasks:
                    _update_skips(client, tasks[name], barred)
                elif name in planned.current & needed:
                    record = datasets.record_id(name, content.salt)
                    data = {"id": record, datasets.FIELD: task_html(state, item)}
                    skips = [{**ADVANCE_SKIP, "completed_by": user} for user in barred]
                    new.append({"data": data, "annotations": skips})
            if new:
                # An import takes skips for answers, and marks items as completed, until the overlap is changed.
                overlap = planned.annotators + len(users) + 1
                client.call("PATCH", path, {"maximum_annotations": overlap})
                once.call("POST", f"{path}/import", new)
            client.call("PATCH", path, {"maximum_annotations": planned.annotators})
            if planned.current:
                items = counted(len(planned.current), "item")
                address = f"{client.url}/projects/{project['id']}/data?labeling=1"
                messages.append(f"{planned.name}, {items}: {address}")
        return messages

    def collect(self, state: RoundState) -> Collected:
        """Return all annotations, skips and drafts, from the server's database."""
        client = self._client
        content = datasets.round_content(state)
        needed = state.offered()
        accounts = read_accounts(client, state)
        by_id = {annotator.id: annotator for annotator in state.annotators}
        # A draft has the address of its account, an annotation the id.
        annotators = {address: by_id[name] for name, address in accounts.current.items()}
        for name, users in accounts.users.items():
            for user in users:
                annotators[str(user)] = by_id[name]
        responses: list[ServerResponse] = []
        mistakes: list[str] = []
        notes: list[str] = []
        offered: dict[str, int] = {}
        for planned, _, project, tasks in client.projects(content):
            if project is None:
                notes.append(
                    Message(planned.name, "missing on the server; collected annotations count")
                )
                continue
            changed = []
            for name, value in project_settings(state, planned).items():
                if comparable_setting(name, project[name]) != comparable_setting(name, value):
                    changed.append(name)
            if changed:
                notes.append(
                    Message(
                        planned.name, f"changed on the server: {', '.join(changed)}; restore it"
                    )
                )
            displayed = {}
            expected = {}
            for name, task in tasks:
                displayed[name] = lines_of_item(task["data"].get(datasets.FIELD), planned.language)
                html = task_html(state, content.items[name])
                expected[name] = lines_of_item(html, planned.language)
            mistakes += datasets.describe_edited(planned, displayed, expected, WORDS.record)
            notes += datasets.describe_missing(
                planned, planned.current & needed, displayed, WORDS.record
            )
            for name, task in tasks:
                missing = task["overlap"] - task["total_annotations"]
                offered[name] = 0 if task["is_labeled"] else max(0, missing)
                annotations = [*task["annotations"]]
                if task["draft_exists"]:
                    annotations += client.get(f"/api/tasks/{task['id']}/drafts")
                for annotation in annotations:
                    if not _is_advance_skip(annotation):
                        responses.append(_response(planned.name, name, annotation, state))
        names = {str(user): address for address, user in accounts.ids.items()}
        collected, _ = read_responses(
            state, responses, annotators=annotators, names=names, discarded=(), words=WORDS
        )
        notes += collected.notes
        mistakes += collected.mistakes
        return replace(collected, notes=tuple(notes), mistakes=tuple(mistakes), offered=offered)

    def close(self, state: RoundState) -> list[str]:
        """Remove the annotators' accounts from the organization; the server keeps projects and answers."""
        client = self._client
        annotators = {annotator.id for annotator in state.annotators}
        path = state.folder.path
        return [
            *end_access(client, state, annotators, "can open no project any more"),
            f"later answers do not count; `h2htalk round reopen {path}` makes new accounts, and `h2htalk round delete "
            f"{path}` deletes projects and accounts when nobody needs them",
        ]

    def delete(self, state: RoundState) -> Removal:
        """Delete the round's projects with tasks and answers, then its accounts, which no other round uses."""
        client = self._client
        content = datasets.round_content(state)
        accounts = read_accounts(client, state)
        ids = datasets.record_ids(content.items, content.salt)
        deleted = refused = 0
        problems = []
        for project in client.pages("/api/projects", "results"):
            if is_of_round(project, content):
                deletion = delete_each(client, [f"/api/projects/{project['id']}/"])
                deleted += deletion.deleted
                refused += deletion.refused
                continue
            tasks = client.pages("/api/tasks", "tasks", project=project["id"])
            copies = sum(str(task["data"].get("id")) in ids for task in tasks)
            if copies:
                problems.append(
                    f"project {project['title']!r}: was not made by this round and holds copies of "
                    f"{counted(copies, 'item')}; delete it in Label Studio"
                )
        accounts_deleted = delete_accounts(client, accounts, accounts.users)
        if refused + accounts_deleted.refused:
            remaining = (
                f"{counted(refused, 'project')} and {counted(accounts_deleted.refused, 'account')}"
            )
            problems.append(f"{remaining}: {_OWNERS_KEY}")
        else:
            for name in (LOGINS, ACCOUNTS):
                remove_for_good(state.folder.private / name)
        return _removal(client, counted(deleted, "project"), accounts_deleted, problems, refused)

    def erase_annotator(self, state: RoundState, annotator: Annotator) -> Removal:
        """Delete the annotator's answers from every project that the key sees, and their accounts with drafts."""
        client = self._client
        accounts = read_accounts(client, state)
        users = set(accounts.users.get(annotator.id, ()))
        answers = 0
        for project in client.pages("/api/projects", "results"):
            for task in client.pages("/api/tasks", "tasks", project=project["id"], fields="all"):
                for annotation in task["annotations"]:
                    # Also answers that another account gave and this one changed.
                    if users & {annotation["completed_by"], annotation["updated_by"]}:
                        path = f"/api/annotations/{annotation['id']}/"
                        client.call("DELETE", path, allowed=GONE)
                        answers += 1
        accounts_deleted = delete_accounts(client, accounts, [annotator.id])
        problems = []
        if accounts_deleted.refused:
            problems.append(f"{counted(accounts_deleted.refused, 'account')}: {_OWNERS_KEY}")
        return _removal(client, counted(answers, "answer"), accounts_deleted, problems, 0)

    def erase(self, state: RoundState, items: Collection[str]) -> list[str]:
        """Delete the tasks of items, with annotations and drafts, from every project that the key sees."""
        client = self._client
        ids = datasets.record_ids(items, state.folder.salt())
        erased = []
        for project in client.pages("/api/projects", "results"):
            for task in client.pages("/api/tasks", "tasks", project=project["id"]):
                if str(task["data"].get("id")) in ids:
                    erased.append(task["id"])
        for number in erased:
            client.call("DELETE", f"/api/tasks/{number}", allowed=(404,))
        return [
            f"{client.url}: {counted(len(erased), 'task')} deleted with answers and drafts; {_KEPT_BYTES}"
        ]


def _removal(
    client: LabelStudioClient,
    entries: str,
    accounts: Deletion,
    problems: Collection[str],
    refused: int,
) -> Removal:
    users = counted(accounts.deleted, "account")
    message = f"{client.url}: {entries} and {users} deleted; {_KEPT_BYTES}"
    return Removal((message,), tuple(problems), refused + accounts.refused > 0)


def _allowed_annotators(
    state: RoundState, item: Item, annotated: Collection[tuple[str, str]]
) -> set[str]:
    """The annotators who may get an item: those who are eligible and have not annotated it."""
    allowed = set()
    for annotator in state.annotators:
        if is_eligible(annotator, item) and (item.id, annotator.id) not in annotated:
            allowed.add(annotator.id)
    return allowed


def _update_skips(client: LabelStudioClient, task: Mapping[str, Any], barred: set[int]) -> None:
    """Skip a task in advance for users who must not get it, and end such skips of those who may."""
    annotations = task["annotations"]
    if not task["is_labeled"]:
        for user in barred - {annotation["completed_by"] for annotation in annotations}:
            skip = {**ADVANCE_SKIP, "completed_by": user}
            client.call("POST", f"/api/tasks/{task['id']}/annotations", skip)
    for annotation in annotations:
        if _is_advance_skip(annotation) and annotation["completed_by"] not in barred:
            client.call("DELETE", f"/api/annotations/{annotation['id']}", allowed=(404,))


def _is_advance_skip(annotation: Mapping[str, Any]) -> bool:
    """Return whether a skip is an `ADVANCE_SKIP`: an annotator's own was last changed by the annotator."""
    if not annotation.get("was_cancelled") or annotation["result"]:
        return False
    return bool(annotation["updated_by"] != annotation["completed_by"])


def _response(
    dataset: str, item: str, annotation: Mapping[str, Any], state: RoundState
) -> ServerResponse:
    """Return an annotation or draft as a response of the account that wrote it last: any account can change any."""
    values: dict[str, object] = {}
    if "was_cancelled" not in annotation:
        status = "draft"
    elif annotation["was_cancelled"]:
        status = "discarded"
    else:
        status = "submitted"
        forms = {question.name: question.form for question in state.questions}
        for part in annotation["result"]:
            name = str(part.get("from_name")) if isinstance(part, dict) else ""
            if name in forms and isinstance(part.get("value"), dict):
                texts: list[str] = []
                for answers in part["value"].values():
                    if isinstance(answers, list):
                        texts += map(str, answers)
                values[name] = texts if forms[name] == "labels" else "\n".join(texts)
    return ServerResponse(
        dataset=dataset,
        item=item,
        user=str(annotation["user" if status == "draft" else "updated_by"]),
        status=status,
        values=values,
        when=annotation["updated_at"],
        id=str(annotation["id"]),
    )
