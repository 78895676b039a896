"""Commands that build a benchmark: split, curate, round, release, import."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Exit, Option

from h2htalk.cli import options
from h2htalk.cli.options import say
from h2htalk.curation.stages import STAGES, find_stage
from h2htalk.errors import ConfigError, counted
from h2htalk.rounds.settings import ANNOTATORS, make_spec
from h2htalk.text.escaping import printable

with options.lazy_imports():
    from h2htalk.analysis import split_description
    from h2htalk.benchmark import score_run, split_changes
    from h2htalk.benchmark.report import notes
    from h2htalk.curation import curate, erase
    from h2htalk.curation import show as records
    from h2htalk.curation import workspace as workspaces
    from h2htalk.curation.release import build, content
    from h2htalk.data import split_output, splits
    from h2htalk.data.imports import response_files
    from h2htalk.data.releases import hub, release_folder
    from h2htalk.integrations import import_log
    from h2htalk.rounds import lifecycle
    from h2htalk.rounds import status as statuses
    from h2htalk.scale import ray_cluster
    from h2htalk.text import help_lines, record_diff
    from h2htalk.text.contracts import split_check as contracts

FileFormat = Annotated[Literal["jsonl", "parquet"], Option(help="jsonl or parquet.")]
Executor = Literal["local", "ray"]
Adjudication = Annotated[Path | None, Option(help="A closed round that adjudicates this round's ties.")]
Annotators = Annotated[Path | None, Option(help=ANNOTATORS)]
AuthorsFolder = Annotated[Path, Argument(help="The folder of the authors' released files.")]
CandidateStage = Annotated[str | None, Option(help="compose or review; default: the last finished one of them.")]
CasesInstead = Annotated[str, Option(help="Cases instead: high_risk, look_alike, instructions or arcs.")]
DryBuild = Annotated[bool, Option("--dry-run", help="Choose the items and run every gate; write nothing.")]
EachFinding = Annotated[bool, Option("--all", help="List every finding, not the first 20 of each gate.")]
EachItem = Annotated[bool, Option("--items", help="List every item that needs annotators.")]
Force = Annotated[bool, Option("--force", help="Close although assignments are missing; recorded.")]
InspectLog = Annotated[Path, Argument(help="A log (.eval or .json) of the task h2htalk/mini.")]
Item = Annotated[str, Argument(help="The id of a dialogue, candidate or person, or its id in the raw data.")]
Mistakes = Annotated[bool, Option("--mistakes", help="List every mistake, not some of each kind.")]
MovedRuns = Annotated[list[Path] | None, Option(help="A run whose moved cells are listed; repeatable.")]
NewFolder = Annotated[Path, Argument(help="The folder to write.")]
NewSplit = Annotated[str, Argument(help="Another version of it.")]
OpenCompassLog = Annotated[Path, Argument(help="A folder WORK/TIME, of data sets of `integrations opencompass`.")]
ReleaseName = Annotated[str, Argument(help="A release: a folder, or hub:OWNER/NAME@TAG.")]
TaskEmbedder = Annotated[str | None, Option(help=f"{options.EMBEDDER} Default: that of the task.")]
Without = Annotated[list[str] | None, Option(help="Name of an annotator who left; may be repeated.")]
Yes = Annotated[bool, Option("--yes", help="Do not ask; required in scripts.")]
ShownIds = Annotated[list[str] | None, Argument(help="The records to show; default: a sample.", metavar="[ID]...")]
STAGE = f"Run only this stage ({', '.join(STAGES)}); may be repeated."
ITEMS = "A split, a curation stage, a closed round (what it keeps, or its ties for an adjudication), or a .jsonl file."
NOT_SEARCHED = (
    "not searched: exported splits, analyses, backups, runs made elsewhere (name moved folders with --also), caches of "
    "`datasets` elsewhere (`cache_dir`), spreadsheets that come back (`round status` erases from them)"
)
ERASED = {"hub": "cached copies erased", "copy": "not changed", "": "missing"}


def show(
    name: Annotated[str, Argument(help="A split, a workspace or its stage, a round, a run or a study.")],
    ids: ShownIds = None,
    sample: Annotated[int, Option(min=1, help="How many, drawn by a hash of the id.")] = 20,
) -> None:
    """Show records as transcripts, with their tags, and what was answered or decided about them."""
    say(*records.show(name, ids or (), sample))


def split_list() -> None:
    """List the bundled splits."""
    say(*(f"{name}  {description}" for name, description in splits.list_splits().items()))


def split_info(name: options.Split) -> None:
    """Describe a split: counts by subtask and language, personas, fingerprint."""
    say(split_description.describe_split(splits.load_split(name)).rstrip("\n"))


def split_check(name: options.Split) -> None:
    """Check the items of a split: every error of every line, and references against their contract."""
    number, errors = contracts.check_split(name)
    say(*errors, err=True)
    say(f"{counted(number, 'item')}, {counted(len(errors), 'error')}")
    raise Exit(2 if errors else 0)


def split_new(folder: NewFolder, language: options.Examples = "en", study: CasesInstead = "") -> None:
    """Write a split to begin with: one example of each subtask, or of a study, to replace by your own items."""
    say(*map(str, split_output.write_new_split(folder, language, study)))


def split_diff(old: options.Split, new: NewSplit, runs: MovedRuns = None) -> None:
    """List the items that differ between two splits, and the cells of runs that the difference moves."""
    diff, tables = split_changes.diff_splits(old, new, runs or ())
    say(record_diff.format_diff(diff), *(table.to_terminal() for table in tables))


def split_export(name: options.Split, out: options.Out, format: FileFormat = "jsonl") -> None:
    """Write a split as a folder that can be edited and evaluated."""
    split = splits.load_split(name)
    say(*map(str, split_output.export_split(split, out, format)))
    items = tuple(map(content.ReleaseItem, split.scenarios)) if split.surrogates else ()
    if items and (known := content.InventedValues.find(name, items)):
        say(f"{known.write(release_folder.private_folder(out), items)}: never publish it")


def split_from(
    workspace: options.Workspace, out: options.Out, stage: CandidateStage = None, format: FileFormat = "jsonl"
) -> None:
    """Make a split from the candidates of a workspace's stage."""
    workspaces.Workspace(workspace).require_begun()
    split_export(str(workspace / find_stage(stage).name if stage else workspace), out, format)


