"""What a new round asks those who read its items, which depends on the round that the items come from."""

from __future__ import annotations

from pathlib import Path

from h2htalk.rounds.questions import HARMFUL, READING_KINDS, READING_QUESTIONS
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec


def reading_questions(spec: RoundSpec) -> tuple[str, ...]:
    """Return the names of the reading questions of a new round; experts are asked what the crowd before them was."""
    if spec.sample.keep:
        return tuple(READING_QUESTIONS)
    if spec.kind not in READING_KINDS:
        return ()
    earlier = RoundFolder(Path(spec.items))
    names = {HARMFUL.name, *spec.ask}
    if spec.kind == "expert" and earlier.exists:
        names |= {*earlier.reading_questions()}
    return tuple(name for name in READING_QUESTIONS if name in names)
