"""Commands that build a benchmark: split, curate, round, release, import."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Exit, Option

from h2htalk.cli import options, round_options
from h2htalk.cli.output import say
from h2htalk.curation.reading.check_settings import CheckGuardSpec
from h2htalk.curation.release.read_settings import ReadReleaseSpec, ReleaseRiskSpec
from h2htalk.curation.stages import STAGES, find_stage
from h2htalk.errors import ConfigError, counted
from h2htalk.rounds.settings import ANNOTATORS, make_spec
from h2htalk.text.escaping import printable

with options.lazy_imports():
    from h2htalk.analysis import split_description
    from h2htalk.benchmark import score_run, split_changes
    from h2htalk.benchmark.report import cost_tables
    from h2htalk.curation import check_guard, curate, erase, released
    from h2htalk.curation import sample as samples
    from h2htalk.curation import show as records
    from h2htalk.curation import workspace as workspaces
    from h2htalk.curation.dedup import groups
    from h2htalk.curation.gather import look as gather_look
    from h2htalk.curation.reading import check_report, recall, summary
    from h2htalk.curation.release import build, content, read_release, report
    from h2htalk.curation.release import release_risk as risks
    from h2htalk.data import split_output, splits
    from h2htalk.data.imports import response_files
    from h2htalk.data.releases import hub, release_folder
    from h2htalk.integrations import import_log
    from h2htalk.rounds import annotator_erasure, lifecycle, participants, platforms, round_deletion
    from h2htalk.rounds import status as statuses
    from h2htalk.scale import ray_cluster
    from h2htalk.text import help_lines, record_diff
    from h2htalk.text.contracts import split_check as contracts

FileFormat = Annotated[Literal["jsonl", "parquet"], Option(help="jsonl or parquet.")]
Executor = Literal["local", "ray"]
Adjudication = Annotated[
    Path | None, Option(help="A closed round that adjudicates this round's ties.")
]
Annotators = Annotated[Path | None, Option(help=ANNOTATORS)]
AuthorsFolder = Annotated[Path, Argument(help="The folder of the authors' released files.")]
CandidateStage = Annotated[
    str | None, Option(help="compose or review; default: the last finished one of them.")
]
CasesInstead = Annotated[
    str, Option(help="Cases instead: high_risk, look_alike, instructions or arcs.")
]
DryBuild = Annotated[
    bool, Option("--dry-run", help="Choose the items and run every gate; write nothing.")
]
EachFinding = Annotated[
    bool, Option("--all", help="List every finding, not the first 20 of each gate.")
]
EachItem = Annotated[bool, Option("--items", help="List every item that lacks answers.")]
Force = Annotated[bool, Option("--force", help="Close although assignments are missing; recorded.")]
InspectLog = Annotated[Path, Argument(help="A log (.eval or .json) of the task h2htalk/mini.")]
Item = Annotated[
    str, Argument(help="The id of a dialogue, candidate or person, or its id in the raw data.")
]
Mistakes = Annotated[bool, Option("--mistakes", help="List every mistake, not some of each kind.")]
MovedRuns = Annotated[
    list[Path] | None, Option(help="A run whose moved cells are listed; repeatable.")
]
NewFolder = Annotated[Path, Argument(help="The folder to write.")]
NewSplit = Annotated[str, Argument(help="Another version of it.")]
OpenCompassLog = Annotated[
    Path, Argument(help="A folder WORK/TIME, of data sets of `integrations opencompass`.")
]
ReleaseName = Annotated[str, Argument(help="A release: a folder, or hub:OWNER/NAME@TAG.")]
TaskEmbedder = Annotated[str | None, Option(help=f"{options.EMBEDDER} Default: that of the task.")]
Without = Annotated[
    list[str] | None, Option(help="Name of an annotator who left; may be repeated.")
]
ReplaceId = Annotated[
    bool,
    Option(
        "--replace-id",
        help="Correct the participant id of an annotator, although bonuses may be listed.",
    ),
]
Yes = Annotated[bool, Option("--yes", help="Do not ask; required in scripts.")]
ShownIds = Annotated[
    list[str] | None, Argument(help="The records to show; default: a sample.", metavar="[ID]...")
]
ShownLimit = Annotated[
    int | None,
    Option(
        "--limit",
        "--sample",
        min=1,
        help="How many, drawn by a hash of the id; default: 20, with --ids all.",
    ),
]
STAGE = f"Run only this stage ({', '.join(STAGES)}); may be repeated."
ITEMS = "A split, a curation stage, a closed round (what it keeps, or its ties for an adjudication), or a .jsonl file."
NOT_SEARCHED = (
    "not searched: exported splits, analyses, backups, runs made elsewhere (name moved folders with --also), caches of "
    "`datasets` elsewhere (`cache_dir`), spreadsheets that come back (`round status` erases from them)"
)
ERASED = {"hub": "cached copies erased", "copy": "not changed", "": "missing"}


def show(
    name: Annotated[
        str, Argument(help="A split, a workspace or its stage, a round, a run or a study.")
    ],
    ids: ShownIds = None,
    tag: Annotated[
        list[str] | None,
        Option(help="Records with this tag, or one of a group such as crisis; may be repeated."),
    ] = None,
    reason: Annotated[
        list[str] | None,
        Option(help="Records that a stage rejected for this reason, or group; may be repeated."),
    ] = None,
    unread: Annotated[
        bool, Option("--unread", help="Records that nobody has read who counts as a reader.")
    ] = False,
    limit: ShownLimit = None,
    only_ids: Annotated[
        bool, Option("--ids", help="Print an id a line and nothing else; counts on stderr.")
    ] = False,
) -> None:
    """Show records as transcripts, with their tags, and what was answered or decided about them."""
    chosen = records.RecordFilter(tags=tuple(tag or ()), reasons=tuple(reason or ()), unread=unread)
    if not only_ids:
        say(*records.show(name, ids or (), limit or records.DEFAULT_LIMIT, chosen))
        return
    search = records.RecordSearch(name, chosen)
    if ids:
        entries: Iterable[records.Entry] = search.named(ids)
    elif limit:
        entries = search.sample(limit)
    else:
        entries = search.matches()
    printed = 0
    for entry in entries:
        say(printable(entry.id))
        printed += 1
    say(search.counts(printed), err=True)


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


def split_new(
    folder: NewFolder, language: options.Examples = "en", study: CasesInstead = ""
) -> None:
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
    if items and (values := content.InventedValues.find(name, items)):
        say(f"{values.write(release_folder.private_folder(out), items)}: never publish it")


def split_from(
    workspace: options.Workspace,
    out: options.Out,
    stage: CandidateStage = None,
    format: FileFormat = "jsonl",
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
    human: Annotated[
        bool, Option("--human", help="People wrote the responses; tables say so.")
    ] = False,
) -> None:
    """Score responses that another tool produced, or people wrote."""
    options.finish(score_run.import_responses(file, name, split, out, embedder, human), out)


def import_inspect(
    log: InspectLog,
    out: options.Out,
    embedder: TaskEmbedder = None,
    split: Annotated[
        str | None,
        Option(help="The split of the log's items; the log's own if it is not on the Hub."),
    ] = None,
) -> None:
    """Make a run of a log of Inspect AI."""
    options.finish(import_log.import_inspect(log, out, embedder, split), out)


def import_opencompass(
    log: OpenCompassLog, out: options.Out, embedder: TaskEmbedder = None
) -> None:
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
    update: Annotated[
        bool, Option("--update", help="Read new files and lines of the sources.")
    ] = False,
    executor: Annotated[
        Executor, Option(help="Where stages that call no model run: here, or on Ray.")
    ] = "local",
    ray_address: options.RayAddress = "",
    dry_run: options.DryRun = False,
) -> None:
    """Run the stages that are not finished."""
    on_ray = executor == "ray"
    if (ray_address and not on_ray) or (processes and on_ray):
        raise ConfigError(
            "--ray-address belongs to --executor ray, and --processes to --executor local"
        )
    if dry_run:
        say(curate.estimate_run(spec, stage or (), workspace=workspace, from_stage=from_stage))
    else:
        run = partial(
            curate.curate,
            spec,
            stage or (),
            workspace=workspace,
            from_stage=from_stage,
            update=update,
        )
        with ray_cluster.connect(ray_address) if on_ray else nullcontext():
            curated = run(processes=processes)
        curate_funnel(curated.path)
        say(cost_tables.costs_text(curated.path))


def curate_funnel(workspace: options.Workspace) -> None:
    """Show how many records each stage read, kept and rejected, and why."""
    opened = workspaces.Workspace(workspace)
    stages = curate.summaries(opened)
    say(curate.funnel_table(stages).to_terminal(), curate.funnel_notes(stages))
    say(*groups.group_lines(opened), *recall.recall_lines(opened), *summary.reading_lines(opened))


@options.with_options(CheckGuardSpec)
def curate_check_guard(
    model: Annotated[str, Argument(help=options.READER_MODEL)],
    dry_run: options.DryRun = False,
    **chosen: Any,
) -> None:
    """Check how well a model reads, as guard or reviewer, on 312 bundled dialogues of known truth, and certify it."""
    spec = CheckGuardSpec(model=model, **chosen)
    if dry_run:
        say(*check_guard.estimate_check(spec))
        return
    checks = check_guard.check_guard(spec)
    for check in checks:
        say(
            *check_report.report_lines(check.certificate, check.outcomes),
            *check_guard.closing_lines(check),
        )
    raise Exit(0 if all(map(check_guard.passes, checks)) else 4)


def curate_look(
    file: Annotated[Path, Argument(help="A raw file, or a folder of them.")],
    companion: Annotated[str, Option(help="The speaker who is the companion.")] = "",
    language: Annotated[
        str | None, Option(help="en or zh. Told by the characters when left out.")
    ] = None,
) -> None:
    """Say what a raw file is and which source reads it, and show three dialogues; nothing is stored."""
    say(*map(printable, gather_look.look(file, companion, language)))


@round_options.round_options
def curate_sample(
    workspace: options.Workspace,
    keep: Annotated[int, Option(min=1, help="Dialogues of each language.")] = 50,
    out: Annotated[
        Path | None, Option(help="The round's folder; default: samples/seed-N in the workspace.")
    ] = None,
    settings: options.Settings = None,
    **chosen: Any,
) -> None:
    """Open a safety round over a sample of what safety kept without a tag; closing it says what was overlooked."""
    options.print_status(
        *samples.open_sample(workspace, keep, out=out, options=chosen, settings=settings)
    )


def curate_explain(workspace: options.Workspace, item: Item) -> None:
    """Show what each stage did with one item, what people decided on it, and where it was released."""
    say(records.format_history(records.explain(workspaces.Workspace(workspace), item)))


def curate_erase(
    workspace: options.Workspace,
    source_id: Item,
    also: Annotated[
        list[Path] | None, Option(help="A folder with other rounds, runs or releases; repeatable.")
    ] = None,
) -> None:
    """Erase a person or a dialogue from every stage, and from rounds, runs and releases."""
    erased = erase.erase(workspaces.Workspace(workspace), source_id, tuple(also or ()))
    say(f"erased {counted(len(erased.ids), 'id')}: {', '.join(erased.ids[:5])}")
    if erased.copies:
        say(f"copies among them: {', '.join(erased.copies[:5])}")
    if erased.continuations:
        say(f"later parts of the same chats among them: {', '.join(erased.continuations[:5])}")
    if erased.earlier:
        say(
            f"earlier parts of the same chats stay: {', '.join(erased.earlier)}; erase each by its id"
        )
    if erased.others:
        say(
            f"similar dialogues of other or unknown people stay: {', '.join(erased.others)}; erase each by its id"
        )
    if erased.removed:
        say(
            f"removed stages: {', '.join(erased.removed)}; to make them again: h2htalk curate run SPEC"
        )
    for folder in erased.folders:
        done = ERASED.get(folder.kind, f"{counted(folder.removed, 'item')} erased")
        say(printable(f"{folder.kind} {folder.name}: {done}".strip()))
        say(*(printable(f"  {message}") for message in folder.messages))
    say(NOT_SEARCHED)
    say(*(f"your own file still holds the raw text: {path}" for path in erased.raw), err=True)
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


@round_options.opening_options
def round_open(
    kind: Annotated[str, Argument(help="crowd, expert, adjudication or safety.")],
    items: Annotated[str, Argument(help=ITEMS)],
    out: options.Out,
    settings: options.Settings = None,
    **chosen: Any,
) -> None:
    """Open a round: assign items to annotators. The same command completes an interrupted opening."""
    options.print_status(*lifecycle.open_round(make_spec(kind, items, chosen, settings), out))


def round_status(
    round: options.Round,
    each: EachItem = False,
    mistakes: Mistakes = False,
    submissions: Annotated[
        Path | None,
        Option(help="Prolific's export: who submitted, and has not answered everything."),
    ] = None,
) -> None:
    """Collect new annotations, and show the progress by annotator and language."""
    status = lifecycle.round_status(round, submissions=submissions)
    options.print_status(status, table=True, each_mistake=mistakes)
    if each:
        say(*statuses.item_lines(status))
    raise Exit(2 if status.mistakes else 0)


def round_close(
    round: options.Round,
    force: Force = False,
    adjudication: Adjudication = None,
    submissions: Annotated[
        Path | None,
        Option(help="Prolific's export: which submissions it pays, for the list of bonuses."),
    ] = None,
) -> None:
    """Close a round: write decisions.jsonl, agreement.json and annotator_statistics.csv. Ties stay ties."""
    status, decisions = lifecycle.close_round(
        round, force=force, adjudication=adjudication, submissions=submissions
    )
    say(*statuses.grouped(status.notes), statuses.decisions_table(round, decisions).to_terminal())
    say(f"decisions: {(round / 'decisions.jsonl').resolve()}", *samples.store_sample(round))


def round_reopen(
    round: options.Round,
    without: Without = None,
    annotators: Annotators = None,
    replace_id: ReplaceId = False,
) -> None:
    """Assign items that were skipped, left, unclear or tied to other annotators."""
    options.print_status(
        *lifecycle.reopen_round(
            round, without=tuple(without or ()), annotators=annotators, replace_ids=replace_id
        )
    )


def round_add(
    round: options.Round,
    name: Annotated[str, Argument(help="Name of the annotator: a new one, or one of the list.")],
    id: Annotated[str, Option(help="Participant id of Prolific, for the payment.")] = "",
    code: Annotated[str, Option(help="Completion code that the participant entered.")] = "",
    languages: Annotated[
        str, Option(help="Languages that they read (en, zh, 'en zh'); default: the round's.")
    ] = "",
    crisis: Annotated[
        bool, Option("--crisis", help="They agreed to read items about a crisis.")
    ] = False,
    replace_id: ReplaceId = False,
) -> None:
    """Add an annotator to an open round on a server, or the id and code of one who is in it."""
    cells = {
        "participant_id": id,
        "completion_code": code,
        "languages": languages,
        "crisis": "yes" if crisis else "",
    }
    filled = {key: cell for key, cell in cells.items() if cell}
    options.print_status(*participants.add_annotator(round, name, filled, replace_id=replace_id))


def round_remove_annotator(
    round: options.Round,
    name: Annotated[str, Argument(help="Name of the annotator.")],
    why: Annotated[str, Option(help="Reason; recorded in events.jsonl, so name nobody.")] = "",
    undo: Annotated[bool, Option("--undo", help="Let the annotations count again.")] = False,
) -> None:
    """Leave all answers of an annotator out of decisions, agreement and overlap; a closed round is decided anew."""
    options.print_status(*lifecycle.remove_annotator(round, name, why=why, undo=undo))


def round_delete(
    round: options.Round,
    force: Annotated[
        bool, Option("--force", help="Delete although the round is open; answers are collected.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Delete what a round made on its server, or its spreadsheets; the folder with decisions and payments stays."""
    if not yes:
        what = round_deletion.describe_deletion(round)
        if not sys.stdin.isatty():
            raise ConfigError(f"{what}; add --yes")
        typer.confirm(f"{what}. Delete?", abort=True)
    print_removal(round_deletion.delete_round(round, force=force))


