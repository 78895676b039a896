"""Count verb-noun pairs of many texts, in several processes while this one measures other things.

Parsing is most of an analysis. The processes get texts and return counts; identical texts are parsed once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name

from h2htalk.analysis.verb_nouns.pairs import PairCount, PairRules, VerbNounPair, top_pairs
from h2htalk.data.languages import find_language
from h2htalk.errors import ConfigError
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.parsing.parsing import pieces

CHUNK_PIECES = 200
CHUNK_CHARACTERS = 40_000
# For fewer words, starting two processes costs more time than they save.
WORTH_PROCESSES = 20_000

Counts = dict[tuple[str, str], int]  # (verb, noun) -> how often


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
        for times, occurring_pieces in sorted(occurring.items()):
            for part in _parts(occurring_pieces):
                yield Chunk(number, part, times, job.language, job.model)


def _parts(pieces: Sequence[str]) -> Iterator[tuple[str, ...]]:
    part: list[str] = []
    size = 0
    for piece in pieces:
        part.append(piece)
        size += len(piece)
        if len(part) == CHUNK_PIECES or size >= CHUNK_CHARACTERS:
            yield tuple(part)
            part, size = [], 0
    if part:
        yield tuple(part)


def count_chunk(chunk: Chunk) -> Counts:
    """Count the pairs of a chunk's pieces, each as often as its piece occurs."""
    counts = Counter((p.verb, p.noun) for p in iter_pairs(chunk.pieces, chunk.language, model=chunk.model))
    return {pair: count * chunk.times for pair, count in counts.items()}


@contextmanager
def counting_pairs(
    jobs: Sequence[PairJob], processes: int, count: Callable[[Chunk], Counts] = count_chunk
) -> Iterator[PairCounting]:
    """Count the pairs of some jobs in processes that start at once and end with the block.

    Args:
        jobs: what to count.
        processes: 1 parses in this process, when the results are read.
        count: counts a chunk; a function that another process can import.

    Raises:
        ConfigError: a process ended before its work was done, or the parser cannot be loaded.
    """
    counting = PairCounting(jobs, count)
    processes = min(processes, len(counting.chunks))
    if processes < 2:
        yield counting
        return
    with ProcessPool(processes) as pool:
        counting.start(pool)
        yield counting


class PairCounting:
    """The counts of some jobs' pairs, while they are computed; see `counting_pairs`."""

    def __init__(self, jobs: Sequence[PairJob], count: Callable[[Chunk], Counts]) -> None:
        self._count = count
        self._jobs = len(jobs)
        self.chunks = list(make_chunks(jobs))
        self._progress = Progress("parsing", sum(len(chunk.pieces) for chunk in self.chunks))
        self._futures: list[Future[Counts]] = []

    def start(self, pool: ProcessPool) -> None:
        """Submit the chunks to other processes."""
        for chunk in self.chunks:
            future = pool.submit(self._count, chunk)
            future.add_done_callback(partial(self._advance, chunk))
            self._futures.append(future)

    def results(self) -> list[list[PairCount]]:
        """Return the counts of each job, most frequent first; waits until all are parsed."""
        totals: list[Counter[tuple[str, str]]] = [Counter() for _ in range(self._jobs)]
        with self._progress:
            for chunk, counts in zip(self.chunks, self._counted(), strict=True):
                totals[chunk.job].update(counts)
        return [top_pairs([PairCount(*pair, count) for pair, count in total.items()], len(total)) for total in totals]

    def _counted(self) -> Iterator[Counts]:
        for future in self._futures:
            yield future.result()
        for chunk in self.chunks[len(self._futures) :]:
            yield self._count(chunk)
            self._advance(chunk)

    def _advance(self, chunk: Chunk, future: Future[Counts] | None = None) -> None:
        """Report a chunk as done; called by the pool's thread for chunks that other processes count."""
        if future is None or not (future.cancelled() or future.exception()):
            for _ in chunk.pieces:
                self._progress.advance()


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
    rules = _rules(language)
    from h2htalk.text.parsing.parsing import parse, pieces

    _load(language, model)
    # An object is in the same turn and line as its verb.
    lines = (piece for text in texts for piece in pieces(text))
    for doc in parse(lines, language, model=model):
        yield from rules(doc)


def _load(language: str, model: str | None) -> None:
    """Load the parser, in a process with one thread for BLAS so that numpy multiplies its matrices.

    thinc's own BLIS always runs on one thread but does not know new processors (39 GFLOP/s where numpy's OpenBLAS
    reaches 119): a fourth of an analysis. With more threads OpenBLAS would waste them on matrices this small.
    """
    from h2htalk.text.parsing.parsing import load_parser

    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        load_parser(language, model)
        return
    from thinc.api import use_ops

    with use_ops("numpy", use_blis=False):
        load_parser(language, model)


def _rules(language: str) -> PairRules:
    rules: PairRules = resolve_name(find_language(language).pair_rules)
    return rules
