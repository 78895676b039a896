"""Rounds on a real server: 50 items and five annotators while it is killed, what must not count, changes, erasure."""

from __future__ import annotations

import json
import random
import re
import signal
import sqlite3
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from h2htalk.data.erasure.folder_kinds import ErasedIds, erase
from h2htalk.data.files import read_json_object, read_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import annotator_id
from h2htalk.rounds.argilla.client import ServerClient
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.questions import QUESTIONS, SKIPPED
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from support.byte_search import files_with
from support.live.label_studio_server import (
    LOCK_SECONDS,
    TOKEN,
    LabelStudio,
    SimulatedAnnotator,
    result_of,
    signed_in,
)
from support.live.real_servers import LINES, made_items, send, write_annotators, write_items
from support.spreadsheet_rounds import fill, places, workbook_path

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

ITEMS = 50
NAMES = ["v01", "v02", "v03", "v04", "李雷"]


def opened(
    base: Path, where: str, items: Path, people: Path, name: str = "", **more: Any
) -> RoundFolder:
    given: dict[str, Any] = {"overlap": 5, "care": Care(session_items=20, crisis_share=0.3), **more}
    folder = base / (name or f"round-{where}")
    open_round(
        RoundSpec("safety", str(items), where=where, annotators=str(people), **given), folder
    )
    return RoundFolder(folder)


def said(name: str, item: str) -> dict[str, Any]:
    """An annotator's answers to an item; each has a question that is asked after another one, and a comment."""
    answers: dict[str, Any] = {}
    for question in QUESTIONS["safety"]:
        draw = random.Random(f"{name}/{item}/{question.name}")
        if question.form == "text":
            if draw.random() < 0.3:
                answers |= {question.name: f"rain & “<wind>” {item}"}
        elif question.is_asked(answers):
            choices: tuple[Any, ...] = question.labels or question.ratings
            picked = (
                draw.sample(choices, 2) if question.form == "labels" else draw.choices(choices, k=1)
            )
            answers[question.name] = question.read(
                [*picked] if question.form == "labels" else picked[0]
            )
    return answers


