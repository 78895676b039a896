"""Gates over texts: personal data, crises without care, leaked prompts, minors in a romantic setting."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise, product

from h2htalk.curation.anonymize.allow_list import companion_names
from h2htalk.curation.anonymize.normalization import plain
from h2htalk.curation.anonymize.values.name_parts import name_parts
from h2htalk.curation.language_data import language_data
from h2htalk.curation.release.content import ReleaseContent, case_notes, case_texts, scenario_texts
from h2htalk.curation.release.gates import Found, GateContext
from h2htalk.curation.safety.content_rules import find_unusable_content
from h2htalk.curation.safety.crisis import DATA, MINOR, TAGS, find_crisis, find_in_context
from h2htalk.curation.safety.ngram_classifier import load_classifier
from h2htalk.curation.safety.text_folding import fold_spelling
from h2htalk.data.dialogue import Dialogue, Turn
from h2htalk.data.languages import Language
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import shorten
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run

# A part of a number.
_DIGITS = re.compile("(?<![0-9.,:/-])[0-9]{3,8}(?![0-9%:/]|[.,][0-9])")
# Whose mobile numbers have 10 or 11 digits.
_REGIONS = ("CN", "US", "IN", "GB")
_HAN = re.compile("[\u4e00-\u9fff]")
_CLEAR = 0.5  # of evidence of a crisis
# What gates look for by a classifier, beside words (tools/train_kinds.py).
GATE_KINDS = ("romance", "young", "leak")
# A given name that is a month's says nothing of a person; "Will August" begins a question.
_MONTHS = re.compile("(?:will |did )?(?:april|may|june|august)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Texts:
    """An item as the gates over texts see it: a dialogue, its persona, and what is known of it.

    `talk`: those of its texts that somebody says; others are timetables and memories. `notes`: texts about a case.
    """

    dialogue: Dialogue
    persona: str
    family: frozenset[str]
    risk: str
    tags: frozenset[str]
    is_case: bool
    talk: frozenset[str]
    notes: tuple[str, ...] = ()


def _items(content: ReleaseContent) -> Iterator[_Texts]:
    for item in content.items():
        scenario = item.scenario
        safety = scenario.metadata.get("safety") or {}
        tags = frozenset(map(str, safety.get("tags", ())))
        turns = tuple(scenario_texts(scenario))
        dialogue = Dialogue(scenario.id, scenario.language, turns)
        replies = scenario.references if SUBTASKS[scenario.subtask].contract.form == "speech" else ()
        talk = frozenset((*(turn.content for turn in scenario.turns), *replies))
        yield _Texts(dialogue, scenario.persona, item.family(), scenario.tags.risk, tags, False, talk)
    for case in content.cases:
        turns = tuple(case_texts(case))
        talk = frozenset(turn.content for turn in turns)
        dialogue = Dialogue(case.id, case.language, turns)
        yield _Texts(dialogue, case.persona, frozenset(), "none", frozenset(case.tags), True, talk, case_notes(case))


def personal_data(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Personal data in any text, but for surrogates, personas and allowed names."""
    from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue

    for one in _items(content):
        names = companion_names(content.personas[one.persona].names.values())
        known = frozenset().union(*(context.surrogates.get(name, frozenset()) for name in one.family))
        texts = [*(turn.content for turn in one.dialogue.messages), *one.notes]
        data = find_in_dialogue(texts, one.dialogue.language, allow=(*context.spec.allow, *names))
        for text, spans in zip(texts, data.spans, strict=True):
            for span in spans:
                value = text[span.start : span.end]
                if not (_is_surrogate(value, known) or _MONTHS.fullmatch(value)):
                    yield one.dialogue.id, f"{span.type}: {shorten(value, 40)}"
        if number := _split_phone([turn.content for turn in one.dialogue.messages if turn.role == "user"]):
            yield one.dialogue.id, f"PHONE_NUMBER in two messages: {number}"


def _split_phone(texts: Sequence[str]) -> str | None:
    """A telephone number whose digits stand in two messages that follow each other."""
    from phonenumbers import NumberParseException, is_valid_number, parse

    for first, second in pairwise(texts):
        for one, other in product(_DIGITS.findall(first), _DIGITS.findall(second)):
            for region in _REGIONS:
                with suppress(NumberParseException):
                    if len(one + other) > 8 and is_valid_number(parse(one + other, region)):
                        return f"{one} {other}"
    return None


def _is_surrogate(value: str, known: frozenset[str]) -> bool:
    """Whether a value is one that was put in, or a part of one, in any format: its digits all of them, of a name words.

    Titles and prefixes are free: of the surrogate 王小明 also 王老师 and 小王.
    """
    parts = name_parts((value, *known))
    own = [part.key for part in parts[value].parts if part.role != "kept"]
    digits = _digits(value)

    def from_surrogate(one: str) -> bool:
        keys = {part.key for part in parts[one].parts}
        same = "".join(own) in re.sub(r"[\W_]+", "", plain(one)) if _HAN.search(value) else keys.issuperset(own)
        return same and digits in ("", _digits(one))

    return bool(own or digits) and any(map(from_surrogate, known))


