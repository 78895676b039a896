"""Choose the pipeline of each language, and count verb-noun pairs of many texts in several processes.

Parsing is most of an analysis. The processes get texts and return counts; identical texts are parsed once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from h2htalk.analysis.verb_nouns.pairs import PairCount, VerbNounPair, count_pairs
from h2htalk.data.files import read_json_object
from h2htalk.data.languages import Language, find_language
from h2htalk.errors import ConfigError, DataError, MissingExtraError, quoted
from h2htalk.parallel import ProcessPool, usable_cores
from h2htalk.progress import Progress
from h2htalk.text.parsing.parsing import INSTALL, load_parser, parse, pieces
from h2htalk.version import __version__

if TYPE_CHECKING:
    from spacy.tokens import Doc

CHUNK_PIECES = 200
CHUNK_CHARACTERS = 40_000
# For fewer words, starting two processes costs more time than they save.
WORTH_PROCESSES = 20_000

Counts = dict[VerbNounPair, int]
BUNDLED = "bundled"


@dataclass(frozen=True, slots=True)
class ParserModel:
    """A pipeline by the name and version in its own `meta.json`; `source` None is the bundled one."""

    source: str | None
    language: str
    name: str
    version: str


def choose_models(sources: Sequence[str], languages: Iterable[Language]) -> dict[Language, ParserModel]:
    """Choose the pipeline of each language: the one named for it, else the bundled one.

    Args:
        sources: packages or folders of spaCy pipelines; each names its language in `meta.json`.
        languages: those of the split.

    Raises:
        MissingExtraError: spaCy is not installed.
        ConfigError: no such pipeline, one of a language that the split does not have, or two of one language.
    """
    for package in ("spacy", "lemminflect"):
        if find_spec(package) is None:
            raise MissingExtraError("finding verb-noun pairs", INSTALL)
    chosen = {language: ParserModel(None, language, BUNDLED, __version__) for language in languages}
    for source in sources:
        model = _read_model(source)
        language = next((language for language in chosen if language == model.language), None)
        if language is None:
            raise ConfigError(
                f"--spacy-model {quoted(source)} is a pipeline for {quoted(model.language)}; "
                f"the texts analysed are {' and '.join(chosen)}"
            )
        if chosen[language].source is not None:
            raise ConfigError(f"--spacy-model: two pipelines for {language}; name one a language")
        chosen[language] = model
    return chosen


def _read_model(source: str) -> ParserModel:
    if source.strip() and os.path.isdir(source):  # pathlib raises where the name is too long
        folder = Path(source)
    elif source.isidentifier() and (spec := find_spec(source)) and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
    else:
        advice = "name a folder, or install it: python -m spacy download en_core_web_sm"
        raise ConfigError(f"no spaCy pipeline {quoted(source)}: {advice}")
    try:
        meta = read_json_object(folder / "meta.json")
    except (OSError, DataError) as error:
        raise ConfigError(f"--spacy-model {quoted(source)}: no readable meta.json in {folder}") from error
    language, name, version = (meta.get(key) for key in ("lang", "name", "version"))
    if not all(isinstance(text, str) and text for text in (language, name, version)):
        raise ConfigError(f"--spacy-model {quoted(source)}: its meta.json lacks lang, name or version")
    return ParserModel(source, str(language), f"{language}_{name}", str(version))


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
