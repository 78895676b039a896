"""The life of a round: open it, collect annotations, close it, reopen it, remove an annotator.

Every step can be interrupted and repeated: it stores annotators first, then assignment sets, then what is published.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from h2htalk.data.erasure.folder_kinds import remove_for_good
from h2htalk.data.files import json_line, write_json, write_jsonl, write_text
from h2htalk.data.links import add_link, link_folder, remove_link
from h2htalk.data.records import as_path
from h2htalk.data.scenario import is_workspace
from h2htalk.errors import H2HTalkError, RoundError, counted
from h2htalk.rounds.aggregation.decisions import ADJUDICATION, Decision, apply_adjudications, decide
from h2htalk.rounds.annotations import changes
from h2htalk.rounds.annotators import (
    Annotator,
    annotators_fingerprint,
    merge_annotators,
    placeholder_annotators,
    read_annotators,
)
from h2htalk.rounds.assignment.assignments import AssignmentSet
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    below_overlap,
    describe_below_overlap,
    eligible_annotators,
    initial_requests,
    make_assignment_set,
    pending_annotations,
)
from h2htalk.rounds.item_sources import ItemSource, read_items
from h2htalk.rounds.items import Item, check_values
from h2htalk.rounds.outcome import (
    RoundOutcome,
    read_adjudication,
    read_adjudications,
    round_reference,
    store_adjudications,
    write_statistics,
)
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.round_folder import (
    ANNOTATORS,
    ASSIGNMENT_SETS,
    PATHS,
    SALT_BYTES,
    SOURCES,
    RoundFolder,
    RoundState,
    items_fingerprint,
    read_state,
)
from h2htalk.rounds.settings import PLACEHOLDERS, RoundSpec
from h2htalk.rounds.status import Status, require_complete, status_of
from h2htalk.rounds.texts.interface import guidelines

# What `_write_round` writes, with `round.json` last: without it there is no round.
WRITTEN = ("round.json", "items.jsonl", SOURCES, "guidelines", "private", ".gitignore")

# --- Open -------------------------------------------------------------------------------------------------------------


def open_round(spec: RoundSpec, out: str | Path) -> tuple[Status, list[str]]:
    """Open a round, or complete an interrupted opening. A round that is open already does not change.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.RoundSpec(kind="crowd", items="mini", overlap=1)
        >>> status, notes = h2htalk.open_round(spec, "rounds/crowd")
        >>> (status.state, status.items)
        ('open', 352)

    Return its status, and messages of the platform for the manager. Raise RoundError, DataError or ConfigError if the
    round is closed, `out` holds another round, an input is invalid, or the platform cannot be reached. Where nothing
    was published, nothing of a round is left.
    """
    spec = RoundSpec.from_dict(spec.to_dict(), "RoundSpec")
    folder = RoundFolder(as_path(out, "out"))
    # The round that the items came from may be open again; a source may still hold items that were erased here.
    stored = _is_opened(folder, spec) and (folder.erased_items() or {"adjudicates", "continues"} & {*folder.manifest()})
    source = ItemSource(folder.items(), {}) if stored else read_items(str(spec.items), spec.status, spec.kind)
    questions = questions_for(spec.kind, [item.labels for item in source.items])
    asked = {question.name for question in questions}
    items = tuple(
        check_values(replace(item, suggested={k: v for k, v in item.suggested.items() if k in asked}), questions)
        for item in source.items
    )
    platform, began = open_platform(spec.where), False
    try:
        with folder.locked():
            # Another process may have opened the round while the items were read.
            if _is_opened(folder, spec):
                _require_same_round(read_state(folder), items)
            else:
                began = True
                first = _write_round(folder, spec, replace(source, items=items), questions, platform.assigns_items)
            platform.check(read_state(folder))
            if began:
                folder.write_records(ASSIGNMENT_SETS, [first])
                began = False
            state = read_state(folder)
            messages = platform.publish(state)
            fewer = below_overlap(spec, items, eligible_annotators(items, state.annotators))
            if state.phase == "partly opened":
                folder.add_event("opened", items=len(items), annotators=len(state.annotators), below_overlap=fewer)
            folder.protect()
            messages += describe_below_overlap(spec, fewer, "eligible annotators")
            return status_of(read_state(folder), Collected()), [*source.notes, *messages]
    except H2HTalkError:
        if began:
            for name in (*WRITTEN, "round.lock"):
                remove_for_good(folder.path / name)
            if origin := _origin(spec):
                remove_link(origin, folder.path)
            with suppress(OSError):
                folder.path.rmdir()  # other files in the folder stay
        raise


def _is_opened(folder: RoundFolder, spec: RoundSpec) -> bool:
    """Return whether items may have been published; raise RoundError if the round is closed or has other settings.

    Nothing is published before an assignment set is written: until then a round may be opened with other settings.
    """
    if not folder.exists or (folder.state == "partly opened" and not folder.assignment_sets()):
        return False
    if folder.state == "closed":
        raise RoundError(
            f"{folder.path}: this round is closed; continue it with `h2htalk round reopen {folder.path}`, or use "
            "another --out for a new round"
        )
    asked = spec.to_dict()
    if names := [key for key, value in folder.spec().to_dict().items() if value != asked[key]]:
        raise RoundError(
            f"{folder.path}: this round was opened with another {', '.join(names)}; use the same settings, or another "
            "--out"
        )
    return True


def _require_same_round(state: RoundState, items: tuple[Item, ...]) -> None:
    """Raise RoundError if a round was opened with other items or annotators.

    A list of annotators that does not exist any more is no change, nor is one that `reopen --annotators` has read.
    """
    state.require_published()
    folder, path = state.folder, Path(state.spec.annotators)
    if state.items != items and state.manifest.get("items_sha256") != items_fingerprint(items):
        raise RoundError(
            f"{folder.path}: this round was opened with other items than {state.spec.items} contains now; use another "
            "--out for them"
        )
    listed = read_annotators(path, folder.salt()) if state.spec.annotators and path.is_file() else ()
    if not listed or folder.source_paths().get("annotators_sha256") == annotators_fingerprint(listed):
        return
    active, ids = {one.id: one for one in state.annotators if one.active}, {one.id for one in listed}
    changed = [one.name for one in listed if active.get(one.id) != one and one.id not in state.removed]
    if changed := changed + [one.name for one in active.values() if one.id not in ids]:
        raise RoundError(
            f"{path}: this list was changed after the round was opened ({', '.join(changed)}); apply the change with "
            f"`h2htalk round reopen {folder.path} --annotators {path}`, and `--without NAME` for those who left"
        )


def _write_round(
    folder: RoundFolder, spec: RoundSpec, source: ItemSource, questions: Sequence[Question], assigns_items: bool
) -> AssignmentSet:
    """Write the files of a round, and return its first assignment set, which is written before it is published.

    What can be refused is refused before anything is written.
    """
    items, languages = source.items, tuple(sorted({item.language for item in source.items}))
    has_salt = (folder.private / "salt").is_file()
    salt = folder.salt() if has_salt else secrets.token_bytes(SALT_BYTES)
    annotators = (
        read_annotators(Path(spec.annotators), salt)
        if spec.annotators
        else placeholder_annotators(PLACEHOLDERS[spec.kind], languages, salt)
    )
    texts = {language: guidelines(spec, questions, language) for language in languages}
    requested = initial_requests(spec, items, annotators)
    first = make_assignment_set(spec, 1, items, requested, annotators, (), assigns_items)
    earlier, origin = RoundFolder(Path(spec.items)), _origin(spec)
    facts = {"annotators_sha256": annotators_fingerprint(annotators)}
    if origin is not None:
        add_link(origin, "round", folder.path)  # before the round holds its texts
        workspace = str(origin.resolve()) if is_workspace(origin) else earlier.source_paths().get("workspace")
        facts |= {"workspace": workspace} if workspace else {}
    if not has_salt:
        folder.write_private("salt", f"{salt.hex()}\n")
    folder.write_records(ANNOTATORS, annotators)
    paths = {name: str(getattr(spec, name)) for name in PATHS}
    folder.write_private("source_paths.json", json_line(paths | facts))
    write_jsonl(folder.path / "items.jsonl", (item.to_dict() for item in items))
    write_jsonl(folder.path / SOURCES, ({"id": name, "record": one} for name, one in sorted(source.records.items())))
    for language, text in texts.items():
        write_text(folder.path / "guidelines" / f"{language}.md", text)
    write_text(folder.path / ".gitignore", "private/\nspreadsheets/\nlinks.jsonl\n")
    manifest = {
        "name": folder.path.resolve().name,
        "spec": spec.to_dict() | {name: Path(path).name for name, path in paths.items()},
        "languages": list(languages),
        "questions": [question.name for question in questions],
        "items_sha256": items_fingerprint(items),
    }
    if earlier.exists:
        manifest["adjudicates" if spec.kind == "adjudication" else "continues"] = round_reference(earlier.path)
    write_json(folder.path / "round.json", manifest)
    return first


def _origin(spec: RoundSpec) -> Path | None:
    """Return the round, workspace, run or release that the items come from, which links this round; or None."""
    return Path(spec.items) if RoundFolder(Path(spec.items)).exists else link_folder(spec.items)


# --- Collect ----------------------------------------------------------------------------------------------------------


def round_status(path: Path) -> Status:
    """Collect new annotations of an open round, and return its status. A closed one loses what was erased from it."""
    folder = RoundFolder(path).require()
    if folder.state != "closed" and folder.assignment_sets():
        with folder.locked():
            state = read_state(folder)
            # Another process may have closed the round before this one locked it.
            if state.phase != "closed":
                state.require_published()
                return status_of(*_collect(state), quality=True)
    state, notes = read_state(folder), list[str]()
    items = [one.id for one in folder.erased_items()]
    # Spreadsheets may have come back after closing.
    if items and (platform := open_platform(state.spec.where)).assigns_items:
        with folder.locked():
            try:
                notes += platform.erase(state, items)
            except RoundError as error:
                notes.append(str(error))
    return status_of(state, Collected(notes=tuple(notes)), quality=True)


def _collect(state: RoundState) -> tuple[RoundState, Collected, int]:
    """Collect annotations, and store the new ones of active annotators; of those who left, a note counts them.

    Return the state with them, what the platform holds, and the number of stored annotations.
    """
    collected = open_platform(state.spec.where).collect(state)
    changed, removed = changes(state.stored, collected.annotations), state.removed
    new = [annotation for annotation in changed if annotation.annotator in state.active]
    ignored = {one.key[:2] for one in changed if one.annotator not in state.active and one.annotator not in removed}
    if ignored:
        names = {annotator.id: annotator.name for annotator in state.annotators}
        who = ", ".join(sorted({names[annotator] for _, annotator in ignored}))
        note = (
            f"new annotations of {counted(len(ignored), 'item')} by annotators who left ({who}) are not counted; to "
            f"count them, run `h2htalk round reopen {state.folder.path} --annotators` with a list that names them"
        )
        collected = replace(collected, notes=(*collected.notes, note))
    return state.add(new), collected, len(new)


# --- Close ------------------------------------------------------------------------------------------------------------


def close_round(
    path: str | Path, *, force: bool = False, adjudication: str | Path | None = None
) -> tuple[Status, list[Decision]]:
    """Close a round and write its decisions, agreement and statistics.

    A tie stays a tie, with the label None, unless one more annotation, an adjudication or `[ties] dawid_skene` decides
    it. Closing a closed round again writes the same files; with `adjudication`, that round's decisions are applied to
    ties.

    Examples:
        >>> import h2htalk
        >>> status, decisions = h2htalk.close_round("rounds/crowd", force=True)
        >>> status.state
        'closed'

    `force` closes although assignments are missing or annotations have mistakes, and both are recorded; else they are a
    RoundError, as is an adjudication that is open or about another round.
    """
    folder = RoundFolder(as_path(path, "path")).require()
    other = read_adjudication(as_path(adjudication, "adjudication"), folder) if adjudication is not None else None
    with folder.locked():
        return _close(read_state(folder), force, other)


def _close(state: RoundState, force: bool, other: RoundOutcome | None = None) -> tuple[Status, list[Decision]]:
    state.require_published()
    closed, collected, new = state.phase == "closed", Collected(), 0
    if not closed:
        state, collected, new = _collect(state)
    status, spec = status_of(state, collected, new), state.spec
    if not closed and not force:
        require_complete(state.folder.path, status)
    fewer = below_overlap(spec, state.items, {name: status.by_item[name] for name in status.exhausted})
    missing, notes = sum(status.missing.values()), state.describe_removed()
    if not closed:
        if missing:
            notes.append(f"closed without {counted(missing, 'assignment')} of {counted(len(status.missing), 'item')}")
        if status.mistakes:
            notes += [f"closed with {counted(len(status.mistakes), 'mistake')}:", *status.mistakes]
        notes += describe_below_overlap(spec, fewer, "annotations")
    annotations = list(state.annotations.values())
    decisions = decide(state.items, state.questions, annotations, spec.annotators_per_item, spec.ties.dawid_skene)
    if other is not None:
        notes.append(store_adjudications(state.folder, other, decisions))
    stored = read_adjudications(state.folder)
    decisions = apply_adjudications(decisions, stored)
    if unapplied := len(stored) - sum(one.rule == ADJUDICATION for one in decisions):
        earlier = counted(unapplied, "earlier adjudication is", "earlier adjudications are")
        notes.append(f"{earlier} not applied: later annotations changed the tie")
    write_jsonl(state.folder.path / "decisions.jsonl", map(asdict, decisions))
    notes += write_statistics(state)
    if not closed:
        if status.ties:
            ties, path = counted(status.ties, "item is tied and could", "items are tied and could"), state.folder.path
            notes.append(
                f"{ties} get one more annotator: `h2htalk round reopen {path}` requests one for each; otherwise an "
                f"adjudication decides them: `h2htalk round open adjudication {path} --out FOLDER`"
            )
        notes += open_platform(spec.where).close(state)
        mistakes = len(status.mistakes)
        facts = {"missing": missing, "mistakes": mistakes, "below_overlap": fewer, "annotations": len(state.stored)}
        state.folder.add_event("closed", incomplete=bool(missing or mistakes), **facts)
    return replace(status, state="closed", notes=(*status.notes, *notes)), decisions


# --- Reopen -----------------------------------------------------------------------------------------------------------


def reopen_round(
    path: Path, *, without: Sequence[str] = (), annotators: Path | None = None
) -> tuple[Status, list[str]]:
    """Give items that need more annotators to others than those who annotated them or left.

    Such items are below the overlap, not clear in an adaptive round, or tied. A closed round is open again if there are
    any, or if annotations came after it was closed. If the call is interrupted, the same call completes it.

    Annotations by annotators who left, whose names are in `without`, stay. The CSV file `annotators` lists those who
    join or return, or whose languages or consent changed; annotations by those who return count, too.
    """
    folder = RoundFolder(path).require()
    with folder.locked():
        state = read_state(folder)
        platform = open_platform(state.spec.where)
        state.require_published()
        platform.check(state)
        closed = state.phase == "closed"
        collected = platform.collect(state)
        known = state.require_annotators(without)
        if annotators is not None:
            known = merge_annotators(state.annotators, read_annotators(annotators, folder.salt()), annotators)
        gone = {annotator.id for annotator in known.values() if annotator.name in without} | state.removed.keys()
        changed = tuple(replace(one, active=False) if one.id in gone else one for one in known.values())
        new = [one for one in changes(state.stored, collected.annotations) if one.annotator not in state.removed]
        # The decisions of a closed round stand until it is open again. Annotations by those who left wait for them.
        returning = {annotator.id for annotator in changed if annotator.active} - state.active
        now = [] if closed else [one for one in new if one.annotator in state.active]
        late = [one for one in new if one.annotator in returning or (closed and one.annotator in state.active)]
        state = state.add(now)
        counts = state.add(late, store=False)
        needed = counts.requests(changed, ties=True)
        items = [item for item in state.items if item.id in needed]
        pending = pending_annotations(
            items, state.sets, changed, counts.annotations, counts.completed, collected.offered
        )
        requested, exhausted = annotations_to_request(needed, pending, replace=not platform.assigns_items)
        reopens = closed and bool(late or needed)
        if not needed and not reopens and not (now or late) and changed == state.annotators:
            raise RoundError(f"{path}: every item already has enough annotators; nothing to hand out")
        unchanged = closed or changed == state.annotators
        if exhausted and unchanged and not requested and not late:
            raise RoundError(
                f"{path}: {counted(exhausted, 'item needs', 'items need')} more annotators, but no eligible "
                "annotator is left; add some with --annotators, or close the round and open an adjudication of its "
                "ties; nothing was changed"
            )
        waiting = sum(one.pending for one in pending.values())
        messages = [_describe_requests(requested, exhausted, waiting)]
        messages += state.describe_removed() if annotators else []
        sets = state.sets
        if requested:
            assigned = {(one.item, one.annotator) for earlier in sets for one in earlier.assignments}
            assigned |= {(item, annotator) for item, annotator, _ in state.annotations}
            sets += (make_assignment_set(
                state.spec, len(sets) + 1, state.items, requested, changed, assigned, platform.assigns_items
            ),)  # fmt: skip
        renamed: list[str] = []
        if requested or reopens:
            # The event comes first: interrupted after any later write, the round is open, so that closing it again
            # misses nothing that was published or collected.
            renamed = folder.archive_outcome()
            assignments = sum(requested.values())
            folder.add_event("reopened", items=len(requested), assignments=assignments, left=len(without))
        folder.add_annotations(late)
        messages += _write_annotators(state, changed)
        folder.write_records(ASSIGNMENT_SETS, sets)
        state = read_state(folder)
        messages += platform.publish(state)
        if renamed:
            messages.append(f"the round is open again; earlier results were renamed to {', '.join(renamed)}")
        if late:
            by = "that came after closing" if closed else "by returning annotators"
            messages.append(f"annotations of {counted(len({one.key[:2] for one in late}), 'item')} {by} count now")
        folder.protect()
        return status_of(state, Collected()), messages


def _describe_requests(requested: Mapping[str, int], exhausted: int, waiting: int) -> str:
    """Return what is handed out (item -> annotators), or why nothing is.

    `exhausted` items have too few annotators; of items that need more, `waiting` assignments are pending.
    """
    nobody = f"no eligible annotator is left for {counted(exhausted, 'item')}"
    if requested:
        assignments = counted(sum(requested.values()), "assignment")
        return f"handed out {assignments} of {counted(len(requested), 'item')}{f'; {nobody}' if exhausted else ''}"
    if waiting:
        return (
            f"nothing new to hand out: {counted(waiting, 'assignment is', 'assignments are')} still pending; wait, or "
            "name annotators who left with --without"
        )
    return f"nothing to hand out: {nobody if exhausted else 'every item already has enough annotators'}"


def _write_annotators(state: RoundState, annotators: Sequence[Annotator]) -> list[str]:
    """Store the round's annotators; record who joined, left or changed, by salted hash.

    Removed annotators stay as they are listed, so that they can be restored.
    """
    before = {annotator.id: annotator for annotator in state.annotators}
    other = [annotator for annotator in annotators if before.get(annotator.id) != annotator]
    if not other:
        return []
    state.folder.add_event(
        "annotators",
        joined=[annotator.id for annotator in other if annotator.id not in before],
        left=[annotator.id for annotator in other if not annotator.active],
        changed=[annotator.id for annotator in other if annotator.active and annotator.id in before],
    )
    kept = {one.id: one for one in state.folder.listed_annotators() if one.id in state.removed}
    state.folder.write_records(ANNOTATORS, (kept.get(one.id, one) for one in annotators))
    return ["the list of annotators was updated"]


def remove_annotator(path: str | Path, name: str, *, why: str = "", undo: bool = False) -> tuple[Status, list[str]]:
    """Remove an annotator's answers from decisions, agreement, statistics and overlap, or restore them with `undo`.

    The answers stay in annotations.jsonl and payment.csv; what the annotator answers later is not stored. Results of a
    closed round are renamed and made anew. If the call is interrupted, the same call completes it. `why`, which
    removing requires, is recorded in events.jsonl.
    """
    folder = RoundFolder(as_path(path, "path")).require()
    if not why.strip() and not undo:
        raise RoundError("give the reason with --why; events.jsonl keeps it beside a hash of the name")
    with folder.locked():
        state = read_state(folder)
        state.require_published()
        annotator = state.require_annotators([name])[name].id
        closed, renamed = state.phase == "closed", list[str]()
        changes_it = (annotator in state.removed) == undo
        if changes_it:
            renamed = folder.archive_outcome() if closed else []
            folder.add_event("restored" if undo else "removed", annotator=annotator, why=why.strip(), closed=closed)
        state = read_state(folder)
        done = "count again" if undo else "do not count any more"
        already = "" if changes_it else ", as before this command"
        theirs = counted(len({key[0] for key in state.stored if key[1] == annotator}), "item")
        messages = [f"the annotations of {name} on {theirs} {done}{already}"]
        if not closed:
            return status_of(state, Collected()), messages
        status, _ = _close(state, force=False)
    if renamed:
        messages.append(f"the decisions were made anew; earlier results were renamed to {', '.join(renamed)}")
    short = {item: status.by_item[item] for item in {*status.missing, *status.exhausted}}
    messages += describe_below_overlap(state.spec, below_overlap(state.spec, state.items, short), "annotations")
    if status.missing:
        messages.append(f"the round stays closed; `h2htalk round reopen {folder.path}` asks other annotators")
    if "adjudicates" in state.manifest:
        messages.append("apply this adjudication again: `h2htalk round close ROUND --adjudication` with this folder")
    return status, messages
