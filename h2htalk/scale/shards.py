"""An attempt at a shard of a run: the n-th part of its items, asked by one process, stored in a folder of its own.

    OUT/3-of-8/20261126T134500-3f9a2c01/   an attempt: as a run (`data/run_folder`), but attempt.json for run.json
        shard.json                         its mark, written last: the shard is finished; SHA-256 of its files
        calls/00001.jsonl ...              on object storage: the lines of calls.jsonl as they came
    OUT/3-of-8/money/0001 ...              what attempts may spend of the shard's share of --max-cost

Nobody writes to the folder of another attempt, so two writers of a shard spoil nothing: a new attempt reads the replies
of earlier ones, whole lines only, and asks for the rest. Money is claimed before it is spent, in files of which each
can be made once: what is claimed in all, or spent without a claim, never exceeds the share, and what a killed attempt
held is not given back.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
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
from h2htalk.chat.prices import dollars_text, money_text
from h2htalk.chat.store.call_store import CallStore, CostLimitError, StageCalls, read_store
from h2htalk.data.erasure.folder_kinds import ERASED, ErasedIds, FolderErasure, erase
from h2htalk.data.erasure.folder_kinds import MARK as ERASING
from h2htalk.data.files import json_line, read_sealed, sha256_of, write_sealed
from h2htalk.data.responses import CALLS, FailedResponse, Response, fold_answer, read_answers
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.signature import Signature, differing_keys
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, IncompleteError, counted, quoted
from h2htalk.scale.places import Place

MARK, MANIFEST, MONEY, PARTS = "shard.json", "attempt.json", "money", "calls"
SYNC = 5.0  # seconds after which the new lines of calls are uploaded
_SLURM = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT")  # in a manifest
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
        if not (re.fullmatch(r"[0-9]{1,6}/[0-9]{1,6}", text) and 1 <= int(number) <= int(of)):
            raise ConfigError(f"--shard {quoted(text)}: write NUMBER/SHARDS, such as 3/8")
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number} of {self.of}"

    @property
    def folder(self) -> str:
        return f"{self.number}-of-{self.of}"

    def items(self, split: Split) -> Split:
        """The split with its scenarios alone. Raises ConfigError where there are none."""
        ordered = sorted((one.id for one in split.scenarios), key=lambda name: hashlib.sha256(name.encode()).digest())
        own = set(ordered[self.number - 1 :: self.of])
        if not own:
            raise ConfigError(f"--shard: {counted(len(ordered), 'item')} make at most {len(ordered)} shards")
        return replace(split, scenarios=tuple(one for one in split.scenarios if one.id in own))


class AttemptFolder(RunFolder):
    """The folder of an attempt, or its copy here."""

    kind: ClassVar[str] = "attempt"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that began. `facts`: the shard's part of its manifest. `failed`: the samples that it gave up; None
    where it did not finish. `erased`: ids of items that were erased from it."""

    place: Place
    shard: Shard
    model: str  # as it was asked for
    signature: Signature
    facts: Mapping[str, Any]
    failed: int | None
    erased: frozenset[str] = frozenset()

    @contextmanager
    def opened(self) -> Iterator[AttemptFolder]:
        """Yield its folder, of object storage a copy, with all lines of its calls in one file."""
        with self.place.fetched() as path:
            if self.place.path is None and not (path / CALLS).exists():  # else an erasure has joined them
                parts = sorted((path / PARTS).glob("*.jsonl"))
                (path / CALLS).write_bytes(b"".join(part.read_bytes() for part in parts))
            yield AttemptFolder(path)

    def require_unedited(self, path: Path) -> None:
        """Raise DataError where a file of a finished attempt is not what its mark names."""
        mark = read_sealed(path / MARK, f"run shard {self.shard} again")
        for name, expected in mark["files"].items():
            if not (path / name).is_file() or sha256_of(path / name) != expected:
                what = f"{name} is missing, or was edited after the attempt ended"
                again = f"put it back, or delete the attempt and run shard {self.shard} again"
                raise DataError(f"{self.place.text}: {what}; {again}")


