"""What stands in for personal data: our surrogates as an operator of Presidio's anonymizer, beside its own."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig, RecognizerResult
from presidio_anonymizer.operators import Hash, Operator, OperatorType

from h2htalk.curation.anonymize.spans import Span
from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates

SURROGATE = "surrogate"
_MASK = {"masking_char": "*", "chars_to_mask": 1_000_000, "from_end": False}


class SurrogateOperator(Operator):
    """The surrogate that the dialogue's `Surrogates` give a value."""

    def operate(self, text: str, params: dict[str, Any] | None = None) -> str:
        surrogates: Surrogates = (params or {})["surrogates"]
        return surrogates.of(params["entity_type"], text) if params else text

    def validate(self, params: dict[str, Any] | None = None) -> None:
        """Surrogates exist for every value that was found."""

    def operator_name(self) -> str:
        return SURROGATE

    def operator_type(self) -> OperatorType:
        return OperatorType.Anonymize


class HashOperator(Hash):
    """Presidio's, for texts with half surrogate pairs too."""

    def operate(self, text: str = "", params: dict[str, Any] | None = None) -> str:
        return str(super().operate(text.encode("utf-8", "backslashreplace").decode(), params))


@cache
def _anonymizer() -> AnonymizerEngine:
    engine = AnonymizerEngine()
    engine.add_anonymizer(SurrogateOperator)
    engine.remove_anonymizer(Hash)
    engine.add_anonymizer(HashOperator)
    return engine


def operator_configs(surrogates: Surrogates, operators: Mapping[str, str], key: bytes) -> dict[str, OperatorConfig]:
    """The operator of each type, as Presidio's anonymizer takes them.

    Args:
        surrogates: of the dialogue.
        operators: `mask`, `hash`, `redact`, `keep` or `surrogate` by type; `DEFAULT` for the others.
        key: the workspace's secret, from which the salt of hashes is derived.
    """
    salt = hmac.digest(key, b"hash operator", hashlib.sha256)
    params: dict[str, dict[str, Any]] = {"mask": _MASK, "hash": {"salt": salt}, SURROGATE: {"surrogates": surrogates}}
    named = {"DEFAULT": SURROGATE} | dict(operators)
    return {kind: OperatorConfig(name, dict(params.get(name, {}))) for kind, name in named.items()}


@dataclass(frozen=True, slots=True)
class Replacement:
    """Characters `start` to `end` of a new text (none where the value was redacted) replace a value of a type."""

    start: int
    end: int
    type: str
    score: float
    found_by: str


def anonymize_text(
    text: str, spans: Sequence[Span], configs: dict[str, OperatorConfig]
) -> tuple[str, list[Replacement]]:
    """The text with its spans (in order, without overlaps) replaced, and where the replacements stand in it."""
    if not spans:
        return text, []
    results = [RecognizerResult(span.type, span.start, span.end, span.score) for span in spans]
    made = _anonymizer().anonymize(text, results, configs, merge_entities_with_spaces=False)
    return made.text, [
        Replacement(item.start, item.end, span.type, span.score, span.found_by)
        for item, span in zip(sorted(made.items, key=lambda item: (item.start, item.end)), spans, strict=True)
    ]
