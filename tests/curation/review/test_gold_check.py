"""The gate of the review: a reviewer that does not beat chance on gold compares nothing, and everybody is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from curation_made import all_bytes
from review_made import BETTER, WORSE, candidates, composed, script

from h2htalk.curation.curate import curate, summaries
from h2htalk.curation.funnel import notes
from h2htalk.curation.pipeline import Incomplete
from h2htalk.curation.review.gold_check import read_gold, require_reachable
from h2htalk.curation.review.stage import make_stage, run_review
from h2htalk.curation.settings import CurateSpec, GatherSettings, ReviewSettings
from h2htalk.curation.stage_folder import Counts
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import read_json_object
from h2htalk.errors import ConfigError, DataError

LINE: dict[str, Any] = {
    "id": "g1",
    "language": "en",
    "subtask": "dialogue_base",
    "prompt": "My tea is cold again.",
    "a": "Tell me what kept you from it.",
    "b": "Tea.",
    "better": "a",
}


SPEC = """
workspace = "work"
[gather]
stand_in = 4
[[gather.sources]]
name = "made"
path = "$H2HTALK_NO_SUCH_FOLDER/en.jsonl"
format = "messages"
language = "en"
licence = "CC0-1.0"
[review]
model = "scripted:reviewer.jsonl"
gold = "gold.jsonl"
"""


def write_gold(path: Path, lines: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


def gold_lines(count: int, better: str = "a") -> list[dict[str, Any]]:
    return [
        {**LINE, "id": f"g{n}", "prompt": f"Cold tea, {n} times.", "better": better} for n in range(count)
    ]


def says_a(lines: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Replies of a reviewer that finds the first answer of each line better, in both orders."""
    return {
        f"gold:{line['id']}/pair-1-2/{order}": reply
        for line in lines
        for order, reply in (("ab", BETTER), ("ba", WORSE))
    }


def gated(
    tmp_path: Path, lines: Sequence[Mapping[str, Any]], right: int, *, references: int = 2, **settings: object
) -> tuple[CurateSpec, Workspace]:
    """A curation of four candidates whose reviewer gets the first `right` lines of gold right and the others wrong.

    Of each candidate it finds the second reference better.
    """
    found = candidates(4, references=references)
    workspace = composed(tmp_path / "work", found, part=2)
    replies = says_a([line for n, line in enumerate(lines) if (n < right) == (line["better"] == "a")])
    wrong = [line for n, line in enumerate(lines) if (n < right) != (line["better"] == "a")]
    for name, reply in says_a(wrong).items():
        replies[name] = WORSE if reply == BETTER else BETTER
    for candidate in found:
        replies |= {f"{candidate.id}/pair-1-2/ab": WORSE, f"{candidate.id}/pair-1-2/ba": BETTER}
    model = script(tmp_path / "replies.jsonl", found, replies)
    gold = write_gold(tmp_path / "gold.jsonl", lines)
    made = {"audit": 0.0, "hand_off": 0.0, "gold": gold, **settings}
    return (
        CurateSpec(
            str(workspace.path),
            GatherSettings(),
            review=ReviewSettings(model=model, **made),  # type: ignore[arg-type]
        ),
        workspace,
    )


def asked(workspace: Workspace, part: str) -> list[str]:
    path = workspace.stage("review").path / "calls" / f"{part}.jsonl"
    return [json.loads(line)["id"] for line in path.read_text().splitlines()] if path.exists() else []


def run(spec: CurateSpec, workspace: Workspace) -> Counts:
    return run_review(spec, workspace, workspace.open_key())


def test_a_reviewer_that_beats_chance_compares(tmp_path: Path) -> None:
    spec, workspace = gated(tmp_path, gold_lines(10), 9)
    counts = run(spec, workspace)
    assert counts.tags == {"accept": 4}
    assert {r["scenario"]["reference"] for r in workspace.stage("review").records()} == {
        "Another answer, number 1."
    }
    told = notes(summaries(workspace)[-1:])
    assert "gate: passed: accuracy 0.900 (95 % interval 0.596 to 0.982) on 10 gold comparisons (en)" in told
    gate = read_json_object(workspace.stage("review").path / "summary.json")["gate"]
    assert (gate["accepted"], gate["accuracy"], gate["n"]) == (True, 0.9, 10)


