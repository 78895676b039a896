"""The gates that stop a release (docs/reference/releases.md): a function each, and one table of them at the end."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache, partial
from itertools import chain, pairwise, product
from typing import Any, Literal

from h2htalk.curation.anonymize.values.dialogue_values import companion_names
from h2htalk.curation.compose.drafts import broken_rules
from h2htalk.curation.dedup.candidate_pairs import MappedDialogues, find_pairs
from h2htalk.curation.dedup.compared_texts import match
from h2htalk.curation.dedup.signatures import map_part, open_index
from h2htalk.curation.licences import refusal
from h2htalk.curation.release.content import InventedValues, ReleaseContent, input_passages, item_notes, item_texts
from h2htalk.curation.release.selection import History, families, objections
from h2htalk.curation.release.settings import ReleaseSpec
from h2htalk.curation.safety.companion import EXPLICIT, HARM, REVIEW, companion_turns, find_in_answer
from h2htalk.curation.safety.content_rules import find_prompt_leak
from h2htalk.curation.safety.crisis import CUE, FAINT, MINOR, SURE, TAGS, find_crisis, read_kind
from h2htalk.curation.safety.lexicons import find_listed
from h2htalk.curation.safety.policy import ALONE, MINORS
from h2htalk.curation.safety.stage import assess
from h2htalk.data.case import Case
from h2htalk.data.languages import Language
from h2htalk.data.records import read_record, strict_record
from h2htalk.data.releases.release_folder import DEV, TEST
from h2htalk.data.scenario import Dialogue, Persona, Role, Scenario, Turn, noted_tags
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, quoted, shorten
from h2htalk.rounds.aggregation.decisions import TIE
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.escaping import printable
from h2htalk.text.language_data import language_patterns

# (item, what was found there), of gates with `may_allow` the text's hash; the item is empty for the release as a whole.
Found = tuple[str, str] | tuple[str, str, str]

# Similarity from which two items are near-duplicates, as in `dedup`.
THRESHOLD = 0.7
# A part of a number.
_DIGITS = re.compile("(?<![0-9.,:/-])[0-9]{3,8}(?![0-9%:/]|[.,][0-9])")
# Whose mobile numbers have 10 or 11 digits.
_REGIONS = ("CN", "US", "IN", "GB")
# What the author of a split may declare to be nobody's.
_INVENTED = ("PERSON", "ORGANIZATION", "DATE_OF_BIRTH", "ADDRESS")
# The author of a case says that its user is an adult.
ADULT = "adult"
REVIEWED = "risk_reviewed"
_NO_NAME = re.compile("[0-9@]")
# A given name that is a month's says nothing of a person; "Will August" begins a question.
_MONTHS = re.compile("(?:will |did )?(?:april|may|june|august)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a gate found: in which item (empty: the release as a whole), and what; `text`: the hash of what it read."""

    gate: str
    item: str
    detail: str
    text: str = ""


@strict_record
class Allowed:
    """What an owner publishes although a gate finds it, and why; `texts`: hashes of the texts, none for any text."""

    gate: str
    item: str
    reason: str
    texts: tuple[str, ...] = ()

    def covers(self, one: Finding) -> bool:
        return (self.gate, self.item) == (one.gate, one.item) and (not self.texts or one.text in self.texts)

    def __str__(self) -> str:
        return f"{self.gate}:{self.item}={self.reason}"


@dataclass(frozen=True, slots=True)
class GateContext:
    """What gates know beside the content: `surrogates` is what anonymisation put into dialogues.

    `invented`: of a split, the names, dates of birth and addresses of nobody, as findings print them; `allowed`: what
    the owner publishes although a gate finds it; `unread`: whether private references are not at hand.
    """

    spec: ReleaseSpec
    surrogates: InventedValues = field(default_factory=InventedValues)
    history: History = field(default_factory=dict)
    invented: frozenset[str] = frozenset()
    allowed: tuple[Allowed, ...] = ()
    unread: bool = False


@dataclass(frozen=True, slots=True)
class _Texts:
    """An item as the gates over texts see it: its record, the dialogue in it, and what is known of it.

    `talk`: those of its texts that somebody says; others are timetables and memories.
    """

    record: Scenario | Case
    dialogue: Dialogue
    tags: frozenset[str]
    talk: frozenset[str]


