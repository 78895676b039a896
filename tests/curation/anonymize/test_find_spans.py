"""Finding personal data: any text, in time proportional to its length; what stays is left alone."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.engine.analyzer import MARGIN, WINDOW, find_in_dialogue, find_spans
from h2htalk.curation.anonymize.spans import TYPES
from h2htalk.errors import ConfigError


def found(text: str, language: str, **options: object) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.type) for s in find_spans(text, language, **options)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "en",
            "my name is Emily Carter, call me at (415) 555-2671 or emily@gmail.com",
            [
                ("Emily Carter", "PERSON"),
                ("(415) 555-2671", "PHONE_NUMBER"),
                ("emily@gmail.com", "EMAIL_ADDRESS"),
            ],
        ),
        (
            "zh",
            "我叫张伟，电话13812345678，住在和平里小区6栋176",
            [("张伟", "PERSON"), ("13812345678", "PHONE_NUMBER"), ("和平里小区6栋176", "ADDRESS")],
        ),
        ("zh", "my name is Emily Carter and I am tired", [("Emily Carter", "PERSON")]),
        ("en", "my friend 张伟强 lives there", [("张伟强", "PERSON")]),
    ],
)
def test_all_kinds_are_found_together(language: str, text: str, expected: list[tuple[str, str]]) -> None:
    assert found(text, language) == expected


@pytest.mark.parametrize(
    ("language", "text", "countries", "number"),
    [
        ("en", "Phone: (99) 645-791", (), "(99) 645-791"),
        ("en", "my mobile is 0171 5529 8834", (), "0171 5529 8834"),
        ("en", "my number is 0171 5529 8834", (), "0171 5529 8834"),
        ("en", "call me: 0171 5529 8834", (), "0171 5529 8834"),
        ("en", "text me 0171 5529 8834", (), "0171 5529 8834"),
        ("en", "reach me at 06 48 22 91 37", (), "06 48 22 91 37"),
        ("en", "my order number is 0171 5529 8834", (), None),
        ("zh", "手机：06 48 22 91 37", (), "06 48 22 91 37"),
        ("en", "reach her on 030 9018 2100 tonight", ("DE",), "030 9018 2100"),
        ("zh", "他家是 030 9018 2100", ("DE",), "030 9018 2100"),
        ("en", "she called 12 times and 645791 people came", (), None),
    ],
)
def test_telephone_numbers_of_other_countries(
    language: str, text: str, countries: tuple[str, ...], number: str | None
) -> None:
    (spans,) = find_in_dialogue([text], language, countries=countries).spans
    phones = [text[span.start : span.end] for span in spans if span.type == "PHONE_NUMBER"]
    assert phones == ([number] if number else [])


def test_characters_that_nobody_sees_hide_no_name() -> None:
    text = "我叫张\u200b伟，电话138\u200b12345678"
    assert found(text, "zh") == [("张\u200b伟", "PERSON"), ("138\u200b12345678", "PHONE_NUMBER")]
    text = "my name is Jose\u0301 Garci\u0301a"
    assert found(text, "en") == [("Jose\u0301 Garci\u0301a", "PERSON")]


@pytest.mark.parametrize(
    ("language", "text", "value"),
    [
        ("en", "My Aadhaar is 4827 1906 5533 and it is wrong", "4827 1906 5533"),
        ("en", "the clinic calls me patient HF-22981 in letters", "HF-22981"),
        ("en", "mr okonjo gave me detention", "mr okonjo"),
        ("en", "my account is 30 days overdue and 1200 in debt", None),
        ("en", "client is 65 years old and weighs 100 kg", None),
        ("en", "hi im sooooo bored", None),
        ("en", "Me. Forty-one with two kids and a bad knee.", None),
        ("en", "drinks @ 9, regret @ 6am. wish me luck", None),
        ("en", "write to jo @ gmail. com", "jo @ gmail. com"),
        ("en", "I waved at the Mona Lisa", None),
        ("zh", "我是江陵县云岗高级中学的", "江陵县云岗高级中学"),
        ("zh", "杭州小学几点放学", None),
        ("zh", "傅老师人挺好的", "傅老师"),
        ("zh", "我老公陈强提出的离婚", "陈强"),
        ("zh", "要控制高糖和时长，注意边牧", None),
        ("zh", "苏姗·凯恩说内向者更专心", "苏姗·凯恩"),
    ],
)
def test_names_and_numbers_of_chat(language: str, text: str, value: str | None) -> None:
    assert [one for one, _ in found(text, language)] == ([value] if value else [])


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "I listened to Taylor Swift while reading Harry Potter, and Hermione is me"),
        ("en", "please call 988 or 1-800-273-8255 if it gets worse"),
        ("zh", "我喜欢周杰伦，最近在看《林黛玉传》"),
        ("zh", "难受的时候可以打12356，或者400-161-9995"),
    ],
)
def test_figures_titles_and_help_lines_stay(language: str, text: str) -> None:
    assert found(text, language) == []


def test_sites_of_help_lines_stay_and_others_do_not() -> None:
    text = "try https://www.thetrevorproject.org/get-help or samaritans.org, my own page is https://www.tomsnook.org/me"
    assert found(text, "en") == [("https://www.tomsnook.org/me", "URL")]
    assert found("可以看看www.crisis.org.cn，我的主页是www.lanlan88.cn", "zh") == [("www.lanlan88.cn", "URL")]


def test_names_that_are_allowed_stay_and_others_do_not() -> None:
    text = "Biscuit says hi. my name is Biscuit Miller, and my friend Talia knows"
    assert ("Talia", "PERSON") in found(text, "en")
    assert found("my friend Talia knows", "en", allow=["Talia"]) == []
    assert found("艾薇，我叫李思琪", "zh", allow=["艾薇"]) == [("李思琪", "PERSON")]


@pytest.mark.parametrize("language", ["en", "zh"])
@given(texts=st.lists(st.text(alphabet=st.characters(), max_size=60), max_size=3))
def test_any_text_gives_spans_in_order_inside_it(language: str, texts: list[str]) -> None:
    for text, spans in zip(texts, find_in_dialogue(texts, language).spans, strict=True):
        assert all(0 <= s.start < s.end <= len(text) and s.type in TYPES and 0.5 <= s.score <= 1 for s in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_half_surrogates_and_nul_are_read_like_all_else(language: str) -> None:
    text = "\ud800\x00 my name is Emily Carter \udfff 我叫张伟\x00"
    assert ("Emily Carter", "PERSON") in found(text, "en")
    assert ("张伟", "PERSON") in found(text, language)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, WINDOW - MARGIN - 5, WINDOW - 8, 2 * WINDOW - 3 * MARGIN + 4, 3 * WINDOW])
def test_a_value_is_found_wherever_a_long_text_is_cut(place: int) -> None:
    filler = "今天天气不错，" * (5 * WINDOW // 7)
    text = filler[:place] + "我叫张伟，电话13812345678。" + filler[place:]
    assert [(s.start - place, text[s.start : s.end]) for s in find_spans(text, "zh")] == [
        (2, "张伟"),
        (7, "13812345678"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "unit"),
    [
        ("zh", "我叫张伟，电话13812345678，住在和平里小区6栋。"),
        ("en", "my name is Emily Carter, 415-555-2671. "),
        ("en", "(" * 40),
        ("zh", "《张" * 20),
    ],
)
def test_time_is_proportional_to_length(language: str, unit: str) -> None:
    def seconds(length: int) -> float:
        text = (unit * (length // len(unit) + 1))[:length]
        start = time.process_time()
        find_spans(text, language)
        return time.process_time() - start

    seconds(1000)
    short, long = (min(seconds(n) for _ in range(2)) for n in (50_000, 200_000))
    assert long < 4 * 2.5 * short + 0.2


def test_an_unknown_language_is_an_error_that_names_the_choices() -> None:
    with pytest.raises(ConfigError, match="choose from en, zh"):
        find_spans("hi", "fr")
