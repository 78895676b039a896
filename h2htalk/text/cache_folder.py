"""Find the folder of files that can be computed again: embeddings, and jieba's dictionary."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `H2HTALK_CACHE` (a leading `~` is the home folder), else `h2htalk/` in the user's cache folder (XDG).

    Raises:
        RuntimeError: the user has no home folder.
    """
    own = os.environ.get("H2HTALK_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "h2htalk"
