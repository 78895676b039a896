"""`h2htalk round ...`: open rounds of annotation, follow them and close them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2htalk.cli.options import OutOption, with_options
from h2htalk.cli.output import say
from h2htalk.rounds.settings import ANNOTATORS, RoundSpec, make_spec

if TYPE_CHECKING:
    from h2htalk.rounds.status import Status

RoundArgument = Annotated[Path, typer.Argument(help="Folder of the round.", metavar="ROUND")]
AnnotatorsOption = Annotated[Path | None, typer.Option(help=ANNOTATORS)]
# The settings of a round that every command which opens one has as options.
round_options = with_options(RoundSpec, "where", "format", "annotators", "overlap", "seed")


@round_options
def round_open(
    kind: Annotated[str, typer.Argument(help="crowd, expert, adjudication or safety.")],
    items: Annotated[
        str,
        typer.Argument(
            help="A split, a curation stage, a closed round (what it keeps, or for an adjudication its ties), or a "
            ".jsonl of items."
        ),
    ],
    out: OutOption,
    settings: Annotated[Path | None, typer.Option(help="TOML file with these and all other settings.")] = None,
    **given: Any,
) -> None:
    """Open a round: assign items to annotators. The same command completes an interrupted opening."""
    from h2htalk.rounds.opening import open_round

    print_status(*open_round(make_spec(kind, items, given, settings), out))


def round_status(
    round: RoundArgument,
    each: Annotated[bool, typer.Option("--items", help="List every item that needs annotators.")] = False,
    mistakes: Annotated[bool, typer.Option("--mistakes", help="List every mistake, not some of each kind.")] = False,
) -> None:
    """Collect new annotations, and show the progress by annotator and language."""
    from h2htalk.rounds.status import round_status as read_status

    status = read_status(round)
    print_status(status, table=True, each_mistake=mistakes)
    for item, count in status.missing.items() if each else ():
        say(f"{item}: {status.by_item[item]:,} completed, {count:,} missing")
    raise typer.Exit(2 if status.mistakes else 0)


def round_close(
    round: RoundArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Close although assignments are missing; this is recorded.")
    ] = False,
    adjudication: Annotated[
        Path | None, typer.Option(help="A closed round that adjudicates this round's ties.")
    ] = None,
) -> None:
    """Close a round: write decisions.jsonl, agreement.json and annotator_statistics.csv. Ties stay ties."""
    from h2htalk.rounds.closing import close_round
    from h2htalk.rounds.terminal import decisions_table, grouped

    status, decisions = close_round(round, force=force, adjudication=adjudication)
    for line in grouped(status.notes):
        say(line)
    say(decisions_table(round, decisions).to_terminal())
    say(f"decisions: {(round / 'decisions.jsonl').resolve()}")


def round_reopen(
    round: RoundArgument,
    without: Annotated[list[str] | None, typer.Option(help="Name of an annotator who left; may be repeated.")] = None,
    annotators: AnnotatorsOption = None,
) -> None:
    """Assign items that were skipped, left, unclear or tied to other annotators."""
    from h2htalk.rounds.reopening import reopen_round

    print_status(*reopen_round(round, without=tuple(without or ()), annotators=annotators))


def round_remove_annotator(
    round: RoundArgument,
    name: Annotated[str, typer.Argument(help="Name of the annotator.")],
    why: Annotated[str, typer.Option(help="Reason; recorded in events.jsonl, so name nobody.")] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Let the annotations count again.")] = False,
) -> None:
    """Leave all answers of an annotator out of decisions, agreement and overlap; a closed round is decided anew."""
    from h2htalk.rounds.annotator_removal import remove_annotator

    print_status(*remove_annotator(round, name, why=why, undo=undo))


def round_list(
    folder: Annotated[Path, typer.Argument(help="Folder to search, with its subfolders.")] = Path("."),
) -> None:
    """List the rounds in a folder, as of their last status."""
    from h2htalk.rounds.status import list_rounds
    from h2htalk.rounds.terminal import rounds_table

    rounds = list(list_rounds(folder))
    say(rounds_table(rounds).to_terminal())
    for line in (line for one in rounds for line in one.notes):
        say(line)


def print_status(
    status: Status, messages: list[str] | None = None, *, table: bool = False, each_mistake: bool = False
) -> None:
    from h2htalk.rounds.terminal import grouped, progress_table, status_lines

    for line in (*(messages or ()), *status_lines(status)):
        say(line)
    if table and status.progress:
        say(progress_table(status).to_terminal())
    for line in grouped(status.notes):
        say(line)
    for line in status.mistakes if each_mistake else grouped(status.mistakes):
        say(line, err=True)
