"""Crisis lines and emergency numbers: what a companion, an anonymiser and a voter's guide must know.

The bundled file names a source and a date for each line. Nothing here is personal data: see `public_numbers`.
"""

from __future__ import annotations

import datetime
import itertools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from h2htalk.data.dialogue import read_language
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.errors import DataError

_CODE = re.compile(r"[A-Z]{2}")
_NUMBER = re.compile(r"\d[\d -]*\d")
# Hours that go without saying where lines are listed; all others are named.
_ALWAYS: Mapping[Language, str] = {"en": "24 hours", "zh": "24小时"}


@dataclass(frozen=True, slots=True)
class EmergencyNumber:
    """A number for immediate danger; `labels` says by language whom it reaches."""

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
    other language, "" where they are given another.
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

    def told(self, language: Language) -> str:
        """How the line is named to readers of a language, with its hours unless it always answers."""
        if language != self.language:
            return self.for_others
        hours = () if self.hours == _ALWAYS[language] else (self.hours,)
        return find_language(language).comma.join((self.name, self.contact, *hours))


@dataclass(frozen=True, slots=True)
class Directory:
    """A service that lists the lines of countries not in the file."""

    name: str
    url: str
    source: str
    date: datetime.date


@dataclass(frozen=True, slots=True)
class HelpLines:
    """All of a help-line file. Order is the file's."""

    directory: Directory
    countries: tuple[Country, ...]
    lines: tuple[HelpLine, ...]

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any], where: str) -> HelpLines:
        """Read `[directory]`, `[[country]]` and `[[line]]`.

        Raises:
            DataError: a field is missing or of the wrong kind, a country is named twice or has nothing to
                tell the readers of a language, or a line names none of the countries; the message starts with
                `where` and the table.
        """
        countries = tuple(_country(t, f"{where}: {at}") for at, t in _tables(raw, "country", where))
        codes = [country.code for country in countries]
        twice = sorted({code for code in codes if codes.count(code) > 1})
        if twice:
            raise DataError(f"{where}: country {', '.join(twice)} stands twice; merge the tables")
        lines = tuple(_line(t, f"{where}: {at}", codes) for at, t in _tables(raw, "line", where))
        _require_lines(codes, lines, where)
        table = raw.get("directory")
        if not isinstance(table, Mapping):
            raise DataError(f"{where}: needs a [directory] table with name, url, source and date")
        at = f"{where}: directory"
        directory = Directory(
            _text(table, "name", at), _text(table, "url", at), _source(table, at), _date(table, at)
        )
        return cls(directory, countries, lines)


@lru_cache(maxsize=8)
def read_help_lines(path: Path | None = None) -> HelpLines:
    """The bundled help lines, or those of another TOML file of the same form.

    Raises:
        DataError: the file cannot be read or does not hold what it should.
    """
    path = path or Path(str(files("h2htalk.data") / "bundled" / "help_lines.toml"))
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: not a readable help-line file: {error}") from error
    return HelpLines.from_dict(raw, str(path))


def lines_for(language: Language) -> tuple[HelpLine, ...]:
    """The bundled lines that answer in a language."""
    return tuple(line for line in read_help_lines().lines if line.language == language)


def lines_of(country: str) -> tuple[HelpLine, ...]:
    """The bundled lines of a country (ISO code), in every language; empty when none is known."""
    return tuple(line for line in read_help_lines().lines if line.country == country)


def public_numbers() -> frozenset[str]:
    """All numbers of the bundled file, crisis lines and emergency numbers alike, as digits only.

    An anonymiser must leave these as they are: they belong to nobody, and a reply without them does not help.
    """
    book = read_help_lines()
    numbers = [line.number for line in book.lines]
    numbers += [entry.number for country in book.countries for entry in country.emergency]
    return frozenset(re.sub(r"\D", "", number) for number in numbers)


def _tables(raw: Mapping[str, Any], key: str, where: str) -> list[tuple[str, Mapping[str, Any]]]:
    tables = raw.get(key)
    if not isinstance(tables, list) or not tables:
        raise DataError(f"{where}: needs at least one [[{key}]] table")
    return [(f"{key} {i}", table) for i, table in enumerate(tables, 1)]


