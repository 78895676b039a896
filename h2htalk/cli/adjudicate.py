"""`h2htalk adjudicate ...`: send low answers of a judged run to people, and take their ratings back."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import h2htalk
from h2htalk.cli.options import OutOption, RunArgument, VerboseOption, finish
from h2htalk.cli.output import say
from h2htalk.cli.round import RoundArgument, print_status, round_options


@round_options
def adjudicate_open(
    run: RunArgument,
    out: OutOption,
    human_trigger: Annotated[str, typer.Option(help="J (Eq. 4: J below 3.5) or judge (R below 3.5).")] = "J",
    budget: Annotated[int | None, typer.Option(help="Items at most, the worst first.")] = None,
    disagreement: Annotated[
        float | None, typer.Option(help="Instead, items on which a panel's judges differ by this or more, 0 to 5.")
    ] = None,
    **options: Any,
) -> None:
    """Open a round in which people rate the low items of a judged run."""
    print_status(
        *h2htalk.open_adjudication(
            run, out, human_trigger=human_trigger, budget=budget, disagreement=disagreement, options=options
        )
    )


def adjudicate_close(run: RunArgument, round: RoundArgument, verbose: VerboseOption = False) -> None:
    """Put the ratings of a round into its run: their mean replaces R."""
    summary, messages = h2htalk.close_adjudication(run, round)
    for line in messages:
        say(line)
    finish(summary, run, verbose)
