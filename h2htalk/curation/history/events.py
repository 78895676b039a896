"""Events of an item's history, and their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to one record.

    Attributes:
        stage: of the curation; `round` or `release` after it.
        id: of the record; of a folder that cannot be read, its name.
        what: in a stage `kept` with details, `rejected` with its reason, or an `earlier` state; in a round the round's
            state; `released`; or of a linked folder `missing` or `unreadable`.
        details: no text of the record.
    """

    stage: str
    id: str
    what: str
    details: Mapping[str, Any]


def format_history(events: Sequence[Event]) -> str:
    """The events as text."""
    lines = []
    for event in events:
        lines.append(f"{event.stage:10} {event.what:9} {event.id}")
        lines += [f"{'':10} {line}" for line in _format(event.details)]
    return "\n".join(lines)


def _format(details: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in details.items():
        if isinstance(value, Mapping) and value and all(isinstance(number, int) for number in value.values()):
            yield f"{indent}{key}: " + ", ".join(f"{name} {number:,}" for name, number in value.items())
        elif isinstance(value, Mapping):
            yield f"{indent}{key}"
            yield from _format(value, indent + "  ")
        elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
            yield f"{indent}{key} ({len(value)})"
            for item in value:
                fields = item.items() if isinstance(item, Mapping) else [("", item)]
                yield f"{indent}  " + ", ".join(f"{k} {v}".strip() for k, v in fields)
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{indent}{key}: {text}"
