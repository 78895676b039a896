"""Items: the texts that annotators judge, made from scenarios, candidates, dialogues or judged replies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from h2htalk.data.languages import Language
from h2htalk.data.readers.reads import ReadGate
from h2htalk.data.records import Id, adapter, read_record, strict_record
from h2htalk.data.scenario import Turn
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.questions import Question, Value


def _passages(context: object) -> object:
    if not isinstance(context, Mapping) or not all(
        isinstance(text, str) for text in context.values()
    ):
        raise ValueError("must be an object whose values are text")
    return tuple(context.items())


@strict_record
class Item:
    """One item of a round.

    Attributes:
        id: unique in a round.
        language: only annotators who read it get the item.
        turns: the conversation (`prompt` in a file); may be empty.
        context: named passages in order: ("memories", "..."), ("today_schedule", "09:00 ..."); an object in a file.
        response: the reply to judge; empty if the item is judged as a whole.
        reference: the proposed reply; may be empty.
        other_references: the proposed replies beside it, which a release holds too.
        labels: of an adjudication, the labels to decide between.
        crisis: whether the item is about a crisis; such items are announced, skippable and spread over sessions.
        explicit: whether it holds sexual content, which is announced as such and else handled like a crisis.
        tags: what marks it as about a crisis (`possible_crisis`); never shown.
        subtask: the proposed subtask; shown only if the round shows suggestions.
        gold: right answers by question, of an item that checks annotators; never shown.
        suggested: a model's answers by question; shown only if the round shows suggestions.
        note: a line above the item, such as the question that an adjudication decides.
        unread: whether nobody who counts as a reader has read it before the annotators (`readers/read_before.py`): that
            stands above its text.
        unread_for: the gates for which it is unread; empty where it is read, or unread for all that are announced.
        withheld: whether only annotators who agreed to crises get the item, as nobody has read it; it is not announced.
        planted: whether it is a planted item (`planted.py`), whose `gold` answer shows who reads.
    """

    id: Id
    language: Language
    turns: Annotated[tuple[Turn, ...], Field(alias="prompt")] = ()
    context: Annotated[
        tuple[tuple[str, str], ...], BeforeValidator(_passages), PlainSerializer(dict)
    ] = ()
    response: str = ""
    reference: str = ""
    other_references: tuple[str, ...] = ()
    labels: tuple[Id, ...] = ()
    crisis: bool = False
    explicit: bool = False
    tags: tuple[str, ...] = ()
    subtask: str = ""
    gold: dict[str, Value] = field(default_factory=dict)
    suggested: dict[str, Value] = field(default_factory=dict)
    note: str = ""
    unread: bool = False
    unread_for: tuple[ReadGate, ...] = ()
    withheld: bool = False
    planted: bool = False

    @property
    def references(self) -> tuple[str, ...]:
        """All proposed replies; an empty one where there is none."""
        return (self.reference, *self.other_references)

    @property
    def is_spared(self) -> bool:
        """Whether annotators who did not agree to crises do not get the item."""
        return self.crisis or self.withheld

    @property
    def notice(self) -> str:
        """The name of the text of the interface that announces the item."""
        return "explicit_notice" if self.explicit else "crisis_notice"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "item") -> Item:
        """Read `{id, language, prompt, response?, reference?, labels?, crisis?}`; null is the same as a missing field.

        `prompt` is the text of one user message or a list of `{role, content}`; it is optional if `context` holds the
        item's text. `check_values` checks `gold` and `suggested` against the questions.
        """
        given = {key: value for key, value in raw.items() if value is not None}
        if isinstance(given.get("prompt"), str):
            given["prompt"] = [{"role": "user", "content": given["prompt"]}]
        item = read_record(cls, given, where)
        context = tuple((name, text) for name, text in item.context if text.strip())
        if not item.turns and not context:
            raise DataError(
                f"{where}: {item.id}: prompt is missing; give text or a list of messages with role and content"
            )
        return replace(item, context=context, crisis=item.crisis or item.explicit)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object without empty fields; `from_dict(to_dict())` gives the same item."""
        return adapter(Item).dump_python(self, mode="json", by_alias=True, exclude_defaults=True)  # type: ignore[no-any-return]


FIELDS = tuple("prompt" if one.name == "turns" else one.name for one in fields(Item))


def check_values(item: Item, questions: Sequence[Question]) -> Item:
    """Return the item; raise DataError if a gold or suggested answer is not valid for one of the questions."""
    known = {question.name: question for question in questions}
    for kind, values in (("gold", item.gold), ("suggested", item.suggested)):
        for name, value in values.items():
            if name not in known:
                raise DataError(
                    f"{item.id}: {kind}: unknown question {quoted(name)}; choose from {', '.join(known)}"
                )
            try:
                known[name].read(value)
            except RoundError as error:
                raise DataError(f"{item.id}: {kind}: {error}") from error
    return item


def as_given(items: Sequence[Item]) -> tuple[Item, ...]:
    """Return items as their source gave them."""
    return tuple(
        replace(item, unread=False, unread_for=(), withheld=False)
        for item in items
        if not item.planted
    )
