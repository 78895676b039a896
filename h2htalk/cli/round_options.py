"""Options of the commands that open a round; apart from `options`, as other commands need no module of rounds."""

from __future__ import annotations

from h2htalk.cli import options
from h2htalk.rounds.settings import RoundSpec

# The settings of a round that every command which opens one has as options.
_ROUND = ("where", "annotators", "overlap", "seed")
round_options = options.with_options(RoundSpec, *_ROUND)
opening_options = options.with_options(RoundSpec, *_ROUND, "new", "spread")