def _digits(text: str) -> str:
    return re.sub("[^0-9]", "", plain(text))


def crisis_care(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A crisis in the seeker's words, in an item that is not tagged with its risk. Cases of a study are announced."""
    for one in _items(content):
        if one.risk == "none" and not one.is_case and not any(tag.startswith(TAGS) for tag in one.tags):
            codes = sorted(code for code in _seen(one) if code.startswith(TAGS))
            if codes:
                yield one.dialogue.id, f"{', '.join(codes)}, but tags.risk is none"


def _seen(one: _Texts) -> frozenset[str]:
    """The codes of clear evidence of a crisis, or of a minor, in the seeker's words."""
    return _codes(one.dialogue.messages, one.dialogue.language)


@lru_cache(maxsize=16_384)  # two gates ask
def _codes(turns: tuple[Turn, ...], language: Language) -> frozenset[str]:
    found = [evidence for turn in turns if turn.role == "user" for evidence in find_crisis(turn.content, language)]
    found += find_in_context(turns, language)
    return frozenset(evidence.category for evidence in found if evidence.score >= _CLEAR)


def leaked_prompts(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Template tokens, instructions to a model, talk about being a model, or a repeated persona description."""
    for one in _items(content):
        for evidence in find_unusable_content(one.dialogue):
            if evidence.category.startswith("prompt_leak"):
                yield one.dialogue.id, evidence.category
        description = content.personas[one.persona].descriptions.get(one.dialogue.language, "")
        instructions = _leaks(one.dialogue.language)
        for turn in one.dialogue.messages:
            hits = [pattern.search(turn.content) for pattern in instructions[: 1 + (turn.role == "companion")]]
            marker = find_marker(turn.content, "") or next((hit.group() for hit in hits if hit), None)
            if marker is None and turn.content in one.talk and _classified("leak", turn.content, one.dialogue.language):
                marker = turn.content
            if marker:
                yield one.dialogue.id, f"prompt: {shorten(' '.join(marker.split()), 40)}"
            elif turn.role == "companion" and find_repeated_run(
                turn.content.splitlines(), one.dialogue.language, description, ""
            ):
                yield one.dialogue.id, "repeats the persona's description"


@lru_cache(maxsize=4096)
def _classified(kind: str, text: str, language: Language) -> bool:
    """Whether the classifier of a kind is sure of a text."""
    model = load_classifier(f"{DATA}/{kind}", language)
    return model.score(fold_spelling(text, language)).score >= model.high()


@cache
def _leaks(language: Language) -> tuple[re.Pattern[str], ...]:
    """Words of instructions to a model: in any message, and in a companion's alone."""
    raw = language_data("release/leaks", language)
    return tuple(re.compile(raw[name], re.IGNORECASE | re.MULTILINE) for name in ("anywhere", "reply"))


def minors(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """An apparent minor with a romantic companion or romantic talk.

    A case that is tagged `minor` passes if a point of it forbids romance and its references are not romantic.
    """
    cases = {case.id: case for case in content.cases}
    for one in _items(content):
        romance = _romance(one.dialogue.language)
        partner = romance.relation.search(content.personas[one.persona].relation) is not None
        case = cases.get(one.dialogue.id)
        language, messages = one.dialogue.language, one.dialogue.messages
        spoken = [
            turn.role
            for turn in messages
            if romance.talk.search(turn.content)
            or (turn.role == "companion" and _classified("romance", turn.content, language))
        ]
        plain = MINOR in one.tags or MINOR in _seen(one)
        # Beside romantic talk a hint at the age is enough.
        hinted = (
            romance.young.search(turn.content) or _classified("young", turn.content, language)
            for turn in messages
            if turn.role == "user"
        )
        if not plain and not (spoken and any(hinted)):
            continue
        if case is None:
            if partner or spoken:
                how = "with a romantic companion" if partner else "in romantic talk"
                yield one.dialogue.id, f"an apparent minor {how}"
        elif "companion" in spoken:
            yield case.id, "a romantic reference to an apparent minor"
        elif partner or spoken:
            guarded = any(point.kind == "must_not" and romance.point.search(point.text) for point in case.points)
            if not (guarded and MINOR in one.tags):
                yield case.id, "an apparent minor in a romantic setting: needs the tag minor and a must_not on romance"


@dataclass(frozen=True, slots=True)
class _Romance:
    """Patterns of a language: romantic talk, hints at an age below 18, a romantic relation, a point about romance."""

    talk: re.Pattern[str]
    young: re.Pattern[str]
    relation: re.Pattern[str]
    point: re.Pattern[str]


@cache
def _romance(language: Language) -> _Romance:
    raw = language_data("release/romance", language)
    return _Romance(*(re.compile(raw[name], re.IGNORECASE) for name in ("talk", "young", "relation", "point")))
