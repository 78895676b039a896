"""What licences allow together, and which releases they may enter."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import table

from h2htalk.curation.licences import LICENCES, find_licence, mixture, refusal, require_allowed
from h2htalk.errors import ConfigError

KNOWN = sorted(licence.id for licence in LICENCES.values())


@pytest.mark.parametrize(("licences", "expected"), table("curation", "mixtures_of_licences"))
def test_the_licence_of_a_mixture(licences: list[str], expected: str | None) -> None:
    assert mixture(licences) == expected


@given(st.lists(st.sampled_from(KNOWN), max_size=5))
def test_a_mixture_depends_on_no_order_and_allows_every_part(licences: list[str]) -> None:
    found = mixture(licences)
    assert found == mixture(reversed(licences))
    if found is not None:
        assert [refusal(licence, found) for licence in licences] == [None] * len(licences)


def test_a_mixture_and_a_release_allow_the_same() -> None:
    for one, other in combinations(KNOWN, 2):
        possible = [r for r in KNOWN if refusal(one, r) is None and refusal(other, r) is None]
        open_to_all = [r for r in possible if (found := find_licence(r)) is not None and found.adaptation]
        assert bool(open_to_all) == (mixture([one, other]) is not None), (one, other)
    # The error names a release that allows all sources.
    with pytest.raises(ConfigError, match=r"set gather.licence = 'CC-BY-NC-4\.0', which allows all sources"):
        require_allowed([("smile", "MIT"), ("esconv", "CC-BY-NC-4.0")], "CC-BY-4.0")


@pytest.mark.parametrize(("source", "release", "reason"), table("curation", "refused_licences"))
def test_a_source_that_may_not_enter_a_release(source: str, release: str, reason: str) -> None:
    assert reason in (refusal(source, release) or "")
    with pytest.raises(ConfigError, match=r"source 'esconv' cannot enter a release under"):
        require_allowed([("smile", "CC0-1.0"), ("esconv", source)], release)
