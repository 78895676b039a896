"""Adjudication: people rate low answers of a judged run, and their ratings replace the judge's R (Eq. 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.benchmark.judge.judgements import (
    PeopleRating,
    Ratings,
    answer_id,
    list_people_ratings,
    rate_answers,
    require_judging,
    with_ratings,
    write_people_ratings,
)
from h2htalk.benchmark.metrics.composite import THRESHOLD, ItemScore, Scores, read_scores
from h2htalk.benchmark.rating_rounds import (
    items_in_open_rounds,
    open_rating_round,
    read_round_ratings,
    require_round_of,
)
from h2htalk.benchmark.report.table2 import ALL_COLUMNS
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.benchmark.statistics.averages import Row
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import WAIT, writer_lock
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.settings import AnyPath, as_path, validate
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, RoundError, counted, listed
from h2htalk.extras import AGREEMENT
from h2htalk.rounds.lifecycle import close_round
from h2htalk.rounds.platforms import require_platform
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.status import Status

RoundRatings = Mapping[SampleKey, Mapping[str, int]]  # answer -> annotator -> rating


def open_adjudication(
    run: AnyPath,
    out: AnyPath,
    *,
    human_trigger: str = "J",
    budget: int | None = None,
    disagreement: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Status, list[str]]:
    """Open an adjudication round, in the folder `out`, of the low items of a judged run, the worst first.

    Examples:
        >>> import h2htalk
        >>> status, messages = h2htalk.open_adjudication(
        ...     "runs/constant", "rounds/low", human_trigger="judge", budget=2
        ... )
        >>> (status.state, status.items)
        ('open', 2)

    Args:
        human_trigger: `J` sends items whose J is below 3.5 (Eq. 4), `judge` those whose R is.
        budget: how many items at most; all their samples are rated.
        disagreement: instead, items whose ratings by a panel differ by so much or more, the most disputed first.
        options: settings of the round: where, annotators, overlap, format, seed.

    Returns:
        The status of the round, and messages: how many items each trigger would send, and which answers are unjudged.

    Raises:
        ConfigError, RoundError: an argument cannot be, there is no item to send, or the round cannot be opened.
        DataError: the run or its judgements are damaged.
    """
    validate(human_trigger, Literal["J", "judge"], "--human-trigger")
    validate(budget, Annotated[int, Field(ge=1)] | None, "--budget")
    validate(disagreement, Annotated[float, Field(ge=0, le=5)] | None, "--disagreement")
    require_platform(options or {})
    loaded = load_run(as_path(run, "run"))
    ratings = _rate(loaded)
    folder = as_path(out, "out")
    messages: list[str] = []
    items = _low_items(loaded, human_trigger, messages, quiet=disagreement is not None)
    if disagreement is not None:
        items = _disputed_items(ratings, disagreement)
        number = counted(len(items), "item")
        messages.append(f"judges differ by {disagreement:g} or more on {number}")
    answers = _answers_to_rate(loaded, items, messages)
    rounds = items_in_open_rounds(loaded, folder.resolve().name)
    waiting = _without_items_of(rounds, list(answers), messages)
    if budget is not None:
        allowed = min(budget, len(waiting))
        messages.append(f"the budget allows {allowed:,} of {counted(len(waiting), 'item')}")
    messages += _unjudged_messages(ratings)
    keys: list[SampleKey] = []
    for item in waiting[:budget]:
        keys += answers[item]
    if not keys:
        raise RoundError(f"{run}: there is no item for people: {'; '.join(messages)}")
    status, round_messages = open_rating_round(loaded, keys, folder, options or {})
    return status, [*messages, *round_messages]


def _rate(run: Run) -> Ratings:
    """The rating of every answer that was to be judged, with that of each judge. Raises ConfigError without any."""
    folder = run.data.folder
    return rate_answers(folder, require_judging(folder), run.counted, run.data.split.scenarios)


def _low_items(run: Run, human_trigger: str, messages: list[str], quiet: bool) -> list[str]:
    """The items of levels I to III that the trigger sends, the lowest first; `quiet`: their S is not asked for."""
    scores = []
    for scenario in run.data.split.scenarios:
        if SUBTASKS[scenario.subtask].level:
            scores.append(run.item_scores[scenario.id])
    low_j = _below_threshold({score.id: score.j for score in scores})
    low_r = _below_threshold({score.id: score.rating for score in scores})
    messages.append(
        f"of {counted(len(scores), 'item')} of levels I to III, Eq. 4 (J < {THRESHOLD}) would send {len(low_j):,} to "
        f"people, --human-trigger judge (R < {THRESHOLD}) {len(low_r):,}"
    )
    if human_trigger != "J":
        return low_r
    if not quiet and all(score.s is None for score in scores):
        messages.append(
            "without S there is no J: score with an --embedder, or use --human-trigger judge"
        )
    return low_j


def _below_threshold(values: Mapping[str, float | None]) -> list[str]:
    """The items with a value below the threshold, the lowest first, equal ones by id."""
    low = []
    for item, value in values.items():
        if value is not None and value < THRESHOLD:
            low.append((value, item))
    return [item for _, item in sorted(low)]


def _disputed_items(ratings: Ratings, difference: float) -> list[str]:
    """The items on an answer of which judges differ by so much, the most disputed first."""
    if not any(len(rating.judges) > 1 for rating in ratings.values()):
        raise ConfigError(
            "--disagreement compares the judges of a panel; name several in `h2htalk judge run`"
        )
    widest = defaultdict[str, float](float)
    for (item, _), rating in ratings.items():
        if len(rating.known) > 1:
            spread = max(rating.known) - min(rating.known)
            if spread >= difference:
                widest[item] = max(widest[item], spread)
    return sorted(widest, key=lambda item: (-widest[item], item))


def _answers_to_rate(
    run: Run, items: Sequence[str], messages: list[str]
) -> dict[str, list[SampleKey]]:
    """The answers of the items that nobody rated, by item; a failed call has no answer."""
    answers = {}
    for item in items:
        keys = []
        for sample in run.item_scores[item].samples:
            if sample.answer and not sample.people:
                keys.append((item, sample.sample))
        if keys:
            answers[item] = keys
    rated = len(items) - len(answers)
    if rated:
        messages.append(f"people rated {rated:,} of these {len(items):,} items before")
    return answers


def _without_items_of(
    rounds: Mapping[str, str], items: Sequence[str], messages: list[str]
) -> list[str]:
    """The items that wait in no other open round."""
    in_rounds = [item for item in items if item in rounds]
    if in_rounds:
        names = ", ".join(sorted({rounds[item] for item in in_rounds}))
        number = counted(len(in_rounds), "item waits", "items wait")
        messages.append(f"{number} in the open round {names}, and left out")
    return [item for item in items if item not in rounds]


def _unjudged_messages(ratings: Ratings) -> list[str]:
    unjudged = []
    for (item, sample), rating in ratings.items():
        if rating.unjudged:
            unjudged.append(f"{item}/{sample} ({rating.unjudged})")
    if not unjudged:
        return []
    number = counted(len(unjudged), "answer")
    return [f"{number} unjudged, and so not low: {listed(unjudged, 50)}"]


def close_adjudication(run: AnyPath, round: AnyPath) -> tuple[Summary, list[str]]:
    """Put the ratings of an adjudication round into its run, and write scores, tables and page with them.

    The mean of an answer's ratings replaces R. A complete round that is still open is closed. Ratings of other rounds
    stay, those that this round gave before are replaced.

    Examples:
        >>> import h2htalk
        >>> status, decisions = h2htalk.close_round("rounds/low", force=True)
        >>> summary, messages = h2htalk.close_adjudication("runs/constant", "rounds/low")
        >>> summary.judging.people, messages[0]
        (0, '0 ratings of 0 answers')

    Returns:
        The run's summary, and messages: how many ratings came, and how many items pass or fail because of them.

    Raises:
        ConfigError: the run was not judged.
        RoundError: the round is not complete, or was not opened from this run.
        DataError: a file of the round or the run is damaged.
    """
    AGREEMENT.require()
    path = as_path(run, "run")
    folder = RoundFolder(as_path(round, "round"))
    before = load_run(path)
    ratings_before = _rate(before)
    require_round_of(before.data.folder, folder.path)
    if folder.state != "closed":
        close_round(folder.path)
    round_ratings = read_round_ratings(before, folder.path)
    _store_ratings(before, folder.name, round_ratings)
    summary = apply_judgements(path)
    scores = read_scores(before.data.folder.scores(summary.signature))
    rating_number = counted(sum(map(len, round_ratings.values())), "rating")
    messages = [f"{rating_number} of {counted(len(round_ratings), 'answer')}"]
    missing = len(folder.items()) - len(round_ratings)
    if missing:
        number = counted(missing, "answer")
        messages.append(
            f"{number} without a rating: skipped, or changed since the round was opened"
        )
    changes = _changed_cells(before.summary, summary)
    messages.append(f"changed in the table: {', '.join(changes) or 'nothing'}")
    messages += _verdict_messages(_scores_by_judges(before, ratings_before, round_ratings), scores)
    return summary, messages


def _store_ratings(run: Run, round_name: str, round_ratings: RoundRatings) -> None:
    """Store the mean rating of each answer in the run, in place of what this round gave before."""
    ratings = {}
    for key, answer in run.answers.items():
        if key in round_ratings and isinstance(answer, Response):
            values = round_ratings[key].values()
            name = answer_id(answer)
            ratings[name] = PeopleRating(name, fmean(values), len(values), round_name)
    folder = run.data.folder
    with writer_lock(folder.calls_file, WAIT):
        stored = list_people_ratings(folder)
        of_other_rounds = {rating.answer: rating for rating in stored if rating.round != round_name}
        write_people_ratings(folder, (of_other_rounds | ratings).values())


def _changed_cells(before: Summary, after: Summary) -> list[str]:
    """The cells that changed in the row with J or, without S, in that of the ratings (20 R)."""
    row_before = _judged_row(before)
    row_after = _judged_row(after)
    changes = []
    for column in ALL_COLUMNS:
        old = row_before.get(column.key)
        new = row_after.get(column.key)
        if not old or not new or old.value is None or new.value is None:
            continue
        old_text = f"{old.value:.2f}"
        new_text = f"{new.value:.2f}"
        if old_text != new_text:
            name = f"{column.group} {column.heading}"
            changes.append(f"{name} {old_text} to {new_text}".strip())
    return changes


def _judged_row(summary: Summary) -> Row:
    if summary.rows.judged:
        return summary.rows.judged
    return summary.judging.ratings if summary.judging else {}


def _scores_by_judges(run: Run, ratings: Ratings, round_ratings: RoundRatings) -> list[ItemScore]:
    """The items of the round, with the ratings of the judges alone.

    A call that was killed may have written people's ratings and not the scores, so the run's may hold theirs.
    """
    by_judges = {}
    for key, rating in ratings.items():
        by_judges[key] = replace(rating, rating=rating.by_judges)
    items = {item for item, _ in round_ratings}
    return [with_ratings(run.item_scores[item], by_judges) for item in items]


def _verdict_messages(by_judges: Sequence[ItemScore], scores: Scores) -> list[str]:
    """How many items pass or fail because of people's ratings."""
    if all(score.j is None for score in by_judges):
        return ["without S there is no J: the ratings stand apart"] if by_judges else []
    fell = rose = 0
    for score in by_judges:
        j = scores[score.id].j
        if score.j is None or j is None:
            continue
        if score.j >= THRESHOLD > j:
            fell += 1
        elif score.j < THRESHOLD <= j:
            rose += 1
    passes = counted(fell, "pass", "passes")
    turned = f"{passes} of J (3.5 or more) into a fail, and {counted(rose, 'fail')} into a pass"
    return [f"people's ratings in place of the judge's turn {turned}"]
