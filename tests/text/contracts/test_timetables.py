"""Reading timetables: `HH:MM Activity` lines and numbered sub-schedules."""

from __future__ import annotations

import pytest

from h2htalk.text.contracts.contract import check

DAY = [
    ("the form", "08:00 Opens the shop\n23:00 Sleep", "en", set()),
    ("five lines", "06:00 Runs\n07:00 Eats\n08:00 Reads\n09:00 Works\n20:00 Goes to bed", "en", set()),
    ("full-width digits and colon", "０８：００ 开门\n２３：００ 睡觉", "zh", set()),
    ("Chinese without a space", "08:00开门\n23:00熄灯", "zh", set()),
    ("empty lines and line ends", "08:00 Opens the shop  \r\n\r\n 23:00 Lights out \n", "en", set()),
    ("parentheses are words", "08:00 Opens the shop (with the old cat)\n23:00 Sleep", "en", {"too_long"}),
    ("one line", "23:00 Sleep", "en", {"activity_count"}),
    (
        "six lines",
        "\n".join(f"{h}:00 Reads" for h in range(10, 15)) + "\n23:00 Sleep",
        "en",
        {"activity_count"},
    ),
    ("hour 25", "08:00 Opens the shop\n25:00 Sleep", "en", {"time"}),
    ("hour 24", "08:00 Opens the shop\n24:00 Sleep", "en", {"time"}),
    ("minute 60", "08:60 Opens the shop\n23:00 Sleep", "en", {"time"}),
    ("one-digit hour", "8:00 Opens the shop\n23:00 Sleep", "en", {"time"}),
    ("unsorted", "12:00 Eats\n08:00 Opens the shop\n23:00 Sleep", "en", {"time_order"}),
    ("the same time twice", "12:00 Eats\n12:00 Reads\n23:00 Sleep", "en", {"time_order"}),
    ("after midnight", "12:00 Eats\n00:30 Sleep", "en", {"time_order", "sleep"}),
    ("early sleep", "12:00 Eats\n19:59 Sleep", "en", {"sleep"}),
    ("no sleep", "12:00 Eats\n23:00 Reads", "en", {"sleep"}),
    ("sleep not last", "21:00 Sleep\n23:00 Reads", "en", {"sleep"}),
    ("bullets", "- 08:00 Opens the shop\n- 23:00 Sleep", "en", {"line_form", "sleep"}),
    ("a range", "08:00-09:00 Opens the shop\n23:00 Sleep", "en", {"line_form"}),
    ("a dash after the time", "08:00 - Opens the shop\n23:00 Sleep", "en", {"line_form"}),
    ("no space in English", "08:00Opens the shop\n23:00 Sleep", "en", {"line_form"}),
    ("cut off after the time", "08:00 Opens the shop\n22:00 Sleep\n23:", "en", {"line_form", "sleep"}),
    ("no activity", "08:00\n23:00 Sleep", "en", {"line_form"}),
    ("a bracketed narrator", "08:00 开门\n23:00 睡觉\n（晚安）", "zh", {"line_form", "sleep"}),
    ("first person", "08:00 I open the shop\n23:00 Sleep", "en", {"third_person"}),
    ("first person in Chinese", "08:00 我去开门\n23:00 睡觉", "zh", {"third_person"}),
    ("seven words", "08:00 Opens the shop on the old quay\n23:00 Sleep", "en", {"too_long"}),
    ("nine characters", "08:00 慢慢地走去书店开门\n23:00 睡觉", "zh", {"too_long"}),
]


@pytest.mark.parametrize(("case", "text", "language", "expected"), DAY, ids=[case for case, *_ in DAY])
def test_a_day(case: str, text: str, language: str, expected: set[str]) -> None:
    assert {v.rule for v in check(text, "itinerary_middle", language)} == expected  # type: ignore[arg-type]


STEPS = [
    ("the form", "1. At 15:00, meets the client.\n2. At 15:40, walks the garden.", "en", set()),
    ("the Chinese form", "1. 15:00，等客人。\n2. 15:40，看花境。", "zh", set()),
    ("other number marks", "1、15:00，等客人。\n2) 15:40，看花境。", "zh", set()),
    ("full width", "１．１５：００，等客人。\n２．１５：４０，看花境。", "zh", set()),
    ("a range counts from its start", "1. 15:00-15:30 tea\n2. 15:30-16:00 walk", "en", set()),
    ("blank lines between", "1. At 15:00, tea.\n\n2. At 15:40, walk.\n", "en", set()),
    ("one line", "1. At 15:00, meets the client.", "en", {"activity_count"}),
    ("no time", "1. At 15:00, tea.\n2. Then a walk.", "en", {"time"}),
    ("hour 25", "1. At 15:00, tea.\n2. At 25:00, walk.", "en", {"time"}),
    ("one-digit hour", "1. At 9:00, tea.\n2. At 15:00, walk.", "en", {"time"}),
    ("unsorted", "1. At 15:00, tea.\n2. At 14:00, walk.", "en", {"time_order"}),
    ("duplicate number", "1. At 15:00, tea.\n1. At 15:40, walk.", "en", {"numbering"}),
    ("numbered from 0", "0. At 15:00, tea.\n1. At 15:40, walk.", "en", {"numbering"}),
    ("a gap", "1. At 15:00, tea.\n3. At 15:40, walk.", "en", {"numbering"}),
    ("a heading", "The afternoon\n1. At 15:00, tea.\n2. At 15:40, walk.", "en", {"line_form"}),
    ("not numbered", "At 15:00, tea.\nAt 15:40, walk.", "en", {"line_form"}),
    ("cut off after the number", "1. At 15:00, tea.\n2. At 15:40, walk.\n3.", "en", {"line_form"}),
    ("bold", "**1. At 15:00, tea.**\n**2. At 15:40, walk.**", "en", {"line_form"}),
    ("a name", "1. At 15:00, Ren meets the client.\n2. At 15:40, they walk.", "en", set()),
    ("a quotation", '1. At 15:00, says "I am late".\n2. At 15:40, walks.', "en", set()),
    ("first person", "1. At 15:00, meets the client.\n2. At 15:40, my walk.", "en", {"third_person"}),
    ("first person in Chinese", "1. 15:00，他等客人。\n2. 15:40，我看店。", "zh", {"third_person"}),
    ("a huge number", "9" * 5000 + ". At 15:00, tea.\n2. At 15:40, walk.", "en", {"numbering"}),
]


@pytest.mark.parametrize(("case", "text", "language", "expected"), STEPS, ids=[case for case, *_ in STEPS])
def test_a_sub_schedule(case: str, text: str, language: str, expected: set[str]) -> None:
    assert {v.rule for v in check(text, "itinerary_advanced", language)} == expected  # type: ignore[arg-type]


def test_times_out_of_order_are_one_fault() -> None:
    found = check("12:00 Eats\n11:00 Reads\n10:00 Walks\n23:00 Sleep", "itinerary_middle", "en")
    assert [(v.rule, v.detail) for v in found] == [("time_order", "11:00 comes after 12:00")]
