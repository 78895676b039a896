"""The bundled help lines: every number has a source, and every country a line for the readers of every language."""

from __future__ import annotations

import datetime
import itertools
import re

import pytest

from h2htalk.data.help_lines import lines_of, read_help_lines
from h2htalk.data.languages import LANGUAGES


@pytest.mark.parametrize(
    ("country", "language", "number"),
    [
        ("US", "en", "988"),
        ("CA", "en", "988"),
        ("GB", "en", "116 123"),
        ("GB", "en", "85258"),
        ("IE", "en", "116 123"),
        ("AU", "en", "13 11 14"),
        ("SG", "en", "1767"),
        ("CN", "zh", "12356"),
        ("HK", "zh", "18111"),
        ("HK", "zh", "2389 2222"),
        ("HK", "en", "2896 0000"),
        ("TW", "zh", "1925"),
        ("TW", "zh", "1995"),
        ("TW", "zh", "1980"),
    ],
)
def test_the_lines_of_a_country(country: str, language: str, number: str) -> None:
    assert number in {line.number for line in lines_of(country) if line.language == language}


@pytest.mark.parametrize(
    ("country", "numbers"),
    [
        ("US", ["911"]),
        ("GB", ["999"]),
        ("IE", ["112"]),
        ("AU", ["000"]),
        ("CN", ["120", "110"]),
        ("HK", ["999"]),
        ("TW", ["119", "110"]),
        ("SG", ["995", "999"]),
    ],
)
def test_emergency_numbers_health_before_police(country: str, numbers: list[str]) -> None:
    by_code = {c.code: c for c in read_help_lines().countries}
    assert [entry.number for entry in by_code[country].emergency] == numbers


def test_every_entry_is_complete() -> None:
    help_lines = read_help_lines()
    codes = [country.code for country in help_lines.countries]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch("[A-Z]{2}", code) for code in codes)
    for entry in help_lines.lines:
        assert re.match(r"https://[\w.-]+/", entry.source), entry
        assert datetime.date(2015, 1, 1) < entry.date < datetime.date(2100, 1, 1), entry
    numbers = [number for country in help_lines.countries for number in country.emergency]
    assert all(re.fullmatch(r"\d[\d -]*\d", entry.number) for entry in (*help_lines.lines, *numbers))
    for line in help_lines.lines:
        assert line.country in codes, line
        assert line.language in LANGUAGES, line
        assert all(line.number in text for text in (line.contact, line.for_others) if text), line
        assert all((line.name, line.contact, line.hours)), line


def test_every_country_has_a_line_and_every_language_several() -> None:
    assert all(lines_of(country.code) for country in read_help_lines().countries)
    lines = read_help_lines().lines
    assert {line.country for line in lines if line.language == "zh"} == {"CN", "HK", "TW", "SG"}
    assert {"US", "GB"} <= {line.country for line in lines if line.language == "en"}


def test_an_unknown_country_has_no_lines() -> None:
    assert lines_of("ZZ") == ()


def test_hours_are_hours_or_say_where_to_look() -> None:
    """Nothing is known of 1980's hours but that its page is the place to ask."""
    odd = {line.number: line.hours for line in read_help_lines().lines if line.hours not in ("24 hours", "24小时")}
    assert odd == {"12356": "每天至少18小时", "1980": "时段请查官网"}


def test_a_line_is_named_to_its_readers_and_to_those_of_the_other_language() -> None:
    by_number = {line.number: line for line in read_help_lines().lines}
    assert by_number["1767"].text_for("en") == "Samaritans of Singapore, call 1767"
    assert by_number["1767"].text_for("zh") == ""
    assert by_number["12356"].text_for("zh") == "全国统一心理援助热线，拨打12356，每天至少18小时"
    assert by_number["12356"].text_for("en") == "call 12356, in Chinese, at least 18 hours a day"
    assert by_number["13 11 14"].text_for("zh") == "拨打13 11 14，英语接听"


def test_every_country_has_a_line_for_readers_of_every_language() -> None:
    for country, language in itertools.product(read_help_lines().countries, LANGUAGES):
        assert any(line.text_for(language) for line in lines_of(country.code)), (country.code, language)
