"""Releases on the Hugging Face Hub: `hub:OWNER/NAME@TAG#PART` as verified files in the client's cache or a folder.

A release is published as one commit, compared with the folder, then tagged. `HfApi.upload_folder` may make several.
"""

from __future__ import annotations

import glob
import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from traceback import walk_tb
from typing import Any

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, constants, errors
from huggingface_hub.utils import _http

from h2htalk.data.bounded.hub_replies import BOUNDS, bound_replies
from h2htalk.data.erasure.folder_kinds import (
    read_erased,
    remove_for_good,
    require_published_erased,
    require_published_tested,
)
from h2htalk.data.files import refuse_links, require_new_folder, write_problem, writing
from h2htalk.data.links import add_link
from h2htalk.data.releases import release_folder as releases
from h2htalk.errors import (
    ConfigError,
    DataError,
    HubError,
    PublishError,
    counted,
    listed,
    quoted,
    shorten,
    suggest,
)
from h2htalk.interrupts import leaves_after_ctrl_c
from h2htalk.masking import hold_key, mask_held
from h2htalk.version import __version__

DATASET = "dataset"
NAME = re.compile(r"hub:([\w-][\w.-]*/[\w-][\w.-]*)(?:@(\w[\w.-]*))?(?:#(.*))?", re.ASCII)
COMMIT = re.compile("[0-9a-f]{40}")
_HEADER = re.compile(r"\s*---\r?\n.*?\r?\n---\s*", re.DOTALL)  # of a card
ATTRIBUTES = ".gitattributes"  # which files are LFS objects: the Hub's own
TOKEN = "HF_TOKEN"
XET = "HF_HUB_DISABLE_XET"
TOKENS_PAGE = "https://huggingface.co/settings/tokens"
TIMEOUT = 120.0  # seconds of silence in a connection: a commit of many files takes the Hub a minute
AGAIN = "run the same command again"
_ADVICE = {
    401: f"{TOKEN} is refused: it is expired, revoked or mistyped; make a new token at {TOKENS_PAGE}",
    404: f"it is not there, or is private and {TOKEN} cannot see it; check the name and the token",
    412: f"somebody else changed it meanwhile; {AGAIN}",
    429: f"wait some minutes and {AGAIN}",
}
_ADVICE |= dict.fromkeys(
    (403, 413), f"check that {TOKEN} may write there, and the storage that its owner has left"
)
_HTTP_ERROR: type[Exception] = errors.HfHubHTTPError.__bases__[
    0
]  # of httpx or httpx2, by the client's version


def hub_api(write_to: str = "") -> HfApi:
    """The client, whose requests time out, with HF_TOKEN alone: a token of `hf auth login` is not used.

    `write_to`: what it must be able to write to. Raises ConfigError where it has no token for that.
    """
    token = read_token()
    if token is None and write_to:
        raise ConfigError(
            f"{TOKEN} is not set: make a token with write access to {write_to}"
            f" at {TOKENS_PAGE}, then export {TOKEN}=..."
        )
    bound_session()
    for handler in logging.getLogger(
        "huggingface_hub"
    ).handlers:  # it logs what servers say in headers
        handler.addFilter(_mask_record)
    return HfApi(token=token or False, library_name="h2htalk", library_version=__version__)


def bound_session() -> None:
    """Bound the replies of the client's session, and of those that it opens in its place after errors."""
    global _bounded_factory
    # A user's own, or the client's: it has no public name.
    factory = getattr(_http, "_GLOBAL_CLIENT_FACTORY", None)
    if factory is None:  # of a version that keeps it elsewhere
        _bound_client(huggingface_hub.get_session())
    elif factory is not _bounded_factory:

        def open_bounded() -> Any:
            return _bound_client(factory())

        _bounded_factory = open_bounded
        huggingface_hub.set_client_factory(open_bounded)


_bounded_factory: Callable[[], Any] | None = None


def _bound_client(client: Any) -> Any:
    client.timeout = TIMEOUT
    return bound_replies(client)


