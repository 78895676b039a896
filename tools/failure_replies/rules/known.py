"""What a companion knows when it answers, and the phrases of the rules."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from h2htalk.data.dialogue import Turn
from h2htalk.data.languages import Language
from h2htalk.data.scenario import ScheduleEntry


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


@cache
def phrases(language: Language) -> Mapping[str, re.Pattern[str]]:
    """Read the regular expressions of a language, `phrases/CODE.toml`; each list is one alternation."""
    text = (Path(__file__).parent / "phrases" / f"{language}.toml").read_text(encoding="utf-8")
    return {name: re.compile("|".join(parts), re.IGNORECASE) for name, parts in tomllib.loads(text).items()}
