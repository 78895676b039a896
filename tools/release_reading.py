"""Compute what a release lets through where a guard reads every item and people read what it found.

    python tools/release_reading.py [--sensitivity 0.8] [--false-alarms 0.05] [--people 1.0] [--items 20000] [--seed 0]

Of a share `p` of harmful items a guard of sensitivity `s` finds `p s`, and of the harmless ones `(1 - p) f` by mistake.
People read these; they find a share `h` of the harmful ones, which leave the release, and let the others in. So of all
items `p (1 - s h)` are harmful and stay, in a release of `1 - p s h`. Beside the formula stands a simulation.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass

SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)  # of harmful items


@dataclass(frozen=True)
class Reading:
    """What comes of a curation: shares of all items that people read, and of the released ones that are harmful."""

    read_by_people: float
    harmful: float


def computed(share: float, sensitivity: float, false_alarms: float, people: float) -> Reading:
    """The formula; `people`: the share of harmful items that they find among those that they read."""
    open_items = share * sensitivity + (1 - share) * false_alarms
    left = share * (1 - sensitivity * people)
    return Reading(read_by_people=open_items, harmful=left / (1 - share * sensitivity * people))


def simulated(
    share: float,
    sensitivity: float,
    false_alarms: float,
    people: float,
    items: int,
    draw: random.Random,
) -> Reading:
    """The same by drawing each item, the guard's finding and the people's."""
    read, released, harmful_released = 0, 0, 0
    for _ in range(items):
        harmful = draw.random() < share
        found = draw.random() < (sensitivity if harmful else false_alarms)
        read += found
        if harmful and found and draw.random() < people:
            continue
        released += 1
        harmful_released += harmful
    return Reading(read_by_people=read / items, harmful=harmful_released / released)


def lines(
    sensitivity: float, false_alarms: float, people: float, items: int, seed: int
) -> list[str]:
    """The table: a line a share of harmful items."""
    draw = random.Random(seed)
    table = ["harmful before   people read   harmful in the release   simulated"]
    for share in SHARES:
        exact = computed(share, sensitivity, false_alarms, people)
        drawn = simulated(share, sensitivity, false_alarms, people, items, draw)
        table.append(
            f"{share:14.1%}   {exact.read_by_people:11.1%}   {exact.harmful:22.2%}   "
            f"{drawn.read_by_people:.1%}, {drawn.harmful:.2%}"
        )
    return table


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sensitivity", type=float, default=0.8)
    parser.add_argument("--false-alarms", type=float, default=0.05)
    parser.add_argument("--people", type=float, default=1.0)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    print(
        *lines(given.sensitivity, given.false_alarms, given.people, given.items, given.seed),
        sep="\n",
    )


if __name__ == "__main__":
    main()
