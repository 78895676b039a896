"""The user turns of a case as scenarios, so that `evaluate` answers and scores them like any other."""

from __future__ import annotations

from collections.abc import Iterator

from h2htalk.data.case import Case, CaseTurn
from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import find_language
from h2htalk.data.scenario import Risk, Scenario, Tags

# Whose prompt and contract the reply to a case's turn has.
SUBTASK = "dialogue_emotion"


def turn_scenarios(case: Case) -> Iterator[Scenario]:
    """Yield a scenario for each user turn that has a reference.

    Its history is the script before the turn, with the references as the companion's words; the first turn of a later
    session says how many days have passed. Its id is `CASE/sN.tM`, its metadata the study, kind, degree, and place;
    turns of one family of cases are one cluster (`benchmark.statistics.clusters`).
    """
    risk: Risk = "high" if case.study == "high_risk" else "none"
    history = list(case.history)
    for place, turn, message in script(case):
        history.append(message)
        if turn.reference:
            yield Scenario(
                id=f"{case.id}/{place}",
                subtask=SUBTASK,
                language=case.language,
                persona=case.persona,
                inputs={"history": tuple(history)},
                references=(turn.reference,),
                tags=Tags(case.state or "unknown", "intermediate", "emotional_support", risk),
                provenance={**case.provenance, "case": case.id, "family": case.family},
                licence=case.licence,
                metadata={"study": case.study, "kind": case.kind, "degree": case.degree},
            )
            history.append(Turn("companion", turn.reference))


def script(case: Case) -> Iterator[tuple[str, CaseTurn, Turn]]:
    """Yield each user turn with its place (`s2.t1`) and its message, which names the days since the session before."""
    later = find_language(case.language)
    for number, session in enumerate(case.sessions, 1):
        for place, turn in enumerate(session.turns, 1):
            gap = later.days_later(session.gap_days) if place == 1 and session.gap_days else ""
            yield f"s{number}.t{place}", turn, Turn("user", gap + turn.user)
