"""A case: one item of a study, with sessions of scripted user turns and points that a reply can be checked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError, with_config

from h2htalk.data.dialogue import Turn, read_id, read_mapping
from h2htalk.data.languages import Language
from h2htalk.errors import DataError, quoted

Study = Literal["high_risk", "look_alike", "instructions", "arcs"]
STUDIES: tuple[Study, ...] = ("high_risk", "look_alike", "instructions", "arcs")
Text = Annotated[str, StringConstraints(pattern=r"\S")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
Word = Annotated[str, StringConstraints(pattern="^([a-z][a-z_]*)?$")]
Reply = Annotated[str, StringConstraints(pattern=r"^$|\S")]
FactKind = Literal["stated", "corrected", "forgotten", "trap"]
# What code decides about a reply (`h2htalk.text.point_checks`); those in `FACT_CHECKS` name a fact: `mentions:f1`.
FACT_CHECKS, CHECKS = ("mentions", "omits"), ("mentions", "omits", "help_lines")
_STRICT = ConfigDict(extra="forbid")


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class CaseTurn:
    """What the user says, a good reply to it (empty: none is given), and the points that the reply is checked for."""

    user: Text
    reference: Reply = ""
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

    Attributes:
        text: the statement; of a `must_not` point it describes the bad behaviour.
        severity: how much it matters, 1 to 3.
        aspect: what the point is about, such as `recognise`, `offer_help` or `callback`; agreement is reported by it.
        check: the code rule that decides it (`CHECKS`); None: a judge or a person.
    """

    id: Name
    kind: Literal["must", "must_not"]
    text: Text
    severity: Annotated[int, Field(ge=1, le=3)] = 1
    aspect: Name = "other"
    check: Name | None = None


@with_config(_STRICT)
@dataclass(frozen=True, slots=True)
class Fact:
    """Something that the user told, or never told, and that a later turn asks for.

    Attributes:
        kind: `stated`: true to the end; `corrected`: told, and replaced later; `forgotten`: told, and the user asked
            not to bring it up; `trap`: never told, or never happened.
        session: where it was told, from 1; of a trap, where the user asks for it.
        forms: words by which a reply mentions it; any of them counts. Of a trap, wrong details that a model may state.
        replaced_by: of a corrected fact, the id of the right one.
        asked_in: of a forgotten fact, the session of the request.
    """

    id: Name
    kind: FactKind
    session: Annotated[int, Field(ge=1)]
    text: Text
    forms: tuple[Text, ...] = ()
    replaced_by: Name | None = None
    asked_in: Annotated[int, Field(ge=1)] | None = None


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
        state: the user's emotional state, one lower-case word or nothing.
        language, persona: as of a scenario.
        sessions: in order.
        history: the conversation before the first session; it is given, and no model answers its turns.
        points: that turns name.
        facts: what the user told or never told, for points of memory.
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
    state: Word = ""
    history: tuple[Turn, ...] = ()
    points: tuple[Point, ...] = ()
    facts: tuple[Fact, ...] = ()
    tags: tuple[Name, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    licence: Text = "unknown"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "case") -> Case:
        """Read and validate one record.

        Raises:
            DataError: a field is missing, unknown or of the wrong kind, an id occurs twice, or something is named that
                does not exist; the message lists all such errors, each with `where` and the case's id.
        """
        if not isinstance(raw, Mapping):
            raise DataError(f"{where}: a case must be a JSON object")
        where = f"{where}: {read_id(raw, where)}"
        mapping = {"provenance": read_mapping(raw, "provenance", where)} if "provenance" in raw else {}
        try:
            # As JSON, where strict tuples may be lists.
            case = _adapter().validate_json(json.dumps(dict(raw) | mapping), strict=True)
        except ValidationError as error:
            errors = map(_describe, error.errors(include_url=False))
            raise DataError("\n".join(f"{where}: {one}" for one in errors)) from error
        if broken := list(_broken_links(case)):
            raise DataError("\n".join(f"{where}: {one}" for one in broken))
        return case

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON holds it; `from_dict(to_dict())` gives the same case."""
        return asdict(self)

    def points_of(self, turn: CaseTurn) -> tuple[Point, ...]:
        """The points that a turn's reply is checked for."""
        return tuple(point for point in self.points if point.id in turn.points)

    def turns(self) -> Iterator[CaseTurn]:
        """Every turn of every session, in order."""
        for session in self.sessions:
            yield from session.turns


def _describe(error: Mapping[str, Any]) -> str:
    place = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in error["loc"])
    value = "" if error["type"] == "missing" else f", not {quoted(error['input'])}"
    return f"{place}: {error['msg']}{value}"


def _broken_links(case: Case) -> Iterator[str]:
    """What names something that the case does not hold, and ids that occur twice."""
    for name, ids in (("points", [one.id for one in case.points]), ("facts", [one.id for one in case.facts])):
        yield from (f"{name}: the id {quoted(one)} occurs twice" for one, count in Counter(ids).items() if count > 1)
    points, facts = {one.id for one in case.points}, {one.id: one for one in case.facts}
    for name in sorted({name for turn in case.turns() for name in turn.points} - points):
        yield f"a turn names the point {quoted(name)}, which is not among points"
    if any(not turn.content.strip() for turn in case.history):
        yield "history: content must be text that is not empty"
    if case.sessions[0].gap_days:
        yield "sessions.1.gap_days: the first session follows none; it must be 0"
    for point in case.points:
        rule, _, name = (point.check or "").partition(":")
        if rule and (rule not in CHECKS or (rule not in FACT_CHECKS and name)):
            yield f"point {point.id}: no check {quoted(point.check)}; choose from {', '.join(CHECKS)}"
        elif rule in FACT_CHECKS and (name not in facts or not facts[name].forms):
            yield f"point {point.id}: {quoted(point.check)} needs a fact with forms"
    for fact in case.facts:
        right = facts.get(fact.replaced_by or "")
        if (fact.kind == "corrected") != (fact.replaced_by is not None) or (
            fact.replaced_by and (right is None or right.kind == "trap" or right.session < fact.session)
        ):
            yield f"fact {fact.id}: a corrected fact, and no other, names the right one, told later, in replaced_by"
        if (fact.kind == "forgotten") != (fact.asked_in is not None):
            yield f"fact {fact.id}: a forgotten fact, and no other, needs asked_in"
        elif fact.asked_in and fact.asked_in < fact.session:
            yield f"fact {fact.id}: asked_in is before the session in which it was told"
        if max(fact.session, fact.asked_in or 1) > len(case.sessions):
            yield f"fact {fact.id}: there is no such session"
    if case.history and [turn.role for turn in case.history] != ["user", "companion"] * (len(case.history) // 2):
        yield "history: user and companion take turns, and the companion speaks last"


@cache
def _adapter() -> TypeAdapter[Case]:
    return TypeAdapter(Case)