def read_attempts(home: Place) -> list[Attempt]:
    """Read the attempts in the folder of a shard, in the order in which they began."""
    return [one for name in home.names() if name != MONEY and (one := read_attempt(home / name)) is not None]


def read_attempt(place: Place) -> Attempt | None:
    """Read an attempt; None where none began there. Raises DataError for a manifest or mark that does not fit."""
    raw, mark = _read_json(place, MANIFEST), _read_json(place, MARK)
    if raw is None:
        return None
    try:
        facts, signature = raw["shard"], Signature.from_dict(raw["signature"], f"{place.text}/{MANIFEST}")
        shard = Shard(int(facts["shard"]), int(facts["of"]))
        if mark is not None and (mark["shard"], mark["of"]) != (shard.number, shard.of):
            raise ValueError("its mark is that of another shard")
        failed = None if mark is None else int(mark["failed"])
        erased = frozenset(json.loads(line)["id"] for line in (place.read(ERASED) or b"").splitlines())
        return Attempt(place, shard, str(raw["spec"]["model"]), signature, facts, failed, erased)
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{place.text}: not an attempt at a shard that can be read: {error!r}; delete it") from error


def _read_json(place: Place, name: str) -> Any:
    """The content of a file; None where there is none, or a part of it: whoever wrote it ended before its end."""
    with suppress(ValueError, RecursionError):
        return json.loads(place.read(name) or b"")
    return None


def winner_of(attempts: Iterable[Attempt], known: Collection[str] = ()) -> Attempt | None:
    """The finished attempt that a merge takes: of the fewest failures one of a `known` name, or that began first."""
    finished = [one for one in attempts if one.failed is not None]
    return min(finished, key=lambda one: (one.failed, one.place.name not in known, one.place.name), default=None)


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
    plan, out = make_plan(spec), Place(str(spec.out))
    own, earlier = shard.items(plan.split), _earlier(plan, out, shard)
    done = winner_of(one for one in earlier if one.shard == shard)
    if done is not None and not done.failed:
        return f"shard {shard} is finished: {done.place.text}"
    place = out / shard.folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
    work = _Work(plan, shard, own, place, AttemptFolder(place.path or Path(mkdtemp(prefix="h2htalk-"), place.name)))
    try:
        failed = work.finish(work.ask(earlier, out / shard.folder / MONEY))
    finally:
        if place.path is None and not work.kept:
            shutil.rmtree(work.folder.path.parent)
    if failed:
        what = f"{counted(len(failed), 'sample')} of it failed, first {failed[0]}"
        raise IncompleteError(f"shard {shard} is finished, but {what}; the same command asks for them again")
    return f"shard {shard} is finished: {place.text}"


def _earlier(plan: EvaluationPlan, out: Place, shard: Shard) -> list[Attempt]:
    """The attempts at a shard, and one at another. Raises ConfigError where they are not of the same run: before the
    model is opened what its weights decide is not compared."""
    names = [name for name in out.names() if re.fullmatch(r"\d+-of-\d+", name)]
    if others := [name for name in names if not name.endswith(f"-of-{shard.of}")]:
        raise ConfigError(f"{out.text}: holds shards of another number ({others[0]}); name another --out")
    if out.path is not None and (out.path / "run.json").exists():
        raise ConfigError(f"{out.text}: holds a run; name another --out for its shards")
    earlier = read_attempts(out / shard.folder) or [one for name in names[:1] for one in read_attempts(out / name)]
    asked = _signature(plan, {"engine": plan.spec.engine, "model": plan.spec.model.partition("@")[0]})
    for one in earlier:
        known = {**one.signature.subject, "model": one.model.partition("@")[0]}
        known = {key: value for key, value in known.items() if key in asked.subject}
        require_same(replace(one, signature=Signature(one.signature.protocol, known)), asked)
        if one.erased:
            what = "items were erased from this attempt, and the split that is to be asked still holds them"
            raise ConfigError(f"{one.place.text}: {what}; ask a version without them, into another --out")
    return earlier


def _signature(plan: EvaluationPlan, subject: Mapping[str, str]) -> Signature:
    """The run's signature; what the weights of the embedder decide is added by the merge, which opens it."""
    made = make_signature(plan, subject, open_metrics("none", plan.spec.rouge, plan.spec.contracts))
    return Signature({**made.protocol, "embedder": plan.spec.embedder}, made.subject)


