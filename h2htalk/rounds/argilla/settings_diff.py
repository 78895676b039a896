"""Differences between a dataset's settings on the server and those that the round needs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from h2htalk.data.files import json_line

KINDS = ("fields", "questions", "metadata")


def differences(actual: Mapping[str, Any], expected: Mapping[str, Any], texts: str = "") -> list[str]:
    """Return messages on what annotators see differently.

    Args:
        actual, expected: serialised settings, as the SDK returns them.
        texts: `texts_fingerprint` when the dataset was created. Texts that still have it are no difference: a later
            release may have other texts.
    """
    messages = []
    if (actual["guidelines"] or "").strip() != expected["guidelines"]:
        messages.append("other guidelines")
    numbers = [one["distribution"]["min_submitted"] for one in (actual, expected)]
    if numbers[0] != numbers[1]:
        messages.append(f"{numbers[0]} annotators per item, not {numbers[1]}")
    if actual["allow_extra_metadata"] != expected["allow_extra_metadata"]:
        messages.append("metadata of any name is allowed")
    for kind in KINDS:
        ours, theirs = (_structure(one[kind]) for one in (expected, actual))
        messages += [f"{kind}: {name} {_describe_difference(theirs.get(name), ours.get(name))}"
                     for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]  # fmt: skip
    return messages if texts_fingerprint(actual) == texts else messages + _changed_texts(actual, expected)


def texts_fingerprint(settings: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over the texts that annotators see."""
    texts = {kind: {part["name"]: _part_texts(part) for part in settings[kind]} for kind in KINDS}
    return hashlib.sha256(json_line(texts).encode()).hexdigest()[:16]


def missing_parts(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return by kind the parts that a partly created dataset lacks, as the server accepts them."""
    missing = {}
    for kind in KINDS:
        names = {one["name"] for one in actual[kind]}
        missing[kind] = [_request_body(one) for one in expected[kind] if one["name"] not in names]
    return missing


def _structure(parts: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """Return type, choices and requiredness of each field, question or property."""
    return {
        part["name"]: (
            part["settings"]["type"],
            tuple(option["value"] for option in part["settings"].get("options") or ()),
            part.get("required"),
        )
        for part in parts
    }


def _describe_difference(theirs: tuple[Any, ...] | None, ours: tuple[Any, ...] | None) -> str:
    if theirs is None:
        return f"is missing; it was {_describe_structure(ours)}"
    if ours is None:
        return f"was added, {_describe_structure(theirs)}"
    return f"is {_describe_structure(theirs)}, not {_describe_structure(ours)}"


def _describe_structure(part: tuple[Any, ...] | None) -> str:
    kind, choices, required = part or ("", (), None)
    text = f"{kind} of {', '.join(map(str, choices))}" if choices else str(kind)
    return text if required is None else f"{text} ({'required' if required else 'optional'})"


def _part_texts(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a part, by where they are displayed: the labels of two values may be swapped."""
    settings = part["settings"]
    texts = {
        "title": part.get("title"),
        "description": part.get("description"),
        "page": settings.get("template"),
    }
    for option in settings.get("options") or ():
        # Ratings have no labels.
        texts[f"label of {option['value']}"] = option.get("text")
        texts[f"help of {option['value']}"] = option.get("description")
    return {key: value for key, value in texts.items() if value}


def _changed_texts(actual: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    messages = []
    for kind in KINDS:
        by_name = {part["name"]: part for part in actual[kind]}
        for part in expected[kind]:
            if part["name"] not in by_name:
                continue
            theirs = by_name[part["name"]]
            ours, texts = _part_texts(part), _part_texts(theirs)
            # Missing and added choices are differences in structure.
            one_sided = {f"label of {choice}" for choice in _choices(part) ^ _choices(theirs)}
            changed = [key for key in sorted({*ours, *texts} - one_sided) if ours.get(key) != texts.get(key)]
            if changed:
                messages.append(f"{kind}: {part['name']} has another {', '.join(changed)}")
    return messages


def _choices(part: Mapping[str, Any]) -> set[Any]:
    return {option["value"] for option in part["settings"].get("options") or ()}


def _request_body(part: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("name", "title", "description", "required", "settings", "visible_for_annotators")
    return {key: part[key] for key in keys if part.get(key) is not None}
