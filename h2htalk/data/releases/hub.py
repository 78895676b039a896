"""Releases on the Hugging Face Hub: `hub:OWNER/NAME@TAG#PART` as verified files in the client's cache or a folder."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants

from h2htalk.data.erasure.filter_files import remove_for_good
from h2htalk.data.files import write_problem
from h2htalk.data.links import HUB
from h2htalk.data.releases.erasure import work_folder
from h2htalk.data.releases.hub_client import AGAIN, hub_api, hub_errors, read_token, set_timeouts
from h2htalk.data.releases.release_folder import (
    MANIFEST,
    TOMBSTONES,
    Manifest,
    changed_files,
    is_release,
    read_manifest,
    read_tombstones,
)
from h2htalk.errors import ConfigError, DataError, HubError, counted, listed, quoted, suggest

DATASET = "dataset"
NAME = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?:@(\w[\w.-]*))?(?:#(.*))?", re.ASCII)
COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class HubRelease:
    """A release on the Hub: `OWNER/NAME`, the tag (or a commit) that was asked, its commit then, `#PART`.

    `main`: the newest commit; empty where the network was not asked.
    """

    repo: str
    tag: str
    commit: str
    part: str = ""
    main: str = ""

    def __str__(self) -> str:
        return f"hub:{self.repo}@{self.tag}" + (f"#{self.part}" if self.part else "")


def resolve(name: str) -> HubRelease:
    """Find the commit of `hub:OWNER/NAME@TAG` (or `@COMMIT`); with HF_HUB_OFFLINE, the one that was loaded last.

    Raises:
        ConfigError: the name is of another form, or names no tag of the repository; lists them.
        HubError: the Hub cannot be asked.
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise ConfigError(f"{quoted(name)} is not of the form hub:OWNER/NAME@TAG or hub:OWNER/NAME@TAG#PART")
    repo, tag, part = match[1], match[2] or "", match[3] or ""
    if constants.HF_HUB_OFFLINE:
        if not tag:
            raise ConfigError(f"{name}: name a tag: hub:{repo}@TAG")
        return HubRelease(repo, tag, download_files(repo, tag, [MANIFEST]).name, part)
    with hub_errors(repo):
        refs = hub_api().list_repo_refs(repo, repo_type=DATASET)
    tags = {ref.name: ref.target_commit for ref in refs.tags}
    branches = {ref.name: ref.target_commit for ref in refs.branches}
    commit = tags.get(tag, tag)
    if not COMMIT.fullmatch(commit):
        wrong = f"{tag} is a branch, which changes" if tag in branches else f"there is no tag {tag}".rstrip()
        known = f"choose from {', '.join(tags)}" if tags else "the repository has no tag, so nothing was released"
        raise ConfigError(f"{name}: {wrong}; {suggest(tag, tags)}{known}")
    return HubRelease(repo, tag, commit, part, branches.get("main", ""))


def cache_folder(repo: str) -> Path:
    """The folder of a data set in the client's cache."""
    return Path(constants.HF_HUB_CACHE) / f"datasets--{repo.replace('/', '--')}"


def download(release: HubRelease, cache: str | None = None) -> tuple[Path, Manifest]:
    """Load a release's files into the client's cache, or another one; return their folder and the manifest.

    Each file is held against its hash in the commit, and against the one in `release.json`. Raises HubError, DataError.
    """
    folder = download_files(release.repo, release.commit, [MANIFEST], cache)
    if not is_release(folder):
        raise HubError(f"{release}: {MANIFEST} is missing there, so it is no release")
    manifest = read_manifest(folder)
    # By its tag: the client then remembers the commit, for use without a network.
    folder = download_files(release.repo, release.tag, [MANIFEST, *manifest.files], cache)
    if folder.name != release.commit:
        raise HubError(f"{release}: the tag was moved while it was loaded; {AGAIN}")
    if wrong := changed_files(folder, manifest):
        raise HubError(f"{release}: {listed(wrong)}: not the content that {MANIFEST} records; publish it again")
    return folder, manifest


