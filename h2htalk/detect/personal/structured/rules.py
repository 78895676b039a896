"""The table of the rules of structured personal data, and the finder that applies them.

A rule is called by its name in `found_by`, which `curate explain` prints. To switch one off, take its line out of
`RULES` (rules of a form) or `NUMBERS` (rules of digits, in `numbers`). To add a format, add an expression to
`words/patterns.toml` (of a plate: `known` in `[licence_plates]`) or a line here with `_matches`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from h2htalk.data.languages import find_language
from h2htalk.detect.personal.spans import NormalizedText, Span
from h2htalk.detect.personal.structured.accounts import (
    han_names,
    marked_names,
    mentions,
    wechat_about,
    wechat_behind_cue,
)
from h2htalk.detect.personal.structured.birth_dates import birth_dates
from h2htalk.detect.personal.structured.identifiers import (
    accounts_behind_cue,
    chinese_passports,
    ibans,
    national_insurance,
    passports,
)
from h2htalk.detect.personal.structured.licence_plates import plates_behind_cue, plates_by_shape
from h2htalk.detect.personal.structured.numbers import find_numbers
from h2htalk.detect.personal.structured.organizations import han_organizations
from h2htalk.detect.personal.structured.reading import (
    Hit,
    Reading,
    Rule,
    deobfuscate,
    patterns,
)
from h2htalk.detect.personal.structured.web_addresses import domains, emails, ip4, ip6, urls

_GATES = patterns("structured")


def _matches(table: str, name: str, score: float) -> Callable[[Reading], Iterator[Hit]]:
    """A rule's function that gives all that an expression of `words/patterns.toml`, or its group `value`, matches."""
    pattern = patterns(table)[name]
    group = "value" if pattern.groupindex else 0

    def find(reading: Reading) -> Iterator[Hit]:
        for match in pattern.finditer(reading.text):
            yield match.start(group), match.end(group), score

    return find


def _record_rule(
    name: str,
    type: str,
    expression: str,
    gate: str,
    languages: tuple[str, ...] = ("en", "zh"),
    *,
    score: float = 0.9,
) -> Rule:
    """A rule of an expression of `[record_numbers]`."""
    return Rule(name, type, _matches("record_numbers", expression, score), gate, languages)


_CHINESE = ("zh",)
# Mentions come before mail: "follow @name" is no address with spaces in it.
_WEB_RULES = (
    Rule("mention", "HANDLE", mentions, "at"),
    Rule("email", "EMAIL_ADDRESS", emails, "at"),
    Rule("url", "URL", urls, "web"),
    Rule("domain", "URL", domains, "web"),
    Rule("ip6", "IP_ADDRESS", ip6, "number"),
    Rule("ip4", "IP_ADDRESS", ip4, "number"),
)
_COORDINATE_RULES = (
    _record_rule("coordinates", "ACCOUNT_NUMBER", "coordinates_behind", "degrees"),
    _record_rule("coordinates", "ACCOUNT_NUMBER", "coordinates_before", "degrees"),
    _record_rule("named_coordinates", "ACCOUNT_NUMBER", "named_coordinates", "degrees"),
    _record_rule("han_coordinates", "ACCOUNT_NUMBER", "chinese_coordinates", "degrees", _CHINESE),
    _record_rule("grid_reference", "ACCOUNT_NUMBER", "grid", "degrees"),
)
_RECORD_RULES = (
    _record_rule("court_case", "ACCOUNT_NUMBER", "court", "record", _CHINESE),
    _record_rule("chinese_record", "ACCOUNT_NUMBER", "chinese", "record", _CHINESE),
    _record_rule("chinese_parcel", "ACCOUNT_NUMBER", "chinese_parcel", "record", _CHINESE),
    _record_rule("english_record", "ACCOUNT_NUMBER", "english", "record"),
    _record_rule("parcel", "ACCOUNT_NUMBER", "parcel", "record"),
    _record_rule("local_phone", "PHONE_NUMBER", "local_phone", "local_phone", score=0.85),
)
_PLATE_RULES = (
    _record_rule("plate_behind_car", "LICENSE_PLATE", "plate_behind_car", "dotted_plate", _CHINESE),
    _record_rule("plate_before_car", "LICENSE_PLATE", "plate_before_car", "dotted_plate", _CHINESE),
    _record_rule("discord_name", "HANDLE", "discord", "account_sign"),
    Rule("chinese_plate", "LICENSE_PLATE", _matches("licence_plates", "chinese", 0.95), "han_text"),
    Rule("cued_plate", "LICENSE_PLATE", plates_behind_cue, "number"),
    Rule("plate_shape", "LICENSE_PLATE", plates_by_shape, "number"),
)
_IDENTIFIER_RULES = (
    Rule("iban", "ACCOUNT_NUMBER", ibans, "number"),
    Rule("national_insurance", "NATIONAL_ID", national_insurance, "number"),
    Rule("cued_account", "ACCOUNT_NUMBER", accounts_behind_cue, "number"),
    Rule("chinese_passport", "ACCOUNT_NUMBER", chinese_passports, "number", _CHINESE),
    Rule("passport", "ACCOUNT_NUMBER", passports, "number"),
    Rule("cued_paper", "NATIONAL_ID", _matches("alphanumeric_ids", "cued", 0.8), "number", ("en",)),
)
_WECHAT_RULES = (
    Rule("wxid", "WECHAT", _matches("messenger_ids", "wxid", 0.98), "latin", _CHINESE),
    Rule("cued_wechat", "WECHAT", wechat_behind_cue, "latin", _CHINESE),
    Rule("wechat", "WECHAT", wechat_about, "latin", _CHINESE),
)
# In this order, each finds what no rule before it took.
RULES = (
    *_WEB_RULES,
    *_COORDINATE_RULES,
    *_RECORD_RULES,
    *_PLATE_RULES,
    *_IDENTIFIER_RULES,
    *_WECHAT_RULES,
)
# These find only what the digits leave.
LATE_RULES = (
    Rule("account_form", "HANDLE", _matches("handles", "own_form", 0.95), "account_sign"),
    Rule("marked_name", "HANDLE", marked_names),
    Rule("han_name", "HANDLE", han_names, "han_text", _CHINESE),
    Rule("birth_date", "DATE_OF_BIRTH", birth_dates),
    Rule("han_organization", "ORGANIZATION", han_organizations, "han_text", _CHINESE),
)


