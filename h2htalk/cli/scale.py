"""Commands that run a suite on many machines: launch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option

from h2htalk.cli import options
from h2htalk.cli.options import say

with options.lazy_imports():
    from h2htalk.scale import ray_cluster, slurm

Suite = Annotated[Path, Argument(help="A TOML file of many runs, as of `evaluate --suite`.")]
Submit = Annotated[bool, Option("--submit", help="Submit the jobs; else their commands are printed.")]


def launch_slurm(suite: Suite, submit: Submit = False) -> None:
    """Write the Slurm jobs of a suite into OUT/launch, for each shard that is not finished, and one that merges."""
    raise Exit(slurm.launch_slurm(suite, submit, say))


def launch_ray(suite: Suite, ray_address: options.RayAddress = "") -> None:
    """Run the unfinished shards of a suite as Ray tasks, and merge its runs. Exit code 3: some are missing."""
    raise Exit(ray_cluster.launch(suite, ray_address, say))


def launch_status(suite: Suite) -> None:
    """Show the finished shards of a suite, and the jobs of those that are missing. Exit code 3: not all is merged."""
    raise Exit(slurm.launch_status(suite, say))


def launch_stop(suite: Suite) -> None:
    """Cancel the Slurm jobs of a suite, merges first."""
    raise Exit(slurm.launch_stop(suite, say))
