"""Draws for surrogates: whole numbers that are a function of a secret and of what they are drawn for."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

T = TypeVar("T")
_BLOCK = 64  # bytes of HMAC-SHA512
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def dialogue_secret(key: bytes, texts: Sequence[str]) -> bytes:
    """The secret of one dialogue: HMAC-SHA256 of its texts (digested one by one, so that none runs into the next)."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return hmac.new(key, b"surrogates\0" + digest.digest(), hashlib.sha256).digest()


class Draw:
    """Numbers for one value: the same secret and words give the same ones, in order."""

    def __init__(self, secret: bytes, *said: str) -> None:
        seed = "\0".join(said).encode("utf-8", "surrogatepass")
        self._secret = hmac.new(secret, seed, hashlib.sha256).digest()
        self._round = 0
        self._left = 0
        self._range = 1

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, each as likely (to within 1 in 2**64)."""
        if self._range < n << 64:
            block = hmac.new(self._secret, self._round.to_bytes(8, "big"), hashlib.sha512).digest()
            self._round += 1
            self._left = self._left << (8 * _BLOCK) | int.from_bytes(block, "big")
            self._range <<= 8 * _BLOCK
        self._left, drawn = divmod(self._left, n)
        self._range //= n
        return drawn

    def one(self, pool: Sequence[T]) -> T:
        """One of a pool that is not empty."""
        return pool[self.below(len(pool))]

    def digits(self, n: int) -> str:
        return "".join(self.one(DIGITS) for _ in range(n))


def distinct(
    secret: bytes,
    keys: Collection[tuple[str, ...]],
    make: Callable[[Draw, tuple[str, ...], int], str],
    taken: set[str],
) -> dict[tuple[str, ...], str]:
    """A surrogate for each key, no two alike, none among `taken` (in lower case); they are added to it.

    Where a draw is taken the next one counts; keys are gone through in an order of their own, so that the order in
    which they were found makes no difference. `make` gets the number of the draw: it must not run out of names.
    """
    found = {}
    for key in sorted(keys):
        attempt = 0
        while True:
            made = make(Draw(secret, *key, str(attempt)), key, attempt)
            if made.lower() not in taken:
                break
            attempt += 1
        taken.add(made.lower())
        found[key] = made
    return found