def import_responses(
    file: Annotated[Path, Argument(help="JSONL of id, response.")],
    split: options.SplitOption,
    out: options.Out,
    name: Annotated[str, Option(help="The model's name in tables.")] = "imported",
    embedder: options.Embedder = "bge-m3",
    human: Annotated[bool, Option("--human", help="People wrote the responses; tables say so.")] = False,
) -> None:
    """Score responses that another tool produced, or people wrote."""
    options.finish(score_run.import_responses(file, name, split, out, embedder, human), out)


def import_inspect(log: InspectLog, out: options.Out, embedder: TaskEmbedder = None) -> None:
    """Make a run of a log of Inspect AI."""
    options.finish(import_log.import_inspect(log, out, embedder), out)


def import_opencompass(log: OpenCompassLog, out: options.Out, embedder: TaskEmbedder = None) -> None:
    """Make a run of a log of OpenCompass."""
    options.finish(import_log.import_opencompass(log, out, embedder), out)


def import_authors(folder: AuthorsFolder, out: options.Out) -> None:
    """Import the authors' released references under their true subtasks, and list what is missing."""
    written, number, missing = response_files.import_authors(folder, out)
    say(*(f"missing  {line}" for line in missing), err=True)
    say(f"{number:,} references in {written}")


def curate_run(
    spec: Annotated[Path, Argument(help="The TOML file of the curation.", metavar="SPEC")],
    stage: Annotated[list[str] | None, Option(help=STAGE)] = None,
    workspace: Annotated[Path | None, Option(help="Replaces the workspace in the file.")] = None,
    from_stage: Annotated[str, Option(help="Make this stage and those after it again.")] = "",
    processes: Annotated[int | None, Option(help="Worker processes; default: all cores.")] = None,
    update: Annotated[bool, Option("--update", help="Read new files and lines of the sources.")] = False,
    executor: Annotated[Executor, Option(help="Where stages that call no model run: here, or on Ray.")] = "local",
    ray_address: options.RayAddress = "",
    dry_run: options.DryRun = False,
) -> None:
    """Run the stages that are not finished."""
    on_ray = executor == "ray"
    if (ray_address and not on_ray) or (processes and on_ray):
        raise ConfigError("--ray-address belongs to --executor ray, and --processes to --executor local")
    if dry_run:
        say(curate.estimate_run(spec, stage or (), workspace=workspace, from_stage=from_stage))
    else:
        run = partial(curate.curate, spec, stage or (), workspace=workspace, from_stage=from_stage, update=update)
        with ray_cluster.connect(ray_address) if on_ray else nullcontext():
            place = run(processes=processes)
        curate_funnel(place.path)
        say(notes.costs_text(place.path))


