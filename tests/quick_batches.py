"""The command line as it is, but impatient with batch jobs: `python tests/quick_batches.py evaluate ...`.

Jobs are looked at every few hundredths of a second instead of every few seconds, since the double's end at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from h2htalk.chat.batch import batch_runner
from h2htalk.cli import main


@contextmanager
def hurried() -> Iterator[None]:
    """Batch jobs are waited for in short steps, in this process."""
    with patch.multiple(batch_runner, FIRST_POLL=0.03, LONGEST_POLL=0.2, SETTLE=0.5):
        yield


if __name__ == "__main__":
    with hurried():
        main()
