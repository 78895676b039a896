"""Opening a round: what is asked, of whom, and what goes out first. It may be killed at any step and repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from h2htalk.data.files import write_json, write_jsonl, write_text
from h2htalk.data.languages import Language
from h2htalk.errors import RoundError
from h2htalk.rounds.adjudication import source_of
from h2htalk.rounds.annotator_changes import annotators_fingerprint, require_same_annotators
from h2htalk.rounds.annotators import Annotator, placeholder_annotators, read_annotators
from h2htalk.rounds.assignment.assignments import AssignmentSet, assignment, group
from h2htalk.rounds.assignment.remaining_annotations import initial_requests, is_pilot
from h2htalk.rounds.integrity import fingerprint, require_names, validate_round
from h2htalk.rounds.item_sources import read_items
from h2htalk.rounds.items import Item, check_values
from h2htalk.rounds.platforms import Collected, Platform, open_platform
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.round_folder import PATHS, RoundFolder
from h2htalk.rounds.settings import PANEL, RoundSpec, require_same
from h2htalk.rounds.status import Status, status_of
from h2htalk.rounds.texts.guidelines import guidelines


def open_round(spec: RoundSpec, out: Path) -> tuple[Status, list[str]]:
    """Open a round, or finish opening it; a round that is open already is left as it is.

    Examples:
        >>> import h2htalk
        >>> spec = h2htalk.RoundSpec(kind="crowd", items="mini", overlap=1, format="csv")
        >>> status, notes = h2htalk.open_round(spec, Path("rounds/crowd"))
        >>> (status.state, status.items)
        ('open', 154)

    Args:
        spec: what to open.
        out: its folder.

    Returns:
        Its status, and what the platform tells the manager.

    Raises:
        RoundError, DataError, ConfigError: the items, annotators or settings cannot make a round, another round is
            there, or the platform cannot be reached; nothing has gone out then that the same command would not find.
    """
    folder = RoundFolder(out)
    begun = _begun(folder, spec)
    platform = open_platform(spec.where)
    # A round that was adjudicated from has no ties any more: what its adjudication asks stands in the adjudication.
    items = folder.items() if begun and "over" in folder.facts() else _items(spec)
    questions = questions_for(spec.kind, [item.labels for item in items])
    items = tuple(check_values(_fitting(item, questions), questions) for item in items)
    with folder.locked():
        # Another process may have opened a round here while the items were read: it is left as it is.
        if _begun(folder, spec):
            validate_round(folder)
            require_names(folder)
            _require_same_items(folder, items)
            require_same_annotators(folder, spec)
        else:
            _lay_out(folder, spec, items, questions)
        platform.check(folder)
        if not folder.assignment_sets():
            wanted = initial_requests(spec, items, folder.annotators())
            folder.write_assignment_sets(
                [next_assignment_set(folder, platform, 1, items, wanted, folder.annotators())]
            )
        told = platform.publish(folder)
        if folder.state == "half opened":
            folder.note("opened", items=len(items), annotators=len(folder.annotators()))
        folder.protect()
        return status_of(folder, Collected(())), told


def _begun(folder: RoundFolder, spec: RoundSpec) -> bool:
    """Whether a round is there of which something may be out; raises RoundError where it was opened otherwise.

    Before an assignment set is written nothing can be out: what was refused then may be opened with other settings.
    """
    if not folder.exists or (folder.state == "half opened" and not folder.assignment_sets()):
        return False
    require_same(folder.spec(), spec, folder.path)
    return True


def _items(spec: RoundSpec) -> tuple[Item, ...]:
    items = read_items(spec.items, spec.status)
    for item in items:
        # An adjudicator of a tie chooses among its labels; who rates, or looks for violations, judges a reply.
        judged = spec.kind == "safety" or (spec.kind == "adjudication" and not item.labels)
        if judged and not item.response.strip():
            raise RoundError(
                f"{spec.items}: {item.id} has no response; a round of {spec.kind} needs the reply that is judged"
            )
    return items


def _fitting(item: Item, questions: Sequence[Question]) -> Item:
    """Without suggestions for what this round does not ask."""
    names = {question.name for question in questions}
    return replace(item, suggested={key: value for key, value in item.suggested.items() if key in names})


def _lay_out(
    folder: RoundFolder, spec: RoundSpec, items: Sequence[Item], questions: Sequence[Question]
) -> None:
    """Everything but what goes out. `round.json` comes last: without it there is no round yet."""
    salt = folder.salt()
    languages = _languages(items)
    annotators = (
        read_annotators(Path(spec.annotators), salt)
        if spec.annotators
        else placeholder_annotators(PANEL[spec.kind], languages, salt)
    )
    texts = {language: guidelines(spec, questions, language) for language in languages}
    folder.write_annotators(annotators)
    places = {name: str(getattr(spec, name)) for name in PATHS}
    folder.write_places(places | {"annotators_sha256": annotators_fingerprint(annotators)})
    write_jsonl(folder.path / "items.jsonl", (item.to_dict() for item in items))
    for language, text in texts.items():
        write_text(folder.path / "guidelines" / f"{language}.md", text)
    write_text(folder.path / ".gitignore", "private/\nspreadsheets/\n")
    facts = {
        "name": folder.path.resolve().name,
        "spec": spec.to_dict() | {name: Path(place).name for name, place in places.items()},
        "languages": list(languages),
        "questions": [question.name for question in questions],
        "items_sha256": fingerprint(item.to_dict() for item in items),
    }
    if (Path(spec.items) / "round.json").is_file():
        facts["over"] = source_of(Path(spec.items))
    write_json(folder.path / "round.json", facts)


def _require_same_items(folder: RoundFolder, items: Sequence[Item]) -> None:
    if folder.facts().get("items_sha256") != fingerprint(item.to_dict() for item in items):
        raise RoundError(
            f"{folder.path}: this round was opened on other items than {folder.spec().items} holds now; "
            "choose another --out for them"
        )


def _languages(items: Sequence[Item]) -> tuple[Language, ...]:
    return tuple(sorted({item.language for item in items}))


def next_assignment_set(
    folder: RoundFolder,
    platform: Platform,
    number: int,
    items: Sequence[Item],
    wanted: Mapping[str, int],
    annotators: Sequence[Annotator],
) -> AssignmentSet:
    """The assignment set that asks for `wanted` (item -> answers), nothing of anybody twice; it is not written here."""
    spec = folder.spec()
    seen = {
        (s.item, s.annotator)
        for assignment_set in folder.assignment_sets()
        for s in assignment_set.assignments
    }
    seen |= {(item, annotator) for item, annotator, _ in folder.answers()}
    # Seating is drawn for a server too: it shows whether there are annotators enough.
    # Nobody can choose what an adjudication or a later assignment set is about.
    alone = number > 1 or spec.kind == "adjudication"
    seated = assignment(number, items, wanted, annotators, seen, spec.care, spec.seed, alone=alone)
    if platform.assigns_items:
        return seated
    pilot = is_pilot(spec, items)
    return group(number, items, wanted, spec.care, spec.seed, alone=alone, everybody=pilot)
