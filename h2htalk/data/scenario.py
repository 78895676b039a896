"""Records of conversations: dialogues, scenarios (the items of the benchmark), and the personas that they name."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import (
    Field,
    PlainValidator,
    SerializeAsAny,
    ValidationInfo,
    WithJsonSchema,
    with_config,
)

from h2htalk.data.files import read_toml
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import (
    STRICT,
    Id,
    Open,
    Text,
    Time,
    Word,
    adapter,
    as_json,
    read_record,
    require,
    strict_record,
)
from h2htalk.data.subtasks import SUBTASKS, FieldKind, SubtaskName
from h2htalk.errors import DataError, quoted


@strict_record
class _Table:
    name: Text
    description: Text


def _record_of_optional(
    name: str, required: Sequence[tuple[str, Any]], kinds: Mapping[str, Any]
) -> Any:
    """Make a record with fields that are required, and with optional ones, by name."""
    optional = [(key, kind, field(default=None)) for key, kind in kinds.items()]
    return with_config(STRICT)(make_dataclass(name, [*required, *optional]))


_File = _record_of_optional(
    "_File", [("id", Text), ("relation", Text)], dict.fromkeys(LANGUAGES, _Table | None)
)


@dataclass(frozen=True, slots=True)
class Persona:
    """A companion's name and description by language. `relation` says what it is to the user."""

    id: str
    relation: str
    names: Mapping[Language, str]
    descriptions: Mapping[Language, str]

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> Persona:
        """Read `id`, `relation`, and the tables `[en]`, `[zh]` with name and description, or one. Raises DataError."""
        file: Any = read_record(_File, raw, where)
        names: dict[Language, str] = {}
        descriptions: dict[Language, str] = {}
        for language in LANGUAGES:
            table = getattr(file, language)
            if table:
                names[language] = table.name.strip()
                descriptions[language] = table.description.strip()
        if not names:
            raise DataError(
                f"{where}: needs a table for at least one language: {', '.join(LANGUAGES)}"
            )
        return cls(id=file.id, relation=file.relation, names=names, descriptions=descriptions)

    def to_dict(self) -> dict[str, Any]:
        raw: dict[str, Any] = {"id": self.id, "relation": self.relation}
        for language, name in self.names.items():
            raw[language] = {"name": name, "description": self.descriptions[language]}
        return raw


@cache
def bundled_personas() -> dict[str, Persona]:
    """Read the personas that come with the package, by id."""
    return read_personas(Path(__file__).parent / "bundled" / "personas")


def personas_of(source: Path) -> dict[str, Persona]:
    """Read the bundled personas and those beside the scenarios of a folder or file, by id. Raises DataError."""
    folder = source if source.is_dir() else source.parent
    return bundled_personas() | read_personas(folder / "personas")


def read_personas(folder: Path) -> dict[str, Persona]:
    """Read the persona files (TOML) of a folder, by id. Raises DataError."""
    personas: dict[str, Persona] = {}
    files: dict[str, str] = {}
    for path in sorted(folder.glob("*.toml")):
        persona = Persona.from_dict(read_toml(path, error=DataError), str(path))
        if persona.id in personas:
            raise DataError(
                f"{path}: persona {persona.id!r} is in {files[persona.id]} already; keep one"
            )
        personas[persona.id] = persona
        files[persona.id] = path.name
    return personas


Role = Literal["user", "companion"]
ROLES: tuple[Role, ...] = get_args(Role)


@strict_record
class Turn:
    """One message of a conversation: the speaker's role and the text."""

    role: Role
    content: Text

    def to_dict(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


@strict_record
class Dialogue:
    """A conversation with its language, provenance and licence."""

    id: Id
    language: Language
    messages: Annotated[tuple[Turn, ...], Field(min_length=1)]
    provenance: Open = field(default_factory=dict)
    licence: Text = "unknown"
    metadata: Open = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "dialogue") -> Dialogue:
        """Read `{"id", "language", "messages": [{"role", "content"}]}`. Raises DataError (`read_record`)."""
        return read_record(cls, raw, where, coerce=True)

    def to_dict(self) -> dict[str, Any]:
        return as_json(self)


# Among what the safety stage noted: hints of the words that the reading of a guard took back.
CONTRADICTED = "contradicted"


def noted_tags(metadata: Mapping[str, Any], start: str | tuple[str, ...] = "") -> set[str]:
    """The tags that the safety stage noted in metadata and that begin so; none where they are of another form."""
    safety = metadata.get("safety")
    tags = safety.get("tags") if isinstance(safety, Mapping) else ()
    if not isinstance(tags, list | tuple):
        return set()
    return {tag for tag in map(str, tags) if tag.startswith(start)}


def notes_crisis(metadata: Mapping[str, Any]) -> bool:
    """Whether the safety stage noted a crisis, a possible one, or harm by the companion, in metadata."""
    safety = metadata.get("safety")
    if isinstance(safety, Mapping):
        if safety.get("risk", "none") != "none" or safety.get("possible_crisis"):
            return True
    return bool(noted_tags(metadata, ("companion.", "crisis.", "sexual.minors")))


