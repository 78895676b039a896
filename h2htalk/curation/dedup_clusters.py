"""The reduce step of dedup: pairs that are one, clusters of them, and who of each cluster stays.

A cluster's best dialogue stays (`quality`). Another of the cluster goes for its sake when it is one with it, or when
duplicates link the two and they are still alike; a chain of small changes does not carry further than that. What is
left of a cluster has a best of its own, and so on. Every choice is by quality or content, none by order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from h2htalk.curation.dedup_groups import Gathered, Nodes, Pairs
from h2htalk.curation.dedup_similarity import Match, match, resemblance

if TYPE_CHECKING:
    import numpy as np

# What a linked dialogue may be less alike than a pair must be.
_SLACK = 0.2
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Loser:
    """A dialogue that goes: its id, why, and for whose sake; its number and that one's (-1 where that is no dialogue).

    `reason`: `duplicate`, `near_duplicate` or `contaminated`, after `dedup_alternatives.fold` also `folded`.
    """

    id: str
    reason: str
    evidence: dict[str, Any]
    number: int
    kept: int = -1

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
        Loser(gathered.id(number), "contaminated", evidence, number)
        for number, evidence in gathered.contaminated.items()
    ]
    gone: dict[int, tuple[int, str, dict[str, Any]]] = {}
    for cluster in _clusters(links):
        gone.update(_settle(cluster, links, best, gathered, threshold))
    for node, (stays, reason, evidence) in gone.items():
        losers.append(Loser(gathered.id(best[node]), reason, evidence, int(best[node]), int(best[stays])))
    for node, numbers in copies.items():
        if node in gone:
            stays, reason, evidence = gone[node]
        else:
            stays, reason = node, "duplicate"
            evidence = {"of": gathered.id(best[node]), "on": "both", "similarity": 1.0}
        losers += [
            Loser(gathered.id(number), reason, evidence, number, int(best[stays])) for number in numbers
        ]
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
    for first, second, telling in _each(pairs):
        a, b = (gathered.sides(int(nodes.first[node])) for node in (first, second))
        found = match(a, b, threshold, telling=telling)
        if found is not None:
            links.setdefault(first, {})[second] = found
            links.setdefault(second, {})[first] = found
    return links


def _each(pairs: Pairs) -> Iterator[tuple[int, int, bool]]:
    """The pairs one by one; as Python's numbers, which take much memory, a few at a time."""
    for start in range(0, len(pairs.first), _CHUNK):
        part = slice(start, start + _CHUNK)
        arrays = (pairs.first[part], pairs.second[part], pairs.telling[part])
        yield from zip(*(array.tolist() for array in arrays), strict=True)


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
) -> dict[int, tuple[int, str, dict[str, Any]]]:
    """Who of a cluster goes: node -> (the node that stays for it, reason, evidence)."""
    order = sorted(cluster, key=lambda node: gathered.quality_of(int(best[node])))
    gone: dict[int, tuple[int, str, dict[str, Any]]] = {}
    stays: set[int] = set()
    for kept in order:
        if kept in gone:
            continue
        stays.add(kept)
        evidence_of = gathered.id(int(best[kept]))
        edge = [kept]
        while edge:
            reached: dict[int, int] = {}
            for node in edge:
                for other in links[node]:
                    if other not in gone and other not in stays:
                        reached[other] = min(node, reached.get(other, node))
            edge = []
            for other, through in sorted(reached.items()):
                found = _verdict(other, kept, through, links, best, gathered, threshold)
                if found is None:
                    continue
                reason, evidence = found
                gone[other] = (kept, reason, {"of": evidence_of, **evidence})
                edge.append(other)
    return gone


def _verdict(
    other: int, kept: int, through: int, links: Links, best: Any, gathered: Gathered, threshold: float
) -> tuple[str, dict[str, Any]] | None:
    """Why a node goes for another's sake; None: it does not."""
    sides = gathered.sides(int(best[kept])), gathered.sides(int(best[other]))
    # Of many with equal inputs only neighbours were paired: the two may be one all the same.
    direct = links[other].get(kept) or match(*sides, threshold, telling=False)
    if direct is not None:
        reason = "duplicate" if direct.exact else "near_duplicate"
        return reason, {"on": direct.on, "similarity": round(direct.similarity, 4)}
    alike = resemblance(*sides)
    if alike < threshold - _SLACK:
        return None
    return "near_duplicate", {"similarity": round(alike, 4), "through": gathered.id(int(best[through]))}
