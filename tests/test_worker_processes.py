"""Processes that work: one that dies is told in words, wherever the next work is handed over or waited for."""

from __future__ import annotations

import os
import signal
import time

import pytest

from h2htalk.errors import ConfigError
from h2htalk.worker_processes import WorkerProcesses, result_of


def test_a_killed_process_is_told_in_words() -> None:
    """Handing over the next work ended in a traceback of the pool: only waiting for work was told in words."""
    with WorkerProcesses(1) as workers:
        future = workers.submit(os.kill, os.getpid(), 0)
        assert result_of(future) is None
        dying = workers.submit(_die)
        with pytest.raises(ConfigError, match="a worker process ended before its work was done"):
            result_of(dying)
        with pytest.raises(ConfigError, match="a worker process ended before its work was done"):
            workers.submit(time.sleep, 0)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
