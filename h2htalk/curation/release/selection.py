"""Fill the quotas from the accepted items, and divide them into the splits `test` and `dev`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from h2htalk.curation.release.items import ReleaseItem, families
from h2htalk.data.releases.release_folder import DEV, TEST
from h2htalk.rounds.assignment.assignments import seeded_number


@dataclass(frozen=True, slots=True)
class History:
    """Which ids were in a split of an earlier release: of items, dialogues and persons."""

    test: frozenset[str] = frozenset()
    dev: frozenset[str] = frozenset()

    def including(self, splits: Mapping[str, Sequence[ReleaseItem]]) -> History:
        """The history after a release with these splits."""
        test, dev = (
            {one for item in splits.get(name, ()) for one in (item.id, *item.family())} for name in (TEST, DEV)
        )
        return History(self.test | test, self.dev | dev)


def select(
    items: Sequence[ReleaseItem], quotas: Mapping[str, int], seed: int, history: History | None = None
) -> dict[str, tuple[ReleaseItem, ...]]:
    """Choose the items of a release; the result depends on seed and ids, never on the order of items.

    Families are whole: those of split `dev` come first, so that no item of `test` shares a dialogue or person with one
    of them. Families once in `test` never enter `dev`, those once in `dev` never `test`; items of an earlier release
    are chosen before others. Within a subtask of `test`, and in `dev`, language, emotion and complexity keep the shares
    that they have among the accepted items.

    Args:
        items: accepted ones.
        quotas: subtask -> items of split `test`; also `dev`.
        seed: of the choice.
        history: of earlier releases.

    Returns:
        Split -> items, sorted by id; fewer than a quota where there are no more.
    """
    history = history or History()
    family = families(items)
    once = {
        split: {family[item.id] for item in items if not known.isdisjoint((item.id, *item.family()))}
        for split, known in ((TEST, history.test), (DEV, history.dev))
    }

    def by_family(item: ReleaseItem) -> tuple[Any, ...]:
        name = family[item.id]
        return name not in once[DEV], seeded_number(seed, DEV, name), seeded_number(seed, DEV, item.id)

    free = sorted((item for item in items if family[item.id] not in once[TEST]), key=by_family)
    dev = _stratified(free, quotas.get(DEV, 0), seed, history.dev)
    # A language with a small share has one item all the same.
    first = {item.scenario.language: item for item in reversed(free)}
    languages = {item.scenario.language for item in dev}
    dev = [*(item for language, item in first.items() if language not in languages), *dev][: len(dev)]
    in_dev = {family[item.id] for item in dev} | once[DEV]
    others = [item for item in items if family[item.id] not in in_dev]
    others.sort(key=lambda item: seeded_number(seed, TEST, item.id))
    by_subtask: dict[str, list[ReleaseItem]] = defaultdict(list)
    for item in others:
        by_subtask[item.scenario.subtask].append(item)
    test = [
        item for name, own in by_subtask.items() for item in _stratified(own, quotas.get(name, 0), seed, history.test)
    ]
    splits = {TEST: test} | ({DEV: dev} if quotas.get(DEV) else {})
    return {split: tuple(sorted(chosen, key=lambda item: item.id)) for split, chosen in splits.items()}


def _stratified(order: Sequence[ReleaseItem], count: int, seed: int, before: Collection[str]) -> list[ReleaseItem]:
    """At most `count` items: those of earlier releases, then of each stratum its share, by largest remainder."""
    kept = [item for item in order if item.id in before][:count]
    rest, count = [item for item in order if item.id not in before], count - len(kept)
    if len(rest) <= count:
        return [*kept, *rest]
    strata: dict[tuple[str, ...], list[ReleaseItem]] = defaultdict(list)
    for item in rest:
        tags = item.scenario.tags
        strata[item.scenario.language, tags.emotion, tags.complexity].append(item)
    exact = {key: len(theirs) * count / len(rest) for key, theirs in strata.items()}
    taken = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(strata, key=lambda key: (taken[key] - exact[key], seeded_number(seed, *key)))
    for key in by_remainder[: count - sum(taken.values())]:
        taken[key] += 1
    return [*kept, *(item for key, theirs in strata.items() for item in theirs[: taken[key]])]
