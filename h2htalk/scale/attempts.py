"""Shards of a run, and attempts at them as they are stored.

A shard is the n-th part of a run's items. An attempt at it is made by one process, in a folder of its own:

    OUT/3-of-8/20261126T134500-3f9a2c01/   an attempt: as a run (`data/run_folder`), but attempt.json for run.json
        shard.json                         its mark, written last: the shard is finished; SHA-256 of its files
        calls/00001.jsonl ...              on object storage: the lines of calls.jsonl as they came
    OUT/3-of-8/money/0001 ...              what attempts may spend of the shard's share of --max-cost (`claims`)

Nobody writes to the folder of another attempt, so two writers of a shard spoil nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from h2htalk.data.erasure.folder_kinds import ERASED
from h2htalk.data.files import read_sealed, sha256_of, write_sealed
from h2htalk.data.responses import CALLS
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature, differing_keys
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, counted, quoted
from h2htalk.scale.storage_folder import StorageFolder

MARK = "shard.json"
MANIFEST = "attempt.json"
MONEY = "money"
PARTS = "calls"


@dataclass(frozen=True, slots=True)
class Shard:
    """The part `number`, from 1, of `total`: every `total`-th item in the order of the SHA-256 of their ids."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `3/8`. Raises ConfigError."""
        number, _, total = text.partition("/")
        if not (re.fullmatch(r"[0-9]{1,6}/[0-9]{1,6}", text) and 1 <= int(number) <= int(total)):
            raise ConfigError(f"--shard {quoted(text)}: write NUMBER/SHARDS, such as 3/8")
        return cls(int(number), int(total))

    def __str__(self) -> str:
        return f"{self.number} of {self.total}"

    @property
    def folder(self) -> str:
        return f"{self.number}-of-{self.total}"

    def items(self, split: Split) -> Split:
        """The split with its scenarios alone. Raises ConfigError where there are none."""
        names = [scenario.id for scenario in split.scenarios]
        names.sort(key=lambda name: hashlib.sha256(name.encode()).digest())
        chosen = set(names[self.number - 1 :: self.total])
        if not chosen:
            raise ConfigError(
                f"--shard: {counted(len(names), 'item')} make at most {len(names)} shards"
            )
        scenarios = [scenario for scenario in split.scenarios if scenario.id in chosen]
        return replace(split, scenarios=tuple(scenarios))


class AttemptFolder(RunFolder):
    """The folder of an attempt, or its copy here."""

    kind: ClassVar[str] = "attempt"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that began.

    Attributes:
        storage: where it is stored; its last part is the attempt's name.
        model: the model as it was asked for.
        facts: the shard's part of its manifest.
        failed: the number of samples that it gave up; None where it did not finish.
        erased: ids of items that were erased from it.
    """

    storage: StorageFolder
    shard: Shard
    model: str
    signature: Signature
    facts: Mapping[str, Any]
    failed: int | None
    erased: frozenset[str] = frozenset()

    @contextmanager
    def opened(self) -> Iterator[AttemptFolder]:
        """Yield its folder, of object storage a copy, with all lines of its calls in one file."""
        with self.storage.fetched() as path:
            calls = path / CALLS
            # On storage, an erasure may have joined the parts already.
            if self.storage.path is None and not calls.exists():
                files = sorted((path / PARTS).glob("*.jsonl"))
                calls.write_bytes(b"".join(file.read_bytes() for file in files))
            yield AttemptFolder(path)

    def require_unedited(self, path: Path) -> None:
        """Raise DataError where a file of a finished attempt is not what its mark names."""
        mark = read_sealed(path / MARK, f"run shard {self.shard} again")
        for name, expected in mark["files"].items():
            if not (path / name).is_file() or sha256_of(path / name) != expected:
                raise DataError(
                    f"{self.storage.address}: {name} is missing, or was edited after the attempt ended; "
                    f"put it back, or delete the attempt and run shard {self.shard} again"
                )


def read_attempts(shard_folder: StorageFolder) -> list[Attempt]:
    """Read the attempts in the folder of a shard, in the order in which they began."""
    names = [name for name in shard_folder.names() if name != MONEY]
    attempts = [read_attempt(shard_folder / name) for name in names]
    return [attempt for attempt in attempts if attempt is not None]


def read_attempt(storage: StorageFolder) -> Attempt | None:
    """Read an attempt; None where none began there. Raises DataError for a manifest or mark that does not fit."""
    manifest = _read_json(storage, MANIFEST)
    mark = _read_json(storage, MARK)
    if manifest is None:
        return None
    try:
        facts = manifest["shard"]
        signature = Signature.from_dict(manifest["signature"], f"{storage.address}/{MANIFEST}")
        shard = Shard(int(facts["shard"]), int(facts["of"]))
        failed = None
        if mark is not None:
            if (mark["shard"], mark["of"]) != (shard.number, shard.total):
                raise ValueError("its mark is that of another shard")
            failed = int(mark["failed"])
        erased = (storage.read(ERASED) or b"").splitlines()
        return Attempt(
            storage=storage,
            shard=shard,
            model=str(manifest["spec"]["model"]),
            signature=signature,
            facts=facts,
            failed=failed,
            erased=frozenset(json.loads(line)["id"] for line in erased),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{storage.address}: not an attempt at a shard that can be read: {error!r}; delete it"
        ) from error


def _read_json(storage: StorageFolder, name: str) -> Any:
    """The content of a file; None where there is none, or a part of it: whoever wrote it ended before its end."""
    with suppress(ValueError, RecursionError):
        return json.loads(storage.read(name) or b"")
    return None


def winner_of(attempts: Iterable[Attempt], preferred: Collection[str] = ()) -> Attempt | None:
    """The finished attempt that a merge takes, or None.

    It has the fewest failures; of equals a `preferred` name comes first, then the attempt that began first.
    """
    finished = [attempt for attempt in attempts if attempt.failed is not None]
    return min(
        finished,
        key=lambda attempt: (
            attempt.failed,
            attempt.storage.name not in preferred,
            attempt.storage.name,
        ),
        default=None,
    )


def require_same(
    attempt: Attempt, signature: Signature, reference: str = "what is asked now"
) -> None:
    """Raise ConfigError where an attempt has another signature."""
    different = differing_keys(attempt.signature.protocol, signature.protocol)
    different += differing_keys(attempt.signature.subject, signature.subject)
    if different:
        raise ConfigError(
            f"{attempt.storage.address}: not of the same run as {reference}: they differ in {', '.join(different)}"
        )


def attempt_files(folder: Path) -> list[str]:
    """The names of an attempt's files but its mark, locks, and what is being written."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    return [
        name
        for name in names
        if name != MARK and not name.startswith(".") and not name.endswith(".lock")
    ]


def write_mark(folder: Path, shard: Shard, failed: int, stored: Mapping[str, str]) -> None:
    """Write `shard.json`; `stored` are the files of object storage, empty: those of the folder."""
    files = dict(stored) or {name: sha256_of(folder / name) for name in attempt_files(folder)}
    write_sealed(
        folder / MARK,
        {"shard": shard.number, "of": shard.total, "failed": failed, "files": files},
    )