def _country(table: Mapping[str, Any], where: str) -> Country:
    code = _text(table, "code", where)
    if not _CODE.fullmatch(code):
        raise DataError(f"{where}: code is {code!r}; it must be an ISO 3166-1 code of two capitals")
    entries = table.get("emergency")
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{where}: {code} needs at least one emergency number")
    emergency = tuple(EmergencyNumber(_number(e, where), _by_language(e, where)) for e in entries)
    return Country(code, _by_language(table, where), emergency)


def _require_lines(codes: Sequence[str], lines: Sequence[HelpLine], where: str) -> None:
    for code, language in itertools.product(codes, LANGUAGES):
        if not any(line.told(language) for line in lines if line.country == code):
            raise DataError(
                f"{where}: country {code} has no line for readers of {language!r}; add a row in that language, "
                "or for_others to one of its rows"
            )


def _line(table: Mapping[str, Any], where: str, codes: list[str]) -> HelpLine:
    country, number = _text(table, "country", where), _number(table, where)
    if country not in codes:
        raise DataError(f"{where}: country {country!r} has no [[country]] table; add one or correct the code")
    contact = _text(table, "contact", where)
    if number not in contact:
        raise DataError(f"{where}: contact {contact!r} does not hold the number {number}")
    for_others = _text(table, "for_others", where) if "for_others" in table else ""
    if for_others and number not in for_others:
        raise DataError(f"{where}: for_others {for_others!r} does not hold the number {number}")
    return HelpLine(
        country=country,
        language=read_language(table, where),
        name=_text(table, "name", where),
        number=number,
        contact=contact,
        hours=_text(table, "hours", where),
        source=_source(table, where),
        date=_date(table, where),
        for_others=for_others,
    )


def _by_language(table: Mapping[str, Any], where: str) -> dict[Language, str]:
    return {language: _text(table, language, where) for language in LANGUAGES}


def _number(table: Mapping[str, Any], where: str) -> str:
    number = _text(table, "number", where)
    if not _NUMBER.fullmatch(number):
        raise DataError(f"{where}: number is {number!r}; write digits, spaces and hyphens as people dial it")
    return number


def _source(table: Mapping[str, Any], where: str) -> str:
    source = _text(table, "source", where)
    if not source.startswith("https://"):
        raise DataError(f"{where}: source must be an https address of the operator or a government")
    return source


def _date(table: Mapping[str, Any], where: str) -> datetime.date:
    value = table.get("date")
    # A TOML date-time is a datetime.date as well, and is not what is asked for.
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise DataError(f"{where}: date must be a day such as 2026-11-20, without quotes")
    return value


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key) if isinstance(table, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: {key} must be text that is not empty")
    return value


# So many lines a country are enough to choose from; a prompt pays for each.
LINES_A_COUNTRY = 2


def help_rows(language: Language) -> tuple[str, ...]:
    """A row for each bundled country, worded for readers of a language, then one for all other countries.

    A row names the country's first lines that answer in the language, else one that answers in another and says
    so, and the emergency numbers. Hours are named unless a line always answers. File order decides.
    """
    book = read_help_lines()
    rows = [_country_row(country, language) for country in book.countries]
    if language == "en":
        others = f"Any other country: the local emergency number; {book.directory.url} lists lines by country"
    else:
        others = f"其他地方：当地的紧急电话；{book.directory.url} 按国家列出热线"
    return (*rows, others)


def help_text(language: Language) -> str:
    """All of `help_rows`, a line each.

    A reply that names help repeats these words from its prompt; that is no leak of the prompt.
    """
    return "\n".join(help_rows(language))


def _country_row(country: Country, language: Language) -> str:
    lines = _lines_told(country, language)
    name = country.names[language]
    labelled = len(country.emergency) > 1
    gap = find_language(language).joint
    numbers = [f"{e.labels[language]}{gap}{e.number}" if labelled else e.number for e in country.emergency]
    # No parentheses: in a reply they would be read as actions.
    if language == "en":
        return f"{name}: {'; '.join(lines)}; emergency {', '.join(numbers)}"
    return f"{name}：{'；'.join(lines)}；危急时拨{'、'.join(numbers)}"


def _lines_told(country: Country, language: Language) -> list[str]:
    lines = lines_of(country.code)
    own = [line for line in lines if line.language == language]
    return [line.told(language) for line in own[:LINES_A_COUNTRY]] or [
        told for line in lines if (told := line.told(language))
    ]
