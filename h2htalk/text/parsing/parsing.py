"""Sentences parsed and names found, by small pipelines that come with the package or by spaCy models you name.

The bundled ones (`h2htalk/text/models`, each with its licence, CC BY-SA 4.0; figures in docs/measurements.md) are
trained on Universal Dependencies and Universal NER data. They load in a fraction of a second and need no download.
They read plain conversation well enough to count what is said; where a single sentence matters, or a name must not be
missed, prefer spaCy's official models (`--spacy-model en_core_web_sm`, `zh_core_web_sm`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from h2htalk.data.languages import LANGUAGES, find_language
from h2htalk.errors import ConfigError, DataError, MissingExtraError, quoted, shorten

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Task = Literal["parser", "names"]
Label = Literal["PERSON", "LOC", "ORG"]
MODELS = Path(__file__).parents[1] / "models"
INSTALL = 'pip install "h2htalk[analysis]"'
# A piece is parsed at once; memory and time of a sentence without an end stay small.
LONGEST_PIECE = 2000

# Components of official models that cost time and that the task does not ask for.
_UNUSED: dict[Task, tuple[str, ...]] = {
    "parser": ("ner", "lemmatizer", "entity_linker", "textcat", "senter"),
    "names": ("parser", "tagger", "morphologizer", "lemmatizer", "attribute_ruler", "senter", "textcat"),
}
_NEEDED: dict[Task, str] = {"parser": "parser", "names": "ner"}
# A cut falls after a mark that ends a sentence, else after a comma or a space. A run of full stops is tried from its
# first one alone, without going back: no line of dots and quotes costs more than its length.
_CUTS = (
    re.compile(r"[。！？；!?;…]++[”’」』\"']*+\s*+|(?<![.])[.]++[\"']*+\s++"),
    re.compile(r"[，,、：:\s]++"),
)
_SPACE = re.compile(r"\s*+")
# What pipelines call the names that are kept: the bundled ones, spaCy's official ones, others.
_LABELS: dict[str, Label] = {
    "PERSON": "PERSON",
    "PER": "PERSON",
    "LOC": "LOC",
    "GPE": "LOC",
    "FAC": "LOC",
    "ORG": "ORG",
}
_LOADING = Lock()


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """A name in a text: the characters `text[start:end]`, and what it names."""

    start: int
    end: int
    label: Label


def load_parser(language: str, model: str | None = None) -> Language:
    """The pipeline that tags and parses a language.

    Its documents carry `pos_` (universal tags), `dep_` (Universal Dependencies relations; ClearNLP ones of an
    official English model) and heads. English also has `tag_` (Penn) and `morph`. The bundled ones set no lemmas.

    Args:
        language: `en` or `zh`.
        model: None for the bundled one; or an installed spaCy package (`en_core_web_sm`), or a pipeline's folder.

    Raises:
        MissingExtraError: spaCy is not installed.
        ConfigError: no such language or model, a model of another language, or one that has no parser.
    """
    return _load("parser", language, model)


def load_names(language: str, model: str | None = None) -> Language:
    """The pipeline that finds names: `ents` with PERSON, LOC and ORG (official models: their own labels too).

    Arguments and errors as in `load_parser`. For texts from outside take `names`: the pipeline itself stops at half a
    surrogate pair and at a million characters.
    """
    return _load("names", language, model)


def names(texts: Iterable[str], language: str, *, model: str | None = None) -> Iterator[list[Name]]:
    """The names in each text, in order of the texts and of where they stand; none overlap.

    Any text will do, of any length: it is read line by line, as `pieces` cuts it, in time proportional to its length.
    A name that runs over a line end, or over a cut in mid-word, is not found whole.

    They are candidates, no guarantee of privacy: F1 of persons is about 0.7 on English web text, 0.5 on tweets, 0.7 on
    Chinese encyclopedia text (docs/measurements.md).

    Args:
        texts: may hold anything: half surrogate pairs, NUL, emoji. Offsets count the characters of the text as given.
        language: `en` or `zh`.
        model: as in `load_parser`. Its GPE and FAC count as LOC, PER as PERSON; labels other than these are left out.

    Raises:
        MissingExtraError, ConfigError: as `load_parser`, at once.
    """
    return _named_texts(load_names(language, model), texts)


def _named_texts(nlp: Language, texts: Iterable[str]) -> Iterator[list[Name]]:
    found: list[Name] = []
    for doc, start in nlp.pipe(_located(texts), as_tuples=True, batch_size=64):
        if start is None:
            yield found
            found = []
            continue
        for entity in doc.ents:
            if label := _LABELS.get(entity.label_):
                found.append(Name(start + entity.start_char, start + entity.end_char, label))


def _located(texts: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Pieces with where each starts in its text; an empty one without a place says that a text is over."""
    for text in texts:
        for start, end in _places(text):
            yield _readable(text[start:end]), start
        yield "", None


