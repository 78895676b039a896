"""Define every error a user can meet, in one tree. Each message says what happened, where, and what to do next."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from string import ascii_letters

from h2htalk.addresses import without_passwords
from h2htalk.masking import mask_held


class H2HTalkError(Exception):
    """Base of all errors whose cause lies outside this package; `exit_code` is the command line's."""

    exit_code = 2

    def __init__(self, *args: object) -> None:
        super().__init__(
            *(without_secrets(text) if isinstance(text, str) else text for text in args)
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Pickling between processes: `MissingExtraError` takes other arguments than it keeps.
        return Exception.__new__, (type(self), *self.args), self.__dict__


class DataError(H2HTalkError):
    """A file, record or split is invalid. The message names file, line or id."""


class ConfigError(H2HTalkError):
    """An option, specification, model or key cannot work as given."""


class MissingExtraError(ConfigError):
    """A package or weight that the chosen feature needs is not installed."""

    def __init__(self, feature: str, command: str) -> None:
        super().__init__(f"{feature} needs a package that is not installed: {command}")


class ModelCallError(H2HTalkError):
    """A model endpoint cannot be used at all (single failed items are typed results, not errors)."""


class PausedError(ModelCallError):
    """An endpoint did not answer many calls in a row; what it answered before is kept."""

    exit_code = 3


class IncompleteError(H2HTalkError):
    """Some calls failed: what they were for is missing, and the same command makes them again."""

    exit_code = 3


class RoundError(H2HTalkError):
    """An annotation round cannot be opened, read or closed."""


class HubError(H2HTalkError):
    """The Hugging Face Hub cannot be reached, refuses, or sends something else than was published."""


class PublishError(H2HTalkError):
    """A release cannot be built or published."""


# Characters of a quoted value.
_QUOTED = 80


def without_secrets(text: str) -> str:
    """A message without the keys that this process holds, and without passwords in addresses."""
    return without_passwords(mask_held(text))


def shorten(text: str, limit: int = 60) -> str:
    """Shorten a text to at most `limit` characters: its start and its end, around an ellipsis.

    Held keys are masked before: of a key that is cut, the part that stays would not be found.
    """
    text = without_secrets(text)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def counted(number: int, one: str, many: str = "") -> str:
    """Format a count: `1 item`, `1,200 items`; `many` is the plural where it is not `one` and an s."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def listed(names: Sequence[object], most: int = 5) -> str:
    """`a, b, c`; of more than `most` names the first ones, `and 7 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def suggest(name: object, choices: Iterable[str]) -> str:
    """Return `did you mean 'x'? ` for the choice that resembles a misspelt name, else an empty text."""
    close = get_close_matches(str(name), choices, n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def quoted(value: object) -> str:
    """Quote a value for a message: short, and with an escape for each character that could be taken for another.

    ASCII, Chinese and other wide characters, and letters with accents in one piece are shown as they are; full-width
    letters, a Cyrillic `а`, quotation marks that are not ASCII's, and invisible characters are not.
    """
    text = without_secrets(repr(value))
    if len(text) > 4 * _QUOTED:
        text = text[: 2 * _QUOTED] + text[-2 * _QUOTED :]
    return shorten(
        "".join(sign if _distinct(sign) else ascii(sign)[1:-1] for sign in text), _QUOTED
    )


def _distinct(sign: str) -> bool:
    if sign.isascii():
        return True
    if not sign.isprintable():
        return False
    if unicodedata.east_asian_width(sign) == "W":
        return unicodedata.normalize("NFKC", sign) == sign
    return unicodedata.normalize("NFD", sign)[0] in ascii_letters
