"""The Hugging Face Hub on this machine: an HTTP server that speaks its protocol to the real clients, with faults.

It serves `huggingface_hub` and `datasets`: data sets and models, private and gated ones, commits, tags, pull requests,
LFS uploads and downloads. A fault is ordered for a point of the protocol, which `_route` names.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from support.doubles.loopback import DRIPS, Answer, HttpServer

LFS_ENDINGS = (
    ".parquet",
    ".arrow",
    ".bin",
    ".png",
    ".zip",
)  # of files that the Hub stores as LFS objects
_NUMBERS = itertools.count(1)


class Refused(Exception):
    """A request that the server refuses: a status, a message, an error code, further headers and answers."""

    def __init__(
        self, status: int, message: str, code: str = "", commit: str = "", **body: Any
    ) -> None:
        super().__init__(message)
        self.status, self.body = status, body
        headers = {"X-Error-Message": message, "X-Error-Code": code, "X-Repo-Commit": commit}
        self.headers = {name: value for name, value in headers.items() if value}


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
        entry: dict[str, Any] = {
            "type": "file",
            "path": path,
            "size": len(self.content),
            "oid": self.oid,
        }
        lfs = {"oid": self.oid, "size": len(self.content), "pointerSize": 134}
        return entry | {"oid": git_hash(self.oid.encode()), "lfs": lfs} if self.lfs else entry


def git_hash(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@dataclass(frozen=True)
class Commit:
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
    accepted: tuple[str, ...] = ()  # the accounts that may read a gated one

    def __post_init__(self) -> None:
        lines = "".join(
            f"*{ending} filter=lfs diff=lfs merge=lfs -text\n" for ending in LFS_ENDINGS
        )
        self.branches["main"] = self.store(
            "initial commit", {".gitattributes": Blob(lines.encode())}
        )

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
        self, branch: str, operations: Sequence[Any], stored: Mapping[str, bytes], pr: bool
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
        refs, name = (
            (self.pulls, f"refs/pr/{len(self.pulls) + 1}") if pr else (self.branches, branch)
        )
        refs[name] = sha
        return self.commits[sha]


# `drop`, `lost` (processed, not answered), `hang`, `damage`, another answer, or what else happens just before.
Fault = str | Answer | Refused | Callable[[], object]


@dataclass(frozen=True)
class _Request:
    parts: list[str]
    query: Mapping[str, str]
    body: bytes
    account: str | None

    def json(self) -> Any:
        return json.loads(self.body)


_Act = Callable[[_Request], Answer]


class HubDouble(HttpServer):
    """The server; a test changes `accounts` and `repos` at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.accounts = {
            "hf_lab": "lab",
            "hf_b": "b",
        }  # by token: each may write to its own repositories
        self.repos: dict[tuple[str, str], Repo] = {}
        self.stored: dict[str, bytes] = {}  # LFS objects by SHA-256
        self.faults: list[tuple[str, Iterator[Fault | None]]] = []
        self.requests: list[tuple[str, str]] = []  # point and method
        self.tokens: set[str] = set()  # every one that came

    def fault(self, point: str, fault: Fault, times: int = 1 << 30, skip: int = 0) -> None:
        """Order a fault at a point for the next `times` requests after the first `skip`."""
        self.faults.append(
            (point, itertools.chain(itertools.repeat(None, skip), itertools.repeat(fault, times)))
        )

    def dataset(self, name: str) -> Repo:
        return self.repos["dataset", name]

    def add(self, name: str, type: str = "dataset", **settings: Any) -> Repo:
        self.repos[type, name] = Repo(name, **settings)
        return self.repos[type, name]

    def points(self, *methods: str) -> list[str]:
        return [point for point, method in self.requests if not methods or method in methods]

    def serve(self, method: str, target: str, headers: Message, body: bytes) -> Answer | str:
        """Process a request; a fault that is due comes first."""
        url = urlsplit(target)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        point, act = self._route(method, parts)
        token = (headers.get("Authorization") or "").removeprefix("Bearer ")
        self.requests.append((point, method))
        self.tokens |= {token} - {""}
        fault = self._due(point)
        if isinstance(fault, Answer) or fault in ("hang", "drop", *DRIPS):
            return fault
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        request = _Request(parts, query, body, self.accounts.get(token))
        try:
            if isinstance(fault, Refused):
                raise fault
            if callable(fault):
                fault()
            if token and token not in self.accounts:
                raise Refused(401, "User Access Token is expired")
            answer = act(request)
        except Refused as refused:
            answer = Answer(
                {"error": str(refused), **refused.body}, refused.status, refused.headers
            )
        if fault == "damage":
            changed = bytearray(answer.body)
            changed[len(changed) // 2] ^= 1
            return replace(answer, body=bytes(changed))
        return "drop" if fault == "lost" else answer

    def _due(self, point: str) -> Fault | None:
        return next(
            (due for at, queue in self.faults if at == point and (due := next(queue, None))), None
        )

    def _route(self, method: str, parts: list[str]) -> tuple[str, _Act]:
        of_repo: dict[str, tuple[str, _Act]] = {
            "revision": ("info", self._info),
            "tree": ("tree", self._tree),
            "refs": ("refs", self._refs),
            "preupload": ("preupload", self._preupload),
            "commit": ("commit", self._commit),
            "tag": ("tag", self._tag),
        }
        match parts:
            case ["api", "repos", "create"]:
                return "create", self._create
            case ["api", "validate-yaml"]:
                return "validate", lambda request: Answer({"errors": [], "warnings": []})
            case ["api", "datasets" | "models", _, _]:
                return "info", self._info
            case ["api", "datasets" | "models", _, _, name, *_] if name in of_repo:
                return of_repo[name]
            case [*_, "info", "lfs", "objects", "batch"]:
                return "batch", self._batch
            case ["lfs", "verify", *_]:
                return "verify", lambda request: Answer({})
            case ["lfs", *_]:
                return "put", self._put
            case ["datasets", _, _, "resolve", *_] | [_, _, "resolve", *_]:
                return method.lower(), self._resolve
        return "other", lambda request: Answer({"error": "Not found"}, 404)

    def _create(self, request: _Request) -> Answer:
        said = request.json()
        account = request.account
        owner = said["organization"]
        kind = said["type"]
        name = f"{owner}/{said['name']}"
        url = f"{self.url}/datasets/{owner}/{said['name']}"
        if owner != account:
            raise Refused(
                403, f'You don\'t have the rights to create a {kind} under the namespace "{owner}"'
            )
        if (kind, name) in self.repos:
            raise Refused(409, f"You already created this {kind} repo: {name}", url=url)
        self.add(name, kind, private=said.get("private") or said.get("visibility") == "private")
        return Answer({"url": url, "name": name})

    def _repo(self, request: _Request, *, write: bool = False) -> Repo:
        """The repository of a request's path; one that the account does not see is absent."""
        parts = request.parts[request.parts[0] == "api" :]
        account = request.account
        owner, name = parts[1:3] if parts[0] in ("datasets", "models") else parts[:2]
        kind = "dataset" if parts[0] == "datasets" else "model"
        repo = self.repos.get((kind, f"{owner}/{name.removesuffix('.git')}"))
        owns = repo is not None and account == repo.owner
        if repo is None or (repo.private and not owns):
            raise Refused(404 if account else 401, "Repository not found", "RepoNotFound")
        if write and not owns:
            raise Refused(403 if account else 401, "Authorization error.")
        return repo

    def _info(self, request: _Request) -> Answer:
        repo = self._repo(request)
        commit = repo.find(request.parts[5] if len(request.parts) > 5 else "main")
        about = {
            "id": repo.name,
            "_id": "0",
            "sha": commit.sha,
            "private": repo.private,
            "gated": repo.gated,
        }
        about |= {
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "disabled": False,
            "lastModified": "2030-01-01T00:00:00.000Z",
        }
        return Answer(about | {"siblings": [{"rfilename": path} for path in commit.tree]})

    def _tree(self, request: _Request) -> Answer:
        tree = self._repo(request).find(request.parts[5]).tree
        folder = "/".join([*request.parts[6:], ""])
        below = {path: blob for path, blob in sorted(tree.items()) if path.startswith(folder)}
        if not below:
            raise Refused(404, f"{folder} does not exist", "EntryNotFound")
        entries = [blob.entry(path) for path, blob in below.items()]
        if request.query.get("recursive", "").lower() != "true":
            inner = {
                path.removeprefix(folder).partition("/")[0]
                for path in below
                if "/" in path.removeprefix(folder)
            }
            entries = [one for one in entries if "/" not in one["path"].removeprefix(folder)]
            entries += [
                {"type": "directory", "path": folder + one, "oid": "0" * 40, "size": 0}
                for one in inner
            ]
        return Answer(entries)

    def _refs(self, request: _Request) -> Answer:
        repo = self._repo(request)
        refs = {
            kind: [
                {"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha}
                for name, sha in named.items()
            ]
            for kind, named in (("branches", repo.branches), ("tags", repo.tags))
        }
        return Answer({**refs, "converts": []})

    def _preupload(self, request: _Request) -> Answer:
        self._repo(request, write="create_pr" not in request.query)
        paths = [one["path"] for one in request.json()["files"]]
        modes = {path: "lfs" if path.endswith(LFS_ENDINGS) else "regular" for path in paths}
        files = [
            {"path": path, "uploadMode": mode, "shouldIgnore": False}
            for path, mode in modes.items()
        ]
        return Answer({"files": files})

    def _batch(self, request: _Request) -> Answer:
        self._repo(request, write=True)
        objects = []
        for one in request.json()["objects"]:
            urls = {
                "upload": {"href": f"{self.url}/lfs/{one['oid']}"},
                "verify": {"href": f"{self.url}/lfs/verify/x"},
            }
            objects.append(one if one["oid"] in self.stored else one | {"actions": urls})
        return Answer({"transfer": "basic", "objects": objects})

    def _put(self, request: _Request) -> Answer:
        if (blob := Blob(request.body, lfs=True)).oid != request.parts[1]:
            raise Refused(400, "The uploaded object has another hash or size")
        self.stored[blob.oid] = blob.content
        return Answer()

    def _commit(self, request: _Request) -> Answer:
        pr = "create_pr" in request.query
        repo = self._repo(request, write=not pr)
        commit = repo.apply(
            request.parts[5], [*map(json.loads, request.body.splitlines())], self.stored, pr
        )
        url = f"{self.url}/{repo.name}/discussions/{len(repo.pulls)}" if pr else None
        said = {
            "success": True,
            "commitOid": commit.sha,
            "commitUrl": f"{self.url}/{repo.name}/commit/{commit.sha}",
        }
        return Answer({**said, "pullRequestUrl": url})

    def _tag(self, request: _Request) -> Answer:
        repo = self._repo(request, write=True)
        name = request.json()["tag"]
        if name in repo.tags:
            raise Refused(409, f"Tag reference exists already: {name}")
        repo.tags[name] = repo.find(request.parts[5]).sha
        return Answer({})

    def _resolve(self, request: _Request) -> Answer:
        at = request.parts.index("resolve")
        repo = self._repo(request)
        account = request.account
        if repo.gated and account not in (repo.owner, *repo.accepted):
            raise Refused(
                403 if account else 401,
                f"Access to dataset {repo.name} is restricted.",
                "GatedRepo",
            )
        commit = repo.find(request.parts[at + 1])
        path = "/".join(request.parts[at + 2 :])
        if path not in commit.tree:
            raise Refused(404, "Entry not found", "EntryNotFound", commit.sha)
        blob = commit.tree[path]
        return Answer(blob.content, headers={"X-Repo-Commit": commit.sha, "ETag": f'"{blob.oid}"'})
