"""The command line as it is, but impatient with batch jobs: `python tests/quick_batches.py evaluate ...`.

Jobs are looked at every few hundredths of a second instead of every few seconds, since the double's end at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from unittest.mock import patch

from h2htalk.chat.batch import batch_runner, submission
from h2htalk.cli import main


@contextmanager
def hurried() -> Iterator[None]:
    """Batch jobs are waited for in short steps, in this process."""
    pace = partial(batch_runner.Pace, first=0.03, longest=0.2, settle=0.5)
    with (
        patch.object(batch_runner, "Pace", pace),
        patch.multiple(submission, _FIRST_PAUSE=0.1, _LONGEST_PAUSE=0.4),
    ):
        yield


if __name__ == "__main__":
    with hurried():
        main()
