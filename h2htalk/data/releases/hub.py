"""Releases on the Hugging Face Hub: `hub:OWNER/NAME@TAG#PART` as verified files in the client's cache or a folder.

A release is published as one commit, compared with the folder, then tagged. `HfApi.upload_folder` may make several.
"""

from __future__ import annotations

import glob
import logging
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from types import FrameType
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, errors

from h2htalk.data.erasure.folder_kinds import read_erased, remove_for_good, require_published_erased
from h2htalk.data.files import masked, refuse_links, require_new_folder, write_problem, writing
from h2htalk.data.links import add_link
from h2htalk.data.releases import release_folder as releases
from h2htalk.errors import ConfigError, DataError, HubError, PublishError, counted, listed, quoted, shorten, suggest
from h2htalk.version import __version__

DATASET = "dataset"
NAME = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?:@(\w[\w.-]*))?(?:#(.*))?", re.ASCII)
COMMIT = re.compile("[0-9a-f]{40}")
_HEADER = re.compile(r"\s*---\r?\n.*?\r?\n---\s*", re.DOTALL)  # of a card
ATTRIBUTES = ".gitattributes"  # which files are LFS objects: the Hub's own
TOKEN = "HF_TOKEN"
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
TIMEOUT = 120.0  # seconds of silence in a connection: a commit of many files takes the Hub a minute
LONGEST_STOP = 5.0  # seconds after Ctrl-C
AGAIN = "run the same command again"
_ADVICE = {
    401: f"{TOKEN} is refused: it is expired, revoked or mistyped; make a new token at {TOKENS_PAGE}",
    404: f"it is not there, or is private and {TOKEN} cannot see it; check the name and the token",
    412: f"somebody else changed it meanwhile; {AGAIN}",
    429: f"wait some minutes and {AGAIN}",
}
_ADVICE |= dict.fromkeys((403, 413), f"check that {TOKEN} may write there, and the storage that its owner has left")
_HTTP_ERROR: type[Exception] = errors.HfHubHTTPError.__bases__[0]  # of httpx or httpx2, by the client's version


def hub_api(write_to: str = "") -> HfApi:
    """The client, whose requests time out, with HF_TOKEN alone: a token of `hf auth login` is not used.

    `write_to`: what it must be able to write to. Raises ConfigError where it has no token for that.
    """
    if (token := read_token()) is None and write_to:
        needed = f"make a token with write access to {write_to}"
        raise ConfigError(f"{TOKEN} is not set: {needed} at {TOKENS_PAGE}, then export {TOKEN}=...")
    huggingface_hub.get_session().timeout = TIMEOUT
    for handler in logging.getLogger("huggingface_hub").handlers:  # it logs what servers say in headers
        handler.addFilter(_mask_record)
    return HfApi(token=token or False, library_name="h2htalk", library_version=__version__)


def _mask_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = masked(record.getMessage(), os.environ.get(TOKEN)), ()
    return True


def read_token() -> str | None:
    """The token in HF_TOKEN; None without one. Raises ConfigError, which does not show it, where it is no token."""
    token = os.environ.get(TOKEN, "").strip()
    # The HTTP client would show the whole header in its error.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"{TOKEN} holds a character that no token has; copy it again from {TOKENS_PAGE}")
    return token or None


def one_line(text: object, limit: int = 300) -> str:
    """A text of others as one line, without the token and not longer than `limit`."""
    return shorten(masked(" ".join(str(text).split()), read_token()), limit)


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """End a process, but no notebook, some seconds after Ctrl-C: the client waits for threads that hang."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        os.write(2, f"stopping; {AGAIN} to continue\n".encode())  # print may be what it interrupts
        timer.start()
        raise KeyboardInterrupt

    timer = threading.Timer(LONGEST_STOP, os._exit, (130,))
    main = threading.current_thread() is threading.main_thread() and not hasattr(sys, "ps1")
    if ours := main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        timer.cancel()
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Turn the client's errors into a HubError that says what happened to `repo` and what to do."""
    try:
        with _ended_by_ctrl_c():
            yield
    except (_HTTP_ERROR, OSError, ValueError, KeyError, RuntimeError) as error:
        cause: BaseException = error
        # The client wraps the error of an upload, and that of loading a file that is not in the cache.
        while isinstance(cause, RuntimeError | errors.LocalEntryNotFoundError) and cause.__cause__ is not None:
            cause = cause.__cause__
        raise HubError(masked(f"{repo}: {_describe(cause, repo)}", read_token())) from error


def _describe(error: BaseException, repo: str) -> str:
    if isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError) and constants.HF_HUB_OFFLINE:
        return "not in the cache, and HF_HUB_OFFLINE forbids to load it; unset it and run the command once"
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        advice = _ADVICE.get(status, f"{AGAIN} later" if status >= 500 else "the Hub refuses")
        if isinstance(error, errors.GatedRepoError):
            advice = f"accept the conditions at {_page_of(repo)} and set {TOKEN} to a token of that account"
        elif status == 401 and read_token() is None:
            advice = _ADVICE[404]  # to an account that it knows, the Hub answers 404
        return f"{one_line(error.server_message or 'refused', 160)} ({status}): {advice}"
    if isinstance(error, OSError) and error.errno is not None:  # the client wraps those of connections
        return write_problem(error)
    if isinstance(error, ValueError) and not isinstance(error, JSONDecodeError):  # refused metadata or uploads
        return one_line(error)
    failed = f"{constants.ENDPOINT} failed: {one_line(error) or type(error).__name__}"
    return f"{failed}; check HF_ENDPOINT and the network, and {AGAIN}"


