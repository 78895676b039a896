"""The outcome of a closed round, read by whoever relies on it: another round, an adjudication, a release."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.aggregation.decisions import Decision
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.decision_macs import DecisionMacs, keyed_hash
from h2htalk.rounds.integrity import require_unchanged, validate_round
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import Question, questions_for
from h2htalk.rounds.round_folder import RoundFolder, read_record_lines
from h2htalk.rounds.settings import RoundSpec

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What a closed round has decided, verified.

    Attributes:
        name: of the round.
        path: its folder.
        spec: its specification.
        sources: item -> the candidate, scenario or dialogue that it was made from, unchanged.
        decisions: by (item, question); gold items are not decided.
        annotations: the valid ones, by (item, annotator, question).
        agreement: question -> Krippendorff's alpha with its interval.
        annotators: everybody the round ever had.
    """

    name: str
    path: Path
    spec: RoundSpec
    sources: Mapping[str, Record]
    decisions: Mapping[tuple[str, str], Decision]
    annotations: Mapping[tuple[str, str, str], Annotation]
    agreement: Mapping[str, Any]
    annotators: tuple[Annotator, ...]


def read_outcome(path: Path) -> RoundOutcome:
    """Read the outcome of a closed round.

    Raises:
        RoundError: the round is not closed, or `path` is a copy without the private folder.
        DataError: a file of the round is invalid; a decision was edited, inserted or removed (names file and line).
    """
    folder = RoundFolder(path)
    folder.require()
    validate_round(folder)
    if folder.state != "closed":
        raise RoundError(
            f"{path}: this round is not closed, so its decisions are not final; run `h2htalk round close {path}` first"
        )
    annotators = folder.annotators()
    if not annotators:
        raise RoundError(
            f"{path}: this copy of the round has no folder `private`, so its decisions cannot be verified; name the "
            "folder in which the round was opened"
        )
    items, spec, stored = folder.items(), folder.spec(), folder.stored_annotations()
    require_unchanged(folder, stored)
    annotations = folder.without_removed(stored)
    questions = questions_for(spec.kind, [item.labels for item in items])
    return RoundOutcome(
        name=folder.name,
        path=path,
        spec=spec,
        sources=folder.sources(),
        decisions=_read_decisions(folder, items, questions, annotations),
        annotations=annotations,
        agreement=_read_agreement(folder),
        annotators=annotators,
    )


def _read_decisions(
    folder: RoundFolder,
    items: Collection[Item],
    questions: Collection[Question],
    annotations: Mapping[tuple[str, str, str], Annotation],
) -> dict[tuple[str, str], Decision]:
    path = folder.path / "decisions.jsonl"
    macs = DecisionMacs.of(folder, items, annotations.values())
    expected = set(_decided(items, questions, annotations))
    decisions: dict[tuple[str, str], Decision] = {}
    for where, one in read_record_lines(path, Decision, _again(folder)) if path.exists() else ():
        key = one.item, one.question
        if key not in expected or macs.signed(one) != one:
            raise DataError(
                f"{where}: this decision was not written by closing the round with these annotations; {_again(folder)}"
            )
        if key in decisions:
            raise DataError(f"{where}: {quoted(one.question)} of {quoted(one.item)} occurs twice; {_again(folder)}")
        decisions[key] = one
    if missing := sorted(expected - decisions.keys()):
        (item, question), more = missing[0], f" ({len(missing):,} in all)" if len(missing) > 1 else ""
        raise DataError(
            f"{path}: the decision on {quoted(question)} of {quoted(item)} is missing{more}; {_again(folder)}"
        )
    return decisions


def _decided(
    items: Collection[Item],
    questions: Collection[Question],
    annotations: Collection[tuple[str, str, str]],
) -> Iterator[tuple[str, str]]:
    """Yield (item, question) of everything that closing decides."""
    answered = {(item, question) for item, _, question in annotations}
    for item in (item for item in items if not item.gold):
        for question in questions:
            # A question with several labels is decided where somebody answered it.
            if question.decided or (question.form == "labels" and (item.id, question.name) in answered):
                yield item.id, question.name


def _read_agreement(folder: RoundFolder) -> dict[str, Any]:
    path = folder.path / "agreement.json"
    try:
        agreement = read_json_object(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: the file is missing; {_again(folder)}") from error
    if agreement.pop("mac", None) != keyed_hash(folder, "agreement", agreement):
        raise DataError(f"{path}: was not written by closing the round; {_again(folder)}")
    return agreement


def _again(folder: RoundFolder) -> str:
    return f"close the round again, which writes it from the annotations: `h2htalk round close {folder.path}`"
