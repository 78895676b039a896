"""The Hugging Face Hub on this machine: an HTTP server that speaks its protocol to the real clients, with faults.

It serves `huggingface_hub` and `datasets`: data sets and models, private and gated ones, commits, tags, pull requests,
LFS uploads, uploads of hf-xet (hub_xet.py), downloads with ranges. A fault is ordered for a
point of the protocol (`POINTS`): the connection is cut before the request is processed or after it, nothing is
answered, an error is answered, or a download is damaged.
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
from hub_xet import XetStore

XET_TOKEN = "xet"  # of the store of chunks
POINTS = (
    "create", "validate", "info", "tree", "refs", "preupload", "batch", "put", "verify", "commit", "tag",
    "head", "get", "xet-token", "xorb", "shard", "other",
)  # fmt: skip


@dataclass(frozen=True)
class Account:
    """Whose token it is: `name` may write to its own repositories, unless the token is read-only."""

    name: str
    writes: bool = True
    reads: frozenset[str] = frozenset()  # repositories of others: gated ones whose conditions were accepted


@dataclass
class Fault:
    """What happens at a point: `cut`, `lost` (processed, not answered), `hang`, `damage` or `answer`."""

    point: str
    kind: str
    times: float
    skip: int = 0
    answer: Refused | Answer | None = None


class HubDouble(HttpServer):
    """The server; a test changes `accounts`, `repos` and `faults` at any time.

    Attributes:
        requests: (point, method, path) of every request, in order.
        tokens: every token that came.
        before: what else happens just before the next request at a point, once.
    """

    def __init__(self) -> None:
        self.accounts = {"hf_lab": Account("lab"), "hf_reader": Account("reader", writes=False), "hf_b": Account("b")}
        self.expired = {"hf_expired"}
        self.repos: dict[tuple[str, str], Repo] = {}
        self.stored: dict[str, bytes] = {}  # LFS objects by SHA-256
        self.uploads: dict[str, bytes] = {}
        self.xet = XetStore()
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str, str]] = []
        self.tokens: set[str] = set()
        self.before: dict[str, Callable[[], object]] = {}
        self.lock = threading.RLock()
        self.released = threading.Event()  # ends hanging requests

    # --- What a test does or looks at -------------------------------------------------------------------------------

    def fault(
        self, point: str, kind: str, times: float = float("inf"), skip: int = 0, answer: Refused | Answer | None = None
    ) -> None:
        """Order a fault at a point for the next `times` requests after the first `skip`."""
        assert point in POINTS, point
        self.faults.append(Fault(point, kind, times, skip, answer))

    def refuse(self, point: str, status: int, message: str, code: str = "", times: float = float("inf")) -> None:
        """Order an error as the answer."""
        self.fault(point, "answer", times, answer=Refused(status, message, code))

    def mend(self) -> None:
        """Withdraw all faults."""
        self.faults.clear()

    def dataset(self, name: str) -> Repo:
        return self.repos["dataset", name]

    def add(self, name: str, type: str = "dataset", **settings: Any) -> Repo:
        self.repos[type, name] = Repo(type, name, **settings)
        return self.repos[type, name]

    def points(self, *methods: str) -> list[str]:
        """The points of all requests so far; with `methods`, of those alone."""
        return [point for point, method, _ in self.requests if not methods or method in methods]

    # --- Life -------------------------------------------------------------------------------------------------------

    def __exit__(self, *error: Any) -> None:
        self.released.set()
        super().__exit__(*error)

    # --- Requests ---------------------------------------------------------------------------------------------------

    def serve(self, method: str, target: str, headers: Message, read: Callable[[], bytes]) -> Answer:
        """Process a request; a fault that is due comes first."""
        url = urlsplit(target)
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        point, act = self._route(method, parts, query)
        with self.lock:
            self.requests.append((point, method, url.path))
            if token := (headers.get("Authorization") or "").removeprefix("Bearer "):
                self.tokens.add(token)
            fault = self._due(point)
        if fault and fault.kind == "hang":
            self.released.wait()
            raise Cut
        if fault and fault.kind == "cut":
            raise Cut
        body = read()
        with self.lock:
            self.before.pop(point, lambda: None)()
        try:
            if fault and isinstance(fault.answer, Answer):
                return fault.answer
            if fault and fault.answer:
                raise fault.answer
            with self.lock:
                answer = act(_Request(method, parts, query, headers, body, self._account(headers)))
        except Refused as refused:
            answer = Answer.json({"error": refused.message, **refused.body}, refused.status, **refused.headers)
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

    def _route(
        self, method: str, parts: list[str], query: Mapping[str, str]
    ) -> tuple[str, Callable[[_Request], Answer]]:
        match parts:
            case ["api", "repos", "create"]:
                return "create", self._create
            case ["api", "validate-yaml"]:
                return "validate", self._validate
            case ["api", "datasets" | "models", _, _, *rest]:
                return self._route_repo(method, rest)
            case [*_, "info", "lfs", "objects", "batch"]:
                return "batch", self._batch
            case ["lfs", "verify", *_]:
                return "verify", self._verify
            case ["lfs", *_]:
                return "put", self._put
            case ["xet", "v1", "xorbs", *_]:
                return "xorb", self._xorb
            case ["xet", "v1", "shards"]:
                return "shard", self._shard
            case ["datasets", _, _, "resolve", *_] | [_, _, "resolve", *_]:
                return method.lower(), self._resolve
        return "other", self._missing

    def _route_repo(self, method: str, rest: list[str]) -> tuple[str, Callable[[_Request], Answer]]:
        table: dict[str, tuple[str, Callable[[_Request], Answer]]] = {
            "revision": ("info", self._info),
            "tree": ("tree", self._tree),
            "paths-info": ("tree", self._paths_info),
            "refs": ("refs", self._refs),
            "preupload": ("preupload", self._preupload),
            "commit": ("commit", self._commit),
            "tag": ("tag", self._tag),
            "xet-write-token": ("xet-token", self._xet_token),
        }
        return table.get(rest[0], ("other", self._missing)) if rest else ("info", self._info)

    def _account(self, headers: Message) -> Account | None:
        token = (headers.get("Authorization") or "").removeprefix("Bearer ")
        if token == XET_TOKEN:
            return None
        if token and token not in self.accounts:
            expired = token in self.expired
            raise Refused(
                401, "User Access Token is expired" if expired else "Invalid credentials in Authorization header"
            )
        return self.accounts.get(token)

    def _create(self, request: _Request) -> Answer:
        account, said = request.require_account(), request.json()
        owner = said.get("organization") or account.name
        name, kind = f"{owner}/{said['name']}", said.get("type", "model")
        url = f"{self.url}/{'datasets/' if kind == 'dataset' else ''}{name}"
        if owner != account.name or not account.writes:
            raise Refused(403, f'You don\'t have the rights to create a {kind} under the namespace "{owner}"')
        if (kind, name) in self.repos:
            raise Refused(409, f"You already created this {kind} repo: {name}", url=url)
        private = said.get("private") or said.get("visibility") == "private"
        self.repos[kind, name] = Repo(kind, name, private=bool(private))
        return Answer.json({"url": url, "name": name})

    def _validate(self, request: _Request) -> Answer:
        import yaml

        found = re.match(r"---\r?\n(.*?)\r?\n---", request.json()["content"], re.DOTALL)
        try:
            metadata = yaml.safe_load(found[1]) if found else {}
            problem = "" if isinstance(metadata, dict) else "metadata must be a mapping"
        except yaml.YAMLError as error:
            problem = str(error).splitlines()[0]
        warnings = [] if found else [{"message": "empty or missing yaml metadata in repo card"}]
        if problem:
            return Answer.json({"errors": [{"message": problem}], "warnings": warnings}, 400)
        return Answer.json({"errors": [], "warnings": warnings})

    def _repo(self, request: _Request, *, write: bool = False) -> Repo:
        """The repository of a request's path; one that the account does not see is absent."""
        repo, account = self.repos.get(request.repo), request.account
        if repo is None or (repo.private and (account is None or account.name != repo.owner)):
            raise Refused(401 if account is None else 404, "Repository not found", "RepoNotFound")
        if write and (account is None or account.name != repo.owner or not account.writes):
            raise Refused(403 if account else 401, "Authorization error.")
        return repo

    def _info(self, request: _Request) -> Answer:
        repo = self._repo(request)
        commit = repo.find(request.parts[5] if len(request.parts) > 5 else "main")
        about = {"id": repo.name, "_id": "0", "sha": commit.sha, "private": repo.private, "gated": repo.gated}
        about |= {"tags": [], "downloads": 0, "likes": 0, "disabled": False, "lastModified": "2030-01-01T00:00:00.000Z"}
        return Answer.json(about | {"siblings": [{"rfilename": path} for path in commit.tree]})

    def _tree(self, request: _Request) -> Answer:
        commit = self._repo(request).find(request.parts[5])
        folder = "/".join(request.parts[6:])
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
        commit = self._repo(request).find(request.parts[5])
        paths = request.json()["paths"]
        return Answer.json([commit.tree[path].entry(path) for path in paths if path in commit.tree])

    def _refs(self, request: _Request) -> Answer:
        repo = self._repo(request)

        def listed(refs: Mapping[str, str], prefix: str) -> list[dict[str, str]]:
            return [{"name": name, "ref": prefix + name, "targetCommit": sha} for name, sha in refs.items()]

        refs = {"branches": listed(repo.branches, "refs/heads/"), "tags": listed(repo.tags, "refs/tags/")}
        return Answer.json({**refs, "converts": [], "pullRequests": listed(repo.pulls, "")})

    def _preupload(self, request: _Request) -> Answer:
        pr = "create_pr" in request.query
        tree = self._repo(request, write=not pr).find(request.parts[5]).tree
        files = [
            {
                "path": one["path"],
                "uploadMode": "lfs" if one["path"].endswith(LFS_ENDINGS) else "regular",
                "shouldIgnore": False,
                **({"oid": tree[one["path"]].oid} if one["path"] in tree else {}),
            }
            for one in request.json()["files"]
        ]
        return Answer.json({"files": files})

    def _batch(self, request: _Request) -> Answer:
        self._repo(request, write=True)
        said = request.json()
        # Clients before 2.0 ask here whether they may use xet.
        transfer = "xet" if "xet" in said["transfers"] else "basic"
        return Answer.json({"transfer": transfer, "objects": [self._object(**one) for one in said["objects"]]})

    def _object(self, oid: str, size: int) -> dict[str, Any]:
        if oid in self.stored:
            return {"oid": oid, "size": size}
        upload = {"href": f"{self.url}/lfs/{oid}"}
        verify = {"href": f"{self.url}/lfs/verify/{oid}"}
        return {"oid": oid, "size": size, "actions": {"upload": upload, "verify": verify}}

    def _put(self, request: _Request) -> Answer:
        self.uploads[request.parts[1]] = request.body
        return Answer()

    def _verify(self, request: _Request) -> Answer:
        request.require_account()
        oid = request.json()["oid"]
        blob = Blob(self.uploads.get(oid, b""), lfs=True)
        if blob.oid != oid:
            raise Refused(400, "The uploaded object has another hash or size")
        self.stored[oid] = blob.content
        return Answer.json({})

    def _commit(self, request: _Request) -> Answer:
        pr = "create_pr" in request.query
        repo = self._repo(request, write=not pr)
        if pr:
            request.require_account()
        operations = [json.loads(line) for line in request.body.splitlines()]
        commit = repo.apply(request.parts[5], operations, self.stored | self.xet.files, pr)
        url = f"{self.url}/{repo.name}/discussions/{len(repo.pulls)}" if pr else None
        said = {"success": True, "commitOid": commit.sha, "commitUrl": f"{self.url}/{repo.name}/commit/{commit.sha}"}
        return Answer.json({**said, "pullRequestUrl": url})

    def _tag(self, request: _Request) -> Answer:
        repo = self._repo(request, write=True)
        if request.method == "DELETE":
            if repo.tags.pop(request.parts[5], None) is None:
                raise Refused(404, "Tag not found", "RevisionNotFound")
            return Answer.json({})
        name = request.json()["tag"]
        if name in repo.tags:
            raise Refused(409, f"Tag reference exists already: {name}")
        repo.tags[name] = repo.find(request.parts[5]).sha
        return Answer.json({})

    def _xet_token(self, request: _Request) -> Answer:
        self._repo(request, write="create_pr" not in request.query)
        url, end = f"{self.url}/xet", 4_000_000_000
        # Older clients read the headers.
        headers = {"X-Xet-Cas-Url": url, "X-Xet-Access-Token": XET_TOKEN, "X-Xet-Token-Expiration": str(end)}
        return Answer.json({"casUrl": url, "accessToken": XET_TOKEN, "exp": end}, **headers)

    def _xorb(self, request: _Request) -> Answer:
        return Answer.json({"was_inserted": self.xet.add_xorb(request.parts[-1], request.body)})

    def _shard(self, request: _Request) -> Answer:
        self.xet.add_shard(request.body)
        return Answer.json({"result": 1})

    def _resolve(self, request: _Request) -> Answer:
        at = request.parts.index("resolve")
        repo = self._repo(request)
        account = request.account
        if repo.gated and not (account and (account.name == repo.owner or repo.name in account.reads)):
            message = f"Access to dataset {repo.name} is restricted. You must have access to it and be authenticated."
            raise Refused(403 if account else 401, message, "GatedRepo")
        commit, blob = repo.blob(request.parts[at + 1], "/".join(request.parts[at + 2 :]))
        headers = {"X-Repo-Commit": commit.sha, "ETag": f'"{blob.oid}"', "Accept-Ranges": "bytes"}
        if blob.lfs:
            headers |= {"X-Linked-ETag": f'"{blob.oid}"', "X-Linked-Size": str(len(blob.content))}
        if found := re.match(r"bytes=(\d+)-", request.headers.get("Range") or ""):
            start = int(found[1])
            headers["Content-Range"] = f"bytes {start}-{len(blob.content) - 1}/{len(blob.content)}"
            return Answer(206, blob.content[start:], headers)
        return Answer(200, blob.content, headers)

    def _missing(self, request: _Request) -> Answer:
        raise Refused(404, "Not found")


@dataclass(frozen=True)
class _Request:
    method: str
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
        kind = "dataset" if parts[0] == "datasets" else "model"
        owner, name = parts[1:3] if parts[0] in ("datasets", "models") else parts[:2]
        return kind, f"{owner}/{name.removesuffix('.git')}"

    def require_account(self) -> Account:
        if self.account is None:
            raise Refused(401, "Invalid username or password.")
        return self.account
