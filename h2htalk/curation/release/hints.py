"""What words and classifiers point at in a release: where to read first.

They stop nothing in the texts of items, which readers read (`read_gates`): of 32 English dialogues of support chat that
words tagged as a crisis ten were right, and of harmless look-alikes of a companion's harm they take one in nine. No
reader is asked about what stands beside those texts: personas, metadata, points and facts. What words point at there
stops the release, until its owner has read it and allows it by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain

from h2htalk.curation.assessment import assess
from h2htalk.curation.candidates import input_passages
from h2htalk.curation.partners import is_partner
from h2htalk.curation.release.content import ReleaseContent, item_notes, item_texts
from h2htalk.curation.release.gate_context import (
    ADULT,
    Found,
    GateContext,
    ItemTexts,
    texts_of_items,
)
from h2htalk.curation.release.selection import REVIEWED
from h2htalk.data.case import Case
from h2htalk.data.languages import Language
from h2htalk.data.scenario import Role, Scenario, Turn
from h2htalk.detect.safety.companion import (
    EXPLICIT,
    HARM,
    REVIEW,
    companion_turns,
    find_in_answer,
)
from h2htalk.detect.safety.crisis import CUE, FAINT, MINOR, SURE, TAGS, find_crisis, read_kind
from h2htalk.detect.safety.lexicons import ALONE, MINORS, find_listed
from h2htalk.text.language_data import language_patterns

PERSONA = "the persona's"  # how the place of a persona's text begins
# Item or persona, language, where it is, the user's last turns before it, the text.
_Answer = tuple[str, Language, str, str, str]


def is_passage(place: str) -> bool:
    """Whether a place is one of the passages that readers read."""
    return place == "inputs" or place.startswith(("turn ", "reference "))


def crises(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A crisis in the seeker's words, in an item that is not tagged with its risk. Cases of a study are announced.

    An author who read the item and found no risk says so: `risk_reviewed: true` in a scenario's metadata.
    """
    for one in texts_of_items(content):
        if lacks_risk(one):
            codes = _codes(one.dialogue.messages, one.dialogue.language)
            if found := sorted(code for code in codes if code.startswith(TAGS)):
                yield one.dialogue.id, f"{', '.join(found)}, but tags.risk is none"


def lacks_risk(one: ItemTexts) -> bool:
    """Whether nothing announces a crisis in an item: a scenario without a risk, a tag of it, or an author's no."""
    tagged = any(tag.startswith((*TAGS, REVIEWED)) for tag in one.tags)
    return isinstance(one.record, Scenario) and one.record.tags.risk == "none" and not tagged


@lru_cache(maxsize=16_384)  # two gates ask
def _codes(turns: tuple[Turn, ...], language: Language, least: float = 0.0) -> frozenset[str]:
    """The codes of clear evidence of a crisis, or of a minor, in the seeker's words; CUE: where a cue says so, too."""
    return frozenset(
        sign.category
        for sign in find_crisis(turns, language)
        if sign.layer == "crisis" and sign.score >= least
    )


@lru_cache(maxsize=1024)  # items share personas
def _speaks_of_crisis(text: str, language: Language) -> bool:
    """Whether a text, read as a seeker's, seems to tell of a crisis or of its danger."""
    turn = Turn("user", text)
    return any(sign.category.startswith(TAGS) for sign in find_crisis((turn,), language))


def seeming(code: str, answers: Iterable[_Answer]) -> Iterator[Found]:
    """What seems to be HARM or EXPLICIT in what a companion says, in a persona, or in texts that nobody says.

    The classifier knows no instructions: what a persona says of a crisis is harm until its owner allows it. Points,
    facts and inputs are not read for sexual content: 21 of 6,000 harmless ones of ours.
    """
    for name, language, where, said, answer in answers:
        found = code in seems(said, answer, language)
        if code == EXPLICIT:
            found = found and where not in ("points", "facts", "inputs")
        elif where.startswith(PERSONA):
            found |= _speaks_of_crisis(answer, language)
        if found:
            text = f"{said}\0{answer}".encode(errors="surrogatepass")
            yield name, where, hashlib.sha256(text).hexdigest()[:16]


def seeming_in_passages(
    code: str, content: ReleaseContent, context: GateContext
) -> Iterator[Found]:
    """What seems to be HARM or EXPLICIT in the passages that readers read."""
    return seeming(code, (answer for answer in _answers(content) if is_passage(answer[2])))


