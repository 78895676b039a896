"""Texts that annotators read: questions, labels, ratings, headings, the interface, from `interface_LANGUAGE.toml`."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from h2htalk.data.languages import Language, find_language
from h2htalk.text.language_data import language_data


def question_title(name: str, language: Language) -> str:
    """Return a question's text; raise KeyError for an unknown question."""
    return str(_question(name, language)["title"])


def question_help(name: str, language: Language) -> str:
    """Return a question's explanation; raise KeyError for an unknown question."""
    return str(_question(name, language)["help"])


def label_text(question: str, label: str, language: Language) -> str:
    """Return a label's text; raise KeyError for an unknown question or label.

    The question `label` of an adjudication knows the labels of all questions, and shows other labels as they are.
    """
    texts = _label(question, label, language)
    return label if texts is None else str(texts["name"])


def label_help(question: str, label: str, language: Language) -> str:
    """Return one line that explains a label, or an empty text; raise as `label_text`."""
    texts = _label(question, label, language)
    return "" if texts is None else str(texts.get("help", ""))


def rating_text(question: str, rating: int, language: Language) -> str:
    """Return a rating with its description, "1: very poor"; raise KeyError for an unknown rating."""
    anchor = _question(question, language)["ratings"][str(rating)]
    return f"{rating}: {anchor}" if find_language(language).spaced else f"{rating}：{anchor}"


def passage_title(name: str, language: Language) -> str:
    """Return the heading of a passage (`memories`); of an unknown passage its name."""
    return str(_texts(language)["passages"].get(name, name))


def interface_text(name: str, language: Language, **values: object) -> str:
    """Return a text of the interface with its `{fields}` filled in; raise KeyError for an unknown text or field."""
    return str(_texts(language)["interface"][name]).format(**values)


def _label(question: str, label: str, language: Language) -> Mapping[str, Any] | None:
    """Return a label's texts; None for a label of an adjudication that no other question has."""
    own: Mapping[str, Mapping[str, Any]] = _question(question, language).get("labels", {})
    if question != "label":
        return own[label]
    # `label` has texts of its own for yes and no, which answer any question.
    return own.get(label) or _texts(language)["questions"]["subtask"]["labels"].get(label)


def _question(name: str, language: Language) -> Mapping[str, Any]:
    question: Mapping[str, Any] = _texts(language)["questions"][name]
    return question


def format_day(date: datetime.date, language: Language) -> str:
    """Format a date: "20 November 2026". Unlike `strftime`, it does not follow the machine's locale."""
    dates = _texts(language)["dates"]
    return str(dates["day"].format(day=date.day, month=dates["months"][str(date.month)], year=date.year))


def _texts(language: Language) -> Mapping[str, Any]:
    return language_data("rounds/texts/interface", language)
