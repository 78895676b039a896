"""What a check of a reader is asked with: the settings, whose descriptions are the help of the options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from h2htalk.curation.reading.call_options import ReaderCallOptions, about
from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.data.records import NOT_EMPTY
from h2htalk.data.settings import PathText, check_fields
from h2htalk.errors import ConfigError

ReaderChoice = Literal["guard", "review", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGuardSpec(ReaderCallOptions):
    """Which model is checked as which reader, and where its replies and certificates go.

    Attributes:
        model: `ENGINE:NAME`, as of `guard` in [safety] or `model` in [review].
    """

    model: Annotated[str, NOT_EMPTY]
    workspace: Annotated[
        PathText | None,
        about("The workspace that keeps replies and certificates, and whose gates then count it."),
    ] = None
    out: Annotated[
        PathText | None, about("A file for the certificates, where there is no workspace.")
    ] = None
    reader: Annotated[
        ReaderChoice, about("guard (the question of [safety]), review (that of [review]) or both.")
    ] = "guard"
    language: Annotated[Language | None, about(f"{', '.join(LANGUAGES)}; all when left out.")] = (
        None
    )
    limit: Annotated[
        int | None, about("So many dialogues of all kinds; gives no certificate.", ge=1)
    ] = None

    set: Annotated[
        PathText | None,
        about(
            "Labelled talks of your own in place of the bundled dialogues: JSON lines, CSV or XLSX."
        ),
    ] = None
    harmless: Annotated[
        tuple[str, ...],
        about("A label of --set that says that nothing is the matter; may be repeated."),
    ] = ()
    companion: Annotated[
        tuple[str, ...],
        about("A companion's name, beside AI, in the lines of a table of --set; may be repeated."),
    ] = ()
    user: Annotated[
        tuple[str, ...], about("A user's name, beside User, in such lines; may be repeated.")
    ] = ()
    text: Annotated[str, about("The column of texts in a table of --set.")] = ""
    label: Annotated[str, about("The column of labels in a table of --set.")] = ""

    def __post_init__(self) -> None:
        """Raise ConfigError, naming the option, for values that cannot be."""
        check_fields(self)
        about_talks = {
            "--harmless": self.harmless,
            "--companion": self.companion,
            "--user": self.user,
            "--text": self.text,
            "--label": self.label,
        }
        for option, value in about_talks.items():
            if value and self.set is None:
                raise ConfigError(f"{option} belongs to --set FILE")
        if self.workspace is not None and self.out is not None:
            raise ConfigError(
                "--workspace and --out: certificates go to one place; leave one of them out"
            )

    @property
    def languages(self) -> tuple[Language, ...]:
        """The languages that are checked."""
        return LANGUAGES if self.language is None else (self.language,)
