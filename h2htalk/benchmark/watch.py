"""Follow a run or study that a process makes: answers as they come, failures, cost and first figures."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread

from rich.console import Console, Group
from rich.live import Live

from h2htalk.benchmark.estimate_text import format_percent, format_with_interval
from h2htalk.benchmark.evaluate import GENERATE
from h2htalk.benchmark.judge.judgements import JUDGEMENTS, outcome_of
from h2htalk.benchmark.metrics.composite import Metrics, score_answers, whole_mean
from h2htalk.benchmark.observations import LOGGED, Observation, effect_of, rate_of
from h2htalk.benchmark.planted.draw import read_planted
from h2htalk.benchmark.report.cost_tables import cost_lines
from h2htalk.benchmark.report.run_tables import most_first
from h2htalk.benchmark.report.terminal import PlainConsole
from h2htalk.benchmark.run import read_run_data
from h2htalk.benchmark.statistics.averages import aggregate
from h2htalk.benchmark.studies.points.judge_requests import OpenReply, open_replies
from h2htalk.benchmark.studies.run_study import read_study, stored_replies
from h2htalk.benchmark.studies.settings import APP
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.erasure.folder_kinds import kind_of
from h2htalk.data.files import parse_object, reading
from h2htalk.data.responses import (
    CALLS,
    FailedResponse,
    Failure,
    Response,
    SampleKey,
    read_outcomes,
)
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, shorten
from h2htalk.progress import Progress, clock_text, rate_text

PATIENCE = 30.0  # seconds without a new line after which a run that no process of this machine writes is given up


@dataclass(slots=True)
class _Stage:
    asked: int = 0  # 0: not known in advance
    answered: set[SampleKey] = field(default_factory=set)
    failed: dict[SampleKey, Failure] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=100))

    def lines(self, name: str) -> Iterator[str]:
        """Yield `generate: 12/22 answered  55%  2.1/s  0:05 left`, then failures by reason with their first message."""
        done = len(self.answered)
        recent = [at for at in self.times if time.time() - at < 600]
        left = self.asked - done - len(self.failed) if self.asked else 1
        rate = (
            len(recent) / max(time.time() - recent[0], 1.0) if len(recent) > 1 and left > 0 else 0.0
        )
        shown = [
            f"{done:,}/{self.asked:,} answered  {done / self.asked:.0%}"
            if self.asked
            else f"{done:,} answered"
        ]
        shown += [rate_text(rate)] * bool(rate) + [f"{clock_text(left / (rate or 1))} left"] * bool(
            rate and self.asked
        )
        yield f"{name}: {'  '.join(shown)}"
        for reason, n in most_first(Counter(one.reason for one in self.failed.values())):
            first = next(one.message for one in self.failed.values() if one.reason == reason)
            yield f"  {counted(n, 'call')} failed ({reason}): {shorten(first or 'no details are stored', 200)}"


class Follower:
    """What a run or study holds so far: it reads the lines that the writer adds, and takes no lock."""

    def __init__(self, path: Path) -> None:
        kind = kind_of(path)
        if kind is None or kind.name not in ("run", "study"):
            raise ConfigError(
                f"{path}: no run and no study; `h2htalk runs {path.parent}` lists what is there"
            )
        self.study = read_study(path) if kind.name == "study" else None
        self.run = None if self.study else read_run_data(path)
        self.folder = self.study.folder if self.study else self.run.folder  # type: ignore[union-attr]
        self.files = {
            one: (0, 0, CallStore()) for one in (self.folder.calls_file, path / JUDGEMENTS / CALLS)
        }
        self.last, self.changed = "", time.time()
        self._lexical = defaultdict[str, dict[int, float | None]](
            dict
        )  # of a run: item -> sample -> mean
        self._open, self._met = (
            dict[str, OpenReply](),
            dict[str, list[Observation]](),
        )  # of a study, by judged reply
        self._opened = -1  # the number of its replies when `_open` was made
        self._scenarios = {one.id: one for one in self.run.split.scenarios} if self.run else {}
        self.stages = {
            GENERATE: _Stage(len(self._scenarios) * (self.run.spec.samples if self.run else 0))
        }

    def read(self) -> None:
        """Take the new whole lines. Raises DataError for a damaged line, or a file that became shorter."""
        for path in filter(Path.exists, self.files):
            at, lines, store = self.files[path]
            if path.stat().st_size < at:
                raise DataError(
                    f"{path}: became shorter: items were erased; start the same command again"
                )
            with reading(path), path.open("rb") as file:
                file.seek(at)
                whole, _, _ = file.read().rpartition(b"\n")  # the rest is torn, or not written yet
            for number, line in enumerate(whole.split(b"\n") if whole else (), lines + 1):
                record = parse_object(line, f"{path}:{number}")
                store.apply_line(record, f"{path}:{number}")
                for one in read_outcomes(record, f"{path}:{number}"):
                    self._take(
                        one,
                        GENERATE if record.get("stage") in (None, APP) else str(record["stage"]),
                    )
            if whole:
                self.files[path], self.changed = (at + len(whole) + 1, number, store), time.time()

    def _take(self, one: Response | FailedResponse, name: str) -> None:
        stage = self.stages.setdefault(name, _Stage())
        key = (one.id, one.sample)
        stage.times.append(one.at or 0.0)
        if isinstance(one, FailedResponse):
            stage.failed |= {} if key in stage.answered else {key: one.failure}
            return
        stage.failed.pop(key, None)
        stage.answered.add(key)
        self.last = f"last, {name} {one.id}: {one.answer}"
        if self.run and name == GENERATE and one.id in self._scenarios:
            alone = replace(self.run.split, scenarios=(self._scenarios[one.id],))
            spec = self.run.spec
            metrics = Metrics(None, spec.rouge, contracts=False, filtered=spec.filtered)
            scores = score_answers(alone, {(one.id, 0): replace(one, sample=0)}, 1, metrics)
            self._lexical[one.id][one.sample] = scores[one.id].lexical
        elif self.study and name != GENERATE:
            replies = len(
                self.stages[GENERATE].answered
            )  # the judge begins when the model has answered
            if one.id not in self._open and replies != self._opened:
                self._opened = replies
                self._open = {
                    own.reply.id: own
                    for own in open_replies(stored_replies(self.study), self.study.cases)
                }
                planted = read_planted(self.study, name.removeprefix("judge-"))
                stage.asked = len(self._open) + len(planted)
            if (own := self._open.get(one.id)) and (reply := outcome_of(one)):
                said = own.rubric.read(reply).points
                kind = own.case.kind
                cluster = (
                    own.case.family if kind in LOGGED else one.id
                )  # of what is alike, as in `figure_of`
                met = (said.get(point.id) == (point.kind == "must") for point in own.points if said)
                self._met[one.id] = [
                    Observation("", "", one.id, cluster, float(value), kind=kind) for value in met
                ]

    def figures(self) -> Iterator[str]:
        """Yield the first figures with their intervals, over what has come so far."""
        if self._lexical:
            means = (
                (one, whole_mean([*self._lexical[one.id].values()]))
                for one in self._scenarios.values()
            )
            cell = aggregate((one.subtask, mean) for one, mean in means)["items_mean"]
            mean = format_with_interval(cell)
            yield f"mean of the items so far, lexical: {mean}, n {cell.n:,} of {cell.total:,} items"
        if points := [row for rows in self._met.values() for row in rows]:
            met = rate_of(
                [row.value or 0.0 for row in points], len(points), effect=effect_of(points)
            )
            yield f"judge's points met so far: {format_percent(met, count=True)}"

    def lines(self) -> list[str]:
        """Return everything but the last reply."""
        stages = [line for name, stage in self.stages.items() for line in stage.lines(name)]
        costs = {
            name: totals
            for *_, store in self.files.values()
            for name, totals in store.totals().items()
        }
        return [*stages, *self.figures(), *cost_lines(costs)]

    def end(self, patience: float) -> str:
        """Return how it ended; empty while it is written, or may be."""
        held = [is_written(path) for path in self.files]
        last = max((path.stat().st_mtime_ns for path in self.files if path.exists()), default=0)
        if (
            True not in held
            and self.folder.summary.exists()
            and self.folder.summary.stat().st_mtime_ns >= last
        ):
            return f"finished: {self.folder.page}"
        if (silent := time.time() - self.changed) < patience * (
            20 if None in held else 1
        ) or True in held:
            return ""
        return (
            f"its writer is gone, and nothing came for {silent:.0f} s; its own command continues it"
        )


def is_written(calls: Path) -> bool | None:
    """Whether a process of this machine holds the lock of a `calls.jsonl`; None where the system does not say."""
    try:
        inode = calls.with_suffix(".lock").stat().st_ino
        return f":{inode} " in Path("/proc/locks").read_text(encoding="ascii")
    except OSError:
        return None if calls.with_suffix(".lock").exists() else False


def watch(
    path: Path,
    console: Console,
    pace: float = 0,
    patience: float = PATIENCE,
    over: Event | None = None,
) -> str:
    """Show a run or study until it is finished, nobody writes it any more, or Ctrl-C; return which.

    On a terminal the lines are drawn anew every second, elsewhere written every 15 s (`pace`). `over`: is set when the
    writer, a thread of this process, is done. Raises ConfigError for another folder, DataError for a damaged one.
    """
    say = PlainConsole(console)
    follower = Follower(path)
    shown = list[str]()
    live = (
        Live(console=console, auto_refresh=False, redirect_stdout=False)
        if console.is_interactive
        else None
    )
    with suppress(KeyboardInterrupt), live or nullcontext():
        while True:
            end = (
                "ended" * over.is_set() if over else follower.end(patience)
            )  # before the last lines are read
            follower.read()
            before, shown = shown, follower.lines()
            if live:
                last = shorten(" ".join(follower.last.split()), 3 * console.width)
                live.update(
                    Group(*(say.safe(say.half_width(one)) for one in (*shown, last))), refresh=True
                )
            elif shown != before:
                console.print(
                    say.safe(say.half_width("; ".join(map(str.strip, shown)))), soft_wrap=True
                )
            if end:
                return end
            (over.wait if over else time.sleep)(pace or (1.0 if live else 15.0))
    return "no longer watched; what it follows goes on"


@contextmanager
def watching(path: Path) -> Iterator[None]:
    """Show the same on standard error, in the place of progress lines, while the block writes a run or study."""
    console = Console(stderr=True, force_terminal=sys.stderr.isatty())
    over = Event()

    def follow() -> None:
        with suppress(H2HTalkError):  # the block meets it as well
            while kind_of(path) is None and not over.wait(0.2):
                pass
            watch(path, console, over=over)

    thread, Progress.shown = Thread(target=follow), False
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        Progress.shown = True
