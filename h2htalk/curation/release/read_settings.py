"""The settings of `h2htalk release read` and `release risk`, whose descriptions are the help of their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from h2htalk.curation.reading.call_options import ModelCallOptions, ReaderCallOptions
from h2htalk.data.records import NOT_EMPTY
from h2htalk.data.settings import PathText, check_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReleaseSpec(ReaderCallOptions):
    """Which release is read by which guard.

    Attributes:
        spec: the TOML file of the release.
        guard: `ENGINE:NAME`, as `guard` in [safety].
    """

    spec: PathText
    guard: Annotated[str, NOT_EMPTY]

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRiskSpec(ModelCallOptions):
    """Of which release a model quotes what gives somebody away.

    Attributes:
        release: the TOML file of a release, or the folder of one that was built here.
        model: `ENGINE:NAME`, a chat model.
    """

    release: PathText
    model: Annotated[str, NOT_EMPTY]

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
