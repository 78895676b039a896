"""Have people read replies of a study, in annotation rounds, and put their answers into it.

Annotators see neither the arm nor the model: an item of a round is named by `StudyReply.id`, a point of it by
`REPLY:POINT`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from h2htalk.benchmark.judge.judgements import (
    PeopleRating,
    list_people_ratings,
    write_people_ratings,
)
from h2htalk.benchmark.rating_rounds import open_round_of, require_round_of, response_text
from h2htalk.benchmark.studies.logs import ORDINARY
from h2htalk.benchmark.studies.points.judge_requests import OpenReply, open_replies
from h2htalk.benchmark.studies.points.point_answers import (
    PERCEIVED,
    PERCEPTION,
    TIE,
    VIOLATION,
    shown_turns,
)
from h2htalk.benchmark.studies.report.study_result import StudyResult
from h2htalk.benchmark.studies.run_study import pooled, read_study, score_locked, stored_replies
from h2htalk.data.case import Case
from h2htalk.data.files import WAIT, writer_lock
from h2htalk.data.settings import AnyPath, as_path, validate
from h2htalk.errors import RoundError, counted
from h2htalk.extras import AGREEMENT
from h2htalk.rounds.items import Item
from h2htalk.rounds.lifecycle import close_round
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.platforms import require_platform
from h2htalk.rounds.status import Status

_YES = "yes"
_NO = "no"
# Replies to people in danger and nothing else: so sessions are short.
CARE = {"session_items": 6, "crisis_share": 1.0}


def open_study_round(
    study: AnyPath,
    out: AnyPath,
    ask: str = "safety",
    arms: Sequence[str] = (),
    budget: int | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Path | None = None,
    tied: bool = False,
) -> tuple[Status, list[str]]:
    """Open a round in which people read replies of a study's running conversations.

    Args:
        study, out: folders of the study and of the round.
        ask: `safety`: how safe a reply to a person in danger is (1 to 5), and whether it is harmful; `points`: each
            statement that code cannot decide, yes or no.
        arms: only replies of these; empty for all.
        budget: how many items at most, of replies in the order of their hashes.
        options, settings: of the round, as `h2htalk round open` takes them; without a file of settings, sessions have
            at most six items, and the guidelines are the study's own.
        tied: only what people are tied about.
    """
    validate(ask, Literal["safety", "points"], "--ask")
    require_platform(options or {}, settings)
    opened_study = read_study(as_path(study, "study"))
    target = as_path(out, "out")
    asks_points = ask == "points"
    replies = [reply for reply in stored_replies(opened_study) if not arms or reply.arm in arms]
    ratings = pooled(list_people_ratings(opened_study.folder))
    tied_answers = {rating.answer for rating in ratings if rating.rating == TIE}
    items: list[tuple[Item, Case]] = []
    for opened in open_replies(replies, opened_study.cases, perception=not asks_points):
        if asks_points:
            questions = [(item.id, item) for item in _point_items(opened)]
        elif opened.perception:
            questions = [(f"{opened.reply.id}:{VIOLATION}", _reply_item(opened))]
        else:
            continue
        for answer, item in questions:
            if not tied or answer in tied_answers:
                items.append((item, opened.case))
    if not items and tied:
        raise RoundError(
            f"{study}: people are tied about nothing that --ask {ask} asks of these arms"
        )
    if not items:
        raise RoundError(
            f"{study}: there is no reply to ask people about: no arm of that name, or no such case"
        )
    # By the reply's hash, so that rounds of points and of safety read the same replies.
    items.sort(key=lambda entry: hashlib.sha256(entry[0].id.partition(":")[0].encode()).digest())
    chosen = sorted(items[:budget], key=lambda entry: entry[0].id)
    lines = [{"item": item.to_dict(), "source": case.to_dict()} for item, case in chosen]
    bundled: dict[str, Any] = {}
    if settings is None:
        bundled["care"] = CARE
        if asks_points:
            bundled["guidelines"] = str(files("h2htalk.benchmark.studies") / "guidelines")
    kind = "adjudication" if asks_points else "safety"
    status, messages = open_round_of(
        opened_study.folder, target, kind, lines, {**bundled, **(options or {})}, settings
    )
    return status, [f"{counted(len(chosen), 'item')} of {len(items):,}", *messages]


def _reply_item(opened: OpenReply) -> Item:
    """Return what people read of a reply: the turns of its session and its text."""
    reply = opened.reply
    case = opened.case
    return Item(
        reply.id,
        case.language,
        shown_turns(reply),
        response=response_text(reply.text or "", case.language),
        crisis=case.study in PERCEIVED and case.kind != ORDINARY,
    )


def _point_items(opened: OpenReply) -> Iterator[Item]:
    """Yield an item for each open point of a reply, `REPLY:POINT`, which people answer with yes or no."""
    item = _reply_item(opened)
    for point in opened.points:
        name = f"{item.id}:{point.id}"
        yield replace(item, id=name, labels=(_NO, _YES), note=opened.statement(point))


def close_study_round(study: AnyPath, round: AnyPath) -> tuple[StudyResult, list[str]]:
    """Put the answers of a round into its study, and compute its figures again; a complete open round is closed."""
    AGREEMENT.require()
    folder = read_study(as_path(study, "study")).folder
    answered_round = require_round_of(folder, as_path(round, "round"))
    if answered_round.state != "closed":
        close_round(answered_round.path)
    values: dict[str, list[float]] = {}
    for annotation in read_outcome(answered_round.path).annotations.values():
        # A point is an item of its own, `REPLY:POINT`.
        answer = annotation.item
        if annotation.question != "label":
            answer += f":{annotation.question}"
        if annotation.question in ("label", VIOLATION):
            values.setdefault(answer, []).append(float(annotation.value == _YES))
        elif annotation.question == PERCEPTION and isinstance(annotation.value, int):
            values.setdefault(answer, []).append(float(annotation.value))
    name = answered_round.name
    new = [
        PeopleRating(answer, fmean(ratings), len(ratings), name)
        for answer, ratings in sorted(values.items())
    ]
    with writer_lock(folder.calls_file, WAIT):
        earlier = [rating for rating in list_people_ratings(folder) if rating.round != name]
        write_people_ratings(folder, [*earlier, *new])
        return score_locked(folder.path), [f"{counted(len(new), 'answer')} of people"]
