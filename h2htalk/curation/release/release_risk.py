"""Have a model quote from each dialogue of a release what gives its user away: `h2htalk release risk`.

    specification, or release ─► dialogues ─► what this model has not read ─► requests ─► quotes ─► shares, most exposed

The question is `curation/reading/exposure.py`. What the model quoted stands in the workspace, where the next build
finds it, the replies beside it: after a kill the same command repeats only the calls that were in flight. The items of
the most exposed dialogues are written as a file that a round can be opened from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from h2htalk.chat.engines import model_name, parse_model
from h2htalk.chat.prices import Totals, dollars_text
from h2htalk.chat.protocol import Request
from h2htalk.chat.served_model import served_by
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.model_calls import CallSettings, check_model, describe_calls
from h2htalk.curation.prompts import Prompts
from h2htalk.curation.reading.call_settings import reader_call_settings
from h2htalk.curation.reading.exposure import ExposureQuestion
from h2htalk.curation.reading.verdicts import day_of
from h2htalk.curation.release.build import accept_items, choose, open_spec
from h2htalk.curation.release.content import read_content
from h2htalk.curation.release.exposed import (
    ExposedDialogue,
    Exposures,
    Measure,
    Reader,
    ReleasedDialogue,
    is_bundled,
    measure,
    misquoted_text,
    read_exposures,
    released_dialogues,
    share_text,
    shares_text,
)
from h2htalk.curation.release.read_settings import ReleaseRiskSpec
from h2htalk.curation.release.reader_calls import (
    NO_SECRET,
    ask,
    fence_secret,
    note_shown,
    open_store,
)
from h2htalk.curation.release.settings import read_stored_spec
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.files import write_jsonl
from h2htalk.data.languages import find_language
from h2htalk.data.readers.exposures import LEAST_DETAILS, ExposedDetail, Exposure, details_text
from h2htalk.data.readers.item_reads import (
    EXPOSED,
    mark_exposed,
    read_item_reads,
    write_item_reads,
)
from h2htalk.data.readers.passages import text_hash
from h2htalk.data.readers.served_by import served_together
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.scenario import Scenario
from h2htalk.errors import ConfigError, IncompleteError, counted, listed
from h2htalk.extras import RELEASE_GATES
from h2htalk.rounds.item_sources import case_item, scenario_item
from h2htalk.rounds.texts.interface import interface_text
from h2htalk.text.escaping import printable

STAGE = "release-risk"  # the name of its calls
MOST_EXPOSED = 20  # dialogues that are listed, and put to people


@dataclass(frozen=True, slots=True)
class ReleaseRisk:
    """What a model quoted from the dialogues of a release.

    Attributes:
        reader: `risk:MODEL`.
        asked: how many dialogues it was asked about now.
        measured: what it quoted, now or before.
        reasons: why dialogues have no valid answer of it, by their ids.
        is_bundled: whether it was asked the bundled question; else its answers count for no gate.
        counted_together: what counts for the release, where that is more than what this model quoted.
        exposed: what it and all that counts quoted.
        exposed_file: the file with the items of the most exposed dialogues; None where there are none.
        totals: what the calls kept there cost so far; None for a model that costs nothing.
    """

    reader: str
    asked: int
    measured: Measure
    reasons: dict[str, str]
    is_bundled: bool
    counted_together: Measure | None
    exposed: Measure
    exposed_file: Path | None
    totals: Totals | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """A model with its question, as it is asked now."""

    question: ExposureQuestion
    served_by: str

    @property
    def name(self) -> str:
        return f"risk:{model_name(self.question.model)}"

    @property
    def reader(self) -> Reader:
        return self.name, self.question.fingerprint, self.served_by


def release_risk(spec: ReleaseRiskSpec) -> ReleaseRisk:
    """Have a model quote what gives users away from what it has not read of a release, or continue.

    Raises:
        ConfigError: the release or the model cannot be used.
        DataError: another process works in the workspace, or a file is damaged.
        IncompleteError: calls failed after their retries, or reached the limit of cost. What was read until then is
            stored; the same command makes the others.
    """
    RELEASE_GATES.require()
    workspace = _workspace_of(spec)
    settings = _call_settings(spec)
    with workspace.locked():
        asked = _asked(spec, fence_secret(workspace))
        dialogues = released_dialogues(_records_of(spec))
        unread = _unread(dialogues, read_exposures(workspace.path), asked)
        with open_store(workspace) as store:
            note_shown(workspace, [(dialogue.id, dialogue.records) for dialogue in unread])
            failures, reasons = _ask(asked, settings, store, unread, workspace)
            totals = store.totals().get(STAGE)
        exposures = read_exposures(workspace.path)
        measured = measure(dialogues, exposures, [asked.reader])
        counted_readers = exposures.counted_readers(dialogues)
        # A weaker model that is asked later takes no dialogue from those that people get.
        exposed = measure(dialogues, exposures, {asked.reader, *counted_readers})
        exposed_file = _write_exposed(workspace, exposed)
    if failures:
        what = f"{counted(len(failures), 'call')} about the release failed: {failures[0]}"
        raise IncompleteError(f"{what}; what was read is stored, and the same command goes on")
    counts_alone = counted_readers == [asked.reader]
    counted_together = None if counts_alone else measure(dialogues, exposures, counted_readers)
    reasons.update((dialogue.id, "misquoted") for dialogue in measured.unclear)
    return ReleaseRisk(
        reader=asked.name,
        asked=len(unread),
        measured=measured,
        reasons=reasons,
        is_bundled=is_bundled(asked.reader),
        counted_together=counted_together,
        exposed=exposed,
        exposed_file=exposed_file,
        totals=totals,
    )


def estimate_risk(spec: ReleaseRiskSpec) -> list[str]:
    """Describe the calls that `release_risk` would make and what they cost; nothing is sent or written."""
    RELEASE_GATES.require()
    workspace = _workspace_of(spec)
    settings = _call_settings(spec)
    asked = _asked(spec, NO_SECRET)
    dialogues = released_dialogues(_records_of(spec))
    unread = _unread(dialogues, read_exposures(workspace.path), asked)
    requests = [
        request for dialogue in unread for request in asked.question.requests(dialogue.shown)
    ]
    text, _ = describe_calls(settings, requests)
    line = f"{asked.name}: to be asked about {len(unread):,} of {counted(len(dialogues), 'dialogue')}: {text}"
    return [line, "nothing was written and no model was called"]


def _workspace_of(spec: ReleaseRiskSpec) -> Workspace:
    """The workspace of a specification, or of a release that was built here. Raises ConfigError."""
    path = Path(spec.release)
    if not releases.is_release(path):
        if path.is_dir():
            raise ConfigError(
                f"{path}: not a release; name the TOML file of one, or the folder of one that was built"
            )
        return open_spec(path)[1]
    try:
        stored = read_stored_spec(releases.private_folder(path) / releases.SPEC)
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: has no private folder beside it, which names its workspace, where quotes are kept; name the TOML "
            "file of the release instead"
        ) from None
    workspace = Workspace(Path(stored.workspace))
    workspace.require_begun()
    return workspace


def _records_of(spec: ReleaseRiskSpec) -> list[Scenario | Case]:
    """The items and cases of a release, or those that a build of its specification would choose now."""
    path = Path(spec.release)
    if releases.is_release(path):
        _, content = read_content(path)
        return content.records()
    release_spec, workspace = open_spec(path)
    return choose(release_spec, workspace, accept_items(release_spec, workspace)).content.records()


def _asked(spec: ReleaseRiskSpec, secret: bytes) -> _Asked:
    """The model with its question."""
    question = ExposureQuestion(
        model=spec.model, prompts=Prompts.load(str(spec.prompts or "")), secret=secret
    )
    return _Asked(question=question, served_by=served_by(spec.model, spec.engine_options))


def _call_settings(spec: ReleaseRiskSpec) -> CallSettings:
    """How the model is called. Raises ConfigError for one that cannot be, or is too small to read for others."""
    engine, _ = parse_model(spec.model)
    if engine.small:
        raise ConfigError(
            f"--model {spec.model}: the {engine.name} model is too small to read for others; name a strong chat model "
            "such as anthropic:claude-sonnet-5 or server:MODEL@URL"
        )
    settings = reader_call_settings(spec.model, spec, schema=True)
    check_model(settings)
    return settings


# --- Asking -------------------------------------------------------------------------------------------------------


def _unread(
    dialogues: Iterable[ReleasedDialogue], exposures: Exposures, asked: _Asked
) -> list[ReleasedDialogue]:
    """The dialogues in which a message of the user has no answer of this model to this question."""
    return [dialogue for dialogue in dialogues if exposures.of(dialogue, asked.reader) is None]


def _ask(
    asked: _Asked,
    settings: CallSettings,
    store: CallStore,
    dialogues: Sequence[ReleasedDialogue],
    workspace: Workspace,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Ask the model and store what it quoted; the messages of failed calls, and why dialogues have no valid answer."""
    requests: dict[str, list[Request]] = {
        dialogue.id: asked.question.requests(dialogue.shown) for dialogue in dialogues
    }
    answers = ask(settings, store, STAGE, requests)
    lines = read_item_reads(workspace.path)
    reasons: dict[str, str] = {}
    for dialogue in dialogues:
        replies = answers.replies[dialogue.id]
        reading = asked.question.read(dialogue.shown, replies)
        if reading.reasons:
            reasons[dialogue.id] = ", ".join(reading.reasons)
        if replies:
            exposure = Exposure(
                reader=asked.name,
                date=day_of(replies.values()),
                passages=_covered(dialogue, reading.unread),
                details=reading.details,
                misquoted=reading.misquoted,
                unread=len(reading.unread),
                prompt=asked.question.fingerprint,
                served_by=served_together(reply.served_by for reply in replies.values()),
            )
            line = lines[dialogue.id]
            others = [known for known in line.exposures if not _replaces(exposure, known)]
            lines[dialogue.id] = replace(line, exposures=(*others, exposure))
    write_item_reads(workspace.path, lines)
    return answers.failures, reasons


