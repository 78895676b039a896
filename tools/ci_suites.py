"""Run the suites of `.ci/run`: `python3 tools/ci_suites.py`.

What always runs comes first. Then the suites of `.ci/times` run by turns: first those that the commits of the last
hours touched, then others in an order that a hash of HEAD draws, as long as time is left. A suite that was touched
fails the run, another one only warns; what others release today (ONLY_WARN) never fails it. Steps go on after a
failure; the last lines list what failed, warned, was run again or was left out. The exit status is 1 where something
failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]

ALWAYS = (
    ("make", ".venv/dev.stamp"),
    (".venv/bin/ruff", "check", "."),
    (".venv/bin/ruff", "format", "--check", "."),
    (".venv/bin/mypy",),
    ("make", "test-all"),
    ("make", "dist"),
    ("make", "docs"),
    ("make", "live"),
    ("make", "demo"),
)
# In the environments of the oldest versions and of the newest ones, tests of the extras left out may be skipped.
MAY_SKIP = {"lowest", "test-newest", "test-todays-releases"}
# What fails here was changed by others: no change of ours stops for it, whatever it touched.
ONLY_WARN = {"test-todays-releases"}


@dataclass(frozen=True, slots=True)
class DebianPackages:
    """Packages that a suite needs, and the commands by which they are known to be there."""

    commands: tuple[str, ...]
    packages: tuple[str, ...]


DEBIAN_PACKAGES = {
    "live-workbook": DebianPackages(
        commands=("soffice",), packages=("libreoffice-calc", "fonts-noto-cjk")
    ),
    "live-argilla": DebianPackages(
        commands=("redis-server", "java"), packages=("redis-server", "default-jre-headless")
    ),
    "live-scale": DebianPackages(commands=("sbatch", "munged"), packages=("slurm-wlm", "munge")),
}

# Commits of so many hours before HEAD's own time count as one change.
CHANGE_HOURS = 12
# Seconds after the start by which a suite must be expected to end.
TOUCHED_END = 60 * 60
FIRST_OTHER_ENDS = 50 * 60
OTHERS_END = 35 * 60
# A run is cut off at minute 90. Nothing goes on for longer than this, so that the list is still printed.
LAST_END = 80 * 60
# A suite ends at twice its time; this much more is for an installation from a slow registry.
INSTALLATION = 120
# Seconds between asking a suite to end and killing it.
GRACE = 30
# Tests that pass at their second try only: more than so many fail the run.
RERUNS_ALLOWED = 3

# What pytest prints of a test that passed when it was run again, of a time limit that ends the whole process, and last.
RERUN = re.compile(r"^RERUN (\S+::.*)")
FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+::.*)")
TIME_LIMIT = re.compile(r"^\++ Timeout \++$")
# What tools/install_into.py prints where no release meets the constraints of an environment.
NOT_INSTALLED = re.compile(r"^not installed: (.+)")
CLOSING_LINE = re.compile(r"\b\d+ (passed|failed|errors?|skipped|deselected)\b.* in [\d.]+s")


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite that runs by turns: a target of the Makefile, its seconds on two quiet cores, the paths it covers."""

    target: str
    seconds: int
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """How one start of a command ended."""

    status: int
    seconds: float
    reruns: tuple[str, ...]
    over_time: bool  # ended because it ran past its limit
    died: bool  # pytest ended the process at the time limit of a test, without a closing line
    not_installed: str  # the environment that could not be installed, and why

    @property
    def outcome(self) -> str:
        if self.over_time:
            return f"ended after {self.seconds:.0f} s, past its time"
        ended = f"exit {self.status} after {self.seconds:.0f} s"
        if self.not_installed:
            return f"{ended}, not installed: {self.not_installed}"
        return ended


@dataclass(slots=True)
class Report:
    """What the last lines of the output say."""

    failed: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    reruns: list[str] = field(default_factory=list)


