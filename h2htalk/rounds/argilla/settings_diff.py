"""A dataset as it is on the server against the one that was asked for: what is asked, and in which words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from h2htalk.data.files import json_line

KINDS = ("fields", "questions", "metadata")


def differences(there: Mapping[str, Any], asked: Mapping[str, Any], words: str = "") -> list[str]:
    """In what a dataset that is there differs from the one that is asked for, as annotators meet it.

    Args:
        there, asked: serialised settings, as the SDK gives them.
        words: `adjudications_fingerprint` of what was put out. A later release may ask in other words: what went out
            in the old ones and was left alone is no difference.
    """
    told = []
    if (there["guidelines"] or "").strip() != asked["guidelines"]:
        told.append("other guidelines")
    answers = [one["distribution"]["min_submitted"] for one in (there, asked)]
    if answers[0] != answers[1]:
        told.append(f"{answers[0]} answers an item, not {answers[1]}")
    if there["allow_extra_metadata"] != asked["allow_extra_metadata"]:
        told.append("it takes metadata of any name")
    for kind in KINDS:
        ours, theirs = (_bare(one[kind]) for one in (asked, there))
        told += [f"{kind}: {name} {_told(theirs.get(name), ours.get(name))}"
                 for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]  # fmt: skip
    return told if adjudications_fingerprint(there) == words else told + _reworded(there, asked)


def adjudications_fingerprint(settings: Mapping[str, Any]) -> str:
    """What tells the words of one dataset from those of another: 16 hexadecimal digits."""
    found = {kind: {part["name"]: _words(part) for part in settings[kind]} for kind in KINDS}
    return hashlib.sha256(json_line(found).encode()).hexdigest()[:16]


def missing_parts(there: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Of a half-made dataset: what is not there yet, by kind, ready to send."""
    lacking = {}
    for kind in KINDS:
        names = {one["name"] for one in there[kind]}
        lacking[kind] = [_sent(one) for one in asked[kind] if one["name"] not in names]
    return lacking


def _bare(parts: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Of each field, question or property what decides: its type, choices, and whether it is required."""
    found = {}
    for part in parts:
        settings = part["settings"]
        choices = tuple(option["value"] for option in settings.get("options") or ())
        found[part["name"]] = (settings["type"], choices, part.get("required"))
    return found


def _told(theirs: tuple[Any, ...] | None, ours: tuple[Any, ...] | None) -> str:
    if theirs is None:
        return f"is not there; it was {_kind_of(ours)}"
    if ours is None:
        return f"was added, {_kind_of(theirs)}"
    return f"is {_kind_of(theirs)}, not {_kind_of(ours)}"


def _kind_of(part: tuple[Any, ...] | None) -> str:
    kind, choices, required = part or ("", (), None)
    told = f"{kind} of {', '.join(map(str, choices))}" if choices else str(kind)
    return told if required is None else f"{told} ({'required' if required else 'optional'})"


def _words(part: Mapping[str, Any]) -> dict[str, Any]:
    """What annotators read of a part, by where it stands: the labels of two choices may be swapped under their
    values.
    """
    settings = part["settings"]
    found = {
        "title": part.get("title"),
        "description": part.get("description"),
        "page": settings.get("template"),
    }
    for option in settings.get("options") or ():
        # A number has no label of its own.
        found[f"label of {option['value']}"] = option.get("text")
        found[f"help of {option['value']}"] = option.get("description")
    return {key: value for key, value in found.items() if value}


def _reworded(there: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    told = []
    for kind in KINDS:
        theirs = {part["name"]: part for part in there[kind]}
        for part in asked[kind]:
            if part["name"] not in theirs:
                continue
            ours, found = _words(part), _words(theirs[part["name"]])
            # Choices that are missing or new were told already.
            one_sided = {f"label of {choice}" for choice in _choices(part) ^ _choices(theirs[part["name"]])}
            other = [key for key in sorted({*ours, *found} - one_sided) if ours.get(key) != found.get(key)]
            if other:
                told.append(f"{kind}: {part['name']} shows annotators another {', '.join(other)}")
    return told


def _choices(part: Mapping[str, Any]) -> set[Any]:
    return {option["value"] for option in part["settings"].get("options") or ()}


def _sent(part: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("name", "title", "description", "required", "settings", "visible_for_annotators")
    return {key: part[key] for key in kept if part.get(key) is not None}
