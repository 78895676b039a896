"""Rounds on an Argilla server: a workspace a language, a dataset a sitting, answers from its database.

Every step looks first and then makes what is missing, so that it may be killed at any request and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from h2htalk.progress import Progress
from h2htalk.rounds.argilla_server.answers import Response, read_responses
from h2htalk.rounds.argilla_server.aside import Aside, set_aside
from h2htalk.rounds.argilla_server.datasets import (
    Sparing,
    datasets_in,
    require_ours,
    see_to_dataset,
    see_to_records,
    told_of_changes,
)
from h2htalk.rounds.argilla_server.index import dead_index, require_shown, told_of_index
from h2htalk.rounds.argilla_server.people import annotators, make_workspaces, seat_voters, users, workspaces
from h2htalk.rounds.argilla_server.records import record_ids
from h2htalk.rounds.argilla_server.seen import Look, look_at, read_looks, write_looks
from h2htalk.rounds.argilla_server.settings import (
    asked_of,
    check_texts,
    last_waves,
    sittings_of,
    workspace_name,
)
from h2htalk.rounds.argilla_server.wire import FIRST_PATIENCE, PATIENCE, Wire, connect, require_search
from h2htalk.rounds.backends import Pulled
from h2htalk.rounds.folder import RoundFolder
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.wanting import still_wanted

# Who was spared what, on our side: the server cannot tell a discard in advance from a voter's own.
ASIDE = "argilla_set_aside.jsonl"
# What earlier looks read, so that a dataset in which nothing has happened is not read again.
SEEN = "argilla_seen.jsonl"
# Seconds of putting out that need no line of progress.
_QUICK = 3.0


class ArgillaRounds:
    """The backend: it seats nobody, the server hands items out."""

    assigns = False

    def __init__(self, connect: Callable[[float], Wire] = connect) -> None:
        """`connect`: how to reach the server, for so many seconds."""
        self._connect = connect

    def check(self, round: RoundFolder) -> None:
        """Raise RoundError or MissingExtraError unless server, key, version and texts are as they must be."""
        wire = self._connect(FIRST_PATIENCE)
        require_search(wire)
        asked = asked_of(round)
        check_texts(round, asked)
        if wire.role != "owner":
            make_workspaces(wire, [workspace_name(asked.spec, round.name, one) for one in asked.guidelines])

    def publish(self, round: RoundFolder) -> list[str]:
        """Make what is missing: workspaces, accounts, datasets, records. Returns lines for the manager.

        Raises:
            RoundError: the server fails or refuses, something of another round is in the way, or voters would not see
                what was put out.
        """
        wire = self._connect(PATIENCE)
        asked = asked_of(round)
        # What is put out leaves no stamp on a dataset.
        write_looks(round.private / SEEN, {})
        sittings = sittings_of(round, asked)
        places = make_workspaces(wire, [sitting.workspace for sitting in sittings])
        ours = {sitting.workspace: places[sitting.workspace] for sitting in sittings}
        people, told = seat_voters(wire, round, ours)
        there = {name: datasets_in(wire, place) for name, place in ours.items()}
        voters, aside = round.voters(), Aside(round.private / ASIDE)
        answers = round.answers()
        answered = {(item, voter) for item, voter, _ in answers}
        wanted = still_wanted(asked.spec, round.items(), asked.questions, answers, voters, ties=True)
        last = last_waves(sittings)
        made = 0
        with Progress("sittings", len(sittings), silent=_QUICK) as progress:
            for sitting in sittings:
                place = ours[sitting.workspace]
                moved = {name for name in sitting.items if last[name] > sitting.wave}
                sparing = Sparing(
                    set_aside([asked.items[name] for name in sitting.items], voters, answered),
                    moved,
                    {name for name in sitting.items if name in wanted and name not in moved},
                )
                if sparing.due or sitting.dataset in there[sitting.workspace]:
                    dataset = see_to_dataset(wire, asked, sitting, place, there[sitting.workspace])
                    made += see_to_records(wire, asked, sitting, dataset, people, sparing, aside)
                    require_shown(wire, sitting, dataset)
                progress.advance()
        total = sum(len(sitting.items) for sitting in sittings)
        told.append(
            f"{wire.url}: {total} items in {len(sittings)} datasets of the workspaces {', '.join(sorted(ours))}"
            + (f", {made} of them new" if made else "")
        )
        return told

    def pull(self, round: RoundFolder, *, whole: bool = False) -> Pulled:
        """What voters submitted or discarded by now, read from the server's database and not from its search index.

        A dataset in which nothing has happened since the last look is not read again, unless `whole`.

        Raises:
            RoundError: the server cannot be reached, or a dataset is another round's.
        """
        wire = self._connect(PATIENCE)
        asked = asked_of(round)
        places = workspaces(wire)
        ids = record_ids(asked.items, asked.salt)
        answered = {(item, voter) for item, voter, question in round.answers() if question != SKIPPED}
        heard = Counter(item for item, _ in answered)
        before = {} if whole else read_looks(round.private / SEEN)
        seen: dict[str, Look] = {}
        offered: dict[str, int] = {}
        responses: list[Response] = []
        notes: list[str] = []
        look = True
        sittings = sittings_of(round, asked)
        ours = {sitting.workspace: places.get(sitting.workspace) for sitting in sittings}
        there = {name: datasets_in(wire, place) if place else {} for name, place in ours.items()}
        for sitting in sittings:
            dataset = there[sitting.workspace].get(sitting.dataset)
            # Of an item in several waves the last is where it is offered. What is gone, `publish` makes again.
            offered |= {item: max(0, sitting.wanted - heard[item]) for item in sitting.items}
            if dataset is None:
                notes.append(
                    f"{wire.url}: the dataset {sitting.dataset} is not there; what it held at earlier looks still "
                    "counts, and `h2htalk round open` makes it again where it wants answers"
                )
                continue
            require_ours(wire, sitting, dataset, asked.mark)
            seen[dataset["id"]] = found = look_at(wire, dataset, ids, before.get(dataset["id"]))
            responses += found.responses
            offered |= found.offered
            notes += told_of_changes(asked, sitting, dataset)
            shown = told_of_index(wire, sitting, dataset, found.total, found.done) if look else []
            if shown is None:
                # One line for a dead engine, not one a dataset.
                shown, look = [dead_index(wire)], False
            notes += shown
        write_looks(round.private / SEEN, seen)
        accounts = users(wire, [place for place in ours.values() if place])
        read = read_responses(
            round.name,
            responses,
            items=asked.items,
            questions=asked.questions,
            voters=annotators(round, accounts),
            names={user: name for name, (user, _) in accounts.items()},
            aside=Aside(round.private / ASIDE).all(),
        )
        return Pulled(read.answers, read.mistakes, (*notes, *read.notes), read.started, offered)

    def close(self, round: RoundFolder) -> list[str]:
        """The server keeps everything as it is, and answers that come later are not read."""
        names = ", ".join(sorted({sitting.workspace for sitting in sittings_of(round, asked_of(round))}))
        return [
            f"the datasets in {names} are left as they are, and what is answered there from now on is not counted "
            "unless the round is opened again; delete them in Argilla when nobody needs them"
        ]
