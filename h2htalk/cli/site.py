"""Commands on what is there: site, watch, runs, trend, next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from h2htalk.cli import options
from h2htalk.cli.output import say
from h2htalk.data.languages import Language

with options.lazy_imports():
    from h2htalk.benchmark import watch as following
    from h2htalk.site import build
    from h2htalk.site import next_steps as due
    from h2htalk.site import runs as listing
    from h2htalk.site import trend as trends

RENDERED = "The templates to render, where a run's are not those of this version; may be repeated."


def site(
    sources: Annotated[
        list[Path],
        Argument(help="Scored runs, studies, curations and releases.", metavar="FOLDER..."),
    ],
    out: Annotated[Path, Option(help="The folder to write; with --share the HTML file.")],
    language: Annotated[Language, Option(help="Of the pages: en or zh.")] = "en",
    title: Annotated[str, Option(help="What the site is called.")] = "H2HTalk",
    leave_out: Annotated[
        list[str] | None, Option(help="An item that is not shown; may be repeated.")
    ] = None,
    share: Annotated[str, Option(help="Write the transcript of this item alone.")] = "",
    pdf: Annotated[
        bool, Option("--pdf", help="Print the figures as PDF too, by Chromium.")
    ] = False,
    prompts: Annotated[list[Path] | None, Option(help=RENDERED)] = None,
) -> None:
    """Write a static site of runs and studies: leaderboard, models, studies, every item, how the data came to be."""
    rendered = prompts or ()
    if share:
        message = build.share(sources, share, out, language, title, rendered)
    else:
        message = build.build_site(sources, out, language, title, leave_out or (), pdf, rendered)
    say(message)


def watch(run: Annotated[Path, Argument(help="The folder of a run or study.")]) -> None:
    """Follow a run or study that another process makes: answers, failures, cost and first figures."""
    say(following.watch(run, options.console()))


def runs(
    folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path("."),
    format: options.DataFormat = "terminal",
) -> None:
    """List the runs, studies, rounds, releases and curations in a folder, with their state and headline figure."""
    say(listing.list_runs(folder).to(format).rstrip("\n"))


def trend(
    folder: Annotated[Path, Argument(help="Folder of the runs, with its subfolders.")],
    figure: Annotated[
        str,
        Option(help="A figure of a gate, or the beginning of several (s); else the headline."),
    ] = "",
    arm: Annotated[str, Option(help="Of studies; else the first.")] = "",
    model: Annotated[str, Option(help="Only runs of this model, as tables name it.")] = "",
    format: options.DataFormat = "terminal",
) -> None:
    """Follow a figure over the runs in a folder: which run is not what those before it let expect."""
    line = trends.trend(folder, figure, arm, model)
    say(trends.trend_table(line).to(format).rstrip("\n"))


def next(
    folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path("."),
) -> None:
    """Say which step is due for each run, study, round, release and curation in a folder."""
    say(*due.next_steps(folder))
