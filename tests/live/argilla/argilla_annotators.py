"""Simulated annotators of known skill, each with their own key: they read like the web page, and respond through
the SDK.

Drafts and changed responses, which the SDK does not support, are submitted like the page does.
"""

from __future__ import annotations

import contextlib
import csv
import json
import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from h2htalk.data.languages import LANGUAGES
from h2htalk.rounds.questions import QUESTIONS, Kind, Question

LINES = {"en": "Tell me how the rain sounded today.", "zh": "今天的雨声是什么样的？"}
REPLIES = {"en": "Soft, like somebody turning pages.", "zh": "很轻，像有人在翻书。"}


def made_items(count: int, kind: Kind, crises: int = 10) -> list[dict[str, Any]]:
    """`count` items in alternating languages; every `crises`-th is about a crisis."""
    items = []
    for number in range(count):
        language = LANGUAGES[number % 2]
        item: dict[str, Any] = {
            "id": f"item-{number:03}",
            "language": language,
            "prompt": [{"role": "user", "content": f"{LINES[language]} ({number})"}],
            "context": {"memories": f"{LINES[language]} {number}"},
            "reference": REPLIES[language],
        }
        if kind in ("safety", "adjudication"):
            item["response"] = REPLIES[language]
        if number % crises == crises - 1:
            item["crisis"] = True
        items.append(item)
    return items


def write_items(path: Path, items: Iterable[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items), encoding="utf-8")
    return path


def write_annotators(path: Path, names: Sequence[str], without_crises: Sequence[str] = ()) -> Path:
    """Write a list of annotators who read both languages."""
    rows = [f"{name},en zh,{'no' if name in without_crises else 'yes'}" for name in names]
    path.write_text("\n".join(["name,languages,crisis", *rows]) + "\n", encoding="utf-8")
    return path


