"""Commands that build a benchmark: split, curate, round, release, import."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Exit, Option

from h2htalk.cli import options
from h2htalk.cli.options import say
from h2htalk.curation.stage_table import STAGES
from h2htalk.errors import ConfigError, H2HTalkError, counted
from h2htalk.rounds.settings import ANNOTATORS, make_spec
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from h2htalk.curation.curate import StageSummary
    from h2htalk.curation.release.build import Release
    from h2htalk.data.erasure.folder_kinds import FolderErasure

FileFormat = Literal["jsonl", "parquet"]
STAGE = f"Run only this stage ({', '.join(STAGES)}); may be repeated."
ITEMS = "A split, a curation stage, a closed round (what it keeps, or its ties for an adjudication), or a .jsonl file."
NOT_SEARCHED = (
    "not searched: exported splits, analyses, backups, runs made elsewhere (name moved folders with --also), caches of "
    "`datasets` elsewhere (`cache_dir`), spreadsheets that come back (`round status` erases from them)"
)
_SHOWN = 20  # findings of a gate


def split_list() -> None:
    """List the bundled splits."""
    from h2htalk.data.splits import list_splits

    say(*(f"{name}  {description}" for name, description in list_splits().items()))


def split_info(name: options.Split) -> None:
    """Describe a split: counts by subtask and language, personas, fingerprint."""
    from h2htalk.data.split_output import describe_split
    from h2htalk.data.splits import load_split

    say(describe_split(load_split(name)).rstrip("\n"))


def split_check(name: Annotated[str, Argument(help="A split's folder or file.")]) -> None:
    """Check the items of a split: every error of every line, and references against their contract."""
    from h2htalk.text.contracts.split_check import check_split

    number, errors = check_split(name)
    say(*errors, err=True)
    say(f"{counted(number, 'item')}, {counted(len(errors), 'error')}")
    raise Exit(2 if errors else 0)


def split_new(
    folder: Annotated[Path, Argument(help="The folder to write.")],
    language: options.Examples = "en",
    study: Annotated[str, Option(help="Cases instead: high_risk, look_alike, instructions or arcs.")] = "",
) -> None:
    """Write a split to begin with: one example of each subtask, or of a study, to replace by your own items."""
    from h2htalk.data.split_output import write_new_split

    say(*map(str, write_new_split(folder, language, study)))


def split_diff(
    old: options.Split,
    new: Annotated[str, Argument(help="Another version of it.")],
    runs: Annotated[list[Path] | None, Option(help="A run whose moved cells are listed; repeatable.")] = None,
) -> None:
    """List the items that differ between two splits, and the cells of runs that the difference moves."""
    from h2htalk.benchmark.split_changes import diff_splits
    from h2htalk.text.record_diff import format_diff

    diff, tables = diff_splits(old, new, runs or ())
    say(format_diff(diff), *(table.to_terminal() for table in tables))


def split_export(name: options.Split, out: options.Out, format: FileFormat = "jsonl") -> None:
    """Write a split as a folder that can be edited and evaluated."""
    from h2htalk.curation.release.invented_values import InventedValues
    from h2htalk.curation.release.items import ReleaseItem
    from h2htalk.data.releases.release_folder import private_folder
    from h2htalk.data.split_output import export_split
    from h2htalk.data.splits import load_split

    split = load_split(name)
    say(*map(str, export_split(split, out, format)))
    items = tuple(map(ReleaseItem, split.scenarios)) if split.surrogates else ()
    if items and (known := InventedValues.find(name, items)):
        say(f"{known.write(private_folder(out), items)}: never publish it")


def split_from(
    workspace: options.Workspace,
    out: options.Out,
    stage: Annotated[str | None, Option(help="compose or review; default: the last finished one of them.")] = None,
    format: FileFormat = "jsonl",
) -> None:
    """Make a split from the candidates of a workspace's stage."""
    from h2htalk.curation.stage_table import find_stage
    from h2htalk.curation.workspace import Workspace

    Workspace(workspace).require_begun()
    split_export(str(workspace / find_stage(stage).name if stage else workspace), out, format)


def import_responses(
    file: Annotated[Path, Argument(help="JSONL of id, response.")],
    split: options.SplitOption,
    out: options.Out,
    name: Annotated[str, Option(help="The model's name in tables.")] = "imported",
    embedder: Annotated[str, Option(help=options.EMBEDDER)] = "bge-m3",
    human: Annotated[bool, Option("--human", help="People wrote the responses; tables say so.")] = False,
) -> None:
    """Score responses that another tool produced, or people wrote."""
    from h2htalk.benchmark.score_run import import_responses as run_import

    options.finish(run_import(file, name, split, out, embedder, human), out)


