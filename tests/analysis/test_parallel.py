"""Pairs are the same however many processes count them, and no process outlives or hangs the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from h2htalk.analysis.parallel import (
    CHUNK_CHARACTERS,
    CHUNK_PIECES,
    Chunk,
    Counts,
    PairCounting,
    PairJob,
    chunks_of,
    good_processes,
)
from h2htalk.analysis.verb_nouns import PairCount
from h2htalk.errors import ConfigError, MissingExtraError
from h2htalk.worker_processes import usable_cores

# --- Counters that stand in for the parser; the processes import them from here --------------------------------


def first_two_words(chunk: Chunk) -> Counts:
    pairs = [tuple(piece.split()[:2]) for piece in chunk.pieces if len(piece.split()) > 1]
    return {(verb, noun): n * chunk.times for (verb, noun), n in Counter(pairs).items()}  # type: ignore[misc]


def die(chunk: Chunk) -> Counts:
    os._exit(9)


def complain(chunk: Chunk) -> Counts:
    raise MissingExtraError("parsing", "pip install x")


def sleep(chunk: Chunk) -> Counts:
    time.sleep(0.2)
    return {}


# --- What goes to a process at once -----------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["a b", "c d", "e", "f g h", "", "i j"]), max_size=30))
def test_every_occurrence_of_a_text_is_in_one_chunk_once(texts: list[str]) -> None:
    chunks = list(chunks_of([PairJob(tuple(texts), "en")]))
    seen = Counter({piece: chunk.times for chunk in chunks for piece in chunk.pieces})
    assert seen == Counter(text for text in texts if text)
    assert sum(len(chunk.pieces) for chunk in chunks) == len(seen)


def test_chunks_are_small_in_texts_and_in_characters() -> None:
    many = tuple(f"text {n}" for n in range(5 * CHUNK_PIECES))
    long = tuple(f"{n} {'word ' * 380}" for n in range(100))
    chunks = list(chunks_of([PairJob(many, "en"), PairJob(long, "zh", "model")]))
    assert [len(chunk.pieces) for chunk in chunks if chunk.job == 0] == [CHUNK_PIECES] * 5
    assert all(sum(map(len, chunk.pieces)) < CHUNK_CHARACTERS + 2_000 for chunk in chunks)
    assert {(chunk.job, chunk.language, chunk.model) for chunk in chunks} == {
        (0, "en", None),
        (1, "zh", "model"),
    }


def test_little_is_parsed_here_and_much_by_every_core() -> None:
    little, much = PairJob(("word " * 1_000,), "en"), PairJob(("word " * 40_000,), "en")
    assert good_processes([little], None) == 1
    assert good_processes([much], None) == usable_cores()
    assert good_processes([much], 1) == 1
    assert good_processes([little], 3) == 3
    with pytest.raises(ConfigError, match="--processes is 0"):
        good_processes([little], 0)


# --- Counting ---------------------------------------------------------------------------------------------------

JOBS = [
    PairJob(("make tea", "make tea", "take walk", "hm"), "en"),
    PairJob((), "zh"),
    PairJob(tuple(f"read book{n % 7} now" for n in range(900)), "en"),
]


@pytest.mark.parametrize("processes", [1, 2])
def test_the_counts_are_those_of_each_job(processes: int) -> None:
    with PairCounting(JOBS, processes, first_two_words) as counting:
        first, empty, books = counting.results()
    assert first == [PairCount("make", "tea", 2), PairCount("take", "walk", 1)]
    assert empty == []
    assert [(pair.noun, pair.count) for pair in books] == [
        *((f"book{n}", 129) for n in range(4)),
        *((f"book{n}", 128) for n in range(4, 7)),
    ]


def test_nothing_to_parse_starts_nothing() -> None:
    with PairCounting([PairJob(("",), "en")], 4, die) as counting:
        assert counting.results() == [[]]


def many_chunks() -> list[PairJob]:
    return [PairJob(tuple(f"text {n}" for n in range(4_000)), "en")]


def test_a_process_that_dies_is_an_error_and_no_hang() -> None:
    with (
        PairCounting(many_chunks(), 2, die) as counting,
        pytest.raises(ConfigError, match="--processes 1"),
    ):
        counting.results()


def test_an_error_of_the_users_world_comes_through_whole() -> None:
    """A MissingExtraError takes two arguments, which pickle does not know: unpickling it broke the pool."""
    with (
        PairCounting(many_chunks(), 2, complain) as counting,
        pytest.raises(ConfigError, match="parsing needs a package that is not installed: pip install x"),
    ):
        counting.results()


def children_of(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found


SLEEPER = """
import sys
sys.path[:0] = sys.argv[1:]
from test_parallel import PairCounting, many_chunks, sleep
if __name__ == "__main__":
    with PairCounting(many_chunks(), 2, sleep) as counting:
        print("started", flush=True)
        counting.results()
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL], ids=lambda s: s.name)
def test_no_process_outlives_a_stopped_or_killed_parent(blow: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    command = [sys.executable, str(script), str(Path(__file__).parent), str(Path(__file__).parents[1])]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "started\n"
        children = children_of(parent.pid)
        assert len(children) >= 2
        if blow == signal.SIGINT:
            os.killpg(parent.pid, blow)  # as a terminal does: everybody gets it
        else:
            parent.kill()
        _, said = parent.communicate(timeout=20)
        deadline = time.monotonic() + 10
        while (left := [pid for pid in children if _lives(pid)]) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert left == []
    assert said.count("Traceback") == (blow == signal.SIGINT)  # the parent's own, no worker's


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
