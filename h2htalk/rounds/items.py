"""Items: the texts that annotators judge, made from scenarios, candidates, dialogues or judged replies."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from h2htalk.data.dialogue import Turn, read_id, read_language
from h2htalk.data.languages import Language
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.questions import Question, Value

FIELDS = (
    "id", "language", "prompt", "context", "response", "reference",
    "labels", "crisis", "explicit", "subtask", "gold", "suggested", "note",
)  # fmt: skip
# Characters; nobody reads more for one item, and such a record is usually a broken export.
MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a round.

    Attributes:
        id: unique in a round.
        language: only annotators who read it get the item.
        turns: the conversation; may be empty.
        context: named passages in order: ("memories", "..."), ("today_schedule", "09:00 ...").
        response: the reply to judge; empty if the item is judged as a whole.
        reference: the proposed reply; may be empty.
        labels: of an adjudication, the labels to decide between.
        crisis: whether the item is about a crisis; such items are announced, skippable and spread over sessions.
        explicit: whether it holds sexual content, which is announced as such and else handled like a crisis.
        subtask: the proposed subtask; shown only if the round shows suggestions.
        gold: right answers by question, of an item that checks annotators; never shown.
        suggested: a model's answers by question; shown only if the round shows suggestions.
        note: a line above the item, such as the question that an adjudication decides.
    """

    id: str
    language: Language
    turns: tuple[Turn, ...] = ()
    context: tuple[tuple[str, str], ...] = ()
    response: str = ""
    reference: str = ""
    labels: tuple[str, ...] = ()
    crisis: bool = False
    explicit: bool = False
    subtask: str = ""
    gold: Mapping[str, Value] = field(default_factory=dict)
    suggested: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""

    @property
    def notice(self) -> str:
        """The name of the text of the interface that announces the item."""
        return "explicit_notice" if self.explicit else "crisis_notice"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "item") -> Item:
        """Read `{id, language, prompt, response?, reference?, labels?, crisis?}`.

        `prompt` is the text of one user message or a list of `{role, content}`; it is optional if `context` holds the
        item's text. `check_values` checks `gold` and `suggested` against the questions.

        Raises:
            DataError: a field is missing, unknown or invalid; the message starts with `where`.
        """
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: an item must be a JSON object")
        name = read_id(raw, where)
        where = f"{where}: {name}"
        unknown = sorted(set(map(str, raw)) - set(FIELDS))
        if unknown:
            raise DataError(f"{where}: unknown field {', '.join(unknown)}; an item has {', '.join(FIELDS)}")
        item = cls(
            id=name,
            language=read_language(raw, where),
            turns=_turns(raw.get("prompt"), where),
            context=_context(raw.get("context", {}), where),
            response=_text(raw, "response", where),
            reference=_text(raw, "reference", where),
            labels=_labels(raw.get("labels", []), where),
            crisis=_flag(raw, "crisis", where) or _flag(raw, "explicit", where),
            explicit=_flag(raw, "explicit", where),
            subtask=_text(raw, "subtask", where),
            gold=_values(raw.get("gold", {}), f"{where}: gold"),
            suggested=_values(raw.get("suggested", {}), f"{where}: suggested"),
            note=_text(raw, "note", where),
        )
        if not item.turns and not item.context:
            raise DataError(f"{where}: prompt is missing; give text or a list of messages with role and content")
        return item

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object without empty fields; `from_dict(to_dict())` gives the same item."""
        record: dict[str, Any] = {
            "id": self.id,
            "language": self.language,
            "prompt": [turn.to_dict() for turn in self.turns],
            "context": dict(self.context),
            "response": self.response,
            "reference": self.reference,
            "labels": list(self.labels),
            "crisis": self.crisis,
            "explicit": self.explicit,
            "subtask": self.subtask,
            "gold": _plain(self.gold),
            "suggested": _plain(self.suggested),
            "note": self.note,
        }
        return {key: value for key, value in record.items() if value or key in ("id", "language")}


def check_values(item: Item, questions: Sequence[Question]) -> Item:
    """Return the item; raise DataError if a gold or suggested answer is not valid for one of the questions."""
    known = {question.name: question for question in questions}
    for kind, values in (("gold", item.gold), ("suggested", item.suggested)):
        for name, value in values.items():
            if name not in known:
                raise DataError(f"{item.id}: {kind}: unknown question {quoted(name)}; choose from {', '.join(known)}")
            try:
                known[name].read(list(value) if isinstance(value, tuple) else value)
            except RoundError as error:
                raise DataError(f"{item.id}: {kind}: {error}") from error
    return item


def _plain(values: Mapping[str, Value]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}


def _turns(raw: object, where: str) -> tuple[Turn, ...]:
    if raw is None or raw == []:
        return ()
    if isinstance(raw, str):
        raw = [{"role": "user", "content": raw}]
    if not isinstance(raw, list):
        raise DataError(f"{where}: prompt must be text or a list of messages")
    turns = tuple(Turn.from_dict(turn, f"{where}: prompt: message {n}") for n, turn in enumerate(raw, 1))
    for turn in turns:
        _check_text(turn.content, f"{where}: prompt")
    return turns


def _context(raw: object, where: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(raw, Mapping) or not all(isinstance(text, str) for pair in raw.items() for text in pair):
        raise DataError(f"{where}: context must be an object with texts as values")
    return tuple((name, _check_text(text, f"{where}: context")) for name, text in raw.items() if text.strip())


def _labels(raw: object, where: str) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(label, str) and label.strip() for label in raw):
        raise DataError(f"{where}: labels must be a list of texts")
    for label in raw:
        if label != label.strip() or not label.isprintable() or not unicodedata.is_normalized("NFC", label):
            raise DataError(
                f"{where}: the label {quoted(label)} is invalid; use printable text without surrounding white space"
            )
    if len(set(raw)) != len(raw):
        raise DataError(f"{where}: labels contains a label twice")
    return tuple(raw)


def _flag(raw: Mapping[str, Any], key: str, where: str) -> bool:
    value = raw.get(key, False)
    if not isinstance(value, bool):
        raise DataError(f"{where}: {key} must be true or false, not {quoted(value)}")
    return value


def _text(raw: Mapping[str, Any], key: str, where: str) -> str:
    value = raw.get(key, "")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: {key} must be text, not {quoted(value)}")
    return _check_text(value, f"{where}: {key}")


def _check_text(text: str, where: str) -> str:
    if len(text) > MAX_TEXT:
        raise DataError(f"{where} has {len(text):,} characters; the maximum is {MAX_TEXT:,}: shorten it")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"{where} contains a lone surrogate (half a character); repair the text") from error
    if "\0" in text:
        raise DataError(f"{where} contains a null character; remove it")
    return text


def _values(raw: object, where: str) -> dict[str, Value]:
    if not isinstance(raw, Mapping):
        raise DataError(f"{where} must be an object with questions as keys and answers as values")
    values: dict[str, Value] = {}
    for name, value in raw.items():
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            values[str(name)] = tuple(value)
        elif isinstance(value, (str, int)) and not isinstance(value, bool):
            values[str(name)] = value
        else:
            raise DataError(f"{where}: {quoted(name)} must be text, a whole number or a list of texts")
    return values
