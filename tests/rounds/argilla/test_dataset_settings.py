"""Names, questions and records for an Argilla server, and differences between datasets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla.dataset_settings import MAX_DESCRIPTION, MAX_TITLE, plain_name, question_for
from h2htalk.rounds.argilla.datasets import differences, texts_fingerprint
from h2htalk.rounds.argilla.record_publishing import batches, items_to_discard
from h2htalk.rounds.argilla.records import PAGE_TEXTS, inert_json, page, record_id, record_ids
from h2htalk.rounds.items import Item
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


@given(st.text(min_size=1))
def test_record_ids_are_hexadecimal(item: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{32}", record_id(item, b"salt"))


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


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "guidelines": "Read.",
        "distribution": {"min_submitted": 3},
        "allow_extra_metadata": False,
        "fields": [{"name": "item", "required": True, "settings": {"type": "custom", "template": "x"}}],
        "questions": [{"name": "keep", "required": True, "title": "Keep?", "settings": options(keep="", drop="")}],
        "metadata": [{"name": "assignment_set", "settings": {"type": "integer"}}],
    } | changes


def options(**labels: str) -> dict[str, Any]:
    """Settings of a label question: value -> text."""
    choices = [{"value": value} | ({"text": text} if text else {}) for value, text in labels.items()]
    return {"type": "label_selection", "options": choices}


def question(**changes: Any) -> dict[str, Any]:
    """Settings with a changed question."""
    return settings(questions=[{**settings()["questions"][0], **changes}])


LABELLED = question(settings=options(keep="Keep it", drop="Drop it"))


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (settings(questions=[]), settings(), "questions: keep is missing"),
        (question(required=False), settings(),
         "questions: keep has another required flag"),
        (settings(allow_extra_metadata=True), settings(), "metadata of any name is allowed"),
        (settings(metadata=[*settings()["metadata"], {"name": "mm", "settings": {"type": "terms"}}]), settings(),
         "metadata: mm was added"),
        # Swapped labels inverted all answers, and nobody was warned.
        (question(settings=options(keep="Drop it", drop="Keep it")), LABELLED,
         "questions: keep has another label of drop, label of keep"),
        (question(title="Drop?"), settings(), "questions: keep has another title"),
        (question(description="Say drop."), settings(), "questions: keep has another description"),
        (settings(fields=[{"name": "item", "required": True, "settings": {"type": "custom", "template": "y"}}]),
         settings(), "fields: item has another page"),
        (question(settings=options(keep="Keep it")), LABELLED,
         "questions: keep has another label of drop, list of choices"),
    ],
)  # fmt: skip
def test_differences(actual: dict[str, Any], expected: dict[str, Any], message: str) -> None:
    assert differences(actual, expected) == [message]
    assert differences(actual, expected, texts_fingerprint(expected)) == [message]
    # Texts that are unchanged since the dataset was created are no difference: a later release may have others.
    structure = re.search("missing|allowed|added|another (label of drop, list|required)", message)
    assert bool(differences(actual, expected, texts_fingerprint(actual))) == bool(structure)


def test_items_to_discard() -> None:
    hard = Item("hard", "en", (Turn("user", "hi"),), crisis=True)
    plain = Item("plain", "en", (Turn("user", "hi"),))
    annotators = [Annotator("1", "one", ("en",)), Annotator("2", "two", ("en",), crisis=False),
        Annotator("3", "three", ("zh",)),
              Annotator("4", "four", ("en", "zh"), active=False)]  # fmt: skip
    spared = items_to_discard([hard, plain], annotators, {("plain", "1")})
    assert spared == {"hard": {"2", "3", "4"}, "plain": {"1", "3", "4"}}


def test_batches_have_a_limited_size() -> None:
    small = [{"fields": {"item": {"data": "x"}}}] * 450
    assert [len(batch) for batch in batches(small)] == [200, 200, 50]
    large = [{"fields": {"item": {"data": "x" * 3_000_000}}}] * 3
    assert [len(batch) for batch in batches(large)] == [1, 1, 1]
    assert list(batches([])) == []
