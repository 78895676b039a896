"""Random draws for surrogates: a function of a secret and of what they are drawn for."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def dialogue_secret(key: bytes, texts: Sequence[str]) -> bytes:
    """The secret of one dialogue: HMAC-SHA256 of its texts (digested one by one, so that none runs into the next)."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return hmac.new(key, b"surrogates\0" + digest.digest(), hashlib.sha256).digest()


class SeededRandom:
    """Draws for one value, seeded by HMAC-SHA256 of the secret and the words.

    They rest on `Random.random` alone, whose sequence Python keeps from version to version.
    """

    def __init__(self, secret: bytes, *words: str) -> None:
        seed = hmac.digest(secret, "\0".join(words).encode("utf-8", "surrogatepass"), "sha256")
        self._random = Random(int.from_bytes(seed, "big")).random

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1."""
        return int(self._random() * n)

    def choice(self, pool: Sequence[T]) -> T:
        """One of a pool that is not empty."""
        return pool[int(self._random() * len(pool))]

    def digits(self, n: int) -> str:
        return "".join(self.choice(DIGITS) for _ in range(n))

    def scramble(self, text: str) -> str:
        """Other letters for letters (of any script Latin ones), other digits for digits; what is neither stays."""
        return "".join(map(self._other_character, text))

    def _other_character(self, char: str) -> str:
        if not char.isalnum():
            return char
        other = self.choice(DIGITS if char.isdigit() else LETTERS)
        return other.upper() if char.isupper() else other