Complexity = Literal["basic", "intermediate", "advanced"]
Interaction = Literal["casual", "emotional_support", "memory"]
Risk = Literal["none", "elevated", "high"]
COMPLEXITIES: tuple[Complexity, ...] = get_args(Complexity)
INTERACTIONS: tuple[Interaction, ...] = get_args(Interaction)
RISKS: tuple[Risk, ...] = get_args(Risk)

MOST_REFERENCES = 5


@strict_record
class ScheduleEntry:
    """One entry of a schedule: a 24-hour `HH:MM` time and an activity."""

    time: Time
    activity: Text


@strict_record
class Tags:
    """What a scenario is about: emotion (one lower-case word), complexity, interaction and risk."""

    emotion: Word
    complexity: Complexity
    interaction: Interaction
    risk: Risk


TAGS = ("emotion", "complexity", "interaction", "risk")


InputValue = str | tuple[str, ...] | tuple[ScheduleEntry, ...] | tuple[Turn, ...]

_ASCENDING = require(
    lambda entries: all(a.time < b.time for a, b in itertools.pairwise(entries)),
    "times must ascend",
)
_KINDS: Mapping[FieldKind, Any] = {
    "text": Text,
    "texts": Annotated[tuple[Text, ...], Field(min_length=1)],
    "turns": Annotated[tuple[Turn, ...], Field(min_length=1)],
    "schedule": Annotated[tuple[ScheduleEntry, ...], Field(min_length=1), _ASCENDING],
}


def _input_kinds() -> dict[str, Any]:
    """The fields of all subtasks' `inputs`, of which each subtask has some, and what they hold."""
    kinds = {}
    for subtask in SUBTASKS.values():
        for name, kind in subtask.inputs:
            kinds[name] = _KINDS[kind]
    return kinds


INPUTS = _record_of_optional("Inputs", [], _input_kinds())


def _read_inputs(raw: Any, info: ValidationInfo) -> Mapping[str, InputValue]:
    subtask = SUBTASKS.get(info.data.get("subtask", ""))
    if subtask is None:  # refused already
        return {}
    names = [name for name, _ in subtask.inputs]
    inputs = adapter(INPUTS).validate_python(raw)
    if set(raw) != set(names):
        raise ValueError(f"of {subtask.name} must be {', '.join(names)}, not {quoted(sorted(raw))}")
    if subtask.is_chat and inputs.history[-1].role != "user":
        raise ValueError("history must end with a user turn, the one to answer")
    return {name: getattr(inputs, name) for name in names}


Inputs = Annotated[
    Mapping[str, InputValue],
    PlainValidator(_read_inputs),
    SerializeAsAny(),
    WithJsonSchema({"type": "object"}),
]
_ONCE = require(
    lambda references: len(set(references)) == len(references), "holds a text twice; keep it once"
)
References = Annotated[tuple[Text, ...], Field(max_length=MOST_REFERENCES), _ONCE]


@strict_record
class Scenario:
    """One benchmark item. `inputs` holds exactly the fields its subtask names (`Subtask.inputs`).

    `references`: up to `MOST_REFERENCES` good replies, the main one first; none where they are private. A file may hold
    one as `reference`.
    """

    id: Id
    subtask: SubtaskName
    language: Language
    persona: Text
    inputs: Inputs
    references: References
    tags: Tags
    provenance: Open
    licence: Text
    metadata: Open = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "scenario") -> Scenario:
        """Read one record. Raises DataError, with a line for each error (`read_record`)."""
        if isinstance(raw, Mapping) and "reference" in raw:
            if "references" in raw:
                raise DataError(f"{where}: has both reference and references; keep references")
            fields_but_reference = {key: value for key, value in raw.items() if key != "reference"}
            raw = {**fields_but_reference, "references": [raw["reference"]]}
        return read_record(cls, raw, where, coerce=True)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON holds it; `from_dict(to_dict())` gives the same scenario."""
        record: dict[str, Any] = {}
        for name, value in as_json(self).items():
            if name == "references" and len(value) == 1:
                record["reference"] = value[0]
            elif name != "metadata" or value:
                record[name] = value
        return record

    @property
    def reference(self) -> str:
        """The main reference; empty where the references are private."""
        return self.references[0] if self.references else ""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation among the inputs; empty for subtasks without one."""
        return cast(tuple[Turn, ...], self.inputs.get("history", ()))


def conversation_text(turns: Sequence[Turn]) -> str:
    """Turns as lines; the further lines of a turn are indented, so that no reply can pass for what the user said."""
    return "\n".join(labelled(turn.role, turn.content) for turn in turns)


def labelled(label: str, text: str) -> str:
    """A text after its label; further lines are indented."""
    return "\n    ".join(f"{label}: {text}".splitlines())
