"""A scenario: one benchmark item, as a split's files hold it."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

from h2htalk.data.dialogue import Turn, read_id, read_language, read_mapping
from h2htalk.data.languages import Language
from h2htalk.data.subtasks import FieldKind, Subtask, find_subtask
from h2htalk.errors import ConfigError, DataError, Errors, quoted

Complexity = Literal["basic", "intermediate", "advanced"]
Interaction = Literal["casual", "emotional_support", "memory"]
Risk = Literal["none", "elevated", "high"]
COMPLEXITIES: tuple[Complexity, ...] = ("basic", "intermediate", "advanced")
INTERACTIONS: tuple[Interaction, ...] = ("casual", "emotional_support", "memory")
RISKS: tuple[Risk, ...] = ("none", "elevated", "high")

TIME = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
EMOTION = re.compile(r"[a-z][a-z_]*")
MOST_REFERENCES = 5
T = TypeVar("T")
FIELDS = ("id", "subtask", "language", "persona", "inputs", "reference", "tags", "provenance", "licence")


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One entry of a schedule: a 24-hour `HH:MM` time and an activity."""

    time: str
    activity: str

    @classmethod
    def from_dict(cls, raw: object, where: str) -> ScheduleEntry:
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: a schedule entry must be an object with time and activity")
        _refuse_unknown(raw, ("time", "activity"), where)
        time, activity = raw.get("time"), raw.get("activity")
        if not isinstance(time, str) or not TIME.fullmatch(time):
            raise DataError(f"{where}: time is {quoted(time)}; it must be HH:MM, 00:00 to 23:59")
        return cls(time, _text(activity, f"{where}: activity"))

    def to_dict(self) -> dict[str, str]:
        return {"time": self.time, "activity": self.activity}


@dataclass(frozen=True, slots=True)
class Tags:
    """What a scenario is about: emotion (one lower-case word), complexity, interaction and risk."""

    emotion: str
    complexity: Complexity
    interaction: Interaction
    risk: Risk

    @classmethod
    def from_dict(cls, raw: object, where: str) -> Tags:
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: tags must be an object")
        errors, emotion = Errors(), str(raw.get("emotion"))
        errors.collect(None, _refuse_unknown, raw, ("emotion", "complexity", "interaction", "risk"), f"{where}: tags")
        if not EMOTION.fullmatch(emotion):
            errors.append(f"{where}: tags.emotion is {quoted(raw.get('emotion'))}; it must be one lower-case word")
        for key, allowed in (("complexity", COMPLEXITIES), ("interaction", INTERACTIONS), ("risk", RISKS)):
            if raw.get(key) not in allowed:
                errors.append(f"{where}: tags.{key} is {quoted(raw.get(key))}; choose from {', '.join(allowed)}")
        errors.raise_any()
        return cls(
            emotion,
            cast(Complexity, raw["complexity"]),
            cast(Interaction, raw["interaction"]),
            cast(Risk, raw["risk"]),
        )

    def to_dict(self) -> dict[str, str]:
        return {
            "emotion": self.emotion,
            "complexity": self.complexity,
            "interaction": self.interaction,
            "risk": self.risk,
        }


