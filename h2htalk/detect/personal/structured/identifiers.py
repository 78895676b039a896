"""Rules of ids of letters and digits: IBANs, UK National Insurance numbers, accounts, passports."""

from __future__ import annotations

from collections.abc import Iterator

from stdnum import iban

from h2htalk.detect.personal.structured.reading import Hit, Reading, patterns

_ID = patterns("alphanumeric_ids")
_ELSEWHERE = frozenset(["other", "wechat", "plate", "qq"])
_NO_NATIONAL_ID = frozenset(["other", "account", "plate"])
_SHORTEST_IBAN = 15


def ibans(reading: Reading) -> Iterator[Hit]:
    """IBANs, each to the first length at which its check digits are right."""
    for match in _ID["iban"].finditer(reading.text):
        value = ""
        for end, char in enumerate(match.group(), match.start() + 1):
            if not char.isalnum():
                continue
            value += char.upper()
            if len(value) >= _SHORTEST_IBAN and iban.is_valid(value, check_country=False):
                yield match.start(), end, 0.98
                break


def national_insurance(reading: Reading) -> Iterator[Hit]:
    """British National Insurance numbers: with a cue, or in capitals with a prefix that is given out."""
    for match in _ID["national_insurance"].finditer(reading.digits):
        cues = reading.near(*match.span())
        capital = reading.visible[match.start()].isupper()
        if cues.distance("id") is not None:
            yield match.start(), match.end(), 0.97
        elif cues.nearest in _NO_NATIONAL_ID or not capital:
            continue
        elif _ID["given_out"].match(match.group()):
            yield match.start(), match.end(), 0.85


def accounts_behind_cue(reading: Reading) -> Iterator[Hit]:
    """Ids behind a cue of an account, or of a member's card (卡号VIP022767)."""
    text = reading.text
    for cue in reading.cues:
        of_account = cue.kind == "account"
        if cue.kind == "card":
            of_account = text.endswith(("卡号", "number", "no"), cue.start, cue.end)
        if not of_account:
            continue
        match = _ID["behind"].match(text, cue.end)
        if match and any(map(str.isalpha, match["id"])):
            yield match.start("id"), match.end("id"), 0.92


def chinese_passports(reading: Reading) -> Iterator[Hit]:
    """Passports in their own form, in capitals or where papers and counters are spoken of."""
    for match in _ID["chinese_passport"].finditer(reading.text):
        cues = reading.near(*match.span())
        clear = reading.visible[match.start()].isupper() or "counter" in cues.around
        if clear and cues.nearest not in _ELSEWHERE and "adding" not in cues.around:
            yield match.start(), match.end(), 0.7


def passports(reading: Reading) -> Iterator[Hit]:
    """A letter or two and digits, in a message that speaks of a passport or an account."""
    for match in _ID["passport"].finditer(reading.digits):
        cues = reading.near(*match.span())
        if cues.around & {"account", "id"} and cues.nearest not in _ELSEWHERE:
            score = 0.9 if cues.distance("account", "id") is not None else 0.7
            yield match.start(), match.end(), score
