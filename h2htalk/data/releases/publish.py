"""Publish a release on the Hugging Face Hub: one commit, read back, then a tag on that commit.

Files are given to the client as streams. It then uploads them by Git LFS, the same with and without hf-xet: with our
timeouts, with retries, and checked by the Hub against their SHA-256. Given as paths they would go through hf-xet where
that is installed, from which the client does not fall back. A release is some megabytes: xet would save little.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError
from huggingface_hub.hf_api import RepoFile

from h2htalk.data.erasure.folder_kinds import require_published_erased
from h2htalk.data.links import add_link
from h2htalk.data.releases.erasure import work_folder
from h2htalk.data.releases.hub import COMMIT, DATASET, NAME, HubRelease, download, download_files, git_hash
from h2htalk.data.releases.hub_client import hub_api, hub_errors, page_of, require_token
from h2htalk.data.releases.release_folder import CARD, MANIFEST, private_folder, read_manifest, verify_files
from h2htalk.errors import ConfigError, DataError, HubError, PublishError, counted, quoted

ATTRIBUTES = ".gitattributes"  # which files are LFS objects: the Hub's own
_HEADER = re.compile(r"\s*---\r?\n.*?\r?\n---\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Publication:
    """A release on the Hub, or with `dry_run` what would be sent: `files` by name; no commit yet.

    `notes`: what the user should know: that it was there already, or what others can see.
    """

    repo: str
    tag: str
    files: Mapping[str, bytes]
    commit: str = ""
    notes: tuple[str, ...] = ()

    def differences(self, tree: Mapping[str, RepoFile]) -> set[str]:
        """What a commit must add, change or remove so that the tree has exactly these files."""
        same = {name for name, content in self.files.items() if name in tree and _is_stored(content, tree[name])}
        return (self.files.keys() | tree.keys()) - same


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
    planned = Publication(repo, tag, {name: _read_file(folder, name) for name in (MANIFEST, *sorted(manifest.files))})
    if dry_run:
        return planned
    require_token(f"with write access to {repo.partition('/')[0]} ")
    with work_folder(folder) as work:
        publisher = _Publisher(hub_api(), planned, private, folder, work)
        return publisher.publish(message or f"{manifest.name} {manifest.version}")


def _read_file(folder: Path, name: str) -> bytes:
    path = folder / name
    if path.resolve() != folder.resolve() / name or ".private/" in f"{name}/":
        raise DataError(f"{path}: is private, or leads out of the release by a symbolic link; build the release again")
    return path.read_bytes()


def _is_stored(content: bytes, remote: RepoFile) -> bool:
    lfs = remote.lfs
    return lfs.sha256 == hashlib.sha256(content).hexdigest() if lfs else remote.blob_id == git_hash(content)


@dataclass(frozen=True, slots=True)
class _Publisher:
    """The steps, each of which finds what an interrupted call has done before."""

    api: HfApi
    planned: Publication
    private: bool
    folder: Path
    work: Path

    @property
    def repo(self) -> str:
        return self.planned.repo

    def publish(self, message: str) -> Publication:
        tag, about = self.planned.tag, self._open_repo()
        notes = [] if about.private else [f"everybody can read {page_of(self.repo)}"]
        if about.private and not self.private:
            notes = [f"{self.repo} stays private; change that on {page_of(self.repo)}/settings"]
        if tagged := self._tagged():
            if self.planned.differences(self._tree(tagged)):
                raise PublishError(
                    f"{self.repo}: the tag {tag} exists on another release (commit {tagged[:12]}); raise the version "
                    "of this one, or name another tag with --tag"
                )
            self._link()
            return replace(self.planned, commit=tagged, notes=(f"already published as {tag}", *notes))
        if not about.private and self.private:
            raise PublishError(f"{self.repo} is public: the release would be visible at once; add --public to agree")
        tree, commit = self._tree(about.sha), about.sha
        changed = self.planned.differences(tree)
        if changed:
            self._require_release(commit, tree)
        self._link()  # first: an erasure after a kill knows of the commit
        if changed:
            commit = self._commit(changed, commit, message)
        download(HubRelease(self.repo, commit, commit), str(self.work))  # read back, not taken from the user's cache
        with self._sending(lambda: self._tagged() is not None):
            self.api.create_tag(self.repo, tag=tag, revision=commit, repo_type=DATASET)
        if (tagged := self._tagged()) != commit:
            raise PublishError(f"{self.repo}: somebody else set the tag {tag} meanwhile (commit {str(tagged)[:12]})")
        return replace(self.planned, commit=commit, notes=tuple(notes))

    def _link(self) -> None:
        if (own := private_folder(self.folder)).is_dir():
            add_link(own, "hub", f"hub:{self.repo}@{self.planned.tag}")

    @contextmanager
    def _sending(self, is_done: Callable[[], bool]) -> Iterator[None]:
        """Send a change. Where that fails, the repository tells whether the change was made and its answer lost."""
        try:
            with hub_errors(self.repo):
                yield
        except HubError:
            with suppress(HubError):  # the first error tells what happened
                if is_done():
                    return
            raise

    def _open_repo(self) -> Any:
        """The repository's facts; it is created where there is none."""
        with hub_errors(self.repo):
            try:
                return self.api.repo_info(self.repo, repo_type=DATASET)
            except GatedRepoError:
                raise
            except RepositoryNotFoundError:
                self.api.create_repo(self.repo, repo_type=DATASET, private=self.private)
            return self.api.repo_info(self.repo, repo_type=DATASET)

    def _tagged(self) -> str | None:
        """The commit that has the tag."""
        with hub_errors(self.repo):
            refs = self.api.list_repo_refs(self.repo, repo_type=DATASET)
        return next((ref.target_commit for ref in refs.tags if ref.name == self.planned.tag), None)

    def _tree(self, commit: str) -> dict[str, RepoFile]:
        """The files of a commit by name, without those of the Hub itself."""
        from huggingface_hub.hf_api import RepoFile

        with hub_errors(self.repo):
            listed = self.api.list_repo_tree(self.repo, recursive=True, revision=commit, repo_type=DATASET)
            return {one.path: one for one in listed if isinstance(one, RepoFile) and one.path != ATTRIBUTES}

    def _require_release(self, commit: str, tree: Mapping[str, RepoFile]) -> None:
        """Refuse to replace something that is no release; a card without text under its header may be replaced."""
        if not tree:
            return
        folder = download_files(self.repo, commit, [MANIFEST, CARD], str(self.work))
        if set(tree) == {CARD} and not _HEADER.sub("", (folder / CARD).read_text("utf-8", "replace"), 1).strip():
            return
        try:
            read_manifest(folder)
        except DataError:
            raise PublishError(
                f"{self.repo} holds {counted(len(tree), 'file')} that are no release "
                f"({', '.join(sorted(tree)[:3])}); publish to a repository of its own"
            ) from None

    def _commit(self, changed: set[str], head: str, message: str) -> str:
        """Make the one commit, and compare its tree."""
        # It warns that streams do not go through hf-xet.
        logging.getLogger("huggingface_hub._commit_api").setLevel(logging.ERROR)
        files = self.planned.files
        operations: list[Any] = [CommitOperationDelete(name) for name in sorted(changed - files.keys())]
        operations += [CommitOperationAdd(name, BytesIO(files[name])) for name in sorted(changed & files.keys())]
        with self._sending(lambda: not self._newest()[1]):
            self.api.create_commit(self.repo, operations, commit_message=message, repo_type=DATASET, parent_commit=head)
        commit, wrong = self._newest()
        if wrong:
            raise PublishError(
                f"{self.repo}: commit {commit[:12]} differs from what was sent ({', '.join(sorted(wrong)[:3])}) and is "
                "not tagged; run the same command again"
            )
        return commit

    def _newest(self) -> tuple[str, set[str]]:
        """The newest commit, and how it differs from what is to be published."""
        with hub_errors(self.repo):
            commit = str(self.api.repo_info(self.repo, repo_type=DATASET).sha)
        return commit, self.planned.differences(self._tree(commit))


def open_pull_request(model: str, name: str, file: Path, message: str) -> str:
    """Propose a file under a name for a model's repository; return the address of the pull request.

    Each call opens another one. Raises ConfigError without a token, HubError.
    """
    require_token("")
    with hub_errors(model):
        operations = [CommitOperationAdd(name, file.read_bytes())]
        done = hub_api().create_commit(model, operations, commit_message=message, create_pr=True)
    return str(done.pr_url)
