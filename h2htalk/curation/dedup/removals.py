"""The reduce step of dedup: which pairs are duplicates, and which dialogue of each cluster of them stays.

The best dialogue of a cluster stays (`quality`), and its duplicates in the cluster are removed. The others of the
cluster have a best one of their own, and so on. Every choice is by quality or content, none by the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from h2htalk.curation.dedup.candidate_pairs import MappedDialogues
from h2htalk.curation.dedup.compared_texts import Sides, lengths, similarity
from h2htalk.data.languages import Language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

On = Literal["inputs", "references", "both"]
# The least similarity after the openings, and of the inputs of similar replies: unrelated texts reach 0.35.
_LEAST_REST = 0.5
_LEAST_SIDE = 0.6
# Edits are scattered, while other content in the same frame (a form letter) forms blocks. Where blocks make up more
# than this share of the characters, only the frame is the same.
_MOST_BLOCKS = 0.18
_LONGEST_ALIGNED = 5_000
# From this similarity on blocks are not looked for.
_SURE = 0.9


@dataclass(frozen=True, slots=True)
class Match:
    """The similarity of two duplicates (0 to 1), and where they are similar."""

    similarity: float
    on: On
    exact: bool = False


def match(a: Sides, b: Sides, threshold: float) -> Match | None:
    """How two dialogues are duplicates; None where they are not.

    Both sides together must reach the threshold, and each must be more similar than by chance. One side alone must be
    longer than a phrase and reach a third of the way from the threshold to 1; where the replies alone do, the inputs
    must also be more similar than by chance, as a companion may say the same to many people. Conversations with the
    same opening that continue differently are no duplicates, nor are two texts that fill the same frame differently.
    """
    alone = threshold + (1 - threshold) / 3
    user = similarity(a.user, b.user, _LEAST_SIDE)
    if user == 1.0 and a.companion == b.companion:
        return Match(1.0, "both", True)
    companion = similarity(a.companion, b.companion, _LEAST_SIDE)
    together = _together(a, b, user, companion)
    if together >= threshold and _goes_on_alike(a, b) and not _reframed(a, b, together, "both"):
        return Match(together, "both")
    least = lengths(a.language)
    long_inputs = min(len(a.user), len(b.user)) >= least.least_inputs
    if user >= alone and long_inputs and _goes_on_alike(a, b) and not _reframed(a, b, user, "inputs"):
        return Match(user, "inputs", user == 1.0)
    long_references = min(len(a.companion), len(b.companion)) >= least.least_references
    replied_alike = companion >= alone and long_references and not _reframed(a, b, companion, "references")
    if replied_alike and _asked_alike(a, b):
        return Match(companion, "references", companion == 1.0)
    return None


def _together(a: Sides, b: Sides, user: float, companion: float) -> float:
    """The similarity of both sides as one text; 0 where a side of some length is not similar."""
    sizes = max(len(a.user), len(b.user)), max(len(a.companion), len(b.companion))
    short = lengths(a.language).least_inputs / 2
    for size, value in zip(sizes, (user, companion), strict=True):
        if value < _LEAST_SIDE and size >= short:
            return 0.0
    return (sizes[0] * user + sizes[1] * companion) / max(sum(sizes), 1)


def _reframed(a: Sides, b: Sides, similar: float, on: On) -> bool:
    """Whether two dialogues fill the same frame (a form letter) differently."""
    pairs = [(a.user, b.user)] if on != "references" else []
    pairs += [(a.companion, b.companion)] if on != "inputs" else []
    size = sum(max(map(len, pair)) for pair in pairs)
    if similar >= _SURE or size > _LONGEST_ALIGNED:
        return False
    return sum(_in_blocks(*pair, a.language) for pair in pairs) > _MOST_BLOCKS * size


def _in_blocks(a: str, b: str, language: Language) -> int:
    """The characters of the longer text in blocks of changes."""
    from rapidfuzz.distance import Levenshtein

    least = lengths(language)
    total = block = 0
    for step in Levenshtein.opcodes(a, b):
        size = max(step.src_end - step.src_start, step.dest_end - step.dest_start)
        if step.tag == "equal" and size >= least.run:
            total += block if block >= least.block else 0
            block = 0
        else:
            block += size
    return total + (block if block >= least.block else 0)


def _asked_alike(a: Sides, b: Sides) -> bool:
    """Whether the two users say something more similar than by chance, from beginning to end."""
    return similarity(a.user, b.user, _LEAST_REST) >= _LEAST_REST and _goes_on_alike(a, b)


def _goes_on_alike(a: Sides, b: Sides) -> bool:
    """Whether the users' messages after the opening are similar; true where they are no more than a phrase."""
    longest = max(len(a.rest), len(b.rest))
    if longest < lengths(a.language).least_inputs / 2:
        return True
    return similarity(a.rest, b.rest, _LEAST_REST) >= _LEAST_REST


# --- Clusters ---


@dataclass(frozen=True, slots=True)
class Removal:
    """A removed dialogue, and the reason: `duplicate`, `near_duplicate`, `contaminated`, or (`fold`) `folded`."""

    id: str
    reason: str
    evidence: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "reason": self.reason, "evidence": self.evidence}


def find_removals(
    mapped: MappedDialogues, pairs: tuple[NDArray[np.int64], NDArray[np.int64]], threshold: float
) -> list[Removal]:
    """The removed dialogues, by id.

    Args:
        mapped: all dialogues.
        pairs: nodes that may be duplicates.
        threshold: the similarity (0 to 1) of duplicates, see `match`.
    """
    removals = [
        Removal(mapped.id(number), "contaminated", evidence) for number, evidence in mapped.contaminated.items()
    ]
    best, copies = _best(mapped)
    links: dict[int, dict[int, Match]] = {}
    for first, second in (map(int, pair) for pair in zip(*pairs, strict=True)):  # not `tolist`: memory
        a, b = (mapped.sides(int(mapped.first[node])) for node in (first, second))
        if found := match(a, b, threshold):
            links.setdefault(first, {})[second] = found
            links.setdefault(second, {})[first] = found
    gone = _removed_nodes(links, best, mapped, threshold)
    removals += gone.values()
    for node, numbers in copies.items():
        kept = mapped.id(best[node])
        why = gone.get(node) or Removal(kept, "duplicate", {"of": kept, "on": "both", "similarity": 1.0})
        removals += [replace(why, id=mapped.id(number)) for number in numbers]
    return sorted(removals, key=lambda removal: removal.id)


def _best(mapped: MappedDialogues) -> tuple[NDArray[np.int64], dict[int, list[int]]]:
    """The best dialogue of each node, and the others of nodes with several."""
    import numpy as np

    best = mapped.first.copy()
    members = np.flatnonzero(mapped.node >= 0)
    sizes = np.bincount(mapped.node[members], minlength=len(best))
    crowded = members[sizes[mapped.node[members]] > 1]
    groups: dict[int, list[int]] = {}
    for number, node in zip(crowded.tolist(), mapped.node[crowded].tolist(), strict=True):
        groups.setdefault(node, []).append(number)
    for node, numbers in groups.items():
        best[node] = min(numbers, key=mapped.quality_of)
        numbers.remove(best[node])
    return best, groups


def _removed_nodes(
    links: dict[int, dict[int, Match]], best: NDArray[np.int64], mapped: MappedDialogues, threshold: float
) -> dict[int, Removal]:
    """The nodes that are removed for a better one, to which they are linked directly or by others of the same kind."""
    gone: dict[int, Removal] = {}
    stays: set[int] = set()
    for kept in sorted(links, key=lambda node: mapped.quality_of(int(best[node]))):
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
