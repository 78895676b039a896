"""Merge finished attempts at all shards of a run into the run that one machine would have made.

Answers, scores, summary and tables are those of a single run, byte for byte where sampling allows; `run.json` alone
names shards, hosts and times. `calls.jsonl` holds the winners' replies, and of every call of every attempt what it
cost. What does not fit together is refused, never joined.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from h2htalk.addresses import REFUSED, holds_password
from h2htalk.benchmark.metrics.composite import Metrics
from h2htalk.benchmark.prompts.prompt_set import StoredPrompts
from h2htalk.benchmark.run import RunInputs, RunWriter, load_run, read_run_data
from h2htalk.benchmark.score_run import metric_keys, open_metrics, score, score_run_data
from h2htalk.benchmark.summary import Summary
from h2htalk.data.erasure.folder_kinds import ERASED, MONEY
from h2htalk.data.files import read_json_object, read_jsonl, refuse_links, writer_lock
from h2htalk.data.links import add_link, read_links
from h2htalk.data.responses import CALLS, Response, SampleKey, read_answers, read_outcomes
from h2htalk.data.run_folder import LOCK, RunFolder
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, IncompleteError, counted, listed, quoted
from h2htalk.scale.attempts import (
    Attempt,
    AttemptFolder,
    read_attempt,
    read_attempts,
    require_same,
    winner_of,
)
from h2htalk.scale.storage_folder import StorageFolder

# Of a line of calls: what a call is, and how it was paid. Lines of replies hold more.
_PAYMENT_KEYS = MONEY | {"id", "item", "prompts", "request_id", "priced"}
# What a merge makes in its folder.
_MERGED_NAMES = {
    "run.json",
    "inputs",
    "baselines",
    "scores",
    "tables",
    "report.html",
    "links.jsonl",
    "links.lock",
    CALLS,
    LOCK,
    ERASED,
}


def merge(addresses: Sequence[str], out: Path, prompts: Path | None = None) -> Summary:
    """Merge the shards of a run. `addresses`: folders or URLs of attempts, of shards, or of an `--out` of `--shard`.

    A merge that was killed is done again, and one that is done gives its summary. Returns the summary, as `evaluate`.
    `prompts`: the folder of templates that the shards were asked with, as of `load_run`. Without it a run of templates
    that are not those of this version is scored without the contract's leak rule; the same merge with it scores again.

    Raises:
        IncompleteError: not all shards are finished; the message says how many are.
        ConfigError: attempts of two runs: another model, sampling, split version, prompts or number of shards; or
            `prompts` are not those of the run.
        DataError: a file of a finished attempt was edited; an item is there twice or missing; `out` holds another run.
    """
    if holds_password(addresses):
        raise ConfigError(REFUSED)
    storages = [StorageFolder(address) for address in addresses]
    for storage in storages:
        storage.require()
    copies: dict[str, list[Attempt]] = {}
    for copy in chain.from_iterable(map(find_attempts, storages)):
        copies.setdefault(copy.storage.name, []).append(copy)
    attempts = [
        min(group, key=lambda copy: (copy.failed is None, copy.storage.address))
        for group in copies.values()
    ]
    if not attempts:
        raise DataError(
            f"{listed(list(addresses))}: no attempt at a shard is there; name the --out of `evaluate --shard`"
        )
    manifest = read_json_object(out / "run.json", missing_ok=True)
    merged = [shard.get("attempt") for shard in manifest.get("shards", ())]
    winners = choose_winners(attempts, merged)
    if (out / "run.json").is_file():
        if merged != [winner.storage.name for winner in winners]:
            raise DataError(
                f"{out}: holds another run, or one of other attempts; name a new folder with --out"
            )
        if (out / "summary.json").is_file():
            return _finished(out, prompts)
        _clear(out, winners[0].erased)
    RunFolder(out).require_usable(winners[0].signature)
    with ExitStack() as stack:
        folders = [stack.enter_context(winner.opened()) for winner in winners]
        for winner, folder in zip(winners, folders, strict=True):
            winner.require_unedited(folder.path)
        losers = [
            stack.enter_context(attempt.opened()) for attempt in attempts if attempt not in winners
        ]
        data = read_run_data(folders[0].path, AttemptFolder, prompts)
        _require_complete(winners, folders, data)
        spec = replace(data.spec, out=str(out))
        data = replace(data, folder=RunFolder(out), spec=spec)
        metrics = open_metrics(spec.embedder, spec.rouge, spec.contracts, spec.filtered)
        with closing(_writer_of(winners, folders, data, metrics)) as writer:
            if folders[0].baselines.is_dir():
                shutil.copytree(folders[0].baselines, out / "baselines")
            if (folders[0].path / ERASED).is_file():
                shutil.copy2(folders[0].path / ERASED, out / ERASED)
            for copy in chain.from_iterable(copies.values()):
                add_link(out, AttemptFolder.kind, copy.storage.address)
            for line in merged_lines(folders, losers):
                writer.calls.append(line)
            return score_run_data(data, metrics)


def _require_complete(
    winners: Sequence[Attempt], folders: Sequence[AttemptFolder], data: RunInputs
) -> None:
    """Raise DataError unless the same items were erased from all winners, and each has all answers of its shard."""
    erased = folders[0].erased()
    if any(folder.erased() != erased for folder in folders):
        addresses = ", ".join(winner.storage.address for winner in winners)
        raise DataError(
            f"items were erased from some of these attempts and not from others: {addresses}; erase again"
        )
    for winner, folder in zip(winners, folders, strict=True):
        require_whole(winner, folder, data.split, erased, data.spec.samples)


def _writer_of(
    winners: Sequence[Attempt],
    folders: Sequence[AttemptFolder],
    data: RunInputs,
    metrics: Metrics,
) -> RunWriter:
    """Make the folder of the merged run; its manifest names shards and sessions."""
    signature = winners[0].signature
    items = {key: signature.protocol[key] for key in ("items", "prompts")}
    protocol = {**items, **metric_keys(metrics, data.split)}
    sessions = []
    shards = []
    for winner, folder in zip(winners, folders, strict=True):
        storage = winner.storage
        shards.append({**winner.facts, "attempt": storage.name, "place": storage.address})
        sessions += folder.read_run().get("sessions", ())
    sessions.sort(key=lambda session: str(session["started"]))
    return RunWriter(
        data.folder,
        data.spec.to_dict(),
        Signature(protocol, signature.subject),
        data.split,
        StoredPrompts.read(folders[0].prompts).files(),
        facts={"shards": shards, "sessions": sessions},
    )


def _finished(out: Path, prompts: Path | None) -> Summary:
    """The summary of a merge that is done, scored again where it lacks the leak rule and `prompts` are named."""
    summary = load_run(out, prompts).summary
    if prompts is None or not summary.signature.lacks_leak_rule:
        return summary
    keys = summary.signature.protocol
    if "references_sha256" in keys:
        raise ConfigError(
            f"{out}: was scored with private references; name both: "
            f"`h2htalk score {out} --references FILE --prompts {prompts}`"
        )
    embedder = keys["embedder"].partition("@")[0]
    return score(
        out, embedder, keys["rouge"], filtered=summary.signature.filter_rule, prompts=prompts
    )


def _clear(out: Path, erased: frozenset[str]) -> None:
    """Remove what a killed merge left. Raises DataError where it is more than that."""
    refuse_links(out)
    with writer_lock(out / CALLS, "wait for that merge"):
        names = {path.name for path in out.iterdir()} - _MERGED_NAMES
        foreign = sorted(name for name in names if not name.startswith("."))
        foreign += [link.target for link in read_links(out) if link.kind != AttemptFolder.kind]
        if foreign:
            raise DataError(f"{out}: holds {listed(foreign)} and no summary: `h2htalk score {out}`")
        if not RunFolder(out).erased().keys() <= erased:
            raise DataError(
                f"{out}: items were erased from it that these attempts hold; name another --out"
            )
        # The manifest last: it says what this is.
        for path in sorted(out.iterdir(), key=lambda path: path.name == "run.json"):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()


def find_attempts(storage: StorageFolder) -> list[Attempt]:
    """Find the attempts in a folder: one, those of a shard, or those of all shards below it."""
    attempt = read_attempt(storage)
    if attempt is not None:
        return [attempt]
    attempts = read_attempts(storage)
    for name in storage.names():
        if "-of-" in name:
            attempts += read_attempts(storage / name)
    return attempts


def choose_winners(attempts: Sequence[Attempt], preferred: Collection[str] = ()) -> list[Attempt]:
    """The winner of each shard, in order, of equals one of a `preferred` name. Raises as `merge`."""
    first = attempts[0]
    attempts_of: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        if attempt.shard.total != first.shard.total:
            raise ConfigError(
                f"another number of shards: {attempt.storage.address} is shard {attempt.shard}, and "
                f"{first.storage.address} is shard {first.shard}; merge those of one number"
            )
        require_same(attempt, first.signature, first.storage.address)
        attempts_of.setdefault(attempt.shard.number, []).append(attempt)
    winners = []
    missing = []
    for number in range(1, first.shard.total + 1):
        winner = winner_of(attempts_of.get(number, ()), preferred)
        if winner is None:
            missing.append(number)
        else:
            winners.append(winner)
    if missing:
        raise IncompleteError(
            f"{len(winners)} of {first.shard.total} shards are finished; missing: {listed(missing, 20)}"
        )
    return winners


def require_whole(
    attempt: Attempt, folder: AttemptFolder, split: Split, erased: Collection[str], samples: int
) -> None:
    """Raise DataError unless an attempt has one answer, or a failure, for each sample of its shard, and no other."""
    numbers = Counter[SampleKey]()
    for where, record in read_jsonl(folder.calls_file, torn_tail=True):
        for outcome in read_outcomes(record, where):
            if isinstance(outcome, Response):
                numbers[outcome.id, outcome.sample] += 1
    answers = read_answers(folder.calls_file)
    # Items in the place of erased ones, which decided the order of the others.
    substitutes = [replace(split.scenarios[0], id=name) for name in sorted(erased)]
    original = replace(split, scenarios=(*split.scenarios, *substitutes))
    items = {item.id for item in attempt.shard.items(original).scenarios}.difference(erased)
    expected = set(product(items, range(samples)))
    problems = {
        "twice": {key for key, number in numbers.items() if number > 1},
        "missing": expected - answers.keys(),
        "of another shard": answers.keys() - expected,
    }
    for problem, keys in problems.items():
        if keys:
            item, sample = min(keys)
            raise DataError(
                f"{attempt.storage.address}: shard {attempt.shard}: {counted(len(keys), 'sample')} {problem}, "
                f"first {quoted(item)} (sample {sample}); delete the attempt and run the shard again"
            )


def merged_lines(
    winners: Iterable[AttemptFolder], losers: Iterable[AttemptFolder]
) -> Iterator[dict[str, Any]]:
    """The lines of the run's calls: replies of winners, and of every call its cost, numbered on."""
    calls = 0
    for won, folders in ((True, winners), (False, losers)):
        for folder in folders:
            highest = 0
            for _, record in read_jsonl(folder.path / CALLS, torn_tail=True):
                numbers = {key: int(record[key]) for key in ("reserved", "call") if key in record}
                highest = max([highest, *numbers.values()])
                line = {key: record[key] for key in record if won or key in _PAYMENT_KEYS}
                for key, number in numbers.items():
                    line[key] = number + calls
                if won or numbers:
                    yield line
            calls += highest
