"""Presidio's classes, without the gigabytes that it imports where torch is installed.

`presidio_analyzer` and spaCy import torch, transformers and GLiNER when they find them: 4 s and 400 MB for recognisers
that nobody asked for. They are hidden while Presidio is imported; our model recognisers import what they need.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from h2htalk.errors import MissingExtraError

_HEAVY = ("torch", "transformers", "gliner", "stanza")


@contextmanager
def _hidden(names: tuple[str, ...]) -> Iterator[None]:
    """Modules that cannot be imported inside, unless they are there already."""
    absent = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]  # None: an import raises ImportError
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


try:
    with _hidden(_HEAVY):
        from presidio_analyzer import (
            AnalysisExplanation,
            AnalyzerEngine,
            EntityRecognizer,
            Pattern,
            PatternRecognizer,
            RecognizerRegistry,
            RecognizerResult,
        )
        from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
        from presidio_analyzer.nlp_engine import NlpArtifacts, NlpEngine
        from presidio_anonymizer import AnonymizerEngine
        from presidio_anonymizer.entities import OperatorConfig
        from presidio_anonymizer.operators import Hash, Operator, OperatorType
except ImportError as error:
    raise MissingExtraError("anonymization", 'pip install "h2htalk[curation]"') from error

__all__ = [
    "AnalysisExplanation",
    "AnalyzerEngine",
    "AnonymizerEngine",
    "EntityRecognizer",
    "Hash",
    "LemmaContextAwareEnhancer",
    "NlpArtifacts",
    "NlpEngine",
    "Operator",
    "OperatorConfig",
    "OperatorType",
    "Pattern",
    "PatternRecognizer",
    "RecognizerRegistry",
    "RecognizerResult",
]
