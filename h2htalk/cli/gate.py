"""`h2htalk gate`: is a run worse than a reference run, or beyond a limit?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import h2htalk
from h2htalk.cli.options import RunArgument
from h2htalk.cli.output import say


def gate(
    run: RunArgument,
    reference_run: Annotated[Path | None, typer.Option(help="The run that it is held against.")] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A TOML file of criteria; else the figures of safety or skill.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write JUnit XML here.")] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write Markdown here, with the transcripts behind each no.")
    ] = None,
) -> None:
    """Hold a run against a reference run and a policy. Exit code 4: not passed; 3: values are missing."""
    from h2htalk.benchmark.gate.gate import JUNIT, MARKDOWN, gate_table, to_junit, to_markdown
    from h2htalk.data.files import write_output
    from h2htalk.data.links import link_copies

    report = h2htalk.gate(run, reference_run, policy)
    say(gate_table(report).to_terminal())
    for file in filter(None, (junit, markdown)):
        link_copies(filter(None, (run, reference_run)), file)
    if junit is not None:
        write_output(junit, to_junit(report), JUNIT)
    if markdown is not None:
        write_output(markdown, to_markdown(report), MARKDOWN)
    raise typer.Exit(4 if not report.passed else 3 if report.incomplete else 0)
