"""The dialogues of known truth by which a reader is checked: `bundled/check_set/`, 156 in each language.

Each was written by hand (by a model; the brief is `tools/reading/set_check_readers.md`) and has one label about one
message. The authors of the first 120 had read nothing of the finders, the prompts or any other set; the author of the
36 about explicit content and personal data knew the prompts. Twelve in a language hold a sentence that tells the reader
what to answer. Licence: CC BY 4.0.

An id says nothing of the label, but it names the set: whoever shows a dialogue to people gives it another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from h2htalk.data.files import json_line, read_jsonl
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.readers.reads import ReadGate
from h2htalk.data.records import Id, Text, as_json, read_record, strict_record
from h2htalk.data.scenario import Dialogue, Role, Turn
from h2htalk.errors import DataError

CheckLabel = Literal[
    "harm",
    "fine",
    "own",
    "other",
    "none",
    "minor",
    "adult",
    "explicit",
    "plain",
    "personal",
    "public",
]
CHECK_LABELS: tuple[CheckLabel, ...] = get_args(CheckLabel)
FOLDER = Path(__file__).parents[1] / "bundled" / "check_set"
LICENCE = "CC-BY-4.0"


@dataclass(frozen=True, slots=True)
class CheckedKind:
    """What a label says: the name of its figures, the gate that it is about, and whether there is anything to find."""

    name: str
    gate: ReadGate
    to_find: bool


KINDS: Mapping[CheckLabel, CheckedKind] = {
    "harm": CheckedKind(name="harm", gate="companion_harm", to_find=True),
    "fine": CheckedKind(name="harm_look_alike", gate="companion_harm", to_find=False),
    "own": CheckedKind(name="crisis_own", gate="crisis_care", to_find=True),
    "other": CheckedKind(name="crisis_other", gate="crisis_care", to_find=True),
    "none": CheckedKind(name="crisis_look_alike", gate="crisis_care", to_find=False),
    "minor": CheckedKind(name="minor", gate="minors", to_find=True),
    "adult": CheckedKind(name="minor_look_alike", gate="minors", to_find=False),
    "explicit": CheckedKind(name="explicit", gate="explicit_content", to_find=True),
    "plain": CheckedKind(name="explicit_look_alike", gate="explicit_content", to_find=False),
    "personal": CheckedKind(name="personal_data", gate="personal_data", to_find=True),
    "public": CheckedKind(name="personal_data_look_alike", gate="personal_data", to_find=False),
}


@strict_record
class CheckedDialogue:
    """A dialogue whose truth is known.

    Attributes:
        id: the dialogue's id in the set.
        language: its language.
        label: what is true of the labelled message: `harm` by the companion or `fine` (a look-alike); a danger to the
            user's own life or safety now (`own`), to somebody else's (`other`) or `none` (near words); the user is
            under 18 (`minor`) or an `adult` (near words); an `explicit` message between adults, in whose place
            `[explicit]` stands, or a `plain` one about a body or a kiss; `personal` data of somebody who is invented,
            or what is `public`, made up, or leads to nobody.
        turn: the labelled message, counted from 0: a companion's for `harm` and `fine`, a user's for dangers and ages.
        told: whether a sentence in it tells its reader what to answer.
        why: what the matter is, or what it looks like, in the author's words.
        messages: the conversation.
        sentence: the sentence that tells its reader what to answer, with the white space around it; empty without any.
        tells: the label that this sentence asks for: mostly not the true one.
    """

    id: Id
    language: Language
    label: CheckLabel
    turn: Annotated[int, Field(ge=0)]
    told: bool
    why: Text
    messages: Annotated[tuple[Turn, ...], Field(min_length=1)]
    sentence: str = ""
    tells: CheckLabel | None = None

    @property
    def kind(self) -> CheckedKind:
        """The kind that its label names."""
        return KINDS[self.label]

    @property
    def speaker(self) -> Role:
        """Who says the labelled message."""
        return self.messages[self.turn].role

    @property
    def dialogue(self) -> Dialogue:
        """What a reader is shown: the conversation without its label."""
        return Dialogue(id=self.id, language=self.language, messages=self.messages, licence=LICENCE)

    @property
    def is_misled(self) -> bool:
        """Whether a reader that does what the sentence tells it answers wrongly."""
        return self.tells is not None and KINDS[self.tells].to_find != self.kind.to_find

    def without_sentence(self) -> CheckedDialogue | None:
        """The same dialogue without the sentence that tells its reader what to answer, under an id of its own."""
        if not self.sentence:
            return None
        messages = tuple(
            Turn(turn.role, turn.content.replace(self.sentence, "")) for turn in self.messages
        )
        return replace(
            self, id=f"{self.id}-without", messages=messages, told=False, sentence="", tells=None
        )

    def to_dict(self) -> dict[str, Any]:
        return as_json(self)


@cache
def load_check_set(language: Language) -> tuple[CheckedDialogue, ...]:
    """Load the bundled dialogues of a language, in the order of their file, which says nothing of their labels."""
    dialogues: list[CheckedDialogue] = []
    for where, raw in read_jsonl(FOLDER / f"{language}.jsonl", unique_keys=True):
        checked = read_record(CheckedDialogue, {**raw, "language": language}, where)
        if checked.turn >= len(checked.messages):
            raise DataError(
                f"{where}: turn {checked.turn} is not one of its {len(checked.messages)} messages"
            )
        holders = [
            turn
            for turn in checked.messages
            if checked.sentence and checked.sentence in turn.content
        ]
        if checked.told != (len(holders) == 1) or checked.told != (checked.tells is not None):
            raise DataError(
                f"{where}: a dialogue that is told needs its sentence in one message, and what it tells"
            )
        dialogues.append(checked)
    return tuple(dialogues)


@cache
def check_set_fingerprint() -> str:
    """Compute the fingerprint of the whole set, labels included: 16 hexadecimal digits, as a certificate names it."""
    lines = []
    for language in LANGUAGES:
        lines += [json_line(checked.to_dict()) for checked in load_check_set(language)]
    data = "\n".join(lines).encode("utf-8")
    return hashlib.sha256(data).hexdigest()[:16]
