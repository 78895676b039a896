"""Presidio as the engine: our recognisers and a user's in its registry, one analysis a dialogue, its operators.

`presidio_analyzer` and spaCy import torch, transformers and GLiNER when they find them: 4 s and 400 MB for recognisers
that nobody asked for. They are hidden while Presidio is imported, here, before any module of the package imports it;
our model recognisers import what they need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from h2htalk.errors import MissingExtraError

_HEAVY = ("torch", "transformers", "gliner", "stanza")


@contextmanager
def _hidden(names: tuple[str, ...]) -> Iterator[None]:
    """Modules that cannot be imported inside, unless they are there already."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: an import raises ImportError
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


# Seconds that a pattern of a user's may need on one dialogue; Presidio reads them when it is imported.
os.environ.setdefault("REGEX_TIMEOUT_SECONDS", "2")
try:
    with _hidden(_HEAVY):
        import presidio_analyzer  # noqa: F401
        import presidio_anonymizer  # noqa: F401
except ImportError as error:
    raise MissingExtraError("anonymization", 'pip install "h2htalk[curation]"') from error
