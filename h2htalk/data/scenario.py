"""Dialogues, scenarios, and the personas that scenarios name."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

from pydantic import Field, PlainValidator, SerializeAsAny, ValidationInfo, WithJsonSchema, with_config

from h2htalk.data.erasure.folder_kinds import require_erased
from h2htalk.data.files import read_toml
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import STRICT, Id, Open, Text, Time, Word, adapter, as_json, must, read_record, strict_record
from h2htalk.data.subtasks import SUBTASKS, FieldKind, SubtaskName
from h2htalk.errors import ConfigError, DataError, quoted

# The stages of a workspace whose records are candidates, the last one first.
CANDIDATE_STAGES = ("review", "compose")


def is_workspace(path: Path) -> bool:
    """Whether a path is the workspace of a curation."""
    return os.path.isfile(path / "workspace.json")  # pathlib raises on a name that is too long


def find_stage_folder(path: Path) -> Path | None:
    """The stage that a path names: a stage's folder, or of a workspace the last finished stage with candidates."""
    if is_workspace(path):
        return last_candidates(path)
    require_erased(path.parent)
    if not is_workspace(path.parent) or not os.path.isfile(path / "stage.json"):
        return None
    if path.name not in CANDIDATE_STAGES:
        raise DataError(f"{path}: holds dialogues, not candidates; choose from {', '.join(CANDIDATE_STAGES)}")
    if not (path / "summary.json").is_file():
        raise DataError(f"{path}: this stage is not finished; finish it first: h2htalk curate run")
    return path


def last_candidates(workspace: Path) -> Path:
    """The folder of the last finished stage with candidates. Raises DataError where there is none."""
    require_erased(workspace)
    if not (finished := [workspace / n for n in CANDIDATE_STAGES if (workspace / n / "summary.json").is_file()]):
        raise DataError(f"{workspace}: no stage with candidates is finished; finish compose first: h2htalk curate run")
    return finished[0]


@strict_record
class _Table:
    name: Text
    description: Text


_LANGUAGES = [(language, _Table | None, field(default=None)) for language in LANGUAGES]
_File = with_config(STRICT)(make_dataclass("_File", [("id", Text), ("relation", Text), *_LANGUAGES]))


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
        tables: dict[Language, Any] = {name: table for name in LANGUAGES if (table := getattr(file, name))}
        if not tables:
            raise DataError(f"{where}: needs a table for at least one language: {', '.join(LANGUAGES)}")
        texts = ({n: getattr(t, one).strip() for n, t in tables.items()} for one in ("name", "description"))
        return cls(file.id, file.relation, *texts)

    def to_dict(self) -> dict[str, Any]:
        texts = {one: {"name": name, "description": self.descriptions[one]} for one, name in self.names.items()}
        return {"id": self.id, "relation": self.relation, **texts}


@cache
def bundled_personas() -> dict[str, Persona]:
    """Read the personas that come with the package, by id."""
    return read_personas(Path(__file__).parent / "bundled" / "personas")


def personas_of(source: Path) -> dict[str, Persona]:
    """Read the bundled personas and those beside the scenarios of a folder or file, by id. Raises DataError."""
    return bundled_personas() | read_personas((source if source.is_dir() else source.parent) / "personas")


def read_personas(folder: Path) -> dict[str, Persona]:
    """Read the persona files (TOML) of a folder, by id. Raises DataError."""
    found, files = dict[str, Persona](), dict[str, str]()
    for path in sorted(folder.glob("*.toml")):
        persona = Persona.from_dict(read_toml(path, error=DataError), str(path))
        if persona.id in found:
            raise DataError(f"{path}: persona {persona.id!r} is in {files[persona.id]} already; keep one")
        found[persona.id], files[persona.id] = persona, path.name
    return found


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
        return read_record(cls, raw, where, as_python=True)

    def to_dict(self) -> dict[str, Any]:
        return as_json(self)