def find_structured(
    normalized: NormalizedText, language: str, countries: Sequence[str] = ()
) -> list[Span]:
    """Structured personal data of a text, in its order, without overlaps; `found_by` names the rule.

    The record of `language` decides which numbers and cue words are looked for, `countries` whose telephone numbers
    beside the usual ones. Places count characters of the reading. Scores: 0.95 and more where a check digit, a form
    of its own or a cue beside it speaks for it, else 0.5 to 0.9.
    """
    language = find_language(language).number_rules
    spans = _apply_rules(Reading(normalized, language, countries))
    disguise = deobfuscate(normalized, language)
    if disguise is not None:
        # What shows where a disguise is taken off; a span that holds a plainer one takes its place.
        plain, signs = disguise
        for revealed in _apply_rules(Reading(plain, language, countries)):
            start = signs[revealed.start].start
            end = signs[revealed.end - 1].end
            span = replace(revealed, start=start, end=end)
            covered = [other for other in spans if other.overlaps(span)]
            if all(other.lies_in(span) for other in covered):
                spans = [other for other in spans if other not in covered]
                spans.append(span)
    return [_with_brackets(span, normalized.text) for span in sorted(spans)]


def _apply_rules(reading: Reading) -> list[Span]:
    """The spans of all rules whose gate the text passes, in its order."""
    gates = {name for name, gate in _GATES.items() if gate.search(reading.text)}
    spans = list(_apply(RULES, reading, gates))
    if "five_digits" in gates:
        spans += find_numbers(reading)
    spans += _apply(LATE_RULES, reading, gates)
    return sorted(spans)


def _apply(rules: Sequence[Rule], reading: Reading, gates: set[str]) -> Iterator[Span]:
    """What each rule finds that none before it took."""
    for rule in rules:
        if reading.language not in rule.languages or (rule.gate and rule.gate not in gates):
            continue
        for start, end, score in rule.find(reading):
            if reading.is_free(start, end):
                reading.take(start, end)
                yield Span(start, end, rule.type, score, rule.name)


def _with_brackets(span: Span, text: str) -> Span:
    """The span with the brackets before or behind it that belong to those inside: (219)(09)(9987)."""
    if span.type in ("URL", "EMAIL_ADDRESS"):
        return span
    start = span.start
    end = span.end
    inside = text[start:end]
    for opening, closing in ("()", "[]"):
        lacking = inside.count(closing) - inside.count(opening)
        split = 0 <= inside.find(closing) < inside.find(opening)
        if (lacking > 0 or split) and text[:start].endswith(opening):
            start -= 1
        if (lacking < 0 or split) and text.startswith(closing, end):
            end += 1
    return replace(span, start=start, end=end)
