"""Consistency of a round's files: somebody may have edited one, or restored an old copy.

Keyed hashes of what closing writes prove the rest: who lacks the round's private folder cannot forge what another round
believes. The hash of a decision covers the decision, the item's text and source record, and the annotations that it
rests on. Each stands alone: an item that is erased takes its decisions along, and the others stay valid.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from h2htalk.data.files import json_line, read_jsonl, sha256_of
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.aggregation.decisions import Decision
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, questions_for
from h2htalk.rounds.round_folder import RESTORE, SOURCES, RoundFolder


def validate_round(folder: RoundFolder) -> tuple[tuple[Item, ...], list[Annotation]]:
    """Raise DataError, with file and line, unless the round's files can be read and fit together.

    Assignment sets may name only the round's items and annotators, the items must be those that were published, with
    the records that they were made from, and every line of annotations.jsonl must be a valid annotation by one of the
    annotators. Annotators are not compared in a copy without `private`.

    Returns:
        The items, and every annotation that was ever stored.

    Raises:
        DataError: a file is invalid or does not fit the others.
        RoundError, ConfigError: the folder holds no round, or its settings are invalid.
    """
    # Writers add annotators first, then assignment sets, then annotations. Reading in the opposite order finds
    # consistent files although another process adds to them.
    spec, events, annotations = folder.spec(), folder.events(), list(folder.annotation_lines())
    sets, annotators, items = folder.assignment_sets(), folder.annotators(), folder.items()
    items_path, sets_path = folder.path / "items.jsonl", folder.path / "assignment_sets.jsonl"
    annotators_path = folder.private / "annotators.jsonl"
    by_id = {item.id: item for item in items}
    _require_unique(f"{items_path}: the item", (item.id for item in items))
    _require_unique(f"{annotators_path}: the annotator", (annotator.name for annotator in annotators))
    known = {annotator.id for annotator in annotators} if annotators_path.is_file() else None
    if not sets and any(event["event"] in ("opened", "closed", "reopened") for event in events):
        raise DataError(f"{sets_path}: contains no assignment set of a round that was opened; {RESTORE}")
    for number, one in enumerate(sets, 1):
        if one.number != number:
            raise DataError(
                f"{sets_path}: found assignment set {one.number} in place of assignment set {number}; {RESTORE}"
            )
        published = {*one.requested, *(item for group in one.groups for item in group)}
        published |= {assignment.item for assignment in one.assignments}
        if missing := sorted(published - by_id.keys()):
            raise DataError(
                f"{items_path}: the published item {quoted(missing[0])} is missing ({len(missing)} in all); {RESTORE}"
            )
        assigned = {assignment.annotator for assignment in one.assignments}
        if known is not None and (unknown := assigned - known):
            raise DataError(f"{annotators_path}: {len(unknown)} annotators with items are missing; {RESTORE}")
    # Before anything is published, opening the round again may write other items.
    records = (record for _, record in read_jsonl(items_path))
    if sets and folder.manifest().get("items_sha256") != items_fingerprint(records):
        raise DataError(
            f"{items_path}: a text, label or gold answer differs from the items that were published; {RESTORE}"
        )
    recorded, sources_path = folder.manifest().get("sources_sha256"), folder.path / SOURCES
    if sets and recorded is not None and not (sources_path.is_file() and sha256_of(sources_path) == recorded):
        raise DataError(f"{sources_path}: differs from what was written with the items, or is missing; {RESTORE}")
    questions = {one.name: one for one in questions_for(spec.kind, [item.labels for item in items])}
    name = folder.name
    for where, annotation in annotations:
        if annotation.round != name:
            raise DataError(f"{where}: this annotation is of the round {quoted(annotation.round)}; {RESTORE}")
        if known is not None and annotation.annotator not in known:
            raise DataError(f"{where}: {quoted(annotation.annotator)} is not an annotator of this round; {RESTORE}")
        if problem := _annotation_problem(annotation, by_id, questions):
            raise DataError(f"{where}: {problem}; {RESTORE}")
    return items, [annotation for _, annotation in annotations]


def require_annotator_list(folder: RoundFolder) -> None:
    """Raise DataError if items were published but the list of annotators is missing: nobody can be identified."""
    path = folder.private / "annotators.jsonl"
    if folder.assignment_sets() and not path.is_file():
        raise DataError(
            f"{path}: the file is missing, and annotations cannot be attributed without it; restore the round's folder "
            "`private`"
        )


def require_unchanged(folder: RoundFolder, stored: Mapping[tuple[str, str, str], Annotation] | None = None) -> None:
    """Raise RoundError if a closed round's `stored` annotations differ from those that it was closed with."""
    before, now = folder.closed_fingerprint(), folder.annotations_fingerprint(stored)
    if before != now:
        raise RoundError(
            f"{folder.path / 'annotations.jsonl'}: the file was changed after the round was closed "
            f"({before['annotations']} annotations then, {now['annotations']} now); the decisions stay as they are. "
            f"Restore the file, or collect the annotations again with `h2htalk round reopen {folder.path}`"
        )


