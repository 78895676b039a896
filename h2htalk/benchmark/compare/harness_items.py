"""Items of another harness's log, and which of them are those of another run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from h2htalk.benchmark.compare.scored_items import ScoredItem, ScoredItems
from h2htalk.data.files import sha256_of
from h2htalk.data.imports.harness_log import ItemInput, LogRecord
from h2htalk.data.imports.log_forms import read_harness_log
from h2htalk.data.signature import Signature
from h2htalk.errors import ConfigError, counted, listed, quoted


def read_log_items(path: Path, metric: str | None, scale: str) -> ScoredItems:
    """Read a log of another harness; an item's values are those of its epochs, none where one of them has none.

    Raises:
        ConfigError: no such metric; several, and none was named; no such scale, or a value outside.
        DataError: as `read_harness_log`.
    """
    try:
        low, high = map(float, scale.rpartition("-")[::2])
        if not low < high < float("inf"):
            raise ValueError(scale)
    except ValueError as error:
        raise ConfigError(f"--scale {quoted(scale)}: write lowest and highest value, such as 0-1 or 1-5") from error
    log = read_harness_log(path)
    name = log.metric(metric)
    records = sorted(log.records, key=lambda record: (record.item, record.epoch))
    groups = {item: list(own) for item, own in groupby(records, key=lambda record: record.item)}
    items = {item: _item(own, name, low, high) for item, own in groups.items()}
    if outside := [item for item, own in items.items() if not all(0 <= value <= 100 for value in own.values)]:
        found = f"{counted(len(outside), 'item')} outside {scale}: {listed(outside)}"
        raise ConfigError(f"{path}: {name} of {found}; name the scale of its values with --scale")
    inputs = {item: next((record.input for record in own if record.input), None) for item, own in groups.items()}
    digest = f", sha256 {sha256_of(path)[:12]}" if path.is_file() else ""
    notes = [f"metric {name} on {scale}{digest}", *log.notes]
    if empty := [record.item for record in records if record.answer == "" and isinstance(record.value(name), float)]:
        notes.append(f"{counted(len(empty), 'empty answer has', 'empty answers have')} a score: {listed(empty)}")
    label = f"{log.model} ({log.harness})"
    return ScoredItems(
        label, log.task, name, Signature({}, {}), items, {}, inputs.get, harness=log.harness, notes=tuple(notes)
    )


def _item(records: list[LogRecord], metric: str, low: float, high: float) -> ScoredItem:
    values = [record.value(metric) for record in records]
    reason = next((value for value in values if isinstance(value, str)), None)
    scaled = tuple(100 * ((value - low) / (high - low)) for value in values if not isinstance(value, str))
    return ScoredItem(
        id=records[0].item,
        subtask="",
        cluster=records[0].item,
        content="",
        values=() if reason else scaled,
        unscored=reason,
        answers=tuple(record.answer or "" for record in records),
        failed=any(record.failure for record in records),
        own_id=records[0].own_id,
    )


def align(a: ScoredItems, b: ScoredItems) -> tuple[ScoredItems, ScoredItems, list[str]]:
    """Name the items of B as A does, by id or else by what was asked; return both, and what must be said of it.

    An item that asked something else gets another `content`. Subtasks and clusters are those of our own run.
    """
    names = {name: name for name, item in b.items.items() if item.own_id and name in a.items and a.items[name].own_id}
    by_id = len(names)
    for key in (lambda one: one.turns, _last_turn):
        names |= _matches(a, b, names, key)
    asked = {name: (a.input_of(other), b.input_of(name)) for name, other in names.items()}
    same = {name for name, pair in asked.items() if _is_same(*pair)}
    a_items, b_items = dict(a.items), {}
    for name, item in b.items.items():
        if name not in names:
            b_items[f"{name} of B" if name in a.items else name] = item
            continue
        other = a.items[names[name]]
        ours, content = item if a.harness else other, "" if name in same else "changed"
        a_items[names[name]] = replace(other, subtask=ours.subtask, cluster=ours.cluster, content="")
        b_items[names[name]] = replace(item, subtask=ours.subtask, cluster=ours.cluster, content=content)
    notes = [f"{side}: {note}" for side, run in (("A", a), ("B", b)) for note in run.notes]
    notes.append("not checked, as such logs have no signature: prompts, sampling, tokens, versions of metrics")
    if a.harness and b.harness:
        notes.append("no subtasks are known, nor which items share a dialogue: each counts as independent")
    if len(names) > by_id:
        notes.append(f"{counted(len(names) - by_id, 'item')} matched by input, for want of a common id")
    if unknown := sum(None in pair for pair in asked.values()):
        notes.append(f"{counted(unknown, 'item')} matched by id alone: a log does not say what was asked")
    if other_prompt := [names[n] for n in same if (p := asked[n])[0] and p[1] and p[0].messages != p[1].messages]:
        listing = listed(sorted(other_prompt))
        notes.append(f"{counted(len(other_prompt), 'item')} with another system prompt or less history: {listing}")
    return replace(a, items=a_items), replace(b, items=b_items), notes


def _last_turn(asked: ItemInput) -> object:
    return (asked.turns[-1:], asked.references) if asked.references else None


def _matches(
    a: ScoredItems, b: ScoredItems, names: Mapping[str, str], key: Callable[[ItemInput], object]
) -> Iterator[tuple[str, str]]:
    """(name in B, name in A) of items whose key occurs once among those without a match on either side."""
    taken = set(names.values())
    left = [
        {name: key(asked) for name in run.items if name not in used and (asked := run.input_of(name))}
        for run, used in ((a, taken), (b, names))
    ]
    (counts_a, counts_b), places = map(Counter, (one.values() for one in left)), {k: n for n, k in left[0].items()}
    for name, k in left[1].items():
        if k is not None and counts_a[k] == counts_b[k] == 1:
            yield name, places[k]


def _is_same(x: ItemInput | None, y: ItemInput | None) -> bool:
    """Whether one item's turns end with the other's (its history may be left out), and they share a reference."""
    if x is None or y is None:
        return True
    n = min(len(x.turns), len(y.turns))
    shared = not x.references or not y.references or bool(set(x.references) & set(y.references))
    return n > 0 and x.turns[-n:] == y.turns[-n:] and shared
