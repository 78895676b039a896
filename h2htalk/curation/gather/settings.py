"""Settings of gather: sources, simulation, the licence of the release."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from h2htalk.curation.setting_types import Dollars, ModelName
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import must
from h2htalk.data.scenario import Role

SIMULATED = "simulated"  # the name of the source of simulated dialogues
_MOST_DIALOGUES = 10_000_000
_EMOTIONS = ("joy", "sadness", "loneliness", "anxiety", "anger", "calm")
_NAME = re.compile(r"\w[\w.-]{0,59}")


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    if repeated := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"{', '.join(map(repr, repeated))} is given twice; give each once")
    return names


def _lower_case(roles: Mapping[str, Role]) -> dict[str, Role]:
    return {name.strip().lower(): role for name, role in roles.items()}


ColumnName = Literal[
    "id", "messages", "person", "name", "system", "language", "licence", "question", "title", "answer", "question_id"
]
_LanguageCode = Annotated[str, must(LANGUAGES.__contains__, f"no language {{}}; choose from {', '.join(LANGUAGES)}")]
_SourceName = Annotated[
    str,
    must(
        lambda name: _NAME.fullmatch(name) and unicodedata.is_normalized("NFC", name),
        "{} must be at most 60 letters, digits, . - and _, as ids begin with it",
    ),
    must(lambda name: name != SIMULATED, "{} is the name of simulated dialogues; choose another one"),
]


@dataclass(frozen=True, slots=True)
class Source:
    """Raw conversations: a file, the files of a folder or of a glob pattern, or a data set.

    Attributes:
        name: the start of the ids of its dialogues.
        path: as in the TOML file; files may be compressed (`.gz`, `.zst`) or Parquet; a folder that `datasets` saved
            and `hub:OWNER/NAME@COMMIT` are data sets, with `#SPLIT` behind them where they have several.
        format: of its records (`formats.READERS`).
        language: of all its dialogues.
        licence: an SPDX identifier (`CC0-1.0`, `MIT`, `CC-BY-NC-4.0`).
        limit: read this many dialogues at most.
        companions: names of the companion or its maker, which anonymize keeps.
        countries: whose telephone numbers anonymize looks for beside the usual ones (ISO 3166: `DE`).
        roles: `user` or `companion` for names of roles that the file uses beside the usual ones.
        columns: keys of the file's records for our names of them (`person = "client"`).
    """

    name: _SourceName
    path: str
    format: Literal["messages", "dialogues", "question_answers", "memory_bank"]
    language: _LanguageCode
    licence: str
    limit: Annotated[int, Field(ge=1)] | None = None
    companions: tuple[str, ...] = ()
    countries: tuple[Annotated[str, Field(pattern="^[A-Z]{2}$")], ...] = ()
    roles: Annotated[Mapping[str, Role], AfterValidator(_lower_case)] = field(default_factory=dict)
    columns: Mapping[ColumnName, str] = field(default_factory=dict)


def _unique_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    _unique(tuple(source.name for source in sources))
    return sources


@dataclass(frozen=True, slots=True)
class SimulateSettings:
    """Dialogues between two models, a user and a companion, over a grid of kinds of conversation.

    Attributes:
        user, companion: models, as in `h2htalk evaluate` (`embedded`, `openai:gpt-4o`, `scripted:FILE`).
        dialogues: of each language; every interaction x emotion x complexity gets the same number.
        turns: messages of a dialogue at most.
        personas: of the companion; empty: all bundled ones.
        licence: of what the models write (SPDX), which the terms of their makers decide.
        max_cost: of both models together.
    """

    user: ModelName = ""
    companion: ModelName = ""
    dialogues: Annotated[int, Field(ge=0, le=_MOST_DIALOGUES)] = 0
    turns: Annotated[int, Field(ge=2, le=1000)] = 6
    languages: Annotated[tuple[_LanguageCode, ...], Field(min_length=1), AfterValidator(_unique)] = LANGUAGES
    personas: Annotated[tuple[str, ...], AfterValidator(_unique)] = ()
    emotions: Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_unique)] = _EMOTIONS
    licence: str = "CC-BY-4.0"
    max_cost: Dollars | None = None


@dataclass(frozen=True, slots=True)
class GatherSettings:
    """Where dialogues come from.

    Attributes:
        sources: files of raw conversations.
        simulate: the simulated dialogues.
        licence: of the release; a source that it does not allow is refused before anything is read.
        mock_dialogues: how many to generate for a source whose path names an unset environment variable; with 0 such
            a path is an error.
    """

    sources: Annotated[tuple[Source, ...], AfterValidator(_unique_sources)] = ()
    simulate: SimulateSettings = field(default_factory=SimulateSettings)
    licence: str = "CC-BY-4.0"
    mock_dialogues: Annotated[int, Field(ge=0, le=_MOST_DIALOGUES)] = 0
