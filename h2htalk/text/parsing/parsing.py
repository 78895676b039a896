"""Parse sentences with small bundled pipelines or spaCy models that the user names, and find names with the latter.

The bundled ones (`h2htalk/text/models`, each with its licence, CC BY-SA 4.0; figures in docs/measurements.md) are
trained on Universal Dependencies data. They load in a fraction of a second and need no download. They are accurate
enough on plain conversation for counts; where a single sentence matters, prefer spaCy's official models
(`--spacy-model en_core_web_sm`, `zh_core_web_sm`).
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
from h2htalk.errors import ConfigError, MissingExtraError, quoted, shorten

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Task = Literal["parser", "names"]
Label = Literal["PERSON", "LOC", "ORG"]
MODELS = Path(__file__).parents[1] / "models"
INSTALL = 'pip install "h2htalk[analysis]"'
# A piece is parsed at once; this bounds memory and time of a sentence without an end.
LONGEST_PIECE = 2000

# Components of official models that cost time and that the task does not need.
_UNUSED: dict[Task, tuple[str, ...]] = {
    "parser": ("ner", "lemmatizer", "entity_linker", "textcat", "senter"),
    "names": (
        "parser",
        "tagger",
        "morphologizer",
        "lemmatizer",
        "attribute_ruler",
        "senter",
        "textcat",
    ),
}
_NEEDED: dict[Task, str] = {"parser": "parser", "names": "ner"}
# Cut after a mark that ends a sentence, else after a comma or a space. A run of full stops is tried from its first
# one alone, and parts that follow each other share no character: the time is linear for any line.
_CUTS = (
    re.compile(r"[。！？；!?;…]+[”’」』\"']*\s*|(?<![.])[.]+[\"']*\s+"),
    re.compile(r"[，,、：:\s]+"),
)
_SPACE = re.compile(r"\s*")
# Labels of names: of spaCy's official models, and of others.
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
    """A name in a text: the characters `text[start:end]` and its label."""

    start: int
    end: int
    label: Label


def load_parser(language: str, model: str | None = None) -> Language:
    """Load the pipeline that tags and parses a language.

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


def load_names(language: str, model: str) -> Language:
    """Load a pipeline that finds names (`ents`).

    Arguments and errors as in `load_parser`. For untrusted texts use `names`: the pipeline itself fails on half a
    surrogate pair and beyond a million characters.
    """
    return _load("names", language, model)


def names(texts: Iterable[str], language: str, model: str) -> Iterator[list[Name]]:
    """Find the names in each text, in order; none overlap.

    Any text of any length is accepted: it is read line by line, as `pieces` cuts it, in time proportional to its
    length. A name that crosses a line end, or a cut within a word, is not found whole.

    Args:
        texts: may hold anything: half surrogate pairs, NUL, emoji. Offsets count the characters of the given text.
        language: `en` or `zh`.
        model: a package or folder, as in `load_parser`. GPE and FAC count as LOC, PER as PERSON; other labels are left
            out.

    Raises at once, as `load_parser`.
    """
    return _named_texts(load_names(language, model), texts)


def _named_texts(nlp: Language, texts: Iterable[str]) -> Iterator[list[Name]]:
    spans: list[Name] = []
    for doc, start in nlp.pipe(_readable_pieces(texts), as_tuples=True, batch_size=64):
        if start is None:
            yield spans
            spans = []
            continue
        for entity in doc.ents:
            label = _LABELS.get(entity.label_)
            name = entity.text.strip()
            if label and name:
                first = start + entity.start_char + entity.text.index(name)
                spans.append(Name(first, first + len(name), label))


def _readable_pieces(texts: Iterable[str]) -> Iterator[tuple[str, int | None]]:
    """Yield each piece with its start in the text, and ("", None) after the last piece of a text."""
    for text in texts:
        for start, end in _piece_spans(text):
            yield _readable(text[start:end]), start
        yield "", None


def parse(texts: Iterable[str], language: str, *, model: str | None = None) -> Iterator[Doc]:
    """Parse each text, in order; see `load_parser` for annotations and errors.

    A text is parsed whole: pass long ones as `pieces`, since spaCy refuses more than a million characters. Half a
    surrogate pair, which spaCy cannot read, is parsed as a question mark.
    """
    docs: Iterator[Doc] = load_parser(language, model).pipe(map(_readable, texts), batch_size=64)
    return docs


def _readable(text: str) -> str:
    """Replace each half of a surrogate pair with a question mark; the length stays the same."""
    return text.encode("utf-8", "replace").decode("utf-8")


def pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text; cut lines over 2,000 characters at sentence ends, commas or spaces.

    A turn, a memory or a schedule entry is a line of its own, so no sentence crosses a line end. White space around
    a piece and empty pieces are dropped.
    """
    return (text[start:end] for start, end in _piece_spans(text))


def _piece_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece. The rest of the text is never copied: that would be quadratic."""
    next_line = 0
    for line in text.splitlines(keepends=True):
        start = next_line + len(line) - len(line.lstrip())
        end = next_line + len(line.rstrip())
        next_line += len(line)
        while end - start > LONGEST_PIECE:
            reach = text[start : start + LONGEST_PIECE]
            cut = _cut(reach)
            yield start, start + len(reach[:cut].rstrip())
            spaces = _SPACE.match(text, start + cut, end)
            start = spaces.end() if spaces else start + cut
        if start < end:
            yield start, end


def _cut(reach: str) -> int:
    """Return where to cut a stretch: at the last good place, else within a word."""
    for mark in _CUTS:
        cuts = [match.end() for match in mark.finditer(reach)]
        if cuts:
            return cuts[-1]
    return LONGEST_PIECE


def _load(task: Task, language: str, model: str | None) -> Language:
    """Load a pipeline once: with a cache alone, threads that ask at the same time would each load one."""
    with _LOADING:
        return _loaded(task, language, model)


@cache
def _loaded(task: Task, language: str, model: str | None) -> Language:
    if language not in LANGUAGES:
        raise ConfigError(
            f"no {task} for language {quoted(language)}; choose from {', '.join(LANGUAGES)}"
        )
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("reading sentences", INSTALL) from error
    if model is None:
        components = find_language(language).parser_components
        if components:
            import_module(components)  # registers the tokenizer and features with spaCy
        # Without the components of other packages: Presidio's imports transformers and torch, seconds in each process.
        factories = spacy.util.registry._entry_point_factories
        factories.entry_points = False
        try:
            return spacy.load(MODELS / f"{language}_{task}")
        finally:
            factories.entry_points = True
    return _load_named(spacy, task, language, model)


def _load_named(spacy: Any, task: Task, language: str, model: str) -> Language:
    try:
        nlp: Language = spacy.load(model, exclude=_UNUSED[task])
    # Missing; its own requirements; a broken or foreign folder; a package that is not a model (`numpy`).
    except (OSError, ImportError, ValueError, AttributeError, TypeError) as error:
        reason = re.sub(r"^\[\w+\] ", "", shorten(" ".join(str(error).split()), 200))
        raise ConfigError(
            f"spaCy model {quoted(model)} cannot be loaded ({reason}); install it (python -m spacy download NAME),"
            " name its folder, or leave --spacy-model out to use the bundled pipeline"
        ) from error
    if nlp.lang != language:
        raise ConfigError(
            f"spaCy model {quoted(model)} is for language {nlp.lang!r}, not {language!r}"
        )
    if not nlp.has_pipe(_NEEDED[task]):
        raise ConfigError(
            f"spaCy model {quoted(model)} has no {_NEEDED[task]}: {', '.join(nlp.pipe_names) or 'it is empty'}"
        )
    return nlp
