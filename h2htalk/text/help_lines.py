"""Crisis lines and emergency numbers, for prompts and the guidelines of annotators.

The bundled file names a source and a date for each line; its tests check it.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.errors import DataError
from h2htalk.text.language_data import read_data

# So many lines a country are enough to choose from; each costs tokens in every prompt.
LINES_A_COUNTRY = 2


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One crisis line in one language that it answers in."""

    country: str
    language: Language
    name: str
    number: str
    contact: str  # says how to reach it and holds `number`
    hours: str
    source: str  # a page of its operator or a government
    date: datetime.date  # of that page, or of the last look-up
    for_others: str = ""  # names it to readers of the other language; "" where they are given another line

    def text_for(self, language: Language) -> str:
        """Name the line to readers of a language, with its hours unless it always answers."""
        if language != self.language:
            return self.for_others
        hours = () if self.hours == read_help_lines().wording[language]["always"] else (self.hours,)
        return find_language(language).comma.join((self.name, self.contact, *hours))


@dataclass(frozen=True, slots=True)
class HelpLines:
    """The bundled file, in its order.

    A table of `countries` has a `code` (ISO 3166-1), the name in each language, and `emergency`: numbers, health before
    police, each with whom it reaches in each language.
    """

    directory: Mapping[str, Any]  # of lines of other countries: name, url, source, date
    countries: Sequence[Mapping[str, Any]]
    lines: tuple[HelpLine, ...]
    wording: Mapping[Language, Mapping[str, str]]  # the phrases of `help_rows` by language

    @property
    def owners(self) -> Mapping[str, Sequence[str]]:
        """Whose a number is, by its digits: `Childline (GB)`."""
        found: dict[str, list[str]] = {}
        for line in self.lines:
            found.setdefault("".join(filter(str.isdigit, line.number)), []).append(f"{line.name} ({line.country})")
        for country in self.countries:
            for one in country["emergency"]:
                found.setdefault(one["number"], []).append(f"emergency ({country['code']})")
        return found


@cache
def read_help_lines() -> HelpLines:
    """Read the bundled help lines."""
    raw = read_data(Path(__file__).with_suffix(".toml"))
    if missing := [code for code in LANGUAGES if code not in raw["wording"]]:
        advice = "add them to wording, countries and emergency numbers"
        raise DataError(f"help_lines.toml has no texts in {missing[0]}; {advice}")
    return HelpLines(raw["directory"], raw["country"], tuple(HelpLine(**one) for one in raw["line"]), raw["wording"])


def help_rows(language: Language) -> tuple[str, ...]:
    """List one row a bundled country for readers of a language, then one for all other countries.

    A row names the country's first lines that answer in the language, else one that answers in another and says
    so, and the emergency numbers. Hours are named unless a line always answers. The order is the file's.
    """
    book, joint, rows = read_help_lines(), find_language(language).joint, list[str]()
    wording = book.wording[language]
    for country in book.countries:
        lines, emergency = [one for one in book.lines if one.country == country["code"]], country["emergency"]
        own = [line.text_for(language) for line in lines if line.language == language][:LINES_A_COUNTRY]
        shown = wording["between_lines"].join(own or filter(None, (line.text_for(language) for line in lines)))
        named = [f"{one[language]}{joint}{one['number']}" for one in emergency]
        numbers = wording["between_numbers"].join(named) if len(named) > 1 else emergency[0]["number"]
        rows.append(wording["row"].format(country=country[language], lines=shown, numbers=numbers))
    return (*rows, wording["others"].format(url=book.directory["url"]))


def help_text(language: Language) -> str:
    """All of `help_rows`, a line each; no leak of the prompt where a reply repeats them."""
    return "\n".join(help_rows(language))