def test_of_a_reviewer_that_does_not_no_verdict_counts_and_none_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec, workspace = gated(tmp_path, gold_lines(10), 4)
    counts = run(spec, workspace)
    assert counts.tags == {"needs_people": 4, "people:gate": 4}
    for record in workspace.stage("review").records():
        assert record["review"]["reasons"] == ["gate"]
        assert (record["review"]["chosen"], record["review"]["pairs"]) == (0, [])
        assert [r["origin"] for r in record["references"]] == ["original", "model:m1"]
    assert not [
        name for part in ("part-00000", "part-00001") for name in asked(workspace, part) if "pair" in name
    ]
    why = "accuracy 0.400 (95 % interval 0.168 to 0.687) on 10 gold comparisons (en); at or below chance (0.400 of 0.5)"
    assert why in capsys.readouterr().err
    assert why in notes(summaries(workspace)[-1:])


def test_a_judge_of_positions_and_one_that_answers_nothing_whole_are_refused(tmp_path: Path) -> None:
    lines = gold_lines(12)
    for name, reply in (("positions", BETTER), ("broken", "A is better.")):
        spec, workspace = gated(tmp_path / name, lines, 12)
        found = candidates(4, references=2)
        everywhere = dict.fromkeys(says_a(lines), reply)
        script(tmp_path / name / "replies.jsonl", found, everywhere)
        assert run(spec, workspace).tags["people:gate"] == 4
        assert "12 of them without a verdict" in notes(summaries(workspace)[-1:])


def test_gold_is_asked_as_candidates_are_and_only_where_something_is_compared(tmp_path: Path) -> None:
    spec, workspace = gated(tmp_path, gold_lines(10), 10, samples=2)
    run(spec, workspace)
    assert len(asked(workspace, "part-gold")) == 10 * 2 * 2
    spec, workspace = gated(tmp_path / "alone", gold_lines(10), 0, references=1)
    assert run(spec, workspace).tags == {"accept": 4}
    assert asked(workspace, "part-gold") == []
    assert "gold was not asked" in notes(summaries(workspace)[-1:])


def test_without_gold_it_is_said(tmp_path: Path) -> None:
    spec, workspace = gated(tmp_path, gold_lines(1), 1)
    run(replace(spec, review=replace(spec.review, gold="")), workspace)
    assert "review     not gated: no gold comparisons are named" in notes(summaries(workspace)[-1:])


def test_other_gold_is_another_setting_and_moved_or_reordered_gold_is_not(tmp_path: Path) -> None:
    lines = gold_lines(10)
    spec, workspace = gated(tmp_path, lines, 10)
    counts = run(spec, workspace)
    moved = write_gold(tmp_path / "moved.jsonl", lines[::-1])
    spec = replace(spec, review=replace(spec.review, gold=moved))
    assert run(spec, workspace) == counts
    write_gold(tmp_path / "moved.jsonl", lines[1:])
    with pytest.raises(ConfigError, match=r"another setting of gold; .* --again review"):
        run(spec, workspace)


def test_stopped_at_the_gate_it_goes_on_without_asking_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole_spec, whole = gated(tmp_path / "whole", gold_lines(10), 4)
    run(whole_spec, whole)
    spec, workspace = gated(tmp_path / "stopped", gold_lines(10), 4)
    for name in ("secret.key", "workspace.json"):
        (workspace.path / name).write_bytes((whole.path / name).read_bytes())
    import h2htalk.curation.review.gold_check as module

    def stopping(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "gate", stopping)
    with pytest.raises(KeyboardInterrupt):
        run(spec, workspace)
    monkeypatch.undo()
    before = asked(workspace, "part-gold")
    assert len(before) == 60
    run(spec, workspace)
    assert asked(workspace, "part-gold") == before
    assert all_bytes(workspace.stage("review")) == all_bytes(whole.stage("review"))


def test_gold_whose_calls_fail_stops_the_stage_before_anything_is_compared(tmp_path: Path) -> None:
    spec, workspace = gated(tmp_path, gold_lines(10), 10)
    path = tmp_path / "replies.jsonl"
    failing = {"id": "gold:g3/pair-1-2/ab", "failure": {"reason": "timeout", "message": "never answered"}}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [line for line in lines if line["id"] != failing["id"]]
    path.write_text("".join(json.dumps(line) + "\n" for line in [*kept, {**failing, "sample": 0}]))
    with pytest.raises(Incomplete, match=r"review\.gold: .* of part-gold failed"):
        run(spec, workspace)
    assert asked(workspace, "part-00000") == []


