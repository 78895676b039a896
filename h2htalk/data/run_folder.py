"""A run as a folder: the request, the responses, and the numbers computed from them. A study is a run with arms.

run.json (study.json)        spec, signature, package version, sessions, and a summary of how it was answered
inputs/split, inputs/prompts the scenarios and templates that were used, so that a run is complete by itself
calls.jsonl                  every call, its reply, time and cost (`chat/store/call_store`); append-only, one writer
baselines/NAME.jsonl         the baselines' answers
erased.jsonl                 ids of items that were erased from all of these, and the fingerprint of those that are left
scores/<fingerprint>.parquet, summary.json, report.html, tables/
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from h2htalk.data.erasure.folder_kinds import (
    ERASED,
    read_erased,
    require_erased,
    require_folder_kind,
)
from h2htalk.data.files import (
    read_json_object,
    read_sealed,
    reading,
    refuse_links,
    sha256_of,
    write_json,
    write_sealed,
)
from h2htalk.data.responses import CALLS, Answers, FailedResponse, Response, read_answers
from h2htalk.data.signature import FILTERED_KEY, Signature, differing_keys, without_versions
from h2htalk.data.splits import Split, load_split
from h2htalk.errors import ConfigError, DataError, quoted

SCORE_AGAIN = "run `h2htalk score` again"  # advice where a file of scoring is damaged
# Protocol keys that only scoring sets: they can change for stored answers.
SCORING_KEYS = frozenset(
    {"tokens", "metrics", "contracts", "rouge", "intervals", "embedder", "judge", FILTERED_KEY}
)
SOURCE = ("source", "commit")  # of a split, in run.json
HALF_WRITTEN = ".*.json.*"  # left by a killed `write_text`
LOCK = "calls.lock"
# The folder of an analysis: `made_by` in its summary, and the names of summary and page.
MADE_BY = "h2htalk analyze"
SUMMARY = "summary.json"
PAGE = "index.html"


class RunFolder:
    """Paths and readers of one run folder. `RunWriter` in `benchmark/run` creates or resumes it."""

    kind: ClassVar[str] = "run"  # in `FOLDER_KINDS`
    score_again: ClassVar[str] = SCORE_AGAIN
    score_command: ClassVar[str] = "h2htalk score"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place: str | Path = path  # in links to it
        self.manifest = path / f"{self.kind}.json"
        self.calls_file = path / CALLS  # the call store; a writer of the folder holds its lock
        self.inputs = path / "inputs"
        self.prompts = self.inputs / "prompts"
        self.baselines = path / "baselines"
        self.summary = path / "summary.json"
        self.page = path / "report.html"
        self.tables = path / "tables"

    def scores(self, signature: Signature) -> Path:
        """The file of the scores under that protocol."""
        return self.path / "scores" / f"{signature.fingerprint}.parquet"

    def read_run(self) -> dict[str, Any]:
        """Read `run.json`. Raises DataError where the folder is no run, holds a link, or is being erased from."""
        require_folder_kind(self.path, self.kind)
        refuse_links(self.path)
        require_erased(self.path)
        try:
            raw = read_json_object(self.manifest)
        except FileNotFoundError:
            raise DataError(
                f"{self.path}: not a {self.kind} folder: it holds no {self.manifest.name}"
            ) from None
        if not isinstance(raw.get("spec"), dict) or not isinstance(raw.get("split", {}), dict):
            raise DataError(
                f"{self.manifest}: must hold a spec and a signature, and split must be an object"
            )
        return raw

    def write_summary(self, record: Mapping[str, Any], scores: Path | None = None) -> None:
        """Write `summary.json` with the hash of the file of scores, and that of its own content. Raises DataError."""
        digest = None if scores is None else sha256_of(scores)
        write_sealed(self.summary, {**record, "scores_sha256": digest})

    def read_summary(self) -> dict[str, Any]:
        """Read `summary.json`. Raises FileNotFoundError; DataError where it or the scores changed later."""
        require_folder_kind(self.path, self.kind)
        sealed = read_sealed(self.summary, self.score_again)
        expected = sealed.pop("scores_sha256", None)
        if expected is not None:
            scores = self.scores(Signature.from_dict(sealed.get("signature"), str(self.summary)))
            if not scores.exists() or sha256_of(scores) != expected:
                raise DataError(
                    f"{scores}: missing, or edited since the summary was made; {self.score_again}"
                )
        return sealed

    def signature(self) -> Signature:
        """Read the signature that the run was made with."""
        return Signature.from_dict(self.read_run().get("signature"), str(self.manifest))

    def require_usable(self, signature: Signature, partial: bool = False) -> None:
        """Raise unless a run of that signature can begin or continue here; write nothing.

        `partial`: the subject is incomplete (no model and no embedder were opened): only the keys that it has are
        compared, and the revision of the embedder is not. A run whose protocol has other versions of the same metrics
        goes on: all its replies are scored by those of now. Raises ConfigError for a run of another signature, whose
        keys it names, and DataError for some other folder.
        """
        refuse_links(self.path)
        # os.path: pathlib raises on a folder without permission to enter; creating it reports that.
        if not os.path.exists(self.manifest):
            self._require_free()
            return
        stored = self.signature()
        protocol = dict(stored.protocol)
        subject = dict(stored.subject)
        new_protocol = dict(signature.protocol)
        signed = protocol.get("items", "")
        if self.erased() and new_protocol.get("items") == signed:
            raise ConfigError(
                f"{self.path}: items were erased from this {self.kind}, and the split that is to be asked still holds "
                "them; evaluate on a version of the split without them, or choose another --out"
            )
        new_protocol["items"] = self.signed_items(new_protocol.get("items", ""), signed)
        if partial:
            subject = {key: value for key, value in subject.items() if key in signature.subject}
            protocol["embedder"] = protocol.get("embedder", "").partition("@")[0]
        different = differing_keys(subject, signature.subject)
        if differing_keys(without_versions(protocol), without_versions(new_protocol)):
            different = [*differing_keys(protocol, new_protocol), *different]
        if different:
            rescore = {key.partition(" ")[0] for key in different} <= SCORING_KEYS
            advice = ""
            if rescore:
                advice = f"score its answers anew (`{self.score_command} {self.path}`, with these options), or "
            # A tag on the Hub may have been moved to another commit.
            split = self.read_run().get("split", {})
            origin = ""
            if "commit" in split:
                origin = f" of {split['source']} at commit {split['commit']}"
            raise ConfigError(
                f"{self.path}: holds a {self.kind}{origin} of another signature; it differs in {', '.join(different)}; "
                f"{advice}choose another --out"
            )

    def _require_free(self) -> None:
        """Raise unless a new run can use the folder: it is new, empty, or left by a killed start."""
        try:
            names = {path.name for path in self.path.iterdir() if not path.match(HALF_WRITTEN)}
        except FileNotFoundError:
            return
        except OSError as error:
            raise DataError(
                f"{self.path}: cannot be read: {error.strerror}; name a folder with --out"
            ) from error
        # The log is created first and filled last: inputs without an empty log beside them are another program's.
        begun = (
            names <= {"inputs", CALLS, LOCK}
            and self.calls_file.is_file()
            and not self.calls_file.stat().st_size
        )
        if names - {LOCK} and not begun:
            raise DataError(
                f"{self.path}: holds other files and no {self.manifest.name}; name a new folder with --out"
            )

    def erased(self) -> dict[str, str]:
        """Read the ids of erased items, each with the fingerprint of the scenarios that are left. Raises DataError."""
        lines = read_erased(self.path / ERASED)
        return {name: str(line.get("items")) for name, line in lines.items()}

    def signed_items(self, present: str, signed: str) -> str:
        """Return `signed`, the fingerprint in the signature, if `present` is that of the items without erased ones."""
        return signed if present in self.erased().values() else present

    def write_facts(self, name: str, facts: object) -> None:
        """Set one entry of `run.json`, whole or not at all. Raises DataError."""
        write_json(self.manifest, self.read_run() | {name: facts})

    def split(self) -> Split:
        """Load the scenarios that were asked, unchanged but for those that were erased, and where they came from."""
        raw = self.read_run().get("split", {})
        origin = {key: raw[key] for key in SOURCE if key in raw}
        return replace(_shared_split(self.inputs / "split"), **origin)

    def answers(self, ids: Collection[str] | None = None, samples: int | None = None) -> Answers:
        """Read the final result of each sample. Raises DataError for one beside `ids` that were asked, or `samples`."""
        asked_ids = None if ids is None else frozenset(ids)

        def check(response: Response | FailedResponse, where: str) -> None:
            require_asked(response, asked_ids, samples, where)

        return read_answers(self.calls_file, check=check)


_last_split: dict[str, Split] = {}  # the hash of the files of the split read last -> the split


def _shared_split(folder: Path) -> Split:
    """Load the split of a run; runs of the same files that are read one after the other share it."""
    digest = hashlib.sha256()
    with reading(folder):
        for path in sorted(folder.rglob("*")):
            if not path.is_file():
                continue
            name = os.fsencode(path.relative_to(folder))
            with reading(path), path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256")
            digest.update(hashlib.sha256(name).digest() + content.digest())
    key = digest.hexdigest()
    split = _last_split.get(key)
    if split is None:
        split = load_split(str(folder))
        _last_split.clear()
        _last_split[key] = split
    return split


def require_asked(
    response: Response | FailedResponse,
    ids: Collection[str] | None,
    samples: int | None,
    where: str,
) -> None:
    """Raise DataError for a response to something that the run did not ask: it would not count, or count twice."""
    if ids is not None and response.id not in ids:
        raise DataError(
            f"{where}: {quoted(response.id)} is not a scenario of this run; remove the line"
        )
    if samples is not None and response.sample >= samples:
        raise DataError(
            f"{where}: sample {response.sample} of {quoted(response.id)}, but "
            f"this run asks {samples} an item, counted from 0; remove the line"
        )
