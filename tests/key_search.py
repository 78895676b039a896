"""Searches what a run leaves and says for the key of the provider double, in every spelling."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

from provider_wires import KEY


def spellings(key: str) -> set[bytes]:
    """The key as text, in JSON, in URLs and in base64 at each of its three offsets."""
    plain = {key, quote(key, safe=""), quote_plus(key), json.dumps(key)[1:-1], key.replace("/", "\\/")}
    coded = {base64.b64encode(b"x" * shift + key.encode())[4:-4] for shift in range(3)}
    urlsafe = {base64.urlsafe_b64encode(b"x" * shift + key.encode())[4:-4] for shift in range(3)}
    # Half a key is half a secret.
    return {text.encode() for text in plain} | coded | urlsafe | {key[:18].encode(), key[-16:].encode()}


def require_no_key(content: bytes, where: str) -> None:
    """The key stands nowhere in those bytes, in no spelling."""
    for spelling in spellings(KEY):
        assert spelling not in content, f"the key stands in {where}"
