"""Statistics of annotators: agreement with others, accuracy on gold items, speed; and warnings, with numbers.

A warning is a reason to talk to an annotator, never to exclude them.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, product
from typing import Any

from h2htalk.data.languages import find_language
from h2htalk.distributions import Interval, binomial_tail, wilson_interval
from h2htalk.rounds.aggregation.dawid_skene import dawid_skene
from h2htalk.rounds.aggregation.decisions import votes_on
from h2htalk.rounds.aggregation.votes import VoteTable, tabulate
from h2htalk.rounds.annotations import Annotation, skips
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, Value
from h2htalk.text.escaping import csv_text

# Fewer gold answers qualify nobody: three right answers of three may be luck.
MIN_GOLD = 5
# A longer time between two answers is a break (seconds).
BREAK = 600
# Least number of timed items for a statement on speed, and of answers for one on agreement and habits.
MIN_ITEMS = 10
# The multiple of the speed of reading aloud at which nobody reads with care.
MAX_SPEEDUP = 3
# Kappa below which agreement is slight (J. R. Landis, G. G. Koch, Biometrics 33(1), 1977), and the standard errors by
# which it must be below that of the other annotators.
SLIGHT, ERRORS = 0.2, 3.0
# Warn if ratings are equal on at least this share of the items, and this is improbable given the others' ratings.
MIN_SHARE, MAX_PROBABILITY = 0.8, 1e-3
HEADINGS = (
    "annotator", "items annotated", "items skipped",
    "agreement with majority", "agreement low", "agreement high", "votes compared",
    "gold accuracy", "gold low", "gold high", "gold answers", "qualified",
    "dawid-skene accuracy", "seconds per item", "warnings",
)  # fmt: skip

# Annotator -> item -> question -> value.
Given = Mapping[str, Mapping[str, Mapping[str, Value]]]


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
        seconds: median time per item, from one answer to the next (`seconds_per_item`).
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
    items: Sequence[Item], questions: Sequence[Question], annotations: Iterable[Annotation], annotators: Iterable[str]
) -> list[AnnotatorStatistics]:
    """Return the statistics of annotators, in their order.

    Args:
        items: of the round, gold items included.
        questions: of the round. Consensus and skill count all label questions together.
        annotations: the valid ones (`annotations.latest`), in any order.
        annotators: ids of all annotators of the round.
    """
    by_key = {annotation.key: annotation for annotation in annotations}
    tables = [tabulate(votes_on(q, by_key.values())) for q in questions if q.form == "label"]
    consensus, skill = _consensus(tables), _skill(tables)
    gold = _gold({item.id: item for item in items}, questions, by_key.values())
    given, times = answers_by_annotator(by_key.values())
    warnings = annotator_warnings(items, questions, by_key.values())
    skipped = Counter(annotator for _, annotator in skips(by_key))
    return [
        AnnotatorStatistics(
            annotator=one,
            annotated=sum(theirs.keys() != {SKIPPED} for theirs in given.get(one, {}).values()),
            skipped=skipped[one],
            consensus=consensus.get(one),
            gold=gold.get(one),
            skill=skill.get(one),
            seconds=statistics.median(seconds.values()) if (seconds := seconds_per_item(times.get(one, {}))) else None,
            warnings=warnings.get(one, ()),
        )
        for one in annotators
    ]


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


# --- Warnings ---------------------------------------------------------------------------------------------------------


def answers_by_annotator(annotations: Iterable[Annotation]) -> tuple[Given, Mapping[str, Mapping[str, float]]]:
    """Return the answers, and annotator -> item -> time of the first answer (s); times not in ISO 8601 are ignored."""
    given: dict[str, dict[str, dict[str, Value]]] = {}
    times: dict[str, dict[str, float]] = {}
    for one in annotations:
        if one.value is None:
            continue
        given.setdefault(one.annotator, {}).setdefault(one.item, {})[one.question] = one.value
        try:
            when = datetime.fromisoformat(one.when)
        except ValueError:
            continue
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        theirs = times.setdefault(one.annotator, {})
        theirs[one.item] = min(seconds, theirs.get(one.item, math.inf))
    return given, times


def seconds_per_item(times: Mapping[str, float]) -> dict[str, float]:
    """Return item -> seconds since the annotator's answer before it, without breaks.

    Empty for fewer than ten such items, and if most times are equal because they were collected together
    (spreadsheets).
    """
    order = sorted(times, key=lambda item: (times[item], item))
    gaps = {after: times[after] - times[before] for before, after in pairwise(order)}
    timed = {item: gap for item, gap in gaps.items() if 0 < gap < BREAK}
    together = 2 * sum(not gap for gap in gaps.values()) > len(gaps)
    return timed if len(timed) >= MIN_ITEMS and not together else {}


def annotator_warnings(
    items: Iterable[Item], questions: Sequence[Question], annotations: Iterable[Annotation]
) -> dict[str, tuple[str, ...]]:
    """Return annotator -> warnings: too fast, agreement hardly above chance, equal ratings; of those who have some."""
    by_id = {item.id: item for item in items}
    given, times = answers_by_annotator(annotations)
    warnings: dict[str, list[str]] = {}
    for annotator, theirs in given.items():
        timed = seconds_per_item(times.get(annotator, {}))
        timed = {item: gap for item, gap in timed.items() if theirs[item].keys() != {SKIPPED}}
        warnings[annotator] = [*_too_fast(timed, by_id), *_equal_ratings(annotator, given, questions)]
    for question in questions:
        if question.decided:
            for annotator, warning in _slight_agreement(question.name, given):
                warnings[annotator].append(warning)
    return {annotator: tuple(theirs) for annotator, theirs in warnings.items() if theirs}


def min_reading_seconds(item: Item) -> float:
    """Return the time for reading an item at `MAX_SPEEDUP` times the usual speed (s)."""
    texts = [*(turn.content for turn in item.turns), *(text for _, text in item.context)]
    length = sum(map(len, (*texts, item.response, item.reference)))
    return 60 * length / (find_language(item.language).reading_speed * MAX_SPEEDUP)


def _too_fast(timed: Mapping[str, float], items: Mapping[str, Item]) -> Iterator[str]:
    fast = [item for item, gap in timed.items() if gap < min_reading_seconds(items[item])]
    if len(timed) >= MIN_ITEMS and 2 * len(fast) >= len(timed):
        median = statistics.median(timed[item] for item in fast)
        needed = statistics.median(min_reading_seconds(items[item]) for item in fast)
        yield (
            f"too fast: {len(fast)} of {len(timed)} timed items were answered faster than they can be read (median "
            f"{median:.0f} s; reading at {MAX_SPEEDUP} times the usual speed takes {needed:.0f} s)"
        )


def _equal_ratings(annotator: str, given: Given, questions: Sequence[Question]) -> Iterator[str]:
    """Yield a warning if all ratings of nearly all items are equal, and those of the others are not.

    The others' share counts one more case of each, so that it is not 0.
    """
    names = [question.name for question in questions if question.form == "rating"]

    def equal(answers: Given, one: str, item: str) -> bool | None:
        values = answers[one].get(item, {})
        return len({values[name] for name in names}) == 1 if all(name in values for name in names) else None

    mine = {item: same for item in given[annotator] if (same := equal(given, annotator, item)) is not None}
    count = sum(mine.values())
    if len(names) < 2 or len(mine) < MIN_ITEMS or count < MIN_SHARE * len(mine):
        return
    others = [
        same for one in given if one != annotator for item in mine if (same := equal(given, one, item)) is not None
    ]
    probability = binomial_tail(count, len(mine), (sum(others) + 1) / (len(others) + 2))
    if others and probability < MAX_PROBABILITY:
        yield (
            f"straight-lining: all {len(names)} ratings are equal on {count} of {len(mine)} items, other annotators on "
            f"{sum(others) / len(others):.0%} of them (probability {max(probability, 1e-9):.0e} or less)"
        )


def _slight_agreement(question: str, given: Given) -> Iterator[tuple[str, str]]:
    """Yield annotators who agree with the others hardly above chance, while these agree, with the warning."""
    by_item: dict[str, dict[str, Value]] = {}
    for annotator, items in given.items():
        for item, answers in items.items():
            if question in answers:
                by_item.setdefault(item, {})[annotator] = answers[question]
    for annotator, (kappa, error, count) in sorted(_kappas(by_item).items()):
        if kappa >= SLIGHT:
            continue
        rest = ({one: value for one, value in answers.items() if one != annotator} for answers in by_item.values())
        typical = statistics.median([one for one, _, _ in _kappas(dict(enumerate(rest))).values()] or [0.0])
        if typical >= SLIGHT and typical - kappa > ERRORS * error:
            yield (
                annotator,
                f"slight agreement: on {count} items, {question} agrees with the other annotators hardly above chance "
                f"(kappa {kappa:.2f}; that of the others among themselves is {typical:.2f})",
            )


def _kappas(by_item: Mapping[Any, Mapping[str, Value]]) -> dict[str, tuple[float, float, int]]:
    """Return kappa, its standard error and the number of items of annotators with enough items that others answered.

    Kappa is 1 - observed / expected disagreement with the others on the same items (Cohen 1960; of ratings weighted by
    the squared difference, Cohen 1968). Somebody who always gives the same answer has 0, however frequent it is.
    """
    observed: dict[str, list[float]] = {}
    mine: dict[str, Counter[Value]] = {}
    others: dict[str, Counter[Value]] = {}
    for answers in by_item.values():
        counts = Counter(answers.values())
        for annotator, value in answers.items() if len(answers) > 1 else ():
            rest = {other: (n - (other == value)) / (len(answers) - 1) for other, n in counts.items()}
            observed.setdefault(annotator, []).append(sum(n * _distance(value, other) for other, n in rest.items()))
            mine.setdefault(annotator, Counter())[value] += 1
            others.setdefault(annotator, Counter()).update(rest)
    kappas = {}
    for annotator, seen in observed.items():
        pairs = product(mine[annotator].items(), others[annotator].items())
        expected = sum(n * m * _distance(one, other) for (one, n), (other, m) in pairs) / len(seen) ** 2
        if len(seen) >= MIN_ITEMS and expected:
            error = statistics.stdev(seen) / math.sqrt(len(seen)) / expected
            kappas[annotator] = 1 - statistics.fmean(seen) / expected, error, len(seen)
    return kappas


def _distance(one: Value, other: Value) -> float:
    """Return the disagreement of two answers: squared difference of ratings, 0 or 1 of labels."""
    return (one - other) ** 2 if isinstance(one, int) and isinstance(other, int) else float(one != other)
