"""A dialogue is a conversation between a user and a companion; a wrong one is refused with its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases_made import case

from h2htalk.data.case import Case
from h2htalk.data.files import json_line
from h2htalk.data.scenario import Dialogue
from h2htalk.errors import DataError

RECORD: dict[str, Any] = {
    "id": "d-1",
    "language": "en",
    "messages": [{"role": "user", "content": "Hi."}, {"role": "companion", "content": "Hello you."}],
}
SPOKEN = st.text(min_size=1).filter(str.strip)


@given(
    turns=st.lists(st.tuples(st.sampled_from(["user", "companion"]), SPOKEN), min_size=1),
    metadata=st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text()),
)
def test_a_dialogue_survives_its_own_dict(turns: list[tuple[str, str]], metadata: dict[str, Any]) -> None:
    messages = [{"role": role, "content": content} for role, content in turns]
    dialogue = Dialogue.from_dict({**RECORD, "messages": messages, "metadata": metadata})
    assert dialogue.to_dict()["messages"] == messages
    assert Dialogue.from_dict(dialogue.to_dict()) == dialogue


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 7}, "id: must be text, not 7"),
        # Two ids that look the same were two items, and an answer to one left the other unscored.
        ({"id": "d-1 "}, "without white space around it; it is 'd-1 '"),
        ({"id": "cafe\u0301"}, "Unicode's form NFC, not empty, without white space around it; it is 'cafe\\u0301'"),
        ({"messages": [*RECORD["messages"], {"role": "user"}]}, "messages.3.content: is missing"),
        ({"metadata": {"x": [b"y"]}}, "metadata: x.1: holds a bytes, which JSON cannot; write text instead"),
        ({"metadata": {"x": {3: "y"}}}, "metadata: x: holds a key that is not text"),
    ],
)
def test_a_wrong_field_is_named_with_its_place(change: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=r"^raw\.jsonl:3") as raised:
        Dialogue.from_dict({**RECORD, **change}, "raw.jsonl:3")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("made", [Dialogue.from_dict(RECORD), case(1)])
def test_infinity_in_an_open_field_is_an_error_where_it_is_written(made: Dialogue | Case) -> None:
    """It was written as null."""
    with pytest.raises(DataError, match="holds NaN or infinity"):
        json_line(replace(made, provenance={"x": float("inf")}).to_dict())
