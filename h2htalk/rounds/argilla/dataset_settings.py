"""The datasets of a round: names, settings with the questions in the annotators' language, and records."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.errors import RoundError
from h2htalk.rounds.assignment.assignments import session_numbers
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question
from h2htalk.rounds.round_folder import RoundState
from h2htalk.rounds.settings import RoundSpec
from h2htalk.rounds.texts.interface import (
    interface_text,
    label_help,
    label_text,
    passage_title,
    question_help,
    question_title,
    rating_text,
)
from h2htalk.text.escaping import printable, printable_lines

# The server's limits (characters).
MAX_GUIDELINES, MAX_DESCRIPTION, MAX_TITLE = 10_000, 1000, 500
# The only field of a record: an item as JSON, which the page displays.
FIELD = "item"
PAGE_TEXTS = (
    "user", "companion", "reply_to_judge", "proposed_reply", "crisis_notice", "explicit_notice", "show_text", "note",
    "choose_between", "discard_skips", "help_in_guidelines",
)  # fmt: skip
# Form of a question -> its type on the server.
_TYPES = {"label": "label_selection", "labels": "multi_label_selection", "rating": "rating", "text": "text"}


@dataclass(frozen=True, slots=True)
class RoundContent:
    """A round as its datasets need it.

    Attributes:
        state: the round, read once.
        items: by id.
        salt: key of the record ids.
        marker: identifies the round's datasets, also among those of another round with the same name.
    """

    state: RoundState
    items: Mapping[str, Item]
    salt: bytes = field(repr=False)
    marker: str

    @property
    def languages(self) -> list[Language]:
        return sorted({item.language for item in self.state.items})


@dataclass(frozen=True, slots=True)
class RoundDataset:
    """A dataset that a round needs: one session of an assignment set in one language.

    Attributes:
        workspace, name: their names when they are created.
        assignment_set, session: numbers, from 1; sessions are numbered by language.
        language: of its items.
        annotators: number of annotators per item.
        items: ids, in order.
        current: those of them that are in no later assignment set: items are offered in their last one.
    """

    workspace: str
    name: str
    assignment_set: int
    session: int
    language: Language
    annotators: int
    items: tuple[str, ...]
    current: frozenset[str]


def round_content(state: RoundState) -> RoundContent:
    """Return the content of a round. Raise DataError."""
    salt = state.folder.salt()
    marker = hmac.new(salt, b"argilla", hashlib.sha256).hexdigest()[:16]
    return RoundContent(state, {item.id: item for item in state.items}, salt, marker)


def round_datasets(content: RoundContent) -> tuple[RoundDataset, ...]:
    """Return the datasets of all assignment sets, in order."""
    state, datasets = content.state, list[RoundDataset]()
    languages = {item.id: item.language for item in state.items}
    last = {item: one_set.number for one_set in state.sets for group in one_set.groups for item in group}
    for one_set in state.sets:
        for session, group in zip(session_numbers(one_set, languages), one_set.groups, strict=True):
            language = languages[group[0]]
            datasets.append(
                RoundDataset(
                    workspace=workspace_name(state, language),
                    name=f"{plain_name(state.name)}-set{one_set.number}-{language}-{session:02}",
                    assignment_set=one_set.number,
                    session=session,
                    language=language,
                    annotators=max(one_set.requested[item] for item in group),
                    items=group,
                    current=frozenset(item for item in group if last[item] == one_set.number),
                )
            )
    return tuple(datasets)


def workspace_name(state: RoundState, language: Language) -> str:
    """Return the name of the workspace of a round and language: its annotators see no other items."""
    prefix = state.spec.argilla.workspace
    return f"{plain_name(f'{prefix}-{state.name}' if prefix else state.name)}-{language}"


def plain_name(name: str) -> str:
    """Return a name that URLs allow: the name itself, or its plain part with a hash of the whole."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:60].strip("-") or "round"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def read_guidelines(content: RoundContent, language: Language) -> str:
    """Return a round's guidelines; raise RoundError if they are longer than the server allows."""
    folder = content.state.folder
    guidelines = folder.guidelines(language).strip()
    if not 0 < len(guidelines) <= MAX_GUIDELINES:
        raise RoundError(
            f"{folder.path / 'guidelines' / f'{language}.md'} has {len(guidelines):,} characters; Argilla allows up to "
            f"{MAX_GUIDELINES:,}: shorten the file, then repeat the command"
        )
    return guidelines


def settings_for(content: RoundContent, dataset: RoundDataset) -> dict[str, Any]:
    """Return the settings of a dataset as the server accepts and lists them. Raise RoundError."""
    state, language = content.state, dataset.language
    template = {"type": "custom", "template": page(language), "advanced_mode": True}
    return {
        "guidelines": read_guidelines(content, language),
        "distribution": {"strategy": "overlap", "min_submitted": dataset.annotators},
        "allow_extra_metadata": False,
        "fields": [{"name": FIELD, "title": interface_text("item", language), "required": True, "settings": template}],
        "questions": [question_for(question, language) for question in state.questions],
        "metadata": _metadata(state.spec),
    }


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


# --- Records: ids, data, and the page that displays it ----------------------------------------------------------------


def record_id(item: str, salt: bytes) -> str:
    """Return an item's id on the server, 32 hexadecimal digits: annotators can read it, and item ids reveal labels."""
    return hmac.new(salt, b"record " + item.encode(), hashlib.sha256).hexdigest()[:32]


def record_ids(items: Iterable[str], salt: bytes) -> dict[str, str]:
    """Return record id -> item id."""
    return {record_id(item, salt): item for item in items}


@cache
def page(language: Language) -> str:
    """Return the HTML that displays an item in one language."""
    template = (files("h2htalk.rounds.argilla") / "page.html").read_text(encoding="utf-8")
    texts = {name: interface_text(name, language) for name in PAGE_TEXTS}
    return template.replace("LANGUAGE", language).replace('"TEXTS"', inert_json(texts))


def inert_json(value: object) -> str:
    """Return JSON that is safe inside a script: Argilla inserts it unescaped, by a text replacement.

    `<` could end the script, and `$` and `#` have a meaning in the replacement.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r"[<>&$#'`\u2028\u2029\x7f]", lambda match: f"\\u{ord(match[0]):04x}", text)


def item_data(item: Item, language: Language) -> dict[str, Any]:
    """Return the item's data for the page, without empty fields; control and invisible characters are escaped."""
    data = {
        "turns": [{"role": turn.role, "content": printable_lines(turn.content)} for turn in item.turns],
        "context": [[printable(passage_title(name, language)), printable_lines(text)] for name, text in item.context],
        "response": printable_lines(item.response),
        "reference": printable_lines(item.reference),
        "labels": [label_text("label", label, language) for label in item.labels],
        "crisis": item.crisis,
        "explicit": item.explicit,
        "note": printable_lines(item.note),
    }
    return {key: value for key, value in data.items() if value}


def displayed(item: Item) -> dict[str, str]:
    """Return the field of an item's record, which the page displays."""
    return {"data": inert_json(item_data(item, item.language))}
