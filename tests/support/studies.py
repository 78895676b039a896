"""Scripted models and judges for studies: replies by arm and place, and a judge who finds what is planted."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from email.message import Message
from pathlib import Path
from typing import Any

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.conversations import LIVE, StudyReply
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.benchmark.studies.settings import CASES, StudySpec
from h2htalk.data.case import Case, points_at, script
from h2htalk.data.files import write_jsonl
from h2htalk.data.scenario import Turn
from h2htalk.data.splits import load_split
from h2htalk.text.point_checks import decided
from support.doubles.loopback import Answer, HttpServer

REPLY = {"en": "I hear you, and I am here.", "zh": "我听到了，我在。"}
# Whether a statement is true of a reply: (case, place, number of the turn, point's aspect, kind) -> answer.
Says = Callable[[Case, str, int, str, str], bool]
Lines = list[dict[str, Any]]
HARMFUL = "It will pass."  # what `judge_of` finds dismissive in every second turn


def write_script(path: Path, lines: Lines | str) -> str:
    """Write a script of replies, or of one reply to everything; return the model's name."""
    write_jsonl(path, [{"id": "*", "text": lines}] if isinstance(lines, str) else lines)
    return f"scripted:{path}"


def cases_of(split: str, language: str) -> list[Case]:
    return [case for case in load_split(split).cases if case.language == language]


def write_cases(path: Path, cases: Iterable[Case]) -> Path:
    write_jsonl(path, (one.to_dict() for one in cases))
    return path


def arm_lines(arm: str, cases: Iterable[Case], text: str) -> Lines:
    """What a model says in the running conversations of an arm."""
    return [
        {"id": f"{arm}/{LIVE}/{one.id}/{place}", "text": text}
        for one in cases
        for place, *_ in script(one)
    ]


def judge_lines(cases: Iterable[Case], says: Says, text: str = "") -> Lines:
    """A judge's replies to running conversations; perception is 5, or 1 where something is wrong.

    `text`: what the model says everywhere, by which one judge tells two models or arms apart; else `REPLY`.
    """
    lines = []
    for case in cases:
        turns = list(case.history)
        reply = text or REPLY[case.language]
        for number, (place, _, message) in enumerate(script(case), 1):
            answers, wrong = {}, False
            turns.append(message)
            name = StudyReply("", case.id, place, LIVE, reply, "", tuple(turns)).id
            turns.append(Turn("companion", reply))
            left = [one for one in points_at(case, place) if decided(reply, one.check) is None]
            for k, point in enumerate(left, 1):
                true = says(case, place, number, point.aspect, point.kind)
                wrong |= true and point.kind == "must_not"
                answers[f"p{k}"] = {"evidence": "seen", "answer": true}
            if case.study == "high_risk":
                answers["perception"] = {"evidence": "seen", "score": 1 if wrong else 5}
            lines.append({"id": name, "text": json.dumps(answers)})
    return lines


def spec(study: Any, model: str, out: Path, **other: Any) -> StudySpec:
    """A study with a scripted model; what `EvaluateSpec` has goes there."""
    asked = {key: other.pop(key) for key in list(other) if key in EvaluateSpec.__dataclass_fields__}
    asked = {"split": CASES[study][0], "embedder": "none", "concurrency": 4} | asked
    ask = EvaluateSpec(model=model, out=str(out), **asked | {"split": str(asked["split"])})
    return StudySpec(study=study, ask=ask, **other)


def studied(
    folder: Path,
    study: str,
    replies: Lines | str = REPLY["en"],
    judge: Lines | str = "",
    **other: Any,
) -> StudyResult:
    """Run a study of a scripted model, and of a scripted judge where there is one; of English cases by default."""
    folder.mkdir(exist_ok=True)
    if judge:
        other["judge"] = write_script(folder / "judge.jsonl", judge)
    model = write_script(folder / "model.jsonl", replies)
    return run_study(spec(study, model, folder / "study", **{"language": "en"} | other))


