"""The help directory: services by country and topic, and every country's emergency numbers.

`help_services.jsonl` and `emergency_numbers.jsonl` are written by `tools/make_help_lines.py` from public pages; the
sentence that holds each number is in `tools/help_directory/evidence.jsonl`. Phrases are in `help_lines.toml`.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic import with_config

from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.records import STRICT, as_json, read_record, strict_record
from h2htalk.data.scenario import Scenario
from h2htalk.errors import DataError
from h2htalk.text.language_data import read_data

SERVICES_SHOWN = 9  # of one country, of different topics
SHORT_CODE = 6  # digits; a longer number is seldom the whole country's
_ALWAYS = "24/7"


@strict_record
class HelpService:
    """A service, as a public page describes it."""

    country: str  # ISO 3166-1 alpha-2
    name: str
    number: str  # as people dial it
    topic: str  # of the table `topics` of `help_lines.toml`
    hours: str  # such as `24/7`, `Mon-Fri 09:00-17:00`, `at least 18 hours a day`; "" where the page does not say
    languages: tuple[str, ...]  # ISO 639-1, those in which it answers
    contact: str  # `call`, `text`, `call or text`, `text HOME to`, before the number
    url: str
    date: datetime.date  # when the page was read


@strict_record
class Emergency:
    """An emergency number, and whom it reaches: `all`, `ambulance`, `police`, `fire`; "" where the source is silent."""

    number: str
    who: str


@strict_record
class EmergencyNumbers:
    """A country or region (ISO 3166-1) with its emergency numbers, health before police."""

    code: str
    names: Mapping[Language, str]
    emergency: tuple[Emergency, ...]

    def text(self, language: Language) -> str:
        """The numbers, with whom they reach where that differs."""
        wording = _wording(language)
        joint = find_language(language).joint
        differ = len({emergency.who for emergency in self.emergency}) > 1
        texts = []
        for emergency in self.emergency:
            who = wording["who"].get(emergency.who, "") if differ else ""
            texts.append(f"{who}{joint}{emergency.number}".strip())
        return str(wording["between_numbers"]).join(texts)


@with_config(STRICT)
@dataclass(frozen=True)
class HelpLines:
    """The whole directory; a run keeps the one that its prompts were filled from."""

    countries: tuple[EmergencyNumbers, ...]
    services: tuple[HelpService, ...]

    @cached_property
    def by_code(self) -> Mapping[str, EmergencyNumbers]:
        return {country.code: country for country in self.countries}

    @cached_property
    def owners(self) -> Mapping[str, list[str]]:
        """Whose a number is, by its digits: `Childline, GB`."""
        owners: dict[str, list[str]] = {}
        for service in self.services:
            names = owners.setdefault(number_digits(service.number), [])
            names.append(f"{service.name}, {service.country}")
        codes: dict[str, list[str]] = {}
        for country in self.countries:
            for emergency in country.emergency:
                codes.setdefault(number_digits(emergency.number), []).append(country.code)
        for digits in sorted(codes):
            names = owners.setdefault(digits, [])
            names.append("emergency number of " + " ".join(sorted(codes[digits])))
        return owners

    def rows(self, language: Language, country: str = "") -> tuple[str, ...]:
        """List the rows of a prompt: of the user's country, or how to ask for it and what to say until then.

        A country's rows are its emergency numbers and at most nine services of different topics: those that answer in
        the language first, then those that always answer. Raises DataError for an unknown country.
        """
        wording = _wording(language)
        url = read_data(_TOML)["directory"]["url"]
        if not country:
            return (*wording["unknown"], wording["others"].format(url=url))
        if country not in self.by_code:
            raise DataError(
                f"no country {country!r} in the help directory (ISO 3166-1, such as GB)"
            )
        by_topic: dict[str, HelpService] = {}
        for service in self._ranked(country, language):
            by_topic.setdefault(service.topic, service)
        numbers = self.by_code[country]
        rows = [
            wording["emergency"].format(
                country=numbers.names[language], numbers=numbers.text(language)
            )
        ]
        for topic, service in list(by_topic.items())[:SERVICES_SHOWN]:
            rows.append(
                f"{wording['topics'][topic]}{wording['colon']}{describe(service, language)}"
            )
        if not by_topic:
            rows.append(wording["directory"].format(url=url))
        return tuple(rows)

    def overview(self, language: Language) -> tuple[tuple[str, HelpService | None], ...]:
        """List rows, each with the service that it names, or None.

        One row for each country where many readers of the bundled languages live, then one for all other countries.
        """
        data = read_data(_TOML)
        rows = [self.overview_row(code, language) for code in data["overview"]]
        other_countries = _wording(language)["others"].format(url=data["directory"]["url"])
        return (*rows, (other_countries, None))

    def overview_row(self, code: str, language: Language) -> tuple[str, HelpService | None]:
        """Return a country's row of the overview, with the service that it names, or None."""
        country = self.by_code[code]
        wording = _wording(language)
        values = {"country": country.names[language], "numbers": country.text(language)}
        for service in self._ranked(code, language):
            if service.topic == "crisis":
                lines = describe(service, language, short=True)
                return wording["row"].format(**values, lines=lines), service
        return wording["emergency"].format(**values), None

    def to_dict(self) -> dict[str, Any]:
        return as_json(self)

    def _ranked(self, country: str, language: Language) -> list[HelpService]:
        """Services that answer in the language first, then by topic, those to call, short codes, those always open."""
        topics = list(_wording(language)["topics"])

        def rank(service: HelpService) -> tuple[bool, int, bool, bool, bool]:
            return (
                language not in service.languages,
                topics.index(service.topic),
                "call" not in service.contact,
                len(number_digits(service.number)) > SHORT_CODE,
                service.hours != _ALWAYS,
            )

        return sorted(
            (service for service in self.services if service.country == country), key=rank
        )


