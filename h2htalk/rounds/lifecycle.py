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
from h2htalk.data.links import link_folder, link_items, remove_link
from h2htalk.data.settings import as_path
from h2htalk.data.stage_folders import is_workspace
from h2htalk.errors import H2HTalkError, RoundError, counted
from h2htalk.extras import AGREEMENT
from h2htalk.rounds.aggregation.decisions import (
    ADJUDICATION,
    Decision,
    apply_adjudications,
    decide,
    keep_modelled,
)
from h2htalk.rounds.annotations import changes
from h2htalk.rounds.annotators import (
    Annotator,
    annotators_fingerprint,
    merge_annotators,
    placeholder_annotators,
    read_annotators,
    read_export,
)
from h2htalk.rounds.assignment.assignments import AssignmentSet, describe_crowded_sessions
from h2htalk.rounds.assignment.new_items import only_new
from h2htalk.rounds.assignment.remaining_annotations import (
    annotations_to_request,
    below_overlap,
    describe_below_overlap,
    eligible_annotators,
    initial_requests,
    make_assignment_set,
    pending_annotations,
)
from h2htalk.rounds.assignment.request_messages import describe_exhausted, describe_requests
from h2htalk.rounds.assignment.same_round import require_same_round
from h2htalk.rounds.assignment.surplus import FirstSet, describe_surplus, first_set
from h2htalk.rounds.item_sources import ItemSource, read_items
from h2htalk.rounds.items import Item, as_given, check_values
from h2htalk.rounds.outcome import (
    DECISIONS,
    RoundOutcome,
    read_adjudication,
    read_adjudications,
    read_decisions,
    round_reference,
    store_adjudications,
    write_statistics,
)
from h2htalk.rounds.payments.approval import describe_statuses, take_export, write_done
from h2htalk.rounds.payments.lists import (
    LISTED_FOR_APPROVAL,
    LISTS_MADE,
    describe_replaced_ids,
    read_stored_lists,
)
from h2htalk.rounds.payments.prolific_export import ExportedSubmission
from h2htalk.rounds.payments.submissions import (
    changed_statuses,
    read_submissions,
    store_exported,
    store_replaced_ids,
)
from h2htalk.rounds.platforms import Collected, open_platform
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.readers.experts_before import describe_experts_before
from h2htalk.rounds.readers.planted import describe_planting, describe_readers, planted_items
from h2htalk.rounds.readers.questions_before import reading_questions
from h2htalk.rounds.readers.read_before import read_before
from h2htalk.rounds.readers.unread import (
    describe_unread,
    mark_unread,
    marked_as_stored,
    unread_share,
)
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
from h2htalk.rounds.settings import PLACEHOLDERS, RoundSpec, describe_consent
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
    folder, platform = RoundFolder(as_path(out, "out")), open_platform(spec.where)
    # The round that the items came from may be open again; a source may still hold items that were erased here.
    is_opened = _is_opened(folder, spec)
    # The source of a round of what was new holds other items too.
    is_part = spec.new or spec.spread
    stored = is_opened and (
        folder.erased_items() or is_part or {"adjudicates", "continues"} & {*folder.manifest()}
    )
    if stored:
        source = ItemSource(folder.items(), {})
    else:
        source = read_items(str(spec.items), spec.status, spec.kind, spec.sample)
        source = only_new(spec, folder.path, source) if spec.new else source
    # A round that is open asks what it asked when it was opened, by this version or an earlier one.
    reading = folder.reading_questions() if is_opened else reading_questions(spec)
    questions = questions_for(spec.kind, [item.labels for item in source.items], reading)
    asked = {question.name for question in questions}
    items = tuple(
        check_values(
            replace(item, suggested={k: v for k, v in item.suggested.items() if k in asked}),
            questions,
        )
        for item in source.items
    )
    if is_opened:
        items = marked_as_stored(items, folder.items())
    else:
        items = mark_unread(
            items, source.records, read_before(spec, items, source.records), spec.care
        )
    began, listed = False, list[str]()
    try:
        with folder.locked():
            # Another process may have opened the round while the items were read.
            if _is_opened(folder, spec):
                require_same_round(read_state(folder), items)
            else:
                began = True
                first = _write_round(
                    folder,
                    spec,
                    replace(source, items=items),
                    questions,
                    platform.assigns_items,
                    listed,
                )
            platform.check(read_state(folder))
            if began:
                folder.write_records(ASSIGNMENT_SETS, [first])
                began = False
            state = read_state(folder)
            held = {item.id for item in state.items}
            items = tuple(item for item in items if item.id in held)
            messages = platform.publish(state)
            messages += describe_crowded_sessions(state.sets[0], state.items, spec.care)
            fewer = below_overlap(spec, items, eligible_annotators(items, state.annotators))
            if state.phase == "partly opened":
                messages += describe_planting(spec, questions, items) + describe_unread(items)
                messages += describe_experts_before(spec, folder.path, items)
                folder.add_event(
                    "opened",
                    items=len(items),
                    annotators=len(state.annotators),
                    below_overlap=fewer,
                )
            folder.protect()
            messages += describe_consent(spec)
            messages += describe_below_overlap(spec, fewer, "eligible annotators")
            return status_of(read_state(folder), Collected()), [*source.notes, *listed, *messages]
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