_NO_TAGS = Tags("none", "basic", "casual", "none")
InputValue = str | tuple[str, ...] | tuple[ScheduleEntry, ...] | tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One benchmark item. `inputs` holds exactly the fields its subtask names (`Subtask.inputs`).

    `references`: up to `MOST_REFERENCES` good replies, the main one first; none where they are private.
    """

    id: str
    subtask: str
    language: Language
    persona: str
    inputs: Mapping[str, InputValue]
    references: tuple[str, ...]
    tags: Tags
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: str = "unknown"
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "scenario") -> Scenario:
        """Read and validate one record.

        Raises:
            DataError: a field is missing, unknown or of the wrong kind; the message has a line for each error, which
                starts with `where` (a file and line) and the scenario's id.
        """
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: a scenario must be a JSON object")
        scenario_id = read_id(raw, where)
        where = f"{where}: {scenario_id}"
        missing = [key for key in FIELDS if key not in raw and (key != "reference" or "references" not in raw)]
        errors = Errors()
        if missing:
            errors.append(f"{where}: missing field {', '.join(missing)}")
        errors.collect(None, _refuse_unknown, raw, (*FIELDS, "references", "metadata"), where)

        def part(field: str, default: T, read: Callable[..., T], *arguments: object) -> T:
            return default if field in missing else errors.collect(default, read, *arguments)

        subtask = part("subtask", None, find_subtask, raw.get("subtask"), where)
        scenario = cls(
            id=scenario_id,
            subtask=subtask.name if subtask else "",
            language=part("language", "", read_language, raw, where),
            persona=part("persona", "", _text, raw.get("persona"), f"{where}: persona"),
            inputs=part("inputs", {}, _read_inputs, raw.get("inputs"), subtask, where) if subtask else {},
            references=part("reference", (), read_references, raw, where),
            tags=part("tags", _NO_TAGS, Tags.from_dict, raw.get("tags"), where),
            provenance=part("provenance", {}, read_mapping, raw, "provenance", where),
            licence=part("licence", "", _text, raw.get("licence"), f"{where}: licence"),
            metadata=errors.collect({}, read_mapping, raw, "metadata", where),
        )
        errors.raise_any()
        return scenario

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON holds it; `from_dict(to_dict())` gives the same scenario."""
        record: dict[str, Any] = {
            "id": self.id,
            "subtask": self.subtask,
            "language": self.language,
            "persona": self.persona,
            "inputs": {key: _plain(value) for key, value in self.inputs.items()},
            **({"reference": self.reference} if len(self.references) == 1 else {"references": list(self.references)}),
            "tags": self.tags.to_dict(),
            "provenance": dict(self.provenance),
            "licence": self.licence,
        }
        if self.metadata:
            record["metadata"] = dict(self.metadata)
        return record

    @property
    def reference(self) -> str:
        """The main reference; empty where the references are private."""
        return self.references[0] if self.references else ""

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation among the inputs; empty for subtasks without one."""
        return cast(tuple[Turn, ...], self.inputs.get("history", ()))


def _refuse_unknown(raw: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    # An ignored field would be lost on export and missing from the fingerprint.
    unknown = sorted(set(map(str, raw)) - set(known))
    if unknown:
        raise DataError(f"{where}: unknown field {', '.join(unknown)} (open fields go into metadata)")


def read_references(raw: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Read `reference`, one text, or `references`, a list."""
    if "references" not in raw:
        return (_text(raw["reference"], f"{where}: reference"),)
    if "reference" in raw:
        raise DataError(f"{where}: has both reference and references; keep references")
    texts = raw["references"]
    if not isinstance(texts, list) or len(texts) > MOST_REFERENCES:
        raise DataError(f"{where}: references must be a list of at most {MOST_REFERENCES} texts")
    references = tuple(_text(text, f"{where}: reference {n}") for n, text in enumerate(texts, 1))
    if len(set(references)) < len(references):
        raise DataError(f"{where}: references holds a text twice; keep it once")
    return references


def _read_turn(raw: object, where: str) -> Turn:
    turn = Turn.from_dict(raw, where)
    _refuse_unknown(cast(Mapping[str, Any], raw), ("role", "content"), where)
    return turn


def _read_inputs(raw: object, subtask: Subtask, where: str) -> dict[str, InputValue]:
    if not isinstance(raw, Mapping):
        raise DataError(f"{where}: inputs must be an object")
    names = [name for name, _ in subtask.inputs]
    if set(raw) != set(names):
        raise DataError(f"{where}: inputs of {subtask.name} must be {', '.join(names)}, not {sorted(raw)}")
    errors = Errors()
    inputs: dict[str, InputValue] = {}
    for name, kind in subtask.inputs:
        empty: InputValue = ""
        inputs[name] = errors.collect(empty, _read_field, raw[name], kind, f"{where}: {name}")
    errors.raise_any()
    if subtask.is_chat and cast(tuple[Turn, ...], inputs["history"])[-1].role != "user":
        raise DataError(f"{where}: history must end with a user turn, the one to answer")
    return inputs


def _read_field(raw: object, kind: FieldKind, where: str) -> InputValue:
    if kind == "text":
        return _text(raw, where)
    if not isinstance(raw, list) or not raw:
        raise DataError(f"{where} must be a list that is not empty")
    errors = Errors()
    read: Callable[..., Any] = {"turns": _read_turn, "schedule": ScheduleEntry.from_dict}.get(kind, _text)
    values = tuple(errors.collect(None, read, item, f"{where} {i}") for i, item in enumerate(raw, 1))
    errors.raise_any()
    if kind == "schedule" and any(a.time >= b.time for a, b in itertools.pairwise(values)):
        raise DataError(f"{where}: times must ascend")
    return values


def _text(raw: object, where: str) -> str:
    if not isinstance(raw, str) or not raw.strip():
        raise DataError(f"{where} must be text that is not empty")
    return raw


def _plain(value: InputValue) -> Any:
    if isinstance(value, str):
        return value
    return [item if isinstance(item, str) else item.to_dict() for item in value]


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
    chosen: set[str] = set()
    for depth in range(max(map(len, strata.values()), default=0)):
        for key in _strata_in_turn(strata):
            if depth < len(strata[key]) and len(chosen) < limit:
                chosen.add(strata[key][depth].id)
    return [s for s in scenarios if s.id in chosen]


def _strata_in_turn(strata: Collection[tuple[str, str]]) -> list[tuple[str, str]]:
    """Order strata so that every subtask comes once before any comes twice, its languages by turns."""
    languages: dict[str, list[str]] = {}
    for subtask, language in sorted(strata):
        languages.setdefault(subtask, []).append(language)
    turns = range(max(map(len, languages.values()), default=0))
    return [
        (subtask, own[(number + turn) % len(own)])
        for turn in turns
        for number, (subtask, own) in enumerate(languages.items())
        if turn < len(own)
    ]
