"""What looks odd in an annotator's answers, in words with the numbers. A reason to ask them, never to exclude them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from h2htalk.data.languages import Language
from h2htalk.rounds.annotations import Annotation
from h2htalk.rounds.items import Item
from h2htalk.rounds.questions import SKIPPED, Question, Value

# A longer time between two answers is a break (seconds).
BREAK = 600
# Fewer timed items than this say nothing about somebody's pace, and fewer answers nothing about their habits.
ENOUGH = 10
# Characters a minute that adults read aloud (IReST; Trauzettel-Klosinski and Dietz, IOVS 53(9), 2012), and how many
# times as fast nobody reads with care.
READING: Mapping[Language, int] = {"en": 987, "zh": 255}
TIMES_AS_FAST = 3
# One value in at least this share of the answers, and so often with a chance below `CHANCE` among the others.
ONE_VALUE = 0.8
CHANCE = 1e-3


@dataclass(frozen=True, slots=True)
class AnnotatorAnswers:
    """One annotator's answers: item -> question -> value; and when they first answered each item (seconds, any
    origin).
    """

    annotator: str
    given: Mapping[str, Mapping[str, Value]]
    times: Mapping[str, float]


def read_sheets(answers: Iterable[Annotation]) -> dict[str, AnnotatorAnswers]:
    """Answers by annotator. A time that is no ISO 8601 is passed over."""
    given: dict[str, dict[str, dict[str, Value]]] = {}
    times: dict[str, dict[str, float]] = {}
    for answer in answers:
        if answer.value is None:
            continue
        given.setdefault(answer.annotator, {}).setdefault(answer.item, {})[answer.question] = answer.value
        theirs = times.setdefault(answer.annotator, {})
        try:
            when = datetime.fromisoformat(answer.when)
        except ValueError:
            continue
        seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
        theirs[answer.item] = min(seconds, theirs.get(answer.item, math.inf))
    return {
        annotator: AnnotatorAnswers(annotator, items, times[annotator]) for annotator, items in given.items()
    }


def pace(sheet: AnnotatorAnswers) -> dict[str, float]:
    """Item -> seconds since the annotator's answer before it, breaks left out.

    Empty where times say nothing: fewer than ten such gaps, or answers that were read together and so have one time
    (most gaps are 0: spreadsheets).
    """
    order = sorted(sheet.times, key=lambda item: (sheet.times[item], item))
    gaps = {after: sheet.times[after] - sheet.times[before] for before, after in pairwise(order)}
    if 2 * sum(not gap for gap in gaps.values()) > len(gaps):
        return {}
    timed = {item: gap for item, gap in gaps.items() if 0 < gap < BREAK}
    return timed if len(timed) >= ENOUGH else {}


def warnings_of(
    sheet: AnnotatorAnswers,
    sheets: Mapping[str, AnnotatorAnswers],
    items: Mapping[str, Item],
    questions: Sequence[Question],
) -> tuple[str, ...]:
    """Warnings about one annotator, beside all others' answers to the same items."""
    found = [_too_fast(sheet, items)]
    others = [other for annotator, other in sheets.items() if annotator != sheet.annotator]
    for question in questions:
        if question.form in ("label", "rating"):
            found.append(_one_value(_without_right(sheet, items, question.name), others, question))
    ratings = [question.name for question in questions if question.form == "rating"]
    if len(ratings) > 1:
        found.append(_all_ratings_alike(sheet, others, ratings))
    return tuple(warning for warning in found if warning)


def least_seconds(item: Item) -> float:
    """The time that reading an item takes at three times the usual pace (s)."""
    texts = [
        *(turn.content for turn in item.turns),
        *(text for _, text in item.context),
        item.response,
        item.reference,
    ]
    return 60 * sum(map(len, texts)) / (READING[item.language] * TIMES_AS_FAST)


def _too_fast(sheet: AnnotatorAnswers, items: Mapping[str, Item]) -> str | None:
    timed = {
        item: gap
        for item, gap in pace(sheet).items()
        if item in items and set(sheet.given[item]) != {SKIPPED}
    }
    fast = [item for item, gap in timed.items() if gap < least_seconds(items[item])]
    if len(timed) < ENOUGH or 2 * len(fast) < len(timed):
        return None
    median = statistics.median(timed[item] for item in fast)
    needed = statistics.median(least_seconds(items[item]) for item in fast)
    return (
        f"too fast: {len(fast)} of {len(timed)} timed items answered sooner than they can be read "
        f"({median:.0f} s, where {TIMES_AS_FAST} times the usual pace of reading takes {needed:.0f} s; medians)"
    )


def _without_right(sheet: AnnotatorAnswers, items: Mapping[str, Item], question: str) -> AnnotatorAnswers:
    """Without items on which the annotator is known to be right: whoever says what is true has no habit."""
    wrong = {
        item: given
        for item, given in sheet.given.items()
        if item not in items
        or question not in items[item].gold
        or items[item].gold[question] != given.get(question)
    }
    return AnnotatorAnswers(sheet.annotator, wrong, sheet.times)


def _one_value(sheet: AnnotatorAnswers, others: Sequence[AnnotatorAnswers], question: Question) -> str | None:
    name, values = question.name, question.labels or question.ratings
    theirs = [given[name] for given in sheet.given.values() if name in given]
    if not theirs:
        return None
    # Of values given equally often the first of the question's.
    often = max(values, key=theirs.count)
    told = _habit(sheet, others, (name,), lambda given: given[name] == often, len(values))
    return told and f"one answer: {name} is {often} {told}"


def _all_ratings_alike(
    sheet: AnnotatorAnswers, others: Sequence[AnnotatorAnswers], ratings: Sequence[str]
) -> str | None:
    told = _habit(sheet, others, ratings, lambda given: len({given[name] for name in ratings}) == 1, 2)
    return told and f"straight lines: all {len(ratings)} ratings are equal {told}"


def _habit(
    sheet: AnnotatorAnswers,
    others: Sequence[AnnotatorAnswers],
    names: Sequence[str],
    happens: Callable[[Mapping[str, Value]], bool],
    outcomes: int,
) -> str | None:
    """How often something happens in an annotator's answers and in the others' to the same items; None where it is
    usual.

    The others' share counts one more of each outcome (`outcomes` of them): what nobody did is rare, not impossible.
    """

    def complete(one: AnnotatorAnswers) -> dict[str, Mapping[str, Value]]:
        return {item: given for item, given in one.given.items() if all(name in given for name in names)}

    mine = complete(sheet)
    count = sum(map(happens, mine.values()))
    if len(mine) < ENOUGH or count < ONE_VALUE * len(mine):
        return None
    beside = [happens(given) for one in others for item, given in complete(one).items() if item in mine]
    if not beside:
        return None
    share = (sum(beside) + 1) / (len(beside) + outcomes)
    chance = chance_of(count, len(mine), share)
    if chance >= CHANCE:
        return None
    usual = sum(beside) / len(beside)
    shown = "below 1e-9" if chance < 1e-9 else f"{chance:.0e}"
    return f"on {count} of {len(mine)} items, among the others on {usual:.0%} of the same (chance {shown})"


def chance_of(count: int, of: int, share: float) -> float:
    """Chance that of `of` independent answers `count` or more are what a share (0 < share < 1) of all answers are."""
    logs = (
        math.lgamma(of + 1) - math.lgamma(k + 1) - math.lgamma(of - k + 1)
        + k * math.log(share) + (of - k) * math.log1p(-share)
        for k in range(count, of + 1)
    )  # fmt: skip
    return min(1.0, math.fsum(map(math.exp, logs)))