def is_right(case: Case, place: str, number: int, aspect: str, kind: str) -> bool:
    """Of a reply with which nothing is wrong."""
    return kind == "must"


def judge_of(cases: list[Case]) -> Lines:
    """A judge who finds nothing wrong but with `HARMFUL`."""

    def says(case: Case, place: str, number: int, aspect: str, kind: str) -> bool:
        return kind == "must" or (number % 2 == 0 and aspect == "dismiss")

    return judge_lines(cases, is_right) + judge_lines(cases, says, HARMFUL)


KEY = "made-up-key-1234"
HOW_TO = Path(__file__).parents[2] / "docs/how-to"


def block(page: str, kind: str) -> str:
    found = re.search(
        rf"^```{kind}\n(.*?)^```",
        (HOW_TO / page).read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    return found[1]


class Companion(HttpServer):
    """An application that the adapter of docs/how-to/test-an-app.md fits: it remembers what a session was told.

    `faults`: user -> what goes wrong at a message.
    """

    def __init__(self, faults: dict[str, list[str]] | None = None, stream: str = "") -> None:
        super().__init__()
        self.faults, self.stream = faults or {}, stream
        self.sessions: dict[str, tuple[str, list[str]]] = {}
        self.begun, self.ended, self.days, self.keys = (
            list[str](),
            list[str](),
            list[int](),
            set[str](),
        )

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        sent, (_, *parts) = (
            json.loads(body or b"{}"),
            target.removeprefix("/test").strip("/").split("/"),
        )
        self.keys.add(headers.get("Authorization", ""))
        if not parts:
            name = f"s{len(self.begun)}"
            self.begun.append(sent["user"])
            self.sessions[name] = sent["user"], [turn["content"] for turn in sent["history"]]
            return Answer({"data": {"id": name}}, 201)
        user, said = self.sessions[parts[0]]
        if method == "DELETE":
            self.ended.append(parts[0])
            del self.sessions[parts[0]]
            return Answer(status=204)
        if parts[1] == "days":
            self.days.append(sent["days"])
            return Answer({})
        fault = self.faults[user].pop(0) if self.faults.get(user) else ""
        said.append(sent["text"])
        return self.answer(fault, f"You told me {len(said)} things, the first: {said[0]}")

    def answer(self, fault: str, text: str) -> Answer | str:
        if fault:
            return FAULTS.get(fault, fault)
        lines = [
            json.dumps({"message": {"content": text[k : k + 7]}}) for k in range(0, len(text), 7)
        ]
        if self.stream == "sse":
            return Answer("".join(f"event: token\ndata: {one}\n\n" for one in [*lines, "[DONE]"]))
        if self.stream:
            return Answer("\n".join(lines))
        return Answer({"message": {"content": text}})


PIECES = b'data: {"message": {"content": "I am"}}\r\n\r\ndata: {"error": "overloaded"}\r\n\r\n'
FAULTS = {
    "moved": Answer(b"", 302, {"Location": "http://127.0.0.1:9/elsewhere"}),
    "error": Answer({"error": "down"}, 503),
    "empty": Answer({"message": {"content": ""}}),
    "other": Answer({"message": {}}),
    "broken stream": Answer(PIECES),
    "event stream": Answer(b'data: {"message": {"content": "I am"}}\r\n\r\n'),
    "broken choice": Answer(
        b'data: {"choices": [{"delta": {}, "finish_reason": "error"}]}\r\n\r\n'
    ),
    # Each piece announces a finish reason, which never comes.
    "broken end": Answer(
        b'data: {"message": {"content": "I am"}, '
        b'"choices": [{"delta": {"content": "I am"}, "finish_reason": null}]}\r\n\r\n'
    ),
    # Of Vercel's SDK, whose errors have a text of their own and no field `error`.
    "broken type": Answer(
        b'data: {"message": {"content": "I am"}}\r\n\r\n'
        b'data: {"type": "error", "errorText": "down"}\r\n\r\n'
    ),
}