def import_authors(
    folder: Annotated[Path, Argument(help="The folder of the authors' released files.")], out: options.Out
) -> None:
    """Import the authors' released references under their true subtasks, and list what is missing."""
    from h2htalk.data.imports.response_files import read_authors_release, write_authors_references

    release = read_authors_release(folder)
    written = write_authors_references(release, out)
    say(*(f"missing  {line}" for line in release.missing), err=True)
    say(f"{sum(map(len, release.references.values())):,} references in {written}")


def curate_run(
    spec: Annotated[Path, Argument(help="The TOML file of the curation.", metavar="SPEC")],
    stage: Annotated[list[str] | None, Option(help=STAGE)] = None,
    workspace: Annotated[Path | None, Option(help="Replaces the workspace in the file.")] = None,
    from_stage: Annotated[str, Option(help="Make this stage and those after it again.")] = "",
    processes: Annotated[int | None, Option(help="Worker processes; default: all cores.")] = None,
    dry_run: options.DryRun = False,
) -> None:
    """Run the stages that are not finished."""
    from h2htalk.curation.curate import curate, summaries
    from h2htalk.curation.dry_run import estimate_run

    stages = tuple(stage or ())
    if dry_run:
        say(estimate_run(spec, stages, workspace=workspace, from_stage=from_stage))
    else:
        place = curate(spec, stages, workspace=workspace, from_stage=from_stage, processes=processes)
        _print_funnel(summaries(place))


def curate_funnel(
    workspace: options.Workspace,
    draw: Annotated[Path | None, Option(help="Also draw it to a .svg, .pdf or .png file.")] = None,
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
    workspace: options.Workspace,
    item: Annotated[str, Argument(help="The id of a dialogue, candidate or person, or its id in the raw data.")],
) -> None:
    """Show what each stage did with one item, what people decided on it, and where it was released."""
    from h2htalk.curation.history import explain, format_history
    from h2htalk.curation.workspace import Workspace

    say(format_history(explain(Workspace(workspace), item)))


