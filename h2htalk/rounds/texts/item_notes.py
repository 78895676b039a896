"""What stands above an item's text: the note of its round, and that nobody has read it, or for which questions."""

from __future__ import annotations

from h2htalk.rounds.items import Item
from h2htalk.rounds.texts.interface import interface_text


def shown_note(item: Item) -> str:
    """Return what annotators read above an item, in its language; empty for most."""
    if not item.unread:
        return item.note
    notice = unread_notice(item)
    return f"{item.note.strip()}\n{notice}" if item.note.strip() else notice


def unread_notice(item: Item) -> str:
    """Return what annotators are told of an unread item, in its language: for which questions nobody has read it."""
    if not item.unread_for:
        return interface_text("unread_notice", item.language)
    # Of three gates at most two: an item that is unread for all of them has the other notice.
    kinds, *others = (interface_text(f"unread_{gate}", item.language) for gate in item.unread_for)
    for other in others:
        kinds = interface_text("unread_either", item.language, first=kinds, second=other)
    return interface_text("unread_for_notice", item.language, kinds=kinds)
