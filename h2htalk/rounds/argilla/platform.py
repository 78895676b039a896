"""Rounds on an Argilla server: a workspace a language, a dataset a sitting, answers from its database.

Every step looks first and then makes what is missing, so that it may be killed at any request and repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from h2htalk.errors import counted
from h2htalk.progress import Progress
from h2htalk.rounds.argilla.accounts import (
    annotators,
    make_workspaces,
    seat_voters,
    seen_places,
    told_of_accounts,
    users,
    workspaces,
)
from h2htalk.rounds.argilla.client import FIRST_PATIENCE, PATIENCE, Wire, connect, require_search
from h2htalk.rounds.argilla.dataset_cache import Look, look_at, read_looks, write_looks
from h2htalk.rounds.argilla.dataset_settings import (
    Asked,
    Sitting,
    asked_of,
    check_texts,
    dataset_names,
    last_waves,
    sittings_of,
    workspace_name,
)
from h2htalk.rounds.argilla.datasets import (
    datasets_in,
    require_free,
    require_ours,
    see_to_dataset,
    told_of_changes,
    told_of_missing,
    told_of_twice,
)
from h2htalk.rounds.argilla.discards import Aside, set_aside
from h2htalk.rounds.argilla.publish_records import Sparing, see_to_records
from h2htalk.rounds.argilla.read_annotations import Response, read_responses
from h2htalk.rounds.argilla.records import record_ids
from h2htalk.rounds.argilla.search_index import dead_index, require_shown, told_of_index
from h2htalk.rounds.assignment.remaining_annotations import still_wanted
from h2htalk.rounds.platforms import Pulled
from h2htalk.rounds.questions import SKIPPED
from h2htalk.rounds.round_folder import RoundFolder

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
        there = {name: datasets_in(wire, place, asked.mark) for name, place in ours.items()}
        voters, aside = round.voters(), Aside(round.private / ASIDE)
        answered = {(item, voter) for item, voter, _ in round.answers()}
        wanted, last = _wanted(round, asked), last_waves(sittings)
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
                if sparing.due or there[sitting.workspace].of(sitting):
                    dataset = see_to_dataset(wire, asked, sitting, place, there[sitting.workspace])
                    new, kept = see_to_records(wire, asked, sitting, dataset, people, sparing, aside)
                    made, told = made + new, [*told, *kept]
                    require_shown(wire, sitting, dataset)
                progress.advance()
        total = len({name for sitting in sittings for name in sitting.items})
        told.append(
            f"{wire.url}: {counted(total, 'item')} in {counted(len(sittings), 'dataset')} of the workspaces "
            + ", ".join(sorted(ours))
            + (f"; {counted(made, 'record is', 'records are')} new" if made else "")
        )
        return told

    def pull(self, round: RoundFolder, *, whole: bool = False) -> Pulled:
        """What voters submitted or discarded by now, read from the server's database and not from its search index.

        A dataset in which nothing has happened since the last look is not read again, unless `whole`.

        Raises:
            RoundError: the server cannot be reached, the key does not see all of the round, or a dataset is another
                round's.
        """
        wire = self._connect(PATIENCE)
        asked = asked_of(round)
        sittings = sittings_of(round, asked)
        places = seen_places(wire, [sitting.workspace for sitting in sittings])
        found = _look(wire, round, asked, sittings, places, {} if whole else read_looks(round.private / SEEN))
        accounts = users(wire, places.values())
        aside = Aside(round.private / ASIDE)
        read = read_responses(
            round.name,
            found.responses,
            items=asked.items,
            questions=asked.questions,
            voters=annotators(round, accounts),
            names={account.id: name for name, account in accounts.items()},
            aside=aside.all(),
        )
        aside.strike(read.touched)
        submitted = {one.user for one in found.responses if one.status == "submitted"}
        notes = (*found.notes, *told_of_accounts(wire, round, accounts, submitted), *read.notes)
        return Pulled(read.answers, read.mistakes, notes, read.started, found.offered)

    def close(self, round: RoundFolder) -> list[str]:
        """The server keeps everything as it is, and answers that come later are not read."""
        names = ", ".join(sorted({sitting.workspace for sitting in sittings_of(round, asked_of(round))}))
        return [
            f"the datasets in {names} are left as they are, and what is answered there from now on is not counted "
            "unless the round is opened again; delete them in Argilla when nobody needs them"
        ]


@dataclass
class _Found:
    """What one look at all datasets brought: responses, what is offered by item, and lines for the manager."""

    responses: list[Response] = field(default_factory=list)
    offered: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _look(
    wire: Wire,
    round: RoundFolder,
    asked: Asked,
    sittings: Sequence[Sitting],
    places: Mapping[str, str],
    before: Mapping[str, Look],
) -> _Found:
    """Look at every dataset: what it holds, and what is not as it should be. The looks are kept for the next one."""
    ids = record_ids(asked.items, asked.salt)
    heard = Counter(item for item, _ in {(i, v) for i, v, question in round.answers() if question != SKIPPED})
    wanted, last = _wanted(round, asked), last_waves(sittings)
    there = {
        name: datasets_in(wire, places.get(name), asked.mark) for name in {one.workspace for one in sittings}
    }
    seen: dict[str, Look] = {}
    found, alive = _Found(), True
    earlier = Counter[str]()
    for sitting in sittings:
        dataset = there[sitting.workspace].of(sitting)
        # Of an item in several waves the last is where it is offered. What is gone, `publish` makes again, and counts
        # there what was answered there.
        here = {item: max(0, heard[item] - earlier[item]) for item in sitting.items}
        found.offered |= {item: max(0, sitting.wanted - count) for item, count in here.items()}
        earlier.update(dict.fromkeys(sitting.items, sitting.wanted))
        if dataset is None and all(last[item] > sitting.wave for item in sitting.items):
            continue
        if dataset is None:
            if named := there[sitting.workspace].named.get(sitting.dataset):
                require_ours(wire, sitting.workspace, named, asked.mark)
            found.notes.append(
                f"{wire.url}: the dataset {sitting.dataset} is not there; what it held at earlier looks still "
                "counts, and `h2htalk round open` makes it again where it wants answers"
            )
            continue
        look = look_at(wire, dataset, sitting.dataset, ids, before.get(dataset["id"]))
        seen[dataset["id"]] = look
        found.responses += look.responses
        found.offered |= look.offered
        due = [item for item in sitting.items if item in wanted and last[item] == sitting.wave]
        found.notes += told_of_changes(wire, asked, sitting, dataset)
        found.notes += told_of_missing(sitting, due, look.offered)
        shown = told_of_index(wire, sitting, dataset, look.total, look.done) if alive else []
        if shown is None:
            # One line for a dead engine, not one a dataset.
            shown, alive = [dead_index(wire)], False
        found.notes += shown
    found.notes += told_of_twice(there)
    if seen != before:
        write_looks(round.private / SEEN, seen)
    return found


def _wanted(round: RoundFolder, asked: Asked) -> dict[str, int]:
    """Item -> answers that are to be had for it, by what is stored: where a record is missing, it is made."""
    return still_wanted(
        asked.spec, round.items(), asked.questions, round.answers(), round.voters(), ties=True
    )
