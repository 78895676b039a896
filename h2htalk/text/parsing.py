"""Sentences parsed and names found, by small pipelines that come with the package or by spaCy models you name.

The bundled ones (`h2htalk/text/models`, each with its licence, CC BY-SA 4.0; figures in docs/measurements.md) are
trained on Universal Dependencies and Universal NER data. They load in a fraction of a second and need no download.
They read plain conversation well enough to count what is said; where a single sentence matters, or a name must not be
missed, prefer spaCy's official models (`--spacy-model en_core_web_sm`, `zh_core_web_sm`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from h2htalk.errors import ConfigError, MissingExtraError, quoted, shorten

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Task = Literal["parser", "names"]
MODELS = Path(__file__).parent / "models"
LANGUAGES = ("en", "zh")
INSTALL = 'pip install "h2htalk[analysis]"'
# A piece is parsed at once; memory and time of a sentence without an end stay small.
LONGEST_PIECE = 2000

# Components of official models that cost time and that the task does not ask for.
_UNUSED: dict[Task, tuple[str, ...]] = {
    "parser": ("ner", "lemmatizer", "entity_linker", "textcat", "senter"),
    "names": ("parser", "tagger", "morphologizer", "lemmatizer", "attribute_ruler", "senter", "textcat"),
}
_NEEDED: dict[Task, str] = {"parser": "parser", "names": "ner"}
# A cut falls after a mark that ends a sentence, else after a comma or a space.
_CUTS = (re.compile(r"[。！？；!?;…]+[”’」』\"']*\s*|[.]+[\"']*\s+"), re.compile(r"[，,、：:\s]+"))


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

    Arguments and errors as in `load_parser`. F1 of persons is 0.69 on English web text, 0.49 on
    tweets, 0.67 on Chinese encyclopedia text: candidates, no guarantee of privacy.
    """
    return _load("names", language, model)


def parse(texts: Iterable[str], language: str, *, model: str | None = None) -> Iterator[Doc]:
    """A parsed document for each text, in order; see `load_parser` for what it carries and for errors.

    A text is parsed whole: give long ones as `pieces`. Half a surrogate pair, which spaCy cannot read, is parsed as a
    question mark.
    """
    readable = (text.encode("utf-8", "replace").decode("utf-8") for text in texts)
    docs: Iterator[Doc] = load_parser(language, model).pipe(readable, batch_size=64)
    return docs


def pieces(text: str) -> Iterator[str]:
    """The text's lines, and of a line over 2,000 characters parts cut at sentence ends, commas or spaces.

    A turn, a memory or a plan is a line of its own, so no sentence runs over a line end. White space around a
    piece is dropped, empty ones are left out.
    """
    for line in text.splitlines():
        rest = line.strip()
        while len(rest) > LONGEST_PIECE:
            at = _cut(rest)
            if head := rest[:at].strip():
                yield head
            rest = rest[at:].lstrip()
        if rest:
            yield rest


def _cut(line: str) -> int:
    """Where to cut a long line: at the last good place within reach, else in mid-word."""
    for mark in _CUTS:
        ends = [found.end() for found in mark.finditer(line, 0, LONGEST_PIECE)]
        if ends:
            return ends[-1]
    return LONGEST_PIECE


@cache
def _load(task: Task, language: str, model: str | None) -> Language:
    if language not in LANGUAGES:
        raise ConfigError(f"no {task} for language {quoted(language)}; choose from {', '.join(LANGUAGES)}")
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("reading sentences", INSTALL) from error
    if model is None:
        if language == "zh":
            import h2htalk.text.chinese_pipeline  # noqa: F401  makes the words and features known to spaCy
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
