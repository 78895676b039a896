"""Status and decisions of rounds as lines and tables for the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object
from h2htalk.errors import counted
from h2htalk.rounds.aggregation.agreement import NO_PAIRS, NO_VARIETY
from h2htalk.rounds.aggregation.decisions import RULES, Decision
from h2htalk.rounds.platforms import Message
from h2htalk.rounds.status import Status
from h2htalk.text.tables import Table

# Short forms of the reasons why alpha is undefined; agreement.json has the long ones.
_SHORT_REASONS = {NO_PAIRS: "no two votes", NO_VARIETY: "one label only"}
# Messages of one kind that are printed in full, and places of the others that are listed.
MAX_FULL, MAX_PLACES = 3, 5


def status_lines(status: Status) -> Iterator[str]:
    """Yield a summary of a round's status."""
    yield f"{status.name}: {status.kind} round on {status.where}, {status.state}"
    yield f"items: {status.items_done:,} of {status.items:,} done"
    new = f"; {counted(status.new, 'new annotation')} collected" if status.new else ""
    yield f"assignments: {status.completed:,} of {status.assignments:,} completed, {status.skipped:,} skipped{new}"
    if status.unassigned:
        items = counted(status.unassigned, "item needs", "items need")
        yield f"{items} further annotators (skipped, or not clear yet): run `h2htalk round reopen`"
    if status.exhausted:
        items = counted(len(status.exhausted), "item")
        yield f"{items} cannot reach the overlap: no further eligible annotator is left"


def grouped(messages: Iterable[str]) -> Iterator[str]:
    """Yield messages in order; of many of one kind the first, with the places of some others and their number."""
    groups: dict[str, list[str]] = {}
    for message in messages:
        groups.setdefault(message.kind if isinstance(message, Message) else message, []).append(message)
    for group in groups.values():
        if len(group) <= MAX_FULL:
            yield from group
            continue
        places = [message.place for message in group if isinstance(message, Message)][1:]
        more = f"; and {len(places) - MAX_PLACES:,} more" if len(places) > MAX_PLACES else ""
        yield group[0]
        yield f"  the same in {len(places):,} more places: {'; '.join(places[:MAX_PLACES])}{more}"


def progress_table(status: Status) -> Table:
    """Return a table of items that are done, open, started and skipped, by language and by annotator."""
    columns = ["items", "done", "open", "started", "skipped"]
    if not any(row.started for row in status.progress):
        columns.remove("started")
    rows = [(one.annotator or "all", one.language, *(getattr(one, key) for key in columns)) for one in status.progress]
    idle = (f"{counted(status.idle, 'annotator')} without items",) if status.idle else ()
    return Table("", ("annotator", "language", *columns), rows, idle)


def decisions_table(path: Path, decisions: Sequence[Decision]) -> Table:
    """Return a table of the number of decisions by question and rule, with Krippendorff's alpha."""
    counts: dict[str, Counter[str]] = {}
    for one in decisions:
        counts.setdefault(one.question, Counter())[one.rule] += 1
    rules = [rule for rule in RULES if any(count[rule] for count in counts.values())]
    agreement = read_json_object(path / "agreement.json")
    rows = [
        (name, *(count[rule] for rule in rules), *_alpha_cells(agreement.get(name))) for name, count in counts.items()
    ]
    return Table("", ("question", *rules, "alpha", "95 %"), rows)


def _alpha_cells(agreement: Any) -> tuple[str, str]:
    """Return alpha and its interval, or why it is undefined."""
    if not isinstance(agreement, dict) or agreement.get("alpha") is None:
        reason = str(agreement.get("reason", "")) if isinstance(agreement, dict) else ""
        return _SHORT_REASONS.get(reason, reason), ""
    interval = agreement.get("interval")
    return f"{agreement['alpha']:.3f}", f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else ""


def rounds_table(rounds: Sequence[Status]) -> Table:
    """Return a table of rounds."""
    rows = [
        (r.name, r.kind, r.where, r.state, r.items, r.items_done, f"{r.completed:,} of {r.assignments:,}")
        for r in rounds
    ]
    return Table("", ("round", "kind", "where", "state", "items", "done", "assignments"), rows)
