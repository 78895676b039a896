"""The gates that ask who has read an item: what readers found that is still open, and what nobody has read.

An item passes such a gate where every passage of it was read for the gate by a reader that counts, and nothing that a
reader found there is open. Experts who read a passage, were asked and found nothing close what others found there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from h2htalk.curation.candidates import input_passages, scenario_passages
from h2htalk.curation.partners import is_partner
from h2htalk.curation.reading.question import HARMFUL
from h2htalk.curation.release.content import ReleaseContent, item_texts, record_passages
from h2htalk.curation.release.exposed import UNREAD_REASONS
from h2htalk.curation.release.gate_context import (
    Finding,
    Found,
    GateContext,
    ItemTexts,
    texts_of_items,
)
from h2htalk.curation.release.hints import (
    IN_CASE,
    IN_REFERENCE,
    IN_TALK,
    WITH_PARTNER,
    forbids_romance,
    lacks_risk,
    romantic_talk,
)
from h2htalk.curation.release.readings import NOT_IN_ITEM, Readings
from h2htalk.data.case import Case
from h2htalk.data.languages import Language, find_language
from h2htalk.data.readers.certificates import (
    CHECK_AGAIN,
    NO_CERTIFICATE,
    certificate_of,
    why_no_certificate,
)
from h2htalk.data.readers.coverage import ReadState, counted_gates, state_of
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.reads import (
    READ_GATES,
    REIDENTIFICATION,
    Read,
    ReadFinding,
    ReadGate,
    TestedGate,
)
from h2htalk.data.scenario import Scenario
from h2htalk.errors import counted


@dataclass(frozen=True, slots=True)
class OpenFinding:
    """What a reader found at an item, and nobody has settled; `place`: the passage, empty for the item as a whole."""

    read: Read
    finding: ReadFinding
    place: str

    def detail(self) -> str:
        """Where, what, and who says so."""
        what = self.finding.what or "found"
        if self.finding.unsure:
            what = f"not sure: {what}" if self.finding.what else "not sure"
        where = f"{self.place}: " if self.place else ""
        return f"{where}{what} ({self.read.reader}, {self.read.date})"


def open_findings(gate: ReadGate, one: ItemTexts, readings: Readings) -> Iterator[OpenFinding]:
    """What readers found at an item for a gate, and is open. A reader that does not count is looked at all the same."""
    places = places_of(one.record)
    reads = readings.of(one.record.id)
    for read in reads:
        for finding in read.findings:
            if finding.gate != gate or not _matters(finding):
                continue
            if read.reader in readings.experts:
                is_settled = False  # other experts do not overrule them: asked often enough, somebody says no
            else:
                about = _about(finding, read, one.record)
                is_settled = _is_settled(finding, about, reads, one.dialogue.language, readings)
            if not is_settled:
                yield OpenFinding(read=read, finding=finding, place=places.get(finding.text, ""))


def _matters(finding: ReadFinding) -> bool:
    """Whether somebody may be worse off: a companion that is only clumsy does no harm. People give no severity."""
    only_clumsy = finding.gate == "companion_harm" and 0 < finding.severity < HARMFUL
    return finding.unsure or not only_clumsy


def _about(finding: ReadFinding, read: Read, record: Scenario | Case) -> set[str]:
    """The hashes of the passages of a record that a finding may be about; empty where it has none of them any more.

    A model names the passage of what it finds in a reference; what it says of the item as a whole is about the others.
    People answer about all that they saw.
    """
    passages = record_passages(record)
    if finding.text:
        return {passage.hash for passage in passages if text_hash(passage.text) == finding.text}
    if read.kind != "people" and isinstance(record, Scenario):
        passages = scenario_passages(record, ())
    return {passage.hash for passage in passages}.intersection(read.passages)


def _is_settled(
    finding: ReadFinding,
    about: set[str],
    reads: tuple[Read, ...],
    language: Language,
    readings: Readings,
) -> bool:
    """Whether experts who were asked have read what a finding is about, and found nothing."""
    if finding.gate == "minors" and finding.what in NOT_IN_ITEM:
        return False  # experts see the item, and not the message that tells the age
    if not about:
        return False  # nobody knows what the experts would have had to read
    for other in reads:
        if other.reader not in readings.experts or not about <= set(other.passages):
            continue
        asked = finding.gate in counted_gates(other, language, readings.certificates)
        found_too = any(
            one.gate == finding.gate and one.text in ("", finding.text) for one in other.findings
        )
        if asked and not found_too:
            return True
    return False


def places_of(record: Scenario | Case) -> dict[str, str]:
    """The name of each passage of an item by its hash: `turn 2`, `reference 1`, `inputs`."""
    places: dict[str, str] = {}
    if isinstance(record, Scenario):
        named = [(f"turn {number}", turn.content) for number, turn in enumerate(record.turns, 1)]
        named += [("inputs", text) for text in input_passages(record).values()]
        named += [(f"reference {number}", text) for number, text in enumerate(record.references, 1)]
    else:
        named = [
            (f"turn {number}", turn.content) for number, turn in enumerate(item_texts(record), 1)
        ]
    for place, text in named:
        places.setdefault(text_hash(text), place)
    return places


# --- What stops a release ---------------------------------------------------------------------------------------------


def _found(one: ItemTexts, opened: OpenFinding, detail: str = "") -> Found:
    """A finding of a gate, with the hash of what it is about: of the passage, or of all of the item's."""
    about = opened.finding.text
    if not about:
        about = text_hash("\n".join(turn.content for turn in item_texts(one.record)))
    said = opened.detail()
    return one.record.id, f"{detail}: {said}" if detail else said, about