def seeming_elsewhere(code: str, content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """What seems to be HARM or EXPLICIT in texts that no reader reads."""
    return seeming(code, (answer for answer in _answers(content) if not is_passage(answer[2])))


@lru_cache(maxsize=16_384)  # three gates ask
def seems(said: str, answer: str, language: Language) -> frozenset[str]:
    """What a companion's text seems to be: HARM, EXPLICIT."""
    return frozenset(
        one.category for one in find_in_answer(said, answer, language) if one.score >= REVIEW
    )


def _answers(content: ReleaseContent) -> Iterator[_Answer]:
    """What companions say."""
    for one in content.records():
        turns = item_texts(one)
        references = tuple[str, ...]()
        if isinstance(one, Scenario):
            turns = list(one.turns) or [turn for turn in turns if turn.role == "user"]
            references = one.references
            yield from (
                (one.id, one.language, "inputs", "", text) for text in input_passages(one).values()
            )
        for at, said, answer in companion_turns(turns):
            yield one.id, one.language, f"turn {at + 1}", said, answer
        for number, reference in enumerate(references, 1):
            *_, (_, said, answer) = companion_turns([*turns, Turn("companion", reference)])
            yield one.id, one.language, f"reference {number}", said, answer
        yield from ((one.id, one.language, where, "", text) for where, text in item_notes(one))
    for name, persona in content.personas.items():
        for language, description in persona.descriptions.items():
            texts = {
                "description": description,
                "name": persona.names[language],
                "relation": persona.relation,
            }
            yield from (
                (name, language, f"{PERSONA} {where}", "", text) for where, text in texts.items()
            )


def romantic_talk(one: ItemTexts) -> dict[Role, int]:
    """How sure words are of romantic or sexual talk by each side: SURE, FAINT or 0."""
    language = one.dialogue.language
    patterns = language_patterns("curation/release/romance", language)
    romance: dict[Role, int] = {"user": 0, "companion": 0}
    for turn in one.dialogue.messages:
        sign = SURE if patterns["talk"].search(turn.content) else 0
        if not sign and turn.role == "companion":  # whose sexual talk has a gate of its own
            sign = read_kind(turn.content, language, "romance")
        elif not sign and turn.content in one.talk:  # sure where lists and classifier agree
            listed = find_listed(turn.content, language)
            if any(
                found.category.startswith("sexual.") and found.score >= REVIEW for found in listed
            ):
                sign += FAINT
            if EXPLICIT in seems("", turn.content, language):
                sign += FAINT
        romance[turn.role] = max(romance[turn.role], sign)
    return romance


def forbids_romance(case: Case) -> bool:
    """Whether a case is tagged as a minor's, and a point of it forbids romance."""
    patterns = language_patterns("curation/release/romance", case.language)
    guarded = any(
        point.kind == "must_not" and patterns["point"].search(point.text) for point in case.points
    )
    return guarded and MINOR in case.tags


IN_TALK, WITH_PARTNER = (
    "an apparent minor in romantic talk",
    "an apparent minor with a romantic companion",
)
IN_CASE = "an apparent minor in a romantic setting: needs the tag minor and a must_not on romance"
IN_REFERENCE = "a romantic reference to an apparent minor"


def minors_in_items(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """An apparent minor with a romantic companion, or in romantic or sexual talk.

    One of age and romance is sure, the other faint. A case that is tagged `minor` passes if a point of it forbids
    romance and its references are not romantic. Where the author says that the user is an adult (the tag `adult` of a
    case, `age` in a scenario's metadata), faint signs of age are not looked for; a plain one counts all the same.
    """
    for one in texts_of_items(content):
        language = one.dialogue.language
        messages = one.dialogue.messages
        partner = is_partner(content.personas[one.record.persona], language)
        romance = romantic_talk(one)
        if not partner and not any(romance.values()):
            continue
        plain = MINOR in one.tags or MINOR in _codes(messages, language, CUE)
        age = SURE if plain else _faint_age(one)
        spoken = {
            role for role, strength in romance.items() if strength and age and strength + age > SURE
        }
        if not spoken and not (partner and plain):
            continue
        if isinstance(one.record, Scenario):
            yield one.dialogue.id, WITH_PARTNER if partner else IN_TALK
        elif "companion" in spoken:
            yield one.dialogue.id, IN_REFERENCE
        elif not forbids_romance(one.record):
            yield one.dialogue.id, IN_CASE


def _faint_age(one: ItemTexts) -> int:
    """How sure signs that are not plain are of a minor; of an adult, by the author's word, none is looked for."""
    if ADULT in one.tags:
        return 0
    language = one.dialogue.language
    patterns = language_patterns("curation/release/romance", language)
    age = FAINT if MINOR in _codes(one.dialogue.messages, language) else 0
    for turn in one.dialogue.messages:
        if turn.role == "user":
            faint = FAINT if patterns["young"].search(turn.content) else 0
            age = max(age, read_kind(turn.content, language, "young") or faint)
    return age


def minors_in_sexual_content(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Sexual content with an apparent minor, by the list for which the stage `safety` removes a dialogue."""
    for one in texts_of_items(content):
        language = one.dialogue.language
        listed = chain.from_iterable(
            find_listed(turn.content, language) for turn in one.dialogue.messages
        )
        if any(found.category == MINORS and found.score >= ALONE for found in listed):
            yield one.dialogue.id, "sexual content with an apparent minor"


def minor_personas(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A romantic persona that is an apparent minor."""
    for name, persona in content.personas.items():
        for language, description in persona.descriptions.items():
            patterns = language_patterns("curation/release/romance", language)
            romantic = any(
                patterns["relation"].search(text) for text in (persona.relation, description)
            )
            if romantic and patterns["persona"].search(description):
                yield name, "a romantic persona that is an apparent minor"


def user_hate(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Hate in what a user says."""
    for one in texts_of_items(content):
        said = tuple(
            turn
            for turn in one.dialogue.messages
            if turn.role == "user" and turn.content in one.talk
        )
        if said and "offensive.hate" in assess(replace(one.dialogue, messages=said)).reasons:
            yield one.dialogue.id, "seems hateful"


harm_in_passages = partial(seeming_in_passages, HARM)
harm_elsewhere = partial(seeming_elsewhere, HARM)
explicit_in_passages = partial(seeming_in_passages, EXPLICIT)
explicit_elsewhere = partial(seeming_elsewhere, EXPLICIT)