class _WithoutXet:
    """Keeps the client from Xet, which moves files by another program with neither bounds nor time limits of ours.

    HF_HUB_DISABLE_XET in the environment, 0 or 1, decides instead. Others in this process keep what they had after it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._users:
                self._before = constants.HF_HUB_DISABLE_XET
                if not os.environ.get(XET, "").strip():
                    constants.HF_HUB_DISABLE_XET = True
            self._users += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                constants.HF_HUB_DISABLE_XET = self._before


_WITHOUT_XET = _WithoutXet()


def _mask_record(record: logging.LogRecord) -> bool:
    record.msg = mask_held(record.getMessage())
    record.args = ()
    return True


def read_token() -> str | None:
    """The token in HF_TOKEN; None without one. Raises ConfigError, which does not show it, where it is no token."""
    token = os.environ.get(TOKEN, "").strip()
    # The HTTP client would show the whole header in its error.
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(
            f"{TOKEN} holds a character that no token has; copy it again from {TOKENS_PAGE}"
        )
    hold_key(token)
    return token or None


def one_line(text: object, limit: int = 300) -> str:
    """A text of others as one line, without the token and not longer than `limit`."""
    return shorten(" ".join(str(text).split()), limit)


@contextmanager
def hub_errors(repo: str) -> Iterator[None]:
    """Turn the client's errors into a HubError that says what happened to `repo` and what to do."""
    BOUNDS.begin()
    try:
        with leaves_after_ctrl_c(f"stopping; {AGAIN} to continue"), _WITHOUT_XET:
            yield
    except HubError as error:
        raise (
            error if str(error).startswith(f"{repo}: ") else HubError(f"{repo}: {error}")
        ) from error
    except (_HTTP_ERROR, OSError, ValueError, KeyError, RuntimeError) as error:
        cause: BaseException = error
        # The client wraps the error of an upload, and that of loading a file that is not in the cache.
        while (
            isinstance(cause, RuntimeError | errors.LocalEntryNotFoundError)
            and cause.__cause__ is not None
        ):
            cause = cause.__cause__
        raise HubError(f"{repo}: {_describe(cause, repo)}") from error
    except Exception as error:
        # The client reads what a server sends as if it were well formed, and fails in many ways where it is not: the
        # user reads what it said. An error of this package is a bug, and is shown with its traceback.
        if not _raised_in_client(error):
            raise
        raise HubError(
            f"{repo}: {_not_a_hub(f'{type(error).__name__}: {one_line(error, 100)}')}"
        ) from error


def _not_a_hub(what: str) -> str:
    return f"{constants.ENDPOINT} sent something else than a Hub does ({what}); check HF_ENDPOINT"


def _raised_in_client(error: BaseException) -> bool:
    """Whether the client, or what it called, raised an error; its hooks that are this package's apart."""
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    ours = modules[-1].partition(".")[0] == __name__.partition(".")[0]
    return not ours and any(name.partition(".")[0] == "huggingface_hub" for name in modules)


def _texts(values: Iterable[object], what: str) -> set[str]:
    """What a server sent, which must be texts. Raises HubError."""
    checked = set[str]()
    for value in values:
        if not isinstance(value, str):
            raise HubError(_not_a_hub(f"{what}: {one_line(repr(value), 40)}"))
        checked.add(value)
    return checked


def _commits(refs: Iterable[Any]) -> dict[str, str]:
    """The commits of branches or tags by name. Raises HubError."""
    commits = {}
    for ref in refs:
        _texts((ref.name, ref.target_commit), "a branch or tag")
        commits[ref.name] = ref.target_commit
    return commits


