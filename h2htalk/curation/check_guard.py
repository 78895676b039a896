"""Ask a model, as a guard or as the reviewer, about dialogues of known truth: `curate check-guard`.

    check_set, or labelled talks ─► requests, each reader's own ─► call store ─► readings ─► figures ─► certificate

With a workspace replies stand in WORKSPACE/check/calls.jsonl and certificates in WORKSPACE/certificates.jsonl, where
the gates of its releases find them; without one in OUT.calls/calls.jsonl and in OUT. After a kill the same command
repeats only the calls that were in flight.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from h2htalk.chat.engines import require_model
from h2htalk.chat.prices import Totals, dollars_text
from h2htalk.chat.protocol import Reply, Request
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls, check_model, describe_calls
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.call_settings import reader_call_settings
from h2htalk.curation.reading.check_readers import (
    CheckOutcome,
    certify,
    figures_of,
    with_other_languages,
)
from h2htalk.curation.reading.check_settings import CheckGuardSpec
from h2htalk.curation.reading.guards import GuardReader, guard_form, refuse_weak_guard
from h2htalk.curation.reading.labelled_talks import load_talks
from h2htalk.curation.reading.question import PlainQuestion
from h2htalk.curation.reading.talk_figures import found_in_talk, talk_certificate
from h2htalk.curation.reading.verdicts import day_of
from h2htalk.curation.review.check_candidates import ReviewQuestioner
from h2htalk.curation.review.reviewer import Reviewer
from h2htalk.curation.stages import ReviewSettings
from h2htalk.curation.workspace import Workspace
from h2htalk.data.files import writing
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.readers.certificates import (
    CERTIFICATES,
    Certificate,
    add_certificate,
    read_certificates,
)
from h2htalk.data.readers.check_set import CHECK_LABELS, CheckedDialogue, load_check_set
from h2htalk.data.readers.reads import Read, ReadGate
from h2htalk.data.responses import CALLS
from h2htalk.data.scenario import Turn
from h2htalk.errors import ConfigError, counted

FOLDER = "check"  # of a workspace
SUFFIX = ".calls"  # of the folder beside a file of certificates
# The dialogues are bundled, so nobody can learn the marker of a fence and write it into one of them.
SECRET = b"h2htalk check set"


class Questioner(Protocol):
    """A reader with its own question.

    Attributes:
        name: `guard:MODEL` or `review:MODEL`.
        stage: the name of its calls.
        prompt: the fingerprint of its question.
        gates: what it is asked for.
        calls: how its model is called.
    """

    @property
    def name(self) -> str: ...
    @property
    def stage(self) -> str: ...
    @property
    def prompt(self) -> str: ...
    @property
    def gates(self) -> tuple[ReadGate, ...]: ...
    @property
    def calls(self) -> CallSettings: ...

    def shown(self, checked: CheckedDialogue) -> tuple[Turn, ...]:
        """The messages of a dialogue that it is shown; none of one that it cannot be asked about."""
        ...

    def requests(self, checked: CheckedDialogue) -> list[Request]:
        """The requests about a dialogue."""
        ...

    def read(self, checked: CheckedDialogue, replies: Mapping[str, Reply]) -> Read | None:
        """Its reading, from the replies by the ids of their requests."""
        ...


@dataclass(frozen=True, slots=True)
class GuardQuestioner:
    """A guard, asked as the safety stage asks it about every message."""

    reader: GuardReader
    calls: CallSettings
    stage: str = "check-guard"

    @classmethod
    def of(cls, spec: CheckGuardSpec, prompts: Prompts) -> GuardQuestioner:
        """The guard that a check names."""
        form = guard_form(spec.model, spec.form)
        question = PlainQuestion(model=spec.model, seed=0, prompts=prompts, secret=SECRET)
        return cls(
            reader=GuardReader(form, question),
            calls=reader_call_settings(spec.model, spec, schema=form == "question"),
        )

    @property
    def name(self) -> str:
        return self.reader.name

    @property
    def prompt(self) -> str:
        return self.reader.fingerprint

    @property
    def gates(self) -> tuple[ReadGate, ...]:
        return self.reader.gates

    def shown(self, checked: CheckedDialogue) -> tuple[Turn, ...]:
        return checked.messages

    def requests(self, checked: CheckedDialogue) -> list[Request]:
        return self.reader.requests(checked.dialogue)

    def read(self, checked: CheckedDialogue, replies: Mapping[str, Reply]) -> Read | None:
        return self.reader.read(checked.dialogue, replies).read


def questioners(spec: CheckGuardSpec) -> list[Questioner]:
    """The readers that a check asks for. Raises ConfigError for a model or prompts that cannot be used."""
    require_model(spec.model)
    refuse_weak_guard(spec.model)
    prompts = Prompts.load(str(spec.prompts or ""))
    chosen: list[Questioner] = []
    if spec.reader in ("guard", "both"):
        chosen.append(GuardQuestioner.of(spec, prompts))
    if spec.reader in ("review", "both"):
        settings = ReviewSettings(model=spec.model, engine_options=spec.engine_options)
        reviewer = Reviewer(settings=settings, seed=0, prompts=prompts, secret=SECRET)
        chosen.append(
            ReviewQuestioner(
                reviewer=reviewer, calls=reader_call_settings(spec.model, spec, schema=True)
            )
        )
    return chosen


@dataclass(frozen=True, slots=True)
class ReaderCheck:
    """What a check of one reader showed.

    Attributes:
        certificate: its figures and gates; without gates where only a part of the set was asked about.
        outcomes: its answer about each dialogue, in the order of the set.
        stored: the file that holds the certificate; None where only a part of the set was asked about.
        totals: what the calls kept there cost so far; None for a model that costs nothing.
        seconds: the median time of a reply; None where no reply has one.
    """

    certificate: Certificate
    outcomes: tuple[CheckOutcome, ...]
    stored: Path | None
    totals: Totals | None
    seconds: float | None

    @property
    def is_whole(self) -> bool:
        """Whether the whole set was asked about, in the languages that were chosen."""
        return self.stored is not None

    @property
    def counts(self) -> bool:
        """Whether the reader counts for any gate in any language."""
        return any(self.certificate.gates.values())


def check_guard(spec: CheckGuardSpec) -> list[ReaderCheck]:
    """Check a model as a reader, or continue, and store its certificates.

    Args:
        spec: the model, as which reader, and where replies and certificates go.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.CheckGuardSpec(model="scripted:replies.jsonl", out="guard.jsonl", language="en")
        >>> [check] = h2htalk.check_guard(spec)
        >>> check.certificate.gates
        {'en': ()}

    Raises:
        ConfigError: the model cannot be asked or is too weak, or nothing says where replies go.
        DataError: another process works there, or a file is damaged.
        IncompleteError: calls failed after their retries; the same command makes these again.
    """
    readers = questioners(spec)
    for reader in readers:
        check_model(reader.calls)
    place = _Place.of(spec)
    checked_set = CheckedSet.of(spec)
    checks: list[ReaderCheck] = []
    with ExitStack() as stack:
        place.hold(stack)
        store = stack.enter_context(CallStore(place.calls / CALLS))
        for reader in readers:
            checks.append(_check(reader, spec, checked_set, store, place))
    return checks


def passes(check: ReaderCheck) -> bool:
    """Whether a reader counts for a gate; of some dialogues, or of own talks, whether it gave any valid answer."""
    if check.certificate.is_of_talks:
        return any(found_in_talk(outcome) is not None for outcome in check.outcomes)
    if check.is_whole:
        return check.counts
    return any(outcome.read is not None for outcome in check.outcomes)


def closing_lines(check: ReaderCheck) -> Iterator[str]:
    """Yield what a check cost and took, and where its certificate is or why it has none."""
    if check.totals is not None:
        dollars = dollars_text(check.totals.usd_committed, at_most=True)
        yield f"cost: at most {dollars} US dollars for {check.totals.calls:,} calls"
    if check.seconds is not None:
        yield f"time: {check.seconds:.2f} s a reply (median)"
    if check.stored is None:
        number = counted(len(check.outcomes), "dialogue")
        yield f"{number} of the set: no certificate, which needs all of them; leave --limit out"
    else:
        yield f"certificate: {check.stored}"


def estimate_check(spec: CheckGuardSpec) -> list[str]:
    """Describe the calls that `check_guard` would make and what they cost; nothing is sent or written."""
    lines: list[str] = []
    chosen = CheckedSet.of(spec).chosen(spec)
    for reader in questioners(spec):
        check_model(reader.calls)
        requests = [
            request
            for checked in asked_dialogues(reader, chosen)
            for request in reader.requests(checked)
        ]
        text, _ = describe_calls(reader.calls, requests)
        lines.append(f"{reader.name}: {text}")
    return [*lines, "nothing was written and no model was called"]


@dataclass(frozen=True, slots=True)
class CheckedSet:
    """The dialogues of known truth that a check is about.

    Attributes:
        dialogues: all of them, in the languages of the check.
        talks: the name of an owner's own labelled talks; empty for the bundled set.
    """

    dialogues: tuple[CheckedDialogue, ...]
    talks: str = ""

    @classmethod
    def of(cls, spec: CheckGuardSpec) -> CheckedSet:
        """The set that a check names. Raises ConfigError, DataError for talks that cannot be read."""
        if spec.set is not None:
            talks = load_talks(spec)
            return cls(dialogues=talks.dialogues, talks=talks.name)
        bundled = [checked for language in spec.languages for checked in load_check_set(language)]
        return cls(dialogues=tuple(bundled))

    def chosen(self, spec: CheckGuardSpec) -> tuple[CheckedDialogue, ...]:
        """All of them, or with a limit some of each label and language in turn."""
        if spec.limit is None or spec.limit >= len(self.dialogues):
            return self.dialogues
        queues: dict[tuple[int, str, int], list[CheckedDialogue]] = {}
        for checked in self.dialogues:
            label = checked.why if self.talks else ""
            key = (
                CHECK_LABELS.index(checked.label),
                label,
                LANGUAGES.index(checked.language),
            )
            queues.setdefault(key, []).append(checked)
        taken: set[str] = set()
        place = 0
        while len(taken) < spec.limit:
            for key in sorted(queues):
                if place < len(queues[key]) and len(taken) < spec.limit:
                    taken.add(queues[key][place].id)
            place += 1
        return tuple(checked for checked in self.dialogues if checked.id in taken)


def asked_dialogues(reader: Questioner, chosen: Sequence[CheckedDialogue]) -> list[CheckedDialogue]:
    """The chosen dialogues, each with a sentence that a reader is shown followed by itself without the sentence."""
    asked: list[CheckedDialogue] = []
    for checked in chosen:
        if not reader.shown(checked):
            continue
        asked.append(checked)
        without = checked.without_sentence()
        if without is not None and reader.shown(without) != reader.shown(checked):
            asked.append(without)
    return asked


def _check(
    reader: Questioner,
    spec: CheckGuardSpec,
    checked_set: CheckedSet,
    store: CallStore,
    place: _Place,
) -> ReaderCheck:
    chosen = checked_set.chosen(spec)
    asked = {checked.id: checked for checked in asked_dialogues(reader, chosen)}
    requests = {name: reader.requests(checked) for name, checked in asked.items()}
    with ModelCalls(reader.calls, store, reader.stage) as calls:
        replies = calls.ask([one for those in requests.values() for one in those], "the check set")
    reads: dict[str, Read | None] = {}
    for name, checked in asked.items():
        of_dialogue = {
            request.id: replies[request.id, request.sample] for request in requests[name]
        }
        reads[name] = reader.read(checked, of_dialogue)
    outcomes: list[CheckOutcome] = []
    for checked in chosen:
        without = checked.without_sentence()
        asked_twice = without is not None and without.id in reads
        outcome = CheckOutcome(
            checked=checked,
            gates=reader.gates if checked.id in reads else (),
            read=reads.get(checked.id),
            asked_twice=asked_twice,
            without=reads[without.id] if without is not None and asked_twice else None,
        )
        outcomes.append(outcome)
    date = day_of(replies.values())  # of invalid replies too
    served = reader.calls.served_by or ""
    if checked_set.talks:
        certificate = talk_certificate(
            reader.name, reader.prompt, checked_set.talks, date, outcomes, served
        )
    else:
        certificate = certify(reader.name, reader.prompt, date, figures_of(outcomes), served)
    is_whole = len(outcomes) == len(checked_set.dialogues)
    times = [reply.seconds for reply in replies.values() if reply.seconds is not None]
    return ReaderCheck(
        certificate=place.add(certificate) if is_whole else replace(certificate, gates={}),
        outcomes=tuple(outcomes),
        stored=place.certificates if is_whole else None,
        totals=store.totals().get(reader.stage),
        seconds=statistics.median(times) if times else None,
    )


# --- Where replies and certificates go --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a check keeps its calls and its certificates: in a workspace, or in a file and a folder beside it."""

    calls: Path
    certificates: Path
    workspace: Workspace | None

    @classmethod
    def of(cls, spec: CheckGuardSpec) -> _Place:
        if spec.workspace is not None:
            workspace = Workspace(Path(spec.workspace))
            return cls(workspace.path / FOLDER, workspace.path / CERTIFICATES, workspace)
        if spec.out is None:
            raise ConfigError(
                "name --workspace DIR, whose gates then count the reader, or --out FILE"
            )
        out = Path(spec.out)
        return cls(out.with_name(f"{out.name}{SUFFIX}"), out, None)

    def hold(self, stack: ExitStack) -> None:
        """Lock the workspace, and make the folder of the calls. A damaged file is an error before anything is paid."""
        if self.workspace is not None:
            stack.enter_context(self.workspace.locked())
        read_certificates(self.certificates.parent, self.certificates.name)
        with writing(self.calls):
            self.calls.mkdir(parents=True, exist_ok=True)

    def add(self, certificate: Certificate) -> Certificate:
        """Store a certificate, with the figures of an earlier one for languages that this check left out."""
        folder = self.certificates.parent
        name = self.certificates.name
        for earlier in read_certificates(folder, name):
            if earlier.key == certificate.key and not certificate.is_of_talks:
                certificate = with_other_languages(certificate, earlier)
        add_certificate(folder, certificate, name)
        return certificate
