"""Names, questions and records for an Argilla server, and annotations from its responses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.scenario import Turn
from h2htalk.rounds.aggregation.decisions import completed_items
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.argilla import datasets
from h2htalk.rounds.argilla.read_annotations import ServerResponse, read_responses, responses_of
from h2htalk.rounds.argilla.record_publishing import batches
from h2htalk.rounds.items import Item
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.questions import QUESTIONS, SKIPPED, Kind, questions_for
from h2htalk.rounds.round_folder import RoundFolder, RoundState
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import interface_text


@given(st.text(min_size=1))
def test_plain_names(name: str) -> None:
    plain = datasets.plain_name(name)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", plain)
    assert datasets.plain_name(plain) == plain


def test_names_ids_and_batches() -> None:
    assert datasets.plain_name("crowd") == "crowd"
    assert (
        len({datasets.plain_name(name) for name in ("a b", "a.b", "a-b", "第一轮", "第二轮")}) == 5
    )
    # Record ids do not reveal items.
    names = ["mini-en-recollection-refinement-01", "第一", "item-001#subtask"]
    found = datasets.record_ids(names, b"salt")
    assert list(found.values()) == names
    assert found.keys().isdisjoint(datasets.record_ids(names, b"another"))
    # Batches have a limited size.
    small = [{"fields": {"item": {"data": "x"}}}] * 450
    assert [len(batch) for batch in batches(small)] == [200, 200, 50]
    large = [{"fields": {"item": {"data": "x" * 3_000_000}}}] * 3
    assert [len(batch) for batch in batches(large)] == [1, 1, 1]
    assert list(batches([])) == []


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_inert_json_is_safe_in_scripts(value: Any) -> None:
    text = datasets.inert_json(value)
    assert json.loads(text) == value
    # The page inserts it into a script as a JSON string, by a replacement in which `$` has a meaning.
    assert not re.search(r"[<>&$#'`\u2028\u2029]", json.dumps(text, ensure_ascii=False))


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_has_its_texts_and_nothing_that_argilla_replaces(language: Language) -> None:
    html = datasets.page(language)
    assert "WORDS" not in html
    assert "LANGUAGE" not in html
    assert not re.search(r"\$|#TEMPLATE#|#RECORD_OBJECT#|https?:", html)
    for name in datasets.PAGE_TEXTS:
        assert datasets.inert_json(interface_text(name, language))[1:-1] in html


def test_the_page_follows_the_theme_and_names_help_lines_in_the_notice() -> None:
    """The item stayed white in a dark page, and help lines were behind a bar."""
    html = datasets.page("en", ("Ireland: call 116 123",))
    assert "Ireland: call 116 123" in html
    for part in (
        "",
        " .passage",
        " .by-user",
        " .by-companion",
        " .judged",
        " .proposed",
        " .notice",
        " button",
    ):
        assert f'[data-theme="dark"] #h2h{part} {{' in html
    assert 'getAttribute("data-theme")' in html


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_questions_respect_the_server_s_limits(kind: Kind, language: Language) -> None:
    for question in QUESTIONS[kind]:
        made = datasets.question_for(question, language)
        assert 0 < len(made["title"]) <= datasets.MAX_TITLE
        assert 0 < len(made["description"]) <= datasets.MAX_DESCRIPTION
        # The page cannot require an answer conditionally.
        assert made["required"] == (question.required and question.name != "violations")
        options = [option["value"] for option in made["settings"].get("options") or ()]
        assert options == list(question.labels or question.ratings)
        assert question.name not in made["title"] + made["description"] or question.name.isalpha()


ITEM = Item("a", "en", (Turn("user", "hi"),), response="hello")
ANN = Annotator("111", "ann", ("en",))
SAFE: dict[str, Any] = {"perception": 4, "violation": "no"}


def said(
    status: str = "submitted", *, when: str = "2030-01-01", dataset: str = "w1", **values: Any
) -> ServerResponse:
    return ServerResponse(dataset, "a", "u1", status, values, when)


def read(
    *responses: ServerResponse, questions: Any = QUESTIONS["safety"], item: Item = ITEM
) -> Collected:
    spec = RoundSpec("safety", "items.jsonl")
    state = RoundState(
        RoundFolder(Path()), {"name": "round"}, spec, (item,), questions, (ANN,), (), (), {}, {}, {}
    )
    found, _ = read_responses(
        state, responses, annotators={"u1": ANN}, names={"u1": "ann"}, discarded=()
    )
    return found


def values(found: Collected) -> dict[str, Any]:
    return {one.question: one.value for one in found.annotations if one.value is not None}


def test_responses_become_annotations() -> None:
    found = read(
        said(perception=2, violation="yes", violations=["privacy", "boundary"], comment=" hm ")
    )
    yes = {
        "perception": 2,
        "violation": "yes",
        "violations": ("boundary", "privacy"),
        "comment": "hm",
    }
    assert values(found) == yes
    assert (found.mistakes, found.notes) == ((), ())
    assert {one.annotator for one in found.annotations} == {"111"}
    # Answers to questions that are not asked are ignored.
    found = read(said(**SAFE, violations=["privacy"]))
    assert values(found) == SAFE
    assert found.notes == (
        "1 response with violations although violation is not yes: counted without them",
    )
    # The server's page cannot require an answer only in some cases.
    found = read(said(perception=2, violation="yes"))
    assert values(found) == {"perception": 2, "violation": "yes", "violations": ()}
    assert found.mistakes == ()
    assert found.notes == (
        "1 response without violations although violation is yes: counted, but ask for them",
    )
    stored = {one.key: one for one in found.annotations if one.value is not None}
    assert completed_items([ITEM], QUESTIONS["safety"], stored) == {"a": {"111"}}
    # Withdrawn answers are None.
    found = read(said(**SAFE, comment=""))
    assert {one.question for one in found.annotations if one.value is None} == {
        "violations",
        "comment",
        SKIPPED,
    }
    found = read(said("draft", **SAFE))
    assert found.annotations == ()
    assert found.started == {("a", "111")}
    # Choices of other items are mistakes.
    item = Item("a", "en", (Turn("user", "hi"),), labels=("keep", "drop"))
    questions = questions_for("adjudication", [("keep", "drop"), ("yes", "no")])
    found = read(said(label="yes"), questions=questions, item=item)
    assert found.annotations == ()
    assert (
        "item a, annotator ann: 'yes' is not a choice of this item: keep, drop" in found.mistakes[0]
    )
    assert values(read(said(label="drop"), questions=questions, item=item)) == {"label": "drop"}
    # Other records are ignored, and times are UTC.
    response = {"user_id": "u1", "status": "submitted", "values": {"keep": {"value": "keep"}},
                "updated_at": "2030-01-02T03:04:05.678901"}  # fmt: skip
    records = [
        {"external_id": "r-a", "responses": [response]},
        {"external_id": "else", "responses": [response]},
    ]
    (found,) = responses_of("w1", records, {"r-a": "a"})
    assert (found.item, found.values, found.when) == (
        "a",
        {"keep": "keep"},
        "2030-01-02T03:04:05.678+00:00",
    )


def test_the_last_submitted_response_counts() -> None:
    order = [
        said(when="2030-01-01", **SAFE),
        said(when="2030-01-02", dataset="w2", **SAFE | {"perception": 1}),
    ]
    order.append(said("discarded", when="2030-01-03", dataset="w3"))
    assert values(read(*order))["perception"] == values(read(*reversed(order)))["perception"] == 1
