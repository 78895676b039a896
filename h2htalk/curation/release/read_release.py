"""Have a guard read the items and cases of a release that nobody has read who counts: `h2htalk release read`.

    specification ─► items and cases of the release ─► what is unread of them ─► dialogues ─► guard ─► readings

The guard is asked as the safety stage asks it, about each passage in its place: the inputs, then one reference as the
companion's reply; a case as its script, with its references. The readings stand in the workspace, where the next build
finds them, the replies beside them: after a kill the same command repeats only the calls that were in flight.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from h2htalk.chat.prices import Totals, dollars_text
from h2htalk.chat.protocol import Request
from h2htalk.chat.served_model import served_by
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.model_calls import CallSettings, check_model, describe_calls
from h2htalk.curation.candidates import scenario_passages
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.call_settings import reader_call_settings
from h2htalk.curation.reading.guards import GuardReader, guard_form, refuse_weak_guard
from h2htalk.curation.reading.question import PlainQuestion
from h2htalk.curation.release.build import accept_items, choose, open_spec
from h2htalk.curation.release.content import record_passages
from h2htalk.curation.release.gate_context import ItemTexts, texts_of_items
from h2htalk.curation.release.read_gates import (
    OpenFinding,
    Untested,
    open_findings,
    read_state,
    untested_gates,
)
from h2htalk.curation.release.read_settings import ReadReleaseSpec
from h2htalk.curation.release.reader_calls import (
    NO_SECRET,
    ask,
    fence_secret,
    note_shown,
    open_store,
)
from h2htalk.curation.release.readings import Readings
from h2htalk.curation.release.report import untested_lines
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.languages import Language, find_language
from h2htalk.data.readers.certificate_rules import granted_gates
from h2htalk.data.readers.certificates import Certificate, certificate_of, why_no_certificate
from h2htalk.data.readers.item_reads import (
    ItemReads,
    add_read,
    part_id,
    read_item_reads,
    write_item_reads,
)
from h2htalk.data.readers.passages import SpokenPassage, conversation_passages, text_hash
from h2htalk.data.readers.reads import READ_GATES, Read, ReadGate
from h2htalk.data.scenario import Dialogue, Scenario, Turn
from h2htalk.errors import IncompleteError, counted, listed
from h2htalk.extras import RELEASE_GATES
from h2htalk.text.escaping import printable

STAGE = "release-read"  # the name of its calls
NOT_CHECKED = "it was not checked in this language"
REFUSED = "its certificate refuses it"
_MOST = 20  # findings of a gate that are listed


@dataclass(frozen=True, slots=True)
class ReleaseReading:
    """What a guard read of a release.

    Attributes:
        reader: `guard:MODEL`.
        asked: ids of the items and cases that it was asked about now.
        cases: how many of them are cases.
        dialogues: in how many dialogues it was shown them.
        unanswered: those of them of which a passage has no valid answer.
        found: what it found and is open, now or before, by gate: the item, and what.
        untested: for which gates items are unread still.
        uncounted: the languages in which it counts for no gate, with the reason.
        totals: what the calls kept there cost so far; None for a model that costs nothing.
    """

    reader: str
    asked: tuple[str, ...]
    cases: int
    dialogues: int
    unanswered: tuple[str, ...]
    found: Mapping[ReadGate, tuple[tuple[str, OpenFinding], ...]]
    untested: tuple[Untested, ...]
    uncounted: Mapping[Language, str]
    totals: Totals | None


def read_release(spec: ReadReleaseSpec) -> ReleaseReading:
    """Have a guard read what nobody who counts has read of a release, or continue.

    Raises:
        ConfigError: the specification or the guard cannot be used.
        DataError: another process works in the workspace, or a file is damaged.
        IncompleteError: calls failed after their retries, or reached the limit of cost. What was read until then is
            stored; the same command makes the others.
    """
    RELEASE_GATES.require()
    release_spec, workspace = open_spec(spec.spec)
    calls = _call_settings(spec, _reader(spec, NO_SECRET))
    with workspace.locked():
        reader = _reader(spec, fence_secret(workspace))
        pool = accept_items(release_spec, workspace)
        chosen = choose(release_spec, workspace, pool)
        parts = unread_parts(texts_of_items(chosen.content), chosen.context.readings, reader)
        with open_store(workspace) as store:
            note_shown(workspace, [(part.record.id, [part.record]) for part in parts])
            failures = _ask(reader, calls, store, parts, workspace)
            totals = store.totals().get(STAGE)
        if failures:
            what = f"{counted(len(failures), 'call')} of the release failed: {failures[0]}"
            raise IncompleteError(f"{what}; what was read is stored, and the same command goes on")
        # What is left out by what was found now may make room for items that nobody has read.
        chosen = choose(release_spec, workspace, pool)
    records = list(texts_of_items(chosen.content))
    readings = chosen.context.readings
    asked = dict.fromkeys(part.record.id for part in parts)
    cases = {part.record.id for part in parts if isinstance(part.record, Case)}
    read = read_item_reads(workspace.path)
    return ReleaseReading(
        reader=reader.name,
        asked=tuple(asked),
        cases=len(cases),
        dialogues=len(parts),
        unanswered=_unanswered(parts, read, reader),
        found=_found(records, readings, reader),
        untested=untested_gates(chosen.content, chosen.context),
        uncounted=_uncounted(records, readings, reader),
        totals=totals,
    )


def estimate_reading(spec: ReadReleaseSpec) -> list[str]:
    """Describe the calls that `read_release` would make and what they cost; nothing is sent or written."""
    RELEASE_GATES.require()
    release_spec, workspace = open_spec(spec.spec)
    reader = _reader(spec, NO_SECRET)
    calls = _call_settings(spec, reader)
    chosen = choose(release_spec, workspace, accept_items(release_spec, workspace))
    records = list(texts_of_items(chosen.content))
    parts = unread_parts(records, chosen.context.readings, reader)
    text, _ = describe_calls(
        calls, [request for part in parts for request in reader.requests(part.dialogue)]
    )
    asked = {part.record.id for part in parts}
    lines = [
        f"{reader.name}: to be asked about {len(asked):,} of {counted(len(records), 'item')}: {text}"
    ]
    lines += uncounted_lines(reader.name, _uncounted(records, chosen.context.readings, reader))
    return [*lines, "nothing was written and no model was called"]


def _reader(spec: ReadReleaseSpec, secret: bytes) -> GuardReader:
    """The guard, asked with fences of this secret. Raises ConfigError for one that is too weak."""
    refuse_weak_guard(spec.guard)
    prompts = Prompts.load(str(spec.prompts or ""))
    question = PlainQuestion(model=spec.guard, seed=0, prompts=prompts, secret=secret)
    source = served_by(spec.guard, spec.engine_options)
    return GuardReader(guard_form(spec.guard, spec.form), question, served_by=source)


def _call_settings(spec: ReadReleaseSpec, reader: GuardReader) -> CallSettings:
    """How the guard is called. Raises ConfigError for a model that cannot be."""
    settings = reader_call_settings(spec.guard, spec, schema=reader.form == "question")
    check_model(settings)
    return settings


# --- What is unread -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A dialogue that a guard is shown of an item: its inputs with one reference, or a case with all of its own.

    `passages`: of the item, a message of the dialogue each.
    """

    record: Scenario | Case
    dialogue: Dialogue
    passages: tuple[SpokenPassage, ...]

    @property
    def hashes(self) -> frozenset[str]:
        return frozenset(passage.hash for passage in self.passages)


