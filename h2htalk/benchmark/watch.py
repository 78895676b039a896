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

from rich.console import Console, Group, RenderableType
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
from h2htalk.benchmark.run import RunInputs, read_run_data
from h2htalk.benchmark.statistics.averages import aggregate
from h2htalk.benchmark.studies.conversations import Study
from h2htalk.benchmark.studies.points.judge_requests import OpenReply, open_replies
from h2htalk.benchmark.studies.run_study import read_study, stored_replies
from h2htalk.benchmark.studies.settings import APP
from h2htalk.chat.prices import Totals
from h2htalk.chat.store.call_store import CallStore
from h2htalk.data.erasure.folder_kinds import kind_of
from h2htalk.data.files import parse_object, reading
from h2htalk.data.responses import (
    CALLS,
    Answers,
    FailedResponse,
    Failure,
    Response,
    SampleKey,
    read_outcomes,
)
from h2htalk.data.run_folder import RunFolder
from h2htalk.data.scenario import Scenario
from h2htalk.errors import ConfigError, DataError, H2HTalkError, counted, shorten
from h2htalk.progress import Progress, clock_text, rate_text

RECENT_SECONDS = 600  # answers from which the rate is computed
# Seconds between two readings: on a terminal, and where lines are written one below the other.
TERMINAL_PACE = 1.0
LOG_PACE = 15.0
PATIENCE = 30.0  # seconds without a new line after which a run that no process of this machine writes is given up


@dataclass(slots=True)
class _Stage:
    expected: int = 0  # 0: not known in advance
    answered: set[SampleKey] = field(default_factory=set)
    failed: dict[SampleKey, Failure] = field(default_factory=dict)
    times: deque[float] = field(default_factory=lambda: deque(maxlen=100))

    def lines(self, name: str) -> Iterator[str]:
        """Yield `generate: 12/22 answered  55%  2.1/s  0:05 left`, then failures by reason with their first message."""
        answered = len(self.answered)
        rate = self._rate()
        texts = []
        if self.expected:
            texts.append(f"{answered:,}/{self.expected:,} answered  {answered / self.expected:.0%}")
        else:
            texts.append(f"{answered:,} answered")
        if rate:
            texts.append(rate_text(rate))
        if rate and self.expected:
            texts.append(f"{clock_text(self._remaining() / rate)} left")
        yield f"{name}: {'  '.join(texts)}"
        failures = self.failed.values()
        for reason, number in most_first(Counter(failure.reason for failure in failures)):
            messages = [failure.message for failure in failures if failure.reason == reason]
            first_message = shorten(messages[0] or "no details are stored", 200)
            yield f"  {counted(number, 'call')} failed ({reason}): {first_message}"

    def _remaining(self) -> int:
        """How many calls are neither answered nor failed, of a stage whose number is known."""
        return self.expected - len(self.answered) - len(self.failed)

    def _rate(self) -> float:
        """Answers a second within the last minutes; 0 where it is not known, or nothing remains."""
        now = time.time()
        recent = [answered_at for answered_at in self.times if now - answered_at < RECENT_SECONDS]
        if len(recent) < 2 or (self.expected and self._remaining() <= 0):
            return 0.0
        return len(recent) / max(now - recent[0], 1.0)


@dataclass(slots=True)
class _CallsFile:
    """A `calls.jsonl` as far as it is read: the position in bytes, the number of lines, and what they say."""

    position: int = 0
    lines: int = 0
    store: CallStore = field(default_factory=CallStore)


