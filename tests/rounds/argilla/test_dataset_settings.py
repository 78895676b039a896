"""Names, questions and records for an Argilla server, and differences between datasets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.rounds.argilla.datasets import (
    MAX_DESCRIPTION,
    MAX_TITLE,
    PAGE_TEXTS,
    inert_json,
    page,
    plain_name,
    question_for,
    record_ids,
)
from h2htalk.rounds.argilla.record_publishing import batches
from h2htalk.rounds.questions import QUESTIONS, Kind
from h2htalk.rounds.texts.interface import interface_text


@given(st.text(min_size=1))
def test_plain_names(name: str) -> None:
    plain = plain_name(name)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", plain)
    assert plain_name(plain) == plain


def test_plain_names_are_distinct() -> None:
    assert plain_name("crowd") == "crowd"
    assert len({plain_name(name) for name in ("a b", "a.b", "a-b", "第一轮", "第二轮")}) == 5


def test_record_ids_do_not_reveal_items() -> None:
    names = ["mini-en-recollection-refinement-01", "第一", "item-001#subtask"]
    found = record_ids(names, b"salt")
    assert list(found.values()) == names
    assert found.keys().isdisjoint(record_ids(names, b"another"))


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_inert_json_is_safe_in_scripts(value: Any) -> None:
    text = inert_json(value)
    assert json.loads(text) == value
    # The page inserts it into a script as a JSON string, by a replacement in which `$` has a meaning.
    assert not re.search(r"[<>&$#'`\u2028\u2029]", json.dumps(text, ensure_ascii=False))


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_has_its_texts_and_nothing_that_argilla_replaces(language: Language) -> None:
    html = page(language)
    assert "WORDS" not in html
    assert "LANGUAGE" not in html
    assert not re.search(r"\$|#TEMPLATE#|#RECORD_OBJECT#|https?:", html)
    for name in PAGE_TEXTS:
        assert inert_json(interface_text(name, language))[1:-1] in html


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_questions_respect_the_server_s_limits(kind: Kind, language: Language) -> None:
    for question in QUESTIONS[kind]:
        made = question_for(question, language)
        assert 0 < len(made["title"]) <= MAX_TITLE
        assert 0 < len(made["description"]) <= MAX_DESCRIPTION
        # The page cannot require an answer conditionally.
        assert made["required"] == (question.required and question.name != "violations")
        options = [option["value"] for option in made["settings"].get("options") or ()]
        assert options == list(question.labels or question.ratings)
        assert question.name not in made["title"] + made["description"] or question.name.isalpha()


def test_batches_have_a_limited_size() -> None:
    small = [{"fields": {"item": {"data": "x"}}}] * 450
    assert [len(batch) for batch in batches(small)] == [200, 200, 50]
    large = [{"fields": {"item": {"data": "x" * 3_000_000}}}] * 3
    assert [len(batch) for batch in batches(large)] == [1, 1, 1]
    assert list(batches([])) == []
