"""Golden tables as data: the rows of parametrised tests, a line each, in `tests/AREA/tables.jsonl`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


@cache
def rows_of(area: str) -> list[dict[str, Any]]:
    """The lines of an area's file: `table`, `row` (the values of its parameters) and, for some, `why`."""
    path = Path(__file__).parent / area / "tables.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def table(area: str, name: str) -> list[Any]:
    """The rows of a table, as `pytest.mark.parametrize` takes them."""
    found = [line["row"] for line in rows_of(area) if line["table"] == name]
    assert found, f"no table {name!r} in {area}"
    return found
