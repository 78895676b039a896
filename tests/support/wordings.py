"""What the composition of planted replies never changes of a wording."""

from __future__ import annotations


def words_of(text: str) -> str:
    """The letters and digits of a text in lower case: what composition never changes of a wording."""
    return "".join(filter(str.isalnum, text.lower()))
