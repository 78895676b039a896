"""The judge check: a reviewer that does not beat chance on gold compares nothing, and the funnel says so."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from curation_made import run_one
from review_made import BETTER, WORSE, candidates, composed, script
from tables import table

from h2htalk.curation.curate import funnel_notes, summaries
from h2htalk.curation.review.reviewer import read_gold
from h2htalk.curation.stage_folder import RecordCounts, StageFolder
from h2htalk.curation.stages import ReviewSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_json_object
from h2htalk.errors import ConfigError, DataError, IncompleteError

LINE: dict[str, Any] = {"id": "g1", "language": "en", "subtask": "dialogue_base", "prompt": "My tea is cold again."}
LINE |= {"a": "Tell me what kept you from it.", "b": "Tea.", "better": "a"}


def write_gold(path: Path, lines: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def gold_lines(count: int, ties: int = 0) -> list[dict[str, Any]]:
    better = ["a"] * count + ["tie"] * ties
    return [LINE | {"id": f"g{n}", "prompt": f"Cold tea, {n} times.", "better": b} for n, b in enumerate(better)]


def prefer(lines: Sequence[Mapping[str, Any]], first: bool) -> dict[str, object]:
    """Replies of a reviewer that prefers the first (or the second) answer of each line in both orders."""
    replies = (BETTER, WORSE) if first else (WORSE, BETTER)
    return {
        f"gold:{line['id']}/pair-1-2/{order}": reply
        for line in lines
        for order, reply in zip(("ab", "ba"), replies, strict=True)
    }


def prepare(
    tmp_path: Path, lines: Sequence[Mapping[str, Any]], right: int, references: int = 2, **settings: object
) -> tuple[ReviewSettings, Workspace]:
    """Four candidates, and a reviewer that gets the first `right` lines of gold right and the others wrong.

    It prefers the second reference of each candidate.
    """
    found = candidates(4, references=references)
    workspace = composed(tmp_path / "work", found, part=2)
    replies = prefer(lines[:right], True) | prefer(lines[right:], False)
    for candidate in found:
        replies |= {f"{candidate.id}/pair-1-2/ab": WORSE, f"{candidate.id}/pair-1-2/ba": BETTER}
    model = script(tmp_path / "replies.jsonl", found, replies)
    gold = write_gold(tmp_path / "gold.jsonl", lines)
    values: dict[str, Any] = {"audit": 0.0, "escalate": 0.0, "gold": gold, **settings}
    return ReviewSettings(model=model, **values), workspace


def run(settings: ReviewSettings, workspace: Workspace) -> RecordCounts:
    return run_one("review", workspace, settings)


def asked(workspace: Workspace, gold: bool) -> list[str]:
    lines = (workspace.stage("review").path / "calls.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    return [one for one in ids if one.startswith("gold:") == gold]


def notes(workspace: Workspace) -> str:
    return funnel_notes(summaries(workspace)[-1:])


def test_a_reviewer_above_chance_compares(tmp_path: Path) -> None:
    settings, workspace = prepare(tmp_path, gold_lines(10), 9)
    assert run(settings, workspace).tags == {"accept": 4}
    references = {r["scenario"]["reference"] for r in workspace.stage("review").records()}
    assert references == {"Another answer, number 1."}
    message = "judge check: passed: accuracy 0.900 (95 % interval 0.596 to 0.982) on 10 gold comparisons (en)"
    assert message in notes(workspace)
    note = read_json_object(workspace.stage("review").path / "summary.json")["judge_check"]
    assert (note["accepted"], note["accuracy"], note["n"]) == (True, 0.9, 10)


def test_a_reviewer_at_chance_leaves_all_to_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings, workspace = prepare(tmp_path, gold_lines(10), 4)
    assert run(settings, workspace).tags == {"needs_people": 4, "people:judge_check": 4}
    for record in workspace.stage("review").records():
        assert record["review"]["reasons"] == ["judge_check"]
        assert (record["review"]["chosen"], record["review"]["pairs"]) == (0, [])
        assert [r["origin"] for r in record["references"]] == ["original", "model:m1"]
    assert not [n for n in asked(workspace, gold=False) if "pair" in n]
    reason = "(95 % interval 0.168 to 0.687) on 10 gold comparisons (en); at or below chance (0.400 of 0.5)"
    assert reason in capsys.readouterr().err
    assert reason in notes(workspace)


@pytest.mark.parametrize("reply", [BETTER, "A is better."], ids=["position bias", "malformed"])
def test_comparisons_without_a_verdict_count_half(tmp_path: Path, reply: str) -> None:
    settings, workspace = prepare(tmp_path, gold_lines(12), 12)
    found = candidates(4, references=2)
    script(tmp_path / "replies.jsonl", found, dict.fromkeys(prefer(gold_lines(12), True), reply))
    assert run(settings, workspace).tags["people:judge_check"] == 4
    assert "12 of them without a verdict" in notes(workspace)


def test_gold_is_compared_with_the_settings_of_candidates_and_only_where_something_is_compared(tmp_path: Path) -> None:
    settings, workspace = prepare(tmp_path, gold_lines(10), 10, samples=2)
    run(settings, workspace)
    assert len(asked(workspace, gold=True)) == 10 * 2 * 2
    settings, workspace = prepare(tmp_path / "alone", gold_lines(10), 0, references=1)
    assert run(settings, workspace).tags == {"accept": 4}
    assert asked(workspace, gold=True) == []
    assert "not made, as no candidate has several references" in notes(workspace)


def test_an_interrupted_check_repeats_no_paid_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, workspace = prepare(tmp_path, gold_lines(10), 4)
    with monkeypatch.context() as patch:
        patch.setattr(StageFolder, "add_note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(settings, workspace)
    before = asked(workspace, gold=True)
    assert len(before) == 60
    run(settings, workspace)
    assert asked(workspace, gold=True) == before


def test_failed_gold_calls_stop_the_stage_before_anything_is_compared(tmp_path: Path) -> None:
    settings, workspace = prepare(tmp_path, gold_lines(10), 10)
    path = tmp_path / "replies.jsonl"
    failing = {"id": "gold:g3/pair-1-2/ab", "failure": {"reason": "timeout", "message": "never answered"}}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [line for line in lines if line["id"] != failing["id"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*kept, {**failing, "sample": 0}]))
    with pytest.raises(IncompleteError, match=r"review\.gold: .* of the gold comparisons failed"):
        run(settings, workspace)
    assert asked(workspace, "part-00000") == []


@pytest.mark.parametrize(("changes", "message"), table("curation", "wrong_gold_lines"))
def test_a_wrong_line_is_named(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    gold = write_gold(tmp_path / "gold.jsonl", [{**LINE, "id": "g0"}, {**LINE, **changes}])
    with pytest.raises(DataError, match=r"gold\.jsonl:2: ") as raised:
        read_gold(Path(gold))
    assert message in str(raised.value)


def test_what_gold_is_read(tmp_path: Path) -> None:
    line = {key: value for key, value in LINE.items() if key != "prompt"}
    inputs = {"hobbies": ["kites"], "memories": ["The user has a cat."]}
    lines = [*gold_lines(9), {**line, "id": "last", "subtask": "itinerary_basic", "inputs": inputs}]
    candidate = read_gold(Path(write_gold(tmp_path / "gold.jsonl", lines))).candidates[-1]
    assert (candidate.id, len(candidate.references)) == ("gold:last", 2)
    # Its calls were paid for, and every reviewer was refused.
    for wins, ties in ((4, 0), (20, 10)):
        read_gold(Path(write_gold(tmp_path / "gold.jsonl", gold_lines(wins, ties))))
    for wins, ties in ((0, 0), (0, 1), (3, 0), (1, 29)):
        message = f"all {wins + ties} comparisons right would be refused; {ties} of them are ties: add"
        with pytest.raises(ConfigError, match=message):
            read_gold(Path(write_gold(tmp_path / "gold.jsonl", gold_lines(wins, ties))))