def read_times(path: Path) -> tuple[int, list[Suite]]:
    """Return the seconds of what always runs, and the suites that run by turns."""
    always = 0
    suites = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or line.startswith("#"):
            continue
        target, seconds, *paths = words
        if target == "always":
            always = int(seconds)
        else:
            suites.append(Suite(target=target, seconds=int(seconds), paths=tuple(paths)))
    if always <= 0:
        raise SystemExit(f"{path}: no row `always SECONDS`")
    return always, suites


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def change_base() -> str:
    """Return the newest commit that is older than the change; an empty text where the history holds none."""
    committed = git("log", "-1", "--format=%ct").stdout.strip()
    if not committed:
        return ""
    oldest = int(committed) - CHANGE_HOURS * 3600
    return git("rev-list", "-1", f"--min-age={oldest}", "HEAD").stdout.strip()


def is_touched(suite: Suite, base: str) -> bool:
    """Say whether the change touched what a suite covers; an unknown history counts as touched."""
    if not base:
        return True
    return git("diff", "--quiet", base, "HEAD", "--", *suite.paths).returncode != 0


def draw_order(suites: Sequence[Suite], commit: str) -> list[Suite]:
    """Sort suites by a hash of the commit, so that the landings of some days reach each of them."""

    def draw(suite: Suite) -> str:
        return hashlib.sha256(f"{commit} {suite.target}".encode()).hexdigest()

    return sorted(suites, key=draw)


def missing_part(suite: Suite, environment: Mapping[str, str]) -> str:
    """Say what a suite needs and this machine lacks; an empty text where nothing is missing."""
    if suite.target == "test-newest" and not environment.get("NEWEST"):
        return "none of Python 3.14, 3.13 and 3.12 runs here"
    if suite.target == "live-argilla" and not environment.get("H2HTALK_OPENSEARCH"):
        return "H2HTALK_OPENSEARCH is not set"
    return ""


def debian_packages(suite: Suite) -> tuple[str, ...]:
    """Return the Debian packages that a suite needs and this machine lacks; only root can install them."""
    needed = DEBIAN_PACKAGES.get(suite.target)
    if needed is None or os.geteuid() != 0:
        return ()
    if all(shutil.which(command) for command in needed.commands):
        return ()
    return needed.packages


