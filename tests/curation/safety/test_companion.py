"""The companion's turns in their context: harm and sexual content are removed, tagged or left to people."""

from __future__ import annotations

import pytest
from safety_made import talk
from tables import table

from h2htalk.curation.safety.companion import EXPLICIT, HARM, LAYER
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.curation.safety.policy import Explicit, Safety, Verdict, apply_verdict, decide_safety
from h2htalk.curation.safety.stage import assess, outcome
from h2htalk.curation.stage_folder import Kept, Rejected
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Scenario, noted_tags
from h2htalk.data.splits import load_split
from h2htalk.rounds.item_sources import scenario_item

THRESHOLDS = {"low": 0.3, "high": 0.9, "single": 0.95, "masked": 0.9, "doubt": 0.5}


@pytest.mark.parametrize(("language", "said", "answer", "code"), table("curation", "answers_in_context"))
def test_an_answer_is_read_in_its_context(language: Language, said: str, answer: str, code: str | None) -> None:
    found = assess(talk(said, answer, language=language))
    assert found.action in (("remove", "review") if code else ("keep", "keep_tag"))
    if code:
        assert code in found.reasons
        at = next(one for one in found.evidence if one.layer == LAYER and one.category == code)
        assert at.turn == 1
        assert 0 <= at.start < at.end <= len(answer)


def test_what_surrounds_an_answer_hides_nothing() -> None:
    """Only the last 400 characters were read, so that harm passed once a user had gone on about ordinary things."""
    tail = " The rent is due on Friday, my sister has a new cat, and it has rained here for a whole week." * 6
    found = assess(talk("I have decided to end my life tonight." + tail, "Then take enough of them, it will be over."))
    assert (found.action, HARM in found.reasons) == ("review", True)
    # "Don't jump" was removed in Chinese: it differs from "jump" in one character.
    found = assess(talk("我站在桥上，不想活了。我该跳下去吗？", "别跳。", language="zh"))
    assert found.action == "review"


CRISIS = Evidence("crisis", "crisis.ideation", 0.9, turn=0)
CHILD = Evidence("crisis", "minor", 0.9, turn=0)


@pytest.mark.parametrize(
    ("scores", "explicit", "extra", "wanted"),
    [
        (((HARM, 0.9),), "remove", (CRISIS,), ("remove", (HARM, "crisis.ideation"))),
        (((HARM, 0.6),), "remove", (CRISIS,), ("review", (HARM, "crisis.ideation"))),
        (((HARM, 0.4),), "remove", (CRISIS,), ("keep_tag", ("crisis.ideation",))),
        (((EXPLICIT, 0.9),), "remove", (), ("remove", (EXPLICIT,))),
        (((EXPLICIT, 0.9),), "tag", (), ("keep_tag", (EXPLICIT,))),
        (((EXPLICIT, 0.9),), "remove", (CRISIS,), ("review", ("crisis.ideation", EXPLICIT))),
        # Likely sexual content with a child was stored for people to read, and in English went on with a tag.
        (((EXPLICIT, 0.6),), "tag", (CHILD,), ("remove", ("minor", "sexual.minors"))),
        # Sure sexual content with a child was left to people, with an adult it was removed.
        (((EXPLICIT, 1.0),), "remove", (CHILD,), ("remove", ("minor", "sexual.minors"))),
        (((EXPLICIT, 0.8),), "tag", (CHILD, CRISIS), ("remove", ("crisis.ideation", "minor", "sexual.minors"))),
    ],
)
def test_decisions(
    scores: tuple[tuple[str, float], ...],
    explicit: Explicit,
    extra: tuple[Evidence, ...],
    wanted: tuple[str, tuple[str, ...]],
) -> None:
    evidence = [*(Evidence(LAYER, code, score, turn=1) for code, score in scores), *extra]
    found = decide_safety(talk("a b c d", "e f g h"), evidence, THRESHOLDS, explicit)
    assert (found.action, set(found.reasons)) == (wanted[0], set(wanted[1]))


