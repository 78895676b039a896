"""The gates that stop a release (docs/reference/releases.md): a function each, and one table of them at the end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise, product
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.curation.candidates import broken_rules
from h2htalk.curation.licences import refusal
from h2htalk.curation.release import hints
from h2htalk.curation.release.content import (
    ReleaseContent,
    compared_dialogue,
    item_notes,
)
from h2htalk.curation.release.exposed import exposed_items, share_text
from h2htalk.curation.release.gate_context import (
    Allowed,
    Finding,
    Found,
    GateContext,
    texts_of_items,
)
from h2htalk.curation.release.read_gates import (
    Untested,
    crises_without_care,
    found_by_readers,
    minors_and_romance,
)
from h2htalk.curation.release.selection import families, objections
from h2htalk.curation.release.settings import ALL, ReleaseSpec
from h2htalk.data.case import Case
from h2htalk.data.languages import Language, find_language
from h2htalk.data.readers.exposures import LEAST_DETAILS
from h2htalk.data.readers.reads import REIDENTIFICATION, TESTED_GATES, TestedGate
from h2htalk.data.records import Text, read_record, strict_record
from h2htalk.data.releases.release_folder import DEV, TEST
from h2htalk.data.scenario import Persona, Scenario, Turn
from h2htalk.detect.duplicates.candidate_pairs import MappedDialogues, find_pairs
from h2htalk.detect.duplicates.compared_texts import match
from h2htalk.detect.duplicates.signatures import map_part, open_index
from h2htalk.detect.personal.values.dialogue_values import companion_names
from h2htalk.detect.safety.content_rules import find_prompt_leak
from h2htalk.detect.safety.crisis import SURE, read_kind
from h2htalk.errors import ConfigError, DataError, quoted, shorten
from h2htalk.progress import counted_items
from h2htalk.rounds.aggregation.decisions import TIE
from h2htalk.text.contracts.prompt_leakage import find_marker, find_repeated_run
from h2htalk.text.escaping import printable
from h2htalk.text.language_data import language_patterns

# Similarity from which two items are near-duplicates, as in `dedup`.
THRESHOLD = 0.7
# A part of a number.
_DIGITS = re.compile("(?<![0-9.,:/-])[0-9]{3,8}(?![0-9%:/]|[.,][0-9])")
# Whose mobile numbers have 10 or 11 digits.
_REGIONS = ("CN", "US", "IN", "GB")
# What the author of a split may declare to be nobody's.
_INVENTED = ("PERSON", "ORGANIZATION", "DATE_OF_BIRTH", "ADDRESS")
_NO_NAME = re.compile("[0-9@]")
# `tg-zh-000001:dialogue_base`, `tg-zh-000001`, `tg-zh-p0001`: dialogue and person are numbers.
_CURATED_ID = re.compile(r"(?P<source>[^\s:]+)-(?:[0-9]{6}|p[0-9]{4})(?::[a-z_]+(?:-[0-9]+)?)?")
# A given name that is a month's says nothing of a person; "Will August" begins a question.
_MONTHS = re.compile("(?:will |did )?(?:april|may|june|august)", re.IGNORECASE)


def personal_data(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Personal data in any text of an item or a persona, but for surrogates, companions' names and allowed names.

    What readers found counts beside what the search finds.
    """
    yield from found_by_readers("personal_data", content, context)
    family = {item.id: item.family() for item in content.items()}
    for one in texts_of_items(content):
        names = _names(content.personas[one.record.persona])
        notes = dict.fromkeys(_without_numbers(text) for _, text in item_notes(one.record))
        texts = [*(turn.content for turn in one.dialogue.messages), *notes]
        allow = (*context.spec.allow, *context.surrogates.allow, *names)
        for kind, value in _personal_values(tuple(texts), one.dialogue.language, allow):
            invented = kind in _INVENTED and shorten(value, 40) in context.invented
            invented = invented or context.surrogates.hold(family.get(one.dialogue.id, ()), value)
            if not (invented or _MONTHS.fullmatch(value)):
                yield one.dialogue.id, f"{kind}: {shorten(value, 40)}"
        if number := _split_phone(
            [turn.content for turn in one.dialogue.messages if turn.role == "user"]
        ):
            yield one.dialogue.id, f"PHONE_NUMBER in two messages: {number}"
    for name, persona in content.personas.items():
        allow = (*context.spec.allow, *_names(persona, persona.id))
        for language, description in persona.descriptions.items():
            texts = [persona.id, persona.relation, persona.names[language], description]
            found = _personal_values(tuple(texts), language, allow)
            yield from ((name, f"{kind}: {shorten(value, 40)}") for kind, value in found)


