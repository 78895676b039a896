"""Presidio as the engine: our recognisers and a user's in its registry, one analysis a dialogue.

`presidio_analyzer` and spaCy import torch, transformers and GLiNER when they find them: 4 s and 400 MB for recognisers
that nobody asked for. They are hidden while Presidio is imported, here, before any module of the package imports it;
our model recognisers import what they need.
"""

from __future__ import annotations

import os
import sys

from h2htalk.errors import MissingExtraError
from h2htalk.extras import ANONYMIZATION

# Seconds that a pattern of a user's may need on one dialogue; Presidio reads them when it is imported.
os.environ.setdefault("REGEX_TIMEOUT_SECONDS", "2")
_HIDDEN = [
    name for name in ("torch", "transformers", "gliner", "stanza") if name not in sys.modules
]
sys.modules.update(dict.fromkeys(_HIDDEN))  # type: ignore[arg-type]  # None: an import raises ImportError
try:
    import presidio_analyzer  # noqa: F401
    import presidio_anonymizer  # noqa: F401
except ImportError as error:
    raise MissingExtraError(ANONYMIZATION.feature, ANONYMIZATION.install) from error
finally:
    for _name in _HIDDEN:
        del sys.modules[_name]