def _covered(dialogue: ReleasedDialogue, unread: Sequence[int]) -> tuple[str, ...]:
    """The hashes of the user's messages that a valid answer covers."""
    covered: set[str] = set()
    for turn, message in enumerate(dialogue.shown.messages):
        if message.role == "user" and turn not in unread:
            covered.add(text_hash(message.content))
    return tuple(sorted(covered))


def _replaces(new: Exposure, known: Exposure) -> bool:
    """Whether an answer replaces an earlier one of the same model: what it covers is not covered twice."""
    is_same = (new.reader, new.prompt, new.served_by) == (
        known.reader,
        known.prompt,
        known.served_by,
    )
    return is_same and set(known.passages) <= set(new.passages)


# --- What people get ----------------------------------------------------------------------------------------------


def _write_exposed(workspace: Workspace, measured: Measure) -> Path | None:
    """Write the items of the most exposed dialogues with what was quoted, as a file that a round is opened from."""
    path = workspace.path / EXPOSED
    lines: list[dict[str, object]] = []
    for exposed in measured.exposed[:MOST_EXPOSED]:
        for record in exposed.dialogue.records:
            item = scenario_item(record) if isinstance(record, Scenario) else case_item(record)
            note = interface_text(
                "found_exposed", record.language, details=_quotes(exposed.details)
            )
            noted = replace(item, note=note)
            lines.append({"item": noted.to_dict(), "source": mark_exposed(record.to_dict())})
    write_jsonl(path, lines)
    return path if lines else None