def round_erase_annotator(
    round: options.Round,
    annotator: Annotated[str, Argument(help="Name of the annotator.")],
    payments: Annotated[
        Path | None,
        Option(help="CSV file outside of the round that keeps what they are to be paid for."),
    ] = None,
    no_payments: Annotated[
        bool, Option("--no-payments", help="Write no such file: your books have it.")
    ] = False,
    sent: Annotated[
        str,
        Option(
            help="Lists of bonuses with the annotator that you have sent: all, none, or numbers (1,2)."
        ),
    ] = "",
    skip_server: Annotated[
        bool, Option("--skip-server", help="Leave out a server that is gone for good.")
    ] = False,
) -> None:
    """Erase an annotator who withdraws consent: answers, comments, times and names; decisions keep their counts."""
    removal = annotator_erasure.erase_annotator(
        round,
        annotator,
        payments=payments,
        keep_payments=not no_payments,
        sent=sent,
        skip_server=skip_server,
    )
    print_removal(removal)


def print_removal(removal: platforms.Removal) -> None:
    """Print what was removed and what is left; exit code 3 if the same command has to be repeated."""
    say(*removal.removed)
    say(*(f"left: {message}" for message in removal.left))
    if removal.unfinished:
        say("not finished: do what the lines above say, and start the same command again", err=True)
        raise Exit(3)


