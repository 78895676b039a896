"""Run work as Ray tasks: the parts of a curation's stages, and the shards of a suite.

Tasks get paths and settings, never dialogues, as Ray may write its objects to files that everybody can read; what is
finished is read from files. A cluster started here listens on this machine only, asks for a token, and has a private
folder that is removed at its end. The machines of another cluster share the folders and the version of this package.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from threading import Thread
from typing import Any

from h2htalk.errors import (
    ConfigError,
    H2HTalkError,
    IncompleteError,
    MissingExtraError,
    counted,
    shorten,
)
from h2htalk.extras import RAY
from h2htalk.parallel import EXECUTOR, usable_cores
from h2htalk.scale.attempts import Shard
from h2htalk.scale.shards import evaluate_shard
from h2htalk.scale.suite import Say, SuiteRun, merge_suite, read_suite, runs_of, shard_spec
from h2htalk.version import __version__

# Ray reads them once a process; what the user has set stays. The last one: listen on 127.0.0.1 only.
_OWN = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
_QUIET = (
    15.0  # seconds without a result, after which the cluster is asked, and that its answer may take
)
RETRIES = 3  # of a task whose process or machine is lost
_AGAIN = "what is finished is stored: the same command continues"


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """A call of a function."""

    function: Callable[..., Any]
    arguments: tuple[object, ...]
    gpus: int = 0
    retries: int = RETRIES


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Ray cluster to which this process is connected; an `EXECUTOR` of stages."""

    ray: Any
    patience: float  # seconds in which it may start a machine on which a task fits

    def __call__(
        self, function: Callable[..., Any], jobs: Sequence[tuple[object, ...]]
    ) -> Iterator[Any]:
        """Call a function with each job's arguments; yield the results as they come. Raises the first error."""
        cpus = sum(size.get("CPU", 0) for size in self._sizes())
        for _, result in self.results((Task(function, job) for job in jobs), 2 * max(1, int(cpus))):
            if isinstance(result, H2HTalkError):
                raise result
            yield result

    def results(
        self, tasks: Iterable[Task], ahead: int, calls: int = 0
    ) -> Iterator[tuple[Task, Any]]:
        """Run tasks, at most `ahead` submitted at once, in processes that end after `calls` (0: never); yield each with
        its result or error as they come. Raises IncompleteError where the cluster is lost or too small."""
        remote = self.ray.remote(max_calls=calls)(_call)
        waiting = iter(tasks)
        pending: dict[Any, Task] = {}
        quiet = 0.0
        while True:
            for task in islice(waiting, ahead - len(pending)):
                call = remote.options(num_cpus=1, num_gpus=task.gpus, max_retries=task.retries)
                pending[call.remote(__version__, os.getcwd(), task.function, task.arguments)] = task
            if not pending:
                return
            done, _ = self.ray.wait([*pending], timeout=_QUIET)
            least = min(task.gpus for task in pending.values())
            fits = done or any(
                size.get("CPU", 0) >= 1 and size.get("GPU", 0) >= least for size in self._sizes()
            )
            quiet = 0.0 if fits else quiet + _QUIET
            if quiet > self.patience:
                raise IncompleteError(
                    f"no machine of the Ray cluster has a CPU and {counted(least, 'GPU')}; {_AGAIN}"
                )
            for reference in done:
                yield pending.pop(reference), self._result(reference)

    def _sizes(self) -> list[dict[str, float]]:
        """The CPUs and GPUs of each machine. Raises IncompleteError where the cluster is lost."""
        nodes: list[Any] = []
        asking = Thread(target=lambda: nodes.extend(self.ray.nodes()), daemon=True)
        asking.start()
        asking.join(_QUIET)  # after 60 seconds Ray ends this process
        if not nodes:
            raise IncompleteError(f"the Ray cluster does not answer any more; {_AGAIN}")
        return [node["Resources"] for node in nodes if node["Alive"]]

    def _result(self, reference: Any) -> Any:
        """The result of a task or its error; one that is not of this package is a bug, and raised."""
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, H2HTalkError):
                return cause
            if isinstance(error, self.ray.exceptions.RayTaskError):
                raise
            return IncompleteError(
                f"a task ended before its work was done ({type(error).__name__}); {_AGAIN}"
            )


