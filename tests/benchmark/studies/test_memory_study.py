"""The study of memory: planted inventions and forgotten corrections are counted exactly; what each arm shows the
model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from studies_made import REPLY, cases_of, spec, write_script

from h2htalk.benchmark.observations import figure_of, select
from h2htalk.benchmark.studies.conversations import Asker, StudyPrompts, run_together
from h2htalk.benchmark.studies.run_study import run_study
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.data.case import Case, script
from h2htalk.data.splits import load_split


def planted(cases: Sequence[Case], aspect: str, number: int) -> list[tuple[str, str, str]]:
    """Case, place and a word that breaks the point, for some points of an aspect, each in a turn of its own."""
    found: dict[tuple[str, str], str] = {}
    for case in cases:
        facts = {fact.id: fact for fact in case.facts}
        for place, turn, _ in script(case):
            for point in case.points_of(turn):
                if point.aspect == aspect and len(found) < number and (case.id, place) not in found:
                    found[case.id, place] = facts[(point.check or "").partition(":")[2]].forms[0]
    return [(case, place, word) for (case, place), word in found.items()]


def test_inventions_and_forgotten_corrections_are_counted_exactly(tmp_path: Path) -> None:
    cases = cases_of("arcs", "en")
    lines = [{"id": "*", "text": "Tell me more."}]
    for aspect, number in (("invented", 5), ("corrected", 3)):
        lines += [
            {"id": f"*/live/{case}/{place}", "text": f"It was {word}, I believe."}
            for case, place, word in planted(cases, aspect, number)
        ]
    model = write_script(tmp_path / "model.jsonl", lines)
    result = run_study(spec("memory", model, tmp_path / "study", arms=("whole",), language="en"))
    found = {
        name: figure_of(select(result.observations, f"must_not.{name}", "whole")) for name in ("invented", "corrected")
    }
    assert (found["invented"].hits, found["invented"].n) == (5, found["invented"].total)
    assert (found["corrected"].hits, found["corrected"].n) == (3, found["corrected"].total)
    text = (result.study.path / "tables" / "memory.csv").read_text()
    assert f"5 of {found['invented'].n}" in text
    assert f"3 of {found['corrected'].n}" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_each_arm_shows_the_model(tmp_path: Path, language: str) -> None:
    case = next(one for one in cases_of("arcs", language) if len(one.sessions) > 2)
    personas = load_split("arcs").personas
    note = {
        "en": "Memory Content: Keeps pigeons\nMemory Category: hobbies\nMemory Importance: 2",
        "zh": "记忆内容：养鸽子\n记忆类别：爱好\n记忆重要性：2",
    }[language]
    kept = {"en": "Keeps pigeons", "zh": "养鸽子"}[language]
    shown: dict[str, Request] = {}
    for arm in ("none", "window", "explicit", "whole"):
        made = spec("memory", "scripted:x", tmp_path / arm, window=4)

        def ask(requests: Sequence[Request], arm: str = arm) -> dict[tuple[str, int], Outcome]:
            shown[arm] = requests[-1]
            return {(r.id, r.sample): Reply(note if "/memory/" in r.id else REPLY[language]) for r in requests}

        replies = run_together([Asker(made, StudyPrompts.load(), arm, personas).live(case)], ask)
        assert all(reply.text == REPLY[language] for reply in replies)
    last = len(case.sessions[-1].turns)
    chats = {arm: [m for m in request.messages if m.role != "system"] for arm, request in shown.items()}
    assert len(chats["none"]) == len(chats["explicit"]) == 2 * last - 1
    assert len(chats["window"]) in (3, 4)
    assert len(chats["whole"]) == 2 * sum(len(one.turns) for one in case.sessions) - 1 + len(case.history)
    assert all(chat[0].role == "user" for chat in chats.values())
    assert kept in shown["explicit"].messages[0].content
    assert kept not in shown["none"].messages[0].content


def test_a_failed_note_leaves_the_rest_of_the_case_unscored(tmp_path: Path) -> None:
    failure = {"reason": "timeout", "message": "never"}
    lines = [{"id": "*", "text": "Yes."}, {"id": "*/s2.t1.synthesis", "failure": failure}]
    model = write_script(tmp_path / "model.jsonl", lines)
    result = run_study(spec("memory", model, tmp_path / "study", arms=("explicit",), limit=2, language="en"))
    assert result.incomplete
    texts = {one.reply.place: one.reply.text for one in result.replies}
    assert texts["s1.t1"] == "Yes."
    assert texts["s2.t1"] is None
    stored = (tmp_path / "study" / "calls.jsonl").read_text().splitlines()
    assert all(json.loads(line)["id"].startswith("explicit/") for line in stored)
