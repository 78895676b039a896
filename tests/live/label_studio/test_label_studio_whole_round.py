"""A round of 12 items on a real server from its opening to its deletion, as its manager goes through it."""

from __future__ import annotations

import contextlib
import csv
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_label_studio_round import owner

from h2htalk.integrations.label_studio.accounts import LOGINS
from h2htalk.integrations.label_studio.platform import task_html
from h2htalk.rounds.round_folder import RoundFolder, read_state
from support.byte_search import find_phrases
from support.live.label_studio_server import LabelStudio, SimulatedAnnotator
from support.live.real_servers import send
from support.whole_round import NAME, Walk

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


class Projects:
    """Annotators who answer what the server hands out to them."""

    where = "label-studio"

    def __init__(self, server: LabelStudio) -> None:
        self.server = server
        # Address of an account -> who signs in with it.
        self.annotators = dict[str, SimulatedAnnotator]()

    def projects(self) -> list[dict[str, Any]]:
        listed = owner(self.server, "GET", "/api/projects/?page_size=1000")["results"]
        return [entry for entry in listed if entry["title"].startswith(NAME)]

    def signed_in(self, round: RoundFolder, name: str) -> SimulatedAnnotator:
        """The annotator's present account: a round that is reopened makes new ones."""
        with (round.private / LOGINS).open(encoding="utf-8", newline="") as file:
            login = next(row for row in csv.DictReader(file) if row["name"] == name)
        address = login["email"]
        if address not in self.annotators:
            self.annotators[address] = SimulatedAnnotator(
                self.server.url, address, login["password"]
            )
        return self.annotators[address]

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

    def traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Files of the server: its database and its logs."""
        return find_phrases(self.server.home, texts)

    def database(self) -> sqlite3.Connection:
        return sqlite3.connect(next(self.server.home.rglob("*.sqlite3")), timeout=60)

    def compact(self) -> None:
        with contextlib.closing(self.database()) as database:
            database.execute("VACUUM")

    def list_rest(self) -> list[str]:
        # The server's pages do not list accounts of whom a closed round has removed.
        with contextlib.closing(self.database()) as database:
            users = [address for (address,) in database.execute("SELECT email FROM htx_user")]
        # Other tests leave their own.
        entries_left = [f"account {address}" for address in users if address in self.annotators]
        return [*entries_left, *(f"project {entry['title']}" for entry in self.projects())]


def test_a_round_from_its_opening_to_its_deletion(server: LabelStudio, tmp_path: Path) -> None:
    walk = Walk(tmp_path, Projects(server))
    try:
        walk.go()
    finally:
        print("\n".join(walk.messages))