def end_group(process: subprocess.Popen[str], grace: float = GRACE) -> None:
    """End a command with all that it started; kill what has not ended after some seconds."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=grace)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def passed_at_last(reruns: Sequence[str], failures: Sequence[str]) -> tuple[str, ...]:
    """Return the tests that were run again and then passed, each once, in order."""

    def failed(test: str) -> bool:
        return any(line == test or line.startswith(f"{test} - ") for line in failures)

    return tuple(test for test in dict.fromkeys(reruns) if not failed(test))


def run(command: Sequence[str], limit: float, environment: Mapping[str, str]) -> Result:
    """Run a command within a limit of seconds, and print its output as it comes."""
    started = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    reruns: list[str] = []
    failures: list[str] = []
    not_installed: list[str] = []
    died = threading.Event()

    def copy_output() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            text = line.rstrip()
            rerun = RERUN.match(text)
            failure = FAILURE.match(text)
            installation = NOT_INSTALLED.match(text)
            if rerun:
                reruns.append(rerun[1])
            elif failure:
                failures.append(failure[1])
            elif installation:
                not_installed.append(installation[1])
            elif TIME_LIMIT.match(text):
                died.set()
            elif CLOSING_LINE.search(text):
                died.clear()

    # A thread: what a suite leaves running may hold the pipe open for ever.
    reader = threading.Thread(target=copy_output, daemon=True)
    reader.start()
    over_time = False
    try:
        process.wait(timeout=max(limit, 1))
    except subprocess.TimeoutExpired:
        over_time = True
    finally:
        if process.poll() is None:
            end_group(process)
    reader.join(timeout=10)
    return Result(
        status=process.wait(),
        seconds=time.monotonic() - started,
        reruns=passed_at_last(reruns, failures),
        over_time=over_time,
        died=died.is_set(),
        not_installed=not_installed[-1] if not_installed else "",
    )


def run_step(
    command: Sequence[str], limit: float, environment: Mapping[str, str], report: Report
) -> Result:
    """Run a command; start it again once where the time limit of a test ended its process, which is a rerun."""
    name = " ".join(command)
    result = run(command, limit, environment)
    report.reruns.extend(result.reruns)
    if result.died and result.status != 0 and not result.over_time:
        report.reruns.append(f"{name}: the time limit of a test ended its process")
        print(f"started again: {name}", flush=True)
        result = run(command, limit - result.seconds, environment)
        report.reruns.extend(result.reruns)
    return result


class Clock:
    """Seconds since `.ci/run` began."""

    def __init__(self, elapsed: float) -> None:
        self._start = time.monotonic() - elapsed

    def seconds(self) -> float:
        return time.monotonic() - self._start

    def say(self, name: str) -> None:
        print(f"{int(self.seconds() / 60)} minutes have passed: {name}", flush=True)


def run_always(clock: Clock, environment: Mapping[str, str], report: Report) -> None:
    for command in ALWAYS:
        name = " ".join(command)
        result = run_step(command, LAST_END - clock.seconds(), environment, report)
        clock.say(name)
        if result.status != 0:
            report.failed.append(f"{name} (always), {result.outcome}")


def run_by_turns(
    suites: Sequence[Suite],
    slowness: float,
    clock: Clock,
    environment: Mapping[str, str],
    report: Report,
) -> None:
    """Run suites in order as long as they are expected to end in time."""
    base = change_base()
    commit = git("rev-parse", "HEAD").stdout.strip()
    in_order = draw_order(suites, commit)
    touched = [suite for suite in in_order if is_touched(suite, base)]
    untouched = [suite for suite in in_order if suite not in touched]
    others_run = 0
    for suite in [*touched, *untouched]:
        row = suite.seconds * slowness
        if suite in touched:
            why = "changed"
            latest_end = TOUCHED_END
        else:
            why = "by turns"
            latest_end = OTHERS_END if others_run else FIRST_OTHER_ENDS
        name = f"make {suite.target} ({why}, {row:.0f} s expected)"
        missing = missing_part(suite, environment)
        expected_end = clock.seconds() + row
        if missing:
            report.left_out.append(f"{name}: {missing}")
            continue
        if expected_end > latest_end:
            report.left_out.append(f"{name}: it would end in minute {expected_end / 60:.0f}")
            continue
        packages = debian_packages(suite)
        if packages:
            install = ("tools/twice.sh", "tools/install_debian.sh", *packages)
            run(install, LAST_END - clock.seconds(), environment)
        no_skip = "0" if suite.target in MAY_SKIP else "1"
        limit = min(INSTALLATION + 2 * row, LAST_END - clock.seconds())
        steps = Report()
        result = run_step(
            ("make", suite.target), limit, {**environment, "H2HTALK_NO_SKIP": no_skip}, steps
        )
        clock.say(name)
        if suite not in touched:
            others_run += 1
        only_warns = suite.target in ONLY_WARN
        if only_warns:
            # More than a few reruns would fail the run.
            report.warned.extend(f"{name}, run again: {rerun}" for rerun in steps.reruns)
        else:
            report.reruns.extend(steps.reruns)
        if result.status == 0:
            continue
        if suite in touched and not only_warns:
            report.failed.append(f"{name}, {result.outcome}")
        else:
            report.warned.append(f"{name}, {result.outcome}")


def print_report(report: Report) -> None:
    for line in report.left_out:
        print(f"left out: {line}")
    if report.reruns:
        print(f"tests that failed once and were run again: {len(report.reruns)}")
    for line in report.reruns:
        print(f"RERUN {line}")
    for line in report.warned:
        print(f"WARNING, mend it first: {line}")
    for line in report.failed:
        print(f"FAILED: {line}")


def main() -> int:
    """Run what always runs, then what is due, and print what failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--elapsed", type=float, default=0.0, help="seconds that have passed since the start"
    )
    clock = Clock(parser.parse_args().elapsed)
    environment = dict(os.environ)
    always_seconds, suites = read_times(ROOT / ".ci" / "times")
    report = Report()
    run_always(clock, environment, report)
    slowness = max(1.0, clock.seconds() / always_seconds)
    print(
        f"what always runs took {clock.seconds():.0f} s, {slowness:.2f} times its row ({always_seconds} s)"
    )
    run_by_turns(suites, slowness, clock, environment, report)
    if len(report.reruns) > RERUNS_ALLOWED:
        report.failed.append(f"more than {RERUNS_ALLOWED} tests passed at their second try only")
    print_report(report)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
