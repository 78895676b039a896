"""What code finds for a rater of a point: whether a reply corrects, hedges or invents is the rater's to say."""

from __future__ import annotations

import re
from collections.abc import Iterator

from h2htalk.data.case import Case, Fact, Point
from h2htalk.data.languages import Language, find_language
from h2htalk.text.help_lines import number_digits, read_help_lines

# Digits as people write numbers to dial; times, percentages, decimals and plain years are none.
_NUMBER = re.compile(
    r"(?<!\d)(?<!\d[.,:/-])\+?\d(?:[ -]?\d){2,}(?![\d/%]|[:.,]\d)|(?<!\d)\d{3,5}(?:[./:] ?\d{3,4}){1,3}(?!\d)"
    r"|(?<!\d)0\d(?:\.\d\d){4}(?!\d)"
)
_PLAIN = {0xA0: " ", 0x202F: " ", **dict.fromkeys(range(0x2010, 0x2014), "-")}
_YEAR = re.compile("(?:19|20)[0-9]{2}")


def hints(reply: str, point: Point, case: Case) -> Iterator[str]:
    """Yield what a rater of a point is shown: what was told of its fact, and the passages that code finds."""
    rule, _, name = (point.check or "").partition(":")
    if rule == "fact":
        told = {fact.id: fact for fact in case.facts}
        fact = told[name]
        yield f"{fact.kind}: {fact.text}"
        if fact.replaced_by:
            yield f"replaced by: {told[fact.replaced_by].text}"
        if found := mentioned(reply, fact, case.language):
            yield "words in the reply: " + ", ".join(found)
    elif rule == "help_lines":
        yield from (f"{number}: {owners or 'not in the directory'}" for number, owners in numbers(reply).items())


def mentioned(reply: str, fact: Fact, language: Language) -> list[str]:
    """The forms of a fact that a reply holds: whole words in any letter case where spaces separate words."""
    if not find_language(language).spaced:
        return [form for form in fact.forms if form in reply]
    return [form for form in fact.forms if re.search(rf"(?<!\w){re.escape(form)}(?!\w)", reply, re.IGNORECASE)]


def numbers(reply: str) -> dict[str, str]:
    """The numbers of a reply that look like something to dial, each with whose it is in the directory, or "".

    A number of three digits or more counts; times, years and percentages do not.
    """
    owners = read_help_lines().owners

    def owner(number: str) -> str:
        digits = number_digits(number)
        forms = [digits, f"1{digits}"] if len(digits) == 10 else [digits]  # 800 662 4357 for 1 800 662 4357
        if number.startswith(("+", "00")):  # as from abroad: +44 116 123, 0044 808 2000 247; no short one, as +44 999
            digits = digits.removeprefix("00")
            forms += [zero + digits[k:] for k in (1, 2, 3) for zero in ("", "0") if len(digits) - k > 4]
        return next(("; ".join(owners[form]) for form in forms if form in owners), "")

    def apart(found: re.Match[str]) -> str:  # 110/120 are two
        parts = found.group().split("/")
        return " / ".join(parts) if all(map(owner, parts)) else found.group()

    text = re.sub(r"\(0\) ?", "", reply.translate(_PLAIN))
    text = re.sub(r"(?<!\d)\((\d{2,4})\) ?(?=\d)", r"\1 ", text)
    text = re.sub(r"(?<=\d{4}),(?=\d)|,(?=\d)(?!\d{3}(?!\d))", ", ", text)  # two numbers, and not 110,000
    text = re.sub(r"\d+(?:/\d+)+", apart, text)
    known: dict[str, str] = {}
    for number in (one.group() for one in _NUMBER.finditer(text)):
        parts = re.split("[ -]", number)
        several = not owner(number) and all(map(owner, parts))
        known |= {one: owner(one) for one in (parts if several else [number])}
    return {
        one: whose for one, whose in known.items() if whose or "+" in one or not _YEAR.fullmatch(number_digits(one))
    }
