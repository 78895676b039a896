"""Statistics of annotators: agreement with others, accuracy on gold items, speed; and warnings, with numbers.

Annotators who share unusual answers are found in `shared_answers`.

A warning is a reason to talk to an annotator, never to exclude them.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise, product

from h2htalk.data.languages import find_language
from h2htalk.distributions import Interval, binomial_tail, wilson_interval
from h2htalk.rounds.aggregation.shared_answers import SharedAnswers, partners
from h2htalk.rounds.annotations import Annotation, skips
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, Value, voted
from h2htalk.text.escaping import csv_text

# Fewer gold answers qualify nobody: three right answers of three may be luck.
MIN_GOLD = 5
# A longer time between two answers is a break (seconds).
BREAK = 600
# Least number of items for a statement on speed, agreement or habits.
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
    "gold accuracy", "gold low", "gold high", "gold answers", "qualified", "seconds per item",
    "shares answers with", "warnings",
)  # fmt: skip

# Item -> annotator -> answer to one question.
Answers = Mapping[str, Mapping[str, Value]]


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
        return wilson_interval(self.value, self.of)


@dataclass(frozen=True, slots=True)
class AnnotatorStatistics:
    """Statistics of one annotator, a salted hash: numbers of items, and shares; None if there is no data.

    `consensus` are votes equal to the majority of the others on the same item, among items where the others have one.
    `gold` are right answers on gold items; a rating within one step counts as right. `seconds` is the median time per
    item, from one answer to the next. `shares_with` are annotators with whom they share unusual answers.
    """

    annotator: str
    annotated: int
    skipped: int
    consensus: Share | None
    gold: Share | None
    seconds: float | None
    warnings: tuple[str, ...] = ()
    shares_with: tuple[str, ...] = ()


def annotator_statistics(
    items: Sequence[Item],
    questions: Sequence[Question],
    annotations: Iterable[Annotation],
    annotators: Iterable[str],
    shared: Sequence[SharedAnswers] = (),
) -> list[AnnotatorStatistics]:
    """Return the statistics of annotators (ids), in their order; consensus counts all label questions together.

    `shared` are the pairs of the round who share unusual answers.
    """
    by_key = {annotation.key: annotation for annotation in annotations}
    found = list(by_key.values())
    skipped = Counter(annotator for _, annotator in skips(by_key))
    answered = Counter(
        annotator for _, annotator in {one.key[:2] for one in found if one.question != SKIPPED}
    )
    consensus = _consensus(
        [
            _answers(question.name, found)
            for question in voted(questions)
            if question.form == "label"
        ]
    )
    gold = gold_shares(items, questions, found)
    seconds = _seconds_per_item(found)
    warnings = annotator_warnings(items, questions, found)
    shared_by: dict[str, list[str]] = {}
    for pair in shared:
        for annotator in pair.annotators:
            shared_by.setdefault(annotator, []).append(pair.describe(*pair.annotators))
    shares_with = partners(shared)
    return [
        AnnotatorStatistics(
            annotator=one,
            annotated=answered[one],
            skipped=skipped[one],
            consensus=consensus.get(one),
            gold=gold.get(one),
            seconds=statistics.median(seconds[one].values()) if one in seconds else None,
            warnings=(*warnings.get(one, ()), *shared_by.get(one, ())),
            shares_with=tuple(shares_with.get(one, ())),
        )
        for one in annotators
    ]


def gold_shares(
    items: Sequence[Item], questions: Sequence[Question], annotations: Iterable[Annotation]
) -> dict[str, Share]:
    """Return annotator -> share of right answers on gold items; of those who answered any."""
    right = {(item.id, name): value for item in items for name, value in item.gold.items()}
    checked = {question.name for question in questions if question.form != "text"}
    return _shares(
        (one.annotator, _is_right(one.value, right[one.item, one.question]))
        for one in annotations
        if one.question in checked and (one.item, one.question) in right and one.value is not None
    )


def qualified(rows: Iterable[AnnotatorStatistics], pass_gold: float) -> dict[str, bool | None]:
    """Return annotator -> whether their accuracy on gold items reaches `pass_gold` (0 to 1).

    None for fewer than `MIN_GOLD` gold answers.
    """
    return {
        one.annotator: None
        if one.gold is None or one.gold.of < MIN_GOLD
        else one.gold.value >= pass_gold
        for one in rows
    }


def statistics_csv(rows: Sequence[AnnotatorStatistics], pass_gold: float) -> str:
    """Return the statistics as CSV, one row per annotator; shares from 0 to 1, empty cells for None.

    `qualified` is yes, no, or a note that there were too few gold answers; empty without gold answers.
    """
    passed = qualified(rows, pass_gold)
    table = []
    for one in rows:
        few = f"too few gold answers: {one.gold.of} of at least {MIN_GOLD}" if one.gold else None
        qualifies = few if passed[one.annotator] is None else passed[one.annotator]
        cells = one.annotator, one.annotated, one.skipped, *_cells(one.consensus), *_cells(one.gold)
        table.append(
            (*cells, qualifies, one.seconds, " ".join(one.shares_with), "; ".join(one.warnings))
        )
    return csv_text(HEADINGS, table)


def _cells(share: Share | None) -> tuple[float | None, float | None, float | None, int]:
    if share is None:
        return None, None, None, 0
    low, high = share.interval
    return round(share.value, 4), round(low, 4), round(high, 4), share.of


def _answers(question: str, annotations: Iterable[Annotation]) -> Answers:
    by_item: dict[str, dict[str, Value]] = {}
    for one in annotations:
        if one.question == question and one.value is not None:
            by_item.setdefault(one.item, {})[one.annotator] = one.value
    return by_item


def _shares(results: Iterable[tuple[str, bool]]) -> dict[str, Share]:
    """Return the share of right answers of each annotator."""
    right = Counter[str]()
    total = Counter[str]()
    for annotator, is_right in results:
        right[annotator] += is_right
        total[annotator] += 1
    return {annotator: Share(right[annotator], count) for annotator, count in total.items()}


def _consensus(questions: Sequence[Answers]) -> dict[str, Share]:
    """Return the agreement of each annotator with the majority of the others, on items where that is no tie."""
    results: list[tuple[str, bool]] = []
    for answers in (answers for question in questions for answers in question.values()):
        counts = Counter(answers.values())
        for annotator, label in answers.items():
            (first, most), (_, next_most) = [
                *(counts - Counter([label])).most_common(2),
                (None, 0),
                (None, 0),
            ][:2]
            if most > next_most:
                results.append((annotator, first == label))
    return _shares(results)


def _is_right(value: Value, gold: Value) -> bool:
    if isinstance(gold, int) and isinstance(value, int):
        return abs(value - gold) <= 1
    return (
        set(value) == set(gold)
        if isinstance(gold, tuple) and isinstance(value, tuple)
        else value == gold
    )


def _seconds_per_item(annotations: Iterable[Annotation]) -> dict[str, dict[str, float]]:
    """Return annotator -> item -> seconds since their answer before it, without breaks; first answers count.

    Annotators with fewer than ten such items are left out, and those most of whose times are equal because they were
    collected together (spreadsheets).
    """
    times: dict[str, dict[str, float]] = {}
    for one in annotations:
        seconds = datetime.fromisoformat(one.when).timestamp()
        theirs = times.setdefault(one.annotator, {})
        theirs[one.item] = min(seconds, theirs.get(one.item, math.inf))
    found = {}
    for annotator, theirs in times.items():
        order = sorted(theirs, key=lambda item: (theirs[item], item))
        gaps = {after: theirs[after] - theirs[before] for before, after in pairwise(order)}
        timed = {item: gap for item, gap in gaps.items() if 0 < gap < BREAK}
        if len(timed) >= MIN_ITEMS and 2 * sum(not gap for gap in gaps.values()) <= len(gaps):
            found[annotator] = timed
    return found


# --- Warnings ---------------------------------------------------------------------------------------------------------


def annotator_warnings(
    items: Iterable[Item], questions: Sequence[Question], annotations: Iterable[Annotation]
) -> dict[str, tuple[str, ...]]:
    """Return annotator -> warnings: too fast, agreement hardly above chance, equal ratings; of those who have some."""
    found = list(annotations)
    by_id = {item.id: item for item in items}
    warnings: dict[str, list[str]] = {one.annotator: [] for one in found}
    read = {(one.annotator, one.item) for one in found if one.question != SKIPPED}
    for annotator, gaps in _seconds_per_item(found).items():
        timed = {item: gap for item, gap in gaps.items() if (annotator, item) in read}
        fast = [item for item, gap in timed.items() if gap < min_reading_seconds(by_id[item])]
        if len(timed) >= MIN_ITEMS and 2 * len(fast) >= len(timed):
            median = statistics.median(timed[item] for item in fast)
            needed = statistics.median(min_reading_seconds(by_id[item]) for item in fast)
            warnings[annotator].append(
                f"too fast: {len(fast)} of {len(timed)} timed items were answered faster than they can be read (median "
                f"{median:.0f} s; reading at {MAX_SPEEDUP} times the usual speed takes {needed:.0f} s)"
            )
    for annotator, warning in _equal_ratings(
        [question.name for question in questions if question.ratings], found
    ):
        warnings[annotator].append(warning)
    for question in (question for question in voted(questions) if question.decided):
        for annotator, warning in _slight_agreement(question.name, _answers(question.name, found)):
            warnings[annotator].append(warning)
    return {annotator: tuple(theirs) for annotator, theirs in warnings.items() if theirs}


def min_reading_seconds(item: Item) -> float:
    """Return the time for reading an item at `MAX_SPEEDUP` times the usual speed (s)."""
    texts = [*(turn.content for turn in item.turns), *(text for _, text in item.context)]
    length = sum(map(len, (*texts, item.response, *item.references)))
    return 60 * length / (find_language(item.language).reading_speed * MAX_SPEEDUP)


def _equal_ratings(
    names: Sequence[str], annotations: Iterable[Annotation]
) -> Iterator[tuple[str, str]]:
    """Yield annotators all of whose ratings of nearly all items are equal, while those of the others are not.

    The others' share counts one more case of each, so that it is not 0.
    """
    ratings: dict[tuple[str, str], list[Value | None]] = {}
    for one in annotations:
        if one.question in names:
            ratings.setdefault((one.annotator, one.item), []).append(one.value)
    equal: dict[str, dict[str, bool]] = {}
    for (annotator, item), values in ratings.items():
        if len(values) == len(names) > 1:
            equal.setdefault(annotator, {})[item] = len(set(values)) == 1
    for annotator, mine in equal.items():
        count = sum(mine.values())
        if len(mine) < MIN_ITEMS or count < MIN_SHARE * len(mine):
            continue
        others = [
            same
            for who in equal.keys() - {annotator}
            for item, same in equal[who].items()
            if item in mine
        ]
        probability = binomial_tail(count, len(mine), (sum(others) + 1) / (len(others) + 2))
        if others and probability < MAX_PROBABILITY:
            yield (
                annotator,
                f"straight-lining: all {len(names)} ratings are equal on {count} of {len(mine)} items, other "
                f"annotators on {sum(others) / len(others):.0%} of them (probability {max(probability, 1e-9):.0e} or "
                "less)",
            )


def _slight_agreement(question: str, answers: Answers) -> Iterator[tuple[str, str]]:
    """Yield annotators who agree with the others hardly above chance, while these agree, with the warning."""
    for annotator, (kappa, error, count) in sorted(_kappas(answers).items()):
        if kappa >= SLIGHT:
            continue
        rest = {
            item: {who: one for who, one in theirs.items() if who != annotator}
            for item, theirs in answers.items()
        }
        typical = statistics.median([one for one, _, _ in _kappas(rest).values()] or [0.0])
        if typical >= SLIGHT and typical - kappa > ERRORS * error:
            yield (
                annotator,
                f"slight agreement: on {count} items, {question} agrees with the other annotators hardly above chance "
                f"(kappa {kappa:.2f}; that of the others among themselves is {typical:.2f})",
            )


def _kappas(by_item: Answers) -> dict[str, tuple[float, float, int]]:
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
            rest = {
                other: (n - (other == value)) / (len(answers) - 1) for other, n in counts.items()
            }
            observed.setdefault(annotator, []).append(
                sum(n * _distance(value, other) for other, n in rest.items())
            )
            mine.setdefault(annotator, Counter())[value] += 1
            others.setdefault(annotator, Counter()).update(rest)
    kappas = {}
    for annotator, seen in observed.items():
        pairs = product(mine[annotator].items(), others[annotator].items())
        expected = (
            sum(n * m * _distance(one, other) for (one, n), (other, m) in pairs) / len(seen) ** 2
        )
        if len(seen) >= MIN_ITEMS and expected:
            error = statistics.stdev(seen) / math.sqrt(len(seen)) / expected
            kappas[annotator] = 1 - statistics.fmean(seen) / expected, error, len(seen)
    return kappas


def _distance(one: Value, other: Value) -> float:
    """Return the disagreement of two answers: squared difference of ratings, 0 or 1 of labels."""
    return (
        (one - other) ** 2
        if isinstance(one, int) and isinstance(other, int)
        else float(one != other)
    )
