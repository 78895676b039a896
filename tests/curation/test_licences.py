"""What licences allow together, and what may reach a release."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.licences import LICENCES, find, mixture, refusal, require_allowed
from h2htalk.errors import ConfigError

KNOWN = sorted(licence.id for licence in LICENCES.values())


@pytest.mark.parametrize(
    ("licences", "together"),
    [
        ([], "CC0-1.0"),
        (["CC0-1.0"], "CC0-1.0"),
        (["CC0-1.0", "MIT", "cc-by-4.0"], "CC-BY-4.0"),
        (["MIT", "CC-BY-NC-4.0"], "CC-BY-NC-4.0"),
        (["CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"], "CC-BY-SA-4.0"),
        (["CC-BY-NC-4.0", "CC-BY-NC-SA-4.0"], "CC-BY-NC-SA-4.0"),
        (["ODbL-1.0", "CC-BY-4.0"], "ODbL-1.0"),
        (["GPL-3.0-only", "GPL-3.0-or-later"], "GPL-3.0-only"),
        (["CC-BY-SA-1.0", "CC-BY-4.0"], "CC-BY-SA-1.0"),
    ],
)
def test_the_licence_of_a_mixture(licences: list[str], together: str) -> None:
    assert mixture(licences).licence == together


@pytest.mark.parametrize(
    ("licences", "why"),
    [
        (["CC-BY-SA-4.0", "CC-BY-NC-4.0"], "must stay open to commercial use"),
        (["CC-BY-SA-4.0", "CC-BY-NC-SA-4.0"], "each ask for a licence of their own family"),
        (["CC-BY-SA-4.0", "ODbL-1.0"], "each ask"),
        (["CC-BY-ND-4.0", "CC0-1.0"], "forbids giving changed versions on"),
        (["my own", "CC0-1.0"], "not a licence known here"),
    ],
)
def test_mixtures_that_nothing_allows(licences: list[str], why: str) -> None:
    assert mixture(licences).licence is None
    assert why in mixture(licences).reason


@given(st.lists(st.sampled_from(KNOWN), max_size=5))
def test_a_mixture_is_the_same_in_any_order_and_takes_every_part(licences: list[str]) -> None:
    found = mixture(licences)
    assert found == mixture(reversed(licences))
    if found.licence is not None:
        assert [refusal(licence, found.licence) for licence in licences] == [None] * len(licences)


def test_what_two_sources_may_reach_together_exists_whenever_their_mixture_does() -> None:
    """Nothing is refused as a mixture that some release would take: the table and the rule agree."""
    for one, other in combinations(KNOWN, 2):
        possible = [r for r in KNOWN if refusal(one, r) is None and refusal(other, r) is None]
        open_to_all = [r for r in possible if (found := find(r)) is not None and found.adaptation]
        assert bool(open_to_all) == (mixture([one, other]).licence is not None), (one, other)


@pytest.mark.parametrize(
    ("source", "release", "why"),
    [
        ("CC-BY-NC-4.0", "CC-BY-4.0", "forbids commercial use"),
        ("CC-BY-NC-SA-4.0", "CC-BY-NC-4.0", "stays under it"),
        ("CC-BY-SA-4.0", "CC-BY-4.0", "stays under it"),
        ("CC-BY-SA-4.0", "CC-BY-SA-3.0", "stays under it"),
        # Version 1.0 says nothing of later ones (4b); it was taken for any of them.
        ("CC-BY-SA-1.0", "CC-BY-SA-4.0", "stays under it"),
        ("CC-BY-NC-SA-1.0", "CC-BY-NC-SA-4.0", "stays under it"),
        # `only` became `or-later` in a mixture, and was let into a release of it.
        ("GPL-3.0-only", "GPL-3.0-or-later", "stays under it"),
        ("CC-BY-4.0", "CC0-1.0", "name its makers"),
        ("CC-BY-ND-4.0", "CC-BY-ND-4.0", "forbids giving changed"),
        ("unknown", "CC-BY-4.0", "not a licence known here"),
        ("", "CC-BY-4.0", "not a licence known here"),
    ],
)
def test_a_source_that_may_not_reach_a_release(source: str, release: str, why: str) -> None:
    assert why in (refusal(source, release) or "")
    with pytest.raises(ConfigError, match=r"source 'esconv' cannot enter a release under"):
        require_allowed([("smile", "CC0-1.0"), ("esconv", source)], release)


def test_the_error_names_a_release_that_would_take_all() -> None:
    with pytest.raises(ConfigError, match=r"'CC-BY-NC-4\.0' would allow all sources"):
        require_allowed([("smile", "MIT"), ("esconv", "CC-BY-NC-4.0")], "CC-BY-4.0")


def test_everything_may_enter_a_release_that_is_not_given_on() -> None:
    require_allowed([("a", "unknown"), ("b", "CC-BY-NC-ND-4.0")], "none")


def test_a_release_needs_a_known_licence() -> None:
    with pytest.raises(ConfigError, match=r"gather\.licence: 'free' is not a licence"):
        require_allowed([], "free")