def _page_of(repo: str) -> str:
    return f"{constants.ENDPOINT}/datasets/{repo}"


# --- Releases ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HubRelease:
    """A release on the Hub: its commit, the `part` that was asked for, the `folder` with its files.

    `erased`: the ids of items that the newest version lists as erased; without a network, those that were read last.
    """

    part: str
    commit: str
    folder: Path
    manifest: releases.Manifest
    erased: frozenset[str]


def load_release(name: str) -> HubRelease:
    """Load `hub:OWNER/NAME@TAG` (or `@COMMIT`) into the client's cache; with HF_HUB_OFFLINE, what was loaded last.

    Each file is held against its hash in the commit, and against the one in `release.json`. Raises H2HTalkError.
    """
    if (match := NAME.fullmatch(name)) is None:
        raise ConfigError(f"{quoted(name)} is not of the form hub:OWNER/NAME@TAG or hub:OWNER/NAME@TAG#PART")
    repo, tag, part = (group or "" for group in match.groups())
    commit, main = (tag, "") if constants.HF_HUB_OFFLINE and tag else _find_commit(name, repo, tag)
    first = _download_files(repo, commit, [releases.MANIFEST])
    if not releases.is_release(first):
        raise HubError(f"{name}: {releases.MANIFEST} is missing there, so it is no release")
    manifest = releases.read_manifest(first)
    # By its tag: the client then remembers the commit, for use without a network.
    folder = _download_files(repo, tag, [releases.MANIFEST, *manifest.files])
    if folder != first:
        raise HubError(f"{name}: the tag was moved while it was loaded; {AGAIN}")
    releases.verify_files(folder, manifest)
    # The newest version's own list is read with it.
    erased = frozenset[str]() if main == folder.name else _read_later_erasures(name, repo, main)
    return HubRelease(part, folder.name, folder, manifest, erased)


def _read_later_erasures(name: str, repo: str, main: str) -> frozenset[str]:
    try:
        folder = _download_files(repo, "main", [releases.MANIFEST, releases.TOMBSTONES])
    except HubError:
        if not constants.HF_HUB_OFFLINE:
            raise
        print(f"{name}: without a network it is not known whether items were erased later", file=sys.stderr)
        return frozenset()
    # The client falls back to its cache where the network fails in between.
    if main and folder.name != main:
        raise HubError(f"{name}: the list of erased items changed while it was loaded; {AGAIN}")
    return frozenset(read_erased(folder / releases.TOMBSTONES))


