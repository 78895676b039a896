"""Our own runs of the scripted model, which every harness is held against."""

from __future__ import annotations

import pytest
from one_model import Ours, run_ours


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ours]:
    return run_ours(tmp_path_factory.mktemp("ours"))
