"""Commands of releases: build, read, check, compare, publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option

from h2htalk.cli import options
from h2htalk.cli.output import say
from h2htalk.curation.release.read_settings import ReadReleaseSpec, ReleaseRiskSpec

with options.lazy_imports():
    from h2htalk.curation import released
    from h2htalk.curation.release import build, content, read_release, report
    from h2htalk.curation.release import release_risk as risks
    from h2htalk.data.releases import hub
    from h2htalk.text import help_lines, record_diff

DryBuild = Annotated[
    bool, Option("--dry-run", help="Choose the items and run every gate; write nothing.")
]
EachFinding = Annotated[
    bool, Option("--all", help="List every finding, not the first 20 of each gate.")
]
ReleaseName = Annotated[str, Argument(help="A release: a folder, or hub:OWNER/NAME@TAG.")]


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
