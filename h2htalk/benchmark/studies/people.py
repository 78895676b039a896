"""People read the replies of a study: a `safety` round, or yes-or-no answers to the points that code cannot decide.

Annotators see neither the arm nor the model, and equal replies in the same conversation are read once: an item is
named by `StudyReply.id`, and a point of it by `REPLY:POINT`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from h2htalk.benchmark.adjudicate import open_own_round, require_own_round, response_text
from h2htalk.benchmark.judge.judgements import PeopleRating, list_people_ratings, write_people_ratings
from h2htalk.benchmark.studies.point_answers import PERCEIVED, PERCEPTION, VIOLATION, open_replies
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import score_now, stored_replies
from h2htalk.benchmark.studies.study_folder import read_study
from h2htalk.data.case import Case
from h2htalk.data.files import WAIT, writer_lock
from h2htalk.data.records import as_path, typed
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import read_outcome
from h2htalk.rounds.status import Status

Ask = Literal["safety", "points"]
_YES, _NO = "yes", "no"
# Replies to people in danger and nothing else: so sessions are short.
CARE = {"session_items": 6, "crisis_share": 1.0}


def open_study_round(
    study: str | os.PathLike[str],
    out: str | os.PathLike[str],
    ask: str = "safety",
    arms: Sequence[str] = (),
    budget: int | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Path | None = None,
) -> tuple[Status, list[str]]:
    """Open a round in which people read replies of a study's running conversations.

    Args:
        study, out: folders of the study and of the round.
        ask: `safety`: how safe a reply to a person in danger is (1 to 5), and whether it is harmful; `points`: each
            statement that code cannot decide, yes or no.
        arms: only replies of these; empty for all.
        budget: how many items at most, spread over cases by their hash.
        options, settings: of the round, as `h2htalk round open` takes them; without a file of settings, sessions have
            at most six items, and the guidelines are the study's own.
    """
    typed(ask, Ask, "--ask")
    folder, target, points = read_study(as_path(study, "study")), as_path(out, "out"), ask == "points"
    replies = [one for one in stored_replies(folder) if not arms or one.arm in arms]
    items: list[tuple[Item, Case]] = []
    for one in open_replies(replies, folder.cases, perception=not points):
        reply, case, crisis = one.reply, one.case, one.case.study in PERCEIVED
        text = response_text(reply.text or "", case.language)
        item = Item(reply.id, case.language, reply.said, response=text, crisis=crisis)
        for point in one.points if points else ():
            items.append((replace(item, id=f"{reply.id}:{point.id}", labels=(_NO, _YES), note=point.text), case))
        items += [(item, case)] if one.perception else []
    if not items:
        raise RoundError(f"{study}: there is no reply to ask people about: no arm of that name, or no such case")
    chosen = sorted(items, key=lambda found: hashlib.sha256(found[0].id.encode()).digest())[:budget]
    chosen.sort(key=lambda found: found[0].id)
    lines = [{"item": item.to_dict(), "source": case.to_dict()} for item, case in chosen]
    guidelines = {"guidelines": str(files("h2htalk.benchmark.studies") / "guidelines")} if points else {}
    own = {} if settings is not None else {"care": CARE, **guidelines}
    kind = "adjudication" if points else "safety"
    status, messages = open_own_round(folder.folder, target, kind, lines, {**own, **(options or {})}, settings)
    return status, [f"{counted(len(chosen), 'item')} of {len(items):,}", *messages]


def close_study_round(study: str | os.PathLike[str], round: str | os.PathLike[str]) -> tuple[StudyResult, list[str]]:
    """Put the answers of a round into its study, and compute its figures again; a complete open round is closed."""
    own = read_study(as_path(study, "study"))
    asked = require_own_round(own.folder, as_path(round, "round"))
    if asked.state != "closed":
        close_round(asked.path)
    values: dict[str, list[float]] = {}
    for one in read_outcome(asked.path).annotations.values():
        # A point is an item of its own, `REPLY:POINT`.
        name = one.item if one.question == "label" else f"{one.item}:{one.question}"
        if one.question in ("label", VIOLATION):
            values.setdefault(name, []).append(float(one.value == _YES))
        elif one.question == PERCEPTION and isinstance(one.value, int):
            values.setdefault(name, []).append(float(one.value))
    new = [PeopleRating(name, fmean(given), len(given), asked.name) for name, given in sorted(values.items())]
    with writer_lock(own.folder.shard, WAIT):
        others = [one for one in list_people_ratings(own.folder) if one.round != asked.name]
        write_people_ratings(own.folder, [*others, *new])
        return score_now(own.path), [f"{counted(len(new), 'answer')} of people"]
