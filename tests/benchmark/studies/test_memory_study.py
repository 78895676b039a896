"""The study of memory: planted inventions and forgotten corrections are counted exactly; what each arm shows the
model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from studies_made import REPLY, cases_of, spec, studied, write_script

from h2htalk.benchmark.gate.gate import gate
from h2htalk.benchmark.observations import figure_of, select
from h2htalk.benchmark.studies.conversations import Asker, run_together
from h2htalk.benchmark.studies.run_study import plan_study
from h2htalk.chat.protocol import Outcome, Reply, Request
from h2htalk.data.case import script


def test_inventions_and_forgotten_corrections_are_counted_exactly(tmp_path: Path) -> None:
    planted: dict[str, list[dict[str, str]]] = {"invented": [], "corrected": []}
    for case in cases_of("arcs", "en"):
        facts = {fact.id: fact for fact in case.facts}
        for place, turn, _ in script(case):
            aspects = {point.aspect: point for point in case.points_of(turn) if point.aspect in planted}
            for aspect, point in list(aspects.items())[:1]:  # one a turn
                word = facts[(point.check or "").partition(":")[2]].forms[0]
                planted[aspect].append({"id": f"*/live/{case.id}/{place}", "text": f"It was {word}, I believe."})
    lines = [{"id": "*", "text": "Tell me more."}, *planted["invented"][:5], *planted["corrected"][:3]]
    result = studied(tmp_path, "memory", lines, arms=("whole",))
    text = (result.study.path / "tables" / "memory.csv").read_text()
    recalled = '[[criteria]]\nfigure = "lexical.recollection_synthesis"\nmin = 0.99\n'
    (tmp_path / "gate.toml").write_text(f"alpha = 0.4\n{recalled}")
    assert gate(result.study.path, None, tmp_path / "gate.toml").verdicts[0].transcripts  # without a conversation
    for name, number in (("invented", 5), ("corrected", 3)):
        found = figure_of(select(result.observations, f"must_not.{name}", "whole"))
        assert (found.hits, found.n) == (number, found.total)
        assert f"{number} of {found.n}" in text


NOTES = {
    "en": "Memory Content: Keeps pigeons\nMemory Category: hobbies\nMemory Importance: 2",
    "zh": "记忆内容：养鸽子\n记忆类别：爱好\n记忆重要性：2",
}


@pytest.mark.parametrize(("language", "kept"), [("en", "Keeps pigeons"), ("zh", "养鸽子")])
def test_what_each_arm_shows_the_model(tmp_path: Path, language: str, kept: str) -> None:
    case = next(one for one in cases_of("arcs", language) if len(one.sessions) > 2)
    shown: dict[str, Request] = {}
    for arm in ("none", "window", "explicit", "whole"):
        made = spec("memory", write_script(tmp_path / "model.jsonl", "x"), tmp_path / arm, window=4)

        def ask(requests: Sequence[Request], arm: str = arm) -> dict[tuple[str, int], Outcome]:
            shown[arm] = requests[-1]
            return {(r.id, 0): Reply(NOTES[language] if "/memory/" in r.id else REPLY[language]) for r in requests}

        replies = run_together([Asker(plan_study(made), arm).live(case)], ask)
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
    result = studied(tmp_path, "memory", lines, arms=("explicit",), limit=2)
    assert result.incomplete
    texts = {one.reply.place: one.reply.text for one in result.replies}
    assert (texts["s1.t1"], texts["s2.t1"]) == ("Yes.", None)
