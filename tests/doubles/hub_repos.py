"""What the Hub's double stores: repositories with commits that are whole trees, branches, tags and pull requests."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

LFS_ENDINGS = (".parquet", ".arrow", ".bin", ".png", ".zip")  # of files that the Hub stores as LFS objects
_NUMBERS = itertools.count(1)


class Refused(Exception):
    """A request that the server refuses: a status, a message, an error code, further headers and answers."""

    def __init__(
        self, status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None, **body: Any
    ) -> None:
        super().__init__(message)
        self.status, self.body = status, body
        self.headers = {"X-Error-Message": message, **({"X-Error-Code": code} if code else {}), **(headers or {})}


@dataclass(frozen=True)
class Blob:
    """A file's content in a tree; an LFS file's tree entry is a pointer to it."""

    content: bytes
    lfs: bool = False

    @property
    def oid(self) -> str:
        """What the client compares to see a change: SHA-256 of an LFS object, git's SHA-1 of another file."""
        return hashlib.sha256(self.content).hexdigest() if self.lfs else git_hash(self.content)

    def entry(self, path: str) -> dict[str, Any]:
        """The file in an answer that lists a tree."""
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(self.content), "oid": self.oid}
        lfs = {"oid": self.oid, "size": len(self.content), "pointerSize": 134}
        return entry | {"oid": git_hash(self.oid.encode()), "lfs": lfs} if self.lfs else entry


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Commit:
    """A commit: a whole tree."""

    sha: str
    message: str
    tree: Mapping[str, Blob]


@dataclass
class Repo:
    """A repository with all its commits."""

    name: str
    private: bool = False
    gated: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    pulls: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = "".join(f"*{ending} filter=lfs diff=lfs merge=lfs -text\n" for ending in LFS_ENDINGS)
        self.branches["main"] = self.store("initial commit", {".gitattributes": Blob(lines.encode())})

    @property
    def owner(self) -> str:
        return self.name.split("/")[0]

    @property
    def head(self) -> Commit:
        return self.commits[self.branches["main"]]

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """The content of a revision's files."""
        return {path: blob.content for path, blob in self.find(revision).tree.items()}

    def store(self, message: str, tree: Mapping[str, Blob]) -> str:
        sha = hashlib.sha1(f"{next(_NUMBERS)} {message} {sorted(tree)}".encode()).hexdigest()
        self.commits[sha] = Commit(sha, message, dict(tree))
        return sha

    def write(self, files: Mapping[str, bytes]) -> str:
        """A commit on main that replaces some files, as somebody would make it on the Hub's pages."""
        new = {path: Blob(content, path.endswith(LFS_ENDINGS)) for path, content in files.items()}
        self.branches["main"] = self.store("by hand", {**self.head.tree, **new})
        return self.branches["main"]

    def find(self, revision: str) -> Commit:
        """The commit of a branch, tag, pull request or commit id."""
        refs = self.branches | self.tags | self.pulls
        if (sha := refs.get(revision, revision)) not in self.commits:
            raise Refused(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[sha]

    def apply(
        self, branch: str, operations: Sequence[Mapping[str, Any]], stored: Mapping[str, bytes], pr: bool
    ) -> Commit:
        """Make a commit of its operations, all or none, on a branch or as a pull request; `stored`: the LFS objects."""
        header, *changes = operations
        head = self.find(branch)
        if header["value"].get("parentCommit", head.sha) != head.sha:
            raise Refused(412, "A commit has happened since. Please refresh and try again.")
        tree = dict(head.tree)
        for kind, value in ((change["key"], change["value"]) for change in changes):
            if kind == "file":
                tree[value["path"]] = Blob(base64.b64decode(value["content"]))
            elif kind == "lfsFile" and value["oid"] in stored:
                tree[value["path"]] = Blob(stored[value["oid"]], lfs=True)
            elif kind == "deletedFile" and value["path"] in tree:
                del tree[value["path"]]
            else:
                raise Refused(400, f"Your push was rejected: {kind} of {value['path']}")
        sha = self.store(header["value"]["summary"], tree)
        if pr:
            self.pulls[f"refs/pr/{len(self.pulls) + 1}"] = sha
        else:
            self.branches[branch] = sha
        return self.commits[sha]
