"""What is left of annotators who were erased from a round: numbers of items for the payment, and nameless votes.

Decisions of a closed round stay, so their counts stay, too. `erased_votes.jsonl` holds, by item, the answers that these
counts include: without annotator, time and comment, in an order that tells nothing. It reveals no more than the
decisions do beside the annotations that are left. Answers of gold items are not among them: nothing rests on those.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from h2htalk.data.files import json_line
from h2htalk.data.languages import Language
from h2htalk.data.records import Text
from h2htalk.errors import RoundError
from h2htalk.rounds.annotations import Annotation, Annotations
from h2htalk.rounds.annotators import Annotator
from h2htalk.rounds.items import Item
from h2htalk.rounds.payments.prolific_export import comparable_participant_id
from h2htalk.rounds.questions import HARMFUL, SKIPPED, Question, Value

ERASED_ANNOTATORS, ERASED_VOTES = "private/erased_annotators.jsonl", "erased_votes.jsonl"
# The time of votes whose time was erased: readers of annotations need one.
NO_TIME = "1970-01-01T00:00:00+00:00"


@dataclass(frozen=True, slots=True)
class ErasedAnnotator:
    """An annotator who was erased from a round, without name and id.

    Attributes:
        number: from 1.
        mark: hash of the name under the round's salt and a word of its own, which tells that a name was erased.
        completed, skipped: numbers of items, which stay paid.
        spreadsheets: codes of their spreadsheets: one that comes back is deleted.
        reward: what the study on Prolific pays them, as text; empty for a round of an earlier version.
        participant_marks: hashes of the ids by which Prolific knew them, which tell that one joins under another name.
    """

    number: int
    mark: str
    completed: int
    skipped: int
    spreadsheets: tuple[str, ...] = ()
    reward: str = ""
    participant_marks: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """What stands for the annotator's id and name in the files of the round."""
        return erased_code(self.number)


@dataclass(frozen=True, slots=True)
class ErasedVotes:
    """Answers to one item that the decisions of a closed round count: question -> value, of each erased annotator.

    `readers`: how many of them are of somebody who counted as a reader (`planted.py`).
    """

    item: Text
    answers: tuple[Mapping[str, Value], ...]
    readers: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError where more readers are named than gave the answer by which they are readers."""
        answered = sum(HARMFUL.name in given for given in self.answers)
        if not 0 <= self.readers <= answered:
            raise ValueError(
                f"readers is {self.readers:,}, and {answered:,} of {len(self.answers):,} answers are about harm"
            )


def erased_code(number: int) -> str:
    """Return what stands for the id of the `number`-th erased annotator, or erased vote of an item."""
    return f"erased-{number}"


def erasure_mark(name: str, salt: bytes) -> str:
    """Return the mark of an erased annotator of this name."""
    return hmac.new(salt, b"erased " + name.encode(), hashlib.sha256).hexdigest()[:16]


def participant_mark(participant: str, salt: bytes) -> str:
    """Return the mark of an erased annotator's id on Prolific, in whichever case it is written."""
    written = comparable_participant_id(participant).encode()
    return hmac.new(salt, b"erased participant " + written, hashlib.sha256).hexdigest()[:16]


def require_none_erased(
    annotators: Iterable[Annotator], all_erased: Iterable[ErasedAnnotator], salt: bytes, path: Path
) -> None:
    """Raise RoundError, beginning with `path`, if somebody was erased, by this name or under another one."""
    marks = set[str]()
    participants = set[str]()
    for erased in all_erased:
        marks.add(erased.mark)
        participants.update(erased.participant_marks)
    for annotator in annotators:
        name = annotator.name
        if erasure_mark(name, salt) in marks:
            problem = "was erased from this round and"
        elif participant_mark(annotator.participant_id, salt) in participants:
            problem = "has the participant_id of somebody who was erased from this round and"
        else:
            continue
        raise RoundError(f"{path}: {name} {problem} cannot join it again; leave the name out")


def votes_of(
    annotator: str,
    items: Iterable[Item],
    questions: Sequence[Question],
    annotations: Annotations,
    reads: Collection[Language] = (),
) -> list[ErasedVotes]:
    """Return the answers of an annotator (id) that a closed round counts; no comments, no planted items.

    Answers to gold items decide nothing, but agreement and overlap count them.

    `reads`: the languages of which the annotator counted as a reader.
    """
    decided = {item.id: item.language for item in items if not item.planted}
    counted = {question.name for question in questions if question.form != "text"}
    answers: dict[str, dict[str, Value]] = {}
    for (item, who, question), one in sorted(annotations.items()):
        if who == annotator and item in decided and question in counted and one.value is not None:
            answers.setdefault(item, {})[question] = one.value
    return [
        ErasedVotes(
            item=item,
            answers=(given,),
            readers=int(decided[item] in reads and HARMFUL.name in given),
        )
        for item, given in answers.items()
    ]


def merge_votes(votes: Iterable[ErasedVotes]) -> list[ErasedVotes]:
    """Return one record for each item, sorted; the order of its answers does not tell who was erased first."""
    answers: dict[str, list[Mapping[str, Value]]] = {}
    readers = Counter[str]()
    for one in votes:
        answers.setdefault(one.item, []).extend(one.answers)
        readers[one.item] += one.readers
    return [
        ErasedVotes(item=item, answers=tuple(sorted(given, key=json_line)), readers=readers[item])
        for item, given in sorted(answers.items())
    ]


def votes_as_annotations(
    votes: Iterable[ErasedVotes], round_name: str, items: Mapping[str, Item]
) -> dict[tuple[str, str, str], Annotation]:
    """Return erased votes as annotations by (item, code, question); one code is not one person throughout."""
    found: dict[tuple[str, str, str], Annotation] = {}
    for one in votes:
        for number, answers in enumerate(one.answers, 1):
            for question, value in answers.items():
                if one.item in items and question != SKIPPED:
                    annotation = Annotation(
                        round=round_name,
                        item=one.item,
                        annotator=erased_code(number),
                        question=question,
                        value=value,
                        when=NO_TIME,
                    )
                    found[annotation.key] = annotation
    return found
