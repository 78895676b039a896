"""A run as a folder: what was asked, what came back, and the numbers made of it.

run.json                     spec, signature, package version
inputs/split, inputs/prompts what was asked: the scenarios and templates, so that a run stands alone
responses/part-0.jsonl       append-only, one writer
floors/NAME.jsonl            the baselines' answers
scores/<fingerprint>.parquet, summary.json, report.html, tables/
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from h2htalk import __version__
from h2htalk.data.files import read_jsonl, write_json, write_text
from h2htalk.data.run import FailedResponse, Response, read_response
from h2htalk.data.shard import Shard
from h2htalk.data.signature import Signature, differing_keys
from h2htalk.data.splits import Split, export_split, load_split
from h2htalk.errors import ConfigError, DataError

_HALF_WRITTEN = ".run.json.*"  # `write_text` was killed in it

SampleKey = tuple[str, int]
Answers = dict[SampleKey, Response | FailedResponse]


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Paths and readers of one run folder. `writer` makes or resumes it."""

    path: Path

    @property
    def inputs(self) -> Path:
        return self.path / "inputs"

    @property
    def prompts(self) -> Path:
        return self.inputs / "prompts"

    @property
    def tables(self) -> Path:
        return self.path / "tables"

    @property
    def floors(self) -> Path:
        return self.path / "floors"

    @property
    def page(self) -> Path:
        return self.path / "report.html"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    def scores(self, signature: Signature) -> Path:
        """Where the scores under that protocol lie."""
        return self.path / "scores" / f"{signature.fingerprint}.parquet"

    def read_run(self) -> dict[str, Any]:
        """`run.json`: spec, signature and package_version.

        Raises:
            DataError: the folder is not a run.
        """
        path = self.path / "run.json"
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.path}: not a run folder (run.json cannot be read: {error})") from error
        if not isinstance(raw, dict) or not isinstance(raw.get("spec"), dict):
            raise DataError(f"{path}: must hold a spec and a signature")
        return raw

    def signature(self) -> Signature:
        """The signature that the run was made with."""
        return Signature.from_dict(self.read_run().get("signature"), str(self.path / "run.json"))

    def split(self) -> Split:
        """The scenarios that were asked, as they were."""
        return load_split(str(self.inputs / "split"))

    def answers(self) -> Answers:
        """The last word on each sample: an answer wins over a failure, a later line over an earlier one.

        Raises:
            DataError: a line that is not a response; names file and line.
        """
        answers: Answers = {}
        for where, record in self._records():
            fold_answer(answers, read_response(record, where))
        return answers

    def _records(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for path in sorted((self.path / "responses").glob("*.jsonl")):
            yield from read_jsonl(path, torn_tail=True)


def fold_answer(answers: Answers, response: Response | FailedResponse) -> None:
    """Take one more line into account; see `RunFolder.answers`."""
    key = (response.id, response.sample)
    if isinstance(response, Response) or not isinstance(answers.get(key), Response):
        answers[key] = response


class RunWriter:
    """The one writer of a run folder: makes or resumes it, stores answers as they come.

    `answers` holds what was there when it was opened.
    """

    def __init__(
        self,
        folder: RunFolder,
        spec: Mapping[str, Any],
        signature: Signature,
        split: Split,
        prompts: Mapping[str, str],
    ) -> None:
        """Open for writing; a new folder gets its inputs and run.json before this returns.

        Raises:
            ConfigError: the folder holds a run of another signature (the keys are named).
            DataError: another process writes it, it is some other folder, or it cannot be written.
        """
        self.folder = folder
        self.answers: Answers = {}
        # os.path, as pathlib raises on a folder that may not be entered; making it then says so.
        if os.path.exists(folder.path / "run.json"):
            _require_same(folder, signature)
        else:
            _require_usable(folder.path)
        self._made = [p for p in (folder.path, *folder.path.parents) if not os.path.exists(p)]
        self._shard = Shard(folder.path / "responses" / "part-0.jsonl", self._remember)
        try:
            # Asked again now that this is the one writer: another may have begun the run meanwhile.
            self._new = not (folder.path / "run.json").exists()
            if not self._new:
                _require_same(folder, signature)
            else:
                self._write_inputs(split, prompts)
                run = {"spec": dict(spec), "signature": signature.to_dict(), "package_version": __version__}
                write_json(folder.path / "run.json", run)
        except BaseException:
            self._shard.close()
            raise

    def _remember(self, record: dict[str, Any], where: str) -> None:
        fold_answer(self.answers, read_response(record, where))

    def _write_inputs(self, split: Split, prompts: Mapping[str, str]) -> None:
        # A killed start may have left half of them; without run.json they count for nothing.
        shutil.rmtree(self.folder.inputs, ignore_errors=True)
        for half_written in self.folder.path.glob(_HALF_WRITTEN):
            half_written.unlink()
        export_split(split, self.folder.inputs / "split")
        for name, text in prompts.items():
            write_text(self.folder.prompts / name, text)

    def store(self, response: Response | FailedResponse) -> None:
        """Append one answer or failure. Raises DataError when it cannot be stored."""
        self._shard.append(response.to_dict())

    def close(self) -> None:
        self._shard.close()

    def discard(self) -> None:
        """Close, and remove what this writer made, folders included, unless an answer lies in it."""
        self.close()
        if self._new and self._shard.path.stat().st_size == 0:
            for name in ("inputs", "responses"):
                shutil.rmtree(self.folder.path / name, ignore_errors=True)
            (self.folder.path / "run.json").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # somebody has put something else there: it stays
                for path in self._made:
                    path.rmdir()


def _require_usable(path: Path) -> None:
    """A new run needs a new or empty folder, or one in which an earlier start was killed."""
    if not os.path.isdir(path):
        if os.path.exists(path):
            raise DataError(f"{path}: is a file; name a folder with --out")
        return
    try:
        usable = not any(path.iterdir()) or _is_half_made(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not usable:
        raise DataError(f"{path}: holds other files and no run.json; name a new folder with --out")


def _is_half_made(path: Path) -> bool:
    # The shard is made first and filled last: inputs without an empty shard beside them are somebody else's.
    shard = path / "responses" / "part-0.jsonl"
    names = {p.name for p in path.iterdir() if not p.match(_HALF_WRITTEN)}
    if names == {"responses"} and not shard.exists():
        return all(p.name == "part-0.lock" for p in shard.parent.iterdir())
    return (
        names <= {"inputs", "responses"}
        and shard.is_file()
        and shard.stat().st_size == 0
        and {p.name for p in shard.parent.iterdir()} <= {"part-0.jsonl", "part-0.lock"}
    )


def _require_same(folder: RunFolder, signature: Signature) -> None:
    there = folder.signature()
    different = [
        *differing_keys(there.protocol, signature.protocol),
        *differing_keys(there.subject, signature.subject),
    ]
    if different:
        # What only scoring decides can change on stored answers.
        rescore = {key.partition(" ")[0] for key in different} <= {"embedder", "rouge", "tokens", "metrics"}
        advice = f"score its answers anew with `h2htalk score {folder.path}`, or " if rescore else ""
        raise ConfigError(
            f"{folder.path}: holds a run of another signature; it differs in {', '.join(different)}; "
            f"{advice}choose another --out"
        )