def download_files(repo: str, revision: str, names: list[str], cache: str | None = None) -> Path:
    """Load those files of a data set that it has; return the folder of their commit.

    The client compares sizes when it loads. A file whose hash differs from the Hub's is removed from the cache. Raises
    HubError.
    """
    patterns = [glob.escape(name) for name in names]
    with hub_errors(repo):
        api = hub_api()
        folder = Path(
            api.snapshot_download(repo, repo_type=DATASET, revision=revision, allow_patterns=patterns, cache_dir=cache)
        )
        if constants.HF_HUB_OFFLINE or not folder.is_dir():
            return folder
        found = api.verify_repo_checksums(repo, repo_type=DATASET, revision=folder.name, cache_dir=cache)
        wrong = [one["path"] for one in found.mismatches]
        for name in wrong:
            (folder / name).resolve().unlink()
    if wrong:
        raise HubError(f"{repo}: {listed(wrong)}: not what the Hub has; removed from the cache: {AGAIN}")
    return folder


def release_folder(name: str) -> Path:
    """The folder of a release: the one named, or the files of `hub:OWNER/NAME@TAG` in the client's cache."""
    return download(resolve(name))[0] if name.startswith(HUB) else Path(name)


def erased_later(release: HubRelease) -> frozenset[str]:
    """The ids of items that the newest version of a release lists as erased.

    Without a network they are those of the last time; where there was none, that is said on standard error.
    """
    if release.main == release.commit:
        return frozenset()  # its own tombstones are read with it
    try:
        folder = download_files(release.repo, "main", [MANIFEST, TOMBSTONES])
    except HubError:
        if not constants.HF_HUB_OFFLINE:
            raise
        print(f"{release}: without a network it is not known whether items were erased later", file=sys.stderr)
        return frozenset()
    # The client falls back to its cache where the network fails in between.
    if release.main and folder.name != release.main:
        raise HubError(f"{release}: the list of erased items changed while it was loaded; {AGAIN}")
    return read_tombstones(folder / TOMBSTONES)


def pull(name: str, out: Path) -> HubRelease:
    """Copy a release of the Hub into a new or empty folder, verified, exactly as it was published.

    Raises ConfigError, HubError, DataError.
    """
    if os.path.lexists(out) and (not os.path.isdir(out) or any(out.iterdir())):
        raise DataError(f"{out}: not an empty folder; name a new one")
    release = resolve(name)
    if release.part:
        raise ConfigError(f"{name}: a release is copied whole; leave out #{release.part}")
    folder, manifest = download(release)
    erased = erased_later(release)
    try:
        with work_folder(out) as copy:
            for path in (MANIFEST, *manifest.files):
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / path, copy / path)
            os.replace(copy, out)
    except OSError as error:
        raise DataError(f"{out}: {write_problem(error)}") from error
    if erased:
        listed = f"the newest version lists {counted(len(erased), 'item')} as erased; this copy may hold them"
        print(f"{release}: {listed}: pull the newest, or evaluate on {release}, which leaves them out", file=sys.stderr)
    return release


def delete_cached(repo: str) -> list[Path]:
    """Remove what clients keep of a data set on this machine: downloads, and rows of `datasets`; return the folders."""
    downloads = [folder for folder in (cache_folder(repo),) if folder.is_dir()]
    for folder in downloads:
        remove_for_good(folder)
    return [*downloads, *delete_rows(repo)]


def delete_rows(name: str) -> list[Path]:
    """Remove what `datasets` keeps of the rows of a data set, or of a folder of that name; return the folders."""
    home = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets")
    key = re.sub("[/_]", "", name).lower()
    # OWNER/MyData is OWNER___my_data there, the folder MyData my_data.
    rows = [one for one in home.glob("*") if one.is_dir() and one.name.replace("_", "").lower() == key]
    for folder in rows:
        remove_for_good(folder)
    return rows


def load_rows(repo: str, config: str | None, commit: str) -> Any:
    """Load any data set with `datasets`, with our timeouts and token; the caller describes its errors."""
    import datasets

    set_timeouts()
    return datasets.load_dataset(repo, config, revision=commit, token=read_token() or False)