def found_by_readers(
    gate: ReadGate, content: ReleaseContent, context: GateContext
) -> Iterator[Found]:
    """What readers found for a gate, wherever it stands."""
    for one in texts_of_items(content):
        for opened in open_findings(gate, one, context.readings):
            yield _found(one, opened)


def crises_without_care(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A danger to a life that a reader found, in an item that nothing announces as being about one."""
    for one in texts_of_items(content):
        if lacks_risk(one):
            for opened in open_findings("crisis_care", one, context.readings):
                yield _found(one, opened, "tags.risk is none")


def minors_and_romance(content: ReleaseContent, context: GateContext) -> Iterator[Found]:
    """A user under 18 that a reader found, beside romance: a partner, romantic talk by words, or explicit content."""
    for one in texts_of_items(content):
        opened = list(open_findings("minors", one, context.readings))
        if not opened:
            continue
        partner = is_partner(content.personas[one.record.persona], one.dialogue.language)
        talk = romantic_talk(one)
        explicit = [
            found.place for found in open_findings("explicit_content", one, context.readings)
        ]
        if not (partner or any(talk.values()) or explicit):
            continue
        if isinstance(one.record, Scenario):
            detail = WITH_PARTNER if partner else IN_TALK
        elif talk["companion"] or explicit:
            detail = IN_REFERENCE
        elif forbids_romance(one.record):
            continue
        else:
            detail = IN_CASE
        for found in opened:
            yield _found(one, found, detail)


# --- What nobody has read ---------------------------------------------------------------------------------------------


NOBODY = "nobody on record has read them"
IN_PART = "read in part: a reference, or another passage, was read by nobody who counts"


@dataclass(frozen=True, slots=True)
class Untested:
    """A gate for which items are unread: which ones, of how many, and why; `cases`: how many of them are cases.

    `allowed`: the owner's reason to publish them; `at_most`: how many unread items the owner allowed, where it is more.
    """

    gate: TestedGate
    items: tuple[str, ...]
    of: int
    reasons: Mapping[str, int]
    cases: int = 0
    allowed: str = ""
    at_most: int | None = None

    def count(self) -> str:
        """`12 of 300 items`, and how many of them are cases."""
        text = f"{len(self.items):,} of {counted(self.of, 'item')}"
        if not self.cases:
            return text
        return f"{text} ({self.cases:,} of them {'a case' if self.cases == 1 else 'cases'})"


def untested_gates(content: ReleaseContent, context: GateContext) -> tuple[Untested, ...]:
    """The gates for which an item, or a case, is unread."""
    unread: dict[ReadGate, dict[str, str]] = {gate: {} for gate in READ_GATES}
    records = list(texts_of_items(content))
    for one in records:
        for gate in READ_GATES:
            state = read_state(gate, one, context.readings)
            if not state.is_read:
                unread[gate][one.record.id] = _why_unread(state, one, context.readings)
    cases = {one.record.id for one in records if isinstance(one.record, Case)}
    found: list[Untested] = []
    for gate, reason_of in unread.items():
        if reason_of:
            reasons = Counter(reason_of.values())
            ordered = dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])))
            of_gate = Untested(
                gate=gate,
                items=tuple(reason_of),
                of=len(records),
                reasons=ordered,
                cases=len(cases & reason_of.keys()),
            )
            found.append(of_gate)
    unread_for_risk = _unread_for_risk(content, context)
    if unread_for_risk is not None:
        found.append(unread_for_risk)
    return tuple(found)


def _unread_for_risk(content: ReleaseContent, context: GateContext) -> Untested | None:
    """The items of dialogues that no model has read, where the release sets `risk`; None without such items."""
    if context.spec.risk is None:
        return None
    records = content.records()
    unread = context.exposure(content).unread
    items = [record.id for record in records if record.id in unread]
    if not items:
        return None
    cases = sum(isinstance(record, Case) for record in records if record.id in unread)
    reasons = Counter(UNREAD_REASONS[unread[item]] for item in items)
    return Untested(
        gate=REIDENTIFICATION,
        items=tuple(items),
        of=len(records),
        reasons=dict(sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))),
        cases=cases,
    )


def read_state(gate: ReadGate, one: ItemTexts, readings: Readings) -> ReadState:
    """Who of those who count has read an item for a gate, and which passages nobody has."""
    name = one.record.id
    passages = record_passages(one.record)
    return state_of(
        gate, passages, one.dialogue.language, readings.of(name), readings.certificates, name
    )


# Why an item is unread, the nearest to being read first.
_UNCHECKED, _PART, _UNCHECKED_PART, _NOT_COUNTED, _NOT_ASKED = range(5)


def _why_unread(state: ReadState, one: ItemTexts, readings: Readings) -> str:
    """Why passages of an item are unread for a gate: of several reasons the one that is nearest to its being read.

    So the same passage that nobody read gives the same reason for each gate, whatever other readers were asked.
    """
    unread = set(state.unread)
    reasons: list[tuple[int, str]] = []
    if state.readers:
        reasons.append((_PART, IN_PART))
    for read in readings.of(one.record.id):
        if unread.isdisjoint(read.passages):
            continue
        if state.gate not in read.gates:
            reasons.append((_NOT_ASKED, f"{read.reader} read them, and was not asked about it"))
        elif state.gate not in counted_gates(read, one.dialogue.language, readings.certificates):
            reason = _why_not_counted(read, state.gate, one.dialogue.language, readings)
            rank = _NOT_COUNTED
            if reason.endswith((NO_CERTIFICATE, CHECK_AGAIN)):
                rank = _UNCHECKED if unread <= set(read.passages) else _UNCHECKED_PART
            reasons.append((rank, reason))
    if not reasons:
        return NOBODY
    return min(reasons, key=lambda ranked: ranked[0])[1]


def _why_not_counted(read: Read, gate: ReadGate, language: Language, readings: Readings) -> str:
    """Why a reader that was asked about a gate does not count for it."""
    if read.kind == "people":
        return f"{read.reader}: fewer than two people answered who count as readers"
    certificate = certificate_of(read, readings.certificates)
    if certificate is None:
        return f"{read.reader} {why_no_certificate(read, readings.certificates)}"
    if certificate.obeyed:
        return f"{read.reader} obeyed texts that told it what to answer"
    if not certificate.checks(language):
        return f"{read.reader} was not checked in {find_language(language).name}{CHECK_AGAIN}"
    return (
        f"{read.reader} was refused for {gate} in {find_language(language).name} by its certificate"
    )


def mark_hints(
    hints: Sequence[Finding], content: ReleaseContent, context: GateContext
) -> tuple[Finding, ...]:
    """What words point at, unread items first, each with who has read it."""
    by_id = {one.record.id: one for one in texts_of_items(content)}
    unread: list[Finding] = []
    read: list[Finding] = []
    for hint in hints:
        gate = next(gate for gate in READ_GATES if gate == hint.gate)
        state = read_state(gate, by_id[hint.item], context.readings)
        if state.is_read:
            read.append(replace(hint, detail=f"{hint.detail} (read by {', '.join(state.readers)})"))
        else:
            unread.append(replace(hint, detail=f"{hint.detail} (unread)"))
    return (*unread, *read)