def require_same(one: Attempt, signature: Signature, other: str = "what is asked now") -> None:
    """Raise ConfigError where an attempt has another signature."""
    different = differing_keys(one.signature.protocol, signature.protocol)
    different += differing_keys(one.signature.subject, signature.subject)
    if different:
        raise ConfigError(f"{one.place.text}: not of the same run as {other}: they differ in {', '.join(different)}")


@dataclass
class Claims:
    """What an attempt may spend of a shard's share: files 0001, 0002, ... with the name of an attempt and dollars.
    `books`: what earlier attempts spent at most, by their calls, in case they made no claims."""

    place: Place
    attempt: str
    share: Decimal
    own: Decimal = Decimal(0)
    books: Mapping[str, Decimal] = field(default_factory=dict)

    def claim(self, needed: Decimal) -> Decimal:
        """Claim until `needed` dollars in all are claimed; returns what is. Raises CostLimitError where less is left,
        ConfigError where the storage lets two writers make the same file."""
        probe = f"probe-{self.attempt}"
        if self.place.create(probe, b"") and self.place.create(probe, b""):
            raise ConfigError(f"{self.place.text}: this storage does not keep two writers apart: leave out --max-cost")
        while needed > self.own:
            taken, number = self._taken()
            if needed - self.own > self.share - taken:
                spent = f"{dollars_text(taken)} of this shard's share of {dollars_text(self.share)} US dollars"
                more = f"{dollars_text(needed - self.own, True)} more may be needed"
                raise CostLimitError(f"max_cost: {spent} are spent or claimed, and {more}: raise it (--max-cost)")
            self._write(number, min(max(needed - self.own, self.share / CLAIMS), self.share - taken))
        return self.own

    def give_back(self, spent: Decimal | None) -> None:
        """Give back what this attempt did not spend, at its end."""
        with suppress(DataError):  # the storage failed: it stays claimed
            while spent is not None and spent < self.own:
                self._write(self._taken()[1], spent - self.own)

    def _taken(self) -> tuple[Decimal, int]:
        """What is claimed, or was spent without a claim, and the number of the next claim."""
        names, taken = [name for name in self.place.names() if name.isdecimal()], dict[str, Decimal]()
        for name in names:
            try:
                claim = json.loads(self.place.read(name) or b"")
                dollars = Decimal(claim["usd"]).quantize(Decimal("1e-12"))  # which no NaN and no infinity can be
                taken[claim["attempt"]] = taken.get(claim["attempt"], Decimal(0)) + dollars
            except (ValueError, KeyError, TypeError, ArithmeticError) as error:
                raise DataError(f"{self.place.text}/{name}: not a claim that can be read; put it back") from error
        most = (max(taken.get(one, Decimal(0)), self.books.get(one, Decimal(0))) for one in {*taken, *self.books})
        return sum(most, Decimal(0)), 1 + max(map(int, names), default=0)

    def _write(self, number: int, amount: Decimal) -> None:
        content = json.dumps({"attempt": self.attempt, "usd": money_text(amount)}).encode()
        if self.place.create(f"{number:04}", content):
            self.own += amount


# --- Its folder -------------------------------------------------------------------------------------------------------


