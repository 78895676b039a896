"""From runs of digits to spans: which windows of a run are whose number, and which of them stand together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from h2htalk.curation.anonymize.normalization import NormalizedText
from h2htalk.curation.anonymize.spans import Span, TakenCharacters
from h2htalk.curation.anonymize.structured import identity_numbers, phones
from h2htalk.curation.anonymize.structured.digit_runs import Group, Window, runs, windows
from h2htalk.curation.anonymize.structured.number_cues import Cues, Near
from h2htalk.curation.anonymize.structured.patterns import patterns

_RE = patterns("digit_spans")


def digit_spans(
    normalized: NormalizedText,
    cues: Cues,
    language: str,
    taken: list[tuple[int, int]],
    countries: Sequence[str] = (),
) -> list[Span]:
    """Spans (places of the reading) of everything that is written in digits alone."""
    spans: list[Span] = []
    barrier = 0
    for run in runs(normalized, taken):
        formed = language == "zh" and _has_form("".join(group.digits for group in run))
        near = cues.near(run[0].start, run[-1].end, barrier, formed=formed)
        spans += _choose_windows(run, normalized, near, language, countries)
        barrier = run[-1].end
    return [span for span in spans if span.type]


def _has_form(digits: str) -> bool:
    """Whether digits are a Chinese phone's or a bank card's, whatever stands beside them."""
    card = _RE["card_form"].fullmatch(digits) is not None and identity_numbers.luhn(digits)
    return card or _RE["phone_form"].fullmatch(digits) is not None


def _choose_windows(
    run: list[Group], normalized: NormalizedText, near: Near, language: str, countries: Sequence[str]
) -> list[Span]:
    """The windows of a run that are something, the surest and longest first, none over another."""
    candidates: list[tuple[float, int, int, Window, str]] = []
    for window in windows(run, normalized.text, near):
        for shaped in _with_x(window, normalized, language):
            kind, score = _identify(shaped, normalized, language, countries)
            if kind is not None:
                candidates.append((score, len(shaped.digits), -shaped.start, shaped, kind))
    chosen: list[Span] = []
    taken = TakenCharacters(run[-1].end + 4)
    for score, *_, window, kind in sorted(candidates, key=lambda item: item[:3], reverse=True):
        if taken.keep([Span(window.start, window.end, kind, score)]):
            chosen.append(Span(_start(window, normalized.text, kind), window.end, kind, score))
    return sorted(chosen)


def _with_x(window: Window, normalized: NormalizedText, language: str) -> Iterator[Window]:
    """The window, and with the X behind it that closes a Chinese resident id."""
    yield window
    closing = _RE["closing_x"].match(normalized.text, window.end)
    if language == "zh" and len(window.digits) == 17 and closing:
        yield replace(window, digits=window.digits + "X", end=closing.end(), after=None)


def _start(window: Window, text: str, kind: str) -> int:
    """Where a number begins: a phone's `+` and the bracket of its area belong to it."""
    edge = _RE["plus_edge"].search(text, max(0, window.start - 3), window.start) if kind == "PHONE_NUMBER" else None
    bracketed = ")" in text[window.start : window.end] or "]" in text[window.start : window.end]
    return edge.start() if edge and (bracketed or edge.group()[0] == "+") else window.start


def _identify(
    window: Window, normalized: NormalizedText, language: str, countries: Sequence[str]
) -> tuple[str | None, float]:
    """The type of a window and how sure, or None. The empty type is a public line: taken, and then left in."""
    if language == "zh":
        window = replace(window, near=window.near.fitting(len(window.digits)))
    digits, near, text = window.digits, window.near, normalized.text
    claimed = near.nearest in ("qq", "wechat", "account") and near.kinds[0][1] <= 3 and len(digits) <= 5
    service = phones.is_hotline(digits) or (language == "zh" and _RE["service"].fullmatch(digits) is not None)
    if service and not claimed:
        return ("", 1.0) if window.whole or len(digits) >= 8 else (None, 0.0)
    before = text[max(0, window.start - 30) : window.start]
    if window.whole and phones.is_toll_free(digits, language):
        return "", 1.0
    if _RE["money"].search(before):
        return None, 0.0
    scores = {"CREDIT_CARD": identity_numbers.card(window)}
    if language == "zh":
        scores["NATIONAL_ID"] = identity_numbers.resident_id(window)
    else:
        words = text[max(0, window.start - 60) : window.end + 30]
        scores["NATIONAL_ID"] = identity_numbers.national_id(window, words)
    if not _RE["unit"].match(text, window.end):
        scores["QQ"] = identity_numbers.qq(window)
        if language == "zh":
            scores["QQ"] = max(scores["QQ"], identity_numbers.qq_without_cue(window))
        scores["WECHAT"] = identity_numbers.wechat_number(window)
        scores["ACCOUNT_NUMBER"] = identity_numbers.account(window)
        told = _RE["phone_word"].search(before) is not None
        scores["PHONE_NUMBER"] = phones.phone(window, language, countries, told=told)
    _choose_by_cue(scores, near.nearest)
    kind = max(scores, key=lambda name: scores[name])
    return (kind, scores[kind]) if scores[kind] >= 0.5 else (None, 0.0)


def _choose_by_cue(scores: dict[str, float], nearest: str) -> None:
    """Where a number may be two things, the nearer cue says which."""
    named = {"id": "NATIONAL_ID", "qq": "QQ", "account": "ACCOUNT_NUMBER", "wechat": "WECHAT"}.get(nearest)
    if named and scores.get(named):
        scores["PHONE_NUMBER"] = 0.0
    if scores["NATIONAL_ID"] >= 0.9:
        scores["CREDIT_CARD"] = scores["ACCOUNT_NUMBER"] = 0.0
    if scores["CREDIT_CARD"] and nearest == "card":
        scores["ACCOUNT_NUMBER"] = 0.0
