"""Recognisers of names by a model: spaCy's pipelines, GLiNER, and token classification with transformers.

They take the keys of Presidio's classes of the same names, which log a model's error and go on: here it stops the run.
Labels that are not mapped to a type are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from presidio_analyzer import EntityRecognizer, RecognizerResult

from h2htalk.curation.anonymize.engine.artifacts import DialogueArtifacts
from h2htalk.curation.anonymize.engine.recognizers import to_result
from h2htalk.curation.anonymize.spans import Span
from h2htalk.errors import ConfigError, MissingExtraError, quoted

# What a model finds in one piece: start, end, label, score.
Found = tuple[int, int, str, float]
Reader = Callable[[Sequence[str]], Iterable[Iterable[Found]]]

_BATCH = 32
# GLiNER reads 384 words at most, most token classifiers 512 tokens; what is longer they leave out.
_PIECE = 400
# spaCy says nothing of how sure it is: between what our rules call likely and what they list.
_SPACY_SCORE = 0.65


class ModelRecognizer(EntityRecognizer):
    """A model among the recognisers: it competes with our rules by its scores, and finds nothing in what they block."""

    LABELS: Mapping[str, str] = {"PERSON": "PERSON", "PER": "PERSON", "ORG": "ORGANIZATION"}

    def __init__(
        self, name: str, language: str, model: str, labels: Mapping[str, str] | None, threshold: float | None
    ) -> None:
        """
        Args:
            name: in the registry and in what `explain` prints.
            language: that it reads.
            model: its name on the Hub, its package, or its folder.
            labels: the type of each of its labels that counts; None: the usual ones.
            threshold: the least score, in [0, 1]; None: 0.5.

        Raises:
            ConfigError: the model cannot be loaded.
            MissingExtraError: its package is not installed.
        """
        self._labels = dict(labels or self.LABELS)
        self._threshold = 0.5 if threshold is None else threshold
        self._read = self.reader(model, language)
        super().__init__(sorted(set(self._labels.values())), name=name, supported_language=language)

    def reader(self, model: str, language: str) -> Reader:
        """Load the model; the function returned takes n texts and gives what it finds in each."""
        raise NotImplementedError

    def load(self) -> None:
        """The model is loaded when the recogniser is made."""

    def analyze(self, text: str, entities: Sequence[str], nlp_artifacts: object = None) -> list[RecognizerResult]:
        """What the model finds in each message, read in pieces."""
        if isinstance(nlp_artifacts, DialogueArtifacts):
            places = list(zip(nlp_artifacts.offsets, nlp_artifacts.texts, strict=True))
        else:
            places = [(0, text)]
        pieces = [(offset + start, piece) for offset, message in places for start, piece in _pieces(message)]
        results = []
        for batch in (pieces[at : at + _BATCH] for at in range(0, len(pieces), _BATCH)):
            for (offset, piece), found in zip(batch, self._read([piece for _, piece in batch]), strict=True):
                for start, end, label, score in found:
                    kind = self._labels.get(label, "")
                    if kind in entities and score >= self._threshold and 0 <= start < end <= len(piece):
                        span = Span(offset + start, offset + end, kind, min(score, 1.0))
                        results.append(to_result(span, self))
        return results


class SpacyModelRecognizer(ModelRecognizer):
    """The named entities of a spaCy pipeline: an installed package or a folder."""

    def reader(self, model: str, language: str) -> Reader:
        from h2htalk.text.parsing.parsing import load_names

        pipeline = load_names(language, model)

        def read(texts: Sequence[str]) -> Iterator[Iterator[Found]]:
            for document in pipeline.pipe(texts):
                yield ((e.start_char, e.end_char, e.label_, _SPACY_SCORE) for e in document.ents)

        return read


class GlinerModelRecognizer(ModelRecognizer):
    """GLiNER, asked for the labels that are mapped."""

    LABELS: Mapping[str, str] = {"person": "PERSON", "organization": "ORGANIZATION", "address": "ADDRESS"}

    def reader(self, model: str, language: str) -> Reader:
        what = f"GLiNER model {model}"
        gliner = _load("gliner", "pip install gliner", lambda module: module.GLiNER.from_pretrained(model), what)
        # `inference` since GLiNER 0.2.23, `batch_predict_entities` before.
        run = getattr(gliner, "inference", None) or gliner.batch_predict_entities
        labels = list(self._labels)
        return lambda texts: _found(run(list(texts), labels, threshold=self._threshold), "label")


class TransformersModelRecognizer(ModelRecognizer):
    """A token classifier of transformers; long pieces in overlapping parts."""

    def reader(self, model: str, language: str) -> Reader:
        classify = _load(
            "transformers",
            'pip install "h2htalk[local]"',
            lambda module: module.pipeline("token-classification", model=model, aggregation_strategy="simple"),
            f"token classifier {model}",
        )

        return lambda texts: _found(classify(list(texts)), "entity_group")


# By the names of Presidio's classes.
MODEL_CLASSES: Mapping[str, type[ModelRecognizer]] = {
    "SpacyRecognizer": SpacyModelRecognizer,
    "GLiNERRecognizer": GlinerModelRecognizer,
    "HuggingFaceNerRecognizer": TransformersModelRecognizer,
}


def _found(entities: Iterable[Iterable[Mapping[str, Any]]], label: str) -> Iterator[list[Found]]:
    """What a model gives of each text; `label`: the key of its label. Scores of 32 bits have six certain digits."""
    for text in entities:
        yield [(each["start"], each["end"], each[label], round(float(each["score"]), 6)) for each in text]


def _load(package: str, command: str, make: Callable[[Any], Any], what: str) -> Any:
    """A package's model."""
    try:
        module = import_module(package)
    except ImportError as error:
        raise MissingExtraError(what, command) from error
    try:
        return make(module)
    # What the loaders raise for a name they do not know: a missing file, a refused download, a foreign configuration.
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(
            f"{quoted(what)} cannot be loaded ({reason}); name a model of the Hub or its folder"
        ) from error


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Lines, and of long ones parts, cut after a space or a mark where there is one; with where each starts.

    Half surrogate pairs, which models cannot read, are question marks in them.
    """
    start = 0
    for line in text.encode("utf-8", "replace").decode("utf-8").splitlines(keepends=True):
        end = start + len(line)
        base = start
        while start < end:
            cut = min(start + _PIECE, end)
            if cut < end:
                reach = line[start - base : cut - base]
                cut = start + (max(reach.rfind(mark) for mark in " 。，.,!?！？;；") + 1 or len(reach))
            yield start, line[start - base : cut - base]
            start = cut