@dataclass
class _Work:
    """An attempt at work, in the folder of its place, or of object storage in one here whose files are uploaded."""

    plan: EvaluationPlan
    shard: Shard
    own: Split  # the shard's items
    place: Place
    folder: AttemptFolder
    stored: dict[str, str] = field(default_factory=dict)  # name -> SHA-256 of what was uploaded
    sent: int = 0  # bytes of calls
    kept: bool = False  # the folder here must stay, as the storage did not take its replies

    def ask(self, earlier: Sequence[Attempt], money: Place) -> str:
        """Make the folder, and ask for what earlier attempts have no reply to; returns why it paused, if it did."""
        plan, settings = self.plan, call_settings(self.plan.spec)
        calls = settings.stage_calls(CallStore(self.folder.calls_file), GENERATE)
        claims = Claims(money, self.place.name, (calls.limit or Decimal(0)) / self.shard.of)
        with closing(settings.open_chat(calls)) as chat:
            signature = _signature(plan, chat.subject)
            for one in earlier:
                require_same(one, signature)
            self.folder.place = self.place.path or self.place.text
            made = (self.folder, plan.spec.to_dict(), signature, plan.split, plan.prompts.files(), calls.store)
            facts = {"shard": self.shard.number, "of": self.shard.of, "host": socket.gethostname(), "pid": os.getpid()}
            facts |= {name.lower(): value for name, value in os.environ.items() if name in _SLURM}
            writer = RunWriter(*made, {"shard": facts})
            try:
                write_baselines(self.folder, plan.split, plan.whole if plan.spec.baselines else None)
                claims.books = take_over(writer, [one for one in earlier if one.shard == self.shard], calls)
                if calls.limit is not None:
                    calls.limit, calls.claim = Decimal(0), claims.claim
                with self.syncing():
                    return ask_chat(replace(plan, split=self.own), chat, calls, writer) or ""
            except H2HTalkError:
                writer.discard()
                if not self.folder.manifest.exists():  # nothing is lost with the attempt
                    shutil.rmtree(self.folder.path, ignore_errors=True)
                    for name in sorted(self.stored, key=MANIFEST.__eq__):  # the manifest last: an erasure finds others
                        self.place.remove(name)
                raise
            finally:
                writer.close()
                claims.give_back(calls.store.dollars())

    @contextmanager
    def syncing(self) -> Iterator[None]:
        """Upload what is there, and new lines of calls every few seconds. Where the storage fails, that is an error at
        the end: replies are stored here meanwhile."""
        if self.place.path is not None:
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
            try:
                self.calls()
            except DataError as error:
                self.kept = True
                advice = f"its replies are kept in {self.folder.path}: copy its calls.jsonl to {self.place.text}"
                raise DataError(f"{error}; {advice}") from error

    def calls(self) -> None:
        """Upload the whole lines of calls that are new, as a part; not while, or after, somebody is erased."""
        with self.folder.calls_file.open("rb") as file:
            file.seek(self.sent)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        if lines and not self.erasing():
            name = f"{PARTS}/{sum(name.startswith(f'{PARTS}/') for name in self.stored) + 1:05}.jsonl"
            self._store(name, lines)
            if self.erasing():  # it did not see this part
                self.place.remove(name)
                del self.stored[name]
            else:
                self.sent += len(lines)

    def erasing(self) -> bool:
        """Whether somebody is, or was, erased from the attempt on storage."""
        return not {ERASED, ERASING}.isdisjoint(self.place.names())

    def files(self) -> None:
        """Upload all other files."""
        for name in attempt_files(self.folder.path):
            if name != CALLS:
                self._store(name, (self.folder.path / name).read_bytes())

    def _store(self, name: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        if self.stored.get(name) != digest:
            self.place.write(name, content)
            self.stored[name] = digest

    def finish(self, note: str) -> list[str]:
        """Write the mark, last; returns what failed, as texts. Raises IncompleteError where some were not asked, or
        somebody was erased from the attempt meanwhile."""
        shard, samples, answers = self.shard, self.plan.spec.samples, self.folder.answers()
        asked = [answers.get((one.id, sample)) for one in self.own.scenarios for sample in range(samples)]
        if missing := sum(one is None for one in asked):
            numbers = f"{missing:,} of {counted(len(asked), 'sample')} have no answer yet"
            raise IncompleteError(
                "; ".join([f"shard {shard}: {numbers}", *filter(None, [note]), "the same command goes on"])
            )
        failures = [one for one in asked if isinstance(one, FailedResponse)]
        if self.place.path is None:
            self.calls()
            self.files()
        write_mark(self.folder.path, shard, len(failures), self.stored)
        if self.place.path is None:
            self.place.write(MARK, (self.folder.path / MARK).read_bytes())
            if self.erasing():
                self.place.remove(MARK)
                raise IncompleteError(f"shard {shard}: items were erased from this attempt while it ran")
        return [f"{one.id}: {one.failure.message or one.failure.reason}" for one in failures]


def attempt_files(folder: Path) -> list[str]:
    """The names of an attempt's files but its mark, locks, and what is being written."""
    names = sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())
    return [one for one in names if one != MARK and not one.startswith(".") and not one.endswith(".lock")]


