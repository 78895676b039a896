"""A case: one item of a study, with sessions of scripted user turns and points that a reply can be checked for."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, StringConstraints, model_validator

from h2htalk.data.languages import Language, find_language
from h2htalk.data.records import Id, Open, Text, as_json, read_record, strict_record
from h2htalk.data.scenario import Risk, Scenario, Tags, Turn
from h2htalk.errors import quoted

Study = Literal["high_risk", "look_alike", "instructions", "arcs"]
STUDIES: tuple[Study, ...] = get_args(Study)
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$")]
Word = Annotated[str, StringConstraints(pattern="^([a-z][a-z_]*)?$")]
Reply = Annotated[str, StringConstraints(pattern=r"^$|\S")]
# What code finds in a reply or decides about it (`h2htalk.text.point_checks`).
CHECK = re.compile(
    r"fact:(?P<fact>.+)|help_lines|length:(words|characters|sentences|lines):(?P<span>\d+-\d*|-\d+)|exact:.*[^\W_].*"
)
TrivialAnswer = Literal["presence", "refusal", "crisis_script"]
TRIVIAL_ANSWERS: tuple[TrivialAnswer, ...] = get_args(TrivialAnswer)


@strict_record
class CaseTurn:
    """What the user says, a good reply to it (empty: none is given), and the points that the reply is checked for."""

    user: Text
    reference: Reply = ""
    points: tuple[Name, ...] = ()


@strict_record
class Session:
    """Turns without a break; `gap_days` since the session before, 0 for the first one."""

    turns: Annotated[tuple[CaseTurn, ...], Field(min_length=1)]
    gap_days: Annotated[int, Field(ge=0)] = 0


@strict_record
class Point:
    """A yes-or-no statement about a reply: what it must do, or must not do.

    The `text` of a `must_not` point describes the bad behaviour. `aspect` is what the point is about, such as
    `recognise`, `offer_help` or `callback`; agreement is reported by it. `check` is a code rule:
    `length:UNIT:LEAST-MOST` and `exact:TEXT` decide the statement; `fact:ID` and `help_lines` find what a rater is
    shown. `true_of`: the trivial answers, and `reference`, of which raters found the statement true; None: nobody was
    asked.
    """

    id: Name
    kind: Literal["must", "must_not"]
    text: Text
    severity: Annotated[int, Field(ge=1, le=3)] = 1
    aspect: Name = "other"
    check: Text | None = None
    true_of: tuple[TrivialAnswer | Literal["reference"], ...] | None = None


@strict_record
class Fact:
    """Something that the user told, or never told, and that a later turn asks for.

    It is `stated` (true to the end), `corrected` (told, and replaced later by the fact with the id `replaced_by`),
    `forgotten` (told, and the user asked in the session `asked_in` not to bring it up) or a `trap` (never told, or it
    never happened). `session` is where it was told, from 1; of a trap, where the user asks for it. `forms` are words
    by which a reply may mention it; of a trap, wrong details that a model may state. They point a rater to a passage
    and decide nothing.
    """

    id: Name
    kind: Literal["stated", "corrected", "forgotten", "trap"]
    session: Annotated[int, Field(ge=1)]
    text: Text
    forms: tuple[Text, ...] = ()
    replaced_by: Name | None = None
    asked_in: Annotated[int, Field(ge=1)] | None = None


@strict_record
class Case:
    """An item of a study (docs/reference/case.md). Fields that a scenario has too mean the same.

    `kind` is `implicit_help`, `ambiguous` or `context_aware` of `instructions`, else the name of a risk or topic. Cases
    of one need share a `family`; their `degree` of explicitness is 0 (a command) or more. `request_type` is what the
    user asks for, stated or not, and `accepted_types` are others that readers named; `state` the user's emotional
    state, one lower-case word or nothing. `country` (ISO 3166-1) is where the user lives, if the script says so; the
    prompt then names its help lines. `history` is the conversation before the first session: it is given, and no model
    answers its turns. Turns name `points`; `facts` are for points of memory; `tags` are short words, such as `minor`.
    """

    id: Id
    study: Study
    kind: Name
    family: Name
    language: Language
    persona: Name
    sessions: Annotated[tuple[Session, ...], Field(min_length=1)]
    degree: Annotated[int, Field(ge=0)] = 0
    request_type: str = ""
    accepted_types: tuple[str, ...] = ()
    state: Word = ""
    country: Annotated[str, StringConstraints(pattern="^([A-Z]{2})?$")] = ""
    history: tuple[Turn, ...] = ()
    points: tuple[Point, ...] = ()
    facts: tuple[Fact, ...] = ()
    tags: tuple[Name, ...] = ()
    provenance: Open = field(default_factory=dict)
    licence: Text = "unknown"

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str = "case") -> Case:
        """Read one record. Raises DataError (`read_record`), also where something is named that does not exist."""
        return read_record(cls, raw, where)

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON holds it; `from_dict(to_dict())` gives the same case."""
        return as_json(self)

    @model_validator(mode="after")
    def _check_links(self) -> Case:
        problems = "\n".join(_broken_links(self))  # a line for each
        if problems:
            raise ValueError(problems)
        return self

    def points_of(self, turn: CaseTurn) -> tuple[Point, ...]:
        """The points that a turn's reply is checked for."""
        return tuple(point for point in self.points if point.id in turn.points)

    def turns(self) -> Iterator[CaseTurn]:
        """Every turn of every session, in order."""
        return (turn for session in self.sessions for turn in session.turns)


