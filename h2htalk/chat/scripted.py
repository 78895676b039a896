"""`scripted:FILE`: replies read from a file, for tests and dry runs.

Each line of FILE is one JSON object:

    {"id": "dialogue_base-en-01", "sample": 0, "text": "Good morning!", "finish_reason": "stop"}
    {"id": "dialogue_base-en-02", "failure": {"reason": "timeout", "message": "never answered"}}
    {"id": "*/rubric", "text": "what every other item gets whose id ends so"}
    {"id": "*", "text": "what all others get"}

`sample` (default 0) and `finish_reason` (default "stop") may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, model_validator

from h2htalk.chat.engines import ChatOptions
from h2htalk.chat.protocol import OnDone, Outcome, Reply, Request
from h2htalk.data.files import read_jsonl, sha256_of
from h2htalk.data.records import read_record
from h2htalk.data.replies.finish_reasons import FILTERED, read_finish_reason
from h2htalk.data.responses import Failure, SampleKey
from h2htalk.errors import ConfigError, DataError

DEFAULT_ID = "*"


class ScriptedChat:
    """Answers from a file; an item without a line fails as `missing`. Raises ConfigError where no file is named, and
    DataError, which names file and line, for one that cannot be read."""

    def __init__(self, name: str, options: ChatOptions) -> None:
        if not name:
            raise ConfigError("scripted needs a file of replies, such as scripted:replies.jsonl")
        self._path = Path(name)
        self._lines: dict[SampleKey, Outcome] = {}
        for where, raw in read_jsonl(self._path):
            record = read_record(_Record, raw, where)
            if (record.id, record.sample) in self._lines:
                raise DataError(
                    f"{where}: a second line for {record.id} sample {record.sample}; keep one"
                )
            self._lines[record.id, record.sample] = record.failure or _reply(record)
        endings = {name for name, _ in self._lines if name.startswith(DEFAULT_ID)}
        self._endings = sorted(endings, key=len, reverse=True)
        self.subject = {
            "engine": "scripted",
            "model": self._path.name,
            "file_sha256": sha256_of(self._path),
        }

    def complete(self, requests: Sequence[Request], on_done: OnDone | None = None) -> list[Outcome]:
        """Look every request up, in their order."""
        outcomes = [self._find(request) for request in requests]
        if on_done is not None:
            for index, outcome in enumerate(outcomes):
                on_done(index, outcome)
        return outcomes

    def close(self) -> None:
        """Do nothing."""

    def _find(self, request: Request) -> Outcome:
        """Return the outcome of the request's line, else of the line with the longest fitting end."""
        keys = [(request.id, request.sample)]
        keys += [(name, 0) for name in self._endings if request.id.endswith(name[1:])]
        for key in keys:
            if key in self._lines:
                return self._lines[key]
        line = f"{request.id} sample {request.sample}"
        return Failure("missing", f"{self._path} has no line for {line}, and none for '*'")


def _reply(record: _Record) -> Reply:
    ending = read_finish_reason(record.finish_reason)
    filtered_by = f"finish reason {record.finish_reason}" if ending == FILTERED else None
    return Reply(record.text or "", ending, filtered_by=filtered_by)


class _Record(BaseModel):
    """One line of the file: a text or a failure."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1)
    sample: int = Field(0, ge=0)
    text: str | None = None
    failure: Failure | None = None
    finish_reason: str = "stop"

    @model_validator(mode="after")
    def _is_one_outcome(self) -> _Record:
        if (self.text is None) == (self.failure is None):
            raise ValueError("needs either a text or a failure")
        if self.id.startswith(DEFAULT_ID) and self.sample:
            raise ValueError(f"the line for {self.id!r} answers every sample; leave sample out")
        return self