def round_list(
    folder: Annotated[Path, Argument(help="Folder to search, with its subfolders.")] = Path("."),
) -> None:
    """List the rounds in a folder, as of their last status."""
    rounds = list(statuses.list_rounds(folder))
    say(statuses.rounds_table(rounds).to_terminal())
    for status in rounds:
        say(*status.notes)


def release_build(
    spec: Annotated[Path, Argument(help="The TOML file of the release.", metavar="SPEC")],
    out: options.Out,
    allow: Annotated[
        list[str] | None,
        Option(
            help="GATE:ITEM=REASON: publish what the gate finds there; GATE:unread=REASON: what nobody has read; "
            "GATE:unread:N=REASON: N items of it at most."
        ),
    ] = None,
    dry_run: DryBuild = False,
    all: EachFinding = False,
) -> None:
    """Build a release from a workspace and its closed rounds; nothing is written while a gate finds something."""
    release = build.build_release(spec, out, allow=allow or (), dry_run=dry_run)
    print_release(release, all, str(spec))
    verdict = report.verdict(release)
    if release.path is None:
        say(f"{verdict}; nothing was written")
    else:
        say(*report.allowed_lines(release))
        say(f"{verdict}; release {release.hash}: {release.path.resolve()}")
    raise Exit(0 if release.is_tested else 3)


