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
from itertools import groupby
from pathlib import Path
from typing import Any

from pydantic import with_config

from h2htalk.data.files import read_jsonl
from h2htalk.data.languages import LANGUAGES, Language, find_language
from h2htalk.data.records import STRICT, as_json, read_record, strict_record
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
        wording, joint = _wording(language), find_language(language).joint
        who = wording["who"] if len({one.who for one in self.emergency}) > 1 else {}
        named = (f"{who.get(one.who, '')}{joint}{one.number}".strip() for one in self.emergency)
        return str(wording["between_numbers"]).join(named)


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
        found: dict[str, list[str]] = {}
        for one in self.services:
            found.setdefault(number_digits(one.number), []).append(f"{one.name}, {one.country}")
        pairs = sorted((number_digits(one.number), place.code) for place in self.countries for one in place.emergency)
        for digits, own in groupby(pairs, lambda pair: pair[0]):
            found.setdefault(digits, []).append("emergency number of " + " ".join(code for _, code in own))
        return found

    def rows(self, language: Language, country: str = "") -> tuple[str, ...]:
        """List the rows of a prompt: of the user's country, or how to ask for it and what to say until then.

        A country's rows are its emergency numbers and at most nine services of different topics: those that answer in
        the language first, then those that always answer. Raises DataError for an unknown country.
        """
        wording, url = _wording(language), read_data(_TOML)["directory"]["url"]
        if not country:
            return (*wording["unknown"], wording["others"].format(url=url))
        if country not in self.by_code:
            raise DataError(f"no country {country!r} in the help directory (ISO 3166-1, such as GB)")
        place, shown = self.by_code[country], dict[str, HelpService]()
        for one in self._ranked(country, language):
            shown.setdefault(one.topic, one)
        first = wording["emergency"].format(country=place.names[language], numbers=place.text(language))
        topics, colon = wording["topics"], wording["colon"]
        services = [f"{topics[one.topic]}{colon}{describe(one, language)}" for one in shown.values()]
        return (first, *services[:SERVICES_SHOWN], *[wording["directory"].format(url=url)] * (not services))

    def overview(self, language: Language) -> tuple[tuple[str, HelpService | None], ...]:
        """List one row a country where many readers of the bundled languages live, then one for all other countries;
        each with the service that it names, or None."""
        wording, rows = _wording(language), list[tuple[str, HelpService | None]]()
        for code, place in ((code, self.by_code[code]) for code in read_data(_TOML)["overview"]):
            crisis = next((one for one in self._ranked(code, language) if one.topic == "crisis"), None)
            shown = {"lines": describe(crisis, language, short=True) if crisis else ""}
            shown |= {"country": place.names[language], "numbers": place.text(language)}
            rows.append((wording["row"].format(**shown), crisis))
        return (*rows, (wording["others"].format(url=read_data(_TOML)["directory"]["url"]), None))

    def to_dict(self) -> dict[str, Any]:
        return as_json(self)

    def _ranked(self, country: str, language: Language) -> list[HelpService]:
        """Services that answer in the language first, then by topic, those to call, short codes, those always open."""
        order, own = list(_wording(language)["topics"]), [one for one in self.services if one.country == country]

        def rank(one: HelpService) -> tuple[bool, int, bool, bool, bool]:
            text_only, long = "call" not in one.contact, len(number_digits(one.number)) > SHORT_CODE
            return language not in one.languages, order.index(one.topic), text_only, long, one.hours != _ALWAYS

        return sorted(own, key=rank)


def describe(one: HelpService, language: Language, short: bool = False) -> str:
    """Name a service, hours unless it always answers, other languages; `short`: no name where it answers in those."""
    wording, record, own = _wording(language), find_language(language), language in one.languages
    contact, hours = one.contact, one.hours
    for word, text in wording["contact"].items():
        contact = re.sub(rf"\b{word}\b", text, contact)
    parts = [*[one.name] * (own or not short), f"{contact} ".replace(" ", record.joint) + one.number]
    if one.hours != _ALWAYS:
        for word, text in wording["days"].items():
            hours = re.sub(rf"\b{word}\b", text, hours)
        parts.append(hours or wording["hours_unknown"])
    if not own:
        names = read_data(_TOML)["languages"]
        parts.append(wording["answers_in"].format(wording["or"].join(names[code][language] for code in one.languages)))
    return record.comma.join(parts)


def number_digits(number: str) -> str:
    """The digits of a number; full-width ones as plain ones."""
    return unicodedata.normalize("NFKC", re.sub(r"\D", "", number))


_TOML = Path(__file__).with_suffix(".toml")


def _wording(language: Language) -> Mapping[str, Any]:
    raw: Mapping[str, Any] = read_data(_TOML)
    if not all(language in names for names in (raw["wording"], *raw["languages"].values())):
        raise DataError(f"help_lines.toml lacks words in {language}: wording, names of languages, names of countries")
    return raw["wording"][language]  # type: ignore[no-any-return]


@cache
def read_help_lines() -> HelpLines:
    """Read the bundled directory. Raises DataError where a bundled language has no phrases."""
    for language in LANGUAGES:
        _wording(language)
    places, services = (_TOML.with_name(name) for name in ("emergency_numbers.jsonl", "help_services.jsonl"))
    raw = {"countries": [row for _, row in read_jsonl(places)], "services": [row for _, row in read_jsonl(services)]}
    return read_record(HelpLines, raw, "help directory")


def help_rows(language: Language) -> tuple[str, ...]:
    """List the overview of the bundled directory, for readers of a language."""
    return tuple(row for row, _ in read_help_lines().overview(language))


def stale_entries() -> list[str]:
    """Name the services whose page was read more than a year ago."""
    least = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=365)).date()
    old = [f"{one.name}, {one.country} ({one.date})" for one in read_help_lines().services if one.date < least]
    return [f"help directory: {len(old)} numbers were read more than a year ago: {'; '.join(old)}"] if old else []