def unread_parts(
    records: Iterable[ItemTexts], readings: Readings, reader: GuardReader
) -> list[Part]:
    """The dialogues of items in which a passage is unread for a gate that the guard may count for.

    What it has read already is not asked again: where that does not count, its certificate is what is lacking.
    """
    parts: list[Part] = []
    for one in records:
        unread: set[str] = set()
        for gate in _useful_gates(reader, one.dialogue.language, readings.certificates):
            unread.update(read_state(gate, one, readings).unread)
        for known in readings.of(one.record.id):
            if (known.reader, known.prompt, known.served_by) == (
                reader.name,
                reader.fingerprint,
                reader.served_by,
            ):
                unread.difference_update(known.passages)
        if unread:
            parts += [part for part in parts_of(one.record) if not unread.isdisjoint(part.hashes)]
    return parts


def parts_of(record: Scenario | Case) -> list[Part]:
    """The dialogues in which every passage of an item stands in its place.

    What the user has given beside a conversation stands before it: a reference answers the last message.
    """
    shown: list[Sequence[SpokenPassage]] = []
    if isinstance(record, Scenario):
        conversation = len(conversation_passages(record.turns))
        inputs = scenario_passages(record, ())
        inputs_first = [*inputs[conversation:], *inputs[:conversation]]
        replies = scenario_passages(record, record.references)[len(inputs) :]
        shown += [[*inputs_first, reply] for reply in replies]
        if not replies:
            shown.append(inputs_first)
    else:
        shown.append(record_passages(record))
    parts: list[Part] = []
    for number, passages in enumerate(shown, 1):
        turns = tuple(Turn(passage.role, passage.text) for passage in passages)
        dialogue = Dialogue(part_id(record.id, number), record.language, turns)
        parts.append(Part(record=record, dialogue=dialogue, passages=tuple(passages)))
    return parts


