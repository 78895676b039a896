"""Slurm with three virtual nodes, which the tests of this folder share."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from slurm_cluster import PROGRAMS, SlurmCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[SlurmCluster]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    if lacking := [name for name in PROGRAMS if shutil.which(name, path=path) is None]:
        pytest.skip(f"needs {', '.join(lacking)}: apt-get install --no-install-recommends slurm-wlm munge")
    # Not in pytest's folder: munged wants its socket where everybody can reach it.
    home = Path(tempfile.mkdtemp(prefix="h2htalk-slurm-"))
    home.chmod(0o755)
    made = SlurmCluster(home)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(home, ignore_errors=True)
