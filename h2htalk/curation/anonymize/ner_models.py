"""Extra recognisers of names, for who has them installed: spaCy's models and GLiNER.

What they find is added to what our rules find; where both mark the same characters, the surer stays. A city or a
country alone is no personal data, so their places are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from h2htalk.curation.anonymize.spans import Span
from h2htalk.errors import ConfigError, MissingExtraError, quoted
from h2htalk.text.parsing.parsing import load_names, names

NameFinder = Callable[[Sequence[str]], list[list[Span]]]
BUNDLED, NONE = "bundled", "none"
INSTALL_CURATION = 'pip install "h2htalk[curation]"'
CHOICES = "bundled, none, spacy:MODEL, gliner:MODEL"
# Between what our rules call likely and what they list; GLiNER says how sure it is itself.
_SCORE = 0.65
_GLINER_LABELS = {"person": "PERSON", "organization": "ORGANIZATION", "address": "ADDRESS"}
_GLINER_THRESHOLD = 0.5
# GLiNER reads at most 384 words at once and leaves the rest out: pieces are shorter than that.
_GLINER_PIECE = 1000
_BATCH = 32


def name_finder(ner: str, language: str) -> NameFinder | None:
    """The extra recogniser that `ner` names, or None for `bundled` and `none`.

    Its function takes n texts and gives n lists of spans, in order, without overlaps among them.

    Raises:
        ConfigError: no such recogniser, or it cannot read the language.
        MissingExtraError: its package is not installed.
    """
    kind, _, model = ner.partition(":")
    if ner in (BUNDLED, NONE):
        return None
    if kind == "spacy" and model:
        return _spacy(model, language)
    if kind == "gliner" and model:
        return _gliner(model)
    raise ConfigError(f"no recogniser of names {quoted(ner)}; choose from {CHOICES}")


@lru_cache(maxsize=4)
def _spacy(model: str, language: str) -> NameFinder:
    load_names(language, model)  # a model that is not there is an error now, not in mid-work
    types = {"PERSON": "PERSON", "ORG": "ORGANIZATION"}

    def find(texts: Sequence[str]) -> list[list[Span]]:
        return [
            [Span(name.start, name.end, types[name.label], _SCORE) for name in each if name.label in types]
            for each in names(texts, language, model=model)
        ]

    return find


@lru_cache(maxsize=2)
def _gliner(name: str) -> NameFinder:
    try:
        loader: Any = import_module("gliner").GLiNER
    except ImportError as error:
        raise MissingExtraError("--ner gliner:MODEL", "pip install gliner") from error
    try:
        model = loader.from_pretrained(name)
    # What its loader raises for a name it does not know: a missing file, a refused download, a foreign configuration.
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            f"GLiNER model {quoted(name)} cannot be loaded ({' '.join(str(error).split())[:200]}); name a model of the "
            "hub or its folder, as in gliner:urchade/gliner_multi-v2.1"
        ) from error

    def find(texts: Sequence[str]) -> list[list[Span]]:
        found: list[list[Span]] = [[] for _ in texts]
        places = [(n, start, piece) for n, text in enumerate(texts) for start, piece in _pieces(text)]
        labels = list(_GLINER_LABELS)
        for at in range(0, len(places), _BATCH):
            batch = places[at : at + _BATCH]
            read = _run_gliner(model, [piece for _, _, piece in batch], labels)
            for (n, start, piece), entities in zip(batch, read, strict=True):
                found[n] += [
                    Span(
                        start + e["start"],
                        start + e["end"],
                        _GLINER_LABELS[e["label"].lower()],
                        float(e["score"]),
                    )
                    for e in entities
                    if 0 <= e["start"] < e["end"] <= len(piece)
                ]
        return found

    return find


def _run_gliner(model: Any, texts: list[str], labels: list[str]) -> list[list[dict[str, Any]]]:
    """`inference` since GLiNER 0.2.23, `batch_predict_entities` before."""
    run = getattr(model, "inference", None) or model.batch_predict_entities
    found: list[list[dict[str, Any]]] = run(texts, labels, threshold=_GLINER_THRESHOLD)
    return found


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Lines, and of long ones parts, cut after a space or a mark where there is one; with where each starts.

    Half surrogate pairs, which GLiNER cannot read, are question marks in them.
    """
    start = 0
    for line in text.encode("utf-8", "replace").decode("utf-8").splitlines(keepends=True):
        end = start + len(line)
        base = start
        while start < end:
            cut = min(start + _GLINER_PIECE, end)
            if cut < end:
                reach = line[start - base : cut - base]
                cut = start + (max(reach.rfind(mark) for mark in " 。，.,!?！？;；") + 1 or len(reach))
            yield start, line[start - base : cut - base]
            start = cut
