"""The reduce step of dedup: pairs that are one, clusters of them, and who of each cluster stays.

A cluster's best dialogue stays (`quality`). Another of the cluster goes for its sake when it is one with it. What is
left of a cluster has a best of its own, and so on. Every choice is by quality or content, none by order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from h2htalk.curation.dedup.candidate_pairs import Gathered, Nodes, Pairs
from h2htalk.curation.dedup.similarity import Match, match

if TYPE_CHECKING:
    import numpy as np

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Loser:
    """A dialogue that goes: its id and why: `duplicate`, `near_duplicate`, `contaminated`, or (`fold`) `folded`."""

    id: str
    reason: str
    evidence: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "reason": self.reason, "evidence": self.evidence}


Links = dict[int, dict[int, Match]]


def choose(gathered: Gathered, nodes: Nodes, pairs: Pairs, threshold: float) -> list[Loser]:
    """Who goes, by id.

    Args:
        gathered: the dialogues.
        nodes: which of them are equal.
        pairs: which nodes may be one.
        threshold: similarity (0 to 1) from which two are one, see `dedup_similarity.match`.
    """
    best, copies = _best(gathered, nodes)
    links = _links(gathered, nodes, pairs, threshold)
    losers = [
        Loser(gathered.id(number), "contaminated", evidence)
        for number, evidence in gathered.contaminated.items()
    ]
    gone: dict[int, Loser] = {}
    for cluster in _clusters(links):
        gone.update(_settle(cluster, links, best, gathered, threshold))
    losers += gone.values()
    for node, numbers in copies.items():
        kept = gathered.id(best[node])
        why = gone.get(node) or Loser(kept, "duplicate", {"of": kept, "on": "both", "similarity": 1.0})
        losers += [replace(why, id=gathered.id(number)) for number in numbers]
    return sorted(losers, key=lambda loser: loser.id)


def _best(gathered: Gathered, nodes: Nodes) -> tuple[np.ndarray[Any, Any], dict[int, list[int]]]:
    """The best dialogue of each node, and for nodes of several the others."""
    import numpy as np

    best = nodes.first.copy()
    members = np.flatnonzero(nodes.node >= 0)
    sizes = np.bincount(nodes.node[members], minlength=len(best))
    crowded = members[sizes[nodes.node[members]] > 1]
    groups: dict[int, list[int]] = {}
    for number, node in zip(crowded.tolist(), nodes.node[crowded].tolist(), strict=True):
        groups.setdefault(node, []).append(number)
    for node, numbers in groups.items():
        best[node] = min(numbers, key=gathered.quality_of)
        numbers.remove(best[node])
    return best, groups


def _links(gathered: Gathered, nodes: Nodes, pairs: Pairs, threshold: float) -> Links:
    """The pairs that are one, from both ends."""
    links: Links = {}
    for start in range(0, len(pairs.first), _CHUNK):  # Python's numbers take much memory: some at a time
        part = slice(start, start + _CHUNK)
        for first, second in zip(pairs.first[part].tolist(), pairs.second[part].tolist(), strict=True):
            a, b = (gathered.sides(int(nodes.first[node])) for node in (first, second))
            if found := match(a, b, threshold):
                links.setdefault(first, {})[second] = found
                links.setdefault(second, {})[first] = found
    return links


def _clusters(links: Links) -> Iterator[list[int]]:
    """Nodes that links connect, two or more each."""
    seen: set[int] = set()
    for start in links:
        if start in seen or not links[start]:
            continue
        cluster, waiting = [], [start]
        seen.add(start)
        while waiting:
            node = waiting.pop()
            cluster.append(node)
            fresh = [other for other in links[node] if other not in seen]
            seen.update(fresh)
            waiting += fresh
        yield cluster


def _settle(
    cluster: Iterable[int], links: Links, best: Any, gathered: Gathered, threshold: float
) -> dict[int, Loser]:
    """The nodes of a cluster that go."""
    gone: dict[int, Loser] = {}
    stays: set[int] = set()
    for kept in sorted(cluster, key=lambda node: gathered.quality_of(int(best[node]))):
        if kept in gone:
            continue
        stays.add(kept)
        sides, evidence = gathered.sides(int(best[kept])), {"of": gathered.id(int(best[kept]))}
        waiting = [kept]
        seen = {kept}
        while waiting:
            near = {other for node in waiting for other in links[node]} - seen
            seen |= near
            waiting = []
            for other in sorted(near - gone.keys() - stays):
                # Of many with one equal side only neighbours were compared.
                found = links[other].get(kept) or match(sides, gathered.sides(int(best[other])), threshold)
                if found:
                    reason = "duplicate" if found.exact else "near_duplicate"
                    told = {**evidence, "on": found.on, "similarity": round(found.similarity, 4)}
                    gone[other] = Loser(gathered.id(int(best[other])), reason, told)
                    waiting.append(other)
    return gone