def describe(service: HelpService, language: Language, short: bool = False) -> str:
    """Name a service, its hours unless it always answers, and the languages in which it answers if not in this one.

    `short` leaves the name out where it answers in the language.
    """
    wording = _wording(language)
    record = find_language(language)
    answers = language in service.languages
    phrases = [service.name] if answers or not short else []
    contact = _translated(service.contact, wording["contact"])
    phrases.append(f"{contact} ".replace(" ", record.joint) + service.number)
    if service.hours != _ALWAYS:
        hours = _translated(service.hours, wording["days"])
        phrases.append(hours or wording["hours_unknown"])
    if not answers:
        names = read_data(_TOML)["languages"]
        languages = wording["or"].join(names[code][language] for code in service.languages)
        phrases.append(wording["answers_in"].format(languages))
    return record.comma.join(phrases)


def _translated(text: str, wording: Mapping[str, str]) -> str:
    """A text with words of the directory as a language has them."""
    for word, translation in wording.items():
        text = re.sub(rf"\b{word}\b", translation, text)
    return text


def number_digits(number: str) -> str:
    """The digits of a number; full-width ones as plain ones."""
    return unicodedata.normalize("NFKC", re.sub(r"\D", "", number))


_TOML = Path(__file__).with_suffix(".toml")


def _wording(language: Language) -> Mapping[str, Any]:
    raw: Mapping[str, Any] = read_data(_TOML)
    if not all(language in names for names in (raw["wording"], *raw["languages"].values())):
        raise DataError(
            f"help_lines.toml lacks words in {language}: wording, names of languages, names of countries"
        )
    return raw["wording"][language]  # type: ignore[no-any-return]


@cache
def read_help_lines() -> HelpLines:
    """Read the bundled directory. Raises DataError where a bundled language has no phrases."""
    for language in LANGUAGES:
        _wording(language)
    countries = read_jsonl(_TOML.with_name("emergency_numbers.jsonl"))
    services = read_jsonl(_TOML.with_name("help_services.jsonl"))
    raw = {
        "countries": [row for _, row in countries],
        "services": [row for _, row in services],
    }
    return read_record(HelpLines, raw, "help directory")


def help_rows(language: Language, country: str = "") -> tuple[str, ...]:
    """List the overview of the bundled directory, for readers of a language; the row of a country comes first."""
    directory = read_help_lines()
    rows = tuple(row for row, _ in directory.overview(language))
    if not country:
        return rows
    first, _ = directory.overview_row(country, language)
    return (first, *(row for row in rows if row != first))


def country_of(scenario: Scenario) -> str:
    """Where the user of a scenario lives, where `metadata` names a country of the help directory; else ""."""
    country = scenario.metadata.get("country", "")
    return country if isinstance(country, str) and country in read_help_lines().by_code else ""


@cache
def repeatable(description: str, language: Language, country: str) -> str:
    """Return the parts of the system text that an answer may repeat: the persona's description, and real help."""
    book = read_help_lines()
    return "\n".join((description, *book.rows(language, country), *help_rows(language)))


def stale_entries() -> list[str]:
    """Name the services whose page was read more than a year ago."""
    year_ago = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=365)).date()
    old = [
        f"{service.name}, {service.country} ({service.date})"
        for service in read_help_lines().services
        if service.date < year_ago
    ]
    if not old:
        return []
    return [f"help directory: {len(old)} numbers were read more than a year ago: {'; '.join(old)}"]