@options.with_options(ReadReleaseSpec)
def release_read(
    spec: Annotated[Path, Argument(help="The TOML file of the release.", metavar="SPEC")],
    guard: Annotated[str, Option(help="The guard, ENGINE:NAME, as in [safety].")],
    dry_run: options.DryRun = False,
    **chosen: Any,
) -> None:
    """Have a guard read the items and cases of a release that are unread; the next build finds what it read."""
    settings = ReadReleaseSpec(spec=str(spec), guard=guard, **chosen)
    if dry_run:
        say(*read_release.estimate_reading(settings))
        return
    reading = read_release.read_release(settings)
    say(*read_release.reading_lines(reading))
    raise Exit(3 if reading.untested else 0)


@options.with_options(ReleaseRiskSpec)
def release_risk(
    release: Annotated[
        Path, Argument(help="The TOML file of a release, or the folder of one that was built here.")
    ],
    model: Annotated[str, Option(help="The chat model, ENGINE:NAME.")],
    dry_run: options.DryRun = False,
    **chosen: Any,
) -> None:
    """Have a model quote from each dialogue of a release what could tell people who know the user who it is."""
    settings = ReleaseRiskSpec(release=str(release), model=model, **chosen)
    if dry_run:
        say(*risks.estimate_risk(settings))
        return
    risk = risks.release_risk(settings)
    say(*risks.risk_lines(risk))
    raise Exit(3 if risk.measured.unread else 0)


