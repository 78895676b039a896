"""`h2htalk curate ...`: raw dialogues in, reviewed candidates out. Parse, call one library function, print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from h2htalk.cli.options import console
from h2htalk.cli.output import ignore_sigint, say
from h2htalk.errors import ConfigError

if TYPE_CHECKING:
    from h2htalk.curation.workspace import Workspace

SpecArgument = Annotated[Path, typer.Argument(help="The curation's TOML file.", metavar="SPEC")]
WorkspaceArgument = Annotated[Path, typer.Argument(help="A workspace, made by `curate run`.")]
ProcessesOption = Annotated[int | None, typer.Option(help="That work on parts; as many as there are cores.")]


def curate_run(
    spec: SpecArgument,
    stage: Annotated[
        list[str] | None, typer.Option("--stage", help="Only this one; may be repeated.")
    ] = None,
    workspace: Annotated[Path | None, typer.Option(help="In place of the file's.")] = None,
    again: Annotated[str | None, typer.Option(help="Make this stage and what follows again.")] = None,
    processes: ProcessesOption = None,
) -> None:
    """Run the stages that a workspace still lacks: gather, anonymize, safety, dedup, compose, review."""
    try:
        from h2htalk.curation.curate import curate

        place = curate(spec, tuple(stage or ()), workspace=workspace, again=again, processes=processes)
    except KeyboardInterrupt:
        ignore_sigint()
        say("stopped; what is finished stays: the same command goes on from there", err=True)
        raise
    _print_funnel(place)


def curate_funnel(
    workspace: WorkspaceArgument,
    draw: Annotated[Path | None, typer.Option(help="Draw it too: a .svg, .pdf or .png file.")] = None,
) -> None:
    """How many dialogues came in, what each stage let go and why, how many candidates came out."""
    from h2htalk.curation.curate import summaries
    from h2htalk.curation.funnel import draw_funnel
    from h2htalk.curation.workspace import Workspace

    _print_funnel(Workspace(workspace))
    if draw is not None:
        draw_funnel(summaries(Workspace(workspace)), draw)
        say(f"drawn: {draw.resolve()}")


def curate_explain(
    workspace: WorkspaceArgument,
    item: Annotated[
        str, typer.Argument(help="A dialogue's, candidate's or person's id; or as the raw data call it.")
    ],
) -> None:
    """One item's whole story, stage by stage."""
    from h2htalk.curation.explain import explain, story
    from h2htalk.curation.workspace import Workspace

    say(story(explain(Workspace(workspace), item)))


def curate_erase(
    workspace: WorkspaceArgument,
    source_id: Annotated[str, typer.Argument(help="Of a dialogue or a person; or as the raw data call it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Near copies go even where they are others'.")] = False,
) -> None:
    """Take a person out again, through every stage and table."""
    from h2htalk.curation.erase import erase
    from h2htalk.curation.erasure_scope import OthersGoToo
    from h2htalk.curation.workspace import Workspace

    try:
        erased = erase(Workspace(workspace), source_id, others_too=yes)
    except OthersGoToo as error:
        for name in error.ids:
            say(f"{name}  {'of others' if name in error.others else 'asked for'}")
        raise
    say(f"{len(erased.ids):,} ids will not come back: {', '.join(erased.ids[:5])}")
    if erased.copies:
        say(f"near copies, the same words, went too: {', '.join(erased.copies[:5])}")
    if erased.again:
        parts = ", ".join(f"{stage} {count:,}" for stage, count in erased.again.items())
        say(f"parts to be made again without them: {parts}; start: h2htalk curate run SPEC")
    for place in erased.raw:
        say(f"your own file still holds the raw text: {place}", err=True)


def curate_purge(
    workspace: WorkspaceArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: it cannot be undone.")] = False,
) -> None:
    """Remove the raw inputs, the index of who was who, and the key of the surrogates."""
    from h2htalk.curation.purge import purge
    from h2htalk.curation.workspace import Workspace

    if not yes:
        raise ConfigError(
            f"{workspace}: purge removes the raw inputs, the index of who was who and the key, for good; add --yes"
        )
    for path in purge(Workspace(workspace)):
        say(f"removed  {path}")


def _print_funnel(workspace: Workspace) -> None:
    from h2htalk.curation.curate import summaries
    from h2htalk.curation.funnel import funnel_table, notes

    found = summaries(workspace)
    console().print(funnel_table(found))
    say(notes(found))
