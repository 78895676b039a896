"""Numbers that stand in for real ones cannot be used, and are written as those were."""

from __future__ import annotations

import re
from random import Random

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.curation.anonymize.normalization import value_shape
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import email, ip_address, url
from h2htalk.curation.anonymize.surrogates.numbers import NUMBERS, has_valid_check_digit, keyed_random, number

MANY = range(30)


def draws() -> list[Random]:
    return [keyed_random(bytes([n] * 32), "x") for n in MANY]


@pytest.mark.parametrize(
    ("language", "digits", "pattern"),
    [
        ("zh", "13812345678", r"(?:154|16[03489]|179)\d{8}"),
        ("zh", "8613812345678", r"86(?:154|16[03489]|179)\d{8}"),
        ("zh", "02162345678", r"02\d[01]\d{7}"),
        ("zh", "057188776655", r"0\d{3}[01]\d{7}"),
        ("zh", "62345678", r"[01]\d{7}"),
        ("zh", "4008123123", r"400000\d{4}"),
        ("en", "4155552671", r"\d{3}55501\d\d"),
        ("en", "14155552671", r"1\d{3}55501\d\d"),
        ("en", "5552671", r"55501\d\d"),
        ("en", "07911123456", r"07700900\d{3}"),
        ("en", "447911123456", r"447700900\d{3}"),
        ("en", "02079461234", r"02079460\d{3}"),
        ("en", "01614961234", r"01632960\d{3}"),
        ("en", "0412345678", r"0491\d{6}"),
        ("en", "61412345678", r"61491\d{6}"),
        ("en", "0298765432", r"02(?:5550|7010)\d{4}"),
        ("en", "33612345678", r"3363998\d{4}"),
        ("en", "4915112345678", r"4900\d{9}"),
        ("en", "919876543210", r"9100\d{8}"),
        ("en", "00353861234567", r"003500\d{8}"),
    ],
)
def test_telephone_numbers_are_of_ranges_that_nobody_has(language: str, digits: str, pattern: str) -> None:
    for draw in draws():
        other = number("PHONE_NUMBER", draw, digits, language)
        assert len(other) == len(digits)
        assert re.fullmatch(pattern, other), other


def test_no_chinese_surrogate_is_a_number_in_use() -> None:
    for n in range(500):  # 161 was among the prefixes, and 1610 is given out
        parsed = phonenumbers.parse(number("PHONE_NUMBER", keyed_random(n.to_bytes(2), "x"), "13812345678", "zh"), "CN")
        assert not phonenumbers.is_valid_number(parsed)


@given(
    kind=st.sampled_from(sorted(NUMBERS)),
    value=st.text("0123456789abx", min_size=1, max_size=22),
    language=st.sampled_from(["en", "zh"]),
    attempt=st.sampled_from([0, 1, 100]),
)
def test_every_kind_keeps_the_length(kind: str, value: str, language: str, attempt: int) -> None:
    made = number(kind, keyed_random(b"k" * 32, kind, value), value, language, attempt)
    assert len(made) == len(value)


@pytest.mark.parametrize(
    ("kind", "value", "pattern"),
    [
        ("NATIONAL_ID", "110101199003078515", r"000\d{15}"),
        ("NATIONAL_ID", "11010119900307851x", r"000\d{14}[a-z]"),
        ("NATIONAL_ID", "219099999", r"000\d{6}"),
        ("NATIONAL_ID", "ab123456c", r"qq000\d{3}[a-z]"),
        ("NATIONAL_ID", "9434765919", r"000\d{7}"),
        ("CREDIT_CARD", "6222021234567890128", r"62\d{17}"),
        ("ACCOUNT_NUMBER", "gb29nwbk60161331926819", r"gb00[a-z]{4}\d{14}"),
        ("ACCOUNT_NUMBER", "021000021", r"00\d{7}"),
        ("ACCOUNT_NUMBER", "a123456789", r"q00\d{7}"),
        ("QQ", "12345678", r"0\d{7}"),
        ("WECHAT", "zhang_88", r"0[a-z]{4}_\d\d"),
        ("WECHAT", "13812345678", r"(?:154|16[03489]|179)\d{8}"),
        ("LICENSE_PLATE", "a12345", r"[io]\d{5}"),
    ],
)
def test_numbers_are_of_forms_that_are_not_given_out(kind: str, value: str, pattern: str) -> None:
    for draw in draws():
        made = number(kind, draw, value, "zh")
        assert re.fullmatch(pattern, made), made
        assert kind in ("QQ", "WECHAT", "LICENSE_PLATE") or not has_valid_check_digit(made)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("Emily.Carter92@gmail.com", r"[a-z]{5}\.[a-z]{6}\d\d@example\.(?:com|org|net)"),
        ("zhangwei＠qq.com", r"[a-z]{8}@example\.(?:com|org|net)"),
        ("Tom (at) gmail [dot] com", r"[a-z]{3}@example\.(?:com|org|net)"),
        ("li88 @ 163 . com", r"[a-z]{2}\d\d@example\.(?:com|org|net)"),
        ("lin#qq.com", r"[a-z]{3}@example\.(?:com|org|net)"),
        ("ＡＢ１＠ｑｑ．ｃｏｍ", r"[a-z]{2}\d@example\.(?:com|org|net)"),
    ],
)
def test_mail_goes_to_domains_kept_for_examples(value: str, pattern: str) -> None:
    for draw in draws()[:5]:
        other = email(draw, value)
        assert re.fullmatch(pattern, other), other


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("https://www.instagram.com/emilyc92", r"https://[a-z]{6}\.example\.(?:com|org|net)/[a-z]{6}\d\d"),
        ("weibo.com/u/1234567", r"[a-z]{6}\.example\.(?:com|org|net)/[a-z]/\d{7}"),
        ("mysite.cn", r"[a-z]{6}\.example\.(?:com|org|net)"),
        ("http://10.0.0.8:8080/x?y=1", r"http://[a-z]{6}\.example\.(?:com|org|net):\d{4}/[a-z]\?[a-z]=\d"),
    ],
)
def test_urls_lead_to_domains_kept_for_examples(value: str, pattern: str) -> None:
    for draw in draws()[:5]:
        other = url(draw, value)
        assert re.fullmatch(pattern, other), other


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ("83.12.45.9", r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d{1,3}"),
        ("83 . 12 . 45 . 9", r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.\d{1,3}"),
        ("fe80::1ff:fe23:4567:890a", r"2001:db8::[0-9a-f]{1,4}:[0-9a-f]{1,4}:[0-9a-f]{1,4}"),
    ],
)
def test_ip_addresses_are_kept_for_documentation(value: str, pattern: str) -> None:
    for draw in draws()[:5]:
        assert re.fullmatch(pattern, ip_address(draw, value))


@pytest.mark.parametrize(
    ("value", "compact", "other", "reformatted"),
    [
        ("138-1234", "1381234", "9990000", "999-0000"),
        ("１３８", "138", "904", "904"),
        ("①③⑧", "138", "904", "904"),
        ("一三八", "138", "904", "904"),
        ("幺三八", "138", "104", "104"),
        ("Five five 5", "555", "012", "0 1 2"),
        ("1oo4", "1004", "9876", "9876"),
        ("1️⃣3️⃣", "13", "90", "9️⃣0️⃣"),
        ("AB 12c", "ab12c", "xy34z", "XY 34z"),
    ],
)
def test_a_value_keeps_its_format(value: str, compact: str, other: str, reformatted: str) -> None:
    shape = value_shape(value, numeric=True)
    assert shape.compact == compact
    assert shape.reformatted(other) == reformatted
