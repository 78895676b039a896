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

from h2htalk.benchmark.studies.conversations import StudyReply
from h2htalk.benchmark.studies.point_answers import VIOLATION, open_replies, too_long
from h2htalk.benchmark.studies.point_judge import PERCEPTION
from h2htalk.benchmark.studies.report import StudyResult
from h2htalk.benchmark.studies.run_study import PERCEIVED, live_replies, score_study
from h2htalk.benchmark.studies.study_folder import LOCK, Study, add_people, read_study
from h2htalk.data.append_log import WAIT, writer_lock
from h2htalk.data.arguments import as_path, typed
from h2htalk.data.case import Case
from h2htalk.data.files import write_jsonl
from h2htalk.errors import RoundError, counted
from h2htalk.rounds.closing import close_round
from h2htalk.rounds.item_sources import read_items
from h2htalk.rounds.items import Item
from h2htalk.rounds.opening import open_round
from h2htalk.rounds.outcome import RoundOutcome, read_outcome
from h2htalk.rounds.round_folder import RoundFolder
from h2htalk.rounds.settings import make_spec
from h2htalk.rounds.status import Status
from h2htalk.rounds.texts.interface import interface_text

Ask = Literal["safety", "points"]
_YES, _NO = "yes", "no"
_KINDS: Mapping[str, str] = {"safety": "safety", "points": "adjudication"}
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
        options: settings of the round: where, annotators, overlap, format, seed.
        settings: a TOML file with these and all others, care and guidelines among them; without one, sessions have at
            most six items, and the guidelines are the study's own.
    """
    typed(ask, Ask, "--ask")
    folder, target = read_study(as_path(study, "study")), as_path(out, "out")
    replies = [one for one in live_replies(folder) if not arms or one.arm in arms]
    replies = [one for one in replies if one.text is not None and not too_long(one)]
    cases = {case.id: case for case in folder.cases}
    found = _safety(replies, cases) if ask == "safety" else _points(replies, cases)
    items = {item.id: (item, case) for item, case in found}
    chosen = sorted(items, key=lambda name: hashlib.sha256(name.encode()).digest())[:budget]
    if not chosen:
        raise RoundError(f"{study}: there is no reply to ask people about: no arm of that name, or no such case")
    path = _items_file(folder, target.resolve().name)
    lines = (items[name] for name in sorted(chosen))
    write_jsonl(path, ({"item": item.to_dict(), "source": case.to_dict()} for item, case in lines))
    own: dict[str, Any] = {} if settings is not None else {"care": CARE}
    if ask == "points" and settings is None:
        own["guidelines"] = str(files("h2htalk.benchmark.studies") / "guidelines")
    status, messages = open_round(make_spec(_KINDS[ask], str(path), {**own, **(options or {})}, settings), target)
    return status, [
        f"{counted(len(chosen), 'item')} of {len(items):,}, of {counted(len(replies), 'reply', 'replies')}",
        *messages,
    ]


def close_study_round(study: str | os.PathLike[str], round: str | os.PathLike[str]) -> tuple[StudyResult, list[str]]:
    """Put the answers of a round into its study, and compute its figures again; a complete open round is closed."""
    folder, target = read_study(as_path(study, "study")), RoundFolder(as_path(round, "round"))
    path = _items_file(folder, target.require().name)
    kind = "safety" if target.spec().kind == "safety" else "adjudication"
    own = {item.id for item in read_items(str(path), kind=kind).items} if path.exists() else set()  # type: ignore[arg-type]
    if own.isdisjoint(item.id for item in target.items()):
        raise RoundError(f"{round}: this round was not opened from {study}; name a round of this study")
    if target.state != "closed":
        close_round(target.path)
    lines = list(_answers(read_outcome(target.path), target.name))
    with writer_lock(folder.path / LOCK, WAIT):
        add_people(folder.path, lines, target.name)
    return score_study(folder.path), [f"{counted(len(lines), 'answer')} of people"]


def _safety(replies: Sequence[StudyReply], cases: Mapping[str, Case]) -> Iterator[tuple[Item, Case]]:
    for reply in replies:
        if (case := cases[reply.case]).study in PERCEIVED:
            yield _item(reply.text_hash, reply, case), case


def _points(replies: Sequence[StudyReply], cases: Mapping[str, Case]) -> Iterator[tuple[Item, Case]]:
    for one in open_replies(replies, cases, frozenset()):
        for point in one.points:
            name = f"{one.reply.text_hash}:{point.id}"
            yield _item(name, one.reply, one.case, (_NO, _YES), point.text), one.case


def _item(name: str, reply: StudyReply, case: Case, labels: tuple[str, ...] = (), note: str = "") -> Item:
    # What a text of a round cannot hold is shown as an escape.
    text = (reply.text or "").replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    return Item(
        id=name,
        language=case.language,
        turns=reply.said,
        response=text.strip() or interface_text("empty_reply", case.language),
        labels=labels,
        crisis=case.study in PERCEIVED,
        note=note,
    )


def _items_file(study: Study, name: str) -> Path:
    return study.path / "adjudication" / f"{name}.items.jsonl"


def _answers(outcome: RoundOutcome, name: str) -> Iterator[dict[str, Any]]:
    """Ratings and yes-or-no answers as lines of `people.jsonl`: the mean, and of how many annotators."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in outcome.annotations.values():
        item, _, point = one.item.partition(":")
        if one.question == PERCEPTION and isinstance(one.value, int):
            values.setdefault((item, PERCEPTION), []).append(float(one.value))
        elif one.question == VIOLATION or (one.question == "label" and point):
            question = VIOLATION if one.question == VIOLATION else point
            values.setdefault((item, question), []).append(float(one.value == _YES))
    for (item, question), own in sorted(values.items()):
        mean = sum(own) / len(own)
        yield {"reply": item, "question": question, "value": mean, "raters": len(own), "round": name}
