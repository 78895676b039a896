"""The eleven subtasks are Table 1's, in Table 2's order."""

from __future__ import annotations

import pytest

from h2htalk.data.languages import RECORDS
from h2htalk.data.subtasks import DIMENSIONS, MEMORY_CATEGORIES, SUBTASKS, TOTAL_COUNT, find_subtask, in_table_order
from h2htalk.errors import DataError

TABLE_1 = {
    "dialogue_base": 1882,
    "dialogue_emotion": 99,
    "dialogue_schedule": 533,
    "itinerary_basic": 207,
    "itinerary_middle": 444,
    "itinerary_advanced": 143,
    "itinerary_response": 163,
    "itinerary_initialization": 76,
    "recollection_synthesis": 412,
    "recollection_refinement": 589,
    "recollection_initialization": 102,
}


def test_the_counts_are_those_of_table_1() -> None:
    assert {name: subtask.count for name, subtask in SUBTASKS.items()} == TABLE_1
    assert TOTAL_COUNT == 4650


def test_the_order_is_that_of_table_2() -> None:
    columns = {name: [s.column for s in SUBTASKS.values() if s.dimension == name] for name in DIMENSIONS}
    assert columns == {
        "dialogue": ["Standard", "Emotional", "Schedule"],
        "itinerary": ["Basic", "Middle", "Advanced", "Response", "Initiation"],
        "recollection": ["Synthesis", "Refinement", "Initialization"],
    }
    assert in_table_order(reversed(SUBTASKS)) == list(SUBTASKS)
    assert SUBTASKS["recollection_initialization"].title == "RecollectionInitialization"


def test_a_judge_scores_three_levels_of_itineraries() -> None:
    assert {s.name: s.level for s in SUBTASKS.values() if s.level} == {
        "itinerary_basic": "I",
        "itinerary_middle": "II",
        "itinerary_advanced": "III",
    }


def test_the_memory_vocabulary_has_24_categories_and_a_null_line_a_language() -> None:
    for record in RECORDS.values():
        assert len(record.memory_categories) == len(set(record.memory_categories)) == 24
    assert RECORDS["en"].memory_categories == MEMORY_CATEGORIES
    nulls = {language: record.null_memory for language, record in RECORDS.items()}
    assert nulls == {"en": "No key information extracted.", "zh": "未提取到关键信息。"}


@pytest.mark.parametrize("name", ["Dialogue_Base", None, ["dialogue_base"]])
def test_an_unknown_subtask_is_an_error_that_lists_the_eleven(name: object) -> None:
    with pytest.raises(DataError, match=r"split\.jsonl:4: unknown subtask") as raised:
        find_subtask(name, "split.jsonl:4")  # type: ignore[arg-type]
    assert all(known in str(raised.value) for known in SUBTASKS)
