"""Commands that curate raw dialogues, and that show records."""

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
from h2htalk.curation.stages import STAGES
from h2htalk.errors import ConfigError, counted
from h2htalk.text.escaping import printable

with options.lazy_imports():
    from h2htalk.benchmark.report import cost_tables
    from h2htalk.curation import check_guard, curate, erase
    from h2htalk.curation import sample as samples
    from h2htalk.curation import show as records
    from h2htalk.curation import workspace as workspaces
    from h2htalk.curation.dedup import groups
    from h2htalk.curation.gather import look as gather_look
    from h2htalk.curation.reading import check_report, recall, summary, talk_figures
    from h2htalk.scale import ray_cluster

Executor = Literal["local", "ray"]
Item = Annotated[
    str, Argument(help="The id of a dialogue, candidate or person, or its id in the raw data.")
]
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
    """Check how well a model reads, as guard or reviewer, on 312 bundled dialogues of known truth, and certify it.

    With --set it is checked on labelled talks of your own.
    """
    spec = CheckGuardSpec(model=model, **chosen)
    if dry_run:
        say(*check_guard.estimate_check(spec))
        return
    checks = check_guard.check_guard(spec)
    for check in checks:
        is_of_talks = check.certificate.is_of_talks
        report = talk_figures.talk_lines if is_of_talks else check_report.report_lines
        say(
            *report(check.certificate, check.outcomes),
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


def curate_purge(workspace: options.Workspace, yes: options.Yes = False) -> None:
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
