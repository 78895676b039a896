"""Random draws by the workspace's key, and surrogates of numbers, unusable on purpose.

Telephone: the ranges kept for films in `structured/words/phones.toml`; elsewhere zeros in front. Ids and accounts begin
with zeros, or with Q where they begin with letters, and fail every check digit; QQ numbers begin with 0 and WeChat ids
with a digit, which neither may; plates hold I or O, which plates leave out.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from random import Random
from string import ascii_lowercase, digits

from stdnum import iban
from stdnum.au import tfn
from stdnum.gb import nhs
from stdnum.us import rtn

from h2htalk.curation.anonymize.structured.identity_numbers import luhn, medicare
from h2htalk.curation.anonymize.structured.patterns import read_table

_ENOUGH_DRAWS = 60  # draws from a small range before zeros in front will do
# The zeros that a kind of number begins with; of cards the first two digits stay.
_ZEROS = {"NATIONAL_ID": 3, "ACCOUNT_NUMBER": 2, "CREDIT_CARD": 0, "QQ": 1, "WECHAT": 1}
NUMBERS = frozenset({"PHONE_NUMBER", "LICENSE_PLATE", *_ZEROS})
_CHECKS: tuple[Callable[[str], bool], ...] = (
    lambda value: value.isdigit() and luhn(value),
    lambda value: value.isdigit() and len(value) in (10, 11) and medicare(value),
    lambda value: iban.is_valid(value, check_country=False),
    nhs.is_valid,
    rtn.is_valid,
    tfn.is_valid,
)


def dialogue_secret(key: bytes, texts: Sequence[str]) -> bytes:
    """The secret of one dialogue: HMAC-SHA256 of its texts (digested one by one, so that none runs into the next)."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return hmac.new(key, b"surrogates\0" + digest.digest(), hashlib.sha256).digest()


def keyed_random(secret: bytes, *words: str) -> Random:
    """A generator for one value, seeded by HMAC-SHA256 of the secret and the words."""
    return Random(hmac.digest(secret, "\0".join(words).encode("utf-8", "surrogatepass"), "sha256"))


def scramble(draw: Random, text: str) -> str:
    """Other letters for letters (of any script Latin ones), other digits for digits; what is neither stays."""
    return "".join(_other_character(draw, char) if char.isalnum() else char for char in text)


def _other_character(draw: Random, char: str) -> str:
    other = draw.choice(digits if char.isdigit() else ascii_lowercase)
    return other.upper() if char.isupper() else other


def number(kind: str, draw: Random, compact: str, language: str, attempt: int = 0) -> str:
    """A number of a kind (one of `NUMBERS`, or a user's own) that nobody has, of as many characters.

    Args:
        kind: the type of personal data.
        draw: the generator of this value.
        compact: its letters and digits in lower case.
        language: the dialogue's.
        attempt: how many draws were taken already.
    """
    if kind == "PHONE_NUMBER" or (kind == "WECHAT" and compact.isdigit() and len(compact) == 11):
        return _phone(draw, compact, "zh" if kind == "WECHAT" else language, attempt)
    if kind == "LICENSE_PLATE":
        letters = [at for at, char in enumerate(compact) if char.isalpha()]
        made = scramble(draw, compact)
        return made[: letters[-1]] + draw.choice("io") + made[letters[-1] + 1 :] if letters else made
    letters_in_front = len(compact) - len(compact.lstrip(ascii_lowercase))
    front = "q" * letters_in_front
    if kind == "CREDIT_CARD" and len(compact) > 4:
        front = compact[:2]
    elif kind == "WECHAT":
        front = ""
    elif letters_in_front == 2 and len(compact) > 14:  # an IBAN, of which the country stays
        front = compact[:2]
    front = (front + "0" * _ZEROS.get(kind, 2))[: len(compact)]
    for _ in range(_ENOUGH_DRAWS):
        made = front + scramble(draw, compact[len(front) :])
        if not has_valid_check_digit(made):
            break
    return made


def has_valid_check_digit(value: str) -> bool:
    """Whether a value has a right check digit of any kind that fits its length."""
    return any(check(value.upper()) for check in _CHECKS)


@cache
def _fictional() -> list[tuple[str, re.Pattern[str], list[list[str]]]]:
    """Of each form of a telephone number its language, and what follows its kept part (its groups)."""
    return [(r["language"], re.compile(r["form"]), r["then"]) for r in read_table("phones")["fictional"]]


def _phone(draw: Random, compact: str, language: str, attempt: int) -> str:
    """A telephone number of the first fictional range that fits; where none does, zeros behind a country's code."""
    if not compact.isdigit():
        return scramble(draw, compact)
    code = 4 if compact.startswith("00") else 2
    made = "0" * min(2 if len(compact) > 6 else 1, len(compact))
    if attempt < _ENOUGH_DRAWS:
        made = (compact[:code] if len(compact) > 10 else "") + made
        ranges = [row for own in (language, "abroad") for row in _fictional() if row[0] == own]
        fitting = ((found, then) for _, form, then in ranges if (found := form.fullmatch(compact)))
        for found, then in islice(fitting, 1):
            made = "".join([*found.groups(""), *map(draw.choice, then)])
    return made + scramble(draw, compact[len(made) :])