class Follower:
    """What a run or study holds so far: it reads the lines that the writer adds, and takes no lock."""

    def __init__(self, path: Path) -> None:
        kind = kind_of(path)
        if kind is None or kind.name not in ("run", "study"):
            raise ConfigError(
                f"{path}: no run and no study; `h2htalk runs {path.parent}` lists what is there"
            )
        self.run: RunInputs | None = None
        self.folder: RunFolder
        self.study: Study | None = None
        self._scenarios: dict[str, Scenario] = {}
        expected = 0
        if kind.name == "study":
            self.study = read_study(path)
            self.folder = self.study.folder
        else:
            self.run = read_run_data(path)
            self.folder = self.run.folder
            self._scenarios = {scenario.id: scenario for scenario in self.run.split.scenarios}
            expected = len(self._scenarios) * self.run.spec.samples
        self.stages = {GENERATE: _Stage(expected)}
        self.files = {
            self.folder.calls_file: _CallsFile(),
            path / JUDGEMENTS / CALLS: _CallsFile(),
        }
        self.last_reply = ""
        self.changed = time.time()
        # Of a run: item -> sample -> lexical mean.
        self._lexical = defaultdict[str, dict[int, float | None]](dict)
        # Of a study: its replies and which points they meet, by the id of the judged reply.
        self._open_replies: dict[str, OpenReply] = {}
        self._points_met: dict[str, list[Observation]] = {}
        self._replies_opened = -1  # the number of its replies when `_open_replies` was made

    def read(self) -> None:
        """Take the new whole lines. Raises DataError for a damaged line, or a file that became shorter."""
        for path, file in self.files.items():
            if path.exists():
                self._read_file(path, file)

    def _read_file(self, path: Path, file: _CallsFile) -> None:
        if path.stat().st_size < file.position:
            raise DataError(
                f"{path}: became shorter: items were erased; start the same command again"
            )
        with reading(path), path.open("rb") as stream:
            stream.seek(file.position)
            # What follows the last line end is torn, or not written yet.
            complete, _, _ = stream.read().rpartition(b"\n")
        if not complete:
            return
        for line in complete.split(b"\n"):
            file.lines += 1
            record = parse_object(line, f"{path}:{file.lines}")
            file.store.apply_line(record, f"{path}:{file.lines}")
            stage = str(record["stage"]) if record.get("stage") not in (None, APP) else GENERATE
            for outcome in read_outcomes(record, f"{path}:{file.lines}"):
                self._take(outcome, stage)
        file.position += len(complete) + 1
        self.changed = time.time()

    def _take(self, outcome: Response | FailedResponse, name: str) -> None:
        """Count an outcome of a stage; of a reply, what it is worth."""
        stage = self.stages.setdefault(name, _Stage())
        key = (outcome.id, outcome.sample)
        stage.times.append(outcome.at or 0.0)
        if isinstance(outcome, FailedResponse):
            if key not in stage.answered:
                stage.failed[key] = outcome.failure
            return
        stage.failed.pop(key, None)
        stage.answered.add(key)
        self.last_reply = f"last, {name} {outcome.id}: {outcome.answer}"
        if self.run is not None and name == GENERATE and outcome.id in self._scenarios:
            self._score_reply(self.run, outcome)
        elif self.study is not None and name != GENERATE:
            self._take_judgement(self.study, outcome, name)

    def _score_reply(self, run: RunInputs, reply: Response) -> None:
        scenario = self._scenarios[reply.id]
        split = replace(run.split, scenarios=(scenario,))
        metrics = Metrics(None, run.spec.rouge, contracts=False, filtered=run.spec.filtered)
        answers: Answers = {(reply.id, 0): replace(reply, sample=0)}
        scores = score_answers(split, answers, 1, metrics)
        self._lexical[reply.id][reply.sample] = scores[reply.id].lexical

    def _take_judgement(self, study: Study, judgement: Response, name: str) -> None:
        # The judge begins when the model has answered.
        replies = len(self.stages[GENERATE].answered)
        if judgement.id not in self._open_replies and replies != self._replies_opened:
            self._replies_opened = replies
            opened = open_replies(stored_replies(study), study.cases)
            self._open_replies = {open_reply.reply.id: open_reply for open_reply in opened}
            planted = read_planted(study, name.removeprefix("judge-"))
            self.stages[name].expected = len(self._open_replies) + len(planted)
        open_reply = self._open_replies.get(judgement.id)
        reply = outcome_of(judgement)
        if open_reply is None or not reply:
            return
        answers = open_reply.rubric.read(reply).points
        kind = open_reply.case.kind
        # What is alike is a cluster, as in `figure_of`.
        cluster = open_reply.case.family if kind in LOGGED else judgement.id
        rows = []
        for point in open_reply.points if answers else ():
            is_met = answers.get(point.id) == (point.kind == "must")
            rows.append(Observation("", "", judgement.id, cluster, float(is_met), kind=kind))
        self._points_met[judgement.id] = rows

    def figures(self) -> Iterator[str]:
        """Yield the first figures with their intervals, over what has come so far."""
        if self._lexical:
            values = []
            for scenario in self._scenarios.values():
                mean = whole_mean([*self._lexical[scenario.id].values()])
                values.append((scenario.subtask, mean))
            cell = aggregate(values)["items_mean"]
            mean_text = format_with_interval(cell)
            yield f"mean of the items so far, lexical: {mean_text}, n {cell.n:,} of {cell.total:,} items"
        points: list[Observation] = []
        for rows in self._points_met.values():
            points += rows
        if points:
            hits = [row.value or 0.0 for row in points]
            rate = rate_of(hits, len(points), effect=effect_of(points))
            yield f"judge's points met so far: {format_percent(rate, count=True)}"

    def lines(self) -> list[str]:
        """Return everything but the last reply."""
        lines: list[str] = []
        for name, stage in self.stages.items():
            lines += stage.lines(name)
        lines += self.figures()
        costs: dict[str, Totals] = {}
        for file in self.files.values():
            costs |= file.store.totals()
        return lines + cost_lines(costs)

    def end(self, patience: float) -> str:
        """Return how it ended; empty while it is written, or may be."""
        writers = [is_written(path) for path in self.files]
        if True in writers:
            return ""
        if self._is_summarized():
            return f"finished: {self.folder.page}"
        # Where the system does not say whether somebody writes, a slow call must not look like the end.
        allowed = patience * 20 if None in writers else patience
        silent = time.time() - self.changed
        if silent < allowed:
            return ""
        return (
            f"its writer is gone, and nothing came for {silent:.0f} s; its own command continues it"
        )

    def _is_summarized(self) -> bool:
        """Whether the summary is as new as the calls."""
        if not self.folder.summary.exists():
            return False
        times = [path.stat().st_mtime_ns for path in self.files if path.exists()]
        return self.folder.summary.stat().st_mtime_ns >= max(times, default=0)


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
    follower = Follower(path)
    screen = _Screen(console)
    if not pace:
        pace = TERMINAL_PACE if screen.live else LOG_PACE
    with suppress(KeyboardInterrupt), screen.live or nullcontext():
        while True:
            # Asked before the last lines are read.
            if over is None:
                end = follower.end(patience)
            else:
                end = "ended" if over.is_set() else ""
            follower.read()
            screen.show(follower)
            if end:
                return end
            if over is None:
                time.sleep(pace)
            else:
                over.wait(pace)
    return "no longer watched; what it follows goes on"


class _Screen:
    """Where the lines are shown: drawn anew on a terminal, elsewhere written when they changed."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.plain = PlainConsole(console)
        self.live: Live | None = None
        if console.is_interactive:
            self.live = Live(console=console, auto_refresh=False, redirect_stdout=False)
        self._shown: list[str] = []

    def show(self, follower: Follower) -> None:
        lines = follower.lines()
        if self.live is not None:
            reply = shorten(" ".join(follower.last_reply.split()), 3 * self.console.width)
            rows = [self._printable(line) for line in (*lines, reply)]
            self.live.update(Group(*rows), refresh=True)
        elif lines != self._shown:
            text = "; ".join(line.strip() for line in lines)
            self.console.print(self._printable(text), soft_wrap=True)
        self._shown = lines

    def _printable(self, text: str) -> RenderableType:
        return self.plain.safe(self.plain.half_width(text))


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

    thread = Thread(target=follow)
    Progress.shown = False
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        Progress.shown = True
