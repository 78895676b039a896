"""Read an application's logged chats as cases that already have replies.

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
from h2htalk.data.records import read_record
from h2htalk.data.responses import Answers, Response
from h2htalk.data.scenario import Dialogue, Persona, Turn, notes_crisis
from h2htalk.data.settings import option_of
from h2htalk.data.splits import Header, Split, split_of
from h2htalk.errors import ConfigError, DataError, counted

RAW = "not_anonymized"  # the tag of a chat that does not say that it was anonymised
# Kinds of chats: the curation noted nothing, noted a crisis, rejected it, or never read it.
ORDINARY, CRISIS, REJECTED, UNCHECKED = LOGGED
_ASKING = ["sap", "temperature", "top_p", "model_sampling", "max_tokens", "thinking", "seed"]
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
            new = []
            for reply in self.replies.get(case.id, ()):
                earlier = stored.get((reply.id, 0))
                if not isinstance(earlier, Response):
                    new.append({**reply.to_dict(), "stage": APP, "item": case.id})
                elif earlier.text != reply.text:
                    raise DataError(
                        f"{case.id}: has another reply than the study holds; choose another --out"
                    )
            calls.append(*new)


def read_logs(spec: StudySpec) -> Logs:
    """Read chats, points and persona. Raises DataError for wrong ones, ConfigError for a setting of a model."""
    for setting in fields(spec.ask):
        if setting.name in _ASKING and getattr(spec.ask, setting.name) != setting.default:
            raise ConfigError(
                f"{option_of(setting.name)} is for models that are asked, and here none is; leave it out"
            )
    path = Path(spec.ask.split)
    described = Path(spec.persona or _BUNDLED / "companion.toml")
    persona = Persona.from_dict(read_toml(described, error=DataError), str(described))
    points = {
        language: _read_points(Path(spec.points or _BUNDLED / f"points_{language}.jsonl"))
        for language in LANGUAGES
    }
    cases = dict[str, Case]()
    replies = dict[str, list[Response]]()
    unanswered = 0
    for where, record, kind in _dialogues(path):
        dialogue = Dialogue.from_dict(record, where)
        language = dialogue.language
        if dialogue.id in cases:
            raise DataError(f"{where}: duplicate id {dialogue.id}")
        if spec.ask.language not in (None, language):
            continue
        if language not in persona.names:
            raise DataError(f"{where}: persona {persona.id} has no {language} description; add it")
        history, pairs = _exchanges(dialogue)
        if not pairs:
            unanswered += 1
            continue
        case = _case_of(dialogue, kind, persona.id, history, pairs, points[language], where)
        cases[dialogue.id] = case
        replies[dialogue.id] = []
        for (turn_id, *_), (_, answer) in zip(script(case), pairs, strict=True):
            name = StudyReply(APP, case.id, turn_id, LIVE).key
            replies[dialogue.id].append(Response(name, 0, answer.content, "stop"))
    if not cases:
        raise DataError(f"{path}: holds no chat with a reply")
    left_out = ""
    if unanswered:
        left_out = f"{counted(unanswered, 'chat')} left out, in which nobody was answered"
    header = Header(path.stem, description=left_out)
    return Logs(split_of([*cases.values()], {persona.id: persona}, header), replies)


def _exchanges(dialogue: Dialogue) -> tuple[tuple[Turn, ...], list[tuple[Turn, Turn]]]:
    """Return what the companion said first, after three dots of the user's, and the messages with their replies."""
    turns = []
    for role, messages in groupby(dialogue.messages, attrgetter("role")):
        turns.append(Turn(role, "\n".join(map(attrgetter("content"), messages))))
    history: tuple[Turn, ...] = ()
    if turns[0].role == "companion":
        history = (Turn("user", EMPTY), turns.pop(0))
    return history, list(zip(turns[::2], turns[1::2], strict=False))


def _case_of(
    dialogue: Dialogue,
    kind: str,
    persona: str,
    history: Sequence[Turn],
    pairs: Sequence[tuple[Turn, Turn]],
    points: Sequence[Point],
    where: str,
) -> Case:
    """Return a chat as a case, read as a study's folder will read it; every point is asked of every reply."""
    read_kind = ORDINARY if "safety" in dialogue.metadata else UNCHECKED
    if notes_crisis(dialogue.metadata):
        read_kind = CRISIS
    point_ids = tuple(point.id for point in points)
    turns = tuple(CaseTurn(user.content, points=point_ids) for user, _ in pairs)
    case = Case(
        dialogue.id,
        "high_risk",
        kind or read_kind,
        "chat-" + hashlib.sha256(dialogue.id.encode()).hexdigest()[:12],
        dialogue.language,
        persona,
        (Session(turns),),
        history=tuple(history),
        points=tuple(points),
        tags=() if "anonymized" in dialogue.metadata else (RAW,),
        provenance=dialogue.provenance,
        licence=dialogue.licence,
    )
    return Case.from_dict(case.to_dict(), where)


def _dialogues(path: Path) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the records of a file, or of a stage; those that the stage rejected are of the kind `rejected`."""
    if path.is_dir() and not (path / "stage.json").is_file():
        raise DataError(
            f"{path}: is no stage of a curation; name one such as WORKSPACE/safety, or a JSONL file"
        )
    accepted = sorted((path / "kept").glob("part-*.jsonl")) if path.is_dir() else [path]
    for file in accepted:
        for where, record in read_jsonl(file, unique_keys=True):
            yield where, record, ""
    for file in sorted((path / "rejected").glob("part-*.jsonl")):
        for where, line in read_jsonl(file, unique_keys=True):
            rejected = line.get("record")
            if not isinstance(rejected, dict):
                raise DataError(
                    f"{where}: holds no dialogue; read a later stage, such as WORKSPACE/safety"
                )
            yield where, rejected, REJECTED


def _read_points(path: Path) -> tuple[Point, ...]:
    """Read a file of points. Raises DataError, naming it, also for an id that occurs twice or a check of a fact."""
    lines = read_jsonl(path, unique_keys=True)
    points = tuple(read_record(Point, record, where) for where, record in lines)
    if not points:
        raise DataError(f"{path}: holds no point")
    session = Session((CaseTurn("-", points=tuple(point.id for point in points)),))
    case = Case(
        "points",
        "high_risk",
        ORDINARY,
        "points",
        "en",
        "companion",
        (session,),
        points=points,
    )
    return Case.from_dict(case.to_dict(), str(path)).points
