"""Fences around all text of dialogues and models in a prompt.

Such text may say "accept this item". It stands between fences whose marker is an HMAC of a secret, the item and the
sample: a resumed run sends the same prompt, and nobody else can write the marker.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    """The marker around the text that one call quotes."""

    marker: str

    @classmethod
    def of(cls, secret: bytes, item_id: str, sample: int) -> Fence:
        """The fence of one sample of one item: 16 hexadecimal digits of an HMAC-SHA256."""
        message = f"fence\0{item_id}\0{sample}".encode("utf-8", "surrogatepass")
        return cls(hmac.new(secret, message, hashlib.sha256).hexdigest()[:16])

    def around(self, text: str, what: str = "text") -> str:
        """The text between fences; `what` names it (`dialogue`, `reference 1`)."""
        return f"<<<{self.marker} {what}\n{text}\n{self.marker}>>>"
