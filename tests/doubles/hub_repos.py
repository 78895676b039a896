"""What the Hub's double stores: repositories with commits that are whole trees, branches, tags and pull requests."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

# As the real Hub's first commit of a data set has it; what it names is stored as LFS objects.
GITATTRIBUTES = "".join(
    f"*.{ending} filter=lfs diff=lfs merge=lfs -text\n" for ending in ("parquet", "arrow", "bin", "png", "zip")
)
LFS_ENDINGS = tuple(line.split(" ")[0][1:] for line in GITATTRIBUTES.splitlines())
_NUMBERS = itertools.count(1)


class Refused(Exception):
    """A request that the server refuses: a status, a message, an error code, further headers and answers."""

    def __init__(
        self, status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None, **body: Any
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.body = status, message, body
        self.headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {}), **(headers or {})}


@dataclass(frozen=True)
class Blob:
    """A file's content in a tree; an LFS file's tree entry is a pointer to it."""

    content: bytes
    lfs: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def oid(self) -> str:
        """What the client compares to see a change: SHA-256 of an LFS object, git's SHA-1 of another file."""
        return self.sha256 if self.lfs else git_hash(self.content)

    @property
    def pointer(self) -> bytes:
        lines = ("version https://git-lfs.github.com/spec/v1", f"oid sha256:{self.sha256}", f"size {len(self.content)}")
        return ("\n".join(lines) + "\n").encode()

    def entry(self, path: str) -> dict[str, Any]:
        """The file in an answer that lists a tree."""
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(self.content)}
        if not self.lfs:
            return entry | {"oid": git_hash(self.content)}
        lfs = {"oid": self.sha256, "size": len(self.content), "pointerSize": len(self.pointer)}
        return entry | {"oid": git_hash(self.pointer), "lfs": lfs}


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Commit:
    """A commit: a whole tree."""

    sha: str
    parent: str | None
    message: str
    tree: Mapping[str, Blob]


@dataclass
class Repo:
    """A repository of one type (`model` or `dataset`), with all its commits."""

    type: str
    name: str
    private: bool = False
    gated: bool | str = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        first = {".gitattributes": Blob(GITATTRIBUTES.encode())}
        self.branches["main"] = self.store("initial commit", first, None)

    @property
    def owner(self) -> str:
        return self.name.split("/")[0]

    @property
    def head(self) -> Commit:
        return self.commits[self.branches["main"]]

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """The content of a revision's files."""
        return {path: blob.content for path, blob in self.find(revision).tree.items()}

    def store(self, message: str, tree: Mapping[str, Blob], parent: str | None) -> str:
        listed = "".join(f"{path} {blob.oid}\n" for path, blob in sorted(tree.items()))
        sha = hashlib.sha1(f"{next(_NUMBERS)} {parent} {message}\n{listed}".encode()).hexdigest()
        self.commits[sha] = Commit(sha, parent, message, dict(tree))
        return sha

    def write(self, files: Mapping[str, bytes], message: str = "by hand") -> str:
        """A commit on main that replaces some files, as somebody would make it on the Hub's pages."""
        tree = dict(self.head.tree)
        tree |= {path: Blob(content, path.endswith(LFS_ENDINGS)) for path, content in files.items()}
        self.branches["main"] = self.store(message, tree, self.head.sha)
        return self.branches["main"]

    def find(self, revision: str) -> Commit:
        """The commit of a branch, tag, pull request or (shortened) commit id."""
        for refs in (self.branches, self.tags, self.pulls):
            if revision in refs:
                return self.commits[refs[revision]]
        found = [commit for sha, commit in self.commits.items() if len(revision) >= 7 and sha.startswith(revision)]
        if not found:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return found[0]

    def blob(self, revision: str, path: str) -> tuple[Commit, Blob]:
        commit = self.find(revision)
        if path not in commit.tree:
            raise Refused(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": commit.sha})
        return commit, commit.tree[path]

    def apply(
        self, revision: str, operations: Sequence[Mapping[str, Any]], stored: Mapping[str, bytes], pr: bool
    ) -> Commit:
        """Make a commit of its operations, all or none; `stored` are the LFS objects.

        A pull request starts its own reference; the branch stays.
        """
        header, *changes = operations
        head = self.find(revision)
        expected = header["value"].get("parentCommit")
        if expected and not head.sha.startswith(expected):
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        tree = dict(head.tree)
        for change in changes:
            _apply(tree, change["key"], change["value"], stored)
        sha = self.store(header["value"]["summary"], tree, head.sha)
        if pr:
            self.pulls[f"refs/pr/{len(self.pulls) + 1}"] = sha
        elif revision in self.pulls:
            self.pulls[revision] = sha
        else:
            self.branches[revision] = sha
        return self.commits[sha]


def _apply(tree: dict[str, Blob], kind: str, value: Mapping[str, Any], stored: Mapping[str, bytes]) -> None:
    path = value["path"]
    if kind == "file":
        tree[path] = Blob(base64.b64decode(value["content"]))
    elif kind == "lfsFile":
        if value["oid"] not in stored:
            raise Refused(
                400, f"Your push was rejected because an LFS pointer pointed to a file that does not exist: {path}"
            )
        tree[path] = Blob(stored[value["oid"]], lfs=True)
    elif kind == "deletedFile":
        if path not in tree:
            raise Refused(404, "A file with this name doesn't exist", "EntryNotFound")
        del tree[path]
    else:
        raise Refused(400, f"unknown operation {kind}")
