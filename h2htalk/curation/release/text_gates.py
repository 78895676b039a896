"""Gates over texts: personal data, crises without care, leaked prompts, minors in a romantic setting."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise, product

from h2htalk.curation.anonymize.allow_list import companion_names
from h2htalk.curation.release.content import ReleaseContent, case_texts, item_notes, scenario_texts
from h2htalk.curation.release.gates import Found, GateContext
from h2htalk.curation.safety.companion import EXPLICIT, HARM, REVIEW, companion_turns, find_in_answer
from h2htalk.curation.safety.content_rules import find_prompt_leak
from h2htalk.curation.safety.crisis import FAINT, MINOR, SURE, TAGS, find_crisis, find_in_context, read_kinds
from h2htalk.curation.safety.evidence import Evidence
from h2htalk.data.case import Case
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Dialogue, Scenario, Turn
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import shorten
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.language_data import language_patterns

# A part of a number.
_DIGITS = re.compile("(?<![0-9.,:/-])[0-9]{3,8}(?![0-9%:/]|[.,][0-9])")
# Whose mobile numbers have 10 or 11 digits.
_REGIONS = ("CN", "US", "IN", "GB")
# What the author of a split may declare to be nobody's.
_INVENTED = ("PERSON", "ORGANIZATION", "DATE_OF_BIRTH", "ADDRESS")
_CLEAR = 0.5  # of evidence of a crisis
# What gates look for by a classifier, beside words (tools/train_kinds.py).
GATE_KINDS = ("romance", "young", "leak")
# The author of a case says that its user is an adult.
ADULT = "adult"
REVIEWED = "risk_reviewed"
# A given name that is a month's says nothing of a person; "Will August" begins a question.
_MONTHS = re.compile("(?:will |did )?(?:april|may|june|august)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Texts:
    """An item as the gates over texts see it: its record, the dialogue in it, and what is known of it.

    `talk`: those of its texts that somebody says; others are timetables and memories.
    """

    record: Scenario | Case
    dialogue: Dialogue
    family: frozenset[str]
    tags: frozenset[str]
    talk: frozenset[str]


def _items(content: ReleaseContent) -> Iterator[_Texts]:
    for item in content.items():
        scenario = item.scenario
        safety = scenario.metadata.get("safety") or {}
        tags = frozenset(map(str, safety.get("tags", ())))
        age = scenario.metadata.get("age")
        tags |= {ADULT} if isinstance(age, int) and age >= 18 else set()
        tags |= {REVIEWED} if scenario.metadata.get("risk_reviewed") is True else set()
        turns = tuple(scenario_texts(scenario))
        dialogue = Dialogue(scenario.id, scenario.language, turns)
        replies = scenario.references if SUBTASKS[scenario.subtask].contract.form == "speech" else ()
        talk = frozenset((*(turn.content for turn in scenario.turns), *replies))
        yield _Texts(scenario, dialogue, item.family(), tags, talk)
    for case in content.cases:
        turns = tuple(case_texts(case))
        talk = frozenset(turn.content for turn in turns)
        dialogue = Dialogue(case.id, case.language, turns)
        yield _Texts(case, dialogue, frozenset(), frozenset(case.tags), talk)


def personal_data(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Personal data in any text, but for surrogates, personas and allowed names."""
    from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue

    for one in _items(content):
        names = companion_names(content.personas[one.record.persona].names.values())
        texts = [*(turn.content for turn in one.dialogue.messages), *(text for _, text in item_notes(one.record))]
        data = find_in_dialogue(texts, one.dialogue.language, allow=(*context.spec.allow, *names))
        for text, spans in zip(texts, data.spans, strict=True):
            for span in spans:
                value = text[span.start : span.end]
                invented = span.type in _INVENTED and shorten(value, 40) in context.invented
                if not (invented or context.surrogates.hold(one.family, value) or _MONTHS.fullmatch(value)):
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


