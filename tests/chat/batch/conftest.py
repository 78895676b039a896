"""What the tests of batch jobs share."""

from __future__ import annotations

from pathlib import Path

import pytest
from batch_double import PROVIDERS, BatchDouble


@pytest.fixture(params=PROVIDERS)
def double(request: pytest.FixtureRequest, tmp_path: Path) -> BatchDouble:
    """The batch API of each provider, and a folder with a call store."""
    return BatchDouble(request.param, tmp_path)
