"""Which items still want answers, by hand-made votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from spreadsheet_rounds import item

from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.assignment.remaining_annotations import initial_requests, is_pilot, remaining_requests
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS
from h2htalk.rounds.settings import Adaptive, RoundSpec

CROWD = RoundSpec("crowd", "items.jsonl", overlap=2)
PANEL = [Annotator(f"v{n}", f"v{n}", ("en",)) for n in range(6)]


def wanted(
    spec: RoundSpec,
    said: Mapping[str, Sequence[tuple[str, str]]],
    gold: Sequence[str] = (),
    *,
    ties: bool = False,
) -> dict[str, int]:
    """What is wanted after votes on subtask and keep: item -> of each annotator (subtask, keep)."""
    items = [
        replace(Item.from_dict(item(n)), id=name, gold={"keep": "keep"} if name in gold else {})
        for n, name in enumerate(said)
    ]
    answers = {
        (name, f"v{n}", question): Annotation("r", name, f"v{n}", question, value, "2026-01-01T00:00:00Z")
        for name, votes in said.items()
        for n, (subtask, keep) in enumerate(votes)
        for question, value in (("subtask", subtask), ("keep", keep), ("quality", 4))
    }
    return remaining_requests(spec, items, QUESTIONS["crowd"], answers, PANEL, ties=ties)


SPLIT = [("none", "keep"), ("none", "drop")]


def test_a_tie_wants_one_answer_more_and_a_tie_of_a_gold_item_none() -> None:
    """A gold item decides nothing."""
    said = {"plain": SPLIT, "gold": SPLIT}
    assert wanted(CROWD, said, gold=["gold"], ties=True) == {"plain": 1}
    assert wanted(CROWD, said, gold=["gold"]) == {}


def test_a_tie_that_is_short_of_answers_wants_all_of_them() -> None:
    assert wanted(replace(CROWD, overlap=5), {"a": SPLIT}, ties=True) == {"a": 3}


def test_an_adaptive_round_asks_on_until_every_question_is_clear() -> None:
    """The last question alone decided how many answers were asked for."""
    adaptive = replace(CROWD, overlap=6, adaptive=Adaptive(on=True, minimum=2, lead=2))
    unclear = {
        "first": [("none", "keep"), ("dialogue_base", "keep")],
        "last": SPLIT,
        "neither": [("none", "keep")] * 2,
        "new": [],
    }
    assert wanted(adaptive, unclear) == {"first": 2, "last": 2, "new": 2}


def test_an_adaptive_round_asks_at_first_for_what_can_make_an_item_clear() -> None:
    """Three were asked for, which can never lead by four: every item had to be handed out twice."""
    some = [Item.from_dict(item(n)) for n in range(2)]
    for changes, first in (
        ({}, 4), ({"lead": 3}, 3), ({"minimum": 5}, 5), ({"lead": 30}, 6),
        ({"confidence": 0.95}, 4), ({"confidence": 0.9, "accuracy": 0.9}, 3), ({"confidence": 0.999}, 6),
    ):  # fmt: skip
        spec = replace(CROWD, overlap=6, adaptive=Adaptive(on=True, **changes))
        assert initial_requests(spec, some, []) == {"en-item-0": first, "en-item-1": first}, changes


def test_an_adaptive_round_may_go_by_how_probable_a_label_is() -> None:
    """With two labels and annotators right 7 times in 10, 0.95 is a lead of 4; with twelve labels, less of one."""
    adaptive = replace(CROWD, overlap=9, adaptive=Adaptive(on=True, minimum=2, confidence=0.95))
    said = {
        "clear": [("none", "keep")] * 4,
        "nearly": [("none", "keep")] * 3,
        "kept": [("none", "keep")] * 2 + [("dialogue_base", "keep")] * 2,
    }
    assert wanted(adaptive, said) == {"nearly": 1, "kept": 1}


def test_an_adaptive_round_of_gold_items_is_no_pilot_that_everybody_answers() -> None:
    golden = [Item.from_dict(item(0, gold={"keep": "keep"}))]
    adaptive = replace(CROWD, overlap=0, adaptive=Adaptive(on=True))
    assert is_pilot(replace(CROWD, overlap=0), golden)
    assert not is_pilot(adaptive, golden)
    assert not is_pilot(CROWD, golden)
    assert wanted(adaptive, {"a": []}, gold=["a"]) == {"a": 4}
    assert wanted(replace(CROWD, overlap=0), {"a": []}, gold=["a"]) == {"a": 6}
