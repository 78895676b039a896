"""What a round can say of its annotators: how often they agree with others and with gold, how fast, what looks odd."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from h2htalk.rounds.aggregation.annotator_warnings import AnnotatorAnswers, pace, read_sheets, warnings_of
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.decisions import votes_on
from h2htalk.rounds.aggregation.vote_table import VoteTable, tabulate
from h2htalk.rounds.annotations import Annotation, skips
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question
from h2htalk.text.escaping import csv_text

# Fewer gold answers than this qualify nobody: of three right answers one may be luck.
LEAST_GOLD = 5
_Z = statistics.NormalDist().inv_cdf(0.975)
HEADINGS = (
    "annotator", "items answered", "items skipped",
    "agrees with the others", "low", "high", "votes compared",
    "right on gold", "gold low", "gold high", "gold answers", "qualified",
    "skill", "seconds an item", "warnings",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Share:
    """`right` of `of` answers (at least one), with Wilson's 95 % interval (E. B. Wilson, JASA 22(158), 1927)."""

    right: int
    of: int

    @property
    def value(self) -> float:
        return self.right / self.of

    @property
    def interval(self) -> tuple[float, float]:
        """Within [0, 1]; of 3 right of 3 it still reaches down to 0.44."""
        n, share = self.of, self.value
        middle = share + _Z**2 / (2 * n)
        half = _Z * math.sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
        whole = 1 + _Z**2 / n
        return max(0.0, (middle - half) / whole), min(1.0, (middle + half) / whole)


@dataclass(frozen=True, slots=True)
class AnnotatorStatistics:
    """Figures of one annotator. None where there is nothing to compute one from. No figure excludes anybody.

    Attributes:
        annotator: a salted hash.
        answered, skipped: items.
        consensus: votes like the majority of the others on the same item, of the votes where the others have one.
        gold: right answers on items that check annotators; a rating within one step counts as right.
        skill: mean probability of the labels that they gave, under Dawid-Skene: the share of their votes that is right
            as far as all votes tell (the diagonal of their confusions, weighted by the labels).
        seconds: median time an item, from one answer to the next (`annotator_warnings.pace`).
        warnings: in words, with the numbers; a question to look into, no verdict.
    """

    annotator: str
    answered: int
    skipped: int
    consensus: Share | None
    gold: Share | None
    skill: float | None
    seconds: float | None
    warnings: tuple[str, ...] = ()


def figures_of(
    items: Sequence[Item],
    questions: Sequence[Question],
    answers: Iterable[Annotation],
    annotators: Iterable[str],
) -> list[AnnotatorStatistics]:
    """Figures of the annotators, in their order.

    Args:
        items: of the round, gold ones included.
        questions: of the round. Consensus and skill count its label questions together.
        answers: those that count (`answers.latest`), in any order.
        annotators: ids of all that were asked; who answered nothing has zeros.
    """
    by_key = {answer.key: answer for answer in answers}
    by_id = {item.id: item for item in items}
    tables = [tabulate(votes_on(q, by_key.values(), by_id)) for q in questions if q.form == "label"]
    consensus, skill = _consensus(tables), _skill(tables)
    gold = _gold(by_id, questions, by_key.values())
    sheets = read_sheets(by_key.values())
    skipped = skips(by_key)
    found = []
    for annotator in annotators:
        sheet = sheets.get(annotator, AnnotatorAnswers(annotator, {}, {}))
        speed = pace(sheet)
        found.append(
            AnnotatorStatistics(
                annotator=annotator,
                answered=sum(any(name != SKIPPED for name in given) for given in sheet.given.values()),
                skipped=sum(who == annotator for _, who in skipped),
                consensus=consensus.get(annotator),
                gold=gold.get(annotator),
                skill=skill.get(annotator),
                seconds=statistics.median(speed.values()) if speed else None,
                warnings=warnings_of(sheet, sheets, by_id, questions),
            )
        )
    return found


def qualified(figures: Iterable[AnnotatorStatistics], pass_gold: float) -> dict[str, bool | None]:
    """Annotator -> whether their share of right gold answers reaches `pass_gold` (0 to 1).

    None where they gave fewer than `LEAST_GOLD` answers on gold items: too few to say either.
    """
    return {
        one.annotator: None if one.gold is None or one.gold.of < LEAST_GOLD else one.gold.value >= pass_gold
        for one in figures
    }


def figures_csv(figures: Sequence[AnnotatorStatistics], pass_gold: float) -> str:
    """The figures as CSV, a row an annotator; shares from 0 to 1, empty where there is no figure.

    `qualified` is yes, no, or says that there were too few gold answers; empty where there were none.
    """
    passed: dict[str, bool | str | None] = {**qualified(figures, pass_gold)}
    for one in figures:
        if one.gold is not None and passed[one.annotator] is None:
            passed[one.annotator] = f"too few gold answers: {one.gold.of} of at least {LEAST_GOLD}"
    rows = [
        (
            one.annotator, one.answered, one.skipped, *_cells(one.consensus), *_cells(one.gold), passed[one.annotator],
            None if one.skill is None else round(one.skill, 4), one.seconds, "; ".join(one.warnings),
        )
        for one in figures
    ]  # fmt: skip
    return csv_text(HEADINGS, rows)


def _cells(share: Share | None) -> tuple[float | None, float | None, float | None, int]:
    if share is None:
        return None, None, None, 0
    low, high = share.interval
    return round(share.value, 4), round(low, 4), round(high, 4), share.of


def _consensus(tables: Sequence[VoteTable]) -> dict[str, Share]:
    """By annotator, agreement with the majority of the others: without the annotator's own vote, where they are not
    tied.
    """
    import numpy as np

    right: Counter[str] = Counter()
    compared: Counter[str] = Counter()
    for table in tables:
        # A second column where nobody disagrees.
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
        decisions = dawid_skene(table)
        for vote in table.votes(range(len(table))):
            chances.setdefault(vote.annotator, []).append(decisions[vote.item].chances[vote.label])
    return {annotator: math.fsum(theirs) / len(theirs) for annotator, theirs in chances.items()}


def _gold(
    items: Mapping[str, Item], questions: Sequence[Question], answers: Iterable[Annotation]
) -> dict[str, Share]:
    forms = {question.name: question.form for question in questions}
    counted: dict[str, list[bool]] = {}
    for answer in answers:
        item = items.get(answer.item)
        if item is None or answer.question not in item.gold or forms.get(answer.question, "text") == "text":
            continue
        wanted, value = item.gold[answer.question], answer.value
        if isinstance(wanted, int) and isinstance(value, int):
            right = abs(value - wanted) <= 1
        elif isinstance(wanted, tuple) and isinstance(value, tuple):
            right = set(value) == set(wanted)
        else:
            right = value == wanted
        counted.setdefault(answer.annotator, []).append(right)
    return {annotator: Share(sum(theirs), len(theirs)) for annotator, theirs in counted.items()}