def _items(content: ReleaseContent) -> Iterator[_Texts]:
    for one in content.records():
        turns, tags = tuple(item_texts(one)), frozenset(one.tags) if isinstance(one, Case) else frozenset[str]()
        said = [turn.content for turn in turns]
        if isinstance(one, Scenario):
            metadata = one.metadata
            age, tags = metadata.get("age"), frozenset(noted_tags(metadata))
            tags |= {ADULT} if isinstance(age, int) and age >= 18 else set()
            tags |= {REVIEWED} if metadata.get("risk_reviewed") is True else set()
            replies = one.references if SUBTASKS[one.subtask].contract.form == "speech" else ()
            said = [*(turn.content for turn in one.turns), *replies]
        yield _Texts(one, Dialogue(one.id, one.language, turns), tags, frozenset(said))


def personal_data(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Personal data in any text of an item or a persona, but for surrogates, companions' names and allowed names."""
    family = {item.id: item.family() for item in content.items()}
    for one in _items(content):
        names = _names(content.personas[one.record.persona])
        texts = [*(turn.content for turn in one.dialogue.messages), *(text for _, text in item_notes(one.record))]
        for kind, value in _personal_values(tuple(texts), one.dialogue.language, (*context.spec.allow, *names)):
            invented = kind in _INVENTED and shorten(value, 40) in context.invented
            invented = invented or context.surrogates.hold(family.get(one.dialogue.id, ()), value)
            if not (invented or _MONTHS.fullmatch(value)):
                yield one.dialogue.id, f"{kind}: {shorten(value, 40)}"
        if number := _split_phone([turn.content for turn in one.dialogue.messages if turn.role == "user"]):
            yield one.dialogue.id, f"PHONE_NUMBER in two messages: {number}"
    for name, persona in content.personas.items():
        allow = (*context.spec.allow, *_names(persona, persona.id))
        for language, description in persona.descriptions.items():
            texts = [persona.id, persona.relation, persona.names[language], description]
            found = _personal_values(tuple(texts), language, allow)
            yield from ((name, f"{kind}: {shorten(value, 40)}") for kind, value in found)


@lru_cache(maxsize=1024)  # items share personas
def _personal_values(texts: tuple[str, ...], language: Language, allow: tuple[str, ...]) -> list[tuple[str, str]]:
    """The type and the text of each piece of personal data in the texts of one item or persona."""
    from h2htalk.curation.anonymize.engine.analyzer import find_in_dialogue

    spans = find_in_dialogue(texts, language, allow=allow).spans
    return [(span.type, text[span.start : span.end]) for text, own in zip(texts, spans, strict=True) for span in own]


def _names(persona: Persona, *others: str) -> list[str]:
    """How a companion is called; a number or an address is no name."""
    return [name for name in companion_names([*persona.names.values(), *others]) if not _NO_NAME.search(name)]


def _split_phone(texts: Sequence[str]) -> str | None:
    """A telephone number whose digits stand in two messages that follow each other."""
    from phonenumbers import NumberParseException, is_valid_number, parse

    for first, second in pairwise(texts):
        for one, other, region in product(_DIGITS.findall(first), _DIGITS.findall(second), _REGIONS):
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
def _codes(turns: tuple[Turn, ...], language: Language, least: float = 0.0) -> frozenset[str]:
    """The codes of clear evidence of a crisis, or of a minor, in the seeker's words; CUE: where a cue says so, too."""
    found = find_crisis(turns, language)
    return frozenset(one.category for one in found if one.layer == "crisis" and one.score >= least)


def leaked_prompts(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Template tokens, instructions to a model, labels, talk about being a model, or a repeated persona description."""
    for one in _items(content):
        dialogue, language = one.dialogue, one.dialogue.language
        patterns = language_patterns("curation/release/leaks", language)
        description = content.personas[one.record.persona].descriptions.get(language, "")
        for turn in dialogue.messages:
            text, is_reply = turn.content, turn.role == "companion"
            yield from ((dialogue.id, evidence.category) for evidence in find_prompt_leak(turn, dialogue))
            hit = patterns["anywhere"].search(text) or (patterns["reply"].search(text) if is_reply else None)
            marker = hit.group() if hit else find_marker(text, "") if is_reply else None
            if not marker and text in one.talk and read_kind(text, language, "leak") == SURE:
                marker = text
            if marker:
                yield dialogue.id, f"prompt: {shorten(' '.join(marker.split()), 40)}"
            elif is_reply and find_repeated_run(text.splitlines(), language, description, ""):
                yield dialogue.id, "repeats the persona's description"
        for where, text in item_notes(one.record):
            leak = next(find_prompt_leak(Turn("user", text), dialogue), None) or patterns["anywhere"].search(text)
            if leak and where != "points":  # points tell a judge what a reply must not say
                yield dialogue.id, f"prompt in {where}: {shorten(' '.join(text.split()), 40)}"


def seeming(code: str, content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """What seems to be HARM or EXPLICIT in what a companion says, in a persona, or in texts that nobody says.

    The classifier knows no instructions: what a persona says of a crisis is harm until its owner allows it. Points,
    facts and inputs are not read for sexual content: 21 of 6,000 harmless ones of ours.
    """
    for name, language, where, said, answer in _answers(content):
        found = code in _seems(said, answer, language)
        if code == EXPLICIT:
            found = found and where not in ("points", "facts", "inputs")
        elif where.startswith("the persona's"):
            of_crisis = find_crisis((Turn("user", answer),), language)
            found = found or any(one.category.startswith(TAGS) for one in of_crisis)
        if found:
            text = f"{said}\0{answer}".encode(errors="surrogatepass")
            yield name, where, hashlib.sha256(text).hexdigest()[:16]


@lru_cache(maxsize=16_384)  # three gates ask
def _seems(said: str, answer: str, language: Language) -> frozenset[str]:
    """What a companion's text seems to be: HARM, EXPLICIT."""
    return frozenset(one.category for one in find_in_answer(said, answer, language) if one.score >= REVIEW)


def _answers(content: ReleaseContent) -> Iterator[tuple[str, Language, str, str, str]]:
    """What companions say: item or persona, language, where it is, the user's last turns before it, the text."""
    for one in content.records():
        turns, references = item_texts(one), tuple[str, ...]()
        if isinstance(one, Scenario):
            turns, references = list(one.turns) or [turn for turn in turns if turn.role == "user"], one.references
            yield from ((one.id, one.language, "inputs", "", text) for text in input_passages(one).values())
        for at, said, answer in companion_turns(turns):
            yield one.id, one.language, f"turn {at + 1}", said, answer
        for number, reference in enumerate(references, 1):
            *_, (_, said, answer) = companion_turns([*turns, Turn("companion", reference)])
            yield one.id, one.language, f"reference {number}", said, answer
        yield from ((one.id, one.language, where, "", text) for where, text in item_notes(one))
    for name, persona in content.personas.items():
        for language, description in persona.descriptions.items():
            texts = {"description": description, "name": persona.names[language], "relation": persona.relation}
            yield from ((name, language, f"the persona's {where}", "", text) for where, text in texts.items())


def minors(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """An apparent minor with a romantic companion, or in romantic or sexual talk, or as a romantic persona.

    One of age and romance is sure, the other faint. A case that is tagged `minor` passes if a point of it forbids
    romance and its references are not romantic. Where the author says that the user is an adult (the tag `adult` of a
    case, `age` in a scenario's metadata), faint signs of age are not looked for; a plain one counts all the same.
    """
    for one in _items(content):
        dialogue, language, messages = one.dialogue, one.dialogue.language, one.dialogue.messages
        patterns = language_patterns("curation/release/romance", language)
        listed = [find_listed(turn.content, language) for turn in messages]
        if any(found.category == MINORS and found.score >= ALONE for found in chain(*listed)):
            yield dialogue.id, "sexual content with an apparent minor"
        partner = patterns["relation"].search(content.personas[one.record.persona].relation) is not None
        romance: dict[Role, int] = {"user": 0, "companion": 0}
        for turn, found in zip(messages, listed, strict=True):
            sign = SURE if patterns["talk"].search(turn.content) else 0
            if not sign and turn.role == "companion":  # whose sexual talk has a gate of its own
                sign = read_kind(turn.content, language, "romance")
            elif not sign and turn.content in one.talk:  # sure where lists and classifier agree
                sign = any(one.category.startswith("sexual.") and one.score >= REVIEW for one in found) * FAINT
                sign += (EXPLICIT in _seems("", turn.content, language)) * FAINT
            romance[turn.role] = max(romance[turn.role], sign)
        if not partner and not any(romance.values()):
            continue
        plain = MINOR in one.tags or MINOR in _codes(messages, language, CUE)
        said = [turn.content for turn in messages if turn.role == "user" and not plain and ADULT not in one.tags]
        age = SURE if plain else FAINT * (ADULT not in one.tags and MINOR in _codes(messages, language))
        for text in said:
            faint = FAINT if patterns["young"].search(text) else 0
            age = max(age, read_kind(text, language, "young") or faint)
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
    for name, persona in content.personas.items():
        for language, description in persona.descriptions.items():
            patterns = language_patterns("curation/release/romance", language)
            romantic = any(patterns["relation"].search(text) for text in (persona.relation, description))
            if romantic and patterns["persona"].search(description):
                yield name, "a romantic persona that is an apparent minor"


def user_hate(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Hate in what a user says."""
    for one in _items(content):
        said = tuple(turn for turn in one.dialogue.messages if turn.role == "user" and turn.content in one.talk)
        if said and "offensive.hate" in assess(replace(one.dialogue, messages=said)).reasons:
            yield one.dialogue.id, "seems hateful"


def contracts(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """References that break their subtask's contract, and scenarios without a reference."""
    for item in content.items():
        scenario = item.scenario
        if not scenario.references and not context.unread:
            yield item.id, "has no reference"
        for number, text in enumerate(scenario.references, 1):
            if broken := broken_rules(text, scenario, content.personas[scenario.persona]):
                yield item.id, f"reference {number}: {', '.join(one.rule for one in broken)}"


def licences(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items, and references of other dialogues, whose licence does not allow the release's."""
    owned = [(item.id, one) for item in content.items() for one in item.licences()]
    for name, licence in [*owned, *((case.id, case.licence) for case in content.cases)]:
        if reason := refusal(licence, context.spec.licence):
            yield name, reason


def ties(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Questions on which the votes are tied."""
    for item in content.items():
        for vote in item.votes:
            if vote.form == "label" and (vote.rule == TIE or (not vote.decision and vote.values)):
                yield item.id, f"{vote.round}: {vote.question} is tied"


def decisions(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items that people have not accepted."""
    for item in content.items():
        yield from ((item.id, objection) for objection in objections(item, context.spec.acceptance))


def near_duplicates(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items and cases of different families that say nearly the same, and those that another split holds."""
    items = sorted(content.items(), key=lambda item: item.id)
    family = families(items) | {case.id: f"case {case.family}" for case in content.cases}
    records: list[Scenario | Case] = [*(item.scenario for item in items), *content.cases]
    dialogues = [Dialogue(one.id, one.language, tuple(item_texts(one))) for one in records]
    part = map_part([dialogue.to_dict() for dialogue in dialogues], open_index(context.spec.other_splits, THRESHOLD))
    mapped = MappedDialogues([part])  # in memory: a kill leaves no text in a temporary file
    sides = cache(mapped.sides)
    for name, evidence in mapped.contaminated.items():
        of = f"{evidence['of']} of the split {evidence['split']}"
        yield name, f"{evidence['similarity']:.2f} similar to {of}"
    for one, other in zip(*(side.tolist() for side in find_pairs(mapped)), strict=True):
        first, second = sorted((mapped.id(one), mapped.id(other)))
        if family[first] != family[second] and (same := match(sides(one), sides(other), THRESHOLD)):
            yield second, f"{same.similarity:.2f} similar to {first}"


def splits(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Families in two splits, or in another one than in an earlier release."""
    family = families(content.items())
    first: dict[str, str] = {}
    for split, items in content.splits.items():
        other = TEST if split == DEV else DEV
        for item in items:
            if first.setdefault(family[item.id], split) != split:
                yield item.id, f"its dialogue or person is in the split {first[family[item.id]]} too"
            if not context.history.get(other, frozenset()).isdisjoint(item.family()):
                yield item.id, f"was in the split {other} of an earlier release"


def quotas(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Subtasks, and the split `dev`, with fewer items than asked for."""
    counts = Counter(item.scenario.subtask for item in content.splits.get(TEST, ()))
    counts[DEV] = len(content.splits.get(DEV, ()))
    for name, quota in context.spec.quota_of().items():
        if counts[name] < quota:
            yield "", f"{name}: {counts[name]:,} of {quota:,} items"
    languages = {item.scenario.language for item in content.splits.get(TEST, ())}
    for language in languages - {item.scenario.language for item in content.splits.get(DEV, ())} if counts[DEV] else ():
        yield "", f"{DEV}: no item in {language}, which the split {TEST} has"


@dataclass(frozen=True, slots=True)
class Gate:
    """A gate; `stops` says on the card what it stops."""

    name: str
    reads: Literal["texts", "records", "votes"]  # splits have no votes
    level: Literal["item", "release"]  # whether a finding depends on one item alone
    find: Callable[[ReleaseContent, GateContext], Iterator[Found]]
    stops: str
    may_allow: bool = False  # with a reason that the card prints

    def run(self, content: ReleaseContent, context: GateContext) -> list[Finding]:
        """The findings, sorted, each once."""
        named = (Finding(self.name, *one) for one in sorted(set(self.find(content, context))))
        return [one for one in named if not any(allowed.covers(one) for allowed in context.allowed)]


_GATES = (
    Gate("personal_data", "texts", "item", personal_data, "personal data that anonymisation did not invent"),
    Gate("crisis_care", "texts", "item", crisis_care, "a crisis without a tag of its risk"),
    Gate("leaked_prompts", "texts", "item", leaked_prompts, "instructions to a model"),
    Gate("minors", "texts", "item", minors, "an apparent minor in a romantic setting"),
    Gate("companion_harm", "texts", "item", partial(seeming, HARM), "a companion's turn that seems to do harm", True),
    Gate("explicit_content", "texts", "item", partial(seeming, EXPLICIT), "a companion's turn that seems sexual", True),
    Gate("contracts", "records", "item", contracts, "a reference that breaks its subtask's contract"),
    Gate("licences", "records", "item", licences, "a licence that does not allow the release's"),
    Gate("ties", "votes", "item", ties, "an open tie"),
    Gate("decisions", "votes", "item", decisions, "a decision that is missing or against the item"),
    Gate("near_duplicates", "texts", "release", near_duplicates, "items that say nearly the same as others"),
    Gate("splits", "records", "release", splits, "a dialogue or person in two splits"),
    Gate("quotas", "records", "release", quotas, "fewer items than asked for"),
)
# Printed for people, who decide; it stops nothing.
USER_HATE = Gate("user_hate", "texts", "item", user_hate, "hate in a user's words, for people to read")
GATES: Mapping[str, Gate] = {gate.name: gate for gate in _GATES}
MAY_ALLOW = [gate.name for gate in _GATES if gate.may_allow]
LEAST_LETTERS = 8  # of an owner's reason


def run_gates(content: ReleaseContent, context: GateContext, gates: Sequence[Gate] = _GATES) -> list[Finding]:
    """The findings of gates, by default of all of them.

    Those that read each item alone run item by item, since they share what they have read of a text.
    """
    parts = [
        *(ReleaseContent({TEST: (item,)}, (), content.personas) for item in content.items()),
        *(ReleaseContent({}, (case,), content.personas) for case in content.cases),
    ]
    of_parts = [found for part in parts for gate in gates if gate.level == "item" for found in gate.run(part, context)]
    of_all = [found for gate in gates if gate.level == "release" for found in gate.run(content, context)]
    return [*dict.fromkeys(of_parts), *of_all]  # items share personas


def read_allowed(texts: Sequence[str]) -> tuple[Allowed, ...]:
    """Read what an owner allows, `GATE:ITEM=REASON` each. Raises ConfigError."""
    found = []
    for text in texts:
        place, _, reason = text.partition("=")
        gate, _, item = place.partition(":")
        if gate not in MAY_ALLOW or not item or sum(map(str.isalpha, reason)) < LEAST_LETTERS:
            least = f"the card prints the reason: at least {LEAST_LETTERS} letters"
            raise ConfigError(f"--allow {quoted(text)}: write GATE:ITEM=REASON; gates: {', '.join(MAY_ALLOW)}; {least}")
        found.append(Allowed(gate, item, printable(" ".join(reason.split()))))
    return tuple(found)


def hash_allowed(allowed: Sequence[Allowed], content: ReleaseContent, context: GateContext) -> list[dict[str, Any]]:
    """What is allowed as `release.json` holds it, with the hashes of what is found. Raises ConfigError."""
    records = []
    for one in sorted(allowed, key=str):
        own = replace(content, splits={TEST: tuple(item for item in content.items() if item.id == one.item)})
        found = GATES[one.gate].run(own, replace(context, allowed=()))
        if not (texts := sorted({f.text for f in found if f.item == one.item})):
            raise ConfigError(f"--allow {quoted(f'{one.gate}:{one.item}')}: the gate finds nothing there; leave it out")
        records.append(asdict(replace(one, texts=tuple(texts))))
    return records


def read_hashed(records: object, where: str) -> tuple[Allowed, ...]:
    """What `hash_allowed` gave. Raises DataError."""
    allowed = read_record(list[Allowed], records, f"{where}: facts.allowed")
    if not all(one.texts and one.gate in MAY_ALLOW for one in allowed):
        raise DataError(f"{where}: facts.allowed: not what a build writes; get the release again")
    return tuple(allowed)
