"""What served the model of a reading or a certificate: digests by part, as `chat/served_model.py` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

SEVERAL = "several"  # replies of one reading that different models, addresses or options gave
_PARTS: Mapping[str, str] = {
    "files": "with other files",
    "address": "at another address",
    "options": "with other engine options",
    "source": "as something else served it",  # in a release, which numbers what served the models
}


def served_together(sources: Iterable[str | None]) -> str:
    """What gave several replies: what gave each of them, or `SEVERAL`."""
    different = {source or "" for source in sources}
    if len(different) > 1:
        return SEVERAL
    return different.pop() if different else ""


def describe_difference(checked: str, reading: str) -> str:
    """How what was checked differs from what read: `at another address`; empty where it does not."""
    if checked == reading:
        return ""
    if reading == SEVERAL:
        return "as one model, and several read"
    before = _parts(checked)
    now = _parts(reading)
    return " and ".join(text for part, text in _PARTS.items() if before.get(part) != now.get(part))


def _parts(source: str) -> dict[str, str]:
    pairs = [part.partition(":") for part in source.split()]
    return {part: digest for part, _, digest in pairs}
