"""The tool that measures how far the reviewer's ratings move with the safety questions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from h2htalk.curation.review.reviewer import CRITERIA
from h2htalk.data.files import read_jsonl, write_jsonl
from h2htalk.data.subtasks import SUBTASKS
from support.doubles.harmless_answers import HARMLESS

TOOL = Path(__file__).parents[3] / "tools" / "review_shift.py"
_SUBTASK = re.compile("|".join(sorted(SUBTASKS, key=len, reverse=True)))


def tool(*words: object) -> str:
    command = [sys.executable, str(TOOL), *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8").stdout


def answer(task: dict[str, str]) -> str:
    """A reader that rates accuracy one lower where it is asked the safety questions."""
    is_asked = "/with/" in task["id"]
    subtask = _SUBTASK.search(task["prompt"])
    assert subtask is not None
    criteria = {name: {"evidence": "Seen.", "score": 4} for name in CRITERIA}
    if is_asked:
        criteria["accuracy"]["score"] = 3
    reply = {**criteria, "fitting_subtask": subtask[0], "revision": "", "verdict": "accept"}
    if is_asked:
        reply |= {"in_scenario": HARMLESS, "in_reference": HARMLESS}
    return json.dumps(reply)


def test_a_shift_of_the_ratings_is_found_by_criterion_and_language(tmp_path: Path) -> None:
    tool("draw", tmp_path, "--candidates", 6)
    assert "in_reference" in (tmp_path / "rules-en-with.txt").read_text()
    assert "in_reference" not in (tmp_path / "rules-en-without.txt").read_text()
    for path in sorted(tmp_path.glob("reader-*.jsonl")):
        tasks = [task for _, task in read_jsonl(path)]
        assert len({task["id"].partition("/")[0] for task in tasks}) == 6  # each candidate once
        assert {task["rules"] for task in tasks} == {
            f"rules-{path.stem[-2:]}-{form}.txt" for form in ("with", "without")
        }
        lines = [{"id": task["id"], "reply": answer(task)} for task in tasks]
        write_jsonl(tmp_path / "out" / path.name, lines)
    printed = tool("score", tmp_path, "--candidates", 6)
    for language in ("en", "zh"):
        assert f"{language}: 6 candidates read in both forms, 0 replies unscored" in printed
    assert printed.count("accuracy: 4.00 without, 3.00 with; shift -1.00") == 2
    assert printed.count("safety: 4.00 without, 4.00 with; shift +0.00") == 2
    assert (
        printed.count(
            "verdict: the same in 24 of 24 pairs of readings in both forms, in 12 of 12 of one form"
        )
        == 2
    )
    assert printed.count("status: the same in 0 of 24 pairs of readings in both forms") == 2


def test_a_reply_in_the_other_form_is_unscored(tmp_path: Path) -> None:
    tool("draw", tmp_path, "--candidates", 2)
    tasks = [task for _, task in read_jsonl(tmp_path / "reader-1-en.jsonl")]
    lines = [{"id": task["id"], "reply": answer({**task, "id": "x/without/1"})} for task in tasks]
    write_jsonl(tmp_path / "out" / "reader-1-en.jsonl", lines)
    assert "en: 0 candidates read in both forms, 1 replies unscored" in tool(
        "score", tmp_path, "--candidates", 2
    )
