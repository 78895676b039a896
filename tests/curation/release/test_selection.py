"""Selection: quotas, strata, families, and what earlier releases decided."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from release_items import items, kept
from releases_made import TAGS, scenario

from h2htalk.curation.release.selection import History, select

QUOTA = {"dialogue_base": 10}


def ids(chosen: object) -> list[str]:
    return [item.id for item in chosen]  # type: ignore[attr-defined]


def test_quotas_are_met_and_the_order_of_items_does_not_matter() -> None:
    made = [*items(20), *items(20, "zh", 50)]
    first = select(made, QUOTA, 4, seed=1)
    random.Random(3).shuffle(made)
    again = select(made, QUOTA, 4, seed=1)
    assert ids(first.splits["test"]) == ids(again.splits["test"])
    assert (len(first.splits["test"]), len(first.splits["dev"]), first.missing) == (10, 4, {})
    assert not {*ids(first.splits["test"])} & {*ids(first.splits["dev"])}
    assert ids(select(made, QUOTA, 4, seed=2).splits["test"]) != ids(first.splits["test"])


def test_strata_keep_their_shares() -> None:
    sad, glad = (items(30, first=1), items(10, first=100, tags={**TAGS, "emotion": "joy"}))
    chosen = select([*sad, *glad, *items(20, "zh", 200)], {"dialogue_base": 12}, 0, seed=0).splits["test"]
    counts = Counter((item.scenario.language, item.scenario.tags.emotion) for item in chosen)
    assert counts == {("en", "sadness"): 6, ("en", "joy"): 2, ("zh", "sadness"): 4}


def test_what_is_missing_is_named() -> None:
    chosen = select(items(3), {"dialogue_base": 5, "dialogue_emotion": 0}, 0, seed=0)
    assert (len(chosen.splits["test"]), chosen.missing) == (3, {"dialogue_base": 2})


def test_a_family_is_in_one_split() -> None:
    person = {"source": "made", "person": "made-p9999"}
    made = [kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(1, 6)]
    chosen = select([*made, *items(10, first=50)], {"dialogue_base": 8}, 6, seed=0)
    in_dev = {*ids(chosen.splits["dev"])} & {*ids(made)}
    assert not (in_dev and {*ids(chosen.splits["test"])} & {*ids(made)})


@given(seed=st.integers(0, 5), dev=st.integers(0, 6))
def test_earlier_releases_keep_their_splits(seed: int, dev: int) -> None:
    made = items(16)
    first = select(made, {"dialogue_base": 6}, dev, seed)
    history = History().including(first.splits)
    grown = [*made, *items(16, first=100)]
    second = select(grown, {"dialogue_base": 8}, dev + 1, seed + 1, history)
    assert {*ids(first.splits["test"])} <= {*ids(second.splits["test"])}
    assert {*ids(first.splits.get("dev", ()))} <= {*ids(second.splits["dev"])}
    assert not history.test & {one for item in second.splits["dev"] for one in (item.id, *item.family())}
    # What left the release does not come back in the other split.
    third = select(grown, {"dialogue_base": 2}, 12, seed, history.including(second.splits))
    assert not {*ids(third.splits["dev"])} & {*ids(second.splits["test"])}


def test_dev_keeps_the_shares_and_has_every_language() -> None:
    sad, glad = (items(30, first=1), items(10, first=100, tags={**TAGS, "emotion": "joy"}))
    made = [*sad, *glad, *items(20, "zh", 200)]
    for seed in range(5):
        chosen = select(made, {}, 12, seed).splits["dev"]
        counts = Counter((item.scenario.language, item.scenario.tags.emotion) for item in chosen)
        assert counts == {("en", "sadness"): 6, ("en", "joy"): 2, ("zh", "sadness"): 4}
        few = select([*sad, *items(1, "zh", 200)], {}, 2, seed).splits["dev"]
        assert {item.scenario.language for item in few} == {"en", "zh"}


def test_items_of_an_earlier_dev_are_not_cut_for_new_ones_of_their_family() -> None:
    person = {"source": "made", "person": "made-p9999"}
    made = [kept(scenario(n, provenance={**person, "dialogue": f"made-{n:06}"})) for n in range(1, 9)]
    for seed in range(5):
        first = select(made[4:6], {}, 2, seed)
        again = select([*made, *items(5, first=50)], {}, 2, seed, History().including(first.splits))
        assert ids(again.splits["dev"]) == ids(first.splits["dev"])