def noted_tags(metadata: Mapping[str, Any], start: str | tuple[str, ...] = "") -> set[str]:
    """The tags that the safety stage noted in metadata and that begin so; none where they are of another form."""
    safety = metadata.get("safety")
    tags = safety.get("tags") if isinstance(safety, Mapping) else ()
    return {tag for tag in map(str, tags) if tag.startswith(start)} if isinstance(tags, list | tuple) else set()


def notes_crisis(metadata: Mapping[str, Any]) -> bool:
    """Whether the safety stage noted a crisis, a possible one, or harm by the companion, in metadata."""
    safety = metadata.get("safety")
    noted = isinstance(safety, Mapping) and (safety.get("risk", "none") != "none" or safety.get("possible_crisis"))
    return bool(noted or noted_tags(metadata, ("companion.", "crisis.", "sexual.minors")))


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


InputValue = str | tuple[str, ...] | tuple[ScheduleEntry, ...] | tuple[Turn, ...]

_ASCENDING = must(lambda entries: all(a.time < b.time for a, b in itertools.pairwise(entries)), "times must ascend")
_KINDS: Mapping[FieldKind, Any] = {
    "text": Text,
    "texts": Annotated[tuple[Text, ...], Field(min_length=1)],
    "turns": Annotated[tuple[Turn, ...], Field(min_length=1)],
    "schedule": Annotated[tuple[ScheduleEntry, ...], Field(min_length=1), _ASCENDING],
}


# The fields of all subtasks' `inputs`, of which each subtask has some.
_FIELDS = {name: _KINDS[kind] for subtask in SUBTASKS.values() for name, kind in subtask.inputs}
INPUTS = with_config(STRICT)(make_dataclass("Inputs", [(n, kind, field(default=None)) for n, kind in _FIELDS.items()]))


def _read_inputs(raw: Any, info: ValidationInfo) -> Mapping[str, InputValue]:
    if (subtask := SUBTASKS.get(info.data.get("subtask", ""))) is None:  # refused already
        return {}
    names = [name for name, _ in subtask.inputs]
    found = adapter(INPUTS).validate_python(raw)
    if set(raw) != set(names):
        raise ValueError(f"of {subtask.name} must be {', '.join(names)}, not {quoted(sorted(raw))}")
    if subtask.is_chat and found.history[-1].role != "user":
        raise ValueError("history must end with a user turn, the one to answer")
    return {name: getattr(found, name) for name in names}


Inputs = Annotated[
    Mapping[str, InputValue], PlainValidator(_read_inputs), SerializeAsAny(), WithJsonSchema({"type": "object"})
]
_ONCE = must(lambda references: len(set(references)) == len(references), "holds a text twice; keep it once")
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
            raw = {key: value for key, value in raw.items() if key != "reference"} | {"references": [raw["reference"]]}
        return read_record(cls, raw, where, as_python=True)

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


def stratified_sample(scenarios: Sequence[Scenario], limit: int) -> list[Scenario]:
    """Sample at most `limit` scenarios, one a stratum (subtask, language) in turn, chosen by a hash of the id.

    Every subtask comes once, its languages by turns, before any comes twice; of the turns of cases, every kind. The
    sample of a smaller limit is part of the sample of a larger one; row order does not matter.
    """
    if limit < 1:
        raise ConfigError(f"--limit is {limit}; it must be 1 or more")
    strata: dict[tuple[str, str], list[Scenario]] = {}
    for scenario in sorted(scenarios, key=lambda s: hashlib.sha256(s.id.encode()).digest()):
        of = scenario.metadata.get("kind") if "case" in scenario.provenance else scenario.subtask
        strata.setdefault((str(of), scenario.language), []).append(scenario)
    languages: dict[str, list[str]] = {}
    for of, language in sorted(strata):
        languages.setdefault(of, []).append(language)
    order = sorted(
        (depth, (turn - number) % len(own), number, scenario.id)
        for number, (of, own) in enumerate(languages.items())
        for turn, language in enumerate(own)
        for depth, scenario in enumerate(strata[of, language])
    )
    chosen = {name for *_, name in order[:limit]}
    return [s for s in scenarios if s.id in chosen]
