"""Scores of single items from another harness's log, in one form."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import parse_object, read_bounded
from h2htalk.errors import ConfigError, DataError, quoted, suggest

_ROLES = {"human": "user", "bot": "assistant", "companion": "assistant"}


@dataclass(frozen=True, slots=True)
class ItemInput:
    """What an item asked: (role, text) with roles user, assistant and system, and references; texts normalised."""

    messages: tuple[tuple[str, str], ...]
    references: tuple[str, ...]

    @classmethod
    def of(cls, messages: Iterable[tuple[str, str]], references: object) -> ItemInput:
        texts = references if isinstance(references, list | tuple) else [references or ""]
        turns = tuple((_ROLES.get(role.lower(), role.lower()), _plain(text)) for role, text in messages)
        return cls(turns, tuple(filter(None, map(_plain, map(str, texts)))))

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        return tuple(turn for turn in self.messages if turn[0] != "system")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One answer to an item.

    Attributes:
        item: its id (`own_id`) or position.
        answer: None where the log has no texts.
        values: metric -> value, or why there is none.
        failure: why there is no answer, else None.
    """

    item: str
    own_id: bool
    epoch: int
    input: ItemInput | None
    answer: str | None
    values: Mapping[str, float | str]
    failure: str | None = None

    def value(self, metric: str) -> float | str:
        """The value, or why there is none: a scorer with several values has one reason for all of them."""
        return self.failure or self.values.get(metric, self.values.get(metric.rpartition("/")[0], "no score"))


@dataclass(frozen=True, slots=True)
class HarnessLog:
    """A log; `notes` are what a reader of its figures must know."""

    path: Path
    harness: str
    model: str
    task: str
    records: Sequence[LogRecord]
    notes: tuple[str, ...] = ()

    def metric(self, name: str | None) -> str:
        """The metric that was named, or the only one. Raises ConfigError, which lists the names, and DataError."""
        names = sorted({key for r in self.records for key, value in r.values.items() if not isinstance(value, str)})
        if name in names or (name is None and len(names) == 1):
            return name or names[0]
        if not names:
            raise DataError(f"{self.path}: no item has a score")
        wrong = "name a metric with --metric: " if name is None else f"no metric {quoted(name)}: {suggest(name, names)}"
        raise ConfigError(f"{self.path}: {wrong}choose from {', '.join(map(quoted, names))}")


def number(value: object, reason: str = "NaN") -> float | str:
    """A value as a number, or why it has none."""
    if not isinstance(value, bool | int | float):
        return "no score" if value is None else "not a number"
    return reason if math.isnan(value) else float(value)


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file of at most 64 MiB, NaN included. Raises DataError."""
    return parse_object(read_bounded(path), str(path), nan=True)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").strip()