def parse(texts: Iterable[str], language: str, *, model: str | None = None) -> Iterator[Doc]:
    """A parsed document for each text, in order; see `load_parser` for what it carries and for errors.

    A text is parsed whole: give long ones as `pieces`. Half a surrogate pair, which spaCy cannot read, is parsed as a
    question mark.

    Raises:
        DataError: a text of more than a million characters.
    """
    nlp = load_parser(language, model)
    docs: Iterator[Doc] = nlp.pipe(_parsable(texts, nlp.max_length), batch_size=64)
    return docs


def _parsable(texts: Iterable[str], longest: int) -> Iterator[str]:
    for number, text in enumerate(texts, start=1):
        if len(text) > longest:
            raise DataError(
                f"text {number} to be parsed has {len(text):,} characters, and {longest:,} can be parsed at once;"
                " give its parts: h2htalk.text.parsing.parsing.pieces(text)"
            )
        yield _readable(text)


def _readable(text: str) -> str:
    """The text with a question mark for each half of a surrogate pair: as long as it was."""
    return text.encode("utf-8", "replace").decode("utf-8")


def pieces(text: str) -> Iterator[str]:
    """The text's lines, and of a line over 2,000 characters parts cut at sentence ends, commas or spaces.

    A turn, a memory or a plan is a line of its own, so no sentence runs over a line end. White space around a
    piece is dropped, empty ones are left out.
    """
    return (text[start:end] for start, end in _places(text))


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where each piece stands. The text is never copied from a place to its end: that would be quadratic."""
    next_line = 0
    for line in text.splitlines(keepends=True):
        start = next_line + len(line) - len(line.lstrip())
        end = next_line + len(line.rstrip())
        next_line += len(line)
        while end - start > LONGEST_PIECE:
            reach = text[start : start + LONGEST_PIECE]
            cut = _cut(reach)
            yield start, start + len(reach[:cut].rstrip())
            start = _spaces_end(text, start + cut, end)
        if start < end:
            yield start, end


def _spaces_end(text: str, start: int, end: int) -> int:
    spaces = _SPACE.match(text, start, end)
    return spaces.end() if spaces else start


def _cut(reach: str) -> int:
    """Where to cut off what a piece can hold: at the last good place, else in mid-word."""
    for mark in _CUTS:
        ends = [found.end() for found in mark.finditer(reach)]
        if ends:
            return ends[-1]
    return LONGEST_PIECE


def _load(task: Task, language: str, model: str | None) -> Language:
    """Loaded once, whoever asks first: a cache alone lets threads that ask together each load their own."""
    with _LOADING:
        return _loaded(task, language, model)


@cache
def _loaded(task: Task, language: str, model: str | None) -> Language:
    if language not in LANGUAGES:
        raise ConfigError(f"no {task} for language {quoted(language)}; choose from {', '.join(LANGUAGES)}")
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("reading sentences", INSTALL) from error
    if model is None:
        if components := find_language(language).parser_components:
            import_module(components)  # registers the tokenizer and features with spaCy
        return spacy.load(MODELS / f"{language}_{task}")
    return _named(spacy, task, language, model)


def _named(spacy: Any, task: Task, language: str, model: str) -> Language:
    try:
        nlp: Language = spacy.load(model, exclude=_UNUSED[task])
    # Not there; its own requirements; a broken or foreign folder; a package that is no model (`numpy`).
    except (OSError, ImportError, ValueError, AttributeError, TypeError) as error:
        reason = re.sub(r"^\[\w+\] ", "", shorten(" ".join(str(error).split()), 200))
        raise ConfigError(
            f"spaCy model {quoted(model)} cannot be loaded ({reason}); install it (python -m spacy download NAME),"
            " name its folder, or leave --spacy-model out to use the bundled pipeline"
        ) from error
    if nlp.lang != language:
        raise ConfigError(f"spaCy model {quoted(model)} is for language {nlp.lang!r}, not {language!r}")
    if not nlp.has_pipe(_NEEDED[task]):
        raise ConfigError(
            f"spaCy model {quoted(model)} has no {_NEEDED[task]}: {', '.join(nlp.pipe_names) or 'it is empty'}"
        )
    return nlp
