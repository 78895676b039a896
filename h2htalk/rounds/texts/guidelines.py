"""Guidelines for annotators: Markdown without HTML, for web pages, spreadsheet cells and text files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import Question
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import (
    format_day,
    label_help,
    label_text,
    question_help,
    question_title,
    rating_text,
)
from h2htalk.text.help_lines import help_rows, read_help_lines
from h2htalk.text.jinja_templates import Sandbox, open_environment, read_templates


def guidelines(spec: RoundSpec, questions: Sequence[Question], language: Language) -> str:
    """Return the guidelines of a round in one language, ending with a line break.

    Guidelines in `spec.guidelines` replace the package's; the section on care and help lines is appended to them. Raise
    RoundError if there is no file for the language, or one that cannot be read.
    """
    values = _values(spec, questions, language)
    if not spec.guidelines:
        return _render(f"{language}/{spec.kind}.md.j2", values)
    path = Path(spec.guidelines).expanduser() / f"{language}.md"
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise RoundError(f"{path}: the guidelines cannot be read ({error}); write them as text in UTF-8") from error
    if not text:
        raise RoundError(f"{path}: the guidelines are empty; write them, or remove `guidelines`")
    return f"{text}\n\n{_render(f'{language}/care.md.j2', values)}"


def _values(spec: RoundSpec, questions: Sequence[Question], language: Language) -> Mapping[str, object]:
    """Return the variables of all templates."""
    share, size = spec.care.crisis_share, spec.care.session_items
    asked = []
    for question in questions:
        name = question.name
        labels = [(label_text(name, one, language), label_help(name, one, language)) for one in question.labels]
        choices = labels or [(rating_text(name, rating, language), "") for rating in question.ratings]
        texts = {"title": question_title(name, language), "help": question_help(name, language)}
        asked.append({"name": name, **texts, "choices": choices})
    # A help line has the date of its page, or of its look-up; so the latest of all dates is that of a look-up.
    book, rows = read_help_lines(), help_rows(language)
    shown = "\n".join(rows)
    dates = [line.date for line in book.lines if (text := line.text_for(language)) and text in shown]
    return {
        "questions": asked,
        "names": [question.name for question in questions],
        "annotators": spec.annotators_per_item,
        "minimum": spec.adaptive.minimum if spec.adaptive.on else spec.annotators_per_item,
        "session_items": size,
        # Crises in a full session, as `assignments.sessions` counts them.
        "crises": max(int(size * share + 1e-9), int(share > 0)),
        "minutes": f"{spec.minutes:g}",
        "suggest": spec.suggest,
        # The time stamp of a spreadsheet does not tell how long an item took.
        "timed": spec.where == "argilla",
        # On a server, annotators can look up each other's user names.
        "shared": spec.where == "argilla",
        "help_rows": rows,
        "help_dates": {
            "latest": format_day(max([book.directory["date"], *dates]), language),
            "oldest": format_day(min(dates), language) if min(dates) < book.directory["date"] else "",
        },
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