def curate_identifiers(
    workspace: options.Workspace,
    stage: Annotated[str, Option(help="Read its dialogues; default: the last finished stage.")] = "",
    shared_by: Annotated[int, Option(help="A combination is rare if at most so many people share it.")] = 1,
    output: Annotated[Path | None, Option(help="Also write all dialogues found to a .csv file.")] = None,
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
    workspace: options.Workspace,
    source_id: Annotated[str, Argument(help="The id of a dialogue or person, or its id in the raw data.")],
    also: Annotated[list[Path] | None, Option(help="A folder with other rounds, runs or releases; repeatable.")] = None,
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
        lines = (f"{folder.kind} {folder.name}: {done}".strip(), *(f"  {message}" for message in folder.messages))
        say(*map(printable, lines))
    say(NOT_SEARCHED)
    say(*(f"your own file still holds the raw text: {place}" for place in erased.raw), err=True)
    if any(folder.unfinished for folder in folders):
        say("not finished: do what the lines above say, and start the same command again", err=True)
        raise typer.Exit(3)


def redrawn(folder: FolderErasure) -> FolderErasure:
    """Make the figures of a release's card again from the rows left; nothing outside of the release is written."""
    from h2htalk.analysis.analyze import AnalyzeSpec, analyze
    from h2htalk.analysis.report.write_analysis import write_analysis
    from h2htalk.curation.release.card import redraw_figures
    from h2htalk.data.releases.erasure import lost_figures, partial_folders, remove_leftovers

    release = Path(folder.name)
    if folder.kind != "release" or not lost_figures(release):
        return folder
    try:
        made = partial_folders(release)[0]
        write_analysis(analyze(AnalyzeSpec(release)), made)
        redraw_figures(release, made)
        return replace(folder, messages=(*folder.messages, "its figures were made again from the rows left"))
    except H2HTalkError as error:
        failed = f"its figures were removed, and not made again: {error}"
        return replace(folder, messages=(*folder.messages, failed), unfinished=True)
    finally:
        remove_leftovers(release)


def curate_purge(
    workspace: options.Workspace,
    yes: Annotated[bool, Option("--yes", help="Do not ask; required in scripts.")] = False,
) -> None:
    """Remove the raw inputs, the private index and the key of the surrogates."""
    from h2htalk.curation.erase import purge, unfinished_stages
    from h2htalk.curation.workspace import Workspace

    if not yes:
        unfinished = unfinished_stages(Workspace(workspace))
        lost = "".join(f", the unfinished {folder.path.name} stage" for folder in unfinished)
        what = f"{workspace}: removes the raw inputs, the private index{lost} and the key; no stage can be made again"
        if not sys.stdin.isatty():
            raise ConfigError(f"{what}; add --yes")
        typer.confirm(f"{what}. Purge?", abort=True)
    for path in purge(Workspace(workspace)):
        say(f"removed  {path}")


def _print_funnel(summaries: list[StageSummary]) -> None:
    from h2htalk.curation.funnel import funnel_notes, funnel_table

    say(funnel_table(summaries).to_terminal())
    say(funnel_notes(summaries))


@options.round_options
def round_open(
    kind: Annotated[str, Argument(help="crowd, expert, adjudication or safety.")],
    items: Annotated[str, Argument(help=ITEMS)],
    out: options.Out,
    settings: options.Settings = None,
    **given: Any,
) -> None:
    """Open a round: assign items to annotators. The same command completes an interrupted opening."""
    from h2htalk.rounds.opening import open_round

    options.print_status(*open_round(make_spec(kind, items, given, settings), out))


def round_status(
    round: options.Round,
    each: Annotated[bool, Option("--items", help="List every item that needs annotators.")] = False,
    mistakes: Annotated[bool, Option("--mistakes", help="List every mistake, not some of each kind.")] = False,
) -> None:
    """Collect new annotations, and show the progress by annotator and language."""
    from h2htalk.rounds.status import round_status as read_status

    status = read_status(round)
    options.print_status(status, table=True, each_mistake=mistakes)
    for item, count in status.missing.items() if each else ():
        say(f"{item}: {status.by_item[item]:,} completed, {count:,} missing")
    raise Exit(2 if status.mistakes else 0)


def round_close(
    round: options.Round,
    force: Annotated[bool, Option("--force", help="Close although assignments are missing; recorded.")] = False,
    adjudication: Annotated[Path | None, Option(help="A closed round that adjudicates this round's ties.")] = None,
) -> None:
    """Close a round: write decisions.jsonl, agreement.json and annotator_statistics.csv. Ties stay ties."""
    from h2htalk.rounds.closing import close_round
    from h2htalk.rounds.terminal import decisions_table, grouped

    status, decisions = close_round(round, force=force, adjudication=adjudication)
    say(*grouped(status.notes), decisions_table(round, decisions).to_terminal())
    say(f"decisions: {(round / 'decisions.jsonl').resolve()}")


def round_reopen(
    round: options.Round,
    without: Annotated[list[str] | None, Option(help="Name of an annotator who left; may be repeated.")] = None,
    annotators: Annotated[Path | None, Option(help=ANNOTATORS)] = None,
) -> None:
    """Assign items that were skipped, left, unclear or tied to other annotators."""
    from h2htalk.rounds.reopening import reopen_round

    options.print_status(*reopen_round(round, without=tuple(without or ()), annotators=annotators))


def round_remove_annotator(
    round: options.Round,
    name: Annotated[str, Argument(help="Name of the annotator.")],
    why: Annotated[str, Option(help="Reason; recorded in events.jsonl, so name nobody.")] = "",
    undo: Annotated[bool, Option("--undo", help="Let the annotations count again.")] = False,
) -> None:
    """Leave all answers of an annotator out of decisions, agreement and overlap; a closed round is decided anew."""
    from h2htalk.rounds.annotator_removal import remove_annotator

    options.print_status(*remove_annotator(round, name, why=why, undo=undo))


def round_list(folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path(".")) -> None:
    """List the rounds in a folder, as of their last status."""
    from h2htalk.rounds.status import list_rounds
    from h2htalk.rounds.terminal import rounds_table

    rounds = list(list_rounds(folder))
    say(rounds_table(rounds).to_terminal(), *(line for one in rounds for line in one.notes))


def release_build(
    spec: Annotated[Path, Argument(help="The TOML file of the release.", metavar="SPEC")],
    out: options.Out,
    allow: Annotated[list[str] | None, Option(help="GATE:ITEM=REASON: publish what the gate finds there.")] = None,
    dry_run: options.DryRun = False,
) -> None:
    """Build a release from a workspace and its closed rounds; nothing is written while a gate finds something."""
    from h2htalk.curation.release.build import build_release

    release = build_release(spec, out, allow=allow or (), dry_run=dry_run)
    print_release(release)
    if release.path is not None:
        passed = "no other gate stopped" if allow else "every gate passed"
        say(*(printable(f"allowed by the owner: {place}") for place in allow or ()))
        say(f"{passed}; release {release.hash}: {release.path.resolve()}")


def release_check(
    folder: Annotated[str, Argument(help="A release's folder, or a split (as of `evaluate`).")],
) -> None:
    """Run every gate over a release, and hold its files against its manifest; or run the gates over a split."""
    from h2htalk.curation.release.check import check_release

    release = check_release(folder)
    print_release(release)
    passed = "every other gate" if release.unchecked else "every gate"
    say(f"{passed} passed; {'release' if release.path else 'split'} {release.hash}")
    raise Exit(3 if release.unchecked else 0)


def print_release(release: Release) -> None:
    """Print what was accepted, refused and chosen, then what the gates found, with exit code 4."""
    from h2htalk.curation.release.gates import GATES
    from h2htalk.data.subtasks import in_table_order

    accepted, splits = release.accepted, release.content.splits
    say(*release.notes)
    if accepted is not None:
        say(f"accepted: {len(accepted.items):,} of {counted(len(accepted.items) + len(accepted.refused), 'item')}")
        say(*(f"  refused: {reason}: {count:,}" for reason, count in accepted.reasons().items()))
        chosen = {split: [item.scenario.subtask for item in items] for split, items in splits.items()}
        for name in in_table_order({name for names in chosen.values() for name in names}):
            say(f"{name}: " + ", ".join(f"{split} {names.count(name):,}" for split, names in chosen.items()))
    for config, rows in release.content.configs().items():
        say(f"config {config}: " + ", ".join(f"{split} {count:,}" for split, count in rows.items()))
    for gate in GATES.values():
        if found := [one for one in release.findings if one.gate == gate.name]:
            say(f"gate {gate.name}: {gate.stops}: {counted(len(found), 'finding')}")
            shown = (f"{one.item}: {one.detail}" if one.item else one.detail for one in found[:_SHOWN])
            say(*(f"  {printable(line)}" for line in shown))  # votes may be anybody's
            if len(found) > _SHOWN:
                say(f"  and {len(found) - _SHOWN:,} more")
    say(*release.unchecked)
    if release.findings:
        if accepted is not None:
            say("the release was not written: mend these items, or leave them out (`exclude`, `leave_out`)", err=True)
        raise Exit(4)


def release_diff(
    old: Annotated[str, Argument(help="A release: a folder, or hub:OWNER/NAME@TAG.")],
    new: Annotated[str, Argument(help="Another one.")],
) -> None:
    """List the items that were added, removed and changed between two releases, and why."""
    from h2htalk.curation.release.diff import diff_releases
    from h2htalk.data.releases.hub import release_folder
    from h2htalk.text.record_diff import format_diff

    say(format_diff(diff_releases(release_folder(old), release_folder(new))).rstrip("\n"))


def release_publish(
    folder: Annotated[Path, Argument(help="A release's folder.")],
    repo: Annotated[str, Argument(help="OWNER/NAME on the Hugging Face Hub.")],
    tag: Annotated[str | None, Option(help="Default: v and the release's version.")] = None,
    public: Annotated[bool, Option("--public", help="Others may see it; by default it must be private.")] = False,
    message: Annotated[str | None, Option(help="Message of the commit.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="List files and sizes; send nothing.")] = False,
) -> None:
    """Publish a release on the Hub: one commit, verified and tagged. The same command continues an interrupted one."""
    from h2htalk.data.releases.hub import publish

    done = publish(folder, repo, private=not public, tag=tag, dry_run=dry_run, message=message)
    say(*(f"{size:>14,}  {name}" for name, size in done.files.items() if dry_run))
    size, commit = sum(done.files.values()), f"commit {done.commit}" if done.commit else "nothing was sent"
    say(f"hub:{done.repo}@{done.tag}: {len(done.files):,} files, {size:,} bytes, {commit}", *done.notes)


def release_pull(name: Annotated[str, Argument(help="hub:OWNER/NAME@TAG.")], out: options.Out) -> None:
    """Copy a release of the Hub into a new folder, and check every file against its hash."""
    from h2htalk.data.releases.hub import pull

    release = pull(name, out)
    say(f"{release} (commit {release.commit}): {out.resolve()}")
