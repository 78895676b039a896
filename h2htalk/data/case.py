"""A case: one item of a study, with sessions of scripted user turns and points that a reply can be checked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config

from h2htalk.data.dialogue import read_id, read_language, read_mapping
from h2htalk.data.languages import Language
from h2htalk.errors import DataError, quoted

Study = Literal["high_risk", "look_alike", "instructions", "arcs"]
STUDIES: tuple[Study, ...] = ("high_risk", "look_alike", "instructions", "arcs")
Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
_STRICT = ConfigDict(extra="forbid")


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class CaseTurn:
    """What the user says, a good reply to it (empty: none is given), and the points that the reply is checked for."""

    user: Text
    reference: str = ""
    points: tuple[Name, ...] = ()


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Session:
    """Turns without a break; `gap_days` since the session before, 0 for the first one."""

    turns: Annotated[tuple[CaseTurn, ...], Field(min_length=1)]
    gap_days: Annotated[int, Field(ge=0)] = 0


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Point:
    """A yes-or-no statement about a reply: what it must do, or must not do.

    `severity`: how much it matters, 1 to 3. `check`: the code rule that decides it; None: a judge or a person.
    """

    id: Name
    kind: Literal["must", "must_not"]
    text: Text
    severity: Annotated[int, Field(ge=1, le=3)] = 1
    check: Name | None = None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Case:
    """An item of a study (DESIGN, section 4).

    Attributes:
        id: as a scenario's.
        study: which study it belongs to.
        kind: `implicit_help`, `ambiguous` or `context_aware` of `instructions`; else the name of a risk or topic.
        family: cases of one need, in several degrees of explicitness, share it.
        degree: of explicitness, from 0 (a command) on.
        request_type: what the user asks for, stated or not.
        state: the user's emotional state.
        language, persona: as of a scenario.
        sessions: in order.
        points: that turns name.
        facts: what the user told, for callbacks.
        tags: short words, such as `minor`.
        provenance, licence: as of a scenario.
    """

    id: str
    study: Study
    kind: Name
    family: Name
    language: Language
    persona: Name
    sessions: Annotated[tuple[Session, ...], Field(min_length=1)]
    degree: Annotated[int, Field(ge=0)] = 0
    request_type: str = ""
    state: str = ""
    points: tuple[Point, ...] = ()
    facts: tuple[Text, ...] = ()
    tags: tuple[Name, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: Text = "unknown"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "case") -> Case:
        """Read and validate one record.

        Raises:
            DataError: a field is missing, unknown or of the wrong kind, a point occurs twice, or a turn names a point
                that does not exist; the message starts with `where` and the case's id.
        """
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: a case must be a JSON object")
        where = f"{where}: {read_id(raw, where)}"
        read_language(raw, where)
        read_mapping(raw, "provenance", where)
        try:
            # As JSON, where strict tuples may be lists.
            case = _adapter().validate_json(json.dumps(raw), strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
            value = "" if first["type"] == "missing" else f", not {quoted(first['input'])}"
            raise DataError(f"{where}: {place}: {first['msg']}{value}") from error
        known = [point.id for point in case.points]
        named = {name for turn in case.turns() for name in turn.points}
        if len(set(known)) < len(known):
            raise DataError(f"{where}: points: an id occurs twice")
        if missing := sorted(named.difference(known)):
            raise DataError(f"{where}: a turn names the point {quoted(missing[0])}, which is not among points")
        return case

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON holds it; `from_dict(to_dict())` gives the same case."""
        return asdict(self)

    def turns(self) -> Iterator[CaseTurn]:
        """Every turn of every session, in order."""
        for session in self.sessions:
            yield from session.turns


@cache
def _adapter() -> TypeAdapter[Case]:
    return TypeAdapter(Case)
