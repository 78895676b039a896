"""Commands that start suites elsewhere: launch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit

from h2htalk.cli import options
from h2htalk.cli.options import say

with options.lazy_imports():
    from h2htalk.scale import ray_cluster

Suite = Annotated[Path, Argument(help="A TOML file of many runs.", metavar="SUITE")]


def launch_ray(suite: Suite, ray_address: options.RayAddress = "") -> None:
    """Run the unfinished shards of a suite as Ray tasks, and merge its runs. Exit code 3: some are missing."""
    raise Exit(ray_cluster.launch(suite, ray_address, say))