def curate_funnel(workspace: options.Workspace) -> None:
    """Show how many records each stage read, kept and rejected, and why."""
    found = curate.summaries(workspaces.Workspace(workspace))
    say(curate.funnel_table(found).to_terminal(), curate.funnel_notes(found))


def curate_explain(workspace: options.Workspace, item: Item) -> None:
    """Show what each stage did with one item, what people decided on it, and where it was released."""
    say(records.format_history(records.explain(workspaces.Workspace(workspace), item)))


def curate_erase(
    workspace: options.Workspace,
    source_id: Item,
    also: Annotated[list[Path] | None, Option(help="A folder with other rounds, runs or releases; repeatable.")] = None,
) -> None:
    """Erase a person or a dialogue from every stage, and from rounds, runs and releases."""
    erased = erase.erase(workspaces.Workspace(workspace), source_id, tuple(also or ()))
    say(f"erased {counted(len(erased.ids), 'id')}: {', '.join(erased.ids[:5])}")
    if erased.copies:
        say(f"copies among them: {', '.join(erased.copies[:5])}")
    if erased.others:
        say(f"similar dialogues of other or unknown people stay: {', '.join(erased.others)}; erase each by its id")
    if erased.removed:
        say(f"removed stages: {', '.join(erased.removed)}; to make them again: h2htalk curate run SPEC")
    for folder in erased.folders:
        done = ERASED.get(folder.kind, f"{counted(folder.removed, 'item')} erased")
        say(printable(f"{folder.kind} {folder.name}: {done}".strip()))
        say(*(printable(f"  {message}") for message in folder.messages))
    say(NOT_SEARCHED)
    say(*(f"your own file still holds the raw text: {place}" for place in erased.raw), err=True)
    if any(folder.unfinished for folder in erased.folders):
        say("not finished: do what the lines above say, and start the same command again", err=True)
        raise Exit(3)


def curate_purge(workspace: options.Workspace, yes: Yes = False) -> None:
    """Remove the raw inputs, the private index and the key of the surrogates."""
    if not yes:
        unfinished = erase.unfinished_stages(workspaces.Workspace(workspace))
        lost = "".join(f", the unfinished {folder.path.name} stage" for folder in unfinished)
        what = f"{workspace}: removes the raw inputs, the private index{lost} and the key; no stage can be made again"
        if not sys.stdin.isatty():
            raise ConfigError(f"{what}; add --yes")
        typer.confirm(f"{what}. Purge?", abort=True)
    for path in erase.purge(workspaces.Workspace(workspace)):
        say(f"removed  {path}")


@options.round_options
def round_open(
    kind: Annotated[str, Argument(help="crowd, expert, adjudication or safety.")],
    items: Annotated[str, Argument(help=ITEMS)],
    out: options.Out,
    settings: options.Settings = None,
    **given: Any,
) -> None:
    """Open a round: assign items to annotators. The same command completes an interrupted opening."""
    options.print_status(*lifecycle.open_round(make_spec(kind, items, given, settings), out))


def round_status(round: options.Round, each: EachItem = False, mistakes: Mistakes = False) -> None:
    """Collect new annotations, and show the progress by annotator and language."""
    status = lifecycle.round_status(round)
    options.print_status(status, table=True, each_mistake=mistakes)
    say(*(f"{item}: {status.by_item[item]:,} completed, {n:,} missing" for item, n in status.missing.items() if each))
    raise Exit(2 if status.mistakes else 0)


def round_close(round: options.Round, force: Force = False, adjudication: Adjudication = None) -> None:
    """Close a round: write decisions.jsonl, agreement.json and annotator_statistics.csv. Ties stay ties."""
    status, decisions = lifecycle.close_round(round, force=force, adjudication=adjudication)
    say(*statuses.grouped(status.notes), statuses.decisions_table(round, decisions).to_terminal())
    say(f"decisions: {(round / 'decisions.jsonl').resolve()}")


