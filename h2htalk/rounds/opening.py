"""Open a round: write its folder, make the first assignment set, and publish it. Every step can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.files import write_json, write_jsonl, write_text
from h2htalk.data.links import add_link, link_folder
from h2htalk.data.records import as_path
from h2htalk.data.scenario import is_workspace
from h2htalk.errors import RoundError
from h2htalk.rounds.adjudication import round_reference
from h2htalk.rounds.annotator_changes import annotators_fingerprint, require_same_annotators
from h2htalk.rounds.annotators import Annotator, placeholder_annotators, read_annotators
from h2htalk.rounds.assignment.assignments import AssignmentSet, assign, group_items
from h2htalk.rounds.assignment.remaining_annotations import (
    below_overlap,
    describe_below_overlap,
    eligible_annotators,
    initial_requests,
    is_pilot,
)
from h2htalk.rounds.integrity import items_fingerprint, require_annotator_list, validate_round
from h2htalk.rounds.item_sources import ItemSource, read_items
from h2htalk.rounds.items import Item, check_values
from h2htalk.rounds.platforms import Collected, Platform, open_platform
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.round_folder import PATHS, RoundFolder
from h2htalk.rounds.settings import PLACEHOLDERS, RoundSpec, require_same_spec
from h2htalk.rounds.status import Status, compute_status
from h2htalk.rounds.texts.guidelines import guidelines


def open_round(spec: RoundSpec, out: str | Path) -> tuple[Status, list[str]]:
    """Open a round, or complete an interrupted opening. A round that is open already does not change.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.RoundSpec(kind="crowd", items="mini", overlap=1)
        >>> status, notes = h2htalk.open_round(spec, "rounds/crowd")
        >>> (status.state, status.items)
        ('open', 352)

    Args:
        spec: what to open.
        out: folder of the round.

    Returns:
        The round's status, and messages of the platform for the manager.

    Raises:
        RoundError, DataError, ConfigError: the round is closed, `out` holds another round, the items, annotators or
            settings are invalid, or the platform cannot be reached. The same call can be repeated.
    """
    spec = RoundSpec.from_dict(spec.to_dict(), "RoundSpec")
    folder = RoundFolder(as_path(out, "out"))
    opened = _is_opened(folder, spec)
    platform = open_platform(spec.where)
    # Another round may be open again, or its ties adjudicated; a round opened from it has stored its items. A source
    # may still hold items that were erased from the round.
    stored = opened and not {"adjudicates", "continues", "opened_items_sha256"}.isdisjoint(folder.manifest())
    source = ItemSource(folder.items(), {}) if stored else _read_items(spec)
    questions = questions_for(spec.kind, [item.labels for item in source.items])
    items = tuple(check_values(_without_suggestions(item, questions), questions) for item in source.items)
    with folder.locked():
        # Another process may have opened the round while the items were read.
        if _is_opened(folder, spec):
            validate_round(folder)
            require_annotator_list(folder)
            if folder.manifest().get("items_sha256") != items_fingerprint(item.to_dict() for item in items):
                raise RoundError(
                    f"{folder.path}: this round was opened with other items than {folder.spec().items} contains now; "
                    "use another --out for them"
                )
            require_same_annotators(folder, spec)
        else:
            _write_round(folder, spec, replace(source, items=items), questions)
        platform.check(folder)
        if not folder.assignment_sets():
            annotators = folder.annotators()
            requested = initial_requests(spec, items, annotators)
            first = make_assignment_set(folder, platform, 1, items, requested, annotators)
            folder.write_assignment_sets([first])
        messages = platform.publish(folder)
        annotators = folder.annotators()
        fewer = below_overlap(spec, items, eligible_annotators(items, annotators))
        if folder.state == "partly opened":
            folder.add_event("opened", items=len(items), annotators=len(annotators), below_overlap=fewer)
        folder.protect()
        messages += describe_below_overlap(spec, fewer, "eligible annotators")
        return compute_status(folder, Collected()), [*source.notes, *messages]


def _is_opened(folder: RoundFolder, spec: RoundSpec) -> bool:
    """Return whether items of the round may have been published.

    Nothing is published before an assignment set is written: until then a round may be opened with other settings.

    Raises:
        RoundError: the round is closed, or was opened with other settings.
    """
    if not folder.exists or (folder.state == "partly opened" and not folder.assignment_sets()):
        return False
    if folder.state == "closed":
        raise RoundError(
            f"{folder.path}: this round is closed; continue it with `h2htalk round reopen {folder.path}`, or use "
            "another --out for a new round"
        )
    require_same_spec(folder.spec(), spec, folder.path)
    return True


def _read_items(spec: RoundSpec) -> ItemSource:
    source = read_items(str(spec.items), spec.status, spec.kind)
    for item in source.items:
        # Adjudicators of ties choose between labels; those who rate, or look for violations, judge a response.
        judged = spec.kind == "safety" or (spec.kind == "adjudication" and not item.labels)
        if judged and not item.response.strip():
            raise RoundError(f"{spec.items}: {item.id} has no response; a round of {spec.kind} needs one")
    return source


def _without_suggestions(item: Item, questions: Sequence[Question]) -> Item:
    """Remove suggestions for questions that this round does not ask."""
    names = {question.name for question in questions}
    return replace(item, suggested={key: value for key, value in item.suggested.items() if key in names})


def _write_round(folder: RoundFolder, spec: RoundSpec, source: ItemSource, questions: Sequence[Question]) -> None:
    """Write the files of a round. `round.json` comes last: without it there is no round."""
    salt, items = folder.salt(), source.items
    languages = tuple(sorted({item.language for item in items}))
    annotators = (
        read_annotators(Path(spec.annotators), salt)
        if spec.annotators
        else placeholder_annotators(PLACEHOLDERS[spec.kind], languages, salt)
    )
    texts = {language: guidelines(spec, questions, language) for language in languages}
    folder.write_annotators(annotators)
    paths = {name: str(getattr(spec, name)) for name in PATHS}
    earlier = Path(spec.items) if RoundFolder(Path(spec.items)).exists else None
    facts = {"annotators_sha256": annotators_fingerprint(annotators), **_link(folder, spec, earlier)}
    folder.write_source_paths(paths | facts)
    write_jsonl(folder.path / "items.jsonl", (item.to_dict() for item in items))
    sources_sha256 = folder.write_sources(source.records)
    for language, text in texts.items():
        write_text(folder.path / "guidelines" / f"{language}.md", text)
    write_text(folder.path / ".gitignore", "private/\nspreadsheets/\nlinks.jsonl\n")
    manifest = {
        "name": folder.path.resolve().name,
        "spec": spec.to_dict() | {name: Path(path).name for name, path in paths.items()},
        "languages": list(languages),
        "questions": [question.name for question in questions],
        "items_sha256": items_fingerprint(item.to_dict() for item in items),
        "sources_sha256": sources_sha256,
    }
    if earlier is not None:
        manifest["adjudicates" if spec.kind == "adjudication" else "continues"] = round_reference(earlier)
    write_json(folder.path / "round.json", manifest)


def _link(folder: RoundFolder, spec: RoundSpec, earlier: Path | None) -> dict[str, str]:
    """Link a round where its items come from, before it holds their texts; return its `workspace` if it has one."""
    source = earlier or link_folder(spec.items)
    if source is None:
        return {}
    add_link(source, "round", folder.path)
    if earlier is not None:
        return {key: path for key, path in RoundFolder(earlier).source_paths().items() if key == "workspace"}
    return {"workspace": str(source.resolve())} if is_workspace(source) else {}


def make_assignment_set(
    folder: RoundFolder,
    platform: Platform,
    number: int,
    items: Sequence[Item],
    requested: Mapping[str, int],
    annotators: Sequence[Annotator],
) -> AssignmentSet:
    """Return an assignment set for `requested` (item -> annotators); nobody gets an item twice. Nothing is written."""
    spec = folder.spec()
    assigned = {(one.item, one.annotator) for earlier in folder.assignment_sets() for one in earlier.assignments}
    assigned |= {(item, annotator) for item, annotator, _ in folder.annotations()}
    # The manager cannot choose the items of an adjudication or of a later set, and experts review sets that are about
    # crises: what does not fit becomes sessions of one item.
    single = number > 1 or spec.kind in ("adjudication", "expert")
    care, seed = spec.care, spec.seed
    # Also for a server: this raises RoundError if there are too many crises.
    assignments = assign(number, items, requested, annotators, assigned, care, seed, allow_single_crises=single)
    if platform.assigns_items:
        return assignments
    # A first set requests the same number for all items, as far as annotators are eligible.
    mixed = number == 1 or is_pilot(spec, items)
    return group_items(number, items, requested, care, seed, allow_single_crises=single, mixed=mixed)
