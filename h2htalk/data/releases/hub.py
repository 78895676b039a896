"""Releases on the Hugging Face Hub: `hub:OWNER/NAME@TAG#PART` as verified files in the client's cache or a folder.

The client comes first, with timeouts (its own requests have none), the token of the environment, and errors in one
line. Then loading, the caches, and publishing: one commit, read back, then a tag on that commit. `HfApi.upload_folder`
divides a commit that the Hub refused into several, and the main branch would hold half a release: `create_commit` makes
one or none.
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from json import JSONDecodeError
from pathlib import Path
from types import FrameType
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, errors

from h2htalk.data.erasure.filter_files import remove_for_good
from h2htalk.data.erasure.folder_kinds import require_published_erased
from h2htalk.data.files import write_problem
from h2htalk.data.links import add_link
from h2htalk.data.releases.erasure import work_folder
from h2htalk.data.releases.release_folder import (
    CARD,
    HUB,
    MANIFEST,
    TOMBSTONES,
    Manifest,
    changed_files,
    is_release,
    private_folder,
    read_manifest,
    read_tombstones,
    release_hash,
    verify_files,
)
from h2htalk.data.responses import masked
from h2htalk.errors import ConfigError, DataError, HubError, PublishError, counted, listed, quoted, shorten, suggest
from h2htalk.version import __version__

DATASET = "dataset"
NAME = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?:@(\w[\w.-]*))?(?:#(.*))?", re.ASCII)
COMMIT = re.compile("[0-9a-f]{40}")
ATTRIBUTES = ".gitattributes"  # which files are LFS objects: the Hub's own
_HEADER = re.compile(r"\s*---\r?\n.*?\r?\n---\s*", re.DOTALL)
TOKEN = "HF_TOKEN"
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
# Seconds until a connection stands, and of silence in one: a commit of many files takes the Hub a minute.
TIMEOUTS = {"connect": 10.0, "read": 120.0, "write": 120.0, "pool": 10.0}
LONGEST_STOP = 5.0  # seconds after Ctrl-C
AGAIN = "run the same command again"
_ADVICE = {
    401: f"{TOKEN} is refused: it is expired, revoked or mistyped; make a new token at {TOKENS_PAGE}",
    403: f"check that {TOKEN} may write there, and the storage that its owner has left",
    404: f"it is not there, or is private and {TOKEN} cannot see it; check the name and the token",
    409: "it exists already; choose another name",
    412: f"somebody else changed it meanwhile; {AGAIN}",
    413: "check the storage that its owner has left",
    429: f"wait some minutes and {AGAIN}",
}
# Of httpx or httpx2, by the client's version.
_HTTP_ERROR: type[Exception] = errors.HfHubHTTPError.__bases__[0]


def hub_api() -> HfApi:
    """The client, with HF_TOKEN alone: a token stored by `hf auth login` is not used. Raises ConfigError."""
    set_timeouts()
    return HfApi(token=read_token() or False, library_name="h2htalk", library_version=__version__)


def set_timeouts() -> None:
    """Give every request of the client's session a timeout, and mask the token in the client's log."""
    session = huggingface_hub.get_session()  # of the caller's making, where it has a factory: for a proxy, say
    hooks = session.event_hooks
    if _set_timeout not in hooks["request"]:
        session.event_hooks = {**hooks, "request": [*hooks["request"], _set_timeout]}
    for handler in logging.getLogger("huggingface_hub").handlers:  # it logs what servers say in headers
        handler.addFilter(_mask_record)


def _set_timeout(request: Any) -> None:
    asked = {key: value for key, value in request.extensions.get("timeout", {}).items() if value is not None}
    request.extensions["timeout"] = TIMEOUTS | asked  # some requests ask for none


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


def require_token(use: str) -> None:
    """Raise ConfigError where HF_TOKEN is not set."""
    if read_token() is None:
        raise ConfigError(f"{TOKEN} is not set: make a token {use}at {TOKENS_PAGE}, then export {TOKEN}=...")


def page_of(repo: str) -> str:
    """The address of a data set's page."""
    return f"{constants.ENDPOINT}/datasets/{repo}"


