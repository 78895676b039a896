"""Publish a release on the Hugging Face Hub: one commit, read back, then a tag on that commit.

`HfApi.upload_folder` divides a commit that the Hub refused into several, and the main branch would hold half a release:
`create_commit` makes one or none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

from h2htalk.data.erasure.folder_kinds import require_published_erased
from h2htalk.data.links import add_link
from h2htalk.data.releases.erasure import work_folder
from h2htalk.data.releases.hub import COMMIT, DATASET, NAME, HubRelease, download, download_files
from h2htalk.data.releases.hub_client import AGAIN, hub_api, hub_errors, page_of, require_token
from h2htalk.data.releases.release_folder import (
    CARD,
    MANIFEST,
    private_folder,
    read_manifest,
    release_hash,
    verify_files,
)
from h2htalk.errors import ConfigError, DataError, PublishError, listed, quoted

ATTRIBUTES = ".gitattributes"  # which files are LFS objects: the Hub's own
_HEADER = re.compile(r"\s*---\r?\n.*?\r?\n---\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Publication:
    """A release on the Hub, or with `dry_run` what would be sent: bytes of files by name; no commit yet.

    `notes`: what the user should know: that it was there already, or what others can see.
    """

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
    """Publish a release; the same call continues one that was interrupted.

    Args:
        folder: the release, whose files are held against its `release.json`.
        repo: `OWNER/NAME`; created where there is none.
        private: refuse to publish where others can read it; a new repository is created private.
        tag: default: `v` and the release's version.
        dry_run: send nothing.

    Raises:
        DataError, ConfigError: the folder is no release, or is changed; no token, or a name that the Hub would refuse.
        PublishError: the tag exists, the repository holds something else, or what the Hub stored is not what was sent.
        HubError: the Hub cannot be reached, or refuses.
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
    """Propose a file under a name for a model's repository; return the address of the pull request.

    Each call opens another one. Raises ConfigError without a token, HubError.
    """
    require_token("")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        done = hub_api().create_commit(model, operations, commit_message=message, create_pr=True)
    return str(done.pr_url)
