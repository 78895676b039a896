"""Commands of rounds of annotation: open, follow, change, close, delete."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Exit, Option

from h2htalk.cli import options, round_options
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError
from h2htalk.rounds.settings import ANNOTATORS, make_spec

with options.lazy_imports():
    from h2htalk.curation import sample as samples
    from h2htalk.rounds import annotator_erasure, lifecycle, participants, platforms, round_deletion
    from h2htalk.rounds import status as statuses

Adjudication = Annotated[
    Path | None, Option(help="A closed round that adjudicates this round's ties.")
]
Annotators = Annotated[Path | None, Option(help=ANNOTATORS)]
EachItem = Annotated[bool, Option("--items", help="List every item that lacks answers.")]
Force = Annotated[bool, Option("--force", help="Close although assignments are missing; recorded.")]
Mistakes = Annotated[bool, Option("--mistakes", help="List every mistake, not some of each kind.")]
Without = Annotated[
    list[str] | None, Option(help="Name of an annotator who left; may be repeated.")
]
ReplaceId = Annotated[
    bool,
    Option(
        "--replace-id",
        help="Correct the participant id of an annotator, although bonuses may be listed.",
    ),
]
ITEMS = "A split, a curation stage, a closed round (what it keeps, or its ties for an adjudication), or a .jsonl file."


@round_options.opening_options
def round_open(
    kind: Annotated[str, Argument(help="crowd, expert, adjudication or safety.")],
    items: Annotated[str, Argument(help=ITEMS)],
    out: options.Out,
    settings: options.Settings = None,
    **chosen: Any,
) -> None:
    """Open a round: assign items to annotators. The same command completes an interrupted opening."""
    options.print_status(*lifecycle.open_round(make_spec(kind, items, chosen, settings), out))


def round_status(
    round: options.Round,
    each: EachItem = False,
    mistakes: Mistakes = False,
    submissions: Annotated[
        Path | None,
        Option(help="Prolific's export: who submitted, and has not answered everything."),
    ] = None,
) -> None:
    """Collect new annotations, and show the progress by annotator and language."""
    status = lifecycle.round_status(round, submissions=submissions)
    options.print_status(status, table=True, each_mistake=mistakes)
    if each:
        say(*statuses.item_lines(status))
    raise Exit(2 if status.mistakes else 0)


def round_close(
    round: options.Round,
    force: Force = False,
    adjudication: Adjudication = None,
    submissions: Annotated[
        Path | None,
        Option(help="Prolific's export: which submissions it pays, for the list of bonuses."),
    ] = None,
) -> None:
    """Close a round: write decisions.jsonl, agreement.json and annotator_statistics.csv. Ties stay ties."""
    status, decisions = lifecycle.close_round(
        round, force=force, adjudication=adjudication, submissions=submissions
    )
    say(*statuses.grouped(status.notes), statuses.decisions_table(round, decisions).to_terminal())
    say(f"decisions: {(round / 'decisions.jsonl').resolve()}", *samples.store_sample(round))


def round_reopen(
    round: options.Round,
    without: Without = None,
    annotators: Annotators = None,
    replace_id: ReplaceId = False,
) -> None:
    """Assign items that were skipped, left, unclear or tied to other annotators."""
    options.print_status(
        *lifecycle.reopen_round(
            round, without=tuple(without or ()), annotators=annotators, replace_ids=replace_id
        )
    )


def round_add(
    round: options.Round,
    name: Annotated[str, Argument(help="Name of the annotator: a new one, or one of the list.")],
    id: Annotated[str, Option(help="Participant id of Prolific, for the payment.")] = "",
    code: Annotated[str, Option(help="Completion code that the participant entered.")] = "",
    languages: Annotated[
        str, Option(help="Languages that they read (en, zh, 'en zh'); default: the round's.")
    ] = "",
    crisis: Annotated[
        bool, Option("--crisis", help="They agreed to read items about a crisis.")
    ] = False,
    replace_id: ReplaceId = False,
) -> None:
    """Add an annotator to an open round on a server, or the id and code of one who is in it."""
    cells = {
        "participant_id": id,
        "completion_code": code,
        "languages": languages,
        "crisis": "yes" if crisis else "",
    }
    filled = {key: cell for key, cell in cells.items() if cell}
    options.print_status(*participants.add_annotator(round, name, filled, replace_id=replace_id))


def round_remove_annotator(
    round: options.Round,
    name: Annotated[str, Argument(help="Name of the annotator.")],
    why: Annotated[str, Option(help="Reason; recorded in events.jsonl, so name nobody.")] = "",
    undo: Annotated[bool, Option("--undo", help="Let the annotations count again.")] = False,
) -> None:
    """Leave all answers of an annotator out of decisions, agreement and overlap; a closed round is decided anew."""
    options.print_status(*lifecycle.remove_annotator(round, name, why=why, undo=undo))


def round_delete(
    round: options.Round,
    force: Annotated[
        bool, Option("--force", help="Delete although the round is open; answers are collected.")
    ] = False,
    yes: options.Yes = False,
) -> None:
    """Delete what a round made on its server, or its spreadsheets; the folder with decisions and payments stays."""
    if not yes:
        what = round_deletion.describe_deletion(round)
        if not sys.stdin.isatty():
            raise ConfigError(f"{what}; add --yes")
        typer.confirm(f"{what}. Delete?", abort=True)
    print_removal(round_deletion.delete_round(round, force=force))


def round_erase_annotator(
    round: options.Round,
    annotator: Annotated[str, Argument(help="Name of the annotator.")],
    payments: Annotated[
        Path | None,
        Option(help="CSV file outside of the round that keeps what they are to be paid for."),
    ] = None,
    no_payments: Annotated[
        bool, Option("--no-payments", help="Write no such file: your books have it.")
    ] = False,
    sent: Annotated[
        str,
        Option(
            help="Lists of bonuses with the annotator that you have sent: all, none, or numbers (1,2)."
        ),
    ] = "",
    skip_server: Annotated[
        bool, Option("--skip-server", help="Leave out a server that is gone for good.")
    ] = False,
) -> None:
    """Erase an annotator who withdraws consent: answers, comments, times and names; decisions keep their counts."""
    removal = annotator_erasure.erase_annotator(
        round,
        annotator,
        payments=payments,
        keep_payments=not no_payments,
        sent=sent,
        skip_server=skip_server,
    )
    print_removal(removal)


def print_removal(removal: platforms.Removal) -> None:
    """Print what was removed and what is left; exit code 3 if the same command has to be repeated."""
    say(*removal.removed)
    say(*(f"left: {message}" for message in removal.left))
    if removal.unfinished:
        say("not finished: do what the lines above say, and start the same command again", err=True)
        raise Exit(3)


def round_list(
    folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path("."),
) -> None:
    """List the rounds in a folder, as of their last status."""
    rounds = list(statuses.list_rounds(folder))
    say(statuses.rounds_table(rounds).to_terminal())
    for status in rounds:
        say(*status.notes)
