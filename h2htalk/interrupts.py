"""Ctrl-C while a program waits for threads that hang, as those of a client do whose server answers no more."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

LONGEST_STOP = 5.0  # seconds from Ctrl-C to the end of a command
# The part of it in which work may end by itself; in the other, an interrupted command says how it ended.
WORK_SHARE = 0.8
INTERRUPTED = 130  # exit code after Ctrl-C, as shells have it
_LOOK_EVERY = 0.1  # seconds


@contextmanager
def leaves_after_ctrl_c(message: str) -> Iterator[None]:
    """Leave the block some seconds after Ctrl-C, also where it waits for threads that hang.

    Ctrl-C prints the message and raises KeyboardInterrupt, and raises it again where the block does not end: a pool of
    threads waits for them. A program that catches it goes on. When that program ends, threads that the block started
    and that still hang do not hold it for longer than `LONGEST_STOP`. A block in another thread, or in a program that
    handles SIGINT itself, is left alone.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if (
        not in_main_thread
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
        or not hasattr(signal, "pthread_kill")  # on Windows
    ):
        yield
        return
    block = _Block(message)
    # Not in the handler: it may have interrupted the start of another thread, whose lock it would wait for.
    threading.Thread(target=block.watch, daemon=True).start()
    try:
        signal.signal(signal.SIGINT, block.handle)
        yield
    finally:
        try:
            block.leave()
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class _Block:
    """A block that Ctrl-C may interrupt, the signal handler for it, and the thread that watches it."""

    def __init__(self, message: str) -> None:
        self._message = message
        self._threads_before = set(threading.enumerate())
        self._threads: list[threading.Thread] = []  # those of the block that went on
        # A signal handler may put into it at any moment. True: interrupted; False: left.
        self._events: SimpleQueue[bool] = SimpleQueue()
        self._lock = threading.Lock()
        self._interrupted = self._sent_again = self._left = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGINT: the first Ctrl-C and what `watch` sends interrupt the block, a second Ctrl-C does not."""
        if self._sent_again:
            self._sent_again = False
            if not self._left:
                raise KeyboardInterrupt
        elif self._left:
            signal.default_int_handler(number, frame)
        elif not self._interrupted:
            self._interrupted = True
            os.write(2, f"{self._message}\n".encode())  # print may be what it interrupts
            self._events.put(True)
            raise KeyboardInterrupt

    def leave(self) -> None:
        """Note that the block has been left, and which of its threads go on."""
        with self._lock:
            self._left = True
        for thread in threading.enumerate():
            if thread not in self._threads_before and not thread.daemon:
                self._threads.append(thread)
        self._events.put(False)

    def watch(self) -> None:
        """Interrupt the block again until it is left, then wait for the end of the program."""
        if not self._events.get():
            return
        while True:
            try:
                self._events.get(timeout=WORK_SHARE * LONGEST_STOP)
            except Empty:
                self._interrupt_again()
            else:
                break
        if self._threads:
            _end_with_program(self._threads)

    def _interrupt_again(self) -> None:
        with self._lock:
            if not self._left:
                self._sent_again = True
                main_thread = threading.main_thread().ident
                assert main_thread is not None
                signal.pthread_kill(main_thread, signal.SIGINT)


def _end_with_program(hanging: Sequence[threading.Thread]) -> None:
    """End the process some seconds after its main thread, where only threads that hang keep it from its end."""
    threading.main_thread().join()
    deadline = time.monotonic() + LONGEST_STOP
    while time.monotonic() < deadline or _other_work(hanging):
        time.sleep(_LOOK_EVERY)
    if not any(thread.is_alive() for thread in hanging):
        return
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(INTERRUPTED)


def _other_work(hanging: Sequence[threading.Thread]) -> bool:
    """Whether threads of the program itself go on after its main thread."""
    for thread in threading.enumerate():
        if thread.daemon or thread is threading.main_thread() or thread in hanging:
            continue
        return True
    return False
