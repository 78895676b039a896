"""Closed rounds of experts that have judged the items of a new one before: what they found stays open."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from h2htalk.data.links import follow_links, links_of
from h2htalk.errors import H2HTalkError, counted
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.questions import UNSURE, YES
from h2htalk.rounds.readers.read_before import rounds_before, workspace_of
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import RoundSpec

EXPERT = "expert"


def describe_experts_before(spec: RoundSpec, out: Path, items: Collection[Item]) -> list[str]:
    """Return a message for each closed expert round, besides the one in `out`, that had any of a new one's items."""
    if spec.kind != EXPERT:
        return []
    names = {item.id for item in items}
    messages: list[str] = []
    for path in _related_rounds(spec):
        if path.resolve() == out.resolve():
            continue
        try:
            outcome = _outcome_of_experts(path)
        except H2HTalkError as error:
            # A round that cannot be read, perhaps of another study, must not stop this one.
            messages.append(
                f"{path}: whether experts have judged these items there is not known: {error}"
            )
            continue
        judged = (
            names & {item.id for item in outcome.items if not item.gold}
            if outcome is not None
            else set[str]()
        )
        if outcome is not None and judged:
            messages.append(_message(path, outcome, judged, len(names)))
    return messages


def _message(path: Path, outcome: RoundOutcome, judged: Collection[str], total: int) -> str:
    reading = {question.name for question in outcome.questions if question.is_reading}
    found = {
        item
        for (item, question), decision in outcome.decisions.items()
        if item in judged and question in reading and decision.label in (YES, UNSURE)
    }
    message = f"{path}: experts have judged {len(judged):,} of these {counted(total, 'item')} before, in a closed round"
    if not found:
        return f"{message}; a release takes what they and the experts of this round find"
    number = counted(len(found), "item")
    return (
        f"{message}, and answered yes or not sure about {number}: that stays open in a release, whatever this round "
        "answers"
    )


def _outcome_of_experts(path: Path) -> RoundOutcome | None:
    """Return the outcome of a closed round of experts; None of any other round."""
    folder = RoundFolder(path)
    if not folder.exists or folder.state != "closed" or folder.spec().kind != EXPERT:
        return None
    return read_outcome(path)


def _related_rounds(spec: RoundSpec) -> Iterator[Path]:
    """Yield the rounds before a new one, then all that were made from them or from the workspace, each once."""
    earlier = [folder.path for folder in rounds_before(spec)]
    workspace = workspace_of(spec)
    roots = earlier if workspace is None else [*earlier, workspace]
    known = set[Path]()
    linked = [
        path
        for root in roots
        for link, path in follow_links(links_of(root))
        if link.kind == "round"
    ]
    for path in (*earlier, *linked):
        if path.resolve() not in known:
            known.add(path.resolve())
            yield path
