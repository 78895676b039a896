"""Items."""

from __future__ import annotations

from typing import Any

import pytest

from h2htalk.data.scenario import Turn
from h2htalk.errors import DataError
from h2htalk.rounds.items import MAX_TEXT, Item, check_values
from h2htalk.rounds.questions import QUESTIONS

WHOLE: dict[str, Any] = {
    "id": "a-1",
    "language": "zh",
    "prompt": [{"role": "user", "content": "你好"}, {"role": "companion", "content": "嗯"}],
    "context": {"memories": "likes rain"},
    "response": "r",
    "reference": "p",
    "labels": ["keep", "drop"],
    "crisis": True,
    "subtask": "dialogue_base",
    "gold": {"keep": "keep"},
    "suggested": {"quality": 4},
    "note": "n",
}


def test_items_as_json() -> None:
    item = Item.from_dict(WHOLE)
    assert item.to_dict() == WHOLE
    assert Item.from_dict({"id": "a", "language": "en", "prompt": "hi"}) == Item("a", "en", (Turn("user", "hi"),))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": []}, None),
        ({"prompt": None, "context": {}}, "prompt is missing"),
        ({"prompt": 3}, "prompt: must be a list"),
        ({"prompt": [{"role": "system", "content": "x"}]}, "prompt.1.role: must be 'user'"),
        ({"prompt": "x" * (MAX_TEXT + 1)}, "the maximum is"),
        ({"prompt": "a\0b"}, "null character"),
        ({"response": "half \ud800"}, "lone surrogate"),
        ({"labels": ["keep", "keep"]}, "a label twice"),
        ({"labels": ["keep\n"]}, "is invalid; use printable text"),
        ({"gold": {"keep": 1.5}}, "gold.keep: must be text or a whole number or a list, not 1.5"),
    ],
)
def test_invalid_items(changed: dict[str, Any], message: str | None) -> None:
    if message is None:  # the context holds the text
        assert Item.from_dict(WHOLE | changed).turns == ()
        return
    with pytest.raises(DataError, match=message):
        Item.from_dict(WHOLE | changed, "items.jsonl:1")


def test_gold_and_suggested_answers_must_be_valid() -> None:
    item = Item.from_dict(WHOLE)
    assert check_values(item, QUESTIONS["crowd"]) is item
    for changed, says in (
        ({"gold": {"kept": "keep"}}, "gold: unknown question 'kept'"),
        ({"gold": {"keep": "perhaps"}}, "gold: 'perhaps' is not valid for keep"),
        ({"suggested": {"quality": 9}}, "suggested: 9 is not valid for quality"),
    ):
        with pytest.raises(DataError, match=says):
            check_values(Item.from_dict(WHOLE | changed), QUESTIONS["crowd"])
