"""What a session's dataset is on the server: names, questions in the annotators' words, the page that shows an item."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.argilla.record_page import page
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import (
    label_help,
    label_text,
    question_help,
    question_title,
    rating_text,
    word,
)

# The one field of a record: an item, as JSON that the page below reads.
FIELD = "item"
# The server's own limits (characters).
MAX_GUIDELINES, MAX_DESCRIPTION, MAX_TITLE = 10_000, 1000, 500


@dataclass(frozen=True, slots=True)
class RoundContent:
    """What a round asks, read once.

    Attributes:
        spec, questions: of the round.
        items: by id.
        guidelines: by language.
        mark: what tells its datasets from those of another round of its name.
        salt: of the round, under which ids are hashed.
    """

    spec: RoundSpec
    questions: tuple[Question, ...]
    items: Mapping[str, Item]
    guidelines: Mapping[Language, str]
    mark: str
    salt: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class RoundDataset:
    """One dataset on the server.

    Attributes:
        workspace, dataset: their names, as we give them.
        assignment set, number: which assignment set, which session of its language in it (from 1).
        language: of its items.
        wanted: answers an item.
        items: ids, in order.
    """

    workspace: str
    dataset: str
    assignment_set: int
    number: int
    language: Language
    wanted: int
    items: tuple[str, ...]


def asked_of(folder: RoundFolder) -> RoundContent:
    """What a round asks. Raises DataError, RoundError."""
    items = {item.id: item for item in folder.items()}
    # The salt keeps the mark unguessable.
    salt = folder.salt()
    mark = hmac.new(salt, b"argilla", hashlib.sha256).hexdigest()[:16]
    languages = sorted({item.language for item in items.values()})
    guidelines = {language: folder.guidelines(language).strip() for language in languages}
    return RoundContent(folder.spec(), folder.questions(), items, guidelines, mark, salt)


def round_datasets(folder: RoundFolder, asked: RoundContent) -> tuple[RoundDataset, ...]:
    """Every session of every assignment set, in order. Raises DataError."""
    spec, name = asked.spec, folder.name
    found: list[RoundDataset] = []
    for assignment_set in folder.assignment_sets():
        count: dict[Language, int] = {}
        for group in assignment_set.groups:
            language = asked.items[group[0]].language
            number = count[language] = count.get(language, 0) + 1
            found.append(
                RoundDataset(
                    workspace=workspace_name(spec, name, language),
                    dataset=dataset_name(name, assignment_set.number, language, number),
                    assignment_set=assignment_set.number,
                    number=number,
                    language=language,
                    wanted=max(assignment_set.wanted[item] for item in group),
                    items=group,
                )
            )
    return tuple(found)


def last_assignment_sets(sessions: Sequence[RoundDataset]) -> dict[str, int]:
    """Item -> number of the last assignment set that it went out in."""
    return {
        item: session.assignment_set
        for session in sorted(sessions, key=lambda one: one.assignment_set)
        for item in session.items
    }


def workspace_name(spec: RoundSpec, name: str, language: Language) -> str:
    """A workspace a language: its annotators see no other items. It holds the round's name: no two rounds mix
    theirs.
    """
    prefix = spec.argilla.workspace
    return f"{plain_name(f'{prefix}-{name}' if prefix else name)}-{language}"


def dataset_name(name: str, assignment_set: int, language: Language, number: int) -> str:
    """What a session's dataset is called when it is made; in Argilla it may be renamed."""
    return f"{plain_name(name)}-w{assignment_set}-{language}-{number:02}"


def dataset_names(name: str, language: Language) -> re.Pattern[str]:
    """What the datasets of a round and language are called (`dataset_name`), of every assignment set."""
    return re.compile(rf"{re.escape(plain_name(name))}-w\d+-{language}-\d+")


def plain_name(name: str) -> str:
    """A name as the server's addresses can hold it: itself, or what is left of it with a hash of the whole."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        return name
    left = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60].strip("-") or "round"
    return f"{left}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def settings_for(client: Any, asked: RoundContent, session: RoundDataset) -> Any:
    """The SDK's settings of a session's dataset."""
    import argilla

    language = session.language
    return argilla.Settings(
        guidelines=asked.guidelines[language],
        fields=[
            argilla.CustomField(
                name=FIELD,
                title=word("item", language),
                template=page(language),
                advanced_mode=True,
                required=True,
                _client=client,
            )
        ],
        questions=[question_for(client, question, language) for question in asked.questions],
        metadata=_metadata(client, asked.spec),
        distribution=argilla.TaskDistribution(min_submitted=session.wanted),
        allow_extra_metadata=False,
    )


def check_texts(folder: RoundFolder, asked: RoundContent) -> None:
    """Raise RoundError where guidelines are longer than the server takes."""
    for language, text in asked.guidelines.items():
        length = len(text)
        if not 0 < length <= MAX_GUIDELINES:
            raise RoundError(
                f"{folder.path / 'guidelines' / f'{language}.md'} has {length:,} characters; Argilla takes up to "
                f"{MAX_GUIDELINES:,}: shorten it there, then give the same command again"
            )


# --- Questions ----------------------------------------------------------------------------------------------------


def question_for(client: Any, question: Question, language: Language) -> Any:
    import argilla

    about = {
        "name": question.name,
        "title": _title(question, language),
        "description": _description(question, language),
        "required": question.always,
        "client": client,
    }
    if question.form == "rating":
        return argilla.RatingQuestion(values=list(question.ratings), **about)
    if question.form == "text":
        return argilla.TextQuestion(use_markdown=False, **about)
    shown = {label: label_text(question.name, label, language) for label in question.labels}
    if question.form == "labels":
        return argilla.MultiLabelQuestion(labels=shown, **about)
    return argilla.LabelQuestion(labels=shown, **about)


def _title(question: Question, language: Language) -> str:
    """The question; of a rating with both ends of its scale, as a phone shows no description."""
    title = question_title(question.name, language)
    if question.form == "rating":
        ends = [
            rating_text(question.name, rating, language)
            for rating in (question.ratings[0], question.ratings[-1])
        ]
        title += f" ({'; '.join(ends)})" if language == "en" else f"（{'；'.join(ends)}）"
    return title[:MAX_TITLE]


def _description(question: Question, language: Language) -> str:
    """When to choose what. The server shows ratings as bare numbers: their anchors stand here."""
    lines = [question_help(question.name, language)]
    if question.form == "rating":
        lines += [rating_text(question.name, rating, language) for rating in question.ratings]
    elif question.labels:
        helps = {label: label_help(question.name, label, language) for label in question.labels}
        told = [
            f"{label_text(question.name, label, language)}: {text}" for label, text in helps.items() if text
        ]
        if sum(map(len, lines + told)) + len(told) < MAX_DESCRIPTION:
            lines += told
    return "\n".join(lines)


def _metadata(client: Any, spec: RoundSpec) -> list[Any]:
    """What a manager filters by. Annotators see no more of it than whether an item speaks of a crisis."""
    import argilla

    def term(name: str, options: list[str] | None, seen: bool) -> Any:
        return argilla.TermsMetadataProperty(
            name, options=options, title=name, visible_for_annotators=seen, client=client
        )

    def number(name: str) -> Any:
        return argilla.IntegerMetadataProperty(name, title=name, visible_for_annotators=False, client=client)

    shown = [term("subtask", None, True)] if spec.suggest else []
    return [
        term("language", ["en", "zh"], False), term("crisis", ["no", "yes"], True), *shown, number("assignment_set"),
        number("session"),
    ]  # fmt: skip
