"""Releases on the Hugging Face Hub: `hub:OWNER/NAME@TAG#PART` as verified files in the client's cache or a folder."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import constants
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

from h2htalk.data.erasure.filter_files import remove_for_good
from h2htalk.data.files import write_problem
from h2htalk.data.links import HUB
from h2htalk.data.releases.erasure import work_folder
from h2htalk.data.releases.hub_client import hub_api, hub_errors, read_token, set_timeouts
from h2htalk.data.releases.release_folder import (
    MANIFEST,
    TOMBSTONES,
    Manifest,
    changed_files,
    read_manifest,
    read_tombstones,
)
from h2htalk.errors import ConfigError, DataError, HubError, counted, quoted, suggest

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
        return HubRelease(repo, tag, _download_file(repo, MANIFEST, tag).parent.name, part)
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

    The client compares sizes; here `release.json` is held against the hash in its commit, and every other file against
    the hash in `release.json`. A file that differs is removed from the cache and loaded again by the next call.
    Raises HubError.
    """
    path = _download_file(release.repo, MANIFEST, release.commit, cache)
    _require_hash(path, release)
    manifest = read_manifest(path.parent)
    # By its tag: the client then remembers the commit, for use without a network.
    folder = download_files(release.repo, release.tag, [MANIFEST, *manifest.files], cache)
    if folder.name != release.commit:
        raise HubError(f"{release}: the tag was moved while it was loaded; run the same command again")
    if wrong := changed_files(folder, manifest):
        for name in wrong:
            _remove_cached(folder / name)
        raise HubError(
            f"{release}: {', '.join(wrong[:3])}: not the content that release.json records, removed from the cache; "
            "run the same command again; if it happens again, the Hub holds damaged files"
        )
    return folder, manifest


def download_files(repo: str, revision: str, names: list[str], cache: str | None) -> Path:
    """Load those files of a data set that it has; return their folder. Raises HubError."""
    patterns = [glob.escape(name) for name in names]
    with hub_errors(repo):
        folder = hub_api().snapshot_download(
            repo, repo_type=DATASET, revision=revision, allow_patterns=patterns, cache_dir=cache
        )
    return Path(folder)


def _download_file(repo: str, name: str, revision: str, cache: str | None = None) -> Path:
    """Load a file; return its path in the folder of its commit. Raises HubError."""
    with hub_errors(repo):
        return Path(hub_api().hf_hub_download(repo, name, repo_type=DATASET, revision=revision, cache_dir=cache))


def release_folder(name: str) -> Path:
    """The folder of a release: the one named, or the files of `hub:OWNER/NAME@TAG` in the client's cache."""
    return download(resolve(name))[0] if name.startswith(HUB) else Path(name)


def git_hash(content: bytes) -> str:
    """The name that git gives to a file's content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _require_hash(path: Path, release: HubRelease) -> None:
    """Hold a file of the cache against the hash that its commit has for it, which is its name there."""
    content = path.read_bytes()
    # Where the system has no symbolic links, files have their own names.
    if path.resolve().name not in (path.name, git_hash(content), hashlib.sha256(content).hexdigest()):
        _remove_cached(path)
        raise HubError(
            f"{release}: {path.name}: not the content that its commit records, removed from the cache; run the same "
            "command again"
        )


def _remove_cached(path: Path) -> None:
    path.resolve().unlink(missing_ok=True)
    path.unlink(missing_ok=True)


def erased_later(release: HubRelease) -> frozenset[str]:
    """The ids of items that the newest version of a release lists as erased.

    Without a network they are those of the last time; where there was none, that is said on standard error.
    """
    if release.main == release.commit:
        return frozenset()  # its own tombstones are read with it
    try:
        path = _download_file(release.repo, TOMBSTONES, "main")
    except HubError as error:
        not_cached = isinstance(error.__cause__, LocalEntryNotFoundError)
        if not_cached and constants.HF_HUB_OFFLINE:
            print(f"{release}: without a network it is not known whether items were erased later", file=sys.stderr)
        elif not_cached or not isinstance(error.__cause__, EntryNotFoundError):
            raise
        return frozenset()
    # The client falls back to its cache where the network fails in between.
    if release.main and path.parent.name != release.main:
        raise HubError(f"{release}: the list of erased items changed while it was loaded; run the same command again")
    _require_hash(path, release)
    return read_tombstones(path)


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
