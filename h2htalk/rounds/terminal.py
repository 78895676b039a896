"""A round on the terminal: how far it is, and what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h2htalk.data.files import read_json_object
from h2htalk.errors import counted
from h2htalk.rounds.aggregation.agreement import NO_PAIRS, NO_VARIETY
from h2htalk.rounds.aggregation.decisions import RULES, Decision
from h2htalk.rounds.status import Status
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from rich.table import Table

# Why there is no alpha, as a column holds it; agreement.json has the sentence.
_SHORT = {NO_PAIRS: "no two votes", NO_VARIETY: "one label only"}


def status_lines(found: Status) -> Iterator[str]:
    """How far a round is, in a few lines."""
    yield f"{found.name}: {found.kind} round on {found.where}, {found.state}"
    new = f", {found.new} new" if found.new else ""
    yield f"{found.answers:,} of {found.wanted:,} answers{new}; {found.complete:,} of {found.items:,} items complete"
    if found.left_over:
        short = counted(found.left_over, "item wants", "items want")
        yield f"{short} answers that nobody has before them (skipped or unclear): `h2htalk round reopen` asks on"


def annotators_table(found: Status) -> Table:
    """Annotators by name: what each was given, where that is known, and has done; who was given nothing is counted."""
    columns: dict[str, Mapping[str, int]] = {
        "given": found.given,
        "answered": {name: answered for name, (answered, _) in found.by_annotator.items()},
        "half filled": found.started,
        "skipped": {name: skipped for name, (_, skipped) in found.by_annotator.items()},
    }
    shown = [name for name, numbers in columns.items() if numbers or name in ("answered", "skipped")]
    table = _table("annotator", *shown)
    idle = 0
    for name in found.by_annotator:
        if found.given and not any(numbers.get(name) for numbers in columns.values()):
            idle += 1
            continue
        # A zero is said of answers alone: of the others it is no news.
        numbers = ((column, columns[column].get(name, 0)) for column in shown)
        table.add_row(printable(name), *(f"{n:,}" if n or at == "answered" else "" for at, n in numbers))
    if idle:
        table.add_row(f"{idle:,} given nothing", *("" for _ in shown))
    return table


def decisions_table(path: Path, settled: Sequence[Decision]) -> Table:
    """By question: how many decisions came about how, and how far the annotators agree (Krippendorff's alpha)."""
    counts: dict[str, Counter[str]] = {}
    for one in settled:
        counts.setdefault(one.question, Counter())[one.rule] += 1
    shown = [how for how in RULES if any(count[how] for count in counts.values())]
    agreement = read_json_object(path / "agreement.json")
    table = _table("question", *shown, "alpha", "95 %")
    for question, count in counts.items():
        table.add_row(question, *(f"{count[how]:,}" for how in shown), *_alpha(agreement.get(question)))
    return table


def _alpha(found: Any) -> tuple[str, str]:
    """Alpha and its interval, or why there is none."""
    if not isinstance(found, dict) or found.get("alpha") is None:
        reason = str(found.get("reason", "")) if isinstance(found, dict) else ""
        return _SHORT.get(reason, reason), ""
    interval = found.get("interval")
    return f"{found['alpha']:.3f}", f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else ""


def rounds_table(found: Sequence[Status]) -> Table:
    """Rounds, a row each."""
    table = _table("round", "kind", "where", "state", "answers", "wanted", "items", "complete")
    for one in found:
        numbers = (f"{n:,}" for n in (one.answers, one.wanted, one.items, one.complete))
        table.add_row(printable(one.name), one.kind, one.where, one.state, *numbers)
    return table


def _table(*headings: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for at, heading in enumerate(headings):
        table.add_column(
            heading, justify="left" if at == 0 or heading in ("kind", "where", "state") else "right"
        )
    return table