def _useful_gates(
    reader: GuardReader, language: Language, certificates: Sequence[Certificate]
) -> tuple[ReadGate, ...]:
    """The gates that a guard is asked for and may count for: all of its own as long as nobody has checked it."""
    certificate = certificate_of(_any_reading(reader), certificates)
    if certificate is None or not certificate.checks(language):
        return reader.gates
    granted = granted_gates(certificate, language)
    return tuple(gate for gate in reader.gates if gate in granted)


def _any_reading(reader: GuardReader) -> Read:
    """A reading by a guard, of nothing: what its certificate is found by."""
    return Read(
        item=STAGE,
        reader=reader.name,
        date="-",
        gates=reader.gates,
        passages=(),
        prompt=reader.fingerprint,
        served_by=reader.served_by,
    )


def _uncounted(
    records: Iterable[ItemTexts], readings: Readings, reader: GuardReader
) -> dict[Language, str]:
    """The languages of a release in which a guard counts for no gate, each with the reason."""
    reading = _any_reading(reader)
    certificate = certificate_of(reading, readings.certificates)
    reasons: dict[Language, str] = {}
    for language in sorted({one.dialogue.language for one in records}):
        if certificate is None:
            reasons[language] = f"it {why_no_certificate(reading, readings.certificates)}"
        elif not certificate.checks(language):
            reasons[language] = NOT_CHECKED
        elif not granted_gates(certificate, language):
            reasons[language] = REFUSED
    return reasons


# --- Asking -------------------------------------------------------------------------------------------------------


def _ask(
    reader: GuardReader,
    settings: CallSettings,
    store: CallStore,
    parts: Sequence[Part],
    workspace: Workspace,
) -> tuple[str, ...]:
    """Ask a guard and store what it read; the messages of calls that failed."""
    requests: dict[str, list[Request]] = {
        part.dialogue.id: reader.requests(part.dialogue) for part in parts
    }
    answers = ask(settings, store, STAGE, requests)
    lines = read_item_reads(workspace.path)
    for part in parts:
        guarded = reader.read(part.dialogue, answers.replies[part.dialogue.id])
        if guarded.read is not None:
            name = part.record.id
            line = add_read(lines[name], _read_of_part(part, guarded.read, guarded.reading.unread))
            lines[name] = replace(line, said={**line.said, **_said_at(part, guarded.read)})
    write_item_reads(workspace.path, lines)
    return answers.failures


