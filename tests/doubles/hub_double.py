"""The Hugging Face Hub on this machine: an HTTP server that speaks its protocol to the real clients, with faults.

It serves `huggingface_hub` and `datasets`: data sets and models, private and gated ones, commits, tags, pull requests,
LFS uploads and downloads. A fault is ordered for a point of the protocol (`POINTS`).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from http_server import Answer, Cut, HttpServer
from hub_repos import LFS_ENDINGS, Blob, Refused, Repo

POINTS = (
    "create", "validate", "info", "tree", "refs", "preupload", "batch", "put", "verify", "commit", "tag", "head",
    "get", "other",
)  # fmt: skip


@dataclass(frozen=True)
class Account:
    """Whose token it is: `name` may write to its own repositories."""

    name: str
    reads: frozenset[str] = frozenset()  # gated repositories whose conditions were accepted


@dataclass
class Fault:
    """What happens at a point: `cut`, `lost` (processed, not answered), `hang`, `damage` or `answer`."""

    point: str
    kind: str
    times: float
    skip: int = 0
    answer: Refused | Answer | None = None


@dataclass(frozen=True)
class _Request:
    parts: list[str]
    query: Mapping[str, str]
    headers: Message
    body: bytes
    account: Account | None

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def repo(self) -> tuple[str, str]:
        """The type and the name of the repository that the path names."""
        parts = self.parts[1:] if self.parts[0] == "api" else self.parts
        owner, name = parts[1:3] if parts[0] in ("datasets", "models") else parts[:2]
        return "dataset" if parts[0] == "datasets" else "model", f"{owner}/{name.removesuffix('.git')}"


_Act = Callable[[_Request], Answer]


class HubDouble(HttpServer):
    """The server; a test changes `accounts`, `repos` and `faults` at any time.

    Attributes:
        requests: (point, method, path) of every request, in order.
        tokens: every token that came.
        before: what else happens just before the next request at a point, once.
    """

    def __init__(self) -> None:
        self.accounts = {"hf_lab": Account("lab"), "hf_b": Account("b")}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.stored: dict[str, bytes] = {}  # LFS objects by SHA-256
        self.uploads: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, str]] = []
        self.tokens: set[str] = set()
        self.before: dict[str, Callable[[], object]] = {}
        self.lock = threading.RLock()
        self.released = threading.Event()  # ends hanging requests

    def fault(
        self, point: str, kind: str, times: float = float("inf"), skip: int = 0, answer: Refused | Answer | None = None
    ) -> None:
        """Order a fault at a point for the next `times` requests after the first `skip`."""
        assert point in POINTS, point
        self.faults.append(Fault(point, kind, times, skip, answer))

    def refuse(self, point: str, status: int, message: str, times: float = float("inf")) -> None:
        """Order an error as the answer."""
        self.fault(point, "answer", times, answer=Refused(status, message))

    def mend(self) -> None:
        """Withdraw all faults."""
        self.faults.clear()

    def dataset(self, name: str) -> Repo:
        return self.repos["dataset", name]

    def add(self, name: str, type: str = "dataset", **settings: Any) -> Repo:
        self.repos[type, name] = Repo(name, **settings)
        return self.repos[type, name]

    def points(self, *methods: str) -> list[str]:
        """The points of all requests so far; with `methods`, of those alone."""
        return [point for point, method, _ in self.requests if not methods or method in methods]

    def __exit__(self, *error: Any) -> None:
        self.released.set()
        super().__exit__(*error)

    # --- Requests ---------------------------------------------------------------------------------------------------

    def serve(self, method: str, target: str, headers: Message, read: Callable[[], bytes]) -> Answer:
        """Process a request; a fault that is due comes first."""
        url = urlsplit(target)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        point, act = self._route(method, parts)
        token = (headers.get("Authorization") or "").removeprefix("Bearer ")
        with self.lock:
            self.requests.append((point, method, url.path))
            self.tokens |= {token} - {""}
            fault = self._due(point)
        if fault and fault.kind == "hang":
            self.released.wait()
        if fault and fault.kind in ("hang", "cut"):
            raise Cut
        body = read()
        with self.lock:
            self.before.pop(point, lambda: None)()
            try:
                if fault and isinstance(fault.answer, Answer):
                    return fault.answer
                if fault and fault.answer:
                    raise fault.answer
                if token and token not in self.accounts:
                    raise Refused(401, "User Access Token is expired")
                answer = act(_Request(parts, query, headers, body, self.accounts.get(token)))
            except Refused as refused:
                answer = Answer.json({"error": str(refused), **refused.body}, refused.status, **refused.headers)
        if fault and fault.kind == "lost":
            raise Cut
        if fault and fault.kind == "damage":
            middle = len(answer.body) // 2
            changed = answer.body[:middle] + bytes([answer.body[middle] ^ 1]) + answer.body[middle + 1 :]
            answer = Answer(answer.status, changed, answer.headers)
        return answer

    def _due(self, point: str) -> Fault | None:
        for fault in self.faults:
            if fault.point == point and fault.times > 0:
                if fault.skip > 0:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None

    def _route(self, method: str, parts: list[str]) -> tuple[str, _Act]:
        of_repo: dict[str, tuple[str, _Act]] = {
            "revision": ("info", self._info),
            "tree": ("tree", self._tree),
            "paths-info": ("tree", self._paths_info),
            "refs": ("refs", self._refs),
            "preupload": ("preupload", self._preupload),
            "commit": ("commit", self._commit),
            "tag": ("tag", self._tag),
        }
        match parts:
            case ["api", "repos", "create"]:
                return "create", self._create
            case ["api", "validate-yaml"]:
                return "validate", lambda request: Answer.json({"errors": [], "warnings": []})
            case ["api", "datasets" | "models", _, _]:
                return "info", self._info
            case ["api", "datasets" | "models", _, _, name, *_] if name in of_repo:
                return of_repo[name]
            case [*_, "info", "lfs", "objects", "batch"]:
                return "batch", self._batch
            case ["lfs", "verify", *_]:
                return "verify", self._verify
            case ["lfs", *_]:
                return "put", self._put
            case ["datasets", _, _, "resolve", *_] | [_, _, "resolve", *_]:
                return method.lower(), self._resolve
        return "other", self._missing

    def _missing(self, request: _Request) -> Answer:
        raise Refused(404, "Not found")

    def _create(self, request: _Request) -> Answer:
        said, account = request.json(), request.account
        owner, kind = said["organization"], said["type"]
        name, url = f"{owner}/{said['name']}", f"{self.url}/datasets/{owner}/{said['name']}"
        if account is None or owner != account.name:
            raise Refused(403, f'You don\'t have the rights to create a {kind} under the namespace "{owner}"')
        if (kind, name) in self.repos:
            raise Refused(409, f"You already created this {kind} repo: {name}", url=url)
        self.add(name, kind, private=said.get("private") or said.get("visibility") == "private")
        return Answer.json({"url": url, "name": name})

    def _repo(self, request: _Request, *, write: bool = False) -> Repo:
        """The repository of a request's path; one that the account does not see is absent."""
        repo, account = self.repos.get(request.repo), request.account
        owns = repo is not None and account is not None and account.name == repo.owner
        if repo is None or (repo.private and not owns):
            raise Refused(404 if account else 401, "Repository not found", "RepoNotFound")
        if write and not owns:
            raise Refused(403 if account else 401, "Authorization error.")
        return repo

    def _info(self, request: _Request) -> Answer:
        repo = self._repo(request)
        commit = repo.find(request.parts[5] if len(request.parts) > 5 else "main")
        about = {"id": repo.name, "_id": "0", "sha": commit.sha, "private": repo.private, "gated": repo.gated}
        about |= {"tags": [], "downloads": 0, "likes": 0, "disabled": False, "lastModified": "2030-01-01T00:00:00.000Z"}
        return Answer.json(about | {"siblings": [{"rfilename": path} for path in commit.tree]})

    def _tree(self, request: _Request) -> Answer:
        commit, folder = self._repo(request).find(request.parts[5]), "/".join(request.parts[6:])
        below = {
            path: blob for path, blob in sorted(commit.tree.items()) if not folder or path.startswith(f"{folder}/")
        }
        if folder and not below:
            raise Refused(404, f"{folder} does not exist", "EntryNotFound")
        folders = {path.rsplit("/", n)[0] for path in below for n in range(1, path.count("/") + 1)} - {folder}
        entries = [{"type": "directory", "path": path, "oid": "0" * 40, "size": 0} for path in sorted(folders)]
        entries += [blob.entry(path) for path, blob in below.items()]
        if request.query.get("recursive", "").lower() != "true":
            depth = folder.count("/") + 1 if folder else 0
            entries = [entry for entry in entries if entry["path"].count("/") == depth]
        return Answer.json(entries)

    def _paths_info(self, request: _Request) -> Answer:
        tree = self._repo(request).find(request.parts[5]).tree
        return Answer.json([tree[path].entry(path) for path in request.json()["paths"] if path in tree])

    def _refs(self, request: _Request) -> Answer:
        repo = self._repo(request)
        refs = {
            kind: [{"name": name, "ref": f"refs/{kind}/{name}", "targetCommit": sha} for name, sha in named.items()]
            for kind, named in (("branches", repo.branches), ("tags", repo.tags))
        }
        return Answer.json({**refs, "converts": []})

    def _preupload(self, request: _Request) -> Answer:
        self._repo(request, write="create_pr" not in request.query)
        paths = [one["path"] for one in request.json()["files"]]
        modes = {path: "lfs" if path.endswith(LFS_ENDINGS) else "regular" for path in paths}
        files = [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in modes.items()]
        return Answer.json({"files": files})

    def _batch(self, request: _Request) -> Answer:
        self._repo(request, write=True)
        objects = []
        for one in request.json()["objects"]:
            urls = {"upload": {"href": f"{self.url}/lfs/{one['oid']}"}, "verify": {"href": f"{self.url}/lfs/verify/x"}}
            objects.append(one if one["oid"] in self.stored else one | {"actions": urls})
        return Answer.json({"transfer": "basic", "objects": objects})

    def _put(self, request: _Request) -> Answer:
        self.uploads[request.parts[1]] = request.body
        return Answer()

    def _verify(self, request: _Request) -> Answer:
        blob = Blob(self.uploads.get(oid := request.json()["oid"], b""), lfs=True)
        if blob.oid != oid:
            raise Refused(400, "The uploaded object has another hash or size")
        self.stored[oid] = blob.content
        return Answer.json({})

    def _commit(self, request: _Request) -> Answer:
        pr = "create_pr" in request.query
        repo = self._repo(request, write=not pr)
        commit = repo.apply(request.parts[5], [*map(json.loads, request.body.splitlines())], self.stored, pr)
        url = f"{self.url}/{repo.name}/discussions/{len(repo.pulls)}" if pr else None
        said = {"success": True, "commitOid": commit.sha, "commitUrl": f"{self.url}/{repo.name}/commit/{commit.sha}"}
        return Answer.json({**said, "pullRequestUrl": url})

    def _tag(self, request: _Request) -> Answer:
        repo, name = self._repo(request, write=True), request.json()["tag"]
        if name in repo.tags:
            raise Refused(409, f"Tag reference exists already: {name}")
        repo.tags[name] = repo.find(request.parts[5]).sha
        return Answer.json({})

    def _resolve(self, request: _Request) -> Answer:
        at, repo, account = request.parts.index("resolve"), self._repo(request), request.account
        if repo.gated and not (account and (account.name == repo.owner or repo.name in account.reads)):
            raise Refused(403 if account else 401, f"Access to dataset {repo.name} is restricted.", "GatedRepo")
        commit, path = repo.find(request.parts[at + 1]), "/".join(request.parts[at + 2 :])
        if path not in commit.tree:
            raise Refused(404, "Entry not found", "EntryNotFound", {"X-Repo-Commit": commit.sha})
        blob = commit.tree[path]
        headers = {"X-Repo-Commit": commit.sha, "ETag": f'"{blob.oid}"', "Accept-Ranges": "bytes"}
        if found := re.match(r"bytes=(\d+)-", request.headers.get("Range") or ""):
            start, size = int(found[1]), len(blob.content)
            return Answer(206, blob.content[start:], headers | {"Content-Range": f"bytes {start}-{size - 1}/{size}"})
        return Answer(200, blob.content, headers)
