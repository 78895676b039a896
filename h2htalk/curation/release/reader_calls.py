"""The calls by which `release read` and `release risk` have a model read dialogues of a release.

Whose words a model is shown is written down before it is shown them, and the replies stand in a call store of the
workspace: an erasure finds both, and after a kill the same command repeats only the calls that were in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from h2htalk.chat.protocol import Reply, Request
from h2htalk.chat.store.call_store import CallStore
from h2htalk.chat.store.model_calls import CallSettings, ModelCalls
from h2htalk.curation.workspace import Workspace
from h2htalk.data.case import Case
from h2htalk.data.erasure.folder_kinds import ids_in
from h2htalk.data.files import writing
from h2htalk.data.readers.item_reads import (
    CALLS_FOLDER,
    ItemReads,
    read_item_reads,
    write_item_reads,
)
from h2htalk.data.responses import CALLS, Failure
from h2htalk.data.scenario import Scenario
from h2htalk.errors import ConfigError

# Of an estimate, which makes no key and sends nothing. A marker made with it is as long as another.
NO_SECRET = b"h2htalk estimate"


@dataclass(frozen=True, slots=True)
class Answers:
    """What a model answered.

    Attributes:
        replies: dialogue -> the replies about it, by the ids of their requests.
        failures: the messages of calls that failed.
    """

    replies: Mapping[str, Mapping[str, Reply]]
    failures: tuple[str, ...]


def fence_secret(workspace: Workspace) -> bytes:
    """The secret of the fences: the same before a purge and after it. Raises ConfigError where its owner deleted it."""
    secret = workspace.erasure_key()
    if not secret:
        raise ConfigError(
            f"{workspace.path}: its keys were deleted, so no text of it can be fenced for a model; "
            "use a workspace that has them"
        )
    return secret


def open_store(workspace: Workspace) -> CallStore:
    """The store of the calls about releases of a workspace. Raises DataError."""
    folder = workspace.path / CALLS_FOLDER
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return CallStore(folder / CALLS)


def note_shown(
    workspace: Workspace, shown: Iterable[tuple[str, Sequence[Scenario | Case]]]
) -> None:
    """Write down whose words a model is shown, before it is: an erasure then finds the replies.

    `shown`: names of lines of the readings, each with the items of which it is about.
    """
    lines = read_item_reads(workspace.path)
    for name, records in shown:
        known = lines.get(name, ItemReads(id=name))
        ids = set(known.of)
        for record in records:
            ids |= {record.id, *ids_in(record.to_dict())}
        ids.discard(name)
        lines[name] = replace(known, of=tuple(sorted(ids)))
    write_item_reads(workspace.path, lines)


def ask(
    settings: CallSettings, store: CallStore, stage: str, requests: Mapping[str, Sequence[Request]]
) -> Answers:
    """Ask a model about dialogues. `stage`: the name of the calls; `requests`: by dialogue."""
    with ModelCalls(settings, store, stage, once=True, sampled_too=True) as calls:
        outcomes = calls.outcomes(
            [request for of_dialogue in requests.values() for request in of_dialogue]
        )
    failures: list[str] = []
    for outcome in outcomes.values():
        if isinstance(outcome, Failure):
            failures.append(outcome.message or outcome.reason)
    replies: dict[str, dict[str, Reply]] = {}
    for name, of_dialogue in requests.items():
        replies[name] = {}
        for request in of_dialogue:
            outcome = outcomes[request.id, request.sample]
            if isinstance(outcome, Reply):
                replies[name][request.id] = outcome
    return Answers(replies=replies, failures=tuple(failures))
