"""Items that are not independent, as they share a dialogue, a family of cases, a history or a reference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from h2htalk.data.scenario import Scenario
from h2htalk.text.contracts.memory_blocks import is_null_memory


def clusters_of(scenarios: Iterable[Scenario]) -> dict[str, str]:
    """Item -> the first id of its cluster. A reference that is the null line is shared by chance and ties nothing."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def root(node: tuple[str, str]) -> tuple[str, str]:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    ids = []
    for scenario in scenarios:
        ids.append(scenario.id)
        # Ids sort before what is shared, and so become the roots.
        shared = [("history", "\n".join(f"{turn.role}: {turn.content}" for turn in scenario.turns))]
        shared += [(key, str(scenario.provenance.get(key) or "")) for key in ("dialogue", "family")]
        shared += [("text", text) for text in scenario.references if not is_null_memory(text, scenario.language)]
        for node in shared:
            if node[1]:
                one, other = sorted((root(("", scenario.id)), root(node)))
                parent[other] = one
    return {item: root(("", item))[1] for item in ids}


def design_effect(values: Sequence[float], clusters: Sequence[str]) -> float:
    """Return how much larger the variance of a mean is because items of a cluster resemble each other; 1 or more.

    Where all values are the same, a cluster counts for one.
    """
    mean, totals = fmean(values), dict.fromkeys(clusters, 0.0)
    for value, cluster in zip(values, clusters, strict=True):
        totals[cluster] += value - mean
    square, groups, n = math.fsum((value - mean) ** 2 for value in values), len(totals), len(values)
    if not square:
        return n / groups
    among = math.fsum(total**2 for total in totals.values()) * groups / max(1, groups - 1)
    return max(1.0, among / (square * n / (n - 1)))
