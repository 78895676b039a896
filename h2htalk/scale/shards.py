"""Evaluate one shard of a run, in an attempt of its own (`attempts` says how it is stored).

A new attempt reads the replies of earlier ones, whole lines only, and asks for the rest.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import Any

from h2htalk.benchmark.baselines import write_baselines
from h2htalk.benchmark.evaluate import (
    GENERATE,
    EvaluationPlan,
    ask_chat,
    call_settings,
    make_plan,
    make_signature,
)
from h2htalk.benchmark.run import RunWriter
from h2htalk.benchmark.score_run import open_metrics
from h2htalk.benchmark.settings import EvaluateSpec
from h2htalk.chat.engines import require_model
from h2htalk.chat.refused_parameters import with_other_forms
from h2htalk.chat.store.call_store import CallStore, read_store
from h2htalk.chat.store.stage_calls import StageCalls
from h2htalk.chat.wire_options import forms_of
from h2htalk.data.erasure.folder_kinds import ERASED
from h2htalk.data.erasure.scratch import scratch_folder
from h2htalk.data.erasure.unfinished_erasure import MARK as ERASING
from h2htalk.data.responses import CALLS, FailedResponse, Response, fold_answer, read_answers
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, H2HTalkError, IncompleteError, counted
from h2htalk.scale.attempts import (
    MANIFEST,
    MARK,
    MONEY,
    PARTS,
    Attempt,
    AttemptFolder,
    Shard,
    attempt_files,
    read_attempts,
    require_same,
    winner_of,
    write_mark,
)
from h2htalk.scale.claims import Claims
from h2htalk.scale.storage_folder import StorageFolder

SYNC = 5.0  # seconds after which the new lines of calls are uploaded
_SLURM = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT")  # in a manifest


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
        raise ConfigError(
            "--shard: a batch job runs at the provider, on as many machines as it has; leave one out"
        )
    require_model(spec.model)
    out = StorageFolder(str(spec.out))
    out.require()
    plan = make_plan(spec)
    items = shard.items(plan.split)
    earlier = _earlier_attempts(plan, out, shard)
    winner = winner_of(attempt for attempt in earlier if attempt.shard == shard)
    if winner is not None and not winner.failed:
        return f"shard {shard} is finished: {winner.storage.address}"

    def attempt(engine_options: Mapping[str, str]) -> str:
        return _attempt(plan.with_forms(engine_options), shard, items, earlier, out)

    forms = forms_of(earlier[0].signature.subject) if earlier else {}
    return with_other_forms(attempt, {**forms, **spec.engine_options})


def _attempt(
    plan: EvaluationPlan, shard: Shard, items: Split, earlier: Sequence[Attempt], out: StorageFolder
) -> str:
    """Make one attempt at a shard's items, in a folder of its own; see `evaluate_shard`."""
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
    storage = out / shard.folder / name
    with ExitStack() as stack:
        scratch = None
        folder = storage.path
        if folder is None:
            scratch = stack.enter_context(scratch_folder(storage.run))
            folder = scratch.path / name
        running = RunningAttempt(plan, shard, items, storage, AttemptFolder(folder))
        try:
            note = running.ask(earlier, out / shard.folder / MONEY)
            failures = running.finish(note)
        finally:
            if scratch is not None and running.keeps_folder:
                scratch.keep()
    if failures:
        raise IncompleteError(
            f"shard {shard} is finished, but {counted(len(failures), 'sample')} of it failed, first {failures[0]}; "
            "the same command asks for them again"
        )
    return f"shard {shard} is finished: {storage.address}"


