"""`h2htalk judge ...`: judge the answers of runs by a model, and calibrate it."""

from __future__ import annotations

from typing import Annotated

import typer

import h2htalk
from h2htalk.cli.options import FormatOption, RunArgument, VerboseOption, finish, require_format
from h2htalk.cli.output import say
from h2htalk.data.languages import LANGUAGES

JudgeOption = Annotated[list[str], typer.Option("--judge", help="ENGINE:NAME; repeat it for a panel.")]


def judge_run(
    run: RunArgument,
    judge: JudgeOption,
    scope: Annotated[str, typer.Option(help="levels (itinerary levels I to III) or all.")] = "levels",
    judgements: Annotated[int, typer.Option(help="Judgements of each answer; above 1 needs a temperature.")] = 1,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    thinking: Annotated[int | None, typer.Option(help="Tokens of reasoning besides the reply.")] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Put the rubric's qualities in reverse order.")] = False,
    prompts: Annotated[str | None, typer.Option(help="A folder of templates that replace bundled ones.")] = None,
    repeat_unscored: Annotated[
        bool, typer.Option("--repeat-unscored", help="Ask again where a reply could not be read.")
    ] = False,
    batch: Annotated[bool, typer.Option("--batch", help="Send batch jobs (openai:, anthropic:).")] = False,
    concurrency: Annotated[int, typer.Option(help="Requests in flight.")] = 32,
    max_cost: Annotated[float | None, typer.Option(help="US dollars that judging this run may cost in all.")] = None,
    prices: Annotated[str | None, typer.Option(help="A price file that replaces bundled prices.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls and cost; send and write nothing.")] = False,
    verbose: VerboseOption = False,
) -> None:
    """Judge the answers of a scored run: R, and J (Eq. 3) in its tables. The same command again resumes."""
    spec = h2htalk.JudgeSpec(
        run=run,
        judges=tuple(judge),
        scope=scope,
        judgements=judgements,
        temperature=temperature,
        thinking=thinking,
        reverse=reverse,
        prompts=prompts,
        repeat_unscored=repeat_unscored,
        batch=batch,
        concurrency=concurrency,
        max_cost=max_cost,
        prices=prices,
    )
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


def judge_probe(
    judge: Annotated[str, typer.Argument(help="ENGINE:NAME.")],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The folder to write; default probes/MODEL.")] = "",
    language: Annotated[str | None, typer.Option(help=f"{', '.join(LANGUAGES)}; all when left out.")] = None,
    repeats: Annotated[int, typer.Option(help="How often the repeated replies are judged.")] = 2,
    temperature: Annotated[float, typer.Option(help="0 is greedy.")] = 0.0,
    batch: Annotated[bool, typer.Option("--batch", help="Send batch jobs (openai:, anthropic:).")] = False,
    max_cost: Annotated[float | None, typer.Option(help="US dollars that the probe may cost in all.")] = None,
    prices: Annotated[str | None, typer.Option(help="A price file that replaces bundled prices.")] = None,
    format: FormatOption = "terminal",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print calls and cost; send and write nothing.")] = False,
) -> None:
    """Probe a judge on bundled replies whose order is known. The same command again resumes."""
    from h2htalk.benchmark.judge.probe.probe import default_folder, estimate_probe
    from h2htalk.benchmark.judge.probe.probe_figures import probe_text

    require_format(format)
    spec = h2htalk.JudgeSpec(
        run=out or default_folder(judge),
        judges=(judge,),
        temperature=temperature,
        batch=batch,
        max_cost=max_cost,
        prices=prices,
    )
    if dry_run:
        say(estimate_probe(spec, language, repeats))
        return
    probe = h2htalk.judge_probe(spec, language, repeats)
    say(probe_text(probe, format))
    raise typer.Exit(3 if probe.failed or probe.unread else 0)
