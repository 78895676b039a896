"""Numbers and names that a speaker gives in pieces, as the other one asks for them."""

from __future__ import annotations

import pytest

from h2htalk.curation.anonymize.stage import anonymize_dialogue
from h2htalk.curation.stage_folder import Kept
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Turn
from h2htalk.detect.personal.engine.analyzer import find_in_dialogue
from support.tables import table


def values_in(texts: list[str], language: Language) -> list[tuple[str, str]]:
    """The values that are found in the texts of a dialogue, in their order, with their types."""
    data = find_in_dialogue(texts, language)
    values = []
    for text, spans in zip(texts, data.spans, strict=True):
        values += [(text[span.start : span.end], span.type) for span in spans]
    return values


@pytest.mark.parametrize(("texts", "language", "values"), table("curation", "numbers_in_pieces"))
def test_a_number_goes_on_over_a_turn_that_asks_for_the_rest(
    texts: list[str], language: Language, values: dict[str, str]
) -> None:
    """Each piece was read alone, and the last four digits of a telephone stayed."""
    assert dict(values_in(texts, language)) == values


@pytest.mark.parametrize(
    ("question", "answer", "language", "names"), table("curation", "answers_with_names")
)
def test_a_bare_answer_to_a_question_for_a_name_is_a_name(
    question: str, answer: str, language: Language, names: list[str]
) -> None:
    """`Miller` alone looked like a word."""
    people = [value for value, _ in values_in([question, answer], language)]
    assert people == names


def test_a_name_that_is_repeated_with_a_question_goes_on_in_the_answer() -> None:
    """The surname behind `Annika and what else?` stayed."""
    texts = ["my name is annika", "Annika and what else?", "thorvaldsen"]
    names = [value for value, _ in values_in(texts, "en")]
    assert names == ["annika", "Annika", "thorvaldsen"]


def test_nothing_of_a_number_in_pieces_is_left_in_the_dialogue() -> None:
    texts = ["My number is 415 730", "And the rest of it?", "2846. And again, 2846."]
    roles = ("user", "companion", "user")
    turns = tuple(Turn(role, text) for role, text in zip(roles, texts, strict=True))
    outcome = anonymize_dialogue(Dialogue("made-1", "en", turns), b"key")
    assert isinstance(outcome, Kept)
    text = " ".join(message["content"] for message in outcome.record["messages"])
    assert "415" not in text
    assert "2846" not in text
    assert outcome.record["metadata"]["anonymized"]["spans"] == {"PHONE_NUMBER": 3}
