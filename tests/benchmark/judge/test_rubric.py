"""What a judge is asked, and how its replies are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from judged_made import verdict

from h2htalk.benchmark.judge.rubric import (
    PLAN_QUALITIES,
    load_prompts,
    points_of,
    prompt_writer,
    qualities_of,
    rubric_of,
)
from h2htalk.chat.protocol import Reply
from h2htalk.data.responses import Failure
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError
from h2htalk.text.fences import Fence

FENCE = Fence.of(b"secret", "item/0/hash", 0)


def edited(change: Callable[[dict[str, Any]], object]) -> str:
    reply = json.loads(verdict(3))
    change(reply)
    return json.dumps(reply)


@pytest.mark.parametrize("subtask", SUBTASKS)
@pytest.mark.parametrize("reverse", [False, True])
def test_the_example_in_the_prompt_can_be_read(subtask: str, reverse: bool) -> None:
    judgement = rubric_of(subtask, reverse).read(Reply(rubric_of(subtask, reverse).example()))
    assert judgement.rating == 3
    assert set(judgement.scores) == set(qualities_of(subtask))
    assert tuple(judgement.points) == points_of(subtask)


def test_the_rating_is_the_plain_mean_of_the_qualities_and_reasoning_is_left_out() -> None:
    reply = Reply(f"<think>{verdict(0)}</think>\n{verdict(4, personality_authenticity=0, plan_feasibility=5)}")
    assert rubric_of("itinerary_basic").read(reply).rating == pytest.approx((0 + 5 + 4 * 4) / 6)


def test_what_is_wrong_is_said_of_the_field() -> None:
    """It said `Expecting value: line 1 column 1 (char 0)`."""
    message = rubric_of("itinerary_basic").read(Reply(verdict(3)[:150])).message
    assert message.startswith("form judgement: emotional_expressiveness: the JSON breaks off or is broken there: ")


BAD = {
    "a quality is missing": (edited(lambda r: r.pop("plan_feasibility")), "malformed_output"),
    "a point is missing": (edited(lambda r: r.pop("planning_fragmentation")), "malformed_output"),
    "a key too many inside": (edited(lambda r: r["plan_feasibility"].update(weight=2)), "malformed_output"),
    "above the scale": (edited(lambda r: r["plan_feasibility"].update(score=6)), "out_of_range"),
    "below the scale": (edited(lambda r: r["plan_feasibility"].update(score=-1)), "out_of_range"),
    "a score in words": (edited(lambda r: r["plan_feasibility"].update(score="5")), "malformed_output"),
    "half a score": (edited(lambda r: r["plan_feasibility"].update(score=4.5)), "malformed_output"),
    "true as a score": (edited(lambda r: r["plan_feasibility"].update(score=True)), "malformed_output"),
    "no evidence": (edited(lambda r: r["plan_feasibility"].update(evidence="")), "out_of_range"),
    "not a number": (verdict(3).replace('"score": 3', '"score": NaN', 1), "malformed_output"),
    "two verdicts": (verdict(5) + "\n" + verdict(0), "malformed_output"),
    "one key twice": (
        verdict(5).replace("{", '{"immersive_interaction": {"evidence": "x", "score": 5}, ', 1),
        "malformed_output",
    ),
    "in two code blocks": ("```json\n" + verdict(3) + "\n```\n" * 2, "malformed_output"),
    "text before it": ("Here is my verdict: " + verdict(3), "malformed_output"),
    "a list": ("[" + verdict(3) + "]", "malformed_output"),
    "prose": ("I give it 4 of 5.", "malformed_output"),
    "nothing": ("", "malformed_output"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_reply_that_is_not_exactly_the_form_is_unscored(case: str) -> None:
    text, reason = BAD[case]
    judgement = rubric_of("itinerary_basic").read(Reply(text))
    assert (judgement.rating, judgement.points, judgement.unscored) == (None, {}, reason)


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(verdict(3), "length"), "truncated"),
        (Reply(verdict(3)[:90], "length"), "truncated"),
        (Reply(verdict(3), "refusal"), "refusal"),
        (Reply(verdict(3), "content_filter"), "refusal"),
        (Failure("timeout", "never answered"), "timeout"),
    ],
)
def test_a_reply_that_did_not_end_by_itself_is_unscored(reply: Reply | Failure, reason: str) -> None:
    assert rubric_of("itinerary_basic").read(reply).unscored == reason


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("subtask", SUBTASKS)
def test_a_prompt_anchors_its_qualities_and_fences_what_others_wrote(language: str, subtask: str) -> None:
    split = load_split("mini@1")
    scenario = next(s for s in split.scenarios if (s.subtask, s.language) == (subtask, language))
    (rules, material), (reverse, _) = (
        prompt_writer(load_prompts(), reverse)(scenario, split.personas[scenario.persona], "The answer.", FENCE)
        for reverse in (False, True)
    )
    first, last = (
        sorted(qualities_of(subtask), key=lambda n: text.index(f"\n{n}")) for text in (rules.content, reverse.content)
    )
    assert first == last[::-1]
    assert rules.shared == len(rules.content)
    for name in (*qualities_of(subtask), *points_of(subtask)):
        assert rules.content.count(f"\n{name}") == 1
    others = {*PLAN_QUALITIES} - {*qualities_of(subtask)}
    assert not any(f"\n{name}" in rules.content for name in others)
    assert rubric_of(subtask).example() in rules.content
    assert FENCE.marker not in rules.content
    assert material.content.count(FENCE.marker) == 6  # persona, material and answer


def test_own_templates_replace_bundled_ones_by_name(tmp_path: Any) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "judge_item.j2").write_text("{{ answer }} END")
    prompts = load_prompts(tmp_path)
    assert prompts.render("en/judge_item.j2", {"answer": "a"}) == "a END"
    (tmp_path / "en" / "judgeitem.j2").write_text("x")
    with pytest.raises(ConfigError, match="no judge prompt has this name"):
        load_prompts(tmp_path)
