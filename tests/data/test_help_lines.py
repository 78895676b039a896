"""The help-line book: where every number comes from, and that a damaged book is refused with advice."""

from __future__ import annotations

import copy
import itertools
import re
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from h2htalk.data.help_lines import HelpLines, lines_for, lines_of, public_numbers, read_help_lines
from h2htalk.data.languages import LANGUAGES
from h2htalk.errors import DataError

BUNDLED = Path(str(files("h2htalk.data") / "bundled" / "help_lines.toml"))


@pytest.fixture
def raw() -> dict[str, Any]:
    return tomllib.loads(BUNDLED.read_text(encoding="utf-8"))


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
def test_the_lines_that_people_are_told_to_call(country: str, language: str, number: str) -> None:
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


def test_every_line_names_an_https_source_a_day_and_how_to_reach_it() -> None:
    for line in read_help_lines().lines:
        assert re.match(r"https://[\w.-]+/", line.source), line
        assert 2015 < line.date.year < 2100, line
        assert line.number in line.contact, line


def test_every_country_has_a_line_and_every_language_several() -> None:
    assert all(lines_of(country.code) for country in read_help_lines().countries)
    assert {line.country for line in lines_for("zh")} == {"CN", "HK", "TW", "SG"}
    assert {"US", "GB"} <= {line.country for line in lines_for("en")}
    assert not set(lines_for("en")) & set(lines_for("zh"))


def test_an_unknown_country_has_no_lines() -> None:
    assert lines_of("ZZ") == ()


def test_hours_are_hours_or_say_where_to_look() -> None:
    """Nothing is known of 1980's hours but that its page is the place to ask."""
    odd = {
        line.number: line.hours
        for line in read_help_lines().lines
        if line.hours not in ("24 hours", "24小时")
    }
    assert odd == {"12356": "每天至少18小时", "1980": "时段请查官网"}


def test_a_line_is_told_in_its_own_language_or_as_it_gives_for_others() -> None:
    by_number = {line.number: line for line in read_help_lines().lines}
    assert by_number["1767"].told("en") == "Samaritans of Singapore, call 1767"
    assert by_number["1767"].told("zh") == ""
    assert by_number["12356"].told("zh") == "全国统一心理援助热线，拨打12356，每天至少18小时"
    assert by_number["12356"].told("en") == "call 12356, in Chinese, at least 18 hours a day"
    assert by_number["13 11 14"].told("zh") == "拨打13 11 14，英语接听"


def test_every_country_has_a_line_for_readers_of_every_language() -> None:
    for country, language in itertools.product(read_help_lines().countries, LANGUAGES):
        assert any(line.told(language) for line in lines_of(country.code)), (country.code, language)


def test_public_numbers_are_digits_for_an_anonymiser_to_leave_alone() -> None:
    assert {"988", "116123", "85258", "12356", "23892222", "0477131114", "911", "110"} <= public_numbers()
    assert all(number.isdigit() for number in public_numbers())


def _damage(raw: dict[str, Any], table: str, key: str, value: object) -> dict[str, Any]:
    damaged = copy.deepcopy(raw)
    target = damaged[table] if isinstance(damaged[table], dict) else damaged[table][0]
    if value is None:
        del target[key]
    else:
        target[key] = value
    return damaged


@pytest.mark.parametrize(
    ("table", "key", "value", "says"),
    [
        ("line", "source", None, r"line 1: source"),
        ("line", "source", "http://988lifeline.org/", r"line 1: source must be an https address"),
        ("line", "date", "2026-11-20", r"line 1: date must be a day such as 2026-11-20, without quotes"),
        ("line", "number", "nine eight eight", r"line 1: number is 'nine eight eight'"),
        ("line", "contact", "call 989", r"line 1: contact 'call 989' does not hold the number 988"),
        ("line", "for_others", "拨打989", r"line 1: for_others '拨打989' does not hold the number 988"),
        (
            "line",
            "for_others",
            None,
            r"country US has no line for readers of 'zh'; add a row in that language",
        ),
        ("line", "country", "XX", r"line 1: country 'XX' has no \[\[country\]\] table"),
        ("line", "language", "fr", r"line 1: language is 'fr'; choose from en, zh"),
        ("country", "code", "usa", r"country 1: code is 'usa'"),
        ("country", "code", "CA", r"country CA stands twice"),
        ("country", "zh", None, r"country 1: zh must be text"),
        ("country", "emergency", [], r"country 1: US needs at least one emergency number"),
        ("directory", "url", None, r"directory: url must be text"),
    ],
)
def test_a_damaged_book_is_refused(
    raw: dict[str, Any], table: str, key: str, value: object, says: str
) -> None:
    with pytest.raises(DataError, match=r"^book\.toml: .*" + says):
        HelpLines.from_dict(_damage(raw, table, key, value), "book.toml")


@pytest.mark.parametrize("table", ["line", "country", "directory"])
def test_a_book_without_a_table_is_refused(raw: dict[str, Any], table: str) -> None:
    del raw[table]
    with pytest.raises(DataError, match=table):
        HelpLines.from_dict(raw, "book.toml")


def test_a_file_that_is_not_toml_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "book.toml"
    path.write_text("[[line]\n", encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(str(path))):
        read_help_lines(path)
