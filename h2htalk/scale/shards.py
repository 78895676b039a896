"""An attempt at a shard of a run: the n-th part of its items, asked by one process, stored in a folder of its own.

    OUT/3-of-8/20261126T134500-3f9a2c01/   an attempt: as a run (`data/run_folder`), but attempt.json for run.json
        shard.json                         its mark, written last: the shard is finished; SHA-256 of its files
        calls/00001.jsonl ...              on object storage: the lines of calls.jsonl as they came
    OUT/3-of-8/money/0001 ...              what attempts may spend of the shard's share of --max-cost

Nobody writes to the folder of another attempt, so two writers of a shard spoil nothing: a new attempt reads the replies
of earlier ones, whole lines only, and asks for the rest. Money is claimed before it is spent, in files of which each
can be made once: what is claimed in all never exceeds the share, and what a killed attempt held is not given back.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, ClassVar

from h2htalk.benchmark.evaluate import GENERATE, EvaluationPlan, ask_chat, call_settings, make_plan, make_signature
from h2htalk.benchmark.run import RunWriter
from h2htalk.benchmark.score_run import ErasableRun, open_metrics
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.benchmark.summary import write_baselines
from h2htalk.chat.prices import money_text
from h2htalk.chat.protocol import Chat
from h2htalk.chat.store.call_store import CallStore, StageCalls
from h2htalk.data.erasure.folder_kinds import ErasedIds, FolderErasure, erase
from h2htalk.data.files import read_sealed, remove_file, sha256_of, write_sealed
from h2htalk.data.responses import CALLS, FailedResponse, Response, fold_answer, read_answers
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.data.signature import Signature, differing_keys
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, IncompleteError, counted, quoted
from h2htalk.scale.places import Place

MARK, MANIFEST, MONEY, PARTS = "shard.json", "attempt.json", "money", "calls"
SYNC = 20.0  # seconds after which the new lines of calls are uploaded
PAUSES = (1.0, 5.0)  # seconds before the last of them are tried again
CLAIMS = 100  # of a share one claim is at least this part


@dataclass(frozen=True, slots=True)
class Shard:
    """The part `number`, from 1, `of` a run's items: every `of`-th in the order of the SHA-256 of their ids."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `3/8`. Raises ConfigError."""
        number, _, of = text.partition("/")
        if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= 100_000):
            raise ConfigError(f"--shard {quoted(text)}: write NUMBER/SHARDS, such as 3/8")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    @property
    def folder(self) -> str:
        return f"{self.number}-of-{self.of}"

    def items(self, split: Split) -> tuple[Scenario, ...]:
        """Its scenarios, in the split's order. Raises ConfigError where there are none."""
        ordered = sorted((one.id for one in split.scenarios), key=lambda name: hashlib.sha256(name.encode()).digest())
        own = set(ordered[self.number - 1 :: self.of])
        if not own:
            raise ConfigError(f"--shard: {counted(len(ordered), 'item')} make at most {len(ordered)} shards")
        return tuple(one for one in split.scenarios if one.id in own)


class AttemptFolder(RunFolder):
    """The folder of an attempt, or its copy here: `place` is where links lead."""

    kind: ClassVar[str] = "attempt"

    def __init__(self, path: Path, place: str | Path = "") -> None:
        super().__init__(path)
        self.place = place or path


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that began. `facts`: the shard's part of its manifest. `mark`: None where it did not finish."""

    place: Place
    shard: Shard
    model: str  # as it was asked for
    signature: Signature
    facts: Mapping[str, Any]
    mark: Mapping[str, Any] | None

    @property
    def failed(self) -> int:
        """Items that it gave up; of an attempt without a mark it is not known."""
        return int(self.mark["failed"]) if self.mark is not None else -1

    @contextmanager
    def opened(self) -> Iterator[AttemptFolder]:
        """Yield its folder, of object storage a copy, with all lines of its calls in one file."""
        with self.place.fetched() as path:
            if self.place.path is None:
                with (path / CALLS).open("ab") as whole:
                    whole.writelines(part.read_bytes() for part in sorted((path / PARTS).glob("*.jsonl")))
            yield AttemptFolder(path, self.place.text)

    def require_unedited(self, path: Path) -> None:
        """Raise DataError where a file of a finished attempt is not what its mark names."""
        mark = read_sealed(path / MARK, f"run shard {self.shard} again")
        for name, expected in mark["files"].items():
            if not (path / name).is_file() or sha256_of(path / name) != expected:
                raise DataError(
                    f"{self.place.text}: {name} is missing, or was edited after the attempt ended; put it back, or "
                    f"delete the attempt and run shard {self.shard} again"
                )