def write_mark(folder: Path, shard: Shard, failed: int, stored: Mapping[str, str]) -> None:
    """Write `shard.json`; `stored` are the files of object storage, empty: those of the folder."""
    files = dict(stored) or {name: sha256_of(folder / name) for name in attempt_files(folder)}
    write_sealed(folder / MARK, {"shard": shard.number, "of": shard.of, "failed": failed, "files": files})


def take_over(writer: RunWriter, earlier: Iterable[Attempt], calls: StageCalls) -> dict[str, Decimal]:
    """Store the replies of earlier attempts; what they cost stays there, and a merge counts it. Returns the most that
    each of them cost. Raises ConfigError where there is a limit and that is not known."""
    books = dict[str, Decimal]()
    for one in earlier:
        with one.opened() as folder:
            found, store = read_answers(folder.calls_file), read_store(folder.calls_file)
        if calls.prices is not None:
            store.reprice(calls.prices)
        if (dollars := store.dollars()) is None and calls.limit is not None:
            raise ConfigError(f"max_cost: {one.place.text} holds calls of unknown price: name it (--prices)")
        books[one.place.name] = dollars or Decimal(0)
        for key, answer in found.items():
            if isinstance(answer, Response) and not isinstance(writer.answers.get(key), Response):
                writer.calls.append(answer.to_dict() | {"stage": GENERATE, "attempt": one.place.name})
                fold_answer(writer.answers, answer)
    writer.calls.outcomes = 0  # none of them is lost with this folder
    return books


# --- Erasure ----------------------------------------------------------------------------------------------------------


class ErasableAttempt(ErasableRun):
    """An attempt: items go, and the mark of a finished one names the files that are left."""

    folder_type = AttemptFolder

    def remake(self) -> Iterator[str]:
        yield from ()
        if self.folder.baselines.is_dir():
            write_baselines(self.folder, self.folder.split(), self.folder.split())
        if (attempt := read_attempt(Place(str(self.path)))) is not None and attempt.failed is not None:
            failed = sum(isinstance(one, FailedResponse) for one in self.folder.answers().values())
            write_mark(self.path, attempt.shard, failed, {})


def erase_stored(url: str, erased: ErasedIds) -> FolderErasure:
    """Erase from an attempt on object storage: a copy is erased from, its files take the place of those there. What was
    interrupted is completed by the next erasure."""
    place = Place(url)
    if place.path is not None:
        return erase(place.path, erased)
    if (attempt := read_attempt(place)) is None:
        message = "this attempt is not there any more; if it was moved, erase there too"
        return FolderErasure(messages=(message,), kind=AttemptFolder.kind)
    place.write(ERASING, b"")  # a running attempt holds its lines back, and nobody reads what is half erased
    with attempt.opened() as folder:
        parts = [one.relative_to(folder.path).as_posix() for one in (folder.path / PARTS).glob("*.jsonl")]
        shutil.rmtree(folder.path / PARTS, ignore_errors=True)
        if not (folder.path / CALLS).stat().st_size:  # it may have ended before its files were there
            place.write(ERASED, b"".join(json_line({"id": one}).encode() for one in sorted(erased.ids)))
            for name in sorted({*attempt_files(folder.path)} - {CALLS, ERASED}, key=MANIFEST.__eq__):
                place.remove(name)
            return FolderErasure(1, erased.ids, kind=AttemptFolder.kind)
        result = erase(folder.path, erased)
        if result.items:
            [*ErasableAttempt(folder.path).remake()]  # also where an erasure before this one did not come so far
            # First what a running attempt looks for, and the calls, in the place of their parts; the mark last.
            for name in dict.fromkeys([ERASED, CALLS, *attempt_files(folder.path), MARK]):
                if (folder.path / name).is_file():
                    place.write(name, (folder.path / name).read_bytes())
            for name in parts:
                place.remove(name)
    place.remove(ERASING)
    return result
