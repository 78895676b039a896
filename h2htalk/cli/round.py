"""`h2htalk round ...`: put items to people and decide. Parse, call one library function, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from h2htalk.cli.options import OutOption, console
from h2htalk.cli.output import say

if TYPE_CHECKING:
    from h2htalk.rounds.status import Status

RoundArgument = Annotated[Path, typer.Argument(help="A round's folder.", metavar="ROUND")]
AnnotatorsOption = Annotated[
    Path | None,
    typer.Option(help="A CSV of annotators: name, languages, crisis (yes for who agreed to read of it)."),
]


def round_open(
    kind: Annotated[str, typer.Argument(help="crowd, expert, adjudication or safety.")],
    items: Annotated[
        str, typer.Argument(help="A split, a stage folder, a closed round, or a .jsonl of items.")
    ],
    out: OutOption,
    where: Annotated[str | None, typer.Option(help="spreadsheets (the default) or argilla.")] = None,
    format: Annotated[
        str | None, typer.Option(help="Of the annotators' spreadsheets: xlsx (the default) or csv.")
    ] = None,
    annotators: AnnotatorsOption = None,
    overlap: Annotated[
        int | None, typer.Option(min=1, help="Answers an item; crowd 20, expert 3 where left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of every draw.")] = None,
    settings: Annotated[
        Path | None, typer.Option(help="A TOML file with these and all other settings.")
    ] = None,
) -> None:
    """Put items to people. The same command again finishes what was interrupted, and changes nothing else."""
    from h2htalk.rounds.opening import open_round
    from h2htalk.rounds.settings import make_spec

    given: dict[str, Any] = {
        "where": where,
        "format": format,
        "annotators": None if annotators is None else str(annotators.resolve()),
        "overlap": overlap,
        "seed": seed,
    }
    spec = make_spec(kind, items, {key: value for key, value in given.items() if value is not None}, settings)
    found, told = open_round(spec, out)
    for line in told:
        say(line)
    _print_status(found)


def round_status(
    round: RoundArgument,
    each: Annotated[bool, typer.Option("--items", help="Every item that still wants answers.")] = False,
) -> None:
    """Bring in new answers; how far the round is, by annotator."""
    from h2htalk.rounds.status import status

    found = status(round)
    _print_status(found, annotators=True)
    if each:
        for item, count in found.missing.items():
            say(f"{item}  wants {count}, has {found.by_item[item]}")
    raise typer.Exit(2 if found.mistakes else 0)


def round_close(
    round: RoundArgument,
    force: Annotated[bool, typer.Option("--force", help="Although answers are missing; recorded.")] = False,
    adjudication: Annotated[Path | None, typer.Option(help="A closed round over this one's ties.")] = None,
) -> None:
    """Decide: decisions.jsonl, agreement.json and annotator_statistics.csv in the round's folder."""
    from h2htalk.rounds.closing import close_round
    from h2htalk.rounds.terminal import decisions_table

    found, settled = close_round(round, force=force, adjudication=adjudication)
    for line in found.notes:
        say(line)
    console().print(decisions_table(round, settled))
    say(f"decisions: {(round / 'decisions.jsonl').resolve()}")


def round_reopen(
    round: RoundArgument,
    without: Annotated[
        list[str] | None, typer.Option(help="An annotator who dropped out; may be repeated.")
    ] = None,
    annotators: AnnotatorsOption = None,
) -> None:
    """Hand out again what still wants answers: skipped, left by drop-outs, unclear or tied."""
    from h2htalk.rounds.reopening import reopen_round

    found, told = reopen_round(round, without=tuple(without or ()), annotators=annotators)
    for line in told:
        say(line)
    _print_status(found)


def round_list(
    folder: Annotated[Path, typer.Argument(help="Where to look, with all folders below.")] = Path("."),
) -> None:
    """The rounds of a folder, as they were at their last look."""
    from h2htalk.rounds.status import list_rounds
    from h2htalk.rounds.terminal import rounds_table

    found = list(list_rounds(folder))
    console().print(rounds_table(found))
    for one in found:
        for line in one.notes:
            say(line)


def _print_status(found: Status, annotators: bool = False) -> None:
    from h2htalk.rounds.terminal import annotators_table, status_lines

    for line in status_lines(found):
        say(line)
    if annotators and found.by_annotator:
        console().print(annotators_table(found))
    for line in found.notes:
        say(line)
    for line in found.mistakes:
        say(line, err=True)
