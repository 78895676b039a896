"""Adjudication: people rate low answers of a judged run, and their ratings replace the judge's R (Eq. 4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field

from h2htalk.benchmark.judge.judgements import (
    PeopleRating,
    Ratings,
    answer_id,
    item_of,
    list_people_ratings,
    rate_answers,
    require_judging,
    with_ratings,
    write_people_ratings,
)
from h2htalk.benchmark.metrics.composite import THRESHOLD, read_scores
from h2htalk.benchmark.report.table2 import ALL_COLUMNS
from h2htalk.benchmark.run import Run, load_run
from h2htalk.benchmark.score_run import apply_judgements
from h2htalk.benchmark.summary import Summary
from h2htalk.data.files import WAIT, read_jsonl, remove_file, write_jsonl, writer_lock
from h2htalk.data.languages import Language
from h2htalk.data.links import read_links
from h2htalk.data.responses import Response, SampleKey
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.settings import AnyPath, as_path, validate
from h2htalk.data.subtasks import SUBTASKS
from h2htalk.errors import ConfigError, RoundError, counted, listed
from h2htalk.extras import AGREEMENT
from h2htalk.rounds.item_sources import scenario_item
from h2htalk.rounds.lifecycle import close_round, open_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.platforms import require_platform
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import Status
from h2htalk.rounds.texts.interface import interface_text

RATING = "rating"  # the question


def open_rating_round(
    run: Run, answers: Sequence[SampleKey], out: Path, options: Mapping[str, Any]
) -> tuple[Status, list[str]]:
    """Open an adjudication round of answers of a run, with settings as `h2htalk round open` takes them; the same call
    completes an interrupted opening. Returns the status, and messages for the manager."""
    lines = []
    scenarios = {s.id: s for s in run.data.split.scenarios}
    personas = run.data.split.personas
    for key in answers:
        answer = run.answers.get(key)
        scenario = scenarios[key[0]]
        if not isinstance(answer, Response):
            raise RoundError(f"{key[0]}: sample {key[1]} has no answer, so people cannot rate it")
        response = response_text(answer.answer, scenario.language)
        item = replace(scenario_item(scenario, personas), id=answer_id(answer), response=response)
        lines.append({"item": item.to_dict(), "source": scenario.to_dict()})
    return open_round_of(run.data.folder, out, "adjudication", lines, options)


def open_round_of(
    folder: RunFolder,
    out: Path,
    kind: str,
    lines: Sequence[dict[str, Any]],
    options: Mapping[str, Any],
    settings: Path | None = None,
) -> tuple[Status, list[str]]:
    """Open a round of items (`item`, `source`) that were made from a run or a study; see `open_rating_round`."""
    name = out.resolve().name
    for other in _rounds(folder):
        if other.name == name and other.resolve() != out.resolve():
            before = f"a round {name} was opened from this {folder.kind} before ({other})"
            raise RoundError(f"{out}: {before}; use another name")
    if folder.path.resolve() in (out.resolve(), *out.resolve().parents):
        raise RoundError(f"{out}: lies in the {folder.kind}; name a folder outside it")
    path = _items_file(folder, name)
    known = path.exists()
    begun = RoundFolder(out).exists
    if known and begun and [line for _, line in read_jsonl(path)] != lines:
        raise RoundError(
            f"{out}: this round was opened with other answers; use another name for these"
        )
    write_jsonl(path, lines)
    try:
        return open_round(make_spec(kind, str(path), options, settings), out)
    except BaseException:  # passed on; the items of a round that was not opened go
        if not known and (begun or not RoundFolder(out).exists):
            remove_file(path)
        raise


def _rounds(folder: RunFolder) -> list[Path]:
    return [link.path for link in read_links(folder.path) if link.path and link.kind == "round"]


def _items_in_open_rounds(run: Run, except_name: str) -> dict[str, str]:
    """The items of which other rounds of this run hold an answer, each with the name of its round."""
    found: dict[str, str] = {}
    for folder in map(RoundFolder, _rounds(run.data.folder)):
        path = _items_file(run.data.folder, folder.path.name)
        if (
            folder.path.name != except_name
            and path.exists()
            and folder.exists
            and folder.state != "closed"
        ):
            found |= {
                item_of(str(line["item"]["id"])): folder.path.name for _, line in read_jsonl(path)
            }
    return found


def _items_file(folder: RunFolder, name: str) -> Path:
    return folder.path / "adjudication" / f"{name}.items.jsonl"


def response_text(text: str, language: Language) -> str:
    """A reply as people read it: what a text of a round cannot hold is an escape, an empty one says so."""
    text = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return text.strip() or interface_text("empty_reply", language)


def require_round_of(folder: RunFolder, path: Path) -> RoundFolder:
    """Return a round that was opened from a run or a study; raises RoundError for another one."""
    found = RoundFolder(path).require()
    items = _items_file(folder, found.name)
    own = {str(line["item"]["id"]) for _, line in read_jsonl(items)} if items.exists() else set()
    if own.isdisjoint(item.id for item in found.items()):
        opened = f"this round was opened from {found.spec().items}, not from the answers of {folder.path}"
        raise RoundError(f"{path}: {opened}; name a round of this {folder.kind}")
    return found


def read_round_ratings(run: Run, path: Path) -> dict[SampleKey, dict[str, int]]:
    """Read the ratings of a closed round: answer -> annotator (hash) -> rating, without answers that changed."""
    require_round_of(run.data.folder, path)
    current = {answer_id(one): key for key, one in run.answers.items() if isinstance(one, Response)}
    ratings = defaultdict[SampleKey, dict[str, int]](dict)
    for one in read_outcome(path).annotations.values():
        if one.question == RATING and isinstance(one.value, int) and one.item in current:
            ratings[current[one.item]][one.annotator] = one.value
    return ratings


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
    judged = _judged(loaded)
    levels = [
        loaded.item_scores[s.id] for s in loaded.data.split.scenarios if SUBTASKS[s.subtask].level
    ]
    by_j = _lowest({one.id: one.j for one in levels})
    by_judge = _lowest({one.id: one.rating for one in levels})
    messages = [
        f"of {counted(len(levels), 'item')} of levels I to III, Eq. 4 (J < {THRESHOLD}) would send {len(by_j):,} to "
        f"people, --human-trigger judge (R < {THRESHOLD}) {len(by_judge):,}"
    ]
    sent = by_j if human_trigger == "J" else by_judge
    if disagreement is not None:
        sent = _disputed(judged, disagreement)
        messages.append(
            f"judges differ by {disagreement:g} or more on {counted(len(sent), 'item')}"
        )
    elif human_trigger == "J" and not any(one.s is not None for one in levels):
        messages.append(
            "without S there is no J: score with an --embedder, or use --human-trigger judge"
        )
    # A failed call has no answer.
    answers = {
        item: [
            (item, one.sample)
            for one in loaded.item_scores[item].samples
            if one.answer and not one.people
        ]
        for item in sent
    }
    waiting = [item for item in sent if answers[item]]
    if rated := len(sent) - len(waiting):
        messages.append(f"people rated {rated:,} of these {len(sent):,} items before")
    folder = as_path(out, "out")
    elsewhere = _items_in_open_rounds(loaded, folder.resolve().name)
    if handed := [item for item in waiting if item in elsewhere]:
        rounds = ", ".join(sorted({elsewhere[item] for item in handed}))
        messages.append(
            f"{counted(len(handed), 'item waits', 'items wait')} in the open round {rounds}, and left out"
        )
        waiting = [item for item in waiting if item not in elsewhere]
    if budget is not None:
        messages.append(
            f"the budget allows {min(budget, len(waiting)):,} of {counted(len(waiting), 'item')}"
        )
    if unjudged := [
        f"{item}/{sample} ({one.unjudged})"
        for (item, sample), one in judged.items()
        if one.unjudged
    ]:
        messages.append(
            f"{counted(len(unjudged), 'answer')} unjudged, and so not low: {listed(unjudged, 50)}"
        )
    keys = [key for item in waiting[:budget] for key in answers[item]]
    if not keys:
        raise RoundError(f"{run}: there is no item for people: {'; '.join(messages)}")
    status, more = open_rating_round(loaded, keys, folder, options or {})
    return status, [*messages, *more]


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
    before = load_run(
        path
    )  # a call that was killed may have written the ratings and not the scores
    judged = _judged(before)
    require_round_of(before.data.folder, folder.path)
    if folder.state != "closed":
        close_round(folder.path)
    given = read_round_ratings(before, folder.path)
    new = {}
    for key, answer in before.answers.items():
        if key in given and isinstance(answer, Response):
            name = answer_id(answer)
            own = given[key].values()
            new[name] = PeopleRating(name, fmean(own), len(own), folder.name)
    with writer_lock(before.data.folder.calls_file, WAIT):
        stored = list_people_ratings(before.data.folder)
        others = {one.answer: one for one in stored if one.round != folder.name}
        write_people_ratings(before.data.folder, (others | new).values())
    summary = apply_judgements(path)
    rows = [
        one.rows.judged or (one.judging.ratings if one.judging else {})
        for one in (before.summary, summary)
    ]
    changes = [  # of the row with J, without S of the ratings (20 R)
        f"{column.group} {column.heading} {old.value:.2f} to {now.value:.2f}".strip()
        for column in ALL_COLUMNS
        if (old := rows[0].get(column.key)) and (now := rows[1].get(column.key))
        if old.value is not None
        and now.value is not None
        and f"{old.value:.2f}" != f"{now.value:.2f}"
    ]
    after = read_scores(before.data.folder.scores(summary.signature))
    alone = {key: replace(one, rating=one.by_judges) for key, one in judged.items()}
    pairs = [
        (with_ratings(before.item_scores[item], alone).j, after[item].j)
        for item in {item for item, _ in given}
    ]
    passed = [
        (old >= THRESHOLD, now >= THRESHOLD)
        for old, now in pairs
        if old is not None and now is not None
    ]
    messages = [
        f"{counted(sum(map(len, given.values())), 'rating')} of {counted(len(given), 'answer')}"
    ]
    if left := len(folder.items()) - len(given):
        messages.append(
            f"{counted(left, 'answer')} without a rating: skipped, or changed since the round was opened"
        )
    messages.append(f"changed in the table: {', '.join(changes) or 'nothing'}")
    if not pairs or all(old is None for old, _ in pairs):
        return summary, [
            *messages,
            "without S there is no J: the ratings stand apart",
        ] if pairs else messages
    fell = counted(passed.count((True, False)), "pass", "passes")
    rose = counted(passed.count((False, True)), "fail")
    turned = f"{fell} of J (3.5 or more) into a fail, and {rose} into a pass"
    return summary, [*messages, f"people's ratings in place of the judge's turn {turned}"]


def _judged(run: Run) -> Ratings:
    """The rating of every answer that was to be judged, with that of each judge. Raises ConfigError without any."""
    return rate_answers(
        run.data.folder, require_judging(run.data.folder), run.counted, run.data.split.scenarios
    )


def _lowest(values: Mapping[str, float | None]) -> list[str]:
    """The items with a value below the threshold, the lowest first, equal ones by id."""
    return [
        item
        for _, item in sorted(
            (v, item) for item, v in values.items() if v is not None and v < THRESHOLD
        )
    ]


def _disputed(judged: Ratings, difference: float) -> list[str]:
    """The items on an answer of which judges differ by so much, the most disputed first."""
    if not any(len(one.judges) > 1 for one in judged.values()):
        raise ConfigError(
            "--disagreement compares the judges of a panel; name several in `h2htalk judge run`"
        )
    spreads = defaultdict[str, float](float)
    for (item, _), one in judged.items():
        if len(one.known) > 1 and (spread := max(one.known) - min(one.known)) >= difference:
            spreads[item] = min(spreads[item], -spread)
    return sorted(spreads, key=lambda item: (spreads[item], item))
