"""Selection: quotas, strata, families, and what earlier releases decided."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st
from release_items import items, kept
from releases_made import TAGS, scenario

from h2htalk.curation.release.content import ReleaseItem
from h2htalk.curation.release.selection import History, select

QUOTA = {"dialogue_base": 10}


def ids(chosen: object) -> list[str]:
    return [item.id for item in chosen]  # type: ignore[attr-defined]


def history_of(*releases: Mapping[str, Sequence[ReleaseItem]]) -> History:
    families = {name: [i.family() for one in releases for i in one.get(name, ())] for name in ("test", "dev")}
    return {name: frozenset().union(*own) for name, own in families.items()}


def test_quotas_are_met_and_the_order_of_items_does_not_matter() -> None:
    made = [*items(20), *items(20, "zh", 50)]
    first = select(made, QUOTA | {"dev": 4}, seed=1)
    random.Random(3).shuffle(made)
    again = select(made, QUOTA | {"dev": 4}, seed=1)
    assert ids(first["test"]) == ids(again["test"])
    assert (len(first["test"]), len(first["dev"])) == (10, 4)
    assert not {*ids(first["test"])} & {*ids(first["dev"])}
    assert ids(select(made, QUOTA, seed=2)["test"]) != ids(first["test"])


def test_families_stay_in_their_split() -> None:
    person = {"source": "made", "person": "made-p9999"}
    made = [kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(1, 6)]
    chosen = select([*made, *items(10, first=50)], {"dialogue_base": 8, "dev": 6}, seed=0)
    in_dev = {*ids(chosen["dev"])} & {*ids(made)}
    assert not (in_dev and {*ids(chosen["test"])} & {*ids(made)})
    # Items of an earlier dev are not cut for new ones of their family.
    made = [kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(1, 9)]
    for seed in range(5):
        first = select(made[4:6], {"dev": 2}, seed)
        again = select([*made, *items(5, first=50)], {"dev": 2}, seed, history_of(first))
        assert ids(again["dev"]) == ids(first["dev"])


@given(seed=st.integers(0, 5), dev=st.integers(0, 6))
def test_earlier_releases_keep_their_splits(seed: int, dev: int) -> None:
    made = items(16)
    first = select(made, {"dialogue_base": 6, "dev": dev}, seed)
    history = history_of(first)
    grown = [*made, *items(16, first=100)]
    second = select(grown, {"dialogue_base": 8, "dev": dev + 1}, seed + 1, history)
    assert {*ids(first["test"])} <= {*ids(second["test"])}
    assert {*ids(first.get("dev", ()))} <= {*ids(second["dev"])}
    assert not history["test"] & history_of(second)["dev"]
    # What left the release does not come back in the other split.
    third = select(grown, {"dialogue_base": 2, "dev": 12}, seed, history_of(first, second))
    assert not {*ids(third["dev"])} & {*ids(second["test"])}


def test_splits_keep_the_shares_of_strata_and_dev_has_every_language() -> None:
    sad, glad = (items(30, first=1), items(10, first=100, tags={**TAGS, "emotion": "joy"}))
    made = [*sad, *glad, *items(20, "zh", 200)]
    for seed in range(5):
        for chosen in (select(made, {"dialogue_base": 12}, seed)["test"], select(made, {"dev": 12}, seed)["dev"]):
            counts = Counter((item.scenario.language, item.scenario.tags.emotion) for item in chosen)
            assert counts == {("en", "sadness"): 6, ("en", "joy"): 2, ("zh", "sadness"): 4}
        person = {"source": "made", "person": "made-p9999"}
        theirs = [kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(300, 320)]
        for others in (sad, theirs):
            few = select([*others, *items(1, "zh", 200)], {"dev": 2}, seed)["dev"]
            assert {item.scenario.language for item in few} == {"en", "zh"}