def read_attempts(home: Place) -> list[Attempt]:
    """Read the attempts in the folder of a shard, in the order in which they began."""
    found = []
    for name in home.names():
        if name != MONEY and (attempt := read_attempt(home / name)) is not None:
            found.append(attempt)
    return found


def read_attempt(place: Place) -> Attempt | None:
    """Read an attempt; None where none began there. Raises DataError for a manifest or mark that does not fit."""
    raw, mark = _read_json(place, MANIFEST), _read_json(place, MARK)
    if raw is None:
        return None
    try:
        facts, signature = raw["shard"], Signature.from_dict(raw["signature"], f"{place.text}/{MANIFEST}")
        if mark is not None and (mark["shard"], mark["of"]) != (facts["shard"], facts["of"]):
            raise ValueError("its mark is that of another shard")
        shard = Shard(int(facts["shard"]), int(facts["of"]))
        return Attempt(place, shard, str(raw["spec"]["model"]), signature, facts, mark)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{place.text}: not an attempt at a shard that can be read: {error!r}; delete it") from error


def _read_json(place: Place, name: str) -> Any:
    """The content of a file; None where there is none, or a part of it: whoever wrote it ended before its end."""
    try:
        return json.loads(place.read(name) or b"")
    except ValueError:
        return None


def winner_of(attempts: Iterable[Attempt]) -> Attempt | None:
    """The finished attempt that a merge takes: of the fewest failures the one that began first."""
    finished = [one for one in attempts if one.mark is not None]
    return min(finished, key=lambda one: (one.failed, one.place.name), default=None)


# --- One attempt ------------------------------------------------------------------------------------------------------


def evaluate_shard(spec: EvaluateSpec, shard: Shard) -> str:
    """Make an attempt at a shard of the run that `evaluate(spec)` would make; `spec.out` holds all shards' attempts.

    A shard that is finished is not attempted again, unless calls of it failed. The model alone is opened: a merge
    scores. Returns a sentence on what was done.

    Raises:
        ConfigError: as `evaluate`; the folder holds attempts of another signature; the shard's share is spent.
        IncompleteError: not every item has an answer yet; the same command goes on in a new attempt.
        DataError, MissingExtraError, ModelCallError: as `evaluate`.
    """
    if spec.engine == "baseline":
        raise ConfigError(f"--shard: {spec.model} answers at once; leave it out")
    if spec.batch:
        raise ConfigError("--shard: a batch job runs at the provider, on as many machines as it has; leave one out")
    plan = make_plan(spec)
    home, own = Place(str(spec.out)) / shard.folder, shard.items(plan.split)
    earlier = read_attempts(home)
    for one in earlier:  # before the model is opened: what its weights decide is compared below
        known = replace(one.signature, subject={**one.signature.subject, "model": one.model})
        require_same(
            replace(one, signature=known), _signature(plan, {"model": spec.model, "engine": spec.engine}), True
        )
    done = winner_of(earlier)
    if done is not None and not done.failed:
        return f"shard {shard} is finished: {done.place.text}"
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
    settings = call_settings(spec)
    with _work(home / name) as upload:
        calls = settings.stage_calls(CallStore(upload.folder.calls_file), GENERATE)
        if calls.limit is not None:
            claims = Claims(home / MONEY, name, calls.limit / shard.of)
            calls.limit, calls.claim = Decimal(0), claims.claim
        chat = settings.open_chat(calls)
        try:
            signature = _signature(plan, chat.subject)
            for one in earlier:
                require_same(one, signature)
            _attempt(plan, own, shard, signature, chat, calls, upload, earlier)
        finally:
            chat.close()
            if calls.limit is not None:
                claims.give_back(calls.store.dollars())
        failed = upload.finish(shard, own, spec.samples)
    if failed:
        what = f"{counted(len(failed), 'sample')} of it failed, first {failed[0]}"
        raise IncompleteError(f"shard {shard} is finished, but {what}; the same command asks for them again")
    return f"shard {shard} is finished: {(home / name).text}"


def _signature(plan: EvaluationPlan, subject: Mapping[str, str]) -> Signature:
    """The run's signature; what the weights of the embedder decide is added by the merge, which opens it."""
    made = make_signature(plan, subject, open_metrics("none", plan.spec.rouge, plan.spec.contracts))
    return Signature({**made.protocol, "embedder": plan.spec.embedder}, made.subject)


