"""Golden tables as data: the rows of parametrised tests, a line each, in `tests/AREA/tables.jsonl`."""

import json
from pathlib import Path
from typing import Any


def table(area: str, name: str) -> list[Any]:
    """The rows of a table, as `pytest.mark.parametrize` takes them; `why`, which some lines have, is for readers."""
    text = (Path(__file__).parents[1] / area / "tables.jsonl").read_text(encoding="utf-8")
    rows = [line["row"] for line in map(json.loads, text.splitlines()) if line["table"] == name]
    assert rows, f"no table {name!r} in {area}"
    return rows