def one_line(text: object, limit: int = 300) -> str:
    """A text of others as one line, without the token and not longer than `limit`."""
    return shorten(masked(" ".join(str(text).split()), read_token()), limit)


@contextmanager
def _stopped_by_ctrl_c() -> Iterator[None]:
    """End a process some seconds after Ctrl-C where the client's threads still wait for the network; no notebook's."""
    ended = threading.Timer(LONGEST_STOP, os._exit, (130,))
    ended.daemon = True

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ended.start()
        signal.default_int_handler(number, frame)

    here = threading.current_thread() is threading.main_thread() and not hasattr(sys, "ps1")
    if ours := here and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        ended.cancel()
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Turn the client's errors into a HubError that says what happened to `repo` and what to do."""
    try:
        with _stopped_by_ctrl_c():
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
        said = error.response.headers.get("X-Error-Message") or error.server_message
        advice = _ADVICE.get(status, f"{AGAIN} later" if status >= 500 else "the Hub refuses")
        if isinstance(error, errors.GatedRepoError):
            advice = f"accept the conditions at {page_of(repo)} and set {TOKEN} to a token of that account"
        elif status == 401 and read_token() is None:
            advice = _ADVICE[404]  # to an account that it knows, the Hub answers 404
        return f"{one_line(said or 'refused', 160)} ({status}): {advice}"
    if isinstance(error, JSONDecodeError | KeyError):
        return f"{constants.ENDPOINT} does not answer as the Hub does; check HF_ENDPOINT and the network"
    if isinstance(error, OSError) and error.errno is not None:  # not of a connection, whose errors the client wraps
        return write_problem(error)
    if isinstance(error, ValueError):  # refused metadata or uploads
        return one_line(error)
    return f"{constants.ENDPOINT} failed: {one_line(error) or type(error).__name__}; check the network and {AGAIN}"


# --- Releases ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HubRelease:
    """A release on the Hub: the tag (or commit) that was asked, its commit then; `main` is the newest one, or empty."""

    repo: str
    tag: str
    commit: str
    part: str = ""
    main: str = ""

    def __str__(self) -> str:
        return f"hub:{self.repo}@{self.tag}" + (f"#{self.part}" if self.part else "")


def resolve(name: str) -> HubRelease:
    """Find the commit of `hub:OWNER/NAME@TAG` (or `@COMMIT`); with HF_HUB_OFFLINE, the one that was loaded last.

    Raises ConfigError, which lists the tags, for a name without a release, and HubError.
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
    """Load those files of a data set that it has; return the folder of their commit. Raises HubError.

    The client compares sizes when it loads. A file whose hash differs from the Hub's is removed from the cache.
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
    """The ids of items that the newest version of a release lists as erased; without a network, those last read."""
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
    """Copy a release of the Hub into a new or empty folder, verified, as it was published. Raises H2HTalkError."""
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
    folder: Path,
    repo: str,
    *,
    private: bool = True,
    tag: str | None = None,
    dry_run: bool = False,
    message: str | None = None,
) -> Publication:
    """Publish a release to `OWNER/NAME`, made where it is missing; the same call continues one that was interrupted.

    Args:
        private: refuse to publish where others can read it; a new repository is created private.
        tag: default: `v` and the release's version.

    Raises:
        DataError, ConfigError: the folder is no release, or is changed; no token, or a name that the Hub would refuse.
        PublishError, HubError: the repository holds something else, or the Hub refuses, loses something or is away.
    """
    manifest = read_manifest(folder)
    verify_files(folder, manifest)
    require_published_erased(folder)
    tag = tag or f"v{manifest.version}"
    name = NAME.fullmatch(f"hub:{repo}@{tag}")
    if name is None or name[2] != tag or tag == "main" or COMMIT.fullmatch(tag):
        raise ConfigError(f"{quoted(f'{repo}@{tag}')} must be OWNER/NAME and a tag such as v1.0 (--tag)")
    planned = Publication(repo, tag, {name: _size(folder, name) for name in (MANIFEST, *sorted(manifest.files))})
    if dry_run:
        return planned
    require_token(f"with write access to {repo.partition('/')[0]} ")
    with work_folder(folder) as work:
        return _send(hub_api(), folder, planned, private, message or f"{manifest.name} {manifest.version}", str(work))


