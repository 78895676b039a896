"""Items that nobody has read before the annotators: who gets them, and what annotators are told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from h2htalk.data.languages import Language
from h2htalk.data.scenario import CONTRADICTED, noted_tags
from h2htalk.errors import counted
from h2htalk.rounds.items import Item
from h2htalk.rounds.readers.read_before import ANNOUNCED, ReadBefore
from h2htalk.rounds.settings import Care
from h2htalk.rounds.texts.interface import Share

Record = Mapping[str, Any]


def mark_unread(
    items: Iterable[Item], records: Mapping[str, Record], before: ReadBefore, care: Care
) -> tuple[Item, ...]:
    """Return items, of which those that nobody has read say so, and some are withheld from who declined crises.

    Withheld are unread ones at which words or a classifier point, and the others where `care.unread` says so.
    """
    marked: list[Item] = []
    for item in items:
        gates = before.unread_gates(item)
        is_unread = bool(gates)
        is_hinted = _is_hinted(records.get(item.id, {}))
        is_withheld = is_unread and (is_hinted or care.unread == "withhold")
        # Where nobody has read it for anything, the notice names no kind.
        unread_for = gates if len(gates) < len(ANNOUNCED) else ()
        marked.append(replace(item, unread=is_unread, unread_for=unread_for, withheld=is_withheld))
    return tuple(marked)


def marked_as_stored(items: Iterable[Item], stored: Iterable[Item]) -> tuple[Item, ...]:
    """Return items, marked as those of the round that was opened with them: what it told annotators stays.

    A round of an earlier version showed one reference of an item, and goes on to show that alone.
    """
    known = {item.id: item for item in stored}
    marked: list[Item] = []
    for item in items:
        before = known.get(item.id)
        if before is not None:
            references = item.other_references if before.other_references else ()
            kept = replace(
                item,
                unread=before.unread,
                unread_for=before.unread_for,
                withheld=before.withheld,
                other_references=references,
            )
            marked.append(kept)
        else:
            marked.append(item)
    return tuple(marked)


def describe_unread(items: Collection[Item]) -> list[str]:
    """Return a message on items that nobody has read before the annotators."""
    unread = sum(item.unread for item in items)
    if not unread:
        return []
    withheld = sum(item.withheld for item in items)
    number = f"{unread:,} of {counted(len(items), 'item')}"
    message = (
        f"no reader who counts has read all of {number} for {_gates_of(items)}: annotators are told so in the "
        f"guidelines and above {'its' if unread == 1 else 'their'} text"
    )
    if withheld:
        message += f"; annotators who did not agree to crises do not get {withheld:,} of them"
    return [message]


def _gates_of(items: Collection[Item]) -> str:
    """The gates for which items are unread, with the number of items where it is not the same for all of them."""
    counts = Counter(gate for item in items if item.unread for gate in item.unread_for or ANNOUNCED)
    gates = [gate for gate in ANNOUNCED if counts[gate]]
    names = list[str](gates)
    if len(set(counts.values())) > 1:
        names = [f"{gate} ({counts[gate]:,})" for gate in gates]
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def unread_share(items: Sequence[Item], language: Language) -> Share:
    """Return how many items of a language nobody has read."""
    are_unread = [item.unread for item in items if item.language == language]
    if all(are_unread):
        return "all"
    return "some" if any(are_unread) else "none"


def _is_hinted(record: Record) -> bool:
    """Whether the safety stage noted anything in the metadata of a dialogue, a scenario or a candidate.

    What a guard took back counts, too: an unread item was read by nobody whose reading counts.
    """
    scenario = record.get("scenario", record)
    metadata = scenario.get("metadata") if isinstance(scenario, Mapping) else None
    if not isinstance(metadata, Mapping):
        return False
    safety = metadata.get("safety")
    noted = safety if isinstance(safety, Mapping) else {}
    is_in_doubt = any(noted.get(key) for key in ("crisis_hint", "possible_crisis", CONTRADICTED))
    return is_in_doubt or bool(noted_tags(metadata))