def release_check(name: options.Split, all: EachFinding = False) -> None:
    """Run every gate over a release, and hold its files against its manifest; or run the gates over a split."""
    release = build.check_release(name)
    say(*help_lines.stale_entries())
    print_release(release, all)
    say(f"{report.verdict(release)}; {'release' if release.path else 'split'} {release.hash}")
    raise Exit(0 if release.is_tested else 3)


def print_release(release: build.Release, each: bool = False, spec: str = "SPEC") -> None:
    """Print a release, built from SPEC or checked; exit code 4 where a gate found something."""
    say(*report.release_lines(release, None if each else 20, spec))
    if release.findings:
        if release.accepted is not None:
            say(
                "the release was not written: mend these items, or leave them out (`exclude`, `leave_out`)",
                err=True,
            )
        raise Exit(4)


def release_diff(old: ReleaseName, new: ReleaseName) -> None:
    """List the items that were added, removed and changed between two releases, and why."""
    say(
        record_diff.format_diff(content.diff_releases(*map(hub.release_folder, (old, new)))).rstrip(
            "\n"
        )
    )


def release_publish(
    folder: Annotated[Path, Argument(help="A release's folder.")],
    repo: Annotated[str, Argument(help="OWNER/NAME on the Hugging Face Hub.")],
    tag: Annotated[str | None, Option(help="Default: v and the release's version.")] = None,
    public: Annotated[
        bool, Option("--public", help="Others may see it; by default it must be private.")
    ] = False,
    message: Annotated[str | None, Option(help="Message of the commit.")] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="List files and sizes; send nothing.")
    ] = False,
) -> None:
    """Publish a release on the Hub: one commit, verified and tagged. The same command continues an interrupted one."""
    publication = hub.publish(
        folder, repo, private=not public, tag=tag or "", dry_run=dry_run, message=message or ""
    )
    files = publication.files
    if dry_run:
        say(*(f"{size:>14,}  {name}" for name, size in files.items()))
    commit = f"commit {publication.commit}" if publication.commit else "nothing was sent"
    address = f"hub:{publication.repo}@{publication.tag}"
    notes = [*publication.notes, *released.describe_what_followed(folder)]
    say(f"{address}: {len(files):,} files, {sum(files.values()):,} bytes, {commit}", *notes)


def release_pull(
    name: Annotated[str, Argument(help="hub:OWNER/NAME@TAG.")], out: options.Out
) -> None:
    """Copy a release of the Hub into a new folder, and check every file against its hash."""
    release = hub.pull(name, out)
    say(f"{name} (commit {release.commit}): {out.resolve()}")