@pytest.mark.parametrize("code", [HARM, EXPLICIT])
def test_no_text_is_stored_of_what_a_companion_did_to_a_minor(code: str) -> None:
    """The text of a minor whose companion does harm was stored among the rejected."""
    dialogue = talk("a b c d", "e f g h")
    for extra, stored in (((CHILD,), {}), ((), dialogue.to_dict())):
        found = outcome(dialogue, decide_safety(dialogue, [Evidence(LAYER, code, 0.9, turn=1), *extra], THRESHOLDS))
        assert isinstance(found, Rejected)
        assert (found.record or {}) == stored
        assert ("evidence" in found.evidence) == bool(stored)


SEXUAL = Evidence(LAYER, EXPLICIT, 0.9, turn=1)


@pytest.mark.parametrize(
    ("verdict", "codes", "extra", "wanted"),
    [
        ("safe", (), (), ("keep_tag", {EXPLICIT})),
        ("unsafe", (EXPLICIT,), (), ("keep_tag", {EXPLICIT})),
        ("unsafe", (EXPLICIT,), (CRISIS,), ("keep_tag", {EXPLICIT, "crisis.ideation"})),
        ("unsafe", (EXPLICIT, "offensive.hate"), (), ("remove", {EXPLICIT, "offensive.hate"})),
        ("unsafe", ("sexual.minors",), (), ("remove", {EXPLICIT, "sexual.minors"})),
        ("safe", (), (Evidence(LAYER, HARM, 0.6, turn=1),), ("keep_tag", {EXPLICIT})),
        ("unsafe", (EXPLICIT,), (Evidence(LAYER, HARM, 0.6, turn=1),), ("review", {EXPLICIT, HARM})),
    ],
)
def test_a_guard_takes_no_sexual_tag(
    verdict: Safety, codes: tuple[str, ...], extra: tuple[Evidence, ...], wanted: tuple[str, set[str]]
) -> None:
    """With `explicit = "tag"`, a guard's `safe` took the tag away, and its `unsafe` removed the dialogue."""
    found = decide_safety(talk("a b c d", "e f g h"), [SEXUAL, *extra], THRESHOLDS, "tag")
    found = apply_verdict(found, Verdict(verdict, {code: code for code in codes}))
    assert (found.action, set(found.reasons)) == wanted


LONG = "x" * 5000


@pytest.mark.parametrize(
    ("texts", "one", "action"),
    [
        (("a", "b", *["c", "d"] * 20), Evidence(LAYER, HARM, 0.6, turn=1), "review"),
        (("a", "b", *["c", "d"] * 20), Evidence(LAYER, HARM, 0.6, turn=3), "keep"),
        (("a", LONG), Evidence(LAYER, EXPLICIT, 0.6, 4500, 4600, turn=1), "review"),
        (("a", LONG), Evidence(LAYER, EXPLICIT, 0.6, turn=1), "review"),
        (("a", LONG), Evidence(LAYER, EXPLICIT, 0.6, 10, 20, turn=1), "keep"),
    ],
)
def test_a_guard_clears_only_what_it_was_sent(texts: tuple[str, ...], one: Evidence, action: str) -> None:
    """A guard reads the last 40 messages; its `safe` cleared harm in a message before them."""
    dialogue = talk(*texts)
    found = outcome(dialogue, decide_safety(dialogue, [one], THRESHOLDS), Verdict("safe"))
    assert isinstance(found, Kept)
    assert found.record["metadata"]["safety"]["action"] == action


def test_annotators_are_told_of_sexual_content_and_need_consent() -> None:
    scenario = load_split("mini").scenarios[0]
    dialogue = talk("we're both 30, tell me what you want", "I want to fuck you all night, suck me off first.")
    kept = outcome(dialogue, assess(dialogue, explicit="tag"))
    assert isinstance(kept, Kept)
    metadata = kept.record["metadata"]
    assert noted_tags(metadata, "sexual.")
    item = scenario_item(Scenario.from_dict({**scenario.to_dict(), "metadata": metadata}, "x"))
    assert (item.explicit, item.crisis, item.notice) == (True, True, "explicit_notice")
    assert scenario_item(scenario).notice == "crisis_notice"
