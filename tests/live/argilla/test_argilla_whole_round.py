"""A round of 12 items on a real server from its opening to its deletion, as its manager goes through it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import httpx
import pytest

from h2htalk.rounds.argilla.datasets import FIELD, displayed
from h2htalk.rounds.round_folder import RoundFolder
from support.byte_search import find_phrases
from support.live.argilla_server import OWNER_KEY, SimulatedAnnotator, Stack, signed_in
from support.live.real_servers import send
from support.whole_round import NAME, PARTICIPANT, Walk

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]


# Copies of the search engine's own files, which hold nothing of a round.
PROGRAMS = ("search/lib/", "search/modules/", "search/plugins/")


class Datasets:
    """Annotators who answer what is pending for them."""

    where = "argilla"

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.annotators = dict[str, SimulatedAnnotator]()
        # Annotator -> record and item that they are in the middle of.
        self.drafts = dict[str, tuple[str, str]]()

    def signed_in(self, round: RoundFolder, name: str) -> SimulatedAnnotator:
        if name not in self.annotators:
            logins = round.private / "argilla_logins.csv"
            (self.annotators[name],) = signed_in(self.stack.url, logins, {name: 1.0})
        return self.annotators[name]

    def offered(self, round: RoundFolder, name: str) -> list[tuple[str, str]]:
        """Record and item of everything that is pending for an annotator."""
        items = {json.dumps(displayed(item)): item.id for item in round.items()}
        annotator = self.signed_in(round, name)
        offered = []
        for dataset in annotator.datasets(NAME):
            for record in annotator.pending(dataset):
                offered.append((record["id"], items[json.dumps(record["fields"][FIELD])]))
        # In the order of items: eve answers the ties before she stops.
        return sorted(offered, key=itemgetter(1))

    def answer(
        self, round: RoundFolder, name: str, answers: Mapping[str, Mapping[str, Any]], most: int
    ) -> int:
        offered = self.offered(round, name)[:most]
        responses = []
        for record, item in offered:
            status = "submitted" if answers[item] else "discarded"
            responses.append((record, answers[item], status))
        self.signed_in(round, name).hand_in(responses)
        count = len(responses)
        if name in self.drafts and count < most:
            record, item = self.drafts.pop(name)
            self.signed_in(round, name).submit(record, answers[item])
            count += 1
        return count

    def leave_half_answered(self, round: RoundFolder, name: str) -> None:
        draft = self.offered(round, name)[0]
        self.signed_in(round, name).hand_in([(draft[0], {"accuracy": 3}, "draft")])
        self.drafts[name] = draft

    def stop(self) -> bool:
        self.stack.end("server")
        return True

    def start(self) -> None:
        self.stack.start_server()

    def traces(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Files of the server: its database, its search index, its logs."""
        return find_phrases(self.stack.home, texts, without=PROGRAMS)

    def compact(self) -> None:
        with sqlite3.connect(self.stack.database, timeout=60) as database:
            database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        self.stack.reindex()

    def list_rest(self) -> list[str]:
        headers = {"X-Argilla-Api-Key": OWNER_KEY}
        with httpx.Client(base_url=self.stack.url, headers=headers, timeout=60) as http:
            users = send(http, "GET", "/api/v1/users")["items"]
            workspaces = send(http, "GET", "/api/v1/me/workspaces")["items"]
            datasets = send(http, "GET", "/api/v1/me/datasets")["items"]
        entries_left = [
            f"account {user['username']}" for user in users if user["username"] in PARTICIPANT
        ]
        for kind, entries in (("workspace", workspaces), ("dataset", datasets)):
            # Other tests leave their own.
            entries_left += [
                f"{kind} {entry['name']}" for entry in entries if entry["name"].startswith(NAME)
            ]
        return entries_left


def test_a_round_from_its_opening_to_its_deletion(stack: Stack, tmp_path: Path) -> None:
    walk = Walk(tmp_path, Datasets(stack))
    try:
        walk.go()
    finally:
        print("\n".join(walk.messages))
