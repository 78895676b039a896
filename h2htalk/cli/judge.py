"""`h2htalk judge ...`: judge the answers of runs by a model, and calibrate it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import h2htalk
from h2htalk.benchmark.judge.settings import JudgeSpec
from h2htalk.cli.options import (
    DryRunOption,
    FormatOption,
    RunArgument,
    VerboseOption,
    finish,
    require_format,
    with_options,
)
from h2htalk.cli.output import say
from h2htalk.data.languages import LANGUAGES

JudgeOption = Annotated[list[str], typer.Option("--judge", help="ENGINE:NAME; repeat it for a panel.")]


@with_options(JudgeSpec)
def judge_run(
    run: RunArgument,
    judge: JudgeOption,
    dry_run: DryRunOption = False,
    verbose: VerboseOption = False,
    **given: Any,
) -> None:
    """Judge the answers of a scored run: R, and J (Eq. 3) in its tables. The same command again resumes."""
    spec = h2htalk.JudgeSpec(run=run, judges=tuple(judge), **given)
    if dry_run:
        from h2htalk.benchmark.judge.judge_run import estimate_judging

        say(estimate_judging(spec))
        return
    try:
        summary = h2htalk.judge_run(spec)
    except KeyboardInterrupt:
        say(f"stopped; finished judgements are stored in {run}: the same command continues", err=True)
        raise
    finish(summary, run, verbose)


@with_options(JudgeSpec, "temperature", "batch", "max_cost", "prices")
def judge_probe(
    judge: Annotated[str, typer.Argument(help="ENGINE:NAME.")],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The folder to write; default probes/MODEL.")] = "",
    language: Annotated[str | None, typer.Option(help=f"{', '.join(LANGUAGES)}; all when left out.")] = None,
    format: FormatOption = "terminal",
    dry_run: DryRunOption = False,
    **given: Any,
) -> None:
    """Probe a judge on bundled replies whose order is known. The same command again resumes."""
    from h2htalk.benchmark.judge.probe import default_folder, estimate_probe

    require_format(format)
    spec = h2htalk.JudgeSpec(run=out or default_folder(judge), judges=(judge,), **given)
    if dry_run:
        say(estimate_probe(spec, language))
        return
    probe = h2htalk.judge_probe(spec, language)
    say(probe.table.to(format).rstrip())
    raise typer.Exit(3 if probe.incomplete else 0)
