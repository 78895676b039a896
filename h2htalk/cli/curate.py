"""`h2htalk curate ...`: curate raw dialogues into reviewed candidates."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from h2htalk.cli.output import ignore_sigint, say
from h2htalk.curation.stage_table import STAGES
from h2htalk.errors import ConfigError, H2HTalkError, counted
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from h2htalk.curation.curate import StageSummary
    from h2htalk.data.erasure.folder_kinds import FolderErasure

SpecArgument = Annotated[Path, typer.Argument(help="The TOML file of the curation.", metavar="SPEC")]
WorkspaceArgument = Annotated[Path, typer.Argument(help="A workspace made by `curate run`.")]


def curate_run(
    spec: SpecArgument,
    stage: Annotated[
        list[str] | None,
        typer.Option("--stage", help=f"Run only this stage ({', '.join(STAGES)}); may be repeated."),
    ] = None,
    workspace: Annotated[Path | None, typer.Option(help="Replaces the workspace in the file.")] = None,
    from_stage: Annotated[str, typer.Option(help="Make this stage and those after it again.")] = "",
    processes: Annotated[int | None, typer.Option(help="Worker processes; default: all cores.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what each stage would read, call and cost; write and call nothing.")
    ] = False,
) -> None:
    """Run the stages that are not finished."""
    if dry_run:
        from h2htalk.curation.dry_run import estimate_run

        say(estimate_run(spec, tuple(stage or ()), workspace=workspace, from_stage=from_stage))
        return
    try:
        from h2htalk.curation.curate import curate, summaries

        place = curate(spec, tuple(stage or ()), workspace=workspace, from_stage=from_stage, processes=processes)
    except KeyboardInterrupt:
        ignore_sigint()
        say("stopped; finished parts are kept: the same command continues", err=True)
        raise
    _print_funnel(summaries(place))


def curate_funnel(
    workspace: WorkspaceArgument,
    draw: Annotated[Path | None, typer.Option(help="Also draw it to a .svg, .pdf or .png file.")] = None,
) -> None:
    """Show how many records each stage read, kept and rejected, and why."""
    from h2htalk.curation.curate import summaries
    from h2htalk.curation.funnel import draw_funnel
    from h2htalk.curation.workspace import Workspace

    found = summaries(Workspace(workspace))
    _print_funnel(found)
    if draw is not None:
        draw_funnel(found, draw)
        say(f"drawn: {draw.resolve()}")


def curate_explain(
    workspace: WorkspaceArgument,
    item: Annotated[str, typer.Argument(help="The id of a dialogue, candidate or person, or its id in the raw data.")],
) -> None:
    """Show what each stage did with one item, what people decided on it, and where it was released."""
    from h2htalk.curation.history import explain, format_history
    from h2htalk.curation.workspace import Workspace

    say(format_history(explain(Workspace(workspace), item)))


def curate_identifiers(
    workspace: WorkspaceArgument,
    stage: Annotated[str, typer.Option(help="Read its dialogues; default: the last finished stage.")] = "",
    shared_by: Annotated[int, typer.Option(help="A combination is rare if at most so many people share it.")] = 1,
    output: Annotated[Path | None, typer.Option(help="Also write all dialogues found to a .csv file.")] = None,
) -> None:
    """List the dialogues whose ages, places, jobs, schools and dates together may name a person."""
    from h2htalk.curation.quasi_identifiers.report import identifier_tables, report_identifiers
    from h2htalk.curation.workspace import Workspace

    report = report_identifiers(Workspace(workspace), stage, shared_by)
    say("\n\n".join(table.to_terminal() for table in identifier_tables(report)))
    if output is not None:
        report.write_csv(output)
        say(f"written: {output.resolve()}")
    say("nothing was changed; to leave a dialogue out: h2htalk curate erase WORKSPACE ID")
    say("to change its words: edit the source, then h2htalk curate run SPEC --from-stage gather")


def curate_erase(
    workspace: WorkspaceArgument,
    source_id: Annotated[str, typer.Argument(help="The id of a dialogue or person, or its id in the raw data.")],
    also: Annotated[
        list[Path] | None,
        typer.Option(help="A folder with rounds, runs or releases that the workspace does not know; may be repeated."),
    ] = None,
) -> None:
    """Erase a person or a dialogue from every stage, and from rounds, runs and releases."""
    from h2htalk.curation.erase import erase
    from h2htalk.curation.workspace import Workspace

    erased = erase(Workspace(workspace), source_id, tuple(also or ()))
    say(f"erased {counted(len(erased.ids), 'id')}: {', '.join(erased.ids[:5])}")
    if erased.copies:
        say(f"copies among them: {', '.join(erased.copies[:5])}")
    if erased.others:
        say(f"similar dialogues of other or unknown people stay: {', '.join(erased.others)}; erase each by its id")
    if erased.removed:
        say(f"removed stages: {', '.join(erased.removed)}; to make them again: h2htalk curate run SPEC")
    did = {"hub": "cached copies erased", "copy": "not changed", "": "missing"}
    folders = [redrawn(folder) for folder in erased.folders]
    for folder in folders:
        done = did.get(folder.kind, f"{counted(folder.removed, 'item')} erased")
        say(printable(f"{folder.kind} {folder.name}: {done}".strip()))
        for message in folder.messages:
            say(f"  {printable(message)}")
    say(
        "not searched: exported splits, analyses, backups, runs made elsewhere (name moved folders with --also), "
        "caches of `datasets` elsewhere (`cache_dir`), spreadsheets that come back (`round status` erases from them)"
    )
    for place in erased.raw:
        say(f"your own file still holds the raw text: {place}", err=True)
    if any(folder.unfinished for folder in folders):
        say("not finished: do what the lines above say, and start the same command again", err=True)
        raise typer.Exit(3)


def redrawn(folder: FolderErasure) -> FolderErasure:
    """Make the figures of a release's card again from the rows left; nothing outside of the release is written."""
    from h2htalk.analysis.analyze import AnalyzeSpec, analyze
    from h2htalk.analysis.report.write_analysis import write_analysis
    from h2htalk.curation.release.card import redraw_figures
    from h2htalk.data.releases.erasure import lost_figures, work_folder

    release = Path(folder.name)
    if folder.kind != "release" or not lost_figures(release):
        return folder
    try:
        with work_folder(release) as made:
            write_analysis(analyze(AnalyzeSpec(release)), made)
            redraw_figures(release, made)
        return replace(folder, messages=(*folder.messages, "its figures were made again from the rows left"))
    except H2HTalkError as error:
        failed = f"its figures were removed, and not made again: {error}"
        return replace(folder, messages=(*folder.messages, failed), unfinished=True)


def curate_purge(
    workspace: WorkspaceArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; required in scripts.")] = False,
) -> None:
    """Remove the raw inputs, the private index and the key of the surrogates."""
    from h2htalk.curation.erase import purge, unfinished_stages
    from h2htalk.curation.workspace import Workspace

    if not yes:
        unfinished = unfinished_stages(Workspace(workspace))
        lost = "".join(f", the unfinished {folder.path.name} stage" for folder in unfinished)
        what = (
            f"{workspace}: purge removes the raw inputs, the private index{lost} and the key for good, and no further "
            "stage can be made"
        )
        if not sys.stdin.isatty():
            raise ConfigError(f"{what}; add --yes")
        typer.confirm(f"{what}. Purge?", abort=True)
    for path in purge(Workspace(workspace)):
        say(f"removed  {path}")


def _print_funnel(summaries: list[StageSummary]) -> None:
    from h2htalk.curation.funnel import funnel_notes, funnel_table

    say(funnel_table(summaries).to_terminal())
    say(funnel_notes(summaries))
