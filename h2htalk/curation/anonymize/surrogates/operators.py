"""Replace the spans of a dialogue by Presidio's operators, or by surrogates."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

# First, as it imports Presidio without torch and with its limit of time; `presidio_anonymizer` imports all of it, too.
import h2htalk.detect.personal.engine  # noqa: F401

# isort: split
from presidio_anonymizer import AnonymizerEngine
from presidio_anonymizer.entities import OperatorConfig
from presidio_anonymizer.entities import RecognizerResult as FoundSpan

from h2htalk.curation.anonymize.surrogates.dialogue_surrogates import Surrogates
from h2htalk.detect.personal.spans import Span

_anonymizer = cache(AnonymizerEngine)


def replace_values(
    texts: Sequence[str],
    spans: Sequence[Sequence[Span]],
    surrogates: Surrogates,
    operators: Mapping[str, str],
    key: bytes,
) -> list[tuple[str, list[Span]]]:
    """The texts of a dialogue with their spans (of each in order, without overlaps) replaced, and the spans of the new
    texts: empty where a value was redacted.

    `operators`: `mask`, `hash`, `redact`, `keep` or `surrogate` by type; `DEFAULT` for the others. `key`: the
    workspace's secret, from which the salt of hashes is derived.
    """
    salt = hmac.digest(key, b"hash operator", hashlib.sha256)

    def hashed(value: str) -> str:
        return hashlib.sha256(salt + value.encode("utf-8", "surrogatepass")).hexdigest()

    mask = OperatorConfig(
        "mask", {"masking_char": "*", "chars_to_mask": 1_000_000, "from_end": False}
    )
    named_configs = {"mask": mask, "hash": OperatorConfig("custom", {"lambda": hashed})}
    configs = {}
    for kind in ("DEFAULT", *surrogates.types):
        name = operators.get(kind, operators.get("DEFAULT", "surrogate"))
        surrogate = OperatorConfig("custom", {"lambda": partial(surrogates.of, kind)})
        configs[kind] = (
            surrogate if name == "surrogate" else named_configs.get(name, OperatorConfig(name))
        )
    replaced = []
    for text, text_spans in zip(texts, spans, strict=True):
        results = [FoundSpan(span.type, span.start, span.end, span.score) for span in text_spans]
        anonymized = _anonymizer().anonymize(
            text, results, configs, merge_entities_with_spaces=False
        )
        items = sorted(anonymized.items, key=lambda item: (item.start, item.end))
        new = [
            replace(span, start=item.start, end=item.end)
            for item, span in zip(items, text_spans, strict=True)
        ]
        replaced.append((anonymized.text, new))
    return replaced
