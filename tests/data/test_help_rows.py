"""The help lines in words: a row a country for readers of either language, short, and never a false claim."""

from __future__ import annotations

import re

import pytest

from h2htalk.data.help_lines import help_rows, help_text, lines_of, read_help_lines
from h2htalk.data.languages import LANGUAGES, Language


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
        ("en", "United Kingdom: Samaritans, call 116 123; Shout, text SHOUT to 85258; emergency 999"),
        (
            "en",
            "Mainland China: call 12356, in Chinese, at least 18 hours a day; emergency ambulance 120, police 110",
        ),
        ("en", "Taiwan: call 1925, in Chinese; emergency ambulance 119, police 110"),
        (
            "zh",
            "中国大陆：全国统一心理援助热线，拨打12356，每天至少18小时；危急时拨急救120、报警110",
        ),
        ("zh", "美国：拨打988，英语接听；危急时拨911"),
        ("zh", "英国：拨打116 123，英语接听；危急时拨999"),
    ],
)
def test_rows_word_for_word(language: Language, row: str) -> None:
    assert row in help_rows(language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_last_row_is_for_everybody_else(language: Language) -> None:
    assert "findahelpline.com" in help_rows(language)[-1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_list_is_short(language: Language) -> None:
    """Some 300 tokens: a piece is a word, up to three digits, a mark, or a Chinese character and a half."""
    text = help_text(language)
    han = len(re.findall("[\u4e00-\u9fff]", text))
    others = len(re.findall(r"[A-Za-z]+|\d{1,3}|[^\w\s]", text))
    assert others + han / 1.5 <= 300


@pytest.mark.parametrize("language", LANGUAGES)
def test_hours_are_named_where_a_line_does_not_always_answer(language: Language) -> None:
    text = help_text(language)
    assert "24" not in text
    assert ("at least 18 hours a day" if language == "en" else "每天至少18小时") in text
