"""Count verb-noun pairs of many texts, in several processes while this one measures other things.

Parsing is most of an analysis. The processes get texts and return counts; identical texts are parsed once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from h2htalk.analysis.verb_nouns.pairs import PairCount, VerbNounPair, count_pairs
from h2htalk.data.languages import find_language
from h2htalk.errors import ConfigError
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.parsing.parsing import load_parser, parse, pieces

if TYPE_CHECKING:
    from spacy.tokens import Doc

CHUNK_PIECES = 200
CHUNK_CHARACTERS = 40_000
# For fewer words, starting two processes costs more time than they save.
WORTH_PROCESSES = 20_000

Counts = dict[VerbNounPair, int]


@dataclass(frozen=True, slots=True)
class PairJob:
    """Texts of one language whose pairs are counted together; `model` is a spaCy model, None the bundled one."""

    texts: tuple[str, ...]
    language: str
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A unit of work: distinct pieces of text of one job, each of which occurs `times` times."""

    job: int
    pieces: tuple[str, ...]
    times: int
    language: str
    model: str | None


def choose_processes(jobs: Sequence[PairJob], processes: int | None) -> int:
    """Choose how many processes parse the jobs.

    Args:
        processes: what the user asked for; None for the usable cores, or 1 where there is little to parse.

    Raises:
        ConfigError: fewer than one.
    """
    if processes is not None and processes < 1:
        raise ConfigError(f"--processes is {processes}; it must be 1 or more")
    words = sum(sum(map(len, job.texts)) / find_language(job.language).word_length for job in jobs)
    return processes or (usable_cores() if words >= WORTH_PROCESSES else 1)


def make_chunks(jobs: Sequence[PairJob]) -> Iterator[Chunk]:
    """Split each job's distinct pieces into chunks of at most 200: by how often they occur, then in text order."""
    for number, job in enumerate(jobs):
        occurring: dict[int, list[str]] = {}
        for piece, times in Counter(piece for text in job.texts for piece in pieces(text)).items():
            occurring.setdefault(times, []).append(piece)
        for times, of_times in sorted(occurring.items()):
            part: list[str] = []
            for piece in of_times:
                part.append(piece)
                if len(part) == CHUNK_PIECES or sum(map(len, part)) >= CHUNK_CHARACTERS or piece is of_times[-1]:
                    yield Chunk(number, tuple(part), times, job.language, job.model)
                    part = []


def count_chunk(chunk: Chunk) -> Counts:
    """Count the pairs of a chunk's pieces, each as often as its piece occurs."""
    counts = Counter(iter_pairs(chunk.pieces, chunk.language, model=chunk.model))
    return {pair: count * chunk.times for pair, count in counts.items()}


@contextmanager
def counting_pairs(
    jobs: Sequence[PairJob], processes: int, count: Callable[[Chunk], Counts] = count_chunk
) -> Iterator[Callable[[], list[list[PairCount]]]]:
    """Count the pairs of some jobs in processes that start at once and end with the block.

    Args:
        jobs: what to count.
        processes: 1 parses in this process, when the results are read.
        count: counts a chunk; a function that another process can import.

    Yields:
        A function that waits for the counts and returns those of each job, most frequent first.

    Raises:
        ConfigError: a process ended before its work was done, or the parser cannot be loaded.
    """
    chunks = list(make_chunks(jobs))
    processes = min(processes, len(chunks))
    with ExitStack() as stack:
        mapped = stack.enter_context(ProcessPool(processes)).map if processes > 1 else map
        yield partial(_totals, len(jobs), chunks, mapped(count, chunks))


def _totals(jobs: int, chunks: Sequence[Chunk], counted: Iterable[Counts]) -> list[list[PairCount]]:
    totals: list[Counter[VerbNounPair]] = [Counter() for _ in range(jobs)]
    with Progress("parsing", sum(len(chunk.pieces) for chunk in chunks)) as progress:
        for chunk, counts in zip(chunks, counted, strict=True):
            totals[chunk.job].update(counts)
            progress.advance(count=len(chunk.pieces))
    return [count_pairs(total) for total in totals]


def iter_pairs(texts: Iterable[str], language: str, *, model: str | None = None) -> Iterator[VerbNounPair]:
    """Yield every (verb, direct object) pair of the texts, one an occurrence; only the current batch is in memory.

    Direct objects only: no object of a preposition, subject of a passive, measure or time; no pronoun. A particle
    belongs to its verb (`turn off`); of two objects the thing given counts; coordinated verbs share an object,
    and in a relative clause the noun it modifies may be the object. Copulas give none, light verbs do.

    Args:
        texts: n texts, read as a stream.
        language: `en` or `zh`.
        model: the name of an installed spaCy pipeline to parse with, instead of the bundled one.

    Yields:
        Pairs in the order of the texts, within a text by the noun's position and then the verb's. Verbs and
        common nouns in lower case, proper nouns as written.

    Raises:
        ConfigError: an unknown language, or a model that is not installed.
        MissingExtraError: spaCy or lemminflect is not installed.
    """
    rules: Callable[[Doc], list[VerbNounPair]] = resolve_name(find_language(language).pair_rules)
    with ExitStack() as stack:
        if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
            # thinc's own BLIS always runs on one thread but does not know new processors (39 GFLOP/s where numpy's
            # OpenBLAS reaches 119): a fourth of an analysis. With more threads OpenBLAS would waste them on matrices
            # this small.
            from thinc.api import use_ops

            stack.enter_context(use_ops("numpy", use_blis=False))
        load_parser(language, model)
    # An object is in the same turn and line as its verb.
    lines = (piece for text in texts for piece in pieces(text))
    for doc in parse(lines, language, model=model):
        yield from rules(doc)
