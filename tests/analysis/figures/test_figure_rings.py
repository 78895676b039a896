"""Where the wedges and labels of a sunburst stand."""

from __future__ import annotations

import itertools
import math

import pytest
from figures_made import made_groups
from hypothesis import given, settings
from hypothesis import strategies as st

from h2htalk.analysis.figures.rings import LINE_HEIGHT, Place, Sunburst, Wedge, spread, sunburst
from h2htalk.analysis.verb_nouns import PairCount, VerbGroup, top_verbs

HALF, ROOM = 248.0, 62.0
Corner = tuple[float, float]

WORDS = st.sampled_from(
    ["go", "breathe", "take care of", "喝", "回忆", "congratulations", "拍", "photo", "🎉", "i"]
)
PAIRS = st.lists(st.tuples(WORDS, WORDS, st.integers(1, 2000)), min_size=1, max_size=50)


def groups_of(pairs: list[tuple[str, str, int]]) -> list[VerbGroup]:
    return top_verbs(
        [PairCount(f"{verb}{i % 20}", noun, count) for i, (verb, noun, count) in enumerate(pairs)]
    )[:20]


def places(layout: Sunburst) -> list[Place]:
    inside = [wedge.place for wedge in (*layout.verbs, *layout.nouns) if wedge.place]
    return inside + [place for _, place in layout.outside]


def corners(place: Place) -> list[Corner]:
    """The label's rectangle; its height that of letters, less than the line's."""
    along = math.radians(place.angle)
    half = 0.48 * place.size
    return [
        (r * math.cos(along) - side * math.sin(along), r * math.sin(along) + side * math.cos(along))
        for r, side in (
            (place.near, -half),
            (place.near + place.width, -half),
            (place.near + place.width, half),
            (place.near, half),
        )
    ]


def overlap(a: list[Corner], b: list[Corner]) -> bool:
    """Whether two rectangles share area: no separating axis (Gottschalk, Lin and Manocha 1996)."""
    for shape in (a, b):
        for (x1, y1), (x2, y2) in itertools.pairwise([*shape, shape[0]]):
            axis = (y1 - y2, x2 - x1)
            on_a = [x * axis[0] + y * axis[1] for x, y in a]
            on_b = [x * axis[0] + y * axis[1] for x, y in b]
            if max(on_a) <= min(on_b) + 1e-6 or max(on_b) <= min(on_a) + 1e-6:
                return False
    return True


@given(PAIRS)
@settings(max_examples=60, deadline=None)
def test_no_label_touches_another_and_none_is_smaller_than_five_points(
    pairs: list[tuple[str, str, int]],
) -> None:
    found = places(sunburst(groups_of(pairs), HALF, ROOM))
    assert all(place.size >= 5 for place in found)
    shapes = [corners(place) for place in found]
    assert [
        p for p in itertools.combinations(range(len(found)), 2) if overlap(shapes[p[0]], shapes[p[1]])
    ] == []


@given(PAIRS)
@settings(max_examples=60, deadline=None)
def test_every_noun_is_named_inside_its_wedge_or_beyond_the_rim(pairs: list[tuple[str, str, int]]) -> None:
    groups = groups_of(pairs)
    layout = sunburst(groups, HALF, ROOM)
    homeless = [wedge for wedge, _ in layout.outside]
    assert [wedge for wedge in layout.nouns if wedge.place is None] == homeless
    assert len(layout.nouns) == sum(len(group.nouns) for group in groups)
    for place in places(layout):
        assert max(math.hypot(*corner) for corner in corners(place)) <= HALF + 2


@given(PAIRS)
@settings(max_examples=60, deadline=None)
def test_angles_are_proportional_to_counts_and_fill_the_circle(pairs: list[tuple[str, str, int]]) -> None:
    groups = groups_of(pairs)
    layout = sunburst(groups, HALF, ROOM)
    total = sum(group.count for group in groups)
    counts = [noun.count for group in groups for noun in group.nouns]
    for wedges, expected in ((layout.verbs, [g.count for g in groups]), (layout.nouns, counts)):
        assert [w.start - w.end for w in wedges] == pytest.approx([360 * n / total for n in expected])
        assert wedges[0].start == 90
        assert wedges[-1].end == pytest.approx(-270)


def test_a_label_lies_within_its_wedge() -> None:
    layout = sunburst(made_groups(verbs=14), HALF, ROOM)
    for wedge in (*layout.verbs, *layout.nouns):
        if wedge.place and wedge.start - wedge.end < 180:
            angles = [math.degrees(math.atan2(y, x)) - wedge.middle for x, y in corners(wedge.place)]
            away = [abs((angle + 180) % 360 - 180) for angle in angles]
            assert max(away) <= (wedge.start - wedge.end) / 2
            assert wedge.inner <= wedge.place.near
            assert wedge.place.near + wedge.place.width <= wedge.outer


def test_a_noun_is_named_with_its_verb_where_the_verb_has_no_room() -> None:
    groups = top_verbs([PairCount("have", "dinner", 2000), PairCount("tell", "story", 1)])
    layout = sunburst(groups, HALF, ROOM)
    assert layout.verbs[1].place is None
    assert [place.label.text for _, place in layout.outside] == ["tell story"]


def test_neighbours_differ_in_colour_also_where_the_circle_closes() -> None:
    for verbs in range(2, 21):
        layout = sunburst(made_groups(verbs=verbs), HALF, ROOM)
        colours = [wedge.colour for wedge in layout.verbs]
        assert all(a != b for a, b in itertools.pairwise([*colours, colours[0]]))


def test_one_pair_is_a_full_circle() -> None:
    layout = sunburst(top_verbs([PairCount("make", "tea", 3)]), HALF, ROOM)
    wedges: list[Wedge] = [*layout.verbs, *layout.nouns]
    assert [(w.start, w.end, w.place is not None) for w in wedges] == [(90, -270, True)] * 2


@given(st.lists(st.floats(-270, 90), max_size=40, unique=True), st.floats(0.5, 8))
def test_spread_angles_keep_their_order_and_their_distance(targets: list[float], gap: float) -> None:
    targets = sorted(targets, reverse=True)
    found = spread(targets, gap)
    assert len(found) == len(targets)
    if len(found) > 1:
        turns = sorted(angle % 360 for angle in found)
        apart = [b - a for a, b in itertools.pairwise([*turns, turns[0] + 360])]
        assert min(apart) >= min(gap, 360 / len(found)) - 1e-6


def test_what_does_not_collide_stays_where_it_is() -> None:
    assert [angle % 360 for angle in spread([80, 40, -100], 5)] == pytest.approx([80, 40, 260])


def test_what_collides_gives_way_by_halves() -> None:
    assert [a % 360 for a in spread([10, 10], 4)] == pytest.approx([12, 8])


def test_a_line_of_text_is_higher_than_its_letters() -> None:
    assert LINE_HEIGHT >= 1
