"""Chats that an application had with its users, as cases of a study whose replies are there already.

A chat is one session: each message of the user is a turn, and every point is asked of every reply. Messages of one side
that follow each other are one. What the companion said first stands in the history, after three dots of the user's;
a last message without a reply is left out, and so is a chat in which nobody was answered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from h2htalk.benchmark.observations import LOGGED
from h2htalk.benchmark.studies.conversations import EMPTY, LIVE, StudyReply
from h2htalk.benchmark.studies.settings import APP, StudySpec
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.case import Case, CaseTurn, Point, Session, script
from h2htalk.data.files import read_jsonl, read_toml
from h2htalk.data.languages import LANGUAGES
from h2htalk.data.records import option_of, read_record
from h2htalk.data.responses import Answers, Response
from h2htalk.data.scenario import Dialogue, Persona, Turn, notes_crisis
from h2htalk.data.splits import Header, Split, split_of
from h2htalk.errors import ConfigError, DataError, counted

RAW = "not_anonymized"  # the tag of a chat that does not say that it was anonymised
ORDINARY, CRISIS, REJECTED, UNCHECKED = LOGGED  # kinds: the curation noted nothing, a crisis, rejected it, never looked
_ASKING = ("sap", "temperature", "top_p", "model_sampling", "max_tokens", "thinking", "seed")
_BUNDLED = Path(str(files("h2htalk.benchmark.studies") / "logged"))


@dataclass(frozen=True, slots=True)
class Logs:
    """Chats as cases, and the replies to the turns of each."""

    split: Split
    replies: Mapping[str, Sequence[Response]]

    def store(self, cases: Sequence[Case], stored: Answers, calls: CallStore) -> None:
        """Put the replies of cases that are not stored yet where an application's would be.

        Raises DataError for a chat with another reply than is stored.
        """
        for case in cases:
            found = {one.id: one for one in self.replies.get(case.id, ())}
            old = {name: one.text for name in found if isinstance(one := stored.get((name, 0)), Response)}
            if any(found[name].text != text for name, text in old.items()):
                raise DataError(f"{case.id}: has another reply than the study holds; choose another --out")
            new = (one for name, one in found.items() if name not in old)
            calls.append(*({**one.to_dict(), "stage": APP, "item": case.id} for one in new))


def read_logs(spec: StudySpec) -> Logs:
    """Read chats, points and persona. Raises DataError for wrong ones, ConfigError for a setting of a model."""
    for one in fields(spec.ask):
        if one.name in _ASKING and getattr(spec.ask, one.name) != one.default:
            raise ConfigError(f"{option_of(one.name)} is for models that are asked, and here none is; leave it out")
    path, described = Path(spec.ask.split), Path(spec.persona or _BUNDLED / "companion.toml")
    cases, replies, unanswered = dict[str, Case](), dict[str, list[Response]](), 0
    persona = Persona.from_dict(read_toml(described, error=DataError), str(described))
    points = {name: _read_points(Path(spec.points or _BUNDLED / f"points_{name}.jsonl")) for name in LANGUAGES}
    for where, record, kind in _dialogues(path):
        dialogue = Dialogue.from_dict(record, where)
        if dialogue.id in cases:
            raise DataError(f"{where}: duplicate id {dialogue.id}")
        if spec.ask.language not in (None, dialogue.language):
            continue
        if dialogue.language not in persona.names:
            raise DataError(f"{where}: persona {persona.id} has no {dialogue.language} description; add it")
        sides = groupby(dialogue.messages, attrgetter("role"))
        said = [Turn(role, "\n".join(turn.content for turn in own)) for role, own in sides]
        history = (Turn("user", EMPTY), said.pop(0)) if said[0].role == "companion" else ()
        pairs = list(zip(said[::2], said[1::2], strict=False))
        if not pairs:
            unanswered += 1
            continue
        asked = points[dialogue.language]
        seen = ORDINARY if "safety" in dialogue.metadata else UNCHECKED
        kind = kind or (CRISIS if notes_crisis(dialogue.metadata) else seen)
        turns = tuple(CaseTurn(user.content, points=tuple(one.id for one in asked)) for user, _ in pairs)
        family = "chat-" + hashlib.sha256(dialogue.id.encode()).hexdigest()[:12]
        tags = () if "anonymized" in dialogue.metadata else (RAW,)
        about: Any = {"tags": tags, "provenance": dialogue.provenance, "licence": dialogue.licence}
        about |= {"history": history, "points": asked}
        made = Case(dialogue.id, "high_risk", kind, family, dialogue.language, persona.id, (Session(turns),), **about)
        cases[dialogue.id] = case = Case.from_dict(made.to_dict(), where)  # what a study's folder can be read with
        names = [StudyReply(APP, case.id, place, LIVE).key for place, *_ in script(case)]
        replies[case.id] = [Response(name, 0, one.content, "stop") for name, (_, one) in zip(names, pairs, strict=True)]
    if not cases:
        raise DataError(f"{path}: holds no chat with a reply")
    left_out = f"{counted(unanswered, 'chat')} left out, in which nobody was answered" if unanswered else ""
    return Logs(split_of([*cases.values()], {persona.id: persona}, Header(path.stem, description=left_out)), replies)


def _dialogues(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the records of a file, or of a stage; those that the stage rejected are of the kind `rejected`."""
    if path.is_dir() and not (path / "stage.json").is_file():
        raise DataError(f"{path}: is no stage of a curation; name one such as WORKSPACE/safety, or a JSONL file")
    for part in sorted((path / "kept").glob("part-*.jsonl")) if path.is_dir() else (path,):
        yield from ((where, record, "") for where, record in read_jsonl(part, unique_keys=True))
    for part in sorted((path / "rejected").glob("part-*.jsonl")):
        for where, line in read_jsonl(part, unique_keys=True):
            if not isinstance(record := line.get("record"), dict):
                raise DataError(f"{where}: holds no dialogue; read a later stage, such as WORKSPACE/safety")
            yield where, record, REJECTED


def _read_points(path: Path) -> tuple[Point, ...]:
    """Read a file of points. Raises DataError, naming it, also for an id that occurs twice or a check of a fact."""
    points = [read_record(Point, record, where) for where, record in read_jsonl(path, unique_keys=True)]
    if not points:
        raise DataError(f"{path}: holds no point")
    session = Session((CaseTurn("-", points=tuple(one.id for one in points)),))
    made = Case("points", "high_risk", ORDINARY, "points", "en", "companion", (session,), points=tuple(points))
    return Case.from_dict(made.to_dict(), str(path)).points
