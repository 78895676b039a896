"""`h2htalk evaluate`: generate a model's answers and score them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import h2htalk
from h2htalk.benchmark.settings import EvaluateSpec, read_spec
from h2htalk.chat.engines import ENGINES
from h2htalk.cli.options import SPLIT_HELP, DryRunOption, VerboseOption, finish, with_options
from h2htalk.cli.output import say


@with_options(EvaluateSpec)
def evaluate(
    model: Annotated[
        str | None, typer.Argument(help=f"ENGINE:NAME, with ENGINE one of {', '.join(ENGINES)}, baseline.")
    ] = None,
    split: Annotated[str | None, typer.Option(help=SPLIT_HELP)] = None,
    out: Annotated[str | None, typer.Option(help="The run folder; an unfinished run is continued.")] = None,
    spec: Annotated[
        Path | None, typer.Option(help="A TOML file with any of these settings; options override it.")
    ] = None,
    dry_run: DryRunOption = False,
    verbose: VerboseOption = False,
    **given: Any,
) -> None:
    """Score a model on a split: generate, score, report. The same command again resumes."""
    given |= {key: value for key, value in (("model", model), ("split", split), ("out", out)) if value is not None}
    parsed = read_spec(spec, given) if spec else EvaluateSpec.from_dict(given, "")
    if dry_run:
        from h2htalk.benchmark.cost_estimate import estimate

        say(estimate(parsed))
        return
    try:
        summary = h2htalk.evaluate(parsed)
    except KeyboardInterrupt:
        say(f"stopped; finished answers are stored in {parsed.out}: the same command continues", err=True)
        raise
    finish(summary, parsed.out_path, verbose)
