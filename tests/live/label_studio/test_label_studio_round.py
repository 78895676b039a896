"""Rounds on a real server: 50 items and five annotators, the server killed in the middle; what must not count; erasing."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from label_studio_server import TOKEN, LabelStudio, SimulatedAnnotator, result_of, signed_in
from spreadsheet_rounds import fill, places, workbook_path

from h2htalk.data.erasure.folder_kinds import kind_of
from h2htalk.data.files import read_json_object, read_jsonl
from h2htalk.errors import RoundError
from h2htalk.rounds.annotators import annotator_id
from h2htalk.rounds.lifecycle import close_round, open_round, reopen_round, round_status
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Kind
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import Care, RoundSpec
from h2htalk.rounds.status import Status

pytestmark = [pytest.mark.live, pytest.mark.timeout(600), pytest.mark.usefixtures("connected")]

ITEMS = 50
NAMES = ["v01", "v02", "v03", "v04", "李雷"]
LINES = {"en": "Tell me how the rain sounded today.", "zh": "今天的雨声是什么样的？"}


def write_items(path: Path, count: int, languages: tuple[str, ...] = ("en", "zh"), crises: int = 9) -> Path:
    items = []
    for number in range(count):
        language = languages[number % len(languages)]
        item = {"id": f"item-{number:03}", "language": language, "prompt": f"{LINES[language]} ({number})",
                "context": {"memories": "<b>likes</b> rain & wind"}, "response": "Soft, like pages.",
                "crisis": number % crises == crises - 1}  # fmt: skip
        items.append(json.dumps(item, ensure_ascii=False))
    path.write_text("\n".join(items) + "\n", encoding="utf-8")
    return path


def write_annotators(path: Path, rows: Iterable[str]) -> Path:
    path.write_text("\n".join(["name,languages,crisis", *rows]) + "\n", encoding="utf-8")
    return path


def opened(base: Path, where: str, items: Path, people: Path, name: str = "", **more: Any) -> tuple[RoundFolder, Status]:
    given: dict[str, Any] = {"kind": "safety", "overlap": 5, "care": Care(session_items=20, crisis_share=0.3), **more}
    folder = base / (name or f"round-{where}")
    status, messages = open_round(RoundSpec(items=str(items), where=where, annotators=str(people), **given), folder)
    print("\n".join(messages))
    return RoundFolder(folder), status


def said(name: str, item: str, kind: Kind = "safety") -> dict[str, Any]:
    """An annotator's answers to an item; each has a question that is asked after another one, and a comment."""
    answers: dict[str, Any] = {}
    for question in QUESTIONS[kind]:
        draw = random.Random(f"{name}/{item}/{question.name}")
        if question.form == "text":
            answers |= {question.name: f"rain & “<wind>” {item}"} if draw.random() < 0.3 else {}
        elif question.is_asked(answers):
            choices: tuple[Any, ...] = question.labels or question.ratings
            picked = draw.sample(choices, 2) if question.form == "labels" else draw.choices(choices, k=1)
            answers[question.name] = question.read([*picked] if question.form == "labels" else picked[0])
    return answers


def owner(server: LabelStudio, method: str, path: str, body: object = None) -> Any:
    reply = httpx.request(method, f"{server.url}{path}", json=body, headers={"Authorization": f"Token {TOKEN}"}, timeout=60)
    return reply.raise_for_status().json() if reply.content else None


def projects_of(server: LabelStudio, title: str) -> list[int]:
    listed = owner(server, "GET", "/api/projects/?page_size=1000")["results"]
    return sorted(one["id"] for one in listed if one["title"].startswith(title))


def item_of(task: Mapping[str, Any]) -> str:
    """The id of an item, from its text: neither the page nor the API reveals it."""
    assert "item-" not in json.dumps(task["data"])
    number = task["data"]["item"].partition(" (")[2] or task["data"]["item"].partition("？ (")[2]
    return f"item-{int(number.partition(')')[0]):03}"


def work(server: LabelStudio, name: str, one: SimulatedAnnotator, title: str) -> dict[str, dict[str, Any]]:
    """Answer all that the server hands out."""
    answered = {}
    for project in projects_of(server, title):
        while task := one.next_task(project):
            one.answer(task["id"], said(name, item_of(task)))
            answered[item_of(task)] = said(name, item_of(task))
    return answered


def test_fifty_items_give_the_decisions_of_spreadsheets_through_a_kill(server: LabelStudio, tmp_path: Path) -> None:
    items, people = write_items(tmp_path / "i.jsonl", ITEMS), write_annotators(tmp_path / "p.csv", (f"{n},en zh,yes" for n in NAMES))
    online, _ = opened(tmp_path, "label-studio", items, people)
    paper, _ = opened(tmp_path, "spreadsheets", items, people)
    open_round(online.spec(), online.path)  # again: nothing is created twice
    assert sum(owner(server, "GET", f"/api/projects/{p}/")["task_number"] for p in projects_of(server, "round-")) == ITEMS
    annotators = signed_in(server.url, online.private / "label_studio_logins.csv")
    assert sorted(annotators) == sorted(NAMES)

    done = threading.Event()
    start = time.perf_counter()
    with ThreadPoolExecutor(len(NAMES)) as people_at_work:
        working = {name: people_at_work.submit(work, server, name, one, "round-") for name, one in annotators.items()}
        time.sleep(4)
        server.stop(signal.SIGKILL)
        server.start()
        answered = {name: one.result() for name, one in working.items()}
        done.set()
    print(f"answered in {time.perf_counter() - start:.0f} s")
    everything = {item.id for item in online.items()}
    assert all(one.keys() == everything for one in answered.values())

    for name in NAMES:
        fill(workbook_path(paper, name), {number: said(name, item) for number, item in places(paper, name).items()})
    for round in (online, paper):
        status = round_status(round.path)
        assert (status.completed, status.missing, status.mistakes, status.notes) == (ITEMS * len(NAMES), {}, (), ())
        close_round(round.path)
    first, second = ((round.path / "decisions.jsonl").read_bytes() for round in (online, paper))
    assert first == second
    assert len([*read_jsonl(online.path / "decisions.jsonl")]) == 2 * ITEMS
    assert read_json_object(online.path / "agreement.json") == read_json_object(paper.path / "agreement.json")
    stored = {key: one.value for key, one in online.annotations().items()}
    assert stored == {key: one.value for key, one in paper.annotations().items() if True}
