"""Texts of the interface: complete, the same in both languages, without internal names."""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.rounds.questions import QUESTIONS, questions_for
from h2htalk.rounds.texts.interface import label_help, label_text, passage_title, rating_text

TIES = questions_for("adjudication", [["dialogue_base", "none"], ["keep", "drop"], ["yes", "no"]])
EVERY = {q.name: q for questions in (*QUESTIONS.values(), TIES) for q in questions}
HAN = re.compile(r"[\u4e00-\u9fff]")
in_both = pytest.mark.parametrize("language", LANGUAGES)


def stored(language: Language) -> dict[str, Any]:
    path = files("h2htalk.rounds") / "texts" / f"interface_{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def leaves(table: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_languages_have_the_same_keys_and_fields() -> None:
    english, chinese = (dict(leaves(stored(language))) for language in LANGUAGES)
    assert english.keys() == chinese.keys()
    assert {key for key in english if fields(english[key]) != fields(chinese[key])} == set()


@in_both
def test_texts_are_in_their_language_without_internal_names(language: Language) -> None:
    ours = r"[A-Za-z]+_[A-Za-z]+|[Ss]ubtask|[Bb]enchmark|itinerary|recollection"
    for key, text in leaves(stored(language)):
        assert text.strip() == text != "", key
        assert bool(HAN.search(text)) == (language == "zh"), key
        assert re.findall(ours, re.sub(r"\{\w+\}", "", text)) == [], key


@in_both
def test_every_question_has_its_texts_with_distinct_choices_and_no_others(language: Language) -> None:
    questions = stored(language)["questions"]
    assert questions.keys() == EVERY.keys()
    for name, question in EVERY.items():
        assert list(map(int, questions[name].get("ratings", {}))) == list(question.ratings)
        if name != "label":
            assert tuple(questions[name].get("labels", {})) == question.labels
        shown = [label_text(name, label, language) for label in question.labels]
        shown += [rating_text(name, rating, language)[2:].strip() for rating in question.ratings]
        assert len({one.casefold() for one in shown}) == len(shown), name
    helps = [label_help("subtask", label, language) for label in (*SUBTASKS, "none")]
    assert all(helps)
    assert len(set(helps)) == len(helps)
    names = sorted({name for subtask in SUBTASKS.values() for name, _ in subtask.inputs})
    titles = {passage_title(name, language) for name in names}
    assert len(titles - set(names)) == len(names)
    assert passage_title("Weather report", language) == "Weather report"
