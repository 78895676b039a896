"""Releases on the Hugging Face Hub: `hub:OWNER/NAME@TAG#PART` as verified files in the client's cache or a folder.

A release is published as one commit, compared with the folder, then tagged. `HfApi.upload_folder` may divide its commit
into several, and the main branch would hold half a release: `create_commit` makes one or none.
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
from dataclasses import dataclass, replace
from json import JSONDecodeError
from pathlib import Path
from types import FrameType
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, errors

from h2htalk.data.erasure.erased_ids import remove_for_good
from h2htalk.data.erasure.folder_kinds import require_published_erased
from h2htalk.data.files import refuse_links, require_new_folder, write_problem
from h2htalk.data.links import add_link
from h2htalk.data.releases.erasure import work_folder
from h2htalk.data.releases.release_folder import (
    CARD,
    HUB,
    MANIFEST,
    TOMBSTONES,
    Manifest,
    is_release,
    private_folder,
    read_manifest,
    read_tombstones,
    verify_files,
)
from h2htalk.data.responses import masked
from h2htalk.errors import ConfigError, DataError, HubError, PublishError, counted, listed, quoted, shorten, suggest
from h2htalk.version import __version__

DATASET = "dataset"
NAME = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?:@(\w[\w.-]*))?(?:#(.*))?", re.ASCII)
COMMIT = re.compile("[0-9a-f]{40}")
_HEADER = re.compile(r"\s*---\r?\n.*?\r?\n---\s*", re.DOTALL)  # of a card
ATTRIBUTES = ".gitattributes"  # which files are LFS objects: the Hub's own
TOKEN = "HF_TOKEN"
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
# Seconds until a connection stands, and of silence in one: a commit of many files takes the Hub a minute.
TIMEOUTS = {"connect": 10.0, "read": 120.0, "write": 120.0, "pool": 10.0}
LONGEST_STOP = 5.0  # seconds after Ctrl-C
AGAIN = "run the same command again"
_STORAGE = f"check that {TOKEN} may write there, and the storage that its owner has left"
_ADVICE = {
    401: f"{TOKEN} is refused: it is expired, revoked or mistyped; make a new token at {TOKENS_PAGE}",
    403: _STORAGE,
    404: f"it is not there, or is private and {TOKEN} cannot see it; check the name and the token",
    412: f"somebody else changed it meanwhile; {AGAIN}",
    413: _STORAGE,
    429: f"wait some minutes and {AGAIN}",
}
_HTTP_ERROR: type[Exception] = errors.HfHubHTTPError.__bases__[0]  # of httpx or httpx2, by the client's version


def hub_api(write_to: str = "") -> HfApi:
    """The client, with HF_TOKEN alone: a token stored by `hf auth login` is not used; needed to write."""
    set_timeouts()
    if (token := read_token()) is None and write_to:
        needed = f"make a token with write access to {write_to}"
        raise ConfigError(f"{TOKEN} is not set: {needed} at {TOKENS_PAGE}, then export {TOKEN}=...")
    return HfApi(token=token or False, library_name="h2htalk", library_version=__version__)


def set_timeouts() -> None:
    """Give every request of the client's session a timeout, and mask the token in the client's log."""
    session = huggingface_hub.get_session()  # of the caller's making, where it has a factory: for a proxy, say
    if _set_timeout not in (hooks := session.event_hooks)["request"]:
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
        said = error.response.headers.get("X-Error-Message") or error.server_message or "refused"
        advice = _ADVICE.get(status, f"{AGAIN} later" if status >= 500 else "the Hub refuses")
        if isinstance(error, errors.GatedRepoError):
            advice = f"accept the conditions at {_page_of(repo)} and set {TOKEN} to a token of that account"
        elif status == 401 and read_token() is None:
            advice = _ADVICE[404]  # to an account that it knows, the Hub answers 404
        return f"{one_line(said, 160)} ({status}): {advice}"
    if isinstance(error, JSONDecodeError | KeyError):
        return f"{constants.ENDPOINT} does not answer as the Hub does; check HF_ENDPOINT and the network"
    if isinstance(error, OSError) and error.errno is not None:  # not of a connection, whose errors the client wraps
        return write_problem(error)
    if isinstance(error, ValueError):  # refused metadata or uploads
        return one_line(error)
    return f"{constants.ENDPOINT} failed: {one_line(error) or type(error).__name__}; check the network and {AGAIN}"


def _page_of(repo: str) -> str:
    return f"{constants.ENDPOINT}/datasets/{repo}"


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
        return f"hub:{self.repo}@{self.tag}#{self.part}".rstrip("#")


def resolve(name: str) -> HubRelease:
    """Find the commit of `hub:OWNER/NAME@TAG` (or `@COMMIT`); with HF_HUB_OFFLINE, the one that was loaded last."""
    if (match := NAME.fullmatch(name)) is None:
        raise ConfigError(f"{quoted(name)} is not of the form hub:OWNER/NAME@TAG or hub:OWNER/NAME@TAG#PART")
    repo, tag, part = (group or "" for group in match.groups())
    if constants.HF_HUB_OFFLINE and tag:
        return HubRelease(repo, tag, _download_files(repo, tag, [MANIFEST]).name, part)
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


def download(release: HubRelease) -> tuple[Path, Manifest]:
    """Load a release's files into the client's cache; return their folder and the manifest.

    Each file is held against its hash in the commit, and against the one in `release.json`. Raises HubError, DataError.
    """
    folder = _download_files(release.repo, release.commit, [MANIFEST])
    if not is_release(folder):
        raise HubError(f"{release}: {MANIFEST} is missing there, so it is no release")
    manifest = read_manifest(folder)
    # By its tag: the client then remembers the commit, for use without a network.
    folder = _download_files(release.repo, release.tag, [MANIFEST, *manifest.files])
    if folder.name != release.commit:
        raise HubError(f"{release}: the tag was moved while it was loaded; {AGAIN}")
    verify_files(folder, manifest)
    return folder, manifest


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
    return download(resolve(name))[0] if name.startswith(HUB) else Path(name)


def erased_later(release: HubRelease) -> frozenset[str]:
    """The ids of items that the newest version of a release lists as erased; without a network, those last read."""
    if release.main == release.commit:
        return frozenset()  # its own tombstones are read with it
    try:
        folder = _download_files(release.repo, "main", [MANIFEST, TOMBSTONES])
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
    """Copy a release of the Hub into a new or empty folder, verified and whole. Raises H2HTalkError."""
    require_new_folder(out)
    if (release := resolve(name)).part:
        raise ConfigError(f"{name}: a release is copied whole; leave out #{release.part}")
    folder, manifest = download(release)
    erased = erased_later(release)
    try:
        with work_folder(out) as copy:
            for path in (MANIFEST, *manifest.files):  # release.json first: an erasure knows by it what a kill left
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(folder / path, copy / path)
            os.replace(copy, out.resolve())
    except OSError as error:
        raise DataError(f"{out}: {write_problem(error)}") from error
    if erased:
        number = f"the newest version lists {counted(len(erased), 'item')} as erased; this copy may hold them"
        print(f"{release}: {number}: pull the newest, or evaluate on {release}, which leaves them out", file=sys.stderr)
    return release


def delete_cached(repo: str) -> list[Path]:
    """Remove what clients keep of a data set on this machine: downloads, and rows of `datasets`; return the folders."""
    folder = cache_folder(repo)
    downloads = [folder] if folder.is_dir() else []
    remove_for_good(folder)
    return [*downloads, *delete_rows(repo)]


def cache_folder(repo: str) -> Path:
    """The folder of a data set in the client's cache."""
    return Path(constants.HF_HUB_CACHE) / f"datasets--{repo.replace('/', '--')}"


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

    `private` makes a new repository private, and refuses one that others can read. `tag`: by default `v` and the
    release's version. Raises DataError, ConfigError before anything is sent, PublishError, HubError.
    """
    manifest = read_manifest(folder)
    refuse_links(folder)
    verify_files(folder, manifest)
    require_published_erased(folder)
    tag = tag or f"v{manifest.version}"
    name = NAME.fullmatch(f"hub:{repo}@{tag}")
    if name is None or name[2] != tag or tag == "main" or COMMIT.fullmatch(tag):
        raise ConfigError(f"{quoted(f'{repo}@{tag}')} must be OWNER/NAME and a tag such as v1.0 (--tag)")
    names = (MANIFEST, *sorted(manifest.files))
    planned = Publication(repo, tag, {name: (folder / name).stat().st_size for name in names})
    if dry_run:
        return planned
    api = hub_api(repo.partition("/")[0])
    with hub_errors(repo):
        return _send(api, folder, planned, private, message or f"{manifest.name} {manifest.version}")


def _send(api: HfApi, folder: Path, planned: Publication, private: bool, message: str) -> Publication:
    """Take the steps of which each finds what an interrupted call has done before."""
    repo, tag, names = planned.repo, planned.tag, planned.files.keys()
    api.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
    about = api.repo_info(repo, repo_type=DATASET)
    tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, repo_type=DATASET).tags}
    changed = _changed_files(api, repo, commit := tags.get(tag) or str(about.sha), folder, names)
    notes = [] if about.private else [f"everybody can read {_page_of(repo)}"]
    if about.private and not private:
        notes = [f"{repo} stays private; change that on {_page_of(repo)}/settings"]
    if tag in tags and changed:
        raise PublishError(
            f"{repo}: the tag {tag} exists on another release (commit {commit[:12]}); raise the version of this one, "
            "or name another tag with --tag"
        )
    if tag not in tags and private and not about.private:
        raise PublishError(f"{repo} is public: the release would be visible at once; add --public to agree")
    if changed:
        _require_release(api, repo, commit)
    if (own := private_folder(folder)).is_dir():  # first: an erasure after a kill knows of the commit
        add_link(own, "hub", f"hub:{repo}@{tag}")
    if tag in tags:
        return replace(planned, commit=commit, notes=(f"already published as {tag}", *notes))
    if changed:
        operations: list[Any] = [CommitOperationDelete(name) for name in sorted(changed - names)]
        operations += [CommitOperationAdd(name, folder / name) for name in sorted(changed & names)]
        made = api.create_commit(repo, operations, commit_message=message, repo_type=DATASET, parent_commit=commit)
        commit = made.oid
        if _changed_files(api, repo, commit, folder, names):
            raise PublishError(f"{repo}: commit {commit[:12]} is not what was sent, and is not tagged; {AGAIN}")
    api.create_tag(repo, tag=tag, revision=commit, repo_type=DATASET)
    return replace(planned, commit=commit, notes=tuple(notes))


def _require_release(api: HfApi, repo: str, commit: str) -> None:
    """Refuse to replace something that is no release; a card without text under its header may be replaced."""
    if not (names := {*api.list_repo_files(repo, repo_type=DATASET, revision=commit)} - {ATTRIBUTES}):
        return
    folder = _download_files(repo, commit, [MANIFEST, CARD])
    if names == {CARD} and not _HEADER.sub("", (folder / CARD).read_text("utf-8", "replace"), 1).strip():
        return
    try:
        read_manifest(folder)
    except DataError:
        files = listed(sorted(names))
        raise PublishError(f"{repo} holds files that are no release ({files}); publish to another one") from None


def _changed_files(api: HfApi, repo: str, commit: str, folder: Path, names: Set[str]) -> set[str]:
    """The files that a commit has more, or otherwise, than the folder's version, or that it lacks."""
    found = api.verify_repo_checksums(repo, repo_type=DATASET, revision=commit, local_dir=folder)
    return ({*found.missing_paths, *(one["path"] for one in found.mismatches)} - {ATTRIBUTES}) | (
        names & {*found.extra_paths}
    )


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file for a model's repository; return the address of the new pull request. Raises H2HTalkError."""
    api = hub_api(f"pull requests of {model}")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        return str(api.create_commit(model, operations, commit_message=message, create_pr=True).pr_url)
