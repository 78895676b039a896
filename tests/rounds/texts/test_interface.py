"""Every word that an annotator reads: complete, equal in both languages, and nothing of ours shows through."""

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
from h2htalk.rounds.questions import QUESTIONS, SUBTASK, VIOLATIONS, questions_for
from h2htalk.rounds.texts.interface import (
    interface_text,
    label_help,
    label_text,
    passage_title,
    question_help,
    question_title,
    rating_text,
)

TIES = questions_for("adjudication", [["dialogue_base", "none"], ["keep", "drop"], ["yes", "no"]])
EVERY = {q.name: q for questions in (*QUESTIONS.values(), TIES) for q in questions}
HAN = re.compile(r"[\u4e00-\u9fff]")
# What the issue of voting needs at least, whatever else the platforms add.
INTERFACE = (
    "user", "companion", "conversation", "reply_to_judge", "proposed_reply", "crisis_notice", "show_text", "skip",
    "skip_is_fine", "guidelines", "session", "comment", "note", "suggestion", "item_of",
)  # fmt: skip


def stored(language: Language) -> dict[str, Any]:
    path = files("h2htalk.rounds") / "texts" / f"{language}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def leaves(table: Mapping[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, (*at, key))
        else:
            yield (*at, key), value


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_question_has_words_and_no_two_choices_read_alike(language: Language) -> None:
    for name, question in EVERY.items():
        assert question_title(name, language)
        assert question_help(name, language)
        shown = [label_text(name, label, language) for label in question.labels]
        assert not set(shown) & set(question.labels)
        for rating in question.ratings:
            assert re.fullmatch(rf"{rating}(: |：)\S.+", rating_text(name, rating, language))
        shown += [rating_text(name, rating, language)[2:].strip() for rating in question.ratings]
        assert len({one.casefold() for one in shown}) == len(shown), name


def test_both_languages_hold_the_same_keys_and_places() -> None:
    english, chinese = (dict(leaves(stored(language))) for language in LANGUAGES)
    assert english.keys() == chinese.keys()
    assert {key for key in english if places(english[key]) != places(chinese[key])} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_empty_in_the_other_language_or_shows_a_name_of_ours(language: Language) -> None:
    ours = r"[A-Za-z]+_[A-Za-z]+|[Ss]ubtask|[Bb]enchmark|itinerary|recollection"
    for key, text in leaves(stored(language)):
        assert text.strip() == text != "", key
        assert bool(HAN.search(text)) == (language == "zh"), key
        assert re.findall(ours, re.sub(r"\{\w+\}", "", text)) == [], key


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_in_the_files_is_left_over(language: Language) -> None:
    """A question, choice or step that no round asks would be a word that nobody mends."""
    questions = stored(language)["questions"]
    assert questions.keys() == EVERY.keys()
    for name, question in EVERY.items():
        assert list(map(int, questions[name].get("ratings", {}))) == list(question.ratings)
        if name != "label":
            assert tuple(questions[name].get("labels", {})) == question.labels


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_subtask_violation_and_input_is_told_apart(language: Language) -> None:
    for question, labels in ((SUBTASK.name, (*SUBTASKS, "none")), ("violations", VIOLATIONS)):
        told = [label_help(question, label, language) for label in labels]
        assert all(told)
        assert "\n" not in "".join(told)
        assert len(set(told)) == len(told)
    names = sorted({name for subtask in SUBTASKS.values() for name, _ in subtask.inputs})
    titles = {passage_title(name, language) for name in names}
    assert len(titles) == len(names)
    assert not titles & set(names)
    # A passage of a user's own keeps its name.
    assert passage_title("Weather report", language) == "Weather report"


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_adjudication_shows_the_words_of_the_tied_question_and_labels_of_a_user_s_own(
    language: Language,
) -> None:
    for label in (*SUBTASKS, "none"):
        assert label_text("label", label, language) == label_text("subtask", label, language)
    for label in ("keep", "drop"):
        assert label_text("label", label, language) == label_text("keep", label, language)
    # A round of somebody's own may ask "Is it funny?": its "yes" must not say that a reply harms.
    for label in ("yes", "no"):
        assert label_text("label", label, language) == interface_text(label, language)
    assert label_text("label", "Speaks of the sea", language) == "Speaks of the sea"
    assert label_help("label", "Speaks of the sea", language) == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_interface_has_its_words(language: Language) -> None:
    assert all(interface_text(name, language) for name in INTERFACE if name != "item_of")
    assert {"3", "40"} <= set(re.findall(r"\d+", interface_text("item_of", language, number=3, total=40)))


def test_an_unknown_name_of_ours_is_a_mistake() -> None:
    for ask in (
        lambda: question_title("warmth", "en"),
        lambda: question_help("warmth", "zh"),
        lambda: label_text("keep", "maybe", "en"),
        lambda: label_help("subtask", "dialogue", "zh"),
        lambda: rating_text("quality", 6, "en"),
        lambda: rating_text("keep", 1, "zh"),
        lambda: interface_text("hurry", "en"),
        lambda: interface_text("item_of", "zh", number=1),
    ):
        with pytest.raises(KeyError):
            ask()
