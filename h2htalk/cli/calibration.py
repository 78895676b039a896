"""`h2htalk judge plan-labels` and `h2htalk judge calibrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from h2htalk.cli.options import RunArgument, require_format
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError


def judge_plan_labels(
    run: RunArgument,
    half_width: Annotated[float | None, typer.Option(help="Wanted of the interval of R, on the scale 0 to 5.")] = None,
    labels: Annotated[int | None, typer.Option(help="How many, in the place of --half-width.")] = None,
    out: Annotated[Path | None, typer.Option(help="A CSV file to fill in.")] = None,
    open: Annotated[Path | None, typer.Option(help="The folder of an adjudication round to open.")] = None,
    annotators: Annotated[Path | None, typer.Option(help="--open: the list of annotators.")] = None,
    where: Annotated[str, typer.Option(help="--open: spreadsheets or argilla.")] = "spreadsheets",
    pilot: Annotated[Path | None, typer.Option(help="First labels, which say how the judge's errors vary.")] = None,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 0,
) -> None:
    """Say how many answers people should label for an interval; --out and --open draw them by judge score."""
    if annotators is not None and open is None:
        raise ConfigError("--annotators is of the round that --open opens")
    from h2htalk.benchmark.calibration.label_plan import plan_labels

    options = {"annotators": annotators and str(annotators), "where": where}
    notes = plan_labels(run, half_width, labels, pilot=pilot, out=out, round_out=open, round_options=options, seed=seed)
    say("\n".join(notes))


def judge_calibrate(
    run: RunArgument,
    human: Annotated[Path, typer.Option(help="People's labels: a CSV file or a closed round.")],
    random: Annotated[bool, typer.Option("--random", help="The labels are a simple random sample.")] = False,
    format: Annotated[str, typer.Option("--format", help="terminal or json.")] = "terminal",
) -> None:
    """Compare a run's judges with people: agreement, bias, and means that are corrected or refused."""
    require_format(format, "json")
    from h2htalk.benchmark.calibration.calibrate import calibrate_judge

    say(calibrate_judge(run, human, random=random).to(format))
