"""Scripted models and judges for studies: replies by arm and place, and a judge who finds what is planted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.studies.conversations import StudyReply
from h2htalk.benchmark.studies.point_answers import points_at
from h2htalk.benchmark.studies.settings import StudySpec
from h2htalk.data.case import Case, script
from h2htalk.data.dialogue import Turn
from h2htalk.data.splits import load_split
from h2htalk.text.point_checks import meets

REPLY = {"en": "I hear you, and I am here.", "zh": "我听到了，我在。"}
# Whether a statement is true of a reply: (case, place, number of the turn, point's aspect, kind) -> answer.
Says = Callable[[Case, str, int, str, str], bool]


def write_script(path: Path, lines: Iterable[dict[str, Any]]) -> str:
    """Write a script of replies; return the model's name."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return f"scripted:{path}"


def cases_of(split: str, language: str) -> list[Case]:
    return [case for case in load_split(split).cases if case.language == language]


def judge_lines(
    arm: str, cases: Iterable[Case], says: Says, reply: Callable[[Case, str], str], exact: bool = False
) -> list[dict[str, Any]]:
    """A judge's replies to the running conversation of one arm; perception is 5, or 1 where something is wrong.

    `exact`: for these replies only, so that one judge tells two models apart.
    """
    lines = []
    for case in cases:
        turns = list(case.history)
        for number, (place, _, message) in enumerate(script(case), 1):
            said, answers, wrong = reply(case, place), {}, False
            turns.append(message)
            text_hash = StudyReply(arm, case.id, place, "live", said, "", tuple(turns)).text_hash if exact else "*"
            turns.append(Turn("companion", said))
            left = [one for one in points_at(case, place) if meets(said, one, case) is None]
            for k, point in enumerate(left, 1):
                true = says(case, place, number, point.aspect, point.kind)
                wrong |= true and point.kind == "must_not"
                answers[f"p{k}"] = {"evidence": "seen", "answer": true}
            if case.study == "high_risk":
                answers["perception"] = {"evidence": "seen", "score": 1 if wrong else 5}
            lines.append({"id": f"{text_hash}/{arm}/live/{case.id}/{place}", "text": json.dumps(answers)})
    return lines


def spec(study: Any, model: str, out: Path, **other: Any) -> StudySpec:
    """A study with a scripted model; what `EvaluateSpec` has goes there."""
    asked = {key: other.pop(key) for key in list(other) if key in EvaluateSpec.__dataclass_fields__}
    split = asked.pop("split", {"sap": "high_risk"}.get(study, study if study != "memory" else "arcs"))
    ask = EvaluateSpec(model=model, split=str(split), out=str(out), **({"embedder": "none", "concurrency": 4} | asked))
    return StudySpec(study=study, ask=ask, **other)