def _earlier_attempts(plan: EvaluationPlan, out: StorageFolder, shard: Shard) -> list[Attempt]:
    """The attempts at a shard, and one at another. Raises ConfigError where they are not of the same run: before the
    model is opened what its weights decide is not compared."""
    names = [name for name in out.names() if re.fullmatch(r"\d+-of-\d+", name)]
    for name in names:
        if not name.endswith(f"-of-{shard.total}"):
            raise ConfigError(
                f"{out.address}: holds shards of another number ({name}); name another --out"
            )
    if out.path is not None and (out.path / "run.json").exists():
        raise ConfigError(f"{out.address}: holds a run; name another --out for its shards")
    earlier = read_attempts(out / shard.folder)
    if names and not earlier:
        earlier = read_attempts(out / names[0])
    subject = {"engine": plan.spec.engine, "model": plan.spec.model.partition("@")[0]}
    signature = _signature(plan, subject)
    for attempt in earlier:
        subject = {**attempt.signature.subject, "model": attempt.model.partition("@")[0]}
        subject = {key: subject[key] for key in subject if key in signature.subject}
        comparable = Signature(attempt.signature.protocol, subject)
        require_same(replace(attempt, signature=comparable), signature)
        if attempt.erased:
            raise ConfigError(
                f"{attempt.storage.address}: items were erased from this attempt, and the split that is to be asked "
                "still holds them; ask a version without them, into another --out"
            )
    return earlier


def _signature(plan: EvaluationPlan, subject: Mapping[str, str]) -> Signature:
    """The run's signature; what the weights of the embedder decide is added by the merge, which opens it."""
    spec = plan.spec
    metrics = open_metrics("none", spec.rouge, spec.contracts, spec.filtered)
    signature = make_signature(plan, subject, metrics)
    return Signature({**signature.protocol, "embedder": spec.embedder}, signature.subject)


