"""People read the replies of a study: a `safety` round, or yes-or-no answers to the points that code cannot decide.

Annotators see neither the arm nor the model, and equal replies in the same conversation are read once: an item is
named by the hash of its text (`StudyReply.text_hash`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from h2htalk.benchmark.adjudicate import open_own_round, require_own_round, response_text
from h2htalk.benchmark.judge.ratings import PeopleRating, list_people_ratings, write_people_ratings
from h2htalk.benchmark.studies.conversations import StudyReply
from h2htalk.benchmark.studies.point_answers import PERCEIVED, PERCEPTION, VIOLATION, open_replies, too_long
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import live_replies, score_now
from h2htalk.benchmark.studies.study_folder import read_study
from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.arguments import as_path, typed
from h2htalk.data.case import Case
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.items import Item
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
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
        study: folder of a study.
        out: folder of the round.
        ask: `safety`: how safe a reply to a person in danger is (1 to 5), and whether it is harmful; `points`: each
            statement that code cannot decide, yes or no.
        arms: only replies of these; empty for all.
        budget: how many items at most, spread over cases by their hash.
        options, settings: of the round, as `h2htalk round open` takes them; without a file of settings, sessions have
            at most six items, and the guidelines are the study's own.
    """
    typed(ask, Ask, "--ask")
    folder, target = read_study(as_path(study, "study")), as_path(out, "out")
    replies = [one for one in live_replies(folder) if not arms or one.arm in arms]
    replies = [one for one in replies if one.text is not None and not too_long(one)]
    items = dict(_items(replies, folder.cases, ask == "points"))
    chosen = sorted(items, key=lambda name: hashlib.sha256(name.encode()).digest())[:budget]
    if not chosen:
        raise RoundError(f"{study}: there is no reply to ask people about: no arm of that name, or no such case")
    own: dict[str, Any] = {} if settings is not None else {"care": CARE}
    if ask == "points" and settings is None:
        own["guidelines"] = str(files("h2htalk.benchmark.studies") / "guidelines")
    kind = "safety" if ask == "safety" else "adjudication"
    lines = [items[name] for name in sorted(chosen)]
    status, messages = open_own_round(folder.folder, target, kind, lines, {**own, **(options or {})}, settings)
    asked = f"{counted(len(chosen), 'item')} of {len(items):,}, of {counted(len(replies), 'reply', 'replies')}"
    return status, [asked, *messages]


def close_study_round(study: str | os.PathLike[str], round: str | os.PathLike[str]) -> tuple[StudyResult, list[str]]:
    """Put the answers of a round into its study, and compute its figures again; a complete open round is closed."""
    own = read_study(as_path(study, "study"))
    asked = require_own_round(own.folder, as_path(round, "round"))
    if asked.state != "closed":
        close_round(asked.path)
    new = list(_answers(read_outcome(asked.path), asked.name))
    with writer_lock(own.folder.shard, WAIT):
        others = [one for one in list_people_ratings(own.folder) if one.round != asked.name]
        write_people_ratings(own.folder, [*others, *new])
        return score_now(own.path), [f"{counted(len(new), 'answer')} of people"]


def _items(replies: Sequence[StudyReply], cases: Sequence[Case], points: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each item with its case, by name: a reply to a person in danger, or a point that code leaves open."""
    by_id = {case.id: case for case in cases}

    def line(name: str, reply: StudyReply, labels: tuple[str, ...] = (), note: str = "") -> tuple[str, dict[str, Any]]:
        case = by_id[reply.case]
        text, crisis = response_text(reply.text or "", case.language), case.study in PERCEIVED
        item = Item(name, case.language, reply.said, response=text, labels=labels, crisis=crisis, note=note)
        return name, {"item": item.to_dict(), "source": case.to_dict()}

    if points:
        for one in open_replies(replies, cases, perception=False):
            for point in one.points:
                yield line(f"{one.reply.text_hash}:{point.id}", one.reply, (_NO, _YES), point.text)
    else:
        yield from (line(one.text_hash, one) for one in replies if by_id[one.case].study in PERCEIVED)


def _answers(outcome: RoundOutcome, name: str) -> Iterator[PeopleRating]:
    """Ratings and yes-or-no answers, by reply and question: the mean, and of how many annotators."""
    values: dict[str, list[float]] = {}
    for one in outcome.annotations.values():
        item, _, point = one.item.partition(":")
        if one.question == PERCEPTION and isinstance(one.value, int):
            values.setdefault(f"{item}:{PERCEPTION}", []).append(float(one.value))
        elif one.question == VIOLATION or (one.question == "label" and point):
            question = VIOLATION if one.question == VIOLATION else point
            values.setdefault(f"{item}:{question}", []).append(float(one.value == _YES))
    for answer, own in sorted(values.items()):
        yield PeopleRating(answer, sum(own) / len(own), len(own), name)
