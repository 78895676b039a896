"""When a judge's API is switched off: what the provider's list of models says, else a bundled list with its source."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from h2htalk.chat.engines import open_chat

WARN_DAYS = 180


@dataclass(frozen=True, slots=True)
class Retirement:
    """The day on which a model's API ends, and who says so."""

    day: date
    source: str

    def warning(self, model: str, today: date) -> str:
        """Warn of a day that is near or past; empty where it is neither."""
        left = (self.day - today).days
        if left > WARN_DAYS:
            return ""
        when = f"on {self.day}, in {left} days" if left > 0 else f"on {self.day}"
        return (
            f"{model} leaves its API {when} ({self.source}): calibrate a successor on the same answers with "
            "`h2htalk judge succession` before that"
        )


def retirement_of(model: str) -> Retirement | None:
    """Return when `ENGINE:MODEL` is switched off, None where nothing is known. Asks the provider, which costs nothing.

    Raises:
        ConfigError: the model cannot be opened.
    """
    chat = open_chat(model) if model.partition(":")[0] in ("openai", "anthropic") else None
    day = getattr(chat, "retirement_day", lambda: None)()
    if day is not None:
        return Retirement(day, "the provider's list of models")
    return bundled_retirements().get(model)


@cache
def bundled_retirements() -> dict[str, Retirement]:
    """Read the bundled list, by `ENGINE:MODEL`."""
    text = (files("h2htalk.benchmark.judge") / "retirements.toml").read_text(encoding="utf-8")
    return {
        model: Retirement(day, f"{entry['source']}, read {entry['read']}")
        for entry in tomllib.loads(text)["source"]
        for model, day in entry["models"].items()
    }