def _size(folder: Path, name: str) -> int:
    path = folder / name
    if path.resolve() != folder.resolve() / name or ".private/" in f"{name}/":
        raise DataError(f"{path}: is private, or leads out of the release by a symbolic link; build the release again")
    return path.stat().st_size


def _send(api: HfApi, folder: Path, planned: Publication, private: bool, message: str, work: str) -> Publication:
    """Take the steps of which each finds what an interrupted call has done before; `work` is a cache of its own."""
    repo, tag, names = planned.repo, planned.tag, planned.files.keys()
    with hub_errors(repo):
        api.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
        about = api.repo_info(repo, repo_type=DATASET)
        tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, repo_type=DATASET).tags}
        commit = tags.get(tag) or str(about.sha)
        found = api.verify_repo_checksums(repo, repo_type=DATASET, revision=commit, local_dir=folder)
    # What the commit has and the folder has not, in this version; then what the folder's version has alone.
    changed = {*found.missing_paths, *(one["path"] for one in found.mismatches)} - {ATTRIBUTES}
    changed |= names & found.extra_paths
    notes = [] if about.private else [f"everybody can read {page_of(repo)}"]
    if about.private and not private:
        notes = [f"{repo} stays private; change that on {page_of(repo)}/settings"]
    if tag in tags and changed:
        raise PublishError(
            f"{repo}: the tag {tag} exists on another release (commit {commit[:12]}); raise the version of this one, "
            "or name another tag with --tag"
        )
    if tag not in tags and private and not about.private:
        raise PublishError(f"{repo} is public: the release would be visible at once; add --public to agree")
    if changed:
        _require_release(api, repo, commit, work)
    if (own := private_folder(folder)).is_dir():  # first: an erasure after a kill knows of the commit
        add_link(own, "hub", f"hub:{repo}@{tag}")
    if tag in tags:
        return replace(planned, commit=commit, notes=(f"already published as {tag}", *notes))
    if changed:
        operations: list[Any] = [CommitOperationDelete(name) for name in sorted(changed - names)]
        operations += [CommitOperationAdd(name, folder / name) for name in sorted(changed & names)]
        with hub_errors(repo):
            commit = api.create_commit(
                repo, operations, commit_message=message, repo_type=DATASET, parent_commit=commit
            ).oid
    stored, _ = download(HubRelease(repo, commit, commit), work)  # read back, not taken from the user's cache
    if release_hash(stored) != release_hash(folder):
        raise PublishError(f"{repo}: commit {commit[:12]} is not what was sent, and is not tagged; {AGAIN}")
    with hub_errors(repo):
        api.create_tag(repo, tag=tag, revision=commit, repo_type=DATASET)
    return replace(planned, commit=commit, notes=tuple(notes))


def _require_release(api: HfApi, repo: str, commit: str, work: str) -> None:
    """Refuse to replace something that is no release; a card without text under its header may be replaced."""
    with hub_errors(repo):
        names = {*api.list_repo_files(repo, repo_type=DATASET, revision=commit)} - {ATTRIBUTES}
    folder = download_files(repo, commit, [MANIFEST, CARD], work)
    if not names or (names == {CARD} and not _HEADER.sub("", (folder / CARD).read_text("utf-8", "replace"), 1).strip()):
        return
    try:
        read_manifest(folder)
    except DataError:
        raise PublishError(
            f"{repo} holds files that are no release ({listed(sorted(names))}); publish to a repository of its own"
        ) from None


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file for a model's repository; return the address of the new pull request. Raises H2HTalkError."""
    require_token("")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        done = hub_api().create_commit(model, operations, commit_message=message, create_pr=True)
    return str(done.pr_url)
