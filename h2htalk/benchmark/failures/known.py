"""What a companion knows when it answers, and the phrases of the rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, cast

from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Scenario, ScheduleEntry


@dataclass(frozen=True, slots=True)
class Known:
    """What is known beside the persona.

    `schedule` is in the order of time, an entry lasts until the next; `request` is the text that asks for a plan, empty
    where none is asked for.
    """

    history: tuple[Turn, ...] = ()
    memories: tuple[str, ...] = ()
    schedule: tuple[ScheduleEntry, ...] = ()
    current_activity: str = ""
    request: str = ""

    @property
    def last_message(self) -> str:
        """The user's last message."""
        return next((turn.content for turn in reversed(self.history) if turn.role == "user"), "")


def known_of(scenario: Scenario) -> Known:
    """What a scenario tells the companion."""
    given = cast(Mapping[str, Any], scenario.inputs)
    return Known(
        history=scenario.turns,
        memories=given.get("memories", ()),
        schedule=given.get("today_schedule") or given.get("itinerary") or (),
        current_activity=given.get("current_activity", ""),
        request=given.get("arrangement") or given.get("day_overview") or "",
    )


@cache
def phrases(language: Language) -> Mapping[str, re.Pattern[str]]:
    """Read the regular expressions of a language, `phrases/CODE.toml`; each list is one alternation."""
    text = (files(__package__) / "phrases" / f"{language}.toml").read_text(encoding="utf-8")
    return {name: re.compile("|".join(parts), re.IGNORECASE) for name, parts in tomllib.loads(text).items()}