def typed(answers: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a spreadsheet: one for each label of a question that takes several."""
    cells = {name: value for name, value in answers.items() if not isinstance(value, tuple)}
    several = {name: value for name, value in answers.items() if isinstance(value, tuple)}
    return cells | {f"{name}:{one}": "yes" for name, value in several.items() for one in value}


def owner(server: LabelStudio, method: str, path: str, body: object = None) -> Any:
    with httpx.Client(
        base_url=server.url, headers={"Authorization": f"Token {TOKEN}"}, timeout=60
    ) as http:
        return send(http, method, path, body)


def projects_of(server: LabelStudio, title: str) -> list[int]:
    listed = owner(server, "GET", "/api/projects/?page_size=1000")["results"]
    return sorted(one["id"] for one in listed if one["title"].startswith(title))


def item_of(task: Mapping[str, Any]) -> str:
    """The id of an item, from its text: neither the page nor the API reveals it."""
    assert "item-" not in json.dumps(task["data"])
    # Behind its own line, as numbers of help lines stand in brackets too.
    lines = "|".join(map(re.escape, LINES.values()))
    found = re.search(rf"(?:{lines}) \((\d+)\)", task["data"]["item"])
    assert found is not None, task["data"]["item"]
    return f"item-{int(found[1]):03}"


def work(projects: Iterable[int], name: str, one: SimulatedAnnotator, times: int = 1) -> set[str]:
    """Answer all that the server hands out; ask again `times` for what others had opened."""
    answered = set()
    for _ in range(times):
        for project in projects:
            while task := one.next_task(project):
                one.answer(task["id"], said(name, item_of(task)))
                answered.add(item_of(task))
        time.sleep(LOCK_SECONDS + 2 if times > 1 else 0)
    return answered


def test_fifty_items_give_the_decisions_of_spreadsheets_through_a_kill(
    server: LabelStudio, tmp_path: Path
) -> None:
    items = write_items(tmp_path / "i.jsonl", made_items(ITEMS, "safety", crises=9))
    people = write_annotators(tmp_path / "p.csv", NAMES)
    online, paper = (
        opened(tmp_path, where, items, people) for where in ("label-studio", "spreadsheets")
    )
    open_round(online.spec(), online.path)  # again: nothing is created twice
    projects = projects_of(server, "round-label-studio")
    assert (
        sum(owner(server, "GET", f"/api/projects/{one}/")["task_number"] for one in projects)
        == ITEMS
    )
    annotators = signed_in(server.url, online.private / "label_studio_logins.csv")
    assert sorted(annotators) == sorted(NAMES)

    with ThreadPoolExecutor(len(NAMES)) as people_at_work:
        working = {
            name: people_at_work.submit(work, projects, name, one, 2)
            for name, one in annotators.items()
        }
        time.sleep(4)
        assert not any(one.done() for one in working.values())
        server.end("server", signal.SIGKILL)
        server.start()
        answered = {name: one.result() for name, one in working.items()}
    everything = {item.id for item in online.items()}
    assert {name: everything - done for name, done in answered.items() if done != everything} == {}

    for name in NAMES:
        numbers = places(paper, name)
        fill(
            workbook_path(paper, name),
            {number: typed(said(name, item)) for item, number in numbers.items()},
        )
    for round in (online, paper):
        status = round_status(round.path)
        assert (status.completed, status.missing, status.mistakes) == (ITEMS * len(NAMES), {}, ())
        assert [note for note in status.notes if "too fast" not in note] == []
        close_round(round.path)
    first, second = ((round.path / "decisions.jsonl").read_bytes() for round in (online, paper))
    assert first == second
    assert {row["item"] for _, row in read_jsonl(online.path / "decisions.jsonl")} == everything
    assert read_json_object(online.path / "agreement.json") == read_json_object(
        paper.path / "agreement.json"
    )
    assert values_of(online) == values_of(paper)


def values_of(round: RoundFolder) -> dict[tuple[str, str, str], Any]:
    names = {annotator_id(name, round.salt()): name for name in NAMES}
    return {
        (item, names[who], question): one.value
        for (item, who, question), one in round.annotations().items()
    }


class Small:
    """Six English items, two of them crises, for four annotators: one without consent, one who reads Chinese."""

    def __init__(self, server: LabelStudio, base: Path) -> None:
        self.server, self.base, self.name = server, base, f"small-{base.name[-20:]}"
        self.items = write_items(base / "items.jsonl", made_items(6, "safety", 3, ("en",)))
        self.people = write_annotators(
            base / "people.csv", ("ann,en,yes", "ben", "cai,en,no", "dora,zh,yes")
        )
        care = Care(session_items=20, crisis_share=0.5)
        self.round = opened(
            base, "label-studio", self.items, self.people, self.name, overlap=2, care=care
        )
        self.annotators = signed_in(server.url, self.round.private / "label_studio_logins.csv")
        (self.project,) = projects_of(server, f"{self.name}-set1")

    def tasks(self) -> dict[str, dict[str, Any]]:
        listed = owner(
            self.server, "GET", f"/api/tasks?project={self.project}&fields=all&page_size=100"
        )["tasks"]
        return {item_of(task): task for task in listed}

    def values(self, name: str) -> dict[tuple[str, str], Any]:
        known = annotator_id(name, self.round.salt())
        found = self.round.annotations().items()
        return {(item, question): one.value for (item, who, question), one in found if who == known}


@pytest.fixture
def small(server: LabelStudio, tmp_path: Path) -> Small:
    return Small(server, tmp_path)


def test_items_go_to_those_who_may_get_them_and_what_others_do_is_told(small: Small) -> None:
    server = small.server
    tasks = small.tasks()
    crises = {"item-002", "item-005"}
    assert {item for item, task in tasks.items() if "<details" in task["data"]["item"]} == crises
    assert small.annotators["dora"].next_task(small.project) is None
    assert work([small.project], "cai", small.annotators["cai"]) == tasks.keys() - crises
    first = small.annotators["ann"].next_task(small.project)
    path = f"/api/tasks/{first['id']}/annotations?was_cancelled=1"
    send(small.annotators["ann"].http, "POST", path, {"result": [], "lead_time": 1.0})
    skipped = item_of(first)
    rest = sorted(tasks.keys() - {skipped})
    ben = small.annotators["ben"].http
    send(ben, "POST", f"/api/tasks/{tasks[rest[0]]['id']}/drafts", {"result": [], "lead_time": 1})
    # The owner, who is no annotator, answers one item and changes an answer to another.
    owner(
        server,
        "POST",
        f"/api/tasks/{tasks[rest[1]]['id']}/annotations",
        {"result": [result_of("perception", 5)]},
    )
    changed = next(one for item, task in small.tasks().items() if item not in crises for one in task["annotations"]
                   if not one["was_cancelled"] and item != rest[1])  # fmt: skip
    owner(
        server,
        "PATCH",
        f"/api/annotations/{changed['id']}",
        {"result": [result_of("perception", 1)]},
    )
    status = round_status(small.round.path)
    assert small.values("ann") == {(skipped, SKIPPED): "yes"}
    assert len({item for item, _ in small.values("cai")}) == 3
    (note,) = [one for one in status.notes if "not counted" in one]
    assert "2 annotations by 'owner@example.org'" in note
    assert sum(row.started for row in status.progress if row.annotator == "ben") == 1
    assert status.mistakes == ()

    # An answer after a skip counts; so does the later of two; a result that nobody could have given is a mistake.
    small.annotators["ann"].answer(first["id"], said("ann", skipped))
    small.annotators["ann"].answer(first["id"], said("another", skipped))
    broken = [result_of("perception", 9), result_of("violation", "no")]
    send(ben, "POST", f"/api/tasks/{tasks[rest[2]]['id']}/annotations", {"result": broken})
    status = round_status(small.round.path)
    values = {key: value for key, value in small.values("ann").items() if value is not None}
    assert values == {
        (skipped, question): value for question, value in said("another", skipped).items()
    }
    assert [one for one in status.mistakes if "9" in one and "ben" in one] == [*status.mistakes]
    assert len(status.mistakes) == 1


@pytest.mark.parametrize("stop", [1, 2, 3, 4])
def test_an_opening_that_is_interrupted_is_completed(
    server: LabelStudio, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """After any request that changes the server: the project, the overlap, the import, the overlap again."""
    changes = list[str]()
    call = ServerClient.call

    def interrupted(self: ServerClient, method: str, path: str, *rest: Any, **more: Any) -> Any:
        reply = call(self, method, path, *rest, **more)
        changes.extend([path] if method != "GET" else [])
        if len(changes) == stop and method != "GET":
            raise KeyboardInterrupt
        return reply

    monkeypatch.setattr(ServerClient, "call", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Small(server, tmp_path)
    small = Small(server, tmp_path)
    tasks = small.tasks()
    assert sorted(tasks) == [f"item-{number:03}" for number in range(6)]
    facts = {
        (one["overlap"], one["is_labeled"], one["cancelled_annotations"]) for one in tasks.values()
    }
    assert facts == {(2, False, 1), (2, False, 2)}  # dora reads no English, cai gets no crises
    assert round_status(small.round.path).notes == ()


def test_changes_on_the_server_are_told_and_repaired(small: Small) -> None:
    server = small.server
    tasks = small.tasks()
    changes = {"maximum_annotations": 7, "expert_instruction": "<p>Hi</p>"}
    owner(server, "PATCH", f"/api/projects/{small.project}/", changes)
    data = {**tasks["item-001"]["data"], "item": "other"}
    owner(server, "PATCH", f"/api/tasks/{tasks['item-001']['id']}", {"data": data})
    owner(server, "DELETE", f"/api/tasks/{tasks['item-000']['id']}")
    status = round_status(small.round.path)
    assert any(
        "changed on the server: expert_instruction, maximum_annotations" in one
        for one in status.notes
    )
    assert any("1 of 6 items that need annotators have no task" in one for one in status.notes)
    assert "the text of 1 item was edited" in status.mistakes[0]
    owner(server, "DELETE", f"/api/tasks/{tasks['item-001']['id']}")
    open_round(small.round.spec(), small.round.path)
    assert {item: task["overlap"] for item, task in small.tasks().items()} == dict.fromkeys(
        tasks, 2
    )
    assert round_status(small.round.path).mistakes == ()
    owner(server, "DELETE", f"/api/projects/{small.project}/")
    assert any("missing on the server" in one for one in round_status(small.round.path).notes)


def test_a_tie_gets_one_more_annotator_who_has_not_annotated_it(small: Small) -> None:
    """Also after an interruption at any request; annotators of the first set are not asked again."""
    for name in ("ann", "ben"):
        for item, task in small.tasks().items():
            answers = {"perception": 4, "violation": "no"}
            if name == "ben" and item == "item-000":
                answers = {"perception": 4, "violation": "yes", "violations": ("other",)}
            small.annotators[name].answer(task["id"], answers)
    assert round_status(small.round.path).ties == 1
    close_round(small.round.path)
    reopen_round(small.round.path)
    (later,) = projects_of(small.server, f"{small.name}-set2")
    # Closing took their accounts away: the server lets nobody back in, so each has a new one.
    assert all(one.next_task(later) is None for one in small.annotators.values())
    logins = small.round.private / "label_studio_logins.csv"
    again = signed_in(small.server.url, logins)
    assert [name for name, one in again.items() if one.next_task(later)] == ["cai"]
    assert all(one.next_task(small.project) is None for one in again.values())
    write_annotators(small.people, ("ann,en,yes", "ben", "cai,en,yes", "dora"))
    reopen_round(small.round.path, annotators=small.people)
    again = signed_in(small.server.url, logins)
    assert [name for name, one in again.items() if one.next_task(later)] == ["cai"]


def test_an_erased_item_is_gone_from_the_server(small: Small) -> None:
    tasks = small.tasks()
    gone = tasks["item-001"]
    kept = tasks["item-000"]
    small.annotators["ann"].answer(gone["id"], said("ann", "item-001"))
    small.annotators["ann"].answer(kept["id"], said("ann", "item-000"))
    round_status(small.round.path)
    result = erase(small.round.path, ErasedIds(frozenset({"item-001"})))
    assert not result.unfinished
    assert any("1 task deleted" in one for one in result.messages)
    assert small.tasks().keys() == tasks.keys() - {"item-001"}
    with sqlite3.connect(next(small.server.home.rglob("*.sqlite3")), timeout=60) as database:
        database.execute("VACUUM")
    database.close()
    assert [
        files_with(small.server.home / "data", one["data"]["id"]) != [] for one in (gone, kept)
    ] == [False, True]
    assert round_status(small.round.path).completed == 1


def test_keys_of_both_kinds_and_refusals(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    personal = owner(small.server, "POST", "/api/token/")["token"]
    monkeypatch.setenv("LABEL_STUDIO_API_KEY", personal)
    assert round_status(small.round.path).mistakes == ()
    for key in ("0" * 40, personal[:-2] + "xx"):
        monkeypatch.setenv("LABEL_STUDIO_API_KEY", key)
        with pytest.raises(RoundError, match="rejects the key in LABEL_STUDIO_API_KEY") as error:
            round_status(small.round.path)
        assert key not in str(error.value)
    care = Care(crisis_share=0.5)
    with pytest.raises(RoundError, match="shows no suggestions"):
        opened(
            small.base, "label-studio", small.items, small.people, "other", suggest=True, care=care
        )
