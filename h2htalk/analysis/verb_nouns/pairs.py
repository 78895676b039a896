"""Find the pipeline of each language, and count verb-noun pairs of many texts, as Fig. 5 of the paper does.

Parsing is most of an analysis. Processes get texts and return counts; identical texts are parsed once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple

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
BUNDLED = "bundled"


class VerbNounPair(NamedTuple):
    """A verb and the head noun of its direct object, both as dictionary forms."""

    verb: str
    noun: str


@dataclass(frozen=True, slots=True)
class PairCount:
    """The number of occurrences of a pair, in all texts together."""

    verb: str
    noun: str
    count: int


@dataclass(frozen=True, slots=True)
class VerbGroup:
    """A verb of the inner ring of Fig. 5 with its nouns of the outer ring; `count` is the sum over these."""

    verb: str
    count: int
    nouns: tuple[PairCount, ...]


def count_pairs(pairs: Iterable[VerbNounPair] | Counter[VerbNounPair]) -> list[PairCount]:
    """Count pairs, or sort their counts: by count descending, then verb and noun ascending."""
    counts = [PairCount(*pair, count) for pair, count in Counter(pairs).items()]
    return sorted(counts, key=_rank)


def top_verbs(counts: Iterable[PairCount], pairs: int = 50) -> list[VerbGroup]:
    """Group the most frequent pairs (the paper shows 50) by verb, as Fig. 5 draws them.

    Verbs are by their total within those pairs, descending, then ascending by name; each with its nouns in the order of
    `count_pairs`. A pair that is not drawn does not count.
    """
    nouns: dict[str, list[PairCount]] = {}
    for count in sorted(counts, key=_rank)[:pairs]:
        nouns.setdefault(count.verb, []).append(count)
    groups = []
    for verb, of_verb in nouns.items():
        total = sum(noun.count for noun in of_verb)
        groups.append(VerbGroup(verb, total, tuple(of_verb)))
    return sorted(groups, key=lambda group: (-group.count, group.verb))


def _rank(count: PairCount) -> tuple[int, str, str]:
    return -count.count, count.verb, count.noun


# --- Pipelines and processes ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ParserModel:
    """A pipeline by the name and version in its own `meta.json`; `source` None is the bundled one."""

    source: str | None
    language: str
    name: str
    version: str


def choose_models(
    sources: Sequence[str], languages: Iterable[Language]
) -> dict[Language, ParserModel]:
    """Choose the pipeline of each language: the one named for it, else the bundled one.

    Sources are packages or folders of spaCy pipelines; each names its language in `meta.json`. Raises MissingExtraError
    without spaCy, ConfigError for no such pipeline, one of another language, or two of one language.
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
        raise ConfigError(
            f"--spacy-model {quoted(source)}: no readable meta.json in {folder}"
        ) from error
    texts = [meta.get(key) for key in ("lang", "name", "version")]
    if not all(isinstance(text, str) and text for text in texts):
        raise ConfigError(
            f"--spacy-model {quoted(source)}: its meta.json lacks lang, name or version"
        )
    language, name, version = map(str, texts)
    return ParserModel(source, language, f"{language}_{name}", version)


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
    """Choose how many processes parse the jobs; for None the usable cores, or 1 where there is little to parse."""
    if processes is not None and processes < 1:
        raise ConfigError(f"--processes is {processes}; it must be 1 or more")
    if processes is not None:
        return processes
    words = 0.0
    for job in jobs:
        characters = sum(map(len, job.texts))
        words += characters / find_language(job.language).word_length
    return usable_cores() if words >= WORTH_PROCESSES else 1


def make_chunks(jobs: Sequence[PairJob]) -> Iterator[Chunk]:
    """Split each job's distinct pieces into chunks of at most 200: by how often they occur, then in text order."""
    for number, job in enumerate(jobs):
        occurrences: Counter[str] = Counter()
        for text in job.texts:
            occurrences.update(pieces(text))
        by_times: dict[int, list[str]] = {}
        for piece, times in occurrences.items():
            by_times.setdefault(times, []).append(piece)
        for times, of_times in sorted(by_times.items()):
            for chunk in _divide(of_times):
                yield Chunk(number, chunk, times, job.language, job.model)


def _divide(distinct_pieces: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Divide pieces into chunks, each of which ends with 200 pieces or with 40,000 characters."""
    chunk: list[str] = []
    characters = 0
    for piece in distinct_pieces:
        chunk.append(piece)
        characters += len(piece)
        if len(chunk) == CHUNK_PIECES or characters >= CHUNK_CHARACTERS:
            yield tuple(chunk)
            chunk = []
            characters = 0
    if chunk:
        yield tuple(chunk)


def count_chunk(chunk: Chunk) -> Counter[VerbNounPair]:
    """Count the pairs of a chunk's pieces, each as often as its piece occurs."""
    counts = Counter(iter_pairs(chunk.pieces, chunk.language, model=chunk.model))
    return Counter({pair: count * chunk.times for pair, count in counts.items()})


def count_texts(
    jobs: Sequence[PairJob],
    processes: int,
    count: Callable[[Chunk], Counter[VerbNounPair]] = count_chunk,
) -> list[list[PairCount]]:
    """Count the pairs of each job, most frequent first; one process is this one.

    `count` counts a chunk; another process must be able to import it. Raises ConfigError where a process ended before
    its work was done, or the parser cannot be loaded.
    """
    chunks = list(make_chunks(jobs))
    totals = [Counter[VerbNounPair]() for _ in jobs]
    total_pieces = sum(len(chunk.pieces) for chunk in chunks)
    processes = min(processes, len(chunks))
    with ExitStack() as stack:
        mapped = stack.enter_context(ProcessPool(processes)).map if processes > 1 else map
        progress = stack.enter_context(Progress("parsing", total_pieces))
        for chunk, counts in zip(chunks, mapped(count, chunks), strict=True):
            totals[chunk.job].update(counts)
            progress.advance(count=len(chunk.pieces))
    return [count_pairs(total) for total in totals]


def iter_pairs(
    texts: Iterable[str], language: str, *, model: str | None = None
) -> Iterator[VerbNounPair]:
    """Yield every (verb, direct object) pair of the texts, one an occurrence; only the current batch is in memory.

    Direct objects only: no object of a preposition, subject of a passive, measure or time; no pronoun. A particle
    belongs to its verb (`turn off`); of two objects the thing given counts; coordinated verbs share an object,
    and in a relative clause the noun it modifies may be the object. Copulas give none, light verbs do.

    Pairs are in the order of the texts, within a text by the noun's position and then the verb's; verbs and common
    nouns in lower case, proper nouns as written. `model` names a spaCy pipeline to parse with instead of the bundled
    one. Raises ConfigError for an unknown language or model, MissingExtraError without spaCy or lemminflect.
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
    lines = chain.from_iterable(map(pieces, texts))
    for doc in parse(lines, language, model=model):
        yield from rules(doc)