def _call(
    version: str, folder: str, function: Callable[..., Any], arguments: tuple[object, ...]
) -> Any:
    """Call a function in a process of Ray, in the folder in which the command was started."""
    if version != __version__:
        raise ConfigError(
            f"{socket.gethostname()} has h2htalk {__version__}, not {version}: install the same"
        )
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(
            f"{socket.gethostname()} has no {folder}: start where all machines share it"
        ) from error
    return function(*arguments)


@contextmanager
def connect(address: str = "") -> Iterator[Cluster]:
    """Connect to the cluster at an address, or start one here that ends with the block, in which stages run on it.
    Raises MissingExtraError without Ray, ConfigError where the cluster cannot be reached or started."""
    RAY.require()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    with ExitStack() as stack:
        options: dict[str, Any] = {"address": address}
        if not address:
            short = min(
                "/tmp", gettempdir(), key=len
            )  # paths of sockets have at most 107 characters
            folder = stack.enter_context(
                TemporaryDirectory("", "h2htalk-", short, ignore_cleanup_errors=True)
            )
            os.environ.update({**_OWN, **os.environ, "RAY_TMPDIR": folder})
            options = {
                "address": "local",
                "num_cpus": usable_cores(),
                "object_store_memory": 80 << 20,
            }
        try:
            import ray
        except ImportError as error:
            raise MissingExtraError(RAY.feature, RAY.install) from error
        host, _, port = address.rpartition(":")
        stack.enter_context(redirect_stdout(sys.stderr))  # Ray reports lost workers
        stack.callback(ray.shutdown)
        try:
            if port.isdecimal():  # Ray waits for minutes where nobody listens
                socket.create_connection((host.strip("[]"), int(port)), timeout=_QUIET).close()
            ray.init(
                include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **options
            )
        except (OSError, OverflowError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            what = (
                f"--ray-address {address}: cannot be used" if address else "Ray cannot be started"
            )
            raise ConfigError(f"{what}: {shorten(' '.join(str(error).split()), 300)}") from error
        cluster = Cluster(ray, 600.0 if address else 0.0)
        stack.callback(EXECUTOR.reset, EXECUTOR.set(cluster))
        yield cluster


def launch(path: Path, address: str, say: Say) -> int:
    """Run each unfinished shard of a suite as a task, and merge its runs; returns the exit code, 3 if some are missing.

    A shard of paid calls is not tried again by itself. Raises as `read_suite`, `connect` and `Cluster.results`.
    """
    RAY.require()
    tasks: dict[Task, tuple[SuiteRun, int]] = {}
    runs = runs_of(read_suite(path))
    for run in runs:
        missing = run.missing()
        for number in (*missing.unfinished, *missing.failed):
            arguments = (shard_spec(run), Shard(number, run.shards))
            task = Task(evaluate_shard, arguments, run.gpus, 0 if run.paid else RETRIES)
            tasks[task] = run, number
    finished = []
    if tasks:
        with connect(address) as cluster:
            for task, result in cluster.results(tasks, len(tasks), calls=1):
                run, number = tasks[task]
                if isinstance(result, str):
                    say(f"{run.name}: {result}")
                    finished.append((run, number))
                else:
                    say(f"{run.name}: shard {number}: {result}")
    deadline = time.monotonic() + 90  # seconds for which a folder on a network may look old
    while time.monotonic() < deadline and any(
        number in run.missing().unfinished for run, number in finished
    ):
        time.sleep(1)
    code = merge_suite(path, say)
    return IncompleteError.exit_code if any(run.missing().unfinished for run in runs) else code
