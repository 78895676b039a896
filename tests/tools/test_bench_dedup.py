"""The measurement of dedup, small: planted copies are found, and nothing else is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

from bench_dedup import measure


@pytest.mark.parametrize(("share", "kind", "least"), [(0.05, "mixed", 0.99), (0.15, "characters", 0.90)])
def test_planted_copies_are_found_and_look_alikes_are_not_taken_for_any(share, kind, least):
    for row in measure(share, kind, 105, 2, None):
        assert row.recall >= least, row
        assert row.precision >= 0.99, row
