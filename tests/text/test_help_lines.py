"""The bundled help lines: every number has a source, and every country a line for the readers of every language."""

from __future__ import annotations

import datetime
import re

import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.text.help_lines import help_rows, read_help_lines

COUNTRIES = read_help_lines().countries


def test_emergency_numbers_health_before_police() -> None:
    found = [" ".join([country["code"], *(one["number"] for one in country["emergency"])]) for country in COUNTRIES]
    known = "US 911, CA 911, GB 999, IE 112, AU 000, CN 120 110, HK 999, TW 119 110, SG 995 999"
    assert found == known.split(", ")


def test_every_entry_is_complete() -> None:
    codes = [country["code"] for country in COUNTRIES]
    assert len(codes) == len(set(codes))
    for line in read_help_lines().lines:
        assert re.match(r"https://[\w.-]+/", line.source), line
        assert datetime.date(2015, 1, 1) < line.date < datetime.date(2100, 1, 1), line
        assert re.fullmatch(r"\d[\d -]*\d", line.number), line
        assert line.country in codes, line
        assert line.language in LANGUAGES, line
        assert all(line.number in text for text in (line.contact, line.for_others) if text), line
        assert all((line.name, line.contact, line.hours)), line


def test_a_line_is_named_to_its_readers_and_to_those_of_the_other_language() -> None:
    by_number = {line.number: line for line in read_help_lines().lines}
    assert by_number["1767"].text_for("en") == "Samaritans of Singapore, call 1767"
    assert by_number["1767"].text_for("zh") == ""
    assert by_number["13 11 14"].text_for("zh") == "拨打13 11 14，英语接听"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_a_country_with_a_line_and_its_emergency_numbers(language: Language) -> None:
    *rows, others = help_rows(language)
    assert "findahelpline.com" in others
    for country, row in zip(COUNTRIES, rows, strict=True):
        assert row.startswith(country[language])
        lines = [one for one in read_help_lines().lines if one.country == country["code"] and one.text_for(language)]
        assert any(line.number in row for line in lines), row
        emergency = re.split("emergency|危急时拨", row)[-1]
        assert all(entry["number"] in emergency for entry in country["emergency"]), row