def crisis_care(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A crisis in the seeker's words, in an item that is not tagged with its risk. Cases of a study are announced.

    An author who read the item and found no risk says so: `risk_reviewed: true` in a scenario's metadata.
    """
    for one in _items(content):
        tagged = any(tag.startswith((*TAGS, REVIEWED)) for tag in one.tags)
        if isinstance(one.record, Scenario) and one.record.tags.risk == "none" and not tagged:
            codes = _codes(one.dialogue.messages, one.dialogue.language)
            if found := sorted(code for code in codes if code.startswith(TAGS)):
                yield one.dialogue.id, f"{', '.join(found)}, but tags.risk is none"


@lru_cache(maxsize=16_384)  # two gates ask
def _codes(turns: tuple[Turn, ...], language: Language) -> frozenset[str]:
    """The codes of clear evidence of a crisis, or of a minor, in the seeker's words."""
    found = [evidence for turn in turns if turn.role == "user" for evidence in find_crisis(turn.content, language)]
    found += find_in_context(turns, language)
    return frozenset(evidence.category for evidence in found if evidence.score >= _CLEAR)


def leaked_prompts(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Template tokens, instructions to a model, labels, talk about being a model, or a repeated persona description."""
    for one in _items(content):
        dialogue, language = one.dialogue, one.dialogue.language
        patterns = language_patterns("curation/release/leaks", language)
        description = content.personas[one.record.persona].descriptions.get(language, "")
        for turn in dialogue.messages:
            text, is_reply = turn.content, turn.role == "companion"
            for evidence in find_prompt_leak(turn, dialogue):
                yield dialogue.id, evidence.category
            hit = patterns["anywhere"].search(text) or (patterns["reply"].search(text) if is_reply else None)
            marker = hit.group() if hit else find_marker(text, "") if is_reply else None
            if not marker and text in one.talk and read_kinds(text, language, GATE_KINDS)["leak"][0] == SURE:
                marker = text
            if marker:
                yield dialogue.id, f"prompt: {shorten(' '.join(marker.split()), 40)}"
            elif is_reply and find_repeated_run(text.splitlines(), language, description, ""):
                yield dialogue.id, "repeats the persona's description"


def _companion(content: ReleaseContent, context: GateContext, code: str) -> Iterator[Found]:
    """Evidence of a code in what a companion says, in a persona, or in texts that nobody says.

    The classifier knows no instructions: what a persona says of a crisis is harm until its owner allows it.
    """
    for name, language, where, said, answer in _answers(content):
        if code == EXPLICIT and where in ("points", "facts"):  # 13 of 5,000 harmless ones of the bundled cases
            continue
        found = [one.category == code and one.score >= REVIEW for one in _read_answer(said, answer, language)]
        if code == HARM and where.startswith("the persona's"):
            found += [one.startswith(TAGS) for one in _codes((Turn("user", answer),), language)]
        if any(found):
            yield name, where, hashlib.sha256(f"{said}\0{answer}".encode(errors="surrogatepass")).hexdigest()[:16]


companion_harm, explicit_content = partial(_companion, code=HARM), partial(_companion, code=EXPLICIT)


@lru_cache(maxsize=16_384)  # two gates ask
def _read_answer(said: str, answer: str, language: Language) -> tuple[Evidence, ...]:
    return tuple(find_in_answer(said, answer, language))


def _answers(content: ReleaseContent) -> Iterator[tuple[str, Language, str, str, str]]:
    """What companions say: item or persona, language, where it is, the user's last turns before it, the text."""
    for item in content.items():
        scenario, references = item.scenario, item.scenario.references
        turns = list(scenario.turns) or [turn for turn in scenario_texts(scenario) if turn.role == "user"]
        for at, said, answer in companion_turns(turns):
            yield scenario.id, scenario.language, f"turn {at + 1}", said, answer
        for number, reference in enumerate(references, 1):
            *_, (_, said, answer) = companion_turns([*turns, Turn("companion", reference)])
            yield scenario.id, scenario.language, f"reference {number}", said, answer
    for case in content.cases:
        for at, said, answer in companion_turns(case_texts(case)):
            yield case.id, case.language, f"turn {at + 1}", said, answer
    records: list[Scenario | Case] = [*(item.scenario for item in content.items()), *content.cases]
    for one in records:
        yield from ((one.id, one.language, where, "", text) for where, text in item_notes(one))
    for name, persona in content.personas.items():
        for language, description in persona.descriptions.items():
            texts = {"description": description, "name": persona.names[language], "relation": persona.relation}
            yield from ((name, language, f"the persona's {where}", "", text) for where, text in texts.items())


def minors(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """An apparent minor with a romantic companion or romantic talk: one of age and romance is sure, the other faint.

    A case that is tagged `minor` passes if a point of it forbids romance and its references are not romantic. Where the
    author says that the user is an adult (the tag `adult` of a case, `age` in a scenario's metadata), faint signs of
    age are not looked for; a plain one counts all the same.
    """
    for one in _items(content):
        dialogue, language, messages = one.dialogue, one.dialogue.language, one.dialogue.messages
        patterns = language_patterns("curation/release/romance", language)
        partner = patterns["relation"].search(content.personas[one.record.persona].relation) is not None
        romance = {"user": 0, "companion": 0}
        for turn in messages:
            sign = SURE if patterns["talk"].search(turn.content) else 0
            if turn.role == "companion" and not sign:
                sign = read_kinds(turn.content, language, GATE_KINDS)["romance"][0]
            romance[turn.role] = max(romance[turn.role], sign)
        if not partner and not any(romance.values()):
            continue
        plain = MINOR in one.tags or MINOR in _codes(messages, language)
        said = [turn.content for turn in messages if turn.role == "user" and not plain and ADULT not in one.tags]
        age = max((read_kinds(text, language, GATE_KINDS)["young"][0] for text in said), default=SURE if plain else 0)
        age = age or (FAINT if any(map(patterns["young"].search, said)) else 0)
        spoken = {role for role, strength in romance.items() if strength and age and strength + age > SURE}
        if not spoken and not (partner and plain):
            continue
        case = one.record
        if isinstance(case, Scenario):
            yield dialogue.id, f"an apparent minor {'with a romantic companion' if partner else 'in romantic talk'}"
        elif "companion" in spoken:
            yield case.id, "a romantic reference to an apparent minor"
        else:
            guarded = any(point.kind == "must_not" and patterns["point"].search(point.text) for point in case.points)
            if not (guarded and MINOR in one.tags):
                yield case.id, "an apparent minor in a romantic setting: needs the tag minor and a must_not on romance"