def _describe(error: BaseException, repo: str) -> str:
    if (
        isinstance(error, errors.OfflineModeIsEnabled | errors.LocalEntryNotFoundError)
        and constants.HF_HUB_OFFLINE
    ):
        return "not in the cache, and HF_HUB_OFFLINE forbids to load it; unset it and run the command once"
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        advice = _ADVICE.get(status, f"{AGAIN} later" if status >= 500 else "the Hub refuses")
        if isinstance(error, errors.GatedRepoError):
            advice = f"accept the conditions at {_page_of(repo)} and set {TOKEN} to a token of that account"
        elif status == 401 and read_token() is None:
            advice = _ADVICE[404]  # to an account that it knows, the Hub answers 404
        return f"{one_line(error.server_message or 'refused', 160)} ({status}): {advice}"
    if (
        isinstance(error, OSError) and error.errno is not None
    ):  # the client wraps those of connections
        return write_problem(error)
    if isinstance(error, ValueError) and not isinstance(
        error, JSONDecodeError
    ):  # refused metadata or uploads
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
    match = NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            f"{quoted(name)} is not of the form hub:OWNER/NAME@TAG or hub:OWNER/NAME@TAG#PART"
        )
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
        print(
            f"{name}: without a network it is not known whether items were erased later",
            file=sys.stderr,
        )
        return frozenset()
    # The client falls back to its cache where the network fails in between.
    if main and folder.name != main:
        raise HubError(f"{name}: the list of erased items changed while it was loaded; {AGAIN}")
    return frozenset(read_erased(folder / releases.TOMBSTONES))


def _find_commit(name: str, repo: str, tag: str) -> tuple[str, str]:
    """The commit of a tag, and that of `main`. Raises ConfigError, which names the tags, and HubError."""
    with hub_errors(repo):
        refs = hub_api().list_repo_refs(repo, repo_type=DATASET)
        tags = _commits(refs.tags)
        branches = _commits(refs.branches)
    commit = tags.get(tag, tag)
    if COMMIT.fullmatch(commit):
        return commit, branches.get("main", "")
    wrong = f"there is no tag {tag}".rstrip()
    if tag in branches:
        wrong = f"{tag} is a branch, which changes"
    choices = "the repository has no tag, so nothing was released"
    if tags:
        choices = f"choose from {', '.join(tags)}"
    raise ConfigError(f"{name}: {wrong}; {suggest(tag, tags)}{choices}")


def _download_files(repo: str, revision: str, names: list[str]) -> Path:
    """Load those files of a data set that it has; return the folder of their commit. Raises HubError.

    The client compares sizes when it loads. A file whose hash differs from the Hub's is removed from the cache.
    """
    patterns = [glob.escape(name) for name in names]
    with hub_errors(repo):
        api = hub_api()
        folder = Path(
            api.snapshot_download(
                repo, repo_type=DATASET, revision=revision, allow_patterns=patterns
            )
        )
        if constants.HF_HUB_OFFLINE or not folder.is_dir():
            return folder
        report = api.verify_repo_checksums(repo, repo_type=DATASET, revision=folder.name)
        wrong = [mismatch["path"] for mismatch in report.mismatches]
        for name in wrong:
            (folder / name).resolve().unlink()
    if wrong:
        raise HubError(
            f"{repo}: {listed(wrong)}: not what the Hub has; removed from the cache: {AGAIN}"
        )
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
        print(
            f"{name}: {number}: pull the newest, or evaluate on {name}, which leaves them out",
            file=sys.stderr,
        )
    return release


def cache_folder(repo: str) -> Path:
    """The folder of a data set in the client's cache."""
    return Path(constants.HF_HUB_CACHE, f"datasets--{repo.replace('/', '--')}")


def delete_cached(repo: str) -> list[Path]:
    """Remove what clients keep of a data set on this machine: downloads, and rows of `datasets`; return the folders."""
    folder = cache_folder(repo)
    downloads = [folder] if folder.is_dir() else []
    remove_for_good(folder)
    return [*downloads, *delete_rows(repo)]