@dataclass
class SimulatedAnnotator:
    """One annotator: account on the server, and accuracy.

    Attributes:
        name: their user name.
        skill: probability of the right answer, 0 to 1; wrong answers are equally probable.
        url, key: of the server and of their account.
        seed: of their answers.
        retry_seconds: seconds of retries while the server restarts.
        again: number of responses without acknowledgement.
    """

    name: str
    skill: float
    url: str
    key: str
    seed: int = 0
    retry_seconds: float = 60.0
    again: int = 0

    def __post_init__(self) -> None:
        # Imported here because the SDK takes seconds, also for collecting the tests.
        import argilla

        self.sdk = argilla.Argilla(api_url=self.url, api_key=self.key, retries=0)
        self.user = self.sdk.me.id
        self.http = httpx.Client(base_url=self.url, headers={"X-Argilla-Api-Key": self.key}, timeout=60)

    def answer(self, item: str, questions: Sequence[Question]) -> dict[str, str | int]:
        """Their answers to an item, the same at every call."""
        said: dict[str, str | int] = {}
        for question in questions:
            if not question.decided:
                continue
            draw = random.Random(f"{self.seed}/{self.name}/{item}/{question.name}")
            choices: tuple[Any, ...] = question.labels or question.ratings
            right = truth(item, question)
            others = [choice for choice in choices if choice != right]
            said[question.name] = right if draw.random() < self.skill else draw.choice(others)
        return said

    def datasets(self, workspace: str) -> list[dict[str, Any]]:
        """The datasets that they see in workspaces with this prefix."""
        places = {one["id"] for one in self._get("/api/v1/me/workspaces") if one["name"].startswith(workspace)}
        return [one for one in self._get("/api/v1/me/datasets") if one["workspace_id"] in places]

    def pending(self, dataset: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The records that are pending for them, from the search index, like on the page."""
        scope = {"entity": "response", "property": "status"}
        body = {"filters": {"and": [{"type": "terms", "scope": scope, "values": ["pending"]}]}}
        body["filters"]["and"].append(
            {"type": "terms", "scope": {"entity": "record", "property": "status"}, "values": ["pending"]}
        )
        found = self._send(
            "POST", f"/api/v1/me/datasets/{dataset['id']}/records/search?limit=1000&include=responses", body
        )
        return [one["record"] for one in found["items"]]

    def hand_in(self, answers: Iterable[tuple[str, Mapping[str, Any], str]]) -> None:
        """Submit their first responses to records (record id, values, status) through the SDK, one by one."""
        from argilla._models import UserResponseModel

        for record, values, status in answers:
            given = {name: {"value": value} for name, value in values.items()}
            # The SDK's public class cannot make a discard without values.
            self._hand_in(record, UserResponseModel(values=given, status=status, user_id=self.user))

    def _hand_in(self, record: str, given: Any) -> None:
        from argilla._exceptions import ConflictError, InternalServerError

        end, lost = time.monotonic() + self.retry_seconds, False
        while True:
            with contextlib.suppress(httpx.TransportError, ConflictError, InternalServerError):
                # A response without acknowledgement may be stored, and must not be submitted twice.
                if not (lost and self._stored(record, given)):
                    self.sdk.api.records.create_record_response(record, given)
                return
            lost = True
            self.again += 1
            assert time.monotonic() < end, f"{record}: the server stayed away for {self.retry_seconds:g} s"
            time.sleep(0.3)

    def _stored(self, record: str, given: Any) -> bool:
        """Whether the server has their response to a record, which must then be this one."""
        there = [one for one in self.sdk.api.records.get(record).responses or () if one.user_id == self.user]
        assert [(one.status, one.values or {}) for one in there] in ([], [(given.status, given.values)])
        return bool(there)

    def submit(self, record: str, values: Mapping[str, Any], status: str = "submitted") -> None:
        """Submit a response like the page does.

        If two annotators submit to one record at once, the server stores both and reports a conflict in its search
        index to one of them: a failed response is submitted again.
        """
        given = {name: {"value": value} for name, value in values.items()}
        items, end = [{"record_id": record, "status": status, "values": given}], time.monotonic() + self.retry_seconds
        while (found := self._send("POST", "/api/v1/me/responses/bulk", {"items": items})["items"][0])["error"]:
            assert time.monotonic() < end, found

    def work_through(self, workspace: str, kind: Kind) -> dict[str, dict[str, str | int]]:
        """Answer the pending records of every dataset. Returns item -> answers."""
        said: dict[str, dict[str, str | int]] = {}
        questions = QUESTIONS[kind]
        for dataset in self.datasets(workspace):
            waiting = self.pending(dataset)
            given = {record["external_id"]: self.answer(item_of(record), questions) for record in waiting}
            self.hand_in((one["id"], given[one["external_id"]], "submitted") for one in waiting)
            said |= {item_of(record): given[record["external_id"]] for record in waiting}
        return said

    def _get(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._send("GET", path)["items"]
        return found

    def _send(self, method: str, path: str, body: object = None) -> Any:
        end = time.monotonic() + self.retry_seconds
        while True:
            try:
                reply = self.http.request(method, path, json=body)
                if reply.status_code < 500:
                    reply.raise_for_status()
                    return reply.json()
            except httpx.TransportError:
                pass
            if time.monotonic() > end:
                raise AssertionError(f"{method} {path}: the server stayed away for {self.retry_seconds:g} s")
            time.sleep(0.3)


def item_of(record: Mapping[str, Any]) -> str:
    """The id of an item, from its text: the record id does not reveal it."""
    text = json.loads(record["fields"]["item"]["data"])["turns"][0]["content"]
    return f"item-{int(text.rpartition('(')[2].rstrip(')')):03}"


def truth(item: str, question: Question) -> Any:
    """The right answer to a question on an item."""
    choices: tuple[Any, ...] = question.labels or question.ratings
    return random.Random(f"truth/{item}/{question.name}").choice(choices)


def signed_in(url: str, logins: Path, skills: Mapping[str, float], seed: int = 0) -> list[SimulatedAnnotator]:
    """Sign in the annotators of a round with their passwords, and return them with their keys."""
    with logins.open(encoding="utf-8", newline="") as file:
        passwords = {row["name"]: row["password"] for row in csv.DictReader(file)}
    annotators = []
    for name, skill in skills.items():
        form = {"username": name, "password": passwords[name]}
        token = httpx.post(f"{url}/api/v1/token", data=form, timeout=30).raise_for_status().json()["access_token"]
        me = httpx.get(f"{url}/api/v1/me", headers={"Authorization": f"Bearer {token}"}, timeout=30)
        annotators.append(SimulatedAnnotator(name, skill, url, me.raise_for_status().json()["api_key"], seed))
    return annotators
