"""The datasets of a round: names, and settings with the questions in the annotators' language."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.records import FIELD, page
from h2htalk.rounds.assignment.assignments import session_numbers
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import (
    interface_text,
    label_help,
    label_text,
    question_help,
    question_title,
    rating_text,
)

# The server's limits (characters).
MAX_GUIDELINES, MAX_DESCRIPTION, MAX_TITLE = 10_000, 1000, 500
# Form of a question -> its type on the server.
_TYPES = {"label": "label_selection", "labels": "multi_label_selection", "rating": "rating", "text": "text"}


@dataclass(frozen=True, slots=True)
class RoundContent:
    """The content of a round, read once.

    Attributes:
        spec, questions: of the round.
        items: by id.
        guidelines: by language.
        marker: identifies the round's datasets, also among those of another round with the same name.
        salt: key of the record ids.
    """

    spec: RoundSpec
    questions: tuple[Question, ...]
    items: Mapping[str, Item]
    guidelines: Mapping[Language, str]
    marker: str
    salt: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RoundDataset:
    """A dataset that a round needs: one session of an assignment set in one language.

    Attributes:
        workspace, name: their names when they are created.
        assignment_set, session: numbers, from 1; sessions are numbered by language.
        language: of its items.
        annotators: number of annotators per item.
        items: ids, in order.
    """

    workspace: str
    name: str
    assignment_set: int
    session: int
    language: Language
    annotators: int
    items: tuple[str, ...]


def round_content(folder: RoundFolder) -> RoundContent:
    """Read the content of a round. Raise DataError, RoundError."""
    items = {item.id: item for item in folder.items()}
    salt = folder.salt()
    marker = hmac.new(salt, b"argilla", hashlib.sha256).hexdigest()[:16]
    languages = sorted({item.language for item in items.values()})
    guidelines = {language: folder.guidelines(language).strip() for language in languages}
    return RoundContent(folder.spec(), folder.questions(), items, guidelines, marker, salt)


def round_datasets(folder: RoundFolder, content: RoundContent) -> tuple[RoundDataset, ...]:
    """Return the datasets of all assignment sets, in order. Raise DataError."""
    name = folder.name
    datasets: list[RoundDataset] = []
    languages = {item.id: item.language for item in content.items.values()}
    for one_set in folder.assignment_sets():
        for session, group in zip(session_numbers(one_set, languages), one_set.groups, strict=True):
            language = languages[group[0]]
            datasets.append(
                RoundDataset(
                    workspace=workspace_name(content.spec, name, language),
                    name=dataset_name(name, one_set.number, language, session),
                    assignment_set=one_set.number,
                    session=session,
                    language=language,
                    annotators=max(one_set.requested[item] for item in group),
                    items=group,
                )
            )
    return tuple(datasets)


def last_assignment_sets(datasets: Sequence[RoundDataset]) -> dict[str, int]:
    """Return item -> number of its last assignment set."""
    return {
        item: dataset.assignment_set
        for dataset in sorted(datasets, key=lambda one: one.assignment_set)
        for item in dataset.items
    }


def workspace_name(spec: RoundSpec, name: str, language: Language) -> str:
    """Return the name of the workspace of a round and language: its annotators see no other items."""
    prefix = spec.argilla.workspace
    return f"{plain_name(f'{prefix}-{name}' if prefix else name)}-{language}"


def dataset_name(name: str, assignment_set: int, language: Language, session: int) -> str:
    """Return the name of a dataset when it is created; it may be renamed in Argilla."""
    return f"{plain_name(name)}-set{assignment_set}-{language}-{session:02}"


def dataset_names(name: str, language: Language) -> re.Pattern[str]:
    """Return a pattern of the names of a round's datasets in one language (`dataset_name`)."""
    return re.compile(rf"{re.escape(plain_name(name))}-set\d+-{language}-\d+")


def plain_name(name: str) -> str:
    """Return a name that URLs allow: the name itself, or its plain part with a hash of the whole."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60].strip("-") or "round"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def settings_for(content: RoundContent, dataset: RoundDataset) -> dict[str, Any]:
    """Return the settings of a dataset as the server accepts and lists them."""
    language = dataset.language
    template = {"type": "custom", "template": page(language), "advanced_mode": True}
    return {
        "guidelines": content.guidelines[language],
        "distribution": {"strategy": "overlap", "min_submitted": dataset.annotators},
        "allow_extra_metadata": False,
        "fields": [{"name": FIELD, "title": interface_text("item", language), "required": True, "settings": template}],
        "questions": [question_for(question, language) for question in content.questions],
        "metadata": _metadata(content.spec),
    }


def check_guidelines(folder: RoundFolder, content: RoundContent) -> None:
    """Raise RoundError if guidelines are longer than the server allows."""
    for language, text in content.guidelines.items():
        if not 0 < len(text) <= MAX_GUIDELINES:
            raise RoundError(
                f"{folder.path / 'guidelines' / f'{language}.md'} has {len(text):,} characters; Argilla allows up to "
                f"{MAX_GUIDELINES:,}: shorten the file, then repeat the command"
            )


# --- Questions ----------------------------------------------------------------------------------------------------


def question_for(question: Question, language: Language) -> dict[str, Any]:
    """Return a question as the server accepts it."""
    settings: dict[str, Any] = {"type": _TYPES[question.form]}
    if question.form == "text":
        settings["use_markdown"] = False
    elif question.form == "rating":
        settings["options"] = [{"value": rating} for rating in question.ratings]
    else:
        settings["options"] = [
            {"value": label, "text": label_text(question.name, label, language)} for label in question.labels
        ]
        # All of them, without a click; the server refuses a number below three.
        settings["visible_options"] = len(question.labels) if len(question.labels) >= 3 else None
    return {
        "name": question.name,
        "title": _title(question, language),
        "description": _description(question, language),
        "required": question.always_required,
        "settings": settings,
    }


def _title(question: Question, language: Language) -> str:
    """Return the title, with both ends of a rating's scale: phones do not show descriptions."""
    title = question_title(question.name, language)
    if question.form == "rating":
        ends = [rating_text(question.name, question.ratings[at], language) for at in (0, -1)]
        title += f" ({'; '.join(ends)})" if find_language(language).spaced else f"（{'；'.join(ends)}）"
    return title[:MAX_TITLE]


def _description(question: Question, language: Language) -> str:
    """Return when to choose what, with the descriptions of ratings, which the server shows as bare numbers."""
    lines = [question_help(question.name, language)]
    if question.form == "rating":
        lines += [rating_text(question.name, rating, language) for rating in question.ratings]
    elif question.labels:
        labels = [
            f"{label_text(question.name, label, language)}: {text}"
            for label in question.labels
            if (text := label_help(question.name, label, language))
        ]
        if sum(map(len, lines + labels)) + len(labels) < MAX_DESCRIPTION:
            lines += labels
    return "\n".join(lines)


def _metadata(spec: RoundSpec) -> list[dict[str, Any]]:
    """Return the properties by which a manager can filter; annotators see only `crisis`, and `subtask` if suggested."""
    properties: list[tuple[str, dict[str, Any]]] = [
        ("language", {"type": "terms", "values": list(LANGUAGES)}),
        ("crisis", {"type": "terms", "values": ["no", "yes"]}),
        *([("subtask", {"type": "terms"})] if spec.suggest else []),
        ("assignment_set", {"type": "integer"}),
        ("session", {"type": "integer"}),
    ]
    visible = ("crisis", "subtask")
    return [
        {"name": name, "title": name, "settings": settings, "visible_for_annotators": name in visible}
        for name, settings in properties
    ]