def _without_numbers(text: str) -> str:
    """Of an id of a curation the name of its source, which its owner chose; any other text as it is."""
    found = _CURATED_ID.fullmatch(text)
    return found["source"] if found else text


@lru_cache(maxsize=1024)  # items share personas
def _personal_values(
    texts: tuple[str, ...], language: Language, allow: tuple[str, ...]
) -> list[tuple[str, str]]:
    """The type and the text of each piece of personal data in the texts of one item or persona."""
    from h2htalk.detect.personal.engine.analyzer import find_in_dialogue

    spans = find_in_dialogue(texts, language, allow=allow).spans
    return [
        (span.type, text[span.start : span.end])
        for text, own in zip(texts, spans, strict=True)
        for span in own
    ]


def _names(persona: Persona, *others: str) -> list[str]:
    """How a companion is called; a number or an address is no name."""
    return [
        name
        for name in companion_names([*persona.names.values(), *others])
        if not _NO_NAME.search(name)
    ]


def _split_phone(texts: Sequence[str]) -> str | None:
    """A telephone number whose digits stand in two messages that follow each other."""
    from phonenumbers import NumberParseException, is_valid_number, parse

    for first, second in pairwise(texts):
        for one, other, region in product(
            _DIGITS.findall(first), _DIGITS.findall(second), _REGIONS
        ):
            with suppress(NumberParseException):
                if len(one + other) > 8 and is_valid_number(parse(one + other, region)):
                    return f"{one} {other}"
    return None


