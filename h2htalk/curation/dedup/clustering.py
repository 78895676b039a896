"""The reduce step of dedup: duplicate pairs, clusters of them, and the dialogues of each cluster that are removed.

The best dialogue of a cluster stays (`quality`), and its duplicates in the cluster are removed. The others of the
cluster have a best one of their own, and so on. Every choice is by quality or content, none by the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, Nodes, Pairs
from h2htalk.curation.dedup.similarity import Match, match

if TYPE_CHECKING:
    import numpy as np

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Removal:
    """A removed dialogue, and the reason: `duplicate`, `near_duplicate`, `contaminated`, or (`fold`) `folded`."""

    id: str
    reason: str
    evidence: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "reason": self.reason, "evidence": self.evidence}


Links = dict[int, dict[int, Match]]


def find_removals(mapped: MappedDialogues, nodes: Nodes, pairs: Pairs, threshold: float) -> list[Removal]:
    """The removed dialogues, by id.

    Args:
        mapped: all dialogues.
        nodes: which of them are equal.
        pairs: nodes that may be duplicates.
        threshold: the similarity (0 to 1) of duplicates, see `similarity.match`.
    """
    best, copies = _best(mapped, nodes)
    links = _links(mapped, nodes, pairs, threshold)
    removals = [
        Removal(mapped.id(number), "contaminated", evidence) for number, evidence in mapped.contaminated.items()
    ]
    gone: dict[int, Removal] = {}
    for cluster in _clusters(links):
        gone.update(_removed_of(cluster, links, best, mapped, threshold))
    removals += gone.values()
    for node, numbers in copies.items():
        kept = mapped.id(best[node])
        why = gone.get(node) or Removal(kept, "duplicate", {"of": kept, "on": "both", "similarity": 1.0})
        removals += [replace(why, id=mapped.id(number)) for number in numbers]
    return sorted(removals, key=lambda removal: removal.id)


def _best(mapped: MappedDialogues, nodes: Nodes) -> tuple[np.ndarray[Any, Any], dict[int, list[int]]]:
    """The best dialogue of each node, and the others of nodes with several."""
    import numpy as np

    best = nodes.first.copy()
    members = np.flatnonzero(nodes.node >= 0)
    sizes = np.bincount(nodes.node[members], minlength=len(best))
    crowded = members[sizes[nodes.node[members]] > 1]
    groups: dict[int, list[int]] = {}
    for number, node in zip(crowded.tolist(), nodes.node[crowded].tolist(), strict=True):
        groups.setdefault(node, []).append(number)
    for node, numbers in groups.items():
        best[node] = min(numbers, key=mapped.quality_of)
        numbers.remove(best[node])
    return best, groups


def _links(mapped: MappedDialogues, nodes: Nodes, pairs: Pairs, threshold: float) -> Links:
    """The duplicate pairs, from both ends."""
    links: Links = {}
    for start in range(0, len(pairs.first), _CHUNK):  # as Python's numbers take much memory
        part = slice(start, start + _CHUNK)
        for first, second in zip(pairs.first[part].tolist(), pairs.second[part].tolist(), strict=True):
            a, b = (mapped.sides(int(nodes.first[node])) for node in (first, second))
            if found := match(a, b, threshold):
                links.setdefault(first, {})[second] = found
                links.setdefault(second, {})[first] = found
    return links


def _clusters(links: Links) -> Iterator[list[int]]:
    """Groups of two or more nodes that links connect."""
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


def _removed_of(
    cluster: Iterable[int], links: Links, best: Any, mapped: MappedDialogues, threshold: float
) -> dict[int, Removal]:
    """The removed nodes of a cluster."""
    gone: dict[int, Removal] = {}
    stays: set[int] = set()
    for kept in sorted(cluster, key=lambda node: mapped.quality_of(int(best[node]))):
        if kept in gone:
            continue
        stays.add(kept)
        sides, evidence = mapped.sides(int(best[kept])), {"of": mapped.id(int(best[kept]))}
        waiting = [kept]
        seen = {kept}
        while waiting:
            near = {other for node in waiting for other in links[node]} - seen
            seen |= near
            waiting = []
            for other in sorted(near - gone.keys() - stays):
                # Of nodes with one equal side only neighbours were compared.
                found = links[other].get(kept) or match(sides, mapped.sides(int(best[other])), threshold)
                if found:
                    reason = "duplicate" if found.exact else "near_duplicate"
                    details = {**evidence, "on": found.on, "similarity": round(found.similarity, 4)}
                    gone[other] = Removal(mapped.id(int(best[other])), reason, details)
                    waiting.append(other)
    return gone