def _write_round(
    folder: RoundFolder,
    spec: RoundSpec,
    source: ItemSource,
    questions: Sequence[Question],
    assigns_items: bool,
    notes: list[str],
) -> AssignmentSet:
    """Write the files of a round, and return its first assignment set, which is written before it is published.

    What can be refused is refused before anything is written. `notes` gets messages on the list of annotators.
    """
    items, languages = source.items, tuple(sorted({item.language for item in source.items}))
    has_salt = (folder.private / "salt").is_file()
    salt = folder.salt() if has_salt else secrets.token_bytes(SALT_BYTES)
    annotators = (
        read_annotators(Path(spec.annotators), salt, notes)
        if spec.annotators
        else placeholder_annotators(PLACEHOLDERS[spec.kind], languages, salt)
    )
    shares = {language: unread_share(items, language) for language in languages}
    texts = {
        language: guidelines(spec, questions, language, unread=share)
        for language, share in shares.items()
    }

    def make_first(chosen_spec: RoundSpec, chosen: Sequence[Item]) -> FirstSet:
        requested = initial_requests(chosen_spec, chosen, annotators)
        planted = planted_items(chosen_spec, chosen, questions)
        with_planted = tuple(sorted((*chosen, *planted), key=lambda item: item.id))
        return with_planted, make_assignment_set(
            chosen_spec, 1, with_planted, requested, annotators, (), assigns_items
        )

    given, (items, first) = first_set(spec, source.items, make_first)
    notes += describe_surplus(spec, source.items, given)
    held = {item.id for item in given}
    sources = {name: record for name, record in source.records.items() if name in held}
    earlier, origin = RoundFolder(Path(spec.items)), _origin(spec)
    facts = {"annotators_sha256": annotators_fingerprint(annotators)}
    if origin is not None:
        records = ((item.id, sources.get(item.id)) for item in items)
        link_items(origin, "round", folder.path, records)  # before the round holds its texts
        workspace = (
            str(origin.resolve())
            if is_workspace(origin)
            else earlier.source_paths().get("workspace")
        )
        facts |= {"workspace": workspace} if workspace else {}
    if not has_salt:
        folder.write_private("salt", f"{salt.hex()}\n")
    folder.write_records(ANNOTATORS, annotators)
    if spec.annotators:
        store_exported(folder, annotators, read_export(Path(spec.annotators)))
    paths = {name: str(getattr(spec, name)) for name in PATHS}
    folder.write_private("source_paths.json", json_line(paths | facts))
    write_jsonl(folder.path / "items.jsonl", (item.to_dict() for item in items))
    write_jsonl(
        folder.path / SOURCES,
        ({"id": name, "record": one} for name, one in sorted(sources.items())),
    )
    for language, text in texts.items():
        write_text(folder.path / "guidelines" / f"{language}.md", text)
    write_text(folder.path / ".gitignore", "private/\nspreadsheets/\nlinks.jsonl\n")
    manifest = {
        "name": folder.path.resolve().name,
        "spec": spec.to_dict() | {name: Path(path).name for name, path in paths.items()},
        "languages": list(languages),
        "questions": [question.name for question in questions],
        "items_sha256": items_fingerprint(as_given(given)),
    }
    if source.drawn:
        manifest["sample"] = dict(source.drawn)
    if earlier.exists:
        manifest["adjudicates" if spec.kind == "adjudication" else "continues"] = round_reference(
            earlier.path
        )
    write_json(folder.path / "round.json", manifest)
    return first