# --- The file -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"better": "first"}, "better: Input should be 'a', 'b' or 'tie'"),
        ({"a": " "}, "a: String should match"),
        ({"b": 3}, "b: Input should be a valid string"),
        ({"b": LINE["a"]}, "the same text"),
        ({"language": "fr"}, "language is 'fr'"),
        ({"subtask": "itinerary_basic"}, "a prompt alone is no itinerary_basic; give its inputs"),
        ({"subtask": "chatting"}, "chatting"),
        ({"inputs": {}}, "give prompt or inputs, one of them"),
        ({"prompt": None}, "give prompt or inputs, one of them"),
        ({"id": " g "}, "id must be printable"),
        ({"risk": "some"}, "tags.risk is 'some'"),
        ({"winner": "a"}, "winner: Extra inputs are not permitted"),
    ],
)
def test_a_line_that_is_no_comparison_is_named_before_anything_is_asked(
    tmp_path: Path, changes: dict[str, object], told: str
) -> None:
    spec, workspace = gated(tmp_path, [{**LINE, "id": "g0"}], 1)
    write_gold(tmp_path / "gold.jsonl", [{**LINE, "id": "g0"}, {**LINE, **changes}])
    with pytest.raises(DataError, match=r"gold\.jsonl:2: ") as raised:
        make_stage(spec, workspace, workspace.open_key())
    assert told in str(raised.value)
    assert not workspace.stage("review").path.exists()


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("", ConfigError, "holds no comparison with a better answer"),
        (
            json.dumps({**LINE, "better": "tie"}) + "\n",
            ConfigError,
            "holds no comparison with a better answer",
        ),
        (json.dumps(LINE) + "\n" + json.dumps(LINE) + "\n", DataError, ":2: the id 'g1' is there twice"),
        (json.dumps(LINE)[:-5], DataError, ":1: broken JSON"),
    ],
)
def test_a_file_that_no_reviewer_could_pass(
    tmp_path: Path, text: str, error: type[Exception], told: str
) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(text)
    with pytest.raises(error, match=told):
        read_gold(path)


def test_a_subtask_with_inputs_of_its_own(tmp_path: Path) -> None:
    line = {key: value for key, value in LINE.items() if key != "prompt"}
    line |= {
        "subtask": "itinerary_basic",
        "inputs": {"hobbies": ["kites"], "memories": ["The user has a cat."]},
    }
    write_gold(tmp_path / "gold.jsonl", [line])
    (found,) = read_gold(tmp_path / "gold.jsonl").candidates
    assert (found.id, len(found.references)) == ("gold:g1", 2)


@pytest.mark.parametrize(("wins", "ties"), [(4, 0), (20, 10)])
def test_gold_that_the_best_would_pass_is_taken(tmp_path: Path, wins: int, ties: int) -> None:
    lines = gold_lines(wins) + [{**LINE, "id": f"t{n}", "better": "tie"} for n in range(ties)]
    require_reachable(read_gold(Path(write_gold(tmp_path / "gold.jsonl", lines))))


@pytest.mark.parametrize(("wins", "ties"), [(3, 0), (1, 29)])
def test_gold_that_nobody_could_pass_is_refused_before_the_first_stage(
    tmp_path: Path, wins: int, ties: int
) -> None:
    """It was asked for, paid for, and refused every reviewer."""
    write_gold(
        tmp_path / "gold.jsonl",
        gold_lines(wins) + [{**LINE, "id": f"t{n}", "better": "tie"} for n in range(ties)],
    )
    (tmp_path / "curate.toml").write_text(SPEC)
    (tmp_path / "reviewer.jsonl").write_text('{"id": "*", "text": "x"}\n')
    told = f"all {wins + ties} comparisons right would be refused .*; {ties} of them are ties: give more"
    with pytest.raises(ConfigError, match=told):
        curate(tmp_path / "curate.toml")
    assert not (tmp_path / "work" / "01-gathered").exists()
