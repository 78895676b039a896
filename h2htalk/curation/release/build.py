"""Build a release from a workspace and its closed rounds, and check one.

    read_release_spec ─► read_outcome of each round ─► accept ─► select ─► gates ─► data, card, metadata, release.json

A release is written completely or not at all, and not at all while a gate finds something.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from h2htalk.curation.candidates import ANSWER
from h2htalk.curation.curate import summaries
from h2htalk.curation.licences import find_licence, mixture
from h2htalk.curation.release import gates, selection
from h2htalk.curation.release.card import write_card
from h2htalk.curation.release.content import InventedValues, ReleaseContent, ReleaseItem, read_content, write_data
from h2htalk.curation.release.selection import Accepted
from h2htalk.curation.release.settings import TOTAL, Acceptance, ReleaseSpec, read_release_spec, read_stored_spec
from h2htalk.curation.stage_folder import count_values
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import ErasedIds, read_erased, require_erased
from h2htalk.data.files import read_json_object, read_jsonl, write_json, write_jsonl, writer_lock, writing
from h2htalk.data.links import add_link, follow_links, read_links
from h2htalk.data.records import as_path, read_record
from h2htalk.data.releases import release_folder as releases
from h2htalk.data.releases.hub import release_folder
from h2htalk.data.scenario import Persona, bundled_personas, read_personas
from h2htalk.data.splits import load_split
from h2htalk.data.subtasks import SUBTASKS, in_table_order
from h2htalk.errors import ConfigError, DataError, PublishError, counted, quoted, suggest
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder, guideline_files
from h2htalk.text.escaping import printable
from h2htalk.text.help_lines import read_help_lines
from h2htalk.version import __version__


@dataclass(frozen=True, slots=True)
class Release:
    """A release, built or checked; one with findings is not written, and has no path.

    `accepted`: what people kept, where it was built; `notes`: what was left out; `unchecked`: the gates that could not
    run over a copy, and what they need; `reported`: what people should read, which stops nothing.
    """

    path: Path | None
    findings: tuple[gates.Finding, ...]
    content: ReleaseContent
    hash: str = ""
    accepted: Accepted | None = None
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    reported: tuple[gates.Finding, ...] = ()


def build_release(
    spec_path: str | Path, out: str | Path, *, allow: Sequence[str] = (), dry_run: bool = False
) -> Release:
    """Build a release from its TOML file, unless a gate finds something; a dry run writes nothing.

    `out`: a new folder; `OUT.private` is made beside it for what must not be published. `allow`: `GATE:ITEM=REASON`
    each, what is published although a gate about the companion's turns finds it.
    """
    spec, out = read_release_spec(as_path(spec_path, "spec_path")), as_path(out, "out")
    allowed, leaving = gates.read_allowed(allow), [name for name in gates.GATES if name not in ("splits", "quotas")]
    for name in spec.leave_out:
        if name not in leaving:
            choice = f"{suggest(name, leaving)}choose from {', '.join(leaving)}"
            raise ConfigError(f"{spec_path}: leave_out: no gate {quoted(name)} of items; {choice}")
    workspace = Workspace(Path(spec.workspace))
    workspace.require_begun()
    if dry_run:
        return _build(spec, workspace, None, allowed)
    # Nobody is erased while the release that may hold them is built.
    with workspace.locked(), writer_lock(out.with_name(f".{out.name}.part"), "wait for it, or name another --out"):
        for path in (out, releases.private_folder(out)):  # a release never changes
            if os.path.lexists(path) and (not path.is_dir() or any(path.iterdir())):
                raise PublishError(f"{path}: exists already; move it away, or name a new folder with --out")
        return _build(spec, workspace, out, allowed)


def _build(spec: ReleaseSpec, workspace: Workspace, out: Path | None, allowed: Sequence[gates.Allowed]) -> Release:
    """Choose items, run the gates, and write the release; without `out` nothing is written."""
    folders, notes = _round_folders(spec, workspace)
    rounds = [read_outcome(path) for path in folders]
    personas = bundled_personas() | (read_personas(Path(spec.personas)) if spec.personas else {})
    erased = workspace.erased()
    history, tombstones = _read_previous(spec, erased)
    _require_known(spec, rounds, workspace, erased.union(*history.values()))
    # An item that lost a reference and was made again without it has the id under which older versions hold the other.
    accepted = selection.accept(spec, rounds, personas, erased | tombstones)
    cases = tuple(_read_cases(Path(spec.cases), accepted.items, personas)) if spec.cases else ()
    known = InventedValues.of_workspace(workspace, accepted.items)
    context = gates.GateContext(spec, known, history, allowed=tuple(allowed))

    def content_of(splits: Mapping[str, tuple[ReleaseItem, ...]]) -> ReleaseContent:
        used = {one.persona for one in ReleaseContent(splits, cases).records()}
        return ReleaseContent(splits, cases, {name: personas[name] for name in sorted(used)})

    for level in ("item", "release"):  # what is left out by itself is near nothing
        leaving = [gate for name in spec.leave_out if (gate := gates.GATES[name]).level == level]
        found = gates.run_gates(content_of({releases.TEST: accepted.items}), context, leaving)
        left_out = {one.item: f"left out by the gate {one.gate}" for one in reversed(found)}
        items = tuple(item for item in accepted.items if item.id not in left_out)
        refused = {item.id: left_out[item.id] for item in accepted.items if item.id in left_out}
        accepted = Accepted(items, {**accepted.refused, **refused})
    content = content_of(selection.select(accepted.items, spec.quota_of(), spec.seed, history))
    findings = tuple(gates.run_gates(content, context))
    reported = tuple(gates.run_gates(content, context, [gates.USER_HATE]))
    made = Release(None, findings, content, accepted=accepted, notes=notes, reported=reported)
    if findings:
        return made
    hashed = gates.hash_allowed(allowed, content, context)
    if out is None:
        return made
    facts = {**release_facts(spec, workspace, rounds, accepted, content), "allowed": hashed}
    # Before the text is written: an erasure after a kill finds what the build left.
    add_link(workspace.path, "release", out)
    _write(out, context, content, facts, tombstones, rounds)
    return replace(made, path=out, hash=releases.release_hash(out))


def _round_folders(spec: ReleaseSpec, workspace: Workspace) -> tuple[list[Path], tuple[str, ...]]:
    """The rounds of the specification, or closed ones opened from the workspace, with a note for each open one."""
    if spec.rounds:
        return [Path(path) for path in spec.rounds], ()
    linked = (RoundFolder(path) for link, path in follow_links(read_links(workspace.path)) if link.kind == "round")
    chosen = [one for one in linked if one.exists and one.spec().kind in (selection.CROWD, selection.EXPERT)]
    if not chosen:
        raise ConfigError(f"{workspace.path}: no crowd or expert round was opened from it; name them under `rounds`")
    left = sorted(one.path for one in chosen if one.state != "closed")
    notes = tuple(f"{path}: this round is not closed, and left out; name the rounds under `rounds`" for path in left)
    return sorted(one.path for one in chosen if one.path not in left), notes


def _read_previous(spec: ReleaseSpec, erased: Collection[str]) -> tuple[selection.History, frozenset[str]]:
    """The history of the release before, and the ids of items that were erased from it, or that erased ids cover."""
    if not spec.previous:
        return {}, frozenset()
    folder = release_folder(spec.previous)
    manifest, content = read_content(folder)
    old, new = ([int(part) for part in f"{one.version}.0".split(".")[:3]] for one in (manifest, spec))
    if manifest.name != spec.name or old >= new:
        known = f"{manifest.name} {manifest.version}"
        raise ConfigError(f"previous: {known} is not an earlier version of {spec.name} {spec.version}")
    gone, raw = ErasedIds(frozenset(erased)), read_json_object(folder / releases.HISTORY)
    now = {item.id for item in content.items() if gone.covers(item.scenario.to_dict())}
    history = {split: frozenset(map(str, raw.get(split, ()))) for split in releases.SPLITS}
    return history, frozenset(read_erased(folder / releases.TOMBSTONES)) | now


def _require_known(
    spec: ReleaseSpec, rounds: Sequence[RoundOutcome], workspace: Workspace, others: Collection[str]
) -> None:
    """Raise ConfigError unless rounds have the records of their items, of the workspace, and `exclude` known ids."""
    # Links are relative: they hold where workspace and rounds were moved together.
    linked = {path.resolve() for _, path in follow_links(read_links(workspace.path))}
    for one in rounds:
        if missing := sorted({item for item, _ in one.decisions} - set(one.sources)):
            problem = f"the items of this round have no record of what they were made from ({missing[0]})"
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


def _read_cases(folder: Path, items: Sequence[ReleaseItem], personas: Mapping[str, Persona]) -> Iterator[Case]:
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
    context: gates.GateContext,
    content: ReleaseContent,
    facts: Mapping[str, Any],
    tombstones: Collection[str],
    rounds: Sequence[RoundOutcome],
) -> None:
    spec = context.spec
    events = [event for one in rounds for event in RoundFolder(one.path).events() if event["event"] == "closed"]
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
        place = str(releases.private_folder(out))  # whoever moves release and workspace together moves that, too
        write_json(private / releases.SPEC, {"place": place, **asdict(spec)})
        replace(context.surrogates, allow=spec.allow).write(private, content.items())
        # An erasure that follows a kill between the two removes the private folder that has no name yet.
        for made, target in ((new, out), (private, releases.private_folder(out))):
            if target.is_dir():
                target.rmdir()  # empty: checked before the work began
            os.replace(made, target)


def release_lines(release: Release, most: int | None = 20) -> Iterator[str]:
    """Say what was accepted, refused and chosen, and what the gates found: of each at `most` so many, None: all."""
    accepted, content = release.accepted, release.content
    rows = {f"config {config}": counts for config, counts in content.configs().items()}
    yield from release.notes
    if accepted is not None:
        yield f"accepted: {len(accepted.items):,} of {counted(len(accepted.items) + len(accepted.refused), 'item')}"
        for reason, count in count_values(accepted.refused.values()).items():
            yield f"  refused: {reason}: {count:,}"
        chosen = {split: Counter(item.scenario.subtask for item in own) for split, own in content.splits.items()}
        names = in_table_order(chain(*chosen.values()))
        rows = {name: {split: own[name] for split, own in chosen.items()} for name in names} | rows
    for name, counts in rows.items():
        yield f"{name}: {', '.join(f'{split} {count:,}' for split, count in counts.items())}"
    for gate in (*gates.GATES.values(), gates.USER_HATE):
        if found := [one for one in (*release.findings, *release.reported) if one.gate == gate.name]:
            kind = "report" if gate is gates.USER_HATE else "gate"
            yield f"{kind} {gate.name}: {gate.stops}: {counted(len(found), 'finding')}"
            shown = (f"{one.item}: {one.detail}" if one.item else one.detail for one in found[:most])
            yield from (f"  {printable(line)}" for line in shown)  # votes may be anybody's
            if most is not None and len(found) > most:
                yield f"  and {len(found) - most:,} more (--all lists them)"
    yield from release.unchecked


def release_facts(
    spec: ReleaseSpec, workspace: Workspace, rounds: Sequence[RoundOutcome], accepted: Accepted, content: ReleaseContent
) -> dict[str, Any]:
    """The facts of a release, as `release.json` holds them for the card: plain data without a text of an item."""
    models = {name: workspace.stage(name).settings().get("model") for name in ("compose", "review")}
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
        }
        held.append(facts)
    return {
        "made_with": f"h2htalk {__version__}",
        "funnel": [
            *({"stage": one.stage, "read": one.counts.read, "kept": one.counts.kept} for one in summaries(workspace)),
            {"stage": "people", "read": len(accepted.items) + len(accepted.refused), "kept": len(accepted.items)},
            {"stage": "release", "read": len(accepted.items), "kept": sum(map(len, content.splits.values()))},
        ],
        "refused": count_values(accepted.refused.values()),
        "quotas": spec.quota_of(),
        "acceptance": asdict(spec.acceptance),
        "rounds": held,
        "models": {name: model for name, model in models.items() if model},
        "gates": {gate.name: gate.stops for gate in gates.GATES.values()},
        "other_splits": list(spec.other_splits),
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
                if (languages := [one.scenario.language for one in own if one.scenario.subtask == subtask])
            }
            for split, own in content.splits.items()
        },
        "tags": {name: count_values(getattr(one.tags, name) for one in items) for name in releases.TAGS},
        "sources": {
            name: {"licence": ", ".join(sorted(set(licences))), "items": len(licences)}
            for name, licences in sorted(sources.items())
        },
        "reference_origins": count_values("answer" if one.startswith(ANSWER) else one for one in origins),
        "references": count_values(str(len(one.references)) for one in items),
    }


def check_release(folder: str | Path) -> Release:
    """Run all gates over a release, and hold its files against its manifest; or over a split.

    `folder`: whatever is a split for `load_split`; a release, also `hub:OWNER/NAME@TAG`, is checked whole.

    Names, dates of birth and addresses of nobody stand in `invented.txt` of a split's folder. Which values
    anonymisation invented is known from the private folder beside the release or split. A copy without it is
    `unchecked` for personal data. Raises DataError.
    """
    name = str(folder)
    if not releases.is_release(Path(name)) and (not name.startswith(releases.HUB) or "#" in name):
        return _check_split(name)
    folder = release_folder(name)
    releases.verify_files(folder, releases.read_manifest(folder))
    private = releases.private_folder(folder)
    manifest, content = read_content(folder)
    try:
        spec, known = read_stored_spec(private / releases.SPEC), InventedValues.read(private)
    except FileNotFoundError:
        facts, where, known = manifest.facts, f"{folder / releases.MANIFEST}: facts", None
        quotas = {TOTAL: 0} | read_record(dict[str, int], facts.get("quotas", {}), f"{where}.quotas")
        acceptance = read_record(Acceptance, facts.get("acceptance", {}), f"{where}.acceptance")
        given, dev = (manifest.name, manifest.version, manifest.licence, "."), quotas.pop(releases.DEV, 0)
        spec = ReleaseSpec(*given, quotas=quotas, dev=dev, other_splits=(), acceptance=acceptance)
    allowed = gates.read_hashed(manifest.facts.get("allowed", ()), str(folder / releases.MANIFEST))
    notes = tuple(printable(f"allowed by the owner: {one}") for one in allowed)
    context = gates.GateContext(spec, known or InventedValues(), allowed=allowed)
    release = Release(folder, (), content, releases.release_hash(folder), notes=notes)
    return _run(release, context, () if known else ("personal_data",))


def require_erased_release(folder: Path) -> None:
    """Raise DataError where the workspace of a release, if it is at hand, erased somebody whose words it holds."""
    try:
        workspace = Workspace(Path(read_stored_spec(releases.private_folder(folder) / releases.SPEC).workspace))
    except FileNotFoundError:
        return
    require_erased(workspace.path)
    erased = ErasedIds(workspace.erased())
    if any(map(erased.covers, releases.item_rows(folder, releases.read_manifest(folder)))):
        advice = f"repeat `h2htalk curate erase` with `--also {folder}`"
        raise DataError(f"{folder}: holds items that were erased from {workspace.path}: {advice}")


def _check_split(name: str) -> Release:
    split = load_split(name)
    items = () if split.cases else tuple(map(ReleaseItem, split.scenarios))
    licences = {one for item in items for one in item.licences()} | {case.licence for case in split.cases}
    named = find_licence(split.licence)
    mixed = None if named or len(licences) < 2 else mixture(licences)
    licence = named.id if named else mixture(licences) or "CC0-1.0"
    known = InventedValues.find(name, items) if split.surrogates else InventedValues()
    allow = (*(service.number for service in read_help_lines().services), *(known.allow if known else ()))
    spec = ReleaseSpec("split", "1.0.0", licence, ".", quotas={TOTAL: 0}, allow=allow, other_splits=())
    notes = (f"licences: the split names none; its items may be released under {mixed}",) if mixed else ()
    content = ReleaseContent({releases.TEST: items}, split.cases, split.personas)
    private = bool(split.references_sha256)
    given = gates.GateContext(spec, known or InventedValues(), invented=frozenset(split.invented), unread=private)
    votes = [gate.name for gate in gates.GATES.values() if gate.reads == "votes"]
    left_out = votes if known else [*votes, "personal_data"]
    return _run(Release(None, (), content, split.fingerprint, notes=notes), given, left_out)


def _run(release: Release, context: gates.GateContext, left_out: Collection[str]) -> Release:
    chosen = [gate for gate in gates.GATES.values() if gate.name not in left_out]
    found = gates.run_gates(release.content, context, chosen)
    lacking = {"personal data": "personal_data" in left_out, "private references": context.unread}
    unchecked = tuple(f"{name}: not checked, needs the private folder" for name, lacks in lacking.items() if lacks)
    reported = tuple(gates.run_gates(release.content, context, [gates.USER_HATE]))
    return replace(release, findings=tuple(found), unchecked=unchecked, reported=reported)
