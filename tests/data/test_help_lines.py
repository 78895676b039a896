"""The bundled help lines: every number has a source, and every country a line for the readers of every language."""

from __future__ import annotations

import datetime
import itertools
import re

import pytest

from h2htalk.data.help_lines import help_rows, help_text, lines_of, read_help_lines
from h2htalk.data.languages import LANGUAGES, Language


def test_emergency_numbers_health_before_police() -> None:
    found = {country.code: [one.number for one in country.emergency] for country in read_help_lines().countries}
    assert found == {
        "US": ["911"],
        "CA": ["911"],
        "GB": ["999"],
        "IE": ["112"],
        "AU": ["000"],
        "CN": ["120", "110"],
        "HK": ["999"],
        "TW": ["119", "110"],
        "SG": ["995", "999"],
    }


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


# --- In words


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_a_country_with_a_line_and_its_emergency_numbers(language: Language) -> None:
    countries = read_help_lines().countries
    rows = help_rows(language)
    assert len(rows) == len(countries) + 1
    for country, row in zip(countries, rows, strict=False):
        assert row.startswith(country.names[language])
        assert any(line.number in row for line in lines_of(country.code)), row
        emergency = re.split("emergency|危急时拨", row)[-1]
        assert all(entry.number in emergency for entry in country.emergency), row


@pytest.mark.parametrize(
    ("language", "row"),
    [
        ("en", "United States: 988 Suicide & Crisis Lifeline, call or text 988; emergency 911"),
        (
            "en",
            "Mainland China: call 12356, in Chinese, at least 18 hours a day; emergency ambulance 120, police 110",
        ),
        (
            "zh",
            "中国大陆：全国统一心理援助热线，拨打12356，每天至少18小时；危急时拨急救120、报警110",
        ),
        ("zh", "美国：拨打988，英语接听；危急时拨911"),
    ],
)
def test_rows_word_for_word(language: Language, row: str) -> None:
    assert row in help_rows(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_is_short(language: Language) -> None:
    """Some 300 tokens: a piece is a word, up to three digits, a mark, or a Chinese character and a half."""
    text = help_text(language)
    assert "findahelpline.com" in text.splitlines()[-1]
    han = len(re.findall("[\u4e00-\u9fff]", text))
    others = len(re.findall(r"[A-Za-z]+|\d{1,3}|[^\w\s]", text))
    assert others + han / 1.5 <= 300
