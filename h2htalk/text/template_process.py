"""Render templates that did not come with this package in one child process, under limits of memory and time.

A folder of templates, or a run, may be somebody else's, and a template is a program: `"x".center(10**10)` takes 10 GB,
a loop in a loop takes hours. Where the operating system has these limits (Linux: both; macOS: time), it ends the child
that passes them, and everywhere this process ends one that gives no answer. Windows has no limit of memory: there the
limits of the sandbox on single operations hold (`jinja_templates`), and the time.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from h2htalk.errors import ConfigError

LONGEST_RENDER = 10  # seconds of a processor that one prompt may take
LONGEST_WAIT = 120.0  # seconds until this process ends a child that gives no answer
MOST_MEMORY = 1 << 30  # bytes of the child
TOO_LARGE = (
    f"takes more than {LONGEST_RENDER} seconds or {MOST_MEMORY >> 30} GiB of memory to render, which no prompt needs; "
    "look for a loop that does not end, or a text that grows without bound"
)
_LENGTH = struct.Struct(">Q")
_LONGEST_ANSWER = 1 << 26
# What the child calls with the sources and the paths of templates: a function from name and values to text.
Renderer = Callable[[str, Mapping[str, object]], str]
PROMPTS = "h2htalk.text.jinja_templates:serve_renders"


class TemplateTooLargeError(ConfigError):
    """A template that passes a limit of memory or time; the message names it."""


@dataclass
class TemplateProcess:
    """A child of this process. It is started at its first use, and again after it was ended.

    `server`: module and function that it runs, with the seconds of a processor that one render may take.
    """

    server: str = PROMPTS
    owner: int = field(default_factory=os.getpid)
    lock: threading.Lock = field(default_factory=threading.Lock)
    child: subprocess.Popen[bytes] | None = None
    sent: set[int] = field(default_factory=set)  # sets of templates that the child has

    def render(
        self,
        key: int,
        templates: tuple[Mapping[str, str], Mapping[str, str]],
        name: str,
        values: Mapping[str, object],
    ) -> str:
        """Render a template of a set, given by sources and paths of its templates.

        Raises TemplateTooLargeError, ConfigError for another error of the template.
        """
        with self.lock:
            child = self.child
            if child is None or child.poll() is not None:
                child = self._start()
            new_templates = None if key in self.sent else templates
            request = pickle.dumps((key, new_templates, name, dict(values)))
            timer = threading.Timer(LONGEST_WAIT, child.kill)
            timer.start()
            try:
                assert child.stdin is not None
                assert child.stdout is not None
                _send(child.stdin, request)
                answer = json.loads(_receive(child.stdout))
            except (OSError, EOFError, ValueError):
                child.kill()
                child.wait()
                self.child = None
                raise TemplateTooLargeError(f"{templates[1][name]}: {TOO_LARGE}") from None
            finally:
                timer.cancel()
            self.sent.add(key)
        if "too_large" in answer:
            raise TemplateTooLargeError(f"{templates[1][name]}: {TOO_LARGE}")
        if "error" in answer:
            raise ConfigError(answer["error"])
        return str(answer["text"])

    def _start(self) -> subprocess.Popen[bytes]:
        # As here: by itself it would import what lies in the current folder, which may be somebody else's.
        path = [str(Path(__file__).parents[2]), *sys.path]
        module, function = self.server.split(":")
        code = f"import sys; sys.path[:] = {path!r}; "
        code += f"from {module} import {function}; {function}({LONGEST_RENDER})"
        # NumPy's library would reserve memory for each core, which the limit counts.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self.child = subprocess.Popen(
            [sys.executable, "-c", code],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.sent = set()
        return self.child

    def stop(self) -> None:
        if self.child is not None and self.owner == os.getpid():
            self.child.kill()
            self.child.wait()


_processes: dict[str, TemplateProcess] = {}  # by server


def render_apart(
    key: int,
    templates: tuple[Mapping[str, str], Mapping[str, str]],
    name: str,
    values: Mapping[str, object],
    server: str = PROMPTS,
) -> str:
    """Render a template in the child of this process that runs a server; see `TemplateProcess.render`."""
    process = _processes.get(server)
    if process is None or process.owner != os.getpid():  # a fork has a child of its own
        process = TemplateProcess(server)
        _processes[server] = process
        atexit.register(process.stop)
    return process.render(key, templates, name, values)


# --- In the child -----------------------------------------------------------------------------------------------------


def serve(
    open_templates: Callable[[Mapping[str, str], Mapping[str, str]], Renderer], seconds: float
) -> None:
    """Answer requests on standard input until it ends."""
    # Ctrl-C reaches the whole group, and this process ends the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr
    _limit_memory()
    sets = dict[int, Renderer]()
    while True:
        try:
            key, templates, name, values = pickle.loads(_receive(requests))
        except EOFError:
            return
        answer: dict[str, Any]
        try:
            with _limited_time(seconds):
                if templates is not None:
                    sets[key] = open_templates(*templates)
                answer = {"text": sets[key](name, values)}
        except ConfigError as error:
            answer = {"error": str(error)}
        except MemoryError:
            answer = {"too_large": True}
        _send(answers, json.dumps(answer).encode())


def _limit_memory() -> None:
    """Let the operating system refuse more memory than a prompt needs, where it can."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # not on Windows; macOS ignores it
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextlib.contextmanager
def _limited_time(seconds: float) -> Iterator[None]:
    """Let the operating system end this process after so many seconds of a processor, where it can."""
    timer = getattr(signal, "setitimer", None)
    if timer is None:  # Windows
        yield
        return
    # The default of this signal ends the process, also within one operation.
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    # With the system's time: large texts take more of it than of the process's.
    timer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        timer(signal.ITIMER_PROF, 0)


def _send(stream: IO[bytes], content: bytes) -> None:
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    if length > _LONGEST_ANSWER:
        raise ValueError("an answer that is too long")
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content
