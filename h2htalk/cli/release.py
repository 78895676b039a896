"""`h2htalk release ...`: build, check, compare and publish releases."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from h2htalk.cli.options import OutOption
from h2htalk.cli.output import say
from h2htalk.errors import counted
from h2htalk.text.escaping import printable

if TYPE_CHECKING:
    from h2htalk.curation.release.build import Release

_SHOWN = 20  # findings of a gate


def release_build(
    spec: Annotated[Path, typer.Argument(help="The TOML file of the release.", metavar="SPEC")],
    out: OutOption,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", help="GATE:ITEM=REASON: publish what companion_harm or explicit_content finds there."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the counts; write nothing.")] = False,
) -> None:
    """Build a release from a workspace and its closed rounds; nothing is written while a gate finds something."""
    from h2htalk.curation.release.build import build_release

    release = build_release(spec, out, allow=allow or (), dry_run=dry_run)
    _report(release)
    if release.path is not None:
        passed = "no other gate stopped" if allow else "every gate passed"
        for place in allow or ():
            say(printable(f"allowed by the owner: {place}"))
        say(f"{passed}; release {release.hash}: {release.path.resolve()}")


def _report(release: Release) -> None:
    """Print what was accepted, refused and chosen, then what the gates found, with exit code 4."""
    from h2htalk.curation.release.gates import GATES
    from h2htalk.data.subtasks import in_table_order

    accepted, splits = release.accepted, release.content.splits
    for note in release.notes:
        say(note)
    if accepted is not None:
        say(f"accepted: {len(accepted.items):,} of {counted(len(accepted.items) + len(accepted.refused), 'item')}")
        for reason, count in accepted.reasons().items():
            say(f"  refused: {reason}: {count:,}")
        chosen = {split: [item.scenario.subtask for item in items] for split, items in splits.items()}
        for name in in_table_order({name for names in chosen.values() for name in names}):
            say(f"{name}: " + ", ".join(f"{split} {names.count(name):,}" for split, names in chosen.items()))
    for config, rows in release.content.configs().items():
        say(f"config {config}: " + ", ".join(f"{split} {count:,}" for split, count in rows.items()))
    for gate in GATES.values():
        if found := [one for one in release.findings if one.gate == gate.name]:
            say(f"gate {gate.name}: {gate.stops}: {counted(len(found), 'finding')}")
            for one in found[:_SHOWN]:
                say(f"  {printable(f'{one.item}: {one.detail}' if one.item else one.detail)}")  # votes may be anybody's
            if len(found) > _SHOWN:
                say(f"  and {len(found) - _SHOWN:,} more")
    for line in release.unchecked:
        say(line)
    if release.findings:
        if accepted is not None:
            say("the release was not written: mend these items, or leave them out (`exclude`, `leave_out`)", err=True)
        raise typer.Exit(4)


def release_check(
    folder: Annotated[str, typer.Argument(help="A release's folder, or a split (as of `evaluate`).")],
) -> None:
    """Run every gate over a release, and hold its files against its manifest; or run the gates over a split."""
    from h2htalk.curation.release.check import check_release

    release = check_release(folder)
    _report(release)
    passed = "every other gate" if release.unchecked else "every gate"
    say(f"{passed} passed; {'release' if release.path else 'split'} {release.hash}")
    if release.unchecked:
        raise typer.Exit(3)


def release_diff(
    old: Annotated[str, typer.Argument(help="A release: a folder, or hub:OWNER/NAME@TAG.")],
    new: Annotated[str, typer.Argument(help="Another one.")],
) -> None:
    """List the items that were added, removed and changed between two releases, and why."""
    from h2htalk.curation.release.diff import diff_releases
    from h2htalk.data.releases.hub import release_folder
    from h2htalk.text.record_diff import format_diff

    say(format_diff(diff_releases(release_folder(old), release_folder(new))).rstrip("\n"))


def release_publish(
    folder: Annotated[Path, typer.Argument(help="A release's folder.")],
    repo: Annotated[str, typer.Argument(help="OWNER/NAME on the Hugging Face Hub.")],
    tag: Annotated[str | None, typer.Option(help="Default: v and the release's version.")] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Others may see it; the default creates and accepts private ones only.")
    ] = False,
    message: Annotated[str | None, typer.Option(help="Message of the commit.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List files and sizes; send nothing.")] = False,
) -> None:
    """Publish a release on the Hub: one commit, verified and tagged. The same command continues an interrupted one."""
    from h2htalk.data.releases.hub import publish

    done = publish(folder, repo, private=not public, tag=tag, dry_run=dry_run, message=message)
    for name, size in done.files.items() if dry_run else ():
        say(f"{size:>14,}  {name}")
    size, commit = sum(done.files.values()), f"commit {done.commit}" if done.commit else "nothing was sent"
    say(f"hub:{done.repo}@{done.tag}: {len(done.files):,} files, {size:,} bytes, {commit}")
    for note in done.notes:
        say(note)


def release_pull(
    name: Annotated[str, typer.Argument(help="hub:OWNER/NAME@TAG.")],
    out: OutOption,
) -> None:
    """Copy a release of the Hub into a new folder, and check every file against its hash."""
    from h2htalk.data.releases.hub import pull

    release = pull(name, out)
    say(f"{release} (commit {release.commit}): {out.resolve()}")