@dataclass
class RunningAttempt:
    """An attempt at work.

    Attributes:
        items: the shard's items.
        storage: where the attempt is stored.
        folder: the same folder, or for object storage a folder here whose files are uploaded.
        uploaded: name -> SHA-256 of each file that was uploaded.
        uploaded_bytes: of the calls.
        keeps_folder: whether the folder here must stay, as the storage did not take its replies.
    """

    plan: EvaluationPlan
    shard: Shard
    items: Split
    storage: StorageFolder
    folder: AttemptFolder
    uploaded: dict[str, str] = field(default_factory=dict)
    uploaded_bytes: int = 0
    keeps_folder: bool = False

    def ask(self, earlier: Sequence[Attempt], money: StorageFolder) -> str:
        """Make the folder, and ask for what earlier attempts have no reply to; returns why it paused, if it did."""
        plan = self.plan
        settings = call_settings(plan.spec)
        calls = settings.stage_calls(CallStore(self.folder.calls_file), GENERATE)
        share = (calls.limit or Decimal(0)) / self.shard.total
        claims = Claims(money, self.storage.name, share)
        with closing(settings.open_chat(calls)) as chat:
            signature = _signature(plan, chat.subject)
            for attempt in earlier:
                require_same(attempt, signature)
            self.folder.place = self.storage.path or self.storage.address
            writer = RunWriter(
                self.folder,
                plan.spec.to_dict(),
                signature,
                plan.split,
                plan.prompts.files(),
                calls.store,
                {"shard": self._facts()},
            )
            try:
                whole_split = plan.full_split if plan.spec.baselines else None
                write_baselines(self.folder, plan.split, whole_split)
                same_shard = [attempt for attempt in earlier if attempt.shard == self.shard]
                claims.spent_before = take_over(writer, same_shard, calls)
                if calls.limit is not None:
                    calls.limit = Decimal(0)
                    calls.claim = claims.claim
                with self.syncing():
                    return ask_chat(replace(plan, split=self.items), chat, calls, writer) or ""
            except H2HTalkError:
                writer.discard()
                if not self.folder.manifest.exists():  # nothing is lost with the attempt
                    shutil.rmtree(self.folder.path, ignore_errors=True)
                    # The manifest last: an erasure finds others.
                    for name in sorted(self.uploaded, key=MANIFEST.__eq__):
                        self.storage.remove(name)
                raise
            finally:
                writer.close()
                claims.give_back(calls.store.dollars())

    def _facts(self) -> dict[str, Any]:
        """What the manifest says of the shard and of the process that asks."""
        facts = {
            "shard": self.shard.number,
            "of": self.shard.total,
            "host": socket.gethostname(),
            "pid": os.getpid(),
        }
        return facts | {name.lower(): os.environ[name] for name in _SLURM if name in os.environ}

    @contextmanager
    def syncing(self) -> Iterator[None]:
        """Upload what is there, and new lines of calls every few seconds. Where the storage fails, that is an error at
        the end: replies are stored here meanwhile."""
        if self.storage.path is not None:
            yield
            return
        ended = threading.Event()
        self.upload_files()

        def sync() -> None:
            while not ended.wait(SYNC):
                with suppress(DataError):  # tried again, and at the end reported
                    self.upload_calls()

        thread = threading.Thread(target=sync, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            try:
                self.upload_calls()
            except DataError as error:
                self.keeps_folder = True
                raise DataError(
                    f"{error}; its replies are kept in {self.folder.path}: copy its calls.jsonl to "
                    f"{self.storage.address}"
                ) from error

    def upload_calls(self) -> None:
        """Upload the whole lines of calls that are new, as a part; not while, or after, somebody is erased."""
        with self.folder.calls_file.open("rb") as file:
            file.seek(self.uploaded_bytes)
            lines = file.read()
        lines = lines[: lines.rfind(b"\n") + 1]
        if lines and not self.erasing():
            number = 1 + sum(name.startswith(f"{PARTS}/") for name in self.uploaded)
            name = f"{PARTS}/{number:05}.jsonl"
            self._upload(name, lines)
            if self.erasing():  # it did not see this part
                self.storage.remove(name)
                del self.uploaded[name]
            else:
                self.uploaded_bytes += len(lines)

    def erasing(self) -> bool:
        """Whether somebody is, or was, erased from the attempt on storage."""
        return not {ERASED, ERASING}.isdisjoint(self.storage.names())

    def upload_files(self) -> None:
        """Upload all other files."""
        for name in attempt_files(self.folder.path):
            if name != CALLS:
                self._upload(name, (self.folder.path / name).read_bytes())

    def _upload(self, name: str, content: bytes) -> None:
        digest = hashlib.sha256(content).hexdigest()
        if self.uploaded.get(name) != digest:
            self.storage.write(name, content)
            self.uploaded[name] = digest

    def finish(self, note: str) -> list[str]:
        """Write the mark, last; returns what failed, as texts. Raises IncompleteError where some were not asked, or
        somebody was erased from the attempt meanwhile."""
        shard = self.shard
        answers = self.folder.answers()
        ids = [scenario.id for scenario in self.items.scenarios]
        outcomes = [answers.get(key) for key in product(ids, range(self.plan.spec.samples))]
        failures = [outcome for outcome in outcomes if isinstance(outcome, FailedResponse)]
        missing = outcomes.count(None)
        if missing:
            problem = f"shard {shard}: {missing:,} of {counted(len(outcomes), 'sample')} have no answer yet"
            raise IncompleteError(
                "; ".join(filter(None, [problem, note, "the same command goes on"]))
            )
        if self.storage.path is None:
            self.upload_calls()
            self.upload_files()
        write_mark(self.folder.path, shard, len(failures), self.uploaded)
        if self.storage.path is None:
            self.storage.write(MARK, (self.folder.path / MARK).read_bytes())
            if self.erasing():
                self.storage.remove(MARK)
                raise IncompleteError(
                    f"shard {shard}: items were erased from this attempt while it ran"
                )
        return [
            f"{answer.id}: {answer.failure.message or answer.failure.reason}" for answer in failures
        ]


def take_over(
    writer: RunWriter, earlier: Iterable[Attempt], calls: StageCalls
) -> dict[str, Decimal]:
    """Store the replies of earlier attempts; what they cost stays there, and a merge counts it. Returns the most that
    each of them cost. Raises ConfigError where there is a limit and that is not known."""
    spent: dict[str, Decimal] = {}
    for attempt in earlier:
        name = attempt.storage.name
        with attempt.opened() as folder:
            answers = read_answers(folder.calls_file)
            store = read_store(folder.calls_file)
        if calls.prices is not None:
            store.reprice(calls.prices)
        dollars = store.dollars()
        if dollars is None and calls.limit is not None:
            raise ConfigError(
                f"max_cost: {attempt.storage.address} holds calls of unknown price: name it (--prices)"
            )
        spent[name] = dollars or Decimal(0)
        for key, answer in answers.items():
            if isinstance(answer, Response) and not isinstance(writer.answers.get(key), Response):
                line = answer.to_dict() | {"stage": GENERATE, "attempt": name}
                writer.calls.append(line)
                fold_answer(writer.answers, answer)
    writer.calls.outcomes = 0  # none of them is lost with this folder
    return spent
