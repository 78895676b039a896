"""The reduce step of dedup: which pairs are duplicates, and which dialogue of each cluster of them stays.

The best dialogue of a cluster stays (`quality`), and its duplicates in the cluster are removed. The others of the
cluster have a best one of their own, and so on. Every choice is by quality or content, none by the order of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from h2htalk.curation.dedup.compared_texts import Sides, lengths, similarity

if TYPE_CHECKING:
    from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, Pairs

On = Literal["inputs", "references", "both"]
# The least similarity after the openings, and of the inputs of similar replies: unrelated texts reach 0.35.
_LEAST_REST = 0.5
_LEAST_SIDE = 0.6


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
    same opening that continue differently are no duplicates.
    """
    alone = threshold + (1 - threshold) / 3
    known = lengths(a.language)
    user = similarity(a.user, b.user, _LEAST_SIDE)
    if user == 1.0 and a.companion == b.companion:
        return Match(1.0, "both", True)
    rest, other = (side.user.partition("\n")[2] for side in (a, b))
    if max(len(rest), len(other)) >= known.least_inputs / 2 and similarity(rest, other, _LEAST_REST) < _LEAST_REST:
        return None
    companion = similarity(a.companion, b.companion, _LEAST_SIDE)
    users, companions = (len(a.user), len(b.user)), (len(a.companion), len(b.companion))
    sizes = max(users), max(companions)
    together = (sizes[0] * user + sizes[1] * companion) / max(sum(sizes), 1)
    for size, value in zip(sizes, (user, companion), strict=True):
        if value < _LEAST_SIDE and size >= known.least_inputs / 2:
            together = 0.0
    if together >= threshold:
        return Match(together, "both")
    if user >= alone and min(users) >= known.least_inputs:
        return Match(user, "inputs", user == 1.0)
    replied_alike = companion >= alone and min(companions) >= known.least_references
    if replied_alike and similarity(a.user, b.user, _LEAST_REST) >= _LEAST_REST:
        return Match(companion, "references", companion == 1.0)
    return None


# --- Clusters ---


@dataclass(frozen=True, slots=True)
class Removal:
    """A removed dialogue, and the reason: `duplicate`, `near_duplicate`, `contaminated`, or (`fold`) `folded`."""

    id: str
    reason: str
    evidence: dict[str, Any]


def find_removals(mapped: MappedDialogues, pairs: Pairs, threshold: float) -> list[Removal]:
    """The removed dialogues, by id: each for a better one, to which duplicates of the same one link it.

    Args:
        mapped: all dialogues.
        pairs: dialogues that may be duplicates.
        threshold: the similarity (0 to 1) of duplicates, see `match`.
    """
    removals = [Removal(name, "contaminated", evidence) for name, evidence in mapped.contaminated.items()]
    links: dict[int, dict[int, Match]] = {}
    for first, second in zip(*(map(int, numbers) for numbers in pairs), strict=True):
        if found := match(mapped.sides(first), mapped.sides(second), threshold):
            links.setdefault(first, {})[second] = found
            links.setdefault(second, {})[first] = found
    decided: set[int] = set()
    for kept in sorted(links, key=mapped.quality_of):
        if kept in decided:
            continue
        decided.add(kept)
        sides, kept_id = mapped.sides(kept), mapped.id(kept)
        waiting, seen = [kept], {kept}
        while waiting:
            near = {other for number in waiting for other in links[number]} - seen
            seen |= near
            waiting = []
            for other in sorted(near - decided):
                # Of dialogues with one equal side only neighbours were compared.
                if found := links[other].get(kept) or match(sides, mapped.sides(other), threshold):
                    evidence = {"of": kept_id, "on": found.on, "similarity": round(found.similarity, 4)}
                    reason = "duplicate" if found.exact else "near_duplicate"
                    removals.append(Removal(mapped.id(other), reason, evidence))
                    waiting.append(other)
            decided.update(waiting)
    return sorted(removals, key=lambda removal: removal.id)
