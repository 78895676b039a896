"""Our own lexical values, as the tasks of both harnesses compute them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from h2htalk.benchmark.metrics.lexical import lexical_scores


def score(text: str, reference: str) -> Mapping[str, float]:
    """ROUGE-L, and the mean of the six lexical values."""
    values = lexical_scores([text], [reference], ["en"])[0]
    return {"lexical": math.fsum(values) / 6, "rouge_l": values.rouge_l}


def process_results(doc: Mapping[str, Any], results: list[str]) -> Mapping[str, float]:
    """For lm-eval: an empty reply has no value."""
    return (
        score(results[0], doc["reference"])
        if results[0]
        else {"lexical": math.nan, "rouge_l": math.nan}
    )
