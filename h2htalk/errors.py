"""Every error a user can meet, in one tree. Each message says what, where and what to do next."""

from __future__ import annotations


class H2HTalkError(Exception):
    """Base of all errors whose cause lies outside this package. `exit_code` is the command line's."""

    exit_code = 2


class DataError(H2HTalkError):
    """A file, record or split that is not what it should be. The message names file, line or id."""


class ConfigError(H2HTalkError):
    """An option, specification, model or key that cannot work as given."""


class MissingExtraError(ConfigError):
    """A package or weight that the chosen feature needs is not installed."""

    def __init__(self, feature: str, command: str) -> None:
        super().__init__(f"{feature} needs a package that is not installed: {command}")


class ModelCallError(H2HTalkError):
    """A model endpoint cannot be used at all (single failed items are typed results, not errors)."""


class RoundError(H2HTalkError):
    """A voting round cannot be opened, read or closed."""


class PublishError(H2HTalkError):
    """A release cannot be built or published."""


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters: of a longer text the start and the end, around an ellipsis."""
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return f"{text[: limit - 1 - tail]}…{text[len(text) - tail :]}"


def quoted(value: object) -> str:
    """A value as a message shows it: quoted, short, and in ASCII, so that look-alikes can be told apart."""
    return shorten(ascii(value), 80)
