"""Numbers: which stretches of a row of digits are whose, and the table of the rules that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured import identity_numbers, phones
from h2htalk.curation.anonymize.structured.digit_runs import Group, Window, runs, windows
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.reading import Reading

_RE = patterns("digit_spans")


@dataclass(frozen=True, slots=True)
class NumberRule:
    """A rule of digits: its name, the type of what it finds, and a function that says how sure it is of a window.

    `bare`: it does not believe digits with a unit behind, which are an amount.
    """

    name: str
    type: str
    score: Callable[[Window, Reading], float]
    languages: tuple[str, ...] = ("en", "zh")
    bare: bool = True


# The surest counts; of two that are equally sure the first.
NUMBERS = (
    NumberRule("card", "CREDIT_CARD", identity_numbers.card, bare=False),
    NumberRule("cued_card", "CREDIT_CARD", identity_numbers.cued_card, bare=False),
    NumberRule("resident_id", "NATIONAL_ID", identity_numbers.resident_id, ("zh",), bare=False),
    NumberRule("national_id", "NATIONAL_ID", identity_numbers.national_id, ("en",), bare=False),
    NumberRule("cued_qq", "QQ", identity_numbers.qq),
    NumberRule("qq", "QQ", identity_numbers.qq_without_cue, ("zh",)),
    NumberRule("wechat_number", "WECHAT", identity_numbers.wechat_number),
    NumberRule("account", "ACCOUNT_NUMBER", identity_numbers.account),
    NumberRule("plus", "PHONE_NUMBER", phones.with_plus),
    NumberRule("mobile", "PHONE_NUMBER", phones.mobile, ("zh",)),
    NumberRule("beyond_the_mainland", "PHONE_NUMBER", phones.beyond_the_mainland, ("zh",)),
    NumberRule("landline", "PHONE_NUMBER", phones.landline, ("zh",)),
    NumberRule("north_american", "PHONE_NUMBER", phones.north_american, ("en",)),
    NumberRule("trunk", "PHONE_NUMBER", phones.trunk, ("en",)),
    NumberRule("local", "PHONE_NUMBER", phones.local, ("en",)),
    NumberRule("abroad", "PHONE_NUMBER", phones.abroad, ("en",)),
    NumberRule("countries", "PHONE_NUMBER", phones.of_countries),
    NumberRule("told_phone", "PHONE_NUMBER", phones.told),
)


def digit_spans(reading: Reading, taken: list[tuple[int, int]]) -> list[Span]:
    """Spans of everything that is written in digits alone."""
    spans: list[Span] = []
    barrier = 0
    for run in runs(reading, taken):
        formed = reading.language == "zh" and phones.has_form("".join(group.digits for group in run))
        near = reading.cues.near(run[0].start, run[-1].end, barrier, formed=formed)
        spans += _choose_windows(run, reading, [*windows(run, reading.text, near)])
        barrier = run[-1].end
    return spans


def _choose_windows(run: list[Group], reading: Reading, candidates: list[Window]) -> Iterator[Span]:
    """The windows of a run that are something, the surest and longest first, none over another."""
    found: list[tuple[float, int, int, Window, str, str]] = []
    for window in candidates:
        for shaped in _with_x(window, reading):
            kind, name, score = _identify(shaped, reading)
            if score >= 0.5:
                found.append((score, len(shaped.digits), -shaped.start, shaped, kind, name))
    taken = TakenCharacters(run[-1].end + 4)
    for score, *_, window, kind, name in sorted(found, key=lambda item: item[:3], reverse=True):
        if taken.free(window.start, window.end):
            taken.mark(window.start, window.end)
            if kind:
                span = Span(_start(window, reading.text, kind), window.end, kind, score, name)
                reading.taken.mark(span.start, span.end)
                yield span


def _with_x(window: Window, reading: Reading) -> Iterator[Window]:
    """The window, and with the X behind it that closes a Chinese resident id."""
    yield window
    closing = _RE["closing_x"].match(reading.text, window.end)
    if reading.language == "zh" and len(window.digits) == 17 and closing:
        yield replace(window, digits=window.digits + "X", end=closing.end(), after=None)


def _start(window: Window, text: str, kind: str) -> int:
    """Where a number begins: a phone's `+` and the bracket of its area belong to it."""
    edge = _RE["plus_edge"].search(text, max(0, window.start - 3), window.start) if kind == "PHONE_NUMBER" else None
    bracketed = ")" in text[window.start : window.end] or "]" in text[window.start : window.end]
    return edge.start() if edge and (bracketed or edge.group()[0] == "+") else window.start


def _identify(window: Window, reading: Reading) -> tuple[str, str, float]:
    """The type of a window, its rule, and how sure. A public line has the empty type: taken, and then left in."""
    if reading.language == "zh":
        window = replace(window, near=window.near.fitting(len(window.digits)))
    if phones.is_public(window, reading.language):
        return "", "public line", 1.0
    amount = _RE["unit"].match(reading.text, window.end) is not None
    rules = [r for r in NUMBERS if reading.language in r.languages and not (amount and r.bare)]
    best = max(rules, key=lambda rule: rule.score(window, reading))
    return best.type, best.name, best.score(window, reading)
