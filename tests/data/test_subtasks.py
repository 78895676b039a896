"""The eleven subtasks are Table 1's, in Table 2's order; the table of languages."""

from __future__ import annotations

import pytest

from h2htalk.data.languages import RECORDS, find_language
from h2htalk.data.subtasks import DIMENSIONS, MEMORY_CATEGORIES, SUBTASKS, TOTAL_COUNT, find_subtask, in_table_order
from h2htalk.errors import ConfigError, DataError
from h2htalk.text.tokens import TOKENIZERS


def test_counts_and_levels_are_those_of_table_1() -> None:
    assert [(s.column, s.count, s.level or "") for s in SUBTASKS.values()] == [
        *(("Standard", 1882, ""), ("Emotional", 99, ""), ("Schedule", 533, "")),
        *(("Basic", 207, "I"), ("Middle", 444, "II"), ("Advanced", 143, "III")),
        *(("Response", 163, ""), ("Initiation", 76, "")),
        *(("Synthesis", 412, ""), ("Refinement", 589, ""), ("Initialization", 102, "")),
    ]
    assert TOTAL_COUNT == 4650
    assert {s.dimension for s in SUBTASKS.values()} == set(DIMENSIONS)
    assert in_table_order(reversed(SUBTASKS)) == list(SUBTASKS)
    assert SUBTASKS["recollection_initialization"].title == "RecollectionInitialization"


def test_the_memory_vocabulary_has_24_categories_and_a_null_line_a_language() -> None:
    for record in RECORDS.values():
        assert len(record.memory_categories) == len(set(record.memory_categories)) == 24
    assert RECORDS["en"].memory_categories == MEMORY_CATEGORIES
    nulls = {language: record.null_memory for language, record in RECORDS.items()}
    assert nulls == {"en": "No key information extracted.", "zh": "未提取到关键信息。"}


def test_an_unknown_subtask_is_an_error_that_lists_the_eleven() -> None:
    with pytest.raises(DataError, match=r"split\.jsonl:4: unknown subtask") as raised:
        find_subtask("Dialogue_Base", "split.jsonl:4")
    assert all(known in str(raised.value) for known in SUBTASKS)


def test_an_unknown_language_is_an_error_and_every_language_names_a_tokenizer() -> None:
    with pytest.raises(ConfigError, match="no language 'fr'; choose from en, zh"):
        find_language("fr")
    assert {record.tokenizer for record in RECORDS.values()} == set(TOKENIZERS)