def _find_commit(name: str, repo: str, tag: str) -> tuple[str, str]:
    """The commit of a tag, and that of `main`. Raises ConfigError, which names the tags, and HubError."""
    with hub_errors(repo):
        refs = hub_api().list_repo_refs(repo, repo_type=DATASET)
    tags, branches = ({ref.name: ref.target_commit for ref in of} for of in (refs.tags, refs.branches))
    if not COMMIT.fullmatch(commit := tags.get(tag, tag)):
        wrong = f"{tag} is a branch, which changes" if tag in branches else f"there is no tag {tag}".rstrip()
        known = f"choose from {', '.join(tags)}" if tags else "the repository has no tag, so nothing was released"
        raise ConfigError(f"{name}: {wrong}; {suggest(tag, tags)}{known}")
    return commit, branches.get("main", "")


def _download_files(repo: str, revision: str, names: list[str]) -> Path:
    """Load those files of a data set that it has; return the folder of their commit. Raises HubError.

    The client compares sizes when it loads. A file whose hash differs from the Hub's is removed from the cache.
    """
    patterns = [glob.escape(name) for name in names]
    with hub_errors(repo):
        api = hub_api()
        folder = Path(api.snapshot_download(repo, repo_type=DATASET, revision=revision, allow_patterns=patterns))
        if constants.HF_HUB_OFFLINE or not folder.is_dir():
            return folder
        found = api.verify_repo_checksums(repo, repo_type=DATASET, revision=folder.name)
        wrong = [one["path"] for one in found.mismatches]
        for name in wrong:
            (folder / name).resolve().unlink()
    if wrong:
        raise HubError(f"{repo}: {listed(wrong)}: not what the Hub has; removed from the cache: {AGAIN}")
    return folder


def release_folder(name: str) -> Path:
    """The folder of a release: the one named, or the files of `hub:OWNER/NAME@TAG` in the client's cache."""
    return load_release(name).folder if name.startswith(releases.HUB) else Path(name)


def pull(name: str, out: Path) -> HubRelease:
    """Copy a release of the Hub into a new or empty folder, verified and whole. Raises H2HTalkError."""
    require_new_folder(out)
    if "#" in name:
        raise ConfigError(f"{name}: a release is copied whole; leave out #{name.partition('#')[2]}")
    release = load_release(name)
    with writing(out), releases.work_folders(out) as (copy, _):
        for path in (releases.MANIFEST, *release.manifest.files):
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(release.folder / path, copy / path)
        os.replace(copy, out.resolve())
    if release.erased:
        number = f"the newest version lists {counted(len(release.erased), 'item')} as erased; this copy may hold them"
        print(f"{name}: {number}: pull the newest, or evaluate on {name}, which leaves them out", file=sys.stderr)
    return release


def cache_folder(repo: str) -> Path:
    """The folder of a data set in the client's cache."""
    return Path(constants.HF_HUB_CACHE, f"datasets--{repo.replace('/', '--')}")


def delete_cached(repo: str) -> list[Path]:
    """Remove what clients keep of a data set on this machine: downloads, and rows of `datasets`; return the folders."""
    downloads = [folder] if (folder := cache_folder(repo)).is_dir() else []
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


# --- Publish ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Publication:
    """A release on the Hub, or with `dry_run` what would be sent: bytes of files by name; no commit yet."""

    repo: str
    tag: str
    files: Mapping[str, int]
    commit: str = ""
    notes: tuple[str, ...] = ()


