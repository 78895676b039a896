"""Statistics of annotators: agreement with others, accuracy on gold items, speed, warnings."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.distributions import Interval, wilson_interval
from h2htalk.rounds.aggregation.annotator_warnings import (
    AnnotatorAnswers,
    annotator_warnings,
    answers_by_annotator,
    seconds_per_item,
)
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.decisions import votes_on
from h2htalk.rounds.aggregation.vote_table import VoteTable, tabulate
from h2htalk.rounds.annotations import Annotation, skips
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question
from h2htalk.text.escaping import csv_text

# Fewer gold answers qualify nobody: three right answers of three may be luck.
MIN_GOLD = 5
HEADINGS = (
    "annotator", "items annotated", "items skipped",
    "agreement with majority", "agreement low", "agreement high", "votes compared",
    "gold accuracy", "gold low", "gold high", "gold answers", "qualified",
    "dawid-skene accuracy", "seconds per item", "warnings",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Share:
    """`right` of `of` answers (at least one), with Wilson's 95 % interval."""

    right: int
    of: int

    @property
    def value(self) -> float:
        return self.right / self.of

    @property
    def interval(self) -> Interval:
        """The interval within [0, 1]; for 3 right of 3 its lower end is 0.44."""
        return wilson_interval(self.value, self.of)


@dataclass(frozen=True, slots=True)
class AnnotatorStatistics:
    """Statistics of one annotator; None if there is no data. They never exclude anybody.

    Attributes:
        annotator: salted hash.
        annotated, skipped: numbers of items.
        consensus: votes equal to the majority of the others on the same item, among items where the others have one.
        gold: right answers on gold items; a rating within one step counts as right.
        skill: mean Dawid-Skene probability of the labels that they gave: their estimated accuracy.
        seconds: median time per item, from one answer to the next (`annotator_warnings.seconds_per_item`).
        warnings: reasons to talk to the annotator, with numbers.
    """

    annotator: str
    annotated: int
    skipped: int
    consensus: Share | None
    gold: Share | None
    skill: float | None
    seconds: float | None
    warnings: tuple[str, ...] = ()


def annotator_statistics(
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Iterable[Annotation],
    annotators: Iterable[str],
) -> list[AnnotatorStatistics]:
    """Return the statistics of annotators, in their order.

    Args:
        items: of the round, gold items included.
        questions: of the round. Consensus and skill count all label questions together.
        annotations: the valid ones (`annotations.latest`), in any order.
        annotators: ids of all annotators of the round.
    """
    by_key = {annotation.key: annotation for annotation in annotations}
    by_id = {item.id: item for item in items}
    tables = [tabulate(votes_on(q, by_key.values())) for q in questions if q.form == "label"]
    consensus, skill = _consensus(tables), _skill(tables)
    gold = _gold(by_id, questions, by_key.values())
    answers = answers_by_annotator(by_key.values())
    skipped = Counter(annotator for _, annotator in skips(by_key))
    result = []
    for annotator in annotators:
        theirs = answers.get(annotator, AnnotatorAnswers(annotator, {}, {}))
        seconds = seconds_per_item(theirs)
        result.append(
            AnnotatorStatistics(
                annotator=annotator,
                annotated=sum(any(name != SKIPPED for name in given) for given in theirs.given.values()),
                skipped=skipped[annotator],
                consensus=consensus.get(annotator),
                gold=gold.get(annotator),
                skill=skill.get(annotator),
                seconds=statistics.median(seconds.values()) if seconds else None,
                warnings=annotator_warnings(theirs, answers, by_id, questions),
            )
        )
    return result


def qualified(rows: Iterable[AnnotatorStatistics], pass_gold: float) -> dict[str, bool | None]:
    """Return annotator -> whether their accuracy on gold items reaches `pass_gold` (0 to 1).

    None for fewer than `MIN_GOLD` gold answers.
    """
    return {
        one.annotator: None if one.gold is None or one.gold.of < MIN_GOLD else one.gold.value >= pass_gold
        for one in rows
    }


def statistics_csv(rows: Sequence[AnnotatorStatistics], pass_gold: float) -> str:
    """Return the statistics as CSV, one row per annotator; shares from 0 to 1, empty cells for None.

    `qualified` is yes, no, or a note that there were too few gold answers; empty without gold answers.
    """
    passed: dict[str, bool | str | None] = {**qualified(rows, pass_gold)}
    for one in rows:
        if one.gold is not None and passed[one.annotator] is None:
            passed[one.annotator] = f"too few gold answers: {one.gold.of} of at least {MIN_GOLD}"
    table = [
        (
            one.annotator, one.annotated, one.skipped, *_cells(one.consensus), *_cells(one.gold), passed[one.annotator],
            None if one.skill is None else round(one.skill, 4), one.seconds, "; ".join(one.warnings),
        )
        for one in rows
    ]  # fmt: skip
    return csv_text(HEADINGS, table)


def _cells(share: Share | None) -> tuple[float | None, float | None, float | None, int]:
    if share is None:
        return None, None, None, 0
    low, high = share.interval
    return round(share.value, 4), round(low, 4), round(high, 4), share.of


def _consensus(tables: Sequence[VoteTable]) -> dict[str, Share]:
    """Return the agreement of each annotator with the majority of the others, on items where that is no tie."""
    import numpy as np

    right: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for table in tables:
        # At least two columns, for `partition`.
        others = np.pad(table.counts(), ((0, 0), (0, max(0, 2 - len(table.labels)))))[table.item]
        others[np.arange(len(table)), table.label] -= 1
        highest = np.partition(others, -2, axis=1)
        clear = highest[:, -1] > highest[:, -2]
        same = clear & (others.argmax(axis=1) == table.label)
        for counter, votes in ((right, same), (compared, clear)):
            counted = np.bincount(table.annotator[votes], minlength=len(table.annotators))
            counter.update(dict(zip(table.annotators, counted.tolist(), strict=True)))
    return {annotator: Share(right[annotator], number) for annotator, number in compared.items() if number}


def _skill(tables: Sequence[VoteTable]) -> dict[str, float]:
    chances: dict[str, list[float]] = {}
    for table in tables:
        results = dawid_skene(table)
        for vote in table.votes(range(len(table))):
            chances.setdefault(vote.annotator, []).append(results[vote.item].chances[vote.label])
    return {annotator: math.fsum(theirs) / len(theirs) for annotator, theirs in chances.items()}


def _gold(
    items: Mapping[str, Item], questions: Sequence[Question], annotations: Iterable[Annotation]
) -> dict[str, Share]:
    forms = {question.name: question.form for question in questions}
    results: dict[str, list[bool]] = {}
    for one in annotations:
        if one.question not in items[one.item].gold or forms[one.question] == "text":
            continue
        gold, value = items[one.item].gold[one.question], one.value
        if isinstance(gold, int) and isinstance(value, int):
            right = abs(value - gold) <= 1
        elif isinstance(gold, tuple) and isinstance(value, tuple):
            right = set(value) == set(gold)
        else:
            right = value == gold
        results.setdefault(one.annotator, []).append(right)
    return {annotator: Share(sum(theirs), len(theirs)) for annotator, theirs in results.items()}
