"""Rounds on an Argilla server: a workspace a language, a dataset a session, answers from its database.

Every step looks first and then makes what is missing, so that it may be killed at any request and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.errors import counted
from h2htalk.progress import Progress
from h2htalk.rounds.argilla.accounts import (
    add_annotators,
    annotators,
    describe_accounts,
    make_workspaces,
    seen_places,
    users,
    workspaces,
)
from h2htalk.rounds.argilla.client import FIRST_PATIENCE, PATIENCE, ArgillaClient, connect, require_search
from h2htalk.rounds.argilla.dataset_cache import DatasetSnapshot, read_dataset, read_looks, write_looks
from h2htalk.rounds.argilla.dataset_settings import (
    RoundContent,
    RoundDataset,
    asked_of,
    check_texts,
    dataset_names,
    last_assignment_sets,
    round_datasets,
    workspace_name,
)
from h2htalk.rounds.argilla.datasets import (
    datasets_in,
    describe_changes,
    describe_duplicates,
    describe_missing,
    ensure_dataset,
    require_free,
    require_ours,
)
from h2htalk.rounds.argilla.discards import AdvanceDiscards, set_aside
from h2htalk.rounds.argilla.read_annotations import ArgillaResponse, read_responses
from h2htalk.rounds.argilla.record_publishing import Sparing, publish_records
from h2htalk.rounds.argilla.records import record_ids
from h2htalk.rounds.argilla.search_index import dead_index, describe_index, require_shown
from h2htalk.rounds.assignment.remaining_annotations import remaining_requests
from h2htalk.rounds.platforms import Collected
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder

# Who was spared what, on our side: the server cannot tell a discard in advance from an annotator's own.
ASIDE = "argilla_discards.jsonl"
# What earlier looks read, so that a dataset in which nothing has happened is not read again.
SEEN = "argilla_cache.jsonl"
# Seconds of putting out that need no line of progress.
_QUICK = 3.0


class ArgillaPlatform:
    """The platform: it assigns nobody, the server hands items out."""

    assigns_items = False

    def __init__(self, connect: Callable[[float], ArgillaClient] = connect) -> None:
        """`connect`: how to reach the server, for so many seconds."""
        self._connect = connect

    def check(self, round: RoundFolder) -> None:
        """Raise RoundError or MissingExtraError unless server, key, version and texts are as they must be, and no other
        round lies where this one is to be. Nothing is changed on the server."""
        wire = self._connect(FIRST_PATIENCE)
        require_search(wire)
        asked = asked_of(round)
        check_texts(round, asked)
        names = {workspace_name(asked.spec, round.name, one): one for one in asked.guidelines}
        places = workspaces(wire)
        for name, language in names.items():
            there = datasets_in(wire, places.get(name), asked.mark)
            require_free(wire, there, name, dataset_names(round.name, language), asked.mark)
        if wire.role != "owner":
            make_workspaces(wire, names)

    def publish(self, round: RoundFolder) -> list[str]:
        """Make what is missing: workspaces, accounts, datasets, records. Returns lines for the manager.

        Raises:
            RoundError: the server fails or refuses, something of another round is in the way, or annotators would not
                see what was put out.
        """
        wire = self._connect(PATIENCE)
        asked = asked_of(round)
        # What is put out leaves no stamp on a dataset.
        write_looks(round.private / SEEN, {})
        sessions = round_datasets(round, asked)
        places = make_workspaces(wire, [session.workspace for session in sessions])
        ours = {session.workspace: places[session.workspace] for session in sessions}
        people, told = add_annotators(wire, round, ours)
        there = {name: datasets_in(wire, place, asked.mark) for name, place in ours.items()}
        annotators, aside = round.annotators(), AdvanceDiscards(round.private / ASIDE)
        answered = {(item, annotator) for item, annotator, _ in round.answers()}
        wanted, last = _wanted(round, asked), last_assignment_sets(sessions)
        made = 0
        with Progress("sessions", len(sessions), silent=_QUICK) as progress:
            for session in sessions:
                place = ours[session.workspace]
                moved = {name for name in session.items if last[name] > session.assignment_set}
                sparing = Sparing(
                    set_aside([asked.items[name] for name in session.items], annotators, answered),
                    moved,
                    {name for name in session.items if name in wanted and name not in moved},
                )
                if sparing.due or there[session.workspace].of(session):
                    dataset = ensure_dataset(wire, asked, session, place, there[session.workspace])
                    new, kept = publish_records(wire, asked, session, dataset, people, sparing, aside)
                    made, told = made + new, [*told, *kept]
                    require_shown(wire, session, dataset)
                progress.advance()
        total = len({name for session in sessions for name in session.items})
        told.append(
            f"{wire.url}: {counted(total, 'item')} in {counted(len(sessions), 'dataset')} of the workspaces "
            + ", ".join(sorted(ours))
            + (f"; {counted(made, 'record is', 'records are')} new" if made else "")
        )
        return told

    def collect(self, round: RoundFolder, *, whole: bool = False) -> Collected:
        """What annotators submitted or discarded by now, read from the server's database and not from its search index.

        A dataset in which nothing has happened since the last look is not read again, unless `whole`.

        Raises:
            RoundError: the server cannot be reached, the key does not see all of the round, or a dataset is another
                round's.
        """
        wire = self._connect(PATIENCE)
        asked = asked_of(round)
        sessions = round_datasets(round, asked)
        places = seen_places(wire, [session.workspace for session in sessions])
        found = _look(wire, round, asked, sessions, places, {} if whole else read_looks(round.private / SEEN))
        accounts = users(wire, places.values())
        aside = AdvanceDiscards(round.private / ASIDE)
        read = read_responses(
            round.name,
            found.responses,
            items=asked.items,
            questions=asked.questions,
            annotators=annotators(round, accounts),
            names={account.id: name for name, account in accounts.items()},
            aside=aside.all(),
        )
        aside.strike(read.touched)
        submitted = {one.user for one in found.responses if one.status == "submitted"}
        notes = (*found.notes, *describe_accounts(wire, round, accounts, submitted), *read.notes)
        return Collected(read.answers, read.mistakes, notes, read.started, found.offered)

    def close(self, round: RoundFolder) -> list[str]:
        """The server keeps everything as it is, and answers that come later are not read."""
        names = ", ".join(sorted({session.workspace for session in round_datasets(round, asked_of(round))}))
        return [
            f"the datasets in {names} are left as they are, and what is answered there from now on is not counted "
            "unless the round is opened again; delete them in Argilla when nobody needs them"
        ]


@dataclass
class _Found:
    """What one look at all datasets brought: responses, what is offered by item, and lines for the manager."""

    responses: list[ArgillaResponse] = field(default_factory=list)
    offered: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _look(
    wire: ArgillaClient,
    round: RoundFolder,
    asked: RoundContent,
    sessions: Sequence[RoundDataset],
    places: Mapping[str, str],
    before: Mapping[str, DatasetSnapshot],
) -> _Found:
    """Look at every dataset: what it holds, and what is not as it should be. The looks are kept for the next one."""
    ids = record_ids(asked.items, asked.salt)
    heard = Counter(item for item, _ in {(i, v) for i, v, question in round.answers() if question != SKIPPED})
    wanted, last = _wanted(round, asked), last_assignment_sets(sessions)
    there = {
        name: datasets_in(wire, places.get(name), asked.mark) for name in {one.workspace for one in sessions}
    }
    seen: dict[str, DatasetSnapshot] = {}
    found, alive = _Found(), True
    earlier = Counter[str]()
    for session in sessions:
        dataset = there[session.workspace].of(session)
        # Of an item in several assignment sets the last is where it is offered. What is gone, `publish` makes again,
        # and counts there what was answered there.
        here = {item: max(0, heard[item] - earlier[item]) for item in session.items}
        found.offered |= {item: max(0, session.wanted - count) for item, count in here.items()}
        earlier.update(dict.fromkeys(session.items, session.wanted))
        if dataset is None and all(last[item] > session.assignment_set for item in session.items):
            continue
        if dataset is None:
            if named := there[session.workspace].named.get(session.dataset):
                require_ours(wire, session.workspace, named, asked.mark)
            found.notes.append(
                f"{wire.url}: the dataset {session.dataset} is not there; what it held at earlier looks still "
                "counts, and `h2htalk round open` makes it again where it wants answers"
            )
            continue
        look = read_dataset(wire, dataset, session.dataset, ids, before.get(dataset["id"]))
        seen[dataset["id"]] = look
        found.responses += look.responses
        found.offered |= look.offered
        due = [item for item in session.items if item in wanted and last[item] == session.assignment_set]
        found.notes += describe_changes(wire, asked, session, dataset)
        found.notes += describe_missing(session, due, look.offered)
        shown = describe_index(wire, session, dataset, look.total, look.done) if alive else []
        if shown is None:
            # One line for a dead engine, not one a dataset.
            shown, alive = [dead_index(wire)], False
        found.notes += shown
    found.notes += describe_duplicates(there)
    if seen != before:
        write_looks(round.private / SEEN, seen)
    return found


def _wanted(round: RoundFolder, asked: RoundContent) -> dict[str, int]:
    """Item -> answers that are to be had for it, by what is stored: where a record is missing, it is made."""
    return remaining_requests(
        asked.spec, round.items(), asked.questions, round.answers(), round.annotators(), ties=True
    )
