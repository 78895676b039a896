"""Check digits, on numbers that their issuers publish as examples."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii import checksums


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (checksums.luhn, "4111111111111111"),
        (checksums.luhn, "378282246310005"),
        (checksums.luhn, "046454286"),
        (checksums.resident_id, "11010519491231002X"),
        (checksums.old_resident_id, "110105491231002"),
        (checksums.nhs, "9434765919"),
        (checksums.tax_file, "123456782"),
        (checksums.medicare, "2123456701"),
        (checksums.routing, "121000248"),
        (checksums.social_security, "219099999"),
        (checksums.iban, "GB29NWBK60161331926819"),
        (checksums.iban, "DE89370400440532013000"),
    ],
)
def test_right_numbers_pass_and_one_wrong_digit_fails(check, value: str) -> None:  # type: ignore[no-untyped-def]
    assert check(value)
    if check in (checksums.old_resident_id, checksums.social_security):
        return
    place = 8 if check is checksums.medicare else len(value) - 2
    wrong = value[:place] + str((int(value[place]) + 1) % 10) + value[place + 1 :]
    assert not check(wrong)


@pytest.mark.parametrize("value", ["0000000000000000", "1111111111111111"])
def test_a_row_of_one_digit_is_no_card(value: str) -> None:
    assert not checksums.luhn(value)


@pytest.mark.parametrize("digits", ["20240230", "20241301", "18991231", "20990101"])
def test_days_that_are_none_are_no_birthdays(digits: str) -> None:
    assert not checksums.birth_date(digits)


@pytest.mark.parametrize("digits", ["000121234", "666121234", "912121234", "219009999", "219090000"])
def test_ranges_that_are_not_given_out_are_no_social_security_numbers(digits: str) -> None:
    assert not checksums.social_security(digits)
