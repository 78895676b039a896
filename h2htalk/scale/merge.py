"""Merge finished attempts at all shards of a run into the run that one machine would have made.

Answers, scores, summary and tables are those of a single run, byte for byte where sampling allows; `run.json` alone
names shards, hosts and times. `calls.jsonl` holds the winners' replies, and of every call of every attempt what it
cost. What does not fit together is refused, never joined.
"""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from h2htalk.benchmark.prompts.prompt_set import PromptSet
from h2htalk.benchmark.run import RunData, RunWriter, load_run, read_run_data
from h2htalk.benchmark.score_run import metric_keys, open_metrics, score_run_data
from h2htalk.benchmark.summary import Summary
from h2htalk.data.erasure.folder_kinds import ERASED, MONEY
from h2htalk.data.files import read_json_object, read_jsonl, refuse_links, writer_lock
from h2htalk.data.links import add_link, read_links
from h2htalk.data.responses import CALLS, Response, SampleKey, read_answers, read_outcomes
from h2htalk.data.run_folder import LOCK, RunFolder
from h2htalk.data.signature import Signature
from h2htalk.data.splits import Split
from h2htalk.errors import ConfigError, DataError, IncompleteError, counted, listed, quoted
from h2htalk.scale.places import Place
from h2htalk.scale.shards import Attempt, AttemptFolder, read_attempt, read_attempts, require_same, winner_of

# Of a line of calls: what a call is, and how it was paid. Lines of replies hold more.
_PAID = MONEY | {"id", "item", "prompts", "request_id", "priced"}
_MADE = {"run.json", "inputs", "baselines", "scores", "tables", "report.html", "links.jsonl", "links.lock"}
_MADE |= {CALLS, LOCK, ERASED}  # what a merge makes in its folder


def merge(places: Sequence[str], out: Path) -> Summary:
    """Merge the shards of a run. `places`: folders or URLs of attempts, of shards, or of a whole `--out` of `--shard`.

    A merge that was killed is done again, and one that is done gives its summary. Returns the summary, as `evaluate`.

    Raises:
        IncompleteError: not all shards are finished; the message says how many are.
        ConfigError: attempts of two runs: another model, sampling, split version, prompts or number of shards.
        DataError: a file of a finished attempt was edited; an item is there twice or missing; `out` holds another run.
    """
    copies = defaultdict[str, list[Attempt]](list)
    for one in (one for text in places for one in find_attempts(Place(text))):
        copies[one.place.name].append(one)
    attempts = [min(own, key=lambda one: (one.failed is None, one.place.text)) for own in copies.values()]
    if not attempts:
        raise DataError(f"{listed(list(places))}: no attempt at a shard is there; name the --out of `evaluate --shard`")
    there = [one.get("attempt") for one in read_json_object(out / "run.json", missing_ok=True).get("shards", ())]
    winners = choose_winners(attempts, there)
    if (out / "run.json").is_file():
        if there != [one.place.name for one in winners]:
            raise DataError(f"{out}: holds another run, or one of other attempts; name a new folder with --out")
        if (out / "summary.json").is_file():
            return load_run(out).summary
        _clear(out, winners[0].erased)
    own = winners[0].signature
    RunFolder(out).require_usable(own)
    with ExitStack() as stack:
        folders = [stack.enter_context(one.opened()) for one in winners]
        for one, folder in zip(winners, folders, strict=True):
            one.require_unedited(folder.path)
        losers = [stack.enter_context(one.opened()) for one in attempts if one not in winners]
        data, erased = read_run_data(folders[0].path, AttemptFolder), folders[0].erased()
        split, spec = data.split, replace(data.spec, out=str(out))
        if any(folder.erased() != erased for folder in folders):
            where = ", ".join(one.place.text for one in winners)
            raise DataError(f"items were erased from some of these attempts and not from others: {where}; erase again")
        for one, folder in zip(winners, folders, strict=True):
            require_whole(one, folder, split, erased, spec.samples)
        metrics = open_metrics(spec.embedder, spec.rouge, spec.contracts)
        items = {key: own.protocol[key] for key in ("items", "prompts")}
        signature = Signature({**items, **metric_keys(metrics, split)}, own.subject)
        sessions = [one for folder in folders for one in folder.read_run().get("sessions", ())]
        shards = [{**one.facts, "attempt": one.place.name, "place": one.place.text} for one in winners]
        facts = {"shards": shards, "sessions": sorted(sessions, key=lambda one: str(one["started"]))}
        prompts = PromptSet.load(folders[0].prompts).files()
        with closing(RunWriter(RunFolder(out), spec.to_dict(), signature, split, prompts, facts=facts)) as writer:
            if folders[0].baselines.is_dir():
                shutil.copytree(folders[0].baselines, out / "baselines")
            if (folders[0].path / ERASED).is_file():
                shutil.copy2(folders[0].path / ERASED, out / ERASED)
            for one in (one for group in copies.values() for one in group):
                add_link(out, AttemptFolder.kind, one.place.text)
            for line in merged_lines(folders, losers):
                writer.calls.append(line)
            return score_run_data(RunData(RunFolder(out), spec, split, data.prompt_of), metrics)


