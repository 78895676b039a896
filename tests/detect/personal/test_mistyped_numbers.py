"""Numbers of which a digit is wrong, beside a word that names them."""

from __future__ import annotations

import pytest

from h2htalk.data.languages import Language
from h2htalk.detect.personal.engine.analyzer import find_spans


@pytest.mark.parametrize(
    ("text", "language", "number"),
    [
        ("My card number is 4539 1488 0343 6468, somebody used it.", "en", "4539 1488 0343 6468"),
        ("My card is 4539148803436468 and he has it.", "en", "4539148803436468"),
        ("my credit card was declined, it's 4539-1488-0343-6468", "en", "4539-1488-0343-6468"),
        ("The number on my visa: 4539148803436468", "en", "4539148803436468"),
        ("4539 1488 0343 6468 is my card, take it", "en", "4539 1488 0343 6468"),
        ("my amex is 378282246310006", "en", "378282246310006"),
        ("I read him the card over the phone: 5425233430109902.", "en", "5425233430109902"),
        ("my card number is 9539148803436468", "en", "9539148803436468"),  # no brand's
        ("我把银行卡给他了，号码是6222021234567890124", "zh", "6222021234567890124"),
        ("6222021234567890124这是我的银行卡", "zh", "6222021234567890124"),
        ("my gift card number is 4539148803436468", "en", None),
        ("the order on my card, order number 4539148803436468", "en", None),
        ("tracking number 4539148803436468", "en", None),
        ("9539148803436468 steps since I lost my card", "en", None),
        ("银行卡寄出来了，快递单号6222021234567890124", "zh", None),
    ],
)
def test_a_card_with_a_wrong_digit_is_found_where_a_plain_word_names_it(
    text: str, language: Language, number: str | None
) -> None:
    """A card number of which the check digit was wrong stayed where `is` stood between the word and the number."""
    cards = [
        text[span.start : span.end]
        for span in find_spans(text, language)
        if span.type == "CREDIT_CARD"
    ]
    assert cards == ([] if number is None else [number])


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("他把我的身份证拿走了，号码是110105199003074513，我怕", "110105199003074513"),
        ("我的號碼是440305199802301235，身份證上的", "440305199802301235"),
    ],
)
def test_a_phones_word_before_an_identity_number_hides_no_word_for_one(
    text: str, number: str
) -> None:
    """号码 is a phone's word, too, so a mistyped number behind it stayed; no phone has so many digits."""
    spans = [span for span in find_spans(text, "zh") if span.type == "NATIONAL_ID"]
    assert [text[span.start : span.end] for span in spans] == [number]
