"""Warnings about unusual answers, with numbers: a reason to talk to an annotator, never to exclude them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from h2htalk.data.languages import find_language
from h2htalk.distributions import binomial_tail
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, Value

# A longer time between two answers is a break (seconds).
BREAK = 600
# Least number of timed items for a statement on speed, and of answers for a statement on habits.
MIN_ITEMS = 10
# The multiple of the speed of reading aloud at which nobody reads with care.
MAX_SPEEDUP = 3
# Warn if one value has at least this share of the answers, and this is improbable given the others' answers.
MIN_SHARE = 0.8
MAX_PROBABILITY = 1e-3


@dataclass(frozen=True, slots=True)
class AnnotatorAnswers:
    """One annotator's answers: item -> question -> value; and item -> time of the first answer (s, any origin)."""

    annotator: str
    given: Mapping[str, Mapping[str, Value]]
    times: Mapping[str, float]


def answers_by_annotator(annotations: Iterable[Annotation]) -> dict[str, AnnotatorAnswers]:
    """Return the answers of each annotator. Times that are not ISO 8601 are ignored."""
    given: dict[str, dict[str, dict[str, Value]]] = {}
    times: dict[str, dict[str, float]] = {}
    for one in annotations:
        if one.value is None:
            continue
        given.setdefault(one.annotator, {}).setdefault(one.item, {})[one.question] = one.value
        theirs = times.setdefault(one.annotator, {})
        try:
            when = datetime.fromisoformat(one.when)
        except ValueError:
            continue
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        theirs[one.item] = min(seconds, theirs.get(one.item, math.inf))
    return {annotator: AnnotatorAnswers(annotator, items, times[annotator]) for annotator, items in given.items()}


def seconds_per_item(answers: AnnotatorAnswers) -> dict[str, float]:
    """Return item -> seconds since the annotator's answer before it, without breaks.

    Empty for fewer than ten such items, and if most times are equal because they were collected together
    (spreadsheets).
    """
    order = sorted(answers.times, key=lambda item: (answers.times[item], item))
    gaps = {after: answers.times[after] - answers.times[before] for before, after in pairwise(order)}
    if 2 * sum(not gap for gap in gaps.values()) > len(gaps):
        return {}
    timed = {item: gap for item, gap in gaps.items() if 0 < gap < BREAK}
    return timed if len(timed) >= MIN_ITEMS else {}


def annotator_warnings(
    answers: AnnotatorAnswers,
    all_answers: Mapping[str, AnnotatorAnswers],
    items: Mapping[str, Item],
    questions: Sequence[Question],
) -> tuple[str, ...]:
    """Return warnings about one annotator, compared with all others' answers to the same items."""
    others = [other for annotator, other in all_answers.items() if annotator != answers.annotator]
    warnings = [_too_fast(answers, items)]
    for question in questions:
        if question.form in ("label", "rating"):
            warnings.append(_one_value(_without_right(answers, items, question.name), others, question))
    ratings = [question.name for question in questions if question.form == "rating"]
    if len(ratings) > 1:
        warnings.append(_equal_ratings(answers, others, ratings))
    return tuple(warning for warning in warnings if warning)


def min_reading_seconds(item: Item) -> float:
    """Return the time for reading an item at `MAX_SPEEDUP` times the usual speed (s)."""
    texts = [*(turn.content for turn in item.turns), *(text for _, text in item.context)]
    length = sum(map(len, (*texts, item.response, item.reference)))
    return 60 * length / (find_language(item.language).reading_speed * MAX_SPEEDUP)


def _too_fast(answers: AnnotatorAnswers, items: Mapping[str, Item]) -> str | None:
    timed = {item: gap for item, gap in seconds_per_item(answers).items() if set(answers.given[item]) != {SKIPPED}}
    fast = [item for item, gap in timed.items() if gap < min_reading_seconds(items[item])]
    if len(timed) < MIN_ITEMS or 2 * len(fast) < len(timed):
        return None
    median = statistics.median(timed[item] for item in fast)
    needed = statistics.median(min_reading_seconds(items[item]) for item in fast)
    return (
        f"too fast: {len(fast)} of {len(timed)} timed items were answered faster than they can be read (median "
        f"{median:.0f} s; reading at {MAX_SPEEDUP} times the usual speed takes {needed:.0f} s)"
    )


def _without_right(answers: AnnotatorAnswers, items: Mapping[str, Item], question: str) -> AnnotatorAnswers:
    """Leave out items with a right gold answer: giving the right answer is no habit."""
    rest = {
        item: given
        for item, given in answers.given.items()
        if question not in items[item].gold or items[item].gold[question] != given.get(question)
    }
    return AnnotatorAnswers(answers.annotator, rest, answers.times)


def _one_value(answers: AnnotatorAnswers, others: Sequence[AnnotatorAnswers], question: Question) -> str | None:
    name, values = question.name, question.labels or question.ratings
    theirs = [given[name] for given in answers.given.values() if name in given]
    if not theirs:
        return None
    # Of equally frequent values the first of the question's.
    often = max(values, key=theirs.count)
    habit = _habit(answers, others, (name,), lambda given: given[name] == often, len(values))
    return habit and f"same answer: {name} is {often} {habit}"


def _equal_ratings(answers: AnnotatorAnswers, others: Sequence[AnnotatorAnswers], ratings: Sequence[str]) -> str | None:
    habit = _habit(answers, others, ratings, lambda given: len({given[name] for name in ratings}) == 1, 2)
    return habit and f"straight-lining: all {len(ratings)} ratings are equal {habit}"


def _habit(
    answers: AnnotatorAnswers,
    others: Sequence[AnnotatorAnswers],
    names: Sequence[str],
    happens: Callable[[Mapping[str, Value]], bool],
    outcomes: int,
) -> str | None:
    """Return how often something happens in an annotator's answers and in the others'; None if that is usual.

    The others' share counts one more case of each of the `outcomes`, so that no share is 0.
    """

    mine = {item: given for item, given in answers.given.items() if all(name in given for name in names)}
    count = sum(map(happens, mine.values()))
    if len(mine) < MIN_ITEMS or count < MIN_SHARE * len(mine):
        return None
    found = (one.given[item] for one in others for item in mine if item in one.given)
    theirs = [happens(given) for given in found if all(name in given for name in names)]
    if not theirs:
        return None
    probability = binomial_tail(count, len(mine), (sum(theirs) + 1) / (len(theirs) + outcomes))
    if probability >= MAX_PROBABILITY:
        return None
    shown = "below 1e-9" if probability < 1e-9 else f"{probability:.0e}"
    usual = sum(theirs) / len(theirs)
    return f"on {count} of {len(mine)} items, other annotators on {usual:.0%} of them (probability {shown})"