def _origin(spec: RoundSpec) -> Path | None:
    """Return the round, workspace, run or release that the items come from, which links this round; or None."""
    return Path(spec.items) if RoundFolder(Path(spec.items)).exists else link_folder(spec.items)


# --- Collect ----------------------------------------------------------------------------------------------------------


def round_status(path: Path, *, submissions: Path | None = None) -> Status:
    """Collect new annotations of an open round, and return its status. A closed one loses what was erased from it.

    `submissions` is Prolific's export: notes say who submitted, with the code or without, and is not done.
    """
    folder = RoundFolder(path).require()
    platform = open_platform(folder.spec().where)
    if folder.state != "closed" and folder.assignment_sets():
        with folder.locked():
            state = read_state(folder)
            # Another process may have closed the round before this one locked it.
            if state.phase != "closed":
                state.require_published()
                exported = take_export(state, submissions) if submissions is not None else []
                state, collected, new = collect_annotations(state)
                status = status_of(state, collected, new, quality=True)
                return replace(
                    status, notes=(*exported, *status.notes, *write_done(state, status.missing))
                )
    if submissions is not None:
        raise RoundError(
            f"{path}: this round is {folder.state}; `h2htalk round close {path} --submissions {submissions}` reads an "
            "export of a closed round"
        )
    state, notes = read_state(folder), list[str]()
    items = [one.id for one in folder.erased_items()]
    # Spreadsheets may have come back after closing.
    if platform.assigns_items and (items or folder.erased_annotators()):
        with folder.locked():
            try:
                notes += platform.erase(state, items)
            except RoundError as error:
                notes.append(str(error))
    return status_of(state, Collected(notes=tuple(notes)), quality=True)


