"""Names, questions and records as an Argilla server takes them, and what tells one dataset from another."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.dataset_settings import (
    MAX_DESCRIPTION,
    MAX_TITLE,
    plain_name,
    question_for,
)
from h2htalk.rounds.argilla.discards import items_to_discard
from h2htalk.rounds.argilla.record_page import PAGE_TEXTS, inert_json, page
from h2htalk.rounds.argilla.records import batches, record_id, record_ids
from h2htalk.rounds.argilla.settings_diff import differences, missing_parts, texts_fingerprint
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import QUESTIONS, Kind
from h2htalk.rounds.texts.interface import interface_text

pytest.importorskip("argilla")

CLIENT = SimpleNamespace(api=SimpleNamespace(questions=None))


@given(st.text(min_size=1))
def test_every_name_becomes_a_plain_one_that_stays_itself(name: str) -> None:
    plain = plain_name(name)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", plain)
    assert plain_name(plain) == plain


def test_names_that_look_alike_stay_apart() -> None:
    assert plain_name("crowd") == "crowd"
    assert len({plain_name(name) for name in ("a b", "a.b", "a-b", "第一轮", "第二轮")}) == 5


@given(st.text(min_size=1))
def test_a_records_id_is_one_that_the_page_may_paste(item: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", record_id(item, b"salt"))


def test_a_records_id_tells_nothing_of_the_items_and_leads_back_to_it() -> None:
    names = ["mini-en-recollection-refinement-01", "第一", "item-001#subtask"]
    found = record_ids(names, b"salt")
    assert list(found.values()) == names
    assert found.keys().isdisjoint(record_ids(names, b"another"))


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_inert_json_is_the_same_value_and_acts_nowhere(value: Any) -> None:
    text = inert_json(value)
    assert json.loads(text) == value
    # The page writes it into a script once more as a JSON text, by a replacement in which `$` is a command.
    assert not re.search(r"[<>&$#'`\u2028\u2029]", json.dumps(text, ensure_ascii=False))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_has_its_words_and_nothing_that_argilla_would_replace(language: Language) -> None:
    html = page(language)
    assert "WORDS" not in html
    assert "LANGUAGE" not in html
    assert not re.search(r"\$|#TEMPLATE#|#RECORD_OBJECT#|https?:", html)
    for name in PAGE_TEXTS:
        assert inert_json(interface_text(name, language))[1:-1] in html


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_every_question_fits_the_server(kind: Kind, language: Language) -> None:
    for question in QUESTIONS[kind]:
        made = question_for(CLIENT, question, language).serialize()
        assert 0 < len(made["title"]) <= MAX_TITLE
        assert 0 < len(made["description"]) <= MAX_DESCRIPTION
        # The page asks for it always or never: a kind is wanted only of a violation.
        assert made["required"] == (question.required and question.name != "violations")
        options = [option["value"] for option in made["settings"].get("options") or ()]
        assert options == list(question.labels or question.ratings)
        assert question.name not in made["title"] + made["description"] or question.name.isalpha()


def settings(**changes: Any) -> dict[str, Any]:
    question = {"name": "keep", "required": True, "title": "Keep?",
                "settings": {"type": "label_selection", "options": [{"value": "keep"}, {"value": "drop"}]}}  # fmt: skip
    found = {
        "guidelines": "Read.",
        "distribution": {"min_submitted": 3},
        "allow_extra_metadata": False,
        "fields": [{"name": "item", "required": True, "settings": {"type": "custom", "template": "x"}}],
        "questions": [question],
        "metadata": [{"name": "assignment_set", "settings": {"type": "integer"}}],
    }
    return found | changes


def test_other_questions_are_a_difference_and_so_is_what_was_added() -> None:
    """`mm is terms, not not there` was what a property that somebody had added came to."""
    assert differences(settings(questions=[]), settings()) == [
        "questions: keep is missing; it was label_selection of keep, drop (required)"
    ]
    optional = settings(questions=[{**settings()["questions"][0], "required": False}])
    assert "keep, drop (optional), not" in differences(optional, settings())[0]
    assert differences(settings(allow_extra_metadata=True), settings()) == ["metadata of any name is allowed"]
    more = settings(metadata=[*settings()["metadata"], {"name": "mm", "settings": {"type": "terms"}}])
    assert differences(more, settings()) == ["metadata: mm was added, terms"]


def reworded(**changes: Any) -> dict[str, Any]:
    return settings(questions=[{**settings()["questions"][0], **changes}])


def test_other_words_are_a_difference_unless_they_are_those_that_went_out() -> None:
    """Two labels whose texts were swapped on the server turned every answer round, and nobody was told."""
    swapped = [{"value": "keep", "text": "Drop it"}, {"value": "drop", "text": "Keep it"}]
    proper = [{"value": "keep", "text": "Keep it"}, {"value": "drop", "text": "Drop it"}]
    there, asked = (
        reworded(settings={"type": "label_selection", "options": one}) for one in (swapped, proper)
    )
    assert differences(there, asked) == ["questions: keep has another label of drop, label of keep"]
    assert differences(there, asked, texts_fingerprint(asked)) != []
    # A later release of ours asks in other words than the open round was put out in.
    assert differences(there, asked, texts_fingerprint(there)) == []
    assert differences(reworded(title="Drop?"), settings()) == ["questions: keep has another title"]
    helped = reworded(description="Say drop.")
    assert differences(helped, settings()) == ["questions: keep has another description"]
    page = {"name": "item", "required": True, "settings": {"type": "custom", "template": "nothing"}}
    assert differences(settings(fields=[page]), settings()) == ["fields: item has another page"]


def test_a_choice_that_is_gone_is_told_once() -> None:
    short = reworded(settings={"type": "label_selection", "options": [{"value": "keep"}]})
    labelled = reworded(settings={"type": "label_selection", "options": [
        {"value": "keep"}, {"value": "drop", "text": "Drop it"}]})  # fmt: skip
    assert differences(short, labelled) == [
        "questions: keep is label_selection of keep (required), not label_selection of keep, drop (required)"
    ]


def test_a_half_made_dataset_lacks_what_it_lacks() -> None:
    lacking = missing_parts(settings(questions=[], metadata=[]), settings())
    assert {kind: [one["name"] for one in parts] for kind, parts in lacking.items()} == {
        "fields": [],
        "questions": ["keep"],
        "metadata": ["assignment_set"],
    }


def test_who_is_spared_what() -> None:
    hard = Item("hard", "en", (Turn("user", "hi"),), crisis=True)
    plain = Item("plain", "en", (Turn("user", "hi"),))
    annotators = [Annotator("1", "one", ("en",)), Annotator("2", "two", ("en",), crisis=False),
        Annotator("3", "three", ("zh",)),
              Annotator("4", "four", ("en", "zh"), active=False)]  # fmt: skip
    spared = items_to_discard([hard, plain], annotators, {("plain", "1")})
    assert spared == {"hard": {"2", "3", "4"}, "plain": {"1", "3", "4"}}


def test_requests_stay_of_a_size_that_a_server_takes() -> None:
    small = [{"fields": {"item": {"data": "x"}}}] * 450
    assert [len(batch) for batch in batches(small)] == [200, 200, 50]
    large = [{"fields": {"item": {"data": "x" * 3_000_000}}}] * 3
    assert [len(batch) for batch in batches(large)] == [1, 1, 1]
    assert list(batches([])) == []
