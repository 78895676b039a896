"""Fill the quotas from the accepted items, and divide them into the splits `test` and `dev`."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.curation.release.items import ReleaseItem, families
from h2htalk.data.releases.release_folder import DEV, TEST


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

    def to_dict(self) -> dict[str, list[str]]:
        return {TEST: sorted(self.test), DEV: sorted(self.dev)}


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen items by split, sorted by id, and how many each quota lacks."""

    splits: Mapping[str, tuple[ReleaseItem, ...]]
    missing: Mapping[str, int] = field(default_factory=dict)


def select(
    items: Sequence[ReleaseItem], quotas: Mapping[str, int], dev: int, seed: int, history: History | None = None
) -> Selection:
    """Choose the items of a release; the result depends on seed and ids, never on the order of items.

    Families are whole: those of split `dev` come first, so that no item of `test` shares a dialogue or person with one
    of them. Families once in `test` never enter `dev`, those once in `dev` never `test`; items of an earlier release
    are chosen before others. Within a subtask, language, emotion and complexity keep the shares that they have among
    the accepted items.

    Args:
        items: accepted ones.
        quotas: subtask -> items of split `test`.
        dev: items of split `dev`.
        seed: of the choice.
        history: of earlier releases.

    Returns:
        The splits; `missing` names a subtask, or `dev`, whose quota is not met.
    """
    history = history or History()
    family = families(items)
    members: dict[str, list[ReleaseItem]] = defaultdict(list)
    for item in items:
        members[family[item.id]].append(item)
    once: dict[str, set[str]] = {TEST: set(), DEV: set()}
    for name, theirs in members.items():
        ids = {one for item in theirs for one in (item.id, *item.family())}
        for split, known in ((TEST, history.test), (DEV, history.dev)):
            if ids & known:
                once[split].add(name)
    chosen_dev = _choose_dev(members, once, history.dev, dev, seed)
    in_dev = {family[item.id] for item in chosen_dev} | once[DEV]
    pool = [item for item in items if family[item.id] not in in_dev]
    by_subtask: dict[str, list[ReleaseItem]] = defaultdict(list)
    for item in pool:
        by_subtask[item.scenario.subtask].append(item)
    test: list[ReleaseItem] = []
    missing: dict[str, int] = {}
    for subtask, quota in quotas.items():
        found = _stratified(by_subtask[subtask], quota, seed, history.test)
        test += found
        if len(found) < quota:
            missing[subtask] = quota - len(found)
    if len(chosen_dev) < dev:
        missing[DEV] = dev - len(chosen_dev)
    splits = {TEST: tuple(sorted(test, key=lambda item: item.id))}
    if dev:
        splits[DEV] = tuple(sorted(chosen_dev, key=lambda item: item.id))
    return Selection(splits, missing)


def _choose_dev(
    members: Mapping[str, Sequence[ReleaseItem]],
    once: Mapping[str, Collection[str]],
    before: Collection[str],
    count: int,
    seed: int,
) -> list[ReleaseItem]:
    """Items of whole families: those that were in `dev` before, then others.

    Each step takes the family of the stratum that lacks most of its share; languages without an item come first.
    """
    if not count:
        return []
    free = [name for name in members if name not in once[TEST]]
    chosen = [item for name in free if name in once[DEV] for item in members[name]]
    chosen.sort(key=lambda item: (item.id not in before, _number(seed, "dev", item.id)))
    waiting: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in sorted(set(free) - set(once[DEV]), key=lambda name: _number(seed, "dev", name), reverse=True):
        waiting[_stratum(min(members[name], key=lambda item: item.id))].append(name)
    shares = Counter(_stratum(item) for theirs in members.values() for item in theirs)
    while len(chosen) < count and waiting:
        taken = Counter(map(_stratum, chosen))
        languages = {item.scenario.language for item in chosen}
        lacking = min(
            waiting,
            key=lambda key: (key[0] in languages, (taken[key] + 1) / shares[key], _number(seed, "dev", *key)),
        )
        name = waiting[lacking].pop()
        chosen += sorted(members[name], key=lambda item: _number(seed, "dev", item.id))
        if not waiting[lacking]:
            del waiting[lacking]
    return chosen[:count]


def _stratum(item: ReleaseItem) -> tuple[str, ...]:
    """What keeps its share in a split."""
    tags = item.scenario.tags
    return item.scenario.language, tags.emotion, tags.complexity


def _stratified(items: Iterable[ReleaseItem], count: int, seed: int, before: Collection[str]) -> list[ReleaseItem]:
    """At most `count` items: those of earlier releases, then of each stratum its share, by largest remainder."""
    order = sorted(items, key=lambda item: (item.id not in before, _number(seed, "test", item.id)))
    kept = [item for item in order if item.id in before][:count]
    rest, count = [item for item in order if item.id not in before], count - len(kept)
    if len(rest) <= count:
        return [*kept, *rest]
    strata: dict[tuple[str, ...], list[ReleaseItem]] = defaultdict(list)
    for item in rest:
        strata[_stratum(item)].append(item)
    exact = {key: len(theirs) * count / len(rest) for key, theirs in strata.items()}
    taken = {key: int(value) for key, value in exact.items()}
    by_remainder = sorted(strata, key=lambda key: (taken[key] - exact[key], _number(seed, *key)))
    for key in by_remainder[: count - sum(taken.values())]:
        taken[key] += 1
    return [*kept, *(item for key, theirs in strata.items() for item in theirs[: taken[key]])]


def _number(seed: int, *names: str) -> int:
    """A pseudo-random number that depends on the seed and the names alone."""
    text = "\0".join((str(seed), *names))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