def _clear(out: Path, erased: frozenset[str]) -> None:
    """Remove what a killed merge left. Raises DataError where it is more than that."""
    refuse_links(out)
    with writer_lock(out / CALLS, "wait for that merge"):
        others = sorted(one.name for one in out.iterdir() if one.name[0] != "." and one.name not in _MADE)
        if others := [*others, *(link.target for link in read_links(out) if link.kind != AttemptFolder.kind)]:
            raise DataError(f"{out}: holds {listed(others)} and no summary: `h2htalk score {out}`")
        if not RunFolder(out).erased().keys() <= erased:
            raise DataError(f"{out}: items were erased from it that these attempts hold; name another --out")
        for path in sorted(out.iterdir(), key=lambda path: path.name == "run.json"):  # last: it says what this is
            if path.name != LOCK:
                (shutil.rmtree if path.is_dir() else Path.unlink)(path)


def find_attempts(place: Place) -> list[Attempt]:
    """Find the attempts at a place: one, those of a shard, or those of all shards below it."""
    if (one := read_attempt(place)) is not None:
        return [one]
    homes = [place, *(place / name for name in place.names() if "-of-" in name)]
    return [attempt for home in homes for attempt in read_attempts(home)]


def choose_winners(attempts: Sequence[Attempt], known: Collection[str] = ()) -> list[Attempt]:
    """The winner of each shard, in order, of equals one of a `known` name. Raises as `merge`."""
    first, of_shard = attempts[0], defaultdict[int, list[Attempt]](list)
    for one in attempts:
        if one.shard.of != first.shard.of:
            numbers = f"{one.place.text} is shard {one.shard}, and {first.place.text} is shard {first.shard}"
            raise ConfigError(f"another number of shards: {numbers}; merge those of one number")
        require_same(one, first.signature, first.place.text)
        of_shard[one.shard.number].append(one)
    shards = range(1, first.shard.of + 1)
    found = {n: winner for n in shards if (winner := winner_of(of_shard[n], known)) is not None}
    if missing := [n for n in shards if n not in found]:
        raise IncompleteError(f"{len(found)} of {len(shards)} shards are finished; missing: {listed(missing, 20)}")
    return [*found.values()]


def require_whole(one: Attempt, folder: AttemptFolder, split: Split, erased: Collection[str], samples: int) -> None:
    """Raise DataError unless an attempt has one answer, or a failure, for each sample of its shard, and no other."""
    numbers = Counter[SampleKey]()
    for where, record in read_jsonl(folder.calls_file, torn_tail=True):
        numbers.update((r.id, r.sample) for r in read_outcomes(record, where) if isinstance(r, Response))
    answers = read_answers(folder.calls_file)
    # Items in the place of erased ones, which decided the order of the others.
    gone = (replace(split.scenarios[0], id=name) for name in sorted(erased))
    whole = replace(split, scenarios=(*split.scenarios, *gone))
    asked = {(item.id, k) for item in one.shard.items(whole).scenarios for k in range(samples) if item.id not in erased}
    for problem, keys in (
        ("twice", {key for key, number in numbers.items() if number > 1}),
        ("missing", asked - answers.keys()),
        ("of another shard", answers.keys() - asked),
    ):
        if keys:
            item, sample = min(keys)
            what = f"{counted(len(keys), 'sample')} {problem}, first {quoted(item)} (sample {sample})"
            raise DataError(f"{one.place.text}: shard {one.shard}: {what}; delete the attempt and run the shard again")


def merged_lines(winners: Iterable[AttemptFolder], losers: Iterable[AttemptFolder]) -> Iterator[dict[str, Any]]:
    """The lines of the run's calls: replies of winners, and of every call its cost, numbered on."""
    calls = 0
    for won, attempts in ((True, winners), (False, losers)):
        for folder in attempts:
            highest = 0
            for _, record in read_jsonl(folder.path / CALLS, torn_tail=True):
                numbers = {key: int(record[key]) for key in ("reserved", "call") if key in record}
                highest = max([highest, *numbers.values()])
                if won or numbers:
                    line = {key: value for key, value in record.items() if won or key in _PAID}
                    yield line | {key: number + calls for key, number in numbers.items()}
            calls += highest
