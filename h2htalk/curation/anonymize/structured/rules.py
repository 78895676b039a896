"""The table of the rules of structured personal data, and the finder that applies them.

A rule is called by its name in `found_by`, which `curate explain` prints. To switch one off, take its line out of
`RULES` (rules of a form) or `NUMBERS` (rules of digits, in `numbers`). To add a format, add an expression to
`words/patterns.toml` (of a plate: `known` in `[licence_plates]`) or a line here with `matches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from h2htalk.curation.anonymize.normalization import NormalizedText, normalize_text
from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.structured import accounts, alphanumeric_ids, birth_dates, licence_plates, web
from h2htalk.curation.anonymize.structured.deobfuscation import deobfuscate
from h2htalk.curation.anonymize.structured.numbers import digit_spans
from h2htalk.curation.anonymize.structured.patterns import patterns
from h2htalk.curation.anonymize.structured.reading import Hit, Reading
from h2htalk.data.languages import find_language

_GATES = patterns("structured")
# A word rewritten so near may be the cue of what is found.
_BESIDE = 24


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its name, the type of what it finds, and a function that gives start, end and score of each.

    Places count characters of the reading; `gate` names an expression without which a text holds nothing for the rule,
    `languages` those whose rules of numbers it belongs to.
    """

    name: str
    type: str
    find: Callable[[Reading], Iterable[Hit]]
    gate: str = ""
    languages: tuple[str, ...] = ("en", "zh")


def matches(table: str, name: str, score: float, group: str | int = 0) -> Callable[[Reading], Iterable[Hit]]:
    """A rule's function that gives all that an expression of `words/patterns.toml` matches, each with one score."""
    return lambda reading: ((*m.span(group), score) for m in patterns(table)[name].finditer(reading.text))


# In this order, each finds what no rule before it took. Mentions come before mail: "follow @name" is no address with
# spaces in it.
RULES = (
    Rule("mention", "HANDLE", accounts.mentions, "at"),
    Rule("email", "EMAIL_ADDRESS", web.emails, "at"),
    Rule("url", "URL", web.urls, "web"),
    Rule("domain", "URL", web.domains, "web"),
    Rule("ip6", "IP_ADDRESS", web.ip6, "number"),
    Rule("ip4", "IP_ADDRESS", web.ip4, "number"),
    Rule("chinese_plate", "LICENSE_PLATE", matches("licence_plates", "chinese", 0.95), "han_text"),
    Rule("cued_plate", "LICENSE_PLATE", licence_plates.behind_cue, "number"),
    Rule("plate_shape", "LICENSE_PLATE", licence_plates.by_shape, "number"),
    Rule("iban", "ACCOUNT_NUMBER", alphanumeric_ids.ibans, "number"),
    Rule("national_insurance", "NATIONAL_ID", alphanumeric_ids.national_insurance, "number"),
    Rule("cued_account", "ACCOUNT_NUMBER", alphanumeric_ids.behind_cue, "number"),
    Rule("chinese_passport", "ACCOUNT_NUMBER", alphanumeric_ids.chinese_passports, "number", ("zh",)),
    Rule("passport", "ACCOUNT_NUMBER", alphanumeric_ids.passports, "number"),
    Rule("cued_paper", "NATIONAL_ID", alphanumeric_ids.papers, "number", ("en",)),
    Rule("cued_customer", "ACCOUNT_NUMBER", alphanumeric_ids.customers, "number", ("en",)),
    Rule("wxid", "WECHAT", matches("messenger_ids", "wxid", 0.98), "latin", ("zh",)),
    Rule("cued_wechat", "WECHAT", accounts.wechat_behind_cue, "latin", ("zh",)),
    Rule("english_wechat", "WECHAT", accounts.wechat_behind_cue, "wechat_word", ("en",)),
    Rule("wechat", "WECHAT", accounts.wechat_about, "latin", ("zh",)),
)
# These find only what the digits leave.
LATE_RULES = (
    Rule("account_form", "HANDLE", matches("handles", "own_form", 0.95), "account_sign"),
    Rule("game_account", "HANDLE", matches("handles", "numbered", 0.8, "name"), "latin", ("zh",)),
    Rule("marked_name", "HANDLE", accounts.marked_names),
    Rule("han_name", "HANDLE", accounts.han_names, "han_text", ("zh",)),
    Rule("han_mention", "HANDLE", accounts.han_mentions, "at"),
    Rule("birth_date", "DATE_OF_BIRTH", birth_dates.birth_dates),
)


def find_structured(normalized: NormalizedText, language: str, countries: Sequence[str] = ()) -> list[Span]:
    """Structured personal data of a text, in its order, without overlaps; `found_by` names the rule.

    The record of `language` decides which numbers and cue words are looked for, `countries` whose telephone numbers
    beside the usual ones. Places count characters of the reading.
    Scores: 0.95 and more where a check digit, a form of its own or a cue beside it speaks for it, else 0.5 to 0.9.
    """
    language = find_language(language).number_rules
    kept = _apply_rules(Reading(normalized, language, countries))
    meant = deobfuscate(normalized, language)
    if meant is not None:
        # What shows where a disguise is taken off; a span that holds a plainer one takes its place.
        for found in _apply_rules(Reading(meant.normalized, language, countries)):
            if not meant.rewritten(max(0, found.start - _BESIDE), found.end + _BESIDE):
                continue
            span = replace(found, start=meant.starts[found.start], end=meant.ends[found.end - 1])
            under = [other for other in kept if other.overlaps(span)]
            if all(span.start <= other.start and other.end <= span.end for other in under):
                kept = [other for other in kept if other not in under] + [span]
    return [_with_brackets(span, normalized.text) for span in sorted(kept)]


def find_in_text(text: str, language: str) -> list[Span]:
    """`find_structured` of a text as given."""
    normalized = normalize_text(text)
    places = ((span, normalized.original_span(span.start, span.end)) for span in find_structured(normalized, language))
    return [replace(span, start=start, end=end) for span, (start, end) in places]


def _apply_rules(reading: Reading) -> list[Span]:
    spans = [span for rule in RULES for span in _found(rule, reading)]
    if reading.may_hold(_GATES["five_digits"]):
        spans += digit_spans(reading, sorted((span.start, span.end) for span in spans))
    return sorted([*spans, *(span for rule in LATE_RULES for span in _found(rule, reading))])


def _found(rule: Rule, reading: Reading) -> Iterator[Span]:
    if reading.language in rule.languages and (not rule.gate or reading.may_hold(_GATES[rule.gate])):
        yield from reading.taken.keep(Span(*hit, found_by=rule.name) for hit in _typed(rule, reading))


def _typed(rule: Rule, reading: Reading) -> Iterator[tuple[int, int, str, float]]:
    return ((start, end, rule.type, score) for start, end, score in rule.find(reading))


def _with_brackets(span: Span, text: str) -> Span:
    """The span with the bracket before or behind it that belongs to one inside: (219)(09)(9987)."""
    inside = text[span.start : span.end]
    for opening, closing in ("()", "[]") if span.type not in ("URL", "EMAIL_ADDRESS") else ():
        lacking = inside.count(closing) - inside.count(opening)
        split = 0 <= inside.find(closing) < inside.find(opening)
        if (lacking > 0 or split) and text[: span.start].endswith(opening):
            return _with_brackets(replace(span, start=span.start - 1), text)
        if lacking < 0 and text.startswith(closing, span.end):
            return _with_brackets(replace(span, end=span.end + 1), text)
    return span
