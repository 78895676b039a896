"""Earlier states of a conversation: a log that stores a conversation again after each reply holds it several times."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable

from h2htalk.curation.gather.raw_items import RawDialogue
from h2htalk.curation.gather.source_files import NamedItem

# Two strangers begin with the same words; where the file names no person, fewer characters are no conversation.
LEAST_CHARACTERS = 40


def find_earlier_states(items: Iterable[NamedItem]) -> dict[str, str]:
    """The id of each item whose messages are the beginning of another item's, and the id of the longest such item.

    Keeps eight bytes a message in memory.

    Args:
        items: of one source.
    """
    import numpy as np

    whole, starts, beginnings = array("Q"), array("Q", [0]), array("Q")
    names: list[str] = []
    for item in items:
        raw = item.item.content
        if not isinstance(raw, RawDialogue) or not raw.messages:
            continue
        states = _states(raw)
        whole.append(states[-1])
        beginnings.extend(states[:-1])
        starts.append(len(beginnings))
        names.append(item.id)
    lengths = np.diff(np.asarray(starts))
    longest: dict[int, tuple[int, int]] = {}  # state -> messages of the longest item that it begins, and which it is
    found = np.flatnonzero(np.isin(beginnings, whole)) if names else ()
    owners = np.searchsorted(starts, found, side="right") - 1
    for place, owner in zip(found, owners, strict=True):
        candidate = (int(lengths[owner]), -int(owner))
        longest[beginnings[place]] = max(candidate, longest.get(beginnings[place], candidate))
    later = ((name, longest.get(state)) for name, state in zip(names, whole, strict=True) if state)
    return {name: names[-best[1]] for name, best in later if best is not None}


def _states(raw: RawDialogue) -> list[int]:
    """A hash of the conversation after each message; 0 for a beginning that may be anybody's."""
    digest = hashlib.blake2b(repr(raw.person).encode("utf-8", "surrogatepass"), digest_size=8)
    states, characters = [], 0
    for role, text in raw.messages:
        digest.update(f"{role}\0{text.strip()}\0".encode("utf-8", "surrogatepass"))
        characters += len(text)
        known = raw.person is not None or characters >= LEAST_CHARACTERS
        states.append(int.from_bytes(digest.digest(), "big") if known else 0)
    return states
