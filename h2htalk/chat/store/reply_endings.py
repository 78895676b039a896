"""What the stored replies of a folder say of their endings: those that a filter declined, and unknown reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from h2htalk.data.files import read_jsonl
from h2htalk.data.replies.finish_reasons import FILTERED, read_finish_reason, unknown_reasons_text
from h2htalk.data.responses import CALLS, Response, read_outcomes
from h2htalk.errors import counted, shorten

_NAMED = 3  # sentences of providers that are quoted
_QUOTED = 160


def ending_lines(folder: Path) -> Iterator[str]:
    """Yield a line on the calls in a folder's store that providers' filters declined, and one on unknown reasons."""
    reasons: list[str] = []
    filters: Counter[str] = Counter()
    path = folder / CALLS
    for where, record in read_jsonl(path, torn_tail=True) if path.exists() else ():
        for response in read_outcomes(record, where):
            if not isinstance(response, Response):
                continue
            reasons.append(response.finish_reason)
            if read_finish_reason(response.finish_reason) == FILTERED:
                filters[shorten(response.filtered_by or response.finish_reason, _QUOTED)] += 1
    if filters:
        named = ", ".join(f"{words} ({number:,})" for words, number in filters.most_common(_NAMED))
        total = sum(filters.values())
        declined = counted(total, "call was", "calls were")
        verb = "counts" if total == 1 else "count"
        yield f"{declined} declined by the provider's filter, and {verb} as `filtered`: {named}"
    if unknown := unknown_reasons_text(reasons):
        yield unknown