def _quotes(details: Sequence[ExposedDetail]) -> str:
    return "; ".join(f"{detail.kind}: “{detail.quote}”" for detail in details)


# --- What is printed ----------------------------------------------------------------------------------------------


def risk_lines(risk: ReleaseRisk) -> Iterator[str]:
    """Say what a model was asked about, the shares, what is unread, the most exposed dialogues, and what to do."""
    measured = risk.measured
    yield f"{risk.reader} was asked about {counted(risk.asked, 'dialogue')} now"
    for language, count in measured.languages().items():
        name = find_language(language).name
        if count.read:
            yield f"{name}: {LEAST_DETAILS} or more details in {share_text(count)}"
        unread = [dialogue.id for dialogue in measured.unread if dialogue.language == language]
        if unread:
            of = f"{len(unread):,} of {counted(count.dialogues, 'dialogue')}"
            yield f"{name}: unread, and counted nowhere: {of}: {printable(listed(unread, 9))}"
    for name, reason in list(risk.reasons.items())[:MOST_EXPOSED]:
        yield printable(f"  no valid answer about {name}: {reason}")
    if measured.misquoted:
        verb = "counts" if measured.misquoted == 1 else "count"
        yield f"{misquoted_text(measured.misquoted)}, and {verb} for nothing"
    if measured.unclear:
        dialogues = counted(len(measured.unclear), "dialogue is", "dialogues are")
        yield (
            f"{dialogues} unread because such quotes would bring them to {LEAST_DETAILS} details: another model "
            "settles it where it quotes them; else leave the dialogues out, or publish them as unread"
        )
    if risk.totals is not None:
        dollars = dollars_text(risk.totals.usd_committed, at_most=True)
        yield f"cost: at most {dollars} US dollars for {risk.totals.calls:,} calls"
    yield from _exposed_lines(risk)
    if not risk.is_bundled:
        yield "its prompts are not the bundled ones: these answers count for no gate, and the card says whose they are"
    if risk.counted_together is not None:
        shares = shares_text(risk.counted_together.languages())
        yield f"for the release all answers to the bundled question count together: in {shares}"


def _exposed_lines(risk: ReleaseRisk) -> Iterator[str]:
    """The most exposed dialogues, and how their items go to people or stay out."""
    exposed = risk.exposed.exposed
    if not exposed:
        return
    shown = exposed[:MOST_EXPOSED]
    yield f"most exposed: {len(shown):,} of {counted(len(exposed), 'dialogue')} with {LEAST_DETAILS} or more details"
    for one in shown:
        ids = ", ".join(record.id for record in one.dialogue.records)
        yield printable(f"  {ids}: {details_text(one.details)}")
        yield printable(f"    {_quotes(one.details)}")
    if risk.exposed_file is not None:
        place = printable(str(risk.exposed_file))
        yield "to put them to people, with the quotes in a note above each item:"
        yield f"  h2htalk round open crowd {place} --annotators ANNOTATORS.csv --out FOLDER"
    yield "to leave them out, set in the specification:"
    yield printable(f"  exclude = {json.dumps(_excluded(shown), ensure_ascii=False)}")


def _excluded(exposed: Iterable[ExposedDialogue]) -> list[str]:
    """The ids that `exclude` takes: of dialogues, and of items that were made of none."""
    return [one.dialogue.id for one in exposed]
