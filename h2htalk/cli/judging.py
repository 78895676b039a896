"""Commands that judge the answers of runs, check the judge against people, and send low answers to people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Exit, Option

import h2htalk
from h2htalk.benchmark.settings import JudgeSpec
from h2htalk.cli import options, round_options
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError

with options.lazy_imports():
    from h2htalk.benchmark.calibration import calibrate, label_plan
    from h2htalk.benchmark.judge import judge_run as judging
    from h2htalk.benchmark.judge import probe


@options.with_options(JudgeSpec)
def judge_run(
    run: options.Run,
    judge: Annotated[list[str], Option(help="ENGINE:NAME; repeat it for a panel.")],
    dry_run: options.DryRun = False,
    watch: options.Watch = False,
    verbose: options.Verbose = False,
    **settings: Any,
) -> None:
    """Judge the answers of a scored run: R, and J (Eq. 3) in its tables. The same command again resumes."""
    spec = JudgeSpec(run=run, judges=tuple(judge), **settings)
    if dry_run:
        say(judging.estimate_judging(spec))
    else:
        options.finish(options.watched(watch, run, h2htalk.judge_run, spec), run, verbose)


@options.with_options(JudgeSpec, "temperature", "engine_options", "batch", "max_cost", "prices")
def judge_probe(
    judge: Annotated[str, Argument(help="ENGINE:NAME.")],
    out: Annotated[
        str, Option(metavar="FOLDER", help="The folder to write; default probes/MODEL.")
    ] = "",
    language: Annotated[str | None, Option(help=options.LANGUAGE)] = None,
    format: options.TableFormat = "terminal",
    dry_run: options.DryRun = False,
    **settings: Any,
) -> None:
    """Probe a judge on bundled replies whose order is known. The same command again resumes."""
    spec = JudgeSpec(run=out or probe.default_folder(judge), judges=(judge,), **settings)
    if dry_run:
        say(probe.estimate_probe(spec, language))
        return
    result = h2htalk.judge_probe(spec, language)
    say(result.table.to(format).rstrip())
    raise Exit(3 if result.incomplete else 0)


def judge_plan_labels(
    run: options.Run,
    half_width: Annotated[
        float | None, Option(help="Wanted of the interval of R, on the scale 0 to 5.")
    ] = None,
    labels: Annotated[int | None, Option(help="How many, in the place of --half-width.")] = None,
    out: Annotated[Path | None, Option(help="A CSV file to fill in.")] = None,
    open: Annotated[
        Path | None, Option(help="The folder of an adjudication round to open.")
    ] = None,
    annotators: Annotated[Path | None, Option(help="--open: the list of annotators.")] = None,
    where: Annotated[
        str, Option(help="--open: spreadsheets, argilla or label-studio.")
    ] = "spreadsheets",
    pilot: Annotated[
        Path | None, Option(help="First labels, which say how the judge's errors vary.")
    ] = None,
    seed: Annotated[int, Option(help="Seed of the draw.")] = 0,
) -> None:
    """Say how many answers people should label for an interval; --out and --open draw them by judge score."""
    if annotators is not None and open is None:
        raise ConfigError("--annotators is of the round that --open opens")
    round_options = {"annotators": annotators and str(annotators), "where": where}
    messages = label_plan.plan_labels(
        run,
        half_width,
        labels,
        pilot=pilot,
        out=out,
        round_out=open,
        round_options=round_options,
        seed=seed,
    )
    say(*messages)


def judge_calibrate(
    run: options.Run,
    human: Annotated[Path, Option(help="People's labels: a CSV file or a closed round.")],
    random_sample: Annotated[
        bool, Option("--random-sample", help="The labels are a simple random sample.")
    ] = False,
    format: Literal["terminal", "json"] = "terminal",
) -> None:
    """Compare a run's judges with people: agreement, bias, and means that are corrected or refused."""
    say(calibrate.calibrate_judge(run, human, random_sample=random_sample).to(format))


@round_options.round_options
def adjudicate_open(
    run: options.Run,
    out: options.Out,
    human_trigger: Annotated[
        str, Option(help="J (Eq. 4: J below 3.5) or judge (R below 3.5).")
    ] = "J",
    budget: Annotated[int | None, Option(help="Items at most, the worst first.")] = None,
    disagreement: Annotated[
        float | None, Option(help="Instead, where judges differ so much, 0 to 5.")
    ] = None,
    **settings: Any,
) -> None:
    """Open a round in which people rate the low items of a judged run."""
    status = h2htalk.open_adjudication(
        run,
        out,
        human_trigger=human_trigger,
        budget=budget,
        disagreement=disagreement,
        options=settings,
    )
    options.print_status(*status)


def adjudicate_close(
    run: options.Run, round: options.Round, verbose: options.Verbose = False
) -> None:
    """Put the ratings of a round into its run: their mean replaces R."""
    summary, messages = h2htalk.close_adjudication(run, round)
    say(*messages)
    options.finish(summary, run, verbose)
