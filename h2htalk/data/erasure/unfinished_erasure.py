"""Refuse to read from a folder while somebody is erased from it, wherever in it the file lies.

While an erasure works on a folder, and after a kill, the folder holds the file `.erasing`, and words of the erased
person may still lie in it. Every reader of files (`data.files`, Parquet, archives, spreadsheets) asks here, so that no
command has to know of it: neither one that is given the folder, nor one that is given a file or folder inside it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from h2htalk.errors import DataError

MARK = ".erasing"
# The file by which a folder is known to be of a kind; the kinds themselves are in `data.erasure.folder_kinds`.
MARKERS = {
    "workspace": "workspace.json",
    "round": "round.json",
    "run": "run.json",
    "attempt": "attempt.json",
    "study": "study.json",
    "release": "release.json",
    "site": "site.json",
}
# Files that hold counts and ids but no words of a dialogue: an erasure is resumed from them, and `runs` and `site`
# count by them while it works.
_BOOKKEEPING = frozenset(
    {
        *MARKERS.values(),
        "stage.json",
        "summary.json",
        "links.jsonl",
        "tombstones.jsonl",
        "erased.jsonl",
    }
)
_STAGE_COUNTS = re.compile(r"part-\d+\.json")
# What lies beside a release of that name: its private part, and what a build that was killed has left.
_BESIDE = (re.compile(r"(.+)\.private"), re.compile(r"\.(.+)\.part"))
_erasures: list[str] = []  # those that this process carries out now


@contextmanager
def reading_while_erasing() -> Iterator[None]:
    """Let this process read folders from which it erases."""
    _erasures.append("")
    try:
        yield
    finally:
        _erasures.pop()


def refuse_unfinished_erasure(path: Path) -> None:
    """Raise DataError for a file, or folder, in a folder from which an erasure is not finished.

    Not for the process that erases, and not for files that hold no words.
    """
    if _erasures or path.name in _BOOKKEEPING or _STAGE_COUNTS.fullmatch(path.name):
        return
    if "\0" in str(path):  # no file has that name, which its reader says
        return
    parent = os.path.realpath(path)
    while True:
        for folder in _marked_by(parent):
            if is_marked(folder):
                raise DataError(interrupted_message(folder))
        if parent == os.path.dirname(parent):
            return
        parent = os.path.dirname(parent)


def _marked_by(folder: str) -> Iterator[str]:
    """The folders whose mark counts for a folder."""
    yield folder
    parent, name = os.path.split(folder)
    for pattern in _BESIDE:
        match = pattern.fullmatch(name)
        if match is not None:
            yield os.path.join(parent, match[1])


def is_marked(folder: str) -> bool:
    """Whether somebody is being erased from a folder of a known kind. A mark in any other folder, which anybody may
    have put into a shared one, says nothing."""
    if not os.path.lexists(os.path.join(folder, MARK)):
        return False
    return any(os.path.isfile(os.path.join(folder, marker)) for marker in MARKERS.values())


def interrupted_message(folder: str | Path) -> str:
    """What a reader of a marked folder says."""
    return f"{folder}: an erasure was interrupted here; start the same `h2htalk curate erase` again"
