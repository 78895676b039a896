"""Texts that annotators read: questions, labels, ratings, the interface (`interface_LANGUAGE.toml`), and guidelines.

Guidelines are Markdown without HTML, for web pages, spreadsheet cells and text files.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from h2htalk.data.languages import Language, find_language
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import Question
from h2htalk.rounds.settings import PLATFORM, RoundSpec, is_link
from h2htalk.text.help_lines import help_rows, read_help_lines
from h2htalk.text.jinja_templates import Sandbox, open_environment, read_templates
from h2htalk.text.language_data import language_data

# How many of a round's items something is true of.
Share = Literal["none", "some", "all"]


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
    return str(
        dates["day"].format(day=date.day, month=dates["months"][str(date.month)], year=date.year)
    )


def _texts(language: Language) -> Mapping[str, Any]:
    return language_data("rounds/texts/interface", language)


# --- Guidelines -------------------------------------------------------------------------------------------------------


def guidelines(
    spec: RoundSpec, questions: Sequence[Question], language: Language, *, unread: Share = "none"
) -> str:
    """Return the guidelines of a round in one language, ending with a line break.

    `unread`: how many of its items nobody has read before the annotators.

    Guidelines in `spec.guidelines` replace the package's; the section on consent stands before them, and those on care
    and help lines, and on what to do when all is done, after them. Raise RoundError if the file of the language is
    missing or cannot be read.
    """
    values = {**_values(spec, questions, language), "unread": unread}
    if not spec.guidelines:
        name = "sample" if spec.sample.keep else spec.kind
        return _render(f"{language}/{name}.md.j2", values)
    path = Path(spec.guidelines).expanduser() / f"{language}.md"
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RoundError(
            f"{path}: the guidelines cannot be read ({error}); write them as text in UTF-8"
        ) from error
    if not text:
        raise RoundError(f"{path}: the guidelines are empty; write them, or remove `guidelines`")
    consent = _render(f"{language}/consent.md.j2", values)
    appended = [_render(f"{language}/{name}.md.j2", values) for name in ("care", "completion")]
    return "\n".join([consent, f"{text}\n", *(one for one in appended if one.strip())])


def notice_help_lines(spec: RoundSpec, language: Language) -> tuple[str, ...]:
    """Return the help lines for the notice of an item about a crisis, and where there are more.

    They are those of the annotators' country; if the settings name none, of all countries in the guidelines.
    """
    rows = help_rows(language, spec.care.country)
    if not spec.care.country:
        return rows
    return (rows[0], interface_text("more_help_in_guidelines", language))


def _values(
    spec: RoundSpec, questions: Sequence[Question], language: Language
) -> Mapping[str, object]:
    """Return the variables of all templates."""
    asked = []
    for question in questions:
        name = question.name
        labels = [
            (label_text(name, one, language), label_help(name, one, language))
            for one in question.labels
        ]
        choices = labels or [
            (rating_text(name, rating, language), "") for rating in question.ratings
        ]
        texts = {"title": question_title(name, language), "help": question_help(name, language)}
        asked.append({"name": name, **texts, "choices": choices})
    rows = help_rows(language, spec.care.country)
    dates = [one.date for one in read_help_lines().services if one.number in "\n".join(rows)]
    return {
        "questions": asked,
        "names": [question.name for question in questions],
        "annotators": spec.annotators_per_item,
        "minimum": spec.adaptive.minimum if spec.adaptive.on else spec.annotators_per_item,
        "session_items": spec.care.session_items,
        "crises": spec.care.session_crises,
        "minutes": f"{spec.minutes:g}",
        "suggest": spec.suggest,
        # On a server an answer has its time, and annotators can look up others: user names, or even answers.
        "shared": spec.where != "spreadsheets",
        "open_answers": spec.where == "label-studio",
        "contact": spec.contact,
        "ethics": spec.ethics,
        "completion": spec.completion,
        "completion_is_link": is_link(spec.completion),
        "completion_sheet": interface_text("completion", language)
        if spec.where == PLATFORM
        else "",
        "help_rows": rows,
        "help_date": format_day(min(dates), language),
    }


def _render(name: str, values: Mapping[str, object]) -> str:
    """Render a template without repeated empty lines, ending with a line break."""
    text = _environment().get_template(name).render(values).strip()
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


@cache
def _environment() -> Sandbox:
    templates = read_templates(Path(str(files("h2htalk.rounds.texts") / "guidelines")))
    sources = {name: text for name, (_, text) in templates.items()}
    return open_environment(sources, {name: str(path) for name, (path, _) in templates.items()})