def _read_of_part(part: Part, read: Read, unread: Collection[int]) -> Read:
    """A reading of a dialogue as one of the item, whose passages answer what they answer in the item."""
    covered = {passage.hash for turn, passage in enumerate(part.passages) if turn not in unread}
    return replace(read, item=part.record.id, passages=tuple(sorted(covered)))


def _said_at(part: Part, read: Read) -> dict[str, str]:
    """The passages at which a guard found something, by the hashes of their texts."""
    wanted = {finding.text for finding in read.findings}
    said = {text_hash(passage.text): passage.text for passage in part.passages}
    return {name: text for name, text in said.items() if name in wanted}


def _unanswered(
    parts: Iterable[Part], read: Mapping[str, ItemReads], reader: GuardReader
) -> tuple[str, ...]:
    """The items of which a guard gave no valid answer about a passage that it was shown."""
    lacking: dict[str, None] = {}
    for part in parts:
        name = part.record.id
        own = [known for known in read[name].reads if known.reader == reader.name]
        if not part.hashes <= {passage for known in own for passage in known.passages}:
            lacking[name] = None
    return tuple(lacking)


def _found(
    records: Iterable[ItemTexts], readings: Readings, reader: GuardReader
) -> dict[ReadGate, tuple[tuple[str, OpenFinding], ...]]:
    """What a guard found in items, and is open, by gate."""
    found: dict[ReadGate, list[tuple[str, OpenFinding]]] = {}
    for one in records:
        for gate in READ_GATES:
            for opened in open_findings(gate, one, readings):
                if opened.read.reader == reader.name:
                    found.setdefault(gate, []).append((one.record.id, opened))
    return {gate: tuple(pairs) for gate, pairs in found.items()}


# --- What is printed ----------------------------------------------------------------------------------------------


def reading_lines(reading: ReleaseReading) -> Iterator[str]:
    """Say what a guard was asked about, what it found, what it cost, and what is unread still."""
    if reading.asked:
        items = len(reading.asked) - reading.cases
        asked = f"{counted(items, 'item')} and {counted(reading.cases, 'case')}"
        yield f"{reading.reader} was asked about {asked}, in {counted(reading.dialogues, 'dialogue')}"
    else:
        yield f"{reading.reader} was asked about nothing: it has read, or may not count for, all that is unread"
    if reading.unanswered:
        yield f"  no valid answer about a passage of {printable(listed(reading.unanswered, 9))}"
    for gate, pairs in reading.found.items():
        yield f"found for {gate}, and open: {counted(len(pairs), 'finding')}"
        for item, opened in pairs[:_MOST]:
            yield f"  {printable(f'{item}: {opened.detail()}')}"
        if len(pairs) > _MOST:
            yield f"  and {len(pairs) - _MOST:,} more"
    if reading.totals is not None:
        dollars = dollars_text(reading.totals.usd_committed, at_most=True)
        yield f"cost: at most {dollars} US dollars for {reading.totals.calls:,} calls"
    yield from uncounted_lines(reading.reader, reading.uncounted)
    yield from untested_lines(reading.untested)
    if not reading.untested:
        yield "nothing is unread; the gates are run by `h2htalk release build`"


def uncounted_lines(reader: str, uncounted: Mapping[Language, str]) -> Iterator[str]:
    """Say in which languages a guard's readings count for no gate, and what to do."""
    for reason in dict.fromkeys(uncounted.values()):
        names = [
            find_language(language).name for language, why in uncounted.items() if why == reason
        ]
        what_to_do = "what it reads is stored, and counts once `h2htalk curate check-guard` gave it a certificate"
        if reason == REFUSED:
            what_to_do = "it is not asked about them; name another guard"
        yield f"{reader} counts for no gate in {listed(names, 9)}: {reason}; {what_to_do}"
