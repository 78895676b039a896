"""`h2htalk prompts ...`: what models are told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from h2htalk.cli.options import OutOption, SplitOption
from h2htalk.cli.output import say
from h2htalk.errors import ConfigError


def prompts_show(
    scenario_id: Annotated[
        str | None, typer.Argument(help="A scenario's id; `all` is the same as --all unless it is an id.")
    ] = None,
    split: SplitOption = "mini",
    sap: Annotated[str, typer.Option(help="full, none, or no-PRINCIPLE (comma-separated).")] = "full",
    prompts: Annotated[
        Path | None, typer.Option(help="A folder of templates that replace bundled ones of the same name.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print every scenario as JSONL: id, messages.")] = False,
) -> None:
    """Print the exact messages that a model gets for a scenario."""
    from h2htalk.benchmark.prompts.prompt_set import prompt_lines

    if (scenario_id is None) != every:
        raise ConfigError("name a scenario by its id, or every one with --all")
    for line in prompt_lines(scenario_id, split, sap, prompts):
        typer.echo(line)  # control characters are escaped already, and a line may be long


def prompts_export(out: OutOption) -> None:
    """Write the templates of the bundled prompts into a folder, to change them and use them with --prompts."""
    from h2htalk.benchmark.prompts.templates import export_templates

    for path in export_templates(out):
        say(str(path))
