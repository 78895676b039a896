"""Follow a run or study that another process makes: answers as they come, failures, cost and first figures."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live

from h2htalk.benchmark.evaluate import GENERATE
from h2htalk.benchmark.judge.judgements import JUDGEMENTS, outcome_of
from h2htalk.benchmark.metrics.composite import Metrics, score_answers, whole_mean
from h2htalk.benchmark.observations import percent, rate_of
from h2htalk.benchmark.report.notes import cost_lines
from h2htalk.benchmark.report.table2 import most_first, with_half_width
from h2htalk.benchmark.report.terminal import PlainConsole
from h2htalk.benchmark.run import read_run_data
from h2htalk.benchmark.statistics import aggregate
from h2htalk.benchmark.studies.point_answers import OpenReply, open_replies
from h2htalk.benchmark.studies.run_study import read_study, stored_replies
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.erasure.folder_kinds import kind_of
from h2htalk.data.files import parse_object, reading
from h2htalk.data.responses import CALLS, FailedResponse, Failure, Response, SampleKey, read_outcomes
from h2htalk.errors import ConfigError, DataError, counted, shorten
from h2htalk.progress import clock_text, rate_text

PATIENCE = 30.0  # seconds without a new line after which a run that no process of this machine writes is given up


@dataclass(slots=True)
class _Stage:
    asked: int = 0  # 0: not known in advance
    answered: set[SampleKey] = field(default_factory=set)
    failed: dict[SampleKey, Failure] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=100))

    def lines(self, name: str) -> Iterator[str]:
        """Yield `generate: 12/22 answered  55%  2.1/s  0:05 left`, then failures by reason with their first message."""
        done, recent = len(self.answered), [at for at in self.times if time.time() - at < 600]
        left = self.asked - done - len(self.failed) if self.asked else 1
        rate = len(recent) / max(time.time() - recent[0], 1.0) if len(recent) > 1 and left > 0 else 0.0
        shown = [f"{done:,}/{self.asked:,} answered  {done / self.asked:.0%}" if self.asked else f"{done:,} answered"]
        shown += [rate_text(rate)] * bool(rate) + [f"{clock_text(left / (rate or 1))} left"] * bool(rate and self.asked)
        yield f"{name}: {'  '.join(shown)}"
        for reason, n in most_first(Counter(one.reason for one in self.failed.values())):
            first = next(one.message for one in self.failed.values() if one.reason == reason)
            yield f"  {counted(n, 'call')} failed ({reason}): {shorten(first or 'no details are stored', 200)}"


class Follower:
    """What a run or study holds so far: it reads the lines that the writer adds, and takes no lock."""

    def __init__(self, path: Path) -> None:
        kind = kind_of(path)
        if kind is None or kind.name not in ("run", "study"):
            raise ConfigError(f"{path}: no run and no study; `h2htalk runs {path.parent}` lists what is there")
        self.study = read_study(path) if kind.name == "study" else None
        self.run = None if self.study else read_run_data(path)
        self.folder = self.study.folder if self.study else self.run.folder  # type: ignore[union-attr]
        self.files = {one: (0, 0, CallStore()) for one in (self.folder.calls_file, path / JUDGEMENTS / CALLS)}
        self.stages, self.last, self.changed = {GENERATE: _Stage()}, "", time.time()
        self._lexical = defaultdict[str, dict[int, float | None]](dict)  # of a run: item -> sample -> mean
        self._open, self._met = dict[str, OpenReply](), dict[str, list[bool]]()  # of a study, by judged reply
        self._opened = -1  # the number of its replies when `_open` was made
        self._scenarios = {one.id: one for one in self.run.split.scenarios} if self.run else {}
        self.stages[GENERATE].asked = len(self._scenarios) * (self.run.spec.samples if self.run else 0)

    def read(self) -> None:
        """Take the new whole lines. Raises DataError for a damaged line, or a file that became shorter."""
        for path, (at, number, store) in self.files.items():
            if not path.exists():
                continue
            if path.stat().st_size < at:
                raise DataError(f"{path}: became shorter: items were erased; start the same command again")
            with reading(path), path.open("rb") as file:
                file.seek(at)
                whole, _, _ = file.read().rpartition(b"\n")  # the rest is torn, or not written yet
            for line in whole.split(b"\n") if whole else ():
                number += 1
                record = parse_object(line, f"{path}:{number}")
                store.take(record, f"{path}:{number}")
                for one in read_outcomes(record, f"{path}:{number}"):
                    self._take(one, str(record.get("stage") or GENERATE))
            if whole:
                self.files[path], self.changed = (at + len(whole) + 1, number, store), time.time()

    def _take(self, one: Response | FailedResponse, name: str) -> None:
        stage, key = self.stages.setdefault(name, _Stage()), (one.id, one.sample)
        stage.times.append(one.at or 0.0)
        if isinstance(one, FailedResponse):
            stage.failed |= {} if key in stage.answered else {key: one.failure}
            return
        stage.failed.pop(key, None)
        stage.answered.add(key)
        self.last = f"last, {name} {one.id}: {one.answer}"
        if self.run and name == GENERATE and one.id in self._scenarios:
            alone = replace(self.run.split, scenarios=(self._scenarios[one.id],))
            metrics = Metrics(None, self.run.spec.rouge, contracts=False)
            scores = score_answers(alone, {(one.id, 0): replace(one, sample=0)}, 1, metrics)
            self._lexical[one.id][one.sample] = scores[one.id].lexical
        elif self.study and name != GENERATE:
            replies = len(self.stages[GENERATE].answered)  # the judge begins when the model has answered
            if one.id not in self._open and replies != self._opened:
                self._opened = replies
                self._open = {own.reply.id: own for own in open_replies(stored_replies(self.study), self.study.cases)}
                stage.asked = len(self._open)
            if (own := self._open.get(one.id)) and (reply := outcome_of(one)):
                said = own.rubric.read(reply).points
                named = [said.get(f"p{k}") == (point.kind == "must") for k, point in enumerate(own.points, 1)]
                self._met[one.id] = named if said else []

    def figures(self) -> Iterator[str]:
        """Yield the first figures with their intervals, over what has come so far."""
        if self._lexical:
            means = ((one, whole_mean([*self._lexical[one.id].values()])) for one in self._scenarios.values())
            cell = aggregate((one.subtask, mean) for one, mean in means)["items_mean"]
            yield f"lexical mean of the answers so far: {with_half_width(cell)}, n {cell.n:,} of {cell.total:,} items"
        if points := [met for one in self._met.values() for met in one]:
            yield f"judge's points met so far: {percent(rate_of(points, len(points)), count=True)}"

    def lines(self) -> list[str]:
        """Return everything but the last reply."""
        stages = [line for name, stage in self.stages.items() for line in stage.lines(name)]
        costs = {name: totals for *_, store in self.files.values() for name, totals in store.totals().items()}
        return [*stages, *self.figures(), *cost_lines(costs)]

    def end(self, patience: float) -> str:
        """Return how it ended; empty while it is written, or may be."""
        held = [is_written(path) for path in self.files]
        if True in held:
            return ""
        last = max((path.stat().st_mtime_ns for path in self.files if path.exists()), default=0)
        if self.folder.summary.exists() and self.folder.summary.stat().st_mtime_ns >= last:
            return f"finished: {self.folder.page}"
        if (silent := time.time() - self.changed) < patience * (20 if None in held else 1):
            return ""
        return f"its writer is gone, and nothing came for {silent:.0f} s; its own command continues it"


def is_written(calls: Path) -> bool | None:
    """Whether a process of this machine holds the lock of a `calls.jsonl`; None where the system does not say."""
    try:
        inode = calls.with_suffix(".lock").stat().st_ino
        return re.search(rf":{inode} ", Path("/proc/locks").read_text(encoding="ascii")) is not None
    except OSError:
        return None if calls.with_suffix(".lock").exists() else False


def watch(path: Path, console: Console, every: float = 0.0, patience: float = PATIENCE) -> str:
    """Show a run or study until it is finished, nobody writes it any more, or Ctrl-C; return which.

    On a terminal the lines are drawn anew every second, elsewhere written every 15 s (`every`). Raises ConfigError for
    a folder of another kind, DataError for a damaged one.
    """
    say, follower, live = PlainConsole(console), Follower(path), Live(console=console, auto_refresh=False)
    with live if console.is_terminal else nullcontext():
        try:
            while True:
                end = follower.end(patience)  # before the last lines are read
                follower.read()
                lines = follower.lines()
                if console.is_terminal:
                    last = shorten(" ".join(follower.last.split()), 3 * console.width)
                    live.update(Group(*(say.safe(say.half_width(one)) for one in (*lines, last))), refresh=True)
                else:
                    console.print(say.safe(say.half_width("; ".join(map(str.strip, lines)))), soft_wrap=True)
                if end:
                    return end
                time.sleep(every or (1.0 if console.is_terminal else 15.0))
        except KeyboardInterrupt:
            return "no longer watched; what it follows goes on"
