"""Where the wedges and labels of a sunburst stand: arithmetic on angles (degrees) and radii (points)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from h2htalk.analysis.figures.labels import Label, label, shortened, width_of
from h2htalk.analysis.figures.style import PALETTE, TINY

if TYPE_CHECKING:
    from h2htalk.analysis.verb_nouns import VerbGroup

TOP = 90.0  # the first wedge starts at twelve o'clock, the others follow clockwise
HOLE, MIDDLE = 0.17, 0.52  # of the outer radius: where the verbs begin, where the nouns begin
PAD = 3.0  # points between a label and its ring's edge
LINE_HEIGHT = 1.1  # of a label's size: what its rectangle is high
OUTSIDE_SIZE = 6.0
LEADER = 12.0  # points from the rim to a label outside
_VERB_SIZES = (9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0, 5.5, TINY)
_NOUN_SIZES = _VERB_SIZES[2:]


@dataclass(frozen=True, slots=True)
class Place:
    """A label along a ray: its near end `near` points from the centre, at `angle`, `size` points high."""

    label: Label
    angle: float
    near: float
    size: float

    @property
    def width(self) -> float:
        return width_of(self.label, self.size)


@dataclass(frozen=True, slots=True)
class Wedge:
    """A piece of a ring, clockwise from `start` down to `end`; `place` is None where no label fits inside."""

    start: float
    end: float
    inner: float
    outer: float
    colour: int
    place: Place | None

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Sunburst:
    """Wedges of both rings; `outside` joins a noun wedge without room to its label beyond the rim."""

    radius: float
    verbs: tuple[Wedge, ...]
    nouns: tuple[Wedge, ...]
    outside: tuple[tuple[Wedge, Place], ...]


def sunburst(groups: Sequence[VerbGroup], half: float, room: float) -> Sunburst:
    """Lay out verbs inside and their nouns outside, angles proportional to counts.

    Args:
        groups: not empty, counts above 0.
        half: points from the centre to the figure's edge.
        room: points that labels beyond the rim may take of it, where there are any.

    Labels lie along rays. A noun whose wedge is too narrow for 5 points stands beyond the rim, tied by a line;
    one whose verb has no room for its own label is labelled `verb noun`.
    """
    radius = half - 4
    verbs, nouns, homeless = _wedges(groups, radius)
    while homeless:  # a smaller disc makes room beyond the rim, and may send more labels there
        widest = max(width_of(shortened(one, room, OUTSIDE_SIZE), OUTSIDE_SIZE) for _, one in homeless)
        smaller = half - 4 - LEADER - widest
        if smaller >= radius:
            break
        radius = smaller
        verbs, nouns, homeless = _wedges(groups, radius)
    near = radius + LEADER
    gap = math.degrees(LINE_HEIGHT * OUTSIDE_SIZE / near)
    angles = spread([wedge.middle for wedge, _ in homeless], gap)
    outside = tuple(
        (wedge, Place(shortened(one, room, OUTSIDE_SIZE), angle, near, OUTSIDE_SIZE))
        for (wedge, one), angle in zip(homeless, angles, strict=True)
    )
    return Sunburst(radius, tuple(verbs), tuple(nouns), outside)


def _wedges(
    groups: Sequence[VerbGroup], radius: float
) -> tuple[list[Wedge], list[Wedge], list[tuple[Wedge, Label]]]:
    total = sum(noun.count for group in groups for noun in group.nouns)
    verbs: list[Wedge] = []
    nouns: list[Wedge] = []
    homeless: list[tuple[Wedge, Label]] = []
    start = TOP
    for index, group in enumerate(groups):
        colour = _colour(index, len(groups))
        end = start - 360 * sum(noun.count for noun in group.nouns) / total
        verb = label(group.verb)
        place = _inside(verb, start, end, HOLE * radius, MIDDLE * radius, _VERB_SIZES)
        verbs.append(Wedge(start, end, HOLE * radius, MIDDLE * radius, colour, place))
        for noun in group.nouns:
            edge = start - 360 * noun.count / total
            one = label(noun.noun if place else f"{group.verb} {noun.noun}")
            inside = _inside(one, start, edge, MIDDLE * radius, radius, _NOUN_SIZES)
            wedge = Wedge(start, edge, MIDDLE * radius, radius, colour, inside)
            nouns.append(wedge)
            if inside is None:
                homeless.append((wedge, one))
            start = edge
        start = end
    return verbs, nouns, homeless


def _colour(index: int, count: int) -> int:
    """Neighbours differ, also the last and the first."""
    if index == count - 1 and count > 1 and index % len(PALETTE) == 0:
        return 2
    return index % len(PALETTE)


def _inside(
    one: Label, start: float, end: float, inner: float, outer: float, sizes: Sequence[float]
) -> Place | None:
    """The label in its wedge, as large as it can be and whole if it can be; None where 5 points are too many."""
    room = outer - inner - 2 * PAD
    angle = (start + end) / 2
    fitting = [size for size in sizes if _fits(one, start - end, outer, size, room)]
    for size in fitting:
        if width_of(one, size) <= room:
            middle = (inner + outer - width_of(one, size)) / 2
            return Place(one, angle, max(middle, _nearest(start - end, size)), size)
    if not fitting:
        return None
    size = min(fitting[0], 6.5)
    cut = shortened(one, room, size)
    return Place(cut, angle, outer - PAD - width_of(cut, size), size)


def _fits(one: Label, degrees: float, outer: float, size: float, room: float) -> bool:
    return outer - PAD - min(width_of(one, size), room) >= _nearest(degrees, size)


def _nearest(degrees: float, size: float) -> float:
    """How far from the centre a label must begin for its wedge to be as wide as the label is high."""
    return 0.0 if degrees >= 180 else LINE_HEIGHT * size / (2 * math.tan(math.radians(degrees / 2)))


def spread(targets: Sequence[float], gap: float) -> list[float]:
    """Angles at least `gap` degrees apart on the circle, each as near to its target as that allows.

    Least squares by pooling neighbours that collide (isotonic regression). The circle is opened at the widest
    empty arc. Where all together do not fit at this gap they stand at equal distances.

    Args:
        targets: descending (clockwise), within one turn.
    """
    count = len(targets)
    if count * gap >= 360:
        return [targets[0] - place * 360 / count for place in range(count)]
    arcs = [targets[i - 1] - targets[i] if i else targets[-1] + 360 - targets[0] for i in range(count)]
    first = max(range(count), key=lambda i: arcs[i]) if count else 0
    turned = [*targets[first:], *(angle - 360 for angle in targets[:first])]
    pools: list[tuple[float, int]] = []  # sum of shifted targets, how many
    for place, angle in enumerate(turned):
        pool = (angle + place * gap, 1)
        while pools and pools[-1][0] / pools[-1][1] < pool[0] / pool[1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1])
        pools.append(pool)
    levels = [total / size for total, size in pools for _ in range(size)]
    placed = [level - place * gap for place, level in enumerate(levels)]
    excess = placed[0] - placed[-1] + gap - 360 if placed else 0.0
    if excess > 0:  # both ends pushed into each other across the opening
        placed = [placed[0] - place * 360 / count for place in range(count)]
    return placed[count - first :] + placed[: count - first] if first else placed