def publish(
    folder: Path, repo: str, *, private: bool = True, tag: str = "", dry_run: bool = False, message: str = ""
) -> Publication:
    """Publish a release to `OWNER/NAME`, made where it is missing; the same call continues one that was interrupted.

    `private` makes a new repository private, and refuses one that others can read. `tag`: by default `v` and the
    release's version. Raises DataError, ConfigError before anything is sent, PublishError, HubError.
    """
    manifest = releases.read_manifest(folder)
    refuse_links(folder)
    releases.verify_files(folder, manifest)
    require_published_erased(folder)
    tag = tag or f"v{manifest.version}"
    name = NAME.fullmatch(f"hub:{repo}@{tag}")
    if name is None or name[2] != tag or tag == "main" or COMMIT.fullmatch(tag):
        raise ConfigError(f"{quoted(f'{repo}@{tag}')} must be OWNER/NAME and a tag such as v1.0 (--tag)")
    sizes = {name: (folder / name).stat().st_size for name in (releases.MANIFEST, *sorted(manifest.files))}
    names = sizes.keys()
    if dry_run:
        return Publication(repo, tag, sizes)
    api = hub_api(repo.partition("/")[0])
    with hub_errors(repo):  # each step finds what an interrupted call has done before
        api.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
        about = api.repo_info(repo, repo_type=DATASET, timeout=TIMEOUT)
        tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, repo_type=DATASET).tags}
        changed = _changed_files(api, repo, commit := tags.get(tag) or str(about.sha), folder, names)
        if tag in tags and changed:
            advice = "raise the version of this one, or name another tag with --tag"
            raise PublishError(f"{repo}: the tag {tag} exists on another release (commit {commit[:12]}); {advice}")
        if tag not in tags and private and not about.private:
            raise PublishError(f"{repo} is public: the release would be visible at once; add --public to agree")
        if changed:
            _require_release(api, repo, commit)
        if (own := releases.private_folder(folder)).is_dir():  # first: an erasure after a kill knows of the commit
            add_link(own, "hub", f"hub:{repo}@{tag}")
        if changed:
            operations: list[Any] = [CommitOperationDelete(name) for name in sorted(changed - names)]
            operations += [CommitOperationAdd(name, folder / name) for name in sorted(changed & names)]
            message = message or f"{manifest.name} {manifest.version}"
            made = api.create_commit(repo, operations, commit_message=message, repo_type=DATASET, parent_commit=commit)
            commit = made.oid
            if _changed_files(api, repo, commit, folder, names):
                raise PublishError(f"{repo}: commit {commit[:12]} is not what was sent, and is not tagged; {AGAIN}")
        if tag not in tags:
            api.create_tag(repo, tag=tag, revision=commit, repo_type=DATASET)
    notes = [f"already published as {tag}"] if tag in tags else []
    if not about.private:
        notes.append(f"everybody can read {_page_of(repo)}")
    elif not private:
        notes.append(f"{repo} stays private; change that on {_page_of(repo)}/settings")
    return Publication(repo, tag, sizes, commit, tuple(notes))


def _require_release(api: HfApi, repo: str, commit: str) -> None:
    """Refuse to replace something that is no release; a card without text under its header may be replaced."""
    if not (names := {*api.list_repo_files(repo, repo_type=DATASET, revision=commit)} - {ATTRIBUTES}):
        return
    folder = _download_files(repo, commit, [releases.MANIFEST, releases.CARD])
    card = (folder / releases.CARD).read_text("utf-8", "replace") if names == {releases.CARD} else "# A card"
    if not _HEADER.sub("", card, 1).strip():
        return
    try:
        releases.read_manifest(folder)
    except DataError:
        files = listed(sorted(names))
        raise PublishError(f"{repo} holds files that are no release ({files}); publish to another one") from None


def _changed_files(api: HfApi, repo: str, commit: str, folder: Path, names: Set[str]) -> set[str]:
    """The files that a commit has more, or otherwise, than the folder's version, or that it lacks."""
    found = api.verify_repo_checksums(repo, repo_type=DATASET, revision=commit, local_dir=folder)
    there = {*found.missing_paths, *(one["path"] for one in found.mismatches)} - {ATTRIBUTES}
    return there | (names & {*found.extra_paths})


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file for a model's repository; return the address of the new pull request. Raises H2HTalkError."""
    api = hub_api(f"pull requests of {model}")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        return str(api.create_commit(model, operations, commit_message=message, create_pr=True).pr_url)
