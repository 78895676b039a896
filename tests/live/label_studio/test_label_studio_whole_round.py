"""A round of 12 items on a real server from its opening to its deletion, as its manager goes through it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from test_label_studio_round import owner

from h2htalk.integrations.label_studio.platform import task_html
from h2htalk.rounds.round_folder import RoundFolder, read_state
from support.byte_search import files_with
from support.live.label_studio_server import LabelStudio, SimulatedAnnotator, signed_in
from support.live.real_servers import send
from support.whole_round import NAME, Walk

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


class Projects:
    """Annotators who answer what the server hands out to them."""

    where = "label-studio"

    def __init__(self, server: LabelStudio) -> None:
        self.server = server

    def projects(self) -> list[dict[str, Any]]:
        listed = owner(self.server, "GET", "/api/projects/?page_size=1000")["results"]
        return [entry for entry in listed if entry["title"].startswith(NAME)]

    def signed_in(self, round: RoundFolder, name: str) -> SimulatedAnnotator:
        return signed_in(self.server.url, round.private / "label_studio_logins.csv")[name]

    def answer(
        self, round: RoundFolder, name: str, answers: Mapping[str, Mapping[str, Any]], most: int
    ) -> int:
        state = read_state(round)
        items = {task_html(state, item): item.id for item in state.items}
        annotator = self.signed_in(round, name)
        count = 0
        for project in self.projects():
            while count < most and (task := annotator.next_task(project["id"])):
                item_answers = answers[items[task["data"]["item"]]]
                if item_answers:
                    annotator.answer(task["id"], item_answers)
                else:
                    path = f"/api/tasks/{task['id']}/annotations?was_cancelled=1"
                    send(annotator.http, "POST", path, {"result": [], "lead_time": 1.0})
                count += 1
        return count

    def leave_half_answered(self, round: RoundFolder, name: str) -> None:
        annotator = self.signed_in(round, name)
        offered = [annotator.next_task(project["id"]) for project in self.projects()]
        task = next(entry for entry in offered if entry)
        body = {"result": [], "lead_time": 1.0}
        send(annotator.http, "POST", f"/api/tasks/{task['id']}/drafts", body)

    def stop(self) -> bool:
        self.server.end("server")
        return True

    def start(self) -> None:
        self.server.start()

    def traces(self, text: str) -> list[str]:
        """Files of the server: its database and its logs."""
        return [f"server: {entry}" for entry in files_with(self.server.home, text)]

    def compact(self) -> None:
        with sqlite3.connect(next(self.server.home.rglob("*.sqlite3")), timeout=60) as database:
            database.execute("VACUUM")
        database.close()

    def list_rest(self) -> list[str]:
        users = [entry["email"] for entry in owner(self.server, "GET", "/api/users")]
        titles = [
            f"project {entry['title']}: {entry['task_number']} tasks" for entry in self.projects()
        ]
        return [f"accounts: {users}", *titles]


def test_a_round_from_its_opening_to_its_deletion(server: LabelStudio, tmp_path: Path) -> None:
    projects = Projects(server)
    walk = Walk(tmp_path, projects)
    try:
        walk.go()
    finally:
        print("\n".join(walk.messages))
    assert projects.projects() == []
    for text in walk.identifying:
        assert [entry for entry in projects.traces(text) if not entry.endswith(".log")] == []
