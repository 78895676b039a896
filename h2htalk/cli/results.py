"""`h2htalk results ...`: results for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import h2htalk
from h2htalk.cli.options import SPLIT_HELP, OutOption, RunArgument
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError


def results_export(
    run: RunArgument,
    to: Annotated[str, typer.Option(help="eval-results, every-eval-ever or bundle.")],
    out: OutOption,
    dataset: Annotated[str | None, typer.Option(help="eval-results: the data set, if the run names none.")] = None,
    revision: Annotated[str | None, typer.Option(help="eval-results: the data set's commit.")] = None,
    source_url: Annotated[str | None, typer.Option(help="eval-results: a page about the run.")] = None,
    push: Annotated[str | None, typer.Option(help="eval-results: open a pull request to this model.")] = None,
    model: Annotated[str | None, typer.Option(help="every-eval-ever: the model as DEVELOPER/NAME.")] = None,
    organization: Annotated[str | None, typer.Option(help="every-eval-ever: who ran the evaluation.")] = None,
    relationship: Annotated[
        str, typer.Option(help="every-eval-ever: first_party, third_party, collaborative or other.")
    ] = "third_party",
) -> None:
    """Write the results of a scored run in a format of others; only --push sends anything."""
    if push is not None and to != "eval-results":
        raise ConfigError("--push is for --to eval-results")
    written = h2htalk.export_results(
        run,
        to,
        out,
        dataset=dataset,
        revision=revision,
        source_url=source_url,
        model=model,
        organization=organization,
        relationship=relationship,
    )
    for path in written:
        say(str(path))
    if to == "eval-results":
        say(written[0].read_text(encoding="utf-8").rstrip("\n"))
    if push is not None:
        from h2htalk.data.releases.hub import open_pull_request

        name = written[0].relative_to(out).as_posix()
        say(f"pull request: {open_pull_request(push, name, written[0], 'Add results of h2htalk')}")


def results_verify(
    bundle: Annotated[Path, typer.Argument(help="A bundle: a folder or a .zip.")],
    split: Annotated[str | None, typer.Option(help=f"The split that was asked. {SPLIT_HELP}")] = None,
    references: Annotated[Path | None, typer.Option(help="The file of the split's private references.")] = None,
) -> None:
    """Compute the scores of a bundle again. Exit code 4: something differs; 3: what is listed is not verified."""
    found = h2htalk.verify_results(bundle, split, references)
    say(f"split: {found.split}")
    say(f"matches: {', '.join(found.matches) or 'nothing'}")
    for label, lines in (("not verified", found.unchecked), ("differs", found.differs)):
        for line in lines:
            say(f"{label}: {line}")
    raise typer.Exit(4 if found.differs else 3 if found.unchecked else 0)