def collect_annotations(state: RoundState) -> tuple[RoundState, Collected, int]:
    """Collect annotations, and store the new ones of active annotators; of those who left, a note counts them.

    Return the state with them, what the platform holds, and the number of stored annotations.
    """
    collected = open_platform(state.spec.where).collect(state)
    changed, removed = changes(state.stored, collected.annotations), state.removed
    new = [annotation for annotation in changed if annotation.annotator in state.active]
    ignored = {
        one.key[:2]
        for one in changed
        if one.annotator not in state.active and one.annotator not in removed
    }
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
    path: str | Path,
    *,
    force: bool = False,
    adjudication: str | Path | None = None,
    submissions: str | Path | None = None,
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
    RoundError, as is an adjudication that is open or about another round. `submissions` is Prolific's export, for the
    payment: it says which submissions get no reward.
    """
    AGREEMENT.require()
    folder = RoundFolder(as_path(path, "path")).require()
    open_platform(folder.spec().where)
    other = (
        read_adjudication(as_path(adjudication, "adjudication"), folder)
        if adjudication is not None
        else None
    )
    with folder.locked():
        state, notes = read_state(folder), list[str]()
        if submissions is not None:
            state.require_published()
            notes = take_export(state, as_path(submissions, "submissions"))
        status, decisions = _close(state, force, other)
    return replace(status, notes=(*notes, *status.notes)), decisions


def _close(
    state: RoundState, force: bool, other: RoundOutcome | None = None
) -> tuple[Status, list[Decision]]:
    state.require_published()
    closed, collected, new = state.phase == "closed", Collected(), 0
    if not closed:
        state, collected, new = collect_annotations(state)
    status, spec = status_of(state, collected, new), state.spec
    if not closed and not force:
        require_complete(state.folder.path, status)
    fewer = below_overlap(
        spec, state.items, {name: status.by_item[name] for name in status.exhausted}
    )
    missing, notes = sum(status.missing.values()), state.describe_removed()
    if not closed:
        if missing:
            notes.append(
                f"closed without {counted(missing, 'assignment')} of {counted(len(status.missing), 'item')}"
            )
        if status.mistakes:
            notes += [f"closed with {counted(len(status.mistakes), 'mistake')}:", *status.mistakes]
        notes += describe_below_overlap(spec, fewer, "annotations")
    annotations = state.judged
    decisions = decide(
        state.judged_items,
        state.questions,
        annotations,
        spec.annotators_per_item,
        spec.ties.dawid_skene,
    )
    if closed and state.folder.erased_votes() and (state.folder.path / DECISIONS).exists():
        decisions = keep_modelled(decisions, read_decisions(state.folder))
    if other is not None:
        notes.append(store_adjudications(state.folder, other, decisions))
    stored = read_adjudications(state.folder)
    decisions = apply_adjudications(decisions, stored)
    if unapplied := len(stored) - sum(one.rule == ADJUDICATION for one in decisions):
        earlier = counted(unapplied, "earlier adjudication is", "earlier adjudications are")
        notes.append(f"{earlier} not applied: later annotations changed the tie")
    write_jsonl(state.folder.path / "decisions.jsonl", map(asdict, decisions))
    # Payments take the reward off for whom a list for approval has named.
    done_notes = write_done(state, status.missing)
    notes += [*write_statistics(state), *done_notes]
    notes += describe_readers(state.items, state.annotations.values(), state.questions)
    if not closed:
        if status.ties:
            ties, path = (
                counted(status.ties, "item is tied and could", "items are tied and could"),
                state.folder.path,
            )
            notes.append(
                f"{ties} get one more annotator: `h2htalk round reopen {path}` requests one for each; otherwise an "
                f"adjudication decides them: `h2htalk round open adjudication {path} --out FOLDER`"
            )
        notes += open_platform(spec.where).close(state)
        mistakes = len(status.mistakes)
        facts = {
            "missing": missing,
            "mistakes": mistakes,
            "below_overlap": fewer,
            "annotations": len(state.stored),
        }
        facts[LISTED_FOR_APPROVAL] = sum(one.listed for one in read_submissions(state.folder))
        if lists := read_stored_lists(state.folder):
            facts[LISTS_MADE] = len(lists)
        state.folder.add_event("closed", incomplete=bool(missing or mistakes), **facts)
    return replace(status, state="closed", notes=(*status.notes, *notes)), decisions


# --- Reopen -----------------------------------------------------------------------------------------------------------


def reopen_round(
    path: Path,
    *,
    without: Sequence[str] = (),
    annotators: Path | None = None,
    replace_ids: bool = False,
) -> tuple[Status, list[str]]:
    """Give items that need more annotators to others than those who annotated them or left.

    Such items are below the overlap, not clear in an adaptive round, or tied. A closed round is open again if there are
    any, or if annotations came after it was closed. If the call is interrupted, the same call completes it.

    Annotations by annotators who left, whose names are in `without`, stay. The CSV file `annotators` lists those who
    join or return, or whose languages or consent changed; annotations by those who return count, too. A list that gives
    an annotator another participant's id is refused unless `replace_ids`.
    """
    folder = RoundFolder(path).require()
    with folder.locked():
        state = read_state(folder)
        platform = open_platform(state.spec.where)
        state.require_published()
        platform.check(state)
        closed = state.phase == "closed"
        collected = platform.collect(state)
        known, notes = state.require_annotators(without), list[str]()
        exported: Mapping[str, ExportedSubmission] = {}
        if annotators is not None:
            known, exported = _read_list(state, annotators, notes, replace_ids=replace_ids)
        gone = {
            annotator.id for annotator in known.values() if annotator.name in without
        } | state.removed.keys()
        changed = tuple(
            replace(one, active=False) if one.id in gone else one for one in known.values()
        )
        new = [
            one
            for one in changes(state.stored, collected.annotations)
            if one.annotator not in state.removed
        ]
        # The decisions of a closed round stand until it is open again. Annotations by those who left wait for them.
        returning = {annotator.id for annotator in changed if annotator.active} - state.active
        now = [] if closed else [one for one in new if one.annotator in state.active]
        late = [
            one
            for one in new
            if one.annotator in returning or (closed and one.annotator in state.active)
        ]
        state = state.add(now)
        counts = state.add(late, store=False)
        needed = counts.requests(changed, ties=True)
        items = [item for item in state.items if item.id in needed]
        pending = pending_annotations(
            items, state.sets, changed, counts.annotations, counts.completed, collected.offered
        )
        requested, exhausted = annotations_to_request(
            needed, pending, replace=not platform.assigns_items
        )
        reopens = closed and bool(late or needed)
        is_paid_otherwise = _is_paid_otherwise(state, changed, exported)
        if (
            not needed
            and not reopens
            and not (now or late)
            and changed == state.annotators
            and not is_paid_otherwise
        ):
            raise RoundError(
                f"{path}: every item already has enough annotators; nothing to hand out"
            )
        nobody = describe_exhausted(exhausted, counts.requests(changed), pending)
        if exhausted and not requested and not late:
            if (closed or changed == state.annotators) and not is_paid_otherwise:
                raise RoundError(
                    f"{path}: nothing to hand out, and nothing was changed: {'; '.join(nobody)}"
                )
            reopens = False
        waiting = sum(one.pending for one in pending.values())
        messages = [*notes, describe_requests(requested, nobody, waiting)]
        messages += state.describe_removed() if annotators else []
        sets = state.sets
        if requested:
            sets += (_further_set(state, requested, changed, platform.assigns_items),)
        renamed: list[str] = []
        if requested or reopens:
            # The event comes first: interrupted after any later write, the round is open, so that closing it again
            # misses nothing that was published or collected.
            renamed = folder.archive_outcome()
            assignments = sum(requested.values())
            folder.add_event(
                "reopened", items=len(requested), assignments=assignments, left=len(without)
            )
            renamed += folder.archive_bonus()
        folder.add_annotations(late)
        messages += write_annotators(state, changed)
        messages += describe_statuses(store_exported(folder, changed, exported))
        folder.write_records(ASSIGNMENT_SETS, sets)
        state = read_state(folder)
        messages += platform.publish(state)
        if requested:
            messages += describe_crowded_sessions(sets[-1], state.items, state.spec.care)
        if renamed:
            messages.append(
                f"the round is open again; earlier results were renamed to {', '.join(renamed)}"
            )
        if late:
            by = "that came after closing" if closed else "by returning annotators"
            messages.append(
                f"annotations of {counted(len({one.key[:2] for one in late}), 'item')} {by} count now"
            )
        folder.protect()
        return status_of(state, Collected()), messages


def _is_paid_otherwise(
    state: RoundState, annotators: Sequence[Annotator], exported: Mapping[str, ExportedSubmission]
) -> bool:
    """Return whether a list has participant ids, completion codes or statuses that the round does not have."""
    before = {one.id: (one.participant_id, one.completion_code) for one in state.annotators}
    after = {
        one.id: (one.participant_id, one.completion_code) for one in annotators if one.id in before
    }
    return any(before[annotator] != facts for annotator, facts in after.items()) or bool(
        changed_statuses(state.folder, annotators, exported)
    )


def _further_set(
    state: RoundState,
    requested: Mapping[str, int],
    annotators: Sequence[Annotator],
    assigns_items: bool,
) -> AssignmentSet:
    """Return an assignment set after those of the round, for annotators who did not have the items."""
    assigned = {(one.item, one.annotator) for earlier in state.sets for one in earlier.assignments}
    assigned |= {(item, annotator) for item, annotator, _ in state.annotations}
    number = len(state.sets) + 1
    handed_out = {name for earlier in state.sets for name in earlier.requested}
    return make_assignment_set(
        state.spec, number, state.items, requested, annotators, assigned, assigns_items, handed_out
    )


def _read_list(
    state: RoundState, path: Path, notes: list[str], *, replace_ids: bool
) -> tuple[dict[str, Annotator], dict[str, ExportedSubmission]]:
    """Return all annotators by name after a further list, and participant id -> submission if it is Prolific's export.

    `notes` gets messages on the list. Raise RoundError.
    """
    exported = read_export(path)
    # An export in which every submission has ended still says who gets no reward.
    listed = read_annotators(path, state.folder.salt(), notes, may_be_empty=bool(exported))
    state.folder.require_not_erased(listed, path)
    return merge_annotators(state.annotators, listed, path, replace_ids=replace_ids), exported


def write_annotators(state: RoundState, annotators: Sequence[Annotator]) -> list[str]:
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
        changed=[
            annotator.id for annotator in other if annotator.active and annotator.id in before
        ],
    )
    replaced = describe_replaced_ids(state.folder, state.annotators, annotators)
    store_replaced_ids(state.folder, state.annotators, annotators)
    kept = {one.id: one for one in state.folder.listed_annotators() if one.id in state.removed}
    state.folder.write_records(ANNOTATORS, (kept.get(one.id, one) for one in annotators))
    return ["the list of annotators was updated", *replaced]


def remove_annotator(
    path: str | Path, name: str, *, why: str = "", undo: bool = False
) -> tuple[Status, list[str]]:
    """Remove an annotator's answers from decisions, agreement, statistics and overlap, or restore them with `undo`.

    The answers stay in annotations.jsonl and payment.csv; what the annotator answers later is not stored. Results of a
    closed round are renamed and made anew. If the call is interrupted, the same call completes it. `why`, which
    removing requires, is recorded in events.jsonl.
    """
    folder = RoundFolder(as_path(path, "path")).require()
    if not why.strip() and not undo:
        raise RoundError(
            "give the reason with --why; events.jsonl keeps it beside a hash of the name"
        )
    with folder.locked():
        state = read_state(folder)
        state.require_published()
        annotator = state.require_annotators([name])[name].id
        closed, renamed = state.phase == "closed", list[str]()
        changes_it = (annotator in state.removed) == undo
        if changes_it:
            renamed = folder.archive_outcome() if closed else []
            folder.add_event(
                "restored" if undo else "removed",
                annotator=annotator,
                why=why.strip(),
                closed=closed,
            )
        state = read_state(folder)
        done = "count again" if undo else "do not count any more"
        already = "" if changes_it else ", as before this command"
        theirs = counted(len({key[0] for key in state.stored if key[1] == annotator}), "item")
        messages = [f"the annotations of {name} on {theirs} {done}{already}"]
        if not closed:
            return status_of(state, Collected()), messages
        status, _ = _close(state, force=False)
    if renamed:
        messages.append(
            f"the decisions were made anew; earlier results were renamed to {', '.join(renamed)}"
        )
    short = {item: status.by_item[item] for item in {*status.missing, *status.exhausted}}
    messages += describe_below_overlap(
        state.spec, below_overlap(state.spec, state.items, short), "annotations"
    )
    if status.missing:
        messages.append(
            f"the round stays closed; `h2htalk round reopen {folder.path}` asks other annotators"
        )
    if "adjudicates" in state.manifest:
        messages.append(
            "apply this adjudication again: `h2htalk round close ROUND --adjudication` with this folder"
        )
    return status, messages