def require_same(one: Attempt, signature: Signature, partial: bool = False, other: str = "what is asked now") -> None:
    """Raise ConfigError where an attempt has another signature; `partial`: one that lacks keys of its subject."""
    subject = {key: value for key, value in one.signature.subject.items() if not partial or key in signature.subject}
    different = differing_keys(one.signature.protocol, signature.protocol)
    different += differing_keys(subject, signature.subject)
    if different:
        raise ConfigError(f"{one.place.text}: not of the same run as {other}: they differ in {', '.join(different)}")


def _attempt(
    plan: EvaluationPlan,
    own: Sequence[Scenario],
    shard: Shard,
    signature: Signature,
    chat: Chat,
    calls: StageCalls,
    upload: _Upload,
    earlier: Sequence[Attempt],
) -> None:
    """Take over the replies of earlier attempts, and ask for the others."""
    facts = {"shard": shard.number, "of": shard.of, "host": socket.gethostname(), "pid": os.getpid()}
    facts |= {name.lower(): os.environ[name] for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT") if name in os.environ}
    folder, prompts = upload.folder, plan.prompts.files()
    writer = RunWriter(folder, plan.spec.to_dict(), signature, plan.split, prompts, calls.store, {"shard": facts})
    try:
        write_baselines(folder, plan.split, plan.whole if plan.spec.baselines else None)
        take_over(writer, earlier)
        with upload.syncing():
            ask_chat(replace(plan, split=replace(plan.split, scenarios=tuple(own))), chat, calls, writer)
    except H2HTalkError:
        writer.discard()
        raise
    finally:
        writer.close()


def take_over(writer: RunWriter, earlier: Sequence[Attempt]) -> None:
    """Store the replies of earlier attempts in this one. What they cost stays in theirs, and a merge counts it."""
    for one in earlier:
        with one.opened() as folder:
            found = read_answers(folder.calls_file)
        for key, answer in found.items():
            if isinstance(answer, Response) and not isinstance(writer.answers.get(key), Response):
                writer.calls.append(answer.to_dict() | {"stage": GENERATE, "attempt": one.place.name})
                fold_answer(writer.answers, answer)


@dataclass
class Claims:
    """What an attempt may spend of a shard's share: files 0001, 0002, ... with the name of an attempt and dollars."""

    place: Place
    attempt: str
    share: Decimal
    own: Decimal = Decimal(0)

    def claim(self, needed: Decimal) -> Decimal:
        """Claim until `needed` dollars in all are claimed, or nothing is left; returns what is claimed."""
        while needed > self.own:
            taken, number = self._taken()
            left = self.share - taken
            amount = min(max(needed - self.own, self.share / CLAIMS), left)
            if needed - self.own > left:
                break
            self._write(number, amount)
        return self.own

    def give_back(self, spent: Decimal | None) -> None:
        """Give back what this attempt did not spend, at its end."""
        while spent is not None and spent < self.own:
            with suppress(DataError):  # the storage failed: it stays claimed
                self._write(self._taken()[1], spent - self.own)
                continue
            break

    def _taken(self) -> tuple[Decimal, int]:
        """The sum of all claims, and the number of the next one."""
        taken, names = Decimal(0), [name for name in self.place.names() if name.isdecimal()]
        for name in names:
            content = self.place.read(name) or b"{}"
            try:
                taken += Decimal(json.loads(content)["usd"])
            except (ValueError, KeyError, ArithmeticError) as error:
                raise DataError(f"{self.place.text}/{name}: not a claim that can be read; delete the folder") from error
        return taken, len(names) + 1

    def _write(self, number: int, amount: Decimal) -> None:
        content = json.dumps({"attempt": self.attempt, "usd": money_text(amount)}).encode()
        if self.place.create(f"{number:04}", content):
            self.own += amount


# --- Its folder -------------------------------------------------------------------------------------------------------


@dataclass
class _Upload:
    """The folder in which an attempt works: its own place, or a folder here whose files are uploaded."""

    place: Place
    folder: AttemptFolder
    stored: dict[str, str] = field(default_factory=dict)  # name -> SHA-256 of what was uploaded
    sent: int = 0  # bytes of calls
    kept: bool = False  # the folder here must stay, as the storage did not take its replies

    @property
    def remote(self) -> bool:
        return self.place.path is None

    @contextmanager
    def syncing(self) -> Iterator[None]:
        """Upload what is there, and then new lines of calls every 20 seconds. An error of the storage ends the block at
        its end: replies are stored here meanwhile."""
        if not self.remote:
            yield
            return
        ended = threading.Event()
        self.files()

        def sync() -> None:
            while not ended.wait(SYNC):
                with suppress(DataError):  # tried again, and at the end reported
                    self.calls()

        thread = threading.Thread(target=sync, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.last_calls()

    def calls(self) -> None:
        """Upload the whole lines of calls that are new, as a part."""
        with self.folder.calls_file.open("rb") as file:
            file.seek(self.sent)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        if lines:
            number = sum(name.startswith(f"{PARTS}/") for name in self.stored) + 1
            self._store(f"{PARTS}/{number:05}.jsonl", lines)
            self.sent += len(lines)

    def last_calls(self) -> None:
        """Upload the last lines of calls; raises DataError, which says where they are, where the storage fails."""
        for pause in (*PAUSES, None):
            try:
                self.calls()
                return
            except DataError as error:
                if pause is None:
                    self.kept = True
                    raise DataError(f"{error}; its replies are kept in {self.folder.path}") from error
                time.sleep(pause)

    def files(self) -> None:
        """Upload all other files."""
        for path in sorted(self.folder.path.rglob("*")):
            name = path.relative_to(self.folder.path).as_posix()
            if path.is_file() and name not in (CALLS, MARK) and path.suffix != ".lock":
                self._store(name, path.read_bytes())

    def _store(self, name: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        if self.stored.get(name) != digest:
            self.place.write(name, content)
            self.stored[name] = digest

    def finish(self, shard: Shard, own: Sequence[Scenario], samples: int) -> list[str]:
        """Write the mark, last; returns what failed, as texts. Raises IncompleteError where some were not asked."""
        answers = self.folder.answers()
        asked = [answers.get((one.id, sample)) for one in own for sample in range(samples)]
        if missing := sum(one is None for one in asked):
            raise IncompleteError(
                f"shard {shard}: {missing:,} of {counted(len(asked), 'sample')} have no answer yet; the same command "
                "takes over those that are there"
            )
        failures = [one for one in asked if isinstance(one, FailedResponse)]
        if self.remote:
            self.files()
        write_mark(self.folder, shard, len(failures), self.stored)
        if self.remote:
            self.place.write(MARK, (self.folder.path / MARK).read_bytes())
        return [f"{one.id}: {one.failure.message or one.failure.reason}" for one in failures]


def write_mark(folder: AttemptFolder, shard: Shard, failed: int, stored: Mapping[str, str]) -> None:
    """Write `shard.json`; `stored` are the files of object storage, empty: those of the folder."""
    names = sorted(one.relative_to(folder.path).as_posix() for one in folder.path.rglob("*") if one.is_file())
    names = [name for name in names if name != MARK and not name.startswith(".") and not name.endswith(".lock")]
    files = dict(stored) or {name: sha256_of(folder.path / name) for name in names}
    write_sealed(folder.path / MARK, {"shard": shard.number, "of": shard.of, "failed": failed, "files": files})


@contextmanager
def _work(place: Place) -> Iterator[_Upload]:
    """Open the folder of a new attempt; of object storage one here, which is removed at the end."""
    if place.path is not None:
        yield _Upload(place, AttemptFolder(place.path))
        return
    work = Path(mkdtemp(prefix="h2htalk-"))
    upload = _Upload(place, AttemptFolder(work / place.name, place.text))
    try:
        yield upload
    finally:
        if not upload.kept:
            shutil.rmtree(work)


# --- Erasure ----------------------------------------------------------------------------------------------------------


class ErasableAttempt(ErasableRun):
    """An attempt: items go, and the mark of a finished one names the files that are left."""

    folder_type = AttemptFolder

    def remake(self) -> Iterator[str]:
        yield from ()
        folder = AttemptFolder(self.path)
        if folder.baselines.is_dir():
            write_baselines(folder, folder.split(), folder.split())
        with suppress(FileNotFoundError):
            mark = json.loads((self.path / MARK).read_bytes())
            write_mark(folder, Shard(mark["shard"], mark["of"]), mark["failed"], {})


def erase_stored(url: str, erased: ErasedIds) -> FolderErasure:
    """Erase from an attempt on object storage: a copy is erased from, its files take the place of those there."""
    place = Place(url)
    if (attempt := read_attempt(place)) is None:
        message = "this attempt is not there any more; if it was moved, erase there too"
        return FolderErasure(messages=(message,), kind=AttemptFolder.kind)
    with attempt.opened() as folder:
        parts = [one.relative_to(folder.path).as_posix() for one in (folder.path / PARTS).glob("*.jsonl")]
        for name in parts:
            remove_file(folder.path / name)
        remove_file(folder.path / PARTS)
        result = erase(folder.path, erased)
        if result.items:
            for path in sorted(folder.path.rglob("*"), key=lambda one: one.name == MARK):
                if path.is_file() and path.suffix != ".lock":
                    place.write(path.relative_to(folder.path).as_posix(), path.read_bytes())
            for name in parts:
                place.remove(name)
    return result
