"""The outcome of a closed round, read by whoever relies on it: another round, an adjudication, a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk.data.files import read_json_object
from h2htalk.errors import DataError, RoundError, quoted
from h2htalk.rounds.aggregation.decisions import Decision
from h2htalk.rounds.annotations import Annotation, latest
from h2htalk.rounds.integrity import decision_signer, keyed_hash, require_unchanged, validate_round
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import questions_for
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
        items: sorted by id.
        sources: item -> the candidate, scenario or dialogue that it was made from, unchanged.
        decisions: by (item, question); gold items are not decided.
        annotations: the valid ones, by (item, annotator, question).
        agreement: question -> Krippendorff's alpha with its interval.
    """

    name: str
    path: Path
    spec: RoundSpec
    items: tuple[Item, ...]
    sources: Mapping[str, Record]
    decisions: Mapping[tuple[str, str], Decision]
    annotations: Mapping[tuple[str, str, str], Annotation]
    agreement: Mapping[str, Any]


def read_outcome(path: Path) -> RoundOutcome:
    """Read the outcome of a closed round.

    Raises:
        RoundError: the round is not closed, or `path` is a copy without the private folder.
        DataError: a file of the round is invalid; a decision was edited, inserted or removed (names file and line).
    """
    folder = RoundFolder(path).require()
    items, ever_stored = validate_round(folder)
    stored = dict(sorted(latest(ever_stored).items()))  # as hashes cover them
    if folder.state != "closed":
        raise RoundError(
            f"{path}: this round is not closed, so its decisions are not final; run `h2htalk round close {path}` first"
        )
    if not folder.annotators():
        raise RoundError(
            f"{path}: this copy of the round has no folder `private`, so its decisions cannot be verified; name the "
            "folder in which the round was opened"
        )
    require_unchanged(folder, stored)
    annotations = folder.without_removed(stored)
    return RoundOutcome(
        name=folder.name,
        path=path,
        spec=folder.spec(),
        items=items,
        sources=folder.sources(),
        decisions=_read_decisions(folder, items, annotations),
        annotations=annotations,
        agreement=_read_agreement(folder),
    )


def _read_decisions(
    folder: RoundFolder, items: Sequence[Item], annotations: Mapping[tuple[str, str, str], Annotation]
) -> dict[tuple[str, str], Decision]:
    path, signed = folder.path / "decisions.jsonl", decision_signer(folder, items, annotations.values())
    questions = questions_for(folder.spec().kind, [item.labels for item in items])
    answered = {(item, question) for item, _, question in annotations}
    expected = {
        (item.id, question.name)
        for item in items
        for question in questions
        # A question with several labels is decided where somebody answered it.
        if not item.gold and (question.decided or ((item.id, question.name) in answered and question.form == "labels"))
    }
    decisions: dict[tuple[str, str], Decision] = {}
    for where, one in read_record_lines(path, Decision, _again(folder)) if path.exists() else ():
        if (one.item, one.question) not in expected or signed(one) != one:
            raise DataError(
                f"{where}: this decision was not written by closing the round with these annotations; {_again(folder)}"
            )
        decisions[one.item, one.question] = one
    for item, question in sorted(expected - decisions.keys()):
        raise DataError(f"{path}: the decision on {quoted(question)} of {quoted(item)} is missing; {_again(folder)}")
    return decisions


def _read_agreement(folder: RoundFolder) -> dict[str, Any]:
    path = folder.path / "agreement.json"
    agreement = read_json_object(path, missing_ok=True)
    if agreement.pop("mac", None) != keyed_hash(folder, "agreement")(agreement):
        raise DataError(f"{path}: is missing, or was not written by closing the round; {_again(folder)}")
    return agreement


def _again(folder: RoundFolder) -> str:
    return f"close the round again, which writes it from the annotations: `h2htalk round close {folder.path}`"
