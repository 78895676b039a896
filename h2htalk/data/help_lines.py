"""Crisis lines and emergency numbers, for prompts and the guidelines of annotators.

The bundled file names a source and a date for each line; its tests check it.
"""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.errors import DataError


@dataclass(frozen=True, slots=True)
class EmergencyNumber:
    """A number for immediate danger; `labels` names by language whom it reaches."""

    number: str
    labels: Mapping[Language, str]


@dataclass(frozen=True, slots=True)
class Country:
    """A country or region: ISO 3166-1 code, name by language, emergency numbers (health before police)."""

    code: str
    names: Mapping[Language, str]
    emergency: tuple[EmergencyNumber, ...]


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One crisis line in one language that it answers in.

    `contact` says how to reach it and holds `number`; `source` is a page of its operator or a government;
    `date` is that page's day, or the day of the last look-up. `for_others` names the line to readers of the
    other language; "" where they are given another line.
    """

    country: str
    language: Language
    name: str
    number: str
    contact: str
    hours: str
    source: str
    date: datetime.date
    for_others: str = ""

    def text_for(self, language: Language) -> str:
        """Name the line to readers of a language, with its hours unless it always answers."""
        if language != self.language:
            return self.for_others
        hours = () if self.hours == read_help_lines().wording[language]["always"] else (self.hours,)
        return find_language(language).comma.join((self.name, self.contact, *hours))


@dataclass(frozen=True, slots=True)
class HelpLines:
    """The bundled file, in its order.

    `directory` (name, url, source, date) lists the lines of other countries; `wording` holds the phrases of `help_rows`
    by language.
    """

    directory: Mapping[str, Any]
    countries: tuple[Country, ...]
    lines: tuple[HelpLine, ...]
    wording: Mapping[Language, Mapping[str, str]]


@cache
def read_help_lines() -> HelpLines:
    """Read the bundled help lines."""
    raw = tomllib.loads((Path(__file__).parent / "bundled" / "help_lines.toml").read_text(encoding="utf-8"))
    if missing := [code for code in LANGUAGES if code not in raw["wording"]]:
        raise DataError(
            f"help_lines.toml has no texts in {missing[0]}; add them to wording, countries and emergency numbers"
        )
    lines = tuple(HelpLine(**table) for table in raw["line"])
    return HelpLines(raw["directory"], tuple(map(_country, raw["country"])), lines, raw["wording"])


def _country(table: Mapping[str, Any]) -> Country:
    emergency = (EmergencyNumber(one["number"], {code: one[code] for code in LANGUAGES}) for one in table["emergency"])
    return Country(table["code"], {code: table[code] for code in LANGUAGES}, tuple(emergency))


def lines_of(country: str) -> tuple[HelpLine, ...]:
    """The bundled lines of a country (ISO code), in every language; empty when none is known."""
    return tuple(line for line in read_help_lines().lines if line.country == country)


# So many lines a country are enough to choose from; each costs tokens in every prompt.
LINES_A_COUNTRY = 2


def help_rows(language: Language) -> tuple[str, ...]:
    """List one row a bundled country for readers of a language, then one for all other countries.

    A row names the country's first lines that answer in the language, else one that answers in another and says
    so, and the emergency numbers. Hours are named unless a line always answers. The order is the file's.
    """
    help_lines = read_help_lines()
    rows = [_country_row(country, language) for country in help_lines.countries]
    return (*rows, help_lines.wording[language]["others"].format(url=help_lines.directory["url"]))


def help_text(language: Language) -> str:
    """All of `help_rows`, a line each; no leak of the prompt where a reply repeats them."""
    return "\n".join(help_rows(language))


def _country_row(country: Country, language: Language) -> str:
    wording, joint = read_help_lines().wording[language], find_language(language).joint
    lines = lines_of(country.code)
    own = [line.text_for(language) for line in lines if line.language == language][:LINES_A_COUNTRY]
    numbers = [
        f"{e.labels[language]}{joint}{e.number}" if len(country.emergency) > 1 else e.number for e in country.emergency
    ]
    return wording["row"].format(
        country=country.names[language],
        lines=wording["between_lines"].join(own or filter(None, (line.text_for(language) for line in lines))),
        numbers=wording["between_numbers"].join(numbers),
    )
