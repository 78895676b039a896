"""Conversations that are trees, as programs keep them where an answer is made again or a message is changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Node = Mapping[str, Any]


def branch_of(nodes: Mapping[str, Node], last: object, parent_key: str) -> list[Node]:
    """The nodes from the root to one of them, each with the key of its parent; none where there is no such node."""
    branch: list[Node] = []
    seen: set[str] = set()
    current = last
    while isinstance(current, str) and current in nodes and current not in seen:
        seen.add(current)
        branch.append(nodes[current])
        current = nodes[current].get(parent_key)
    return branch[::-1]


def nodes_by_id(records: object, id_key: str) -> dict[str, Node]:
    """The objects of a list, or of an object of them, by their ids."""
    values = (
        records.values()
        if isinstance(records, Mapping)
        else records
        if isinstance(records, list)
        else ()
    )
    return {
        str(node[id_key]): node
        for node in values
        if isinstance(node, Mapping) and node.get(id_key) is not None
    }


def conversations_of(value: object, *keys: str) -> list[Any]:
    """The conversations of a file: a list, a list under one of some keys, or the one that it is."""
    if isinstance(value, Mapping):
        held = next((value[key] for key in keys if isinstance(value.get(key), list)), None)
        return [value] if held is None else held
    return value if isinstance(value, list) else [value]
