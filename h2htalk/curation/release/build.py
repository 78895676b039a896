"""Build a release from a workspace and its closed rounds, and check one.

    read_release_spec ─► read_outcome of each round ─► accept ─► select ─► gates ─► data, card, metadata, release.json

A release is written completely or not at all, and not at all while a gate finds something. One of which nobody has
read some items is written, and is not published.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from h2htalk.curation.candidates import ANSWER
from h2htalk.curation.curate import summaries
from h2htalk.curation.licences import find_licence, mixture
from h2htalk.curation.reading.recall import card_lines
from h2htalk.curation.release import gates, selection
from h2htalk.curation.release.card import chats_of_people, write_card
from h2htalk.curation.release.content import (
    InventedValues,
    ReleaseContent,
    ReleaseItem,
    read_content,
    write_data,
)
from h2htalk.curation.release.exposed import (
    EXPOSURE,
    note_of_round,
    read_exposure_facts,
    read_exposures,
)
from h2htalk.curation.release.gate_context import Allowed, Finding, GateContext
from h2htalk.curation.release.previous import Previous, changes_lines, changes_since, read_previous
from h2htalk.curation.release.read_gates import Untested, mark_hints, untested_gates
from h2htalk.curation.release.read_summary import read_facts
from h2htalk.curation.release.readings import (
    Readings,
    collect_readings,
    read_readings,
    with_release_reads,
)
from h2htalk.curation.release.selection import Accepted
from h2htalk.curation.release.settings import (
    ALL,
    TOTAL,
    Acceptance,
    Quota,
    ReleaseSpec,
    read_release_spec,
    read_stored_spec,
)
from h2htalk.curation.released import describe_stale_card
from h2htalk.curation.stage_folder import count_values
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import STUDIES, Case
from h2htalk.data.erasure.folder_kinds import ErasedIds
from h2htalk.data.files import read_jsonl, write_json, write_jsonl, writer_lock, writing
from h2htalk.data.links import add_link, follow_links, read_links
from h2htalk.data.model_names import without_path
from h2htalk.data.readers.item_reads import is_marked_exposed
from h2htalk.data.records import read_record
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.releases.hub import release_folder
from h2htalk.data.scenario import TAGS, Persona, Scenario, bundled_personas, read_personas
from h2htalk.data.settings import as_path
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, DataError, PublishError, quoted, suggest
from h2htalk.extras import RELEASE_GATES
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder, guideline_files
from h2htalk.text.escaping import printable
from h2htalk.text.help_lines import read_help_lines
from h2htalk.version import __version__

ALLOWED_UNREAD = "allowed_unread"  # a key of the facts
STOPPED_EARLY = (
    f"no other gate ran: people accepted fewer items than `[quotas]` asks for; write smaller numbers, or `{TOTAL} = "
    f'"{ALL}"` for whatever they accepted (`--dry-run` runs every gate all the same)'
)


@dataclass(frozen=True, slots=True)
class Release:
    """A release, built or checked; one with findings is not written, and has no path.

    `accepted`: what people kept, where it was built; `notes`: what was left out; `unchecked`: the gates that could not
    run over a copy, and what they need; `reported`: what people should read, which stops nothing; `hints`: what words
    point at in the texts of items, unread ones first; `untested`: the gates for which items are unread; `allowed`: what
    the owner publishes although a gate finds it.
    """

    path: Path | None
    findings: tuple[Finding, ...]
    content: ReleaseContent
    hash: str = ""
    accepted: Accepted | None = None
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    reported: tuple[Finding, ...] = ()
    hints: tuple[Finding, ...] = ()
    untested: tuple[Untested, ...] = ()
    allowed: tuple[Allowed, ...] = ()

    @property
    def is_tested(self) -> bool:
        """Whether every gate could run, and nothing is unread but what the owner allows."""
        return not self.unchecked and all(one.allowed for one in self.untested)


def build_release(
    spec_path: str | Path, out: str | Path, *, allow: Sequence[str] = (), dry_run: bool = False
) -> Release:
    """Build a release from its TOML file, unless a gate finds something; a dry run writes nothing.

    `out`: a new folder; `OUT.private` is made beside it for what must not be published. `allow`: `GATE:ITEM=REASON`
    each, what is published although a gate about the companion's turns finds it, or `GATE:unread=REASON`, that what
    nobody has read for a gate is published, with `GATE:unread:N=REASON` at most N items of it. A release of which other
    items are unread is written, but not published. Quotas that the accepted items cannot fill stop a build before any
    gate runs; a dry run says what the other gates find as well.
    """
    RELEASE_GATES.require()
    out = as_path(out, "out")
    allowed = gates.read_allowed(allow)
    spec, workspace = open_spec(spec_path)
    if dry_run:
        return _build(spec, workspace, None, allowed)
    # Nobody is erased while the release that may hold them is built.
    with (
        workspace.locked(),
        writer_lock(out.with_name(f".{out.name}.part"), "wait for it, or name another --out"),
    ):
        for path in (out, releases.private_folder(out)):  # a release never changes
            if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
                raise PublishError(
                    f"{path}: exists already; move it away, or name a new folder with --out"
                )
        return _build(spec, workspace, out, allowed)


def open_spec(spec_path: str | Path) -> tuple[ReleaseSpec, Workspace]:
    """Read the TOML file of a release, and find its workspace. Raises ConfigError, DataError without a workspace."""
    spec = read_release_spec(as_path(spec_path, "spec_path"))
    leaving = [name for name in gates.gates_of(spec) if name not in ("splits", "quotas")]
    for name in spec.leave_out:
        if name == gates.OF_RISK.name and spec.risk is None:
            raise ConfigError(
                f"{spec_path}: leave_out: the gate {name} exists where `risk` is set; set it, or remove {name}"
            )
        if name not in leaving:
            choice = f"{suggest(name, leaving)}choose from {', '.join(leaving)}"
            raise ConfigError(f"{spec_path}: leave_out: no gate {quoted(name)} of items; {choice}")
    workspace = Workspace(Path(spec.workspace))
    workspace.require_begun()
    return spec, workspace


@dataclass(frozen=True, slots=True)
class Choice:
    """What a release holds, and what its gates know.

    `notes`: rounds that were left out; `previous`: the release before.
    """

    content: ReleaseContent
    context: GateContext
    accepted: Accepted
    rounds: tuple[RoundOutcome, ...]
    notes: tuple[str, ...]
    previous: Previous


@dataclass(frozen=True, slots=True)
class Pool:
    """What a release is chosen from: what people accepted, and the cases.

    `previous` and `notes` as in `Choice`.
    """

    accepted: Accepted
    cases: tuple[Case, ...]
    personas: Mapping[str, Persona]
    rounds: tuple[RoundOutcome, ...]
    notes: tuple[str, ...]
    previous: Previous

    def content(self, splits: Mapping[str, tuple[ReleaseItem, ...]]) -> ReleaseContent:
        """A release of these splits, with the cases and whoever is the persona of one of them."""
        used = {record.persona for record in ReleaseContent(splits, self.cases).records()}
        return ReleaseContent(
            splits, self.cases, {name: self.personas[name] for name in sorted(used)}
        )


def accept_items(spec: ReleaseSpec, workspace: Workspace) -> Pool:
    """Read what people decided: the items that a release may hold."""
    folders, notes = _round_folders(spec, workspace)
    rounds = [read_outcome(path) for path in folders]
    personas = bundled_personas() | (read_personas(Path(spec.personas)) if spec.personas else {})
    erased = workspace.erased()
    previous = read_previous(spec, erased)
    _require_known(spec, rounds, workspace, erased.union(*previous.history.values()))
    # An item that lost a reference and was made again without it has the id under which older versions hold the other.
    accepted = selection.accept(spec, rounds, personas, erased | previous.tombstones)
    cases = tuple(_read_cases(Path(spec.cases), accepted.items, personas)) if spec.cases else ()
    return Pool(
        accepted=accepted,
        cases=cases,
        personas=personas,
        rounds=tuple(rounds),
        notes=notes,
        previous=previous,
    )


def unmet_quotas(spec: ReleaseSpec, pool: Pool) -> list[Finding]:
    """The quotas that no choice among the accepted items can fill; nothing is computed over their texts."""
    accepted = pool.accepted.items
    if spec.leave_out:
        # What gates will leave out changes which families `dev` takes: only the bare counts are certain.
        splits = {releases.TEST: accepted, releases.DEV: accepted}
    else:
        splits = selection.select(accepted, spec.quota_of(), spec.seed, pool.previous.history)
    context = GateContext(spec, history=pool.previous.history)
    return gates.GATES["quotas"].run(ReleaseContent(splits, pool.cases), context)


def choose(
    spec: ReleaseSpec, workspace: Workspace, pool: Pool, allowed: Sequence[Allowed] = ()
) -> Choice:
    """Choose the items of a release, and collect who has read them."""
    accepted = pool.accepted
    known = InventedValues.of_workspace(workspace, accepted.items)
    records: list[Scenario | Case] = [*(item.scenario for item in accepted.items), *pool.cases]
    readings = collect_readings(workspace, pool.rounds, accepted.items)
    readings = with_release_reads(readings, workspace, records)
    context = GateContext(
        spec,
        known,
        pool.previous.history,
        allowed=tuple(allowed),
        readings=readings,
        exposures=read_exposures(workspace.path),
    )

    for level in ("item", "release"):  # what is left out by itself is near nothing
        leaving = [
            gate for name in spec.leave_out if (gate := gates.leaving_gate(name)).level == level
        ]
        if not leaving:
            continue
        chosen = pool.content({releases.TEST: accepted.items})
        [found] = gates.run_groups(chosen, context, [leaving], "finding items to leave out")
        left_out = {one.item: f"left out by the gate {one.gate}" for one in reversed(found)}
        items = tuple(item for item in accepted.items if item.id not in left_out)
        refused = {item.id: left_out[item.id] for item in accepted.items if item.id in left_out}
        accepted = replace(accepted, items=items, refused={**accepted.refused, **refused})
    content = pool.content(
        selection.select(accepted.items, spec.quota_of(), spec.seed, pool.previous.history)
    )
    return Choice(
        content=content,
        context=context,
        accepted=accepted,
        rounds=pool.rounds,
        notes=pool.notes,
        previous=pool.previous,
    )


def _build(
    spec: ReleaseSpec, workspace: Workspace, out: Path | None, allowed: Sequence[Allowed]
) -> Release:
    """Choose items, run the gates, and write the release; without `out` nothing is written."""
    pool = accept_items(spec, workspace)
    short = unmet_quotas(spec, pool)
    if short and out is not None:
        nothing = ReleaseContent({})
        return Release(
            None, tuple(short), nothing, accepted=pool.accepted, notes=(*pool.notes, STOPPED_EARLY)
        )
    chosen = choose(spec, workspace, pool, allowed)
    content, context, accepted = chosen.content, chosen.context, chosen.accepted
    changes = changes_since(chosen.previous, accepted, content)
    notes = (*chosen.notes, *changes_lines(changes))
    made = Release(None, (), content, accepted=accepted, notes=notes, allowed=tuple(allowed))
    made = _run(made, context)
    if made.findings:
        return made
    hashed = gates.hash_allowed(allowed, content, context)
    allowed_unread = gates.count_unread(allowed, made.untested, spec.risk)
    made = replace(made, untested=gates.allow_unread(made.untested, allowed_unread))
    if out is None:
        return made
    facts = {**release_facts(spec, workspace, chosen.rounds, accepted, content), "allowed": hashed}
    if changes:
        facts["changes"] = changes
    facts[ALLOWED_UNREAD] = [asdict(one) for one in allowed_unread]
    readings = context.readings.restricted({record.id for record in content.records()})
    facts |= {**readings.facts(), "reads": read_facts(content, context, made.untested)}
    facts[EXPOSURE] = context.exposure(content).to_dict()
    # Before the text is written: an erasure after a kill finds what the build left.
    add_link(workspace.path, "release", out)
    _write(out, context, content, facts, chosen.previous.tombstones, chosen.rounds, readings)
    return replace(made, path=out, hash=releases.release_hash(out))


def _round_folders(spec: ReleaseSpec, workspace: Workspace) -> tuple[list[Path], tuple[str, ...]]:
    """The rounds of the specification, or closed ones opened from the workspace, with a note for each open one."""
    if spec.rounds:
        for path in spec.rounds:
            if _is_of_exposed(RoundFolder(Path(path))):
                raise ConfigError(
                    f"rounds: {path}: its people were asked about what `release risk` quoted, so it accepts no item; "
                    "take it out of `rounds`"
                )
        return [Path(path) for path in spec.rounds], ()
    linked = (
        RoundFolder(path)
        for link, path in follow_links(read_links(workspace.path))
        if link.kind == "round"
    )
    deciding = [
        one
        for one in linked
        if one.exists and one.spec().kind in (selection.CROWD, selection.EXPERT)
    ]
    of_exposed = [one for one in deciding if _is_of_exposed(one)]
    chosen = [one for one in deciding if one not in of_exposed]
    if not chosen:
        raise ConfigError(
            f"{workspace.path}: no crowd or expert round was opened from it; name them under `rounds`"
        )
    left = sorted(one.path for one in chosen if one.state != "closed")
    notes = [
        f"{path}: this round is not closed, and left out; name the rounds under `rounds`"
        for path in left
    ]
    notes += [
        note_of_round(one, spec.exclude) for one in sorted(of_exposed, key=lambda one: one.path)
    ]
    return sorted(one.path for one in chosen if one.path not in left), tuple(filter(None, notes))


def _is_of_exposed(folder: RoundFolder) -> bool:
    """Whether a round was opened from what `release risk` wrote, whatever that file was called."""
    return any(map(is_marked_exposed, folder.sources().values()))


def _require_known(
    spec: ReleaseSpec, rounds: Sequence[RoundOutcome], workspace: Workspace, others: Collection[str]
) -> None:
    """Raise ConfigError unless rounds have the records of their items, of the workspace, and settings known ids."""
    # Links are relative: they hold where workspace and rounds were moved together.
    linked = {path.resolve() for _, path in follow_links(read_links(workspace.path))}
    for one in rounds:
        if missing := sorted({item for item, _ in one.decisions} - set(one.sources)):
            problem = (
                f"the items of this round have no record of what they were made from ({missing[0]})"
            )
            raise ConfigError(f"{one.path}: {problem}; open it from a workspace's stage")
        origin = RoundFolder(one.path).source_paths().get("workspace")
        of_workspace = origin is not None and Path(origin).resolve() == workspace.path.resolve()
        if not of_workspace and one.path.resolve() not in linked:
            problem = f"was opened from {origin or 'no workspace'}, not from {workspace.path}"
            raise ConfigError(f"{one.path}: this round {problem}, which the specification names")
    records = [record for one in rounds for record in one.sources.values()]
    for name in spec.exclude:
        if name not in others and not any(map(ErasedIds(frozenset({name})).covers, records)):
            raise ConfigError(f"exclude: no item, dialogue or person has the id {quoted(name)}")
    items = set[str]().union(*(outcome.sources for outcome in rounds))
    for name in [name for name in spec.crisis_risk if name not in items]:
        advice = f"{suggest(name, items)}`h2htalk show ROUND` prints the ids"
        raise ConfigError(f"crisis_risk: no item of a round has the id {quoted(name)}; {advice}")


def _read_cases(
    folder: Path, items: Sequence[ReleaseItem], personas: Mapping[str, Persona]
) -> Iterator[Case]:
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        raise ConfigError(f"cases: {folder} holds no .jsonl file")
    seen = {item.id: "a round" for item in items}
    for path in paths:
        for where, record in read_jsonl(path, unique_keys=True):
            case = Case.from_dict(record, where)
            selection.require_persona(case.persona, personas, where)
            if case.id in seen:
                raise DataError(f"{where}: duplicate id {case.id} (first in {seen[case.id]})")
            seen[case.id] = where
            yield case


def _write(
    out: Path,
    context: GateContext,
    content: ReleaseContent,
    facts: Mapping[str, Any],
    tombstones: Collection[str],
    rounds: Sequence[RoundOutcome],
    readings: Readings,
) -> None:
    spec = context.spec
    events = [
        event
        for one in rounds
        for event in RoundFolder(one.path).events()
        if event["event"] == "closed"
    ]
    date = spec.date or max(str(event["when"])[:10] for event in events)
    with writing(out), releases.work_folders(out) as (new, private):
        new.mkdir(parents=True)
        private.mkdir(mode=0o700)
        canary = releases.canary_of(spec.name)
        write_data(content, new, canary)
        history = {split: set(context.history.get(split, ())) for split in releases.SPLITS}
        for split, items in content.splits.items():
            history[split].update(*map(ReleaseItem.family, items))
        write_json(new / releases.HISTORY, {split: sorted(ids) for split, ids in history.items()})
        readings.write(new)
        if tombstones:
            write_jsonl(new / releases.TOMBSTONES, ({"id": name} for name in sorted(tombstones)))
        for one in rounds:
            for path in guideline_files(one.path):
                target = new / "guidelines" / f"{one.spec.kind}-{path.name}"
                target.parent.mkdir(exist_ok=True)
                shutil.copyfile(path, target)
        given = (spec.name, spec.version, spec.licence, spec.description)
        manifest = releases.Manifest(*given, date, canary, content.configs(), {}, facts)
        write_card(new, manifest, spec.card)
        replace(manifest, files=releases.hash_files(new)).write(new)
        place = str(
            releases.private_folder(out)
        )  # whoever moves release and workspace together moves that, too
        write_json(private / releases.SPEC, {"place": place, **asdict(spec)})
        allow = tuple(dict.fromkeys((*spec.allow, *context.surrogates.allow)))
        replace(context.surrogates, allow=allow).write(private, content.items())
        # An erasure that follows a kill between the two removes the private folder that has no name yet.
        for made, target in ((new, out), (private, releases.private_folder(out))):
            if target.is_dir():
                target.rmdir()  # empty: checked before the work began
            os.replace(made, target)


def release_facts(
    spec: ReleaseSpec,
    workspace: Workspace,
    rounds: Sequence[RoundOutcome],
    accepted: Accepted,
    content: ReleaseContent,
) -> dict[str, Any]:
    """The facts of a release, as `release.json` holds them for the card: plain data without a text of an item."""
    models = {name: workspace.stage(name).settings().get("model") for name in ("compose", "review")}
    models = {
        name: without_path(model) if isinstance(model, str) else model
        for name, model in models.items()
    }
    held = []
    for one in rounds:
        # What came: a skip is no annotation, and the settings say only what was asked for.
        done = {(item, who) for item, who, question in one.annotations if question != SKIPPED}
        each = Counter(item for item, _ in done if item in one.sources)
        numbers = [each[item] for item in one.sources]
        facts = {
            "kind": one.spec.kind,
            "where": one.spec.where,
            "items": len(one.sources),
            "annotators": len({who for _, who in done}),
            "annotations": sum(numbers),
            "annotations_an_item": [min(numbers, default=0), max(numbers, default=0)],
            "minutes_an_item": one.spec.minutes,
            "agreement": dict(one.agreement),
            "shared_answers": None if one.shared_answers is None else len(one.shared_answers),
        }
        held.append(facts)
    return {
        "made_with": f"h2htalk {__version__}",
        "funnel": [
            *(
                {"stage": one.stage, "read": one.counts.read, "kept": one.counts.kept}
                for one in summaries(workspace)
            ),
            {
                "stage": "people",
                "read": len(accepted.items) + len(accepted.refused),
                "kept": len(accepted.items),
            },
            {
                "stage": "release",
                "read": len(accepted.items),
                "kept": sum(map(len, content.splits.values())),
            },
        ],
        "refused": count_values(accepted.refused.values()),
        "quotas": spec.quota_of(),
        "acceptance": asdict(spec.acceptance),
        "rounds": held,
        "models": {name: model for name, model in models.items() if model},
        "gates": {gate.name: gate.stops for gate in gates.gates_of(spec).values()},
        "other_splits": list(spec.other_splits),
        "recall": card_lines(workspace),
        "chats_of_people": chats_of_people(workspace),
        **content_facts(content),
    }


def content_facts(content: ReleaseContent) -> dict[str, Any]:
    """The facts that follow from the content."""
    items = [item.scenario for item in content.items()]
    sources: dict[str, list[str]] = defaultdict(list)
    for one in items:
        sources[str(one.provenance.get("source", "unknown"))].append(one.licence)
    origins = [str(note["origin"]) for item in content.items() for note in item.notes()]
    return {
        "counts": {
            split: {
                subtask: count_values(languages)
                for subtask in SUBTASKS
                if (
                    languages := [
                        one.scenario.language for one in own if one.scenario.subtask == subtask
                    ]
                )
            }
            for split, own in content.splits.items()
        },
        "tags": {name: count_values(getattr(one.tags, name) for one in items) for name in TAGS},
        "sources": {
            name: {"licence": ", ".join(sorted(set(licences))), "items": len(licences)}
            for name, licences in sorted(sources.items())
        },
        "reference_origins": count_values(
            "answer" if one.startswith(ANSWER) else one for one in origins
        ),
        "references": count_values(str(len(one.references)) for one in items),
    }


def check_release(folder: str | Path) -> Release:
    """Run all gates over a release, and hold its files against its manifest; or over a split.

    `folder`: whatever is a split for `load_split`; a release, also `hub:OWNER/NAME@TAG`, is checked whole.

    Names, dates of birth and addresses of nobody stand in `invented.txt` of a split's folder. Which values
    anonymisation invented is known from the private folder beside the release or split. A copy without it is
    `unchecked` for personal data. Raises DataError.
    """
    RELEASE_GATES.require()
    name = str(folder)
    if not releases.is_release(Path(name)) and (not name.startswith(releases.HUB) or "#" in name):
        return _check_split(name)
    folder = release_folder(name)
    releases.verify_files(folder, releases.read_manifest(folder))
    private = releases.private_folder(folder)
    manifest, content = read_content(folder)
    readings = read_readings(folder, manifest, content)
    allowed_unread = gates.read_allowed_unread(
        manifest.facts.get(ALLOWED_UNREAD, ()), str(folder / releases.MANIFEST)
    )
    try:
        spec, known = read_stored_spec(private / releases.SPEC), InventedValues.read(private)
    except FileNotFoundError:
        facts = manifest.facts
        where = f"{folder / releases.MANIFEST}: facts"
        known = None
        stored = read_record(dict[str, Quota], facts.get("quotas", {}), f"{where}.quotas")
        quotas: dict[str, Quota] = {TOTAL: 0, **stored}
        acceptance = read_record(Acceptance, facts.get("acceptance", {}), f"{where}.acceptance")
        given = manifest.name, manifest.version, manifest.licence, "."
        dev_quota = quotas.pop(releases.DEV, 0)
        dev = dev_quota if isinstance(dev_quota, int) else 0
        spec = ReleaseSpec(*given, quotas=quotas, dev=dev, other_splits=(), acceptance=acceptance)
    allowed = gates.read_hashed(manifest.facts.get("allowed", ()), str(folder / releases.MANIFEST))
    notes = tuple(printable(f"allowed by the owner: {one}") for one in allowed)
    if not readings.recorded:
        notes += (
            f"{folder}: has no reads.jsonl (a release of an earlier version): nobody on record has read it",
        )
    measured = read_exposure_facts(manifest.facts, str(folder / releases.MANIFEST))
    context = GateContext(
        replace(spec, risk=measured.limit),
        known or InventedValues(),
        allowed=allowed,
        readings=readings,
        measured=measured,
    )
    release = Release(
        folder, (), content, releases.release_hash(folder), notes=notes, allowed=allowed
    )
    checked = _run(release, context, () if known else ("personal_data",))
    stale = describe_stale_card(manifest)
    if stale:
        stale_line = f"card and figures: not those of the items: {stale}"
        checked = replace(checked, unchecked=(*checked.unchecked, stale_line))
    return replace(checked, untested=gates.allow_unread(checked.untested, allowed_unread))


def require_tested_release(folder: Path) -> None:
    """Raise PublishError where items of a release are unread for a gate, and its owner does not allow that."""
    manifest = releases.read_manifest(folder)
    splits: dict[str, tuple[ReleaseItem, ...]] = {}
    for split in releases.SPLITS:
        scenarios = releases.read_items(folder, manifest, "", split)
        splits[split] = tuple(ReleaseItem(one) for one in scenarios if isinstance(one, Scenario))
    cases = [
        one
        for study in STUDIES
        for one in releases.read_items(folder, manifest, study, releases.TEST)
    ]
    content = ReleaseContent(splits, tuple(one for one in cases if isinstance(one, Case)))
    where = str(folder / releases.MANIFEST)
    allowed = gates.read_allowed_unread(manifest.facts.get(ALLOWED_UNREAD, ()), where)
    measured = read_exposure_facts(manifest.facts, where)
    spec = ReleaseSpec(manifest.name, manifest.version, manifest.licence, ".", risk=measured.limit)
    context = GateContext(
        spec, readings=read_readings(folder, manifest, content), measured=measured
    )
    lacking = [
        one
        for one in gates.allow_unread(untested_gates(content, context), allowed)
        if not one.allowed
    ]
    if lacking:
        counts = ", ".join(f"{one.gate} {one.count()}" for one in lacking)
        read = "`h2htalk release read`"
        if any(one.gate == gates.OF_RISK.name for one in lacking):
            read = f"{read}, for {gates.OF_RISK.name} `h2htalk release risk`"
        advice = (
            f"have them read ({read}) and build again, or build with --allow GATE:unread=REASON"
        )
        raise PublishError(f"{folder}: not tested: unread items by gate: {counts}; {advice}")


def _check_split(name: str) -> Release:
    split = load_split(name)
    items = () if split.cases else tuple(map(ReleaseItem, split.scenarios))
    licences = {one for item in items for one in item.licences()} | {
        case.licence for case in split.cases
    }
    named = find_licence(split.licence)
    mixed = None if named or len(licences) < 2 else mixture(licences)
    licence = named.id if named else mixture(licences) or "CC0-1.0"
    known = InventedValues.find(name, items) if split.surrogates else InventedValues()
    allow = (
        *(service.number for service in read_help_lines().services),
        *(known.allow if known else ()),
    )
    spec = ReleaseSpec(
        "split", "1.0.0", licence, ".", quotas={TOTAL: 0}, allow=allow, other_splits=()
    )
    notes = (
        (f"licences: the split names none; its items may be released under {mixed}",)
        if mixed
        else ()
    )
    content = ReleaseContent({releases.TEST: items}, split.cases, split.personas)
    private = bool(split.references_sha256)
    given = GateContext(
        spec, known or InventedValues(), invented=frozenset(split.invented), unread=private
    )
    votes = [gate.name for gate in gates.GATES.values() if gate.reads == "votes"]
    left_out = votes if known else [*votes, "personal_data"]
    return _run(Release(None, (), content, split.fingerprint, notes=notes), given, left_out)


def _run(release: Release, context: GateContext, left_out: Collection[str] = ()) -> Release:
    """The release with what the gates find in it, what words point at, and which gates nobody's reading covers."""
    content = release.content
    chosen = [gate for gate in gates.gates_of(context.spec).values() if gate.name not in left_out]
    lacking = {"personal data": "personal_data" in left_out, "private references": context.unread}
    groups = [list(gates.HINTS.values()), chosen, [gates.USER_HATE, gates.KNOWN_USERS]]
    pointed_at, findings, reported = gates.run_groups(content, context, groups)
    return replace(
        release,
        findings=tuple(findings),
        unchecked=tuple(
            f"{name}: not checked, needs the private folder"
            for name, lacks in lacking.items()
            if lacks
        ),
        reported=tuple(reported),
        hints=mark_hints(pointed_at, content, context),
        untested=untested_gates(content, context),
    )