def leaked_prompts(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Template tokens, instructions to a model, labels, talk about being a model, or a repeated persona description."""
    for one in texts_of_items(content):
        dialogue = one.dialogue
        language = one.dialogue.language
        patterns = language_patterns("curation/release/leaks", language)
        description = content.personas[one.record.persona].descriptions.get(language, "")
        for turn in dialogue.messages:
            text = turn.content
            is_reply = turn.role == "companion"
            yield from (
                (dialogue.id, evidence.category) for evidence in find_prompt_leak(turn, dialogue)
            )
            hit = patterns["anywhere"].search(text) or (
                patterns["reply"].search(text) if is_reply else None
            )
            marker = hit.group() if hit else find_marker(text, "") if is_reply else None
            if not marker and text in one.talk and read_kind(text, language, "leak") == SURE:
                marker = text
            if marker:
                yield dialogue.id, f"prompt: {shorten(' '.join(marker.split()), 40)}"
            elif is_reply and find_repeated_run(text.splitlines(), language, description, ""):
                yield dialogue.id, "repeats the persona's description"
        for where, text in item_notes(one.record):
            leak = next(find_prompt_leak(Turn("user", text), dialogue), None) or patterns[
                "anywhere"
            ].search(text)
            if leak and where != "points":  # points tell a judge what a reply must not say
                yield dialogue.id, f"prompt in {where}: {shorten(' '.join(text.split()), 40)}"


def minors(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A user under 18 beside romance, as readers found it, sexual content with one, or a persona that is both.

    The list of the last but one is that by which the stage `safety` removes a dialogue, text and all.
    """
    yield from minors_and_romance(content, context)
    yield from hints.minors_in_sexual_content(content, context)
    yield from hints.minor_personas(content, context)


def companion_harm(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Harm that readers found in what a companion says, and what seems to be harm where no reader reads."""
    yield from found_by_readers("companion_harm", content, context)
    yield from hints.harm_elsewhere(content, context)


def explicit_content(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Sexual content that readers found in an item, and what seems to be some where no reader reads."""
    yield from found_by_readers("explicit_content", content, context)
    yield from hints.explicit_elsewhere(content, context)


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
    part = map_part(
        [compared_dialogue(record) for record in records],
        open_index(context.spec.other_splits, THRESHOLD),
    )
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
                yield (
                    item.id,
                    f"its dialogue or person is in the split {first[family[item.id]]} too",
                )
            if not context.history.get(other, frozenset()).isdisjoint(item.family()):
                yield item.id, f"was in the split {other} of an earlier release"


def quotas(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Subtasks, and the split `dev`, with fewer items than asked for."""
    counts = Counter(item.scenario.subtask for item in content.splits.get(TEST, ()))
    counts[DEV] = len(content.splits.get(DEV, ()))
    asked_for = context.spec.quota_of()
    for name, quota in asked_for.items():
        if isinstance(quota, int) and counts[name] < quota:
            yield "", f"{name}: {counts[name]:,} of {quota:,} items"
    if ALL in asked_for.values() and not any(content.splits.values()) and not content.cases:
        yield "", f"{TEST}: no item was accepted"
    languages = {item.scenario.language for item in content.splits.get(TEST, ())}
    for language in (
        languages - {item.scenario.language for item in content.splits.get(DEV, ())}
        if counts[DEV]
        else ()
    ):
        yield "", f"{DEV}: no item in {language}, which the split {TEST} has"


def known_users(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Items in which a guard or the reviewer marked by what people who know the user could recognise them."""
    for record in content.records():
        for read in context.readings.of(record.id):
            if read.known_by:
                yield record.id, f"marked by {read.reader}, for people to read"


def reidentification(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """Languages in which more dialogues than `risk` allows hold so many details that somebody may be recognised.

    While a release is built, the items of these dialogues too: a release that exists does not hold which they are.
    """
    limit = context.spec.risk
    if limit is None:
        return
    languages = context.exposure(content).languages
    above = {language: count for language, count in languages.items() if count.share > limit}
    for language, count in above.items():
        what = f"{find_language(language).name}: {LEAST_DETAILS} or more details in {share_text(count)}"
        leave = f'leave dialogues out (`exclude`, or `leave_out = ["{REIDENTIFICATION}"]`)'
        yield (
            "",
            f"{what}, where `risk` allows {limit:g}: {leave}, have them edited, or raise `risk`",
        )
    if above and context.measured is None:
        language_of = {record.id: record.language for record in content.records()}
        for item, details in exposed_items(content.records(), context.exposures):
            if language_of[item] in above:
                yield item, details


def exposed_dialogues(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """The items of every dialogue in which somebody may be recognised, however many there are."""
    yield from exposed_items(content.records(), context.exposures)


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
    Gate(
        "personal_data",
        "texts",
        "item",
        personal_data,
        "personal data that anonymisation did not invent",
    ),
    Gate("crisis_care", "texts", "item", crises_without_care, "a crisis without a tag of its risk"),
    Gate("leaked_prompts", "texts", "item", leaked_prompts, "instructions to a model"),
    Gate("minors", "texts", "item", minors, "an apparent minor in a romantic setting"),
    Gate("companion_harm", "texts", "item", companion_harm, "harm by the companion", True),
    Gate("explicit_content", "texts", "item", explicit_content, "sexual content", True),
    Gate(
        "contracts", "records", "item", contracts, "a reference that breaks its subtask's contract"
    ),
    Gate("licences", "records", "item", licences, "a licence that does not allow the release's"),
    Gate("ties", "votes", "item", ties, "an open tie"),
    Gate("decisions", "votes", "item", decisions, "a decision that is missing or against the item"),
    Gate(
        "near_duplicates",
        "texts",
        "release",
        near_duplicates,
        "items that say nearly the same as others",
    ),
    Gate("splits", "records", "release", splits, "a dialogue or person in two splits"),
    Gate("quotas", "records", "release", quotas, "fewer items than asked for"),
)
# Printed for people, who decide; it stops nothing.
USER_HATE = Gate(
    "user_hate", "texts", "item", hints.user_hate, "hate in a user's words, for people to read"
)
# The same, as guard and reviewer marked it.
KNOWN_USERS = Gate(
    "known_users", "texts", "item", known_users, "what could tell people who know a user who it is"
)
# By the gate whose readers they tell where to read first.
_HINTS = (
    Gate("crisis_care", "texts", "item", hints.crises, "a crisis without a tag of its risk"),
    Gate(
        "minors", "texts", "item", hints.minors_in_items, "an apparent minor in a romantic setting"
    ),
    Gate("companion_harm", "texts", "item", hints.harm_in_passages, "harm by the companion"),
    Gate("explicit_content", "texts", "item", hints.explicit_in_passages, "sexual content"),
)
GATES: Mapping[str, Gate] = {gate.name: gate for gate in _GATES}
# It exists where a release sets `risk`. To leave items out, it finds those of every exposed dialogue.
OF_RISK = Gate(
    REIDENTIFICATION,
    "texts",
    "release",
    reidentification,
    "users whom people who know them could recognise",
)
_OF_EXPOSED = Gate(REIDENTIFICATION, "texts", "release", exposed_dialogues, OF_RISK.stops)


def gates_of(spec: ReleaseSpec) -> dict[str, Gate]:
    """The gates of a release by name."""
    return dict(GATES) if spec.risk is None else {**GATES, OF_RISK.name: OF_RISK}


def leaving_gate(name: str) -> Gate:
    """The gate by whose findings items are left out (`leave_out`)."""
    return _OF_EXPOSED if name == REIDENTIFICATION else GATES[name]


HINTS: Mapping[str, Gate] = {gate.name: gate for gate in _HINTS}
MAY_ALLOW = [gate.name for gate in _GATES if gate.may_allow]
LEAST_LETTERS = 8  # of an owner's reason
UNREAD = "unread"  # in place of an item: whatever nobody has read for the gate


def run_gates(
    content: ReleaseContent, context: GateContext, gates: Sequence[Gate] = _GATES
) -> list[Finding]:
    """The findings of gates, by default of all of them."""
    [findings] = run_groups(content, context, [gates])
    return findings


def run_groups(
    content: ReleaseContent,
    context: GateContext,
    groups: Sequence[Sequence[Gate]],
    label: str = "running gates",
) -> list[list[Finding]]:
    """The findings of several groups of gates, apart, from one pass over the items.

    Gates that read each item alone run item by item, since they share what they have read of a text.
    """
    parts = [
        *(ReleaseContent({TEST: (item,)}, (), content.personas) for item in content.items()),
        *(ReleaseContent({}, (case,), content.personas) for case in content.cases),
    ]
    findings: list[list[Finding]] = [[] for _ in groups]
    for part in counted_items(label, parts):
        for group, of_group in zip(groups, findings, strict=True):
            for gate in group:
                if gate.level == "item":
                    of_group += gate.run(part, context)
    for number, group in enumerate(groups):
        of_all = [
            found
            for gate in group
            if gate.level == "release"
            for found in gate.run(content, context)
        ]
        findings[number] = [*dict.fromkeys(findings[number]), *of_all]  # items share personas
    return findings


_AT_MOST = re.compile(rf"{UNREAD}:([0-9]{{1,9}})", re.ASCII)


def is_of_unread(allowed: Allowed) -> bool:
    """Whether a permission is about what nobody has read, and not about an item by name."""
    return allowed.item == UNREAD or _AT_MOST.fullmatch(allowed.item) is not None


def most_unread(allowed: Allowed) -> int | None:
    """Of how many unread items a permission holds at most; None where its owner named no number."""
    number = _AT_MOST.fullmatch(allowed.item)
    return None if number is None else int(number[1])


def read_allowed(texts: Sequence[str]) -> tuple[Allowed, ...]:
    """Read what an owner allows: `GATE:ITEM=REASON`, `GATE:unread=REASON` or `GATE:unread:N=REASON` each.

    Raises ConfigError.
    """
    found: list[Allowed] = []
    for text in texts:
        place, _, reason = text.partition("=")
        gate, _, item = place.partition(":")
        allowed = Allowed(gate, item, printable(" ".join(reason.split())))
        of_unread = is_of_unread(allowed)
        known: Sequence[str] = TESTED_GATES if of_unread else MAY_ALLOW
        if gate not in known or not item or sum(map(str.isalpha, reason)) < LEAST_LETTERS:
            form = "GATE:ITEM=REASON"
            if of_unread or item.lower().startswith(f"{UNREAD}:"):
                form = f"GATE:{UNREAD}=REASON or GATE:{UNREAD}:N=REASON, N a number of items"
                known = TESTED_GATES
            least = f"the card prints the reason: at least {LEAST_LETTERS} letters"
            raise ConfigError(
                f"--allow {quoted(text)}: write {form}; gates: {', '.join(known)}; {least}"
            )
        if most_unread(allowed) == 0:
            raise ConfigError(f"--allow {quoted(text)}: that allows nothing; leave it out")
        if of_unread and any(is_of_unread(other) and other.gate == gate for other in found):
            raise ConfigError(
                f"--allow {quoted(text)}: what is unread for {gate} is allowed twice; leave one of them out"
            )
        found.append(allowed)
    return tuple(found)


def hash_allowed(
    allowed: Sequence[Allowed], content: ReleaseContent, context: GateContext
) -> list[dict[str, Any]]:
    """What is allowed as `release.json` holds it, with the hashes of what is found. Raises ConfigError."""
    records = []
    for one in sorted(allowed, key=str):
        if is_of_unread(one):
            continue
        own = replace(
            content, splits={TEST: tuple(item for item in content.items() if item.id == one.item)}
        )
        without = replace(context, allowed=())
        found = GATES[one.gate].run(own, without)
        # What words point at stops nothing where readers read, but stopped releases of earlier versions.
        found += HINTS[one.gate].run(own, without)
        if not (texts := sorted({f.text for f in found if f.item == one.item})):
            raise ConfigError(
                f"--allow {quoted(f'{one.gate}:{one.item}')}: the gate finds nothing there; leave it out"
            )
        records.append(asdict(replace(one, texts=tuple(texts))))
    return records


@strict_record
class AllowedUnread:
    """What an owner publishes although nobody has read it for a gate: of at most so many items, and why."""

    gate: TestedGate
    items: Annotated[int, Field(ge=1)]
    reason: Text


def count_unread(
    allowed: Sequence[Allowed], untested: Sequence[Untested], risk: float | None = None
) -> tuple[AllowedUnread, ...]:
    """What is allowed of what nobody has read, with the number of items: those that are unread, or fewer where the
    owner allowed fewer.

    Raises ConfigError where nothing is unread and the owner named no number: with one, it may be in a script; and for
    a gate that the release does not have. `risk`: of the specification.
    """
    by_gate = {one.gate: one for one in untested}
    counted: list[AllowedUnread] = []
    for one in sorted(allowed, key=str):
        if not is_of_unread(one):
            continue
        gate = next(gate for gate in TESTED_GATES if gate == one.gate)
        most = most_unread(one)
        if gate == REIDENTIFICATION and risk is None:
            name = quoted(f"{one.gate}:{one.item}")
            raise ConfigError(
                f"--allow {name}: the release has no such gate; set `risk` in its specification, or leave it out"
            )
        if gate not in by_gate:
            if most is None:
                raise ConfigError(
                    f"--allow {quoted(f'{one.gate}:{UNREAD}')}: every item was read for it; leave it out"
                )
            continue
        unread = len(by_gate[gate].items)
        counted.append(
            AllowedUnread(
                gate=gate, items=unread if most is None else min(most, unread), reason=one.reason
            )
        )
    return tuple(counted)


def allow_unread(
    untested: Sequence[Untested], allowed: Sequence[AllowedUnread]
) -> tuple[Untested, ...]:
    """The gates with unread items, with the owner's reason where no more of them are unread than the owner allowed.

    Where more are, they say how many the owner allowed.
    """
    permissions = {one.gate: one for one in allowed}
    marked: list[Untested] = []
    for one in untested:
        permission = permissions.get(one.gate)
        if permission is None:
            marked.append(one)
        elif len(one.items) <= permission.items:
            marked.append(replace(one, allowed=permission.reason))
        else:
            marked.append(replace(one, at_most=permission.items))
    return tuple(marked)


def read_hashed(records: object, where: str) -> tuple[Allowed, ...]:
    """What `hash_allowed` gave. Raises DataError."""
    allowed = read_record(list[Allowed], records, f"{where}: facts.allowed")
    if not all(one.texts and one.gate in MAY_ALLOW for one in allowed):
        raise DataError(f"{where}: facts.allowed: not what a build writes; get the release again")
    return tuple(allowed)


def read_allowed_unread(records: object, where: str) -> tuple[AllowedUnread, ...]:
    """What `count_unread` gave, as `release.json` holds it. Raises DataError."""
    return tuple(read_record(list[AllowedUnread], records, f"{where}: facts.allowed_unread"))
