"""Count the tokens of a model with its `tokenizer.json`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from h2htalk.errors import ConfigError, MissingExtraError, quoted, shorten
from h2htalk.extras import INSTALL_EMBEDDED

TokenCounter = Callable[[Sequence[str]], list[int]]

FILE_NAME = "tokenizer.json"
BATCH = 256  # texts whose tokens are held at once
_CHOICES = f"name a {FILE_NAME}, or a folder that holds one"


@dataclass(frozen=True, slots=True)
class NamedCounter:
    """A TokenCounter with a name: its file and the first digits of its SHA-256."""

    name: str
    _tokenizer: Any = field(repr=False)

    def __call__(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, without special ones.

        Nothing is truncated, whatever length the tokenizer's file sets. A special token's name within a text is plain
        text; half of a surrogate pair counts as a question mark. Raises ConfigError for what has no token.
        """
        counts: list[int] = []
        for start in range(0, len(texts), BATCH):
            batch = [
                text.encode("utf-8", "replace").decode() for text in texts[start : start + BATCH]
            ]
            try:
                encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            # The library raises plain Exception; the message shows it to the user.
            except Exception as error:
                reason = shorten(str(error), 120)
                raise ConfigError(
                    f"tokenizer {self.name}: cannot read the texts: {reason}; name another"
                ) from error
            counts += map(len, encodings)
        return counts


def open_token_counter(name: str) -> NamedCounter:
    """Open the counter of a tokenizer: a `tokenizer.json` file, or a folder that holds one.

    Raises ConfigError where it does not exist or is not a tokenizer, and MissingExtraError where `tokenizers` is not
    installed.
    """
    path = Path(os.path.expanduser(name))
    try:
        if path.is_dir():
            path /= FILE_NAME
        content = path.read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"tokenizer {quoted(name)}: {reason}; {_CHOICES}") from error
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("counting model tokens", INSTALL_EMBEDDED) from None
    try:
        tokenizer: Any = Tokenizer.from_buffer(content)
    # The library raises Exception, ValueError, TypeError; the message shows it.
    except Exception as error:
        reason = shorten(str(error), 120)
        raise ConfigError(
            f"tokenizer {quoted(name)}: not a {FILE_NAME}: {reason}; {_CHOICES}"
        ) from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # special tokens in a text are plain text
    digits = hashlib.sha256(content).hexdigest()[:12]
    return NamedCounter(f"{path.resolve().parent.name}/{path.name} (sha256 {digits})", tokenizer)
