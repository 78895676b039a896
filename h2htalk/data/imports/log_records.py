"""Scores of single items from another harness's log, in one form (`harness_log` reads any log into it)."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import parse_object, read_bounded
from h2htalk.errors import ConfigError, DataError, listed, quoted, suggest

NOT_A_NUMBER = "not a number"
# A message names so many texts that are no scores, each shortened to so many characters.
_NAMED_TEXTS = 3
_LONGEST_NAMED = 40
_ROLES = {"human": "user", "bot": "assistant", "companion": "assistant"}


@dataclass(frozen=True, slots=True)
class ItemInput:
    """What an item asked: (role, text) with roles user, assistant and system, and references; texts normalised."""

    messages: tuple[tuple[str, str], ...]
    references: tuple[str, ...]

    @classmethod
    def of(cls, messages: Iterable[tuple[str, str]], references: object) -> ItemInput:
        texts = references if isinstance(references, list | tuple) else [references or ""]
        turns = []
        for role, text in messages:
            name = role.lower()
            turns.append((_ROLES.get(name, name), _plain(text)))
        plain_references = [_plain(str(text)) for text in texts]
        return cls(messages=tuple(turns), references=tuple(filter(None, plain_references)))

    @property
    def turns(self) -> tuple[tuple[str, str], ...]:
        return tuple(turn for turn in self.messages if turn[0] != "system")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One answer to an item, and its values by metric.

    Attributes:
        item: the item's id, or its position.
        own_id: whether `item` is an id that the item has of its own, and no position.
        values: by metric, the value or why there is none.
        epoch: the number of the sample.
        input: what the item asked, where the log holds it.
        answer: the answer; None in a log without texts.
        failure: why there is no answer; None where there is one.
    """

    item: str
    own_id: bool
    values: Mapping[str, float | str]
    epoch: int = 0
    input: ItemInput | None = None
    answer: str | None = None
    failure: str | None = None

    def value(self, metric: str) -> float | str:
        """The value, or why there is none: a scorer with several values has one reason for all of them."""
        if self.failure:
            return self.failure
        scorer, _, _ = metric.rpartition("/")
        return self.values.get(metric, self.values.get(scorer, "no score"))


@dataclass(frozen=True, slots=True)
class HarnessLog:
    """A log; `notes` say what a reader of its figures must know. `reducer`: how its own figures make one value of the
    epochs of an item, where that is not their mean."""

    path: Path
    harness: str
    model: str
    task: str
    records: Sequence[LogRecord]
    notes: tuple[str, ...] = ()
    reducer: str = ""

    def metric(self, name: str | None) -> str:
        """The metric that was named, or the only one. Raises ConfigError, which lists the names, and DataError."""
        metrics: set[str] = set()
        for record in self.records:
            metrics |= {key for key, value in record.values.items() if not isinstance(value, str)}
        names = sorted(metrics)
        if name in names:
            return name
        if name is None and len(names) == 1:
            return names[0]
        if not names:
            raise DataError(f"{self.path}: no item has a score{self._describe_texts()}")
        if name is None:
            wrong = "name a metric with --metric: "
        else:
            wrong = f"no metric {quoted(name)}: {suggest(name, names)}"
        raise ConfigError(f"{self.path}: {wrong}choose from {', '.join(map(quoted, names))}")

    def _describe_texts(self) -> str:
        """Name the values that are texts and no numbers, each with its metric, or return nothing."""
        texts: dict[tuple[str, str], None] = {}
        for record in self.records:
            for metric, value in record.values.items():
                if isinstance(value, str) and value.startswith(NOT_A_NUMBER):
                    texts[metric, value.removeprefix(f"{NOT_A_NUMBER}: ")] = None
        named = [f"{text} ({metric})" for metric, text in texts]
        return f"; these values are not numbers: {listed(named, _NAMED_TEXTS)}" if named else ""


def number(value: object, reason: str = "NaN") -> float | str:
    """A value as a number, or why it has none."""
    if value is None:
        return "no score"
    if not isinstance(value, bool | int | float):
        return f"{NOT_A_NUMBER}: {quoted(str(value)[:_LONGEST_NAMED])}"
    if math.isnan(value):
        return reason
    if math.isinf(value):
        return f"{NOT_A_NUMBER}: {value}"
    return float(value)


def read_log_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that may hold NaN, as other harnesses write it. Raises DataError."""
    return parse_object(read_bounded(path), str(path), nan=True)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").strip()
