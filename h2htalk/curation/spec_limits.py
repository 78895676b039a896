"""What a specification's numbers may be, which types do not say: a slip of the pen is named before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from h2htalk.errors import ConfigError, quoted

if TYPE_CHECKING:
    from h2htalk.curation.settings import CurateSpec

_MOST_DOLLARS = 1_000_000
_MOST_DIALOGUES = 10_000_000


def check_limits(spec: CurateSpec, path: Path) -> None:
    """See that every number can be meant, and that there is something to curate.

    Raises:
        ConfigError: names `path`, the setting and what it may be.
    """
    gather, review = spec.gather, spec.review
    limits: dict[str, tuple[float | None, float, float]] = {
        "seed": (spec.seed, -(2**63), 2**63 - 1),
        "part": (spec.part, 1, 1_000_000),
        "processes": (spec.processes, 1, 1024),
        "gather.stand_in": (gather.stand_in, 0, _MOST_DIALOGUES),
        "gather.simulate.dialogues": (gather.simulate.dialogues, 0, _MOST_DIALOGUES),
        "gather.simulate.turns": (gather.simulate.turns, 2, 1000),
        "gather.simulate.max_cost": (gather.simulate.max_cost, 0, _MOST_DOLLARS),
        "safety.max_cost": (spec.safety.max_cost, 0, _MOST_DOLLARS),
        # Each side must be 0.6 alike whatever is asked for, so that a lower one would change next to nothing.
        "dedup.threshold": (spec.dedup.threshold, 0.65, 1),
        "compose.references": (spec.compose.references, 1, 100),
        "compose.max_cost": (spec.compose.max_cost, 0, _MOST_DOLLARS),
        "review.samples": (review.samples, 1, 100),
        "review.margin": (review.margin, 0, 9),  # scores go from 1 to 10
        "review.hand_off": (review.hand_off, 0, 1),
        "review.audit": (review.audit, 0, 1),
        "review.accept": (review.accept, 1, 5),
        "review.temperature": (review.temperature, 0, 2),
        "review.max_cost": (review.max_cost, 0, _MOST_DOLLARS),
    }
    for name, (value, least, most) in limits.items():
        # So written that nan, which is neither below nor above, does not pass.
        if value is not None and not least <= value <= most:
            raise ConfigError(f"{path}: {name} is {quoted(value)}; it must be between {least:,} and {most:,}")
    names = [source.name for source in gather.sources]
    if len(set(names)) < len(names):
        raise ConfigError(f"{path}: two sources of one name; ids begin with it, so give each its own")
    if not names and not gather.simulate.dialogues:
        raise ConfigError(f"{path}: no [[gather.sources]] and nothing to simulate: name what to curate")