def delete_rows(name: str) -> list[Path]:
    """Remove what `datasets` keeps of the rows of a data set, or of a folder of that name; return the folders."""
    home = Path(os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets")
    key = re.sub("[/_]", "", name).lower()
    # OWNER/MyData is OWNER___my_data there, the folder MyData my_data.
    removed = []
    for folder in home.glob("*"):
        if folder.is_dir() and folder.name.replace("_", "").lower() == key:
            removed.append(folder)
    for folder in removed:
        remove_for_good(folder)
    return removed


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
    tag: str = "",
    dry_run: bool = False,
    message: str = "",
) -> Publication:
    """Publish a release to `OWNER/NAME`, made where it is missing; the same call continues one that was interrupted.

    `private` makes a new repository private, and refuses one that others can read. `tag`: by default `v` and the
    release's version. Raises DataError, ConfigError before anything is sent, PublishError, HubError.
    """
    manifest = releases.read_manifest(folder)
    refuse_links(folder)
    releases.verify_files(folder, manifest)
    require_published_erased(folder)
    require_published_tested(folder)
    tag = tag or f"v{manifest.version}"
    name = NAME.fullmatch(f"hub:{repo}@{tag}")
    if name is None or name[2] != tag or tag == "main" or COMMIT.fullmatch(tag):
        raise ConfigError(
            f"{quoted(f'{repo}@{tag}')} must be OWNER/NAME and a tag such as v1.0 (--tag)"
        )
    sizes = {
        name: (folder / name).stat().st_size
        for name in (releases.MANIFEST, *sorted(manifest.files))
    }
    names = sizes.keys()
    if dry_run:
        return Publication(repo, tag, sizes)
    api = hub_api(repo.partition("/")[0])
    with hub_errors(repo):  # each step finds what an interrupted call has done before
        api.create_repo(repo, repo_type=DATASET, private=private, exist_ok=True)
        about = api.repo_info(repo, repo_type=DATASET, timeout=TIMEOUT)
        tags = _commits(api.list_repo_refs(repo, repo_type=DATASET).tags)
        commit = tags.get(tag) or str(about.sha)
        changed = _changed_files(api, repo, commit, folder, names)
        if tag in tags and changed:
            raise PublishError(
                f"{repo}: the tag {tag} exists on another release (commit {commit[:12]}); "
                "raise the version of this one, or name another tag with --tag"
            )
        if tag not in tags and private and not about.private:
            raise PublishError(
                f"{repo} is public: the release would be visible at once; add --public to agree"
            )
        if changed:
            _require_release(api, repo, commit)
        # First the link: an erasure after a kill knows of the commit.
        private_folder = releases.private_folder(folder)
        if private_folder.is_dir():
            add_link(private_folder, "hub", f"hub:{repo}@{tag}")
        if changed:
            operations: list[Any] = []
            for file_name in sorted(changed - names):
                operations.append(CommitOperationDelete(file_name))
            for file_name in sorted(changed & names):
                operations.append(CommitOperationAdd(file_name, folder / file_name))
            message = message or f"{manifest.name} {manifest.version}"
            new_commit = api.create_commit(
                repo, operations, commit_message=message, repo_type=DATASET, parent_commit=commit
            )
            commit = str(new_commit.oid)
            if _changed_files(api, repo, commit, folder, names):
                raise PublishError(
                    f"{repo}: commit {commit[:12]} is not what was sent, and is not tagged; {AGAIN}"
                )
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
    listing = api.list_repo_files(repo, repo_type=DATASET, revision=commit)
    names = _texts(listing, "the name of a file") - {ATTRIBUTES}
    if not names:
        return
    folder = _download_files(repo, commit, [releases.MANIFEST, releases.CARD])
    card = (
        (folder / releases.CARD).read_text("utf-8", "replace")
        if names == {releases.CARD}
        else "# A card"
    )
    if not _HEADER.sub("", card, 1).strip():
        return
    try:
        releases.read_manifest(folder)
    except DataError:
        files = listed(sorted(names))
        raise PublishError(
            f"{repo} holds files that are no release ({files}); publish to another one"
        ) from None


def _changed_files(api: HfApi, repo: str, commit: str, folder: Path, names: Set[str]) -> set[str]:
    """The files that a commit has more, or otherwise, than the folder's version, or that it lacks."""
    report = api.verify_repo_checksums(repo, repo_type=DATASET, revision=commit, local_dir=folder)
    differing = list(report.missing_paths)
    differing += [mismatch["path"] for mismatch in report.mismatches]
    changed = _texts(differing, "the name of a file") - {ATTRIBUTES}
    return changed | (names & set(report.extra_paths))


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file for a model's repository; return the address of the new pull request. Raises H2HTalkError."""
    api = hub_api(f"pull requests of {model}")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        return str(
            api.create_commit(model, operations, commit_message=message, create_pr=True).pr_url
        )
