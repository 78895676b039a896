"""What annotators read before they begin: Markdown without HTML, which reads well on a page, in cells and as a file."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from h2htalk.data.help_lines import help_rows, read_help_lines
from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.questions import Question
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import label_help, label_text, question_help, question_title, rating_text
from h2htalk.text.jinja_templates import Sandbox, open_environment, read_templates

# Not those of `strftime`: they follow the machine's language.
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def guidelines(spec: RoundSpec, questions: Sequence[Question], language: Language) -> str:
    """The guidelines of a round in one language, ending with a line break.

    Those of `spec.guidelines` take the place of ours; how an annotator is cared for, and whom to call, stands below
    them.

    Args:
        spec: of the round: kind, overlap, care, pay, whether a model's suggestions are shown.
        questions: of the round.
        language: of the reader.

    Raises:
        RoundError: `spec.guidelines` has no file for the language, or one that cannot be read.
    """
    values = _values(spec, questions, language)
    if not spec.guidelines:
        return _render(f"{language}/{spec.kind}.md.j2", values)
    own = _read_own(Path(spec.guidelines).expanduser(), language)
    return f"{own}\n{_render(f'{language}/care.md.j2', values)}"


def _read_own(folder: Path, language: Language) -> str:
    path = folder / f"{language}.md"
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except FileNotFoundError as error:
        raise RoundError(
            f"{path}: not there, and this round has items in {language!r}; write it, or leave `guidelines` out "
            "for those of the package"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise RoundError(
            f"{path}: the guidelines cannot be read: {error}; save them as text in UTF-8"
        ) from error
    if not text:
        raise RoundError(f"{path}: the guidelines are empty; write them, or leave `guidelines` out")
    return f"{text}\n"


def _values(spec: RoundSpec, questions: Sequence[Question], language: Language) -> Mapping[str, object]:
    """All that the templates may say; every template gets the same."""
    return {
        "questions": [_asked(question, language) for question in questions],
        "asked": [question.name for question in questions],
        "answers": spec.answers,
        "least": spec.adaptive.minimum if spec.adaptive.on else spec.answers,
        "session": spec.care.session_items,
        "crises": _crises(spec),
        "minutes": f"{spec.minutes:g}",
        "suggest": spec.suggest,
        # A spreadsheet says when it was saved, not how long an item took.
        "timed": spec.where == "argilla",
        # A server tells everybody who answers there the others' user names.
        "shared": spec.where == "argilla",
        "help_rows": help_rows(language),
        "help_dates": _help_dates(language),
    }


def _help_dates(language: Language) -> Mapping[str, str]:
    """When the help lines that are named were looked up last, and of when the oldest of them is.

    A line's date is its page's own, or the day on which it was looked up: the latest of all dates is of a look-up.
    """
    book = read_help_lines()
    rows = "\n".join(help_rows(language))
    dates = [line.date for line in book.lines if (text := line.text_for(language)) and text in rows]
    return {
        "latest": _day(max([book.directory.date, *dates]), language),
        "oldest": _day(min(dates), language) if min(dates) < book.directory.date else "",
    }


def _day(date: datetime.date, language: Language) -> str:
    if language == "en":
        return f"{date.day} {_MONTHS[date.month - 1]} {date.year}"
    return f"{date.year} 年 {date.month} 月 {date.day} 日"


def _crises(spec: RoundSpec) -> int:
    """Items of a whole session that may speak of a crisis: as `plan.sessions` counts them."""
    share = spec.care.crisis_share
    return max(int(spec.care.session_items * share + 1e-9), int(share > 0))


def _asked(question: Question, language: Language) -> Mapping[str, object]:
    labels = [
        (label_text(question.name, label, language), label_help(question.name, label, language))
        for label in question.labels
    ]
    ratings = [(rating_text(question.name, rating, language), "") for rating in question.ratings]
    return {
        "name": question.name,
        "title": question_title(question.name, language),
        "help": question_help(question.name, language),
        "choices": labels or ratings,
    }


def _render(name: str, values: Mapping[str, object]) -> str:
    """One template, without a run of empty lines, ending with a line break."""
    text = _environment().get_template(name).render(values).strip()
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


@cache
def _environment() -> Sandbox:
    found = read_templates(Path(str(files("h2htalk.rounds.texts") / "guidelines")))
    sources = {name: text for name, (_, text) in found.items()}
    return open_environment(sources, {name: str(path) for name, (path, _) in found.items()})