def _broken_links(case: Case) -> Iterator[str]:
    """Yield what names something that the case does not hold, and ids that occur twice."""
    for field_name in ("points", "facts"):
        ids = Counter(record.id for record in getattr(case, field_name))
        for repeated, count in ids.items():
            if count > 1:
                yield f"{field_name}: the id {quoted(repeated)} occurs twice"
    point_ids = {point.id for point in case.points}
    named = itertools.chain.from_iterable(turn.points for turn in case.turns())
    for point_id in sorted(set(named) - point_ids):
        yield f"a turn names the point {quoted(point_id)}, which is not among points"
    if case.sessions[0].gap_days:
        yield "sessions.1.gap_days: the first session follows none; it must be 0"
    facts = {fact.id: fact for fact in case.facts}
    for point in case.points:
        yield from _broken_check(point, facts)
    for fact in case.facts:
        correction = facts.get(fact.replaced_by or "")
        yield from _broken_fact(fact, correction, len(case.sessions))
    roles = [turn.role for turn in case.history]
    rounds = len(roles) // 2
    if roles and roles != ["user", "companion"] * rounds:
        yield "history: user and companion take turns, and the companion speaks last"


def _broken_check(point: Point, facts: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the check of a point, in a case with these facts."""
    check = CHECK.fullmatch(point.check or "help_lines")
    if check is None:
        choices = "fact:ID, help_lines, length:UNIT:LEAST-MOST or exact:TEXT"
        yield f"point {point.id}: no check {quoted(point.check)}; write {choices}"
    elif check["span"]:
        least, _, most = check["span"].partition("-")
        if most and max(1, int(least or 0)) > int(most):
            yield f"point {point.id}: no reply can meet {quoted(point.check)}"
    elif check["fact"] and check["fact"] not in facts:
        yield f"point {point.id}: {quoted(point.check)} names no fact of the case"


def _broken_fact(fact: Fact, correction: Fact | None, sessions: int) -> Iterator[str]:
    """Yield what is wrong with the sessions of a fact, and with the fact that corrects it."""
    told_later = False
    if correction is not None and correction.kind != "trap":
        told_later = correction.session >= fact.session
    is_replaced = fact.replaced_by is not None
    if (fact.kind == "corrected") != is_replaced or (fact.replaced_by and not told_later):
        yield f"fact {fact.id}: a corrected fact, and no other, names the right one, told later, in replaced_by"
    if (fact.kind == "forgotten") != (fact.asked_in is not None):
        yield f"fact {fact.id}: a forgotten fact, and no other, needs asked_in"
    elif fact.asked_in and fact.asked_in < fact.session:
        yield f"fact {fact.id}: asked_in is before the session in which it was told"
    if max(fact.session, fact.asked_in or 1) > sessions:
        yield f"fact {fact.id}: there is no such session"


SUBTASK = "dialogue_emotion"  # whose prompt and contract the reply to a case's turn has


def turn_scenarios(case: Case) -> Iterator[Scenario]:
    """Yield a scenario for each user turn that has a reference, so that `evaluate` answers and scores it.

    Its history is the script before the turn, with the references as the companion's words; the first turn of a later
    session says how many days have passed. Its id is `CASE/sN.tM`, its metadata the study, kind, degree, and place;
    turns of one family of cases are one cluster (`benchmark.statistics.averages.clusters_of`).
    """
    risk: Risk = "high" if case.study == "high_risk" else "none"
    history = list(case.history)
    for turn_id, turn, message in script(case):
        history.append(message)
        if turn.reference:
            yield Scenario(
                id=f"{case.id}/{turn_id}",
                subtask=SUBTASK,
                language=case.language,
                persona=case.persona,
                inputs={"history": tuple(history)},
                references=(turn.reference,),
                tags=Tags(case.state or "unknown", "intermediate", "emotional_support", risk),
                provenance={**case.provenance, "case": case.id, "family": case.family},
                licence=case.licence,
                metadata={
                    "study": case.study,
                    "kind": case.kind,
                    "degree": case.degree,
                    "country": case.country,
                },
            )
            history.append(Turn("companion", turn.reference))


def script(case: Case, filled: int = 0) -> Iterator[tuple[str, CaseTurn, Turn]]:
    """Yield each user turn with its place (`s2.t1`) and its message, which names the days since the session before.

    `filled`: so many of the days before each later session are told in other messages.
    """
    for number, session in enumerate(case.sessions, 1):
        for position, turn in enumerate(session.turns, 1):
            days = 0
            if position == 1 and session.gap_days:
                days = max(1, session.gap_days - filled)
            message = Turn("user", days_later(case.language, days) + turn.user)
            yield f"s{number}.t{position}", turn, message


def days_later(language: Language, days: int) -> str:
    """What a message begins with after so many days; nothing on the same day."""
    if not days:
        return ""
    record = find_language(language)
    next_day, later = record.gap_notes
    note = later if days > 1 else next_day
    return note.format(days=days) + record.joint


def points_at(case: Case, turn_id: str) -> tuple[Point, ...]:
    """Return the points of a turn by its place, such as `s2.t1`."""
    session, turn = place_numbers(turn_id)
    return case.points_of(case.sessions[session - 1].turns[turn - 1])


def place_numbers(turn_id: str) -> tuple[int, ...]:
    """Return the numbers of session and turn, from 1, of a place such as `s2.t1`."""
    return tuple(map(int, turn_id[1:].split(".t")))


def types_of(cases: Iterable[Case]) -> list[str]:
    """The types of request among which a model chooses."""
    return sorted({case.request_type for case in cases if case.request_type})
