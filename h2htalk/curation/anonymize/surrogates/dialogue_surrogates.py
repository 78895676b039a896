"""Surrogates: what stands in for the personal data of one dialogue.

They are a function of the dialogue's own texts and of the workspace's secret key: the same value gets the same one
wherever the dialogue says it, and another in every other dialogue. They are of the value's kind and shape, and numbers
among them are unusable on purpose. Nobody can go back from them without the key (HMAC-SHA256), nor with it, but by
trying.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from h2htalk.curation.anonymize.allow_list import find_allowed, to_lower
from h2htalk.curation.anonymize.normalization import normalize_text, plain
from h2htalk.curation.anonymize.spans import TYPES
from h2htalk.curation.anonymize.surrogates.addresses import AddressDraws, address, organization
from h2htalk.curation.anonymize.surrogates.dates import birth_date
from h2htalk.curation.anonymize.surrogates.numbers import NUMBERS
from h2htalk.curation.anonymize.surrogates.persons import person_surrogates
from h2htalk.curation.anonymize.surrogates.seeded_random import SeededRandom, dialogue_secret
from h2htalk.curation.anonymize.surrogates.web import email, handle, ip_address, name_of_email, url
from h2htalk.curation.anonymize.values.dialogue_values import DialogueData
from h2htalk.curation.anonymize.values.value_shape import numbers_in, value_shape
from h2htalk.curation.anonymize.values.value_variants import (
    LEAKING,
    national_format,
    visible_value,
)
from h2htalk.data.languages import find_language

# So many draws without a free one (a four-digit number in a dialogue full of them): then a name of the type.
_ENOUGH_DRAWS = 400
PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_PROVINCE = re.compile(f"[{PROVINCES}]")
_SPACE = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


class Surrogates:
    """The surrogates of one dialogue."""

    def __init__(self, key: bytes, texts: Sequence[str], data: DialogueData) -> None:
        """All of them are settled here, in an order that does not depend on where or when a value was found.

        Args:
            key: the workspace's secret.
            texts: the dialogue's messages (and its system prompt), as given.
            data: what was found in them (`find_in_dialogue`).
        """
        self._secret = dialogue_secret(key, texts)
        self._language = data.language
        self._values = data.values
        found = data.spans
        self._made: dict[tuple[str, str], str] = {}
        raws = {(s.type, text[s.start : s.end]) for text, spans in zip(texts, found, strict=True) for s in spans}
        people = {raw for kind, raw in raws if kind == "PERSON"}
        others = {(kind, raw) for kind, raw in raws if kind != "PERSON"}
        self._taken = {normalized_value(kind, raw) for kind, raw in others} | {
            to_lower(visible_value(raw)) for raw in people
        }
        self._taken |= numbers_in(texts)
        self._people(people, texts)
        self._surrogates_of(others)

    def of(self, kind: str, value: str) -> str:
        """The surrogate of a value as written, which was among those found."""
        return self._made[kind, value]

    def _people(self, names: Iterable[str], texts: Sequence[str]) -> None:
        shown = {name: visible_value(name) for name in names}
        if not shown:
            return
        spoken_words = {to_lower(word) for text in texts for word in _WORD.findall(plain(text))}
        made = person_surrogates(self._secret, set(shown.values()), spoken_words, self._repeats_value)
        for name, seen in shown.items():
            self._made["PERSON", name] = made[seen]
        self._taken |= {to_lower(surrogate) for surrogate in made.values()}

    def _repeats_value(self, made: str) -> bool:
        """Whether a surrogate says one of the dialogue's own values, or is the name of a public figure."""
        return any(
            span.end - span.start >= LEAKING or span.end - span.start == len(made) for span in self._values.find(made)
        ) or bool(find_allowed(made, self._language))

    def _surrogates_of(self, raws: Iterable[tuple[str, str]]) -> None:
        """Of a value written in several formats one surrogate, in each of them."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for kind, raw in sorted(raws):
            groups.setdefault(normalized_value(kind, raw), []).append((kind, raw))
        parts = containing_numbers(groups)
        told = set(parts.values())
        for value, written in sorted(groups.items()):
            if value in parts:
                continue
            # The same digits as a QQ number here and a telephone number there are one value.
            kind = min((kind for kind, _ in written), key=_place)
            attempt = 0
            while True:
                if attempt >= _ENOUGH_DRAWS:
                    made = {raw: f"[{kind} {len(self._taken)}]" for _, raw in written}
                    break
                made = {raw: self._render(kind, value, raw, attempt) for _, raw in written}
                norms = {normalized_value(kind, surrogate) for surrogate in made.values()}
                if value in told:
                    norms |= {value_shape(surrogate, numeric=True).compact[-TAIL:] for surrogate in made.values()}
                if not norms & self._taken and not any(self._repeats_value(m) for m in made.values()):
                    break
                attempt += 1
            self._taken |= {normalized_value(kind, surrogate) for surrogate in made.values()}
            for own_kind, raw in written:
                self._made[own_kind, raw] = made[raw]
        for value, owner in sorted(parts.items()):
            whole_kind, whole = groups[owner][0]
            for kind, raw in groups[value]:
                end = end_of_number(raw, self._made[whole_kind, whole])
                self._made[kind, raw] = f"[{kind}]" if end is None else end

    def _render(self, kind: str, value: str, raw: str, attempt: int) -> str:
        draw = SeededRandom(self._secret, kind, value, str(attempt))
        if kind in NUMBERS or kind not in TYPES:
            shape = value_shape(raw, numeric=True)
            if not any(map(str.isdigit, shape.compact)) and kind not in NUMBERS:
                return f"[{kind} {attempt + 1}]"  # of a user's own type
            if not shape.compact:
                return f"[{kind}]"
            rules = find_language(self._language).number_rules
            number = NUMBERS.get(kind, NUMBERS["ACCOUNT_NUMBER"])
            made = shape.reformatted(number(draw, shape.compact, rules, attempt))
            return _PROVINCE.sub(lambda m: draw.choice(PROVINCES), made, count=1) if kind == "LICENSE_PLATE" else made
        if kind == "HANDLE":
            return handle(draw, raw)
        if kind == "DATE_OF_BIRTH":
            return birth_date(draw, plain(raw))
        if kind == "EMAIL_ADDRESS":
            return email(draw, normalize_text(raw).visible)
        if kind == "URL":
            return url(draw, normalize_text(raw).visible)
        if kind == "IP_ADDRESS":
            return ip_address(draw, normalize_text(raw).visible, attempt)
        draws = AddressDraws(self._secret, value, attempt)
        return address(draws, visible_value(raw)) if kind == "ADDRESS" else organization(draws, visible_value(raw))


def _place(kind: str) -> int:
    """A type's place in `TYPES`; a user's own come after them."""
    return TYPES.index(kind) if kind in TYPES else len(TYPES)


def normalized_value(kind: str, value: str) -> str:
    """What two spellings of one value have in common: digits without marks, words in lower case without spaces."""
    if kind == "PHONE_NUMBER":
        return national_format(value_shape(value, numeric=True).compact) or value
    if kind in NUMBERS or kind == "IP_ADDRESS":
        return value_shape(value, numeric=True).compact or value
    seen = to_lower(visible_value(value))
    if kind == "HANDLE":
        return seen.removeprefix("u/").lstrip("@")
    return name_of_email(seen) if kind in ("EMAIL_ADDRESS", "URL") else _SPACE.sub("", seen)


TAIL = 4  # digits by which a number is told
LONG_NUMBER = 8  # a shorter one is not told by its end
Written = Sequence[tuple[str, str]]  # (type, as written) of one value, sorted


def containing_numbers(groups: Mapping[str, Written]) -> dict[str, str]:
    """Of each value that is the last digits of another one, that other; of several the last.

    Args:
        groups: by what a value's spellings have in common (`normalized_value`), the types and spellings.
    """
    tails = {
        (kind, value[-TAIL:]): value
        for value, written in sorted(groups.items())
        for kind, _ in written
        if kind in NUMBERS and len(value) >= LONG_NUMBER
    }
    owners = {value: tails.get((written[0][0], value)) for value, written in groups.items()}
    return {value: owner for value, owner in owners.items() if owner is not None}


def end_of_number(raw: str, made: str) -> str | None:
    """The last digits of a surrogate, written as `raw`; None where it has none (a name of the type stands there)."""
    end = value_shape(made, numeric=True).compact[-TAIL:]
    shape = value_shape(raw, numeric=True)
    return shape.reformatted(end) if len(shape.compact) == len(end) else None
