"""Plain, normalised and deobfuscated texts: their places are places in the text as given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.spans import normalize_text, plain
from h2htalk.curation.anonymize.structured.reading import deobfuscate


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("１３８－００１３", "138-0013"),
        ("𝟭𝟮𝟯 ²", "123 2"),
        ("ｌｉｎ＠ｑｑ．ｃｏｍ", "lin@qq.com"),
        ("京A·1 京A•1 京A・1", "京A·1 京A·1 京A·1"),
        ("аеор", "aeop"),
    ],
)
def test_other_shapes_of_a_character_read_as_the_plain_one(given_text: str, expected: str) -> None:
    assert plain(given_text) == expected


@pytest.mark.parametrize("kept", ["一二三幺", "今天。好", "《活着》", "éß", "高兴😀", "\ud800\x00\u202e"])
def test_what_is_no_shape_of_something_plain_stays(kept: str) -> None:
    assert plain(kept) == kept


@given(st.text(alphabet=st.characters(codec=None)))
def test_the_length_never_changes(text: str) -> None:
    assert len(plain(text)) == len(text)


@given(st.text())
def test_all_strings_of_a_reading_have_one_length_and_places_lie_in_the_text(text: str) -> None:
    reading = normalize_text(text)
    assert len({len(reading.visible), len(reading.text), len(reading.digits)}) == 1
    for place in range(len(reading.text)):
        start, end = reading.original_span(place, place + 1)
        assert 0 <= start < end <= len(text)
        assert text[start] == reading.visible[place]


def test_unseen_characters_are_left_out_and_key_caps_belong_to_their_digit() -> None:
    reading = normalize_text("a1\u200b\ufe0f2\ufe0f\u20e3b")
    assert reading.text == "a12b"
    assert reading.original_span(1, 3) == (1, 7)


def test_han_digits_and_lone_letters_o_read_as_digits_only_for_numbers() -> None:
    reading = normalize_text("幺三八 1o2O你")
    assert reading.text == "幺三八 1o2o你"
    assert reading.digits == "138 1020你"


@pytest.mark.parametrize(
    ("text", "language", "meant"),
    [
        ("138然后2736后面是4512", "zh", "138 2736 4512"),
        ("幺三八洞两七三六六四勾", "zh", "13802736649"),
        ("lin下划线88", "zh", "lin_88"),
        ("I38O", "en", "1380"),
        ("two double five, oh nine", "en", "255, 09"),
        ("205 and then 555", "en", "205 555"),
        ("p l a t e", "en", "plate"),
        ("404 ... 555 ... 0100", "en", "404 555 0100"),
        ("what a lovely day", "en", None),
        ("今天好累", "zh", None),
        ("one two three four five breathe", "en", None),
    ],
)
def test_a_disguise_reads_as_what_it_means(text: str, language: str, meant: str | None) -> None:
    found = deobfuscate(normalize_text(text), language)
    assert (found and found[0].text) == meant


_PIECES = st.sampled_from(
    [
        *"0138一幺洞两拐l oI~·、_.-😊",
        "然后",
        "不要",
        "四个6",
        "下划线",
        "bravo ",
        "one ",
        "double ",
        " then ",
        "yao ",
        "ab",
    ]
)


@given(st.lists(_PIECES, max_size=40).map("".join), st.sampled_from(["en", "zh"]))
def test_every_character_of_what_is_meant_stands_for_a_place_of_the_text(text: str, language: str) -> None:
    normalized = normalize_text(text)
    found = deobfuscate(normalized, language)
    if found is not None:
        meant, signs = found
        assert meant.text == "".join(sign.text for sign in signs)
        assert all(0 <= sign.start < sign.end <= len(normalized.text) for sign in signs)
        assert signs == sorted(signs, key=lambda sign: sign.start)