def round_reopen(round: options.Round, without: Without = None, annotators: Annotators = None) -> None:
    """Assign items that were skipped, left, unclear or tied to other annotators."""
    options.print_status(*lifecycle.reopen_round(round, without=tuple(without or ()), annotators=annotators))


def round_remove_annotator(
    round: options.Round,
    name: Annotated[str, Argument(help="Name of the annotator.")],
    why: Annotated[str, Option(help="Reason; recorded in events.jsonl, so name nobody.")] = "",
    undo: Annotated[bool, Option("--undo", help="Let the annotations count again.")] = False,
) -> None:
    """Leave all answers of an annotator out of decisions, agreement and overlap; a closed round is decided anew."""
    options.print_status(*lifecycle.remove_annotator(round, name, why=why, undo=undo))


def round_list(folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path(".")) -> None:
    """List the rounds in a folder, as of their last status."""
    rounds = list(statuses.list_rounds(folder))
    say(statuses.rounds_table(rounds).to_terminal(), *(line for one in rounds for line in one.notes))


def release_build(
    spec: Annotated[Path, Argument(help="The TOML file of the release.", metavar="SPEC")],
    out: options.Out,
    allow: Annotated[list[str] | None, Option(help="GATE:ITEM=REASON: publish what the gate finds there.")] = None,
    dry_run: DryBuild = False,
    all: EachFinding = False,
) -> None:
    """Build a release from a workspace and its closed rounds; nothing is written while a gate finds something."""
    release = build.build_release(spec, out, allow=allow or (), dry_run=dry_run)
    print_release(release, all)
    if dry_run:
        say("every gate passed; nothing was written")
    if release.path is not None:
        passed = "no other gate stopped" if allow else "every gate passed"
        say(*(printable(f"allowed by the owner: {place}") for place in allow or ()))
        say(f"{passed}; release {release.hash}: {release.path.resolve()}")


def release_check(name: options.Split, all: EachFinding = False) -> None:
    """Run every gate over a release, and hold its files against its manifest; or run the gates over a split."""
    release = build.check_release(name)
    say(*help_lines.stale_entries())
    print_release(release, all)
    passed = "every other gate" if release.unchecked else "every gate"
    say(f"{passed} passed; {'release' if release.path else 'split'} {release.hash}")
    raise Exit(3 if release.unchecked else 0)


def print_release(release: build.Release, each: bool = False) -> None:
    """Print a release; exit code 4 where a gate found something."""
    say(*build.release_lines(release, None if each else 20))
    if release.findings:
        if release.accepted is not None:
            say("the release was not written: mend these items, or leave them out (`exclude`, `leave_out`)", err=True)
        raise Exit(4)


def release_diff(old: ReleaseName, new: ReleaseName) -> None:
    """List the items that were added, removed and changed between two releases, and why."""
    say(record_diff.format_diff(content.diff_releases(*map(hub.release_folder, (old, new)))).rstrip("\n"))


def release_publish(
    folder: Annotated[Path, Argument(help="A release's folder.")],
    repo: Annotated[str, Argument(help="OWNER/NAME on the Hugging Face Hub.")],
    tag: Annotated[str | None, Option(help="Default: v and the release's version.")] = None,
    public: Annotated[bool, Option("--public", help="Others may see it; by default it must be private.")] = False,
    message: Annotated[str | None, Option(help="Message of the commit.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="List files and sizes; send nothing.")] = False,
) -> None:
    """Publish a release on the Hub: one commit, verified and tagged. The same command continues an interrupted one."""
    done = hub.publish(folder, repo, private=not public, tag=tag or "", dry_run=dry_run, message=message or "")
    say(*(f"{size:>14,}  {name}" for name, size in done.files.items() if dry_run))
    size, commit = sum(done.files.values()), f"commit {done.commit}" if done.commit else "nothing was sent"
    say(f"hub:{done.repo}@{done.tag}: {len(done.files):,} files, {size:,} bytes, {commit}", *done.notes)


def release_pull(name: Annotated[str, Argument(help="hub:OWNER/NAME@TAG.")], out: options.Out) -> None:
    """Copy a release of the Hub into a new folder, and check every file against its hash."""
    release = hub.pull(name, out)
    say(f"{name} (commit {release.commit}): {out.resolve()}")