def items_fingerprint(records: Iterable[Mapping[str, Any]]) -> str:
    """Return 16 hexadecimal digits of the SHA-256 over items as JSON objects, sorted by id."""
    digest = hashlib.sha256()
    for record in sorted(records, key=lambda record: str(record["id"])):
        digest.update(json_line(record).encode())
    return digest.hexdigest()[:16]


def _annotation_problem(annotation: Annotation, items: Mapping[str, Item], questions: Mapping[str, Question]) -> str:
    """Return what is wrong with an annotation; empty if it is valid."""
    value, question = annotation.value, questions.get(annotation.question)
    if annotation.item not in items:
        return f"{quoted(annotation.item)} is not an item of this round"
    if question is None and annotation.question != SKIPPED:
        return f"{quoted(annotation.question)} is not a question of this round"
    if value is None or (question is None and value == "yes"):
        return ""
    if question is None:
        return f"{quoted(value)} is not valid for skipped: use yes or null"
    try:
        read = question.read(list(value) if isinstance(value, tuple) else value)
    except RoundError as error:
        return str(error)
    # "4" can be read as the rating 4; stored as text, only some statistics would count it.
    same = set(read) == set(value) if isinstance(read, tuple) and isinstance(value, tuple) else read == value
    if not same or type(read) is not type(value):
        return f"{quoted(value)} is not the stored form of {question.name}: use {quoted(read)}"
    labels = items[annotation.item].labels
    if question.name == "label" and labels and value not in labels:
        return f"{quoted(value)} is not a choice of this item: {', '.join(labels)}"
    return ""


def _require_unique(what: str, names: Iterable[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise DataError(f"{what} {quoted(repeated[0])} occurs twice; {RESTORE}")


def keyed_hash(folder: RoundFolder, purpose: str) -> Callable[..., str]:
    """Return a function of JSON values: 32 hexadecimal digits of their HMAC-SHA256 with the round's name and kind.

    The key is the round's salt, under which names of annotators are hashed, too; no name is a JSON list.
    """
    key, known = folder.salt(), [f"h2htalk {purpose}", folder.name, folder.spec().kind]
    return lambda *content: hmac.new(key, json_line([*known, *content]).encode(), hashlib.sha256).hexdigest()[:32]


def decision_signer(
    folder: RoundFolder, items: Iterable[Item], annotations: Iterable[Annotation]
) -> Callable[[Decision], Decision]:
    """Return a function that gives a decision its hash. `annotations`: the valid ones of the round."""
    sources, keyed = folder.sources(), keyed_hash(folder, "decisions")
    texts = {item.id: keyed(item.to_dict(), sources.get(item.id)) for item in items}
    answers: dict[tuple[str, str], hashlib._Hash] = {}
    for one in sorted(annotations, key=lambda annotation: annotation.key):
        given = json_line([one.annotator, one.value, one.when]).encode()
        answers.setdefault((one.item, one.question), hashlib.sha256()).update(given)

    def signed(decision: Decision) -> Decision:
        given = answers.get((decision.item, decision.question))
        content = replace(decision, mac="").to_dict(), texts[decision.item], given and given.hexdigest()
        return replace(decision, mac=keyed(*content))

    return signed
