"""The help directory: every number stands in a sentence of a public page; rows for prompts and annotators."""

from __future__ import annotations

import datetime
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from h2htalk.data.languages import LANGUAGES, Language
from h2htalk.errors import DataError
from h2htalk.text import help_lines
from h2htalk.text.help_lines import HelpLines, read_help_lines, stale_entries

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import make_help_lines

BOOK = read_help_lines()


def test_every_number_is_in_the_sentence_of_its_page_and_the_files_are_made_of_it() -> None:
    assert list(make_help_lines.wrong()) == []
    for name, target in make_help_lines.FILES.items():
        shipped = (
            Path(help_lines.__file__).with_name(target).read_text(encoding="utf-8").splitlines()
        )
        for row, line in zip(make_help_lines.rows(name), shipped, strict=True):
            assert json.loads(line).items() <= row.items()


HELD = {"sentence": "does not hold", "topic": "topic", "hours": "hours", "url": "no address"}


@pytest.mark.parametrize(("field", "message"), HELD.items())
def test_wrong_evidence_is_named(
    field: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first, *others = make_help_lines.rows("evidence.jsonl")
    emergency = (make_help_lines.EVIDENCE / "emergency.jsonl").read_text(encoding="utf-8")
    (tmp_path / "emergency.jsonl").write_text(emergency, encoding="utf-8")
    lines = [
        json.dumps(row, ensure_ascii=False) for row in ({**first, field: "a leaflet"}, *others)
    ]
    (tmp_path / "evidence.jsonl").write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(make_help_lines, "EVIDENCE", tmp_path)
    (found,) = make_help_lines.wrong()
    assert message in found


def test_services_and_countries_are_many() -> None:
    assert len(BOOK.services) >= 250
    assert len({one.country for one in BOOK.services}) >= 40
    assert len(BOOK.countries) >= 195
    known = "US 911, CA 911, GB 999, AU 000, CN 120 110, HK 999, TW 119 110, SG 995 999"
    for code, *numbers in (one.split() for one in known.split(", ")):
        assert [one.number for one in BOOK.by_code[code].emergency][: len(numbers)] == numbers


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rows_of_a_country_begin_with_its_emergency_numbers(language: Language) -> None:
    for code in ("GB", "US", "AU", "CN", "HK", "TW", "SG"):
        first, *rows = BOOK.rows(language, code)
        assert all(one.number in first for one in BOOK.by_code[code].emergency)
        assert 3 <= len(rows) <= 9
        own = [one for one in BOOK.services if one.country == code]
        assert all(any(one.number in row and one.name in row for one in own) for row in rows)
    unlisted = next(
        code for code in BOOK.by_code if code not in {one.country for one in BOOK.services}
    )
    assert "findahelpline.com" in BOOK.rows(language, unlisted)[-1]
    with pytest.raises(DataError, match="no country 'XX'"):
        BOOK.rows(language, "XX")


@pytest.mark.parametrize(
    ("language", "asked"), [("en", "Which country are you in?"), ("zh", "你在哪个国家或地区？")]
)
def test_where_the_country_is_not_known_the_prompt_asks(language: Language, asked: str) -> None:
    rows = BOOK.rows(language)
    assert asked in rows[0]
    assert all(number in rows[1] for number in ("999", "911", "112", "120"))
    overview = [row for row, _ in BOOK.overview(language)]
    assert all(
        text in "\n".join(overview) for text in ("116 123", "988", "12356", "findahelpline.com")
    )


def test_the_overview_names_lines_to_call_at_any_hour_and_rests_on_pages_of_standing() -> None:
    rows = make_help_lines.rows("evidence.jsonl")
    publisher = {(row["country"], row["number"]): row.get("publisher") for row in rows}
    for language in LANGUAGES:
        shown = [one for _, one in BOOK.overview(language) if one]
        assert {one.country: one.number for one in shown}.items() >= {
            "IE": "116 123",
            "NZ": "1737",
        }.items()
        assert all("call" in one.contact for one in shown)
        assert [one.country for one in shown if one.hours != "24/7"] == ["CN"]
        assert {publisher[one.country, one.number] for one in shown} <= {
            "service",
            "public",
            "university",
            "news",
        }


def test_rows_say_in_which_languages_a_line_answers_and_for_how_long() -> None:
    (english,) = [row for row, _ in BOOK.overview("en") if "12356" in row]
    assert "call 12356, at least 18 hours a day, in Chinese;" in english
    (chinese,) = [row for row, _ in BOOK.overview("zh") if "12356" in row]
    assert "拨打12356，每天至少18小时；" in chinese
    assert "拨打或发短信988，用英语或西班牙语接听；" in BOOK.overview("zh")[0][0]
    assert all(
        BOOK.rows(language, code) for language in LANGUAGES for code in BOOK.by_code
    )  # each language has a name


def test_entries_of_more_than_a_year_ago_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    old = replace(BOOK.services[0], date=datetime.date(2020, 1, 1))
    monkeypatch.setattr(
        help_lines, "read_help_lines", lambda: HelpLines(BOOK.countries, (old, *BOOK.services[1:]))
    )
    (said,) = [one for one in stale_entries() if old.name in one]
    assert "(2020-01-01)" in said


def test_a_language_without_words_in_the_directory_is_refused() -> None:
    with pytest.raises(DataError, match="lacks words in de"):
        help_lines.describe(read_help_lines().services[0], "de")
